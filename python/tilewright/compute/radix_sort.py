"""radix_sort: keys by their digits, the lowest one first; what is equal keeps its order.

On a GPU, onesweep.py. On the CPU a pass has three kernels: each block counts the digits of its range; one makes of the
counts where each block stores its items of each digit; each block stores. Where blocks have many items digits are of up
to 11 bits, so that there are fewer passes; their counts still fit a first-level cache.
"""

# The kernels' values have no types that a checker knows.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, attr-defined"

from __future__ import annotations

from typing import Any, ClassVar

from ..dtype import int64
from ..errors import TileTypeError
from ..numba import intrinsics as cuda
from ..quiet import quiet
from .checks import chosen
from .digits import (
    BITS,
    DoubleBuffer,
    SortOrder,
    as_bits,
    check_key,
    digit_of,
    passes,
    read_bits,
    stored_in_order,
)
from .inputs import ArrayInput
from .launching import ComputeKernel, Launch, Part, size
from .objects import Algorithm, Given, begun, make
from .onesweep import OneSweep
from .types import Shared

KEYS_AND_VALUES = ("d_in_keys", "d_out_keys", "d_in_values", "d_out_values")


class Sorting(Algorithm):
    """What sorts of arrays have in common: keys, and values that go with them, in arrays or in DoubleBuffers."""

    ins: ClassVar[tuple[str, ...]] = ("d_in_keys", "d_in_values")
    outs = ("d_out_keys", "d_out_values")
    optional = frozenset(("d_out_keys", "d_in_values", "d_out_values", "begin_bit", "end_bit"))

    within: Any = None  # of an object for DoubleBuffers: one like it, which is called with the arrays in them
    is_within = False

    def take_options(self, order: SortOrder, buffers: bool) -> None:  # type: ignore[override]
        self.sorted_by, self.buffers = order, buffers

    @quiet
    def call_unplanned(self, temp_storage: Any, *values: Any, stream: Any = None, **named: Any) -> int:
        """What is in DoubleBuffers is found here; with these arrays, later calls go by plans."""
        if not self.buffers or self.is_within:
            return super().call_unplanned(temp_storage, *values, stream=stream, **named)
        found = self._named(values, named)
        double, arrays = self._double(found), unpacked(found)
        if self.within is None:
            within = type(self).__new__(type(self))
            within.__dict__.update(self.__dict__, is_within=True)
            self.within = within
        count: int = self.within(temp_storage, *arrays.values(), stream=stream)
        if temp_storage is not None:
            self._turn(double, arrays)
        return count

    def _double(self, values: dict[str, Any]) -> list[DoubleBuffer]:
        double = [v for v in values.values() if isinstance(v, DoubleBuffer)]
        if bool(double) != (self.buffers and not self.is_within):
            raise TileTypeError(f"{self.name}: the object was made for {'DoubleBuffers' if self.buffers else 'arrays'}")
        return double

    def _read(self, values: dict[str, Any]) -> Given:
        return super()._read(unpacked(values)) | {"double": self._double(values)}

    def _start(self, values: Any, given: Given, storage: Any, parts: list[Part], stream: Any) -> None:
        super()._start(values, given, storage, parts, stream)
        self._turn(given["double"], given)

    def _turn(self, double: list[DoubleBuffer], given: Given) -> None:
        for buffer in double:
            buffer.selector ^= self.passes_of(given) % 2

    def passes_of(self, given: Given) -> int:
        """How often a call moves all keys."""
        raise TypeError(f"{type(self).__name__} has no passes")

    def check_pairs(self, given: Given) -> None:
        self.key = check_key(given["d_in_keys"], f"{self.name}: 'd_in_keys'")
        self.has_values = given["d_in_values"] is not None
        for kind in ("keys", "values"):
            a, b = given[f"d_in_{kind}"], given[f"d_out_{kind}"]
            if (a is None) != (b is None):
                missing, there = (f"d_{way}_{kind}" for way in (("in", "out") if a is None else ("out", "in")))
                raise TileTypeError(f"{self.name} needs the argument '{missing}', for '{there}' is given")
            if a is not None and a.value_type != b.value_type:
                raise TileTypeError(f"{self.name}: 'd_in_{kind}' and 'd_out_{kind}' are of one type, found {a} and {b}")
            if a is not None and not isinstance(a, ArrayInput):
                raise TileTypeError(f"{self.name}: 'd_in_{kind}' is an array, found {a!r}")

    def spare(self, n: int) -> list[Part]:
        """Storage for a second copy; two buffers are one already."""
        if self.buffers:
            return []
        values = [Part(self.value_dtype, n)] if self.has_values else []
        return [Part(self.key, n), *values]

    def stations(self, given: Given, spare: list[Any], count: int) -> list[tuple[Any, Any]]:
        """Where keys and values are before each of `count` passes, and behind the last one."""
        has = self.has_values
        start = (given["d_in_keys"].state(), given["d_in_values"].state() if has else ())
        out = (given["d_out_keys"].state(), given["d_out_values"].state() if has else ())
        other = start if self.buffers else (spare[0], spare[1] if has else ()) if spare else out
        if self.buffers:
            return [out if i % 2 else start for i in range(count + 1)]
        return [start, *(out if (count - i) % 2 == 0 else other for i in range(1, count + 1))]


