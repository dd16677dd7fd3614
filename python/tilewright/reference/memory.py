"""load, store, gather and scatter of the reference execution."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from .. import dtype as dt
from ..annotations import PaddingMode
from ..dtype import DType
from ..errors import TileTypeError, TileValueError
from ..findings import Finding, error_of
from ..modes import is_ordered
from ..shape_rules import broadcast_shapes, check_fits, dimensions
from .checks import check_order, check_tile_shape
from .table import op
from .values import Array, Shape, Tile, as_array, as_tile, is_number, promote_to


def padding(mode: Any, dtype: DType) -> np.ndarray:
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


def first_element(array: Array, index: Any, steps: Shape, what: str) -> Shape:
    """Where a tile begins: its index times the steps from tile to tile."""
    values = index if isinstance(index, Sequence) else (index,)
    if len(values) != array.ndim or len(steps) != array.ndim:
        raise TileTypeError(
            f"{what}: the array has {array.ndim} dimensions, the index {len(values)} and the tile {len(steps)}"
        )
    return tuple(_scalar_index(v, what) * n for v, n in zip(values, steps, strict=True))


def load_tile(array: Array, index: Any, steps: Shape, wanted: Shape, mode: Any, checked: Any, order: Any = "C") -> Tile:
    """The tile of a shape that begins at an index times the steps; with shape () one element."""
    shape = wanted or (1,) * array.ndim
    data = array._data.transpose(check_order(order, array.ndim, "ct.load"))
    first = first_element(array, index, steps, "ct.load")
    end = tuple(f + n for f, n in zip(first, shape, strict=True))
    outside = padding(mode, array.dtype)
    if not checked:
        _check_inside(array, order, first, end, "read outside")
    result = np.full(shape, outside)
    of_array, of_tile = _overlap(data, first, end)
    result[of_tile] = data[of_array]
    return Tile(result if wanted else result.reshape(()), array.dtype)


def store_tile(array: Array, index: Any, steps: Shape, value: Tile, checked: Any, order: Any = "C") -> None:
    array = writable(array, "ct.store")
    shape = value.shape if value.ndim else (1,) * array.ndim
    data = array._data.transpose(check_order(order, array.ndim, "ct.store"))
    first = first_element(array, index, steps, "ct.store")
    end = tuple(f + n for f, n in zip(first, shape, strict=True))
    if not checked:
        _check_inside(array, order, first, end, "write outside", value._data.reshape(shape))
    of_array, of_tile = _overlap(data, first, end)
    data[of_array] = value._data.reshape(shape)[of_tile]


def _scalar_index(value: Any, what: str) -> int:
    value = as_tile(value, f"{what}: index")
    if value.ndim != 0 or not value.dtype.is_integral:
        raise TileTypeError(f"{what}: an index is an integer scalar, found {value.dtype} of shape {value.shape}")
    return int(value)


def _overlap(data: np.ndarray, first: Shape, end: Shape) -> tuple[tuple[slice, ...], ...]:
    """The slices of array and tile that name the elements which both have."""
    inside = []
    for n, low, high in zip(data.shape, first, end, strict=True):
        inside.append((builtins.max(low, 0), builtins.max(builtins.min(high, n), low, 0)))
    of_array = tuple(slice(a, b) if b > a else slice(0, 0) for a, b in inside)
    of_tile = tuple(
        slice(a - low, b - low) if b > a else slice(0, 0) for (a, b), low in zip(inside, first, strict=True)
    )
    return of_array, of_tile


def _check_inside(
    array: Array, order: Any, first: Shape, end: Shape, kind: str, written: np.ndarray | None = None
) -> None:
    """What check_bounds=False promises of a tile; `first`, `end` and what is written are by the axes of the tile."""
    axes = check_order(order, array.ndim, "order")
    extents = [array._data.shape[axis] for axis in axes]
    if all(f >= 0 and e <= n for f, e, n in zip(first, end, extents, strict=True)):
        return
    index = [0] * array.ndim
    for axis, low, high, n in zip(axes, first, end, extents, strict=True):
        index[axis] = builtins.max(low, n) if low >= 0 and high > n else low
    place = tuple(index[axis] - low for axis, low in zip(axes, first, strict=True))
    _outside(array, kind, tuple(index), None if written is None else written[place].item())


def _outside(array: Array, kind: str, index: Shape, value: Any = None) -> NoReturn:
    shape, text = (array._data.shape, "") if array._memory_of is None else (array._memory_of, "offset")
    raise error_of("", [Finding(kind, array._name, shape, index, value=value, text=text)])


@op("load")
def load(
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
    is_ordered(memory_order, memory_scope, "load", "ct.load")
    array = as_array(array, "ct.load")
    wanted = check_tile_shape(shape, "ct.load: shape")
    return load_tile(array, index, wanted or (1,) * array.ndim, wanted, padding_mode, check_bounds, order)


@op("store")
def store(
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
    is_ordered(memory_order, memory_scope, "store", "ct.store")
    array = writable(array, "ct.store")
    value = promote_to(tile, array.dtype, "ct.store")
    steps = value.shape if value.ndim else (1,) * array.ndim
    store_tile(array, index, steps, value, check_bounds, order)


def writable(array: Any, what: str) -> Array:
    array = as_array(array, what)
    if not array._data.flags.writeable:
        raise TileValueError(f"{what}: argument {array._name!r} is read-only")
    return array


def element_indices(
    array: Array,
    indices: Any,
    mask: Any,
    check_bounds: Any,
    what: str,
    kind: str = "write outside",
    written: Tile | None = None,
) -> tuple[tuple[np.ndarray, ...], np.ndarray, Shape]:
    """Index arrays of one shape, which elements to touch, and the shape of the indices."""
    values = indices if isinstance(indices, tuple | list) else (indices,)
    if len(values) != array.ndim:
        raise TileTypeError(
            f"{what}: the array has {dimensions(array.ndim)}, the index is for {len(values)}; "
            "give one entry for each dimension"
        )
    tiles = [as_tile(v, f"{what}: index") for v in values]
    shape: Shape = ()
    for t in tiles:
        if not t.dtype.is_integral:
            raise TileTypeError(f"{what}: indices are integers, found {t.dtype}; convert, as in x.astype(ct.int32)")
        shape = broadcast_shapes(shape, t.shape, f"{what}: indices")
    arrays = tuple(np.broadcast_to(_wide_index(t), shape) for t in tiles)
    inside = np.ones(shape, bool)
    if mask is not None:
        chosen = as_tile(mask, f"{what}: mask")
        if not chosen.dtype.is_bool or broadcast_shapes(chosen.shape, shape, f"{what}: mask") != shape:
            raise TileTypeError(
                f"{what}: mask must be a bool_ tile that broadcasts to {shape}, "
                f"found {chosen.dtype} of shape {chosen.shape}"
            )
        inside = inside & chosen._data
    valid = np.ones(shape, bool)
    for a, n in zip(arrays, array._data.shape, strict=True):
        valid = valid & (a >= 0) & (a < n)
    if not check_bounds and np.any(inside & ~valid):
        bad = np.unravel_index(np.argmax(inside & ~valid), shape)
        value = None if written is None else np.broadcast_to(written._data, shape)[bad].item()
        _outside(array, kind, tuple(int(a[bad]) for a in arrays), value)
    return arrays, inside & valid, shape


def _wide_index(tile: Tile) -> np.ndarray:
    """Index elements as int64; a uint64 beyond it becomes the largest, which is outside."""
    if tile.dtype is dt.uint64:
        return np.minimum(tile._data, np.uint64(2**63 - 1)).astype(np.int64)
    return tile._data.astype(np.int64)


@op("gather")
def gather(array: Any, indices: Any, mask: Any, padding_value: Any, check_bounds: Any, latency: Any) -> Tile:
    array = as_array(array, "ct.gather")
    where, inside, shape = element_indices(array, indices, mask, check_bounds, "ct.gather", "read outside")
    if array.dtype is dt.bool_ and is_number(padding_value):
        padding_value = bool(padding_value)
    padding = promote_to(padding_value, array.dtype, "ct.gather: padding_value")
    check_fits(padding.shape, shape, "ct.gather: padding_value")
    result = np.broadcast_to(padding._data, shape).copy()
    result[inside] = array._data[tuple(w[inside] for w in where)]
    return Tile(result, array.dtype)


@op("scatter")
def scatter(array: Any, indices: Any, value: Any, mask: Any, check_bounds: Any, latency: Any) -> None:
    array = writable(array, "ct.scatter")
    new = promote_to(value, array.dtype, "ct.scatter")
    where, inside, shape = element_indices(array, indices, mask, check_bounds, "ct.scatter", written=new)
    check_fits(new.shape, shape, "ct.scatter: value")
    if array.ndim == 0:
        np.copyto(array._data, new._data, where=inside)
    else:
        array._data[tuple(w[inside] for w in where)] = np.broadcast_to(new._data, shape)[inside]
