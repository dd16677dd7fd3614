"""Kernels whose copies a producer warp can run ahead of: every nesting of loops, branches and products around them.

Sizes are such that operands lie in 128-byte lines, which the tensor memory accelerator and warpgroups take.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import Backends

from tilewright import tile as ct

ZERO = ct.PaddingMode.ZERO


def integers(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(np.float16)


def f32(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def run(backends: Backends, kernel: Any, grid: Any, *args: Any) -> list[Any]:
    return backends.run_all(kernel, grid, lambda: [x.copy() if isinstance(x, np.ndarray) else x for x in args])


@ct.kernel
def matmul(A, B, C, TM: ct.Constant[int], TN: ct.Constant[int], TK: ct.Constant[int], start, stop):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((TM, TN), dtype=ct.float32)
    for k in range(start, stop):
        a = ct.load(A, index=(i, k), shape=(TM, TK), padding_mode=ZERO)
        b = ct.load(B, index=(k, j), shape=(TK, TN), padding_mode=ZERO)
        acc = ct.mma(a, b, acc)
    ct.store(C, index=(i, j), tile=acc)


@pytest.mark.parametrize("tiles", [(64, 64, 64), (128, 64, 64), (128, 128, 64), (64, 128, 128)])
@pytest.mark.parametrize(("m", "n", "k"), [(128, 128, 64), (136, 200, 72), (64, 264, 840)])
def test_matmul(backends: Backends, tiles: tuple[int, int, int], m: int, n: int, k: int) -> None:
    a, b = integers(1, m, k), integers(2, k, n)
    grid = (ct.cdiv(m, tiles[0]), ct.cdiv(n, tiles[1]))
    c = run(backends, matmul, grid, a, b, f32(m, n), *tiles, 0, ct.cdiv(k, tiles[2]))[2]
    assert np.array_equal(c, a.astype("f4") @ b.astype("f4"))


def test_loop_of_int64(backends: Backends) -> None:
    """The teams count its iterations."""
    a, b = integers(1, 136, 200), integers(2, 200, 72)
    c = run(backends, matmul, (2, 1), a, b, f32(136, 72), 128, 128, 64, 0, np.int64(4))[2]
    assert np.array_equal(c, a.astype("f4") @ b.astype("f4"))


@ct.kernel
def two_and_sums(A, B, C, SUMS, T: ct.Constant[int]):
    """Two left operands that stay; what they are multiplied by is read by threads, too."""
    x, y = ct.load(A, index=(0, 0), shape=(T, T)), ct.load(A, index=(1, 0), shape=(T, T))
    first, second = ct.zeros((T, T), ct.float32), ct.zeros((T, T), ct.float32)
    sums = ct.zeros((T,), ct.float32)
    for k in range(ct.num_tiles(B, axis=0, shape=(T, T))):
        b = ct.load(B, index=(k, 0), shape=(T, T), padding_mode=ZERO)
        sums = sums + ct.sum(b.astype(ct.float32), axis=0)
        first, second = ct.mma(x, b, first), ct.mma(y, b, second)
    ct.store(C, index=(0, 0), tile=first)
    ct.store(C, index=(1, 0), tile=second)
    ct.store(SUMS, index=(0,), tile=sums)


def test_products_on_what_threads_read_too(backends: Backends) -> None:
    """Neither starts before its operand is there."""
    a, b = integers(1, 128, 64), integers(2, 640, 64)
    c, sums = run(backends, two_and_sums, (1,), a, b, f32(128, 64), f32(64), 64)[2:4]
    folded = b.astype("f4").reshape(10, 64, 64).sum(axis=0)
    assert np.array_equal(c, a.astype("f4") @ folded) and np.array_equal(sums, folded.sum(axis=0))


@pytest.mark.parametrize("tiles", [(64, 64, 32), (32, 64, 32), (64, 64, 64)])
def test_slots_read_by_threads(backends: Backends, tiles: tuple[int, int, int]) -> None:
    """Eight warps load their fragments themselves; so many blocks that loads queue up behind one another."""
    m, n, k = (2048, 2048, 2048) if "cuda" in backends.names else (72, 40, 800)
    a, b = integers(1, m, k), integers(2, k, n)
    grid = (ct.cdiv(m, tiles[0]), ct.cdiv(n, tiles[1]))
    kernel = matmul.replace_hints(num_warps=8)
    c = run(backends, kernel, grid, a, b, f32(m, n), *tiles, 0, ct.cdiv(k, tiles[2]))[2]
    assert np.array_equal(c, a.astype("f4") @ b.astype("f4"))


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("tiles", [(64, 64, 64), (128, 64, 64), (64, 128, 64), (128, 256, 64)])
@pytest.mark.parametrize(("m", "n", "k"), [(328, 264, 200), (64, 72, 456)])
def test_clusters(backends: Backends, tiles: tuple[int, int, int], m: int, n: int, k: int, axis: int | None) -> None:
    """Odd numbers of tiles, so that a block of a pair lies beyond the grid, which is smaller than the array."""
    a, b = integers(1, m, k), integers(2, k, n)
    grid = (max(1, m // tiles[0]), max(1, n // tiles[1]))
    kernel = matmul.replace_hints(num_ctas=1 if axis is None else 2, cluster_axis=axis)
    c = run(backends, kernel, grid, a, b, f32(m, n), *tiles, 0, ct.cdiv(k, tiles[2]))[2]
    expected = a.astype("f4") @ b.astype("f4")
    expected[grid[0] * tiles[0] :] = 0
    expected[:, grid[1] * tiles[1] :] = 0
    assert np.array_equal(c, expected)


@pytest.mark.parametrize(("start", "stop"), [(0, 0), (3, 2), (0, 1), (1, 3), (0, 13), (5, 15)])
def test_bounds_of_the_loop(backends: Backends, start: int, stop: int) -> None:
    a, b = integers(1, 64, 840), integers(2, 840, 64)
    c = run(backends, matmul, (1, 1), a, b, f32(64, 64), 64, 64, 64, start, stop)[2]
    part = slice(start * 64, stop * 64)
    assert np.array_equal(c, a[:, part].astype("f4") @ b[part].astype("f4"))


def test_loop_that_starts_from_a_tile(backends: Backends) -> None:
    @ct.kernel
    def kernel(A, B, C, D):
        acc = ct.load(D, index=(0, 0), shape=(64, 64))
        for k in range(ct.num_tiles(A, axis=1, shape=(64, 64))):
            a = ct.load(A, index=(0, k), shape=(64, 64), padding_mode=ZERO)
            acc = ct.mma(a, ct.load(B, index=(k, 0), shape=(64, 64), padding_mode=ZERO), acc)
        ct.store(C, index=(0, 0), tile=acc)

    a, b, d = integers(1, 64, 456), integers(2, 456, 64), integers(3, 64, 64).astype("f4")
    c = run(backends, kernel, 1, a, b, f32(64, 64), d)[2]
    assert np.array_equal(c, a.astype("f4") @ b.astype("f4") + d)


def test_epilogue_with_row_column_and_tile(backends: Backends) -> None:
    @ct.kernel
    def kernel(A, B, C, BIAS, SCALE, R):
        i, j = ct.bid(0), ct.bid(1)
        acc = ct.zeros((64, 64), dtype=ct.float32)
        for k in range(ct.num_tiles(A, axis=1, shape=(64, 64))):
            a = ct.load(A, index=(i, k), shape=(64, 64), padding_mode=ZERO)
            acc = ct.mma(a, ct.load(B, index=(k, j), shape=(64, 64), padding_mode=ZERO), acc)
        acc = acc + ct.load(BIAS, index=(j,), shape=(64,), padding_mode=ZERO)[None, :]
        acc = ct.maximum(acc, 0) * ct.load(SCALE, index=(i,), shape=(64,), padding_mode=ZERO)[:, None]
        r = ct.load(R, index=(i, j), shape=(64, 64), padding_mode=ZERO)
        ct.store(C, index=(i, j), tile=acc + r.astype(ct.float32))

    a, b, r = integers(1, 136, 328), integers(2, 328, 200), integers(3, 136, 200)
    bias, scale = integers(4, 200).astype("f4"), integers(5, 136).astype("f4")
    c = run(backends, kernel, (3, 4), a, b, f32(136, 200), bias, scale, r)[2]
    assert np.array_equal(c, np.maximum(a.astype("f4") @ b.astype("f4") + bias, 0) * scale[:, None] + r)


def test_two_products_in_a_loop(backends: Backends) -> None:
    @ct.kernel
    def kernel(A, B, C, OUT):
        i, j = ct.bid(0), ct.bid(1)
        s = ct.zeros((64, 64), dtype=ct.float32)
        t = ct.zeros((64, 64), dtype=ct.float32)
        for k in range(ct.num_tiles(A, axis=1, shape=(64, 64))):
            a = ct.load(A, index=(i, k), shape=(64, 64), padding_mode=ZERO)
            s = ct.mma(a, ct.load(B, index=(k, j), shape=(64, 64), padding_mode=ZERO), s)
            t = ct.mma(a, ct.load(C, index=(k, j), shape=(64, 64), padding_mode=ZERO), t)
        ct.store(OUT, index=(i, j), tile=s - 2 * t)

    a, b, c = integers(1, 128, 712), integers(2, 712, 136), integers(3, 712, 136)
    out = run(backends, kernel, (2, 3), a, b, c, f32(128, 136))[3]
    assert np.array_equal(out, a.astype("f4") @ b.astype("f4") - 2 * (a.astype("f4") @ c.astype("f4")))


def test_products_before_and_after_the_loop(backends: Backends) -> None:
    @ct.kernel
    def kernel(A, B, C):
        zero = ct.zeros((64, 64), dtype=ct.float32)
        first = ct.load(A, index=(0, 0), shape=(64, 64))
        acc = ct.mma(first, ct.load(B, index=(0, 0), shape=(64, 64)), zero)
        for k in range(1, ct.num_tiles(A, axis=1, shape=(64, 64))):
            a = ct.load(A, index=(0, k), shape=(64, 64), padding_mode=ZERO)
            acc = ct.mma(a, ct.load(B, index=(k, 0), shape=(64, 64), padding_mode=ZERO), acc)
        again = ct.mma(first, ct.load(B, index=(1, 0), shape=(64, 64)), zero)
        ct.store(C, index=(0, 0), tile=acc + again)

    a, b = integers(1, 64, 584), integers(2, 584, 64)
    c = run(backends, kernel, 1, a, b, f32(64, 64))[2]
    expected = a.astype("f4") @ b.astype("f4") + a[:, :64].astype("f4") @ b[64:128].astype("f4")
    assert np.array_equal(c, expected)


def test_loop_over_output_tiles(backends: Backends) -> None:
    @ct.kernel
    def kernel(A, B, C):
        for t in range(ct.bid(0), 3 * 4, ct.num_blocks(0)):
            i, j = t // 4, t % 4
            acc = ct.zeros((64, 64), dtype=ct.float32)
            for k in range(ct.num_tiles(A, axis=1, shape=(64, 64))):
                a = ct.load(A, index=(i, k), shape=(64, 64), padding_mode=ZERO)
                acc = ct.mma(a, ct.load(B, index=(k, j), shape=(64, 64), padding_mode=ZERO), acc)
            ct.store(C, index=(i, j), tile=acc)

    a, b = integers(1, 136, 456), integers(2, 456, 200)
    c = run(backends, kernel, 5, a, b, f32(136, 200))[2]
    assert np.array_equal(c, a.astype("f4") @ b.astype("f4"))


def test_loops_around_and_beside(backends: Backends) -> None:
    @ct.kernel
    def kernel(A, B, C, n):
        total = ct.zeros((64, 64), dtype=ct.float32)
        for j in range(n):
            b = ct.load(B, index=(0, j), shape=(64, 64), padding_mode=ZERO)
            acc = ct.zeros((64, 64), dtype=ct.float32)
            for k in range(j):
                acc = ct.mma(ct.load(A, index=(0, k), shape=(64, 64), padding_mode=ZERO), b, acc)
            total = total + ct.maximum(acc, 0)
        for k in range(n):
            a = ct.load(A, index=(0, k), shape=(64, 64), padding_mode=ZERO)
            total = ct.mma(a, ct.load(B, index=(0, k), shape=(64, 64), padding_mode=ZERO), total)
        ct.store(C, index=(0, 0), tile=total)

    n = 6
    a, b = integers(1, 64, 64 * n), integers(2, 64, 64 * n)
    c = run(backends, kernel, 1, a, b, f32(64, 64), n)[2]
    parts = [(a[:, k * 64 : k * 64 + 64].astype("f4"), b[:, k * 64 : k * 64 + 64].astype("f4")) for k in range(n)]
    expected = f32(64, 64)
    for j in range(n):
        expected += np.maximum(sum((parts[k][0] @ parts[j][1] for k in range(j)), f32(64, 64)), 0)
    for x, y in parts:
        expected += x @ y
    assert np.array_equal(c, expected)


def test_batch(backends: Backends) -> None:
    @ct.kernel
    def kernel(A, B, C):
        i, j, b = ct.bid(0), ct.bid(1), ct.bid(2)
        acc = ct.zeros((64, 64), dtype=ct.float32)
        for k in range(ct.num_tiles(A, axis=2, shape=(1, 64, 64))):
            x = ct.load(A, index=(b, i, k), shape=(1, 64, 64), padding_mode=ZERO).reshape((64, 64))
            y = ct.load(B, index=(b, k, j), shape=(1, 64, 64), padding_mode=ZERO).reshape((64, 64))
            acc = ct.mma(x, y, acc)
        ct.store(C, index=(b, i, j), tile=acc.reshape((1, 64, 64)))

    a, b = integers(1, 3, 72, 264), integers(2, 3, 264, 136)
    c = run(backends, kernel, (2, 3, 3), a, b, f32(3, 72, 136))[2]
    assert np.array_equal(c, a.astype("f4") @ b.astype("f4"))


def test_chained_products(backends: Backends) -> None:
    @ct.kernel
    def kernel(Q, K, V, Y):
        i = ct.bid(0)
        q = ct.load(Q, index=(i, 0), shape=(64, 64), padding_mode=ZERO)
        zero = ct.zeros((64, 64), dtype=ct.float32)
        acc = zero
        for j in range(ct.num_tiles(K, axis=0, shape=(64, 64))):
            k = ct.load(K, index=(j, 0), shape=(64, 64), padding_mode=ZERO)
            v = ct.load(V, index=(j, 0), shape=(64, 64), padding_mode=ZERO)
            p = ct.minimum(ct.maximum(ct.mma(q, k.T, zero), -4), 4)
            acc = ct.mma(p.astype(ct.float16), v, acc - ct.min(p, axis=1, keepdims=True))
        ct.store(Y, index=(i, 0), tile=acc)

    q, k, v = integers(1, 136, 64), integers(2, 328, 64), integers(3, 328, 64)
    y = run(backends, kernel, 3, q, k, v, f32(136, 64))[3]
    expected = f32(136, 64)
    for j in range(0, 328, 64):
        p = np.clip(q.astype("f4") @ np.pad(k[j : j + 64], ((0, max(0, j + 64 - 328)), (0, 0))).astype("f4").T, -4, 4)
        expected += p[:, : 328 - j] @ v[j : j + 64].astype("f4") - p.min(axis=1, keepdims=True)
    assert np.array_equal(y, expected)


def test_branches_and_while(backends: Backends) -> None:
    @ct.kernel
    def kernel(A, B, C, n):
        acc = ct.zeros((64, 64), dtype=ct.float32)
        k = 0
        while k < n:
            if k % 3 != 1:
                a = ct.load(A, index=(0, k), shape=(64, 64), padding_mode=ZERO)
                acc = ct.mma(a, ct.load(B, index=(k, 0), shape=(64, 64), padding_mode=ZERO), acc)
            else:
                acc = acc * 0.5
            k = k + 1 + k % 2
        ct.store(C, index=(0, 0), tile=acc)

    a, b = integers(1, 64, 1280), integers(2, 1280, 64)
    c = run(backends, kernel, 1, a, b, f32(64, 64), 20)[2]
    expected, k = f32(64, 64), 0
    while k < 20:
        part = slice(k * 64, k * 64 + 64)
        expected = expected + a[:, part].astype("f4") @ b[part].astype("f4") if k % 3 != 1 else expected * 0.5
        k += 1 + k % 2
    assert np.array_equal(c, expected)


def test_positions_from_memory(backends: Backends) -> None:
    @ct.kernel
    def kernel(A, B, T, C, n):
        acc = ct.zeros((64, 64), dtype=ct.float32)
        for k in range(n):
            at = ct.load(T, index=(k,), shape=(1,)).item()
            a = ct.load(A, index=(0, at), shape=(64, 64), padding_mode=ZERO)
            acc = ct.mma(a, ct.load(B, index=(at, 0), shape=(64, 64), padding_mode=ZERO), acc)
        ct.store(C, index=(0, 0), tile=acc)

    a, b, table = integers(1, 64, 512), integers(2, 512, 64), np.array([5, 0, 0, 7, 3, 6, 1, 5, 2], np.int32)
    c = run(backends, kernel, 1, a, b, table, f32(64, 64), 9)[3]
    columns = np.concatenate([np.arange(64) + 64 * t for t in table])
    assert np.array_equal(c, a[:, columns].astype("f4") @ b[columns].astype("f4"))


def test_what_was_stored_is_read_again(backends: Backends) -> None:
    @ct.kernel
    def kernel(A, B, n):
        for _ in range(n):
            acc = ct.zeros((64, 64), dtype=ct.float32)
            for k in range(2):
                a = ct.load(A, index=(0, k), shape=(64, 64))
                acc = ct.mma(a, ct.load(B, index=(k, 0), shape=(64, 64)), acc)
            ct.store(A, index=(0, 0), tile=(acc * 0.125).astype(ct.float16))

    a, b = integers(1, 64, 128), np.eye(128, 64, 3, dtype=np.float16) * 4
    x = run(backends, kernel, 1, a, b, 4)[0]
    expected = a.copy()
    for _ in range(4):
        expected[:, :64] = (expected.astype("f4") @ b.astype("f4") * 0.125).astype("f2")
    assert np.array_equal(x, expected)


@pytest.mark.parametrize("stages", [1, 2, 5])
def test_number_of_stages(backends: Backends, stages: int) -> None:
    a, b = integers(1, 128, 520), integers(2, 520, 128)
    kernel = ct.kernel(matmul.function, num_stages=stages)
    c = run(backends, kernel, (1, 1), a, b, f32(128, 128), 128, 128, 64, 0, 9)[2]
    assert np.array_equal(c, a.astype("f4") @ b.astype("f4"))


@pytest.mark.parametrize("odd", [False, True], ids=["boxes", "odd rows"])
@pytest.mark.parametrize("along", [0, 1], ids=["strips of rows", "strips of columns"])
@pytest.mark.parametrize(("m", "n"), [(128, 512), (130, 1000), (64, 64)])
def test_what_blocks_have_in_common(backends: Backends, m: int, n: int, along: int, odd: bool) -> None:
    """The sums of rows are found once for several blocks, each of which adds them to its operand."""

    @ct.kernel
    def kernel(A, B, C, R, ALONG: ct.Constant):
        i, j = ct.bid(ALONG), ct.bid(1 - ALONG)
        total = ct.zeros((64, 1), dtype=ct.float32)
        for k in range(ct.num_tiles(A, axis=1, shape=(64, 64))):
            a = ct.load(A, index=(i, k), shape=(64, 64), padding_mode=ct.PaddingMode.ZERO)
            total = total + ct.sum(a.astype(ct.float32), axis=1, keepdims=True)
        acc = ct.zeros((64, 64), dtype=ct.float32)
        for k in range(ct.num_tiles(A, axis=1, shape=(64, 64))):
            a = ct.load(A, index=(i, k), shape=(64, 64), padding_mode=ct.PaddingMode.ZERO)
            b = ct.load(B, index=(j, k), shape=(64, 64), padding_mode=ct.PaddingMode.ZERO)
            acc = ct.mma((a * 0.5 + total).astype(a.dtype), b.T, acc)
        ct.store(C, index=(i, j), tile=acc)
        ct.store(R, index=(i, j), tile=total)

    rng = np.random.default_rng(5)
    a, b = (2 * rng.integers(-2, 3, (rows, 136)).astype(np.float16) for rows in (m, n))
    blocks = -(-m // 64), -(-n // 64)
    c, r = np.zeros((m, n), np.float32), np.zeros((m, blocks[1]), np.float32)
    grid = blocks if along == 0 else blocks[::-1]

    def rows_of(x: np.ndarray) -> np.ndarray:
        """No tensor map describes rows of 274 bytes."""
        return np.pad(x, ((0, 0), (0, 1)))[:, :136] if odd else x.copy()

    *_, c, r = backends.run_all(kernel, grid, lambda: [rows_of(a), rows_of(b), c.copy(), r.copy(), along])[:4]
    total = a.astype("f8").sum(axis=1, keepdims=True)
    wide = np.zeros((m, 192))
    wide[:, :136] = a * 0.5
    columns = np.zeros((n, 192))
    columns[:, :136] = b
    assert np.array_equal(c, (wide + total) @ columns.T)
    assert np.array_equal(r, np.repeat(total, blocks[1], axis=1))


@pytest.mark.parametrize("stages", [None, 2])
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_a_slot_given_back_before_the_next_is_filled(backends: Backends, steps: int, stages: int | None) -> None:
    """The second product runs on, and is over at the first one's wait, in front of where the next W is asked for."""

    @ct.kernel
    def kernel(A, B, W, C):
        acc, more = ct.zeros((64, 32), dtype=ct.float32), ct.ones((64, 32), dtype=ct.float32)
        for k in range(ct.num_tiles(A, axis=1, shape=(64, 64))):
            a = ct.load(A, index=(0, k), shape=(64, 64))
            b = ct.load(B, index=(k, 0), shape=(64, 32))
            acc = ct.mma(a, b + b, acc)
            more = ct.mma(a, ct.load(W, index=(k, 0), shape=(64, 32)), more)
        ct.store(C, index=(0, 0), tile=acc + more)

    rng = np.random.default_rng(3)
    a = rng.integers(-2, 3, (64, 64 * steps)).astype(np.float16)
    b, w = (rng.integers(-2, 3, (64 * steps, 32)).astype(np.float16) for _ in range(2))
    hinted = kernel.replace_hints(num_stages=stages) if stages else kernel
    *_, c = backends.run_all(hinted, (1,), lambda: [a, b, w, np.zeros((64, 32), np.float32)])
    assert np.array_equal(c, a.astype("f8") @ (2 * b + w) + 1)
