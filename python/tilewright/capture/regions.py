"""`ct.threads`: code of threads in a kernel of tiles, `tile.threads`. Tiles are shared arrays in it."""

from __future__ import annotations

import types
from typing import Any

from ..errors import TileTypeError
from .frame import Frame
from .inlining import inline
from .maps import device_rules, end_body
from .parameters import binder_of
from .simt.made_arrays import MADE
from .table import op
from .values import Array, Tile, describe, tile_type

_SHARED = 3  # the memory space


@op("threads")
def threads(frame: Frame, function: Any, *args: Any) -> Any:
    if not isinstance(function, types.FunctionType) or not getattr(function, "__tw_func__", False):
        raise TileTypeError(
            f"ct.threads: expected a @device.func, which each thread of the block calls, found {describe(function)}"
        )
    binder_of(function).bind(function.__name__, list(args), {})
    what = f"ct.threads: '{function.__name__}'"
    tiles = [value for value in args if _is_tile(value)]
    for tile in tiles:
        if tile.dtype.bits < 8 and not tile.dtype.is_bool:
            raise TileTypeError(f"{what} takes tiles of elements of 8 bits or more, found {describe(tile)}; convert it")
    builder = frame.builder
    block = builder.block([f"memref<{'x'.join(map(str, t.shape))}x{t.dtype.mlir}, {_SHARED}>" for t in tiles])
    builder.enter(block)
    arrays = iter([_shared_array(ir, tile) for ir, tile in zip(block.args, tiles, strict=True)])
    given = [next(arrays) if _is_tile(value) else value for value in args]
    node = frame.node
    with device_rules(frame):
        made = inline(frame, function, given, {}, node)
    frame.at(node)
    if made is not None:
        raise TileTypeError(
            f"{what} returns {describe(made)}; it returns nothing: what it leaves in the arrays of its tiles are "
            "the results"
        )
    end_body(frame, [])
    frame.capture.writes += 1
    types_ = [tile_type(tile.dtype, tile.shape) for tile in tiles]
    found = builder.op("tile.threads", [tile.ir for tile in tiles], None, types_, [block])
    irs = found if isinstance(found, tuple) else (found,)
    results = tuple(Tile(ir, tile.dtype, tile.shape) for ir, tile in zip(irs, tiles, strict=bool(tiles)))
    return results[0] if len(results) == 1 else results or None


def _is_tile(value: Any) -> bool:
    return isinstance(value, Tile) and value.shape != ()


def _shared_array(ir: Any, tile: Tile) -> Array:
    strides, step = {}, 1
    for axis in reversed(range(len(tile.shape))):
        strides[axis] = step
        step *= tile.shape[axis]
    name = "shared array"
    return Array(ir, tile.dtype, len(tile.shape), name, MADE, extents=dict(enumerate(tile.shape)), strides=strides)
