"""Elementwise operations: each with each dtype that it accepts, at awkward values."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from harness import (
    ARITHMETIC,
    ARRAY_DTYPES,
    EXACT,
    FLOATS,
    INTEGERS,
    Backends,
    Tolerance,
    mismatch,
    pairs,
    random_values,
    special,
    ulp,
)

from tilewright import dtype as dt
from tilewright import tile as ct
from tilewright._optable import OPS
from tilewright.errors import TileTypeError

TILE = 128


def unary_kernel(op: Callable[..., Any]) -> Any:
    @ct.kernel
    def kernel(X, Z):
        i = ct.bid(0)
        ct.store(Z, (i,), op(ct.load(X, (i,), (TILE,))))

    return kernel


def binary_kernel(op: Callable[..., Any]) -> Any:
    @ct.kernel
    def kernel(X, Y, Z):
        i = ct.bid(0)
        x = ct.load(X, (i,), (TILE,))
        y = ct.load(Y, (i,), (TILE,))
        ct.store(Z, (i,), op(x, y))

    return kernel


def blocks(x: np.ndarray) -> int:
    return ct.cdiv(len(x), TILE)


TWICE_ROUNDED = ulp(0, 2.0**-149)  # what a GPU may do to quotients of f32 below the normal floats


@ct.function
def inverse_of_quotient(x, y):
    return 1 / (x / y)


def test_quotients_are_the_nearest_floats(backends: Backends) -> None:
    """Any operands, those included for which the hardware's inverse, a remainder or the quotient is not normal."""
    powers = [2.0**n for n in (-149, -127, -126, -61, -60, -1, 0, 1, 63, 126, 127)]
    edges = np.array([0, 3, *powers, np.finfo("f4").max, np.inf, np.nan])
    edges = np.concatenate([edges, -edges]).astype(np.float32)
    bits = np.random.default_rng(0).integers(0, 1 << 32, (2, 1 << 14), dtype=np.uint32).view(np.float32)
    near = np.random.default_rng(1).uniform(0.5, 4, (2, 1 << 14)).astype(np.float32)
    x = np.concatenate([np.repeat(edges, len(edges)), bits[0], near[0]])
    y = np.concatenate([np.tile(edges, len(edges)), bits[1], near[1]])
    kernel = binary_kernel(ct.truediv)
    backends.run_all(kernel, blocks(x), lambda: (x, y, np.zeros_like(x)), tolerance=TWICE_ROUNDED)
    zeros, any_sign = np.repeat(edges[edges == 0], len(edges)), np.tile(edges, 2)
    kernel = binary_kernel(inverse_of_quotient)
    backends.run_all(kernel, blocks(zeros), lambda: (zeros, any_sign, np.zeros_like(zeros)))


def rows_near_middles(chance: np.random.Generator, y: np.ndarray, most: int = 53) -> np.ndarray:
    """For each divisor 256 dividends: half of them give quotients next to the middle of two floats, below 2^most; any
    others."""
    middle = (chance.integers(1 << 23, 1 << 24, (len(y), 128)) + 0.5) * 2.0**-23  # of two neighbours, to be quotients
    x = chance.normal(size=(len(y), 256)) * 2.0 ** chance.integers(-80, most - 3, (len(y), 256))
    with np.errstate(all="ignore"):
        x[:, ::2] = middle * np.frexp(y)[0] * 2.0 ** chance.integers(-100, most, middle.shape)
    x[:, 1::16], x[:, 3::32] = -0.0, 2.0 ** chance.integers(-149, -100, x[:, 3::32].shape)
    x = x.astype(np.float32)
    x[::7, ::50] = [[np.inf, np.nan, -np.inf, 2.0**127, 2.0**-149, 2.0**56]]
    return x


