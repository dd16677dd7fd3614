"""The skeleton of what goes by running totals on the CPU: scans, select, partition, unique.

Each block is one thread, which takes numbers of ranges of items from a counter. It folds a range, and publishes what it
found. Where the totals of the ranges before are known by then, it goes over the range again while the cache has it;
it never waits for another thread, which may not be running. A last launch goes over the ranges that are left. Totals
are joined range by range from the left, whoever does it: results are the same in every run.

`item` is called once an item, `again` when it is needed a second time; where they are one function, the last range is
gone over once. A GPU goes by tiles: scan_tiles.py, part_tiles.py.
"""

# The kernels' values have no types that a checker knows.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, attr-defined"

from __future__ import annotations

import dataclasses
from typing import Any

from ..dtype import int64
from .launching import ComputeKernel, Kernels, Launch, Part, size
from .lookback import Words, take
from .types import ItemType, Zero

_RANGE = 16384  # items: what is read and stored of them stays in a cache of a core
_MOST_BLOCKS = 64  # threads that scan one array
_BACK = 8  # ranges whose totals a thread joins to go on at once
_CLEAR, _FOLD, _JOIN, _FINISH = range(4)  # what a launch does


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
    over: Any = None  # (states, begin, end, before): instead of `again` and `emit` of each item; the total behind them


class Scanner(Kernels):
    """The kernel for a `Scanned`, its storage and its launches."""

    def __init__(self, scanned: Scanned) -> None:
        self.words, self.has_done = Words(scanned.type), scanned.done is not None
        self.chain = _chain(scanned, self.words)

    def parts(self, n: int) -> list[Part]:
        """The counter; of each range what it folds to, the total up to its end, and whether it is done."""
        return [Part(int64, 1 + -(-n // _RANGE) * (2 * self.words.count + 1))]

    def launches(self, states: tuple[Any, ...], n: int, temporary: list[Any]) -> list[Launch]:
        (words,) = temporary
        if n == 0 and not self.has_done:
            return []
        ranges = -(-n // _RANGE)

        def launch(what: int, blocks: int) -> Launch:
            return Launch(self.chain, (states, size(n), size(ranges), words, size(what)), blocks, 1)

        if n <= _RANGE:
            return [launch(_FOLD, 1)]
        blocks = min(ranges, _MOST_BLOCKS)
        return [launch(_CLEAR, 1), launch(_FOLD, blocks), launch(_JOIN, 1), launch(_FINISH, blocks)]


class _Totals:
    """In kernels: what ranges fold to, and the totals up to their ends, as published so far."""

    def __init__(self, scanned: Scanned, words: Words) -> None:
        fold, has_first, first = scanned.fold, scanned.first is not None, scanned.first
        count, zero, tell, is_told, told = words.count, Zero(scanned.type), words.tell(), words.is_told(), words.told()
        step = 2 * count + 1

        def joined(states, totals, j, before, there):
            """The total up to the end of range j, published."""
            value = told(totals, 1 + j * step)
            total = fold(states, before, value) if there else value
            tell(totals, 1 + j * step + count, total)
            return total

        def known(totals, k):
            """The range behind the last one before range k of which the total is known, or -1 where that is far."""
            at = k
            while at > 0 and k - at < _BACK and not is_told(totals, 1 + (at - 1) * step + count):
                at = at - 1
            return at if at == 0 or is_told(totals, 1 + (at - 1) * step + count) else -1

        def up_to(states, totals, at, k):
            """(range, total before it): range k, or the first one behind which nothing is known yet."""
            there = has_first or at > 0
            value = first(states) if has_first else zero()
            if at > 0:
                value = told(totals, 1 + (at - 1) * step + count)
            while at < k and is_told(totals, 1 + at * step):
                value, there = joined(states, totals, at, value, there), True
                at = at + 1
            return at, value

        def fold_told(totals, k, value):
            tell(totals, 1 + k * step, value)

        def mark(totals, k):
            totals[(k + 1) * step] = 1

        def is_marked(totals, k):
            return totals[(k + 1) * step] != 0

        self.known, self.up_to, self.fold_told, self.mark, self.is_marked = known, up_to, fold_told, mark, is_marked


def _chain(scanned: Scanned, words: Words) -> ComputeKernel:
    fold, item, again, emit, first = scanned.fold, scanned.item, scanned.again, scanned.emit, scanned.first
    done, zero, of, step = scanned.done, Zero(scanned.type), _Totals(scanned, words), 2 * words.count + 1
    known, up_to, fold_told, mark, is_marked = of.known, of.up_to, of.fold_told, of.mark, of.is_marked
    has_first, has_done, in_one_go = first is not None, done is not None, again is item
    over = scanned.over
    has_over = over is not None

    def folded(states, begin, end):
        joined = item(states, begin)
        for i in range(begin + 1, end):
            joined = fold(states, joined, item(states, i))
        return joined

    def gone_over(states, begin, end, before, there):
        if not there:
            value = again(states, begin)
            emit(states, begin, before, value)
            before, begin = value, begin + 1
        for i in range(begin, end):
            after = fold(states, before, again(states, i))
            emit(states, i, before, after)
            before = after
        return before

    def finish(states, n, ranges, totals, k):
        """Go over range k if the total before it is known."""
        at, before = known(totals, k), zero()
        if at >= 0:
            at, before = up_to(states, totals, at, k)
        if at == k:
            begin = k * _RANGE
            end = min(begin + _RANGE, n)
            if has_over:
                after = over(states, begin, end, before)
            else:
                after = gone_over(states, begin, end, before, has_first or k > 0)
            if ranges > 1:
                mark(totals, k)
            if has_done and k == ranges - 1:
                done(states, after)

    def chain(states, n, ranges, totals, what):
        if what == _CLEAR:
            for i in range(1 + ranges * step):
                totals[i] = 0
        elif what == _JOIN:
            up_to(states, totals, 0, ranges - 1)
            totals[0] = 0
        elif n == 0:
            if has_done:
                done(states, first(states) if has_first else zero())
        else:
            alone = ranges == 1  # no counter is needed, which is not cleared
            k = 0 if alone else take(totals, 0, 1)
            while k < ranges:
                if what == _FOLD and not (in_one_go and k == ranges - 1):
                    value = folded(states, k * _RANGE, min(k * _RANGE + _RANGE, n))
                    if not alone:
                        fold_told(totals, k, value)
                if what == _FOLD or not is_marked(totals, k):
                    finish(states, n, ranges, totals, k)
                k = ranges if alone else take(totals, 0, 1)

    return ComputeKernel(chain)
