"""Views of arrays: tiles at steps, elements by their distance from the first one, rows by a tile of indices.

What both executions share: the names, what is checked, and which accesses a view becomes. Those accesses are the
`Machine` of an execution (capture/views.py, reference/views.py).
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any, Protocol

from . import dtype as dt
from .annotations import MemoryOrder, MemoryScope, PaddingMode
from .dtype import DType
from .errors import TileTypeError, TileUnsupportedFeatureError, TileValueError
from .modes import AtomicAccess
from .shape_rules import dimensions

Shape = tuple[int, ...]


class Machine(Protocol):
    """What an execution does for views; arrays and tiles are its own."""

    def describe(self, value: Any) -> str: ...
    def is_tile(self, value: Any) -> bool: ...
    def fitted(self, value: Any, dtype: DType, shape: Shape, exact: bool, what: str) -> Any: ...
    def count_tiles(self, array: Any, axis: int, step: int) -> Any: ...
    def slice(self, array: Any, axis: int, start: Any, stop: Any) -> Any: ...
    def load_window(self, array: Any, index: Any, steps: Shape, shape: Shape, **how: Any) -> Any: ...
    def store_window(self, array: Any, index: Any, steps: Shape, tile: Any, **how: Any) -> None: ...
    def atomic_window(self, access: AtomicAccess, array: Any, index: Any, steps: Shape, tile: Any) -> None: ...
    def load_at(self, array: Any, indices: Any, padding_mode: PaddingMode) -> Any: ...
    def store_at(self, array: Any, indices: Any, tile: Any, what: str) -> None: ...
    def spread(self, start: Any, count: int, axis: int, rank: int, what: str) -> Any: ...
    def reshaped(self, tile: Any, axis: int, rank: int) -> Any: ...
    def load_flat(self, array: Any, offset: Any, mask: Any, padding: Any) -> Any: ...
    def store_flat(self, array: Any, offset: Any, value: Any, mask: Any) -> None: ...
    def atomic_flat(self, access: AtomicAccess, array: Any, offset: Any, values: tuple[Any, ...], mask: Any) -> Any: ...
    def laid(self, array: Any, extents: tuple[Any, ...], strides: tuple[Any, ...]) -> Any: ...


# ---------------------------------------------------------------------------------------------
# What is checked


def _constants(value: Any, what: str) -> Shape:
    values = tuple(value) if isinstance(value, tuple | list) else (value,)
    for n in values:
        if type(n) is not int:
            raise TileTypeError(f"{what} is made of constant integers, found {n!r}")
    return values


def check_tile_shape(value: Any, ndim: int, what: str) -> Shape:
    shape = _constants(value, what)
    if shape and len(shape) != ndim:
        raise TileTypeError(f"{what}: expected a length of {ndim}, as many as the array has dimensions, found {shape}")
    for n in shape:
        if n < 1 or n & (n - 1):
            raise TileTypeError(f"{what}: {n} of {shape} is no power of two; expected 1, 2, 4, 8, …")
    return shape


def check_steps(value: Any, shape: Shape, ndim: int) -> Shape:
    what = "tiled_view: traversal_steps"
    if value is None:
        return shape or (1,) * ndim
    steps = _constants(value, what)
    if len(steps) != ndim:
        raise TileTypeError(f"{what}: expected a length of {ndim}, found {steps}")
    for n in steps:
        if n < 1:
            raise TileTypeError(f"{what}: {n} of {steps} is not positive")
    return steps


def check_axis(axis: Any, ndim: int, what: str) -> int:
    if type(axis) is not int:
        raise TileTypeError(f"{what}: axis must be a constant integer, found {axis!r}")
    if not -ndim <= axis < ndim:
        raise TileTypeError(f"{what}: axis {axis} is outside of an array of {dimensions(ndim)}")
    return axis % ndim


def _flag(value: Any, what: str) -> bool:
    if not isinstance(value, bool | int):
        raise TileTypeError(f"{what} must be a constant, True or False")
    return bool(value)


def check_bounds_of_slice(start: Any, stop: Any) -> None:
    """Of those that are constants."""
    for name, value in (("start", start), ("stop", stop)):
        if isinstance(value, bool | float):
            raise TileTypeError(f"slice: {name} must be an integer scalar, found {value!r}")
        if isinstance(value, int) and value < 0:
            raise TileTypeError(f"slice: {name} is {value}; expected 0 or more")
    if isinstance(start, int) and isinstance(stop, int) and stop < start:
        raise TileTypeError(f"slice: stop {stop} is less than start {start}")


# ---------------------------------------------------------------------------------------------
# Tiles at steps


class _Seen:
    """What tile code can have a name for."""

    def __tw_attribute__(self, frame: Any, name: str) -> Any:
        return method_of(self, name)


def _atomic_store(kind: str, text: str) -> Callable[[TiledView, Any, Any], None]:
    def method(self: TiledView, index: Any, update: Any, /) -> None:
        access, what = AtomicAccess(kind), f"TiledView.{method.__name__}"
        access.check(self.dtype, what)
        tile = self._fitted(update, kind in ("and", "or", "xor"), f"{what}: the update")
        self._machine.atomic_window(access, self._array, index, self._steps, tile)

    method.__name__ = f"atomic_store_{kind}"
    method.__qualname__ = f"TiledView.{method.__name__}"
    method.__doc__ = f"{text}, each element at once, relaxed, for the device."
    return method


class Counts(tuple[Any, ...]):
    """The tiles of a view along each axis, as a tuple and as a function of the axis."""

    __name__ = "num_tiles"  # in messages

    def __call__(self, axis: int) -> Any:
        return self[check_axis(axis, len(self), "TiledView.num_tiles")]

    def __tw_call__(self, frame: Any, axis: int) -> Any:
        return self(axis)


class TiledView(_Seen):
    """An array as a grid of tiles of one shape: `x.tiled_view(shape)`.

    Tiles begin `traversal_steps` elements apart: side by side by default, with less they overlap, with more there are
    gaps between them.
    """

    def __init__(
        self, machine: Machine, array: Any, tile_shape: Any, padding_mode: PaddingMode, traversal_steps: Any
    ) -> None:
        if not isinstance(padding_mode, PaddingMode):
            raise TileTypeError(f"tiled_view: padding_mode must be a ct.PaddingMode, found {padding_mode!r}")
        self._machine, self._array, self._padding_mode = machine, array, padding_mode
        self._shape = check_tile_shape(tile_shape, array.ndim, "tiled_view: tile_shape")
        self._steps = check_steps(traversal_steps, self._shape, array.ndim)

    @property
    def dtype(self) -> DType:
        """The dtype of the array."""
        return self._array.dtype

    def parts(self) -> tuple[Any, Any]:
        """The array, and all else that tells the view from others."""
        return self._array, (TiledView, self._shape, self._steps, self._padding_mode)

    @property
    def tile_shape(self) -> Shape:
        """The shape of each tile."""
        return self._shape

    @property
    def traversal_steps(self) -> Shape:
        """Elements from the beginning of a tile to that of the next one, along each axis."""
        return self._steps

    @property
    def num_tiles(self) -> Counts:
        """How many tiles begin within the array: `view.num_tiles(axis)`, an int32 scalar; itself a tuple of them."""
        count, array = self._machine.count_tiles, self._array
        return Counts(count(array, axis, step) for axis, step in enumerate(self._steps))

    def load(
        self, index: Any, *, check_bounds: bool = True, latency: int | None = None, allow_tma: bool | None = None
    ) -> Any:
        """The tile at `index`; elements outside of the array are what the view's padding mode says."""
        how = {
            "padding_mode": self._padding_mode,
            "check_bounds": _flag(check_bounds, "TiledView.load: check_bounds"),
            "latency": latency,
            "allow_tma": allow_tma,
        }
        return self._machine.load_window(self._array, index, self._steps, self._shape, **how)

    def store(
        self,
        index: Any,
        tile: Any,
        *,
        check_bounds: bool = True,
        latency: int | None = None,
        allow_tma: bool | None = None,
    ) -> None:
        """Write `tile`, broadcast to the view's tile shape, at `index`; what is outside of the array is dropped."""
        tile = self._fitted(tile, False, "TiledView.store: the tile")
        how = {
            "check_bounds": _flag(check_bounds, "TiledView.store: check_bounds"),
            "latency": latency,
            "allow_tma": allow_tma,
        }
        self._machine.store_window(self._array, index, self._steps, tile, **how)

    def _fitted(self, tile: Any, exact: bool, what: str) -> Any:
        return self._machine.fitted(tile, self.dtype, self._shape, exact, what)

    atomic_store_add = _atomic_store("add", "Add `update` to the tile at `index`")
    atomic_store_max = _atomic_store("max", "Write the larger of element and `update` to the tile at `index`")
    atomic_store_min = _atomic_store("min", "Write the smaller of element and `update` to the tile at `index`")
    atomic_store_and = _atomic_store("and", "Write element & `update` to the tile at `index`")
    atomic_store_or = _atomic_store("or", "Write element | `update` to the tile at `index`")
    atomic_store_xor = _atomic_store("xor", "Write element ^ `update` to the tile at `index`")


