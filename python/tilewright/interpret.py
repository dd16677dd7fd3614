"""Reference execution: the Python body of a kernel runs, block after block, on NumPy tiles.

`run` starts it (kernel.interpret, or ct.launch under TILEWRIGHT_INTERPRET=1). Breakpoints in the
kernel work, and a tile shows its values in the debugger. It shares no code with the compiler,
so that tests hold the compiler against it; results are rounded as exactly as NumPy lets us:

- + - * / of a format round once, to nearest even; 16-bit floats compute in float32 and round.
- exp and its like, sums and products compute in float64 and round once.
- Integers wrap. Where the language leaves a value open, nothing is raised.
- Elements that a load with PaddingMode.UNDETERMINED finds outside the array are poison: NaN, or
  the byte 0xA5 repeated. A kernel that lets them through shows it here.

Python numbers in the body are the loosely typed constants. `range` gives int32 scalars, as in
compiled code, and `min` and `max` accept tiles: `_Rebinder` puts these in place of the built-ins in
the kernel and in the Python functions that it calls by a plain name.
"""

from __future__ import annotations

import builtins
import contextvars
import math
import operator
import re
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from . import dtype as dt
from . import tile as ct
from .dtype import DType
from .errors import TileError, TileTypeError, TileValueError
from .tile import PaddingMode

Number = bool | int | float
Shape = tuple[int, ...]

_INT32_MAX = 2**31 - 1
_GRID_LIMIT = (2**31 - 1, 65535, 65535)

# ---------------------------------------------------------------------------------------------
# Values


