"""Parting items on a GPU, in a single pass: each block takes a tile, counts what goes where, looks back, and stores.

Items of a tile are put in the order of their parts in shared memory as soon as the block knows what goes where, before
it looks back: so that registers are free while it waits, and all that is left is to store side by side. Other columns,
which go where the first one's items go, are read while it waits. Few items are parted by one block, whose threads note
the parts of theirs.
"""

# The kernels' values have no types that a checker knows.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, attr-defined, assignment"

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

from ..dtype import int32, int64, uint32
from ..numba import intrinsics as cuda
from .integers import In
from .launching import ComputeKernel, Kernels, Launch, Part, resident, size
from .lookback import CountsBack, is_same, take
from .plans import EACH, is_few
from .scan_tiles import Rows, first_of
from .types import Convert, ItemType, Shared, Zero, size_of
from .vectors import WIDE, aligned, is_aligned, width_for
from .warps import LANES, below, lane, of_lane, warp_inclusive, warp_inclusives

THREADS, BLOCKS = 512, 2  # of a block; that a multiprocessor holds
BYTES = {1: 128, 2: 96}  # of a thread's items, by the parts that are counted
_BYTES_THAT_STAY = {1: 128, 2: 80}  # the same of blocks that take tile by tile
_MOST_ITEMS = {1: 32, 2: 24}  # of a thread
_MOST_STAGED = 192  # bytes of a thread in shared memory
_SECOND = 1 << 16  # of two counts in a word
_FAR = 1 << 20  # behind any tile
i32, u32, small, _large = In(int32), In(uint32), Convert(int32, "a number"), Convert(int64, "a number")


@dataclasses.dataclass(frozen=True)
class Column:
    """What is moved: `read(inputs, i)`, and `writes[p](outputs, place, value)` for what goes to part p, as long as the
    place is less than `rooms[p](outputs)`."""

    type: ItemType
    read: Any
    writes: tuple[Any, ...]
    rooms: tuple[Any, ...]


