"""Positions: where a thread stands in its block, and the block in the grid."""

from __future__ import annotations

from ...dtype import int32
from ...errors import TileTypeError
from ..frame import Frame
from ..values import Tile

_AXES = {"x": 0, "y": 1, "z": 2}


def position(frame: Frame, what: str, op: str, name: str) -> Tile:
    """`thread_idx.x` and its like."""
    if name not in _AXES:
        raise TileTypeError(f"device.{what} has no attribute '{name}'; it has x, y, z")
    return frame.emit.typed(op, [], {"axis": _AXES[name]}, int32, ())
