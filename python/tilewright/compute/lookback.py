"""Totals of the tiles before a tile, found while all tiles are under way.

A block takes its tile's number from a counter, so that those with lower numbers have started, and waiting for them
ends. It publishes its total. Groups of tiles have a total of all items up to their end, which the group's last tile
publishes. A tile joins a group's total with those of the tiles since, one read by each thread: always the same ones in
the same order, so that results do not depend on who was when. Where groups are half as large as blocks, that is not the
group before the tile's own but the one before that, whose total has long been there.

A total is published as words of 32 bits, each beside a bit that says that it is there; so no fence is needed.
"""

# The kernels' values have no types that a checker knows.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, attr-defined"

from __future__ import annotations

from typing import Any

from ..capture.simt import atomics
from ..device.complexes import of_parts
from ..dtype import UNSIGNED_BY_BITS, DType, int32, int64, uint8, uint32, uint64
from ..errors import TileError
from ..numba import intrinsics as cuda
from .launching import ComputeKernel, Kernels, Launch, Part, common, size
from .types import Convert, ItemType, Shared, Zero, _struct_of, is_complex, parts_of
from .warps import LANES, block_total, i32, lane, of_lane, warp_inclusives

_THERE = 1 << 32  # beside a word
_LOW = _THERE - 1
_PAUSE = 40  # nanoseconds between two looks

small = Convert(int32, "a tile's number")


class _Access:
    """In a kernel: a relaxed atomic access, as far as the device."""

    def __init__(self, method: str) -> None:
        self.method = method

    def __call__(self, array: Any, index: Any, value: Any = None) -> Any:
        raise TileError("an atomic access of kernels was called on the host")

    def __tw_call__(self, frame: Any, array: Any, index: Any, value: Any = None) -> Any:
        run: Any = atomics.METHODS[self.method]
        ref = atomics.atomic_ref(frame, array, index)
        return run(frame, ref, *(() if value is None else (value,)), "relaxed", "device")


look, publish, take = _Access("load"), _Access("store"), _Access("add")


def _leaves(t: ItemType) -> list[DType]:
    if isinstance(t, DType):
        return [t]
    parts = (t.part, t.part) if is_complex(t) else parts_of(t)
    return [leaf for part in parts for leaf in _leaves(part)]


class _Split:
    """In a kernel: `split(value)` are the words of a value, each an int64 of 32 bits."""

    def __init__(self, t: ItemType) -> None:
        self.type = t
        self.count = sum(2 if leaf.bits > 32 else 1 for leaf in _leaves(t))

    def __call__(self, value: Any) -> Any:
        raise TileError("a value of kernels was split on the host")

    def __tw_call__(self, frame: Any, value: Any) -> Any:
        return tuple(self._words(frame, value, self.type))

    def _words(self, frame: Any, value: Any, t: ItemType) -> list[Any]:
        emit = frame.emit
        if isinstance(t, DType):
            bits = emit.cast(value, uint8) if t.is_bool else emit.bitcast(value, UNSIGNED_BY_BITS[t.bits])
            if t.bits <= 32:
                return [emit.cast(emit.cast(bits, uint32), int64)]
            wide = emit.bitcast(value, int64)
            high = emit.binary("bitwise_rshift", emit.bitcast(value, uint64), emit.constant(32, uint64))
            return [emit.binary("bitwise_and", wide, emit.constant(_LOW, int64)), emit.cast(high, int64)]
        if is_complex(t):
            parts = [(value.real, t.part), (value.imag, t.part)]
        else:
            held = list(value) if isinstance(t, tuple) else [getattr(value, f) for f in t.__tw_struct__]
            parts = list(zip(held, parts_of(t), strict=True))
        return [word for v, part in parts for word in self._words(frame, v, part)]


class _Join:
    """In a kernel: `join(words)` is the value that was split."""

    def __init__(self, t: ItemType) -> None:
        self.type = t

    def __call__(self, words: Any) -> Any:
        raise TileError("a value of kernels was joined on the host")

    def __tw_call__(self, frame: Any, words: Any) -> Any:
        return self._value(frame, iter(words), self.type)

    def _value(self, frame: Any, words: Any, t: ItemType) -> Any:
        emit = frame.emit
        if isinstance(t, DType):
            low = emit.cast(next(words), uint32)
            if t.is_bool:
                return emit.compare("not_equal", low, emit.constant(0, uint32))
            if t.bits <= 32:
                return emit.bitcast(emit.cast(low, UNSIGNED_BY_BITS[t.bits]), t)
            high = emit.cast(emit.cast(next(words), uint32), uint64)
            high = emit.binary("bitwise_lshift", high, emit.constant(32, uint64))
            return emit.bitcast(emit.binary("bitwise_or", emit.cast(low, uint64), high), t)
        if is_complex(t):
            real = self._value(frame, words, t.part)
            return of_parts(t, real, self._value(frame, words, t.part))
        made = [self._value(frame, words, part) for part in parts_of(t)]
        return tuple(made) if isinstance(t, tuple) else _struct_of(t, made)


