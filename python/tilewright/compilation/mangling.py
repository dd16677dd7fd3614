"""Mangling: a signature as part of a symbol, as cuTile writes it, and back.

    scale_Kt1_A2f32_1v4_2t1_3l0_Sf32_I16

is the kernel `scale` by convention t1, of an array, a number and a constant. Of an array: its rank and dtype; then for
each set of axes, a mask in hexadecimal, what holds of them (letters of _PREDICATES); then what holds of the whole.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from typing import Any

from ..dtype import BY_NAME, DType, int32, int64, uint32
from .signature import (
    ArrayConstraint,
    CallingConvention,
    ConstantConstraint,
    KernelSignature,
    ListConstraint,
    ParameterConstraint,
    ScalarConstraint,
    TupleConstraint,
    with_groups,
)

# In the order in which they stand. Masks are hexadecimal: no letter is a digit of theirs.
_PREDICATES = {
    "s": "shape_constant",
    "i": "shape_divisible_by",
    "t": "stride_constant",
    "v": "stride_divisible_by",
    "l": "stride_lower_bound_incl",
}
_DTYPES = {
    "bool_": "b8",
    **{f"uint{bits}": f"u{bits}" for bits in (8, 16, 32, 64)},
    **{f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"float{bits}": f"f{bits}" for bits in (16, 32, 64)},
    "bfloat16": "bf16",
    "tfloat32": "tf32",
    "float8_e4m3fn": "f8m3fn",
    "float8_e5m2": "f8m2",
    "float8_e8m0fnu": "f8m0fnu",
}
_DTYPE_OF = {text: BY_NAME[name] for name, text in _DTYPES.items()}
_INDEX = {int32: "", uint32: "u", int64: "w"}


def mangle_kernel_name(function_name: str, kernel_signature: KernelSignature) -> str:
    """The symbol of a kernel with a signature; alias groups lose their names."""
    groups: dict[str, int] = {}
    for constraint in with_groups(kernel_signature.parameters):
        for name in constraint.alias_groups:
            groups.setdefault(name, len(groups))
    parts = [_write(p, groups) for p in kernel_signature.parameters]
    return "_".join([f"{function_name}_K{kernel_signature.calling_convention.code}", *parts])


def demangle_kernel_name(symbol: str) -> tuple[str, KernelSignature]:
    """The function's name and the signature in a symbol; ValueError where it has none."""
    name, found, _ = symbol.rpartition("_K")
    if not found:
        raise ValueError(f"{symbol!r} is not a mangled kernel name: it has no '_K'")
    reader = _Reader(symbol, len(name) + 2)
    convention = CallingConvention.from_code(reader.need("[^_]+", "the code of a calling convention"))
    parameters = []
    while not reader.at_end():
        reader.need("_", "an underscore before the next parameter")
        parameters.append(reader.parameter())
    return name, KernelSignature(parameters, convention, symbol)


# --- writing ----------------------------------------------------------------------------------------------------------


def _write(p: ParameterConstraint, groups: dict[str, int]) -> str:
    if isinstance(p, ArrayConstraint):
        return "A" + _write_array(p, groups)
    if isinstance(p, ListConstraint):
        may_alias = "i" if p.elements_may_alias else ""
        return "L" + _write_groups(p.alias_groups, groups) + may_alias + _write(p.element, groups)
    if isinstance(p, TupleConstraint):
        return f"T{len(p.items)}" + "".join(_write(item, groups) for item in p.items)
    if isinstance(p, ScalarConstraint):
        return "S" + _write_dtype(p.dtype)
    return _write_constant(p.value)


def _write_constant(value: Any) -> str:
    if isinstance(value, bool):
        return f"B{int(value)}"
    if isinstance(value, int):
        return "I" + _write_integer(value)
    if isinstance(value, float):
        return "F" + struct.pack(">d", value).hex()
    if isinstance(value, DType):
        return "Cd_" + _write_dtype(value)
    return "Cn_" if value is None else "Cs_" + _write_string(value)


def _write_integer(value: int) -> str:
    return str(value).replace("-", "_")


def _write_dtype(dtype: DType) -> str:
    if dtype.name not in _DTYPES:
        raise ValueError(f"a parameter of {dtype} has no mangled name; there are {', '.join(_DTYPES)}")
    return _DTYPES[dtype.name]


def _write_groups(names: Sequence[str], groups: dict[str, int]) -> str:
    return "".join(f"g{number:x}" for number in sorted(groups[name] for name in names))


def _write_array(p: ArrayConstraint, groups: dict[str, int]) -> str:
    unknown = {"shape_divisible_by": 1, "stride_divisible_by": 1}
    masks: dict[str, int] = {}  # a predicate with its number -> the axes that have it
    for letter, field in _PREDICATES.items():
        for axis, n in enumerate(getattr(p, field)):
            if n != unknown.get(field):
                predicate = letter + _write_integer(n)
                masks[predicate] = masks.get(predicate, 0) | 1 << axis
    sets: dict[int, str] = {}
    for predicate, mask in masks.items():
        sets[mask] = sets.get(mask, "") + predicate
    whole = f"p{p.base_addr_divisible_by}" if p.base_addr_divisible_by != 1 else ""
    whole += _write_groups(p.alias_groups, groups) + ("i" if p.may_alias_internally else "") + _INDEX[p.index_dtype]
    axes = [f"{mask:x}{sets[mask]}" for mask in sorted(sets)]
    return "_".join([f"{p.ndim}{_write_dtype(p.dtype)}", *axes, *([whole] if whole else [])])


