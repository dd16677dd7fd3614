"""Products that warpgroups of a Hopper GPU compute: every input type and accumulator, operands contiguous along either
axis, computed operands, ragged edges, and how exactly 8-bit floats are summed up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import Backends, Tolerance

from tilewright import dtype as dt
from tilewright import tile as ct

ZERO = ct.PaddingMode.ZERO

KINDS = [  # left, right, accumulator, how much of k makes lines of 128 bytes
    (ct.float16, ct.float16, ct.float32, 64),
    (ct.float16, ct.float16, ct.float16, 64),
    (ct.bfloat16, ct.bfloat16, ct.float32, 64),
    (ct.float8_e4m3fn, ct.float8_e4m3fn, ct.float32, 128),
    (ct.float8_e4m3fn, ct.float8_e5m2, ct.float32, 128),
    (ct.float8_e5m2, ct.float8_e4m3fn, ct.float32, 256),
    (ct.float8_e5m2, ct.float8_e5m2, ct.float16, 128),
    (ct.int8, ct.int8, ct.int32, 128),
    (ct.uint8, ct.int8, ct.int32, 128),
    (ct.int8, ct.uint8, ct.int32, 128),
    (ct.uint8, ct.uint8, ct.int32, 256),
    (ct.tfloat32, ct.tfloat32, ct.float32, 32),
]


def kind_name(kind: Any) -> str:
    return "-".join(getattr(part, "name", str(part)) for part in kind)


@ct.kernel
def matmul(A, B, C, TM: ct.Constant, TN: ct.Constant, TK: ct.Constant, lhs: ct.Constant, rhs: ct.Constant):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((TM, TN), dtype=C.dtype)
    for k in range(ct.num_tiles(A, axis=1, shape=(TM, TK))):
        a = ct.load(A, index=(i, k), shape=(TM, TK), padding_mode=ZERO)
        b = ct.load(B, index=(k, j), shape=(TK, TN), padding_mode=ZERO)
        acc = ct.mma(a.astype(lhs), b.astype(rhs), acc)
    ct.store(C, index=(i, j), tile=acc)


def memory_dtype(dtype: dt.DType) -> Any:
    return np.float32 if dtype is ct.tfloat32 else dtype.numpy


def integers(dtype: dt.DType, shape: Any, seed: int) -> np.ndarray:
    """Values whose products and sums are exact in every accumulator, in the Tensor Cores' too."""
    low = 0 if dtype in (ct.uint8,) else -3
    return np.random.default_rng(seed).integers(low, 4, shape).astype(np.float32).astype(memory_dtype(dtype))


def arranged(x: np.ndarray, order: str) -> np.ndarray:
    return x.copy() if order == "row" else np.ascontiguousarray(x.T).T


