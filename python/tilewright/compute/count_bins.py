"""Histograms on a GPU: blocks count in shared memory, and add what they counted to the output at the end.

of 8 bits    samples are counted by their bits, whatever the levels; what each of them is, is found at the end
few          bins have a counter for each lane, so that the lanes of a warp never meet
more         a counter for each bin
packed       two counters of 16 bits in a word; the thread whose sample makes one half full carries that on
many         atomics on the output
"""

# The kernels' values have no types that a checker knows.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, attr-defined"

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ..dtype import DType, int32, uint8, uint32
from ..numba import intrinsics as cuda
from .integers import In
from .launching import ComputeKernel, resident
from .types import Convert, Shared
from .vectors import aligned, width_for
from .warps import LANES, lane, of_lane

THREADS = 1024
_PIECES = 4  # of 16 bytes, that a thread reads at a time
FEW, MORE, PACKED = 256, 256 * LANES, 65536  # bins
_FULL = 1 << 15  # of a counter of 16 bits, which others may add to before it is emptied
i32 = In(int32)
small = Convert(int32, "a bin")


class Bins(NamedTuple):
    """Functions for kernels: the bin of a sample, or -1; the same where `is_quick(how)`, in little code."""

    of: Any  # (value, bins, how)
    quick: Any
    is_quick: Any


def tile_for(sample: DType) -> int:
    return THREADS * _PIECES * width_for(sample)


def _counting(read: Any, sample: DType):
    """A function for kernels: `note(value, there)` of each sample of a block, and `turn()` behind at most a tile.

    Where it is `wide`, whole tiles have `quick` in the place of `note`, as often as a thread has items of a tile."""
    width = width_for(sample)
    tile = tile_for(sample)
    places = tuple(r * THREADS * width + j for r in range(_PIECES) for j in range(width))

    def each(samples, n, per, wide, quick, note, turn):
        me, first = cuda.threadIdx.x, cuda.blockIdx.x * per * tile
        last = min(first + per * tile, n)
        whole = max(0, (last - first) // tile) if wide else 0
        for k in range(whole):
            near, at = aligned(samples), first + k * tile + me * width
            for value in tuple(read(near, at + p) for p in places):
                quick(value, True)
            turn()
        for k in range((last - first - whole * tile + (THREADS - 1)) // THREADS):
            i = first + whole * tile + k * THREADS + me
            note(read(samples, min(i, last - 1)), i < last)
            turn()

    return each


def _binning(read: Any, sample: DType, by: Bins):
    """The same for the bins of samples: `note(bin, there)`."""
    each, (of, quick, is_quick) = _counting(read, sample), by

    def each_bin(samples, n, per, wide, bins, how, note, turn):
        def note_quick(value, there):
            note(quick(value, bins, how), there)

        def note_any(value, there):
            note(of(value, bins, how), there)

        each(samples, n, per, wide and is_quick(how), note_quick, note_any, turn)

    return each_bin


def _go_on():
    """Nothing waits."""


def _zeroed(shared, count):
    for i in range(cuda.threadIdx.x, count, THREADS):
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

        each(samples, n, per, wide, note, note, _go_on)
        cuda.syncthreads()
        for b in range(cuda.threadIdx.x, 256, THREADS):
            found, count = bin_of(back(b), bins, how), _lanes_joined(shared, b)
            if found >= 0 and count > 0:
                cuda.atomic.add(out, found, count)

    return resident(ComputeKernel(count_bytes), THREADS)


def of_shared(read: Any, sample: DType, by: Bins) -> ComputeKernel:
    """A counter for each bin, or, of few bins, for each bin and lane."""
    each, shared_counts = _binning(read, sample, by), Shared(int32, MORE)

    def count_shared(samples, out, n, per, wide, bins, how):
        shared, are_few = shared_counts(), bins <= FEW
        shift, own = (small(5), lane()) if are_few else (small(0), small(0))
        _zeroed(shared, bins << shift)

        def note(found, there):
            if there and found >= 0:
                cuda.atomic.add(shared, i32.add(i32.shl(found, shift), own), 1)

        each(samples, n, per, wide, bins, how, note, _go_on)
        cuda.syncthreads()
        for b in range(cuda.threadIdx.x, bins, THREADS):
            count = _lanes_joined(shared, b) if are_few else shared[b]
            if count > 0:
                cuda.atomic.add(out, b, count)

    return resident(ComputeKernel(count_shared), THREADS)


def of_packed(read: Any, sample: DType, by: Bins) -> ComputeKernel:
    each, shared_counts = _binning(read, sample, by), Shared(uint32, PACKED // 2)
    u32 = In(uint32)

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

    Of three roundings to 24 bits none changes a number below `bins` by more than bins / 2^24; a power of two from 0 on
    makes none. Where something may be no normal number, or bins are many, all of them are near."""
    import numpy as np

    span = float(high) - float(low)
    if not 2.0**-100 < span < 2.0**100 or bins > 1 << 18:
        return np.float32(0), np.float32(1)
    found = np.float32(bins / span)
    is_exact = float(low) == 0 and math.frexp(float(found))[0] == 0.5 and float(found) * span == bins
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
