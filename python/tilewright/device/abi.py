"""How C++ passes values to functions: what `interop=True` functions and kernels take and return.

A value is what has a place in memory: its size, its alignment and the numbers in it. A convention says in which pieces
it travels: `nvptx` between functions and to kernels of a GPU, `sysv` and `aapcs64` between functions of the host. What
comes out is read by lowering/c_values.c.
"""

from __future__ import annotations

import dataclasses
import platform
import typing
from collections.abc import Callable, Sequence
from typing import Any

from ..dtype import DType, float32, float64
from ..errors import TileTypeError, TileUnsupportedFeatureError
from ..layout import Aligned, layout_of
from .vectors import TYPES

WORD, MOST_LEAVES, MOST_PARAMETERS = 8, 64, 32


@dataclasses.dataclass(frozen=True)
class ArrayType:
    """The hint of a parameter that is an array: `device.array(device.float32, 2)`."""

    dtype: DType
    ndim: int


def array(dtype: Any, ndim: int) -> ArrayType:
    """The hint of a parameter that is an array of `ndim` dimensions, for functions and kernels with `interop=True`.

    C++ passes a `cuda::interoperable_array_descriptor`: a pointer, extents and strides, both in elements.
    """
    layout = layout_of(dtype)
    if layout.fields or not isinstance(layout.leaves[0][1], DType):
        raise TileTypeError(f"device.array: arrays of C++ are of numbers, found {dtype!r}; pass an array of each field")
    most = 8
    if type(ndim) is not int or not 0 <= ndim <= most:
        raise TileTypeError(f"device.array: an array has 0 to {most} dimensions, found {ndim!r}")
    return ArrayType(layout.leaves[0][1], ndim)


@dataclasses.dataclass(frozen=True)
class Value:
    """What a convention looks at: `leaves` are (offset, bytes, 'int' or 'float') of the numbers in it.

    `is_plain`: a number that C passes as itself; `is_signed`: with its sign, where it is short. `has_copies`: a class
    with a copy constructor of its own, which travels by address.
    """

    size: int
    align: int
    leaves: tuple[tuple[int, int, str], ...]
    is_plain: bool = False
    is_signed: bool = False
    has_copies: bool = False
    is_none: bool = False


NONE = Value(WORD, WORD, ((0, WORD, "int"),), True, is_none=True)
_WITH_COPY_CONSTRUCTORS = {TYPES["float16x2"], TYPES["bfloat16x2"]}


def _kind(dtype: DType) -> str:
    """`__half` and its like are classes around an integer."""
    return "float" if dtype in (float32, float64) else "int"


def value_of(t: Any) -> Value:
    """Of the type that a hint names; None is a `void*`."""
    t = t.type if isinstance(t, Aligned) else t
    if t is None or t is type(None):
        return NONE
    if isinstance(t, ArrayType):
        words = 1 + 2 * t.ndim
        return Value(WORD * words, WORD, tuple((WORD * i, WORD, "int") for i in range(words)))
    layout = layout_of(t)
    leaves = tuple((offset, dtype.itemsize, _kind(dtype)) for offset, dtype in layout.leaves)
    if len(leaves) > MOST_LEAVES:
        raise TileTypeError(f"{t!r} consists of {len(leaves)} numbers; a value of C++ has {MOST_LEAVES} at most")
    dtype = layout.leaves[0][1]
    if layout.fields or typing.get_origin(t) is tuple:
        return Value(layout.size, layout.align, leaves, has_copies=t in _WITH_COPY_CONSTRUCTORS)
    is_class = dtype.is_float and _kind(dtype) == "int"
    return Value(layout.size, layout.align, leaves, not is_class, dtype.is_integral and dtype.signed)


# ---------------------------------------------------------------------------------------------
# Pieces


@dataclasses.dataclass(frozen=True)
class Passed:
    """How a value travels: (type, how many of it in an array, or 0 for itself, where) of each piece."""

    value: Value
    pieces: tuple[tuple[str, int, int], ...] = ()
    by_address: bool = False  # of a copy
    on_stack: bool = False  # where the stack pointer says; of a result: where the caller says

    def text(self) -> str:
        v = self.value
        leaves = () if v.is_none else v.leaves
        flags = {"by_address": self.by_address, "on_stack": self.on_stack, "signed": v.is_signed}
        entries = [
            f"size = {v.size} : i64",
            f"align = {v.align} : i64",
            f"pieces = [{', '.join(kind for kind, _, _ in self.pieces)}]",
            f"counts = {_numbers(count for _, count, _ in self.pieces)}",
            f"starts = {_numbers(start for _, _, start in self.pieces)}",
            f"places = {_numbers(offset for offset, _, _ in leaves)}",
            f"bytes = {_numbers(size for _, size, _ in leaves)}",
            *(name for name, holds in flags.items() if holds),
        ]
        return f"{{{', '.join(entries)}}}"


