"""Atomics under `kernel.interpret`: one thread runs at a time, so each access is one by itself, in every order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..capture.simt.atomics import ORDERS, SCOPES, check_dtype, named, unknown
from ..capture.simt.struct_atomics import MOST, check_size
from ..device.atomics import AtomicInterface
from ..errors import TileTypeError
from .device_arrays import DeviceArray
from .device_block import State
from .device_records import RecordArray
from .numbers import Number, as_format


class Atomic(AtomicInterface):
    """An element of an array."""

    def __init__(self, thread: Any, array: DeviceArray, index: Any) -> None:
        self._thread, self._array, self._place = thread, array, array._place(index)
        self.dtype = array.dtype

    def _turn(self) -> None:
        """Others run before what a loop may wait for."""
        self._thread.block.wait(self._thread, State.READY, None)

    def _old(self) -> Any:
        return self._array.data[self._place]

    def _given(self, value: Any) -> Any:
        return as_format(self._array._checked(value), self.dtype)

    def _set(self, value: Any) -> None:
        self._array.data[self._place] = value

    def _change(self, name: str, memory: Any, scope: Any, change: Callable[[Any], Any]) -> Number:
        check_dtype(name, self.dtype)
        _check(name, memory, scope)
        old = self._old().copy()
        with np.errstate(all="ignore"):
            self._set(change(old))
        return Number(old, self.dtype)

    def load(self, memory: str = "seq_cst", scope: str = "system") -> Any:
        check_dtype("load", self.dtype)
        _check("load", memory, scope)
        self._turn()
        return Number(self._old().copy(), self.dtype)

    def store(self, val: Any, memory: str = "seq_cst", scope: str = "system") -> None:
        check_dtype("store", self.dtype)
        _check("store", memory, scope)
        self._set(self._given(val))

    def exch(self, val: Any, memory: str = "seq_cst", scope: str = "system") -> Any:
        self._turn()
        return self._change("exch", memory, scope, lambda old: self._given(val))

    def cas(self, old: Any, val: Any, memory: str = "seq_cst", scope: str = "system") -> Any:
        self._turn()
        expected, wanted = np.asarray(self._given(old)), self._given(val)
        return self._change(
            "cas", memory, scope, lambda found: wanted if found.tobytes() == expected.tobytes() else found
        )

    def add(self, val: Any, memory: str = "seq_cst", scope: str = "system") -> Any:
        return self._change("add", memory, scope, lambda old: old + self._given(val))

    def sub(self, val: Any, memory: str = "seq_cst", scope: str = "system") -> Any:
        return self._change("sub", memory, scope, lambda old: old - self._given(val))

    def and_(self, val: Any, memory: str = "seq_cst", scope: str = "system") -> Any:
        return self._change("and_", memory, scope, lambda old: old & self._given(val))

    def or_(self, val: Any, memory: str = "seq_cst", scope: str = "system") -> Any:
        return self._change("or_", memory, scope, lambda old: old | self._given(val))

    def xor(self, val: Any, memory: str = "seq_cst", scope: str = "system") -> Any:
        return self._change("xor", memory, scope, lambda old: old ^ self._given(val))

    def max(self, val: Any, memory: str = "seq_cst", scope: str = "system") -> Any:
        return self._change("max", memory, scope, lambda old: np.maximum(old, self._given(val)))

    def nanmax(self, val: Any, memory: str = "seq_cst", scope: str = "system") -> Any:
        return self._change("nanmax", memory, scope, lambda old: np.fmax(old, self._given(val)))

    def min(self, val: Any, memory: str = "seq_cst", scope: str = "system") -> Any:
        return self._change("min", memory, scope, lambda old: np.minimum(old, self._given(val)))

    def nanmin(self, val: Any, memory: str = "seq_cst", scope: str = "system") -> Any:
        return self._change("nanmin", memory, scope, lambda old: np.fmin(old, self._given(val)))

    def wait(self, old: Any, memory: str = "seq_cst", scope: str = "system") -> None:
        while self.load(memory, scope) == old:
            pass

    def notify_one(self) -> None:
        pass

    def notify_all(self) -> None:
        pass


def _check(name: str, memory: Any, scope: Any) -> None:
    named(memory, ORDERS, f"{name}: memory")
    named(scope, SCOPES, f"{name}: scope")


class _Host:
    """Stands for the thread of an object that no kernel has: nobody need have a turn."""

    @property
    def block(self) -> _Host:
        return self

    def wait(self, *_: Any) -> None:
        pass


def on_host(dtype: Any, value: Any) -> Atomic:
    found = Atomic(_Host(), DeviceArray(np.zeros(1, dtype.numpy)), 0)
    found.store(value)
    return found


class StructAtomic:
    """An element of an array of structs, of which the bits count: it is read, set and compared."""

    def __init__(self, thread: Any, array: RecordArray, index: Any) -> None:
        self._thread, self._array, self._index = thread, array, index
        self.dtype: Any = array.dtype

    def __getattr__(self, name: str) -> Any:
        raise unknown(f" {self.dtype.__name__}", name, MOST)

    def _change(self, name: str, new: Any, memory: Any, scope: Any, expected: Any = None) -> Any:
        check_size(self.dtype, name)
        _check(name, memory, scope)
        if name != "store":
            self._thread.block.wait(self._thread, State.READY, None)
        old = self._array[self._index]
        if new is not None and (expected is None or _bits(old) == _bits(expected)):
            self._array[self._index] = new
        return old

    def load(self, memory: str = "seq_cst", scope: str = "system") -> Any:
        return self._change("load", None, memory, scope)

    def store(self, val: Any, memory: str = "seq_cst", scope: str = "system") -> None:
        self._change("store", val, memory, scope)

    def exch(self, val: Any, memory: str = "seq_cst", scope: str = "system") -> Any:
        return self._change("exch", val, memory, scope)

    def cas(self, old: Any, val: Any, memory: str = "seq_cst", scope: str = "system") -> Any:
        return self._change("cas", val, memory, scope, old)


def _bits(value: Any) -> Any:
    if isinstance(value, Number):
        return value.value.tobytes()
    if isinstance(value, tuple):
        return tuple(map(_bits, value))
    fields = getattr(type(value), "__dataclass_fields__", None)
    return tuple(_bits(getattr(value, name)) for name in fields) if fields else np.float64(value).tobytes()


def atomic_ref(thread: Any, array: Any, index: Any) -> Atomic | StructAtomic:
    if isinstance(array, RecordArray):
        return StructAtomic(thread, array, index)
    if not isinstance(array, DeviceArray):
        raise TileTypeError(f"device.atomic_ref takes an array and an index, found {array!r}")
    return Atomic(thread, array, index)


def threadfence(thread: Any, memory: Any, scope: Any) -> None:
    _check("device.threadfence", memory, scope)
