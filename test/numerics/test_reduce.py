"""Reductions along each axis, and the operations on shapes."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np
import pytest
from harness import ARITHMETIC, ARRAY_DTYPES, EXACT, FLOATS, Backends, Tolerance, random_values

from tilewright import dtype as dt
from tilewright import tile as ct
from tilewright.errors import TileTypeError, TileValueError

CASES = [
    ((64,), 0),
    ((64,), None),
    ((1,), 0),
    ((8, 16), 0),
    ((8, 16), 1),
    ((8, 16), -1),
    ((8, 16), None),
    ((128, 2), 0),
    ((2, 128), 1),
    ((4, 2, 8), 0),
    ((4, 2, 8), 1),
    ((4, 2, 8), 2),
    ((4, 2, 8), None),
    ((4, 2, 8), (0, 2)),
    ((4, 2, 8), (2, 1)),
]


def by_name(value: Any) -> str:
    return getattr(value, "name", getattr(value, "__tw_op__", str(value)))


def reduce_kernel(op: Any, axis: Any) -> Any:
    @ct.kernel
    def kernel(X, Y, Z, shape: ct.Constant, origin: ct.Constant):
        x = ct.load(X, origin, shape)
        reduced = op(x, axis=axis)
        kept = op(x, axis=axis, keepdims=True)
        ct.static_assert(kept.ndim == x.ndim)
        ct.store(Y, origin[: reduced.ndim], reduced)
        ct.store(Z, origin, kept)

    return kernel


def result_shapes(shape: Any, axis: Any) -> tuple[Any, Any]:
    probe = np.zeros(shape)
    return probe.sum(axis).shape, probe.sum(axis, keepdims=True).shape


def check(backends: Backends, op: Any, x: np.ndarray, axis: Any, result: Any, limit: Any) -> Any:
    reduced, kept = result_shapes(x.shape, axis)
    args = backends.run_all(
        reduce_kernel(op, axis),
        1,
        lambda: [
            x.copy(),
            np.zeros(reduced, result),
            np.zeros(kept, result),
            x.shape,
            (0,) * x.ndim,
        ],
        tolerance=limit,
    )
    assert np.array_equal(args[1].ravel().view("u1"), args[2].ravel().view("u1"))
    return args[1]


def sum_tolerance(x: np.ndarray, dtype: dt.DType) -> Tolerance:
    """Additions in any order; 16-bit floats add up in float32, and round at the end."""
    if not dtype.is_float:
        return EXACT
    eps = float(np.finfo(np.float64 if dtype is ct.float64 else np.float32).eps)
    size = np.abs(x.astype(np.float64))
    return Tolerance(1, 8 * eps * float(size[size < 1e30].sum()))


@pytest.mark.parametrize(("shape", "axis"), CASES, ids=str)
@pytest.mark.parametrize("dtype", ARITHMETIC, ids=by_name)
def test_sum(backends: Backends, dtype: dt.DType, shape: Any, axis: Any) -> None:
    x = random_values(dtype, int(np.prod(shape))).reshape(shape)
    y = check(backends, ct.sum, x, axis, dtype.numpy, sum_tolerance(x, dtype))
    if not dtype.is_float:
        assert np.array_equal(y, x.sum(axis, dtype=x.dtype))


@pytest.mark.parametrize(("shape", "axis"), CASES, ids=str)
@pytest.mark.parametrize("op", [ct.max, ct.min], ids=by_name)
@pytest.mark.parametrize("dtype", ARITHMETIC, ids=by_name)
def test_extremum(backends: Backends, dtype: dt.DType, op: Any, shape: Any, axis: Any) -> None:
    x = random_values(dtype, int(np.prod(shape))).reshape(shape)
    y = check(backends, op, x, axis, dtype.numpy, EXACT)
    assert np.array_equal(y, getattr(np, op.__tw_op__)(x, axis))


@pytest.mark.parametrize(("shape", "axis"), CASES[:13:2], ids=str)
@pytest.mark.parametrize("op", [ct.argmax, ct.argmin], ids=by_name)
@pytest.mark.parametrize("dtype", ARITHMETIC, ids=by_name)
def test_arg_extremum(backends: Backends, dtype: dt.DType, op: Any, shape: Any, axis: Any) -> None:
    """Ties are common here, and the first one counts."""
    x = (np.random.default_rng(1).integers(0, 7, shape) - (3 if dtype.signed else 0)).astype(dtype.numpy)
    y = check(backends, op, x, axis, np.int32, EXACT)
    assert np.array_equal(y, getattr(np, op.__tw_op__)(x.astype(np.float64), axis))


@pytest.mark.parametrize("op", [ct.argmax, ct.argmin], ids=by_name)
def test_arg_extremum_of_bytes_of_two_warps(backends: Backends, op: Any) -> None:
    """Two warps leave two bytes in shared memory; the indices behind them are aligned."""

    @ct.kernel(num_warps=4)
    def kernel(X, Y):
        ct.scatter(Y, 0, op(ct.load(X, (0,), (64,)), axis=0))

    x = np.random.default_rng(1).integers(-99, 99, 64).astype(np.int8)
    args = backends.run_all(kernel, 1, lambda: [x.copy(), np.zeros(1, np.int32)], tolerance=EXACT)
    assert args[1][0] == getattr(np, op.__tw_op__)(x)


@pytest.mark.parametrize(("shape", "axis"), CASES[:13:3], ids=str)
@pytest.mark.parametrize("dtype", ARITHMETIC, ids=by_name)
def test_product(backends: Backends, dtype: dt.DType, shape: Any, axis: Any) -> None:
    if dtype.is_float:  # powers of two: exact in any order
        rng = np.random.default_rng(2)
        x = np.ldexp(rng.choice([-1.0, 1.0], shape), rng.integers(-1, 2, shape)).astype(dtype.numpy)
        x = np.where(np.arange(x.size).reshape(shape) % 3 == 0, x, dtype.numpy.type(1))
    else:
        x = random_values(dtype, int(np.prod(shape))).reshape(shape) | dtype.numpy.type(1)
    y = check(backends, ct.prod, x, axis, dtype.numpy, EXACT)
    if not dtype.is_float:
        assert np.array_equal(y, x.prod(axis, dtype=x.dtype))


@pytest.mark.parametrize("dtype", FLOATS, ids=by_name)
def test_nan_and_infinity(backends: Backends, dtype: dt.DType) -> None:
    x = random_values(dtype, 8 * 16).reshape(8, 16)
    x[1, 3], x[2, 5], x[3, 0], x[3, 9], x[4, 4], x[4, 7] = (
        np.nan, np.inf, np.inf, -np.inf, np.nan, np.nan,
    )  # fmt: skip
    x[5] = -np.inf
    keeping = [functools.partial(op, propagate_nan=True) for op in (ct.max, ct.min)]
    for op in (*keeping, ct.max, ct.min, ct.sum):
        check(backends, op, x, 1, dtype.numpy, sum_tolerance(np.nan_to_num(x, posinf=0), dtype))
    y = check(backends, functools.partial(ct.argmax, propagate_nan=True), x, 1, np.int32, EXACT)
    assert y[1:6].tolist() == [3, 5, 0, 4, 0]
    y = check(backends, functools.partial(ct.argmin, propagate_nan=True), x, 1, np.int32, EXACT)
    assert y[1] == 3 and y[3:6].tolist() == [9, 4, 0]


@pytest.mark.parametrize("dtype", FLOATS, ids=by_name)
@pytest.mark.parametrize("propagate", [False, True])
def test_first_of_equal_extrema(backends: Backends, dtype: dt.DType, propagate: bool) -> None:
    """Zeros of both signs are equal; rows with one NaN, several, and nothing else."""
    x = np.zeros((8, 64), dtype.numpy)
    x[::2, ::3] = -0.0
    x[1, 40:], x[2, 40:] = 1, -1
    x[3, 17], x[4, 5:60:7], x[5] = np.nan, np.nan, np.nan
    for op in (ct.argmax, ct.argmin):
        y = check(backends, functools.partial(op, propagate_nan=propagate), x, 1, np.int32, EXACT)
        assert y[0] == 0 and (y[3] == 17) == propagate and (y[4] == 5) == propagate and y[5] == 0


def test_bool(backends: Backends) -> None:
    x = random_values(ct.bool_, 8 * 16).reshape(8, 16)
    assert np.array_equal(check(backends, ct.sum, x, 1, np.int32, EXACT), x.sum(1))
    assert check(backends, ct.sum, x, None, np.int32, EXACT) == x.sum()


def test_reduction_of_ragged_input(backends: Backends) -> None:
    """Padding takes part, so that -inf and 0 are the neutral choices."""

    @ct.kernel
    def kernel(X, M, S):
        low = ct.PaddingMode.NEG_INF
        x = ct.load(X, (ct.bid(0), 0), (4, 32), padding_mode=low)
        ct.store(M, (ct.bid(0),), ct.max(x, axis=1))
        ct.store(S, (ct.bid(0),), ct.sum(ct.exp(x), axis=1))

    x = random_values(ct.float32, 10 * 19).reshape(10, 19)
    _, m, s = backends.run_all(
        kernel,
        3,
        lambda: [x.copy(), np.zeros(10, "f4"), np.zeros(10, "f4")],
        tolerance={2: Tolerance(16)},
    )
    assert np.array_equal(m, x.max(1))
    np.testing.assert_allclose(s, np.exp(x).sum(1), rtol=1e-5)


def test_refused_reductions(backends: Backends) -> None:
    @ct.kernel
    def bad_axis():
        ct.sum(ct.zeros((4, 4), ct.float32), axis=2)

    @ct.kernel
    def twice():
        ct.sum(ct.zeros((4, 4), ct.float32), axis=(0, -2))

    @ct.kernel
    def restricted():
        ct.max(ct.zeros((4, 4), ct.float8_e5m2), axis=0)

    @ct.kernel
    def run_time_axis():
        ct.max(ct.zeros((4, 4), ct.float32), axis=ct.bid(0))

    @ct.kernel
    def scan_of_narrow():
        ct.cumsum(ct.zeros((4, 4), ct.float8_e5m2), axis=0)

    @ct.kernel
    def scan_axis():
        ct.cumprod(ct.zeros((4, 4), ct.float32), axis=2)

    for kernel, error, match in (
        (scan_of_narrow, TileTypeError, "float8_e5m2"),
        (scan_axis, TileTypeError, "axis 2"),
        (bad_axis, TileTypeError, "axis 2"),
        (twice, TileTypeError, "twice"),
        (restricted, TileTypeError, "float8_e5m2"),
        (run_time_axis, TileTypeError, "constant"),
    ):
        backends.rejects(kernel, 1, list, error, match)


# ---------------------------------------------------------------------------------------------
# Scans


SCANS = [
    ((64,), 0),
    ((1,), 0),
    ((8, 16), 0),
    ((8, 16), 1),
    ((2, 1024), -1),
    ((256, 4), 0),
    ((4, 2, 8), 0),
    ((4, 2, 8), 1),
    ((1, 8192), 1),
]


def scan_kernel(op: Any, axis: int) -> Any:
    @ct.kernel
    def kernel(X, Y, Z, shape: ct.Constant, origin: ct.Constant):
        x = ct.load(X, origin, shape)
        ct.store(Y, origin, op(x, axis=axis))
        ct.store(Z, origin, op(x, axis, reverse=True))

    return kernel


def check_scan(backends: Backends, op: Any, x: np.ndarray, axis: int, result: Any, limit: Any) -> Any:
    arguments = lambda: [x.copy(), np.zeros(x.shape, result), np.zeros(x.shape, result), x.shape, (0,) * x.ndim]  # noqa: E731
    args = backends.run_all(scan_kernel(op, axis), 1, arguments, tolerance=limit)
    return args[1], args[2]


@pytest.mark.parametrize(("shape", "axis"), SCANS, ids=str)
@pytest.mark.parametrize("dtype", [*ARITHMETIC, ct.bool_], ids=by_name)
def test_cumulative_sum(backends: Backends, dtype: dt.DType, shape: Any, axis: int) -> None:
    x = random_values(dtype, int(np.prod(shape))).reshape(shape)
    result = np.dtype(np.int32) if dtype is ct.bool_ else dtype.numpy
    forward, backward = check_scan(backends, ct.cumsum, x, axis, result, sum_tolerance(x, dtype))
    if not dtype.is_float:
        assert np.array_equal(forward, x.cumsum(axis, dtype=result))
        assert np.array_equal(backward, np.flip(np.flip(x, axis).cumsum(axis, dtype=result), axis))


@pytest.mark.parametrize(("shape", "axis"), SCANS[::3], ids=str)
@pytest.mark.parametrize("dtype", ARITHMETIC, ids=by_name)
def test_cumulative_product(backends: Backends, dtype: dt.DType, shape: Any, axis: int) -> None:
    if dtype.is_float:  # signs: exact in any order
        x = np.random.default_rng(2).choice([-1.0, 1.0], shape).astype(dtype.numpy)
    else:
        x = random_values(dtype, int(np.prod(shape))).reshape(shape) | dtype.numpy.type(1)
    forward, _ = check_scan(backends, ct.cumprod, x, axis, dtype.numpy, EXACT)
    if not dtype.is_float:
        assert np.array_equal(forward, x.cumprod(axis, dtype=x.dtype))


def test_long_rows_carry_their_sum(backends: Backends) -> None:
    """A row in tiles, each after the total of those before; the last tile is ragged."""

    @ct.kernel
    def kernel(X, Y):
        row = ct.bid(0)
        before = ct.zeros((1, 1), dtype=ct.int32)
        for j in range(ct.num_tiles(X, axis=1, shape=(1, 256))):
            x = ct.load(X, (row, j), (1, 256), padding_mode=ct.PaddingMode.ZERO)
            ct.store(Y, (row, j), ct.cumsum(x, axis=1) + before)
            before = before + ct.sum(x, axis=1, keepdims=True)

    x = random_values(ct.int32, 3 * 1000).reshape(3, 1000)
    _, y = backends.run_all(kernel, 3, lambda: [x.copy(), np.zeros_like(x)])
    assert np.array_equal(y, x.cumsum(1, dtype=np.int32))


def test_scan_of_a_product(backends: Backends) -> None:
    """Of a tile that lies as an accumulator does."""

    @ct.kernel
    def kernel(X, Y, Z):
        x = ct.load(X, (0, 0), (64, 64))
        y = ct.mma(x, x, ct.zeros((64, 64), ct.float32))
        ct.store(Y, (0, 0), ct.cumsum(y, axis=0))
        ct.store(Z, (0, 0), ct.cumsum(y, axis=1, reverse=True))

    x = np.random.default_rng(3).integers(-2, 3, (64, 64)).astype(np.float16)
    _, y, z = backends.run_all(kernel, 1, lambda: [x.copy(), *(np.zeros((64, 64), "f4") for _ in range(2))])
    product = x.astype("f4") @ x.astype("f4")
    assert np.array_equal(y, product.cumsum(0)) and np.array_equal(z, product[:, ::-1].cumsum(1)[:, ::-1])


@ct.kernel
def running_sums(X, ROWS, COLUMNS, TM: ct.Constant[int], TN: ct.Constant[int]):
    """Of all rows, a tile after the other, and of all columns."""
    at = ct.bid(0)
    columns, rows = ct.full((1, TN), 0.5, dtype=ct.float32), ct.zeros((TM,), dtype=ct.float32)
    for i in range(ct.num_tiles(X, axis=0, shape=(TM, TN))):
        x = ct.load(X, index=(i, at), shape=(TM, TN), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
        columns += ct.sum(x * 2, axis=0, keepdims=True)
    for j in range(ct.num_tiles(X, axis=1, shape=(TM, TN))):
        x = ct.load(X, index=(at, j), shape=(TM, TN), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
        rows += ct.sum(x, axis=1)
    ct.store(COLUMNS, index=(0, at), tile=columns)
    ct.store(ROWS, index=(at,), tile=rows)


@pytest.mark.parametrize("tile", [(128, 32), (64, 64), (256, 8), (32, 128)])
@pytest.mark.parametrize("warps", [None, 1, 8])
@pytest.mark.parametrize("transposed", [False, True])
def test_running_sums(backends: Backends, tile: tuple[int, int], warps: int | None, transposed: bool) -> None:
    """Sums that are added up over threads behind the loop; small integers, so that the order does not matter."""
    kernel = running_sums.replace_hints(num_warps=warps) if warps else running_sums
    shape = (2 * tile[0] - 5, 2 * tile[1] + 3)
    x = np.random.default_rng(0).integers(-4, 5, shape).astype(np.float16)
    x = np.asfortranarray(x) if transposed else x
    fresh = lambda: [x, np.zeros(2 * tile[0], "f4"), np.zeros((1, 3 * tile[1]), "f4"), *tile]  # noqa: E731
    found = backends.run_all(kernel, (2,), fresh)
    assert np.array_equal(found[2][0, : 2 * tile[1]], 2 * x.astype("f4").sum(0)[: 2 * tile[1]] + 0.5)


# ---------------------------------------------------------------------------------------------
# Shapes


@pytest.mark.spec("T-030", "T-031", "T-034", "T-035", "T-036", "T-038")
@pytest.mark.parametrize("dtype", ARRAY_DTYPES, ids=by_name)
def test_shape_operations(backends: Backends, dtype: dt.DType) -> None:
    @ct.kernel
    def kernel(X, A, B, C, D, E, F):
        x = ct.load(X, (0, 0, 0), (2, 4, 8))
        ct.static_assert(x.dtype == dtype and X.dtype == dtype and x.ndim == 3)
        ct.static_assert(x.shape == (2, 4, 8) and len(x.shape) == x.ndim and x.shape[1] * x.shape[2] == 32)
        ct.store(A, (0, 0), x.reshape((8, 8)))
        ct.store(B, (0,), ct.reshape(x, -1))
        ct.store(C, (0, 0, 0), ct.permute(x, (2, 0, 1)))
        ct.store(D, (0, 0, 0), x.transpose(0, 1))
        y = x.reshape((4, 16)).transpose()
        ct.static_assert(y.shape == (16, 4))
        ct.store(E, (0, 0), y)
        z = ct.broadcast_to(ct.expand_dims(ct.reshape(y, (1, 64)), 2), (4, 64, 2))
        ct.store(F, (0, 0, 0), z)

    x = random_values(dtype, 64).reshape(2, 4, 8)
    shapes = [(8, 8), (64,), (8, 2, 4), (4, 2, 8), (16, 4), (4, 64, 2)]
    args = backends.run_all(kernel, 1, lambda: [x.copy(), *(np.zeros(s, dtype.numpy) for s in shapes)])
    flat = x.reshape(4, 16).T
    wanted = [
        x.reshape(8, 8),
        x.ravel(),
        x.transpose(2, 0, 1),
        x.swapaxes(0, 1),
        flat,
        np.broadcast_to(flat.reshape(1, 64, 1), (4, 64, 2)),
    ]
    for found, expected in zip(args[1:], wanted, strict=True):
        assert np.array_equal(found.view("u1"), np.ascontiguousarray(expected).view("u1"))


def test_all_permutations(backends: Backends) -> None:
    x = np.arange(4 * 8 * 16, dtype=np.int32).reshape(4, 8, 16)
    for axes in itertools.permutations(range(3)):

        @ct.kernel
        def kernel(X, Z, axes: ct.Constant = axes):
            ct.store(Z, (0, 0, 0), ct.permute(ct.load(X, (0, 0, 0), (4, 8, 16)), axes) * 3)

        shape = x.transpose(axes).shape
        args = backends.run_all(kernel, 1, lambda s=shape, a=axes: [x.copy(), np.zeros(s, np.int32), a])
        assert np.array_equal(args[1], x.transpose(axes) * 3)


def test_new_axes_by_index(backends: Backends) -> None:
    @ct.kernel
    def kernel(X, Z):
        x = ct.load(X, (0,), (8,))
        ct.static_assert(x[None, :].shape == (1, 8) and x[..., None].shape == (8, 1))
        ct.store(Z, (0, 0), x[:, None] - x[None, :])

    x = random_values(ct.float32, 8)
    _, z = backends.run_all(kernel, 1, lambda: [x.copy(), np.zeros((8, 8), "f4")])
    assert np.array_equal(z, x[:, None] - x)


@pytest.mark.spec("T-048", "T-049")
@pytest.mark.parametrize("dtype", ARITHMETIC, ids=by_name)
def test_creation(backends: Backends, dtype: dt.DType) -> None:
    @ct.kernel
    def kernel(Z, n):
        ct.store(Z, (0, 0), ct.zeros((4, 8), dtype))
        ct.store(Z, (1, 0), ct.ones((4, 8), dtype))
        ct.store(Z, (2, 0), ct.full((4, 8), 7, dtype))
        ct.store(Z, (3, 0), ct.full((4, 8), n, dtype))
        ct.store(Z, (4, 0), ct.arange(32, dtype=dtype).reshape((4, 8)))
        ct.store(Z, (5, 0), ct.arange(8, dtype=dtype, start=3, step=2) + ct.zeros((4, 1), dtype))

    z, _ = backends.run_all(kernel, 1, lambda: [np.full((24, 8), 9, dtype.numpy), 5])
    ramp = np.arange(3, 19, 2)
    wanted = [np.full((4, 8), v) for v in (0, 1, 7, 5)] + [np.arange(32).reshape(4, 8)]
    assert np.array_equal(z, np.concatenate([*wanted, np.tile(ramp, (4, 1))]).astype(dtype.numpy))


@pytest.mark.parametrize(
    ("name", "error", "match"),
    [
        ("count", TileTypeError, r"32 elements.*16|16.*32 elements"),
        pytest.param("three", TileTypeError, "power of two", marks=pytest.mark.spec("T-033")),
        ("axes", TileTypeError, "permutation"),
        ("no_axes", TileTypeError, "two axes"),
        pytest.param("assign", TileTypeError, "immutable", marks=pytest.mark.spec("T-028", "T-029")),
        ("element", TileTypeError, "index"),
        ("narrower", TileTypeError, "broadcast"),
        ("full_with_tile", TileTypeError, "scalar"),
        ("constant", TileValueError, "300.*uint8"),
    ],
)
def test_refused_shapes(backends: Backends, name: str, error: Any, match: str) -> None:
    @ct.kernel
    def count():
        ct.zeros((4, 8), ct.int32).reshape((4, 4))

    @ct.kernel
    def three():
        ct.zeros((4, 3), ct.int32)

    @ct.kernel
    def axes():
        ct.permute(ct.zeros((4, 8), ct.int32), (0, 0))

    @ct.kernel
    def no_axes():
        ct.transpose(ct.zeros((4, 8, 2), ct.int32))

    @ct.kernel
    def assign():
        x = ct.zeros((4,), ct.int32)
        x[0] = 1

    @ct.kernel
    def element():
        ct.zeros((4,), ct.int32)[1]

    @ct.kernel
    def narrower():
        ct.broadcast_to(ct.zeros((4, 8), ct.int32), (8,))

    @ct.kernel
    def full_with_tile():
        ct.full((4,), ct.zeros((4,), ct.int32), ct.int32)

    @ct.kernel
    def constant():
        ct.full((4,), 300, ct.uint8)

    backends.rejects(locals()[name], 1, list, error, match)


def test_long_sums_of_floats_are_as_exact_as_those_of_numpy() -> None:
    """They are made by blocks: one sum after the other would be 1e-5 off here."""

    @ct.kernel
    def total(X, Y, N: ct.Constant[int]):
        ct.store(Y, (0,), ct.sum(ct.load(X, (0,), (N,)), axis=0, keepdims=True))

    x, y = np.full(1 << 16, 0.1, np.float32), np.zeros(1, np.float32)
    ct.launch(None, 1, total, (x, y, len(x)))
    exact = float(np.float32(0.1)) * len(x)
    assert abs(y[0] - exact) <= 2e-6 * exact
