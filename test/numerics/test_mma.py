"""Matrix products: all input dtypes, shapes, batches, transposed and computed operands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import EXACT, Backends, Tolerance, random_values

from tilewright import dtype as dt
from tilewright import tile as ct
from tilewright.errors import TileTypeError

PAIRS = [
    (ct.float16, ct.float32),
    (ct.float16, ct.float16),
    (ct.bfloat16, ct.float32),
    (ct.float32, ct.float32),
    (ct.float64, ct.float64),
    (ct.float8_e4m3fn, ct.float32),
    (ct.float8_e5m2, ct.float32),
    (ct.float8_e4m3fn, ct.float16),
    (ct.int8, ct.int32),
    (ct.uint8, ct.int32),
]


def by_name(value: Any) -> str:
    return getattr(value, "name", str(value))


@ct.kernel
def matmul(A, B, C, TM: ct.Constant, TN: ct.Constant, TK: ct.Constant, acc_dtype: ct.Constant):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((TM, TN), dtype=acc_dtype)
    for k in range(ct.num_tiles(A, axis=1, shape=(TM, TK))):
        a = ct.load(A, index=(i, k), shape=(TM, TK), padding_mode=ct.PaddingMode.ZERO)
        b = ct.load(B, index=(k, j), shape=(TK, TN), padding_mode=ct.PaddingMode.ZERO)
        acc = ct.mma(a, b, acc)
    ct.store(C, index=(i, j), tile=acc.astype(C.dtype))


def small_integers(dtype: dt.DType, shape: Any, seed: int) -> np.ndarray:
    """Values whose products and sums are exact in every accumulator."""
    rng = np.random.default_rng(seed)
    low = -3 if dtype.signed else 0
    return rng.integers(low, 4, shape).astype(np.float32).astype(dtype.numpy)


def product_tolerance(a: np.ndarray, b: np.ndarray, acc: dt.DType) -> Tolerance:
    if not acc.is_float:
        return EXACT
    size = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))
    return Tolerance(1, float(size.max()) * float(np.finfo(acc.numpy).eps) * 4)


@pytest.mark.parametrize(("dtype", "acc"), PAIRS, ids=by_name)
@pytest.mark.parametrize(
    ("sizes", "tile"),
    [
        ((16, 16, 16), (16, 16, 16)),
        ((37, 29, 50), (16, 16, 32)),
        ((70, 40, 33), (64, 32, 16)),
        ((130, 130, 70), (128, 64, 32)),
        ((5, 3, 2), (8, 8, 8)),
        ((3, 2, 9), (2, 1, 4)),
    ],
    ids=str,
)
def test_exact(backends: Backends, dtype: dt.DType, acc: dt.DType, sizes: Any, tile: Any) -> None:
    m, n, k = sizes
    a, b = small_integers(dtype, (m, k), 1), small_integers(dtype, (k, n), 2)
    grid = (ct.cdiv(m, tile[0]), ct.cdiv(n, tile[1]))
    args = backends.run_all(matmul, grid, lambda: [a.copy(), b.copy(), np.zeros((m, n), acc.numpy), *tile, acc])
    assert np.array_equal(args[2], a.astype(np.float64) @ b.astype(np.float64))


@ct.kernel
def computed_matmul(A, B, C, TM: ct.Constant, TN: ct.Constant, TK: ct.Constant, acc_dtype: ct.Constant):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((TM, TN), dtype=acc_dtype)
    for k in range(ct.num_tiles(A, axis=1, shape=(TM, TK))):
        a = ct.load(A, index=(i, k), shape=(TM, TK), padding_mode=ct.PaddingMode.ZERO)
        b = ct.load(B, index=(k, j), shape=(TK, TN), padding_mode=ct.PaddingMode.ZERO)
        acc = ct.mma(a, (b.astype(acc_dtype) * 2).astype(B.dtype), acc)
    ct.store(C, index=(i, j), tile=acc.astype(C.dtype))


@pytest.mark.parametrize(("dtype", "acc"), PAIRS, ids=by_name)
@pytest.mark.parametrize("sizes", [(64, 128, 64), (65, 127, 33), (129, 63, 70)], ids=str)
@pytest.mark.parametrize("tile", [(64, 64, 32), (64, 128, 16), (128, 32, 32)], ids=str)
@pytest.mark.parametrize("times", [1, 2])
def test_operands_of_many_rows(
    backends: Backends, dtype: dt.DType, acc: dt.DType, sizes: Any, tile: Any, times: int
) -> None:
    """The right operand is read for each block of rows: where it lies whole in its array, at ends, computed."""
    m, n, k = sizes
    a, b = small_integers(dtype, (m, k), 0), small_integers(dtype, (k, n), 1)
    expected = (a.astype(np.float64) @ b.astype(np.float64)) * times
    grid = (ct.cdiv(m, tile[0]), ct.cdiv(n, tile[1]))
    kernel = matmul if times == 1 else computed_matmul
    args = backends.run_all(kernel, grid, lambda: [a.copy(), b.copy(), np.zeros((m, n), acc.numpy), *tile, acc])
    assert np.array_equal(args[2], expected)


WHOLE_OR_PADDED, WHOLE_TILES, REST, REST_IN_ANY_CASE = range(4)


@ct.kernel
def matmul_in_branches(
    A, B, C, TM: ct.Constant, TN: ct.Constant, TK: ct.Constant, acc_dtype: ct.Constant, form: ct.Constant
):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((TM, TN), dtype=acc_dtype)
    K = A.shape[1]
    zero = ct.PaddingMode.ZERO
    if form == WHOLE_OR_PADDED:
        if K % TK == 0:
            for k in range(K // TK):
                acc = ct.mma(ct.load(A, (i, k), (TM, TK)), ct.load(B, (k, j), (TK, TN)), acc)
        else:
            for k in range(ct.cdiv(K, TK)):
                a = ct.load(A, (i, k), (TM, TK), padding_mode=zero)
                acc = ct.mma(a, ct.load(B, (k, j), (TK, TN), padding_mode=zero), acc)
    elif form == WHOLE_TILES:
        for k in range(ct.cdiv(K, TK)):
            if k * TK + TK <= K:
                a = ct.load(A, (i, k), (TM, TK))
                b = ct.load(B, (k, j), (TK, TN))
            else:
                a = ct.load(A, (i, k), (TM, TK), padding_mode=zero)
                b = ct.load(B, (k, j), (TK, TN), padding_mode=zero)
            acc = ct.mma(a, b, acc)
    else:
        for k in range(K // TK):
            acc = ct.mma(ct.load(A, (i, k), (TM, TK)), ct.load(B, (k, j), (TK, TN)), acc)
        if form == REST_IN_ANY_CASE or K % TK != 0:
            a = ct.load(A, (i, K // TK), (TM, TK), padding_mode=zero)
            acc = ct.mma(a, ct.load(B, (K // TK, j), (TK, TN), padding_mode=zero), acc)
    ct.store(C, (i, j), acc.astype(C.dtype))


@pytest.mark.parametrize("form", range(4))
@pytest.mark.parametrize("k", [1, 31, 32, 64, 65, 130])
@pytest.mark.parametrize(("dtype", "acc"), [(dt.float16, dt.float32), (dt.int8, dt.int32)], ids=by_name)
def test_products_in_branches(backends: Backends, dtype: dt.DType, acc: dt.DType, k: int, form: int) -> None:
    m, n, tile = 65, 70, (64, 64, 32)
    a, b = small_integers(dtype, (m, k), 1), small_integers(dtype, (k, n), 2)
    args = backends.run_all(
        matmul_in_branches, (2, 2), lambda: [a.copy(), b.copy(), np.zeros((m, n), acc.numpy), *tile, acc, form]
    )
    assert np.array_equal(args[2], a.astype(np.float64) @ b.astype(np.float64))


@ct.kernel
def turned_matmul(
    A, B, BIAS, C, TM: ct.Constant, TN: ct.Constant, TK: ct.Constant, acc_dtype: ct.Constant, ordered: ct.Constant
):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((TN, TM), dtype=acc_dtype)
    for k in range(ct.num_tiles(A, axis=1, shape=(TM, TK))):
        if ordered:
            a = ct.load(A, (k, i), (TK, TM), order=(1, 0), padding_mode=ct.PaddingMode.ZERO)
            b = ct.load(B, (j, k), (TN, TK), order=(1, 0), padding_mode=ct.PaddingMode.ZERO)
            acc = ct.mma(b, a, acc)
        else:
            a = ct.load(A, (i, k), (TM, TK), padding_mode=ct.PaddingMode.ZERO)
            b = ct.load(B, (k, j), (TK, TN), padding_mode=ct.PaddingMode.ZERO)
            acc = ct.mma(b.T, a.T, acc)
    acc += ct.load(BIAS, (j,), (TN,))[:, None]
    if ordered:
        ct.store(C, (j, i), acc.astype(C.dtype), order=(1, 0))
    else:
        ct.store(C, (i, j), acc.astype(C.dtype).T)


@pytest.mark.parametrize(("dtype", "acc"), PAIRS, ids=by_name)
@pytest.mark.parametrize("tile", [(64, 64, 32), (128, 64, 32), (16, 64, 32)], ids=str)
@pytest.mark.parametrize("ordered", [False, True])
def test_products_of_transposes(backends: Backends, dtype: dt.DType, acc: dt.DType, tile: Any, ordered: bool) -> None:
    m, n, k = 129, 70, 65
    a, b, bias = (small_integers(t, x, i) for i, (t, x) in enumerate([(dtype, (m, k)), (dtype, (k, n)), (acc, n)]))
    grid = (ct.cdiv(m, tile[0]), ct.cdiv(n, tile[1]))
    given = [a, b, bias, np.zeros((m, n), acc.numpy)]
    args = backends.run_all(turned_matmul, grid, lambda: [*(x.copy() for x in given), *tile, acc, ordered])
    assert np.array_equal(args[3], a.astype(np.float64) @ b.astype(np.float64) + bias)


@pytest.mark.parametrize("left", [np.int8, np.uint8], ids=by_name)
@pytest.mark.parametrize("right", [np.int8, np.uint8], ids=by_name)
@pytest.mark.parametrize("tile", [(16, 64, 32), (128, 32, 64), (4, 8, 2), (8, 2, 16), (2, 16, 1)], ids=str)
def test_bytes_of_all_values(backends: Backends, left: Any, right: Any, tile: Any) -> None:
    """No pair of products is too large for what adds them."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(np.iinfo(d).min, np.iinfo(d).max + 1, (45, 45)).astype(d) for d in (left, right))
    a[3], b[:, 5] = np.iinfo(left).min, np.iinfo(right).min
    a[4], b[:, 6] = np.iinfo(left).max, np.iinfo(right).max
    grid = (ct.cdiv(45, tile[0]), ct.cdiv(45, tile[1]))
    make_args = lambda: [a.copy(), b.copy(), np.zeros((45, 45), np.int32), *tile, ct.int32]  # noqa: E731
    args = backends.run_all(matmul, grid, make_args)
    assert np.array_equal(args[2], a.astype(np.int64) @ b.astype(np.int64))


