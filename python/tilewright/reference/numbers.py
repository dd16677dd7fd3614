"""Numbers of a thread under `kernel.interpret`: one value of a fixed format, with the arithmetic of cuda.device.

It shares the table of promotion with the compiler, and no code. A number of Python beside it takes its format.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from .. import dtype as dt
from ..dtype import DType
from ..errors import TileTypeError, TileValueError

_NAMES = {dt.float8_e4m3fn: "float8e4m3", dt.float8_e5m2: "float8e5m2", dt.bool_: "bool"}
_BY_NAME = {**{d.name: d for d in dt.ALL}, **dt.ALIASES, "bool": dt.bool_, "int": dt.int32, "float": dt.float32}


@functools.cache
def _table() -> dict[tuple[str, str], str | None]:
    return _core.device_promotions()


class Number:
    """A value of the format `dtype`; a 0-d array in its attributes."""

    __slots__ = ("_value", "dtype")
    shape, strides, ndim, ndims, size = (), (), 0, 0, 1

    def __init__(self, value: Any, dtype: DType) -> None:
        self.dtype = dtype
        self._value = as_format(value, dtype)

    @property
    def value(self) -> Any:
        """The NumPy scalar."""
        return self._value

    def item(self) -> Any:
        return self._value.item()

    def astype(self, dtype: Any, copy: bool = True) -> Number:
        return Number(self._value, dt.as_dtype(dtype))

    def reshape(self, *shape: Any) -> Number:
        if shape not in ((), ((),)):
            raise TileValueError(f"a number has the shape (), found {shape}; expected ()")
        return self

    def view(self, dtype: Any) -> Number:
        wanted = dt.as_dtype(dtype)
        if wanted.bits != self.dtype.bits:
            raise TileTypeError(f"view: {self.dtype} and {wanted} differ in size")
        return Number(np.asarray(self._value).view(wanted.numpy)[()], wanted)

    def __repr__(self) -> str:
        return f"{self.dtype}({self._value})"

    def __bool__(self) -> bool:
        return bool(self._value)

    def __int__(self) -> int:
        return _whole(self._value, dt.int32)

    def __float__(self) -> float:
        return float(self._value)

    def __index__(self) -> int:
        if not self.dtype.is_integral:
            raise TypeError(f"{self.dtype} is no integer")
        return int(self._value)

    def __hash__(self) -> int:
        return hash(self.item())

    def __neg__(self) -> Any:
        return binary("sub", 0, self) if not self.dtype.is_float else Number(-_wide(self), self.dtype)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        with np.errstate(over="ignore"):  # of the least integer, which stays what it is
            return Number(abs(_wide(self)), self.dtype)

    def __invert__(self) -> Any:
        return Number(~self._value, self.dtype)

    def __trunc__(self) -> int:
        return int(self)

    def __floor__(self) -> int:
        return _whole(np.floor(float(self._value)), dt.int32) if self.dtype.is_float else int(self._value)

    def __ceil__(self) -> int:
        return _whole(np.ceil(float(self._value)), dt.int32) if self.dtype.is_float else int(self._value)


def int32(value: int) -> Number:
    return Number(value, dt.int32)


def _whole(value: Any, dtype: DType) -> int:
    """Towards zero. What NaN and infinity become is open, and some integer of the format."""
    if isinstance(value, int | np.integer) or math.isfinite(value):
        return int(value)
    return 0 if math.isnan(value) else dtype.max if value > 0 else dtype.min


def as_format(value: Any, dtype: DType) -> Any:
    """A number as a NumPy scalar of a format: integers wrap, floats round once."""
    value = value.value if isinstance(value, Number) else value
    if dtype.is_integral:
        whole = _whole(value, dtype) & ((1 << dtype.bits) - 1)
        return dtype.numpy.type(whole - (1 << dtype.bits) if dtype.signed and whole >> (dtype.bits - 1) else whole)
    if dtype.is_bool:
        return np.bool_(bool(value))
    with np.errstate(all="ignore"):
        return dtype.numpy.type(value)


def _wide(number: Any) -> Any:
    """A value in which the arithmetic of its format rounds right: 16 bits and fewer in float32."""
    value = number.value if isinstance(number, Number) else number
    dtype = number.dtype if isinstance(number, Number) else None
    return np.float32(value) if dtype is not None and dtype.is_float and dtype.bits < 32 else value


def _name(value: Any) -> str:
    if isinstance(value, Number):
        return _NAMES.get(value.dtype, value.dtype.name)
    return type(value).__name__


def common(values: Any) -> tuple[DType, bool]:
    """The format in which numbers meet, and whether that is a number of Python's still."""
    names = [_name(v) for v in values]
    found = names[0]
    for name in names[1:]:
        if (found, name) not in _table():
            raise TileTypeError(f"{found} and {name} do not meet; expected numbers")
        met = _table()[found, name]
        if met is None:
            raise TileTypeError(f"no implicit promotion between {found} and {name}; convert one operand")
        found = met
    return _BY_NAME[found], found in ("bool", "int", "float")


_STAY_BOOL = ("and_", "or_", "xor", "eq", "ne")
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


def binary(name: str, x: Any, y: Any) -> Any:
    """An operator of Python on two numbers, one of which has a fixed format at least."""
    dtype, loose = common((x, y))
    if {_name(x), _name(y)} == {"bool"} and name in _STAY_BOOL:
        dtype = dt.bool_
    if name == "truediv" and dtype.is_integral:
        dtype = dt.float64 if dtype.bits == 64 else dt.float32
    a, b = (Number(v, dtype) for v in (x, y))
    if name in _COMPARISONS:
        return Number(getattr(operator, name)(_wide(a), _wide(b)), dt.bool_)
    found = Number(_compute(name, a, b, dtype), dtype)
    return found.item() if loose else found


def _compute(name: str, a: Number, b: Number, dtype: DType) -> Any:
    if dtype.is_integral or dtype.is_bool:
        return _exact(name, int(a), int(b)) if dtype.is_integral else getattr(operator, name)(a.value, b.value)
    with np.errstate(all="ignore"):
        return getattr(operator, name)(_wide(a), _wide(b))


def _exact(name: str, a: int, b: int) -> int:
    """On integers; what the language leaves open is 0."""
    if name in ("floordiv", "mod") and b == 0:
        return 0
    if name in ("lshift", "rshift") and not 0 <= b < 64:
        return 0
    if name == "pow" and b < 0:
        return 0
    return int(getattr(operator, name)(a, b))


def _operator(name: str, swapped: bool = False) -> Callable[[Number, Any], Any]:
    def run(self: Number, other: Any) -> Any:
        if type(other) is complex:
            from .complexes import ComplexNumber  # which needs this module

            number = ComplexNumber(other, "complex")
            return getattr(operator, name)(*((number, self) if swapped else (self, number)))
        if not isinstance(other, Number | bool | int | float):
            return NotImplemented
        return binary(name, other, self) if swapped else binary(name, self, other)

    return run


for _python in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and_", "or_", "xor", "lshift", "rshift"):
    _bare = _python.rstrip("_")
    setattr(Number, f"__{_bare}__", _operator(_python))
    setattr(Number, f"__r{_bare}__", _operator(_python, swapped=True))
for _python in _COMPARISONS:
    setattr(Number, f"__{_python}__", _operator(_python))
