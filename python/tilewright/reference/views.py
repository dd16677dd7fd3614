"""Views of arrays in the reference execution. A part of an array is a NumPy view of it."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from .. import dtype as dt
from .. import views
from ..annotations import PaddingMode
from ..dtype import DType
from ..errors import TileTypeError, TileValueError
from ..modes import AtomicAccess
from . import atomics, memory
from .table import op
from .values import Array, Shape, Tile, as_array, as_tile, int32_scalar, promote_to


class Running:
    """The machine of views (views.py) that computes."""

    describe = staticmethod(repr)

    def is_tile(self, value: Any) -> bool:
        return isinstance(value, Tile)

    def fitted(self, value: Any, dtype: DType, shape: Shape, exact: bool, what: str) -> Tile:
        if exact and isinstance(value, Tile) and value.dtype is not dtype:
            raise TileTypeError(f"{what} is {value.dtype}, the array {dtype}; bits are not converted")
        tile = promote_to(value, dtype, what)
        lengths = zip(reversed(tile.shape), reversed(shape), strict=False)
        if tile.ndim > len(shape) or any(n not in (1, wanted) for n, wanted in lengths):
            raise TileTypeError(f"{what} of shape {tile.shape} does not broadcast to {shape}")
        return Tile(np.broadcast_to(tile._data, shape), dtype)

    def count_tiles(self, array: Array, axis: int, step: int) -> Tile:
        return int32_scalar(-(-array._data.shape[axis] // step))

    def slice(self, array: Array, axis: int, start: Any, stop: Any) -> Array:
        first, last = (_bound(v, n) for v, n in ((start, "start"), (stop, "stop")))
        if not 0 <= first <= last <= array._data.shape[axis]:
            raise TileValueError(f"slice: {first} to {last} is not within {array._data.shape[axis]} elements")
        part = array._data[(slice(None),) * axis + (slice(first, last),)]
        found = Array(part, array._name, array._index_dtype)
        constant = isinstance(start, int) and isinstance(stop, int)
        found._constant = array._constant | {axis} if constant else array._constant - {axis}
        return found

    # -- tiles

    def load_window(self, array: Array, index: Any, steps: Shape, shape: Shape, **how: Any) -> Tile:
        return memory.load_tile(array, index, steps, shape, how["padding_mode"], how["check_bounds"])

    def store_window(self, array: Array, index: Any, steps: Shape, tile: Tile, **how: Any) -> None:
        memory.store_tile(array, index, steps, tile, how["check_bounds"])

    def atomic_window(self, access: AtomicAccess, array: Array, index: Any, steps: Shape, tile: Tile) -> None:
        shape = tile.shape or (1,) * array.ndim
        first = memory.first_element(array, index, steps, "index")
        places = tuple(
            Tile(np.arange(n).reshape([-1 if d == k else 1 for d in range(array.ndim)]) + first[k], dt.int64)
            for k, n in enumerate(shape)
        )
        atomics.perform(access, array, places, (Tile(tile._data.reshape(shape), tile.dtype),))

    # -- rows

    def spread(self, start: Any, count: int, axis: int, rank: int, what: str) -> Tile:
        return self.reshaped(Tile(_bound(start, what) + np.arange(count), dt.int64), axis, rank)

    def reshaped(self, tile: Tile, axis: int, rank: int) -> Tile:
        return Tile(tile._data.reshape([-1 if d == axis else 1 for d in range(rank)]), tile.dtype)

    def load_at(self, array: Array, indices: Any, padding_mode: PaddingMode) -> Tile:
        padding = Tile(memory.padding(padding_mode, array.dtype), array.dtype)
        return memory.gather(array, indices, None, padding, True, None)

    def store_at(self, array: Array, indices: Any, tile: Any, what: str) -> None:
        shape = np.broadcast_shapes(*(i.shape for i in indices))
        if isinstance(tile, Tile) and tile.shape and tile.shape != shape:
            raise TileTypeError(f"{what}: the tile has shape {tile.shape}, the indices {shape}")
        memory.scatter(array, indices, tile, None, True, None)

    # -- offsets

    def load_flat(self, array: Array, offset: Any, mask: Any, padding: Any) -> Tile:
        return memory.gather(_flat(array), offset, mask, padding, False, None)

    def store_flat(self, array: Array, offset: Any, value: Any, mask: Any) -> None:
        memory.scatter(_flat(array), offset, value, mask, False, None)

    def atomic_flat(self, access: AtomicAccess, array: Array, offset: Any, values: tuple[Any, ...], mask: Any) -> Tile:
        access.check(array.dtype, f"atomic_{access.kind}_offset")
        return atomics.perform(access, _flat(array), offset, values, mask)

    # -- arrays over an array's memory

    def laid(self, array: Array, extents: tuple[Any, ...], strides: tuple[Any, ...]) -> Array:
        memory = _flat(array, "Array.from_foreign")._data
        shape, steps = (tuple(int(n) for n in values) for values in (extents, strides))
        last = sum((n - 1) * s for n, s in zip(shape, steps, strict=True))
        if min((*shape, *steps), default=0) < 0 or (0 not in shape and last >= len(memory)):
            raise TileValueError(
                f"Array.from_foreign: shape {shape} with strides {steps} reaches element {last}, the memory of "
                f"{array!r} has {len(memory)}; expected an array within it"
            )
        size = memory.itemsize
        data = np.lib.stride_tricks.as_strided(
            memory, shape, [s * size for s in steps], writeable=memory.flags.writeable
        )
        wide = any(isinstance(n, Tile) and n.dtype.bits > 32 for n in extents)
        found = Array(data, array._name, dt.int64 if wide else dt.int32)
        found._constant, found._constant_strides = (
            frozenset(d for d, n in enumerate(values) if isinstance(n, int)) for values in (extents, strides)
        )
        return found


def _bound(value: Any, name: str) -> int:
    tile = as_tile(value, f"slice: {name}")
    if tile.ndim or not tile.dtype.is_integral or not tile.dtype.signed:
        raise TileTypeError(f"slice: {name} must be a signed integer scalar, found {tile.dtype} of shape {tile.shape}")
    return int(tile)


def _flat(array: Array, what: str = "get_raw_memory") -> Array:
    """The memory of an array from its first element on, as far as positive strides reach."""
    data = array._data
    if not array.ndim or data.itemsize not in data.strides:
        raise views.refuse_flat(what, repr(array))
    reach = sum((n - 1) * s for n, s in zip(data.shape, data.strides, strict=True) if s > 0) // data.itemsize
    count = 0 if 0 in data.shape else 1 + reach
    flat = np.lib.stride_tricks.as_strided(data, (count,), (data.itemsize,), writeable=data.flags.writeable)
    found = Array(flat, array._name)
    found._memory_of = data.shape
    return found


@op("load_advanced_indexing")
def load_advanced_indexing(array: Any, indices: Any, padding_mode: Any, latency: Any, allow_tma: Any) -> Tile:
    machine, what = Running(), "ct.load_advanced_indexing"
    array = as_array(array, what)
    return machine.load_at(array, views.indices_of(machine, array, indices, what), padding_mode)


@op("store_advanced_indexing")
def store_advanced_indexing(array: Any, indices: Any, tile: Any, latency: Any, allow_tma: Any) -> None:
    machine, what = Running(), "ct.store_advanced_indexing"
    array = memory.writable(array, what)
    machine.store_at(array, views.indices_of(machine, array, indices, what), tile, what)


def add_methods() -> None:
    """Give arrays the methods that views.py lists."""
    for name, run in views.ARRAY_METHODS.items():
        setattr(Array, name, _method(run))
    pointer = property(lambda self: views.ForeignPointer(Running(), self))
    for name, value in (("foreign_pointer", pointer), ("from_foreign", views.from_foreign)):
        setattr(Array, name, value)


def _method(run: Any) -> Any:
    def method(self: Array, *args: Any, **keywords: Any) -> Any:
        return run(Running(), self, *args, **keywords)

    _, array, *rest = inspect.signature(run).parameters.values()  # the first is the machine
    method.__doc__ = run.__doc__
    method.__signature__ = inspect.Signature([array.replace(name="self"), *rest])  # type: ignore[attr-defined]
    return method
