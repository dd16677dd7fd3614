"""Arrays that a kernel makes. Their elements are undefined at first, but for constant ones."""

from __future__ import annotations

from typing import Any

from .only import device_only

__all__ = ["const_array", "dynamic_shared_array", "local_array", "shared_array"]


@device_only("made_arrays")
def shared_array(shape: Any, dtype: Any, order: str = "C", align: Any = None) -> Any:
    """shared_array(shape, dtype): an array that the threads of a block share.

    The shape is constant: an integer or a tuple of integers. Elements lie in row-major order, or by columns with
    order='F'; the first one at a multiple of `align` bytes. Every call in the source is one array.
    """


@device_only("made_arrays")
def local_array(shape: Any, dtype: Any, order: str = "C", align: Any = None) -> Any:
    """local_array(shape, dtype): an array of each thread's own. Its arguments are those of `shared_array`."""


@device_only("made_arrays")
def dynamic_shared_array() -> Any:
    """The bytes of shared memory that the launch adds by `shared=`: a 1-D uint8 array, the same for every call.

    `dynamic_shared_array().view(device.float32)` has them as elements of another dtype.
    """


@device_only("made_arrays")
def const_array(array_like: Any, dtype: Any = None) -> Any:
    """A constant array as a kernel reads it: what NumPy makes of numbers, or of tuples or lists of them."""
