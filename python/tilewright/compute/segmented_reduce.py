"""segmented_reduce: a fold of each segment. A thread folds a short one, the threads of a block a long one together."""

# The kernels' values have no types that a checker knows.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, attr-defined"

from __future__ import annotations

from typing import Any

from ..numba import intrinsics as cuda
from .blocks import block_fold
from .iterators import states_of
from .launching import ComputeKernel, Launch
from .objects import Algorithm, Given, call, initial, make
from .types import Convert, Shared, Zero

_SHORT = 64  # items that one thread folds


class SegmentedReduce(Algorithm):
    name = "segmented_reduce"
    ins, outs, ops = ("d_in", "start_offsets_in", "end_offsets_in"), ("d_out",), {"op": 2}
    order = ("d_in", "d_out", "op", "num_segments", "start_offsets_in", "end_offsets_in", "h_init", "max_segment_size")
    optional = frozenset(("max_segment_size",))

    values = ("h_init",)
    integers = ("start_offsets_in", "end_offsets_in")

    def build(self, given: Given) -> None:
        t = self.type = self.value_key(given, "h_init")
        readers = [given[name].reader() for name in self.ins]
        kernel = _by_threads if self.shape.threads == 1 else _by_blocks
        fold = given["op"].giving(t)
        self.kernel = ComputeKernel(kernel(readers, given["d_out"].writer(), fold, t, self.shape.threads))

    def counts(self, given: Given) -> int:
        return int(given["num_segments"])

    def sample(self, given: Given) -> Given:
        return {"num_segments": 1}

    def needed(self, given: Given) -> dict[str, int]:
        return dict.fromkeys(("start_offsets_in", "end_offsets_in", "d_out"), int(given["num_segments"]))

    def launches(self, given: Given, n: int, temporary: list[Any]) -> list[Launch]:
        import numpy as np

        if n == 0:
            return []
        first = initial(self.type, given["h_init"], "segmented_reduce: 'h_init'")
        inputs = tuple(given[name].state() for name in self.ins)
        values = (inputs, given["d_out"].state(), states_of(given["op"]), np.int64(n), first)
        blocks = min(-(-n // self.shape.threads), 32 if self.shape.threads == 1 else 65535)
        return [Launch(self.kernel, values, blocks, self.shape.threads)]


def _by_threads(readers, write, fold, t, threads):
    read, start_of, end_of = readers
    convert = Convert(t, "segmented_reduce: 'd_in'")

    def by_threads(inputs, out, arrays, count, initial):
        for s in range(cuda.blockIdx.x, count, cuda.gridDim.x):
            joined = convert(initial)
            for i in range(start_of(inputs[1], s), end_of(inputs[2], s)):
                joined = fold(arrays, joined, convert(read(inputs[0], i)))
            write(out, s, joined)

    return by_threads


def _by_blocks(readers, write, fold, t, threads):
    read, start_of, end_of = readers
    convert, shared_array, zero = Convert(t, "segmented_reduce: 'd_in'"), Shared(t, threads), Zero(t)

    def long_one(inputs, arrays, shared, joined, first, last):
        """All threads: `joined`, on thread 0, with the items of a segment."""
        me, each = cuda.threadIdx.x, 8
        for at in range(first, last, threads * each):
            mine = at + me * each
            end = min(mine + each, last)
            value = zero()
            if mine < end:
                value = convert(read(inputs[0], mine))
                for i in range(mine + 1, end):
                    value = fold(arrays, value, convert(read(inputs[0], i)))
            there = min((last - at + each - 1) // each, threads)
            block_fold(shared, me, there, value, lambda a, b: fold(arrays, a, b))
            if me == 0:
                joined = fold(arrays, joined, shared[0])
            cuda.syncthreads()
        return joined

    def by_blocks(inputs, out, arrays, count, initial):
        shared, me = shared_array(), cuda.threadIdx.x
        for base in range(cuda.blockIdx.x * threads, count, cuda.gridDim.x * threads):
            mine = base + me
            if mine < count:
                first, last = start_of(inputs[1], mine), end_of(inputs[2], mine)
                if last - first <= _SHORT:
                    joined = convert(initial)
                    for i in range(first, last):
                        joined = fold(arrays, joined, convert(read(inputs[0], i)))
                    write(out, mine, joined)
            for s in range(base, min(base + threads, count)):
                first, last = start_of(inputs[1], s), end_of(inputs[2], s)
                if last - first > _SHORT:
                    joined = long_one(inputs, arrays, shared, convert(initial), first, last)
                    if me == 0:
                        write(out, s, joined)

    return by_blocks


def _given(d_in: Any, d_out: Any, start_offsets_in: Any, end_offsets_in: Any, op: Any, h_init: Any) -> dict[str, Any]:
    arrays = {"d_in": d_in, "d_out": d_out, "start_offsets_in": start_offsets_in, "end_offsets_in": end_offsets_in}
    return {**arrays, "op": op, "h_init": h_init}


def make_segmented_reduce(
    d_in: Any,
    d_out: Any,
    start_offsets_in: Any,
    end_offsets_in: Any,
    op: Any,
    h_init: Any,
    *,
    compute_capability: Any = None,
) -> SegmentedReduce:
    """An object that folds segments; it takes temp_storage, d_in, d_out, op, num_segments, the offsets and h_init."""
    given = _given(d_in, d_out, start_offsets_in, end_offsets_in, op, h_init)
    return make(SegmentedReduce, given, compute_capability=compute_capability)  # type: ignore[return-value]


def segmented_reduce(
    d_in: Any,
    d_out: Any,
    start_offsets_in: Any,
    end_offsets_in: Any,
    op: Any,
    h_init: Any,
    num_segments: int,
    *,
    max_segment_size: int | None = None,
    stream: Any = None,
) -> None:
    """d_out[s] = h_init joined with the items from start_offsets_in[s] to before end_offsets_in[s]."""
    given = _given(d_in, d_out, start_offsets_in, end_offsets_in, op, h_init)
    call(SegmentedReduce, {**given, "num_segments": num_segments, "max_segment_size": max_segment_size}, stream)
