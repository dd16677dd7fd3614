"""Functions of bits, cube roots, and products with a sum rounded once."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from cuda import device
from tilewright.dtype import as_dtype
from tilewright.errors import TileTypeError

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]


@device.kernel
def at_a_count(x, n):
    x[device.popc(n)] = device.clz(n)


def test_counts_of_an_argument_are_indices(run: Any) -> None:
    x = np.zeros(4, np.int32)
    run(at_a_count, x, 5)
    np.testing.assert_array_equal(x, [0, 0, 29, 0])


@device.kernel
def bits(x, counts, reversed_):
    i = device.tid(1)
    counts[i, 0] = device.popc(x[i])
    counts[i, 1] = device.clz(x[i])
    counts[i, 2] = device.ffs(x[i])
    reversed_[i] = device.brev(x[i])
    counts[i, 3] = device.popc(x[i]).dtype == device.int32
    counts[i, 4] = device.brev(x[i]).dtype == x.dtype


@pytest.mark.spec("D-549", "D-550", "D-552", "D-553", "D-555", "D-556", "D-558", "D-559", "D-567")
@pytest.mark.parametrize("name", INTEGERS)
def test_bits_of_integers(run: Any, name: str) -> None:
    dtype = as_dtype(name)
    x = np.array([0, 1, 2, 3, 100, dtype.max, dtype.min, dtype.max - 6], dtype.numpy)
    counts, back = np.zeros((8, 5), np.int32), np.zeros_like(x)
    run(bits, x, counts, back, block=8)
    for value, row, found in zip(x, counts, back, strict=True):
        text = f"{int(value) & ((1 << dtype.bits) - 1):0{dtype.bits}b}"
        places = [text.count("1"), len(text) - len(text.lstrip("0")), text[::-1].find("1") + 1]
        assert list(row) == [*places, 1, 1], value
        assert f"{int(found) & ((1 << dtype.bits) - 1):0{dtype.bits}b}" == text[::-1]
        assert [device.popc(value), device.clz(value), device.ffs(value)] == places and device.brev(value) == found


@pytest.mark.spec("D-549", "D-550", "D-567")
def test_an_int_has_32_bits() -> None:
    assert (device.popc(-1), device.clz(1), device.ffs(0), device.brev(1)) == (32, 31, 0, -(2**31))


@device.kernel
def roots(x, y):
    i = device.tid(1)
    y[i] = device.cbrt(x[i])


@pytest.mark.spec("D-561", "D-562", "D-567")
@pytest.mark.parametrize("name", FLOATS)
def test_cube_roots(run: Any, name: str) -> None:
    dtype = as_dtype(name).numpy
    values = [0.0, -0.0, 1, 8, -27, 0.1, 1000.5, -1e-3, math.inf, -math.inf, math.nan]
    x = np.array(values).astype(dtype)
    y = np.zeros_like(x)
    run(roots, x, y, block=len(values))
    expected = np.cbrt(x.astype(np.float64)).astype(dtype)
    np.testing.assert_allclose(y.astype(np.float64), expected.astype(np.float64), rtol=2 * 2.0**-52)
    assert math.copysign(1, y[1]) == -1 and device.cbrt(x[3]) == 2


@device.kernel
def inverse_roots(x, y):
    i = device.tid(1)
    y[i] = device.rsqrt(x[i])


@pytest.mark.parametrize("name", FLOATS)
def test_inverse_roots(run: Any, name: str) -> None:
    dtype = as_dtype(name)
    digits = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}[name]
    x = np.array([0.0, -0.0, 1, 4, 1e-6, 1000.5, -1, math.inf, -math.inf, math.nan]).astype(dtype.numpy)
    y = np.zeros_like(x)
    run(inverse_roots, x, y, block=len(x))
    expected = [math.inf, -math.inf, *(1 / math.sqrt(v) for v in x[2:6]), math.nan, 0, math.nan, math.nan]
    np.testing.assert_allclose(y.astype(np.float64), expected, rtol=2 * 2.0 ** (1 - digits))
    assert device.rsqrt(x[3]) == 0.5


@device.kernel
def fused(a, b, c, y):
    i = device.tid(1)
    y[i] = device.fma(a[i], b[i], c[i])


@pytest.mark.spec("D-564", "D-565", "D-567")
@pytest.mark.parametrize("name", FLOATS)
def test_products_with_a_sum_round_once(run: Any, name: str) -> None:
    dtype = as_dtype(name)
    digits = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}[name]
    tiny = 2.0 ** (1 - digits)
    a = np.array([1 + tiny, 2, 1 + tiny, 3]).astype(dtype.numpy)
    c = np.array([-(1 + 2 * tiny), 1, -1, math.inf]).astype(dtype.numpy)
    y = np.zeros_like(a)
    run(fused, a, a, c, y, block=4)
    assert [float(v) for v in y] == [tiny * tiny, 5, 2 * tiny, math.inf]
    assert device.fma(a[0], a[0], c[0]) == dtype.numpy.type(tiny * tiny)


@device.kernel
def mixed(a, b, y):
    y[0] = device.fma(a[0], b[0], 1.0).dtype == device.float64
    y[1] = device.fma(a[0], a[0], 1.5)


@pytest.mark.spec("D-565")
def test_operands_of_fma_promote(run: Any) -> None:
    y = np.zeros(2, np.float32)
    run(mixed, np.array([2], np.float32), np.array([3], np.float64), y)
    np.testing.assert_array_equal(y, [1, 5.5])


@pytest.mark.spec("D-551", "D-554", "D-557", "D-560", "D-563", "D-566")
@pytest.mark.parametrize("name", ["popc", "brev", "clz", "ffs", "cbrt", "rsqrt", "fma"])
def test_operands_of_another_kind(run: Any, name: str) -> None:
    function = getattr(device, name)
    wrong = np.zeros(1, np.int32 if name in ("cbrt", "rsqrt", "fma") else np.float32)
    count = 3 if name == "fma" else 1

    @device.kernel
    def k(x):
        x[0] = function(*([x[0]] * count))

    with pytest.raises(TileTypeError, match=f"device.{name} is a function of "):
        run(k, wrong)
    with pytest.raises(TileTypeError, match=f"device.{name} is a function of "):
        function(*([wrong[0]] * count))
