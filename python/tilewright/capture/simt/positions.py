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


_OPS = {
    "thread_idx": "tile.thread_id",
    "block_idx": "tile.block_id",
    "block_dim": "tile.block_dim",
    "grid_dim": "tile.num_blocks",
}


def read(frame: Frame, name: str, axis: int) -> Tile:
    """As an int32."""
    place = frame.emit.typed(_OPS[name], [], {"axis": axis}, int32, ())
    return dataclasses.replace(place, least=1 if name.endswith("_dim") else 0)


def _dim3(name: str, frame: Frame) -> Any:
    from ...device.vectors import Dim3  # the classes need this package

    return vector(Dim3, [frame.emit.cast(read(frame, name, axis), uint32) for axis in range(3)])


def _lane_id(frame: Frame) -> Any:
    """The thread's number in its block, x fastest, within its warp."""
    binary = frame.emit.binary
    x, y, z = (read(frame, "thread_idx", axis) for axis in range(3))
    across, down = (read(frame, "block_dim", axis) for axis in range(2))
    row = binary("add", y, binary("mul", down, z))
    return binary("bitwise_and", binary("add", x, binary("mul", across, row)), WARP - 1)


def _warp_size(frame: Frame) -> Tile:
    return dataclasses.replace(frame.emit.constant(WARP, int32), known=WARP)


VALUES: dict[str, Callable[[Frame], Any]] = {
    **{name: functools.partial(_dim3, name) for name in _OPS},
    "lane_id": _lane_id,
    "warp_size": _warp_size,
}


def place_in_grid(frame: Frame, count: int) -> list[Any]:
    binary = frame.emit.binary
    found = []
    for axis in range(count):
        block, threads = read(frame, "block_idx", axis), read(frame, "block_dim", axis)
        found.append(binary("add", read(frame, "thread_idx", axis), binary("mul", block, threads)))
    return found


def grid_size(frame: Frame, count: int) -> list[Any]:
    rows = [(read(frame, "block_dim", axis), read(frame, "grid_dim", axis)) for axis in range(count)]
    return [frame.emit.binary("mul", threads, blocks) for threads, blocks in rows]