def test_quotients_of_rows_are_the_nearest_floats(backends: Backends) -> None:
    """Rows by a divisor each, which registers share: rows of any operands, and those that go the short way alone."""

    @ct.kernel
    def kernel(X, Y, Z):
        i = ct.bid(0)
        ct.store(Z, (i, 0), ct.load(X, (i, 0), (4, 256)) / ct.load(Y, (i, 0), (4, 1)))

    chance = np.random.default_rng(2)
    last = 2 - np.arange(1, 129) * 2.0**-23  # divisors whose last bits are ones, some of which go the long way
    plain = [*last, *chance.uniform(1, 2, 64), *(2.0 ** np.arange(-126, 50))]
    y = np.array([*plain, 2.0**50, 2.0**127, 2.0**-127, 2.0**-149, np.inf, np.nan, 0, -0.0], np.float32)
    y = np.concatenate([y, -y])[:, None]
    x = rows_near_middles(chance, y)
    backends.run_all(kernel, len(y) // 4, lambda: (x, y, np.zeros_like(x)), tolerance=TWICE_ROUNDED)


def nearest_to_middles(n: int) -> np.ndarray:
    """64 floats whose quotients by an odd number come as near to a middle m as any: (m * n + 1 or - 1) / 2^s; or 0."""
    power, few = 1 << n.bit_length(), np.arange(32)
    inverse = pow(n, -1, power)
    below, above = ((1 << 24) - sign * inverse % power + power * few for sign in (1, -1))
    x = np.concatenate([below * n + 1, above * n - 1]) / power
    return np.where((x >= 1 << 23) & (x < 1 << 24), x, 0)


def test_quotients_of_rows_by_whole_numbers(backends: Backends) -> None:
    """Whole numbers have few bits, and the first guess is right; not so those of 20 bits and more, which come, too.
    Some quotients are the least of all normal floats, some too large for the short way."""

    @ct.kernel
    def kernel(X, Y, Z):
        i = ct.bid(0)
        ct.store(Z, (i, 0), ct.load(X, (i, 0), (4, 256)) / ct.floor(ct.load(Y, (i, 0), (4, 1))))

    chance = np.random.default_rng(3)
    few = [
        *range(128),
        *chance.integers(1 << 10, 1 << 20, 128),
        *((1 << 20) - np.arange(1, 33)),
        *((1 << 19) + np.arange(-32, 32)),
    ]
    many = [
        *((1 << 20) + np.arange(32)),
        *((1 << 23) + np.arange(1601, 2112, 2)),
        *chance.integers(1 << 20, 1 << 24, 64),
    ]
    y = np.array([*few, *many, *(2.0 ** np.arange(25, 57)), 2.0**127, np.inf, np.nan, -0.0], np.float32)
    y = np.concatenate([y, -y])[:, None]
    x = rows_near_middles(chance, y, 37)
    for row in np.flatnonzero((y[:, 0] > 1) & (y[:, 0] < 1 << 24)):
        if y[row, 0] % 2 == 1:
            n = int(y[row, 0])
            x[row, 64:128] = nearest_to_middles(n)
            x[row, 160:224] = x[row, 64:128] * 2.0 ** (n.bit_length() + chance.integers(0, 20, 64) - 149.0)
    x[::5, 128:160] = 2.0 ** chance.integers(30, 128, x[::5, 128:160].shape)
    backends.run_all(kernel, len(y) // 4, lambda: (x, y, np.zeros_like(x)), tolerance=TWICE_ROUNDED)


@ct.kernel
def sides_of(Y, n: int):
    at = ct.arange(512, dtype=ct.int32)
    ct.store(Y, (0, 0), ct.where(at < n, 1, ct.where(at >= n - 3, 2, 0)).reshape((1, 512)))


@pytest.mark.parametrize("n", [-(2**31) + 3, -1, 0, 1, 255, 511, 512, 2**31 - 1])
def test_positions_below_a_number(backends: Backends, n: int) -> None:
    backends.run_all(sides_of, (1,), lambda: [np.zeros((1, 512), np.int32), n])


@ct.kernel
def scaled_bytes(W, S, Y, Z):
    w = ct.load(W, (0, 0), (1, 256))
    s = ct.load(S, (ct.bid(0), 0), (64, 1))
    ct.store(Y, (ct.bid(0), 0), (w.astype(ct.float32) * s.astype(ct.float32)).astype(Y.dtype))
    ct.store(Z, (0, 0), w.astype(Z.dtype))


@pytest.mark.parametrize("byte", ["i1", "u1"])
@pytest.mark.parametrize("dtype", [ct.bfloat16, ct.float16], ids=lambda dtype: dtype.name)
def test_scaled_bytes(backends: Backends, dtype: dt.DType, byte: str) -> None:
    """Each byte times numbers of all sizes, through float32 as it is written, which rounds once."""
    w = np.arange(256, dtype="u1").view(byte)[None]
    s = np.arange(0, 1 << 16, 29, dtype="u2")[: 64 * 35].view(dtype.numpy)[:, None]
    y, z = (np.zeros((n, 256), dtype.numpy) for n in (len(s), 1))
    args = backends.run_all(scaled_bytes, len(s) // 64, lambda: [w.copy(), s.copy(), y.copy(), z.copy()])
    with np.errstate(all="ignore"):
        want = (w.astype(np.float32) * s.astype(np.float32)).astype(dtype.numpy)
    assert np.array_equal(args[2].astype(np.float32), want.astype(np.float32), equal_nan=True)
    assert np.array_equal(args[3].astype(np.float32), w.astype(np.float32))


@ct.kernel
def sides_of_diagonals(Y):
    rows, columns = ct.arange(64, dtype=ct.int32)[:, None], ct.arange(128, dtype=ct.int32)[None, :]
    bits = ct.zeros((64, 128), ct.int32)
    bits = bits + ct.where(rows < columns, 1, 0) + ct.where(rows <= columns, 2, 0) + ct.where(rows > columns, 4, 0)
    bits = bits + ct.where(rows >= columns, 8, 0) + ct.where(rows == columns, 16, 0) + ct.where(columns != rows, 32, 0)
    wide = rows.astype(ct.uint32) < columns.astype(ct.uint32)
    ct.store(Y, (0, 0), bits + ct.where(wide, 64, 0) + ct.where(columns <= columns, 128, 0))


def test_places_along_two_axes(backends: Backends) -> None:
    args = backends.run_all(sides_of_diagonals, (1,), lambda: [np.zeros((64, 128), np.int32)])
    x, y = np.arange(64)[:, None], np.arange(128)[None, :]
    want = 67 * (x < y) + 12 * (x > y) + 26 * (x == y) + 32 * (x != y) + 128
    assert np.array_equal(args[0], want)


def by_name(op: Any) -> str:
    return op if isinstance(op, str) else getattr(op, "name", getattr(op, "__tw_op__", str(op)))


def products(dtype: dt.DType) -> tuple[np.ndarray, np.ndarray]:
    """Special values with each other, then random ones."""
    x, y = pairs(special(dtype), special(dtype))
    more = [random_values(dtype, 200, seed) for seed in (1, 2)]
    return np.concatenate([x, more[0]]), np.concatenate([y, more[1]])


def undefined_division(x: np.ndarray, y: np.ndarray, dtype: dt.DType) -> np.ndarray:
    if not dtype.is_integral:
        return np.zeros(x.shape, bool)
    overflow = (x == dtype.min) & (y.astype(object) == -1)
    return (y == 0) | overflow.astype(bool)


ARITHMETIC_OPS = (ct.add, ct.sub, ct.mul, ct.truediv, ct.floordiv, ct.mod, ct.minimum, ct.maximum)


@pytest.mark.spec("T-107", "T-108", "T-109", "T-110", "T-111", "T-160")
@pytest.mark.parametrize("dtype", ARITHMETIC, ids=by_name)
@pytest.mark.parametrize("op", ARITHMETIC_OPS, ids=by_name)
def test_arithmetic(backends: Backends, op: Any, dtype: dt.DType) -> None:
    x, y = products(dtype)
    real = op is ct.truediv and dtype.is_integral
    result = np.float32 if real else dtype.numpy
    divides = op in (ct.floordiv, ct.mod)
    undefined = undefined_division(x, y, dtype) if divides else None
    tolerance = TWICE_ROUNDED if op is ct.truediv and np.dtype(result) == np.float32 else EXACT
    backends.run_all(
        binary_kernel(op),
        blocks(x),
        lambda: [x.copy(), y.copy(), np.zeros(len(x), result)],
        tolerance=tolerance,
        ignore={} if undefined is None else {2: undefined},
    )


@pytest.mark.parametrize("dtype", [ct.float32, ct.float64], ids=by_name)
def test_remainders_are_exact(backends: Backends, dtype: dt.DType) -> None:
    """However large the quotient is: up to 2^277, or 2^2098."""
    n, unsigned = dtype.numpy, {32: np.uint32, 64: np.uint64}[dtype.bits]
    info = np.finfo(n)
    edges = [info.smallest_subnormal, info.tiny, info.tiny / 3, 0.1, 3, info.max / 3, info.max, np.inf, np.nan]
    x, y = pairs(*[np.array([*edges, *(-v for v in edges), 0], n)] * 2)
    bits = np.random.default_rng(0).integers(0, np.iinfo(unsigned).max, (2, 1 << 9), unsigned, endpoint=True).view(n)
    x, y = np.concatenate([x, bits[0]]), np.concatenate([y, bits[1]])
    with np.errstate(all="ignore"):
        expected = np.mod(x, y)
    z = backends.run_all(binary_kernel(ct.mod), blocks(x), lambda: [x, y, np.zeros_like(x)])[2]
    assert np.array_equal(z, expected, equal_nan=True)


@pytest.mark.parametrize("dtype", [ct.float16, ct.bfloat16, ct.float32, ct.float64], ids=by_name)
def test_float_quotients_rounded_down(backends: Backends, dtype: dt.DType) -> None:
    """The quotient of the dtype, rounded down: 3.0 / 0.1 is 30, and so is 3.0 // 0.1, which is 29 in Python."""
    values = [0.1, 0.3, 0.7, 1, 3, 6, 7, 1e3, np.inf]
    x, y = pairs(*[np.array([*values, *(-v for v in values)], dtype.numpy)] * 2)
    z = backends.run_all(binary_kernel(ct.floordiv), blocks(x), lambda: [x, y, np.zeros_like(x)])[2]
    with np.errstate(all="ignore"):
        assert np.array_equal(z, np.floor(x / y), equal_nan=True)


@pytest.mark.parametrize("dtype", [*ARITHMETIC, ct.bool_], ids=by_name)
@pytest.mark.parametrize(
    "op",
    [ct.equal, ct.not_equal, ct.less, ct.less_equal, ct.greater, ct.greater_equal],
    ids=by_name,
)
def test_comparison(backends: Backends, op: Any, dtype: dt.DType) -> None:
    x, y = products(dtype)
    _, _, z = backends.run_all(
        binary_kernel(op),
        blocks(x),
        lambda: [x.copy(), y.copy(), np.zeros(len(x), bool)],
    )
    with np.errstate(invalid="ignore"):
        assert np.array_equal(z, getattr(np, op.__tw_op__)(x, y))


@pytest.mark.parametrize("dtype", [*INTEGERS, ct.bool_], ids=by_name)
@pytest.mark.parametrize("op", [ct.bitwise_and, ct.bitwise_or, ct.bitwise_xor], ids=by_name)
def test_bitwise(backends: Backends, op: Any, dtype: dt.DType) -> None:
    x, y = products(dtype)
    _, _, z = backends.run_all(
        binary_kernel(op),
        blocks(x),
        lambda: [x.copy(), y.copy(), np.zeros(len(x), dtype.numpy)],
    )
    assert np.array_equal(z, getattr(np, op.__tw_op__)(x, y))


@pytest.mark.parametrize("dtype", INTEGERS, ids=by_name)
@pytest.mark.parametrize("op", [ct.bitwise_lshift, ct.bitwise_rshift], ids=by_name)
def test_shift(backends: Backends, op: Any, dtype: dt.DType) -> None:
    counts = np.arange(dtype.bits + 2).astype(dtype.numpy)  # the last two are past the width
    x, y = pairs(special(dtype), counts)
    _, _, z = backends.run_all(
        binary_kernel(op),
        blocks(x),
        lambda: [x.copy(), y.copy(), np.zeros(len(x), dtype.numpy)],
        ignore={2: y >= dtype.bits},
    )
    run = np.left_shift if op is ct.bitwise_lshift else np.right_shift
    inside = y < dtype.bits
    assert np.array_equal(z[inside], run(x, y)[inside])


@pytest.mark.parametrize("dtype", [*INTEGERS, ct.bool_], ids=by_name)
def test_bitwise_not(backends: Backends, dtype: dt.DType) -> None:
    x = np.concatenate([special(dtype), random_values(dtype, 150)])
    _, z = backends.run_all(unary_kernel(ct.bitwise_not), blocks(x), lambda: [x.copy(), np.zeros_like(x)])
    assert np.array_equal(z, np.invert(x))


@pytest.mark.parametrize("dtype", ARITHMETIC, ids=by_name)
@pytest.mark.parametrize("op", [ct.negative, ct.abs], ids=by_name)
def test_sign(backends: Backends, op: Any, dtype: dt.DType) -> None:
    x = np.concatenate([special(dtype), random_values(dtype, 150)])
    backends.run_all(unary_kernel(op), blocks(x), lambda: [x.copy(), np.zeros_like(x)])


@pytest.mark.parametrize("dtype", FLOATS, ids=by_name)
@pytest.mark.parametrize("op", [ct.floor, ct.ceil], ids=by_name)
def test_rounding(backends: Backends, op: Any, dtype: dt.DType) -> None:
    x = np.concatenate([special(dtype), random_values(dtype, 150) * dtype.numpy.type(9)])
    backends.run_all(unary_kernel(op), blocks(x), lambda: [x.copy(), np.zeros_like(x)])


# Every function of real numbers that the dialect defines: a new one is tested without a line here.
FUNCTIONS = [getattr(ct, op.public) for op in OPS if op.operands == 1 and op.result == "float"]
PERIODIC = (ct.sin, ct.cos, ct.tan)


def function_tolerance(op: Any, dtype: dt.DType) -> Tolerance:
    if op is ct.sqrt:
        return ulp(1)
    if dtype.bits == 16:
        flushed = dtype is ct.bfloat16 and op in (ct.exp, ct.exp2)
        return ulp(1, 1e-6 if op in PERIODIC else 2.0**-126 if flushed else 0)
    around_zero = float(np.finfo(dtype.numpy).eps) * 4 if op in PERIODIC else 0
    return ulp(4 if op not in (ct.tan, ct.sinh, ct.cosh, ct.tanh) else 8, around_zero)


def function_arguments(op: Any, dtype: dt.DType) -> np.ndarray:
    """Common ones, those of all magnitudes, and those whose exponential overflows or is below the normal numbers."""
    x = [special(dtype), random_values(dtype, 150), random_values(dtype, 40) * dtype.numpy.type(9)]
    bits = np.random.default_rng(1).integers(0, 256, 300 * dtype.numpy.itemsize, dtype=np.uint8)
    ends = np.linspace(-1.6, 1.6, 701) * math.log(float(ml_dtypes.finfo(dtype.numpy).max))
    x += [bits.view(dtype.numpy), ends.astype(dtype.numpy)]
    if op in (ct.sin, ct.cos) and dtype.bits == 64:  # the number that is nearest to a multiple of pi / 2
        x.append(np.array([6381956970095103.0 * 2.0**797]))
    return np.concatenate(x)


@pytest.mark.parametrize("dtype", FLOATS, ids=by_name)
@pytest.mark.parametrize("op", FUNCTIONS, ids=by_name)
def test_function(backends: Backends, op: Any, dtype: dt.DType) -> None:
    x = function_arguments(op, dtype)
    backends.run_all(
        unary_kernel(op),
        blocks(x),
        lambda: [x.copy(), np.zeros_like(x)],
        tolerance=function_tolerance(op, dtype),
    )


@pytest.mark.parametrize("dtype", [ct.float16, ct.bfloat16], ids=by_name)
@pytest.mark.parametrize("op", FUNCTIONS, ids=by_name)
def test_function_of_all_16_bits(op: Any, dtype: dt.DType) -> None:
    """Beside the exact result, for each number that there is."""
    x = np.arange(1 << 16, dtype=np.uint16).view(dtype.numpy)
    found = np.zeros_like(x)
    ct.launch(None, blocks(x), unary_kernel(op), (x, found))
    with np.errstate(all="ignore"):
        exact = 1 / np.sqrt(x.astype(np.float64)) if op is ct.rsqrt else getattr(np, op.__tw_op__)(x.astype(np.float64))
        expected = exact.astype(dtype.numpy)
    assert mismatch(found, expected, function_tolerance(op, dtype), None) is None


@ct.kernel
def swish(X, Y, Z):
    x = ct.load(X, index=(ct.bid(0),), shape=(TILE,)).astype(ct.float32)
    y = x / (1.0 + ct.exp(-x))
    ct.store(Y, index=(ct.bid(0),), tile=y.astype(Y.dtype))
    ct.store(Z, index=(ct.bid(0),), tile=1.0 + ct.tanh(x))


@pytest.mark.parametrize("dtype", [ct.float16, ct.bfloat16], ids=by_name)
def test_functions_within_an_expression(backends: Backends, dtype: dt.DType) -> None:
    """A quotient by 1 + e^-x keeps its accuracy to where the divisor is infinite; 1 + tanh(x) where it cancels."""
    x = np.concatenate([special(dtype), np.linspace(-95, 95, 381).astype(dtype.numpy)])
    arguments = lambda: [x.copy(), np.zeros_like(x), np.zeros(len(x), np.float32)]  # noqa: E731
    around_zero = float(np.finfo(np.float32).eps)
    tolerance = {1: ulp(1), 2: ulp(4, around_zero)}
    _, y, z = backends.run_all(swish, blocks(x), arguments, tolerance=tolerance)
    exact = x.astype(np.float64)
    with np.errstate(all="ignore"):
        eps = float(ml_dtypes.finfo(dtype.numpy).eps)
        np.testing.assert_allclose(y.astype(np.float64), exact / (1 + np.exp(-exact)), rtol=eps, atol=1e-7)
        np.testing.assert_allclose(z, 1 + np.tanh(exact), rtol=1e-6, atol=around_zero)


@pytest.mark.parametrize("dtype", [ct.int32, ct.uint8, ct.int64], ids=by_name)
@pytest.mark.parametrize("op", [ct.exp2, ct.log, ct.sqrt, ct.tanh], ids=by_name)
def test_function_of_integers(backends: Backends, op: Any, dtype: dt.DType) -> None:
    x = np.concatenate([special(dtype), np.arange(60).astype(dtype.numpy)])
    _, z = backends.run_all(
        unary_kernel(op),
        blocks(x),
        lambda: [x.copy(), np.zeros(len(x), np.float32)],
        tolerance=function_tolerance(op, ct.float32),
    )
    with np.errstate(all="ignore"):
        expected = getattr(np, op.__tw_op__)(x.astype(np.float32))
    np.testing.assert_allclose(z, expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", FLOATS, ids=by_name)
def test_pow_of_floats(backends: Backends, dtype: dt.DType) -> None:
    bases = np.array([0.0, 0.1, 0.5, 1.0, 1.5, 2.0, 7.0, 100.0]).astype(dtype.numpy)
    exponents = np.array([0.0, 0.5, 1.0, -1.0, 2.0, 3.0, -2.5, 4.25]).astype(dtype.numpy)
    x, y = pairs(bases, exponents)
    negative = pairs((-bases[1:]).astype(dtype.numpy), exponents[exponents % 1 == 0])
    x, y = np.concatenate([x, negative[0]]), np.concatenate([y, negative[1]])
    backends.run_all(
        binary_kernel(ct.pow),
        blocks(x),
        lambda: [x.copy(), y.copy(), np.zeros_like(x)],
        tolerance=ulp(1 if dtype.bits == 16 else 16),
    )


@pytest.mark.parametrize("dtype", INTEGERS, ids=by_name)
def test_pow_of_integers(backends: Backends, dtype: dt.DType) -> None:
    @ct.kernel
    def kernel(X, Z0, Z1, Z2, Z5):
        x = ct.load(X, (ct.bid(0),), (TILE,))
        ct.store(Z0, (ct.bid(0),), x**0)
        ct.store(Z1, (ct.bid(0),), x**1)
        ct.store(Z2, (ct.bid(0),), x**2)
        ct.store(Z5, (ct.bid(0),), ct.pow(x, 5))

    x = np.concatenate([special(dtype), random_values(dtype, 150)])
    args = backends.run_all(kernel, blocks(x), lambda: [x.copy(), *(np.zeros_like(x) for _ in range(4))])
    for z, power in zip(args[1:], (0, 1, 2, 5), strict=True):
        assert np.array_equal(z, x ** dtype.numpy.type(power))


@pytest.mark.parametrize("dtype", ARRAY_DTYPES, ids=by_name)
def test_where(backends: Backends, dtype: dt.DType) -> None:
    @ct.kernel
    def kernel(C, X, Y, Z):
        i = (ct.bid(0),)
        condition = ct.load(C, i, (TILE,))
        ct.store(Z, i, ct.where(condition, ct.load(X, i, (TILE,)), ct.load(Y, i, (TILE,))))

    x, y = (random_values(dtype, 300, seed) for seed in (1, 2))
    c = random_values(ct.bool_, 300)
    z = backends.run_all(kernel, 3, lambda: [c.copy(), x.copy(), y.copy(), np.zeros_like(x)])[3]
    assert np.array_equal(z, np.where(c, x, y))


def test_where_with_scalars(backends: Backends) -> None:
    @ct.kernel
    def kernel(X, Z, limit):
        x = ct.load(X, (0,), (64,))
        ct.store(Z, (0,), ct.where(x > limit, x, 0) + ct.where(limit > 2, 1, x))

    x = random_values(ct.float32, 64)
    backends.run_all(kernel, 1, lambda: [x.copy(), np.zeros_like(x), 0.5])
    backends.run_all(kernel, 1, lambda: [x.copy(), np.zeros_like(x), 4])


SHAPES = ((), (1,), (8,), (1, 8), (4, 1), (4, 8), (2, 1, 1), (2, 4, 1), (1, 1, 8), (2, 4, 8))


@pytest.mark.spec("T-075", "T-076", "T-077", "T-078", "T-080", "T-081")
def test_broadcasting(backends: Backends) -> None:
    """All pairs of shapes that broadcast, against NumPy."""
    for a, b in itertools.product(SHAPES, SHAPES):
        shape = np.broadcast_shapes(a, b)
        if len(shape) == 0 or (a < b and backends.names):
            continue

        @ct.kernel
        def kernel(X, Y, Z, A: ct.Constant, B: ct.Constant, origin: ct.Constant):
            x = ct.load(X, origin[: len(A)], A)
            y = ct.load(Y, origin[: len(B)], B)
            ct.store(Z, origin[: Z.ndim], x - y)

        x = np.arange(np.prod(a, dtype=int), dtype=np.int32).reshape(a)
        y = np.arange(0, 10 * np.prod(b, dtype=int), 10, dtype=np.int32).reshape(b)
        make = lambda x=x, y=y, a=a, b=b, s=shape: [  # noqa: E731
            x.copy(), y.copy(), np.zeros(s, np.int32), a, b, (0, 0, 0)
        ]  # fmt: skip
        z = backends.run_all(kernel, 1, make)[2]
        assert np.array_equal(z, x - y)


@pytest.mark.spec("T-079")
@pytest.mark.parametrize(("a", "b"), [((4,), (8,)), ((2, 4), (8, 1)), ((4, 1), (2, 8))])
def test_shapes_that_do_not_broadcast(backends: Backends, a: Any, b: Any) -> None:
    @ct.kernel
    def kernel(A: ct.Constant, B: ct.Constant):
        ct.zeros(A, ct.int32) + ct.zeros(B, ct.int32)

    backends.rejects(kernel, 1, lambda: [a, b], TileTypeError, f"{re.escape(str(a))} and {re.escape(str(b))}")


REFUSED = [
    *((op, ct.bool_) for op in ARITHMETIC_OPS),
    *((op, ct.float32) for op in (ct.bitwise_and, ct.bitwise_lshift)),
    (ct.bitwise_lshift, ct.bool_),
    *((op, d) for op in (ct.add, ct.less) for d in dt.ALL if not d.arithmetic),
]


def refusal(dtype: dt.DType) -> str:
    """What the message has: the dtype; and a way on where it is one that serves storage and products only."""
    return dtype.name if dtype.arithmetic else rf"{dtype.name}.*astype\(ct\.float32\)"


@pytest.mark.spec("T-112")
@pytest.mark.parametrize(("op", "dtype"), REFUSED, ids=by_name)
def test_refused_binary(backends: Backends, op: Any, dtype: dt.DType) -> None:
    @ct.kernel
    def kernel():
        x = ct.full((8,), 1, ct.float32).astype(dtype)
        op(x, x)

    backends.rejects(kernel, 1, list, TileTypeError, refusal(dtype))


def test_the_size_of_a_bool_is_itself(backends: Backends) -> None:
    @ct.kernel
    def kernel(X, Z):
        ct.store(Z, 0, ct.abs(ct.load(X, 0, 4) > 1).astype(ct.int32))

    x = np.arange(4, dtype=np.int32)
    z = backends.run_all(kernel, 1, lambda: [x.copy(), np.zeros(4, np.int32)])[1]
    assert np.array_equal(z, x > 1)


@pytest.mark.spec("T-112")
@pytest.mark.parametrize(
    ("op", "dtype"),
    [
        (ct.floor, ct.bool_),
        *((op, ct.float8_e5m2) for op in (ct.negative, ct.abs, ct.exp, ct.floor)),
        *((op, ct.int32) for op in (ct.floor, ct.ceil)),
        (ct.bitwise_not, ct.float16),
    ],
    ids=by_name,
)
def test_refused_unary(backends: Backends, op: Any, dtype: dt.DType) -> None:
    @ct.kernel
    def kernel():
        op(ct.full((8,), 1, ct.float32).astype(dtype))

    backends.rejects(kernel, 1, list, TileTypeError, refusal(dtype))
