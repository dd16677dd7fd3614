"""Threads: the one that runs under `kernel.interpret`, if any."""

from __future__ import annotations

import threading
from typing import Any

from .numbers import Number, int32

_state = threading.local()


def current() -> Any:
    """The thread of a kernel that this thread of Python runs; None on the host."""
    return getattr(_state, "thread", None)


def enter(thread: Any) -> None:
    """From now on this thread of Python runs `thread`; None: it is the host again."""
    _state.thread = thread


__all__ = ["Number", "current", "enter", "int32"]
