"""What the names of Numba become: positions are int32, places in the grid int64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...dtype import DType, as_dtype, int32, int64
from ...errors import TileError, TileTypeError
from ..frame import Frame
from ..values import Array, Tile, describe
from . import arrays

WARP = 32


def position(frame: Frame, op: str, axis: int) -> Tile:
    return frame.emit.typed(op, [], {"axis": axis}, int32, ())


def _wide(frame: Frame, op: str, axis: int) -> Tile:
    return frame.emit.cast(position(frame, op, axis), int64)


def _grid(frame: Frame, count: int) -> list[Any]:
    binary = frame.emit.binary
    found = []
    for axis in range(count):
        before = binary("mul", _wide(frame, "tile.block_id", axis), _wide(frame, "tile.block_dim", axis))
        found.append(binary("add", _wide(frame, "tile.thread_id", axis), before))
    return found


def _gridsize(frame: Frame, count: int) -> list[Any]:
    pairs = ((_wide(frame, "tile.block_dim", a), _wide(frame, "tile.num_blocks", a)) for a in range(count))
    return [frame.emit.binary("mul", threads, blocks) for threads, blocks in pairs]


def _laneid(frame: Frame) -> Tile:
    binary = frame.emit.binary
    x, y, z = (position(frame, "tile.thread_id", axis) for axis in range(3))
    across, down = (position(frame, "tile.block_dim", axis) for axis in range(2))
    row = binary("add", y, binary("mul", down, z))
    return binary("bitwise_and", binary("add", x, binary("mul", across, row)), WARP - 1)


PLACES: dict[str, Callable[[Frame, int], list[Any]]] = {"grid": _grid, "gridsize": _gridsize}
VALUES: dict[str, Callable[[Frame], Any]] = {"laneid": _laneid, "warpsize": lambda frame: WARP}


def dtype_of(value: Any, what: str) -> DType:
    """A type object, or what NumPy and Python name the same by."""
    try:
        return {float: as_dtype("float64"), int: int64}.get(value) or as_dtype(value)
    except (TileError, TypeError):
        raise TileTypeError(f"{what}: the dtype is a type such as float32, found {describe(value)}") from None


def shared_array(frame: Frame, shape: Any, dtype: Any) -> Array:
    return arrays.shared_array(frame, shape, dtype_of(dtype, "cuda.shared.array"))


__all__ = ["PLACES", "VALUES", "dtype_of", "position", "shared_array"]
