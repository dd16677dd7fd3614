"""What kernels of Numba users do with parts of arrays, tuples, enumerations and submodules."""

import importlib
import subprocess
import sys
from enum import IntEnum

import numpy as np
import pytest

from tilewright import arrays
from tilewright.numba import cuda, float32


class Side(IntEnum):
    LEFT = 1
    RIGHT = 2


WEIGHTS = (1.5, 2, 3, 4)
TABLE = np.array([[5, 6], [7, 8]], np.int16)


@cuda.jit
def parts(y, out):
    i = cuda.grid(1)
    own = cuda.local.array((2, 3), float32)
    own[:] = Side.RIGHT
    own[1] = 7
    own[0, 1:] = y[1:3]
    out[i] = own


@cuda.jit
def picks(out, side):
    i = cuda.grid(1)
    out[i] = WEIGHTS[i]
    if side == Side.LEFT:
        out[0] = (i, 5)[i + 1] * 100


@cuda.jit
def attributes(y, out):
    out[0] = y.T[1, 0]
    out[1] = y.T.shape[0]
    out[2] = y.itemsize
    out[3] = y.nbytes


def test_parts_of_arrays_are_assigned(run):
    out = run(parts, 1, 4, np.arange(4.0), np.zeros((4, 2, 3)))[1]
    np.testing.assert_array_equal(out, [[[2, 1, 2], [7, 7, 7]]] * 4)


@pytest.mark.parametrize("side, first", [(Side.LEFT, 500), (Side.RIGHT, 1.5)])
def test_tuples_of_numbers_have_run_time_indices(run, side, first):
    np.testing.assert_array_equal(run(picks, 1, 4, np.zeros(4), int(side))[0], [first, 2, 3, 4])


@cuda.jit
def looks_up(out):
    i = cuda.grid(1)
    out[i] = TABLE[i // 2, i % 2] + TABLE[1, 1] + TABLE.shape[0]


def test_arrays_from_outside_are_constants(run):
    np.testing.assert_array_equal(run(looks_up, 1, 4, np.zeros(4))[0], [15, 16, 17, 18])


def test_attributes_of_arrays(run):
    out = run(attributes, 1, 1, np.arange(6.0).reshape(2, 3), np.zeros(4))[1]
    np.testing.assert_array_equal(out, [1, 3, 8, 48])


@pytest.mark.parametrize("name", ["fp16", "libdevice", "random"])
def test_submodules_are_imported_by_name(name):
    assert importlib.import_module(f"tilewright.numba.cuda.{name}") is getattr(cuda, name)


def test_an_array_is_split():
    x = arrays.to_device(np.arange(5.0), device="cpu")
    assert [part.to_numpy().tolist() for part in x.split(2)] == [[0, 1], [2, 3], [4]]
    with pytest.raises(ValueError, match="split takes an array with one axis by 1 or more"):
        x.split(0)


@cuda.jit
def counted(first, last, step, out):
    total = 0
    for i, j in enumerate(range(first, last, step)):
        total += (i + 1) * j
    out[0] = total
    total = 0
    for i, (j, k) in enumerate(zip(range(first, last), range(last, first, -2)), 3):  # noqa: B905
        total += i * j * k
    out[1] = total
    for i in range(first):
        if i == last:
            found = last
            break
    else:
        found = i * 2
    out[2] = found


@pytest.mark.parametrize("bounds", [(2, 10, 3), (10, 2, -3), (5, 5, 1), (7, -4, -2)])
def test_enumerate_counts_over_ranges_that_the_launch_knows(run, bounds):
    *_, out = run(counted, 1, 1, *map(np.int64, bounds), np.zeros(3, np.int64))
    first, last, _ = bounds
    pairs = enumerate(zip(range(first, last), range(last, first, -2), strict=False), 3)
    products = sum(i * j * k for i, (j, k) in pairs)
    found = last if 0 <= last < first else (first - 1) * 2
    assert out.tolist() == [sum((i + 1) * j for i, j in enumerate(range(*bounds))), products, found]


def test_a_kernel_of_a_command_line():
    program = """
import numpy as np
from tilewright.numba import cuda

@cuda.jit
def kernel(x):
    x[cuda.grid(1)] += 1

x = np.zeros(4)
kernel[1, 4](x)
print(x.tolist())
exec("@cuda.jit\\ndef other(x): x[0] = 1")
other[1, 1](x)
"""
    done = subprocess.run([sys.executable, "-c", program, "argument"], capture_output=True, text=True)
    assert done.stdout == "[1.0, 1.0, 1.0, 1.0]\n"
    assert "the source of other is not available" in done.stderr


@cuda.jit
def wraps(x, at, out):
    i, j = cuda.grid(2)
    out[i, j] = x[i - 1, j - 2] + x[at[i], -1]
    own = cuda.local.array(4, float32)
    for k in range(4):
        own[k - 1] = k
    out[i, j - 4] += own[i - 2]
    if i > 0:
        out[i, j] += x[i - 1, j]


def test_indices_below_zero_count_from_the_end(run):
    x = np.arange(12.0).reshape(3, 4)
    at = np.array([-1, 1, -3])
    *_, out = run(wraps, (1, 1), (3, 4), x, at, np.zeros((3, 4)))
    own = np.array([1.0, 2, 3, 0])
    expected = [
        [x[i - 1, j - 2] + x[at[i], -1] + own[i - 2] + (i > 0) * x[i - 1, j] for j in range(4)] for i in range(3)
    ]
    np.testing.assert_array_equal(out, expected)


def test_a_guarded_index_is_not_compared_with_zero():
    @cuda.jit
    def stencil(x, y):
        i = cuda.grid(1)
        if i < 1 or i >= x.size - 1:
            return
        y[i] = x[i - 1] + x[i + 1]
        while i < x.size:
            y[i - 1] = x[i]
            i += cuda.gridsize(1)

    ptx, _ = cuda.compile_ptx(stencil, "void(float32[:], float32[:])")
    assert "selp" not in ptx
