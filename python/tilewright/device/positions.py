"""Where a thread stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import TileError

if TYPE_CHECKING:
    from ..capture.frame import Frame

__all__ = ["block_dim", "block_idx", "grid_dim", "grid_size", "thread_idx", "tid"]


class _Position:
    """`thread_idx` and its like: x, y and z are int32 scalars in a kernel."""

    def __init__(self, name: str, op: str) -> None:
        self._name, self._op = name, op

    def __getattr__(self, name: str) -> Any:
        if name in ("x", "y", "z"):
            raise TileError(f"device.{self._name}.{name} has a value only in a kernel")
        raise AttributeError(name)

    def __tw_attribute__(self, frame: Frame, name: str) -> Any:
        from ..capture.simt import positions

        return positions.position(frame, self._name, self._op, name)


thread_idx = _Position("thread_idx", "tile.thread_id")
block_idx = _Position("block_idx", "tile.block_id")
block_dim = _Position("block_dim", "tile.block_dim")
grid_dim = _Position("grid_dim", "tile.num_blocks")


def tid(ndims):  # tile code
    """Index of the thread in the grid: an int32 for ndims 1, a tuple for 2 and 3."""
    x = thread_idx.x + block_idx.x * block_dim.x
    if ndims == 1:
        return x
    y = thread_idx.y + block_idx.y * block_dim.y
    if ndims == 2:
        return x, y
    return x, y, thread_idx.z + block_idx.z * block_dim.z


def grid_size(ndims):  # tile code
    """Number of threads in the grid along each axis: an int32 for ndims 1, a tuple for 2 and 3."""
    x = block_dim.x * grid_dim.x
    if ndims == 1:
        return x
    y = block_dim.y * grid_dim.y
    if ndims == 2:
        return x, y
    return x, y, block_dim.z * grid_dim.z