# ---------------------------------------------------------------------------------------------
# Elements by their distance from the first one


def _atomic_offset(kind: str) -> Callable[..., Any]:
    def method(
        self: RawArrayMemory,
        offset: Any,
        update: Any,
        /,
        *,
        mask: Any = None,
        memory_order: MemoryOrder = MemoryOrder.ACQ_REL,
        memory_scope: MemoryScope = MemoryScope.DEVICE,
    ) -> Any:
        access = AtomicAccess(kind, False, memory_order, memory_scope)
        return self._machine.atomic_flat(access, self._array, offset, (update,), mask)

    method.__name__ = f"atomic_{kind}_offset"
    method.__qualname__ = f"RawArrayMemory.{method.__name__}"
    method.__doc__ = f"As `ct.atomic_{kind}`; where `mask` is False nothing is done, and the result is `update`."
    return method


class RawArrayMemory(_Seen):
    """The memory of an array by offsets, in elements from its first one: `x.get_raw_memory()`. Nothing is checked."""

    def __init__(self, machine: Machine, array: Any) -> None:
        self._machine, self._array = machine, array

    def parts(self) -> tuple[Any, Any]:
        """The array, and all else that tells the view from others."""
        return self._array, RawArrayMemory

    @property
    def dtype(self) -> DType:
        """The dtype of the array."""
        return self._array.dtype

    def load_offset(
        self, offset: Any, /, *, mask: Any = None, padding_value: Any = 0, latency: int | None = None
    ) -> Any:
        """The elements at the offsets, an integer scalar or tile; `padding_value` where `mask` is False."""
        return self._machine.load_flat(self._array, offset, mask, padding_value)

    def store_offset(self, offset: Any, value: Any, /, *, mask: Any = None, latency: int | None = None) -> None:
        """Write `value` to the elements at the offsets where `mask` is not False."""
        self._machine.store_flat(self._array, offset, value, mask)

    def atomic_cas_offset(
        self,
        offset: Any,
        expected: Any,
        desired: Any,
        /,
        *,
        mask: Any = None,
        memory_order: MemoryOrder = MemoryOrder.ACQ_REL,
        memory_scope: MemoryScope = MemoryScope.DEVICE,
    ) -> Any:
        """As `ct.atomic_cas`; where `mask` is False nothing is done, and the result is `expected`."""
        access = AtomicAccess("cas", False, memory_order, memory_scope)
        return self._machine.atomic_flat(access, self._array, offset, (expected, desired), mask)

    atomic_xchg_offset = _atomic_offset("xchg")
    atomic_add_offset = _atomic_offset("add")
    atomic_max_offset = _atomic_offset("max")
    atomic_min_offset = _atomic_offset("min")
    atomic_and_offset = _atomic_offset("and")
    atomic_or_offset = _atomic_offset("or")
    atomic_xor_offset = _atomic_offset("xor")


