"""A `@device.func` called on tiles: device code for each of their elements, `tile.map`.

Its parameters are the elements at one place of all tiles, which are broadcast to one shape; numbers and arrays are the
same for all. What it returns is an element of a tile, or of several. A function that writes to arrays returns nothing.
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Iterator
from typing import Any

from ..errors import TileTypeError
from ..shape_rules import broadcast_shapes
from .emit import Emitter
from .frame import Frame
from .inlining import inline
from .parameters import binder_of
from .rules import DEVICE
from .values import Shape, Tile, describe, is_number, tile_type


def is_mapped(frame: Frame, function: Any, args: list[Any], keywords: dict[str, Any]) -> bool:
    """Whether a call is for each element: of a function of threads, on tiles, in tile code."""
    of_threads = getattr(function, "__tw_func__", False) and not frame.capture.rules.simt
    return of_threads and any(_is_tile(v) for v in (*args, *keywords.values()))


def _is_tile(value: Any) -> bool:
    return isinstance(value, Tile) and value.shape != ()


def call(frame: Frame, function: types.FunctionType, args: list[Any], keywords: dict[str, Any], node: Any) -> Any:
    what = f"the @device.func '{function.__name__}'"
    frame.refuse_in_combiner(what, "call it before or behind")
    given = binder_of(function).bind(function.__name__, args, keywords)
    shape: Shape = ()
    for value in given.values():
        if _is_tile(value):
            shape = broadcast_shapes(shape, value.shape, what)
    tiles = {name: frame.emit.broadcast(v, shape) for name, v in given.items() if _is_tile(v)}
    builder = frame.builder
    block = builder.block([tile.dtype.mlir for tile in tiles.values()])
    builder.enter(block)
    elements = {name: Tile(ir, tile.dtype, ()) for ir, (name, tile) in zip(block.args, tiles.items(), strict=True)}
    writes = frame.capture.writes
    with device_rules(frame, what):
        made = inline(frame, function, list({**given, **elements}.values()), {}, node)
        frame.at(node)
        values = [_returned(frame, what, value) for value in _several(made)]
    if values and frame.capture.writes > writes:
        raise TileTypeError(
            f"{what} is called on tiles, has atomic accesses or writes to an array, and returns a value; "
            "write that to an array, too, at the index of the element"
        )
    end_body(frame, [value.ir for value in values])
    results = [tile_type(value.dtype, shape) for value in values]
    found = builder.op("tile.map", [tile.ir for tile in tiles.values()], None, results, [block])
    irs = found if isinstance(found, tuple) else (found,)
    whole = tuple(Tile(ir, value.dtype, shape) for ir, value in zip(irs, values, strict=bool(values)))
    return whole if isinstance(made, tuple) else whole[0] if whole else None


def end_body(frame: Frame, irs: list[Any]) -> None:
    """The end of the block that was entered."""
    frame.builder.op("tile.yield", irs, None, [])
    frame.builder.leave()


@contextlib.contextmanager
def device_rules(frame: Frame, mapped: str = "") -> Iterator[None]:
    """What is captured meanwhile is device code; `mapped`: of an element of tiles."""
    capture = frame.capture
    rules, emit = capture.rules, capture.emit
    capture.rules, capture.emit, capture.mapped = DEVICE, Emitter(capture.builder, DEVICE), mapped
    capture.in_tiles = True
    try:
        yield
    finally:
        capture.rules, capture.emit, capture.mapped, capture.in_tiles = rules, emit, "", False


def _several(made: Any) -> tuple[Any, ...]:
    return () if made is None else made if type(made) is tuple else (made,)


def _returned(frame: Frame, what: str, value: Any) -> Tile:
    if not isinstance(value, Tile) and not is_number(value):
        raise TileTypeError(
            f"{what} is called on tiles, and returns {describe(value)}; "
            "expected a number, a tuple of numbers or nothing"
        )
    return frame.emit.tile(value, what)
