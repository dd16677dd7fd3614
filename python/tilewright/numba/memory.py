"""Device arrays, streams and events of Numba programs, over tilewright.Array: on the CPU where there is no GPU."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from .. import _core, arrays
from ..arrays import Array as DeviceNDArray
from ..arrays import as_array, from_interface
from ..quiet import quiet
from .devices import CPU, current_number


@quiet
def to_device(obj: Any, stream: Any = 0, copy: bool = True, to: Any = None) -> DeviceNDArray:
    """A copy on the GPU; `to` is an array there to copy into."""
    if to is None:
        return arrays.to_device(obj, device=current_number(), stream=_handle(stream))
    to.copy_to_device(obj, stream=_handle(stream))
    return to


@quiet
def device_array(shape: Any, dtype: Any = float, strides: Any = None, order: str = "C", stream: Any = 0) -> Any:
    return arrays.empty(shape, dtype, device=current_number(), stream=_handle(stream), order=order)


def device_array_like(ary: Any, stream: Any = 0) -> DeviceNDArray:
    return arrays.empty_like(ary, device=current_number(), stream=_handle(stream))


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
        """Calls `callback(stream, status, arg)` in a thread of its own when the work so far is done."""
        done = Event(timing=False)
        done.record(self)

        def wait() -> None:
            done.synchronize()
            callback(self, 0, arg)

        threading.Thread(target=wait, daemon=True).start()

    def async_done(self) -> Any:
        """A future of asyncio's loop, which has a result when the work so far is done."""
        import asyncio

        loop = asyncio.get_running_loop()
        future = loop.create_future()

        def tell() -> None:
            if not future.done():
                future.set_result(self)

        self.add_callback(lambda stream, status, arg: loop.call_soon_threadsafe(tell))
        return future

    def __del__(self) -> None:
        if self._owned and self.device != CPU:
            _core.stream_destroy(self.device, self.handle)


def stream() -> Stream:
    device = current_number()
    return Stream(0 if device == CPU else _core.stream_create(device), device, True)


def default_stream() -> Stream:
    return Stream(0, current_number(), False)


legacy_default_stream = default_stream


def per_thread_default_stream() -> Stream:
    return Stream(2, current_number(), False)


def external_stream(ptr: int) -> Stream:
    return Stream(ptr, current_number(), False)


class Event:
    """A point in a stream."""

    def __init__(self, timing: bool = True) -> None:
        self.device = current_number()
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
        _core.synchronize(current_number())


__all__ = [
    "DeviceNDArray",
    "Event",
    "Stream",
    "as_cuda_array",
    "default_stream",
    "device_array",
    "device_array_like",
    "event",
    "event_elapsed_time",
    "external_stream",
    "from_cuda_array_interface",
    "is_cuda_array",
    "legacy_default_stream",
    "per_thread_default_stream",
    "stream",
    "synchronize",
    "to_device",
]
