"""Parting items on a GPU, in a single pass: each block takes a tile, counts what goes where, looks back, and stores.

Items of a tile are put in the order of their parts in shared memory, from where they are stored side by side.
"""

# The kernels' values have no types that a checker knows.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, attr-defined, assignment"

from __future__ import annotations

import dataclasses
from typing import Any

from ..dtype import int32, int64
from ..numba import intrinsics as cuda
from .integers import add32
from .launching import ComputeKernel, Kernels, Launch, Part, resident, size
from .lookback import LookBack
from .scan_tiles import Rows, first_of, loading_rows, room_at
from .types import Convert, ItemType, Shared, size_of
from .vectors import is_aligned, width_for
from .warps import LANES, lane, of_lane, warp_inclusive

_FIELD = 16  # bits of a row's count
_MOST_SHARED = 40 << 10


@dataclasses.dataclass(frozen=True)
class Column:
    """What is moved: `read(inputs, i)`, and `writes[p](outputs, place, value)` for what goes to part p, as long as the
    place is less than `rooms[p](outputs)`."""

    type: ItemType
    read: Any
    writes: tuple[Any, ...]
    rooms: tuple[Any, ...]


class TileParting(Kernels):
    """`part_of(arrays, value, before)` says which part an item of the first column goes to: from 0 on, or none, -1.

    `before` is the item in front of it; the first one of all is in part 0 unless `is_free`. What is in the last part
    of `writes` beyond the counted ones has its place by what is left. `tell(outputs, counts)` is told the counts.
    """

    def __init__(self, columns: list[Column], counted: int, part_of: Any, tell: Any, looks_before: bool) -> None:
        types = [column.type for column in columns]
        width = width_for(*types)
        largest = max(map(size_of, types))
        most = max(1, min(4, 16 // width, _MOST_SHARED // (256 * width * largest)))
        self.rows = Rows(width, most, 256, 4 if counted == len(columns) == 1 else 3)
        self.staged = 256 * width * largest <= _MOST_SHARED
        self.counted = counted
        self.back = LookBack((int64,) * counted, _add_counts, self.rows.threads)
        self.kernel = self._kernel(columns, part_of, tell, looks_before)

    def parts(self, n: int) -> list[Part]:
        return [self.back.part(max(1, self.rows.tiles(n)))]

    def launches(self, inputs: Any, outputs: Any, arrays: Any, n: int, temporary: list[Any]) -> list[Launch]:
        tiles = max(1, self.rows.tiles(n))  # the last one tells the counts, of no items, too
        values = (inputs, outputs, arrays, size(n), size(tiles), is_aligned(inputs), temporary[0])
        return [self.back.clearing(temporary[0], tiles), Launch(self.kernel, values, tiles, self.rows.threads)]

    def _kernel(self, columns: list[Column], part_of: Any, tell: Any, looks_before: bool) -> ComputeKernel:
        rows, number, before, counted = self.rows, self.back.number, self.back.before, self.counted
        tell_mine = self.back.tell_mine
        first_in_tile, parted = first_of(rows), _parts(columns[0], part_of, looks_before, rows)
        loads = tuple(loading_rows(column.read, column.type, rows) for column in columns)
        places, move = _places(rows, counted), (_staged if self.staged else _at_once)(rows, counted)
        moves = tuple((load, move(column), column) for load, column in zip(loads, columns, strict=True))
        load_first, tile_size = loads[0], rows.tile
        shared_counts = Shared(int32, counted * rows.warps)

        def part_tiles(inputs, outputs, arrays, n, tiles, wide, words):
            tile = number(words)
            start = tile * tile_size
            at, last = start + first_in_tile(), n - 1
            whole = wide and start + tile_size <= n
            held = load_first(inputs, at, whole, last)
            parts = parted(inputs, arrays, held, at, last)
            found, mine = places(shared_counts(), parts)
            tell_mine(words, tile, mine)
            bases = before(words, arrays, tile, tiles, mine, mine, False)
            if tile == 0:
                bases = tuple(base * 0 for base in bases)
            if tile == tiles - 1 and cuda.threadIdx.x == 0:
                tell(outputs, _add_counts(arrays, bases, mine))
            for load, store, column in moves:
                values = held if column is columns[0] else load(inputs, at, whole, last)
                store(outputs, values, parts, found, bases, mine, start, min(n - start, tile_size))

        return resident(ComputeKernel(part_tiles), rows.threads, rows.blocks)


def _add_counts(arrays, a, b):
    return tuple(x + y for x, y in zip(a, b, strict=True))


def _parts(column: Column, part_of, looks_before, rows: Rows):
    """A function for kernels: the part of each item of a thread, -1 of what is behind the last item."""
    places, read, small = rows.places, column.read, Convert(int32, "a part")

    def part(arrays, value, before, at, p, room):
        found = small(-1)
        if p < room:
            found = small(part_of(arrays, value, before, at + p))
        return found

    def of_run(inputs, arrays, at, run, held, room):
        before = held
        if looks_before:
            first = held[0]
            if at + run[0] > 0 and run[0] < room:
                first = read(inputs, at + run[0] - 1)
            before = (first, *held[:-1])
        return tuple(part(arrays, v, b, at, p, room) for p, v, b in zip(run, held, before, strict=True))

    def parted(inputs, arrays, held, at, last):
        room = room_at(at, last)
        return tuple(of_run(inputs, arrays, at, run, values, room) for run, values in zip(places, held, strict=True))

    return parted


def _places(rows: Rows, counted: int):
    """A function for kernels: for each part the place of a thread's items in the tile, by rows, where its first one
    of a run would stand; and how many the tile has, for all parts."""
    rounds, warps, small = rows.rounds, rows.warps, Convert(int32, "a place")

    def count_of(run, part):
        found = small(0)
        for p in run:
            found = add32(found, small(1) if p == part else small(0))
        return found

    def packed(parts, part):
        """The counts of the rows, each in bits of its own."""
        found = 0
        for r, run in enumerate(parts):
            found = found + (count_of(run, part) << (_FIELD * r))
        return found

    def field(word, r):
        return (word >> (_FIELD * r)) & ((1 << _FIELD) - 1)

    def total(word):
        found = 0
        for r in range(rounds):
            found = found + field(word, r)
        return found

    def of_part(shared, parts, part):
        word, warp = packed(parts, part), cuda.threadIdx.x // LANES
        sums = warp_inclusive(word, lambda a, b: a + b)
        lanes, whole = sums - word, of_lane(sums, LANES - 1)
        if lane() == 0:
            shared[part * warps + warp] = total(whole)
        cuda.syncthreads()
        first, mine = 0, 0
        for w in range(warps):
            held = shared[part * warps + w]
            first = first + (held if w < warp else 0)
            mine = mine + held
        found = ()
        for r in ROUNDS:
            found = (*found, small(first + field(lanes, r)))
            first = first + field(whole, r)
        return found, mine

    ROUNDS = tuple(range(rounds))
    PARTS = tuple(range(counted))

    def places(shared, parts):
        found, counts = (), ()
        for part in PARTS:
            where, count = of_part(shared, parts, part)
            found, counts = (*found, where), (*counts, count)
        return found, counts

    return places


def _staged(rows: Rows, counted: int):
    """Through shared memory."""
    tile_size, threads, small = rows.tile, rows.threads, Convert(int32, "a place")
    places, first_in_tile, PARTS = rows.places, first_of(rows), tuple(range(counted))
    KS = tuple(range(rows.width))

    def of_column(column: Column):
        shared_items, writes, rooms = Shared(column.type, tile_size), column.writes, column.rooms
        rest = len(writes) > counted

        def put(shared, run, values, parts, at, starts, own):
            """The items of a run; `at` are their places in each part, `starts` where the parts begin."""
            for k in KS:
                for p in PARTS:
                    if parts[k] == p:
                        shared[add32(starts[p], at[p])] = values[k]
                if rest and parts[k] == counted:
                    others = small(own + run[k])
                    for p in PARTS:
                        others = others - at[p]
                    shared[small(starts[counted] + others)] = values[k]
                at = tuple(
                    add32(place, small(1) if parts[k] == p else small(0)) for p, place in zip(PARTS, at, strict=True)
                )

        def copy(outputs, shared, start, count, write, room, base):
            for i in range(cuda.threadIdx.x, min(count, room(outputs) - base), threads):
                write(outputs, base + i, shared[start + i])

        def store(outputs, values, parts, found, bases, mine, start, count):
            shared, own = shared_items(), first_in_tile()
            starts = (small(0),)
            for held in mine:
                starts = (*starts, small(starts[-1] + held))
            cuda.syncthreads()
            for r, run in enumerate(places):
                put(shared, run, values[r], parts[r], tuple(where[r] for where in found), starts, own)
            cuda.syncthreads()
            for p in PARTS:
                copy(outputs, shared, starts[p], mine[p], writes[p], rooms[p], bases[p])
            if rest:
                base = start
                for held in bases:
                    base = base - held
                copy(outputs, shared, starts[counted], count - starts[counted], writes[counted], rooms[counted], base)

        return store

    return of_column


def _at_once(rows: Rows, counted: int):
    """One by one, for items of which shared memory does not hold enough."""
    places, first_in_tile, small, PARTS = rows.places, first_of(rows), Convert(int32, "a place"), tuple(range(counted))
    KS = tuple(range(rows.width))

    def of_column(column: Column):
        writes, rooms = column.writes, column.rooms
        rest = len(writes) > counted

        def put(outputs, p, place, value):
            if place < rooms[p](outputs):
                writes[p](outputs, place, value)

        def store(outputs, values, parts, found, bases, mine, start, count):
            own = first_in_tile()
            for r, run in enumerate(places):
                at = tuple(where[r] for where in found)
                for k in KS:
                    for p in PARTS:
                        if parts[r][k] == p:
                            put(outputs, p, bases[p] + at[p], values[r][k])
                    if rest and parts[r][k] == counted:
                        place = start + own + run[k]
                        for p in PARTS:
                            place = place - bases[p] - at[p]
                        put(outputs, counted, place, values[r][k])
                    at = tuple(
                        add32(place, small(1) if parts[r][k] == p else small(0))
                        for p, place in zip(PARTS, at, strict=True)
                    )

        return store

    return of_column
