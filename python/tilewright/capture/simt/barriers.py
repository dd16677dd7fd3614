"""Barriers: what the threads of a block wait for."""

from __future__ import annotations

from ..frame import Frame


def sync_threads(frame: Frame) -> None:
    frame.builder.op("tile.sync_threads", [], None, [])
