"""Device arrays, streams and events of Numba programs, over tilewright.Array: on the CPU where there is no GPU."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from .. import _core, arrays
from ..arrays import Array as DeviceNDArray
from ..arrays import as_array, from_interface

CPU = "cpu"


def _device() -> Any:
    return _current if arrays._has_gpu() else CPU


_current = 0


def select_device(number: int) -> Any:
    """Use this GPU from now on."""
    global _current
    if arrays._has_gpu():
        _core.device_info(number)  # raises if there is none
    _current = number
    return get_current_device()


def to_device(obj: Any, stream: Any = 0, copy: bool = True, to: Any = None) -> DeviceNDArray:
    """A copy on the GPU; `to` is an array there to copy into."""
    if to is None:
        return arrays.to_device(obj, device=_device(), stream=_handle(stream))
    to.copy_to_device(obj, stream=_handle(stream))
    return to


def device_array(shape: Any, dtype: Any = float, strides: Any = None, order: str = "C", stream: Any = 0) -> Any:
    return arrays.empty(shape, dtype, device=_device(), stream=_handle(stream), order=order)


def device_array_like(ary: Any, stream: Any = 0) -> DeviceNDArray:
    return arrays.empty_like(ary, device=_device(), stream=_handle(stream))


def pinned_array(shape: Any, dtype: Any = float, strides: Any = None, order: str = "C") -> Any:
    """An array of the host. Its pages are not pinned: copies are as fast as the driver makes them."""
    import numpy as np

    return np.empty(shape, dtype, "F" if order == "F" else "C")


@contextlib.contextmanager
def pinned(*host: Any) -> Iterator[None]:
    yield


@contextlib.contextmanager
def defer_cleanup() -> Iterator[None]:
    yield


def as_cuda_array(obj: Any, sync: bool = True) -> DeviceNDArray:
    """A view of any object with `__cuda_array_interface__`; it keeps the object alive."""
    return as_array(obj)


def from_cuda_array_interface(desc: Any, owner: Any = None, sync: bool = True) -> DeviceNDArray:
    """A view of what an interface describes; `owner`, if there is one, is kept alive."""
    return from_interface(desc, owner)


def is_cuda_array(obj: Any) -> bool:
    return hasattr(obj, "__cuda_array_interface__") or isinstance(obj, DeviceNDArray)


def _handle(stream: Any) -> Any:
    return None if isinstance(stream, int) and stream == 0 else stream


class Stream:
    """A queue of work on a GPU; on the CPU everything is done when a call returns."""

    def __init__(self, handle: int, device: Any, owned: bool) -> None:
        self.handle, self.device, self._owned = handle, device, owned

    def __cuda_stream__(self) -> tuple[int, int]:
        return (0, self.handle)

    def __int__(self) -> int:
        return self.handle

    def synchronize(self) -> None:
        if self.device != CPU:
            _core.stream_synchronize(self.device, self.handle)

    @contextlib.contextmanager
    def auto_synchronize(self) -> Iterator[Stream]:
        yield self
        self.synchronize()

    def add_callback(self, callback: Any, arg: Any = None) -> None:
        """Calls `callback(stream, status, arg)` when the work so far is done, which this waits for."""
        self.synchronize()
        callback(self, 0, arg)

    def __del__(self) -> None:
        if self._owned and self.device != CPU:
            _core.stream_destroy(self.device, self.handle)


def stream() -> Stream:
    device = _device()
    return Stream(0 if device == CPU else _core.stream_create(device), device, True)


def default_stream() -> Stream:
    return Stream(0, _device(), False)


legacy_default_stream = default_stream


def per_thread_default_stream() -> Stream:
    return Stream(2, _device(), False)


def external_stream(ptr: int) -> Stream:
    return Stream(ptr, _device(), False)


class Event:
    """A point in a stream."""

    def __init__(self, timing: bool = True) -> None:
        self.device = _device()
        self._time = 0.0
        self.handle = 0 if self.device == CPU else _core.event_create(self.device)

    def record(self, stream: Any = 0) -> None:
        if self.device == CPU:
            import time

            self._time = time.perf_counter()
        else:
            _core.event_record(self.device, self.handle, int(stream))

    def query(self) -> bool:
        return self.device == CPU or _core.event_query(self.device, self.handle)

    def synchronize(self) -> None:
        if self.device != CPU:
            _core.event_wait(self.device, self.handle)

    def wait(self, stream: Any = 0) -> None:
        """Has a stream wait for it."""
        if self.device != CPU:
            _core.event_wait(self.device, self.handle, int(stream) or 1)

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds to another event."""
        if self.device == CPU:
            return 1e3 * (end._time - self._time)
        return 1e3 * _core.event_elapsed(self.device, self.handle, end.handle)

    def __del__(self) -> None:
        if self.device != CPU:
            _core.event_destroy(self.device, self.handle)


def event(timing: bool = True) -> Event:
    return Event(timing)


def event_elapsed_time(start: Event, end: Event) -> float:
    return start.elapsed_time(end)


def synchronize() -> None:
    """Waits for everything on the current GPU."""
    if arrays._has_gpu():
        _core.synchronize(_current)


def is_available() -> bool:
    """Whether kernels run: on the CPU they always do."""
    return True


class Device:
    """A GPU, or the CPU in its place."""

    def __init__(self, number: int) -> None:
        self.id = number
        self._info: dict[str, Any] = _core.device_info(number) if arrays._has_gpu() else {}

    @property
    def name(self) -> Any:
        return self._info.get("name", "CPU")

    @property
    def compute_capability(self) -> tuple[int, int]:
        return self._info.get("capability", (0, 0))

    @property
    def MULTIPROCESSOR_COUNT(self) -> int:
        return int(self._info.get("sm_count", _core.cpu_threads()))

    MAX_THREADS_PER_BLOCK, WARP_SIZE = 1024, 32

    def reset(self) -> None:
        synchronize()

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *unused: Any) -> None:
        return


def get_current_device() -> Device:
    return Device(_current)


class _Devices:
    """`cuda.gpus`."""

    def __len__(self) -> int:
        return _core.device_count() if arrays._has_gpu() else 1

    def __getitem__(self, number: int) -> Device:
        if not 0 <= number < len(self):
            raise IndexError(f"there is no device {number}; there are {len(self)}")
        return Device(number)

    def __iter__(self) -> Iterator[Device]:
        return (Device(i) for i in range(len(self)))

    @property
    def current(self) -> Device:
        return get_current_device()


gpus = _Devices()


def list_devices() -> _Devices:
    return gpus


def detect() -> bool:
    """Says which devices there are."""
    for device in gpus:
        print(f"{device.id}: {device.name}, compute capability {device.compute_capability}")
    return True


def close() -> None:
    synchronize()


__all__ = [
    "Device",
    "DeviceNDArray",
    "Event",
    "Stream",
    "as_cuda_array",
    "close",
    "default_stream",
    "defer_cleanup",
    "detect",
    "device_array",
    "device_array_like",
    "event",
    "event_elapsed_time",
    "external_stream",
    "from_cuda_array_interface",
    "get_current_device",
    "gpus",
    "is_available",
    "is_cuda_array",
    "legacy_default_stream",
    "list_devices",
    "per_thread_default_stream",
    "pinned",
    "pinned_array",
    "select_device",
    "stream",
    "synchronize",
    "to_device",
]
