"""Barriers: what the threads of a block or of the grid wait for."""

from __future__ import annotations

from typing import Any

from ..._optable import BLOCK_VOTE
from ...dtype import DType, bool_, int32
from ...errors import TileUnsupportedFeatureError
from ..frame import Frame
from ..values import Tile
from .predicates import predicate


def syncthreads(frame: Frame) -> None:
    frame.builder.op("tile.sync_threads", [], None, [])


def syncgrid(frame: Frame) -> None:
    if frame.capture.in_tiles:
        raise TileUnsupportedFeatureError(
            "device.syncgrid() waits for all blocks; of a kernel of tiles the compiler chooses which run at a time, so "
            "end the kernel there, and launch a second one"
        )
    frame.builder.op("tile.sync_grid", [], None, [])


def _vote(frame: Frame, name: str, pred: Any, told: DType) -> Tile:
    value = predicate(frame, pred, f"device.{name}")
    return frame.emit.typed(
        "tile.sync_vote", [value.ir], {"kind": BLOCK_VOTE[name.removeprefix("syncthreads_")]}, told, ()
    )


def syncthreads_count(frame: Frame, pred: Any) -> Tile:
    return _vote(frame, "syncthreads_count", pred, int32)


def syncthreads_and(frame: Frame, pred: Any) -> Tile:
    return _vote(frame, "syncthreads_and", pred, bool_)


def syncthreads_or(frame: Frame, pred: Any) -> Tile:
    return _vote(frame, "syncthreads_or", pred, bool_)
