"""Memory: load, store, gather and scatter, and the accesses that views and atomics are made of."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

from .._optable import ATOMIC_KIND, MEMORY_ORDER, MEMORY_SCOPE, PADDING
from ..annotations import MemoryOrder, MemoryScope, PaddingMode
from ..dtype import DType, bool_, float8_e5m2, float8_e8m0fnu, int32, int64
from ..errors import TileTypeError, TileValueError
from ..modes import AtomicAccess, is_ordered
from ..shape_rules import broadcast_shapes, dimensions
from .checks import array_of, check_axis, check_order, check_tile_shape, constant_flag, fit, static_int
from .frame import Frame
from .table import op
from .values import Array, Laid, Shape, Tile, describe, is_number


def _order_attribute(order: Shape) -> dict[str, Any]:
    return {} if order == tuple(range(len(order))) else {"order": order}


def _hints(latency: Any, allow_tma: Any, what: str) -> dict[str, Any]:
    """Hints for the lowering, kept on the op; they change no result."""
    hints: dict[str, Any] = {}
    if latency is not None:
        if not 1 <= static_int(latency, f"{what}: latency") <= 10:
            raise TileValueError(f"{what}: latency is 1 to 10, found {latency}")
        hints["tile.latency"] = latency
    if allow_tma is not None:
        hints["tile.allow_tma"] = constant_flag(allow_tma, f"{what}: allow_tma")
    return hints


def extent(frame: Frame, array: Array, axis: int) -> Tile:
    """How many elements an array has along an axis."""
    if axis in array.windows:
        length = array.windows[axis][1]
        return frame.emit.constant(length, int32, ()) if isinstance(length, int) else frame.emit.cast(length, int32)
    if axis in array.extents:
        return frame.emit.constant(array.extents[axis], int32)
    if array.laid:
        return frame.emit.cast(array.laid.extents[axis], int32)
    return frame.emit.typed("tile.dim", [array.ir], {"axis": axis}, int32, ())


def stride(frame: Frame, array: Array, axis: int) -> Tile:
    """How many elements lie between neighbours along an axis."""
    if array.laid:
        found = array.laid.strides[axis]
        return frame.emit.constant(found, int64) if isinstance(found, int) else frame.emit.cast(found, int64)
    return frame.emit.typed("tile.stride", [array.ir], {"axis": axis}, int64, ())


@op("num_tiles")
def _num_tiles(frame: Frame, array: Any, axis: Any, shape: Any, order: Any) -> Tile:
    array = array_of(array, "ct.num_tiles")
    tile_shape = check_tile_shape(shape, "ct.num_tiles: shape") or (1,) * array.ndim
    if len(tile_shape) != array.ndim:
        raise TileTypeError(
            f"ct.num_tiles: {describe(array)} needs a tile of {dimensions(array.ndim)}, found shape {tile_shape}"
        )
    k = check_axis(axis, array.ndim, "ct.num_tiles")
    array_axis = check_order(order, array.ndim, "ct.num_tiles")[k]
    count: Tile = frame.emit.binary("cdiv", extent(frame, array, array_axis), tile_shape[k])
    return count


def _tile_index(frame: Frame, array: Array, index: Any, shape: Shape, what: str) -> list[Tile]:
    values = index if isinstance(index, tuple) else (index,)
    if len(values) != array.ndim or len(shape) != array.ndim:
        raise TileTypeError(
            f"{what}: the array '{array.name}' has {dimensions(array.ndim)}, the index {len(values)} "
            f"and the tile {len(shape)}; give one entry of each for each dimension"
        )
    return [frame.emit.index(v, f"{what}: index[{i}]") for i, v in enumerate(values)]


def window(frame: Frame, index: Sequence[Tile], steps: Shape, shape: Shape, axes: Shape) -> list[Tile]:
    """For each axis of an array the places of the elements of a tile that starts at `index` times `steps`."""
    emit = frame.emit
    found: dict[int, Tile] = {}
    for k, axis in enumerate(axes):
        first = emit.binary("mul", emit.cast(index[k], int64), steps[k])
        count = emit.cast(emit.typed("tile.iota", [], None, int32, (shape[k],)), int64)
        place = emit.reshape(emit.binary("add", first, count), tuple(n if d == k else 1 for d, n in enumerate(shape)))
        found[axis] = emit.broadcast(place, shape)
    return [found[axis] for axis in sorted(found)]


def _has_padding(dtype: DType, mode: PaddingMode) -> bool:
    if mode is PaddingMode.UNDETERMINED:
        return True
    if mode is PaddingMode.ZERO:
        return dtype is not float8_e8m0fnu
    if not dtype.is_float:
        return False
    if mode is PaddingMode.NAN:
        return dtype.bits > 4
    if mode is PaddingMode.NEG_ZERO:
        return dtype is not float8_e8m0fnu
    return dtype.bits > 8 or dtype is float8_e5m2


def _padding(mode: Any, dtype: DType) -> dict[str, Any]:
    if not isinstance(mode, PaddingMode):
        raise TileTypeError(f"padding_mode must be a ct.PaddingMode, found {describe(mode)}")
    if not _has_padding(dtype, mode):
        raise TileTypeError(f"padding_mode {mode.name}: {dtype} has no such value; use ZERO")
    return {"padding": PADDING[mode.name.lower()]}


_PADDING_VALUES = {
    PaddingMode.NEG_ZERO: -0.0,
    PaddingMode.NAN: math.nan,
    PaddingMode.POS_INF: math.inf,
    PaddingMode.NEG_INF: -math.inf,
}


def _padding_tile(frame: Frame, mode: PaddingMode, dtype: DType, shape: Shape) -> Tile:
    value = _PADDING_VALUES.get(mode, False if dtype is bool_ else 0)
    return frame.emit.constant(value, dtype, shape)


@dataclasses.dataclass(frozen=True)
class Reached:
    """Which elements of an argument an access reaches: an index tile for each axis, or an offset in its memory; and a
    mask, an empty list where all are meant."""

    tiles: list[Tile]
    mask: Sequence[Any]
    checked: bool
    is_flat: bool = False

    def flags(self) -> dict[str, Any]:
        return {**({"check_bounds": None} if self.checked else {}), **({"tile.flat": None} if self.is_flat else {})}


def atomic(frame: Frame, access: AtomicAccess, array: Array, at: Reached, values: Sequence[Tile]) -> Tile:
    """At index tiles of one shape; what the elements were. The last value is written, one before it is expected."""
    order, scope = MEMORY_ORDER[access.memory_order.name.lower()], MEMORY_SCOPE[access.memory_scope.name.lower()]
    return atomic_access(frame, ATOMIC_KIND[access.kind], order, scope, array, at, values)


def atomic_access(
    frame: Frame, kind: int, order: int, scope: int, array: Array, at: Reached, values: Sequence[Tile]
) -> Tile:
    """The same with kind, order and scope as the dialect numbers them."""
    *expected, value = values
    groups = [[array.ir], [t.ir for t in at.tiles], [value.ir], [t.ir for t in expected], at.mask]
    how = {"kind": kind, "memory_order": order, "memory_scope": scope}
    attributes = {**segments(*groups), **how, **at.flags()}
    operands = [ir for group in groups for ir in group]
    return frame.emit.typed("tile.atomic", operands, attributes, array.dtype, value.shape)


def in_root(frame: Frame, array: Array, tiles: list[Tile], mask: Sequence[Any], checked: bool) -> Reached:
    """Indices into a part of an array, or into one that was laid over its memory, as such into the array itself."""
    found = list(tiles)
    for axis, (first, length) in array.windows.items():
        index = frame.emit.cast(tiles[axis], int64)
        found[axis] = frame.emit.binary("add", index, first)
        if checked:
            mask = _and_inside(frame, mask, index, length)
    if array.laid is None:
        return Reached(found, mask, checked)
    return _in_memory(frame, array.laid, found, mask, checked)


def _and_inside(frame: Frame, mask: Sequence[Any], index: Tile, length: Any) -> Sequence[Any]:
    emit = frame.emit
    low, high = emit.compare("less_equal", 0, index), emit.compare("less", index, length)
    inside = emit.binary("bitwise_and", low, high)
    if mask:
        inside = emit.binary("bitwise_and", Tile(mask[0], bool_, inside.shape), inside)
    return [inside.ir]


def _in_memory(frame: Frame, laid: Laid, tiles: list[Tile], mask: Sequence[Any], checked: bool) -> Reached:
    """By the offset that the strides of an array say, in the memory that it was laid over."""
    emit, offset = frame.emit, frame.emit.constant(0, int64, tiles[0].shape if tiles else ())
    for tile, extent, stride in zip(tiles, laid.extents, laid.strides, strict=True):
        index = emit.cast(tile, int64)
        offset = emit.binary("add", offset, emit.binary("mul", index, stride))
        mask = _and_inside(frame, mask, index, extent) if checked else mask
    return at_offset(frame, laid.array, offset, mask)


def at_offset(frame: Frame, array: Array, offset: Tile, mask: Sequence[Any]) -> Reached:
    """Elements by their distance from an array's first one: along an axis that is contiguous, 0 along the others."""
    zero = frame.emit.constant(0, int64, offset.shape)
    tiles = [offset if d == array.unit else zero for d in range(array.ndim)]
    return dataclasses.replace(in_root(frame, array, tiles, mask, False), is_flat=True)


