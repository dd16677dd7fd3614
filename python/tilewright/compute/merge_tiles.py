"""Sorting by merging on a GPU: blocks sort tiles in shared memory, then tiles are merged by twos, as often as it takes.

A thread sorts a few items in registers; then, in a block as among blocks, it finds by a binary search what of two runs
its part of the result is made of, and merges that into registers. For a pass over all items one kernel does the search
for each tile, and another loads what a tile is made of, merges it, and stores it side by side. Values follow their keys
by where these were.
"""

# The kernels' values have no types that a checker knows.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, attr-defined, assignment"

from __future__ import annotations

from typing import Any

from ..dtype import int16, int32, int64
from ..numba import intrinsics as cuda
from .integers import In
from .launching import ComputeKernel, Kernels, Launch, Part, resident, size
from .plans import is_few
from .types import Convert, ItemType, Shared, size_of

THREADS = 256  # of a block that merges
_FEW = 5  # items of a thread of the block that sorts few: more threads work, and a kernel is half as much code
_MOST_SHARED = 96 << 10  # of a block that sorts, which has twice as many threads where that leaves room
i32 = In(int32)
small = Convert(int32, "a number")


def items_for(size: int) -> int:
    """Of a thread; odd, so that the threads of a warp meet in no bank of shared memory."""
    return 17 if size <= 4 else 9 if size <= 8 else 5 if size <= 16 else 3 if size <= 32 else 1


