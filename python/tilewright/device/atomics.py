"""Atomics: accesses that other threads may look at meanwhile.

    device.atomic_ref(bins, i).add(1, 'relaxed', 'device')

`memory` is an order of C++: relaxed, acquire (or consume, which is the same), release, acq_rel or seq_cst. `scope` says
for whom: block, device or system; thread orders nothing. What a method gives is the value before.
"""

from __future__ import annotations

import dataclasses
import functools
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from ..dtype import as_dtype
from ..errors import TileTypeError
from ..layout import Layout, check_align, layout_of
from .only import device_only

__all__ = ["Atomic", "AtomicInterface", "atomic_ref", "threadfence"]


def _change(name: str, meaning: str) -> Callable[..., Any]:
    """An operation that gives the value before."""

    def operation(self: Any, val: Any, memory: str = "seq_cst", scope: str = "system") -> Any: ...

    operation.__name__, operation.__qualname__ = name, f"AtomicInterface.{name}"
    operation.__doc__ = meaning
    return abstractmethod(operation)


class AtomicInterface(ABC):
    """A scalar object that is accessed atomically; `dtype` is its data type."""

    dtype: Any

    @abstractmethod
    def load(self, memory: str = "seq_cst", scope: str = "system") -> Any:
        """The value."""

    @abstractmethod
    def store(self, val: Any, memory: str = "seq_cst", scope: str = "system") -> None:
        """Set it."""

    @abstractmethod
    def cas(self, old: Any, val: Any, memory: str = "seq_cst", scope: str = "system") -> Any:
        """Set it if it has the bits of `old`: -0.0 is not 0.0, and a NaN can be expected."""

    exch = _change("exch", "Set it, and give what it was.")
    add = _change("add", "Add to it; integers wrap around.")
    sub = _change("sub", "Subtract from it; integers wrap around.")
    and_ = _change("and_", "Keep the bits that `val` has, too.")
    or_ = _change("or_", "Set the bits of `val`.")
    xor = _change("xor", "Flip the bits of `val`.")
    max = _change("max", "The larger; NaN if one of the two is.")
    nanmax = _change("nanmax", "The larger; a NaN counts as missing.")
    min = _change("min", "The smaller; NaN if one of the two is.")
    nanmin = _change("nanmin", "The smaller; a NaN counts as missing.")

    @abstractmethod
    def wait(self, old: Any, memory: str = "seq_cst", scope: str = "system") -> None:
        """Wait until it is no longer `old`."""

    @abstractmethod
    def notify_one(self) -> None:
        """Wake a thread that waits for it. Threads that wait look for themselves, so there is nothing to do."""

    @abstractmethod
    def notify_all(self) -> None:
        """Wake all threads that wait for it."""


MOST_BYTES = 16  # of an object


def _on_object(name: str) -> Callable[..., Any]:
    """An operation of the object on the host, one at a time."""

    @functools.wraps(getattr(AtomicInterface, name))
    def operation(self: Atomic, *args: Any, **keywords: Any) -> Any:
        with self._lock:
            found = getattr(self._object, name)(*args, **keywords)
        return getattr(found, "value", found)

    operation.__dict__.pop("__isabstractmethod__", None)
    return operation


class Atomic(AtomicInterface):
    """An object of `dtype` on the host, which starts as `value`, with the operations of atomics between its threads.

    As the hint of a field, `line: device.Atomic(int, align=16)`, it makes the field one: `array[i].line.add(1)`.
    """

    def __init__(self, dtype: Any, value: Any = 0, *, align: int = 1) -> None:
        from ..reference import device_atomics  # which needs this module

        check_align(align, "device.Atomic")
        if (size := layout_of(dtype).size) > MOST_BYTES:
            raise TileTypeError(
                f"device.Atomic: an object of {size} bytes; the most is {MOST_BYTES}, so make parts of it atomic"
            )
        self.dtype = as_dtype(dtype)
        self._layout = dataclasses.replace(layout_of(self.dtype), align=max(align, size))
        self._lock = threading.Lock()
        self._object = device_atomics.on_host(self.dtype, value)

    def __tw_layout__(self) -> Layout:
        return self._layout

    load, store, exch, cas = map(_on_object, ("load", "store", "exch", "cas"))
    add, sub, and_, or_, xor = map(_on_object, ("add", "sub", "and_", "or_", "xor"))
    max, nanmax, min, nanmin = map(_on_object, ("max", "nanmax", "min", "nanmin"))
    wait, notify_one, notify_all = map(_on_object, ("wait", "notify_one", "notify_all"))


@device_only("atomics")
def atomic_ref(array: Any, index: Any) -> Any:
    """The element array[index] of a global or shared array as an AtomicInterface; the array must outlive it."""


@device_only("atomics")
def threadfence(memory: str = "seq_cst", scope: str = "system") -> None:
    """Order what this thread reads and writes before and behind, as std::atomic_thread_fence does."""
