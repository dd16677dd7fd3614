"""Sorting by digits: keys as unsigned integers in their order, and how a block stores items in the order of a digit."""

# The kernels' values have no types that a checker knows.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, attr-defined"

from __future__ import annotations

import enum
from typing import Any

from ..arrays import Array
from ..dtype import UNSIGNED_BY_BITS, DType, int64, uint64
from ..errors import TileTypeError
from ..numba import intrinsics as cuda
from .inputs import ArrayInput
from .types import Convert

DIGITS, BITS = 256, 8  # of a pass


class SortOrder(enum.Enum):
    """Which keys come first."""

    ASCENDING = 0
    DESCENDING = 1


class DoubleBuffer:
    """Two arrays that a sort may use in turn, so that it needs less storage; afterwards `current()` has the result."""

    def __init__(self, d_current: Any, d_alternate: Any) -> None:
        self.d_buffers = [d_current, d_alternate]
        self.selector = 0

    def current(self) -> Any:
        return self.d_buffers[self.selector]

    def alternate(self) -> Any:
        return self.d_buffers[1 - self.selector]


def check_key(given: Any, what: str) -> DType:
    t = given.value_type
    if not isinstance(given, ArrayInput) or not isinstance(t, DType):
        raise TileTypeError(f"{what} is an array of numbers, found {given!r}; merge_sort takes others")
    return t


def bits_of(key: DType) -> int:
    return 8 if key.is_bool else key.bits


def as_bits(view: Any, key: DType) -> Any:
    """An array of keys as unsigned integers."""
    unsigned = UNSIGNED_BY_BITS[bits_of(key)]
    return view.view(unsigned if isinstance(view, Array) else unsigned.numpy)


def ordered(key: DType, order: SortOrder):
    """A function for kernels: bits of a key as an unsigned integer in the order of the keys; -0.0 is 0.0."""
    width = bits_of(key)
    wide = Convert(uint64, "a key")
    sign, full = 1 << (width - 1), (1 << width) - 1
    is_float, is_signed, descending = key.is_float, key.signed and not key.is_bool, order is SortOrder.DESCENDING

    def unsigned(bits):
        found = wide(bits)
        if is_float:
            if found == wide(sign):
                found = wide(0)
            if (found & wide(sign)) != wide(0):
                found = found ^ wide(full)
            else:
                found = found ^ wide(sign)
        elif is_signed:
            found = found ^ wide(sign)
        return found ^ wide(full) if descending else found

    return unsigned


def digit_of(key: DType, order: SortOrder):
    unsigned, whole = ordered(key, order), Convert(int64, "a digit")

    def digit(bits, shift, mask):
        return whole(unsigned(bits) >> shift) & mask

    return digit


def stored_in_order(threads: int):
    """A function for kernels: all threads of a block store the items of a range behind `places`, by digit, in order."""

    def alone(first, last, places, digit_at, move):
        for i in range(first, last):
            digit = digit_at(i)
            to = places[digit]
            places[digit] = to + 1
            move(i, to)

    def together(first, last, places, digit_at, move):
        me = cuda.threadIdx.x
        warp = me // 32
        for at in range(first, last, threads):
            i = at + me
            digit = DIGITS
            if i < last:
                digit = digit_at(i)
            equal = cuda.match_any_sync(-1, digit)
            rank = cuda.popc(equal & cuda.lanemask_lt())
            count = cuda.popc(equal)
            to = 0
            for turn in range(threads // 32):
                if warp == turn:
                    if i < last:
                        to = places[digit] + rank
                    cuda.syncwarp(-1)
                    if i < last and rank == 0:
                        places[digit] = to + count
                cuda.syncthreads()
            if i < last:
                move(i, to)

    return alone if threads == 1 else together


def counted(threads: int):
    """A function for kernels: shared[d] becomes how many items of a range have digit d."""

    def count(first, last, shared, digit_at):
        me = cuda.threadIdx.x
        for d in range(me, DIGITS, threads):
            shared[d] = 0
        cuda.syncthreads()
        for i in range(first + me, last, threads):
            if threads > 1:
                cuda.atomic.add(shared, digit_at(i), 1)
            else:
                digit = digit_at(i)
                shared[digit] = shared[digit] + 1
        cuda.syncthreads()

    return count


def passes(begin_bit: int, end_bit: int, bits: int = BITS) -> list[tuple[int, int]]:
    """(shift, mask) of each pass, from the lowest digit on, of at most so many bits."""
    return [(at, (1 << min(bits, end_bit - at)) - 1) for at in range(begin_bit, end_bit, bits)]


def read_bits(key: DType, begin_bit: Any, end_bit: Any, what: str) -> tuple[int, int]:
    width = bits_of(key)
    if not all(bit is None or hasattr(bit, "__index__") for bit in (begin_bit, end_bit)):
        raise TileTypeError(f"{what}: 'begin_bit' and 'end_bit' are integers or None, found {begin_bit!r}, {end_bit!r}")
    begin, end = 0 if begin_bit is None else int(begin_bit), width if end_bit is None else int(end_bit)
    if not 0 <= begin <= end <= width:
        raise TileTypeError(f"{what}: bits are 0 <= begin_bit <= end_bit <= {width}, found {begin} and {end}")
    return begin, end
