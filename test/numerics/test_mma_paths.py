"""Matrix products in the surroundings that decide how a GPU feeds them: loops, branches, shared and reused operands,
views and conversions on the way from memory, padding, and stores in between."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from harness import Backends

from tilewright import tile as ct

ZERO = ct.PaddingMode.ZERO


def integers(seed: int, *shape: int, dtype: Any = np.float16) -> np.ndarray:
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(dtype)


def run(backends: Backends, kernel: Any, grid: Any, *args: Any) -> list[Any]:
    return backends.run_all(kernel, grid, lambda: [x.copy() if isinstance(x, np.ndarray) else x for x in args])


def f32(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def test_one_tile_is_both_operands(backends: Backends) -> None:
    @ct.kernel
    def kernel(A, C):
        acc = ct.zeros((32, 32), dtype=ct.float32)
        for k in range(ct.num_tiles(A, axis=1, shape=(32, 32))):
            a = ct.load(A, index=(0, k), shape=(32, 32), padding_mode=ZERO)
            acc = ct.mma(a, a.T, acc)
        ct.store(C, index=(0, 0), tile=acc)

    a = integers(1, 32, 80)
    c = run(backends, kernel, 1, a, f32(32, 32))[1]
    assert np.array_equal(c, a.astype("f4") @ a.astype("f4").T)


def test_operand_is_used_elementwise_too(backends: Backends) -> None:
    @ct.kernel
    def kernel(A, B, C, S):
        acc = ct.zeros((32, 32), dtype=ct.float32)
        rows = ct.zeros((32, 1), dtype=ct.float32)
        for k in range(ct.num_tiles(A, axis=1, shape=(32, 32))):
            a = ct.load(A, index=(0, k), shape=(32, 32), padding_mode=ZERO)
            b = ct.load(B, index=(k, 0), shape=(32, 32), padding_mode=ZERO)
            rows = rows + ct.sum(a.astype(ct.float32), axis=1, keepdims=True)
            acc = ct.mma(a, b, acc)
        ct.store(C, index=(0, 0), tile=acc)
        ct.store(S, index=(0, 0), tile=rows)

    a, b = integers(1, 32, 100), integers(2, 100, 32)
    _, _, c, s = run(backends, kernel, 1, a, b, f32(32, 32), f32(32, 1))
    assert np.array_equal(c, a.astype("f4") @ b.astype("f4"))
    assert np.array_equal(s[:, 0], a.astype("f4").sum(axis=1))


def test_two_accumulators_share_an_operand(backends: Backends) -> None:
    @ct.kernel
    def kernel(A, B, C, D):
        c = ct.zeros((64, 32), dtype=ct.float32)
        d = ct.zeros((64, 32), dtype=ct.float32)
        for k in range(ct.num_tiles(A, axis=1, shape=(64, 16))):
            b = ct.load(B, index=(k, 0), shape=(16, 32), padding_mode=ZERO)
            c = ct.mma(ct.load(A, index=(0, k), shape=(64, 16), padding_mode=ZERO), b, c)
            d = ct.mma(ct.load(A, index=(1, k), shape=(64, 16), padding_mode=ZERO), b, d)
        ct.store(C, index=(0, 0), tile=c)
        ct.store(D, index=(0, 0), tile=d)

    a, b = integers(1, 128, 72), integers(2, 72, 32)
    _, _, c, d = run(backends, kernel, 1, a, b, f32(64, 32), f32(64, 32))
    assert np.array_equal(np.concatenate([c, d]), a.astype("f4") @ b.astype("f4"))


@pytest.mark.parametrize(("start", "stop", "step"), [(0, 0, 1), (0, 1, 1), (1, 5, 1), (0, 5, 2), (3, 2, 1), (0, 9, 3)])
def test_bounds_of_the_loop(backends: Backends, start: int, stop: int, step: int) -> None:
    @ct.kernel
    def kernel(A, B, C, start, stop, step):
        acc = ct.full((32, 32), 1, dtype=ct.float32)
        for k in range(start, stop, step):
            a = ct.load(A, index=(0, k), shape=(32, 16), padding_mode=ZERO)
            b = ct.load(B, index=(k, 0), shape=(16, 32), padding_mode=ZERO)
            acc = ct.mma(a, b, acc)
        ct.store(C, index=(0, 0), tile=acc)

    a, b = integers(1, 32, 100), integers(2, 100, 32)
    c = run(backends, kernel, 1, a, b, f32(32, 32), start, stop, step)[2]
    columns = [k * 16 + i for k in range(start, stop, step) for i in range(16) if k * 16 + i < 100]
    assert np.array_equal(c, a.astype("f4")[:, columns] @ b.astype("f4")[columns] + 1)


def test_while_and_branch(backends: Backends) -> None:
    @ct.kernel
    def kernel(A, B, C, n):
        acc = ct.zeros((32, 32), dtype=ct.float32)
        k = 0
        while k < n:
            a = ct.load(A, index=(0, k), shape=(32, 16), padding_mode=ZERO)
            if k % 2 == 0:
                acc = ct.mma(a, ct.load(B, index=(k, 0), shape=(16, 32), padding_mode=ZERO), acc)
            else:
                acc = acc - ct.mma(
                    a,
                    ct.load(B, index=(k, 0), shape=(16, 32)),
                    ct.zeros((32, 32), dtype=ct.float32),
                )
            k = k + 1
        ct.store(C, index=(0, 0), tile=acc)

    a, b = integers(1, 32, 96), integers(2, 96, 32)
    c = run(backends, kernel, 1, a, b, f32(32, 32), 6)[2]
    signs = np.repeat([1, -1] * 3, 16).astype("f4")
    assert np.array_equal(c, (a.astype("f4") * signs) @ b.astype("f4"))


def test_loop_over_output_tiles_stores_each(backends: Backends) -> None:
    @ct.kernel
    def kernel(A, B, C):
        for i in range(ct.num_tiles(A, axis=0, shape=(32, 32))):
            for j in range(ct.num_tiles(B, axis=1, shape=(32, 32))):
                acc = ct.zeros((32, 32), dtype=ct.float32)
                for k in range(ct.num_tiles(A, axis=1, shape=(32, 32))):
                    a = ct.load(A, index=(i, k), shape=(32, 32), padding_mode=ZERO)
                    b = ct.load(B, index=(k, j), shape=(32, 32), padding_mode=ZERO)
                    acc = ct.mma(a, b, acc)
                ct.store(C, index=(i, j), tile=acc)

    a, b = integers(1, 70, 90), integers(2, 90, 40)
    c = run(backends, kernel, 1, a, b, f32(70, 40))[2]
    assert np.array_equal(c, a.astype("f4") @ b.astype("f4"))


def test_a_store_that_the_next_iteration_reads(backends: Backends) -> None:
    @ct.kernel
    def kernel(A, X):
        for k in range(4):
            x = ct.load(X, index=(k, 0), shape=(32, 32))
            y = ct.mma(ct.load(A, index=(0, 0), shape=(32, 32)), x, ct.zeros((32, 32), dtype=ct.float32))
            ct.store(X, index=(k + 1, 0), tile=y.astype(X.dtype))

    a, x = np.zeros((32, 32), np.float16), np.zeros((160, 32), np.float16)
    a[np.arange(32), (np.arange(32) + 1) % 32] = 1  # moves rows up by one
    x[:32] = integers(1, 32, 32)
    found = run(backends, kernel, 1, a, x)[1]
    for k in range(5):
        assert np.array_equal(found[32 * k : 32 * k + 32], np.roll(x[:32], -k, axis=0))


@pytest.mark.parametrize("rows", [16, 64, 128])
def test_operand_from_outside_of_the_loop(backends: Backends, rows: int) -> None:
    @ct.kernel
    def kernel(A, B, C, TM: ct.Constant):
        a = ct.load(A, index=(0, 0), shape=(TM, 128), padding_mode=ZERO)
        for j in range(ct.num_tiles(B, axis=0, shape=(32, 128))):
            b = ct.load(B, index=(j, 0), shape=(32, 128), padding_mode=ZERO)
            ct.store(C, index=(0, j), tile=ct.mma(a, b.T, ct.zeros((TM, 32), dtype=ct.float32)))

    a, b = integers(1, rows, 120), integers(2, 80, 120)
    c = run(backends, kernel, 1, a, b, f32(rows, 80), rows)[2]
    assert np.array_equal(c, a.astype("f4") @ b.astype("f4").T)


def test_products_in_a_chain(backends: Backends) -> None:
    @ct.kernel
    def kernel(A, B, D, C):
        acc = ct.zeros((64, 64), dtype=ct.float32)
        a = ct.load(A, index=(0, 0), shape=(64, 32))
        for k in range(ct.num_tiles(B, axis=1, shape=(32, 32))):
            s = ct.mma(a, ct.load(B, index=(0, k), shape=(32, 32)), ct.zeros((64, 32), dtype=ct.float32))
            p = ct.minimum(ct.maximum(s, -4.0), 4.0) - ct.max(s, axis=1, keepdims=True) * 0.0
            acc = ct.mma(p.astype(ct.float16), ct.load(D, index=(k, 0), shape=(32, 64)), acc)
        ct.store(C, index=(0, 0), tile=acc)

    a, b, d = integers(1, 64, 32), integers(2, 32, 96), integers(3, 96, 64)
    c = run(backends, kernel, 1, a, b, d, f32(64, 64))[3]
    assert np.array_equal(c, np.clip(a.astype("f4") @ b.astype("f4"), -4, 4) @ d.astype("f4"))


@pytest.mark.parametrize("padding", [ct.PaddingMode.ZERO, ct.PaddingMode.NAN, ct.PaddingMode.NEG_INF])
def test_padding_of_an_operand(backends: Backends, padding: Any) -> None:
    @ct.kernel
    def kernel(A, B, C, PADDING: ct.Constant):
        a = ct.load(A, index=(0, 0), shape=(32, 32), padding_mode=PADDING)
        inside = ct.arange(32, dtype=ct.int32)[None, :] < A.shape[1]
        a = ct.where(inside, a, 0)
        b = ct.load(B, index=(0, 0), shape=(32, 32), padding_mode=ZERO)
        ct.store(C, index=(0, 0), tile=ct.mma(a, b, ct.zeros((32, 32), dtype=ct.float32)))

    a, b = integers(1, 32, 24), integers(2, 24, 32)
    c = run(backends, kernel, 1, a, b, f32(32, 32), padding)[2]
    assert np.array_equal(c, a.astype("f4") @ b.astype("f4"))


@pytest.mark.parametrize("narrow", [np.float16, np.int8])
def test_cast_order_and_reshape_on_the_way(backends: Backends, narrow: Any) -> None:
    @ct.kernel
    def kernel(A, B, C):
        acc = ct.zeros((32, 32), dtype=ct.float32)
        for k in range(3):
            a = ct.load(A, index=(0, 0, k), shape=(1, 32, 32)).reshape((32, 32)).astype(ct.float16)
            b = ct.load(B, index=(0, k), shape=(32, 32), order=(1, 0)).astype(ct.float16)
            acc = ct.mma(a, ct.transpose(b), acc)
        ct.store(C, index=(0, 0), tile=acc)

    a, b = integers(1, 1, 32, 96, dtype=narrow), integers(2, 96, 32, dtype=narrow)
    c = run(backends, kernel, 1, a, b, f32(32, 32))[2]
    assert np.array_equal(c, a[0].astype("f4") @ b.astype("f4"))


def test_rows_of_a_product_are_reduced(backends: Backends) -> None:
    @ct.kernel
    def kernel(A, B, R, N):
        acc = ct.zeros((64, 64), dtype=ct.float32)
        for k in range(ct.num_tiles(A, axis=1, shape=(64, 16))):
            a = ct.load(A, index=(0, k), shape=(64, 16), padding_mode=ZERO)
            acc = ct.mma(a, ct.load(B, index=(k, 0), shape=(16, 64), padding_mode=ZERO), acc)
        ct.store(R, index=(0,), tile=ct.sum(acc, axis=0))
        ct.store(N, index=(0,), tile=ct.argmax(acc, axis=1))

    a, b = integers(1, 64, 40), integers(2, 40, 64)
    _, _, r, i = run(backends, kernel, 1, a, b, f32(64), np.zeros(64, np.int32))
    c = a.astype("f4") @ b.astype("f4")
    assert np.array_equal(r, c.sum(axis=0)) and np.array_equal(i, c.argmax(axis=1))


@pytest.mark.parametrize("step", [1, 2], ids=["vector", "strided vector"])
def test_computed_operands(backends: Backends, step: int) -> None:
    """Left: rows scaled by a vector along k, beside a loop that sums the same tiles. Right: bytes with scales."""

    @ct.kernel
    def kernel(A, V, W, S, C, R):
        rows = ct.zeros((64, 1), dtype=ct.float32)
        for k in range(ct.num_tiles(A, axis=1, shape=(64, 64))):
            a = ct.load(A, index=(0, k), shape=(64, 64), padding_mode=ZERO)
            rows = rows + ct.sum(a.astype(ct.float32), axis=1, keepdims=True)
        acc = ct.zeros((64, 64), dtype=ct.float32)
        for k in range(ct.num_tiles(A, axis=1, shape=(64, 64))):
            a = ct.load(A, index=(0, k), shape=(64, 64), padding_mode=ZERO)
            v = ct.load(V, index=k, shape=64, padding_mode=ZERO)
            w = ct.load(W, index=(k, 0), shape=(64, 64), padding_mode=ZERO)
            s = ct.load(S, index=(k, 0), shape=(1, 64), padding_mode=ZERO)
            acc = ct.mma(a * v, (w.astype(ct.float32) * s).astype(a.dtype), acc)
        ct.store(C, index=(0, 0), tile=acc)
        ct.store(R, index=(0, 0), tile=rows)

    k = 152
    a, v, w = integers(1, 64, k), integers(2, step * k), integers(3, k, 64, dtype=np.int8)
    s = integers(4, 3, 64, dtype=np.float32)

    def arguments() -> list[Any]:
        return [a.copy(), v.copy()[::step], w.copy(), s.copy(), f32(64, 64), f32(64, 1)]

    *_, c, r = backends.run_all(kernel, 1, arguments)
    wide = w * np.repeat(s, 64, axis=0)[:k]
    assert np.array_equal(c, (a.astype("f4") * v[::step]) @ wide)
    assert np.array_equal(r[:, 0], a.astype("f4").sum(axis=1))


@pytest.mark.parametrize("low", [np.float16, ml_dtypes.bfloat16], ids=["f16", "bf16"])
@pytest.mark.parametrize("narrow", [np.int8, np.uint8])
def test_bytes_that_lie_along_columns_of_the_right_operand(backends: Backends, narrow: Any, low: Any) -> None:
    """All bytes, whole and as the upper half of each."""

    @ct.kernel
    def kernel(A, W, C, D):
        whole, half = ct.zeros((128, 128), dtype=ct.float32), ct.zeros((128, 128), dtype=ct.float32)
        for k in range(ct.num_tiles(A, axis=1, shape=(128, 64))):
            a = ct.load(A, index=(0, k), shape=(128, 64), padding_mode=ZERO)
            w = ct.load(W, index=(k, 0), shape=(64, 128), padding_mode=ZERO)
            whole = ct.mma(a, w.astype(A.dtype), whole)
            half = ct.mma(a, (w >> 4).astype(A.dtype), half)
        ct.store(C, index=(0, 0), tile=whole)
        ct.store(D, index=(0, 0), tile=half)

    a, w = integers(1, 128, 128, dtype=low), np.arange(1 << 14).reshape(128, 128).astype(np.uint8).view(narrow)
    _, _, c, d = run(backends, kernel, 1, a, w, f32(128, 128), f32(128, 128))
    assert np.array_equal(c, a.astype("f4") @ w.astype("f4"))
    assert np.array_equal(d, a.astype("f4") @ (w >> 4).astype("f4"))
