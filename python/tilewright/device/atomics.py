"""Atomics: accesses that other threads may look at meanwhile.

    device.atomic_ref(bins, i).add(1, 'relaxed', 'device')

`memory` is an order of C++: relaxed, acquire (or consume, which is the same), release, acq_rel or seq_cst. `scope` says
for whom: block, device or system; thread orders nothing. What a method gives is the value before.
"""

from __future__ import annotations

from typing import Any

from .only import device_only

__all__ = ["AtomicInterface", "atomic_ref", "threadfence"]


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


@device_only("atomics")
def atomic_ref(array: Any, index: Any) -> Any:
    """The element array[index] of a global or shared array as an AtomicInterface; the array must outlive it."""


@device_only("atomics")
def threadfence(memory: str = "seq_cst", scope: str = "system") -> None:
    """Order what this thread reads and writes before and behind, as std::atomic_thread_fence does."""
