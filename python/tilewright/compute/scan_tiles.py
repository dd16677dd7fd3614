"""Running totals on a GPU, in a single pass: each block takes a tile, keeps it in registers, and looks back.

A warp's part of a tile lies together, in rows; of a row a lane has items that lie side by side, in 16 bytes. Blocks
stay: before one waits for the totals of the tiles before its own, it takes its next tile, and starts to read it.
Few items are scanned by one block, whose threads go over them twice.
"""

# The kernels' values have no types that a checker knows.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, attr-defined, assignment"

from __future__ import annotations

import dataclasses
from typing import Any

from ..dtype import int32
from ..numba import intrinsics as cuda
from .integers import In
from .launching import ComputeKernel, Kernels, Launch, Part, resident, size
from .lookback import LookBack, is_same, small, take
from .plans import is_few
from .types import ItemType, Shared, Zero, size_of
from .vectors import WIDE, aligned, is_aligned
from .warps import LANES, below, lane, of_lane, warp_inclusive, warp_inclusives

i32 = In(int32)


@dataclasses.dataclass(frozen=True)
class Rows:
    """The items of a tile in the registers of a block's threads."""

    width: int  # items side by side
    rounds: int  # rows of a warp
    threads: int
    blocks: int  # that a multiprocessor holds

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
    def starts(self) -> tuple[int, ...]:
        """Of a lane's rows from its first one."""
        return tuple(r * self.row for r in range(self.rounds))

    @property
    def places(self) -> tuple[tuple[int, ...], ...]:
        """Of a lane's items from its first one, by rows."""
        return tuple(tuple(r * self.row + j for j in range(self.width)) for r in range(self.rounds))


