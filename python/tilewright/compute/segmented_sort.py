"""segmented_sort: each segment in order. A thread sorts a short one by insertion, a block a long one by digits.

On a GPU, sort_segments.py sorts all but the longest.
"""

# The kernels' values have no types that a checker knows.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, attr-defined"

from __future__ import annotations

from typing import Any

from ..dtype import int64
from ..numba import intrinsics as cuda
from .blocks import block_inclusive
from .checks import chosen
from .digits import (
    DIGITS,
    DoubleBuffer,
    SortOrder,
    as_bits,
    bits_of,
    counted,
    digit_of,
    ordered,
    passes,
    stored_in_order,
)
from .launching import ComputeKernel, Launch, Part, size
from .objects import Given, begun, make
from .radix_sort import KEYS_AND_VALUES, Sorting, unpacked
from .sort_segments import SortSegments
from .types import Shared

_SHORT = 32  # items that one thread sorts


class SegmentedSort(Sorting):
    name = "segmented_sort"
    ins = ("d_in_keys", "d_in_values", "start_offsets_in", "end_offsets_in")
    order = (*KEYS_AND_VALUES, "num_items", "num_segments", "start_offsets_in", "end_offsets_in")

    integers = ("start_offsets_in", "end_offsets_in")

    def build(self, given: Given) -> None:
        self.check_pairs(given)
        self.value_dtype = given["d_out_values"].view.dtype if self.has_values else None
        threads = self.shape.threads
        read = given["d_in_values"].reader() if self.has_values else None
        write = given["d_out_values"].writer() if self.has_values else None
        bounds = [given[name].reader() for name in self.ins[2:]]
        self.long = _long(bounds, digit_of(self.key, self.sorted_by), read, write, threads)
        if threads == 1:
            self.short = _short(bounds, ordered(self.key, self.sorted_by), read, write)
        else:
            value = given["d_out_values"].value_type if self.has_values else None
            self.sorter = SortSegments(self.key, value, bounds, read, write, self.sorted_by)

    def counts(self, given: Given) -> int:
        return given["num_items"]

    def sample(self, given: Given) -> Given:
        return {"num_items": 1, "num_segments": 1}

    def needed(self, given: Given) -> dict[str, Any]:
        items: dict[str, Any] = dict.fromkeys(KEYS_AND_VALUES, given["num_items"])
        return items | dict.fromkeys(self.ins[2:], given["num_segments"])

    def parts(self, n: int) -> list[Part]:
        spare = self.spare(n) if bits_of(self.key) > 8 else []
        return [*spare, self.sorter.part(n)] if self.shape.threads > 1 else spare

    def launches(self, given: Given, n: int, temporary: list[Any]) -> list[Launch]:
        import numpy as np

        count, key = given["num_segments"], self.key
        if not count:
            return []
        threads = self.shape.threads
        digits = passes(0, bits_of(key))
        lists = temporary[-1] if threads > 1 else ()
        at = self.stations(given, temporary if threads == 1 else temporary[:-1], len(digits))
        bounds, segments = tuple(given[name].state() for name in self.ins[2:]), size(count)
        listed, most = self.sorter.too_long(n) if threads > 1 else (0, 32)
        blocks = min(count if threads == 1 else 1024, most)
        found = []
        for i, (shift, mask) in enumerate(digits):
            (keys, values), (out, out_values) = at[i], at[i + 1]
            launched = (bounds, segments, as_bits(keys, key), values, as_bits(out, key), out_values)
            found.append(
                Launch(
                    self.long,
                    (*launched, np.int64(shift), np.int64(mask), lists, size(listed), size(most)),
                    blocks,
                    threads,
                )
            )
        (keys, values), (out, out_values) = at[0], at[-1]
        launched = (bounds, segments, as_bits(keys, key), values, as_bits(out, key), out_values)
        if threads == 1:
            return [Launch(self.short, launched, blocks, 1), *found]
        return [*self.sorter.launches((bounds, *launched[2:]), count, n, lists), *found]

    def passes_of(self, given: Given) -> int:
        return len(passes(0, bits_of(self.key))) if given["num_segments"] else 0


