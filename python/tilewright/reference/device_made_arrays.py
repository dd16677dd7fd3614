"""Arrays that a kernel makes, under `kernel.interpret`."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import dtype as dt
from ..errors import TileTypeError, TileValueError
from .device_arrays import DeviceArray
from .device_block import calls

GARBAGE = 0xCB  # what memory holds that nobody has written


def _new(shape: Any, dtype: Any, order: str, align: Any, what: str) -> DeviceArray:
    extents = shape if isinstance(shape, tuple) else (shape,)
    if not extents or any(type(n) is not int for n in extents):
        raise TileTypeError(f"device.{what}: the shape is an integer or a tuple of integers, found {shape!r}")
    if order not in ("C", "F"):
        raise TileValueError(f"device.{what}: order is 'C' or 'F', found {order!r}")
    element = dt.as_dtype(dtype)
    data = np.full(int(np.prod(extents)) * np.dtype(element.numpy).itemsize, GARBAGE, np.uint8)
    return DeviceArray(data.view(element.numpy).reshape(extents, order=order))


def shared_array(thread: Any, shape: Any, dtype: Any, order: str, align: Any) -> DeviceArray:
    """Of a block: the first thread that comes makes it."""
    made = thread.block.arrays
    key = calls()
    if key not in made:
        made[key] = _new(shape, dtype, order, align, "shared_array")
    array: DeviceArray = made[key]
    return array


def local_array(thread: Any, shape: Any, dtype: Any, order: str, align: Any) -> DeviceArray:
    return _new(shape, dtype, order, align, "local_array")


def dynamic_shared_array(thread: Any) -> DeviceArray:
    made = thread.block.arrays
    if "dynamic" not in made:
        made["dynamic"] = DeviceArray(np.full(thread.block.shared_bytes, GARBAGE, np.uint8))
    array: DeviceArray = made["dynamic"]
    return array


def const_array(thread: Any, array_like: Any, dtype: Any) -> DeviceArray:
    data = np.array(array_like)
    if dtype is None and not isinstance(array_like, np.ndarray):
        dtype = {"i": dt.int32, "f": dt.float32}.get(data.dtype.kind)
    element = dt.as_dtype(data.dtype if dtype is None else dtype)
    data = data.astype(element.numpy)
    data.flags.writeable = False
    return DeviceArray(data)
