"""Barriers of a block under `kernel.interpret`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import dtype as dt
from ..errors import LaunchError, TileTypeError
from .device_block import Meeting, State, site
from .numbers import Number


def truth(pred: Any, what: str) -> bool:
    if not callable(pred):
        shown = pred.item() if isinstance(pred, Number) else pred
        raise TileTypeError(
            f"device.{what}: pred is a function without parameters, found {shown!r}; write it as in "
            f"device.{what}(…, lambda: x > 0)"
        )
    return bool(pred())


def _barrier(thread: Any, what: str, value: Any, told: Callable[[Any, dict[int, Any]], Any]) -> Any:
    return thread.block.wait(thread, State.AT_BARRIER, Meeting(what, told, value, site=site()))


def syncthreads(thread: Any) -> None:
    _barrier(thread, "syncthreads", None, lambda _, values: None)


def syncgrid(thread: Any) -> None:
    if tuple(thread.grid_dim) != (1, 1, 1):
        raise LaunchError(
            f"kernel.interpret runs one block at a time, and device.syncgrid() waits for the grid {thread.grid_dim}; "
            "interpret one block, or launch the kernel"
        )
    _barrier(thread, "syncgrid", None, lambda _, values: None)


def syncthreads_count(thread: Any, pred: Any) -> Number:
    found = _barrier(thread, "count", truth(pred, "syncthreads_count"), lambda _, values: sum(values.values()))
    return Number(found, dt.int32)


def syncthreads_and(thread: Any, pred: Any) -> bool:
    return bool(_barrier(thread, "and", truth(pred, "syncthreads_and"), lambda _, values: all(values.values())))


def syncthreads_or(thread: Any, pred: Any) -> bool:
    return bool(_barrier(thread, "or", truth(pred, "syncthreads_or"), lambda _, values: any(values.values())))
