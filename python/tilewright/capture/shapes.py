"""Shapes: tiles that are made, and operations that move elements without computing anything."""

from __future__ import annotations

import math
from typing import Any

from ..dtype import int32, require_arithmetic, uint8
from ..errors import TileTypeError
from ..shape_rules import Shape, bits_of, check_bitcast, check_fits, check_nested, check_part, check_same_dtype
from .checks import RULES, check_axis, check_tile_shape, dtype_of
from .frame import Frame
from .table import op
from .values import Tile, describe, is_number, require_tile_or_number


@op("full")
def _full(frame: Frame, shape: Any, fill_value: Any, dtype: Any, what: str = "ct.full") -> Tile:
    tile_shape = check_tile_shape(shape, f"{what}: shape")
    dtype = dtype_of(dtype, f"{what}: dtype")
    value = require_tile_or_number(fill_value, what)
    if is_number(value):
        return frame.emit.constant(value, dtype, tile_shape)
    if value.shape:
        raise TileTypeError(f"ct.full needs a scalar to fill with, found shape {value.shape}")
    return frame.emit.broadcast(frame.emit.cast(value, dtype), tile_shape)


@op("zeros")
def _zeros(frame: Frame, shape: Any, dtype: Any) -> Tile:
    return _full(frame, shape, 0, dtype, "ct.zeros")


@op("ones")
def _ones(frame: Frame, shape: Any, dtype: Any) -> Tile:
    return _full(frame, shape, 1, dtype, "ct.ones")


@op("astile")
def _astile(frame: Frame, value: Any, dtype: Any) -> Tile:
    dtype = dtype_of(dtype, "ct.astile: dtype")
    shape, entries = check_nested(value, _scalar)
    shape = check_tile_shape(shape, "ct.astile")
    return _select_tree(frame, [frame.emit.cast(entry, dtype) for entry in entries], shape)


def _scalar(value: Any) -> Any:
    value = require_tile_or_number(value, "ct.astile")
    if isinstance(value, Tile) and value.shape:
        raise TileTypeError(f"ct.astile needs numbers and scalars, found {describe(value)}")
    return value


def _select_tree(frame: Frame, entries: list[Tile], shape: Shape) -> Tile:
    """A tile of given elements: each bit of the position halves what it may be."""
    emit, count = frame.emit, len(entries)
    if all(entry.ir is entries[0].ir for entry in entries):
        return emit.broadcast(entries[0], shape)
    position = emit.typed("tile.iota", [], None, int32, (count,))
    values = [emit.broadcast(entry, (count,)) for entry in entries]
    bit = 1
    while len(values) > 1:
        is_odd = emit.compare("not_equal", emit.binary("bitwise_and", position, bit), 0)
        values = [emit.select(is_odd, odd, even) for even, odd in zip(values[::2], values[1::2], strict=True)]
        bit *= 2
    return emit.reshape(values[0], shape)


@op("arange")
def _arange(frame: Frame, size: Any, dtype: Any, start: Any, step: Any) -> Tile:
    dtype = dtype_of(dtype, "ct.arange: dtype")
    shape = RULES.check_length(size, "ct.arange: size")
    require_arithmetic(dtype, "ct.arange")
    emit = frame.emit
    start, step = (emit.converted(v, dtype, f"ct.arange: {name}") for v, name in ((start, "start"), (step, "step")))
    steps = emit.typed("tile.iota", [], None, dtype if dtype.is_integral else int32, shape)
    steps = emit.cast(steps, dtype)
    if not (is_number(step) and step == 1):
        steps = emit.binary("mul", steps, step)
    if not (is_number(start) and start == 0):
        steps = emit.binary("add", start, steps)
    return steps


# ---------------------------------------------------------------------------------------------
# Shape


@op("reshape")
def _reshape(frame: Frame, x: Any, shape: Any) -> Tile:
    tile = frame.emit.tile(x, "ct.reshape")
    return frame.emit.reshape(tile, RULES.check_reshape(tile.shape, shape))


def _permuted(frame: Frame, tile: Tile, order: Shape) -> Tile:
    if order == tuple(range(len(order))):
        return tile
    return frame.emit.op("tile.permute", [tile], {"order": order}, public="permute")


@op("permute")
def _permute(frame: Frame, x: Any, axes: Any) -> Tile:
    tile = frame.emit.tile(x, "ct.permute")
    return _permuted(frame, tile, RULES.check_permutation(axes, tile.ndim))


@op("transpose")
def _transpose(frame: Frame, x: Any, axis0: Any, axis1: Any) -> Tile:
    tile = frame.emit.tile(x, "ct.transpose")
    return _permuted(frame, tile, RULES.check_transpose(axis0, axis1, tile.ndim))


@op("expand_dims")
def _expand_dims(frame: Frame, x: Any, axis: Any) -> Tile:
    tile = frame.emit.tile(x, "ct.expand_dims")
    at = check_axis(axis, tile.ndim + 1, "ct.expand_dims")
    return frame.emit.reshape(tile, (*tile.shape[:at], 1, *tile.shape[at:]))


@op("cat")
def _cat(frame: Frame, tiles: Any, axis: Any) -> Tile:
    if not isinstance(tiles, tuple) or not 1 <= len(tiles) <= 2:
        found = describe(tiles)
        raise TileTypeError(f"ct.cat needs a tuple of one or two tiles, found {found}; more are joined one by one")
    parts = [frame.emit.tile(tile, "ct.cat") for tile in tiles]
    at = RULES.check_cat(parts, axis, describe)
    return frame.emit.op("tile.cat", parts, {"axis": at}, public="cat") if len(parts) > 1 else parts[0]