def unpacked(values: dict[str, Any]) -> dict[str, Any]:
    """Arguments with the arrays of DoubleBuffers in their places."""
    found = dict(values)
    for kind in ("keys", "values"):
        buffer = values.get(f"d_in_{kind}")
        if isinstance(buffer, DoubleBuffer):
            if values.get(f"d_out_{kind}") is not None:
                raise TileTypeError(f"'d_out_{kind}' is None where 'd_in_{kind}' is a DoubleBuffer")
            found[f"d_in_{kind}"], found[f"d_out_{kind}"] = buffer.current(), buffer.alternate()
    keys, items = (values.get(f"d_in_{kind}") for kind in ("keys", "values"))
    if items is not None and isinstance(keys, DoubleBuffer) != isinstance(items, DoubleBuffer):
        raise TileTypeError("'d_in_keys' and 'd_in_values' are both DoubleBuffers, or both arrays")
    return found


_MOST_BITS = 11  # of a digit on the CPU
_MANY = 32  # items of a block for each of so many digits


class RadixSort(Sorting):
    name = "radix_sort"
    order = (*KEYS_AND_VALUES, "num_items", "begin_bit", "end_bit")

    def build(self, given: Given) -> None:
        self.check_pairs(given)
        self.value_dtype = given["d_out_values"].view.dtype if self.has_values else None
        read = given["d_in_values"].reader() if self.has_values else None
        write = given["d_out_values"].writer() if self.has_values else None
        self.copy = _copy(read, write)
        if self.shape.threads > 1:
            value = given["d_out_values"].value_type if self.has_values else None
            self.sweep = OneSweep(self.key, value, read, write, self.sorted_by)
            return
        digit = digit_of(self.key, self.sorted_by)
        self.count, self.places, self.store = _count(digit), _places(), _store(digit, read, write)

    def sample(self, given: Given) -> Given:
        return {"num_items": 1, "begin_bit": None, "end_bit": None}

    def check(self, given: Given) -> None:
        read_bits(self.key, given["begin_bit"], given["end_bit"], self.name)

    def parts(self, n: int) -> list[Part]:
        if self.shape.threads > 1:
            return [*self.sweep.parts(n), *self.spare(n)]
        return [Part(int64, self.shape.blocks(n) * (1 << self._most_bits(n))), *self.spare(n)]

    def _most_bits(self, n: int) -> int:
        many = self.shape.threads == 1 and self.shape.per_block(n) >= _MANY << _MOST_BITS
        return _MOST_BITS if many else BITS

    def _digits(self, given: Given, n: int) -> list[tuple[int, int]]:
        """(shift, mask) of each pass. Digits are as short as they can be without another one."""
        begin, end = read_bits(self.key, given["begin_bit"], given["end_bit"], self.name)
        count = -(-(end - begin) // self._most_bits(n))
        bits = BITS if self.shape.threads > 1 or not count else -(-(end - begin) // count)
        return passes(begin, end, bits)

    def sample_launches(self, given: Given, n: int, temporary: list[Any]) -> list[Launch]:
        return [*self.launches(given, n, temporary), *self.launches({**given, "end_bit": 0}, n, temporary)]

    def launches(self, given: Given, n: int, temporary: list[Any]) -> list[Launch]:
        import numpy as np

        if n == 0:
            return []
        shape, key = self.shape, self.key
        blocks, threads, per = shape.blocks(n), shape.threads, size(shape.per_block(n))
        digits = self._digits(given, n)
        own = 2 if threads > 1 else 1  # arrays that are no second copy
        at = self.stations(given, temporary[own:], len(digits) or 1)
        if not digits and self.buffers:
            return []
        if not digits:
            (keys, values), (out, out_values) = at
            copied = (as_bits(keys, key), values, as_bits(out, key), out_values, size(n))
            return [Launch(self.copy, copied, blocks, threads)]
        if threads > 1:
            return self.sweep.launches(digits, [(as_bits(keys, key), values) for keys, values in at], n, temporary[:2])
        found, counts = [], temporary[0]
        for i, (shift, mask) in enumerate(digits):
            (keys, values), (out, out_values) = at[i], at[i + 1]
            source, sizes = as_bits(keys, key), (size(n), per, np.int64(shift), np.int64(mask))
            found.append(Launch(self.count, (source, counts, *sizes), blocks, threads))
            found.append(Launch(self.places, (counts, size((mask + 1) * blocks)), 1, threads))
            stored = (source, values, as_bits(out, key), out_values, counts, *sizes)
            found.append(Launch(self.store, stored, blocks, threads))
        return found

    def passes_of(self, given: Given) -> int:
        n = given["num_items"]
        return len(self._digits(given, n)) if n else 0


def _count(digit):
    shared_array = Shared(int64, 1 << _MOST_BITS)

    def count(keys, counts, n, per, shift, mask):
        shared = shared_array()
        for d in range(mask + 1):
            shared[d] = 0
        first = cuda.blockIdx.x * per
        for i in range(first, min(first + per, n)):
            at = digit(keys[i], shift, mask)
            shared[at] = shared[at] + 1
        for d in range(mask + 1):
            counts[d * cuda.gridDim.x + cuda.blockIdx.x] = shared[d]

    return ComputeKernel(count)


def _places():
    def places(counts, total):
        """Counts become the sums of those before."""
        before = 0
        for i in range(total):
            count = counts[i]
            counts[i] = before
            before = before + count

    return ComputeKernel(places)


def _store(digit, read, write):
    shared_array, in_order, has_values = Shared(int64, 1 << _MOST_BITS), stored_in_order(1), read is not None

    def store(keys, values, out, out_values, counts, n, per, shift, mask):
        shared = shared_array()
        for d in range(mask + 1):
            shared[d] = counts[d * cuda.gridDim.x + cuda.blockIdx.x]

        def move(i, to):
            out[to] = keys[i]
            if has_values:
                write(out_values, to, read(values, i))

        first = cuda.blockIdx.x * per
        in_order(first, min(first + per, n), shared, lambda i: digit(keys[i], shift, mask), move)

    return ComputeKernel(store)


def _copy(read, write):
    has_values = read is not None

    def copy(keys, values, out, out_values, n):
        i = cuda.grid(1)
        while i < n:
            out[i] = keys[i]
            if has_values:
                write(out_values, i, read(values, i))
            i = i + cuda.gridsize(1)

    return ComputeKernel(copy)


def _given(d_in_keys: Any, d_out_keys: Any, d_in_values: Any, d_out_values: Any) -> dict[str, Any]:
    return dict(zip(KEYS_AND_VALUES, (d_in_keys, d_out_keys, d_in_values, d_out_values), strict=True))


def _options(d_in_keys: Any, order: Any) -> tuple[Any, ...]:
    return chosen(SortOrder, order, "radix_sort: 'order'"), isinstance(d_in_keys, DoubleBuffer)


def make_radix_sort(
    d_in_keys: Any,
    d_out_keys: Any,
    d_in_values: Any = None,
    d_out_values: Any = None,
    order: SortOrder = SortOrder.ASCENDING,
    *,
    compute_capability: Any = None,
) -> RadixSort:
    """An object that sorts: `sorter(temp_storage, d_in_keys, d_out_keys, d_in_values, d_out_values, num_items)`."""
    given = _given(d_in_keys, d_out_keys, d_in_values, d_out_values)
    options = _options(d_in_keys, order)
    return make(RadixSort, unpacked(given), *options, compute_capability=compute_capability)  # type: ignore[return-value]


def radix_sort(
    d_in_keys: Any,
    d_out_keys: Any,
    d_in_values: Any = None,
    d_out_values: Any = None,
    order: Any = None,
    num_items: int | None = None,
    begin_bit: int | None = None,
    end_bit: int | None = None,
    *,
    stream: Any = None,
) -> None:
    """Keys in their order, by the bits from begin_bit to before end_bit, and values, or None, with their keys."""
    given = _given(d_in_keys, d_out_keys, d_in_values, d_out_values)
    sorter = begun(RadixSort, unpacked(given), *_options(d_in_keys, order))
    sorter.run(sorter._read({**given, "num_items": num_items, "begin_bit": begin_bit, "end_bit": end_bit}), stream)
