"""segmented_reduce: a fold of each segment; on the CPU by a thread each, on a GPU by fold_segments.py."""

# The kernels' values have no types that a checker knows.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, attr-defined"

from __future__ import annotations

from typing import Any

from ..numba import intrinsics as cuda
from .checks import check_structs
from .fold_segments import THREADS, by_lanes, is_long, lanes_for
from .iterators import states_of
from .launching import ComputeKernel, Launch, size
from .objects import Algorithm, Given, call, initial, make
from .types import Convert
from .vectors import width_for

_GUESSED = 256  # items of a segment where nothing tells


class SegmentedReduce(Algorithm):
    name = "segmented_reduce"
    ins, outs, ops = ("d_in", "start_offsets_in", "end_offsets_in"), ("d_out",), {"op": 2}
    order = ("d_in", "d_out", "op", "num_segments", "start_offsets_in", "end_offsets_in", "h_init", "max_segment_size")
    optional = frozenset(("max_segment_size",))

    values = ("h_init",)
    integers = ("start_offsets_in", "end_offsets_in")

    def build(self, given: Given) -> None:
        t = self.type = self.value_key(given, "h_init")
        check_structs(self.name, given["d_in"].value_type, t)
        readers = [given[name].reader() for name in self.ins]
        write, fold, self.width = given["d_out"].writer(), given["op"].giving(t), width_for(given["d_in"].value_type)
        alone = self.shape.threads == 1
        self.kernel = ComputeKernel(
            _by_threads(readers, write, fold, t) if alone else by_lanes(readers, write, fold, t, self.width)
        )

    def counts(self, given: Given) -> int:
        return given["num_segments"]

    def sample(self, given: Given) -> Given:
        return {"num_segments": 1}

    def needed(self, given: Given) -> dict[str, Any]:
        return dict.fromkeys(("start_offsets_in", "end_offsets_in", "d_out"), given["num_segments"])

    def launches(self, given: Given, n: int, temporary: list[Any]) -> list[Launch]:
        import numpy as np

        if n == 0:
            return []
        first = initial(self.type, given["h_init"], "segmented_reduce: 'h_init'")
        inputs = tuple(given[name].state() for name in self.ins)
        values = (inputs, given["d_out"].state(), states_of(given["op"]), size(n), first)
        if self.shape.threads == 1:
            return [Launch(self.kernel, values, min(n, 32), 1)]
        mean = _mean(given, n)
        lanes = lanes_for(mean, self.width)
        per = 1 if is_long(mean, self.width) else THREADS >> lanes
        return [Launch(self.kernel, (*values, np.int64(lanes), np.int64(per)), -(-n // per), THREADS)]


def _mean(given: Given, n: int) -> int:
    """The length of a segment as far as the call tells it."""
    there = getattr(given["d_in"], "count", None)
    items = _GUESSED * n if there is None else there
    return min(-(-items // n), given.get("max_segment_size") or items)


def _by_threads(readers, write, fold, t):
    read, start_of, end_of = readers
    convert = Convert(t, "segmented_reduce: 'd_in'")

    def by_threads(inputs, out, arrays, count, initial):
        for s in range(cuda.blockIdx.x, count, cuda.gridDim.x):
            joined = convert(initial)
            for i in range(start_of(inputs[1], s), end_of(inputs[2], s)):
                joined = fold(arrays, joined, convert(read(inputs[0], i)))
            write(out, s, joined)

    return by_threads


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
