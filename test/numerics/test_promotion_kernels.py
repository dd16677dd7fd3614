"""The promotion rules as kernels see them: each pair of dtypes, each kind of constant."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import ARITHMETIC, Backends, random_values, ulp

from tilewright import dtype as dt
from tilewright import tile as ct
from tilewright.errors import TileTypeError, TileValueError


def by_name(value: Any) -> str:
    return getattr(value, "name", str(value))


@pytest.mark.spec("T-113", "T-117", "T-123", "T-127", "T-128", "T-140")
@pytest.mark.parametrize("row", dt.ALL, ids=by_name)
def test_pairs(backends: Backends, row: dt.DType) -> None:
    """One row of the table: x + y has the common dtype, and so has y + x."""

    @ct.kernel
    def kernel(Z, column: ct.Constant, result: ct.Constant):
        x = (ct.arange(8, dtype=ct.int32) % 2 + 1).astype(row)
        y = ct.full((8,), 4, ct.int32).astype(column)
        left, right = ct.where(True, x, y), ct.where(True, y, x)
        ct.static_assert(left.dtype == result and right.dtype == result)
        ct.store(Z, (0,), left.astype(ct.float32))
        ct.store(Z, (1,), right.astype(ct.float32))

    for column in dt.ALL:
        common = dt.PROMOTION[row, column]
        make = lambda c=column, r=common: [np.zeros(16, np.float32), c, r]  # noqa: E731
        if common is None:
            backends.rejects(kernel, 1, make, TileTypeError, rf"{row}.* and .*{column}")
        else:
            backends.run_all(kernel, 1, make)


@pytest.mark.parametrize("half", (ct.float16, ct.bfloat16), ids=by_name)
@pytest.mark.parametrize("integer", (ct.int16, ct.int32, ct.int64), ids=by_name)
def test_integers_round_before_what_is_computed_in_more_bits(
    backends: Backends, integer: dt.DType, half: dt.DType
) -> None:
    """`//`, `%` and `**` of 16-bit floats compute in float32; an integer operand becomes a 16-bit float before."""

    @ct.kernel
    def kernel(X, Y, Z):
        x, y = ct.load(X, (0,), (16,)), ct.load(Y, (0,), (16,))
        ct.store(Z, (0,), x // y)
        ct.store(Z, (1,), x % y)
        ct.store(Z, (2,), y // x)
        ct.store(Z, (3,), y % x)

    @ct.kernel
    def power(X, Y, Z):
        x, y = ct.load(X, (0,), (16,)), ct.load(Y, (0,), (16,))
        ct.store(Z, (0,), x**2)
        ct.store(Z, (1,), x**y)

    numbers = [
        10**12,
        -(10**15),
        70000,
        65519,
        65520,
        4097,
        -4099,
        3,
        2049,
        -32767,
        12345,
        1,
        -1,
        30001,
        257,
        2**40 + 1,
    ]
    x = np.array(numbers, np.int64).astype(integer.numpy)  # the lower bits
    x[x == 0] = 7
    y = np.array([3, 2] * 8).astype(half.numpy)
    backends.run_all(kernel, 1, lambda: [x.copy(), y.copy(), np.zeros(64, half.numpy)])
    backends.run_all(power, 1, lambda: [x.copy(), y.copy(), np.zeros(32, half.numpy)], tolerance=ulp(1))


@pytest.mark.parametrize("row", ARITHMETIC, ids=by_name)
def test_sum_of_pairs(backends: Backends, row: dt.DType) -> None:
    """Values too: both operands are converted, then added, in the common dtype."""

    @ct.kernel
    def kernel(X, Y, Z):
        ct.store(Z, (0,), ct.load(X, (0,), (64,)) + ct.load(Y, (0,), (64,)))

    for column in ARITHMETIC:
        common = dt.PROMOTION[row, column]
        if common is not None and row is not column:
            x, y = random_values(row, 64), random_values(column, 64, 1)
            backends.run_all(
                kernel,
                1,
                lambda x=x, y=y, c=common: [x.copy(), y.copy(), np.zeros(64, c.numpy)],
            )


@pytest.mark.spec("T-052", "T-053", "T-122", "T-123", "T-124")
@pytest.mark.parametrize("dtype", ARITHMETIC, ids=by_name)
def test_constants(backends: Backends, dtype: dt.DType) -> None:
    real = dtype if dtype.is_float else ct.float32

    @ct.kernel
    def kernel(X, Y, Z, N, B):
        x = ct.load(X, (0,), (64,))
        ct.static_assert((x + 5).dtype == x.dtype)
        ct.static_assert((x + x.ndim * x.shape[0]).dtype == x.dtype and (x + X.ndim).dtype == x.dtype)
        ct.static_assert((0.5 * x).dtype == real)
        ct.store(Y, (0,), 5 - x)
        ct.store(N, (0,), x * (2 + 3) + x.ndim)
        ct.store(Z, (0,), (x + 1.5) * 0.25 - 3.0 / 2)
        ct.store(B, (0,), x >= 3)

    x = random_values(dtype, 64)
    _, y, _, _, b = backends.run_all(
        kernel,
        1,
        lambda: [
            x.copy(),
            np.zeros_like(x),
            np.zeros(64, real.numpy),
            np.zeros_like(x),
            np.zeros(64, bool),
        ],
        tolerance=ulp(4),  # a GPU may fuse x * 5 + 1
    )
    assert np.array_equal(y, dtype.numpy.type(5) - x)
    assert np.array_equal(b, dtype.numpy.type(3) <= x)


@pytest.mark.spec("T-119", "T-123", "T-126")
def test_constants_with_bool(backends: Backends) -> None:
    @ct.kernel
    def kernel(X, N, L, F):
        x = ct.load(X, (0,), (64,))
        ct.static_assert((x + 5).dtype == ct.int32)
        ct.static_assert((x + 2147483648).dtype == ct.int64)
        ct.static_assert((x + 9223372036854775808).dtype == ct.uint64)
        ct.static_assert((x * 3.0).dtype == ct.float32)
        ct.static_assert((x & True).dtype == ct.bool_)
        ct.store(N, (0,), x + 5)
        ct.store(L, (0,), x * 2147483648)
        ct.store(F, (0,), x * 1.5 - (x ^ True))

    x = random_values(ct.bool_, 64)
    _, i, wide, _ = backends.run_all(
        kernel,
        1,
        lambda: [
            x.copy(),
            np.zeros(64, np.int32),
            np.zeros(64, np.int64),
            np.zeros(64, np.float32),
        ],
    )
    assert np.array_equal(i, x + np.int32(5))
    assert np.array_equal(wide, x * np.int64(2**31))


@pytest.mark.spec("T-125")
@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (d, v)
        for d in ARITHMETIC
        if d.is_integral
        for v in (d.max + 1, d.min - 1)
    ],
    ids=by_name,
)  # fmt: skip
def test_constant_out_of_range(backends: Backends, dtype: dt.DType, value: int) -> None:
    @ct.kernel
    def kernel():
        ct.zeros((8,), dtype) + value

    backends.rejects(kernel, 1, list, TileValueError, str(value))


@pytest.mark.spec("T-114", "T-115", "T-116")
def test_constants_alone(backends: Backends) -> None:
    """Constants combine to constants: they can be shapes, and adopt a dtype afterwards."""

    @ct.kernel
    def kernel(X, Z):
        twelve = 5 + 7
        ct.static_assert(twelve == 12)
        ct.static_assert(5 + 3.0 == 8.0)
        ct.static_assert(7 // 2 == 3 and -7 // 2 == -4 and 2**5 == 32 and 1 / 4 == 0.25)
        x = ct.load(X, (0,), (2 ** (twelve // 3),))
        ct.static_assert((x + twelve).dtype == ct.int8)
        ct.store(Z, (0,), x + twelve)

    x = np.arange(16, dtype=np.int8)
    _, z = backends.run_all(kernel, 1, lambda: [x.copy(), np.zeros_like(x)])
    assert np.array_equal(z, x + 12)


@pytest.mark.parametrize("dtype", ARITHMETIC, ids=by_name)
def test_scalars(backends: Backends, dtype: dt.DType) -> None:
    """A run-time scalar is typed: it promotes as a tile does."""

    @ct.kernel
    def kernel(X, Z, n, constructed: ct.Constant):
        x = ct.load(X, (0,), (64,))
        ct.static_assert(n.dtype == ct.int32 and n.shape == () and n.ndim == 0)
        one = constructed(1)
        ct.static_assert(one.dtype == constructed)
        ct.store(Z, (0,), x * one + one)

    x = random_values(dtype, 64)
    backends.run_all(kernel, 1, lambda: [x.copy(), np.zeros_like(x), 3, dtype])
