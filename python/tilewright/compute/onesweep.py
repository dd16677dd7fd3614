"""Sorting by digits on a GPU: one kernel counts the digits of all passes, then there is one kernel a pass.

A block takes a tile of keys into registers, ranks them by their digit, warp by warp, and learns by looking back how
many keys of each digit the tiles before it have. Keys, and then values, are put in the order of the digits in shared
memory, from where they are stored side by side.
"""

# The kernels' values have no types that a checker knows.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, attr-defined, assignment"

from __future__ import annotations

from typing import Any

from ..dtype import UNSIGNED_BY_BITS, DType, int32, int64, uint32, uint64
from ..numba import intrinsics as cuda
from .digits import BITS, DIGITS, SortOrder, bits_of
from .integers import In, popc
from .launching import ComputeKernel, Kernels, Launch, Part, known, resident, size
from .lookback import cleared, look, publish, take
from .types import Convert, ItemType, Shared, Zero, size_of
from .vectors import aligned, is_aligned
from .warps import LANES, lane, warp_inclusive

_THREADS = 384
_MOST = 1 << 29  # items of a launch, of which counts of 30 bits tell
_COUNTING = 256  # threads of the block that counts, and pieces of 16 bytes that one takes at a time
_PIECES = 2
small = Convert(int32, "a number")
i32 = In(int32)


