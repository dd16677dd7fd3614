"""Arrays: read and written by index, which is tile.gather and tile.scatter of one element."""

from __future__ import annotations

from typing import Any

from ...dtype import DType
from ...errors import TileTypeError, TileValueError
from .. import memory
from ..frame import Frame
from ..values import Array, Tile, describe

SHARED = -1  # the `position` of an array that is no parameter


def shared_array(frame: Frame, shape: Any, dtype: Any) -> Array:
    """An array that the threads of a block share."""
    extents = shape if isinstance(shape, tuple) else (shape,)
    for extent in extents:
        if type(extent) is not int or extent <= 0:
            raise TileValueError(
                f"device.shared_array: the shape must be constant and positive, found {describe(shape)}"
            )
    if not isinstance(dtype, DType):
        raise TileTypeError(f"device.shared_array: expected a dtype such as device.float32, found {describe(dtype)}")
    text = f"memref<{'x'.join(map(str, extents))}x{dtype.mlir}, 3>"
    value = frame.builder.op("tile.shared_array", [], None, [text])
    return Array(value, dtype, len(extents), "shared array", SHARED)


def read(frame: Frame, array: Array, index: Any) -> Tile:
    """`array[index]`: the element, without a check of its bounds."""
    return memory.read_element(frame, array, _indices(array, index))


def write(frame: Frame, array: Array, index: Any, value: Any) -> None:
    """`array[index] = value`."""
    memory.write_element(frame, array, _indices(array, index), value)


def _indices(array: Array, index: Any) -> tuple[Any, ...]:
    indices = index if isinstance(index, tuple) else (index,)
    if len(indices) != array.ndim or any(isinstance(i, slice) for i in indices):
        raise TileTypeError(
            f"{describe(array)} is indexed by {array.ndim} integers, one an axis, found {len(indices)} entries; "
            "slices of arrays are not supported"
        )
    return indices
