"""Reductions and scans by a function of the user's, which is captured for two scalars."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _core
from ..dtype import DType
from ..errors import TileSyntaxError, TileTypeError, from_message
from ..shape_rules import broadcast_shapes
from .checks import check_axis, constant_flag
from .frame import Frame
from .table import op
from .values import Shape, Tile, describe, is_number, tile_type

MOST_COMBINED = 8  # values at once, by a function of the user's


def _given(frame: Frame, what: str, x: Any, identity: Any) -> tuple[list[Tile], list[Any]]:
    """The tiles to combine, of one shape, and the identity of each."""
    tiles = [frame.emit.tile(value, what) for value in (x if isinstance(x, tuple) else (x,))]
    identities = list(identity) if isinstance(identity, tuple) else [identity]
    if isinstance(x, tuple) is not isinstance(identity, tuple) or len(tiles) != len(identities):
        raise TileTypeError(f"{what}: identity must be a constant for each tile, found {describe(identity)}")
    if not 1 <= len(tiles) <= MOST_COMBINED:
        raise TileTypeError(f"{what} combines 1 to {MOST_COMBINED} tiles at once, found {len(tiles)}")
    for value in identities:
        if not is_number(value):
            raise TileTypeError(f"{what}: identity must be a constant, found {describe(value)}")
    shape: Shape = ()
    for tile in tiles:
        shape = broadcast_shapes(shape, tile.shape, what)
    return [frame.emit.broadcast(tile, shape) for tile in tiles], identities


# What is made of two scalars of each tile: those that come before, then those behind them.
Body = Callable[[list[Tile]], Any]


def _calling(frame: Frame, func: Any) -> Body:
    """The body of the user's function."""
    from .calls import call  # which needs this module

    return lambda scalars: call(frame, func, scalars, {}, frame.node)


def _combiner(frame: Frame, what: str, body: Body, tiles: list[Tile], is_tuple: bool) -> Any:
    """A block with this body, which yields a scalar of the dtype of each tile."""
    capture, builder, node = frame.capture, frame.builder, frame.node
    if capture.combiner:
        raise TileSyntaxError(
            f"{what} cannot stand in the function of {capture.combiner}; combine several tiles at once"
        )
    block = builder.block([tile.dtype.mlir for tile in tiles] * 2)
    builder.enter(block)
    capture.combiner = what
    arguments = [Tile(ir, tile.dtype, ()) for ir, tile in zip(block.args, tiles * 2, strict=True)]
    made = body(arguments)
    values = made if is_tuple else (made,)
    if not isinstance(values, tuple) or len(values) != len(tiles):
        raise TileTypeError(f"{what}: the function must return {len(tiles)} values, found {describe(made)}")
    frame.at(node)
    yielded = [_yielded(frame, what, value, tile.dtype) for value, tile in zip(values, tiles, strict=True)]
    builder.op("tile.yield", yielded, None, [])
    capture.combiner = ""
    builder.leave()
    return block


def _yielded(frame: Frame, what: str, value: Any, dtype: DType) -> Any:
    """What the user's function returned, as a scalar of the dtype of its tile."""
    what = f"{what}: what the function returns"
    scalar = frame.emit.implicit(value, dtype, what)
    if scalar.shape:
        raise TileTypeError(f"{what} must be a scalar, found {describe(scalar)}")
    return scalar.ir


def _combine(
    frame: Frame,
    name: str,
    x: Any,
    axis: Any,
    body: Body,
    identity: Any,
    left: Callable[[Shape, int], Shape],
    **flags: Any,
) -> tuple[list[Tile], int]:
    """The results of tile.reduce_by or tile.scan_by, of the shape that `left` says, and the axis."""
    what = f"ct.{name}"
    tiles, identities = _given(frame, what, x, identity)
    at = check_axis(axis, tiles[0].ndim, what)
    units = [frame.emit.constant(v, t.dtype).ir for v, t in zip(identities, tiles, strict=True)]
    block = _combiner(frame, what, body, tiles, isinstance(x, tuple))
    shape = left(tiles[0].shape, at)
    types = [tile_type(tile.dtype, shape) for tile in tiles]
    operands = [*(tile.ir for tile in tiles), *units]
    try:
        made = frame.builder.op(f"tile.{name}_by", operands, {"axis": at, **flags}, types, [block])
    except _core.BuildError as error:
        raise from_message(str(error), what) from None
    irs = made if isinstance(made, tuple) else (made,)
    return [Tile(ir, tile.dtype, shape) for ir, tile in zip(irs, tiles, strict=True)], at


def _without(shape: Shape, at: int) -> Shape:
    return (*shape[:at], *shape[at + 1 :])


def reduce_tile(frame: Frame, x: Tile, axis: int, body: Body, identity: Any) -> Tile:
    """A reduction of the language whose step the compiler has no kind for."""
    return _combine(frame, "reduce", x, axis, body, identity, _without)[0][0]


def scan_tile(frame: Frame, x: Tile, axis: int, body: Body, identity: Any, **flags: Any) -> Tile:
    return _combine(frame, "scan", x, axis, body, identity, lambda shape, at: shape, **flags)[0][0]


@op("reduce")
def _reduce_by(frame: Frame, x: Any, axis: Any, func: Any, identity: Any, keepdims: Any) -> Any:
    keep = constant_flag(keepdims, "ct.reduce: keepdims")
    made, at = _combine(frame, "reduce", x, axis, _calling(frame, func), identity, _without)
    if keep:
        made = [frame.emit.reshape(tile, (*tile.shape[:at], 1, *tile.shape[at:])) for tile in made]
    return tuple(made) if isinstance(x, tuple) else made[0]


@op("scan")
def _scan_by(frame: Frame, x: Any, axis: Any, func: Any, identity: Any, reverse: Any) -> Any:
    flags = {"reverse": None} if constant_flag(reverse, "ct.scan: reverse") else {}
    made, _ = _combine(frame, "scan", x, axis, _calling(frame, func), identity, lambda shape, at: shape, **flags)
    return tuple(made) if isinstance(x, tuple) else made[0]
