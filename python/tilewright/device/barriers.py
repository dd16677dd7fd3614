"""What the threads of a block or of the grid wait for: every one of them comes, but for those that have ended."""

from __future__ import annotations

from typing import Any

from .only import device_only

__all__ = ["syncgrid", "syncthreads", "syncthreads_and", "syncthreads_count", "syncthreads_or"]


@device_only("barriers")
def syncthreads() -> None:
    """Wait until every thread of the block is here, and see what they wrote to shared and global memory."""


@device_only("barriers")
def syncgrid() -> None:
    """Wait until every thread of the grid is here, and see what they wrote to arrays. All blocks run at a time then: a
    launch of more than the device can run is refused."""


@device_only("barriers")
def syncthreads_count(pred: Any) -> Any:
    """The same, and how many of them have `pred()` true: an int32."""


@device_only("barriers")
def syncthreads_and(pred: Any) -> Any:
    """The same, and whether `pred()` is true on all of them."""


@device_only("barriers")
def syncthreads_or(pred: Any) -> Any:
    """The same, and whether `pred()` is true on any of them."""
