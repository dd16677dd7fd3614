"""segmented_inclusive_scan and segmented_exclusive_scan: running totals that begin anew with each segment.

A thread scans a short segment; the threads of a block scan a long one together, a tile after the other.
"""

# The kernels' values have no types that a checker knows.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, attr-defined"

from __future__ import annotations

from typing import Any

from ..numba import intrinsics as cuda
from .blocks import block_inclusive
from .checks import check_structs
from .iterators import states_of
from .launching import ComputeKernel, Launch, size
from .objects import Algorithm, Given, call, initial, make, named
from .scan import check_initial, scan_key
from .types import Convert, Shared, Zero

_SHORT, _EACH = 64, 8  # items that one thread scans alone; that it scans of a tile


class _SegmentedScan(Algorithm):
    ins, outs, ops = ("d_in", "start_offsets_in", "end_offsets_in"), ("d_out",), {"op": 2}
    order = ("d_in", "d_out", "op", "init_value", "num_segments", "start_offsets_in", "end_offsets_in")
    values = ("init_value",)
    integers = ("start_offsets_in", "end_offsets_in")
    in_place = frozenset({("d_in", "d_out")})
    inclusive: bool

    @classmethod
    def value_key(cls, given: Given, what: str) -> Any:
        return scan_key(cls.name, given[what], what)

    def build(self, given: Given) -> None:
        self.init = check_initial(self, given)
        t = self.type = given["d_in"].value_type if self.init is None else self.init[1]
        check_structs(self.name, given["d_in"].value_type, t)
        readers, write = [given[name].reader() for name in self.ins], given["d_out"].writer()
        parts = _Parts(t, given["op"].giving(t), readers[0], write, self.inclusive, self.init is not None)
        kernel = _by_threads if self.shape.threads == 1 else _by_blocks
        self.kernel = ComputeKernel(kernel(parts, readers[1], readers[2], self.shape.threads))

    def counts(self, given: Given) -> int:
        return given["num_segments"]

    def sample(self, given: Given) -> Given:
        return {"num_segments": 1}

    def needed(self, given: Given) -> dict[str, Any]:
        return dict.fromkeys(("start_offsets_in", "end_offsets_in"), given["num_segments"])

    def launches(self, given: Given, n: int, temporary: list[Any]) -> list[Launch]:
        if n == 0:
            return []
        first: Any = 0
        if self.init is not None:
            first = initial(self.type, given["init_value"], f"{self.name}: 'init_value'")
        inputs = tuple(given[name].state() for name in self.ins)
        values = (inputs, given["d_out"].state(), states_of(given["op"]), size(n), first)
        blocks = min(-(-n // self.shape.threads), 32 if self.shape.threads == 1 else 65535)
        return [Launch(self.kernel, values, blocks, self.shape.threads)]


class SegmentedInclusiveScan(_SegmentedScan):
    name, inclusive = "segmented_inclusive_scan", True
    optional = frozenset(("init_value",))


class SegmentedExclusiveScan(_SegmentedScan):
    name, inclusive = "segmented_exclusive_scan", False


class _Parts:
    """Functions for kernels: an item as one of the type, the operator, and items in a row."""

    def __init__(self, t: Any, fold: Any, read: Any, write: Any, inclusive: bool, has_first: bool) -> None:
        self.type, self.fold, self.has_first = t, fold, has_first
        self.convert = convert = Convert(t, "d_in")

        def item(inputs, i):
            return convert(read(inputs[0], i))

        def in_a_row(inputs, out, arrays, first, last, before, there):
            """Totals from `before` on, if it is there; gives the last one."""
            for i in range(first, last):
                value = item(inputs, i)
                after = fold(arrays, before, value) if there else value
                write(out, i, after if inclusive else before)
                before, there = after, True
            return before

        self.item, self.in_a_row = item, in_a_row


def _by_threads(parts, start_of, end_of, threads):
    convert, zero, in_a_row, has_first = parts.convert, Zero(parts.type), parts.in_a_row, parts.has_first

    def by_threads(inputs, out, arrays, count, initial):
        before = convert(initial) if has_first else zero()
        for s in range(cuda.blockIdx.x, count, cuda.gridDim.x):
            in_a_row(inputs, out, arrays, start_of(inputs[1], s), end_of(inputs[2], s), before, has_first)

    return by_threads


def _by_blocks(parts, start_of, end_of, threads):
    convert, zero, fold, item = parts.convert, Zero(parts.type), parts.fold, parts.item
    in_a_row, has_first, shared_array = parts.in_a_row, parts.has_first, Shared(parts.type, threads)

    def long_one(inputs, out, arrays, shared, before, first, last):
        """All threads: tile after tile, each from the total of those before it."""
        me, there_is = cuda.threadIdx.x, has_first
        for at in range(first, last, threads * _EACH):
            mine = min(at + me * _EACH, last)
            end = min(mine + _EACH, last)
            value = zero()
            if mine < end:
                value = item(inputs, mine)
                for i in range(mine + 1, end):
                    value = fold(arrays, value, item(inputs, i))
            there = min((last - at + _EACH - 1) // _EACH, threads)
            block_inclusive(shared, me, there, value, lambda a, b: fold(arrays, a, b))
            own, is_there = before, there_is
            if me > 0 and mine < end:
                own = fold(arrays, before, shared[me - 1]) if there_is else shared[me - 1]
                is_there = True
            total = shared[there - 1]
            in_a_row(inputs, out, arrays, mine, end, own, is_there)
            before = fold(arrays, before, total) if there_is else total
            there_is = True
            cuda.syncthreads()

    def by_blocks(inputs, out, arrays, count, initial):
        shared, me = shared_array(), cuda.threadIdx.x
        before = convert(initial) if has_first else zero()
        for base in range(cuda.blockIdx.x * threads, count, cuda.gridDim.x * threads):
            if base + me < count:
                first, last = start_of(inputs[1], base + me), end_of(inputs[2], base + me)
                if last - first <= _SHORT:
                    in_a_row(inputs, out, arrays, first, last, before, has_first)
            for s in range(base, min(base + threads, count)):
                first, last = start_of(inputs[1], s), end_of(inputs[2], s)
                if last - first > _SHORT:
                    long_one(inputs, out, arrays, shared, before, first, last)

    return by_blocks


_ARGUMENTS = ("d_in", "d_out", "start_offsets_in", "end_offsets_in", "op", "init_value")


def _functions(kind: type[_SegmentedScan], total: str) -> tuple[Any, Any]:
    """`make_…` and the function of all stages."""

    def make_scan(
        d_in: Any,
        d_out: Any,
        start_offsets_in: Any,
        end_offsets_in: Any,
        op: Any,
        init_value: Any = None,
        *,
        compute_capability: Any = None,
    ) -> Algorithm:
        given = dict(zip(_ARGUMENTS, (d_in, d_out, start_offsets_in, end_offsets_in, op, init_value), strict=True))
        return make(kind, given, compute_capability=compute_capability)

    def scan(
        d_in: Any,
        d_out: Any,
        start_offsets_in: Any,
        end_offsets_in: Any,
        op: Any,
        init_value: Any = None,
        num_segments: int | None = None,
        *,
        stream: Any = None,
    ) -> None:
        given = dict(zip(_ARGUMENTS, (d_in, d_out, start_offsets_in, end_offsets_in, op, init_value), strict=True))
        call(kind, {**given, "num_segments": num_segments}, stream)

    takes = (
        "An object that scans segments; it takes temp_storage, d_in, d_out, op, init_value, num_segments, the offsets."
    )
    return named(make_scan, f"make_{kind.name}", takes), named(scan, kind.name, f"d_out[i] = {total}.")


make_segmented_inclusive_scan, segmented_inclusive_scan = _functions(
    SegmentedInclusiveScan, "init_value, if it is not None, joined with the items of i's segment up to d_in[i]"
)
make_segmented_exclusive_scan, segmented_exclusive_scan = _functions(
    SegmentedExclusiveScan, "init_value joined with the items of i's segment before d_in[i]"
)
