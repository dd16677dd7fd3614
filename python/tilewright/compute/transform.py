"""unary_transform and binary_transform: op of each item.

On a GPU a block takes a tile, of which a thread has pieces of 16 bytes, all read before it stores; on the CPU a run.
"""

# The kernels' values have no types that a checker knows.
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import Any

from ..numba import intrinsics as cuda
from .iterators import states_of
from .launching import ComputeKernel, Launch, size
from .objects import Given, InPlace, call, make
from .vectors import aligned, is_aligned, width_for

THREADS, ROUNDS = 256, 1  # of a block, and pieces that a thread takes: most of them are under way by many blocks


class _Transform(InPlace):
    outs = ("d_out",)
    in_place = frozenset((name, "d_out") for name in ("d_in", "d_in1", "d_in2"))

    def build(self, given: Given) -> None:
        reads = [given[name].reader() for name in self.ins]
        write, op = given["d_out"].writer(), given["op"].typed(given["d_out"].value_type)
        types = [given[name].value_type for name in (*self.ins, *self.outs)]
        apply = (_unary if len(reads) == 1 else _binary)(reads, op)
        self.alone = self.shape.threads == 1
        self.width = width_for(*(t for t in types if t is not None))
        self.kernel = ComputeKernel((_in_runs if self.alone else _in_tiles)(apply, write, self.width))

    def launches(self, given: Given, n: int, temporary: list[Any]) -> list[Launch]:
        if n == 0:
            return []
        inputs = tuple(given[name].state() for name in self.ins)
        states, arrays = (inputs, given["d_out"].state()), states_of(given["op"])
        if self.alone:
            per = size(self.shape.per_block(n))
            return [Launch(self.kernel, (*states, arrays, size(n), per), self.shape.blocks(n), 1)]
        blocks = -(-n // (THREADS * ROUNDS * self.width))
        return [Launch(self.kernel, (*states, arrays, size(n), is_aligned(states)), blocks, THREADS)]


def _unary(reads, op):
    read = reads[0]

    def unary(inputs, arrays, i):
        return op(arrays, read(inputs[0], i))

    return unary


def _binary(reads, op):
    left, right = reads

    def binary(inputs, arrays, i):
        return op(arrays, left(inputs[0], i), right(inputs[1], i))

    return binary


def _in_runs(apply, write, width):
    def transform(inputs, out, arrays, n, per):
        first = cuda.blockIdx.x * per
        for i in range(first, min(first + per, n)):
            write(out, i, apply(inputs, arrays, i))

    return transform


def _in_tiles(apply, write, width):
    tile, step = THREADS * ROUNDS * width, THREADS * width

    def transform(inputs, out, arrays, n, wide):
        first, me = cuda.blockIdx.x * tile, cuda.threadIdx.x
        if wide and first + tile <= n:
            at, ins, to = first + me * width, aligned(inputs), aligned(out)
            found = tuple(apply(ins, arrays, at + (r * step + j)) for r in range(ROUNDS) for j in range(width))
            for k, value in enumerate(found):
                write(to, at + (k // width * step + k % width), value)
        else:
            for i in range(first + me, min(first + tile, n), THREADS):
                write(out, i, apply(inputs, arrays, i))

    return transform


class UnaryTransform(_Transform):
    name = "unary_transform"
    ins, ops = ("d_in",), {"op": 1}
    order = ("d_in", "d_out", "op", "num_items")


class BinaryTransform(_Transform):
    name = "binary_transform"
    ins, ops = ("d_in1", "d_in2"), {"op": 2}
    order = ("d_in1", "d_in2", "d_out", "op", "num_items")


def make_unary_transform(d_in: Any, d_out: Any, op: Any, *, compute_capability: Any = None) -> UnaryTransform:
    """An object that stores op(x) for each item: `transform(d_in, d_out, op, num_items)`."""
    given = {"d_in": d_in, "d_out": d_out, "op": op}
    return make(UnaryTransform, given, compute_capability=compute_capability)  # type: ignore[return-value]


def make_binary_transform(
    d_in1: Any, d_in2: Any, d_out: Any, op: Any, *, compute_capability: Any = None
) -> BinaryTransform:
    """An object that stores op(x, y) for each pair of items."""
    given = {"d_in1": d_in1, "d_in2": d_in2, "d_out": d_out, "op": op}
    return make(BinaryTransform, given, compute_capability=compute_capability)  # type: ignore[return-value]


def unary_transform(d_in: Any, d_out: Any, op: Any, num_items: int, *, stream: Any = None) -> None:
    """d_out[i] = op(d_in[i])."""
    call(UnaryTransform, {"d_in": d_in, "d_out": d_out, "op": op, "num_items": num_items}, stream)


def binary_transform(d_in1: Any, d_in2: Any, d_out: Any, op: Any, num_items: int, *, stream: Any = None) -> None:
    """d_out[i] = op(d_in1[i], d_in2[i])."""
    given = {"d_in1": d_in1, "d_in2": d_in2, "d_out": d_out, "op": op, "num_items": num_items}
    call(BinaryTransform, given, stream)