# ---------------------------------------------------------------------------------------------
# Arrays of other shapes over an array's memory


class ForeignPointer(_Seen):
    """Where an array begins: `x.foreign_pointer`. `ct.Array.from_foreign` makes an array of it, of any shape."""

    def __init__(self, machine: Machine, array: Any) -> None:
        self._machine, self._array = machine, array

    def parts(self) -> tuple[Any, Any]:
        """The array, and all else that tells the pointer from others."""
        return self._array, ForeignPointer

    @property
    def dtype(self) -> DType:
        """Of the array's elements, `ct.foreign_pointer_dtype(x.dtype)`."""
        return dt.foreign_pointer_dtype(self._array.dtype)

    @property
    def shape(self) -> Shape:
        """It is a scalar."""
        return ()


def _from_foreign(pointer: Any, shape: Any, strides: Any) -> Any:
    what = "Array.from_foreign"
    if not isinstance(pointer, ForeignPointer):
        raise TileTypeError(f"{what}: pointer is x.foreign_pointer of an array x, found {type(pointer).__name__}")
    machine = pointer._machine
    extents, steps = (_lengths(machine, v, f"{what}: {n}") for v, n in ((shape, "shape"), (strides, "strides")))
    if len(extents) != len(steps):
        raise TileTypeError(
            f"{what}: shape has {len(extents)} entries and strides {len(steps)}; give one for each axis"
        )
    return machine.laid(pointer._array, extents, steps)


