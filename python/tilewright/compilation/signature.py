"""Signatures: what an exported kernel takes for granted of its parameters, under cuTile's names.

A wrong one raises ValueError or TypeError, as there: no tile code is at fault.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from ..dtype import BY_NAME, DType, int32, int64, uint32
from ..shape_rules import dimensions
from ..structure import UNMARKED, parameter_marks, parameters_of

ConstantValue: TypeAlias = bool | int | float


@dataclasses.dataclass(frozen=True)
class CallingConvention:
    """In which order and format an exported kernel takes its arguments, and how its symbol is made.

    Arguments come in the order of the parameters, without constants: a number as its dtype; an array as its pointer,
    its extents, its strides, counted in elements, of the constraint's `index_dtype`; a tuple as its items. Version 2
    has tuples and constant extents. A launch gives the block `ExportedKernel.threads` threads and `shared_bytes`.
    """

    version: int

    @staticmethod
    def cutile_python_v1() -> CallingConvention:
        return CallingConvention(1)

    @staticmethod
    def cutile_python_v2() -> CallingConvention:
        return CallingConvention(2)

    @staticmethod
    def from_code(code: str, /) -> CallingConvention:
        """By the letters that a symbol has for it."""
        for convention in (CallingConvention(1), CallingConvention(2)):
            if convention.code == code:
                return convention
        raise ValueError(f"no calling convention has the code {code!r}; there are 't1' and 't2'")

    @property
    def name(self) -> str:
        return f"cutile_python_v{self.version}"

    @property
    def code(self) -> str:
        return f"t{self.version}"

    def __repr__(self) -> str:
        return f"CallingConvention.{self.name}()"


def _dtype(value: Any) -> DType:
    if not isinstance(value, DType):
        raise TypeError(f"dtype must be a DType such as ct.float32, found {value!r}")
    return value


def _integer(value: Any, what: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{what} must be an integer, found {value!r}")
    return value


@dataclasses.dataclass(frozen=True)
class ScalarConstraint:
    """A number of a dtype."""

    dtype: DType

    def __post_init__(self) -> None:
        _dtype(self.dtype)


# Of each axis of an array: the field -> what it is where nothing is known.
_OF_AXES: dict[str, int | None] = {
    "shape_constant": None,
    "shape_divisible_by": 1,
    "stride_constant": None,
    "stride_divisible_by": 1,
    "stride_lower_bound_incl": None,
}
_LEAST = {"shape_constant": 0, "shape_divisible_by": 1, "stride_divisible_by": 1}


def _of_axes(value: Any, ndim: int, name: str) -> tuple[int | None, ...]:
    """A value for each axis; one number stands for all."""
    values = (value,) * ndim if value is None or isinstance(value, int) else tuple(value)
    if len(values) != ndim:
        raise ValueError(f"{name} has {len(values)} values for an array of {dimensions(ndim)}")
    unknown = _OF_AXES[name]
    values = tuple(unknown if n is None else n for n in values)
    for axis, n in enumerate(values):
        if n is not None and _integer(n, f"{name}[{axis}]") < _LEAST.get(name, n):
            raise ValueError(f"{name}[{axis}] must be at least {_LEAST[name]}, found {n}")
    return values


def _implied(constants: Sequence[int | None], values: Sequence[int | None], name: str) -> tuple[int | None, ...]:
    """What constants leave to be said: what they already say is left out, and must be so."""
    for axis, (constant, n) in enumerate(zip(constants, values, strict=True)):
        fits = constant is None or n is None or (constant >= n if name.endswith("incl") else constant % n == 0)
        if not fits:
            what = "not at least" if name.endswith("incl") else "no multiple of"
            raise ValueError(f"the constant of axis {axis} is {constant}, {what} its {name}, {n}")
    rows = zip(constants, values, strict=True)
    return tuple(n if constant is None else _OF_AXES[name] for constant, n in rows)


def _groups(names: Any) -> tuple[str, ...]:
    if isinstance(names, str):
        raise TypeError(f"alias_groups must be a sequence of names, found the string {names!r}")
    names = tuple(names)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"alias_groups must be a sequence of names, found {name!r} in it")
        if names.count(name) > 1:
            raise ValueError(f"alias group {name!r} stands twice in {list(names)}")
    return names


@dataclasses.dataclass(frozen=True)
class ArrayConstraint:
    """An array. Of each axis, a sequence or one number for all: what divides its extent and its stride, the least
    stride, and constants; strides count elements. Two arrays may share memory only if they have an alias group in
    common; `may_alias_internally`: two indices of this one may mean the same element."""

    dtype: DType
    ndim: int
    _: dataclasses.KW_ONLY
    index_dtype: DType
    stride_lower_bound_incl: Any
    alias_groups: Any
    may_alias_internally: bool
    stride_constant: Any = None
    shape_constant: Any = None
    stride_divisible_by: Any = 1
    shape_divisible_by: Any = 1
    base_addr_divisible_by: int = 1

    def __post_init__(self) -> None:
        _dtype(self.dtype)
        if _integer(self.ndim, "ndim") < 0:
            raise ValueError(f"ndim must be at least 0, found {self.ndim}")
        if self.index_dtype not in (int32, uint32, int64):
            raise ValueError(f"index_dtype must be ct.int32 or ct.int64, found {self.index_dtype}")
        if _integer(self.base_addr_divisible_by, "base_addr_divisible_by") < 1:
            raise ValueError(f"base_addr_divisible_by must be at least 1, found {self.base_addr_divisible_by}")
        axes = {name: _of_axes(getattr(self, name), self.ndim, name) for name in _OF_AXES}
        for name in ("stride_lower_bound_incl", "stride_divisible_by", "shape_divisible_by"):
            axes[name] = _implied(axes[name.partition("_")[0] + "_constant"], axes[name], name)
        fixed = axes | {
            "alias_groups": _groups(self.alias_groups),
            "may_alias_internally": bool(self.may_alias_internally),
        }
        for name, value in fixed.items():
            object.__setattr__(self, name, value)


@dataclasses.dataclass(frozen=True)
class ListConstraint:
    """A list of such arrays, of any length."""

    element: ArrayConstraint
    _: dataclasses.KW_ONLY
    alias_groups: Any
    elements_may_alias: bool

    def __post_init__(self) -> None:
        if not isinstance(self.element, ArrayConstraint):
            raise TypeError(f"the element of a ListConstraint must be an ArrayConstraint, found {self.element!r}")
        object.__setattr__(self, "alias_groups", _groups(self.alias_groups))
        object.__setattr__(self, "elements_may_alias", bool(self.elements_may_alias))


@dataclasses.dataclass(frozen=True)
class TupleConstraint:
    """A tuple of such parameters."""

    items: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "items", tuple(_constraint(item) for item in self.items))


@dataclasses.dataclass(frozen=True, eq=False)
class ConstantConstraint:
    """The constant value of a parameter marked `ct.Constant`: 1, True and 1.0 are three values, and NaN equals NaN."""

    value: Any

    def __post_init__(self) -> None:
        if not _is_constant(self.value):
            raise TypeError(f"a constant is a number, None, a string or a dtype, found {self.value!r}")

    def _identity(self) -> tuple[type, Any]:
        value = struct.pack("=d", self.value) if isinstance(self.value, float) else self.value
        return type(self.value), value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConstantConstraint) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())


ParameterConstraint: TypeAlias = (
    ScalarConstraint | ArrayConstraint | ListConstraint | TupleConstraint | ConstantConstraint
)


def _is_constant(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str | DType)


def _constraint(value: Any) -> ParameterConstraint:
    """A constraint, or what stands for one."""
    if isinstance(value, ParameterConstraint):
        return value
    if _is_constant(value):
        return ConstantConstraint(value)
    if isinstance(value, tuple):
        return TupleConstraint(value)
    raise TypeError(f"expected a constraint of a parameter, a constant or a tuple of them, found {value!r}")


def with_groups(parameters: Sequence[ParameterConstraint]) -> Iterator[ArrayConstraint | ListConstraint]:
    """The constraints that have alias groups, in order."""
    for parameter in parameters:
        if isinstance(parameter, ArrayConstraint):
            yield parameter
        elif isinstance(parameter, ListConstraint):
            yield parameter
            yield parameter.element
        elif isinstance(parameter, TupleConstraint):
            yield from with_groups(parameter.items)


def _check_groups(parameters: Sequence[ParameterConstraint]) -> None:
    users: dict[str, list[Any]] = {}
    for constraint in with_groups(parameters):
        for name in constraint.alias_groups:
            users.setdefault(name, []).append(constraint)
    for name, constraints in users.items():
        if len(constraints) == 1:
            raise ValueError(
                f"alias group {name!r} has one member only: leave it out where an array shares memory with no other"
            )
        kinds = sorted({type(c).__name__ for c in constraints})
        if len(kinds) > 1:
            raise ValueError(f"alias group {name!r} has members of different types: {' and '.join(kinds)}")


def _check_convention(parameters: Sequence[ParameterConstraint], convention: CallingConvention) -> None:
    """Whether the calling convention has such parameters."""
    for parameter in parameters:
        what = None
        if isinstance(parameter, TupleConstraint):
            what = "tuples"
            _check_convention(parameter.items, convention)
        array = parameter.element if isinstance(parameter, ListConstraint) else parameter
        if isinstance(array, ArrayConstraint) and any(n is not None for n in array.shape_constant):
            what = "arrays with constant extents"
        if what and convention.version < 2:
            raise ValueError(f"calling convention {convention.name} has no {what}; version >= 2 is required")


@dataclasses.dataclass(frozen=True)
class KernelSignature:
    """The parameters of a compiled kernel: a constraint each, or a constant itself. `symbol`: the name of the code;
    None: one that `mangle_kernel_name` makes."""

    parameters: Any
    calling_convention: CallingConvention
    symbol: str | None = None

    def __post_init__(self) -> None:
        if self.symbol is not None and not isinstance(self.symbol, str):
            raise TypeError(f"symbol must be a string, found {self.symbol!r}")
        if not isinstance(self.calling_convention, CallingConvention):
            raise TypeError(f"calling_convention must be a CallingConvention, found {self.calling_convention!r}")
        parameters = tuple(_constraint(p) for p in self.parameters)
        _check_groups(parameters)
        _check_convention(parameters, self.calling_convention)
        object.__setattr__(self, "parameters", parameters)

    def with_symbol(self, symbol: str | None) -> KernelSignature:
        return dataclasses.replace(self, symbol=symbol)

    def with_mangled_symbol(self, function_name: str) -> KernelSignature:
        from .mangling import mangle_kernel_name

        return self.with_symbol(mangle_kernel_name(function_name, self))

    @staticmethod
    def from_kernel_args(
        kernel: Any, kernel_args: Sequence[Any], calling_convention: CallingConvention, *, symbol: str | None = None
    ) -> KernelSignature:
        """What a launch with these arguments would take for granted, their alignment too: for tests and trials."""
        found = parameter_marks(kernel.function)
        for name, marks in found.items():
            marks.check(name)
        _, key = kernel.specialization(tuple(kernel_args))
        parameters = [_of_fact(*entry) for entry in key]
        if calling_convention.version >= 2:
            for i, (name, argument) in enumerate(zip(parameters_of(kernel.function), kernel_args, strict=False)):
                parameter = parameters[i]
                if isinstance(parameter, ArrayConstraint) and not found.get(name, UNMARKED).extents:
                    parameters[i] = _with_single_extents(parameter, argument.shape)
        signature = KernelSignature(parameters, calling_convention, symbol)
        return signature if symbol is not None else signature.with_mangled_symbol(kernel.name)


def _with_single_extents(array: ArrayConstraint, shape: Sequence[int]) -> ArrayConstraint:
    """An extent of 1 is a constant where no annotation says which are."""
    return dataclasses.replace(array, shape_constant=[1 if extent == 1 else None for extent in shape])


def _of_fact(kind: str, *facts: Any) -> ParameterConstraint:
    """An entry of the key of a specialization as a constraint."""
    if kind == "const":
        return _constraint(facts[0])
    if kind == "scalar":
        return ScalarConstraint(BY_NAME[facts[0]])
    if kind != "array":
        raise TypeError(f"a parameter that is a {kind} has no constraint")
    dtype, ndim, align, shape_div, strides, _, _, *known = facts
    none: tuple[dict[int, int], dict[int, int]] = {}, {}
    extents, known_strides = known or none
    steps = [1 if one else None for one, _ in strides] if not known_strides else [None] * ndim
    return ArrayConstraint(
        BY_NAME[dtype],
        ndim,
        index_dtype=int32,
        stride_lower_bound_incl=0,
        alias_groups=(),
        may_alias_internally=False,
        stride_constant=[known_strides.get(axis, step) for axis, step in enumerate(steps)],
        shape_constant=[extents.get(axis) for axis in range(ndim)],
        stride_divisible_by=[1 if one else divisor for one, divisor in strides],
        shape_divisible_by=shape_div,
        base_addr_divisible_by=align,
    )
