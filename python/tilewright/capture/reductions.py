"""Reductions and scans along an axis."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..dtype import DType, bfloat16, bool_, float16, float32, int32, require_arithmetic
from . import numerics
from .checks import check_axes, check_axis, constant_flag
from .combine import Body, reduce_tile, scan_tile
from .emit import REDUCE_KINDS, SCAN_KINDS
from .frame import Frame
from .table import OPS
from .values import Shape, Tile


def _register_reductions() -> None:
    def named(run: Callable[..., Any], name: str) -> Callable[..., Any]:
        return lambda frame, *args, **keywords: run(frame, name, *args, **keywords)

    for name in REDUCE_KINDS:
        OPS[name] = named(_arg_reduce if name.startswith("arg") else _reduce, name)
    for name in SCAN_KINDS:
        OPS[name] = named(_scan, name)


def _sum_dtype(dtype: DType) -> DType:
    """What sums and products of a dtype are made in."""
    return float32 if dtype in (float16, bfloat16) else int32 if dtype is bool_ else dtype


def _reduce_axis(frame: Frame, name: str, tile: Tile, axis: int, ignore_nan: bool = False) -> Tile:
    attributes = {"kind": REDUCE_KINDS[name], "axis": axis, **({"ignore_nan": None} if ignore_nan else {})}
    return frame.emit.op("tile.reduce", [tile], attributes, public=name)


def _ignores_nan(name: str, tile: Tile, propagate_nan: Any) -> bool:
    keeps = constant_flag(propagate_nan, f"ct.{name}: propagate_nan")
    return not keeps and tile.dtype.is_float and name not in ("sum", "prod")


def _reduce(
    frame: Frame, name: str, x: Any, axis: Any, keepdims: Any, propagate_nan: Any = False, **modes: Any
) -> Tile:
    tile = frame.emit.tile(x, f"ct.{name}")
    require_arithmetic(tile.dtype, f"ct.{name}", allow_bool=True)
    axes = check_axes(axis, tile.ndim, f"ct.{name}")
    keep = constant_flag(keepdims, f"ct.{name}: keepdims")
    ignore_nan = _ignores_nan(name, tile, propagate_nan)

    def run(tile: Tile) -> Tile:
        adds, dtype = name in ("sum", "prod"), tile.dtype
        wide = frame.emit.cast(tile, _sum_dtype(dtype)) if adds else tile
        made = _reduce_axes(frame, wide, axes, keep, lambda x, at: _reduce_axis(frame, name, x, at, ignore_nan))
        return frame.emit.cast(made, int32 if adds and dtype is bool_ else dtype)

    def run_by(tile: Tile, step: Body, identity: float) -> Tile:
        return _reduce_axes(frame, tile, axes, keep, lambda x, at: reduce_tile(frame, x, at, step, identity))

    return numerics.under_modes(frame, name, tile, (run, run_by), **modes)


def _reduce_axes(frame: Frame, tile: Tile, axes: Shape, keep: bool, along: Callable[[Tile, int], Tile]) -> Tile:
    """Along several axes one after the other, the last first."""
    shape = tile.shape
    for one in sorted(axes, reverse=True):
        tile = along(tile, one)
    if not keep:
        return tile
    return frame.emit.reshape(tile, tuple(1 if i in axes else n for i, n in enumerate(shape)))


def _scan(frame: Frame, name: str, x: Any, axis: Any, reverse: Any, **modes: Any) -> Tile:
    tile = frame.emit.tile(x, f"ct.{name}")
    require_arithmetic(tile.dtype, f"ct.{name}", allow_bool=True)
    flags = {"reverse": None} if constant_flag(reverse, f"ct.{name}: reverse") else {}
    at = check_axis(axis, tile.ndim, f"ct.{name}")
    attributes = {"kind": SCAN_KINDS[name], "axis": at, **flags}
    dtype = int32 if tile.dtype is bool_ else tile.dtype

    def run(tile: Tile) -> Tile:
        scanned = frame.emit.op("tile.scan", [frame.emit.cast(tile, _sum_dtype(tile.dtype))], attributes, public=name)
        return frame.emit.cast(scanned, dtype)

    def run_by(tile: Tile, step: Body, identity: float) -> Tile:
        return scan_tile(frame, tile, at, step, identity, **flags)

    return numerics.under_modes(frame, name, tile, (run, run_by), **modes)


def _arg_reduce(frame: Frame, name: str, x: Any, axis: Any, keepdims: Any, propagate_nan: Any) -> Tile:
    tile = frame.emit.tile(x, f"ct.{name}")
    require_arithmetic(tile.dtype, f"ct.{name}", allow_bool=True)
    keep = constant_flag(keepdims, f"ct.{name}: keepdims")
    ignore_nan = _ignores_nan(name, tile, propagate_nan)
    shape = tile.shape
    if axis is None:
        if not shape:
            return frame.emit.int32(0)
        tile = frame.emit.reshape(tile, (math.prod(shape),))
        result = _reduce_axis(frame, name, tile, 0, ignore_nan)
        return frame.emit.reshape(result, (1,) * len(shape)) if keep else result
    at = check_axis(axis, tile.ndim, f"ct.{name}")
    result = _reduce_axis(frame, name, tile, at, ignore_nan)
    return frame.emit.reshape(result, (*shape[:at], 1, *shape[at + 1 :])) if keep else result


_register_reductions()
