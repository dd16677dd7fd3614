"""The skeleton of what goes by running totals: scans, select, partition, unique.

Two ways, which give the same:

    ranges         each block folds a range of items; one thread makes running totals of what they found; each block
                   goes over its range again, from its total on
    single pass    a block takes the next tile by a counter, folds it, and looks back: a tile before it has published
                   what its items make, or what all items up to its end make. Blocks with lower numbers have started,
                   so that waiting for them ends

The CPU goes by ranges. A GPU goes by ranges where the result would depend on who looked when: sums of floats, unless
the caller leaves that open. `item` is called once an item, `again` when it is needed a second time.
"""

# The kernels' values have no types that a checker knows.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, attr-defined"

from __future__ import annotations

import dataclasses
from typing import Any

from ..capture.simt import atomics
from ..dtype import DType, int32
from ..errors import TileError
from ..numba import intrinsics as cuda
from .blocks import block_inclusive
from .launching import ComputeKernel, Launch, Part
from .plans import Shape
from .types import ItemType, Shared, Zero, is_complex, parts_of


@dataclasses.dataclass(frozen=True)
class Scanned:
    """What is scanned, as functions that kernels inline. `states` is whatever the launches are given."""

    type: ItemType
    fold: Any  # (states, left, right)
    item: Any  # (states, i): the value of item i
    again: Any  # the same, a second time
    emit: Any  # (states, i, before, after): totals without and with item i
    first: Any = None  # (states): what all totals begin with
    done: Any = None  # (states, total)


def is_exact(t: ItemType) -> bool:
    """Whether folds in other groups give the same: there are no floats in it."""
    if isinstance(t, DType):
        return not t.is_float
    return not is_complex(t) and all(map(is_exact, parts_of(t)))


class Scanner:
    """The kernels for a `Scanned`, their storage and their launches."""

    def __init__(self, scanned: Scanned, shape: Shape, single_pass: bool) -> None:
        self.type, self.shape, self.single_pass = scanned.type, shape, single_pass
        self.has_done = scanned.done is not None
        if single_pass:
            self.clear, self.one_pass = _clear(shape), _one_pass(scanned, shape)
        else:
            self.sums, self.apply = _sums(scanned, shape), _apply(scanned, shape)
        self.totals = _totals(scanned)

    def parts(self, n: int) -> list[Part]:
        if not self.single_pass:
            return [Part(self.type, self.shape.blocks(n))]
        tiles = self.shape.tiles(n)
        return [Part(self.type, tiles), Part(self.type, tiles), Part(int32, tiles + 1)]

    def launches(self, states: tuple[Any, ...], n: int, temporary: list[Any]) -> list[Launch]:
        import numpy as np

        shape, count = self.shape, np.int64(n)
        if n == 0:
            return [Launch(self.totals, (states, np.int64(0), temporary[0]), 1, 1)] if self.has_done else []
        if self.single_pass:
            tiles = shape.tiles(n)
            clear = Launch(self.clear, (temporary[2], np.int64(tiles + 1)), shape.blocks(tiles + 1), shape.threads)
            return [clear, Launch(self.one_pass, (states, count, *temporary), tiles, shape.threads)]
        blocks, per = shape.blocks(n), np.int64(shape.per_block(n))
        return [
            Launch(self.sums, (states, count, per, *temporary), blocks, shape.threads),
            Launch(self.totals, (states, np.int64(blocks), *temporary), 1, 1),
            Launch(self.apply, (states, count, per, *temporary), blocks, shape.threads),
        ]

    def every_launch(self, states: tuple[Any, ...], n: int, temporary: list[Any]) -> list[Launch]:
        """Those of some items and of none, to be compiled."""
        return [*self.launches(states, n, temporary), *self.launches(states, 0, temporary)]


# --- the tile of a block ----------------------------------------------------------------------------------------


