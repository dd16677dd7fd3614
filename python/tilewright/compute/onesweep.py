"""Sorting by digits on a GPU: one kernel counts the digits of all passes, then there is one kernel a pass.

A block takes a tile of keys into registers and counts their digits, warp by warp. It tells how many keys of each digit
there are, and learns by looking back how many the tiles before it have. Meanwhile keys, and then values, are put in the
order of the digits in shared memory, from where they are stored side by side.
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
from .vectors import is_aligned, loading
from .warps import LANES, lane, warp_inclusive

_THREADS = 384
_MOST = 1 << 29  # items of a launch, of which counts of 30 bits tell
_COUNTING = 512  # threads of the block that counts, and pieces of 16 bytes that one takes at a time
_PIECES = 2
_COPIES = 64  # counters of a digit by passes: shared memory has room for three blocks
_COUNTING_BLOCKS = 792
small = Convert(int32, "a number")
i32 = In(int32)


def items_for(key: DType, value: ItemType | None) -> int:
    """Of a thread: what registers hold, and shared memory by tiles."""
    largest = max(bits_of(key) // 8, 0 if value is None else size_of(value))
    if largest <= 4:
        return 20 if value is None else 24
    return 12 if largest <= 8 else max(1, 96 // largest)


def blocks_for(key: DType, value: ItemType | None) -> int:
    """That a multiprocessor holds at a time: three of keys alone. With values, more items are better."""
    return 3 if value is None else 2


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


def last_bits(key: DType, order: SortOrder) -> int:
    """Those of a key behind which no other one comes, whichever digits are asked for."""
    width = bits_of(key)
    sign, full = 1 << (width - 1), (1 << width) - 1
    found = 0 if order is SortOrder.DESCENDING else full
    if key.is_float:
        return found ^ (sign if found & sign else full)
    return found ^ sign if key.signed and not key.is_bool else found


class OneSweep(Kernels):
    def __init__(self, key: DType, value: ItemType | None, read: Any, write: Any, order: SortOrder) -> None:
        self.key, self.passes = key, -(-bits_of(key) // BITS)
        self.items = items_for(key, value)
        self.tile = _THREADS * self.items
        self.clear, self.count, self.bases = _clear(), _count(key, order), _bases()
        word = UNSIGNED_BY_BITS[bits_of(key)]
        last = last_bits(key, order)
        self.sweep = _sweep(native_digit(key, order), last, self.items, word, value, read, write)

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
        per = -(-n // (whole * _COUNTING_BLOCKS))
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
    """A counter for each digit of each pass and for some of the lanes, so that few of them meet."""
    passes, width = -(-bits_of(key) // BITS), max(1, 16 // (bits_of(key) // 8))
    unsigned, word, copies = native(key, order), uint32 if bits_of(key) <= 32 else uint64, min(LANES, _COPIES // passes)
    ops, shared_counts, plain = In(word), Shared(int32, passes * DIGITS * copies), Convert(word, "a mask")
    step, PASSES = _COUNTING * width, tuple(range(passes))
    places = tuple(r * step + j for r in range(_PIECES) for j in range(width))
    tile, load = _PIECES * step, loading(lambda keys, i: keys[i], places)

    def fields(begin, end):
        """Shifts and masks; a pass that is none has one digit."""
        starts = tuple(begin + p * BITS for p in PASSES)
        shifts = tuple(small(min(start, bits_of(key) - 1)) for start in starts)
        return shifts, tuple(plain((1 << max(0, min(BITS, end - start))) - 1) for start in starts)

    def note(shared, bits, shifts, masks, own):
        x = unsigned(bits)
        for p in PASSES:
            digit = small(ops.and_(ops.shr(x, shifts[p]), masks[p]))
            cuda.atomic.add(shared, i32.add(i32.mul(i32.add(digit, p * DIGITS), copies), own), 1)

    def count(keys, counts, n, per, wide, begin, end):
        shared, me = shared_counts(), cuda.threadIdx.x
        for k in range(me, passes * DIGITS * copies, _COUNTING):
            shared[k] = 0
        cuda.syncthreads()
        (shifts, masks), own = fields(begin, end), i32.and_(lane(), copies - 1)
        first = cuda.blockIdx.x * per * tile
        last = min(first + per * tile, n)
        whole = (last - first) // tile if wide else 0
        for k in range(whole):
            for bits in load(keys, first + k * tile + me * width):
                note(shared, bits, shifts, masks, own)
        for i in range(first + whole * tile + me, last, _COUNTING):
            note(shared, keys[i], shifts, masks, own)
        cuda.syncthreads()
        for k in range(me, passes * DIGITS, _COUNTING):
            found = small(0)
            for c in range(copies):
                found = i32.add(found, shared[i32.add(i32.mul(k, copies), i32.and_(i32.add(own, c), copies - 1))])
            if found > 0:
                cuda.atomic.add(counts, k, found)

    return resident(ComputeKernel(count), _COUNTING, 3)


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


def _looking(many: int):
    """A function for kernels: keys of this thread's digit in all tiles before; so many words are read at a time."""
    AHEAD = tuple(range(1, many + 1))

    def one(word, found, at, left, going, waits):
        if not waits:
            waits = True
            if word != 0:
                found = i32.add(found, i32.and_(word, _PARTIAL - 1))
                at, left = at - DIGITS, left - 1
                going = word > 0
                waits = not going
        return found, at, left, going, waits

    def look_back(states, at, tile):
        found, going, left = small(0), tile > 0, tile + 0
        while going:
            waits = False
            for word in tuple(look(states, at - DIGITS * min(k, left)) for k in AHEAD):
                found, at, left, going, waits = one(word, found, at, left, going, waits)
        return found

    return look_back


