"""histogram_even: how many samples fall into each of equal ranges; on a GPU by count_bins.py."""

# The kernels' values have no types that a checker knows.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, attr-defined"

from __future__ import annotations

import math
from typing import Any

from .. import _core
from ..dtype import DType, float32, float64, int32, int64, uint32
from ..errors import TileTypeError, TileValueError
from ..numba import intrinsics as cuda
from . import count_bins
from .integers import In, add32, bits_of_float, i32
from .launching import ComputeKernel, Launch, size
from .objects import Algorithm, Given, call, make
from .plans import is_few
from .types import Convert, Shared, item_type, name_of, on_host
from .vectors import is_aligned

_MOST_SHARED = 4096  # bins in shared memory of the CPU's blocks
_MULTIPROCESSORS = 132
_LARGE = ("sm_80", "sm_90", "sm_100")  # whose blocks may have more than 128 KB of shared memory


class HistogramEven(Algorithm):
    name = "histogram_even"
    ins, outs = ("d_samples",), ("d_histogram",)
    order = ("d_samples", "d_histogram", "h_num_output_levels", "h_lower_level", "h_upper_level", "num_samples")

    values = ("h_lower_level",)

    def build(self, given: Given) -> None:
        sample, counter = given["d_samples"].value_type, given["d_histogram"].value_type
        level = self.level = self.value_key(given, "h_lower_level")
        _check_levels(given["h_lower_level"], given.get("h_upper_level"))  # which a file does not have
        for what, t in (("samples", sample), ("levels", level)):
            if not isinstance(t, DType) or t.is_bool:
                raise TileTypeError(f"histogram_even counts numbers, found {what} of {name_of(t)}")
        if not isinstance(counter, DType) or counter.bits < 32:
            raise TileTypeError(f"histogram_even counts in numbers of 32 or 64 bits, found {name_of(counter)}")
        self.compute = float64 if sample.is_float or level.is_float else int64
        self.is_single = self.shape.threads > 1 and all(t.is_float and t.bits <= 32 for t in (sample, level))
        read = given["d_samples"].reader()
        bins = _bins_of(self.compute, self.shape.threads == 1, self.is_single)
        few = _few_bins_of_singles() if self.is_single else bins
        self.clear = _clear(given["d_histogram"].writer())
        self.sample_type = sample
        if self.shape.threads == 1:
            self.few, self.many = _count_shared(read, bins.of), _count(read, bins.of)
            return
        self.at_once = count_bins.at_once(read, given["d_histogram"].writer(), few)
        self.multiprocessors, has_room = self._room()
        self.shared: ComputeKernel | None = None
        self.packed: ComputeKernel | None = None
        if sample.bits == 8:
            self.bytes = count_bins.of_bytes(read, sample, bins.of)
            return
        self.shared, self.many = count_bins.of_shared(read, sample, few), count_bins.of_many(read, sample, bins)
        if has_room:
            self.packed = count_bins.of_packed(read, sample, few)

    def _room(self) -> tuple[int, bool]:
        """How many multiprocessors there are, as far as that is known, and whether a block may have 128 KB of them."""
        if self.targets:
            return _MULTIPROCESSORS, all(target.startswith(_LARGE) for target in self.targets)
        if self.place == "cpu":  # where another machine's code is made
            return _MULTIPROCESSORS, True
        device = _core.device_info(int(self.place.partition(":")[2] or 0))
        return device["sm_count"], device["shared_bytes_per_block"] > 2 * count_bins.PACKED + 1024

    def counts(self, given: Given) -> int:
        return given["num_samples"]

    def sample(self, given: Given) -> Given:
        return {"num_samples": 1, "h_num_output_levels": 2, "h_lower_level": 0, "h_upper_level": 1}

    def needed(self, given: Given) -> dict[str, Any]:
        return {"d_samples": given["num_samples"], "d_histogram": _bins(given)}

    def check(self, given: Given) -> None:
        low, high = (self._level(given, end) for end in ("lower", "upper"))
        if not -math.inf < low < high:
            found = f"found {low} and {high}"
            raise TileValueError(f"histogram_even: the lower level is below the upper one and not infinite, {found}")

    def _level(self, given: Given, end: str) -> Any:
        value = on_host(self.level, given[f"h_{end}_level"], f"histogram_even: 'h_{end}_level'")
        return self.compute.numpy.type(value)

    def launches(self, given: Given, n: int, temporary: list[Any]) -> list[Launch]:
        bins = _bins(given)
        if self.shape.threads > 1 and bins <= count_bins.CLEARED and is_few(n, count_bins.AT_ONCE):
            return [self._at_once(given, n)]
        return self._launches(given, n, [self._kernel_for(bins)])

    def _at_once(self, given: Given, n: int) -> Launch:
        import numpy as np

        bins = _bins(given)
        values = (given["d_samples"].state(), given["d_histogram"].state(), size(n), np.int64(bins))
        return Launch(self.at_once, (*values, self._how(given, bins)), 1, count_bins.AT_ONCE)

    def _kernel_for(self, bins: int) -> ComputeKernel:
        if self.shape.threads == 1:
            return self.few if bins <= _MOST_SHARED else self.many
        if self.sample_type.bits == 8:
            return self.bytes
        if self.shared and bins <= count_bins.MORE:
            return self.shared
        return self.packed if self.packed and bins <= count_bins.PACKED else self.many

    def _blocks_of(self, kernel: ComputeKernel) -> tuple[int, int]:
        """How many threads a block has, and how many blocks there are for a multiprocessor."""
        if kernel is self.packed:
            return count_bins.THREADS, 1
        return count_bins.SHARED if kernel is self.shared else (count_bins.THREADS, 2)

    def sample_launches(self, given: Given, n: int, temporary: list[Any]) -> list[Launch]:
        sizes = (1, count_bins.PACKED, count_bins.PACKED + 1)
        kernels = {id(k): k for k in map(self._kernel_for, sizes)}
        alone = [] if self.shape.threads == 1 else [self._at_once(given, n)]
        return [*self._launches(given, n, list(kernels.values())), *alone]

    def _launches(self, given: Given, n: int, kernels: list[ComputeKernel]) -> list[Launch]:
        import numpy as np

        shape, bins, out = self.shape, np.int64(_bins(given)), given["d_histogram"].state()
        samples, how = given["d_samples"].state(), self._how(given, int(bins))
        clear = Launch(self.clear, (out, bins), shape.blocks(int(bins)), shape.threads)
        if shape.threads == 1:
            values: tuple[Any, ...] = (samples, out, size(n), size(shape.per_block(n)), bins, how)
            return [clear, *(Launch(k, values, shape.blocks(n), 1) for k in kernels if n)]
        found = [clear]
        for kernel in kernels if n else []:
            threads, blocks = self._blocks_of(kernel)
            tiles = -(-n // count_bins.tile_for(self.sample_type, threads))
            per = -(-tiles // (self.multiprocessors * blocks))
            values = (samples, out, size(n), size(per), is_aligned(samples), bins, how)
            found.append(Launch(kernel, values, -(-tiles // per), threads))
        return found

    def _how(self, given: Given, bins: int) -> tuple[Any, ...]:
        """The levels, and what takes the place of a division, if there is such."""
        import numpy as np

        low, high = self._level(given, "lower"), self._level(given, "upper")
        if self.compute.is_float:
            found: tuple[Any, ...] = low, high, *count_bins.inverse(bins, high - low)
            if self.is_single:
                found = (*found, np.float32(low), np.float32(high), *count_bins.scale(bins, low, high))
            return found
        factor, shift = count_bins.scaled(bins, int(high) - int(low))
        return low, high, np.int64(factor), np.int64(shift), np.float64(1 / (int(high) - int(low)))


def _check_levels(low: Any, high: Any) -> None:
    """Numbers of Python are of any dtype."""
    types = [item_type(level.dtype) for level in (low, high) if hasattr(level, "dtype")]
    if len(types) == 2 and types[0] != types[1]:
        raise TileTypeError(
            "histogram_even: 'h_lower_level' and 'h_upper_level' must have the same dtype, found "
            f"{name_of(types[0])} and {name_of(types[1])}"
        )


def _bins(given: Given) -> int:
    levels = int(on_host(int64, given["h_num_output_levels"], "histogram_even: 'h_num_output_levels'"))
    if levels < 2:
        raise TileValueError(f"histogram_even needs two levels or more, found {levels}")
    return levels - 1


def _quotient(a, b, inverse):
    """a / b of float64, by the nearest number to 1 / b: what it leaves of a is added twice, which finds the nearest
    number to the quotient (Markstein). A division is three times as many instructions, and stands here for each sample.

    Nothing may be below the normal numbers: where a and b are of float32, it is not. By an infinite b it is 0."""
    first = a * inverse
    second = cuda.fma(cuda.fma(-first, b, a), inverse, first)
    return cuda.fma(cuda.fma(-second, b, a), inverse, second) if inverse > 0 else first


_as_float64, _as_int64 = Convert(float64, "a sample"), Convert(int64, "a bin")


def _floored(a, b, inverse):
    """a // b of int64 where that is below 2^51, by about 1 / b: three roundings to 53 bits miss it by one at most. A
    division of 64 bits is as much code as a whole loop of a kernel."""
    found = _as_int64(_as_float64(a) * inverse)
    rest = a - found * b
    found = found - 1 if rest < 0 else found
    return found + 1 if rest >= b else found


def _bins_of(compute: DType, divides: bool, is_single: bool) -> count_bins.Bins:
    convert, whole = Convert(compute, "a sample"), Convert(int64, "a bin")
    quotient = _quotient if is_single else lambda a, b, inverse: a / b
    floored = (lambda a, b, inverse: a // b) if divides else _floored

    def divided(x, bins, how):
        return min(whole((x - how[0]) * convert(bins) / (how[1] - how[0])), bins - 1)

    def multiplied(x, bins, how):
        """The same, but that only what comes near to another bin is divided."""
        low, high, inverse, near = how[:4]
        place = (x - low) * convert(bins) * inverse
        found = whole(place)
        rest = place - convert(found)
        if rest < near or rest > 1 - near:
            found = whole(quotient((x - low) * convert(bins), high - low, inverse))
        return min(found, bins - 1)

    def scaled(x, bins, how):
        low, _, factor, shift, _ = how
        return (x - low) * factor >> shift

    def of_integer(x, bins, how):
        low, high, factor, _, inverse = how
        return scaled(x, bins, how) if factor > 0 else min(floored((x - low) * bins, high - low, inverse), bins - 1)

    def bin_by(inside):
        def bin_of(value, bins, how):
            """-1 outside of the levels."""
            x, found = convert(value), -1
            if x >= how[0] and x < how[1]:
                found = inside(x, bins, how)
            return found

        return bin_of

    if compute.is_float:
        found = bin_by(divided if divides else multiplied)
        return count_bins.Bins(found, found, lambda how: True)
    return count_bins.Bins(bin_by(of_integer), bin_by(scaled), lambda how: how[2] > 0)


_WHOLE = 3 << 22  # a float32 from which on there are no fractions, up to twice as many
_WHOLE_BITS = 0x4B400000  # of it


def _few_bins_of_singles() -> count_bins.Bins:
    """What float64 says, found in float32: only what comes near to another bin is divided. Bins are 2^18 at most."""
    convert, single, whole = Convert(float64, "a sample"), Convert(float32, "a sample"), Convert(int32, "a bin")
    u32 = In(uint32)

    def place(x, how):
        """The integer below where x is among bins, by the sign of what is left of the nearest one, and how far x is
        from another bin. What is exact has a sign even where it is too small to be told from 0."""
        low, scale = how[4], how[6]
        distance = x - low
        nearest = cuda.fma(distance, scale, single(_WHOLE))
        rest = cuda.fma(distance, scale, single(_WHOLE) - nearest)
        return add32(add32(bits_of_float(nearest), -_WHOLE_BITS), i32.shr(bits_of_float(rest), 31)), abs(rest)

    def guess(value, bins, how):
        found, far = place(single(value), how)
        doubt = i32.and_(whole(u32.less(found, add32(bins, 1))), whole(far < how[7]))
        return found, doubt

    def inside(x, bins, how):
        low, high, inverse, near, last = how[0], how[1], how[2], how[7], add32(bins, -1)
        found, far = place(x, how)
        if not far >= near:
            found = whole(_quotient((convert(x) - low) * convert(bins), high - low, inverse))
        return last if i32.less(last, found) else found

    def bin_of(value, bins, how):
        """-1 outside of the levels."""
        x, found = single(value), whole(-1)
        if x >= how[4] and x < how[5]:
            found = inside(x, bins, how)
        return found

    return count_bins.Bins(bin_of, bin_of, lambda how: how[6] > 0, guess)


def _clear(write):
    def clear(out, bins):
        i = cuda.grid(1)
        while i < bins:
            write(out, i, 0)
            i = i + cuda.gridsize(1)

    return ComputeKernel(clear)


def _count(read, bin_of):
    def count(samples, out, n, per, bins, how):
        start = cuda.blockIdx.x * per
        for i in range(start, min(start + per, n)):
            found = bin_of(read(samples, i), bins, how)
            if found >= 0:
                cuda.atomic.add(out, found, 1)

    return ComputeKernel(count)


def _count_shared(read, bin_of):
    shared_array = Shared(int32, _MOST_SHARED)

    def count_shared(samples, out, n, per, bins, how):
        shared = shared_array()
        for i in range(bins):
            shared[i] = 0
        start = cuda.blockIdx.x * per
        for i in range(start, min(start + per, n)):
            found = bin_of(read(samples, i), bins, how)
            if found >= 0:
                shared[found] = shared[found] + 1
        for i in range(bins):
            if shared[i] > 0:
                cuda.atomic.add(out, i, shared[i])

    return ComputeKernel(count_shared)


def make_histogram_even(
    d_samples: Any,
    d_histogram: Any,
    h_num_output_levels: Any,
    h_lower_level: Any,
    h_upper_level: Any,
    num_samples: int,
    *,
    compute_capability: Any = None,
) -> HistogramEven:
    """An object that counts; it takes temp_storage and these arguments, the levels as arrays of one or scalars."""
    levels = (h_num_output_levels, h_lower_level, h_upper_level)
    given = dict(zip(HistogramEven.order, (d_samples, d_histogram, *levels), strict=False))
    return make(HistogramEven, given, compute_capability=compute_capability)  # type: ignore[return-value]


def histogram_even(
    d_samples: Any,
    d_histogram: Any,
    num_output_levels: int,
    lower_level: Any,
    upper_level: Any,
    num_samples: int,
    *,
    stream: Any = None,
) -> None:
    """d_histogram[k]: the samples in range k of the num_output_levels - 1 equal ones from lower to upper level."""
    levels = (num_output_levels, lower_level, upper_level)
    given = dict(zip(HistogramEven.order, (d_samples, d_histogram, *levels, num_samples), strict=True))
    call(HistogramEven, given, stream)
