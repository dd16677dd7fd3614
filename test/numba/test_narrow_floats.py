"""bfloat16 and floats of 8 bits in kernels of Numba."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilewright
from tilewright.errors import TileTypeError
from tilewright.numba import bfloat16, cuda, float16, float32


@cuda.jit
def arithmetic(x, o):
    i = cuda.grid(1)
    o[0, i] = x[i] * 2
    o[1, i] = x[i] / 3
    o[2, i] = x[i] // 2 + x[i] % 2
    o[3, i] = x[i] < 2
    o[4, i] = x[i] ** 2
    o[5, i] = x[i] if i < 2 else i
    o[6, i] = x[i] + float32(0.5)


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2])
def test_with_other_numbers(run, dtype) -> None:
    x = np.arange(4).astype(dtype)
    wide = x.astype(np.float64)
    expected = [2 * wide, wide / 3, wide // 2 + wide % 2, wide < 2, wide**2, wide, wide + 0.5]
    _, out = run(arithmetic, 1, 4, tilewright.to_device(x, device="cpu"), np.zeros((7, 4)))
    np.testing.assert_array_equal(out, expected)


@cuda.jit
def of_one_kind(x, o):
    i = cuda.grid(1)
    own = cuda.local.array(2, bfloat16)
    own[0] = x[i]
    own[1] = own[0] + own[0]
    o[0, i] = own[1]
    o[1, i] = -x[i]
    o[2, i] = bfloat16(1.001) * x[i]
    o[3, i] = x[i] + float16(0.001)  # of two kinds that hold one another's numbers not: in float32


def test_bfloat16_stays_one(run) -> None:
    x = np.arange(4).astype(ml_dtypes.bfloat16)
    wide = x.astype(np.float32)
    _, out = run(of_one_kind, 1, 4, tilewright.to_device(x, device="cpu"), np.zeros((4, 4)))
    np.testing.assert_array_equal(out, [2 * wide, -wide, wide, wide + np.float32(np.float16(0.001))])


def test_types() -> None:
    assert cuda.bfloat16 is bfloat16 and bfloat16.dtype == ml_dtypes.bfloat16
    assert ".entry kernel" in cuda.compile_ptx(_kernel(), "void(bfloat16[:], bfloat16)", cc=(9, 0))[0]


def _kernel():
    def kernel(x, value):
        x[0] = value + 1

    return kernel


@pytest.mark.parametrize("function", [lambda x: x + x, lambda x: -x])
def test_eight_bits_do_not_compute(function) -> None:
    @cuda.jit
    def kernel(x, o):
        o[0] = function(x[0])

    x = tilewright.to_device(np.zeros(1, ml_dtypes.float8_e4m3fn), device="cpu")
    with pytest.raises(TileTypeError, match=r"float8_e4m3fn is not defined; convert (it|them), as in float32\(x\)"):
        kernel[1, 1](x, np.zeros(1))