def _lengths(machine: Machine, values: Any, what: str) -> tuple[Any, ...]:
    """Constants, and scalars of signed integers; none is negative."""
    if not isinstance(values, tuple):
        raise TileTypeError(f"{what} is a tuple of integers, found {machine.describe(values)}")
    for i, n in enumerate(values):
        scalar = machine.is_tile(n) and not n.shape and n.dtype.is_integral and n.dtype.signed
        if not scalar and type(n) is not int:
            raise TileTypeError(f"{what}[{i}] must be a signed integer scalar, found {machine.describe(n)}")
        if type(n) is int and n < 0:
            raise TileTypeError(f"{what}[{i}] is {n}; expected 0 or more")
    return values


# ---------------------------------------------------------------------------------------------
# Rows by a tile of indices


@dataclasses.dataclass(init=False, eq=False)
class Slice:
    """Elements `start` to `start + length` along an axis, in `load_advanced_indexing`; the length is a constant."""

    start: Any
    length: int

    def __init__(self, start: Any, length: int, /) -> None:
        self.start, self.length = start, length


def indices_of(machine: Machine, array: Any, entries: Any, what: str) -> tuple[Any, ...]:
    """One index tile for each axis, which broadcast to the shape of the result."""
    if not isinstance(entries, tuple) or len(entries) != array.ndim:
        raise TileTypeError(f"{what}: indices must be a tuple with an entry for each of {dimensions(array.ndim)}")
    tiles = [k for k, entry in enumerate(entries) if not isinstance(entry, Slice)]
    if len(tiles) != 1 or not machine.is_tile(entries[tiles[0]]):
        raise TileTypeError(f"{what}: exactly one entry is a tile of indices, the others are ct.Slice(start, length)")
    found = []
    for k, entry in enumerate(entries):
        if not isinstance(entry, Slice):
            if entry.ndim != 1 or not entry.dtype.is_integral:
                raise TileTypeError(f"{what}: the indices are an integer tile of one dimension, found {entry.shape}")
            found.append(machine.reshaped(entry, k, array.ndim))
            continue
        check_tile_shape(entry.length, 1, f"{what}: the length of a slice")
        found.append(machine.spread(entry.start, entry.length, k, array.ndim, f"{what}: the start of a slice"))
    return tuple(found)


# ---------------------------------------------------------------------------------------------
# Methods of arrays, and how tile code calls methods of ours


def slice_array(machine: Machine, array: Any, axis: int, start: Any, stop: Any) -> Any:
    axis = check_axis(axis, array.ndim, "slice")
    check_bounds_of_slice(start, stop)
    return machine.slice(array, axis, start, stop)


def tiled_view(
    machine: Machine,
    array: Any,
    tile_shape: Any,
    *,
    padding_mode: PaddingMode = PaddingMode.UNDETERMINED,
    traversal_steps: Any = None,
) -> TiledView:
    return TiledView(machine, array, tile_shape, padding_mode, traversal_steps)


def get_raw_memory(machine: Machine, array: Any) -> RawArrayMemory:
    return RawArrayMemory(machine, array)


ARRAY_METHODS: dict[str, Callable[..., Any]] = {
    "slice": slice_array,
    "tiled_view": tiled_view,
    "get_raw_memory": get_raw_memory,
}


class Bound:
    """A method as tile code calls it: its arguments are bound by its signature."""

    def __init__(self, name: str, method: Callable[..., Any]) -> None:
        self.__name__, self._method, self.__doc__ = name, method, method.__doc__
        self.__signature__ = inspect.signature(method)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self._method(*args, **keywords)

    def __tw_call__(self, frame: Any, *args: Any, **keywords: Any) -> Any:
        return self._method(*args, **keywords)


from_foreign = Bound("from_foreign", _from_foreign)
foreign_pointer_dtype = Bound("foreign_pointer_dtype", dt.foreign_pointer_dtype)


def method_of(view: Any, name: str) -> Any:
    """An attribute of a view in tile code."""
    found = getattr(view, name, None) if not name.startswith("_") else None
    if found is None:
        known = ", ".join(n for n in dir(type(view)) if not n.startswith("_"))
        raise TileTypeError(f"a {type(view).__name__} has no attribute '{name}'; it has {known}")
    return Bound(name, found) if inspect.ismethod(found) else found


def array_method(machine: Machine, array: Any, name: str) -> Bound:
    return Bound(name, functools.partial(ARRAY_METHODS[name], machine, array))


def refuse_flat(what: str, array: str) -> TileUnsupportedFeatureError:
    return TileUnsupportedFeatureError(
        f"{what}: {array} is not contiguous along any axis; pass one that is, or use ct.gather and ct.scatter"
    )


def refuse_index(found: int, ndim: int) -> TileValueError:
    return TileValueError(f"the view has {ndim} dimensions, the index {found} entries; give one for each")
