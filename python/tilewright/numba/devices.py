"""Devices and contexts of Numba programs: the GPUs, or the CPU in their place.

A thread has a current device, 0 at first: `with cuda.gpus[1]:` and `cuda.select_device(1)` choose another one. Contexts
are the primary ones, which the runtime makes and keeps.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

from .. import _core, arrays
from ..errors import TileUnsupportedFeatureError

CPU = "cpu"
_chosen = threading.local()
_F = TypeVar("_F", bound=Callable[..., Any])


def _number() -> int:
    return getattr(_chosen, "number", 0)


def current_number() -> Any:
    """Of the current GPU; "cpu" where there is none."""
    return _number() if arrays._has_gpu() else CPU


def select_device(number: int) -> Context:
    """Use this GPU from now on, in this thread."""
    if arrays._has_gpu():
        _core.device_info(number)  # raises if there is none
    _chosen.number = number
    return current_context()


def is_available() -> bool:
    """Whether kernels run: on the CPU they always do."""
    return True


def is_supported_version() -> bool:
    return True


class MemoryInfo(NamedTuple):
    free: int
    total: int


class Device:
    """A GPU, or the CPU in its place."""

    MAX_THREADS_PER_BLOCK, MAX_BLOCK_DIM_X, MAX_BLOCK_DIM_Y, MAX_BLOCK_DIM_Z = 1024, 1024, 1024, 64
    MAX_GRID_DIM_X, MAX_GRID_DIM_Y, MAX_GRID_DIM_Z = 2**31 - 1, 65535, 65535
    WARP_SIZE, UNIFIED_ADDRESSING = 32, 1

    def __init__(self, number: int) -> None:
        self.id = number
        self._info: dict[str, Any] = _core.device_info(number) if arrays._has_gpu() else {}

    @property
    def name(self) -> Any:
        return self._info.get("name", "CPU")

    @property
    def compute_capability(self) -> tuple[int, int]:
        """Of the CPU the least that code is made for."""
        return self._info.get("capability", (8, 0))

    @property
    def MULTIPROCESSOR_COUNT(self) -> int:
        return int(self._info.get("sm_count", _core.cpu_threads()))

    @property
    def MAX_SHARED_MEMORY_PER_BLOCK(self) -> int:
        return int(self._info.get("shared_bytes_per_block", 48 << 10))

    @property
    def CLOCK_RATE(self) -> int:
        """In kHz."""
        return int(self._info.get("clock_khz", 0))

    @property
    def supports_float16(self) -> bool:
        return True

    supports_bfloat16 = supports_float16

    def get_primary_context(self) -> Context:
        return Context(self)

    def reset(self) -> None:
        """Waits for its work: what other libraries have there is theirs."""
        if arrays._has_gpu():
            _core.synchronize(self.id)

    release_primary_context = reset

    def __enter__(self) -> Context:
        """The current device of this thread, until the block ends."""
        before = getattr(_chosen, "before", [])
        _chosen.before = [*before, _number()]
        return select_device(self.id)

    def __exit__(self, *unused: Any) -> None:
        *_chosen.before, _chosen.number = _chosen.before

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"<cuda device {self.id} '{self.name}'>"


class Context:
    """The primary context of a device."""

    def __init__(self, device: Device) -> None:
        self.device = device

    def get_memory_info(self) -> MemoryInfo:
        """Free and total bytes, of the device or of the host."""
        if arrays._has_gpu():
            return MemoryInfo(*_core.memory_info(self.device.id))
        return _memory_of_host()

    def synchronize(self) -> None:
        self.device.reset()

    reset = synchronize

    def push(self) -> None:
        self.device.__enter__()

    def pop(self) -> None:
        self.device.__exit__()

    def create_stream(self) -> Any:
        from .memory import stream

        return stream()

    def create_event(self, timing: bool = True) -> Any:
        from .memory import event

        return event(timing)

    @contextlib.contextmanager
    def defer_cleanup(self) -> Iterator[None]:
        """Freeing never waits here: memory goes back to its pool behind the work that was queued."""
        yield

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Context) and other.device == self.device

    def __hash__(self) -> int:
        return hash(self.device)

    def __repr__(self) -> str:
        return f"<cuda context of {self.device!r}>"


def _memory_of_host() -> MemoryInfo:
    import os

    page = os.sysconf("SC_PAGE_SIZE")
    return MemoryInfo(page * os.sysconf("SC_AVPHYS_PAGES"), page * os.sysconf("SC_PHYS_PAGES"))


def get_current_device() -> Device:
    return Device(_number())


def current_context(devnum: int | None = None) -> Context:
    """That of the current device, or of one by its number."""
    return Context(Device(_number() if devnum is None else devnum))


def require_context(function: _F) -> _F:
    """A decorator of functions that need a context: there always is one."""
    return function


@contextlib.contextmanager
def defer_cleanup() -> Iterator[None]:
    """Freeing never waits here: memory goes back to its pool behind the work that was queued."""
    yield


class _Devices:
    """`cuda.gpus`."""

    def __len__(self) -> int:
        return _core.device_count() if arrays._has_gpu() else 1

    def __getitem__(self, number: Any) -> Any:
        """A device, or those of a slice."""
        if isinstance(number, slice):
            return list(self)[number]
        if not 0 <= number < len(self):
            raise IndexError(f"there is no device {number}; there are {len(self)}")
        return Device(number)

    def __iter__(self) -> Iterator[Device]:
        return (Device(i) for i in range(len(self)))

    @property
    def lst(self) -> list[Device]:
        return list(self)

    @property
    def current(self) -> Device:
        return get_current_device()


gpus = _Devices()


def list_devices() -> _Devices:
    return gpus


def detect() -> bool:
    """Says which devices there are."""
    print(f"Found {len(gpus)} CUDA devices" if arrays._has_gpu() else "Found 0 CUDA devices: kernels run on the CPU")
    for device in gpus:
        print(f"id {device.id}    {device.name}    compute capability {device.compute_capability}    [SUPPORTED]")
    return True


def close() -> None:
    """Waits for the work of all devices, which stay open: other libraries use them, too."""
    for device in gpus:
        device.reset()


def is_float16_supported() -> bool:
    return True


is_bfloat16_supported = is_float16_supported


def is_fp8_supported() -> bool:
    return get_current_device().compute_capability >= (8, 9)


@contextlib.contextmanager
def profiling() -> Iterator[None]:
    """A mark for profilers: TILEWRIGHT_NVTX=1 names the ranges of kernels."""
    yield


def profile_start() -> None:
    """Numba asks the profiler to begin here; run it over the whole program, or by its own options."""


def profile_stop() -> None:
    """The end of it."""


def open_ipc_array(*unused: Any, **more: Any) -> Any:
    raise TileUnsupportedFeatureError(
        "cuda.open_ipc_array: memory of other processes is not opened; share it by torch or CuPy, whose arrays kernels "
        "take"
    )


__all__ = [
    "Context", "Device", "MemoryInfo", "close", "current_context", "defer_cleanup", "detect", "get_current_device",
    "gpus", "is_available", "is_bfloat16_supported", "is_float16_supported", "is_fp8_supported", "is_supported_version",
    "list_devices", "open_ipc_array", "profile_start", "profile_stop", "profiling", "require_context", "select_device",
]  # a table of several in a line  # fmt: skip
