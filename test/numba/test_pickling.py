"""Kernels that no module has by their name, in a pickle."""

from __future__ import annotations

import linecache
import math
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

from tilewright.numba import cuda, float32, guvectorize, types, vectorize

SCALE = 3


def _made(bias):
    @cuda.jit(device=True)
    def inner(a):
        return a * SCALE + bias

    @cuda.jit("void(float64[:])")
    def kernel(x):
        i = cuda.grid(1)
        if i < x.size:
            x[i] = inner(x[i]) + math.floor(0.5)

    return kernel


def _again(value):
    return pickle.loads(pickle.dumps(value))


def test_here() -> None:
    kernel = _again(_again(_made(10)))
    x = np.arange(4.0)
    kernel[1, 4](x)
    assert x.tolist() == [10, 13, 16, 19] and kernel.signature == _made(1).signature


PROGRAM = """
import pickle, sys
import numpy as np
kernel = pickle.loads(sys.stdin.buffer.read())
x = np.arange(4.0)
kernel[1, 4](x)
print(x.tolist())
"""


@pytest.mark.parametrize("has_file", [True, False])
def test_in_another_process(has_file) -> None:
    """Which need not have the file."""
    kernel = _made(10) if has_file else _of_a_notebook()
    path = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], input=pickle.dumps(kernel), capture_output=True, check=False,
        env=os.environ | {"PYTHONPATH": path},
    )  # fmt: skip
    assert done.stdout.decode().strip() == "[10.0, 13.0, 16.0, 19.0]", done.stderr.decode()


def _of_a_notebook():
    name = "<a cell>"
    text = "\n\n@cuda.jit\ndef kernel(x):\n    i = cuda.grid(1)\n    x[i] = x[i] * 3 + 10\n"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space = {"cuda": cuda, "__name__": "a_notebook"}
    exec(compile(text, name, "exec"), space)
    return space["kernel"]


def test_a_launch_with_its_grid() -> None:
    launch = _again(_made(1)[5, (8, 2)])
    assert launch.griddim == (5, 1, 1) and launch.blockdim == (8, 2, 1)
    launch.pre_launch_callbacks.append(print)
    with pytest.raises(pickle.PicklingError, match="pre-launch callbacks; take them off first"):
        pickle.dumps(launch)


def test_functions_of_arrays() -> None:
    @vectorize(["float32(float32)", "float64(float64)"])
    def doubled(x):
        return 2 * x

    @guvectorize(["void(float32[:], float32[:])"], "(n)->(n)")
    def row(x, out):
        for i in range(x.size):
            out[i] = x[i] + 1

    x = np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(_again(doubled)(x), 2 * x)
    np.testing.assert_array_equal(_again(row)(x), x + 1)


def test_types_are_the_same() -> None:
    assert _again(types.void) is types.void and _again(float32[:]) == float32[:]
    record = types.from_dtype(np.dtype([("x", "f4")]))
    assert _again(record) == record