class Tile:
    """An immutable tile: `shape`, `dtype`, and the elements in `numpy()` for the debugger."""

    __slots__ = ("_data", "_dtype")
    __array_ufunc__ = None  # so that NumPy scalars leave the operators to us
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, data: Any, dtype: DType) -> None:
        data = np.asarray(data, dtype=dtype.numpy)
        if data.flags.writeable:
            data = data.view()
            data.flags.writeable = False
        self._data = data
        self._dtype = dtype

    @property
    def dtype(self) -> DType:
        return self._dtype

    @property
    def shape(self) -> Shape:
        return self._data.shape

    @property
    def ndim(self) -> int:
        return self._data.ndim

    @property
    def T(self) -> Tile:
        return _transpose(self, None, None)

    def numpy(self) -> np.ndarray:
        """The elements, read-only. For the debugger: compiled code has no such method."""
        return self._data

    def item(self) -> Tile:
        """The only element of a tile, as a scalar."""
        if self._data.size != 1:
            raise TileValueError(f"item() needs a tile with one element, found shape {self.shape}")
        return Tile(self._data.reshape(()), self._dtype)

    def __repr__(self) -> str:
        return f"Tile({self}, shape={self.shape}, dtype={self._dtype})"

    def __str__(self) -> str:
        return _text(self)

    def __format__(self, spec: str) -> str:
        return format(self._python() if self.ndim == 0 else str(self), spec)

    # Scalars in Python's places for numbers.

    def _python(self) -> Any:
        if self.ndim != 0:
            raise TileTypeError(
                f"a scalar is needed here, found a tile of shape {self.shape}; "
                "ct.where chooses between the elements of tiles"
            )
        value = self._data[()]
        return value.item() if self._dtype.numpy.kind in "biu" else float(value)

    def __bool__(self) -> bool:
        return bool(self._python() != 0)

    def __int__(self) -> int:
        return int(self._python())

    def __float__(self) -> float:
        return float(self._python())

    def __index__(self) -> int:
        if not self._dtype.is_integral:
            raise TileTypeError(f"an integer scalar is needed here, found {self._dtype}")
        return int(self._python())

    def __getitem__(self, index: Any) -> Tile:
        return _getitem(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TileTypeError("tiles are immutable: use ct.where, or store to an array")

    def __iter__(self) -> Iterator[Any]:
        raise TileTypeError("a tile cannot be iterated or unpacked")

    def __pos__(self) -> Tile:
        dt.require_arithmetic(self._dtype, "+x")
        return self


def _add_operators() -> None:
    """Give tiles the operators and methods that tile.py lists."""

    def binary(run: Callable[..., Any]) -> Callable[[Tile, Any], Any]:
        return lambda self, other: run(self, other)

    def reflected(run: Callable[..., Any]) -> Callable[[Tile, Any], Any]:
        return lambda self, other: run(other, self)

    dunder = {"Mult": "mul", "Div": "truediv", "MatMult": "matmul"}
    dunder |= {"BitAnd": "and", "BitOr": "or", "BitXor": "xor"}
    dunder |= {"Eq": "eq", "NotEq": "ne", "Lt": "lt", "LtE": "le", "Gt": "gt", "GtE": "ge"}
    for node, public in ct.BINARY_OPERATORS.items():
        name = dunder.get(node, node.lower())
        for value in (Tile, Array):  # of arrays, to say that they must be loaded first
            setattr(value, f"__{name}__", binary(public))
            setattr(value, f"__r{name}__", reflected(public))
    for node, public in ct.COMPARISONS.items():
        setattr(Tile, f"__{dunder[node]}__", binary(public))
    for name, public in (("neg", ct.negative), ("invert", ct.bitwise_not), ("abs", ct.abs)):
        setattr(Tile, f"__{name}__", _method(public))
    for name, public in ct.TILE_METHODS.items():
        setattr(Tile, name, _method(public))


def _method(public: Callable[..., Any]) -> Any:
    def method(self: Tile, *args: Any, **kwargs: Any) -> Any:
        return public(self, *_shape_arguments(public, args), **kwargs)

    method.__doc__ = public.__doc__
    return method


def _shape_arguments(public: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, ...]:
    """x.reshape(4, 8) means x.reshape((4, 8)), as in NumPy."""
    if public in (ct.reshape, ct.permute) and len(args) > 1:
        return (args,)
    return args


class Array:
    """An array in global memory, over the caller's NumPy array; strides count elements."""

    __slots__ = ("_data", "_dtype", "_name")

    def __init__(self, data: np.ndarray, name: str = "array") -> None:
        dtype = dt._from_numpy(data.dtype)
        if dtype is None:
            raise TileTypeError(f"argument {name!r}: arrays of {data.dtype} are not supported")
        if any(s % data.itemsize for s in data.strides):
            raise TileTypeError(
                f"argument {name!r}: strides {data.strides} (bytes) are no multiples of the "
                f"element size {data.itemsize}"
            )
        if any(n > _INT32_MAX for n in data.shape):
            raise TileValueError(f"argument {name!r}: shape {data.shape} is beyond int32")
        self._data = data
        self._dtype = dtype
        self._name = name

    @property
    def dtype(self) -> DType:
        return self._dtype

    @property
    def shape(self) -> tuple[Tile, ...]:
        """int32 scalars: known only when the kernel runs."""
        return tuple(_int32(n) for n in self._data.shape)

    @property
    def strides(self) -> tuple[Tile, ...]:
        """Distance of neighbours along each axis, in elements."""
        return tuple(Tile(s // self._data.itemsize, dt.int64) for s in self._data.strides)

    @property
    def ndim(self) -> int:
        return self._data.ndim

    def __repr__(self) -> str:
        return f"Array({self._name}, shape={self._data.shape}, dtype={self._dtype})"


def _int32(value: int) -> Tile:
    return Tile(np.int32(value), dt.int32)


def _text(tile: Tile) -> str:
    data = tile._data
    if tile.dtype.numpy.kind not in "biuf":
        data = data.astype(np.float32)
    return str(data[()]) if tile.ndim == 0 else np.array2string(data, separator=", ")


def _is_number(value: Any) -> bool:
    return isinstance(value, bool | int | float) and not isinstance(value, np.generic)


def _operand(value: Any, what: str) -> Tile | Number:
    """A tile or a loosely typed constant; NumPy's scalars are typed."""
    if isinstance(value, np.generic):
        return Tile(value, dt.as_dtype(value.dtype))
    if isinstance(value, Tile) or _is_number(value):
        return value  # type: ignore[no-any-return]
    found = f"the array {value._name!r}; load it first" if isinstance(value, Array) else repr(value)
    raise TileTypeError(f"{what} needs tiles or numbers, found {found}")


def _tile(value: Any, what: str) -> Tile:
    value = _operand(value, what)
    return value if isinstance(value, Tile) else _constant(value, dt.constant_dtype(value))


def _array(value: Any, what: str) -> Array:
    if not isinstance(value, Array):
        raise TileTypeError(f"{what} needs an array (a kernel argument), found {value!r}")
    return value


# ---------------------------------------------------------------------------------------------
# Conversions


def _constant(value: Number, dtype: DType) -> Tile:
    """A loosely typed constant as a scalar of `dtype`; TileValueError if it does not fit."""
    if dtype.is_integral:
        if not math.isfinite(value) or not dtype.min <= int(value) <= dtype.max:
            raise TileValueError(
                f"constant {value} is outside {dtype} ({dtype.min} to {dtype.max})"
            )
        return Tile(np.array(int(value), dtype.numpy), dtype)
    if dtype.is_bool:
        return Tile(np.array(bool(value)), dtype)
    try:
        wide = np.array(float(value))
    except OverflowError:
        wide = np.array(math.copysign(math.inf, value))
    return Tile(_to_float(wide, dtype), dtype)


def _to_float(data: np.ndarray, dtype: DType) -> np.ndarray:
    """Round float32 or float64 elements once, to nearest even, to a float dtype."""
    if dtype is dt.tfloat32:
        return _round_to_tf32(_round_to_odd(data))
    if dtype in (dt.float16, dt.float32, dt.float64):
        return data.astype(dtype.numpy)
    if dtype in _LARGEST:
        data = np.clip(data, -_LARGEST[dtype], _LARGEST[dtype])
    return _round_to_odd(data).astype(dtype.numpy)


# Formats without infinity: what is too large becomes the largest value.
_LARGEST: dict[DType, float] = {dt.float8_e4m3fn: 448.0, dt.float4_e2m1fn: 6.0}


def _round_to_odd(data: np.ndarray) -> np.ndarray:
    """float64 to float32, such that rounding the result to fewer bits rounds only once.

    Truncates towards zero and marks what was lost in the last bit.
    """
    if data.dtype != np.float64:
        return data.astype(np.float32)
    near = data.astype(np.float32)
    exact = (near.astype(np.float64) == data) | np.isnan(data)
    down = np.where(np.abs(near) > np.abs(data), np.nextafter(near, np.float32(0)), near)
    odd = (down.view(np.int32) | 1).view(np.float32)
    return np.where(exact, near, odd)


def _round_to_tf32(data: np.ndarray) -> np.ndarray:
    """float32 with its mantissa rounded to 10 bits, to nearest even."""
    bits = data.view(np.uint32)
    dropped = 13
    even = (bits >> dropped) & 1
    rounded = (bits + np.uint32((1 << (dropped - 1)) - 1) + even) >> dropped << dropped
    return np.where(np.isfinite(data), rounded.view(np.float32), data)


def _exact(data: np.ndarray) -> np.ndarray:
    """Elements of any float format, bit for bit as float32 or float64."""
    return data if data.dtype in (np.float32, np.float64) else data.astype(np.float32)


def _convert(tile: Tile, dtype: DType) -> Tile:
    """`astype`."""
    data = tile._data
    if tile.dtype is dtype:
        return tile
    if tile.dtype.is_float:
        data = _exact(data)
        if dtype.is_float:
            return Tile(_to_float(data, dtype), dtype)
        if dtype.is_integral:
            return Tile(np.trunc(data).astype(dtype.numpy), dtype)
        return Tile(data != 0, dtype)
    if dtype in (dt.float16, dt.float32, dt.float64) or not dtype.is_float:
        return Tile(data.astype(dtype.numpy), dtype)
    return Tile(_to_float(_integers_as_float64(data), dtype), dtype)


def _integers_as_float64(data: np.ndarray) -> np.ndarray:
    """Integers as float64. Past 2**53 what is lost goes to the last bit (as _round_to_odd)."""
    near = data.astype(np.float64)
    if data.dtype.itemsize < 8:
        return near
    low = data & data.dtype.type(0x7FF)  # at most 53 of 64 bits remain above it
    odd = np.where(low != 0, (data - low) | data.dtype.type(0x800), data)
    return np.where(np.abs(near) < 2.0**53, near, odd.astype(np.float64))


def _cast(value: Tile | Number, dtype: DType) -> Tile:
    return _convert(value, dtype) if isinstance(value, Tile) else _constant(value, dtype)


def _implicit(value: Any, dtype: DType, what: str) -> Tile:
    """`value` as `dtype` if it promotes to it, as in a store."""
    value = _operand(value, what)
    if isinstance(value, Tile):
        common = dt.PROMOTION[value.dtype, dtype]
        found = value.dtype
    else:
        common = dt.promote_constant(value, dtype)
        found = dt.constant_dtype(value)
    if common is not dtype:
        raise TileTypeError(
            f"{what}: {found} does not convert to {dtype} by itself; "
            f"write the conversion, as in x.astype(ct.{dtype})"
        )
    return _cast(value, dtype)


def _common_dtype(x: Tile | Number, y: Tile | Number) -> DType:
    if isinstance(x, Tile):
        if isinstance(y, Tile):
            return dt.promote(x.dtype, y.dtype)
        return dt.promote_constant(y, x.dtype)
    if isinstance(y, Tile):
        return dt.promote_constant(x, y.dtype)
    return dt.promote(dt.constant_dtype(x), dt.constant_dtype(y))


# ---------------------------------------------------------------------------------------------
# Shapes


def _static_int(value: Any, what: str) -> int:
    if isinstance(value, Tile):
        raise TileTypeError(f"{what} must be a constant, found a run-time {value.dtype} value")
    try:
        return operator.index(value)
    except TypeError:
        raise TileTypeError(f"{what} must be a constant integer, found {value!r}") from None


def _static_ints(value: Any, what: str) -> Shape:
    values = value if isinstance(value, Sequence) and not isinstance(value, str) else (value,)
    return tuple(_static_int(v, f"{what}[{i}]") for i, v in enumerate(values))


def _tile_shape(value: Any, what: str) -> Shape:
    shape = _static_ints(value, what)
    for axis, n in enumerate(shape):
        if n < 1 or n & (n - 1):
            raise TileValueError(
                f"{what}: dimension {axis} of {shape} is {n}, which is no power of two"
            )
    return shape


def _broadcast(a: Shape, b: Shape, what: str) -> Shape:
    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        raise TileValueError(f"{what}: shapes {a} and {b} do not broadcast") from None


def _axis(axis: Any, ndim: int, what: str) -> int:
    value = _static_int(axis, f"{what}: axis")
    if not -ndim <= value < ndim:
        raise TileValueError(f"{what}: axis {value} is outside a tile of {ndim} dimensions")
    return value % ndim


def _axes(axis: Any, ndim: int, what: str) -> Shape:
    if axis is None:
        return tuple(range(ndim))
    values = axis if isinstance(axis, Sequence) else (axis,)
    axes = tuple(_axis(a, ndim, what) for a in values)
    if len(set(axes)) != len(axes):
        raise TileValueError(f"{what}: axis {axis} names one axis twice")
    return axes


def _order(order: Any, ndim: int, what: str) -> Shape:
    if order == "C":
        return tuple(range(ndim))
    if order == "F":
        return tuple(reversed(range(ndim)))
    if isinstance(order, str):
        raise TileValueError(f"{what}: order {order!r} is neither 'C', 'F' nor a permutation")
    axes = _static_ints(order, f"{what}: order")
    if sorted(axes) != list(range(ndim)):
        raise TileValueError(f"{what}: order {axes} is no permutation of {ndim} axes")
    return axes


# ---------------------------------------------------------------------------------------------
# Elementwise operations

# Each on two arrays of one dtype; 16-bit floats come as float32 and are rounded afterwards.
_NUMPY_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.divide,
    "mod": np.mod,
    "minimum": np.minimum,
    "maximum": np.maximum,
}
_PYTHON_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "truediv": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "pow": operator.pow,
    "minimum": builtins.min,
    "maximum": builtins.max,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "bitwise_lshift": operator.lshift,
    "bitwise_rshift": operator.rshift,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}


def _fold(run: Callable[..., Any], name: str, *values: Any) -> Any:
    """An operation on constants only, on Python's numbers."""
    try:
        return run(*values)
    except (ArithmeticError, ValueError, TypeError) as error:
        raise TileValueError(f"ct.{name} of the constants {values}: {error}") from None


def _compute(run: Callable[..., Any], dtype: DType, *operands: Tile) -> Tile:
    """Run a NumPy function on operands of `dtype`, which is also the result's, rounding once."""
    if dtype in (dt.float16, dt.bfloat16):
        return Tile(_to_float(run(*(_exact(o._data) for o in operands)), dtype), dtype)
    return Tile(run(*(o._data for o in operands)), dtype)


def _promoted(name: str, x: Any, y: Any) -> tuple[Tile, Tile, DType]:
    """Both operands converted to their common dtype; checks that the shapes broadcast."""
    common = _common_dtype(x, y)
    x_shape, y_shape = (v.shape if isinstance(v, Tile) else () for v in (x, y))
    _broadcast(x_shape, y_shape, f"ct.{name}")
    if common.is_integral and (name == "truediv" or (name == "pow" and not _is_power(y))):
        common = dt.float32
    return _cast(x, common), _cast(y, common), common


def _is_power(y: Any) -> bool:
    """Whether y is a constant exponent under which integers stay integers."""
    return isinstance(y, int) and y >= 0


def _binary(name: str, x: Any, y: Any) -> Any:
    x, y = _operand(x, f"ct.{name}"), _operand(y, f"ct.{name}")
    if _is_number(x) and _is_number(y):
        return _fold(_PYTHON_BINARY[name], name, x, y)
    a, b, dtype = _promoted(name, x, y)
    dt.require_arithmetic(dtype, f"ct.{name}")
    if name == "floordiv":
        return _floordiv(a, b, dtype)
    if name == "pow":
        return _pow(a, b, dtype)
    return _compute(_NUMPY_BINARY[name], dtype, a, b)


def _floordiv(a: Tile, b: Tile, dtype: DType) -> Tile:
    if dtype.is_float:
        return _compute(np.floor, dtype, _compute(np.divide, dtype, a, b))
    return Tile(np.floor_divide(a._data, b._data), dtype)


def _pow(a: Tile, b: Tile, dtype: DType) -> Tile:
    if dtype.is_float:
        wide = np.power(a._data.astype(np.float64), b._data.astype(np.float64))
        return Tile(_to_float(wide, dtype), dtype)
    return Tile(np.power(a._data, b._data), dtype)


def _bitwise(name: str, x: Any, y: Any) -> Any:
    x, y = _operand(x, f"ct.{name}"), _operand(y, f"ct.{name}")
    if _is_number(x) and _is_number(y):
        return _fold(_PYTHON_BINARY[name], name, x, y)
    a, b, dtype = _promoted(name, x, y)
    shift = name in ("bitwise_lshift", "bitwise_rshift")
    if dtype.is_float or (shift and dtype.is_bool):
        raise TileTypeError(
            f"ct.{name} needs integers{'' if shift else ' or bools'}, found {dtype}; "
            "convert first, as in x.astype(ct.int32)"
        )
    if shift:
        run = np.left_shift if name == "bitwise_lshift" else np.right_shift
        return Tile(run(a._data, np.clip(b._data, 0, dtype.bits - 1)), dtype)
    return Tile(getattr(np, name)(a._data, b._data), dtype)


def _compare(name: str, x: Any, y: Any) -> Any:
    x, y = _operand(x, f"ct.{name}"), _operand(y, f"ct.{name}")
    if _is_number(x) and _is_number(y):
        return _fold(_PYTHON_BINARY[name], name, x, y)
    a, b, dtype = _promoted(name, x, y)
    dt.require_arithmetic(dtype, f"ct.{name}", allow_bool=True)
    return Tile(getattr(np, name)(_exact_float(a), _exact_float(b)), dt.bool_)


def _exact_float(tile: Tile) -> np.ndarray:
    return _exact(tile._data) if tile.dtype.is_float else tile._data


def _where(cond: Any, x: Any, y: Any) -> Tile:
    cond, x, y = (_operand(v, "ct.where") for v in (cond, x, y))
    condition = _tile(cond, "ct.where")
    if not condition.dtype.is_bool:
        raise TileTypeError(
            f"ct.where needs a bool_ condition, found {condition.dtype}; compare, as in x != 0"
        )
    a, b, dtype = _promoted("where", x, y)
    _broadcast(_broadcast(a.shape, b.shape, "ct.where"), condition.shape, "ct.where")
    return Tile(np.where(condition._data, a._data, b._data), dtype)


def _negative(x: Any) -> Any:
    x = _operand(x, "ct.negative")
    if _is_number(x):
        return -x
    return _compute(np.negative, dt.require_arithmetic(x.dtype, "ct.negative"), x)


def _abs(x: Any) -> Any:
    x = _operand(x, "ct.abs")
    if _is_number(x):
        return builtins.abs(x)
    return _compute(np.abs, dt.require_arithmetic(x.dtype, "ct.abs"), x)


def _bitwise_not(x: Any) -> Any:
    x = _operand(x, "ct.bitwise_not")
    if isinstance(x, bool):
        return not x
    if isinstance(x, int):
        return ~x
    x = _tile(x, "ct.bitwise_not")
    if x.dtype.is_float:
        raise TileTypeError(f"ct.bitwise_not needs integers or bools, found {x.dtype}")
    return Tile(np.invert(x._data), x.dtype)


_FLOAT_FUNCTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "floor": np.floor,
    "ceil": np.ceil,
}