def _short(bounds, unsigned, read, write):
    start_of, end_of = bounds
    has_values = read is not None

    def sort_short(ends, count, keys, values, out, out_values):
        """Insertion: item i of the input among those before it, which lie in the output already."""
        for s in range(cuda.grid(1), count, cuda.gridsize(1)):
            first, last = start_of(ends[0], s), end_of(ends[1], s)
            if last - first <= _SHORT:
                for i in range(first, last):
                    bits, at, going = keys[i], i + 0, True
                    mine = unsigned(bits)
                    if has_values:
                        value = read(values, i)
                    while going:
                        going = False
                        if at > first and unsigned(out[at - 1]) > mine:
                            out[at] = out[at - 1]
                            if has_values:
                                write(out_values, at, read(out_values, at - 1))
                            at = at - 1
                            going = True
                    out[at] = bits
                    if has_values:
                        write(out_values, at, value)

    return ComputeKernel(sort_short)


def _long(bounds, digit, read, write, threads):
    start_of, end_of = bounds
    has_values = read is not None
    shared_array, sums_array = Shared(int64, DIGITS), Shared(int64, threads)
    count_digits, in_order = counted(threads), stored_in_order(threads)
    each, alone = DIGITS // min(threads, DIGITS), threads == 1

    def places(shared, sums, first):
        """Counts become where the items of each digit begin."""
        me = cuda.threadIdx.x
        mine = 0
        for d in range(me * each, me * each + each):
            mine = mine + shared[d]
        block_inclusive(sums, me, threads, mine, lambda a, b: a + b)
        before = first + sums[me] - mine
        for d in range(me * each, me * each + each):
            number = shared[d]
            shared[d] = before
            before = before + number
        cuda.syncthreads()

    def sort_long(ends, count, keys, values, out, out_values, shift, mask, lists, listed, most):
        shared, sums = shared_array(), sums_array()

        def move(i, to):
            out[to] = keys[i]
            if has_values:
                write(out_values, to, read(values, i))

        k, number = cuda.blockIdx.x, count if alone else min(lists[1], most)
        while k < number:
            s = k if alone else lists[listed + k]
            first, last = start_of(ends[0], s), end_of(ends[1], s)
            if not alone or last - first > _SHORT:
                count_digits(first, last, shared, lambda i: digit(keys[i], shift, mask))
                places(shared, sums, first)
                in_order(first, last, shared, lambda i: digit(keys[i], shift, mask), move)
                cuda.syncthreads()
            k = k + cuda.gridDim.x

    return ComputeKernel(sort_long)


def _given(*values: Any) -> dict[str, Any]:
    return dict(zip((*KEYS_AND_VALUES, "start_offsets_in", "end_offsets_in"), values, strict=True))


def _options(d_in_keys: Any, order: Any) -> tuple[Any, ...]:
    return chosen(SortOrder, order, "segmented_sort: 'order'"), isinstance(d_in_keys, DoubleBuffer)


def make_segmented_sort(
    d_in_keys: Any,
    d_out_keys: Any = None,
    d_in_values: Any = None,
    d_out_values: Any = None,
    start_offsets_in: Any = None,
    end_offsets_in: Any = None,
    order: SortOrder = SortOrder.ASCENDING,
    *,
    compute_capability: Any = None,
) -> SegmentedSort:
    """An object that sorts segments; it takes temp_storage, keys, values, num_items, num_segments and the offsets."""
    given = _given(d_in_keys, d_out_keys, d_in_values, d_out_values, start_offsets_in, end_offsets_in)
    options = _options(d_in_keys, order)
    return make(SegmentedSort, unpacked(given), *options, compute_capability=compute_capability)  # type: ignore[return-value]


def segmented_sort(
    d_in_keys: Any,
    d_out_keys: Any = None,
    d_in_values: Any = None,
    d_out_values: Any = None,
    num_items: int | None = None,
    num_segments: int | None = None,
    start_offsets_in: Any = None,
    end_offsets_in: Any = None,
    order: Any = None,
    *,
    stream: Any = None,
) -> None:
    """The keys from start_offsets_in[s] to before end_offsets_in[s] in order, for each s, and values with them."""
    given = _given(d_in_keys, d_out_keys, d_in_values, d_out_values, start_offsets_in, end_offsets_in)
    sorter = begun(SegmentedSort, unpacked(given), *_options(d_in_keys, order))
    sorter.run(sorter._read({**given, "num_items": num_items, "num_segments": num_segments}), stream)