def exact(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(np.float64) @ b.astype(np.float64)


@pytest.mark.parametrize("orders", ["row row", "row column", "column row", "column column"])
@pytest.mark.parametrize("kind", KINDS, ids=kind_name)
def test_kinds_and_orders(backends: Backends, kind: Any, orders: str) -> None:
    lhs, rhs, acc, tk = kind
    m, n, k = 100, 144, 2 * tk + 16
    a, b = integers(lhs, (m, k), 1), integers(rhs, (k, n), 2)
    how = orders.split()
    args = backends.run_all(
        matmul,
        (2, 2),
        lambda: [arranged(a, how[0]), arranged(b, how[1]), np.zeros((m, n), acc.numpy), 64, 128, tk, lhs, rhs],
    )
    assert np.array_equal(args[2], exact(a, b))


@pytest.mark.parametrize("tile", [(64, 64), (64, 8), (128, 32), (128, 128), (64, 256), (256, 64), (128, 256)], ids=str)
@pytest.mark.parametrize("kind", [KINDS[3], KINDS[7], KINDS[11]], ids=kind_name)
def test_tiles(backends: Backends, kind: Any, tile: tuple[int, int]) -> None:
    lhs, rhs, acc, tk = kind
    m, n, k = tile[0] + 3, tile[1] + 5, tk + 7  # rows that start anywhere
    a, b = integers(lhs, (m, k), 1), integers(rhs, (k, n), 2)
    args = backends.run_all(
        matmul,
        (2, 2),
        lambda: [a.copy(), arranged(b, "column"), np.zeros((m, n), acc.numpy), *tile, tk, lhs, rhs],
    )
    assert np.array_equal(args[2], exact(a, b))


@pytest.mark.parametrize("times", [1, 2.5])
@pytest.mark.parametrize("kind", KINDS, ids=kind_name)
def test_operands_that_do_not_fit_twice(backends: Backends, kind: Any, times: float) -> None:
    """The product takes k in steps: alone, and in a loop whose iterations become the steps."""
    lhs, rhs, acc, tk = kind
    m, n, k = 100, 144, int(times * 8 * tk)
    a, b = integers(lhs, (m, k), 1), arranged(integers(rhs, (k, n), 2), "column")
    args = backends.run_all(matmul, (2, 2), lambda: [a, b, np.zeros((m, n), acc.numpy), 64, 128, 8 * tk, lhs, rhs])
    assert np.array_equal(args[2], exact(a, b))


@pytest.mark.parametrize("k", [32, 176, 512])
@pytest.mark.parametrize("kind", [KINDS[2], KINDS[3], KINDS[11]], ids=kind_name)
def test_steps_of_two_lines(backends: Backends, kind: Any, k: int) -> None:
    """Of which few stages fit: the loop's iterations become steps of one line."""
    lhs, rhs, acc, tk = kind
    a, b = integers(lhs, (136, k), 1), arranged(integers(rhs, (k, 272), 2), "column")
    args = backends.run_all(matmul, (2, 2), lambda: [a, b, np.zeros((136, 272), acc.numpy), 128, 256, 2 * tk, lhs, rhs])
    assert np.array_equal(args[2], exact(a, b))


@pytest.mark.parametrize("order", ["row", "column"])
@pytest.mark.parametrize("kind", [KINDS[2], KINDS[3]], ids=kind_name)
def test_steps_of_two_lines_of_coarsened_tiles(backends: Backends, kind: Any, order: str) -> None:
    lhs, rhs, acc, tk = kind
    a, b = integers(lhs, (136, 176), 1), arranged(integers(rhs, (176, 272), 2), order)
    args = backends.run_all(
        matmul.replace_hints(coarsen_tiles=2),
        (2, 3),
        lambda: [a, b, np.zeros((136, 272), acc.numpy), 128, 128, 2 * tk, lhs, rhs],
    )
    assert np.array_equal(args[2], exact(a, b))


@pytest.mark.parametrize("order", ["row", "column"])
@pytest.mark.parametrize("tile", [(64, 32, 64), (64, 16, 32), (128, 64, 16)], ids=str)
@pytest.mark.parametrize("kind", [ct.bfloat16, ct.float8_e4m3fn, ct.int8], ids=lambda kind: kind.name)
def test_short_lines(backends: Backends, kind: Any, tile: tuple[int, int, int], order: str) -> None:
    """Of 64 and 32 bytes, along k or along n."""
    acc = ct.int32 if kind is ct.int8 else ct.float32
    tm, tn, tk = (tile[0], tile[1], tile[2] * (1 if kind is ct.bfloat16 else 2))
    m, n, k = tm + 8, tn + 8, 2 * tk + 16
    a, b = integers(kind, (m, k), 1), integers(kind, (k, n), 2)
    args = backends.run_all(
        matmul, (2, 2), lambda: [a.copy(), arranged(b, order), np.zeros((m, n), acc.numpy), tm, tn, tk, kind, kind]
    )
    assert np.array_equal(args[2], exact(a, b))


@ct.kernel(fp8_fast_accum=True)
def kept(U, V, B, X, Y, TM: ct.Constant, TN: ct.Constant, TK: ct.Constant, lhs: ct.Constant, rhs: ct.Constant):
    """Both left operands stay the same: they stay in registers."""
    i = ct.bid(0)
    u = ct.load(U, index=(i, 0), shape=(TM, TK), padding_mode=ZERO).astype(lhs)
    v = ct.load(V, index=(i, 0), shape=(TM, TK), padding_mode=ZERO).astype(lhs)
    x, y = ct.zeros((TM, TN), dtype=X.dtype), ct.zeros((TM, TN), dtype=Y.dtype)
    for j in range(ct.num_tiles(B, axis=1, shape=(TK, TN))):
        b = ct.load(B, index=(0, j), shape=(TK, TN), padding_mode=ZERO).astype(rhs)
        x, y = ct.mma(u, b, x), ct.mma(v, b, y)
    ct.store(X, index=(i, 0), tile=x)
    ct.store(Y, index=(i, 0), tile=y)


@pytest.mark.parametrize("tm", [64, 128])
@pytest.mark.parametrize("kind", KINDS, ids=kind_name)
def test_left_operands_that_stay(backends: Backends, kind: Any, tm: int) -> None:
    lhs, rhs, acc, tk = kind
    u, v = integers(lhs, (200, tk), 1), integers(lhs, (200, tk), 2)
    b = arranged(integers(rhs, (tk, 5 * 64), 3), "column")
    sums = b.astype(np.float64).reshape(tk, 5, 64).sum(axis=1)
    outputs = lambda: [np.zeros((200, 64), acc.numpy) for _ in range(2)]  # noqa: E731
    args = backends.run_all(
        kept, (-(-200 // tm),), lambda: [u.copy(), v.copy(), arranged(b, "column"), *outputs(), tm, 64, tk, lhs, rhs]
    )
    for found, operand in ((args[3], u), (args[4], v)):
        assert np.array_equal(found.astype(np.float64), operand.astype(np.float64) @ sums)


def test_bytes_that_are_widened_on_the_way(backends: Backends) -> None:
    @ct.kernel
    def kernel(A, B, S, C):
        acc = ct.zeros((64, 128), dtype=ct.float32)
        for k in range(ct.num_tiles(A, axis=1, shape=(64, 64))):
            a = ct.load(A, index=(0, k), shape=(64, 64), padding_mode=ZERO)
            b = ct.load(B, index=(k, 0), shape=(64, 128), padding_mode=ZERO).astype(ct.float16)
            acc = ct.mma(a, b * ct.load(S, index=(0, 0), shape=(1, 128), padding_mode=ZERO), acc)
        ct.store(C, index=(0, 0), tile=acc)

    a, b = integers(ct.float16, (64, 200), 1), integers(ct.int8, (200, 128), 2)
    s = np.exp2(np.arange(128) % 3).astype(np.float16)[None]
    args = backends.run_all(kernel, 1, lambda: [a.copy(), b.copy(), s.copy(), np.zeros((64, 128), np.float32)])
    assert np.array_equal(args[3], exact(a, b.astype(np.float64) * s))


@ct.kernel
def scaled(A, S, B, C, TM: ct.Constant, TN: ct.Constant, TK: ct.Constant, lhs: ct.Constant, rhs: ct.Constant):
    """The left operand is made in registers, beside a product."""
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((TM, TN), dtype=C.dtype)
    for k in range(ct.num_tiles(A, axis=1, shape=(TM, TK))):
        a = ct.load(A, index=(i, k), shape=(TM, TK), padding_mode=ZERO)
        s = ct.load(S, index=(i, k), shape=(TM, 1), padding_mode=ZERO)
        b = ct.load(B, index=(k, j), shape=(TK, TN), padding_mode=ZERO)
        acc = ct.mma((a * s).astype(lhs), b.astype(rhs), acc)
    ct.store(C, index=(i, j), tile=acc)


COMPUTED = [
    *((dtype, tile, {}) for dtype in (ct.bfloat16, ct.int8) for tile in ((256, 32, 64), (128, 256, 64), (64, 16, 128))),
    *((ct.float16, tile, {}) for tile in ((128, 128, 64), (64, 64, 16))),  # four steps of k, and one
    *((ct.float16, (128, 64, 64), hints) for hints in ({"num_stages": 1}, {"roles": "none"}, {"split_k": 2})),
]


@pytest.mark.parametrize(("dtype", "tile", "hints"), COMPUTED, ids=str)
def test_left_operands_computed_from_loads(
    backends: Backends, dtype: Any, tile: tuple[int, int, int], hints: dict[str, Any]
) -> None:
    tm, tn, tk = tile
    acc = ct.int32 if dtype is ct.int8 else ct.float32
    m, n, k = tm + 44, 2 * tn - 3, 6 * tk - 16
    a, b = integers(dtype, (m, k), 1), arranged(integers(dtype, (k, n), 2), "column")
    s = np.exp2(np.arange(m * 16).reshape(m, 16) % 3).astype(dtype.numpy)
    wide = a.astype(np.float64) * np.repeat(s.astype(np.float64), tk, axis=1)[:, :k]
    args = backends.run_all(
        scaled.replace_hints(**hints),
        (2, 2),
        lambda: [a.copy(), s.copy(), arranged(b, "column"), np.zeros((m, n), acc.numpy), tm, tn, tk, dtype, dtype],
    )
    assert np.array_equal(args[3].astype(np.float64), wide @ b.astype(np.float64))


@ct.kernel
def scaled_rows(A, G, H, B, C, TM: ct.Constant, TN: ct.Constant, TK: ct.Constant):
    """Both loops load the left operand; the second one has vectors come with it."""
    i, j = ct.bid(0), ct.bid(1)
    sums = ct.zeros((TM, 1), dtype=ct.float32)
    for k in range(ct.num_tiles(A, axis=1, shape=(TM, TK))):
        a = ct.load(A, index=(i, k), shape=(TM, TK), padding_mode=ZERO)
        sums = sums + ct.sum(a.astype(ct.float32), axis=1, keepdims=True)
    acc = ct.zeros((TM, TN), dtype=ct.float32)
    for k in range(ct.num_tiles(A, axis=1, shape=(TM, TK))):
        a = ct.load(A, index=(i, k), shape=(TM, TK), padding_mode=ZERO).astype(ct.float32)
        g = ct.load(G, index=k, shape=TK, padding_mode=ZERO)
        h = ct.load(H, index=k, shape=TK, padding_mode=ZERO)
        b = ct.load(B, index=(k, j), shape=(TK, TN), padding_mode=ZERO)
        acc = ct.mma((a * g[None, :] + h[None, :]).astype(b.dtype), b, acc)
    ct.store(C, index=(i, j), tile=acc + sums)


@pytest.mark.parametrize("tile", [(128, 256, 64), (128, 128, 64)], ids=str)
def test_two_loops_that_load_an_operand(backends: Backends, tile: tuple[int, int, int]) -> None:
    (tm, tn, tk), kind = tile, ct.bfloat16
    m, n, k = tm + 44, tn + 16, 10 * tk + 16
    a, b = integers(kind, (m, k), 1), integers(kind, (k, n), 2)
    g, h = integers(kind, (k,), 3), integers(kind, (k,), 4)
    wide = a.astype(np.float64) * g.astype(np.float64) + h.astype(np.float64)
    args = backends.run_all(
        scaled_rows, (2, 2), lambda: [a.copy(), g.copy(), h.copy(), b.copy(), np.zeros((m, n), np.float32), *tile]
    )
    assert np.array_equal(args[4], wide @ b.astype(np.float64) + a.astype(np.float64).sum(axis=1)[:, None])


@ct.kernel
def shifted(A, B, V, C, TM: ct.Constant, TN: ct.Constant):
    """Two products without a loop; the row comes late, in pairs of elements."""
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((TM, TN), dtype=ct.float32)
    for k in range(0, 1, 2):
        a = ct.load(A, index=(i, k), shape=(TM, 64), padding_mode=ZERO)
        b = ct.load(B, index=(k, j), shape=(64, TN), padding_mode=ZERO)
        acc = ct.mma(a, b, acc)
        a = ct.load(A, index=(i, k + 1), shape=(TM, 64), padding_mode=ZERO)
        b = ct.load(B, index=(k + 1, j), shape=(64, TN), padding_mode=ZERO)
        acc = ct.mma(a, b, acc)
    ct.store(C, index=(i, j), tile=acc + ct.load(V, index=(0, j), shape=(1, TN), padding_mode=ZERO).astype(ct.float32))


@pytest.mark.parametrize("dtype", [ct.float32, ct.bfloat16], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("n", [273, 511])
def test_rows_of_odd_length_beside_a_product(backends: Backends, n: int, dtype: Any) -> None:
    a, b = integers(ct.float16, (25, 64), 1), integers(ct.float16, (64, n), 2)
    v = (np.arange(n) % 9 - 3).astype(dtype.numpy)[None]
    args = backends.run_all(shifted, (1, 2), lambda: [a.copy(), b.copy(), v, np.zeros((25, n), np.float32), 64, 256])
    assert np.array_equal(args[3], exact(a, b) + v.astype(np.float64))


@ct.kernel
def scaled_twice(A, B, F, G, C, TM: ct.Constant, TN: ct.Constant, TK: ct.Constant, along: ct.Constant):
    i = ct.bid(0)
    acc = ct.zeros((TM, TN), dtype=ct.float32)
    for k in range(ct.num_tiles(A, axis=1, shape=(TM, TK))):
        a = ct.load(A, index=(i, k), shape=(TM, TK), padding_mode=ZERO)
        b = ct.load(B, index=(k, 0), shape=(TK, TN), padding_mode=ZERO)
        part = ct.mma(a, b, ct.zeros((TM, TN), dtype=ct.float32))
        if along == "rows":
            f, g = ct.load(F, index=(i, k), shape=(TM, 1), padding_mode=ZERO), ct.gather(G, (k, 0))
        else:
            f, g = ct.load(F, index=(k, 0), shape=(1, TN)), ct.load(G, index=(k, 0), shape=(1, TN))
        acc = acc + part * f * g
    ct.store(C, index=(i, 0), tile=acc)


# Times the second factor some leave the range of f32, or are no numbers; times elements of the product they do not.
SIZES = [2.0**e for e in (0, 100, -100, 3, 90, -90, -30, 60)] + [0.0, np.inf, np.nan]


@pytest.mark.parametrize("hints", [{}, {"approximate": 0}, {"family": "mma.sync"}], ids=str)
@pytest.mark.parametrize("along", ["rows", "columns"])
@pytest.mark.parametrize("second", [1.0, 2.0**60, 2.0**-60, 0.0, np.inf], ids=str)
def test_two_factors_of_a_product(backends: Backends, second: float, along: str, hints: dict[str, Any]) -> None:
    """Scales are powers of two: whether they are multiplied first shows only where that leaves the range of f32. Each
    row has numbers in one of the two steps of k, so that a fused multiply-add rounds, and overflows, as a sum does."""
    m, n, k, tiles = 200, 128, 128, (128, 128, 64)
    a, b = integers(ct.bfloat16, (m, k), 1), integers(ct.bfloat16, (k, n), 2)
    a[::2, 64:], a[1::2, :64], a[5], b[:, 7] = 0, 0, 0, 0
    sizes = np.array(SIZES, np.float32)
    f = sizes[np.arange(200)[:, None] * 2 // 5 % len(sizes)] + np.zeros((1, 2), np.float32)
    g = np.full((2, n), second, np.float32)
    f = f if along == "rows" else np.ascontiguousarray(f[:n].T)
    want = np.zeros((m, n), np.float32)
    with np.errstate(all="ignore"):
        for s in range(2):
            part = (a[:, s * 64 :][:, :64].astype(np.float32) @ b[s * 64 :][:64].astype(np.float32)).astype(np.float32)
            want += part * (f[:, s, None] if along == "rows" else f[s]) * g[s]
    args = backends.run_all(
        scaled_twice.replace_hints(**hints),
        (2,),
        lambda: [a.copy(), b.copy(), f.copy(), g.copy(), np.zeros((m, n), np.float32), *tiles, along],
    )
    assert np.array_equal(args[4], want, equal_nan=True)


def test_an_operand_computed_without_a_load(backends: Backends) -> None:
    @ct.kernel
    def kernel(A, C):
        a = ct.load(A, index=(0, 0), shape=(64, 64))
        rows, columns = ct.arange(64, dtype=ct.int32)[:, None], ct.arange(64, dtype=ct.int32)[None, :]
        turned = ct.where(columns == 63 - rows, 1, 0).astype(ct.float16)
        ct.store(C, index=(0, 0), tile=ct.mma(a, turned, ct.zeros((64, 64), dtype=ct.float32)))

    a = integers(ct.float16, (64, 64), 1)
    args = backends.run_all(kernel, 1, lambda: [a.copy(), np.zeros((64, 64), np.float32)])
    assert np.array_equal(args[1], a[:, ::-1])


@ct.kernel(fp8_fast_accum=True)
def fast_matmul(A, B, C, TM: ct.Constant, TN: ct.Constant, TK: ct.Constant, lhs: ct.Constant, rhs: ct.Constant):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((TM, TN), dtype=C.dtype)
    for k in range(ct.num_tiles(A, axis=1, shape=(TM, TK))):
        a = ct.load(A, index=(i, k), shape=(TM, TK), padding_mode=ZERO)
        b = ct.load(B, index=(k, j), shape=(TK, TN), padding_mode=ZERO)
        acc = ct.mma(a.astype(lhs), b.astype(rhs), acc)
    ct.store(C, index=(i, j), tile=acc)


@ct.kernel
def permitted_matmul(A, B, C, TM: ct.Constant, TN: ct.Constant, TK: ct.Constant, lhs: ct.Constant, rhs: ct.Constant):
    acc = ct.zeros((TM, TN), dtype=C.dtype)
    for k in range(ct.num_tiles(A, axis=1, shape=(TM, TK))):
        a = ct.load(A, index=(0, k), shape=(TM, TK)).astype(lhs)
        acc = ct.mma(a, ct.load(B, index=(k, 0), shape=(TK, TN)).astype(rhs), acc, use_fast_acc=True)
    ct.store(C, index=(0, 0), tile=acc)


@pytest.mark.parametrize("kernel", [matmul, fast_matmul, permitted_matmul], ids=["promoted", "fast", "permitted"])
def test_sums_of_8_bit_floats(backends: Backends, kernel: Any) -> None:
    """All terms are positive, so that what is cut off adds up: in each step of 32 up to 33 terms lose as much as 2^-13
    of the sum. Promoted, no sum is longer than 4 steps, and most of its bits are there when it is promoted."""
    k, tk = 8192, 128
    rng = np.random.default_rng(3)
    a, b = (rng.uniform(0.5, 1.5, shape).astype(ct.float8_e4m3fn.numpy) for shape in ((64, k), (k, 64)))
    product = exact(a, b)
    bound = (k / 32 * 33 * 2.0**-13 if kernel is not matmul else 2.0**-11) * float(product.max())
    args = backends.run_all(
        kernel,
        1,
        lambda: [a.copy(), arranged(b, "column"), np.zeros((64, 64), np.float32), 64, 64, tk, *[ct.float8_e4m3fn] * 2],
        tolerance=Tolerance(1, bound),
    )
    assert np.abs(args[2] - product).max() <= 2.0**-20 * product.max()  # the reference sums in float32