@pytest.mark.parametrize(("dtype", "acc"), PAIRS, ids=by_name)
def test_random(backends: Backends, dtype: dt.DType, acc: dt.DType) -> None:
    m, n, k, tile = 50, 70, 60, (32, 32, 32)
    a = random_values(dtype, m * k, 1).reshape(m, k)
    b = random_values(dtype, k * n, 2).reshape(k, n)
    backends.run_all(
        matmul,
        (2, 3),
        lambda: [a.copy(), b.copy(), np.zeros((m, n), acc.numpy), *tile, acc],
        tolerance=product_tolerance(a, b, acc),
    )


@pytest.mark.parametrize("layout", ["row row", "row column", "column row", "strided"])
@pytest.mark.parametrize("dtype", [ct.float16, ct.float32, ct.int8], ids=by_name)
def test_memory_order_of_operands(backends: Backends, dtype: dt.DType, layout: str) -> None:
    a, b = small_integers(dtype, (48, 64), 1), small_integers(dtype, (64, 32), 2)

    def arrange(x: np.ndarray, how: str) -> np.ndarray:
        if how == "column":
            return np.ascontiguousarray(x.T).T
        if how == "strided":
            wide = np.zeros((x.shape[0] * 2, x.shape[1] * 3), x.dtype)
            wide[::2, ::3] = x
            return wide[::2, ::3]
        return x.copy()

    how = layout.split() * 2
    acc = ct.float32 if dtype.is_float else ct.int32
    args = backends.run_all(
        matmul,
        (3, 1),
        lambda: [
            arrange(a, how[0]),
            arrange(b, how[1]),
            np.zeros((48, 32), acc.numpy),
            16,
            32,
            32,
            acc,
        ],
    )
    assert np.array_equal(args[2], a.astype(np.float64) @ b.astype(np.float64))