def _thread_fold(scanned: Scanned):
    def thread_fold(states, first, last, value):
        """The items of a thread joined; `value` if there are none."""
        if first < last:
            value = scanned_item(states, first)
            for i in range(first + 1, last):
                value = fold(states, value, scanned_item(states, i))
        return value

    scanned_item, fold = scanned.item, scanned.fold
    return thread_fold


def _thread_emit(scanned: Scanned, zero: Zero):
    again, fold, emit = scanned.again, scanned.fold, scanned.emit

    def thread_emit(states, shared, me, first, last, prefix, has_prefix):
        """Totals of the items of a thread, from what the threads before it have in `shared`."""
        before, there = prefix, has_prefix
        if me > 0 and first < last:
            before = fold(states, prefix, shared[me - 1]) if has_prefix else shared[me - 1]
            there = True
        for i in range(first, last):
            value = again(states, i)
            after = fold(states, before, value) if there else value
            emit(states, i, before, after)
            before, there = after, True

    return thread_emit


# --- by ranges --------------------------------------------------------------------------------------------------


def _sums(scanned: Scanned, shape: Shape) -> ComputeKernel:
    threads, items, fold = shape.threads, shape.items, scanned.fold
    shared_array, zero, thread_fold = Shared(scanned.type, threads), Zero(scanned.type), _thread_fold(scanned)

    def sums(states, n, per, partial):
        shared = shared_array()
        me = cuda.threadIdx.x
        start = cuda.blockIdx.x * per
        stop = min(start + per, n)
        joined = zero()
        for at in range(start, stop, threads * items):
            first = at + me * items
            value = thread_fold(states, first, min(first + items, stop), zero())
            there = min((stop - at + items - 1) // items, threads)
            block_inclusive(shared, me, there, value, lambda a, b: fold(states, a, b))
            joined = fold(states, joined, shared[there - 1]) if at > start else shared[there - 1]
            cuda.syncthreads()
        if me == 0:
            partial[cuda.blockIdx.x] = joined

    return ComputeKernel(sums)


def _totals(scanned: Scanned) -> ComputeKernel:
    """One thread: partial[b] becomes the total before range b."""
    fold, first, done, zero = scanned.fold, scanned.first, scanned.done, Zero(scanned.type)
    has_first, has_done = first is not None, done is not None

    def totals(states, count, partial):
        running = first(states) if has_first else zero()
        there = has_first
        for b in range(count):
            value = partial[b]
            partial[b] = running
            running = fold(states, running, value) if there else value
            there = True
        if has_done:
            done(states, running)

    return ComputeKernel(totals)


def _apply(scanned: Scanned, shape: Shape) -> ComputeKernel:
    threads, items, fold, again = shape.threads, shape.items, scanned.fold, scanned.again
    has_first = scanned.first is not None
    shared_array, zero = Shared(scanned.type, threads), Zero(scanned.type)
    thread_emit = _thread_emit(scanned, zero)
    thread_fold = _thread_fold(dataclasses.replace(scanned, item=again))

    def apply(states, n, per, partial):
        shared = shared_array()
        me = cuda.threadIdx.x
        start = cuda.blockIdx.x * per
        stop = min(start + per, n)
        prefix = partial[cuda.blockIdx.x]
        there_is = has_first or cuda.blockIdx.x > 0
        for at in range(start, stop, threads * items):
            first = at + me * items
            last = min(first + items, stop)
            there = min((stop - at + items - 1) // items, threads)
            if threads > 1:
                value = thread_fold(states, first, last, zero())
                block_inclusive(shared, me, there, value, lambda a, b: fold(states, a, b))
            thread_emit(states, shared, me, first, last, prefix, there_is)
            if threads > 1:
                total = shared[there - 1]
                prefix = fold(states, prefix, total) if there_is else total
                there_is = True
                cuda.syncthreads()

    def apply_alone(states, n, per, partial):
        """The same for one thread, which needs no total of its tile."""
        start = cuda.blockIdx.x * per
        before = partial[cuda.blockIdx.x]
        there = has_first or cuda.blockIdx.x > 0
        for i in range(start, min(start + per, n)):
            value = again(states, i)
            after = fold(states, before, value) if there else value
            emit(states, i, before, after)
            before = after
            there = True

    emit = scanned.emit
    return ComputeKernel(apply if threads > 1 else apply_alone)


# --- in a single pass -------------------------------------------------------------------------------------------

_NOTHING, _PARTIAL, _INCLUSIVE = 0, 1, 2  # what a tile has published


class _Access:
    """In a kernel: an atomic access of a flag, as far as the device."""

    def __init__(self, method: str, order: str) -> None:
        self.method, self.order = method, order

    def __call__(self, array: Any, index: Any, value: Any = None) -> Any:
        raise TileError("an atomic access of kernels was called on the host")

    def __tw_call__(self, frame: Any, array: Any, index: Any, value: Any = None) -> Any:
        run: Any = atomics.METHODS[self.method]
        ref = atomics.atomic_ref(frame, array, index)
        return run(frame, ref, *(() if value is None else (value,)), self.order, "device")


_look, _publish, _take = _Access("load", "acquire"), _Access("store", "release"), _Access("add", "relaxed")


def _clear(shape: Shape) -> ComputeKernel:
    def clear(flags, count):
        i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        for k in range(i, count, cuda.gridDim.x * cuda.blockDim.x):
            flags[k] = 0

    return ComputeKernel(clear)


def _look_back(fold, zero: Zero):
    def look_back(states, tile, partial, inclusive, flags):
        """The total of all tiles before this one, of which there is one at least."""
        at = tile - 1
        flag = _look(flags, at)
        while flag == _NOTHING:
            flag = _look(flags, at)
        found = partial[at] if flag == _PARTIAL else inclusive[at]
        going = flag == _PARTIAL
        while going:
            at = at - 1
            flag = _look(flags, at)
            while flag == _NOTHING:
                flag = _look(flags, at)
            value = partial[at] if flag == _PARTIAL else inclusive[at]
            found = fold(states, value, found)
            going = flag == _PARTIAL
        return found

    return look_back


def _one_pass(scanned: Scanned, shape: Shape) -> ComputeKernel:
    threads, items, fold, done, start = shape.threads, shape.items, scanned.fold, scanned.done, scanned.first
    has_first, has_done = start is not None, done is not None
    zero = Zero(scanned.type)
    shared_array, one, shared_number = Shared(scanned.type, threads), Shared(scanned.type, 1), Shared(int32, 1)
    thread_fold, thread_emit, look_back = _thread_fold(scanned), _thread_emit(scanned, zero), _look_back(fold, zero)

    def one_pass(states, n, partial, inclusive, flags):
        shared, before_all, number = shared_array(), one(), shared_number()
        me, tiles = cuda.threadIdx.x, cuda.gridDim.x
        if me == 0:
            number[0] = _take(flags, tiles, 1)
        cuda.syncthreads()
        tile = number[0]
        at = tile * threads * items
        first = at + me * items
        last = min(first + items, n)
        there = min((n - at + items - 1) // items, threads)
        value = thread_fold(states, first, last, zero())
        block_inclusive(shared, me, there, value, lambda a, b: fold(states, a, b))
        if me == 0:
            total, prefix = shared[there - 1], zero()
            if tile > 0:
                partial[tile] = total
                _publish(flags, tile, _PARTIAL)
                prefix = look_back(states, tile, partial, inclusive, flags)
                total = fold(states, prefix, total)
            elif has_first:
                prefix = start(states)
                total = fold(states, prefix, total)
            inclusive[tile] = total
            _publish(flags, tile, _INCLUSIVE)
            before_all[0] = prefix
            if has_done and tile == tiles - 1:
                done(states, total)
        cuda.syncthreads()
        thread_emit(states, shared, me, first, last, before_all[0], has_first or tile > 0)

    return ComputeKernel(one_pass)