def gather_elements(frame: Frame, array: Array, at: Reached, padding: Tile, hints: dict[str, Any]) -> Tile:
    groups = [[array.ir], [t.ir for t in at.tiles], at.mask, [padding.ir]]
    attributes = {**segments(*groups), **hints, **at.flags()}
    operands = [ir for group in groups for ir in group]
    return frame.emit.typed("tile.gather", operands, attributes, array.dtype, padding.shape)


def scatter_elements(frame: Frame, array: Array, at: Reached, value: Tile, hints: dict[str, Any]) -> None:
    groups = [[array.ir], [t.ir for t in at.tiles], [value.ir], at.mask]
    attributes = {**segments(*groups), **hints, **at.flags()}
    frame.builder.op("tile.scatter", [ir for group in groups for ir in group], attributes, [])


Order = tuple[MemoryOrder, MemoryScope]


def gather_window(
    frame: Frame, array: Array, places: list[Tile], padding_mode: Any, checked: bool, order: Order | None = None
) -> Tile:
    """The elements at places in an array or a part of one; the padding where they are outside."""
    _padding(padding_mode, array.dtype)
    padding = _padding_tile(frame, padding_mode, array.dtype, places[0].shape if places else ())
    at = in_root(frame, array, places, [], checked)
    if order is not None:
        return atomic(frame, AtomicAccess("load", checked, *order), array, at, [padding])
    return gather_elements(frame, array, at, padding, {})


