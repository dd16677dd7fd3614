"""Atomics: accesses that other threads may look at meanwhile.

    device.atomic_ref(bins, i).add(1, 'relaxed', 'device')

`memory` is an order of C++: relaxed, acquire (or consume, which is the same), release, acq_rel or seq_cst. `scope` says
for whom: block, device or system; thread orders nothing. What a method gives is the value before.
"""

from __future__ import annotations

import threading
from typing import Any

from ..dtype import as_dtype
from ..errors import TileTypeError
from ..layout import layout_of
from .only import device_only

__all__ = ["Atomic", "AtomicInterface", "atomic_ref", "threadfence"]


class AtomicInterface:
    """A scalar object that is accessed atomically; `dtype` is its data type."""

    dtype: Any

    def load(self, memory: str = "seq_cst", scope: str = "system") -> Any:
        """The value."""
        raise NotImplementedError

    def store(self, val: Any, memory: str = "seq_cst", scope: str = "system") -> None:
        """Set it."""
        raise NotImplementedError

    def exch(self, val: Any, memory: str = "seq_cst", scope: str = "system") -> Any:
        """Set it, and give what it was."""
        raise NotImplementedError

    def cas(self, old: Any, val: Any, memory: str = "seq_cst", scope: str = "system") -> Any:
        """Set it if it has the bits of `old`: -0.0 is not 0.0, and a NaN can be expected."""
        raise NotImplementedError

    def add(self, val: Any, memory: str = "seq_cst", scope: str = "system") -> Any:
        """Add to it; integers wrap around."""
        raise NotImplementedError

    def sub(self, val: Any, memory: str = "seq_cst", scope: str = "system") -> Any:
        """Subtract from it; integers wrap around."""
        raise NotImplementedError

    def and_(self, val: Any, memory: str = "seq_cst", scope: str = "system") -> Any:
        """Keep the bits that `val` has, too."""
        raise NotImplementedError

    def or_(self, val: Any, memory: str = "seq_cst", scope: str = "system") -> Any:
        """Set the bits of `val`."""
        raise NotImplementedError

    def xor(self, val: Any, memory: str = "seq_cst", scope: str = "system") -> Any:
        """Flip the bits of `val`."""
        raise NotImplementedError

    def max(self, val: Any, memory: str = "seq_cst", scope: str = "system") -> Any:
        """The larger; NaN if one of the two is."""
        raise NotImplementedError

    def nanmax(self, val: Any, memory: str = "seq_cst", scope: str = "system") -> Any:
        """The larger; a NaN counts as missing."""
        raise NotImplementedError

    def min(self, val: Any, memory: str = "seq_cst", scope: str = "system") -> Any:
        """The smaller; NaN if one of the two is."""
        raise NotImplementedError

    def nanmin(self, val: Any, memory: str = "seq_cst", scope: str = "system") -> Any:
        """The smaller; a NaN counts as missing."""
        raise NotImplementedError

    def wait(self, old: Any, memory: str = "seq_cst", scope: str = "system") -> None:
        """Wait until it is no longer `old`."""
        raise NotImplementedError

    def notify_one(self) -> None:
        """Wake a thread that waits for it. Threads that wait look for themselves, so there is nothing to do."""
        raise NotImplementedError

    def notify_all(self) -> None:
        """Wake all threads that wait for it."""
        raise NotImplementedError


MOST_BYTES = 16  # of an object


class Atomic(AtomicInterface):
    """An object of `dtype` on the host, which starts as `value`, with the operations of atomics between its threads."""

    def __init__(self, dtype: Any, value: Any = 0) -> None:
        from ..reference import device_atomics  # which needs this module

        if (size := layout_of(dtype).size) > MOST_BYTES:
            raise TileTypeError(f"device.Atomic: an object of {size} bytes; the most is {MOST_BYTES}")
        self.dtype = as_dtype(dtype)
        self._lock = threading.Lock()
        self._object = device_atomics.on_host(self.dtype, value)

    def __getattribute__(self, name: str) -> Any:
        """Operations are those of the object, one at a time."""
        if name.startswith("_") or name not in vars(AtomicInterface):
            return super().__getattribute__(name)
        operation, lock = getattr(self._object, name), self._lock

        def run(*args: Any, **keywords: Any) -> Any:
            with lock:
                found = operation(*args, **keywords)
            return getattr(found, "value", found)

        return run


@device_only("atomics")
def atomic_ref(array: Any, index: Any) -> Any:
    """The element array[index] of a global or shared array as an AtomicInterface; the array must outlive it."""


@device_only("atomics")
def threadfence(memory: str = "seq_cst", scope: str = "system") -> None:
    """Order what this thread reads and writes before and behind, as std::atomic_thread_fence does."""