def _float_function(name: str, x: Any) -> Any:
    x = _operand(x, f"ct.{name}")
    run = _FLOAT_FUNCTIONS[name]
    if _is_number(x):
        return float(run(np.asarray(x, np.float64)))
    dtype = dt.require_arithmetic(x.dtype, f"ct.{name}")
    if not dtype.is_float:
        if name in ("floor", "ceil"):
            raise TileTypeError(f"ct.{name} needs floats, found {dtype}, which is integral already")
        dtype = dt.float32
    return Tile(_to_float(run(_convert(x, dtype)._data.astype(np.float64)), dtype), dtype)


def _cdiv(x: Any, y: Any) -> Any:
    x, y = _operand(x, "ct.cdiv"), _operand(y, "ct.cdiv")
    if _is_number(x) and _is_number(y):
        return _fold(lambda a, b: -(-a // b), "cdiv", x, y)
    a, b, dtype = _promoted("cdiv", x, y)
    if not dtype.is_integral:
        raise TileTypeError(f"ct.cdiv needs integers, found {dtype}")
    quotient = np.floor_divide(a._data, b._data)
    return Tile(quotient + (quotient * b._data != a._data).astype(dtype.numpy), dtype)


# ---------------------------------------------------------------------------------------------
# Shape and dtype


def _astype(x: Any, dtype: Any) -> Tile:
    return _cast(_operand(x, "ct.astype"), dt.as_dtype(dtype))


def _reshape(x: Any, shape: Any) -> Tile:
    x = _tile(x, "ct.reshape")
    wanted = _static_ints(shape, "ct.reshape: shape")
    if wanted.count(-1) == 1:
        rest = -math.prod(wanted)
        if rest > 0 and x._data.size % rest == 0:
            wanted = tuple(x._data.size // rest if n == -1 else n for n in wanted)
    wanted = _tile_shape(wanted, "ct.reshape: shape")
    if math.prod(wanted) != x._data.size:
        raise TileValueError(
            f"ct.reshape: shape {x.shape} has {x._data.size} elements, "
            f"{wanted} has {math.prod(wanted)}"
        )
    return Tile(x._data.reshape(wanted), x.dtype)


def _permute(x: Any, axes: Any) -> Tile:
    x = _tile(x, "ct.permute")
    order = tuple(_axis(a, x.ndim, "ct.permute") for a in axes)
    if sorted(order) != list(range(x.ndim)):
        raise TileValueError(f"ct.permute: axes {axes} is no permutation of {x.ndim} axes")
    return Tile(x._data.transpose(order), x.dtype)


def _transpose(x: Any, axis0: Any, axis1: Any) -> Tile:
    x = _tile(x, "ct.transpose")
    if axis0 is None and axis1 is None:
        if x.ndim != 2:
            raise TileValueError(
                f"ct.transpose of a tile of {x.ndim} dimensions needs the two axes to swap"
            )
        axis0, axis1 = 0, 1
    elif axis0 is None or axis1 is None:
        raise TileValueError("ct.transpose needs both axes or none")
    a, b = (_axis(v, x.ndim, "ct.transpose") for v in (axis0, axis1))
    return Tile(np.swapaxes(x._data, a, b), x.dtype)


def _expand_dims(x: Any, axis: Any) -> Tile:
    x = _tile(x, "ct.expand_dims")
    return Tile(np.expand_dims(x._data, _axis(axis, x.ndim + 1, "ct.expand_dims")), x.dtype)


def _getitem(x: Tile, index: Any) -> Tile:
    """x[:, None]: new axes only."""
    index = index if isinstance(index, tuple) else (index,)
    for entry in index:
        if entry is not None and entry is not Ellipsis and entry != slice(None):
            raise TileTypeError(
                f"tiles take only ':', None and '...' as index, found {entry!r}; "
                "select elements with ct.where, or with ct.gather from an array"
            )
    if sum(e is not None and e is not Ellipsis for e in index) > x.ndim:
        raise TileValueError(f"too many indices for a tile of shape {x.shape}")
    return Tile(x._data[index], x.dtype)


def _broadcast_to(x: Any, shape: Any) -> Tile:
    x = _tile(x, "ct.broadcast_to")
    wanted = _tile_shape(shape, "ct.broadcast_to: shape")
    if _broadcast(x.shape, wanted, "ct.broadcast_to") != wanted:
        raise TileValueError(f"ct.broadcast_to: shape {x.shape} does not broadcast to {wanted}")
    return Tile(np.broadcast_to(x._data, wanted), x.dtype)


# ---------------------------------------------------------------------------------------------
# Creation


def _full(shape: Any, fill_value: Any, dtype: Any) -> Tile:
    value = _cast(_operand(fill_value, "ct.full"), dt.as_dtype(dtype))
    if value.ndim != 0:
        raise TileTypeError(f"ct.full needs a scalar to fill with, found shape {value.shape}")
    return Tile(np.full(_tile_shape(shape, "shape"), value._data), value.dtype)


def _arange(size: Any, dtype: Any, start: Any, step: Any) -> Tile:
    dtype = dt.as_dtype(dtype)
    (count,) = _tile_shape(_static_int(size, "ct.arange: size"), "ct.arange: size")
    dt.require_arithmetic(dtype, "ct.arange")
    first = _implicit(start, dtype, "ct.arange: start")
    delta = _implicit(step, dtype, "ct.arange: step")
    steps = _convert(Tile(np.arange(count), dt.int64), dtype)
    return _compute(np.add, dtype, first, _compute(np.multiply, dtype, steps, delta))


# ---------------------------------------------------------------------------------------------
# Memory


def _padding(mode: Any, dtype: DType) -> np.ndarray:
    """The value of a padding mode in `dtype`, as a 0-d array."""
    if not isinstance(mode, PaddingMode):
        raise TileTypeError(f"padding_mode must be a ct.PaddingMode, found {mode!r}")
    if mode is PaddingMode.UNDETERMINED:
        return _poison(dtype)
    if mode is PaddingMode.ZERO and dtype is not dt.float8_e8m0fnu:
        return np.zeros((), dtype.numpy)
    value = {
        PaddingMode.ZERO: 0.0,
        PaddingMode.NEG_ZERO: -0.0,
        PaddingMode.NAN: math.nan,
        PaddingMode.POS_INF: math.inf,
        PaddingMode.NEG_INF: -math.inf,
    }[mode]
    if dtype.is_float:
        padded = np.float32(value).astype(dtype.numpy)
        seen = float(padded)
        same = math.isnan(seen) if math.isnan(value) else seen == value
        if same and math.copysign(1, seen) == math.copysign(1, value):
            return np.asarray(padded)
    raise TileTypeError(f"padding_mode {mode.name}: {dtype} has no such value; use ZERO")


def _poison(dtype: DType) -> np.ndarray:
    if dtype.is_float and dtype is not dt.float4_e2m1fn:
        return np.asarray(np.float32(math.nan).astype(dtype.numpy))
    if dtype.is_integral:
        return np.frombuffer(b"\xa5" * dtype.itemsize, dtype.numpy)[0:1].reshape(())
    return np.ones((), dtype.numpy)


def _window(
    array: Array, index: Any, shape: Shape, order: Any, what: str
) -> tuple[np.ndarray, Shape, Shape]:
    """The array with its axes in tile order, and the tile's first and end element on each."""
    data = array._data.transpose(_order(order, array.ndim, what))
    values = index if isinstance(index, Sequence) else (index,)
    if len(values) != array.ndim or len(shape) != array.ndim:
        raise TileValueError(
            f"{what}: the array has {array.ndim} dimensions, the index {len(values)} "
            f"and the tile {len(shape)}"
        )
    first = tuple(_scalar_index(v, what) * n for v, n in zip(values, shape, strict=True))
    return data, first, tuple(f + n for f, n in zip(first, shape, strict=True))


def _scalar_index(value: Any, what: str) -> int:
    value = _tile(value, f"{what}: index")
    if value.ndim != 0 or not value.dtype.is_integral:
        raise TileTypeError(
            f"{what}: an index is an integer scalar, found {value.dtype} of shape {value.shape}"
        )
    return int(value)


def _overlap(data: np.ndarray, first: Shape, end: Shape) -> tuple[tuple[slice, ...], ...]:
    """The slices of array and tile that name the elements which both have."""
    inside = []
    for n, low, high in zip(data.shape, first, end, strict=True):
        inside.append((builtins.max(low, 0), builtins.max(builtins.min(high, n), low, 0)))
    of_array = tuple(slice(a, b) if b > a else slice(0, 0) for a, b in inside)
    of_tile = tuple(
        slice(a - low, b - low) if b > a else slice(0, 0)
        for (a, b), low in zip(inside, first, strict=True)
    )
    return of_array, of_tile


def _check_inside(data: np.ndarray, first: Shape, end: Shape, what: str) -> None:
    if any(f < 0 or e > n for f, e, n in zip(first, end, data.shape, strict=True)):
        raise TileValueError(
            f"{what}: check_bounds=False promised a tile inside the array, but elements "
            f"{first} to {end} of shape {data.shape} are not"
        )


def _load(
    array: Any,
    index: Any,
    shape: Any,
    order: Any,
    padding_mode: Any,
    check_bounds: Any,
    latency: Any,
    allow_tma: Any,
) -> Tile:
    array = _array(array, "ct.load")
    tile_shape = _tile_shape(shape, "ct.load: shape")
    data, first, end = _window(array, index, tile_shape, order, "ct.load")
    padding = _padding(padding_mode, array.dtype)
    if not check_bounds:
        _check_inside(data, first, end, "ct.load")
    result = np.full(tile_shape, padding)
    of_array, of_tile = _overlap(data, first, end)
    result[of_tile] = data[of_array]
    return Tile(result, array.dtype)


def _store(
    array: Any,
    index: Any,
    tile: Any,
    order: Any,
    check_bounds: Any,
    latency: Any,
    allow_tma: Any,
) -> None:
    array = _writable(array, "ct.store")
    value = _implicit(tile, array.dtype, "ct.store")
    shape = value.shape if value.ndim else (1,) * array.ndim
    data, first, end = _window(array, index, shape, order, "ct.store")
    if not check_bounds:
        _check_inside(data, first, end, "ct.store")
    of_array, of_tile = _overlap(data, first, end)
    data[of_array] = value._data.reshape(shape)[of_tile]


def _writable(array: Any, what: str) -> Array:
    array = _array(array, what)
    if not array._data.flags.writeable:
        raise TileValueError(f"{what}: argument {array._name!r} is read-only")
    return array  # type: ignore[no-any-return]


def _element_indices(
    array: Array, indices: Any, mask: Any, check_bounds: Any, what: str
) -> tuple[tuple[np.ndarray, ...], np.ndarray, Shape]:
    """Index arrays of one shape, which elements to touch, and the shape of the indices."""
    values = indices if isinstance(indices, tuple | list) else (indices,)
    if len(values) != array.ndim:
        raise TileValueError(
            f"{what}: the array has {array.ndim} dimensions, but there are {len(values)} indices"
        )
    tiles = [_tile(v, f"{what}: index") for v in values]
    shape: Shape = ()
    for t in tiles:
        if not t.dtype.is_integral:
            raise TileTypeError(f"{what}: indices are integers, found {t.dtype}")
        shape = _broadcast(shape, t.shape, f"{what}: indices")
    arrays = tuple(np.broadcast_to(_wide_index(t), shape) for t in tiles)
    inside = np.ones(shape, bool)
    if mask is not None:
        chosen = _tile(mask, f"{what}: mask")
        if not chosen.dtype.is_bool or _broadcast(chosen.shape, shape, f"{what}: mask") != shape:
            raise TileTypeError(
                f"{what}: mask must be a bool_ tile that broadcasts to {shape}, "
                f"found {chosen.dtype} of shape {chosen.shape}"
            )
        inside = inside & chosen._data
    valid = np.ones(shape, bool)
    for a, n in zip(arrays, array._data.shape, strict=True):
        valid = valid & (a >= 0) & (a < n)
    if not check_bounds and np.any(inside & ~valid):
        raise TileValueError(f"{what}: check_bounds=False, but an index is outside the array")
    return arrays, inside & valid, shape


def _wide_index(tile: Tile) -> np.ndarray:
    """Index elements as int64; a uint64 beyond it becomes the largest, which is outside."""
    if tile.dtype is dt.uint64:
        return np.minimum(tile._data, np.uint64(2**63 - 1)).astype(np.int64)
    return tile._data.astype(np.int64)


def _gather(
    array: Any, indices: Any, mask: Any, padding_value: Any, check_bounds: Any, latency: Any
) -> Tile:
    array = _array(array, "ct.gather")
    where, inside, shape = _element_indices(array, indices, mask, check_bounds, "ct.gather")
    padding = _implicit(padding_value, array.dtype, "ct.gather: padding_value")
    if _broadcast(padding.shape, shape, "ct.gather: padding_value") != shape:
        raise TileValueError(
            f"ct.gather: padding_value of shape {padding.shape} does not broadcast to {shape}"
        )
    result = np.broadcast_to(padding._data, shape).copy()
    result[inside] = array._data[tuple(w[inside] for w in where)]
    return Tile(result, array.dtype)


def _scatter(
    array: Any, indices: Any, value: Any, mask: Any, check_bounds: Any, latency: Any
) -> None:
    array = _writable(array, "ct.scatter")
    where, inside, shape = _element_indices(array, indices, mask, check_bounds, "ct.scatter")
    new = _implicit(value, array.dtype, "ct.scatter")
    if _broadcast(new.shape, shape, "ct.scatter: value") != shape:
        raise TileValueError(
            f"ct.scatter: value of shape {new.shape} does not broadcast to {shape}"
        )
    array._data[tuple(w[inside] for w in where)] = np.broadcast_to(new._data, shape)[inside]


# ---------------------------------------------------------------------------------------------
# Reductions


def _reduction_input(name: str, x: Any) -> Tile:
    x = _tile(x, f"ct.{name}")
    dt.require_arithmetic(x.dtype, f"ct.{name}", allow_bool=True)
    return _convert(x, dt.int32) if x.dtype.is_bool and name in ("sum", "prod") else x


def _reduce(name: str, x: Any, axis: Any, keepdims: Any) -> Tile:
    x = _reduction_input(name, x)
    axes = _axes(axis, x.ndim, f"ct.{name}")
    run = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}[name]
    data = x._data
    if name in ("max", "min"):
        return Tile(run(_exact_float(x), axis=axes, keepdims=bool(keepdims)), x.dtype)
    if x.dtype.is_float:
        wide = run(data.astype(np.float64), axis=axes, keepdims=bool(keepdims))
        return Tile(_to_float(np.asarray(wide), x.dtype), x.dtype)
    return Tile(run(data, axis=axes, keepdims=bool(keepdims), dtype=data.dtype), x.dtype)


def _arg_reduce(name: str, x: Any, axis: Any, keepdims: Any) -> Tile:
    x = _reduction_input(name, x)
    if axis is not None:
        axis = _axis(axis, x.ndim, f"ct.{name}")
    data = _exact_float(x)
    found = getattr(np, name)(data, axis=axis, keepdims=bool(keepdims))
    return Tile(np.asarray(found).astype(np.int32), dt.int32)


# ---------------------------------------------------------------------------------------------
# Matrices

_MMA_ACCUMULATORS: dict[DType, tuple[DType, ...]] = {
    dt.float16: (dt.float32, dt.float16),
    dt.bfloat16: (dt.float32,),
    dt.float32: (dt.float32,),
    dt.tfloat32: (dt.float32,),
    dt.float64: (dt.float64,),
    dt.float8_e4m3fn: (dt.float32, dt.float16),
    dt.float8_e5m2: (dt.float32, dt.float16),
    dt.int8: (dt.int32,),
    dt.uint8: (dt.int32,),
}


_MMA_MIXTURES = ({dt.int8, dt.uint8}, {dt.float8_e4m3fn, dt.float8_e5m2})


def _check_mma_dtypes(x: Tile, y: Tile, acc: Tile) -> None:
    kinds = {x.dtype, y.dtype}
    if len(kinds) > 1 and kinds not in _MMA_MIXTURES:
        raise TileTypeError(f"ct.mma: x is {x.dtype}, y is {y.dtype}; they must be the same")
    allowed = _MMA_ACCUMULATORS.get(x.dtype)
    if allowed is None:
        names = ", ".join(d.name for d in _MMA_ACCUMULATORS)
        raise TileTypeError(f"ct.mma: inputs of {x.dtype} are not supported; expected {names}")
    if acc.dtype not in allowed:
        names = " or ".join(d.name for d in allowed)
        raise TileTypeError(
            f"ct.mma: inputs of {x.dtype} need an accumulator of {names}, found {acc.dtype}"
        )


def _check_mma_shapes(x: Tile, y: Tile, acc: Tile) -> None:
    if x.ndim not in (2, 3) or not x.ndim == y.ndim == acc.ndim:
        raise TileValueError(
            f"ct.mma: needs three tiles of 2 or of 3 dimensions, found {x.shape}, {y.shape} "
            f"and {acc.shape}"
        )
    batch, m, k = x.shape[:-2], x.shape[-2], x.shape[-1]
    if y.shape[:-1] != (*batch, k) or acc.shape != (*batch, m, y.shape[-1]):
        raise TileValueError(
            f"ct.mma: shapes (m, k), (k, n) and (m, n) needed, found {x.shape}, {y.shape} "
            f"and {acc.shape}"
        )


def _product(x: Tile, y: Tile) -> np.ndarray:
    """x @ y in float64, or in int64 for integers."""
    wide = np.float64 if x.dtype.is_float else np.int64
    return x._data.astype(wide) @ y._data.astype(wide)


def _mma(x: Any, y: Any, acc: Any) -> Tile:
    x, y, acc = (_tile(v, "ct.mma") for v in (x, y, acc))
    _check_mma_dtypes(x, y, acc)
    _check_mma_shapes(x, y, acc)
    total = _product(x, y) + acc._data
    if acc.dtype.is_float:
        return Tile(_to_float(total, acc.dtype), acc.dtype)
    return Tile(total.astype(np.int32), acc.dtype)


def _matmul(x: Any, y: Any) -> Tile:
    a, b = (_tile(v, "ct.matmul") for v in (x, y))
    dtype = _common_dtype(a, b)
    if dtype not in _MMA_ACCUMULATORS:
        raise TileTypeError(f"ct.matmul: inputs of {dtype} are not supported")
    if not 1 <= a.ndim <= 3 or not 1 <= b.ndim <= 3:
        raise TileValueError(f"ct.matmul: 1 to 3 dimensions needed, found {a.shape}, {b.shape}")
    if a.shape[-1] != b.shape[0 if b.ndim == 1 else -2]:
        raise TileValueError(f"ct.matmul: the inner lengths of {a.shape} and {b.shape} differ")
    _broadcast(a.shape[:-2], b.shape[:-2], "ct.matmul")
    accumulator = _MMA_ACCUMULATORS[dtype][0]
    total = np.asarray(_product(_convert(a, dtype), _convert(b, dtype)))
    if accumulator.is_float:
        return _convert(Tile(_to_float(total, accumulator), accumulator), dtype)
    return _convert(Tile(total.astype(np.int32), accumulator), dtype)


# ---------------------------------------------------------------------------------------------
# Position, checks, output


class _Block:
    """Where the running block stands in the grid."""

    def __init__(self, index: Shape, grid: Shape) -> None:
        self.index = index
        self.grid = grid


_block: contextvars.ContextVar[_Block | None] = contextvars.ContextVar("block", default=None)


def active() -> bool:
    """Whether tile code is running, so that ct.* operations execute."""
    return _block.get() is not None


def _grid_entry(values: Shape, axis: Any, what: str) -> Tile:
    number = _static_int(axis, f"{what}: axis")
    if not 0 <= number <= 2:
        raise TileValueError(f"{what}: axis is 0, 1 or 2, found {number}")
    return _int32(values[number])


def _current() -> _Block:
    block = _block.get()
    if block is None:
        raise TileError("no kernel is running")
    return block


def _num_tiles(array: Any, axis: Any, shape: Any, order: Any) -> Tile:
    array = _array(array, "ct.num_tiles")
    tile_shape = _tile_shape(shape, "ct.num_tiles: shape")
    if len(tile_shape) != array.ndim:
        raise TileValueError(
            f"ct.num_tiles: the array has {array.ndim} dimensions, the tile {len(tile_shape)}"
        )
    k = _axis(axis, array.ndim, "ct.num_tiles")
    length = array._data.shape[_order(order, array.ndim, "ct.num_tiles")[k]]
    return _int32(-(-length // tile_shape[k]))


def _static_assert(condition: Any, message: Any) -> None:
    if isinstance(condition, Tile):
        raise TileTypeError("ct.static_assert needs a constant; this value is known at run time")
    if not condition:
        raise TileValueError(f"static assertion failed{': ' + message if message else ''}")


def _print(args: tuple[Any, ...], sep: str, end: str) -> None:
    print(*args, sep=sep, end=end)


_CONVERSION = re.compile(r"%(?:%|[-+ #0]*\d*(?:\.\d+)?(?:hh|h|ll|l)?([diuxXofFeEgGs]))")


def _printf(format: Any, args: tuple[Any, ...]) -> None:
    if not isinstance(format, str):
        raise TileTypeError(f"ct.printf needs a constant format string, found {format!r}")
    rest = list(args)

    def convert(match: re.Match[str]) -> str:
        if match[0] == "%%":
            return "%"
        if not rest:
            raise TileValueError(f"ct.printf: too few values for {format!r}")
        value = rest.pop(0)
        spec = re.sub("hh|h|ll|l|", "", match[0])
        if isinstance(value, Tile) and value.ndim:
            return "[" + ", ".join(spec % v.item() for v in _exact_float(value).ravel()) + "]"
        return spec % (value._python() if isinstance(value, Tile) else value)

    text = _CONVERSION.sub(convert, format)
    if rest:
        raise TileValueError(f"ct.printf: too many values for {format!r}")
    sys.stdout.write(text)


# ---------------------------------------------------------------------------------------------
# The table of operations: arguments come in the order of the declaration in tile.py


def _named(run: Callable[..., Any], name: str) -> Callable[..., Any]:
    return lambda *args, **kwargs: run(name, *args, **kwargs)


def _table() -> dict[str, Callable[..., Any]]:
    arithmetic = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "minimum", "maximum")
    comparisons = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
    bits = tuple(n for n in _PYTHON_BINARY if n.startswith("bitwise_"))
    table: dict[str, Callable[..., Any]] = {
        "bid": lambda axis: _grid_entry(_current().index, axis, "ct.bid"),
        "num_blocks": lambda axis: _grid_entry(_current().grid, axis, "ct.num_blocks"),
        "num_tiles": _num_tiles,
        "cdiv": _cdiv,
        "load": _load,
        "store": _store,
        "gather": _gather,
        "scatter": _scatter,
        "full": _full,
        "zeros": lambda shape, dtype: _full(shape, 0, dtype),
        "ones": lambda shape, dtype: _full(shape, 1, dtype),
        "arange": _arange,
        "negative": _negative,
        "abs": _abs,
        "where": _where,
        "bitwise_not": _bitwise_not,
        "astype": _astype,
        "reshape": _reshape,
        "permute": _permute,
        "transpose": _transpose,
        "expand_dims": _expand_dims,
        "broadcast_to": _broadcast_to,
        "mma": _mma,
        "matmul": _matmul,
        "static_assert": _static_assert,
        "print": lambda *args, sep, end: _print(args, sep, end),
        "printf": lambda format, *args: _printf(format, args),
    }
    for names, run in (
        (arithmetic, _binary),
        (comparisons, _compare),
        (bits, _bitwise),
        (_FLOAT_FUNCTIONS, _float_function),
        (("sum", "prod", "max", "min"), _reduce),
        (("argmax", "argmin"), _arg_reduce),
    ):
        table.update({name: _named(run, name) for name in names})  # type: ignore[arg-type, attr-defined]
    return table


OPS = _table()
_add_operators()

# ---------------------------------------------------------------------------------------------
# Built-ins that mean something else in tile code


def _range(*bounds: Any) -> Iterator[Tile]:
    """`range` whose values are run-time integers: int32, or int64 where a bound is."""
    dtype = dt.int32
    for bound in bounds:
        if isinstance(bound, Tile):
            dtype = dt.promote(dtype, bound.dtype) if bound.dtype.is_integral else dtype
        elif dt.constant_dtype(operator.index(bound)) is not dt.int32:
            dtype = dt.int64
    for value in builtins.range(*(operator.index(b) for b in bounds)):
        yield Tile(np.array(value, dtype.numpy), dtype)


def _extremum(builtin: Callable[..., Any], public: Callable[..., Any]) -> Callable[..., Any]:
    def choose(*args: Any, **kwargs: Any) -> Any:
        if len(args) < 2 or kwargs or not any(isinstance(a, Tile) for a in args):
            return builtin(*args, **kwargs)
        result = args[0]
        for other in args[1:]:
            result = public(result, other)
        return result

    return choose


_BUILTINS = {
    **vars(builtins),
    "range": _range,
    "min": _extremum(builtins.min, ct.minimum),
    "max": _extremum(builtins.max, ct.maximum),
}


class _Rebinder:
    """Makes functions that run the same code, so that breakpoints hold, with our built-ins.

    Follows the Python functions which a function names, as globals or in its closure.
    """

    def __init__(self) -> None:
        self._functions: dict[int, types.FunctionType] = {}
        self._globals: dict[int, dict[str, Any]] = {}

    def rebind(self, function: types.FunctionType) -> types.FunctionType:
        if id(function) in self._functions:
            return self._functions[id(function)]
        names = self._module(function)
        cells = tuple(types.CellType() for _ in function.__closure__ or ())
        copy = types.FunctionType(
            function.__code__, names, function.__name__, function.__defaults__, cells or None
        )
        copy.__kwdefaults__ = function.__kwdefaults__
        self._functions[id(function)] = copy
        for cell, new in zip(function.__closure__ or (), cells, strict=True):
            try:
                new.cell_contents = self._value(cell.cell_contents)
            except ValueError:  # the cell is still empty
                continue
        for name in _names(function.__code__):
            if name in function.__globals__:
                names[name] = self._value(function.__globals__[name])
        return copy

    def _module(self, function: types.FunctionType) -> dict[str, Any]:
        key = id(function.__globals__)
        if key not in self._globals:
            self._globals[key] = {**function.__globals__, "__builtins__": _BUILTINS}
        return self._globals[key]

    def _value(self, value: Any) -> Any:
        if hasattr(value, "__tw_op__"):
            return value
        inner = value if isinstance(value, types.FunctionType) else _wrapped(value)
        if inner is None or (inner.__module__ or "").startswith("tilewright."):
            return value
        return self.rebind(inner)


def _wrapped(value: Any) -> types.FunctionType | None:
    """The Python function inside a @ct.function, which runs as itself here."""
    if type(value).__module__ != "tilewright.kernel":
        return None
    inner = getattr(value, "__wrapped__", None)
    return inner if isinstance(inner, types.FunctionType) else None


def _names(code: types.CodeType) -> Iterator[str]:
    """Global names that the code, or code nested in it, refers to."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


# ---------------------------------------------------------------------------------------------
# Running a kernel


def _check_grid(grid: Any) -> tuple[int, int, int]:
    values = tuple(grid) if isinstance(grid, Sequence) else (grid,)
    if not 1 <= len(values) <= 3:
        raise TileValueError(f"a grid has 1 to 3 dimensions, found {grid!r}")
    sizes = [operator.index(v) for v in values] + [1] * (3 - len(values))
    for axis, (size, limit) in enumerate(zip(sizes, _GRID_LIMIT, strict=True)):
        if not 1 <= size <= limit:
            raise TileValueError(f"grid dimension {axis} is {size}; it must be 1 to {limit}")
    return sizes[0], sizes[1], sizes[2]


def _host_array(value: Any, name: str) -> tuple[np.ndarray, Callable[[], None] | None]:
    """A NumPy array that shares the argument's memory, or a copy with the way back."""
    if isinstance(value, np.ndarray):
        return value, None
    module = type(value).__module__.split(".")[0]
    if module == "torch":
        return _torch_array(value)
    if module == "cupy":
        copy = value.get()
        return copy, lambda: value.set(copy)
    try:
        return np.from_dlpack(value), None
    except Exception as error:
        raise TileTypeError(f"argument {name!r}: cannot be read as an array: {error}") from None


def _torch_array(value: Any) -> tuple[np.ndarray, Callable[[], None] | None]:
    host = value.detach().cpu()
    try:
        array = host.numpy()
    except TypeError:  # a format that NumPy lacks: look at its bits instead
        import torch

        bits = {1: torch.uint8, 2: torch.int16}[host.element_size()]
        format_ = getattr(ml_dtypes, str(host.dtype).removeprefix("torch."))
        array = host.view(bits).numpy().view(format_)
    same = host.data_ptr() == value.data_ptr()
    return array, None if same else lambda: value.copy_(host) and None


def _is_array(value: Any) -> bool:
    protocols = ("__dlpack__", "__cuda_array_interface__", "__array_interface__")
    return isinstance(value, np.ndarray) or (
        not isinstance(value, np.generic | bool | int | float)
        and any(hasattr(value, p) for p in protocols)
    )


def _scalar_argument(value: Any, name: str) -> Any:
    if isinstance(value, DType):
        return value
    if isinstance(value, np.generic):
        return Tile(value, dt.as_dtype(value.dtype))
    if _is_number(value):
        return _constant(value, dt.constant_dtype(value))
    raise TileTypeError(
        f"argument {name!r}: {type(value).__name__} cannot be passed to a kernel; "
        "expected an array, a number or a dtype (anything else can be a ct.Constant)"
    )


def _arguments(
    function: types.FunctionType, args: Sequence[Any]
) -> tuple[list[Any], list[Callable[[], None]]]:
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]
    defaults = function.__defaults__ or ()
    if not len(names) - len(defaults) <= len(args) <= len(names):
        raise TileTypeError(
            f"{function.__name__} takes {len(names)} arguments ({', '.join(names)}), "
            f"found {len(args)}"
        )
    missing = len(names) - len(args)
    filled = [*args, *defaults[len(defaults) - missing :]]
    constants = ct.constant_parameters(function)
    values: list[Any] = []
    finish: list[Callable[[], None]] = []
    for name, value in zip(names, filled, strict=True):
        if name in constants:
            values.append(value)
        elif _is_array(value):
            array, back = _host_array(value, name)
            values.append(Array(array, name))
            if back is not None:
                finish.append(back)
        else:
            values.append(_scalar_argument(value, name))
    return values, finish


def run(function: types.FunctionType, grid: Any, args: Sequence[Any]) -> None:
    """Run the body of a kernel once for each block of `grid`, x fastest, on the arguments.

    `args` are what ct.launch takes: arrays (changed in place), numbers, dtypes, constants.
    """
    sizes = _check_grid(grid)
    values, finish = _arguments(function, args)
    body = _Rebinder().rebind(function)
    with np.errstate(all="ignore"):
        for z, y, x in np.ndindex(sizes[2], sizes[1], sizes[0]):
            token = _block.set(_Block((x, y, z), sizes))
            try:
                body(*values)
            finally:
                _block.reset(token)
    for back in finish:
        back()
