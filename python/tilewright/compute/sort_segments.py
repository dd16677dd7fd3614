"""Sorts of segments on a GPU, by length: a warp sorts a short one in shared memory, a block a longer one.

Both sort by merging (merge_tiles.py). The kernel of the warps lists the others; what no shared memory holds is sorted
by digits, a pass over each such segment at a time (segmented_sort.py).
"""

# The kernels' values have no types that a checker knows.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, attr-defined, assignment"

from __future__ import annotations

from typing import Any

from ..dtype import UNSIGNED_BY_BITS, DType, int32, int64, uint32, uint64
from ..numba import intrinsics as cuda
from .digits import SortOrder, bits_of
from .integers import In
from .launching import ComputeKernel, Kernels, Launch, Part, resident, size
from .merge_tiles import shared_arrays, sorting
from .onesweep import native
from .types import Convert, ItemType, size_of
from .warps import LANES, lane

WARPS, BLOCK = 8, 512  # of a block that sorts short ones; threads of one that sorts a longer one
_OF_WARPS, _OF_BLOCK = 48 << 10, 96 << 10  # bytes of shared memory
_MOST_BLOCKS = 264
i32 = In(int32)
small = Convert(int32, "a number")


class SortSegments(Kernels):
    def __init__(
        self, key: DType, value: ItemType | None, bounds: Any, read: Any, write: Any, order: SortOrder
    ) -> None:
        each = 2 * (bits_of(key) // 8) + (0 if value is None else 4 + size_of(value))
        self.short = min(256, _OF_WARPS // (WARPS * each))
        self.longer = min(1 << 14, _OF_BLOCK // each)
        parts = _Sorting(key, value, read, write, order)
        self.clear = _clear()
        self.by_warps = parts.by_warps(bounds, self.short, self.longer)
        self.by_blocks = parts.by_blocks(bounds, self.longer)

    def part(self, n: int) -> Part:
        """How many are listed, and which: longer ones, then those that are too long."""
        return Part(int64, 2 + self._room(n) + n // self.longer + 1)

    def _room(self, n: int) -> int:
        return n // self.short + 1

    def launches(self, arrays: tuple[Any, ...], count: int, n: int, lists: Any) -> list[Launch]:
        room = self._room(n)
        sizes = (size(count), size(room), size(n // self.longer + 1))
        return [
            Launch(self.clear, (lists,), 1, LANES),
            Launch(self.by_warps, (*arrays, *sizes, lists), min(-(-count // WARPS), 1 << 20), WARPS * LANES),
            Launch(self.by_blocks, (*arrays, size(room), lists), min(room, _MOST_BLOCKS), BLOCK),
        ]

    def too_long(self, n: int) -> tuple[int, int]:
        """Where the list of those begins, and how many it may have."""
        return 2 + self._room(n), n // self.longer + 1


def _clear() -> ComputeKernel:
    def clear(lists):
        if cuda.threadIdx.x < 2:
            lists[cuda.threadIdx.x] = 0

    return ComputeKernel(clear)


class _Sorting:
    def __init__(self, key: DType, value: ItemType | None, read: Any, write: Any, order: SortOrder) -> None:
        self.key, self.value, self.read, self.write = UNSIGNED_BY_BITS[bits_of(key)], value, read, write
        unsigned, ops = native(key, order), In(uint32 if bits_of(key) <= 32 else uint64)

        def less(arrays, a, b):
            return ops.less(unsigned(a), unsigned(b))

        self.sort = sorting(less, value is not None)

    def _one(self, threads: int):
        """A function for kernels: threads sort a segment in shared memory, whose part of them begins at `base`."""
        read, write, sort, has_values = self.read, self.write, self.sort, self.value is not None

        def one(shared, keys, values, out, out_values, first, count, me, base, room, meet):
            held, places, moved = shared
            for k in range(me, count, threads):
                held[i32.add(base, k)] = keys[first + k]
                if has_values:
                    places[i32.add(base, k)] = k
            meet()
            items = i32.shr(i32.add(count, threads - 1), LOG)
            half = sort(held, places, (), me, items, base, i32.add(base, room), count, meet)
            for k in range(me, count, threads):
                out[first + k] = held[i32.add(half, k)]
                if has_values:
                    moved[i32.add(i32.shr(base, 1), k)] = read(values, first + k)
            meet()
            if has_values:
                for k in range(me, count, threads):
                    write(out_values, first + k, moved[i32.add(i32.shr(base, 1), places[i32.add(half, k)])])
                meet()

        LOG = threads.bit_length() - 1
        return one

    def _shared(self, room: int):
        return shared_arrays(self.key, self.value, room, 2)

    def by_warps(self, bounds: Any, short: int, longer: int) -> ComputeKernel:
        start_of, end_of = bounds
        one, arrays = self._one(LANES), self._shared(WARPS * short)

        def sort_by_warps(ends, keys, values, out, out_values, count, room, more_room, lists):
            shared, warp = arrays(), cuda.threadIdx.x // LANES
            base = i32.mul(warp, 2 * short)
            s = cuda.blockIdx.x * WARPS + warp
            while s < count:
                first, last = start_of(ends[0], s), end_of(ends[1], s)
                length = last - first
                if length > short:
                    if lane() == 0:
                        which = 1 if length > longer else 0
                        at = cuda.atomic.add(lists, which, 1)
                        if at < (more_room if which == 1 else room):
                            lists[2 + which * room + at] = s
                elif length > 0:
                    meet = lambda: cuda.syncwarp(-1)  # noqa: E731
                    numbers = (small(length), lane(), base, small(short), meet)
                    one(shared, keys, values, out, out_values, first, *numbers)
                s = s + cuda.gridDim.x * WARPS

        return ComputeKernel(sort_by_warps)

    def by_blocks(self, bounds: Any, longer: int) -> ComputeKernel:
        start_of, end_of = bounds
        one, arrays = self._one(BLOCK), self._shared(longer)

        def sort_by_blocks(ends, keys, values, out, out_values, room, lists):
            shared = arrays()
            k, listed = cuda.blockIdx.x, min(lists[0], room)
            while k < listed:
                s = lists[2 + k]
                first, last = start_of(ends[0], s), end_of(ends[1], s)
                numbers = (small(last - first), small(cuda.threadIdx.x), small(0), small(longer), cuda.syncthreads)
                one(shared, keys, values, out, out_values, first, *numbers)
                k = k + cuda.gridDim.x

        return resident(ComputeKernel(sort_by_blocks), BLOCK)
