"""Running totals on a GPU, in a single pass: each block takes a tile, keeps it in shared memory, and looks back.

A warp's part of a tile lies together, in rows; of a row a lane has items that lie side by side, in 16 bytes. Blocks
stay: before one waits for the totals of the tiles before its own, it takes its next tile, and starts to read it, into
registers, which hold nothing else by then. A tile that ends early, or whose arrays do not lie at multiples of 16 bytes,
is read by shared memory. Few items are scanned by one block, whose threads go over them twice.
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


def rows_for(width: int, size: int, roomy: bool) -> Rows:
    """As large a tile as shared memory holds: what blocks wait for each other takes the same time for any."""
    if size > WIDE:
        return Rows(1, max(1, 4 * WIDE // size), 256, 1)
    most = 128 if roomy else 96  # bytes of a thread
    return Rows(width, max(1, min(most // WIDE, most // 4 // width, most // (width * size))), 1024, 1)


def first_of(rows: Rows):
    """A function for kernels: where the items of this thread begin in the tile."""
    row, rounds, width = rows.row, rows.rounds, rows.width

    def first():
        return cuda.threadIdx.x // LANES * (row * rounds) + lane() * width

    return first


_AT_A_TIME = 8  # items of a thread that are read together, at most, where they are not read by rows


def _filling(t: ItemType, item: Any, rows: Rows):
    """A function for kernels: a tile to shared memory, side by side; behind the last item of all, zeros."""
    most = max(d for d in range(1, _AT_A_TIME + 1) if rows.width * rows.rounds % d == 0)
    zero, tile_size, steps = Zero(t), rows.tile, tuple(k * rows.threads for k in range(most))
    step = rows.threads * most

    def guarded(states, start, p, valid):
        value = zero()
        if i32.less(p, valid):
            value = item(states, start + p)
        return value

    def put(shared, i, held):
        for s, value in zip(steps, held, strict=True):
            shared[i32.add(i, s)] = value

    def fill(shared, states, start, valid):
        i = small(cuda.threadIdx.x)
        while i32.less(i, tile_size):
            put(shared, i, tuple(guarded(states, start, i32.add(i, s), valid) for s in steps))
            i = i32.add(i, step)

    return fill


def _by_rows(t: ItemType, item: Any, rows: Rows):
    """Functions for kernels: a thread's items, of arrays or of shared memory, and to shared memory."""
    starts, COLUMNS, zero, first_in_tile = rows.starts, tuple(range(rows.width)), Zero(t), first_of(rows)

    def row(states, at):
        return tuple(item(states, at + j) for j in COLUMNS)

    def load(states, start, whole):
        if whole:
            near, at = aligned(states), start + first_in_tile()
            found = tuple(row(near, at + p) for p in starts)
        else:
            found = tuple(tuple(zero() for _ in COLUMNS) for _ in starts)
        return found

    def held_row(shared, at):
        return tuple(shared[i32.add(at, j)] for j in COLUMNS)

    def held(shared):
        own = small(first_in_tile())
        return tuple(held_row(shared, i32.add(own, p)) for p in starts)

    def put_row(shared, at, run):
        for j, value in enumerate(run):
            shared[i32.add(at, j)] = value

    def put(shared, values):
        own = small(first_in_tile())
        for p, run in zip(starts, values, strict=True):
            put_row(shared, i32.add(own, p), run)

    return load, held, put


def _storing(fold: Any, write: Any, rows: Rows, inclusive: bool):
    """A function for kernels: totals of a tile from shared memory, behind `carry` if it is there."""
    COLUMNS, threads, width, rounds = tuple(range(rows.width)), rows.threads, rows.width, rows.rounds

    def behind(arrays, shared, i, carry, there):
        """The first one without its item is of nothing else."""
        total = shared[i]
        if there:
            total = fold(arrays, carry, total)
        if not inclusive and i32.equal(i, 0):
            total = carry
        return total

    def store(shared, states, arrays, start, whole, valid, carry, there):
        if whole:
            near, k = aligned(states), small(0)
            while i32.less(k, rounds):
                i = i32.mul(i32.add(i32.mul(k, threads), small(cuda.threadIdx.x)), width)
                found = tuple(behind(arrays, shared, i32.add(i, j), carry, there) for j in COLUMNS)
                for j, total in enumerate(found):
                    write(near, start + i + j, total)
                k = i32.add(k, 1)
        else:
            i = small(cuda.threadIdx.x)
            while i32.less(i, valid):
                write(states, start + i, behind(arrays, shared, i, carry, there))
                i = i32.add(i, threads)

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
        roomy: bool,
    ) -> None:
        self.rows = rows_for(width, size_of(t), roomy)
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
        fill, store, (load, held_items, put) = (
            _filling(t, item, rows),
            _storing(fold, write, rows, inclusive),
            _by_rows(t, item, rows),
        )
        stage = Shared(t, rows.tile)
        tile_size, warps, shared_totals, shared_next = rows.tile, rows.warps, Shared(t, rows.warps), Shared(int32, 1)
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

        def place_of(tile, n, wide):
            """Where a tile starts, how many items it has, and whether it is read and stored by rows."""
            start = tile * tile_size
            valid = small(min(n - start, tile_size))
            return start, valid, wide and i32.equal(valid, tile_size)

        def finish(room, states, arrays, tile, tiles, n, wide, tile_total, words):
            initial = start(states) if has_first else zero()
            carry = before(words, arrays, tile, tiles, tile_total, initial, has_first)
            at, valid, whole = place_of(tile, n, wide)
            store(room, states, arrays, at, whole, valid, carry, has_first or tile > 0)

        def scan_tiles(states, arrays, n, tiles, wide, words):
            """Each round takes a new tile as far as it goes alone, and finishes that of the round before."""
            shared, following, warp, room = shared_totals(), shared_next(), cuda.threadIdx.x // LANES, stage()
            tile, new, tile_total = small(0), number(words), zero()
            finishes, begins = False, is_same(new < tiles)
            while finishes or begins:
                next_tile, (at, valid, whole) = small(0), place_of(new, n, wide)
                items = load(states, at, whole)
                if finishes:
                    finish(room, states, arrays, tile, tiles, n, wide, tile_total, words)
                    cuda.syncthreads()
                finishes = begins
                if begins:
                    if cuda.threadIdx.x == 0:
                        next_tile = small(take(words, lane(), 1))  # no lane of others adds to it
                    if not whole:
                        fill(room, states, at, valid)
                        cuda.syncthreads()
                        items = held_items(room)
                    held = tuple(running(arrays, run) for run in items)
                    lanes, totals = lanes_before(arrays, tuple(run[-1] for run in held))
                    of_all = of_warp(arrays, totals)
                    if lane() == 0:
                        shared[warp] = of_all
                    if cuda.threadIdx.x == 0:
                        following[0] = next_tile
                    cuda.syncthreads()
                    mine, tile_total = warps_before(arrays, shared)
                    tell_mine(words, new, tile_total)
                    put(room, in_tile(arrays, held, lanes, totals, mine, warp > 0))
                    tile, new = new, following[0]
                    begins = is_same(new < tiles)

        return resident(ComputeKernel(scan_tiles), rows.threads, rows.blocks)
