"""Folds of segments on a GPU: a few lanes fold a short one, a block a long one.

How many lanes follows from the mean length, as far as the launch knows it; what is far longer than that its block folds
behind the others. Items are always joined from left to right.
"""

# The kernels' values have no types that a checker knows.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, attr-defined, assignment"

from __future__ import annotations

from typing import Any

from ..dtype import int32
from ..numba import intrinsics as cuda
from .types import Convert, ItemType, Shared, Zero
from .warps import LANES, above, lane, warp_fold, warp_folds

THREADS = 256
_LONG = 32  # turns that lanes take of a segment; a longer one is its block's


def lanes_for(mean: int, width: int) -> int:
    """As a power of two: lanes that fold a segment."""
    lanes = 0
    while 1 << lanes < LANES and (width << lanes) < mean:
        lanes += 1
    return lanes


def is_long(mean: int, width: int) -> bool:
    return mean > width * LANES * _LONG


_WARPS = THREADS // LANES


def _of_thread(read: Any, fold: Any, t: ItemType, width: int):
    """A function for kernels: what a thread has of a piece, `width` items side by side at most."""
    convert, zero, side_by_side = Convert(t, "segmented_reduce: 'd_in'"), Zero(t), tuple(range(width))

    def run(inputs, arrays, first, last):
        value = zero()
        if first + width <= last:
            items = tuple(convert(read(inputs[0], first + j)) for j in side_by_side)
            value = items[0]
            for item in items[1:]:
                value = fold(arrays, value, item)
        elif first < last:
            value = convert(read(inputs[0], first))
            for i in range(first + 1, last):
                value = fold(arrays, value, convert(read(inputs[0], i)))
        return value

    return run


def _short_one(run: Any, fold: Any, width: int):
    """A function for kernels: `joined`, on lane 0 of a group, with a segment of its own; all groups of the warp at
    once."""

    def group_fold(arrays, value, own, there, steps):
        """On lane 0 of a group the values of its first `there` lanes, joined."""
        for k in range(steps):
            other = above(value, 1 << k)
            if own + (1 << k) < there:
                value = fold(arrays, value, other)
        return value

    def short_one(inputs, arrays, joined, first, last, steps):
        own = lane() & ((1 << steps) - 1)
        piece = width << steps
        while cuda.any_sync(-1, first < last):
            mine = first + own * width
            value = run(inputs, arrays, mine, min(mine + width, last))
            there = (last - first + (width - 1)) // width
            value = group_fold(arrays, value, own, there, steps)
            if first < last:
                joined = fold(arrays, joined, value)
            first = first + piece
        return joined

    return short_one


def _of_warp(run: Any, read: Any, fold: Any, t: ItemType, width: int):
    """A function for kernels: on lane 0, the items of a range that is not empty."""
    convert, zero, pair = Convert(t, "segmented_reduce: 'd_in'"), Zero(t), tuple(range(2 * width))

    def whole_rows(inputs, arrays, at):
        """Two rows of a warp."""
        items = tuple(convert(read(inputs[0], at + (j // width * (width * LANES) + j % width))) for j in pair)
        upper, lower = items[0], items[width]
        for item in items[1:width]:
            upper = fold(arrays, upper, item)
        for item in items[width + 1 :]:
            lower = fold(arrays, lower, item)
        join = lambda a, b: fold(arrays, a, b)  # noqa: E731
        upper, lower = warp_folds((upper, lower), join)
        return fold(arrays, upper, lower)

    def left_over(inputs, arrays, value, there, at, last):
        for row in range(at, last, width * LANES):
            mine = row + lane() * width
            here = run(inputs, arrays, mine, min(mine + width, last))
            here = warp_fold(here, (last - row + (width - 1)) // width, lambda a, b: fold(arrays, a, b))
            value = fold(arrays, value, here) if there else here
            there = True
        return value

    def of_warp(inputs, arrays, first, last):
        rows, value = 2 * width * LANES, zero()
        for k in range((last - first + (rows - 1)) // rows):
            at = first + k * rows
            if at + rows <= last:
                here = whole_rows(inputs, arrays, at + lane() * width)
                value = fold(arrays, value, here) if k > 0 else here
            else:
                value = left_over(inputs, arrays, value, k > 0, at, last)
        return value

    return of_warp


def _long_one(of_warp: Any, fold: Any, t: ItemType, width: int):
    """A function for kernels, all threads: `joined`, on thread 0, with the items of a segment."""
    zero = Zero(t)

    def long_one(inputs, arrays, shared, joined, first, last):
        warp, rows = cuda.threadIdx.x // LANES, 2 * width * LANES
        each = (last - first + (rows * _WARPS - 1)) // (rows * _WARPS) * rows
        start = first + warp * each
        value = zero()
        if start < last:
            value = of_warp(inputs, arrays, start, min(start + each, last))
        if lane() == 0:
            shared[warp] = value
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            w, at = 0, first
            while at < last:
                joined, w, at = fold(arrays, joined, shared[w]), w + 1, at + each
        cuda.syncthreads()
        return joined

    return long_one


def by_lanes(readers: Any, write: Any, fold: Any, t: ItemType, width: int):
    """A function of a kernel."""
    _, start_of, end_of = readers
    convert = Convert(t, "segmented_reduce: 'd_in'")
    run = _of_thread(readers[0], fold, t, width)
    short_one = _short_one(run, fold, width)
    long_one, shared_totals = _long_one(_of_warp(run, readers[0], fold, t, width), fold, t, width), Shared(t, _WARPS)
    shared_list, shared_number = Shared(int32, THREADS), Shared(int32, 1)

    def fold_segments(inputs, out, arrays, count, initial, steps, per):
        """Block b has the segments from b * per on, at most as many as it has groups of lanes."""
        long_ones, number, me = shared_list(), shared_number(), cuda.threadIdx.x
        if me == 0:
            number[0] = 0
        cuda.syncthreads()
        base = cuda.blockIdx.x * per
        s = base + (me >> steps)
        is_mine = s < count and (me >> steps) < per
        first, last = 0, 0
        if is_mine:
            first, last = 0 + start_of(inputs[1], s), 0 + end_of(inputs[2], s)
        if last - first > ((width * _LONG) << steps):
            if me & ((1 << steps) - 1) == 0:
                long_ones[cuda.atomic.add(number, 0, 1)] = me >> steps
            is_mine, last = False, first
        joined = short_one(inputs, arrays, convert(initial), first, last, steps)
        if is_mine and me & ((1 << steps) - 1) == 0:
            write(out, s, joined)
        cuda.syncthreads()
        for k in range(number[0]):
            at = base + long_ones[k]
            begin, end = 0 + start_of(inputs[1], at), 0 + end_of(inputs[2], at)
            joined = long_one(inputs, arrays, shared_totals(), convert(initial), begin, end)
            if me == 0:
                write(out, at, joined)

    return fold_segments