def _put(shared, at, held):
    for place, value in zip(at, held, strict=True):
        shared[place] = value


def _loader(items: int, read, behind):
    """A function for kernels: what a thread has of a tile, and what is `behind()` the last item. A tile that ends early
    goes through shared memory, so that the code of an item stands there twice."""
    rounds, tile_size = tuple(range(items)), _THREADS * items

    def item(source, i, valid, start):
        found = behind()
        if i32.less(i, valid):
            found = read(source, start + i)
        return found

    def load(shared, source, start, own, valid):
        first = start + own
        if i32.equal(valid, tile_size):
            found = tuple(read(source, first + LANES * r) for r in rounds)
        else:
            i, at = small(cuda.threadIdx.x), small(own)
            while i32.less(i, tile_size):
                shared[i] = item(source, i, valid, start)
                i = i32.add(i, _THREADS)
            cuda.syncthreads()
            found = tuple(shared[i32.add(at, LANES * r)] for r in rounds)
            cuda.syncthreads()
        return found

    return load


BIT_NUMBERS = tuple(range(BITS))
_VOTES = 2  # of so many rows, in one lanes find each other by votes


def _ranker(items: int, digit):
    """Functions for kernels: one counts the digits of a warp's keys; the other puts keys where they are among the
    tile's, by how many are before each digit, which it counts on, and tells where they are.

    Lanes of a digit find each other in `lanes`, zeros before and after, or, in some rows, by a vote for each bit: all
    of them by one way would wait for shared memory, or for votes."""
    by_votes = tuple(r % _VOTES == _VOTES - 1 for r in range(items))

    def counted(counts, bits, shift, mask):
        cuda.atomic.add(counts, i32.add(own_counts(), digit(bits, shift, mask)), 1)

    def own_counts():
        return i32.mul(i32.shr(cuda.threadIdx.x, 5), DIGITS)

    def count(counts, held, shift, mask):
        for bits in held:
            counted(counts, bits, shift, mask)

    def voted(d):
        found = small(-1)
        for b in BIT_NUMBERS:
            is_set = i32.differ(i32.and_(d, 1 << b), 0)
            found = i32.and_(found, i32.xor(cuda.ballot_sync(-1, is_set), small(0) if is_set else small(-1)))
        return found

    def met(lanes, at, me):
        cuda.atomic.or_(lanes, at, me)
        cuda.syncwarp(-1)
        return lanes[at]

    def ranked(counts, lanes, bits, shift, mask, me, votes):
        d = digit(bits, shift, mask)
        at = i32.add(own_counts(), d)
        peers = voted(d) if votes else met(lanes, at, me)
        before, lower = counts[at], popc(i32.and_(peers, cuda.lanemask_lt()))
        cuda.syncwarp(-1)
        if i32.equal(lower, 0):
            counts[at] = i32.add(before, popc(peers))
            if not votes:
                lanes[at] = small(0)
        cuda.syncwarp(-1)
        return i32.add(before, lower)

    def put(counts, lanes, held, shift, mask, sorted_keys):
        found, me = (), i32.shl(1, lane())
        for votes, bits in zip(by_votes, held, strict=True):
            to = ranked(counts, lanes, bits, shift, mask, me, votes)
            sorted_keys[to] = bits
            found = (*found, to)
        return found

    return count, put


def _sweep(digit, last: int, items, key: DType, value: ItemType | None, read, write) -> ComputeKernel:
    tile_size, has_values, value_type = _THREADS * items, value is not None, key if value is None else value
    shared_keys, shared_values = Shared(key, tile_size), Shared(value_type, tile_size)
    shared_counts, shared_lanes = Shared(int32, _WARPS * DIGITS), Shared(int32, _WARPS * DIGITS)
    shared_sums = Shared(int32, _WARPS)
    shared_places, shared_number = Shared(int64, DIGITS), Shared(int32, 1)
    (count, put), plain, look_back = _ranker(items, digit), Convert(key, "a key"), _looking(1 if has_values else 4)
    load = _loader(items, lambda keys, i: keys[i], lambda: plain(last))  # those behind the last key come last
    load_values = _loader(items, read, Zero(value_type))

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
        valid, own = small(min(n - start, tile_size)), warp * (LANES * items) + lane()
        shared, sums, places, sorted_keys = shared_counts(), shared_sums(), shared_places(), shared_keys()
        held, lanes = load(sorted_keys, keys, start, own, valid), shared_lanes()
        for k in range(me, _WARPS * DIGITS, _THREADS):
            shared[k] = 0
            lanes[k] = 0
        if me < DIGITS:
            _clear_for_next(states, other, tile, tiles, most)
        cuda.syncthreads()
        digits = small(0)
        count(shared, held, shift, mask)
        cuda.syncthreads()
        if me < DIGITS:
            digits = _count_of_digit(shared, me)
            publish(states, mine + tile * DIGITS + me, i32.or_(digits, _PARTIAL if tile > 0 else _INCLUSIVE))
        before = _before_digit(sums, me, digits)
        if me < DIGITS:
            _add_to_digit(shared, me, before)
        cuda.syncthreads()
        at = put(shared, lanes, held, shift, mask, sorted_keys)
        if me < DIGITS:
            earlier = look_back(states, mine + tile * DIGITS + me, tile)
            total, base = i32.add(earlier, digits), counts[bases + me]
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
            _put(sorted_values, at, load_values(sorted_values, values, start, own, valid))
            cuda.syncthreads()
            for k in range(me, valid, _THREADS):
                to = places[digit(sorted_keys[small(k)], shift, mask)] + k
                write(out_values, to, sorted_values[small(k)])

    return resident(ComputeKernel(sweep), _THREADS, blocks_for(key, value))
