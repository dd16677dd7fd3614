"""Barriers: what the threads of a block wait for."""

from __future__ import annotations

from typing import Any

from ...dtype import DType, bool_, int32
from ..frame import Frame
from ..values import Tile
from .predicates import predicate

_KINDS = {"syncthreads_count": 0, "syncthreads_and": 1, "syncthreads_or": 2}


def syncthreads(frame: Frame) -> None:
    frame.builder.op("tile.sync_threads", [], None, [])


def _vote(frame: Frame, name: str, pred: Any, told: DType) -> Tile:
    value = predicate(frame, pred, f"device.{name}")
    return frame.emit.typed("tile.sync_vote", [value.ir], {"kind": _KINDS[name]}, told, ())


def syncthreads_count(frame: Frame, pred: Any) -> Tile:
    return _vote(frame, "syncthreads_count", pred, int32)


def syncthreads_and(frame: Frame, pred: Any) -> Tile:
    return _vote(frame, "syncthreads_and", pred, bool_)


def syncthreads_or(frame: Frame, pred: Any) -> Tile:
    return _vote(frame, "syncthreads_or", pred, bool_)