@pytest.mark.parametrize("columns", [128, 1024, 1027])
def test_operands_that_are_views(backends: Backends, columns: int) -> None:
    """Whole and ragged tiles, of rows that lie close together, or a multiple of 4 KiB apart."""
    a, b = (small_integers(ct.float32, (100, columns), seed) for seed in (1, 2))

    def make_args() -> list[Any]:
        c = np.zeros((70, 90), np.float32)
        return [a[:70, 5:105], b[:, 3:93], c, 32, 32, 32, ct.float32]

    backends.run_all(matmul, (3, 3), make_args, tolerance=EXACT)


def test_tf32(backends: Backends) -> None:
    @ct.kernel
    def kernel(A, B, C):
        a = ct.load(A, (0, 0), (32, 16)).astype(ct.tfloat32)
        b = ct.load(B, (0, 0), (16, 32)).astype(ct.tfloat32)
        ct.store(C, (0, 0), ct.mma(a, b, ct.zeros((32, 32), ct.float32)))

    a = random_values(ct.float32, 512, 1).reshape(32, 16)
    b = random_values(ct.float32, 512, 2).reshape(16, 32)
    _, _, c = backends.run_all(
        kernel,
        1,
        lambda: [a.copy(), b.copy(), np.zeros((32, 32), "f4")],
        tolerance=product_tolerance(a, b, ct.float32),
    )
    np.testing.assert_allclose(c, a @ b, atol=2.0**-10 * float((np.abs(a) @ np.abs(b)).max()))


