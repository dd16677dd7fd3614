"""Gathered operands of matrix products: rows at indices, masked, outside of the array, from tables in memory."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from harness import Backends, Tolerance

from tilewright import tile as ct

DTYPES = [np.float16, ml_dtypes.bfloat16, np.float32, np.int8]


def integers(seed: int, *shape: int, dtype: Any = np.float16) -> np.ndarray:
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(dtype)


def run(backends: Backends, kernel: Any, grid: Any, *args: Any) -> list[Any]:
    return backends.run_all(kernel, grid, lambda: [x.copy() if isinstance(x, np.ndarray) else x for x in args])


def rows_of(a: np.ndarray, rows: np.ndarray, valid: np.ndarray | None = None) -> np.ndarray:
    """a[rows] as 64-bit numbers, zeros for rows that are not there."""
    inside = (rows >= 0) & (rows < len(a)) & (True if valid is None else valid)
    return np.where(inside[:, None], a.astype("f8")[np.where(inside, rows, 0)], 0)


@ct.kernel
def by_rows(A, ROWS, B, C, COUNT, TM: ct.Constant, TN: ct.Constant, TK: ct.Constant):
    i, j = ct.bid(0), ct.bid(1)
    place = i * TM + ct.arange(TM, dtype=ct.int32)
    rows = ct.gather(ROWS, place, padding_value=-1)
    accumulator = ct.int32 if A.dtype == ct.int8 else ct.float32
    acc = ct.zeros((TM, TN), dtype=accumulator)
    for k in range(ct.num_tiles(A, axis=1, shape=(TM, TK))):
        columns = k * TK + ct.arange(TK, dtype=ct.int32)
        a = ct.gather(A, (rows[:, None], columns[None, :]), mask=(place < COUNT)[:, None])
        b = ct.load(B, index=(j, k), shape=(TN, TK), padding_mode=ct.PaddingMode.ZERO)
        acc = ct.mma(a, b.T, acc)
    ct.store(C, index=(i, j), tile=acc)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("tiles", [(64, 64, 64), (128, 64, 32), (16, 32, 16)], ids=str)
def test_rows_at_indices(backends: Backends, tiles: tuple[int, int, int], dtype: Any) -> None:
    """Ragged in every direction; some rows are masked, some negative, some past the end."""
    a, b = integers(1, 50, 80, dtype=dtype), integers(2, 72, 80, dtype=dtype)
    rows = np.random.default_rng(3).integers(-9, 60, 150).astype(np.int32)
    rows[:4] = -1, 49, 50, np.iinfo(np.int32).min
    rows[-1] = np.iinfo(np.int32).max
    c = np.zeros((150, 72), np.int32 if dtype == np.int8 else np.float32)
    grid = -(-150 // tiles[0]), -(-72 // tiles[1])
    found = run(backends, by_rows, grid, a, rows, b, c, 140, *tiles)[3]
    assert np.array_equal(found, rows_of(a, rows, np.arange(150) < 140) @ b.astype("f8").T)


@pytest.mark.parametrize("dtype", [np.float16, np.int8], ids=lambda d: np.dtype(d).name)
def test_rows_that_a_warpgroup_gathers(backends: Backends, dtype: Any) -> None:
    """Eight warps compute, others gather; several tiles of the result for each block."""
    a, b = integers(1, 50, 336, dtype=dtype), integers(2, 264, 336, dtype=dtype)
    rows = np.random.default_rng(3).integers(-9, 60, 136).astype(np.int32)
    c = np.zeros((136, 264), np.int32 if dtype == np.int8 else np.float32)
    found = run(backends, by_rows, (2, 2), a, rows, b, c, 130, 128, 256, 64)[3]
    assert np.array_equal(found, rows_of(a, rows, np.arange(136) < 130) @ b.astype("f8").T)


def test_rows_that_a_branch_chooses(backends: Backends) -> None:
    """No warps of their own can gather at tiles that a branch passes on, though the kernel is persistent for them."""

    @ct.kernel(num_warps=8)
    def kernel(A, ROWS, B, C):
        i = ct.bid(0)
        rows = i * 128 + ct.arange(128, dtype=ct.int32)
        if i > 0:
            rows = ct.gather(ROWS, rows, padding_value=-1)
        acc = ct.zeros((128, 64), dtype=ct.float32)
        for k in range(ct.num_tiles(A, axis=1, shape=(128, 64))):
            a = ct.gather(A, (rows[:, None], (k * 64 + ct.arange(64, dtype=ct.int32))[None, :]))
            acc = ct.mma(a, ct.load(B, index=(k, 0), shape=(64, 64), padding_mode=ct.PaddingMode.ZERO), acc)
        ct.store(C, index=(i, 0), tile=acc)

    a, b = integers(1, 150, 136), integers(2, 136, 64)
    rows = np.random.default_rng(3).integers(-9, 170, 256).astype(np.int32)
    found = run(backends, kernel, 2, a, rows, b, np.zeros((256, 64), np.float32))[3]
    rows[:128] = np.arange(128)
    assert np.array_equal(found, rows_of(a, rows) @ b.astype("f8"))


@pytest.mark.parametrize("width", [80, 76, 78, 77])
def test_rows_of_any_alignment(backends: Backends, width: int) -> None:
    """Rows start at multiples of 16, 8, 4 and 2 bytes."""
    a, b = integers(1, 50, width), integers(2, 64, width)
    rows = np.random.default_rng(3).integers(-9, 60, 64).astype(np.int32)
    found = run(backends, by_rows, (1, 1), a, rows, b, np.zeros((64, 64), np.float32), 64, 64, 64, 32)[3]
    assert np.array_equal(found, rows_of(a, rows) @ b.astype("f8").T)


def test_no_iterations_and_one(backends: Backends) -> None:
    for width in 0, 8:
        a, b = integers(1, 50, width), integers(2, 64, width)
        rows = np.arange(64, dtype=np.int32)
        found = run(backends, by_rows, (1, 1), a, rows, b, np.ones((64, 64), np.float32), 64, 64, 64, 32)[3]
        assert np.array_equal(found, rows_of(a, rows) @ b.astype("f8").T)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("tile", [64, 32])
def test_table_in_the_loop(backends: Backends, tile: int, transposed: bool) -> None:
    """What is gathered moves with the loop, by a table: the right operand, or its transpose; and the left one."""

    @ct.kernel
    def kernel(A, TABLE, B, C, T: ct.Constant, TRANSPOSED: ct.Constant):
        n = ct.arange(T, dtype=ct.int32)
        acc = ct.zeros((T, T), dtype=ct.float32)
        for k in range(ct.cdiv(TABLE.shape[0], T)):
            place = k * T + ct.arange(T, dtype=ct.int32)
            rows = ct.gather(TABLE, place, mask=place < TABLE.shape[0] - 3, padding_value=-1)
            a = ct.gather(A, (rows[:, None], n[None, :]))
            if TRANSPOSED:
                acc = ct.mma(ct.load(B, index=(0, k), shape=(T, T), padding_mode=ct.PaddingMode.ZERO), a, acc)
            else:
                b = ct.load(B, index=(k, 0), shape=(T, T), padding_mode=ct.PaddingMode.ZERO)
                acc = ct.mma(a.T, b, acc)
        ct.store(C, index=(0, 0), tile=acc)

    count = 5 * tile + 9
    table = np.random.default_rng(4).integers(-2, 45, count).astype(np.int32)
    a = integers(1, 40, tile)
    b = integers(2, tile, count + 7) if transposed else integers(2, count + 7, tile)
    found = run(backends, kernel, 1, a, table, b, np.zeros((tile, tile), np.float32), tile, transposed)[3]
    gathered, b = rows_of(a, table, np.arange(count) < count - 3), b.astype("f8")
    assert np.array_equal(found, b[:, :count] @ gathered if transposed else gathered.T @ b[:count])


@pytest.mark.parametrize("narrow", [False, True], ids=["f32", "tf32"])
@pytest.mark.parametrize("index", ["scattered", "wrapped", "flat"])
def test_columns_without_neighbours(backends: Backends, index: str, narrow: bool) -> None:
    """No two elements are known to lie side by side; each has four bytes, which is enough to be copied."""

    @ct.kernel
    def kernel(A, COLUMNS, B, C, N: ct.Constant, INDEX: ct.Constant, NARROW: ct.Constant):
        columns = ct.bid(0) * 64 + ct.arange(64, dtype=ct.int32)
        acc = ct.zeros((64, 64), dtype=ct.float32)
        for k in range(ct.num_tiles(A, axis=1, shape=(64, 32))):
            rows = k * 32 + ct.arange(32, dtype=ct.int32)
            a = ct.load(A, index=(0, k), shape=(64, 32), padding_mode=ct.PaddingMode.ZERO)
            if INDEX == "scattered":
                b = ct.gather(B, (rows[:, None], ct.gather(COLUMNS, columns)[None, :]))
            elif INDEX == "wrapped":
                b = ct.gather(B, (rows[:, None], (columns % N)[None, :]))
            else:
                b = ct.gather(B, rows[:, None] * N + columns[None, :], mask=(columns < N)[None, :])
            if NARROW:
                acc = ct.mma(a.astype(ct.tfloat32), b.astype(ct.tfloat32), acc)
            else:
                acc = ct.mma(a, b, acc)
        ct.store(C, index=(0, ct.bid(0)), tile=acc)

    a, b = integers(1, 64, 80, dtype=np.float32), integers(2, 80, 77, dtype=np.float32)
    table = np.random.default_rng(3).permutation(77).astype(np.int32)
    array = b.reshape(-1) if index == "flat" else b
    found = run(backends, kernel, 2, a, table, array, np.zeros((64, 77), np.float32), 77, index, narrow)[3]
    assert np.array_equal(found, a @ (b[:, table] if index == "scattered" else b))


def test_table_of_tables(backends: Backends) -> None:
    @ct.kernel
    def kernel(A, OUTER, INNER, B, C):
        acc = ct.zeros((64, 64), dtype=ct.float32)
        columns = ct.arange(64, dtype=ct.int32)
        for k in range(INNER.shape[0] // 64):
            place = ct.gather(INNER, k * 64 + ct.arange(64, dtype=ct.int32), padding_value=-1)
            rows = ct.gather(OUTER, place, padding_value=-1)
            a = ct.gather(A, (rows[:, None], columns[None, :]))
            acc = ct.mma(ct.load(B, index=(0, k), shape=(64, 64)), a, acc)
        ct.store(C, index=(0, 0), tile=acc)

    random = np.random.default_rng(5)
    inner, outer = random.integers(-3, 50, 256).astype(np.int32), random.integers(-3, 33, 47).astype(np.int32)
    a, b = integers(1, 30, 64), integers(2, 64, 256)
    found = run(backends, kernel, 1, a, outer, inner, b, np.zeros((64, 64), np.float32))[4]
    inside = (inner >= 0) & (inner < 47)
    assert np.array_equal(found, b.astype("f8") @ rows_of(a, np.where(inside, outer[np.where(inside, inner, 0)], -1)))


def test_operand_is_used_elementwise_too(backends: Backends) -> None:
    @ct.kernel
    def kernel(A, ROWS, C, S):
        acc, total = ct.zeros((64, 64), dtype=ct.float32), ct.zeros((64, 1), dtype=ct.float32)
        rows = ct.gather(ROWS, ct.arange(64, dtype=ct.int32))
        for k in range(ct.num_tiles(A, axis=1, shape=(64, 32))):
            columns = k * 32 + ct.arange(32, dtype=ct.int32)
            a = ct.gather(A, (rows[:, None], columns[None, :]))
            total = total + ct.sum(a.astype(ct.float32), axis=1, keepdims=True)
            acc = ct.mma(a, a.T, acc)
        ct.store(C, index=(0, 0), tile=acc)
        ct.store(S, index=(0, 0), tile=total)

    a, rows = integers(1, 40, 72), np.random.default_rng(4).integers(0, 40, 64).astype(np.int32)
    _, _, c, s = run(backends, kernel, 1, a, rows, np.zeros((64, 64), np.float32), np.zeros((64, 1), np.float32))
    wide = a.astype("f4")[rows]
    assert np.array_equal(c, wide @ wide.T)
    assert np.array_equal(s[:, 0], wide.sum(axis=1))


def test_padding_that_is_not_zero(backends: Backends) -> None:
    @ct.kernel
    def kernel(A, ROWS, B, C):
        rows = ct.gather(ROWS, ct.arange(64, dtype=ct.int32))
        acc = ct.zeros((64, 64), dtype=ct.float32)
        for k in range(2):
            columns = k * 64 + ct.arange(64, dtype=ct.int32)
            a = ct.gather(A, (rows[:, None], columns[None, :]), padding_value=1)
            acc = ct.mma(a, ct.load(B, index=(k, 0), shape=(64, 64)), acc)
        ct.store(C, index=(0, 0), tile=acc)

    a, b, rows = integers(1, 40, 120), integers(2, 128, 64), np.arange(-20, 44, dtype=np.int32)
    wide = np.ones((64, 128))
    wide[20:60, :120] = a
    assert np.array_equal(
        run(backends, kernel, 1, a, rows, b, np.zeros((64, 64), np.float32))[3], wide @ b.astype("f8")
    )


def test_array_that_the_loop_writes(backends: Backends) -> None:
    """Rows that an iteration gathers are those that the one before has written."""

    @ct.kernel
    def kernel(A, B, N: ct.Constant):
        rows, columns = ct.arange(64, dtype=ct.int32)[:, None], ct.arange(64, dtype=ct.int32)[None, :]
        b = ct.load(B, index=(0, 0), shape=(64, 64))
        for k in range(N):
            a = ct.gather(A, ((k * 64 + rows) % (N * 64), columns))
            c = ct.mma(a, b, ct.zeros((64, 64), dtype=ct.float32))
            ct.scatter(A, ((k + 1) * 64 + rows, columns), c.astype(A.dtype))

    a, b = np.zeros((256, 64), np.float16), np.roll(np.eye(64, dtype=np.float16), 1, axis=1)
    a[:64] = integers(1, 64, 64)
    found = run(backends, kernel, 1, a, b, 3)[0]
    for k in range(4):
        assert np.array_equal(found[64 * k : 64 * k + 64], np.roll(a[:64], k, axis=1))


@ct.kernel
def by_pages(A, TABLE, B, C, PAGE: ct.Constant, TM: ct.Constant, TN: ct.Constant, TK: ct.Constant):
    i = ct.bid(0)
    place = i * TM + ct.arange(TM, dtype=ct.int32)
    page = ct.gather(TABLE, place // PAGE, padding_value=-1)
    acc = ct.zeros((TM, TN), dtype=ct.float32)
    for k in range(ct.num_tiles(A, axis=2, shape=(1, TM, TK))):
        columns = k * TK + ct.arange(TK, dtype=ct.int32)
        a = ct.gather(A, (page[:, None], (place % PAGE)[:, None], columns[None, :]))
        acc = ct.mma(a, ct.load(B, index=(0, k), shape=(TN, TK), padding_mode=ct.PaddingMode.ZERO).T, acc)
    ct.store(C, index=(i, 0), tile=acc)


@pytest.mark.parametrize("page", [32, 64, 256])
@pytest.mark.parametrize("tile", [64, 128])
def test_rows_in_pages(backends: Backends, tile: int, page: int) -> None:
    """Tiles of several pages, of one, and parts of one; pages that are not there are zeros."""
    a, b = integers(1, 5, page, 80), integers(2, 64, 80)
    table = np.array([3, -1, 0, 5, 4, np.iinfo(np.int32).max, 1, np.iinfo(np.int32).min, 2], np.int32)
    c = np.zeros((9 * page, 64), np.float32)
    found = run(backends, by_pages, -(-9 * page // tile), a, table, b, c, page, tile, 64, 64)[3]
    rows = table.astype("i8").repeat(page) * page + np.tile(np.arange(page), 9)
    assert np.array_equal(found, rows_of(a.reshape(-1, 80), rows) @ b.astype("f8").T)


@ct.kernel
def windows(A, ROWS, B, C, TAPS: ct.Constant, STEP: ct.Constant, TM: ct.Constant, TN: ct.Constant, TK: ct.Constant):
    """A sum of products, each of rows some places farther, and of another part of B; one loop over both and k."""
    i, j = ct.bid(0), ct.bid(1)
    rows = ct.gather(ROWS, i * TM + ct.arange(TM, dtype=ct.int32), padding_value=-1)
    chunks = ct.num_tiles(A, axis=1, shape=(TM, TK))
    acc = ct.zeros((TM, TN), dtype=ct.float32)
    for k in range(TAPS * chunks):
        columns = k % chunks * TK + ct.arange(TK, dtype=ct.int32)
        a = ct.gather(A, ((rows + STEP * (k // chunks))[:, None], columns[None, :]))
        b = ct.load(B, index=(k // chunks, j, k % chunks), shape=(1, TN, TK), padding_mode=ct.PaddingMode.ZERO)
        acc = ct.mma(a, b.reshape((TN, TK)).T, acc)
    ct.store(C, index=(i, j), tile=acc)


@pytest.mark.parametrize("step", [1, 3, -2])
@pytest.mark.parametrize("tiles", [(64, 64, 32), (128, 256, 64)], ids=str)
def test_rows_that_move_with_the_loop(backends: Backends, tiles: tuple[int, int, int], step: int) -> None:
    """Addresses are found before the loop. Sums that overflow are beyond the array, whatever they wrap to."""
    taps, m, n, width = 3, 136, 72, 80
    a, b = integers(1, 50, width), integers(2, taps, n, width)
    rows = np.random.default_rng(3).integers(-9, 60, m).astype(np.int32)
    limits = np.iinfo(np.int32)
    rows[:6] = limits.min, limits.min + 1, limits.max, limits.max - 1, limits.max - 5, -1
    c = np.zeros((m, n), np.float32)
    grid = -(-m // tiles[0]), -(-n // tiles[1])
    found = run(backends, windows, grid, a, rows, b, c, taps, step, *tiles)[3]
    moved = [rows.astype("i8") + step * t for t in range(taps)]
    exact = sum(rows_of(a, r) @ b[t].astype("f8").T for t, r in enumerate(moved))
    assert np.array_equal(found, exact)


@pytest.mark.parametrize("width", [80, 76, 77])
@pytest.mark.parametrize("dtype", [np.float16, np.float32], ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("tiles", [(64, 64), (128, 128)], ids=str)
def test_results_at_indices(backends: Backends, tiles: tuple[int, int], dtype: Any, width: int) -> None:
    """Lanes exchange what they own of a product, to store longer pieces; rows and columns end within a tile."""

    @ct.kernel
    def kernel(A, B, ROWS, C, COUNT, TM: ct.Constant, TN: ct.Constant):
        i, j = ct.bid(0), ct.bid(1)
        acc = ct.zeros((TM, TN), dtype=ct.float32)
        for k in range(ct.num_tiles(A, axis=1, shape=(TM, 64))):
            a = ct.load(A, index=(i, k), shape=(TM, 64), padding_mode=ct.PaddingMode.ZERO)
            b = ct.load(B, index=(j, k), shape=(TN, 64), padding_mode=ct.PaddingMode.ZERO)
            acc = ct.mma(a, b.T, acc)
        place = i * TM + ct.arange(TM, dtype=ct.int32)
        rows = ct.gather(ROWS, place, padding_value=-1)
        columns = j * TN + ct.arange(TN, dtype=ct.int32)
        index = (rows[:, None], columns[None, :])
        ct.scatter(C, index, acc.astype(C.dtype), mask=(place < COUNT)[:, None])

    a, b = integers(1, 150, 72), integers(2, width, 72)
    rows = np.random.default_rng(3).permutation(170)[:150].astype(np.int32) - 10
    grid = -(-150 // tiles[0]), -(-width // tiles[1])
    found = run(backends, kernel, grid, a, b, rows, np.ones((150, width), dtype), 140, *tiles)[3]
    wanted = np.ones((150, width), dtype)
    stored = (rows >= 0) & (rows < 150) & (np.arange(150) < 140)
    wanted[rows[stored]] = (a.astype("f8") @ b.astype("f8").T)[stored]
    assert np.array_equal(found, wanted)


def test_turns_of_warpgroups_where_values_are_masked(backends: Backends) -> None:
    """A mask changes its layout through shared memory, where all threads meet, while one group waits for its turn."""
    rows, columns, depth = 128, 64, 64

    @ct.kernel
    def kernel(Q, K, V, Z, n):
        q = ct.load(Q, (0, 0), (rows, depth)) * ct.full((), 0.5, ct.bfloat16)
        m, total = ct.full((rows, 1), -1e30, ct.float32), ct.zeros((rows, depth), ct.float32)
        for i in range(ct.cdiv(n, columns)):
            at = i * columns + ct.arange(columns, dtype=ct.int32)
            k = ct.load(K, (i, 0), (columns, depth), padding_mode=ct.PaddingMode.ZERO)
            s = ct.mma(q, k.T, ct.zeros((rows, columns), ct.float32))
            s = ct.where((at < n)[None, :], s, -1e30)
            new = ct.maximum(m, ct.max(s, axis=1, keepdims=True))
            p = ct.exp2(s - new)
            total = total * ct.exp2(m - new)
            m = new
            v = ct.gather(V, (at[:, None], ct.arange(depth, dtype=ct.int32)[None, :]), mask=(at < n)[:, None])
            total = total + ct.mma(p.astype(ct.bfloat16), v, ct.zeros((rows, depth), ct.float32))
        ct.store(Z, (0, 0), total)

    n = 80
    random = np.random.default_rng(3)
    q, k, v = (random.standard_normal((count, depth)).astype(ml_dtypes.bfloat16) / 4 for count in (rows, n, n))
    backends.run_all(
        kernel, 1, lambda: [q, k, v, np.zeros((rows, depth), np.float32), n], tolerance=Tolerance(absolute=0.05)
    )


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("along", ["rows", "columns"])
@pytest.mark.parametrize("first", [0, -64, 3])
def test_words_that_neighbours_share(backends: Backends, first: int, along: str, masked: bool) -> None:
    """A part of a word each, at words before the array, in it and behind it; by a quotient, and by a shift."""

    @ct.kernel
    def kernel(W, Y, FIRST: ct.Constant, COLUMNS: ct.Constant, COUNT):
        i = ct.bid(0)
        at = FIRST + i * 64 + ct.arange(64, dtype=ct.int32)
        other = ct.arange(32, dtype=ct.int32)
        word, part = (at // 8, at % 8) if COLUMNS else (at >> 3, at & 7)
        if COLUMNS:
            index, shift = (other[:, None], word[None, :]), (part * 4)[None, :]
        else:
            index, shift = (word[:, None], other[None, :]), (part * 4)[:, None]
        mask = (other < COUNT)[:, None] if COLUMNS else (other < COUNT)[None, :]
        words = ct.gather(W, index, mask=mask)
        ct.store(Y, (0, i) if COLUMNS else (i, 0), ((words >> shift) & 15).astype(ct.bfloat16))

    columns = along == "columns"
    words = np.random.default_rng(5).integers(-(2**31), 2**31, (20, 29)).astype(np.int32)
    given, y = (words.T.copy() if columns else words), np.zeros((192, 32), ml_dtypes.bfloat16)
    count = 17 if masked else 32
    found = run(backends, kernel, 3, given, y.T.copy() if columns else y, first, columns, count)[1]
    at, wanted = first + np.arange(192), np.zeros((192, 32))
    inside = (at >= 0) & (at < 160)
    bits = words[np.where(inside, at // 8, 0)].astype("i8") >> (at % 8 * 4)[:, None] & 15
    wanted[inside, : min(count, 29)] = bits[inside, :count]
    assert np.array_equal((found.T if columns else found).astype("f8"), wanted)


@pytest.mark.parametrize("order", [(0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)], ids=str)
def test_tiles_that_are_turned(backends: Backends, order: tuple[int, int, int]) -> None:
    """Tile axis d is counted along by the index of array axis order[d]; the array ends within the tile."""
    shape = (4, 8, 16)
    tile = tuple(shape[axis] for axis in order)

    @ct.kernel
    def kernel(X, Y):
        i = ct.bid(0)
        index = ()
        for axis in ct.static_iter(range(3)):
            ones = tuple(shape[axis] if order[d] == axis else 1 for d in range(3))
            count = ct.arange(shape[axis], dtype=ct.int32)
            index = (*index, (count + i * shape[axis] if axis == 0 else count).reshape(ones))
        ct.store(Y, (i, 0, 0, 0), ct.gather(X, index).reshape((1, *tile)))

    x = np.random.default_rng(7).standard_normal((7, 8, 13)).astype(np.float32)
    padded = np.zeros((8, 8, 16), np.float32)
    padded[:7, :, :13] = x
    found = run(backends, kernel, 2, x, np.ones((2, *tile), np.float32))[1]
    assert np.array_equal(found, padded.reshape(2, *shape).transpose(0, *(1 + axis for axis in order)))