def rows_for(types: list[ItemType], counted: int, roomy: bool) -> Rows:
    """As large a tile as registers hold, of several columns one at a time: what blocks wait for each other takes the
    same time for any."""
    width, sizes = width_for(*types), list(map(size_of, types))
    if stays(types):
        most, (threads, blocks) = _BYTES_THAT_STAY[counted] // sizes[0], (1024, 1) if roomy else (THREADS, BLOCKS)
        return Rows(width, max(1, min(most, _MOST_ITEMS[counted]) // width), threads, blocks)
    most = BYTES[counted] // sum(sizes)
    if len(sizes) > 1 and max(sizes) <= 8:
        most = 12 if max(sizes) > 4 else 20 if max(sizes) > 2 else 24
    return Rows(width, max(1, min(most, _MOST_ITEMS[counted]) // width), THREADS, BLOCKS)


def stays(types: list[ItemType]) -> bool:
    """Whether blocks take tile by tile: one column, of items that registers hold beside what else a block does."""
    return len(types) == 1 and size_of(types[0]) <= WIDE


class TileParting(Kernels):
    """`part_of(arrays, value, before, i)` says which part an item of the first column goes to: from 0 on, or none, -1.

    `before` is the item in front of it; the first one of all is in part 0 unless `is_free`. What is in the last part
    of `writes` beyond the counted ones has its place by what is left. `tell(outputs, counts)` is told the counts.
    """

    def __init__(
        self,
        columns: list[Column],
        counted: int,
        part_of: Any,
        tell: Any,
        looks_before: bool,
        multiprocessors: int,
        roomy: bool,
    ) -> None:
        types = [column.type for column in columns]
        self.rows, self.stays = rows_for(types, counted, roomy), stays(types)
        self.most_blocks = self.rows.blocks * multiprocessors
        self.counted = counted
        self.back = CountsBack(counted, self.rows.threads, len(columns) == 1)
        of = self._staying if self.stays else self._kernel
        self.kernel = of(columns, part_of, tell, looks_before)
        self.few = _few(columns, counted, part_of, tell, looks_before, self.rows)

    def parts(self, n: int) -> list[Part]:
        return [self.back.part(max(1, self.rows.tiles(n)))]

    def launches(self, inputs: Any, outputs: Any, arrays: Any, n: int, temporary: list[Any]) -> list[Launch]:
        few = is_few(n, self.rows.threads)
        return [self._whole(inputs, outputs, arrays, n)] if few else self._tiled(inputs, outputs, arrays, n, temporary)

    def sample_launches(self, inputs: Any, outputs: Any, arrays: Any, n: int, temporary: list[Any]) -> list[Launch]:
        return [*self._tiled(inputs, outputs, arrays, n, temporary), self._whole(inputs, outputs, arrays, n)]

    def _whole(self, inputs: Any, outputs: Any, arrays: Any, n: int) -> Launch:
        return Launch(self.few, (inputs, outputs, arrays, size(n)), 1, self.rows.threads)

    def _tiled(self, inputs: Any, outputs: Any, arrays: Any, n: int, temporary: list[Any]) -> list[Launch]:
        tiles = max(1, self.rows.tiles(n))  # the last one tells the counts, of no items, too
        values = (inputs, outputs, arrays, size(n), size(tiles), is_aligned(inputs), temporary[0])
        blocks = max(1, min(tiles, self.most_blocks)) if self.stays else tiles
        return [self.back.clearing(temporary[0], tiles), Launch(self.kernel, values, blocks, self.rows.threads)]

    def _staying(self, columns: list[Column], part_of: Any, tell: Any, looks_before: bool) -> ComputeKernel:
        """Of one column: blocks stay, and read their next tile before they look back."""
        rows, counted, tile_size, (column,) = self.rows, self.counted, self.rows.tile, columns
        number, tell_mine, before = self.back.number, self.back.tell_mine, self.back.before
        parted, places = _parts(column, counted, part_of, looks_before, rows), _places(rows, counted)
        move, halves, shared_next = _staged(column, rows, counted), _halves(counted), Shared(int32, 1)
        load_whole, zero = _loading(column, rows), Zero(column.type)

        def empty():
            return tuple(tuple(zero() for _ in run) for run in rows.places)

        def place_of(tile, n):
            start = tile * tile_size
            return start, small(min(n - start, tile_size))

        def load(inputs, start, whole):
            return load_whole(inputs, start) if whole else empty()

        def finish(stage, outputs, tile, tiles, n, mine, words):
            bases = before(words, tile, tiles, mine)
            if tile == tiles - 1 and cuda.threadIdx.x == 0:
                tell(outputs, tuple(base + found for base, found in zip(bases, halves(mine), strict=True)))
            start, valid = place_of(tile, n)
            move.store(outputs, stage, (), (), (), mine, bases, start, valid)

        def part_tiles(inputs, outputs, arrays, n, tiles, wide, words):
            """Each round takes a new tile as far as it goes alone, and finishes that of the round before."""
            stage, following = move.stage(), shared_next()
            tile, new, mine = small(0), number(words), small(0)
            finishes, begins = False, is_same(new < tiles)
            while finishes or begins:
                start, valid = place_of(new, n)
                whole = wide and i32.equal(valid, tile_size)
                first = load(inputs, start, whole)
                if finishes:
                    finish(stage, outputs, tile, tiles, n, mine, words)
                    cuda.syncthreads()
                finishes = begins
                if begins:
                    next_tile = small(0)
                    if cuda.threadIdx.x == 0:
                        next_tile = small(take(words, lane(), 1))  # no lane of others adds to it
                    if not whole:
                        move.fill(stage, inputs, start, valid)
                        cuda.syncthreads()
                        first = move.rows(stage)
                    parts = parted(inputs, arrays, first, start, valid)
                    if cuda.threadIdx.x == 0:
                        following[0] = next_tile
                    found, mine = places(parts)
                    tell_mine(words, new, mine)
                    move.keep(stage, first, parts, found, mine)
                    tile, new = new, following[0]
                    begins = is_same(new < tiles)

        return resident(ComputeKernel(part_tiles), rows.threads, rows.blocks)

    def _kernel(self, columns: list[Column], part_of: Any, tell: Any, looks_before: bool) -> ComputeKernel:
        rows, counted, tile_size = self.rows, self.counted, self.rows.tile
        number, tell_mine, before = self.back.number, self.back.tell_mine, self.back.before
        parted, places = _parts(columns[0], counted, part_of, looks_before, rows), _places(rows, counted)
        sizes = [size_of(column.type) for column in columns]
        halves = _halves(counted)
        staged = [sum(sizes[: k + 1]) <= _MOST_STAGED for k in range(len(columns))]
        moves = tuple(
            (_staged if is_staged else _at_once)(column, rows, counted)
            for column, is_staged in zip(columns, staged, strict=True)
        )

        first_move, *others = moves
        later_moves, has_others, (pack, unpack) = tuple(others), len(moves) > 1, _packed(rows)

        def read_later(stages, inputs, start, valid, whole):
            return tuple(
                move.load(stage, inputs, start, valid, whole) for move, stage in zip(later_moves, stages, strict=True)
            )

        def part_tiles(inputs, outputs, arrays, n, tiles, wide, words):
            tile = number(words)
            start = tile * tile_size
            valid = small(min(n - start, tile_size))
            whole = wide and valid == tile_size
            stages = tuple(move.stage() for move in moves)
            if not whole:
                for move, stage in zip(moves, stages, strict=True):
                    move.fill(stage, inputs, start, valid)
            cuda.syncthreads()
            first = first_move.load(stages[0], inputs, start, valid, whole)
            parts = parted(inputs, arrays, first, start, valid)
            found, mine = places(parts)
            tell_mine(words, tile, mine)
            first_move.keep(stages[0], first, parts, found, mine)
            noted = pack(parts) if has_others else 0
            others = read_later(stages[1:], inputs, start, valid, whole)
            bases = before(words, tile, tiles, mine)
            if has_others:
                parts = unpack(noted)
                for move, stage, values in zip(later_moves, stages[1:], others, strict=True):
                    move.keep(stage, values, parts, found, mine)
                cuda.syncthreads()
            if tile == tiles - 1 and cuda.threadIdx.x == 0:
                tell(outputs, tuple(base + count for base, count in zip(bases, halves(mine), strict=True)))
            for move, stage, values in zip(moves, stages, (first, *others), strict=True):
                move.store(outputs, stage, values, parts, found, mine, bases, start, valid)

        return resident(ComputeKernel(part_tiles), rows.threads, rows.blocks)


def _few(columns: list[Column], counted: int, part_of: Any, tell: Any, looks_before: bool, rows: Rows) -> ComputeKernel:
    """A kernel of one block. A thread has some items, which lie together, and two bits of a word for each."""
    read, threads, warps, shared_totals = columns[0].read, rows.threads, rows.warps, Shared(int32, rows.warps)
    counts, halves = _counter(counted), _halves(counted)
    assert 2 * EACH <= 32
    others, columns = tuple(range(counted, len(columns[0].writes))), tuple(columns)

    def noted(inputs, arrays, i):
        value = before = read(inputs, i)
        if looks_before and i > 0:
            before = read(inputs, i - 1)
        return i32.and_(small(part_of(arrays, value, before, i)), 3)

    def totals_of(mine):
        """Of the threads before this one, and of all."""
        shared, warp = shared_totals(), cuda.threadIdx.x // LANES
        sums = warp_inclusive(mine, lambda a, b: i32.add(a, b))
        if lane() == LANES - 1:
            shared[warp] = sums
        cuda.syncthreads()
        all_sums = warp_inclusive(shared[min(lane(), warps - 1)], lambda a, b: i32.add(a, b))
        before = i32.sub(sums, mine)
        if warp > 0:
            before = i32.add(before, of_lane(all_sums, max(warp - 1, 0)))
        return before, of_lane(all_sums, warps - 1)

    def move(inputs, outputs, part, i, to):
        for column in columns:
            if to < column.rooms[part](outputs):
                column.writes[part](outputs, to, column.read(inputs, i))

    def part_few(inputs, outputs, arrays, n):
        each = (n + (threads - 1)) // threads
        at = cuda.threadIdx.x * each
        end = min(at + each, n)
        parts, mine = small(0), small(0)
        for i in range(at, end):
            part = noted(inputs, arrays, i)
            parts = i32.or_(parts, i32.shl(part, small(2 * (i - at))))
            mine = i32.add(mine, counts(part))
        before, whole = totals_of(mine)
        if cuda.threadIdx.x == 0:
            tell(outputs, tuple(_large(count) for count in halves(whole)))
        for i in range(at, end):
            part, left = i32.and_(parts, 3), i
            for p, place in enumerate(halves(before)):
                if i32.equal(part, p):
                    move(inputs, outputs, p, i, _large(place))
                left = left - place
            for p in others:
                if i32.equal(part, p):
                    move(inputs, outputs, p, i, left)
            before, parts = i32.add(before, counts(part)), i32.shr(parts, 2)

    return resident(ComputeKernel(part_few), threads)


class _Move(NamedTuple):
    """What is done with a column: functions for kernels."""

    stage: Any  # its items in shared memory
    fill: Any  # where a tile is not whole: in their own order
    load: Any  # those of a thread, by rows
    rows: Any  # the same, of a tile that was filled
    keep: Any  # in the order of their parts
    store: Any


def _halves(counted: int):
    """A function for kernels: counts of one part or two."""

    def halves(counts):
        return (counts,) if counted == 1 else (i32.and_(counts, _SECOND - 1), i32.shr(counts, 16))

    return halves


def _parts(column: Column, counted: int, part_of, looks_before, rows: Rows):
    """A function for kernels: the part of each item of a thread. What is behind the last item is in none, or in what is
    left, where it comes last."""
    starts, read, first_in_tile, nowhere = rows.starts, column.read, first_of(rows), -1
    if len(column.writes) > counted:
        nowhere = counted

    def part(arrays, value, before, at, p, room):
        found = small(nowhere)
        if i32.less(p, room):
            found = small(part_of(arrays, value, before, at + p))
        return found

    def in_front(inputs, held, at, room):
        """Of the lane before, of the row before, or of another warp or tile."""
        fronts = tuple(below(run[-1], 1) for run in held)
        lasts = tuple(of_lane(run[-1], LANES - 1) for run in held)
        first, found = fronts[0], ()
        if lane() == 0:
            if at > 0 and i32.less(0, room):
                first = read(inputs, at - 1)
            found = (first, *lasts[:-1])
        else:
            found = fronts
        return found

    def of_row(arrays, items, front, at, p, room):
        befores = (front, *items[:-1]) if looks_before else items
        return tuple(
            part(arrays, v, b, at, i32.add(p, j), room) for j, (v, b) in enumerate(zip(items, befores, strict=True))
        )

    def parted(inputs, arrays, held, start, valid):
        own = small(first_in_tile())
        at, room, fronts = start + own, i32.sub(valid, own), held
        if looks_before:
            fronts = in_front(inputs, held, at, room)
        return tuple(
            of_row(arrays, items, front, at, small(p), room)
            for p, items, front in zip(starts, held, fronts, strict=True)
        )

    return parted


def _packed(rows: Rows):
    """Functions for kernels: which items of a thread are in part 0, a bit each, and parts again."""
    ROUNDS, KS, width = tuple(range(rows.rounds)), tuple(range(rows.width)), rows.width

    def bit(part, k):
        return i32.shl(small(1) if i32.equal(part, 0) else small(0), k)

    def pack(parts):
        found = small(0)
        for r, run in enumerate(parts):
            for k, part in enumerate(run):
                found = i32.or_(found, bit(part, r * width + k))
        return found

    def part(bits, k):
        return i32.sub(i32.and_(i32.shr(bits, k), 1), 1)

    def unpack(noted):
        bits = of_lane(noted, lane())  # a shuffle, of which the compiler does not know that it changes nothing
        return tuple(tuple(part(bits, r * width + k) for k in KS) for r in ROUNDS)

    return pack, unpack


def _counter(counted: int):
    """A function for kernels: what an item of a part adds to counts, which are those of two parts in two halves."""

    def counts(part):
        found = small(0)
        if counted > 1:
            found = small(_SECOND) if i32.equal(part, 1) else found
        return small(1) if i32.equal(part, 0) else found

    return counts


def _places(rows: Rows, counted: int):
    """A function for kernels: how many of each part are before a thread's runs, by rows, and how many the tile has,
    both as `_counter` has them.

    Several rows of a warp are side by side in a word, as bytes of its halves where there are two parts."""
    bits = 8 if rows.row < 1 << 8 else 16
    a_word, warps = (32 if counted == 1 else 16) // bits, rows.warps
    full = (1 << bits) - 1 if counted == 1 else ((1 << bits) - 1) * (_SECOND + 1)
    shared_totals, ROUNDS = Shared(int32, rows.warps), tuple(range(rows.rounds))
    counts, WORDS = _counter(counted), tuple(range(-(-rows.rounds // a_word)))

    def of_run(run):
        found = small(0)
        for part in run:
            found = i32.add(found, counts(part))
        return found

    def packed(parts, word):
        found = small(0)
        for r, run in enumerate(parts[word * a_word : (word + 1) * a_word]):
            found = i32.or_(found, i32.shl(of_run(run), bits * r))
        return found

    def cut(word, shift):
        return i32.and_(u32.shr(word, shift), full)

    def field(words, r):
        word = words[r // a_word]
        return word if a_word == 1 else cut(word, small(bits * (r % a_word)))

    def of_warps(whole):
        """Of the warps before this one, and of all of them."""
        shared, warp, totals = shared_totals(), i32.shr(cuda.threadIdx.x, 5), small(0)
        for r in ROUNDS:
            totals = i32.add(totals, field(whole, r))
        if lane() == 0:
            shared[warp] = totals
        cuda.syncthreads()
        held = shared[small(min(lane(), warps - 1))]
        (sums,) = warp_inclusives((held,), lambda a, b: i32.add(a, b))
        return of_lane(i32.sub(sums, held), warp), of_lane(sums, warps - 1)

    def places(parts):
        held = tuple(packed(parts, word) for word in WORDS)
        sums = warp_inclusives(held, lambda a, b: i32.add(a, b))
        whole, found = tuple(of_lane(after, LANES - 1) for after in sums), ()
        first, mine = of_warps(whole)
        for r in ROUNDS:
            lanes = i32.sub(field(sums, r), field(held, r))
            found = (*found, i32.add(first, lanes))
            first = i32.add(first, field(whole, r))
        return found, mine

    return places


def _loading(column: Column, rows: Rows):
    """A function for kernels: a thread's items of a whole tile, whose arrays lie at multiples of 16 bytes."""
    read, starts, first_in_tile, COLUMNS = column.read, rows.starts, first_of(rows), tuple(range(rows.width))

    def row(near, at):
        return tuple(read(near, at + j) for j in COLUMNS)

    def load_whole(inputs, start):
        near, at = aligned(inputs), start + first_in_tile()
        return tuple(row(near, at + p) for p in starts)

    return load_whole


def _staged(column: Column, rows: Rows, counted: int) -> _Move:
    """Through shared memory."""
    starts, threads, first_in_tile = rows.starts, rows.threads, first_of(rows)
    read, writes, rooms, load_whole = column.read, column.writes, column.rooms, _loading(column, rows)
    KS, rest = tuple(range(rows.width)), len(column.writes) > counted
    counts, halves = _counter(counted), _halves(counted)

    def fill(shared, inputs, start, valid):
        i = small(cuda.threadIdx.x)
        while i32.less(i, valid):
            shared[i] = read(inputs, start + i)
            i = i32.add(i, threads)

    def row(shared, at):
        return tuple(shared[i32.add(at, k)] for k in KS)

    def filled(shared):
        own = small(first_in_tile())
        return tuple(row(shared, i32.add(own, p)) for p in starts)

    def load(shared, inputs, start, valid, whole):
        if whole:
            found = load_whole(inputs, start)
        else:
            found = filled(shared)
        return found

    def put(shared, behind, step, at, part, value):
        """An item in its place, and where the next ones are put."""
        (to, *more) = halves(at)
        if rest:
            left = i32.sub(i32.add(behind, step), to)
            for place in more:
                left = i32.sub(left, place)
                to = place if i32.equal(part, 1) else to
            to = left if i32.equal(part, counted) else to
        if rest or i32.less(-1, part):
            shared[to] = value
        return i32.add(at, counts(part))

    def put_row(shared, behind, step, at, parts, values):
        for k in KS:
            at = put(shared, behind, i32.add(step, k), at, parts[k], values[k])

    def keep(shared, values, parts, found, mine):
        """Of two parts the second one begins behind the first, and what is left behind both."""
        own, (first, *others) = small(first_in_tile()), halves(mine)
        begins, behind = small(0), i32.add(own, first)
        for count in others:
            begins, behind = i32.shl(first, 16), i32.add(behind, i32.add(count, first))
        for p, at, of_row, held in zip(starts, found, parts, values, strict=True):
            put_row(shared, behind, small(p), i32.add(at, begins), of_row, held)

    def copy(outputs, shared, first, count, write, room, base):
        last = small(min(count, room(outputs) - base))
        i = small(cuda.threadIdx.x)
        while i32.less(i, last):
            write(outputs, base + i, shared[i32.add(first, i)])
            i = i32.add(i, threads)

    def store(outputs, shared, values, parts, found, mine, bases, start, valid):
        begins, base = small(0), start
        for p, count in enumerate(halves(mine)):
            copy(outputs, shared, begins, count, writes[p], rooms[p], bases[p])
            begins, base = i32.add(begins, count), base - bases[p]
        if rest:
            copy(outputs, shared, begins, i32.sub(valid, begins), writes[-1], rooms[-1], base)

    return _Move(Shared(column.type, rows.tile), fill, load, filled, keep, store)


def _room_at(at, last):
    """How many items there are from `at` to the last one, as far as a tile goes."""
    return i32.add(small(min(last - at, _FAR)), 1)


def _loading_rows(item: Any, t: ItemType, rows: Rows):
    """A function for kernels: the items of a thread by rows; behind the last item of all, zeros."""
    starts, COLUMNS, zero = rows.starts, tuple(range(rows.width)), Zero(t)

    def row(states, at):
        return tuple(item(states, at + j) for j in COLUMNS)

    def guarded(states, at, p, room):
        value = zero()
        if i32.less(p, room):
            value = item(states, at + p)
        return value

    def guarded_row(states, at, p, room):
        return tuple(guarded(states, at, i32.add(p, j), room) for j in COLUMNS)

    def load(states, at, whole, last):
        if whole:
            near = aligned(states)
            found = tuple(row(near, at + p) for p in starts)
        else:
            room = _room_at(at, last)
            found = tuple(guarded_row(states, at, small(p), room) for p in starts)
        return found

    return load


def _at_once(column: Column, rows: Rows, counted: int) -> _Move:
    """One by one, for items of which shared memory does not hold enough."""
    places, first_in_tile, PARTS = rows.places, first_of(rows), tuple(range(counted))
    writes, rooms, KS = column.writes, column.rooms, tuple(range(rows.width))
    rest, load_rows = len(column.writes) > counted, _loading_rows(column.read, column.type, rows)
    halves = _halves(counted)

    def nothing(*_):
        return ()

    def load(stage, inputs, start, valid, whole):
        at = start + first_in_tile()
        return load_rows(inputs, at, whole, start + valid - 1)

    def put(outputs, p, place, value):
        if place < rooms[p](outputs):
            writes[p](outputs, place, value)

    def store(outputs, stage, values, parts, found, mine, bases, start, valid):
        own = first_in_tile()
        for r, run in enumerate(places):
            at = halves(found[r])
            for k in KS:
                for p in PARTS:
                    if i32.equal(parts[r][k], p):
                        put(outputs, p, bases[p] + at[p], values[r][k])
                if rest and i32.equal(parts[r][k], counted) and i32.less(i32.add(small(own), run[k]), valid):
                    place = start + own + run[k]
                    for p in PARTS:
                        place = place - bases[p] - at[p]
                    put(outputs, counted, place, values[r][k])
                at = tuple(
                    i32.add(place, small(1) if i32.equal(parts[r][k], p) else small(0))
                    for p, place in zip(PARTS, at, strict=True)
                )

    return _Move(nothing, nothing, load, nothing, nothing, store)