@pytest.mark.parametrize("x", [ct.int8, ct.float8_e4m3fn], ids=by_name)
def test_mixed_inputs(backends: Backends, x: dt.DType) -> None:
    y = {ct.int8: ct.uint8, ct.float8_e4m3fn: ct.float8_e5m2}[x]
    acc = ct.int32 if x is ct.int8 else ct.float32
    a, b = small_integers(x, (16, 32), 1), small_integers(y, (32, 16), 2)
    args = backends.run_all(matmul, 1, lambda: [a.copy(), b.copy(), np.zeros((16, 16), acc.numpy), 16, 16, 32, acc])
    assert np.array_equal(args[2], a.astype(np.float64) @ b.astype(np.float64))


def test_batch(backends: Backends) -> None:
    @ct.kernel
    def kernel(A, B, C):
        a = ct.load(A, (0, 0, 0), (4, 16, 32))
        b = ct.load(B, (0, 0, 0), (4, 32, 8))
        ct.store(C, (0, 0, 0), ct.mma(a, b, ct.ones((4, 16, 8), ct.float32)))

    a = small_integers(ct.float16, (4, 16, 32), 1)
    b = small_integers(ct.float16, (4, 32, 8), 2)
    _, _, c = backends.run_all(kernel, 1, lambda: [a.copy(), b.copy(), np.zeros((4, 16, 8), "f4")])
    assert np.array_equal(c, a.astype("f8") @ b.astype("f8") + 1)


def test_chain_of_products(backends: Backends) -> None:
    """Operands that were computed, transposed and converted, as in attention."""

    @ct.kernel
    def kernel(Q, K, V, Out):
        q = ct.load(Q, (ct.bid(0), 0), (16, 32))
        k = ct.load(K, (0, 0), (64, 32))
        v = ct.load(V, (0, 0), (64, 32))
        s = ct.mma(q, k.transpose(), ct.zeros((16, 64), ct.float32)) * 0.125
        p = ct.exp(s - ct.max(s, axis=1, keepdims=True))
        p = p / ct.sum(p, axis=1, keepdims=True)
        ct.store(Out, (ct.bid(0), 0), ct.mma(p.astype(ct.float16), v, ct.zeros((16, 32), ct.float32)))

    q, k, v = (random_values(ct.float16, n * 32, n).reshape(n, 32) for n in (48, 64, 64))
    args = backends.run_all(
        kernel,
        3,
        lambda: [q.copy(), k.copy(), v.copy(), np.zeros((48, 32), "f4")],
        tolerance=Tolerance(0, 0.01),
    )
    s = (q.astype("f8") @ k.astype("f8").T) / 8
    p = np.exp(s - s.max(1, keepdims=True))
    expected = p / p.sum(1, keepdims=True) @ v.astype("f8")
    np.testing.assert_allclose(args[3], expected, atol=0.02)


