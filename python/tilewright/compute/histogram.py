"""histogram_even: how many samples fall into each of equal ranges. Blocks count in shared memory first, if bins fit."""

# The kernels' values have no types that a checker knows.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, attr-defined"

from __future__ import annotations

from typing import Any

from ..dtype import DType, float64, int32, int64
from ..errors import TileTypeError, TileValueError
from ..numba import intrinsics as cuda
from .launching import ComputeKernel, Launch
from .objects import Algorithm, Given, call, make
from .types import Convert, Shared, name_of, on_host

_MOST_SHARED = 4096  # bins in shared memory


class HistogramEven(Algorithm):
    name = "histogram_even"
    ins, outs = ("d_samples",), ("d_histogram",)
    order = ("d_samples", "d_histogram", "h_num_output_levels", "h_lower_level", "h_upper_level", "num_samples")

    values = ("h_lower_level",)

    def build(self, given: Given) -> None:
        sample, counter = given["d_samples"].value_type, given["d_histogram"].value_type
        level = self.level = self.value_key(given, "h_lower_level")
        for what, t in (("samples", sample), ("levels", level)):
            if not isinstance(t, DType) or t.is_bool:
                raise TileTypeError(f"histogram_even counts numbers, found {what} of {name_of(t)}")
        if not isinstance(counter, DType) or counter.bits < 32:
            raise TileTypeError(f"histogram_even counts in numbers of 32 or 64 bits, found {name_of(counter)}")
        self.compute = float64 if sample.is_float or level.is_float else int64
        read, bin_of = given["d_samples"].reader(), _bin_of(self.compute)
        self.clear = _clear(given["d_histogram"].writer())
        self.few, self.many = _count_shared(read, bin_of, self.shape), _count(read, bin_of, self.shape)

    def counts(self, given: Given) -> int:
        return int(given["num_samples"])

    def sample(self, given: Given) -> Given:
        return {"num_samples": 1, "h_num_output_levels": 2, "h_lower_level": 0, "h_upper_level": 1}

    def needed(self, given: Given) -> dict[str, int]:
        return {"d_samples": given["num_samples"], "d_histogram": _bins(given)}

    def check(self, given: Given) -> None:
        low, high = (self._level(given, end) for end in ("lower", "upper"))
        if not low < high:
            raise TileValueError(f"histogram_even: the lower level is below the upper one, found {low} and {high}")

    def _level(self, given: Given, end: str) -> Any:
        value = on_host(self.level, given[f"h_{end}_level"], f"histogram_even: 'h_{end}_level'")
        return self.compute.numpy.type(value)

    def launches(self, given: Given, n: int, temporary: list[Any]) -> list[Launch]:
        return self._launches(given, n, [self.few if _bins(given) <= _MOST_SHARED else self.many])

    def sample_launches(self, given: Given, n: int, temporary: list[Any]) -> list[Launch]:
        return self._launches(given, n, [self.few, self.many])

    def _launches(self, given: Given, n: int, kernels: list[ComputeKernel]) -> list[Launch]:
        import numpy as np

        shape, bins, out = self.shape, np.int64(_bins(given)), given["d_histogram"].state()
        levels = (self._level(given, "lower"), self._level(given, "upper"))
        values = (given["d_samples"].state(), out, np.int64(n), np.int64(shape.per_block(n)), bins, *levels)
        clear = Launch(self.clear, (out, bins), shape.blocks(int(bins)), shape.threads)
        return [clear, *(Launch(k, values, shape.blocks(n), shape.threads) for k in kernels if n)]


def _bins(given: Given) -> int:
    levels = int(on_host(int64, given["h_num_output_levels"], "histogram_even: 'h_num_output_levels'"))
    if levels < 2:
        raise TileValueError(f"histogram_even needs two levels or more, found {levels}")
    return levels - 1


def _bin_of(compute: DType):
    convert, whole = Convert(compute, "a sample"), Convert(int64, "a bin")

    def bin_of(value, bins, low, high):
        """-1 outside of the levels."""
        x, found = convert(value), -1
        if x >= low and x < high:
            scaled = (x - low) * convert(bins)
            place = whole(scaled / (high - low)) if is_float else whole(scaled // (high - low))
            found = min(place, bins - 1)
        return found

    is_float = compute.is_float
    return bin_of


def _clear(write):
    def clear(out, bins):
        for i in range(cuda.grid(1), bins, cuda.gridsize(1)):
            write(out, i, 0)

    return ComputeKernel(clear)


def _count(read, bin_of, shape):
    threads = shape.threads

    def count(samples, out, n, per, bins, low, high):
        start = cuda.blockIdx.x * per
        for i in range(start + cuda.threadIdx.x, min(start + per, n), threads):
            found = bin_of(read(samples, i), bins, low, high)
            if found >= 0:
                cuda.atomic.add(out, found, 1)

    return ComputeKernel(count)


def _count_shared(read, bin_of, shape):
    threads, shared_array = shape.threads, Shared(int32, _MOST_SHARED)

    def count_shared(samples, out, n, per, bins, low, high):
        shared, me = shared_array(), cuda.threadIdx.x
        for i in range(me, bins, threads):
            shared[i] = 0
        cuda.syncthreads()
        start = cuda.blockIdx.x * per
        for i in range(start + me, min(start + per, n), threads):
            found = bin_of(read(samples, i), bins, low, high)
            if found >= 0:
                if threads > 1:
                    cuda.atomic.add(shared, found, 1)
                else:
                    shared[found] = shared[found] + 1
        cuda.syncthreads()
        for i in range(me, bins, threads):
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
