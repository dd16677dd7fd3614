"""Reductions and matrix products of the reference execution."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import dtype as dt
from ..annotations import RoundingMode
from ..dtype import DType
from ..errors import TileTypeError
from ..modes import STEPS, check_fast_accumulation, check_flush, check_rounding, check_scaled, is_directed
from ..shape_rules import broadcast_shapes
from .checks import check_axes, check_axis
from .elementwise import binary, flushed
from .shapes import astype
from .table import op
from .values import Tile, as_tile, common_dtype, constant, convert, exact_elements, is_number, promote_to, round_to

_MOST_COMBINED = 8  # values at once, by a function of the user's


def _reduction_input(name: str, x: Any) -> Tile:
    x = as_tile(x, f"ct.{name}")
    dt.require_arithmetic(x.dtype, f"ct.{name}", allow_bool=True)
    return convert(x, dt.int32) if x.dtype.is_bool and name in STEPS else x


def _under_modes(name: str, x: Tile, run: Callable[[Tile], Tile], flush_to_zero: Any) -> Tile:
    """Elements and results are flushed; what comes together in between is not."""
    if not check_flush(name, bool(flush_to_zero), x.dtype):
        return run(x)
    return flushed(run(flushed(x)))


def _directed(name: str, x: Tile, axis: int, mode: RoundingMode, reverse: bool = False) -> Tile:
    """What the elements up to each are together, one after the other, each time rounded as told."""
    data = np.flip(x._data, axis) if reverse else x._data
    steps = [Tile(part, x.dtype) for part in np.moveaxis(data, axis, 0)]
    made = itertools.accumulate(steps, lambda a, b: binary(STEPS[name], a, b, rounding_mode=mode))
    stacked = np.stack([t._data for t in made], axis)
    return Tile(np.flip(stacked, axis) if reverse else stacked, x.dtype)


def _wide(x: Tile) -> Tile:
    return convert(x, x.dtype if x.dtype is dt.float64 else dt.float32)


def reduce(
    name: str,
    x: Any,
    axis: Any,
    keepdims: Any,
    rounding_mode: Any = None,
    flush_to_zero: Any = False,
    propagate_nan: Any = False,
) -> Tile:
    x = _reduction_input(name, x)
    axes = check_axes(axis, x.ndim, f"ct.{name}")
    keep = bool(keepdims)
    check_rounding(name, rounding_mode, x.dtype)

    def run(x: Tile) -> Tile:
        if is_directed(rounding_mode):
            return _reduce_directed(name, x, axes, keep, rounding_mode)
        return _reduce(name, x, axes, keep, bool(propagate_nan))

    return _under_modes(name, x, run, flush_to_zero)


def _reduce_directed(name: str, x: Tile, axes: Any, keepdims: bool, mode: RoundingMode) -> Tile:
    """Along several axes one after the other, the last first."""
    made = _wide(x)
    for one in sorted(axes, reverse=True):
        made = Tile(_directed(name, made, one, mode)._data.take([-1], one), made.dtype)
    kept = made._data if keepdims else made._data.squeeze(tuple(axes))
    return astype(Tile(kept, made.dtype), x.dtype, mode)


def _reduce(name: str, x: Tile, axes: Any, keepdims: bool, propagate_nan: bool) -> Tile:
    run: Callable[..., Any] = getattr(np, name)
    data = x._data
    if name in ("max", "min"):
        if not propagate_nan:
            of_numbers: Any = np.fmax if name == "max" else np.fmin
            run = of_numbers.reduce
        return Tile(run(exact_elements(x), axis=axes, keepdims=bool(keepdims)), x.dtype)
    if x.dtype.is_float:
        wide = run(data.astype(np.float64), axis=axes, keepdims=bool(keepdims))
        return Tile(round_to(np.asarray(wide), x.dtype), x.dtype)
    return Tile(run(data, axis=axes, keepdims=bool(keepdims), dtype=data.dtype), x.dtype)


def arg_reduce(name: str, x: Any, axis: Any, keepdims: Any, propagate_nan: Any = False) -> Tile:
    x = _reduction_input(name, x)
    if axis is not None:
        axis = check_axis(axis, x.ndim, f"ct.{name}")
    data = exact_elements(x)
    if x.dtype.is_float and not propagate_nan:
        data = _ranks(data if name == "argmax" else -data)
        name = "argmax"
    found = getattr(np, name)(data, axis=axis, keepdims=bool(keepdims))
    return Tile(np.asarray(found).astype(np.int32), dt.int32)


def _ranks(data: np.ndarray) -> np.ndarray:
    """Where each element stands in their order; equal ones together, NaN before all."""
    _, rank = np.unique(np.where(np.isnan(data), 0, data), return_inverse=True)
    return np.where(np.isnan(data), -1, rank.reshape(data.shape))


def scan(name: str, x: Any, axis: Any, reverse: Any, rounding_mode: Any = None, flush_to_zero: Any = False) -> Tile:
    x = _reduction_input(name, x)
    axis = check_axis(axis, x.ndim, f"ct.{name}")
    check_rounding(name, rounding_mode, x.dtype)

    def run(x: Tile) -> Tile:
        if is_directed(rounding_mode):
            made = _directed(name, _wide(x), axis, rounding_mode, bool(reverse))
            return astype(made, x.dtype, rounding_mode)
        return _scan(name, x, axis, bool(reverse))

    return _under_modes(name, x, run, flush_to_zero)


def _scan(name: str, x: Tile, axis: int, reverse: bool) -> Tile:
    run: Callable[..., Any] = getattr(np, name)
    data = x._data.astype(np.float64) if x.dtype.is_float else x._data
    data = np.flip(data, axis) if reverse else data
    found = run(data, axis=axis, dtype=data.dtype)
    found = np.flip(found, axis) if reverse else found
    return Tile(round_to(found, x.dtype) if x.dtype.is_float else found, x.dtype)


# ---------------------------------------------------------------------------------------------
# By a function of the user's, which gets scalars: one element after the other


def _given(what: str, x: Any, identity: Any) -> list[Tile]:
    """The tiles to combine, of one shape. The identities change nothing; here they are only checked."""
    tiles = [as_tile(v, what) for v in (x if isinstance(x, tuple) else (x,))]
    identities = identity if isinstance(identity, tuple) else (identity,)
    if isinstance(x, tuple) is not isinstance(identity, tuple) or len(tiles) != len(identities):
        raise TileTypeError(f"{what}: identity must be a constant for each tile, found {identity!r}")
    if not 1 <= len(tiles) <= _MOST_COMBINED:
        raise TileTypeError(f"{what} combines 1 to {_MOST_COMBINED} tiles at once, found {len(tiles)}")
    for value, tile in zip(identities, tiles, strict=True):
        if not is_number(value):
            raise TileTypeError(f"{what}: identity must be a constant, found {value!r}")
        constant(value, tile.dtype)
    shape: tuple[int, ...] = ()
    for tile in tiles:
        shape = broadcast_shapes(shape, tile.shape, what)
    return [Tile(np.broadcast_to(tile._data, shape), tile.dtype) for tile in tiles]


def _call(what: str, func: Callable[..., Any], x: list[Tile], y: list[Tile], is_tuple: bool) -> list[Tile]:
    made = func(*x, *y)
    values = made if is_tuple else (made,)
    if not isinstance(values, tuple) or len(values) != len(x):
        raise TileTypeError(f"{what}: the function must return {len(x)} values, found {made!r}")
    told = f"{what}: what the function returns"
    scalars = [promote_to(v, tile.dtype, told) for v, tile in zip(values, x, strict=True)]
    for scalar in scalars:
        if scalar.ndim:
            raise TileTypeError(f"{told} must be a scalar, found a tile of shape {scalar.shape}")
    return scalars


def _running(what: str, tiles: list[Tile], axis: int, func: Callable[..., Any], is_tuple: bool) -> list[Tile]:
    """What the elements up to each are together, along the axis."""
    shape = np.moveaxis(tiles[0]._data, axis, -1).shape
    rows = [np.moveaxis(t._data, axis, -1).reshape(-1, shape[-1]) for t in tiles]
    out = [np.empty_like(row) for row in rows]
    for i in range(rows[0].shape[0]):
        so_far: list[Tile] = []
        for k in range(shape[-1]):
            here = [Tile(row[i, k], t.dtype) for row, t in zip(rows, tiles, strict=True)]
            so_far = _call(what, func, so_far, here, is_tuple) if so_far else here
            for kept, value in zip(out, so_far, strict=True):
                kept[i, k] = value._data
    return [Tile(np.moveaxis(o.reshape(shape), -1, axis), t.dtype) for o, t in zip(out, tiles, strict=True)]


@op("reduce")
def reduce_by(x: Any, axis: Any, func: Any, identity: Any, keepdims: Any) -> Any:
    tiles = _given("ct.reduce", x, identity)
    at = check_axis(axis, tiles[0].ndim, "ct.reduce")
    made = _running("ct.reduce", tiles, at, func, isinstance(x, tuple))
    last = [np.take(t._data, [-1] if keepdims else -1, axis=at) for t in made]
    results = tuple(Tile(data, t.dtype) for data, t in zip(last, made, strict=True))
    return results if isinstance(x, tuple) else results[0]


@op("scan")
def scan_by(x: Any, axis: Any, func: Any, identity: Any, reverse: Any) -> Any:
    tiles = _given("ct.scan", x, identity)
    at = check_axis(axis, tiles[0].ndim, "ct.scan")
    if reverse:
        tiles = [Tile(np.flip(t._data, at), t.dtype) for t in tiles]
    made = _running("ct.scan", tiles, at, func, isinstance(x, tuple))
    results = tuple(Tile(np.flip(t._data, at), t.dtype) if reverse else t for t in made)
    return results if isinstance(x, tuple) else results[0]


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
        raise TileTypeError(f"ct.mma: inputs of {x.dtype} need an accumulator of {names}, found {acc.dtype}")


def _check_mma_shapes(x: Tile, y: Tile, acc: Tile) -> None:
    if x.ndim not in (2, 3) or not x.ndim == y.ndim == acc.ndim:
        raise TileTypeError(
            f"ct.mma: needs three tiles of 2 or of 3 dimensions, found {x.shape}, {y.shape} and {acc.shape}"
        )
    batch, m, k = x.shape[:-2], x.shape[-2], x.shape[-1]
    if y.shape[:-1] != (*batch, k) or acc.shape != (*batch, m, y.shape[-1]):
        raise TileTypeError(
            f"ct.mma: shapes (m, k), (k, n) and (m, n) needed, found {x.shape}, {y.shape} and {acc.shape}"
        )


def _same_batch(x: Tile, y: Tile) -> tuple[Tile, Tile]:
    """With the same axes in front of their matrices."""
    if x.ndim < 2 or y.ndim < 2:
        return x, y
    batch = broadcast_shapes(x.shape[:-2], y.shape[:-2], "ct.mma")
    a, b = (Tile(np.broadcast_to(t._data, (*batch, *t.shape[-2:])), t.dtype) for t in (x, y))
    return a, b


def _product(x: Tile, y: Tile) -> np.ndarray:
    """x @ y in float64, or in int64 for integers."""
    wide = np.float64 if x.dtype.is_float else np.int64
    return x._data.astype(wide) @ y._data.astype(wide)


@op("mma")
def mma(x: Any, y: Any, acc: Any, use_fast_acc: Any = False) -> Tile:
    x, y, acc = (as_tile(v, "ct.mma") for v in (x, y, acc))
    check_fast_accumulation(bool(use_fast_acc), x.dtype)
    _check_mma_dtypes(x, y, acc)
    x, y = _same_batch(x, y)
    _check_mma_shapes(x, y, acc)
    total = _product(x, y) + acc._data
    if acc.dtype.is_float:
        return Tile(round_to(total, acc.dtype), acc.dtype)
    return Tile(total.astype(np.int32), acc.dtype)


@op("mma_scaled")
def mma_scaled(x: Any, x_scale: Any, y: Any, y_scale: Any, acc: Any) -> Tile:
    x, x_scale, y, y_scale, acc = (as_tile(v, "ct.mma_scaled") for v in (x, x_scale, y, y_scale, acc))
    check_scaled(*((t.dtype, t.shape) for t in (x, x_scale, y, y_scale, acc)))
    a, b = _scaled(x, x_scale, -1), _scaled(y, y_scale, -2)
    total = a @ b
    if total.shape != acc.shape:
        raise TileTypeError(f"ct.mma_scaled: acc has shape {acc.shape}, the product {total.shape}")
    return Tile(round_to(total + acc._data, acc.dtype), acc.dtype)


def _scaled(x: Tile, scale: Tile, axis: int) -> np.ndarray:
    block = x.shape[axis] // scale.shape[axis]
    return x._data.astype(np.float64) * np.repeat(scale._data.astype(np.float64), block, axis=axis)


@op("matmul")
def matmul(x: Any, y: Any) -> Tile:
    a, b = (as_tile(v, "ct.matmul") for v in (x, y))
    dtype = common_dtype(a, b)
    if dtype not in _MMA_ACCUMULATORS:
        raise TileTypeError(f"ct.matmul: inputs of {dtype} are not supported")
    if not 1 <= a.ndim <= 3 or not 1 <= b.ndim <= 3:
        raise TileTypeError(f"ct.matmul: 1 to 3 dimensions needed, found {a.shape}, {b.shape}")
    if a.shape[-1] != b.shape[0 if b.ndim == 1 else -2]:
        raise TileTypeError(f"ct.matmul: the inner lengths of {a.shape} and {b.shape} differ")
    broadcast_shapes(a.shape[:-2], b.shape[:-2], "ct.matmul")
    accumulator = _MMA_ACCUMULATORS[dtype][0]
    total = np.asarray(_product(convert(a, dtype), convert(b, dtype)))
    if accumulator.is_float:
        return convert(Tile(round_to(total, accumulator), accumulator), dtype)
    return convert(Tile(total.astype(np.int32), accumulator), dtype)