def test_matmul_operator(backends: Backends) -> None:
    @ct.kernel
    def kernel(A, B, C, D):
        a, b = ct.load(A, (0, 0), (16, 32)), ct.load(B, (0, 0), (32, 16))
        c = a @ b
        ct.static_assert(c.dtype == A.dtype)
        ct.store(C, (0, 0), c)
        ct.store(D, (0, 0), ct.matmul(b, a))

    for dtype in (ct.float16, ct.float32, ct.bfloat16):
        a, b = small_integers(dtype, (16, 32), 1), small_integers(dtype, (32, 16), 2)
        args = backends.run_all(
            kernel,
            1,
            lambda a=a, b=b: [
                a.copy(), b.copy(), np.zeros((16, 16), a.dtype), np.zeros((32, 32), a.dtype)
            ],
        )  # fmt: skip
        assert np.array_equal(args[2].astype("f8"), a.astype("f8") @ b.astype("f8"))
        assert np.array_equal(args[3].astype("f8"), b.astype("f8") @ a.astype("f8"))


@pytest.mark.parametrize(
    ("name", "error", "match"),
    [
        ("inner", TileTypeError, r"\(16, 32\).*\(16, 16\)"),
        ("accumulator_shape", TileTypeError, r"\(16, 8\)"),
        ("rank", TileTypeError, r"\(16,\)"),
        ("dtypes", TileTypeError, "float16.*bfloat16"),
        ("accumulator", TileTypeError, "bfloat16.*float32.*float16"),
        ("integers", TileTypeError, "int32"),
    ],
)
def test_refused(backends: Backends, name: str, error: Any, match: str) -> None:
    @ct.kernel
    def inner():
        z = ct.zeros((16, 16), ct.float32)
        ct.mma(ct.zeros((16, 32), ct.float16), ct.zeros((16, 16), ct.float16), z)

    @ct.kernel
    def accumulator_shape():
        x = ct.zeros((16, 16), ct.float16)
        ct.mma(x, x, ct.zeros((16, 8), ct.float32))

    @ct.kernel
    def rank():
        x = ct.zeros((16, 16), ct.float16)
        ct.mma(x, ct.zeros((16,), ct.float16), ct.zeros((16, 16), ct.float32))

    @ct.kernel
    def dtypes():
        x = ct.zeros((16, 16), ct.float16)
        ct.mma(x, x.astype(ct.bfloat16), ct.zeros((16, 16), ct.float32))

    @ct.kernel
    def accumulator():
        x = ct.zeros((16, 16), ct.bfloat16)
        ct.mma(x, x, ct.zeros((16, 16), ct.float16))

    @ct.kernel
    def integers():
        x = ct.zeros((16, 16), ct.int32)
        ct.mma(x, x, x)

    backends.rejects(locals()[name], 1, list, error, match)


# ---------------------------------------------------------------------------------------------
# Blocks with scales, and operands without the batch axis


SCALED = [
    (dt.float8_e4m3fn, dt.float8_e8m0fnu, 32),
    (dt.float8_e5m2, dt.float8_e8m0fnu, 32),
    (dt.float4_e2m1fn, dt.float8_e8m0fnu, 16),
    (dt.float4_e2m1fn, dt.float8_e8m0fnu, 32),
    (dt.float4_e2m1fn, dt.float8_e4m3fn, 16),
]


