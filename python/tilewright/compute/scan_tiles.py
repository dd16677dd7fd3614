"""Running totals on a GPU, in a single pass: each block takes a tile, keeps it in registers, and looks back.

A warp's part of a tile lies together, in rows; of a row a lane has items that lie side by side, in 16 bytes.
"""

# The kernels' values have no types that a checker knows.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, attr-defined, assignment"

from __future__ import annotations

import dataclasses
from typing import Any

from ..numba import intrinsics as cuda
from .launching import ComputeKernel, Kernels, Launch, Part, resident, size
from .lookback import LookBack
from .types import ItemType, Shared, Zero
from .vectors import aligned, is_aligned
from .warps import LANES, below, lane, of_lane, warp_inclusives


@dataclasses.dataclass(frozen=True)
class Rows:
    """The items of a tile in the registers of a block's threads."""

    width: int  # items side by side
    rounds: int  # rows of a warp
    threads: int = 256
    blocks: int = 4  # that a multiprocessor holds

    @property
    def warps(self) -> int:
        return self.threads // LANES

    @property
    def row(self) -> int:
        return LANES * self.width

    @property
    def tile(self) -> int:
        return self.threads * self.width * self.rounds

    def tiles(self, count: int) -> int:
        return -(-count // self.tile)

    @property
    def places(self) -> tuple[tuple[int, ...], ...]:
        """Of a lane's items from its first one, by rows."""
        return tuple(tuple(r * self.row + j for j in range(self.width)) for r in range(self.rounds))


def rows_for(width: int) -> Rows:
    rounds = max(1, min(4, 16 // width))
    return Rows(width, rounds, 512, 3) if width >= 4 else Rows(width, rounds)


def first_of(rows: Rows):
    """A function for kernels: where the items of this thread begin in the tile."""
    row, rounds, width = rows.row, rows.rounds, rows.width

    def first():
        return cuda.threadIdx.x // LANES * (row * rounds) + lane() * width

    return first


def loading_rows(item: Any, t: ItemType, rows: Rows):
    """A function for kernels: the items of a thread by rows; behind the last item of all, zeros."""
    places, zero = rows.places, Zero(t)

    def guarded(states, i, last):
        value = zero()
        if i <= last:
            value = item(states, i)
        return value

    def load(states, at, whole, last):
        if whole:
            near = aligned(states)
            found = tuple(tuple(item(near, at + p) for p in run) for run in places)
        else:
            found = tuple(tuple(guarded(states, at + p, last) for p in run) for run in places)
        return found

    return load


def storing_rows(write: Any, rows: Rows):
    places = rows.places

    def store(states, at, whole, last, values):
        if whole:
            near = aligned(states)
            for run, held in zip(places, values, strict=True):
                for p, value in zip(run, held, strict=True):
                    write(near, at + p, value)
        else:
            for run, held in zip(places, values, strict=True):
                for p, value in zip(run, held, strict=True):
                    if at + p <= last:
                        write(states, at + p, value)

    return store


class TileScan(Kernels):
    """`fold(arrays, a, b)`, `item(states, i)`, `write(states, i, total)`, and `first(states)` or None."""

    def __init__(self, t: ItemType, fold: Any, item: Any, write: Any, first: Any, inclusive: bool, width: int) -> None:
        self.rows = rows_for(width)
        self.back = LookBack(t, fold, self.rows.threads)
        self.kernel = self._kernel(t, fold, item, write, first, inclusive)

    def parts(self, n: int) -> list[Part]:
        return [self.back.part(self.rows.tiles(n))]

    def launches(self, states: tuple[Any, ...], arrays: Any, n: int, temporary: list[Any]) -> list[Launch]:
        tiles = self.rows.tiles(n)
        values = (states, arrays, size(n), size(tiles), is_aligned(states), temporary[0])
        return [self.back.clearing(temporary[0], tiles), Launch(self.kernel, values, tiles, self.rows.threads)]

    def _kernel(self, t: ItemType, fold: Any, item: Any, write: Any, start: Any, inclusive: bool) -> ComputeKernel:
        rows, zero, number, before = self.rows, Zero(t), self.back.number, self.back.before
        load, store, first_in_tile = loading_rows(item, t, rows), storing_rows(write, rows), first_of(rows)
        tile_size, warps, shared_totals = rows.tile, rows.warps, Shared(t, rows.warps)
        has_first = start is not None

        def running(arrays, items):
            found = (items[0],)
            for held in items[1:]:
                found = (*found, fold(arrays, found[-1], held))
            return found

        def lanes_before(arrays, totals):
            """Of each row, the total of the lanes before this one, and of all lanes."""
            sums = warp_inclusives(totals, lambda a, b: fold(arrays, a, b))
            return tuple(below(s, 1) for s in sums), tuple(of_lane(s, LANES - 1) for s in sums)

        def warps_before(arrays, shared, totals):
            """The total of the warps before this one; on thread 0, of all of them."""
            warp, whole = cuda.threadIdx.x // LANES, totals[0]
            for total in totals[1:]:
                whole = fold(arrays, whole, total)
            if lane() == 0:
                shared[warp] = whole
            cuda.syncthreads()
            found = zero()
            for w in range(warps if cuda.threadIdx.x == 0 else warp):
                found = fold(arrays, found, shared[w]) if w > 0 else shared[w]
            return found

        def row_totals(arrays, items, here, there):
            """Running totals of a row, of which `here` is before this lane, if `there` is something."""
            if inclusive:
                found = tuple(fold(arrays, here, item) if there else item for item in items)
            else:
                found = (here, *tuple(fold(arrays, here, item) for item in items[:-1]))
            return found

        def scan_tiles(states, arrays, n, tiles, wide, words):
            tile = number(words)
            at = tile * tile_size + first_in_tile()
            whole = wide and tile * tile_size + tile_size <= n
            held = tuple(running(arrays, run) for run in load(states, at, whole, n - 1))
            lanes, totals = lanes_before(arrays, tuple(run[-1] for run in held))
            mine = warps_before(arrays, shared_totals(), totals)
            initial = start(states) if has_first else zero()
            carry = before(words, arrays, tile, tiles, mine, initial, has_first)
            there, warp = has_first or tile > 0, cuda.threadIdx.x // LANES
            if warp > 0:
                carry = fold(arrays, carry, mine) if there else mine
            there = there or warp > 0
            found = ()
            for run, lanes_total, total in zip(held, lanes, totals, strict=True):
                here = carry
                if lane() > 0:
                    here = fold(arrays, carry, lanes_total) if there else lanes_total
                found = (*found, row_totals(arrays, run, here, there or lane() > 0))
                carry = fold(arrays, carry, total) if there else total
                there = True
            store(states, at, whole, n - 1, found)

        return resident(ComputeKernel(scan_tiles), rows.threads, rows.blocks)
