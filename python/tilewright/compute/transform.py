"""unary_transform and binary_transform: op of each item. Each thread takes items a grid apart, on the CPU a run."""

# The kernels' values have no types that a checker knows.
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import Any

from ..numba import intrinsics as cuda
from .iterators import states_of
from .launching import ComputeKernel, Launch
from .objects import Given, InPlace, call, make


class _Transform(InPlace):
    outs = ("d_out",)

    def build(self, given: Given) -> None:
        reads = [given[name].reader() for name in self.ins]
        write, op = given["d_out"].writer(), given["op"].typed(given["d_out"].value_type)
        self.kernel = ComputeKernel((_unary if len(reads) == 1 else _binary)(reads, write, op, self.shape.threads))

    def launches(self, given: Given, n: int, temporary: list[Any]) -> list[Launch]:
        import numpy as np

        if n == 0:
            return []
        inputs = tuple(given[name].state() for name in self.ins)
        blocks = self.shape.blocks(n)
        per = self.shape.per_block(n)
        states = (inputs, given["d_out"].state(), states_of(given["op"]), np.int64(n), np.int64(per))
        return [Launch(self.kernel, states, blocks, self.shape.threads)]


def _unary(reads, write, op, threads):
    read = reads[0]

    def unary_transform(inputs, out, arrays, n, per):
        first = cuda.blockIdx.x * per
        for i in range(first + cuda.threadIdx.x, min(first + per, n), threads):
            write(out, i, op(arrays, read(inputs[0], i)))

    return unary_transform


def _binary(reads, write, op, threads):
    left, right = reads

    def binary_transform(inputs, out, arrays, n, per):
        first = cuda.blockIdx.x * per
        for i in range(first + cuda.threadIdx.x, min(first + per, n), threads):
            write(out, i, op(arrays, left(inputs[0], i), right(inputs[1], i)))

    return binary_transform


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
