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
from ..dtype import int32
from ..errors import TileError
from ..numba import intrinsics as cuda
from .integers import In
from .types import Convert

LANES, _COUNT = 32, 5
_STEPS = (1, 2, 4, 8, 16)
i32, small = In(int32), Convert(int32, "a lane")


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
    return i32.and_(cuda.threadIdx.x, LANES - 1)


def warp_fold(value, there, fold):
    """On lane 0 the values of the first `there` lanes joined from left to right."""
    for step in _STEPS:
        value = _with_above(value, there, small(step), fold)
    return value


def _with_above(value, there, step, fold):
    other = above(value, step)
    if there == LANES or i32.add(lane(), step) < there:  # what other lanes make of it does not matter
        value = fold(value, other)
    return value


def _of_block(value, there, fold):
    """The same of a block's warps, where `there` is an int32: less code, but a few registers more."""
    for step in _STEPS:
        value = _with_next(value, there, small(step), fold)
    return value


def _with_next(value, there, step, fold):
    other = above(value, step)
    if i32.less(i32.add(lane(), step), there):
        value = fold(value, other)
    return value


def warp_folds(values, fold):
    """`warp_fold` of all lanes, of several values at once."""
    for k in range(_COUNT):
        values = _all_with_above(values, i32.shl(1, k), fold)
    return values


def _all_with_above(values, step, fold):
    others = tuple(above(value, step) for value in values)
    return tuple(fold(value, other) for value, other in zip(values, others, strict=True))


def warp_inclusive(value, fold):
    """On each lane the values of lane 0 up to it, joined."""
    for step in _STEPS:
        value = _with_below(value, small(step), fold)
    return value


def _with_below(value, step, fold):
    other = below(value, step)
    if i32.less(i32.sub(step, 1), lane()):
        value = fold(other, value)
    return value


def warp_inclusives(values, fold):
    """The same of several values at once."""
    for step in _STEPS:
        values = _all_with_below(values, small(step), fold)
    return values


def _all_with_below(values, step, fold):
    others = tuple(below(value, step) for value in values)
    if i32.less(lane(), step):
        found = values
    else:
        found = tuple(fold(other, value) for value, other in zip(values, others, strict=True))
    return found


def block_total(shared, value, there, fold):
    """On thread 0 the values of the first `there` threads joined; `shared` has an item for each warp."""
    warp, there = i32.shr(cuda.threadIdx.x, _COUNT), small(there)
    value = _of_block(value, i32.sub(there, i32.shl(warp, _COUNT)), fold)
    if lane() == 0:
        shared[warp] = value
    cuda.syncthreads()
    if warp == 0:
        count = i32.shr(i32.add(there, LANES - 1), _COUNT)
        value = _of_block(shared[i32.min(lane(), i32.max(i32.sub(count, 1), 0))], count, fold)
    return value
