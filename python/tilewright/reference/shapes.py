"""Creation of tiles, and operations that move elements but do not change them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import dtype as dt
from ..errors import TileTypeError, TileValueError
from ..modes import check_cast_rounding
from .checks import broadcast_shapes, check_axis, check_tile_shape, static_int, static_ints
from .elementwise import compute
from .table import op
from .values import Tile, as_operand, as_tile, cast, convert, promote_to


@op("astype")
def astype(x: Any, dtype: Any, rounding_mode: Any = None) -> Tile:
    value, dtype = as_operand(x, "ct.astype"), dt.as_dtype(dtype)
    check_cast_rounding(rounding_mode, value.dtype if isinstance(value, Tile) else dt.constant_dtype(value), dtype)
    return cast(value, dtype)


@op("astile")
def astile(value: Any, dtype: Any) -> Tile:
    dtype = dt.as_dtype(dtype)
    shape, entries = _nested(value)
    check_tile_shape(shape, "ct.astile")
    return Tile(np.array([cast(e, dtype)._data for e in entries], dtype.numpy).reshape(shape), dtype)


def _nested(value: Any) -> tuple[tuple[int, ...], list[Any]]:
    """The shape of nested tuples and lists, and their scalars in row-major order."""
    if not isinstance(value, tuple | list):
        value = as_operand(value, "ct.astile")
        if isinstance(value, Tile) and value.ndim:
            raise TileTypeError(f"ct.astile needs numbers and scalars, found a tile of shape {value.shape}")
        return (), [value]
    parts = [_nested(part) for part in value]
    count, shapes = len(parts), sorted({shape for shape, _ in parts})
    if count < 1 or count & (count - 1):
        raise TileTypeError(f"ct.astile: a tuple of {count} entries; expected 1, 2, 4, 8, … of them")
    if len(shapes) > 1:
        shown = ", ".join(map(str, shapes))
        raise TileTypeError(f"ct.astile: the entries of one tuple have the shapes {shown}; expected one shape")
    return (count, *shapes[0]), [entry for _, entries in parts for entry in entries]


@op("reshape")
def reshape(x: Any, shape: Any) -> Tile:
    x = as_tile(x, "ct.reshape")
    wanted = static_ints(shape, "ct.reshape: shape")
    if wanted.count(-1) == 1:
        rest = -math.prod(wanted)
        if rest > 0 and x._data.size % rest == 0:
            wanted = tuple(x._data.size // rest if n == -1 else n for n in wanted)
    wanted = check_tile_shape(wanted, "ct.reshape: shape")
    if math.prod(wanted) != x._data.size:
        raise TileValueError(
            f"ct.reshape: shape {x.shape} has {x._data.size} elements, {wanted} has {math.prod(wanted)}"
        )
    return Tile(x._data.reshape(wanted), x.dtype)


@op("permute")
def permute(x: Any, axes: Any) -> Tile:
    x = as_tile(x, "ct.permute")
    order = tuple(check_axis(a, x.ndim, "ct.permute") for a in axes)
    if sorted(order) != list(range(x.ndim)):
        raise TileValueError(f"ct.permute: axes {axes} is no permutation of {x.ndim} axes")
    return Tile(x._data.transpose(order), x.dtype)


@op("transpose")
def transpose(x: Any, axis0: Any, axis1: Any) -> Tile:
    x = as_tile(x, "ct.transpose")
    if axis0 is None and axis1 is None:
        if x.ndim != 2:
            raise TileValueError(f"ct.transpose of a tile of {x.ndim} dimensions needs the two axes to swap")
        axis0, axis1 = 0, 1
    elif axis0 is None or axis1 is None:
        raise TileValueError("ct.transpose needs both axes or none")
    a, b = (check_axis(v, x.ndim, "ct.transpose") for v in (axis0, axis1))
    return Tile(np.swapaxes(x._data, a, b), x.dtype)


@op("expand_dims")
def expand_dims(x: Any, axis: Any) -> Tile:
    x = as_tile(x, "ct.expand_dims")
    return Tile(np.expand_dims(x._data, check_axis(axis, x.ndim + 1, "ct.expand_dims")), x.dtype)


def getitem(x: Tile, index: Any) -> Tile:
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


@op("broadcast_to")
def broadcast_to(x: Any, shape: Any) -> Tile:
    x = as_tile(x, "ct.broadcast_to")
    wanted = check_tile_shape(shape, "ct.broadcast_to: shape")
    if broadcast_shapes(x.shape, wanted, "ct.broadcast_to") != wanted:
        raise TileValueError(f"ct.broadcast_to: shape {x.shape} does not broadcast to {wanted}")
    return Tile(np.broadcast_to(x._data, wanted), x.dtype)


@op("full")
def full(shape: Any, fill_value: Any, dtype: Any) -> Tile:
    value = cast(as_operand(fill_value, "ct.full"), dt.as_dtype(dtype))
    if value.ndim != 0:
        raise TileTypeError(f"ct.full needs a scalar to fill with, found shape {value.shape}")
    return Tile(np.full(check_tile_shape(shape, "shape"), value._data), value.dtype)


@op("arange")
def arange(size: Any, dtype: Any, start: Any, step: Any) -> Tile:
    dtype = dt.as_dtype(dtype)
    (count,) = check_tile_shape(static_int(size, "ct.arange: size"), "ct.arange: size")
    dt.require_arithmetic(dtype, "ct.arange")
    first = promote_to(start, dtype, "ct.arange: start")
    delta = promote_to(step, dtype, "ct.arange: step")
    steps = convert(Tile(np.arange(count), dt.int64), dtype)
    return compute(np.add, dtype, first, compute(np.multiply, dtype, steps, delta))
