"""`ct.threads` in the reference execution: the function's body in each thread of a block, on copies of the tiles."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import TileTypeError
from .device_block import Block
from .values import Array, Shape, Tile

THREADS = 64  # two warps; the compiler has as many as it likes


def run(function: Any, args: tuple[Any, ...], place: Shape, grid: Shape) -> Any:
    from . import device  # which needs this package
    from .device_arrays import DeviceArray

    inner = getattr(function, "__tw_function__", None)
    if inner is None:
        raise TileTypeError(
            f"ct.threads: expected a @device.func, which each thread of the block calls, found {function!r}"
        )
    tiles = [value for value in args if _is_tile(value)]
    shared = [np.array(tile._data, order="C") for tile in tiles]
    arrays = iter(map(DeviceArray, shared))
    given = [next(arrays) if _is_tile(value) else _argument(value) for value in args]
    body, block = device.runnable(inner), (THREADS, 1, 1)
    (x, y, z), (across, down, deep) = (*place, 0, 0)[:3], (*grid, 1, 1)[:3]
    members = [device.Thread((i, 0, 0), (x, y, z), block, (across, down, deep)) for i in range(THREADS)]
    Block(members).run(lambda: body(*given))
    results = tuple(Tile(data, tile.dtype) for data, tile in zip(shared, tiles, strict=True))
    return results[0] if len(results) == 1 else results or None


def _is_tile(value: Any) -> bool:
    return isinstance(value, Tile) and value.shape != ()


def _argument(value: Any) -> Any:
    from .device_arrays import DeviceArray
    from .numbers import Number

    if isinstance(value, Tile):
        return Number(value._data[()], value.dtype)
    return DeviceArray(value._data) if isinstance(value, Array) else value
