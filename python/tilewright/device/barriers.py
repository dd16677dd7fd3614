"""What the threads of a block wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import TileError

if TYPE_CHECKING:
    from ..capture.frame import Frame

__all__ = ["syncthreads"]


class _SyncThreads:
    """Wait until every thread of the block is here, and see what they wrote to shared and global memory."""

    def __call__(self) -> None:
        raise TileError("device.syncthreads() can only be called in a kernel")

    def __tw_call__(self, frame: Frame) -> None:
        from ..capture.simt import barriers

        barriers.sync_threads(frame)


syncthreads = _SyncThreads()
