"""The skeleton of what goes by running totals on the CPU: scans, select, partition, unique.

Each block, which is one thread, folds a range of items; one thread makes running totals of what they found; each block
goes over its range again, from its total on. `item` is called once an item, `again` when it is needed a second time.
A GPU goes by tiles: scan_tiles.py, part_tiles.py.
"""

# The kernels' values have no types that a checker knows.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, attr-defined"

from __future__ import annotations

import dataclasses
from typing import Any

from ..numba import intrinsics as cuda
from .launching import ComputeKernel, Kernels, Launch, Part, size
from .plans import Shape
from .types import ItemType, Zero


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


class Scanner(Kernels):
    """The kernels for a `Scanned`, their storage and their launches."""

    def __init__(self, scanned: Scanned, shape: Shape) -> None:
        self.type, self.shape, self.has_done = scanned.type, shape, scanned.done is not None
        self.sums, self.totals, self.apply = _sums(scanned), _totals(scanned), _apply(scanned)

    def parts(self, n: int) -> list[Part]:
        return [Part(self.type, self.shape.blocks(n))]

    def launches(self, states: tuple[Any, ...], n: int, temporary: list[Any]) -> list[Launch]:
        if n == 0:
            return [Launch(self.totals, (states, size(0), temporary[0]), 1, 1)] if self.has_done else []
        blocks, sizes = self.shape.blocks(n), (size(n), size(self.shape.per_block(n)))
        return [
            Launch(self.sums, (states, *sizes, *temporary), blocks, 1),
            Launch(self.totals, (states, size(blocks), *temporary), 1, 1),
            Launch(self.apply, (states, *sizes, *temporary), blocks, 1),
        ]

    def every_launch(self, states: tuple[Any, ...], n: int, temporary: list[Any]) -> list[Launch]:
        """Those of some items and of none, to be compiled."""
        return [*self.launches(states, n, temporary), *self.launches(states, 0, temporary)]


def _sums(scanned: Scanned) -> ComputeKernel:
    """partial[b] becomes the total of range b."""
    fold, item = scanned.fold, scanned.item

    def sums(states, n, per, partial):
        first = cuda.blockIdx.x * per
        joined = item(states, first)
        for i in range(first + 1, min(first + per, n)):
            joined = fold(states, joined, item(states, i))
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


def _apply(scanned: Scanned) -> ComputeKernel:
    fold, again, emit, has_first = scanned.fold, scanned.again, scanned.emit, scanned.first is not None

    def apply(states, n, per, partial):
        start = cuda.blockIdx.x * per
        before = partial[cuda.blockIdx.x]
        there = has_first or cuda.blockIdx.x > 0
        for i in range(start, min(start + per, n)):
            value = again(states, i)
            after = fold(states, before, value) if there else value
            emit(states, i, before, after)
            before = after
            there = True

    return ComputeKernel(apply)