def items_for(key: DType, value: ItemType | None) -> int:
    """Of a thread: what registers hold, and shared memory by tiles."""
    largest = max(bits_of(key) // 8, 0 if value is None else size_of(value))
    return 16 if largest <= 4 else 12 if largest <= 8 else max(1, 96 // largest)


def blocks_for(key: DType, value: ItemType | None) -> int:
    """That a multiprocessor holds at a time: three where their items fit into registers, as keys alone do."""
    return 3 if value is None or bits_of(key) // 8 + size_of(value) <= 8 else 2


def native(key: DType, order: SortOrder):
    """A function for kernels: bits of a key as an unsigned integer in the order of the keys, of 32 or 64 bits."""
    width = bits_of(key)
    word = uint32 if width <= 32 else uint64
    ops, plain, signed = In(word), Convert(word, "a key"), In(int32 if width <= 32 else int64)
    sign, full = 1 << (width - 1), (1 << width) - 1
    is_float, is_signed, descending = key.is_float, key.signed and not key.is_bool, order is SortOrder.DESCENDING

    def unsigned(bits):
        found = plain(bits)
        if is_float:
            found = plain(0) if ops.equal(found, sign) else found
            spread = signed.shr(ops.shl(found, word.bits - width), word.bits - 1)
            found = ops.xor(found, ops.or_(ops.and_(spread, full), sign))
        elif is_signed:
            found = ops.xor(found, sign)
        return ops.xor(found, full) if descending else found

    return unsigned


def native_digit(key: DType, order: SortOrder):
    unsigned, ops = native(key, order), In(uint32 if bits_of(key) <= 32 else uint64)

    def digit(bits, shift, mask):
        return small(ops.and_(ops.shr(unsigned(bits), shift), mask))

    return digit


class OneSweep(Kernels):
    def __init__(self, key: DType, value: ItemType | None, read: Any, write: Any, order: SortOrder) -> None:
        self.key, self.passes = key, -(-bits_of(key) // BITS)
        self.items = items_for(key, value)
        self.tile = _THREADS * self.items
        self.clear, self.count, self.bases = _clear(), _count(key, order), _bases()
        word = UNSIGNED_BY_BITS[bits_of(key)]
        self.sweep = _sweep(native_digit(key, order), self.items, word, value, read, write)

    def _most(self) -> int:
        """Items of a launch: whole tiles."""
        return _MOST // self.tile * self.tile

    def _launches_a_pass(self, n: int) -> int:
        return -(-n // self._most())

    def parts(self, n: int) -> list[Part]:
        """For each launch of each pass where digits begin, and a counter of tiles; what two launches publish."""
        launches, tiles = self._launches_a_pass(n), -(-min(n, self._most()) // self.tile)
        return [Part(int64, self.passes * ((launches + 1) * DIGITS + launches)), Part(int32, 2 * DIGITS * tiles)]

    def launches(
        self, digits: list[tuple[int, int]], stations: list[Any], n: int, temporary: list[Any]
    ) -> list[Launch]:
        """`stations` are keys, as unsigned integers, and values: before the first pass, and behind each."""
        import numpy as np

        counts, states = temporary
        room, most = self.parts(n)[0].count, -(-min(n, self._most()) // self.tile)
        keys, (begin, _), end = stations[0][0], digits[0], digits[-1][0] + digits[-1][1].bit_length()
        whole = _COUNTING * _PIECES * max(1, 16 // (bits_of(self.key) // 8))
        per = -(-n // (whole * 1024))
        counted = (keys, counts, size(n), size(per), is_aligned(keys), np.int64(begin), np.int64(end))
        clear = (counts, size(room), states, size(DIGITS * most))
        found = [
            Launch(self.clear, clear, max(1, min(DIGITS * most // 1024, 1024)), 256),
            Launch(self.count, counted, -(-n // (whole * per)), _COUNTING),
            Launch(self.bases, (counts, np.int64(len(digits))), 1, DIGITS),
        ]
        for i, (shift, mask) in enumerate(digits):
            found += self._pass(i, stations[i], stations[i + 1], n, (np.int64(shift), np.int64(mask)), temporary)
        return found

    def _pass(self, i: int, source: Any, target: Any, n: int, digit: Any, temporary: list[Any]) -> list[Launch]:
        counts, states = temporary
        launches, most = known(self._launches_a_pass(n)), -(-min(n, self._most()) // self.tile)
        found = []
        for k in range(launches):
            first, last = k * self._most(), min(n, (k + 1) * self._most())
            tiles = -(-(last - first) // self.tile)
            bases = (k * self.passes + i) * DIGITS
            numbers = (bases, bases + self.passes * DIGITS, self.passes * (launches + 1) * DIGITS + k * self.passes + i)
            turn = (i * launches + k) & 1
            places = tuple(map(size, (first, last, *numbers, turn, tiles, most)))
            found.append(Launch(self.sweep, (*source, *target, *digit, *places, counts, states), tiles, _THREADS))
        return found


def _clear() -> ComputeKernel:
    def clear(counts, size, states, tiles):
        cleared(counts, size)
        cleared(states, tiles)

    return ComputeKernel(clear)


def _count(key: DType, order: SortOrder) -> ComputeKernel:
    passes, width = -(-bits_of(key) // BITS), max(1, 16 // (bits_of(key) // 8))
    unsigned, word = native(key, order), uint32 if bits_of(key) <= 32 else uint64
    ops, shared_counts, plain = In(word), Shared(int32, passes * DIGITS), Convert(word, "a mask")
    step = _COUNTING * width
    places = tuple(r * step + j for r in range(_PIECES) for j in range(width))
    tile = _PIECES * step

    def note(shared, bits, begin, end):
        x = unsigned(bits)
        for p in range((end - begin + (BITS - 1)) // BITS):
            shift = begin + p * BITS
            mask = (1 << min(BITS, end - shift)) - 1
            digit = small(ops.and_(ops.shr(x, shift), plain(mask)))
            cuda.atomic.add(shared, i32.add(digit, p * DIGITS), 1)

    def count(keys, counts, n, per, wide, begin, end):
        shared, me = shared_counts(), cuda.threadIdx.x
        for k in range(me, passes * DIGITS, _COUNTING):
            shared[k] = 0
        cuda.syncthreads()
        first = cuda.blockIdx.x * per * tile
        last = min(first + per * tile, n)
        whole = (last - first) // tile if wide else 0
        for k in range(whole):
            near, at = aligned(keys), first + k * tile + me * width
            for bits in tuple(near[at + p] for p in places):
                note(shared, bits, begin, end)
        for i in range(first + whole * tile + me, last, _COUNTING):
            note(shared, keys[i], begin, end)
        cuda.syncthreads()
        for k in range(me, passes * DIGITS, _COUNTING):
            if shared[k] > 0:
                cuda.atomic.add(counts, k, shared[k])

    return resident(ComputeKernel(count), _THREADS)


def _bases() -> ComputeKernel:
    """One block: the counts of each pass become the sums of those before."""
    warps, shared_sums = DIGITS // LANES, Shared(int64, DIGITS // LANES)

    def bases(counts, passes):
        me, shared = cuda.threadIdx.x, shared_sums()
        for p in range(passes):
            mine = counts[p * DIGITS + me]
            held = warp_inclusive(mine, lambda a, b: a + b)
            if lane() == LANES - 1:
                shared[me // LANES] = held
            cuda.syncthreads()
            before = held - mine
            for w in range(warps):
                before = before + (shared[w] if w < me // LANES else 0)
            counts[p * DIGITS + me] = before
            cuda.syncthreads()

    return ComputeKernel(bases)


_WARPS = _THREADS // LANES
_INCLUSIVE, _PARTIAL = -(1 << 31), 1 << 30  # marks of a count: of all tiles up to its own, of its own alone


def _next_tile(number, counts, at):
    if cuda.threadIdx.x == 0:
        number[0] = take(counts, at, 1)
    cuda.syncthreads()
    return number[0]


def _clear_for_next(states, at, tile, tiles, most):
    """The block's share of what the next launch publishes."""
    k = tile
    while k < most:  # no range, which would ask whether its step is 0
        states[at + k * DIGITS + cuda.threadIdx.x] = 0
        k += tiles


def _count_of_digit(shared, me):
    """Of the tile; counts of warps become sums of those before."""
    found = small(0)
    for w in range(_WARPS):
        at = i32.add(i32.mul(w, DIGITS), me)
        held = shared[at]
        shared[at] = found
        found = i32.add(found, held)
    return found


def _before_digit(sums, me, count):
    """Keys of the tile with lower digits."""
    held = warp_inclusive(count, lambda a, b: i32.add(a, b))
    if lane() == LANES - 1:
        sums[me // LANES] = held
    cuda.syncthreads()
    found = i32.sub(held, count)
    for w in range(_WARPS):
        found = i32.add(found, sums[w] if w < me // LANES else small(0))
    return found


def _add_to_digit(shared, me, before):
    """Sums of warps count from the tile's first key."""
    for w in range(_WARPS):
        at = i32.add(i32.mul(w, DIGITS), me)
        shared[at] = i32.add(shared[at], before)


def _look_back(states, at, tile):
    """Keys of this thread's digit in all tiles before."""
    found, going = small(0), tile > 0
    while going:
        word = look(states, at - DIGITS)
        if word != 0:
            found = i32.add(found, i32.and_(word, _PARTIAL - 1))
            going = word > 0
            at = at - DIGITS
    return found


def _put(shared, at, held):
    for place, value in zip(at, held, strict=True):
        shared[place] = value


def _loader(items: int, read, of: Any):
    """A function for kernels: what a thread has of a tile, zeros behind the last item."""
    rounds, zero = tuple(range(items)), Zero(of)

    def guarded(source, i, n):
        found = zero()
        if i < n:
            found = read(source, i)
        return found

    def load(source, first, n, whole):
        if whole:
            found = tuple(read(source, first + LANES * r) for r in rounds)
        else:
            found = tuple(guarded(source, first + LANES * r, n) for r in rounds)
        return found

    return load


def _ranker(items: int, digit):
    """A function for kernels: for each key its digit, and behind that how many of the warp with the same digit are
    before it; the warp's counts are left in `shared`. Lanes of a digit meet in `lanes`, zeros before and after."""
    rounds = tuple(range(items))

    def digit_there(bits, place, valid, shift, mask):
        """What is behind the last key comes last."""
        found = small(DIGITS - 1)
        if i32.less(place, valid):
            found = digit(bits, shift, mask)
        return found

    def ranked(shared, lanes, own, bits, place, valid, shift, mask, me):
        d = digit_there(bits, place, valid, shift, mask)
        at = i32.add(own, d)
        cuda.atomic.or_(lanes, at, me)
        cuda.syncwarp(-1)
        peers, before = lanes[at], shared[at]
        lower = popc(i32.and_(peers, cuda.lanemask_lt()))
        cuda.syncwarp(-1)
        if i32.equal(lower, 0):
            shared[at] = i32.add(before, popc(peers))
            lanes[at] = small(0)
        cuda.syncwarp(-1)
        return i32.or_(i32.shl(i32.add(before, lower), BITS), d)

    def rank(shared, lanes, own, held, place, valid, shift, mask):
        found, me = (), i32.shl(1, lane())
        for r, bits in zip(rounds, held, strict=True):
            rows = i32.add(place, LANES * r)
            found = (*found, ranked(shared, lanes, own, bits, rows, valid, shift, mask, me))
        return found

    return rank


def _sweep(digit, items, key: DType, value: ItemType | None, read, write) -> ComputeKernel:
    tile_size, has_values, value_type = _THREADS * items, value is not None, key if value is None else value
    shared_keys, shared_values = Shared(key, tile_size), Shared(value_type, tile_size)
    shared_counts, shared_lanes = Shared(int32, _WARPS * DIGITS), Shared(int32, _WARPS * DIGITS)
    shared_sums = Shared(int32, _WARPS)
    shared_places, shared_number = Shared(int64, DIGITS), Shared(int32, 1)
    rank, load = _ranker(items, digit), _loader(items, lambda keys, i: keys[i], key)
    load_values = _loader(items, read, value_type)

    def sweep(
        keys,
        values,
        out,
        out_values,
        shift,
        mask,
        begin,
        n,
        bases,
        next_bases,
        counter,
        turn,
        tiles,
        most,
        counts,
        states,
    ):
        me, warp = cuda.threadIdx.x, cuda.threadIdx.x // LANES
        tile = _next_tile(shared_number(), counts, counter)
        mine, other = turn * most * DIGITS, (1 - turn) * most * DIGITS
        start = begin + tile * tile_size
        valid, first = small(min(n - start, tile_size)), start + warp * (LANES * items) + lane()
        shared, sums, places, sorted_keys = shared_counts(), shared_sums(), shared_places(), shared_keys()
        held, lanes = load(keys, first, n, start + tile_size <= n), shared_lanes()
        for k in range(me, _WARPS * DIGITS, _THREADS):
            shared[k] = 0
            lanes[k] = 0
        if me < DIGITS:
            _clear_for_next(states, other, tile, tiles, most)
        cuda.syncthreads()
        own = i32.mul(warp, DIGITS)
        ranks = rank(shared, lanes, own, held, small(first - start), valid, shift, mask)
        cuda.syncthreads()
        count = small(0)
        if me < DIGITS:
            count = _count_of_digit(shared, me)
            publish(states, mine + tile * DIGITS + me, i32.or_(count, _PARTIAL if tile > 0 else _INCLUSIVE))
        before = _before_digit(sums, me, count)
        if me < DIGITS:
            _add_to_digit(shared, me, before)
        cuda.syncthreads()
        at = tuple(i32.add(shared[i32.add(own, i32.and_(r, DIGITS - 1))], i32.shr(r, BITS)) for r in ranks)
        _put(sorted_keys, at, held)
        if me < DIGITS:
            earlier = _look_back(states, mine + tile * DIGITS + me, tile)
            total, base = i32.add(earlier, count), counts[bases + me]
            if tile > 0:
                publish(states, mine + tile * DIGITS + me, i32.or_(total, _INCLUSIVE))
            if tile == tiles - 1:
                counts[next_bases + me] = base + total
            places[me] = base + earlier - before
        cuda.syncthreads()
        for k in range(me, valid, _THREADS):
            bits = sorted_keys[small(k)]
            out[places[digit(bits, shift, mask)] + k] = bits
        if has_values:
            sorted_values = shared_values()
            _put(sorted_values, at, load_values(values, first, n, start + tile_size <= n))
            cuda.syncthreads()
            for k in range(me, valid, _THREADS):
                to = places[digit(sorted_keys[small(k)], shift, mask)] + k
                write(out_values, to, sorted_values[small(k)])

    return resident(ComputeKernel(sweep), _THREADS, blocks_for(key, value))
