"""Histograms on a GPU: blocks count in shared memory, and add what they counted to the output at the end.

of 8 bits    samples are counted by their bits, whatever the levels; what each of them is, is found at the end
few          bins have a counter for each lane, so that the lanes of a warp never meet
more         a counter for each bin
packed       two counters of 16 bits in a word; the thread whose sample makes one half full carries that on
many         atomics on the output
at once      the same of few samples, by one block that clears the output before
"""

# The kernels' values have no types that a checker knows.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, attr-defined"

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ..dtype import DType, int32, uint8, uint32
from ..numba import intrinsics as cuda
from .integers import In, popc
from .launching import ComputeKernel, resident
from .types import Convert, Local, Shared
from .vectors import loading, width_for
from .warps import LANES, lane, of_lane

THREADS, AT_ONCE = 1024, 512  # of a block
SHARED = 512, 3  # threads of a block, and blocks that a multiprocessor holds, of those with a counter for each bin
_PIECES = 4  # of 16 bytes, that a thread reads at a time
FEW, MORE, PACKED, CLEARED = 256, 256 * LANES, 65536, 16384  # bins
_FULL = 1 << 15  # of a counter of 16 bits, which others may add to before it is emptied
i32, u32 = In(int32), In(uint32)
small = Convert(int32, "a bin")


class Bins(NamedTuple):
    """Functions for kernels: the bin of a sample, or -1; the same where `is_quick(how)`, in little code.

    `guess` has no branches: a number below 0 or from `bins` on is no bin, and where it may be wrong, there is a doubt.
    """

    of: Any  # (value, bins, how)
    quick: Any
    is_quick: Any
    guess: Any = None  # (value, bins, how): a number and whether there is a doubt


def tile_for(sample: DType, threads: int = THREADS) -> int:
    return threads * _PIECES * width_for(sample)