def _write_string(text: str) -> str:
    """Letters and digits as they are, without K, which stands before a signature; others by their number."""

    def escape(match: re.Match[str]) -> str:
        c = match[0]
        number = ord(c)
        if c in "_K":
            return "__" if c == "_" else "_k"
        return f"_{number:02x}" if number < 256 else f"_u{number:04x}" if number < 65536 else f"_w{number:08x}"

    return re.sub("[^a-zA-JL-Z0-9]", escape, text) + "_z"


# --- reading ----------------------------------------------------------------------------------------------------------


class _Reader:
    """Reads the signature of a symbol from left to right."""

    def __init__(self, symbol: str, at: int) -> None:
        self.symbol = symbol
        self.at = at
        self.groups = 0  # how many there are so far

    def at_end(self) -> bool:
        return self.at == len(self.symbol)

    def take(self, pattern: str) -> str | None:
        match = re.compile(pattern).match(self.symbol, self.at)
        if match is None:
            return None
        self.at = match.end()
        return match[match.lastindex or 0]

    def need(self, pattern: str, what: str) -> str:
        found = self.take(pattern)
        if found is None:
            rest = self.symbol[self.at : self.at + 20]
            raise ValueError(f"{self.symbol!r} is not a mangled kernel name: expected {what}, found {rest!r}")
        return found

    def integer(self) -> int:
        return int(self.need("_?[0-9]+", "an integer").replace("_", "-"))

    def dtype(self) -> DType:
        names = "|".join(sorted(_DTYPE_OF, key=len, reverse=True))
        return _DTYPE_OF[self.need(names, "a dtype")]

    def parameter(self) -> ParameterConstraint:
        kind = self.need("[ABFILST]|C[dns]_", "the letter of a parameter")
        return _READERS[kind](self)

    def constant_bool(self) -> ConstantConstraint:
        return ConstantConstraint(self.need("[01]", "0 or 1") == "1")

    def constant_float(self) -> ConstantConstraint:
        (value,) = struct.unpack(">d", bytes.fromhex(self.need("[0-9a-f]{16}", "16 hexadecimal digits")))
        return ConstantConstraint(value)

    def text(self) -> str:
        text = ""
        while (part := self.need("[a-zA-JL-Z0-9]+|_z|_(?:[_k]|[0-9a-f]{2}|u[0-9a-f]{4}|w[0-9a-f]{8})", "text")) != "_z":
            plain = {"__": "_", "_k": "K"}.get(part, part)
            text += plain if part in ("__", "_k") or part[0] != "_" else chr(int(part.lstrip("_uw"), 16))
        return text

    def items(self) -> TupleConstraint:
        return TupleConstraint([self.parameter() for _ in range(int(self.need("[0-9]+", "the number of items")))])

    def list_of_arrays(self) -> ListConstraint:
        names, may_alias = self.alias_groups(), self.take("i") is not None
        self.need("A", "an array")
        return ListConstraint(self.array(), alias_groups=names, elements_may_alias=may_alias)

    def alias_groups(self) -> list[str]:
        """Groups are numbered as they first appear."""
        names: list[str] = []
        while (text := self.take("g(0|[1-9a-f][0-9a-f]*)")) is not None:
            number = int(text, 16)
            if number > self.groups:
                self.at -= len(text) + 1
                self.need("$^", f"an alias group up to {self.groups}")
            self.groups = max(self.groups, number + 1)
            names.append(f"group{number}")
        return names

    def array(self) -> ArrayConstraint:
        ndim = int(self.need("[0-9]+", "a rank"))
        dtype = self.dtype()
        axes: dict[str, list[int | None]] = {field: [None] * ndim for field in _PREDICATES.values()}
        while (mask := self.take("_([0-9a-f]+)")) is not None:
            self.predicates(axes, int(mask, 16), ndim)
        whole = self.take("_(?=[pgiuw])") is not None
        divisor = self.integer() if whole and self.take("p") else 1
        names = self.alias_groups() if whole else []
        may_alias = whole and self.take("i") is not None
        index = self.take("[uw]") if whole else None
        known: dict[str, Any] = dict(axes)
        return ArrayConstraint(
            dtype,
            ndim,
            index_dtype=next(d for d, letter in _INDEX.items() if letter == (index or "")),
            alias_groups=names,
            may_alias_internally=may_alias,
            base_addr_divisible_by=divisor,
            **known,
        )

    def predicates(self, axes: dict[str, list[int | None]], mask: int, ndim: int) -> None:
        if not 0 < mask < 1 << ndim:
            raise ValueError(f"{self.symbol!r} is not a mangled kernel name: {ndim} axes have no mask {mask:x}")
        for letter, field in _PREDICATES.items():
            if self.take(letter) is None:
                continue
            n = self.integer()
            for axis in (a for a in range(ndim) if mask >> a & 1):
                if axes[field][axis] is not None:
                    raise ValueError(f"{self.symbol!r} is not a mangled kernel name: two {field} of axis {axis}")
                axes[field][axis] = n


_READERS: dict[str, Any] = {
    "A": _Reader.array,
    "B": _Reader.constant_bool,
    "F": _Reader.constant_float,
    "I": lambda reader: ConstantConstraint(reader.integer()),
    "L": _Reader.list_of_arrays,
    "S": lambda reader: ScalarConstraint(reader.dtype()),
    "T": _Reader.items,
    "Cd_": lambda reader: ConstantConstraint(reader.dtype()),
    "Cn_": lambda reader: ConstantConstraint(None),
    "Cs_": lambda reader: ConstantConstraint(reader.text()),
}
