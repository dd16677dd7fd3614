"""NVTX ranges, on request: TILEWRIGHT_NVTX=1 names each launch and each compilation in a profiler's timeline.

    with named("softmax"): ...      # a range of this thread

What makes the ranges is a library that is there: the package `nvtx`, torch if the program has imported it, or
libnvToolsExt. A range of a launch spans the call on the host; the profiler shows below which the kernel runs.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from . import knobs
from .quiet import quiet


class Library(NamedTuple):
    push: Callable[[str], Any]
    pop: Callable[[], Any]


def _of_package() -> Library:
    import nvtx

    return Library(nvtx.push_range, nvtx.pop_range)


def _of_torch() -> Library:
    ranges = sys.modules["torch"].cuda.nvtx
    return Library(ranges.range_push, ranges.range_pop)


def _of_toolkit() -> Library:
    import ctypes  # seldom needed, and not quick to import

    library = ctypes.CDLL("libnvToolsExt.so.1")
    return Library(lambda name: library.nvtxRangePushA(name.encode()), library.nvtxRangePop)


@functools.cache
def _library() -> Library | None:
    for find in (_of_package, _of_torch, _of_toolkit):
        with contextlib.suppress(ImportError, KeyError, AttributeError, OSError):
            return find()
    told = "no library for it was found; pip install nvtx, import torch, or put libnvToolsExt.so.1 on the library path"
    warnings.warn(f"TILEWRIGHT_NVTX=1: {told}", stacklevel=2)
    return None


@contextlib.contextmanager
def named(name: str) -> Iterator[None]:
    """A range of this thread, if ranges are asked for."""
    library = _library() if knobs.nvtx() else None
    if library is None:
        yield
        return
    library.push(name)
    try:
        yield
    finally:
        library.pop()


def around(launch: Callable[..., None]) -> Callable[..., None]:
    """ct.launch within a range that has the kernel's name."""

    @quiet
    @functools.wraps(launch)
    def ranged(stream: Any, grid: Any, kernel: Any, kernel_args: Any, **keywords: Any) -> None:
        with named(getattr(kernel, "name", "launch")):
            launch(stream, grid, kernel, kernel_args, **keywords)

    return ranged