def _numbers(values: Any) -> str:
    listed = ", ".join(map(str, values))
    return f"array<i64: {listed}>" if listed else "array<i64>"


NOTHING = Passed(Value(0, 1, ()))


def _plain(value: Value) -> Passed:
    _, size, kind = value.leaves[0]
    return Passed(value, ((f"{'f' if kind == 'float' else 'i'}{8 * size}", 0, 0),))


@dataclasses.dataclass(frozen=True)
class Signature:
    """The parameters and the result of a function, by a convention."""

    parameters: tuple[Passed, ...]
    result: Passed

    def text(self) -> str:
        return f"{{parameters = [{', '.join(p.text() for p in self.parameters)}], result = {self.result.text()}}}"


def nvptx(parameters: Sequence[Value], result: Value | None, is_kernel: bool = False) -> Signature:
    """Each parameter is one of PTX: of bytes, aligned as the type, unless C passes a number."""
    passed = tuple(_by_bytes(value, is_kernel) for value in parameters)
    return Signature(passed, _by_bytes(result, False) if result else NOTHING)


def _by_bytes(value: Value, is_kernel: bool) -> Passed:
    if value.is_plain:
        return _plain(value)
    if value.has_copies and not is_kernel:
        return Passed(value, by_address=True)
    widest = 16  # bytes of an integer; from there on vectors are aligned as a whole
    if value.align > 2 * widest:
        raise TileUnsupportedFeatureError(f"a value that is aligned to {value.align} bytes; C++ passes it by address")
    kind = f"i{8 * value.align}" if value.align <= widest else f"vector<{value.align // 4}xi32>"
    return Passed(value, ((kind, value.size // value.align, 0),))


def sysv(parameters: Sequence[Value], result: Value | None) -> Signature:
    """Of x86-64: values of up to 16 bytes travel in registers by halves, others on the stack."""
    returned = _where_the_caller_says(_in_halves(result)) if result else NOTHING
    left = {"int": 6 - returned.on_stack, "float": 8}
    passed = []
    for value in parameters:
        wanted = _in_halves(value)
        uses = [("float" if "f" in kind else "int") for kind, _, _ in wanted.pieces]
        uses = ["int"] if wanted.by_address else uses
        if not value.is_plain and any(uses.count(kind) > left[kind] for kind in left):
            wanted, uses = Passed(value, on_stack=True), []
        for kind in uses:
            left[kind] -= 1
        passed.append(wanted)
    return Signature(tuple(passed), returned)


def _where_the_caller_says(result: Passed) -> Passed:
    """A result that goes to an address."""
    return dataclasses.replace(result, by_address=False, on_stack=True) if result.by_address else result


def _in_halves(value: Value) -> Passed:
    if value.is_plain:
        return _plain(value)
    if value.has_copies:
        return Passed(value, by_address=True)
    if value.size > 2 * WORD:
        return Passed(value, on_stack=True)
    halves = []
    for start in range(0, value.size, WORD):
        inside = [leaf for leaf in value.leaves if start <= leaf[0] < start + WORD]
        if inside:
            halves.append((_half(inside, min(WORD, value.size - start)), 0, start))
    return Passed(value, tuple(halves))


def _half(leaves: list[tuple[int, int, str]], size: int) -> str:
    if any(kind == "int" for _, _, kind in leaves):
        return f"i{8 * size}"
    return "f64" if leaves[0][1] == WORD else "vector<2xf32>" if len(leaves) == 2 else "f32"


def aapcs64(parameters: Sequence[Value], result: Value | None) -> Signature:
    """Of 64-bit Arm: up to four floats of a kind travel in registers, others of up to 16 bytes as words."""
    passed = tuple(map(_in_words, parameters))
    return Signature(passed, _where_the_caller_says(_in_words(result)) if result else NOTHING)


def _in_words(value: Value) -> Passed:
    if value.is_plain:
        return _plain(value)
    kinds, most = {(size, kind) for _, size, kind in value.leaves}, 4
    ((size, kind), *others) = kinds
    if kind == "float" and not others and len(value.leaves) <= most and size * len(value.leaves) == value.size:
        return Passed(value, ((f"f{8 * size}", len(value.leaves), 0),))
    if value.size > 2 * WORD or value.has_copies:
        return Passed(value, by_address=True)
    if value.align == 2 * WORD:
        return Passed(value, (("i128", 0, 0),))
    return Passed(value, (("i64", 2 if value.size > WORD else 0, 0),))


_OF_MACHINES: dict[str, Callable[..., Signature]] = {"x86_64": sysv, "aarch64": aapcs64, "arm64": aapcs64}


def of_host(machine: str = "") -> Callable[..., Signature]:
    """The convention of this machine."""
    name = (machine or platform.machine()).lower()
    if name not in _OF_MACHINES:
        raise TileUnsupportedFeatureError(f"how C++ passes values on {name} is not known; expected x86-64 or Arm64")
    return _OF_MACHINES[name]
