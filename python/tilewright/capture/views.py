"""Views of arrays while a kernel is captured: what accesses of theirs become in the IR."""

from __future__ import annotations

import dataclasses
from typing import Any

from .. import views
from ..annotations import MemoryOrder, MemoryScope, PaddingMode
from ..dtype import DType, bool_, int32, int64, uint32
from ..errors import TileTypeError
from ..modes import AtomicAccess
from . import atomics, memory
from .checks import array_of, fit
from .frame import Frame
from .table import op
from .values import Array, Laid, Shape, Tile, describe


class Emitting:
    """The machine of views (views.py) that emits."""

    def __init__(self, frame: Frame) -> None:
        self.frame, self.emit = frame, frame.emit

    describe = staticmethod(describe)

    def is_tile(self, value: Any) -> bool:
        return isinstance(value, Tile)

    def fitted(self, value: Any, dtype: DType, shape: Shape, exact: bool, what: str) -> Tile:
        if exact and isinstance(value, Tile) and value.dtype is not dtype:
            raise TileTypeError(f"{what} is {value.dtype}, the array {dtype}; bits are not converted")
        tile = self.emit.implicit(value, dtype, what)
        lengths = zip(reversed(tile.shape), reversed(shape), strict=False)
        if len(tile.shape) > len(shape) or any(n not in (1, wanted) for n, wanted in lengths):
            raise TileTypeError(f"{what} of shape {tile.shape} does not broadcast to {shape}")
        return fit(self.frame, tile, shape, what)

    def count_tiles(self, array: Array, axis: int, step: int) -> Any:
        return self.emit.binary("cdiv", memory.extent(self.frame, array, axis), step)

    def slice(self, array: Array, axis: int, start: Any, stop: Any) -> Array:
        first, last = (self._place(v, n) for v, n in ((start, "start"), (stop, "stop")))
        old = array.windows.get(axis)
        length: Any = self.emit.binary("sub", last, first)
        if isinstance(start, int) and isinstance(stop, int):
            length = stop - start
        if old is not None:
            first = self.emit.binary("add", first, old[0])
        return dataclasses.replace(array, windows={**array.windows, axis: (first, length)})

    def _place(self, value: Any, name: str) -> Tile:
        if isinstance(value, Tile) and (value.shape or not value.dtype.is_integral or not value.dtype.signed):
            raise TileTypeError(f"slice: {name} must be a signed integer scalar, found {describe(value)}")
        return self.emit.cast(self.emit.index(value, f"slice: {name}"), int64)

    # -- tiles

    def _index(self, array: Array, index: Any) -> list[Tile]:
        values = index if isinstance(index, tuple) else (index,)
        if len(values) != array.ndim:
            raise views.refuse_index(len(values), array.ndim)
        return [self.emit.index(v, f"index[{i}]") for i, v in enumerate(values)]

    def _places(self, array: Array, index: Any, steps: Shape, shape: Shape) -> list[Tile]:
        return memory.window(self.frame, self._index(array, index), steps, shape, tuple(range(array.ndim)))

    def load_window(self, array: Array, index: Any, steps: Shape, shape: Shape, **how: Any) -> Any:
        weak = {"order": "C", "memory_order": MemoryOrder.WEAK, "memory_scope": MemoryScope.NONE}
        if steps == (shape or (1,) * array.ndim):
            return memory.load(self.frame, array, index, shape, **how, **weak)
        places = self._places(array, index, steps, shape or (1,) * array.ndim)
        found = memory.gather_window(self.frame, array, places, how["padding_mode"], how["check_bounds"])
        return found if shape else self.emit.reshape(found, ())

    def store_window(self, array: Array, index: Any, steps: Shape, tile: Tile, **how: Any) -> None:
        weak = {"order": "C", "memory_order": MemoryOrder.WEAK, "memory_scope": MemoryScope.NONE}
        shape = tile.shape or (1,) * array.ndim
        if steps == shape:
            memory.store(self.frame, array, index, tile, **how, **weak)
            return
        places = self._places(array, index, steps, shape)
        memory.scatter_window(self.frame, array, places, self.emit.reshape(tile, shape), how["check_bounds"])

    def atomic_window(self, access: AtomicAccess, array: Array, index: Any, steps: Shape, tile: Tile) -> None:
        array = memory.output(self.frame, array, f"TiledView.atomic_store_{access.kind}")
        shape = tile.shape or (1,) * array.ndim
        at = memory.in_root(self.frame, array, self._places(array, index, steps, shape), [], True)
        memory.atomic(self.frame, access, array, at, [self.emit.reshape(tile, shape)])

    # -- rows

    def spread(self, start: Any, count: int, axis: int, rank: int, what: str) -> Tile:
        first = self.emit.cast(self.emit.index(start, what), int64)
        steps = self.emit.cast(self.emit.typed("tile.iota", [], None, int32, (count,)), int64)
        return self.reshaped(self.emit.binary("add", first, steps), axis, rank)

    def reshaped(self, tile: Tile, axis: int, rank: int) -> Tile:
        return self.emit.reshape(tile, tuple(tile.shape[0] if d == axis else 1 for d in range(rank)))

    def load_at(self, array: Array, indices: Any, padding_mode: PaddingMode) -> Tile:
        tiles, _ = memory.element_indices(self.frame, array, indices, "ct.load_advanced_indexing")
        return memory.gather_window(self.frame, array, tiles, padding_mode, True)

    def store_at(self, array: Array, indices: Any, tile: Any, what: str) -> None:
        tiles, shape = memory.element_indices(self.frame, array, indices, what)
        value = self.emit.implicit(tile, array.dtype, what)
        if value.shape and value.shape != shape:
            raise TileTypeError(f"{what}: the tile has shape {value.shape}, the indices {shape}")
        memory.scatter_window(self.frame, array, tiles, self.emit.broadcast(value, shape), True)

    # -- offsets

    def _offset(self, array: Array, offset: Any) -> Tile:
        tile = self.emit.tile(offset, "offset")
        if not tile.dtype.is_integral:
            raise TileTypeError(f"offset: an integer is needed, found {tile.dtype}")
        if array.unit is None:
            raise views.refuse_flat("get_raw_memory", describe(array))
        narrow = tile.dtype.bits < 32 or tile.dtype in (int32, uint32)
        return self.emit.cast(tile, int64) if narrow else tile

    def _flat(self, array: Array, offset: Tile, mask: Any, what: str) -> memory.Reached:
        return memory.at_offset(self.frame, array, offset, memory.mask_of(self.frame, mask, offset.shape, what))

    def load_flat(self, array: Array, offset: Any, mask: Any, padding: Any) -> Tile:
        place = self._offset(array, offset)
        if array.dtype is bool_ and isinstance(padding, int):
            padding = bool(padding)
        value = fit(self.frame, self.emit.implicit(padding, array.dtype, "padding_value"), place.shape, "padding_value")
        return memory.gather_elements(self.frame, array, self._flat(array, place, mask, "load_offset"), value, {})

    def store_flat(self, array: Array, offset: Any, value: Any, mask: Any) -> None:
        array = memory.output(self.frame, array, "store_offset")
        place = self._offset(array, offset)
        new = self.fitted(value, array.dtype, place.shape, False, "store_offset: value")
        memory.scatter_elements(self.frame, array, self._flat(array, place, mask, "store_offset"), new, {})

    def atomic_flat(self, access: AtomicAccess, array: Array, offset: Any, values: tuple[Any, ...], mask: Any) -> Tile:
        what = f"atomic_{access.kind}_offset"
        access.check(array.dtype, what)
        array = memory.output(self.frame, array, what)
        place = self._offset(array, offset)
        tiled = atomics.written(self.frame, access, values, array, place.shape, what)
        return memory.atomic(self.frame, access, array, self._flat(array, place, mask, what), tiled)

    # -- arrays over an array's memory

    def laid(self, array: Array, extents: tuple[Any, ...], strides: tuple[Any, ...]) -> Array:
        if array.unit is None:
            raise views.refuse_flat("Array.from_foreign", describe(array))
        wide = any(isinstance(n, Tile) and n.dtype.bits > 32 for n in extents)
        known, steps = ({d: n for d, n in enumerate(v) if isinstance(n, int)} for v in (extents, strides))
        return dataclasses.replace(
            array,
            ndim=len(extents),
            index_dtype=int64 if wide else int32,
            unit=next((d for d, n in steps.items() if n == 1), None),
            windows={},
            extents=known,
            strides=steps,
            laid=Laid(array, extents, strides),
        )


def attribute(frame: Frame, array: Array, name: str) -> Any:
    """A method of an array."""
    return views.array_method(Emitting(frame), array, name)


def foreign_pointer(frame: Frame, array: Array) -> views.ForeignPointer:
    return views.ForeignPointer(Emitting(frame), array)


@op("load_advanced_indexing")
def _load(frame: Frame, array: Any, indices: Any, padding_mode: Any, latency: Any, allow_tma: Any) -> Tile:
    machine, what = Emitting(frame), "ct.load_advanced_indexing"
    array = array_of(array, what)
    return machine.load_at(array, views.indices_of(machine, array, indices, what), padding_mode)


@op("store_advanced_indexing")
def _store(frame: Frame, array: Any, indices: Any, tile: Any, latency: Any, allow_tma: Any) -> None:
    machine, what = Emitting(frame), "ct.store_advanced_indexing"
    array = memory.output(frame, array, what)
    machine.store_at(array, views.indices_of(machine, array, indices, what), tile, what)
