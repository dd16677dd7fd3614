"""What the lanes of a warp and the warps of a block do together: folds that keep the order, values of any item type.

Lanes and threads that have values come first. A fold of two lanes never has an operand of none: `there` says how many
have one.
"""

# The kernels' values have no types that a checker knows.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, attr-defined"

from __future__ import annotations

import dataclasses
from typing import Any

from ..capture.simt import warps
from ..errors import TileError
from ..numba import intrinsics as cuda

LANES, STEPS = 32, 5


class _Shuffle:
    """In a kernel: a value of another lane, a tuple or struct number by number."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __call__(self, value: Any, lane: Any) -> Any:
        raise TileError("a shuffle of kernels was called on the host")

    def __tw_call__(self, frame: Any, value: Any, lane: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(self.__tw_call__(frame, v, lane) for v in value)
        if not hasattr(type(value), "__tw_tree__"):
            return self.function(frame, -1, value, lane)
        made = object.__new__(type(value))
        for field in dataclasses.fields(value):
            object.__setattr__(made, field.name, self.__tw_call__(frame, getattr(value, field.name), lane))
        return made


of_lane, above, below = _Shuffle(warps.shfl_sync), _Shuffle(warps.shfl_down_sync), _Shuffle(warps.shfl_up_sync)


def lane():
    """Of a block of one axis."""
    return cuda.threadIdx.x & (LANES - 1)


def warp_fold(value, there, fold):
    """On lane 0 the values of the first `there` lanes joined from left to right."""
    for k in range(STEPS):
        step = 1 << k
        other = above(value, step)
        if lane() + step < there:
            value = fold(value, other)
    return value


def warp_inclusive(value, there, fold):
    """On each of the first `there` lanes the values of lane 0 up to it, joined."""
    for k in range(STEPS):
        step = 1 << k
        other = below(value, step)
        if lane() >= step and lane() < there:
            value = fold(other, value)
    return value


def block_total(shared, value, there, fold):
    """On thread 0 the values of the first `there` threads joined; `shared` has an item for each warp."""
    warp = cuda.threadIdx.x // LANES
    value = warp_fold(value, there - warp * LANES, fold)
    if lane() == 0:
        shared[warp] = value
    cuda.syncthreads()
    if warp == 0:
        count = (there + (LANES - 1)) // LANES
        value = warp_fold(shared[min(lane(), max(count - 1, 0))], count, fold)
    return value