def scatter_window(
    frame: Frame, array: Array, places: list[Tile], value: Tile, checked: bool, order: Order | None = None
) -> None:
    output(frame, array, "store")
    at = in_root(frame, array, places, [], checked)
    if order is not None:
        atomic(frame, AtomicAccess("store", checked, *order), array, at, [value])
    else:
        scatter_elements(frame, array, at, value, {})


def _how(
    array: Array, order: Any, check_bounds: Any, latency: Any, allow_tma: Any, what: str
) -> tuple[bool, dict[str, Any]]:
    """Whether bounds are checked, and the attributes that a load and a store have alike."""
    found = {**_order_attribute(check_order(order, array.ndim, what)), **_hints(latency, allow_tma, what)}
    checked = constant_flag(check_bounds, f"{what}: check_bounds")
    return checked, found if checked else {**found, "tile.in_bounds": None}


@op("load")
def load(
    frame: Frame,
    array: Any,
    index: Any,
    shape: Any,
    order: Any,
    padding_mode: Any,
    check_bounds: Any,
    latency: Any,
    allow_tma: Any,
    memory_order: Any,
    memory_scope: Any,
) -> Tile:
    array = array_of(array, "ct.load")
    tile_shape = check_tile_shape(shape, "ct.load: shape")
    is_element = not tile_shape
    tile_shape = tile_shape or (1,) * array.ndim
    indices = _tile_index(frame, array, index, tile_shape, "ct.load")
    checked, attributes = _how(array, order, check_bounds, latency, allow_tma, "ct.load")
    attributes.update(_padding(padding_mode, array.dtype))
    ordered = is_ordered(memory_order, memory_scope, "load", "ct.load")
    if ordered or array.is_part:
        places = window(frame, indices, tile_shape, tile_shape, check_order(order, array.ndim, "ct.load"))
        how = (memory_order, memory_scope) if ordered else None
        loaded = gather_window(frame, array, places, padding_mode, checked, how)
        return frame.emit.reshape(loaded, ()) if is_element else loaded
    operands = [array.ir, *(i.ir for i in indices)]
    loaded = frame.emit.typed("tile.load", operands, attributes, array.dtype, tile_shape)
    return frame.emit.reshape(loaded, ()) if is_element else loaded


def output(frame: Frame, value: Any, what: str) -> Array:
    array = array_of(value, what)
    frame.capture.written.add(array.position)
    frame.capture.writes += 1
    return array


