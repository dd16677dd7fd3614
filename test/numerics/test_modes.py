"""Keywords of operations: flushed subnormal numbers, NaN left out of account, rounding modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from harness import Backends, pairs, ulp

from tilewright import tile as ct

T = 128
TINY = float(np.finfo(np.float32).tiny)
EDGES = np.array([0, TINY / 8, TINY / 2, TINY, 1.5 * TINY, 1, 3e38, np.inf, np.nan], np.float32)
EDGES = np.concatenate([EDGES, -EDGES])


def padded(x: np.ndarray) -> np.ndarray:
    return np.resize(x, -(-len(x) // T) * T).astype(x.dtype)


def run_binary(backends: Backends, op: Callable[..., Any], dtype: Any, **tolerance: Any) -> np.ndarray:
    @ct.kernel
    def kernel(X, Y, Z):
        i = ct.bid(0)
        ct.store(Z, i, op(ct.load(X, i, T), ct.load(Y, i, T)))

    x, y = (padded(v) for v in pairs(EDGES, EDGES))
    with np.errstate(all="ignore"):
        x, y = x.astype(dtype), y.astype(dtype)
    found: np.ndarray = backends.run_all(kernel, len(x) // T, lambda: [x, y, np.zeros_like(x)], **tolerance)[2]
    return found


@pytest.mark.parametrize(
    "op", [ct.add, ct.sub, ct.mul, ct.truediv, ct.minimum, ct.maximum], ids=lambda op: op.__tw_op__
)
def test_subnormal_operands_and_results_are_flushed(backends: Backends, op: Any) -> None:
    found = run_binary(backends, lambda x, y: op(x, y, flush_to_zero=True), np.float32)
    assert not np.any((found != 0) & (np.abs(found) < TINY))


def test_flushed_zeros_have_their_sign(backends: Backends) -> None:
    @ct.kernel
    def kernel(X, Z):
        ct.store(Z, 0, 1.0 / ct.add(ct.load(X, 0, 2), -0.0, flush_to_zero=True))

    x = np.array([TINY / 2, -TINY / 2], np.float32)
    found = backends.run_all(kernel, 1, lambda: [x, np.zeros_like(x)])[1]
    assert np.array_equal(found, [np.inf, -np.inf])


@pytest.mark.parametrize("op", [ct.exp2, ct.sqrt, ct.rsqrt], ids=lambda op: op.__tw_op__)
def test_functions_flush(backends: Backends, op: Any) -> None:
    @ct.kernel
    def kernel(X, Z):
        ct.store(Z, 0, op(ct.load(X, 0, 32), flush_to_zero=True))

    x = np.resize(np.concatenate([EDGES, [-127, -130, -126]]), 32).astype(np.float32)
    backends.run_all(kernel, 1, lambda: [x, np.zeros_like(x)], tolerance=ulp(2))


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "cumsum", "cumprod"])
def test_reductions_and_scans_flush(backends: Backends, name: str) -> None:
    op = getattr(ct, name)

    @ct.kernel
    def kernel(X, Z):
        x = ct.load(X, (0, 0), (4, 4))
        ct.store(Z, (0, 0), ct.broadcast_to(ct.expand_dims(op(x, 1, flush_to_zero=True), 1), (4, 4)))

    @ct.kernel
    def scan(X, Z):
        ct.store(Z, (0, 0), op(ct.load(X, (0, 0), (4, 4)), 1, flush_to_zero=True))

    x = np.array([[TINY / 2] * 4, [1, TINY / 2, 1, 1], [TINY, -TINY / 4, TINY, 2], [-TINY / 2, 0, 0, 0]], np.float32)
    chosen = scan if name.startswith("cum") else kernel
    found = backends.run_all(chosen, 1, lambda: [x, np.zeros_like(x)])[1]
    assert found[0, 3] == 0 and not np.any((found != 0) & (np.abs(found) < TINY))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
@pytest.mark.parametrize("op", [ct.minimum, ct.maximum], ids=lambda op: op.__tw_op__)
def test_a_number_beats_nan(backends: Backends, op: Any, dtype: Any) -> None:
    found = run_binary(backends, lambda x, y: op(x, y, propagate_nan=False), dtype)
    x, y = (padded(v) for v in pairs(EDGES, EDGES))
    assert np.array_equal(np.isnan(found), np.isnan(x) & np.isnan(y))


ROWS = np.array(
    [
        [3, np.inf, np.nan, 1, 5, -2, 2, 6],
        [np.nan, np.nan, 7, 1, np.nan, 8, np.nan, 0.5],
        [5, -3, 2, np.nan, 4, 0, -np.inf, 1],
        [np.nan] * 8,
        [np.nan, -np.inf, np.nan, -np.inf, np.nan, np.nan, np.nan, np.nan],
        [np.nan, np.inf, np.nan, np.inf, np.nan, np.nan, np.nan, np.nan],
        [1, 1, 2, 2, -7, -7, 0, 0],
        [-np.inf] * 8,
    ]
)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
@pytest.mark.parametrize("name", ["max", "min"])
def test_the_extreme_number(backends: Backends, name: str, dtype: Any) -> None:
    op = getattr(ct, name)

    @ct.kernel
    def kernel(X, Z):
        ct.store(Z, 0, op(ct.load(X, (0, 0), (8, 8)), 1, propagate_nan=False))

    found = backends.run_all(kernel, 1, lambda: [ROWS.astype(dtype), np.zeros(8, dtype)])[1]
    expected = getattr(np, f"f{name}").reduce(ROWS.astype(np.float64), axis=1).astype(dtype)
    assert np.array_equal(found.astype(np.float64), expected.astype(np.float64), equal_nan=True)


@pytest.mark.parametrize(
    ("name", "expected"), [("argmax", [1, 5, 0, 0, 1, 1, 2, 0]), ("argmin", [5, 7, 6, 0, 1, 1, 4, 0])]
)
def test_the_place_of_the_extreme_number(backends: Backends, name: str, expected: list[int]) -> None:
    op = getattr(ct, name)

    @ct.kernel
    def kernel(X, Z):
        ct.store(Z, 0, op(ct.load(X, (0, 0), (8, 8)), 1, propagate_nan=False))

    found = backends.run_all(kernel, 1, lambda: [ROWS.astype(np.float32), np.zeros(8, np.int32)])[1]
    assert found.tolist() == expected


def test_a_more_exact_result_satisfies_every_mode_but_a_directed_one(backends: Backends) -> None:
    @ct.kernel
    def kernel(X, Z):
        x = ct.load(X, 0, 8)
        x = ct.add(x, 1, rounding_mode=ct.RoundingMode.RN) + ct.exp(x, rounding_mode=ct.RoundingMode.APPROX)
        x = ct.truediv(x, 3, rounding_mode=ct.RoundingMode.FULL) + ct.tanh(x, rounding_mode=ct.RoundingMode.FULL)
        x = ct.sum(x, keepdims=True, rounding_mode=ct.RoundingMode.RN) + x.astype(
            ct.float32, rounding_mode=ct.RoundingMode.RN
        )
        ct.store(Z, 0, x, memory_order=ct.MemoryOrder.WEAK, memory_scope=ct.MemoryScope.NONE)

    backends.run_all(kernel, 1, lambda: [np.arange(8, dtype=np.float32), np.zeros(8, np.float32)], tolerance=ulp(8))


@pytest.mark.parametrize("divisor", [0.0, float("inf"), float("nan"), 2.0**-140, 1e300])
def test_what_has_no_inverse_divides(backends: Backends, divisor: float) -> None:
    @ct.kernel
    def kernel(X, Z, DIVISOR: ct.Constant):
        ct.store(Z, 0, ct.truediv(ct.load(X, 0, 8), DIVISOR, rounding_mode=ct.RoundingMode.APPROX))

    x = np.array([0.0, 1, -2, np.inf, -np.inf, np.nan, 1e-38, 3e38], np.float32)
    found = backends.run_all(kernel, 1, lambda: [x.copy(), np.zeros(8, np.float32), divisor])[1]
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(found, x / np.float32(divisor))


def test_isnan_and_divmod(backends: Backends) -> None:
    @ct.kernel
    def kernel(X, Q, R, N):
        x = ct.load(X, 0, 32)
        q, r = ct.divmod(ct.load(Q, 0, 32), 3)
        again = divmod(ct.load(Q, 0, 32), 3)
        of_number = divmod(100, ct.load(Q, 0, 32) * 2 + 1)
        ct.store(Q, 0, q + ct.divmod(7, 2)[0])
        ct.store(R, 0, r + (again[0] - q) + (again[1] - r) + of_number[1] * 10)
        ct.store(N, 0, ct.isnan(x))

    x = np.resize(np.array([1, -7, 2.5, np.nan, 100, -0.5], np.float32), 32)
    q = np.arange(-16, 16, dtype=np.int32)
    args = backends.run_all(kernel, 1, lambda: [x, q.copy(), np.zeros_like(q), np.zeros(32, bool)])
    assert np.array_equal(args[3], np.isnan(x)) and np.array_equal(args[2], q % 3 + 100 % (q * 2 + 1) * 10)


@pytest.mark.parametrize("function", [divmod, ct.divmod])
def test_divmod_of_floats_is_refused(backends: Backends, function: Any) -> None:
    """As in cuTile: the quotient is rounded, so the two need not be of one division."""

    @ct.kernel
    def kernel(X):
        ct.store(X, 0, function(ct.load(X, 0, 8), 2.5)[1])

    backends.rejects(kernel, 1, lambda: [np.ones(8, np.float32)], ct.TileTypeError, "write x // y and x % y")


def test_tiles_of_nested_tuples(backends: Backends) -> None:
    @ct.kernel
    def kernel(X, Z, S, n):
        ct.store(
            Z, (0, 0), ct.astile(((1, 2, n, 4), [5, ct.load(X, 1, shape=()).astype(ct.int32), 7, -8]), dtype=ct.int32)
        )
        ct.store(S, 0, ct.astile(2.5, dtype=ct.float32) + ct.astile([0.5], dtype=ct.float32))

    x = np.array([3, 6], np.float32)
    args = backends.run_all(kernel, 1, lambda: [x, np.zeros((2, 4), np.int32), np.zeros(1, np.float32), 3])
    assert args[1].tolist() == [[1, 2, 3, 4], [5, 6, 7, -8]] and args[2][0] == 3


def test_one_element_and_arrays_without_dimensions(backends: Backends) -> None:
    @ct.kernel
    def kernel(X, S, Z):
        s = ct.load(S, (), ())
        ct.assert_(s == 5, "five")
        ct.store(Z, (), s + ct.load(X, (1, ct.bid(0)), shape=(), padding_mode=ct.PaddingMode.ZERO))

    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    args = backends.run_all(kernel, 1, lambda: [x, np.array(5, np.float32), np.array(0, np.float32)])
    assert args[2] == 8


def test_outside_of_a_bool_array_is_false(backends: Backends) -> None:
    @ct.kernel
    def kernel(X, Z):
        i = ct.arange(8, dtype=ct.int32)
        ct.store(Z, 0, ct.gather(X, i))
        ct.store(Z, 1, ct.gather(X, i, padding_value=1))

    args = backends.run_all(kernel, 1, lambda: [np.ones(5, bool), np.zeros(16, bool)])
    assert args[1].tolist() == [True] * 5 + [False] * 3 + [True] * 8


@pytest.mark.parametrize("op", [ct.exp, ct.log, ct.sqrt, ct.tanh], ids=lambda op: op.__tw_op__)
def test_functions_of_bools_compute_in_float32(backends: Backends, op: Any) -> None:
    @ct.kernel
    def kernel(X, Z, N):
        x = ct.load(X, 0, 8)
        ct.store(Z, 0, op(x))
        ct.store(N, 0, -x)

    x = np.array([1, 0] * 4, bool)
    args = backends.run_all(kernel, 1, lambda: [x, np.zeros(8, np.float32), np.zeros(8, np.int32)], tolerance=ulp(2))
    assert args[2].tolist() == [-1, 0] * 4


@ct.kernel
def with_int64(X: ct.IndexedWithInt64, Y, Z, n: ct.ScalarInt64, m):
    ct.static_assert(X.shape[0].dtype is ct.int64 and Y.shape[0].dtype is ct.int32)
    ct.static_assert(n.dtype is ct.int64 and m.dtype is ct.int32)
    ct.store(Z, 0, ct.astile((n * n, X.shape[0] * n * n * 4), dtype=ct.int64))


def test_annotated_integers_are_wide(backends: Backends) -> None:
    x = np.zeros(3, np.float32)
    args = backends.run_all(with_int64, 1, lambda: [x, x.copy(), np.zeros(2, np.int64), 100_000, 1])
    assert args[2].tolist() == [10**10, 12 * 10**10]


RM = ct.RoundingMode
CASTS = [(s, t, m) for s, t in (("f8", "f4"), ("f4", "f2"), ("f8", "f2")) for m in (RM.RZ, RM.RM, RM.RP)]
CASTS += [(s, "bf16", m) for s in ("f4", "f8", "f2") for m in (RM.RZ, RM.RM, RM.RP)]
CASTS += [("f4", "tf32", m) for m in (RM.RN, RM.RA, RM.RZ, RM.RM, RM.RP)] + [("f8", "tf32", RM.RM)]


@pytest.mark.parametrize(("source", "target", "mode"), CASTS, ids=str)
def test_conversions_round_as_told(backends: Backends, source: str, target: str, mode: Any) -> None:
    """Against the reference: random numbers, halves, ends of the range, subnormal numbers, infinities, NaN."""
    to = {"f4": ct.float32, "f2": ct.float16, "bf16": ct.bfloat16, "tf32": ct.tfloat32}[target]

    @ct.kernel
    def kernel(X, Y):
        ct.store(Y, (0,), ct.load(X, (0,), (1024,)).astype(to, rounding_mode=mode).astype(ct.float32))

    rng = np.random.default_rng(0)
    with np.errstate(over="ignore"):
        spread = rng.standard_normal(960) * 2.0 ** rng.integers(-30, 20, 960)
        ends = [0, 1, 1 + 2.0**-8, 1 + 2.0**-11, 1 + 2.0**-12, 65504, 65519, 65520, 7e4, 3.4028235e38, 1e39, 2.0**-24]
        ends += [2.0**-25, 3 * 2.0**-26, 2.0**-14, 2.0**-126, 2.0**-133, 2.0**-149, 2.0**-150, np.inf, np.nan, 0.1]
        x = np.concatenate((spread, ends, np.negative(ends), np.full(1024 - 960 - 2 * len(ends), 0.1))).astype(source)
    backends.run_all(kernel, 1, lambda: [x.copy(), np.zeros(1024, "f4")])


def test_directed_conversions_of_known_numbers(backends: Backends) -> None:
    @ct.kernel
    def kernel(X, Y):
        x = ct.load(X, (0,), (4,))
        ct.store(Y, (0, 0), x.astype(ct.float32, rounding_mode=RM.RZ).reshape((1, 4)))
        ct.store(Y, (1, 0), x.astype(ct.float32, rounding_mode=RM.RM).reshape((1, 4)))
        ct.store(Y, (2, 0), x.astype(ct.float32, rounding_mode=RM.RP).reshape((1, 4)))

    x = np.array([1 + 2.0**-30, -1 - 2.0**-30, 1e-60, 1e300])
    _, y = backends.run_all(kernel, 1, lambda: [x.copy(), np.zeros((3, 4), "f4")])
    over, most = np.float32(1 + 2.0**-23), np.finfo("f4").max
    wanted = [[1, -1, 0, most], [1, -over, 0, most], [over, -1, 2.0**-149, np.inf]]
    assert np.array_equal(y, np.array(wanted, "f4"))


def test_directed_results_of_scalars_are_scalars(backends: Backends) -> None:
    @ct.kernel
    def kernel(X, Z):
        x = ct.load(X, (1,), shape=())
        y = ct.add(x, 1e-20, rounding_mode=ct.RoundingMode.RP)
        ct.static_assert(y.shape == ())
        ct.scatter(Z, 0, y)

    z = backends.run_all(kernel, 1, lambda: [np.ones(2, np.float32), np.zeros(1, np.float32)])[1]
    assert z[0] == np.nextafter(np.float32(1), np.float32(2))


def test_operands_of_told_operations_are_promoted_first(backends: Backends) -> None:
    """An integer becomes a bfloat16, which rounds it, and not the float32 that the sum is made in."""

    @ct.kernel
    def kernel(X, Y, Z):
        ct.store(Z, 0, ct.sub(ct.load(X, 0, 16), ct.load(Y, 0, 16), rounding_mode=ct.RoundingMode.RN))

    x, y = np.arange(15960, 15976, dtype=np.int16), np.full(16, 10, ml_dtypes.bfloat16)
    z = backends.run_all(kernel, 1, lambda: [x, y, np.zeros_like(y)])[2]
    assert set(z.astype(int)) == {15936, 16000}


@pytest.mark.parametrize("mode", [ct.RoundingMode.FULL, ct.RoundingMode.APPROX], ids=lambda mode: mode.name)
def test_quotients_that_may_be_off(backends: Backends, mode: ct.RoundingMode) -> None:
    """By a divisor of their own, by one that all of a block share, and by a constant; small and large ones, too."""

    @ct.kernel
    def kernel(X, Y, OWN, SHARED, SEVENTHS):
        i = ct.bid(0)
        x = ct.load(X, i, T)
        ct.store(OWN, i, ct.truediv(x, ct.load(Y, i, T), rounding_mode=mode))
        ct.store(SHARED, i, ct.truediv(x, ct.load(Y, i, 1), rounding_mode=mode))
        ct.store(SEVENTHS, i, ct.truediv(x, 448.0, rounding_mode=mode))

    y = np.array([1, 3, 448, 2e38, 3e38, 1e-30, 3e-39, TINY, 0, np.inf, np.nan], np.float32)
    y = np.concatenate([y, -y]).repeat(T)
    x = padded(np.concatenate([EDGES, np.random.default_rng(1).normal(size=110).astype(np.float32)]))
    x = np.tile(x, len(y) // T)
    near = ulp(4, absolute=2.0**-148)
    with np.errstate(all="ignore"):
        backends.run_all(kernel, len(y) // T, lambda: [x, y, *(np.zeros_like(x) for _ in range(3))], tolerance=near)


def test_exponents_that_may_be_off(backends: Backends) -> None:
    """By the mode APPROX the error grows with the operand; what is below the normal numbers may be 0."""

    @ct.kernel
    def kernel(X, Z):
        i = ct.bid(0)
        ct.store(Z, i, ct.exp(ct.load(X, i, T), rounding_mode=ct.RoundingMode.APPROX))

    x = np.concatenate([EDGES, np.linspace(-100, 100, 3 * T, dtype=np.float32)])
    x = padded(x)
    with np.errstate(all="ignore"):
        exact = np.exp(x.astype(np.float64))
        worst = 2.0**-126 + exact * (2 + 1.3 * np.abs(x.astype(np.float64))) * 2.0**-23
    found = backends.run_all(kernel, len(x) // T, lambda: [x, np.zeros_like(x)], tolerance=ulp(256, 2.0**-126))[1]
    with np.errstate(all="ignore"):
        rounded = exact.astype(np.float32)
        near = np.abs(found.astype(np.float64) - exact) <= worst
    assert (near | (found == rounded) | (np.isnan(found) & np.isnan(rounded))).all()


def test_quotients_of_the_hardware(backends: Backends) -> None:
    """APPROX and flush_to_zero allow what one instruction does: subnormal operands and results are 0."""

    @ct.kernel
    def kernel(X, Y, OWN, SHARED, INVERSE):
        i, mode = ct.bid(0), ct.RoundingMode.APPROX
        x, y = ct.load(X, i, T), ct.load(Y, i, T)
        ct.store(OWN, i, ct.truediv(x, y, rounding_mode=mode, flush_to_zero=True))
        ct.store(SHARED, i, ct.truediv(x, ct.load(Y, i, 1), rounding_mode=mode, flush_to_zero=True))
        ct.store(INVERSE, i, ct.truediv(1.0, y, rounding_mode=mode, flush_to_zero=True))

    y = np.array([1, 3, 448, 8e37, 1e-30, 3e-39, TINY, 0, np.inf, np.nan], np.float32)
    y = np.concatenate([y, -y]).repeat(T)
    x = padded(np.concatenate([EDGES, np.random.default_rng(1).normal(size=110).astype(np.float32)]))
    x = np.tile(x, -(-len(y) // len(x)))[: len(y)]
    with np.errstate(all="ignore"):
        backends.run_all(
            kernel, len(y) // T, lambda: [x, y, *(np.zeros_like(x) for _ in range(3))], tolerance=ulp(4, 2.0**-126)
        )
