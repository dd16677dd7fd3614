"""Arrays of the host that a GPU reaches: pinned, mapped, and managed ones. Where there is no GPU they are NumPy's."""

from __future__ import annotations

import contextlib
import ctypes
import math
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import _core, arrays
from .devices import CPU, current_number


class HostArray(np.ndarray):
    """A NumPy array of pages that a GPU reaches: a launch reads and writes them in their place."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {**self.__array_interface__, "version": 3, "strides": self.strides}


def on_device(host: Any) -> arrays.Array:
    """The same pages as an array of the device, which keeps the NumPy array alive."""
    interface = {**host.__array_interface__, "version": 3, "strides": host.strides}
    return arrays.from_interface(interface, owner=host)


def _bytes(shape: Any, dtype: Any) -> int:
    return int(math.prod(arrays._extents(shape)) * np.dtype(dtype).itemsize)


def _over(address: int, shape: Any, dtype: Any, order: str, free: Any, device: Any) -> Any:
    """A NumPy array over memory that is freed when the last view of it is gone."""
    raw = (ctypes.c_char * max(_bytes(shape, dtype), 1)).from_address(address)
    weakref.finalize(raw, free, device, address)
    return np.ndarray(arrays._extents(shape), dtype, memoryview(raw), order="F" if order == "F" else "C")


def _pinned(shape: Any, dtype: Any, order: str, combined: bool) -> Any:
    device = current_number()
    if device == CPU:
        return np.empty(arrays._extents(shape), dtype, "F" if order == "F" else "C")
    address = _core.host_take(device, _bytes(shape, dtype), combined)
    return _over(address, shape, dtype, order, _core.host_give, device)


def pinned_array(shape: Any, dtype: Any = float, strides: Any = None, order: str = "C") -> Any:
    """A NumPy array whose pages stay in their place, so that copies run beside the host's work."""
    return _pinned(shape, dtype, order, False)


def pinned_array_like(ary: Any) -> Any:
    return pinned_array(ary.shape, ary.dtype, order=arrays.order_like(ary))


@contextlib.contextmanager
def pinned(*arylist: Any) -> Iterator[None]:
    """Keeps the pages of NumPy arrays in their place until the block ends."""
    device = current_number()
    held: list[int] = []
    try:
        for array in arylist if device != CPU else ():
            _core.host_pin(device, array.ctypes.data, array.nbytes)
            held.append(array.ctypes.data)
        yield
    finally:
        for address in held:
            _core.host_unpin(device, address)


@contextlib.contextmanager
def mapped(*arylist: Any, **options: Any) -> Iterator[Any]:
    """NumPy arrays as arrays of the device, without a copy, until the block ends."""
    device = current_number()
    if device == CPU:
        views = [arrays.to_device(a, device=CPU) for a in arylist]
        yield views[0] if len(views) == 1 else views
        for host, view in zip(arylist, views, strict=True):
            view.copy_to_host(host)
        return
    with pinned(*arylist):
        views = [on_device(a) for a in arylist]
        yield views[0] if len(views) == 1 else views
        _core.synchronize(device)


def mapped_array(
    shape: Any, dtype: Any = float, strides: Any = None, order: str = "C", stream: Any = 0, portable: bool = False,
    wc: bool = False,
) -> Any:  # fmt: skip
    """A NumPy array of pinned pages, which a launch on a GPU reads and writes in their place."""
    found = _pinned(shape, dtype, order, wc)
    return found if current_number() == CPU else found.view(HostArray)


def mapped_array_like(ary: Any, stream: Any = 0, portable: bool = False, wc: bool = False) -> Any:
    return mapped_array(ary.shape, ary.dtype, order=arrays.order_like(ary), wc=wc)


def managed_array(
    shape: Any, dtype: Any = float, strides: Any = None, order: str = "C", stream: Any = 0, attach_global: bool = True
) -> Any:
    """A NumPy array of memory whose pages go where they are used."""
    device = current_number()
    if device == CPU:
        return _pinned(shape, dtype, order, False)
    address = _core.managed_take(device, _bytes(shape, dtype))
    return _over(address, shape, dtype, order, _core.memory_free, device).view(HostArray)


__all__ = [
    "managed_array", "mapped", "mapped_array", "mapped_array_like", "pinned", "pinned_array", "pinned_array_like",
]  # a table of several in a line  # fmt: skip
