"""Structs with atomics: a fair lock of several blocks; such a struct is used where it is, and never copied."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cuda import device
from tilewright.errors import TileTypeError
from tilewright.layout import layout_of


@device.struct
class TicketMutex:
    line: device.Atomic(int, align=16)
    current: device.Atomic(int, align=16)

    @device.func
    def lock(self):
        my = self.line.add(1)
        while True:
            now = self.current.load()
            if now == my:
                break
            self.current.wait(now)

    @device.func
    def unlock(self):
        self.current.add(1)
        self.current.notify_all()


@device.struct
class Counted:
    name: device.int64
    mutex: TicketMutex
    total: device.Atomic(device.float32)


@device.kernel
def one_by_one(mutexes, count):
    mutexes[1].lock()
    count[0] = count[0] + 1
    mutexes[1].unlock()


@device.kernel
def nested(rows):
    row = rows[device.tid(1) % 2]
    rows[0].name = 3
    row.mutex.line.add(2)
    row.total.add(row.name * 0.5)


@pytest.mark.spec("D-207", "D-208", "D-209")
def test_a_fair_lock(run: Any) -> None:
    """Each thread adds one without an atomic access, one after the other."""
    mutexes, count = np.zeros(2, TicketMutex.dtype), np.zeros(1, np.int32)
    run(one_by_one, mutexes, count, grid=3, block=1)
    assert count[0] == 3 and mutexes[1]["line"] == 3 and mutexes[1]["current"] == 3 and mutexes[0]["line"] == 0


@pytest.mark.spec("D-209")
def test_fields_are_changed_where_they_are(run: Any) -> None:
    rows = np.zeros(2, Counted.dtype)
    rows["name"] = 3, 4
    run(nested, rows, grid=1, block=8)
    assert list(rows["mutex"]["line"]) == [8, 8] and list(rows["total"]) == [6, 8]


@pytest.mark.spec("D-208")
def test_layout() -> None:
    assert layout_of(TicketMutex).fields == (0, 16) and layout_of(TicketMutex).size == 32
    assert layout_of(Counted).fields == (0, 16, 48)


@device.kernel
def copied(mutexes):
    mutexes[0] = mutexes[1]


@device.kernel
def set_plainly(mutexes):
    mutexes[0].line = 3


@device.kernel
def unknown(mutexes):
    mutexes[0].turn.add(1)


@pytest.mark.parametrize(
    "kernel, told",
    [
        (copied, "a TicketMutex holds atomics, and so is not copied"),
        (set_plainly, "the field 'line' of TicketMutex is an atomic; set it by line.store"),
        (unknown, "a TicketMutex has no attribute 'turn'; it has line, current"),
    ],
)
def test_refused(run: Any, kernel: Any, told: str) -> None:
    with pytest.raises(TileTypeError, match=told):
        run(kernel, np.zeros(2, TicketMutex.dtype), grid=1, block=1)


def test_refused_elsewhere() -> None:
    with pytest.raises(TileTypeError, match="a TicketMutex holds atomics, and so is no value: it lives in an array"):
        TicketMutex(1, 2)
