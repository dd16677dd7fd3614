"""reduce_into: each block folds a range of items, then one block folds what they found, h_init first.

The order of the operands is kept: a thread takes items that lie together, and the threads of a block are joined from
left to right. A well-known operator that commutes reads items a block apart instead, which a GPU does fastest.
"""

# The kernels' values have no types that a checker knows.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, attr-defined"

from __future__ import annotations

import enum
from typing import Any

from ..numba import intrinsics as cuda
from .blocks import block_fold
from .iterators import states_of
from .launching import ComputeKernel, Launch, Part
from .objects import Algorithm, Given, call, initial, make
from .types import Convert, ItemType, Shared, Zero


class Determinism(enum.Enum):
    """How far results are the same: everywhere here. Ranges follow from the number of items alone."""

    NOT_GUARANTEED = "not_guaranteed"
    RUN_TO_RUN = "run_to_run"
    GPU_TO_GPU = "gpu_to_gpu"


_MOST_IN_A_ROW = 256  # items that a thread folds one behind the other


def fold_ranges(read, fold, convert, t: ItemType, shape, commutes):
    """A kernel: partial[b] = the items of block b joined."""
    threads, items = shape.threads, min(shape.items, _MOST_IN_A_ROW)
    shared_array, zero = Shared(t, threads), Zero(t)

    def in_order(inputs, arrays, n, per, partial):
        shared = shared_array()
        me = cuda.threadIdx.x
        first = cuda.blockIdx.x * per
        last = min(first + per, n)
        joined = zero()
        for at in range(first, last, threads * items):
            mine = at + me * items
            end = min(mine + items, last)
            value = zero()
            if mine < end:
                value = convert(read(inputs, mine))
                for i in range(mine + 1, end):
                    value = fold(arrays, value, convert(read(inputs, i)))
            there = min((last - at + items - 1) // items, threads)
            block_fold(shared, me, there, value, lambda a, b: fold(arrays, a, b))
            if me == 0:
                if at > first:
                    joined = fold(arrays, joined, shared[0])
                else:
                    joined = shared[0]
            cuda.syncthreads()
        if me == 0:
            partial[cuda.blockIdx.x] = joined

    def in_any_order(inputs, arrays, n, per, partial):
        shared = shared_array()
        me = cuda.threadIdx.x
        first = cuda.blockIdx.x * per
        last = min(first + per, n)
        value = zero()
        if first + me < last:
            value = convert(read(inputs, first + me))
            for i in range(first + me + threads, last, threads):
                value = fold(arrays, value, convert(read(inputs, i)))
        block_fold(shared, me, min(last - first, threads), value, lambda a, b: fold(arrays, a, b))
        if me == 0:
            partial[cuda.blockIdx.x] = shared[0]

    in_turns = _lanes(read, fold, convert, items, zero) if threads == 1 else in_any_order
    return ComputeKernel(in_turns if commutes else in_order)


def _lanes(read, fold, convert, items, zero):
    def in_lanes(inputs, arrays, n, per, partial):
        """For one thread: eight folds side by side, of a stretch at a time, so that errors of sums stay small."""
        first = cuda.blockIdx.x * per
        last = min(first + per, n)
        joined, there = zero(), False
        for at in range(first, last, 8 * items):
            end = min(at + 8 * items, last)
            value, rest = convert(read(inputs, at)), at + 1
            if end - at >= 16:
                v0, v1, v2, v3 = (convert(read(inputs, at + k)) for k in range(4))
                v4, v5, v6, v7 = (convert(read(inputs, at + k)) for k in range(4, 8))
                whole = at + (end - at) // 8 * 8
                for i in range(at + 8, whole, 8):
                    v0 = fold(arrays, v0, convert(read(inputs, i)))
                    v1 = fold(arrays, v1, convert(read(inputs, i + 1)))
                    v2 = fold(arrays, v2, convert(read(inputs, i + 2)))
                    v3 = fold(arrays, v3, convert(read(inputs, i + 3)))
                    v4 = fold(arrays, v4, convert(read(inputs, i + 4)))
                    v5 = fold(arrays, v5, convert(read(inputs, i + 5)))
                    v6 = fold(arrays, v6, convert(read(inputs, i + 6)))
                    v7 = fold(arrays, v7, convert(read(inputs, i + 7)))
                left = fold(arrays, fold(arrays, v0, v1), fold(arrays, v2, v3))
                right = fold(arrays, fold(arrays, v4, v5), fold(arrays, v6, v7))
                value, rest = fold(arrays, left, right), whole
            for i in range(rest, end):
                value = fold(arrays, value, convert(read(inputs, i)))
            joined = fold(arrays, joined, value) if there else value
            there = True
        partial[cuda.blockIdx.x] = joined

    return in_lanes


def fold_partials(write, fold, convert, t: ItemType, shape):
    """A kernel of one block: out[0] = initial joined with all partials from left to right."""
    threads = shape.threads
    shared_array, zero = Shared(t, threads), Zero(t)

    def finish(partial, arrays, count, initial, out):
        shared = shared_array()
        me = cuda.threadIdx.x
        each = (count + threads - 1) // threads
        first = me * each
        last = min(first + each, count)
        value = zero()
        if first < last:
            value = partial[first]
            for i in range(first + 1, last):
                value = fold(arrays, value, partial[i])
        there = 0
        if count > 0:
            there = (count + each - 1) // each
        block_fold(shared, me, there, value, lambda a, b: fold(arrays, a, b))
        if me == 0:
            joined = convert(initial)
            if count > 0:
                joined = fold(arrays, joined, shared[0])
            write(out, 0, joined)

    return ComputeKernel(finish)


class Reduce(Algorithm):
    name = "reduce_into"
    ins, outs, ops = ("d_in",), ("d_out",), {"op": 2}
    order = ("d_in", "d_out", "op", "num_items", "h_init")

    values = ("h_init",)

    def build(self, given: Given) -> None:
        t = self.type = self.value_key(given, "h_init")
        convert, fold = Convert(t, "reduce_into: 'd_in'"), given["op"].giving(t)
        self.ranges = fold_ranges(given["d_in"].reader(), fold, convert, t, self.shape, given["op"].commutes)
        self.finish = fold_partials(given["d_out"].writer(), fold, convert, t, self.shape)

    def needed(self, given: Given) -> dict[str, int]:
        return {"d_in": given["num_items"], "d_out": 1}

    def parts(self, n: int) -> list[Part]:
        return [Part(self.type, self.shape.blocks(n))]

    def launches(self, given: Given, n: int, temporary: list[Any]) -> list[Launch]:
        import numpy as np

        shape, arrays, (partial,) = self.shape, states_of(given["op"]), temporary
        count = shape.blocks(n) if n else 0
        first = initial(self.type, given["h_init"], "reduce_into: 'h_init'")
        ranges = (given["d_in"].state(), arrays, np.int64(n), np.int64(shape.per_block(n)), partial)
        finish = (partial, arrays, np.int64(count), first, given["d_out"].state())
        found = [Launch(self.ranges, ranges, count, shape.threads)] if n else []
        return [*found, Launch(self.finish, finish, 1, shape.threads)]


def make_reduce_into(
    d_in: Any,
    d_out: Any,
    op: Any,
    h_init: Any,
    *,
    determinism: Determinism = Determinism.RUN_TO_RUN,
    compute_capability: Any = None,
) -> Reduce:
    """An object that folds: `reducer(temp_storage, d_in, d_out, op, num_items, h_init)`."""
    Determinism(determinism)
    given = {"d_in": d_in, "d_out": d_out, "op": op, "h_init": h_init}
    return make(Reduce, given, compute_capability=compute_capability)  # type: ignore[return-value]


def reduce_into(
    d_in: Any,
    d_out: Any,
    op: Any,
    num_items: int,
    h_init: Any,
    *,
    stream: Any = None,
    determinism: Determinism = Determinism.RUN_TO_RUN,
) -> None:
    """d_out[0] = h_init joined with the first num_items of d_in, from left to right, by op."""
    Determinism(determinism)
    call(Reduce, {"d_in": d_in, "d_out": d_out, "op": op, "num_items": num_items, "h_init": h_init}, stream)