class MergeTiles(Kernels):
    """`pairs` are the keys, and the values if there are any (merge_sort.py)."""

    def __init__(self, pairs: list[Any], types: list[Any], op: Any) -> None:
        self.items = items_for(max(map(size_of, types)))
        self.tile = THREADS * self.items
        value = size_of(types[1]) + 4 if len(types) > 1 else 0  # and its place, twice
        self.levels = 1 if 2 * self.tile * (size_of(types[0]) + value) <= _MOST_SHARED else 0
        self.threads, self.sorted = THREADS << self.levels, self.tile << self.levels
        self.sort = _Parts(pairs, types, op, self.items, self.threads).sort()
        self.few = _Parts(pairs, types, op, _FEW, self.threads).sort() if self.items > _FEW else self.sort
        self.most_few = min(_FEW, self.items) * self.threads
        parts = _Parts(pairs, types, op, self.items, THREADS)
        self.search, self.merge = parts.search(), parts.merge()

    def parts(self, n: int) -> list[Part]:
        """Where tiles begin in the left one of their runs."""
        return [Part(int64, -(-n // self.tile) + 1)]

    def passes(self, n: int) -> int:
        return sum(self.sorted << i < n for i in range(50))

    def launches(self, start: Any, stations: list[Any], arrays: Any, n: int, splits: Any) -> list[Launch]:
        """`stations[i]` is where items are behind the sort of tiles and i passes."""
        import numpy as np

        tiles, count = -(-n // self.tile), size(n)
        if is_few(n, self.threads) and n <= self.most_few:
            return [Launch(self.few, (start, stations[0], arrays, count), 1, self.threads)]
        found = [Launch(self.sort, (start, stations[0], arrays, count), -(-n // self.sorted), self.threads)]
        for i in range(self.passes(n)):
            source, target, level = stations[i], stations[i + 1], np.int64(self.levels + i)
            searched = (source[0], arrays, count, level, splits)
            found.append(Launch(self.search, searched, -(-(tiles + 1) // 128), 128))
            found.append(Launch(self.merge, (source, target, arrays, count, level, splits), tiles, THREADS))
        return found


def splitting(op: Any):
    """How many of the first `behind` items of the result come from the left run; equal ones come from it first."""

    def split(keys, arrays, a, count_a, b, count_b, behind):
        low, high = small(max(0, behind - count_b)), small(min(behind, count_a))
        last = small(b + behind - 1)
        while i32.less(low, high):
            middle = i32.shr(i32.add(low, high), 1)
            if op(arrays, keys[i32.sub(last, middle)], keys[i32.add(a, middle)]):
                high = middle
            else:
                low = i32.add(middle, 1)
        return low

    return split


def merging(op: Any, has_values: bool):
    """A function for kernels: a thread merges `items` items of two runs in shared memory to `to` and behind.

    `whole` items from `begin` on may be read; `places` go along where there are values.
    """
    split = splitting(op)

    def merge_part(keys, places, arrays, a, b, end, behind, to, begin, whole, items):
        left = split(keys, arrays, a, i32.sub(b, a), b, i32.sub(end, b), behind)
        i, j = i32.add(a, left), i32.sub(i32.add(b, behind), left)
        limit = i32.add(begin, i32.sub(whole, 1))
        x, y = keys[small(min(i, limit))], keys[small(min(j, limit))]
        for _ in range(min(items, end - a - behind)):
            from_right = i >= b
            if i < b and j < end:
                from_right = bool(op(arrays, y, x))
            if has_values:
                places[to] = places[j if from_right else i]
            if from_right:
                keys[to] = y
                j = i32.add(j, 1)
                y = keys[small(min(j, limit))]
            else:
                keys[to] = x
                i = i32.add(i, 1)
                x = keys[small(min(i, limit))]
            to = i32.add(to, 1)

    return merge_part


def merging_once(op: Any, items: int):
    """A function for kernels: the keys of the `items` items from `behind` on that the runs from a and b on make.

    `note(k, at)` is told where item k of them lay. No key behind `limit` is read, whatever lies behind both runs.
    """
    split, EACH = splitting(op), tuple(range(items))

    def taken(keys, arrays, i, x, j, y, b, end, limit, k, note):
        has_left = i32.less(i, b)
        from_right = not has_left
        if has_left and i32.less(j, end):
            from_right = bool(op(arrays, y, x))
        at, found = i, x
        if from_right:
            at, found = j, y
        note(k, at)
        at = i32.add(at, 1)
        mine = keys[i32.min(at, limit)]
        if from_right:
            j, y = at, mine
        else:
            i, x = at, mine
        return found, i, x, j, y

    def merged(keys, arrays, a, b, end, behind, limit, note):
        left = split(keys, arrays, a, i32.sub(b, a), b, i32.sub(end, b), behind)
        i, j = i32.add(a, left), i32.sub(i32.add(b, behind), left)
        x, y = keys[i32.min(i, limit)], keys[i32.min(j, limit)]
        found = ()
        for k in EACH:
            mine, i, x, j, y = taken(keys, arrays, i, x, j, y, b, end, limit, small(k), note)
            found = (*found, mine)
        return found

    return merged


def inserting(op: Any, has_values: bool):
    """A function for kernels: a thread sorts a few items in shared memory."""

    def insert(keys, places, arrays, first, last):
        for k in range(first + 1, last):
            at, going, mine = small(k), True, keys[small(k)]
            place = places[small(k)] if has_values else 0
            while going:
                going = False
                if at > first and op(arrays, mine, keys[i32.sub(at, 1)]):
                    keys[at] = keys[i32.sub(at, 1)]
                    if has_values:
                        places[at] = places[i32.sub(at, 1)]
                    at = i32.sub(at, 1)
                    going = True
            keys[at] = mine
            if has_values:
                places[at] = place

    return insert


def exchanging(op: Any, has_values: bool, items: int):
    """The same for at most so many items, in registers: neighbours change places, by twos from the first item on and
    from the second one, until each could have come from one end to the other."""
    EACH, EVEN, ODD = tuple(range(items)), tuple(range(0, items - 1, 2)), tuple(range(1, items - 1, 2))

    def in_order(arrays, a, b, there):
        comes_later, found = False, (a, b)
        if there:
            comes_later = bool(op(arrays, b[0], a[0]))
        if comes_later:
            found = (b, a)
        return found

    def exchanged(arrays, held, firsts, count):
        found = ()
        for k in EACH:
            if k in firsts:
                found = (*found, *in_order(arrays, held[k], held[k + 1], i32.less(k + 1, count)))
            elif k - 1 not in firsts:
                found = (*found, held[k])
        return found

    def exchange(keys, places, arrays, first, last):
        count, held = i32.sub(last, first), ()
        for k in EACH:
            at = i32.add(first, k)
            held = (*held, (keys[at], small(places[at])) if has_values else (keys[at],))
        rounds = i32.shr(i32.add(count, 1), 1)
        while i32.less(0, rounds):
            held = exchanged(arrays, exchanged(arrays, held, EVEN, count), ODD, count)
            rounds = i32.sub(rounds, 1)
        for k in EACH:
            at = i32.add(first, k)
            if i32.less(k, count):
                keys[at] = held[k][0]
                if has_values:
                    places[at] = held[k][1]

    return exchange


def sorting_tile(op: Any, has_values: bool, items: int):
    """A function for kernels: a block sorts `count` keys, `items` a thread, in their place. `places` go along, to where
    as many are free, by turns; it gives where they are then."""
    exchange, merged, EACH = exchanging(op, has_values, items), merging_once(op, items), tuple(range(items))

    def sort(keys, places, arrays, me, count, free):
        here, other = small(0), small(free)
        first, limit = i32.mul(me, items), i32.sub(count, 1)
        exchange(keys, places, arrays, first, small(min(first + items, count)))
        cuda.syncthreads()
        width, pair = small(items), small(me)
        while i32.less(width, count):
            pair = i32.shr(pair, 1)
            base = small(min(i32.mul(pair, i32.mul(width, 2)), count))
            middle = small(min(i32.add(base, width), count))
            end = small(min(i32.add(middle, width), count))
            behind = small(min(i32.sub(first, base), i32.sub(end, base)))

            def note(k, at):
                if has_values:
                    to = i32.add(other, first)  # noqa: B023
                    places[i32.add(to, k)] = places[i32.add(here, at)]  # noqa: B023

            found = merged(keys, arrays, base, middle, end, behind, limit, note)
            cuda.syncthreads()
            for k in EACH:
                keys[i32.add(first, k)] = found[k]
            here, other = other, here
            width = i32.mul(width, 2)
            cuda.syncthreads()
        return here

    return sort


def sorting(op: Any, has_values: bool):
    """A function for kernels: threads sort `count` items from `here` on, `items` each, with as much room at `other`.

    It gives where they are then. `meet()` waits for all of these threads, of which this one is `me`.
    """
    insert, merge_part = inserting(op, has_values), merging(op, has_values)

    def sort(keys, places, arrays, me, items, here, other, count, meet):
        first = i32.mul(me, items)
        insert(keys, places, arrays, i32.add(here, first), small(here + min(first + items, count)))
        meet()
        width, pair = small(items), small(me)
        while i32.less(width, count):
            pair = i32.shr(pair, 1)
            base = i32.mul(pair, i32.mul(width, 2))
            middle = small(min(i32.add(base, width), count))
            end = small(min(i32.add(middle, width), count))
            if first < count:
                a, b, last = i32.add(here, base), i32.add(here, middle), i32.add(here, end)
                to, behind = i32.add(other, first), i32.sub(first, base)
                merge_part(keys, places, arrays, a, b, last, behind, to, here, count, items)
            here, other = other, here
            width = i32.mul(width, 2)
            meet()
        return here

    return sort


def shared_arrays(key: ItemType, value: ItemType | None, room: int, halves: int, of_places: int = 0):
    """A function for kernels: shared arrays for keys and their places, of so many halves, and for values."""
    keys = Shared(key, halves * room)
    if value is None:
        return lambda: (keys(), (), ())
    places, values = Shared(int16, (of_places or halves) * room), Shared(value, room)
    return lambda: (keys(), places(), values())


class _Parts:
    """Kernels of blocks of so many threads, each of which has `items`."""

    def __init__(self, pairs: list[Any], types: list[Any], op: Any, items: int, threads: int) -> None:
        self.pairs, self.types, self.op, self.items, self.threads = pairs, types, op, items, threads
        self.tile, self.has_values = threads * items, len(pairs) > 1
        self.each = tuple(range(items))

    def _shared(self, of_places: int):
        return shared_arrays(self.types[0], self.types[-1] if self.has_values else None, self.tile, 1, of_places)

    def _loaded(self):
        """A function for kernels: a tile's items to shared memory, of a whole one a thread's all at once."""
        EACH, threads, tile = self.each, self.threads, self.tile

        def put(shared, me, step, value):
            shared[i32.add(me, step)] = value

        def loaded(shared, load, valid):
            me, found = cuda.threadIdx.x, ()
            if i32.equal(valid, tile):
                for k in EACH:
                    found = (*found, load(me + k * threads))
                for k in EACH:
                    put(shared, small(me), k * threads, found[k])
            else:
                k = small(me)
                while i32.less(k, valid):
                    shared[k] = load(k)
                    k = i32.add(k, threads)

        return loaded

    def _stored(self):
        """A function for kernels: a tile, whose places begin at `half`, to the target."""
        write_key, write_value = self.pairs[0].write, self.pairs[-1].write
        has_values, loaded, EACH, threads = self.has_values, self._loaded(), self.each, self.threads

        def put_key(target, keys, me, step, start, valid):
            at = i32.add(me, step)
            if i32.less(at, valid):
                write_key(target[0], start + me + step, keys[at])

        def put_value(target, places, values, half, me, step, start, valid):
            at = i32.add(me, step)
            if i32.less(at, valid):
                write_value(target[1], start + me + step, values[places[i32.add(half, at)]])

        def stored(target, shared, half, start, valid, load_value):
            me, (keys, places, values) = cuda.threadIdx.x, shared
            if has_values:
                loaded(values, load_value, valid)
            for k in EACH:
                put_key(target, keys, me, k * threads, start, valid)
            if has_values:
                cuda.syncthreads()
                for k in EACH:
                    put_value(target, places, values, half, me, k * threads, start, valid)

        return stored

    def sort(self) -> ComputeKernel:
        key, value, op, tile, items = self.pairs[0], self.pairs[-1], self.op, self.tile, self.items
        shared_arrays, has_values = self._shared(2), self.has_values
        order, loaded, stored = sorting_tile(op, has_values, items), self._loaded(), self._stored()
        threads = self.threads

        def sort_tiles(source, target, arrays, n):
            me, shared = cuda.threadIdx.x, shared_arrays()
            keys, places, _ = shared
            start = cuda.blockIdx.x * tile
            valid = small(min(n - start, tile))

            def load_key(k):
                return key.convert(key.first(source[0], start + k))

            def load_value(k):
                return value.convert(value.first(source[1], start + k))

            loaded(keys, load_key, valid)
            if has_values:
                for k in range(me, valid, threads):
                    places[k] = k
            cuda.syncthreads()
            half = order(keys, places, arrays, small(me), valid, tile)
            stored(target, shared, half, start, valid, load_value)

        blocks = (1024 if has_values else 1536) // threads if items >= 5 else 0
        return resident(ComputeKernel(sort_tiles), threads, blocks)

    def search(self) -> ComputeKernel:
        read, op, tile = self.pairs[0].read, self.op, self.tile

        def search_tiles(keys, arrays, n, level, splits):
            at = cuda.grid(1)
            start = at * tile
            if start < n:
                a = (at >> (level + 1)) * (2 * tile << level)
                b = min(a + (tile << level), n)
                end, behind = min(b + (tile << level), n), start - a
                low, high = max(0, behind - (end - b)), min(behind, b - a)
                while low < high:
                    middle = (low + high) // 2
                    if op(arrays, read(keys, b + behind - 1 - middle), read(keys, a + middle)):
                        high = middle
                    else:
                        low = middle + 1
                splits[at] = low

        return ComputeKernel(search_tiles)

    def merge(self) -> ComputeKernel:
        key, value, tile, items = self.pairs[0], self.pairs[-1], self.tile, self.items
        shared_arrays, has_values, EACH = self._shared(1), self.has_values, self.each
        merged, loaded, stored = merging_once(self.op, items), self._loaded(), self._stored()

        def merge_tiles(source, target, arrays, n, level, splits):
            shared = shared_arrays()
            keys, places, _ = shared
            start = cuda.blockIdx.x * tile
            valid = small(min(n - start, tile))
            width, base = tile << level, (cuda.blockIdx.x >> (level + 1)) * (2 * tile << level)
            middle = min(base + width, n)
            end, behind = min(middle + width, n), start - base
            left = splits[cuda.blockIdx.x]
            stop = middle - base
            if start + tile < end:
                stop = splits[cuda.blockIdx.x + 1]
            count = small(stop - left)
            from_left, from_right = base + left, middle + behind - left - count

            def place(k):
                """Where item k of what the tile is made of lies."""
                return (from_left if i32.less(k, count) else from_right) + k

            loaded(keys, lambda k: key.read(source[0], place(k)), valid)
            cuda.syncthreads()
            first = i32.mul(cuda.threadIdx.x, items)

            def note(k, at):
                if has_values:
                    places[i32.add(first, k)] = at

            found = merged(keys, arrays, small(0), count, valid, small(min(first, valid)), i32.sub(valid, 1), note)
            cuda.syncthreads()
            for k in EACH:
                keys[i32.add(first, k)] = found[k]
            cuda.syncthreads()
            stored(target, shared, small(0), start, valid, lambda k: value.read(source[1], place(k)))

        if has_values:
            return ComputeKernel(merge_tiles)
        return resident(ComputeKernel(merge_tiles), self.threads, 2048 // self.threads)  # 32 registers are enough