def is_same(held):
    """What is the same in all threads of a block, so that the compiler knows that it is."""
    return cuda.syncthreads_or(held) != 0


def cleared(array, count):
    """Of all threads of a grid. To count up to a bound takes no division, as the iterations of a range would."""
    k = cuda.grid(1)
    while k < count:
        array[k] = 0
        k = k + cuda.gridsize(1)


def _clear() -> ComputeKernel:
    def clear(words, count):
        cleared(words, count)

    return common(ComputeKernel(clear), "lookback.clear")


class Words:
    """How values of a type are published: makes functions for kernels."""

    def __init__(self, t: ItemType) -> None:
        self.split, self.join = _Split(t), _Join(t)
        self.count = self.split.count

    def tell(self):
        split = self.split

        def tell(states, at, value):
            for k, word in enumerate(split(value)):
                publish(states, at + k, word | _THERE)

        return tell

    def is_told(self):
        words = self.count

        def is_told(states, at):
            return are_there(tuple(look(states, at + k) for k in range(words)))

        return is_told

    def told(self):
        join, words = self.join, self.count

        def told(states, at):
            return join(tuple(look(states, at + k) & _LOW for k in range(words)))

        return told

    def seen(self):
        """A function for kernels: the words as they are now, for `waited`."""
        words = self.count

        def seen(states, at):
            return tuple(look(states, at + k) for k in range(words))

        return seen

    def waited(self):
        join, seen = self.join, self.seen()

        def waited(states, at, found):
            while not are_there(found):
                cuda.nanosleep(_PAUSE)
                found = seen(states, at)
            return join(tuple(word & _LOW for word in found))

        return waited

    def awaited(self):
        seen, waited = self.seen(), self.waited()

        def awaited(states, at):
            return waited(states, at, seen(states, at))

        return awaited


def are_there(found):
    joined = found[0]
    for word in found[1:]:
        joined = joined & word
    return joined & _THERE != 0


def _numbering():
    """A function for kernels: the number of the block's tile."""
    shared_number = Shared(int32, 1)

    def number(words):
        shared = shared_number()
        if cuda.threadIdx.x == 0:
            shared[0] = take(words, 0, 1)
        cuda.syncthreads()
        return shared[0]

    return number


