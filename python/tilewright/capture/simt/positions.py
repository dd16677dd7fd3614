"""Positions: where a thread stands in its block, and the block in the grid."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

from ...dtype import int32, uint32
from ..frame import Frame
from ..values import Tile
from .vectors import vector

WARP = 32  # threads of a warp, on every GPU and on the CPU


def _read(frame: Frame, op: str, axis: int) -> Tile:
    return frame.emit.typed(op, [], {"axis": axis}, int32, ())


def _dim3(op: str, frame: Frame) -> Any:
    from ...device.vectors import Dim3  # the classes need this package

    return vector(Dim3, [frame.emit.cast(_read(frame, op, axis), uint32) for axis in range(3)])


def _lane_id(frame: Frame) -> Any:
    """The thread's number in its block, x fastest, within its warp."""
    binary = frame.emit.binary
    x, y, z = (_read(frame, "tile.thread_id", axis) for axis in range(3))
    across, down = (_read(frame, "tile.block_dim", axis) for axis in range(2))
    row = binary("add", y, binary("mul", down, z))
    return binary("bitwise_and", binary("add", x, binary("mul", across, row)), WARP - 1)


def _warp_size(frame: Frame) -> Tile:
    return dataclasses.replace(frame.emit.constant(WARP, int32), known=WARP)


VALUES: dict[str, Callable[[Frame], Any]] = {
    "thread_idx": functools.partial(_dim3, "tile.thread_id"),
    "block_idx": functools.partial(_dim3, "tile.block_id"),
    "block_dim": functools.partial(_dim3, "tile.block_dim"),
    "grid_dim": functools.partial(_dim3, "tile.num_blocks"),
    "lane_id": _lane_id,
    "warp_size": _warp_size,
}


def place_in_grid(frame: Frame, count: int) -> list[Any]:
    binary = frame.emit.binary
    found = []
    for axis in range(count):
        block, threads = _read(frame, "tile.block_id", axis), _read(frame, "tile.block_dim", axis)
        found.append(binary("add", _read(frame, "tile.thread_id", axis), binary("mul", block, threads)))
    return found


def grid_size(frame: Frame, count: int) -> list[Any]:
    rows = [(_read(frame, "tile.block_dim", axis), _read(frame, "tile.num_blocks", axis)) for axis in range(count)]
    return [frame.emit.binary("mul", threads, blocks) for threads, blocks in rows]