def _part_index(frame: Frame, whole: Shape, part: Shape, index: Any, what: str) -> list[Any]:
    entries = check_part(whole, part, index, what)
    return [frame.emit.index(entry, f"{what}: index[{i}]").ir for i, entry in enumerate(entries)]


@op("extract")
def _extract(frame: Frame, x: Any, index: Any, shape: Any) -> Tile:
    tile = frame.emit.tile(x, "ct.extract")
    wanted = check_tile_shape(shape, "ct.extract: shape")
    part = wanted or (1,) * tile.ndim
    indices = _part_index(frame, tile.shape, part, index, "ct.extract")
    if not tile.shape:
        return tile
    known = index if isinstance(index, tuple) else (index,)
    if part == tile.shape and all(type(entry) is int for entry in known):
        return frame.emit.reshape(tile, wanted or ())  # the only part: passes know more of a tile than of its parts
    return frame.emit.reshape(
        frame.emit.typed("tile.extract", [tile.ir, *indices], None, tile.dtype, part), wanted or ()
    )


@op("insert")
def _insert(frame: Frame, x: Any, index: Any, value: Any) -> Tile:
    tile = frame.emit.tile(x, "ct.insert")
    part = frame.emit.implicit(value, tile.dtype, "ct.insert")
    check_same_dtype(value.dtype if isinstance(value, Tile) else tile.dtype, tile.dtype, "ct.insert: the part")
    if not part.shape and tile.shape:
        part = frame.emit.broadcast(part, (1,) * tile.ndim)
    indices = _part_index(frame, tile.shape, part.shape, index, "ct.insert")
    if not tile.shape:
        return part
    return frame.emit.typed("tile.insert", [tile.ir, part.ir, *indices], None, tile.dtype, tile.shape)


@op("bitcast")
def _bitcast(frame: Frame, x: Any, dtype: Any) -> Tile:
    tile, wanted = frame.emit.tile(x, "ct.bitcast"), dtype_of(dtype, "ct.bitcast")
    check_bitcast(tile.dtype, wanted)
    return frame.emit.bitcast(tile, wanted)


@op("pack_to_bytes")
def _pack_to_bytes(frame: Frame, x: Any) -> Tile:
    tile = frame.emit.tile(x, "ct.pack_to_bytes")
    bits = bits_of(tile.dtype, "ct.pack_to_bytes") * math.prod(tile.shape)
    if bits % 8:
        raise TileTypeError(f"ct.pack_to_bytes: {describe(tile)} has {bits} bits, which are no whole bytes")
    tile = frame.emit.broadcast(tile, tile.shape or (1,))
    return frame.emit.typed("tile.pack_to_bytes", [tile.ir], None, uint8, (bits // 8,))


@op("unpack_from_bytes")
def _unpack_from_bytes(frame: Frame, x: Any, dtype: Any) -> Tile:
    tile, wanted = frame.emit.tile(x, "ct.unpack_from_bytes"), dtype_of(dtype, "ct.unpack_from_bytes")
    if tile.ndim != 1 or tile.dtype is not uint8:
        raise TileTypeError(f"ct.unpack_from_bytes needs a 1-D tile of uint8, found {describe(tile)}")
    bits = bits_of(wanted, "ct.unpack_from_bytes")
    if tile.shape[0] * 8 % bits:
        raise TileTypeError(
            f"ct.unpack_from_bytes: {tile.shape[0]} bytes are no elements of {wanted}, which has {bits} bits"
        )
    return frame.emit.typed("tile.unpack_from_bytes", [tile.ir], None, wanted, (tile.shape[0] * 8 // bits,))


@op("broadcast_to")
def _broadcast_to(frame: Frame, x: Any, shape: Any) -> Tile:
    tile = frame.emit.tile(x, "ct.broadcast_to")
    wanted = check_tile_shape(shape, "ct.broadcast_to: shape")
    check_fits(tile.shape, wanted, "ct.broadcast_to: the tile")
    return frame.emit.broadcast(tile, wanted)


_SELECT = "select elements with ct.where, or with ct.gather from an array"


def new_axes(frame: Frame, tile: Tile, index: Any) -> Tile:
    """x[:, None]: new axes only."""
    entries = index if isinstance(index, tuple) else (index,)
    kept = 0
    if len(entries) < tile.ndim and all(isinstance(entry, slice) and entry == slice(None) for entry in entries):
        raise TileTypeError(
            f"a tile of shape {tile.shape} takes ':' for each of its axes, found {len(entries)}, and None where a new "
            "one is to be, as in x[:, None]; write x for the tile itself"
        )
    for entry in entries:
        whole = isinstance(entry, slice) and entry == slice(None)
        if entry is not None and entry is not Ellipsis and not whole:
            found = "a slice with bounds" if isinstance(entry, slice) else describe(entry)
            turned = isinstance(entry, slice) and entry == slice(None, None, -1)
            raise TileTypeError(
                f"a tile takes only ':', None and '...' as index, found {found}; "
                + ("ct.flip(x, axis) turns it round" if turned else _SELECT)
            )
        kept += whole
    if kept > tile.ndim or entries.count(Ellipsis) > 1:
        raise TileTypeError(
            f"too many indices for a tile of shape {tile.shape}; expected ':' {len(tile.shape)} times at most"
        )
    rest = iter(tile.shape)
    shape: list[int] = []
    for entry in entries:
        if entry is None:
            shape.append(1)
        elif entry is Ellipsis:
            shape.extend(next(rest) for _ in range(tile.ndim - kept))
        else:
            shape.append(next(rest))
    return frame.emit.reshape(tile, (*shape, *rest))


def item(frame: Frame, tile: Any) -> Tile:
    """x.item()."""
    if math.prod(tile.shape) != 1:
        raise TileTypeError(f"item() needs a tile with one element, found shape {tile.shape}")
    return frame.emit.reshape(tile, ())