def _clearing(clear: ComputeKernel, words: Any, count: int) -> Launch:
    return Launch(clear, (words, size(count)), max(1, min(-(-count // 1024), 1024)), 256)


class CountsBack(Kernels):
    """Counts of one part, or of two in halves of a number, in tiles of less than 2^15 items; for blocks of so many
    threads, a power of two.

    A tile's counts are one word, a group's are one each, beside a bit that says that they are there. Groups have as
    many tiles as a block has threads, or half as many where the block `only_waits`.
    """

    def __init__(self, parts: int, threads: int, only_waits: bool) -> None:
        self.parts, self.threads, self.group = parts, threads, threads // 2 if only_waits else threads
        self.clear = _clear()
        self.number, self.tell_mine, self.before = _numbering(), self._telling(), self._before()

    def part(self, tiles: int) -> Part:
        """The counter, then the words of tiles and of groups."""
        return Part(int64, 1 + tiles + -(-tiles // self.group) * self.parts)

    def clearing(self, words: Any, tiles: int) -> Launch:
        return _clearing(self.clear, words, self.part(tiles).count)

    def _telling(self):
        """A function for kernels: thread 0 publishes the counts of a tile, `mine`."""

        def tell_mine(words, tile, mine):
            if cuda.threadIdx.x == 0:
                publish(words, 1 + tile, mine | _THERE)

        return tell_mine

    def _before(self):
        """A function for kernels: the counts of all tiles before this one, each by itself, on all threads."""
        threads, parts, two, PARTS = self.threads, self.parts, self.parts == 2, tuple(range(self.parts))
        warps, group_size, shift = threads // LANES, self.group, self.group.bit_length() - 1
        since = threads // group_size - 1  # groups whose tiles are read, beside the tile's own
        shared_sums, shared_groups = Shared(int32, self.parts * warps), Shared(int64, self.parts)

        def awaited(words, at, bit):
            found = look(words, at)
            while found & bit == 0:
                cuda.nanosleep(_PAUSE)
                found = look(words, at)
            return found

        def halves(counts):
            return (i32.and_(counts, _LOW >> 16), i32.shr(counts, 16)) if two else (counts,)

        def added(values):
            return warp_inclusives(values, lambda a, b: i32.add(a, b))

        def before(words, tile, tiles, mine):
            me, group, warp = small(cuda.threadIdx.x), i32.shr(tile, shift), i32.shr(cuda.threadIdx.x, 5)
            known, sums, groups = small(max(group - since, 0)), shared_sums(), shared_groups()
            first, values, of_groups = i32.shl(known, shift), (small(0),) * parts, 1 + tiles
            if i32.less(i32.add(first, me), tile):
                values = halves(small(awaited(words, 1 + first + me, _THERE) & _LOW))
            if me == threads - 1 and known > 0:  # of the tiles that are read there are fewer then
                for p in PARTS:
                    groups[p] = awaited(words, of_groups + (known - 1) * parts + p, 1) >> 1
            values = added(values)
            if lane() == LANES - 1:
                for p in PARTS:
                    sums[i32.add(warp, p * warps)] = values[p]
            cuda.syncthreads()
            held = added(tuple(sums[i32.add(small(min(lane(), warps - 1)), p * warps)] for p in PARTS))
            found = tuple(of_lane(value, warps - 1) + 0 for value in held)
            if known > 0:
                found = tuple(value + groups[p] for p, value in zip(PARTS, found, strict=True))
            if me == 0 and i32.equal(i32.and_(tile, group_size - 1), group_size - 1):
                for p, count in enumerate(halves(mine)):
                    publish(words, of_groups + group * parts + p, (found[p] + count) << 1 | 1)
            return found

        return before


class LookBack(Kernels):
    """Totals of a type, for blocks of so many threads; half as many tiles are a group."""

    def __init__(self, t: ItemType, fold: Any, threads: int) -> None:
        self.type, self.threads, self.group, self.told = t, threads, threads // 2, Words(t)
        self.words = self.told.count
        self.clear = _clear()
        self.number, self.tell_mine, self.before = _numbering(), self._telling(), self._before(fold)

    def part(self, tiles: int) -> Part:
        """The counter, then the words of tiles and of groups."""
        return Part(int64, 1 + (tiles + -(-tiles // self.group)) * self.words)

    def clearing(self, words: Any, tiles: int) -> Launch:
        return _clearing(self.clear, words, self.part(tiles).count)

    def _telling(self):
        """A function for kernels: thread 0 publishes the total of a tile, `mine`."""
        tell, words = self.told.tell(), self.words

        def tell_mine(states, tile, mine):
            if cuda.threadIdx.x == 0:
                tell(states, 1 + tile * words, mine)

        return tell_mine

    def _before(self, fold):
        """A function for kernels: on all threads, the total of what `first` is and of all tiles before this one."""
        tell, awaited, words, group_size = self.told.tell(), self.told.awaited(), self.words, self.group
        shift = group_size.bit_length() - 1
        assert group_size == 1 << shift
        seen, waited, WORDS = self.told.seen(), self.told.waited(), tuple(range(self.words))
        zero, shared_totals = Zero(self.type), Shared(self.type, self.threads // LANES)
        shared_total = Shared(self.type, 1)

        def before(states, arrays, tile, tiles, mine, first, has_first):
            """`mine` is the total of this tile, on thread 0. With no `has_first` tile 0 has nothing before it."""
            me, group = cuda.threadIdx.x, i32.shr(tile, shift)
            known, groups = i32.max(i32.sub(group, 1), 0), 1 + tiles * words
            start, of_group = i32.shl(known, shift), groups + (known - 1) * words
            value, early = zero(), tuple(0 * me for _ in WORDS)
            if me == 0 and known > 0:  # most often it is there, and nobody waits for it behind the others
                early = seen(states, of_group)
            if i32.less(i32.add(start, me), tile):
                value = awaited(states, 1 + (start + me) * words)
            value = block_total(shared_totals(), value, i32.sub(tile, start), lambda a, b: fold(arrays, a, b))
            shared = shared_total()
            if me == 0:
                if known > 0:
                    value = fold(arrays, waited(states, of_group, early), value)
                elif has_first:
                    value = fold(arrays, first, value) if tile > start else first
                if i32.equal(i32.and_(tile, group_size - 1), group_size - 1):
                    there = has_first or tile > 0
                    tell(states, groups + group * words, fold(arrays, value, mine) if there else mine)
                shared[0] = value
            cuda.syncthreads()
            return shared[0]

        return before