@pytest.mark.parametrize(("dtype", "scale", "block"), SCALED, ids=str)
def test_scaled_products(backends: Backends, dtype: Any, scale: Any, block: int) -> None:
    """Small powers of two as scales and few elements: all sums are exact."""

    @ct.kernel
    def kernel(X, XS, Y, YS, Z, B: ct.Constant[int]):
        x = ct.load(X, (0, 0), (16, 64)).astype(dtype)
        y = ct.load(Y, (0, 0), (64, 32)).astype(dtype)
        xs = ct.load(XS, (0, 0), (16, 64 // B)).astype(scale)
        ys = ct.load(YS, (0, 0), (64 // B, 32)).astype(scale)
        ct.store(Z, (0, 0), ct.mma_scaled(x, xs, y, ys, ct.ones((16, 32), ct.float32)))

    rng = np.random.default_rng(0)
    x, y = (rng.integers(-3, 4, shape).astype("f4") for shape in ((16, 64), (64, 32)))
    xs, ys = (2.0 ** rng.integers(-2, 3, shape).astype("f4") for shape in ((16, 64 // block), (64 // block, 32)))
    *_, z, _ = backends.run_all(kernel, 1, lambda: [x, xs, y, ys, np.zeros((16, 32), "f4"), block])
    assert np.array_equal(z, (x * xs.repeat(block, 1)) @ (y * ys.repeat(block, 0)) + 1)


@pytest.mark.parametrize(
    ("x", "xs", "match"),
    [
        (((16, 64), dt.float16), ((16, 2), dt.float8_e8m0fnu), "x is float16"),
        (((16, 64), dt.float8_e5m2), ((16, 2), dt.float8_e4m3fn), "scales have one dtype"),
        (((16, 64), dt.float8_e5m2), ((16, 4), dt.float8_e8m0fnu), "a scale for each 32 along k"),
        (((16, 64), dt.float8_e5m2), ((8, 2), dt.float8_e8m0fnu), "a scale for each 32 along k"),
        (((16, 128), dt.float8_e5m2), ((16, 4), dt.float8_e8m0fnu), "shapes"),
    ],
)
def test_refused_scales(backends: Backends, x: Any, xs: Any, match: str) -> None:
    @ct.kernel
    def kernel():
        y, ys = ct.ones((64, 32), ct.float8_e4m3fn), ct.ones((2, 32), ct.float8_e8m0fnu)
        ct.mma_scaled(ct.ones(*x), ct.ones(*xs), y, ys, ct.zeros((16, 32), ct.float32))

    backends.rejects(kernel, 1, list, TileTypeError, match)


@ct.kernel
def joined(X, W, Y, Z, PARTS: ct.Constant, D: ct.Constant):
    """Parts of a result with their weights: a row times a matrix, and the matrix times a column."""
    weights = ct.load(W, index=(0,), shape=(PARTS,), padding_mode=ct.PaddingMode.ZERO)
    parts = ct.load(X, index=(0, ct.bid(0)), shape=(PARTS, D), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
    row = ct.mma(weights[None, :], parts, ct.full((1, D), 1.0, dtype=ct.float32))
    column = ct.mma(ct.transpose(parts), weights[:, None], ct.zeros((D, 1), dtype=ct.float32))
    ct.store(Y, index=(0, ct.bid(0)), tile=row)
    ct.store(Z, index=(ct.bid(0), 0), tile=column)


@pytest.mark.parametrize("parts", [16, 87, 128])
def test_row_of_weights(backends: Backends, parts: int) -> None:
    x, w = small_integers(ct.float16, (parts, 200), 1), small_integers(ct.float32, (parts,), 2)
    tile = 128 if parts > 16 else 16
    results = backends.run_all(joined, 2, lambda: [x, w, np.zeros((1, 200), "f4"), np.zeros((200, 1), "f4"), tile, 128])
    y, z = results[2:4]
    assert np.array_equal(y[0], w @ x.astype("f4") + 1) and np.array_equal(z[:, 0], w @ x.astype("f4"))


def test_batch_of_one_operand(backends: Backends) -> None:
    @ct.kernel
    def kernel(X, Y, Z, W):
        x, y = ct.load(X, (0, 0), (16, 32)), ct.load(Y, (0, 0, 0), (2, 32, 16))
        ct.store(Z, (0, 0, 0), ct.mma(x, y, ct.zeros((2, 16, 16), ct.float32)))
        ct.store(W, (0, 0, 0), ct.mma(y, x, ct.zeros((2, 32, 32), ct.float32)))

    rng = np.random.default_rng(0)
    x, y = rng.integers(-3, 4, (16, 32)).astype("f2"), rng.integers(-3, 4, (2, 32, 16)).astype("f2")
    _, _, z, w = backends.run_all(kernel, 1, lambda: [x, y, np.zeros((2, 16, 16), "f4"), np.zeros((2, 32, 32), "f4")])
    assert np.array_equal(z, x.astype("f4") @ y) and np.array_equal(w, y.astype("f4") @ x)