def rows_for(width: int, size: int) -> Rows:
    """As large a tile as registers hold: what blocks wait for each other takes the same time for any."""
    if size > WIDE:
        return Rows(1, max(1, 4 * WIDE // size), 256, 1)
    return Rows(width, max(1, min(12, 48 // width, 192 // (width * size))), 512, 1)


def first_of(rows: Rows):
    """A function for kernels: where the items of this thread begin in the tile."""
    row, rounds, width = rows.row, rows.rounds, rows.width

    def first():
        return cuda.threadIdx.x // LANES * (row * rounds) + lane() * width

    return first


class _Staged:
    """How a tile's items come to threads, and how their totals are stored: functions for kernels.

    A whole tile whose arrays lie at multiples of 16 bytes is read and stored by rows, at once. Any other one goes
    through shared memory, side by side, some items of a thread at a time: the code of an item stands there a few times.
    """

    def __init__(self, t: ItemType, item: Any, write: Any, rows: Rows) -> None:
        self.shared = Shared(t, rows.tile)
        self.load, self.store = _loading(t, item, rows), _storing(write, rows)


_AT_A_TIME = 8  # items of a thread that are under way, at most


def _at_a_time(rows: Rows) -> tuple[int, ...]:
    """What a thread's items that are read together lie apart."""
    most = max(d for d in range(1, _AT_A_TIME + 1) if rows.width * rows.rounds % d == 0)
    return tuple(k * rows.threads for k in range(most))


def _loading(t: ItemType, item: Any, rows: Rows):
    """The items of a thread by rows; behind the last item of all, zeros."""
    starts, COLUMNS, zero, tile_size = rows.starts, tuple(range(rows.width)), Zero(t), rows.tile
    first_in_tile, STEPS = first_of(rows), _at_a_time(rows)
    step = rows.threads * len(STEPS)

    def row(states, at):
        return tuple(item(states, at + j) for j in COLUMNS)

    def guarded(states, start, p, valid):
        value = zero()
        if i32.less(p, valid):
            value = item(states, start + p)
        return value

    def put(shared, i, held):
        for s, value in zip(STEPS, held, strict=True):
            shared[i32.add(i, s)] = value

    def staged_row(shared, at):
        return tuple(shared[i32.add(at, j)] for j in COLUMNS)

    def load(shared, states, start, whole, valid):
        if whole:
            near, at = aligned(states), start + first_in_tile()
            found = tuple(row(near, at + p) for p in starts)
        else:
            i, end = small(cuda.threadIdx.x), small(tile_size)
            if i32.less(valid, 1):
                end = small(0)  # behind the last tile nobody asks what there is
            while i32.less(i, end):
                put(shared, i, tuple(guarded(states, start, i32.add(i, s), valid) for s in STEPS))
                i = i32.add(i, step)
            cuda.syncthreads()
            own = small(first_in_tile())
            found = tuple(staged_row(shared, i32.add(own, p)) for p in starts)
        return found

    return load


def _storing(write: Any, rows: Rows):
    starts, first_in_tile, threads = rows.starts, first_of(rows), rows.threads

    def row(states, at, held):
        for j, value in enumerate(held):
            write(states, at + j, value)

    def stage_row(shared, at, held):
        for j, value in enumerate(held):
            shared[i32.add(at, j)] = value

    def store(shared, states, start, whole, valid, values):
        if whole:
            near, at = aligned(states), start + first_in_tile()
            for p, held in zip(starts, values, strict=True):
                row(near, at + p, held)
        else:
            own = small(first_in_tile())
            cuda.syncthreads()  # all have read what was in shared memory before
            for p, held in zip(starts, values, strict=True):
                stage_row(shared, i32.add(own, p), held)
            cuda.syncthreads()
            i = small(cuda.threadIdx.x)
            while i32.less(i, valid):
                write(states, start + i, shared[i])
                i = i32.add(i, threads)
            cuda.syncthreads()

    return store


class TileScan(Kernels):
    """`fold(arrays, a, b)`, `item(states, i)`, `write(states, i, total)`, and `first(states)` or None."""

    def __init__(
        self,
        t: ItemType,
        fold: Any,
        item: Any,
        write: Any,
        first: Any,
        inclusive: bool,
        width: int,
        multiprocessors: int,
    ) -> None:
        self.rows = rows_for(width, size_of(t))
        self.most_blocks = self.rows.blocks * multiprocessors
        self.back = LookBack(t, fold, self.rows.threads)
        self.kernel = self._kernel(t, fold, item, write, first, inclusive)
        self.few = self._few(t, fold, item, write, first, inclusive)

    def parts(self, n: int) -> list[Part]:
        return [self.back.part(self.rows.tiles(n))]

    def launches(self, states: tuple[Any, ...], arrays: Any, n: int, temporary: list[Any]) -> list[Launch]:
        few = is_few(n, self.rows.threads)
        return [self._whole(states, arrays, n)] if few else self._tiled(states, arrays, n, temporary)

    def sample_launches(self, states: tuple[Any, ...], arrays: Any, n: int, temporary: list[Any]) -> list[Launch]:
        return [*self._tiled(states, arrays, n, temporary), self._whole(states, arrays, n)]

    def _whole(self, states: tuple[Any, ...], arrays: Any, n: int) -> Launch:
        return Launch(self.few, (states, arrays, size(n)), 1, self.rows.threads)

    def _tiled(self, states: tuple[Any, ...], arrays: Any, n: int, temporary: list[Any]) -> list[Launch]:
        tiles = self.rows.tiles(n)
        values = (states, arrays, size(n), size(tiles), is_aligned(states), temporary[0])
        scan = Launch(self.kernel, values, max(1, min(tiles, self.most_blocks)), self.rows.threads)
        return [self.back.clearing(temporary[0], tiles), scan]

    def _few(self, t: ItemType, fold: Any, item: Any, write: Any, start: Any, inclusive: bool) -> ComputeKernel:
        threads, warps, zero, shared_totals = self.rows.threads, self.rows.warps, Zero(t), Shared(t, self.rows.warps)
        has_first = start is not None

        def total_of(states, arrays, at, end):
            total = zero()
            if at < end:
                total = item(states, at)
                for i in range(at + 1, end):
                    total = fold(arrays, total, item(states, i))
            return total

        def scan_few(states, arrays, n):
            shared, warp = shared_totals(), cuda.threadIdx.x // LANES
            each = (n + (threads - 1)) // threads
            at = cuda.threadIdx.x * each
            end = min(at + each, n)
            sums = warp_inclusive(total_of(states, arrays, at, end), lambda a, b: fold(arrays, a, b))
            if lane() == LANES - 1:  # threads without items are behind all others
                shared[warp] = sums
            cuda.syncthreads()
            totals = warp_inclusive(shared[min(lane(), warps - 1)], lambda a, b: fold(arrays, a, b))
            here, there, lanes = of_lane(totals, max(warp - 1, 0)), warp > 0, below(sums, 1)
            if lane() > 0:
                here = fold(arrays, here, lanes) if there else lanes
                there = True
            if has_first:
                initial = start(states)
                here = fold(arrays, initial, here) if there else initial
                there = True
            for i in range(at, end):
                own, before = item(states, i), here
                here = fold(arrays, here, own) if there else own
                there = True
                write(states, i, here if inclusive else before)

        return resident(ComputeKernel(scan_few), threads)

    def _kernel(self, t: ItemType, fold: Any, item: Any, write: Any, start: Any, inclusive: bool) -> ComputeKernel:
        rows, zero, number, before = self.rows, Zero(t), self.back.number, self.back.before
        tell_mine = self.back.tell_mine
        staged = _Staged(t, item, write, rows)
        load, store, stage = staged.load, staged.store, staged.shared
        tile_size, warps, shared_totals, shared_next = rows.tile, rows.warps, Shared(t, rows.warps), Shared(int32, 1)
        has_first = start is not None

        def empty():
            return tuple(tuple(zero() for _ in run) for run in rows.places)

        def running(arrays, items):
            found = (items[0],)
            for held in items[1:]:
                found = (*found, fold(arrays, found[-1], held))
            return found

        def lanes_before(arrays, totals):
            """Of each row, the total of the lanes before this one, and of all lanes."""
            sums = warp_inclusives(totals, lambda a, b: fold(arrays, a, b))
            return tuple(below(s, 1) for s in sums), tuple(of_lane(s, LANES - 1) for s in sums)

        def of_warp(arrays, totals):
            whole = totals[0]
            for total in totals[1:]:
                whole = fold(arrays, whole, total)
            return whole

        def warps_before(arrays, totals):
            """Of the totals of the warps, that of the warps before this one, and of all of them."""
            held = totals[min(lane(), warps - 1)]
            sums = warp_inclusive(held, lambda a, b: fold(arrays, a, b))
            return of_lane(sums, max(cuda.threadIdx.x // LANES - 1, 0)), of_lane(sums, warps - 1)

        def in_row(arrays, items, lanes_total, before, there):
            here = before
            if lane() > 0:
                here = fold(arrays, before, lanes_total) if there else lanes_total
            kept = there or lane() > 0
            if inclusive:
                run = tuple(fold(arrays, here, item) if kept else item for item in items)
            else:
                run = (here, *tuple(fold(arrays, here, item) if kept else item for item in items[:-1]))
            return run

        def in_tile(arrays, held, lanes, totals, before, there):
            """The running totals of a thread's rows; `before` is of the warps before, if `there` are some."""
            found = ()
            for items, lanes_total, total in zip(held, lanes, totals, strict=True):
                found = (*found, in_row(arrays, items, lanes_total, before, there))
                before = fold(arrays, before, total) if there else total
                there = True
            return found

        def behind(arrays, carry, run):
            return tuple(fold(arrays, carry, total) for total in run)

        def joined(arrays, carry, found, is_first):
            """Behind `carry`; the first thread's first total without its item is of nothing else."""
            rows = tuple(behind(arrays, carry, run) for run in found)
            if not inclusive and is_first:
                rows = ((carry, *rows[0][1:]), *rows[1:])
            return rows

        def room_of(tile, n, wide):
            """Where a tile starts, whether it is read and stored at once, and how many items it has."""
            start = tile * tile_size
            valid = small(min(n - start, tile_size))
            return start, wide and i32.equal(valid, tile_size), valid

        def load_tile(shared, states, tile, n, wide):
            start, whole, valid = room_of(tile, n, wide)
            return load(shared, states, start, whole, valid)

        def store_tile(shared, states, tile, n, wide, found):
            start, whole, valid = room_of(tile, n, wide)
            store(shared, states, start, whole, valid, found)

        def scan_tiles(states, arrays, n, tiles, wide, words):
            """Each round takes a new tile as far as it goes alone, and finishes that of the round before."""
            shared, following, warp, room = shared_totals(), shared_next(), cuda.threadIdx.x // LANES, stage()
            tile, new, tile_total, found = small(0), number(words), zero(), empty()
            finishes, begins = False, is_same(new < tiles)
            while finishes or begins:
                next_tile = small(0)
                items = load_tile(room, states, new, n, wide)
                if finishes:
                    initial = start(states) if has_first else zero()
                    carry = before(words, arrays, tile, tiles, tile_total, initial, has_first)
                    if has_first or tile > 0:
                        found = joined(arrays, carry, found, cuda.threadIdx.x == 0)
                    store_tile(room, states, tile, n, wide, found)
                finishes = begins
                if begins:
                    if cuda.threadIdx.x == 0:
                        next_tile = small(take(words, lane(), 1))  # no lane of others adds to it
                    held = tuple(running(arrays, run) for run in items)
                    lanes, totals = lanes_before(arrays, tuple(run[-1] for run in held))
                    whole = of_warp(arrays, totals)
                    if lane() == 0:
                        shared[warp] = whole
                    if cuda.threadIdx.x == 0:
                        following[0] = next_tile
                    cuda.syncthreads()
                    mine, tile_total = warps_before(arrays, shared)
                    tell_mine(words, new, tile_total)
                    found = in_tile(arrays, held, lanes, totals, mine, warp > 0)
                    tile, new = new, following[0]
                    begins = is_same(new < tiles)

        return resident(ComputeKernel(scan_tiles), rows.threads, rows.blocks)
