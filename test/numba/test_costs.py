"""Numba's spelling costs nothing but Numba's types: the same instructions as `tilewright.device` with these."""

import collections
import re

import pytest

from cuda import device
from tilewright.cli import lower
from tilewright.numba import cuda, float32

I = device.int64  # noqa: E741


@device.func
def place():
    return I(device.thread_idx.x) + I(device.block_idx.x) * I(device.block_dim.x)


@device.kernel
def saxpy(a, x, y):
    i = place()
    if i < I(y.size):
        y[i] = a * x[i] + y[i]


@cuda.jit
def numba_saxpy(a, x, y):
    i = cuda.grid(1)
    if i < y.size:
        y[i] = a * x[i] + y[i]


@device.kernel
def sums(x, out):
    total = device.float32(0)
    for i in range(place(), I(x.size), I(device.block_dim.x) * I(device.grid_dim.x)):
        total += x[i]
    out[I(device.thread_idx.x)] = total


@cuda.jit
def numba_sums(x, out):
    total = float32(0)
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        total += x[i]
    out[cuda.threadIdx.x] = total


@device.kernel
def digits(x, y):
    i = place()
    y[i] = I(x[i]) // 10 * 3 + I(x[i]) % 10


@cuda.jit
def numba_digits(x, y):
    i = cuda.grid(1)
    y[i] = x[i] // 10 * 3 + x[i] % 10


@device.kernel
def blurred(x, y):
    i, j = I(device.thread_idx.y), I(device.thread_idx.x)
    if i > 0 and i < I(x.shape[0]) - 1:
        y[i, j] = device.float32(0.5) * x[i, j] + device.float32(0.25) * (x[i - 1, j] + x[i + 1, j])


@cuda.jit
def numba_blurred(x, y):
    i, j = cuda.threadIdx.y, cuda.threadIdx.x
    if i > 0 and i < x.shape[0] - 1:
        y[i, j] = float32(0.5) * x[i, j] + float32(0.25) * (x[i - 1, j] + x[i + 1, j])


def array(dtype, rank=1):
    return ("array", dtype, rank, 16, (16,) * rank, ((0, 1),) * (rank - 1) + ((1, 1),), True, False)


def instructions(kernel, facts):
    text = lower(kernel, facts, "sm_90a", "ptx").decode()
    body = text[text.index("{") :]
    return collections.Counter(re.findall(r"^\t([a-z][\w.:]*) ", body, re.M))


@pytest.mark.parametrize(
    ("kernel", "numba_kernel", "facts"),
    [
        (saxpy, numba_saxpy, (("scalar", "float32", 1), array("float32"), array("float32"))),
        (sums, numba_sums, (array("float32"), array("float32"))),
        (digits, numba_digits, (array("int32"), array("int64"))),
        (blurred, numba_blurred, (array("float32", 2), array("float32", 2))),
    ],
    ids=["saxpy", "sums", "digits", "blurred"],
)
def test_same_instructions(kernel, numba_kernel, facts):
    found = instructions(numba_kernel, facts)
    assert found and found == instructions(kernel, facts)
    assert not any(op.startswith(("div", "rem")) for op in instructions(numba_digits, (array("int32"), array("int64"))))
