"""Tiles, arrays and scalars of the reference execution, and conversions between dtypes.

A Python number is a loosely typed constant; everything else has a dtype.
"""

from __future__ import annotations

import dis
import inspect
import math
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import dtype as dt
from .. import tile as ct
from ..dtype import DType
from ..errors import TileTypeError, TileValueError
from ..formats import python_format

if TYPE_CHECKING:
    from ..views import ForeignPointer, RawArrayMemory, TiledView

Number = bool | int | float
Shape = tuple[int, ...]
_INT32_MAX = 2**31 - 1


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

    if TYPE_CHECKING:  # type checkers cannot see them: made of the tables of tile.py

        def __add__(self, other: Any) -> Tile: ...
        def __radd__(self, other: Any) -> Tile: ...
        def __sub__(self, other: Any) -> Tile: ...
        def __rsub__(self, other: Any) -> Tile: ...
        def __mul__(self, other: Any) -> Tile: ...
        def __rmul__(self, other: Any) -> Tile: ...
        def __truediv__(self, other: Any) -> Tile: ...
        def __rtruediv__(self, other: Any) -> Tile: ...
        def __floordiv__(self, other: Any) -> Tile: ...
        def __rfloordiv__(self, other: Any) -> Tile: ...
        def __mod__(self, other: Any) -> Tile: ...
        def __rmod__(self, other: Any) -> Tile: ...
        def __divmod__(self, other: Any) -> tuple[Tile, Tile]: ...
        def __rdivmod__(self, other: Any) -> tuple[Tile, Tile]: ...
        def __pow__(self, other: Any) -> Tile: ...
        def __rpow__(self, other: Any) -> Tile: ...
        def __matmul__(self, other: Any) -> Tile: ...
        def __rmatmul__(self, other: Any) -> Tile: ...
        def __and__(self, other: Any) -> Tile: ...
        def __rand__(self, other: Any) -> Tile: ...
        def __or__(self, other: Any) -> Tile: ...
        def __ror__(self, other: Any) -> Tile: ...
        def __xor__(self, other: Any) -> Tile: ...
        def __rxor__(self, other: Any) -> Tile: ...
        def __lshift__(self, other: Any) -> Tile: ...
        def __rlshift__(self, other: Any) -> Tile: ...
        def __rshift__(self, other: Any) -> Tile: ...
        def __rrshift__(self, other: Any) -> Tile: ...
        def __lt__(self, other: Any) -> Tile: ...
        def __le__(self, other: Any) -> Tile: ...
        def __gt__(self, other: Any) -> Tile: ...
        def __ge__(self, other: Any) -> Tile: ...
        def __eq__(self, other: Any) -> Tile: ...  # type: ignore[override]
        def __ne__(self, other: Any) -> Tile: ...  # type: ignore[override]
        def __neg__(self) -> Tile: ...
        def __invert__(self) -> Tile: ...
        def astype(self, dtype: DType) -> Tile: ...
        def reshape(self, shape: int | Sequence[int]) -> Tile: ...
        def extract(self, index: int | Sequence[int], shape: int | Sequence[int]) -> Tile: ...
        def insert(self, index: int | Sequence[int], value: Any) -> Tile: ...
        def permute(self, axes: Sequence[int]) -> Tile: ...
        def transpose(self, axis0: int | None = None, axis1: int | None = None) -> Tile: ...

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
        return ct.transpose(self)

    def __abs__(self) -> Tile:
        found: Tile = ct.abs(self)
        return found

    def numpy(self) -> np.ndarray:
        """The elements, read-only. For the debugger: compiled code has no such method."""
        return self._data

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """For the debugger: np.asarray(x), and what plots arrays."""
        return np.array(self._data, dtype=dtype, copy=bool(copy) or dtype is not None)

    def item(self) -> Tile:
        """The only element of a tile, as a scalar."""
        if self._data.size != 1:
            raise TileTypeError(f"item() needs a tile with one element, found shape {self.shape}")
        return Tile(self._data.reshape(()), self._dtype)

    def __repr__(self) -> str:
        if _asks_tile_code():
            return str(self)
        return f"Tile({_abridged(self)}, shape={self.shape}, dtype={self._dtype})"

    def __str__(self) -> str:
        from .printing import shortest  # which needs this class

        return shortest(self)

    def __format__(self, spec: str) -> str:
        from .printing import show  # which needs this class

        if not spec:
            return str(self)
        shown = python_format(spec, self._dtype, self.ndim)
        value = ct.mul(convert(self, dt.float64), 100.0) if shown.is_percentage else self
        return shown.before + show(value, shown.conversion) + shown.after

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
        if self.ndim and is_asserted(sys._getframe(1)):  # `assert x < 20` is about each element
            return bool(np.all(exact_elements(self) != 0))
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
        from .shapes import getitem  # which needs this class

        return getitem(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TileTypeError("tiles are immutable: use ct.where, or store to an array")

    def __iter__(self) -> Iterator[Any]:
        raise TileTypeError("a tile cannot be iterated or unpacked")

    def __pos__(self) -> Tile:
        if self._dtype.is_bool:
            return convert(self, dt.int32)
        dt.require_arithmetic(self._dtype, "+x")
        return self


def add_operators() -> None:
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
    Tile.__divmod__, Tile.__rdivmod__ = binary(ct.divmod), reflected(ct.divmod)  # type: ignore[assignment]
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
    method.__signature__ = inspect.signature(public)  # type: ignore[attr-defined]
    return method


def _shape_arguments(public: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, ...]:
    """x.reshape(4, 8) means x.reshape((4, 8)), as in NumPy."""
    if public in (ct.reshape, ct.permute) and len(args) > 1:
        return (args,)
    return args


class Array:
    """An array in global memory, over the caller's NumPy array; strides count elements."""

    __slots__ = ("_constant", "_constant_strides", "_data", "_dtype", "_index_dtype", "_memory_of", "_name")

    def __init__(self, data: np.ndarray, name: str = "array", index_dtype: DType = dt.int32) -> None:
        dtype = dt._from_numpy(data.dtype)
        if dtype is None:
            raise TileTypeError(f"argument {name!r}: arrays of {data.dtype} are not supported")
        if any(s % data.itemsize for s in data.strides):
            raise TileTypeError(
                f"argument {name!r}: strides {data.strides} (bytes) are no multiples of the "
                f"element size {data.itemsize}"
            )
        for axis, extent in enumerate(data.shape):
            if extent > _INT32_MAX:
                raise TileValueError(
                    f"argument {name!r}: its extent in dimension {axis} is {extent}, the most is {_INT32_MAX}; pass "
                    "slices of it, or reshape it"
                )
        self._data = data
        self._dtype = dtype
        self._name = name
        self._index_dtype = index_dtype
        # Axes of constant extents, by a slice or an annotation, and of constant strides.
        self._constant: frozenset[int] = frozenset()
        self._constant_strides: frozenset[int] = frozenset()
        self._memory_of: Shape | None = None  # of the array whose raw memory it is

    if TYPE_CHECKING:  # what views.py adds

        def slice(self, axis: int, start: Any, stop: Any) -> Array: ...
        def tiled_view(
            self, tile_shape: Any, *, padding_mode: ct.PaddingMode = ..., traversal_steps: Any = None
        ) -> TiledView: ...
        def get_raw_memory(self) -> RawArrayMemory: ...
        @property
        def foreign_pointer(self) -> ForeignPointer: ...
        @staticmethod
        def from_foreign(pointer: Any, shape: tuple[Any, ...], strides: tuple[Any, ...]) -> Array: ...

    @property
    def dtype(self) -> DType:
        return self._dtype

    @property
    def shape(self) -> tuple[Tile | int, ...]:
        """int32 scalars, or int64 where an annotation says so: known only when the kernel runs."""
        return tuple(
            n if axis in self._constant else convert(int32_scalar(n), self._index_dtype)
            for axis, n in enumerate(self._data.shape)
        )

    @property
    def strides(self) -> tuple[Tile | int, ...]:
        """Distance of neighbours along each axis, in elements."""
        return tuple(
            s // self._data.itemsize if axis in self._constant_strides else Tile(s // self._data.itemsize, dt.int64)
            for axis, s in enumerate(self._data.strides)
        )

    @property
    def ndim(self) -> int:
        return self._data.ndim

    def __repr__(self) -> str:
        return f"Array({self._name}, shape={self._data.shape}, dtype={self._dtype})"


def is_asserted(frame: types.FrameType) -> bool:
    """Whether the truth that a frame asks for decides an `assert`: it next jumps over an AssertionError."""
    following = (i for i in dis.get_instructions(frame.f_code) if i.offset > frame.f_lasti)
    for instruction in following:
        if "ASSERTION" in instruction.opname or instruction.argval is AssertionError:
            return True
        if instruction.opname not in ("TO_BOOL", "NOT_TAKEN", "CACHE") and not instruction.opname.startswith(
            "POP_JUMP"
        ):
            return False
    return False


def int32_scalar(value: int) -> Tile:
    return Tile(np.int32(value), dt.int32)


TILE_CODE = "__tilewright_tile_code__"  # a built-in of what runs as tile code
_TEXT_METHODS = {"__repr__", "__str__", "__format__", "wrapper"}  # the last is what @dataclass puts around its own


def _asks_tile_code() -> bool:
    """Whether the repr of a tile is for what a kernel prints, perhaps in a tuple: a debugger is told its shape, too."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_name in _TEXT_METHODS:
        frame = frame.f_back
    return TILE_CODE in frame.f_builtins or frame.f_globals.get("__name__") == "tilewright.interpret"


def _abridged(tile: Tile) -> str:
    """For the debugger: what is long is shortened."""
    data = tile._data
    if tile.dtype.numpy.kind not in "biuf":
        data = data.astype(np.float32)
    return str(data[()]) if tile.ndim == 0 else np.array2string(data, separator=", ")


def is_number(value: Any) -> bool:
    return isinstance(value, bool | int | float) and not isinstance(value, np.generic)


def as_operand(value: Any, what: str) -> Tile | Number:
    """A tile or a loosely typed constant; NumPy's scalars are typed."""
    if isinstance(value, np.generic):
        return Tile(value, dt.as_dtype(value.dtype))
    if isinstance(value, Tile) or is_number(value):
        return value
    found = f"the array {value._name!r}; load it first" if isinstance(value, Array) else repr(value)
    raise TileTypeError(f"{what} needs tiles or numbers, found {found}")


def as_tile(value: Any, what: str) -> Tile:
    value = as_operand(value, what)
    return value if isinstance(value, Tile) else constant(value, dt.constant_dtype(value))


def as_array(value: Any, what: str) -> Array:
    if not isinstance(value, Array):
        raise TileTypeError(f"{what} needs an array (an argument of the kernel), found {value!r}")
    return value


# ---------------------------------------------------------------------------------------------
# Conversions


def constant(value: Number, dtype: DType) -> Tile:
    """A loosely typed constant as a scalar of `dtype`; TileValueError if it does not fit."""
    if dtype.is_integral:
        if (isinstance(value, float) and not math.isfinite(value)) or not dtype.min <= int(value) <= dtype.max:
            raise TileValueError(f"constant {dt.number_text(value)} is outside {dtype} ({dtype.min} to {dtype.max})")
        return Tile(np.array(int(value), dtype.numpy), dtype)
    if dtype.is_bool:
        return Tile(np.array(bool(value)), dtype)
    try:
        wide = np.array(float(value))
    except OverflowError:
        wide = np.array(math.inf if value > 0 else -math.inf)
    return Tile(round_to(wide, dtype), dtype)


def round_to(data: np.ndarray, dtype: DType) -> np.ndarray:
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


def exact(data: np.ndarray) -> np.ndarray:
    """Elements of any float format, bit for bit as float32 or float64."""
    return data if data.dtype in (np.float32, np.float64) else data.astype(np.float32)


def convert(tile: Tile, dtype: DType) -> Tile:
    """`astype`."""
    data = tile._data
    if tile.dtype is dtype:
        return tile
    if tile.dtype.is_float:
        data = exact(data)
        if dtype.is_float:
            return Tile(round_to(data, dtype), dtype)
        if dtype.is_integral:
            return Tile(np.trunc(data).astype(dtype.numpy), dtype)
        return Tile(data != 0, dtype)
    if dtype in (dt.float16, dt.float32, dt.float64) or not dtype.is_float:
        return Tile(data.astype(dtype.numpy), dtype)
    return Tile(round_to(_integers_as_float64(data), dtype), dtype)


def _integers_as_float64(data: np.ndarray) -> np.ndarray:
    """Integers as float64. Past 2**53 what is lost goes to the last bit (as _round_to_odd)."""
    near = data.astype(np.float64)
    if data.dtype.itemsize < 8:
        return near
    low = data & data.dtype.type(0x7FF)  # at most 53 of 64 bits remain above it
    odd = np.where(low != 0, (data - low) | data.dtype.type(0x800), data)
    return np.where(np.abs(near) < 2.0**53, near, odd.astype(np.float64))


def cast(value: Tile | Number, dtype: DType) -> Tile:
    return convert(value, dtype) if isinstance(value, Tile) else constant(value, dtype)


def promote_to(value: Any, dtype: DType, what: str) -> Tile:
    """`value` as `dtype` if it promotes to it, as in a store."""
    value = as_operand(value, what)
    if isinstance(value, Tile):
        common = dt.PROMOTION[value.dtype, dtype]
        found = value.dtype
    else:
        common = dt.promote_constant(value, dtype)
        found = dt.constant_dtype(value)
    if common is not dtype:
        raise TileTypeError(
            f"{what}: {found} does not convert to {dtype} by itself; write the conversion, as in x.astype(ct.{dtype})"
        )
    return cast(value, dtype)


def common_dtype(x: Tile | Number, y: Tile | Number) -> DType:
    if isinstance(x, Tile):
        if isinstance(y, Tile):
            return dt.promote(x.dtype, y.dtype)
        return dt.promote_constant(y, x.dtype)
    if isinstance(y, Tile):
        return dt.promote_constant(x, y.dtype)
    return dt.promote(dt.constant_dtype(x), dt.constant_dtype(y))


def exact_elements(tile: Tile) -> np.ndarray:
    return exact(tile._data) if tile.dtype.is_float else tile._data