def _counting(read: Any, sample: DType, threads: int = THREADS):
    """A function for kernels: `note(value, there)` of each sample of a block, and `turn()` behind at most a tile.

    Where it is `wide`, `note_all` has what a thread has of a whole tile."""
    width = width_for(sample)
    tile = tile_for(sample, threads)
    places = tuple(r * threads * width + j for r in range(_PIECES) for j in range(width))
    load = loading(read, places)

    def each(samples, n, per, wide, note_all, note, turn):
        me, first = cuda.threadIdx.x, cuda.blockIdx.x * per * tile
        last = min(first + per * tile, n)
        whole = max(0, (last - first) // tile) if wide else 0
        for k in range(whole):
            note_all(load(samples, first + k * tile + me * width))
            turn()
        for k in range((last - first - whole * tile + (threads - 1)) // threads):
            i = first + whole * tile + k * threads + me
            note(read(samples, min(i, last - 1)), i < last)
            turn()

    return each


def _binning(read: Any, sample: DType, by: Bins):
    """The same for the bins of samples: `note(bin, there)`."""
    each, (of, quick, is_quick, _) = _counting(read, sample), by

    def each_bin(samples, n, per, wide, bins, how, note, turn):
        def note_quick(values):
            for value in values:
                note(quick(value, bins, how), True)

        def note_any(value, there):
            note(of(value, bins, how), there)

        each(samples, n, per, wide and is_quick(how), note_quick, note_any, turn)

    return each_bin


def _go_on():
    """Nothing waits."""


def _zeroed(shared, count, threads=THREADS):
    for i in range(cuda.threadIdx.x, count, threads):
        shared[i] = 0
    cuda.syncthreads()


def _lanes_joined(shared, bin):
    """The counters of the lanes; each thread begins elsewhere, so that the lanes of a warp never meet."""
    found = small(0)
    for k in range(LANES):
        found = i32.add(found, shared[i32.add(i32.mul(bin, LANES), i32.and_(i32.add(lane(), k), LANES - 1))])
    return found


def of_bytes(read: Any, sample: DType, bin_of: Any) -> ComputeKernel:
    each, shared_counts, bits = _counting(read, sample), Shared(int32, 256 * LANES), Convert(uint8, "a sample")
    word, back = Convert(uint32, "a sample"), Convert(sample, "a sample")

    def count_bytes(samples, out, n, per, wide, bins, how):
        shared, own = shared_counts(), lane()
        _zeroed(shared, 256 * LANES)

        def note(value, there):
            if there:
                cuda.atomic.add(shared, i32.add(i32.mul(word(bits(value)), LANES), own), 1)

        def note_all(values):
            for value in values:
                note(value, True)

        each(samples, n, per, wide, note_all, note, _go_on)
        cuda.syncthreads()
        for b in range(cuda.threadIdx.x, 256, THREADS):
            found, count = bin_of(back(b), bins, how), _lanes_joined(shared, b)
            if found >= 0 and count > 0:
                cuda.atomic.add(out, found, count)

    return resident(ComputeKernel(count_bytes), THREADS)


def of_shared(read: Any, sample: DType, by: Bins) -> ComputeKernel:
    """A counter for each bin, or, of few bins, for each bin and lane; and one behind, for what is in no bin."""
    each, shared_counts = _counting(read, sample, SHARED[0]), Shared(int32, MORE + LANES)
    of, guess, is_quick = by.of, by.guess or _sure(by.quick), by.is_quick
    items = _PIECES * width_for(sample)
    local_values, EACH = Local(sample, items), tuple(range(items))

    def count_shared(samples, out, n, per, wide, bins, how):
        shared, are_few, last = shared_counts(), bins <= FEW, small(bins)
        shift, own = (small(5), lane()) if are_few else (small(0), small(0))
        _zeroed(shared, bins << shift, SHARED[0])

        def count(found, more):
            """No branch: numbers that are no bin's, as unsigned ones, are not below `bins`."""
            cuda.atomic.add(shared, i32.add(i32.shl(u32.min(found, last), shift), own), more)

        def note(value, there):
            if there:
                count(of(value, bins, how), 1)

        def mend(values, doubts):
            """Values in doubt, a bit each, in a loop: to write them out would be most of the kernel."""
            local = local_values()
            for k in EACH:
                local[k] = values[k]
            while i32.differ(doubts, 0):
                value = local[popc(i32.and_(i32.sub(doubts, 1), i32.xor(doubts, -1)))]
                count(guess(value, bins, how)[0], -1)
                count(of(value, bins, how), 1)
                doubts = i32.and_(doubts, i32.sub(doubts, 1))

        def note_all(values):
            doubts = small(0)
            for k, value in enumerate(values):
                found, doubt = guess(value, bins, how)
                doubts = i32.or_(doubts, i32.shl(doubt, k))
                count(found, 1)
            if i32.differ(doubts, 0):
                mend(values, doubts)

        each(samples, n, per, wide and is_quick(how), note_all, note, _go_on)
        cuda.syncthreads()
        for b in range(cuda.threadIdx.x, bins, SHARED[0]):
            counted = _lanes_joined(shared, b) if are_few else shared[b]
            if counted > 0:
                cuda.atomic.add(out, b, counted)

    return resident(ComputeKernel(count_shared), *SHARED)


def _sure(quick: Any):
    def guess(value, bins, how):
        return quick(value, bins, how), small(0)

    return guess


def of_packed(read: Any, sample: DType, by: Bins) -> ComputeKernel:
    each, shared_counts = _binning(read, sample, by), Shared(uint32, PACKED // 2)

    def added(shared, out, bin, count):
        """A counter is below `_FULL` whenever the block meets, and in between it has at most a tile's samples more."""
        word, shift = i32.shr(bin, 1), i32.mul(i32.and_(bin, 1), 16)
        old = cuda.atomic.add(shared, word, u32.shl(count, shift))
        before = i32.and_(u32.shr(old, shift), 0xFFFF)
        if before < _FULL and before + count >= _FULL:
            cuda.atomic.add(shared, word, u32.sub(0, u32.shl(_FULL, shift)))
            cuda.atomic.add(out, bin, _FULL)

    def count_packed(samples, out, n, per, wide, bins, how):
        shared = shared_counts()
        _zeroed(shared, (bins + 1) // 2)

        def note(place, there):
            """Where all lanes have the same bin, the first one counts for them."""
            found = small(place) if there else small(-1)
            same = cuda.all_sync(-1, i32.equal(found, of_lane(found, 0)))
            if found >= 0 and (lane() == 0 or not same):
                added(shared, out, found, LANES if same else 1)

        each(samples, n, per, wide, bins, how, note, cuda.syncthreads)
        cuda.syncthreads()
        for b in range(cuda.threadIdx.x, bins, THREADS):
            count = i32.and_(u32.shr(shared[b >> 1], i32.mul(i32.and_(b, 1), 16)), 0xFFFF)
            if count > 0:
                cuda.atomic.add(out, b, count)

    return resident(ComputeKernel(count_packed), THREADS)


def of_many(read: Any, sample: DType, by: Bins) -> ComputeKernel:
    each = _binning(read, sample, by)

    def count_many(samples, out, n, per, wide, bins, how):
        def note(found, there):
            if there and found >= 0:
                cuda.atomic.add(out, found, 1)

        each(samples, n, per, wide, bins, how, note, _go_on)

    return resident(ComputeKernel(count_many), THREADS)


def at_once(read: Any, write: Any, by: Bins) -> ComputeKernel:
    """A kernel of one block."""

    def count_at_once(samples, out, n, bins, how):
        for i in range(cuda.threadIdx.x, bins, AT_ONCE):
            write(out, i, 0)
        cuda.syncthreads()
        for i in range(cuda.threadIdx.x, n, AT_ONCE):
            found = by.of(read(samples, i), bins, how)
            if found >= 0:
                cuda.atomic.add(out, found, 1)

    return resident(ComputeKernel(count_at_once), AT_ONCE)


def inverse(bins: int, span: Any) -> tuple[Any, Any]:
    """For `x * bins / span`: 1 / span, and how near to an integer the product with it may come out on the other side.

    Of three roundings to 53 bits none changes a number below `bins` by more than bins / 2^53; to multiply by a power of
    two rounds as the division. Where 1 / span or the product may be no normal number, the inverse is 0, which is always
    near."""
    import numpy as np

    is_plain = 2.0**-900 < float(span) < 2.0**900
    is_exact = is_plain and math.frexp(float(span))[0] == 0.5
    return np.float64(1 / span if is_plain else 0), np.float64(0 if is_exact else bins * 2.0**-51)


def scale(bins: int, low: Any, high: Any) -> tuple[Any, Any]:
    """For `x * bins / span` in float32: bins / span, and how near to an integer the product with it may come out on the
    other side.

    Of three roundings to 24 bits none changes a number below `bins` by more than bins / 2^24. From 0 on, and with a
    quotient of 24 bits, there are none: the product is a part of a fused sum. Where something may be no normal number,
    or bins are many, all of them are near."""
    import numpy as np

    span = float(high) - float(low)
    if not 2.0**-100 < span < 2.0**100 or bins > 1 << 18:
        return np.float32(0), np.float32(1)
    found = np.float32(bins / span)
    is_exact = float(low) == 0 and float(found) * span == bins
    return found, np.float32(0 if is_exact else bins * 2.0**-21)


def scaled(bins: int, span: int) -> tuple[int, int]:
    """(m, s) with x * m >> s == x * bins // span for all 0 <= x < span in int64; (0, 0) if there are none."""
    for s in range(63):
        m = -(-(bins << s) // span)
        if m * (span - 1) >= 1 << 63:
            break
        if (m * span - (bins << s)) * (span - 1) < 1 << s:
            return m, s
    return 0, 0
