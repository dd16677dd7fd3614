"""The place of a block in the grid."""

from __future__ import annotations

import dataclasses
from typing import Any

from ..dtype import int32
from ..errors import TileValueError
from .checks import static_int
from .frame import Frame
from .table import op
from .values import Tile


def _grid_axis(value: Any, what: str) -> int:
    axis = static_int(value, f"{what}: axis")
    if not 0 <= axis <= 2:
        raise TileValueError(f"{what}: axis is 0, 1 or 2, found {axis}")
    return axis


@op("bid")
def _bid(frame: Frame, axis: Any) -> Tile:
    return frame.emit.typed("tile.block_id", [], {"axis": _grid_axis(axis, "ct.bid")}, int32, ())


@op("num_blocks")
def _num_blocks(frame: Frame, axis: Any) -> Tile:
    attributes = {"axis": _grid_axis(axis, "ct.num_blocks")}
    return dataclasses.replace(frame.emit.typed("tile.num_blocks", [], attributes, int32, ()), least=1)