@op("store")
def store(
    frame: Frame,
    array: Any,
    index: Any,
    tile: Any,
    order: Any,
    check_bounds: Any,
    latency: Any,
    allow_tma: Any,
    memory_order: Any,
    memory_scope: Any,
) -> None:
    array = output(frame, array, "ct.store")
    if isinstance(tile, tuple) and isinstance(index, Tile):
        found = describe(tile)
        raise TileTypeError(f"ct.store takes the array, the index and the tile in this order, found {found} last")
    value = frame.emit.implicit(tile, array.dtype, "ct.store")
    if not value.shape:
        value = frame.emit.broadcast(value, (1,) * array.ndim)
    indices = _tile_index(frame, array, index, value.shape, "ct.store")
    checked, attributes = _how(array, order, check_bounds, latency, allow_tma, "ct.store")
    ordered = is_ordered(memory_order, memory_scope, "store", "ct.store")
    if ordered or array.is_part:
        places = window(frame, indices, value.shape, value.shape, check_order(order, array.ndim, "ct.store"))
        how = (memory_order, memory_scope) if ordered else None
        scatter_window(frame, array, places, value, checked, how)
        return
    frame.builder.op("tile.store", [array.ir, *(i.ir for i in indices), value.ir], attributes, [])


def element_indices(frame: Frame, array: Array, indices: Any, what: str) -> tuple[list[Tile], Shape]:
    """One index tile for each axis, all of the shape of the result, and that shape."""
    values = indices if isinstance(indices, tuple) else (indices,)
    if len(values) != array.ndim:
        raise TileTypeError(
            f"{what}: the array '{array.name}' has {dimensions(array.ndim)}, the index is for {len(values)}; "
            "give one entry for each dimension"
        )
    tiles = [frame.emit.tile(v, f"{what}: index") for v in values]
    shape: Shape = ()
    for tile in tiles:
        if not tile.dtype.is_integral:
            raise TileTypeError(f"{what}: indices are integers, found {tile.dtype}; convert, as in x.astype(ct.int32)")
        shape = broadcast_shapes(shape, tile.shape, f"{what}: indices")
    return [frame.emit.broadcast(t, shape) for t in tiles], shape


def mask_of(frame: Frame, mask: Any, shape: Shape, what: str) -> list[Any]:
    if mask is None:
        return []
    tile = frame.emit.tile(mask, f"{what}: mask")
    fits = tile.dtype is bool_
    try:
        fits = fits and broadcast_shapes(tile.shape, shape, what) == shape
    except TileTypeError:
        fits = False
    if not fits:
        raise TileTypeError(f"{what}: mask must be a bool_ tile that broadcasts to {shape}, found {describe(tile)}")
    return [frame.emit.broadcast(tile, shape).ir]


def segments(*groups: Sequence[Any]) -> dict[str, Any]:
    return {"operandSegmentSizes": tuple(len(g) for g in groups)}


@op("gather")
def _gather(
    frame: Frame,
    array: Any,
    indices: Any,
    mask: Any,
    padding_value: Any,
    check_bounds: Any,
    latency: Any,
) -> Tile:
    array = array_of(array, "ct.gather")
    tiles, shape = element_indices(frame, array, indices, "ct.gather")
    if array.dtype is bool_ and is_number(padding_value):
        padding_value = bool(padding_value)
    padding = frame.emit.implicit(padding_value, array.dtype, "ct.gather: padding_value")
    padding = fit(frame, padding, shape, "ct.gather: padding_value")
    checked = constant_flag(check_bounds, "ct.gather: check_bounds")
    at = in_root(frame, array, tiles, mask_of(frame, mask, shape, "ct.gather"), checked)
    return gather_elements(frame, array, at, padding, _hints(latency, None, "ct.gather"))


@op("scatter")
def _scatter(
    frame: Frame,
    array: Any,
    indices: Any,
    value: Any,
    mask: Any,
    check_bounds: Any,
    latency: Any,
) -> None:
    array = output(frame, array, "ct.scatter")
    tiles, shape = element_indices(frame, array, indices, "ct.scatter")
    new = frame.emit.implicit(value, array.dtype, "ct.scatter")
    new = fit(frame, new, shape, "ct.scatter: value")
    checked = constant_flag(check_bounds, "ct.scatter: check_bounds")
    at = in_root(frame, array, tiles, mask_of(frame, mask, shape, "ct.scatter"), checked)
    scatter_elements(frame, array, at, new, _hints(latency, None, "ct.scatter"))


def read_element(frame: Frame, array: Array, index: tuple[Any, ...]) -> Tile:
    """One element, of which the program says that it is inside."""
    return _gather(frame, array, index, None, 0, False, None)


def write_element(frame: Frame, array: Array, index: tuple[Any, ...], value: Any) -> None:
    _scatter(frame, array, index, value, None, False, None)
