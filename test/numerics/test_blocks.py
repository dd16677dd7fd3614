"""Grids of kernels with a product loop, whose blocks the GPU back end numbers anew and may run several of in one: every
block runs once, at its own position."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import Backends

from tilewright import tile as ct

ZERO = ct.PaddingMode.ZERO
T = 64


def integers(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(np.float16)


@ct.kernel
def plane(A, B, C, N):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((T, T), dtype=ct.float32)
    for k in range(ct.num_tiles(A, axis=1, shape=(T, T))):
        a = ct.load(A, index=(i, k), shape=(T, T), padding_mode=ZERO)
        acc = ct.mma(a, ct.load(B, index=(k, j), shape=(T, T), padding_mode=ZERO), acc)
    ct.store(C, index=(i, j), tile=acc)
    seen = ct.load(N, index=(i, j), shape=(1, 1)) + ct.num_blocks(0) * 100 + ct.num_blocks(1) * 10 + ct.num_blocks(2)
    ct.store(N, index=(i, j), tile=seen)


# Grids lower than a group of rows, with a last group that is lower, of one row, of one column.
@pytest.mark.parametrize("rows, columns", [(1, 1), (3, 5), (1, 7), (19, 1), (18, 2)])
def test_plane(backends: Backends, rows: int, columns: int) -> None:
    a, b = integers(1, rows * T - 3, 40), integers(2, 40, columns * T - 8)
    fresh = lambda: [a, b, np.zeros((len(a), b.shape[1]), "f4"), np.zeros((rows, columns), "i4")]  # noqa: E731
    _, _, c, n = backends.run_all(plane, (rows, columns), fresh)
    assert np.array_equal(c, a.astype("f4") @ b.astype("f4"))
    assert (n == rows * 100 + columns * 10 + 1).all()


@ct.kernel
def batched(A, B, C, ORDER: ct.Constant[tuple]):
    b, i, j = ct.bid(ORDER[0]), ct.bid(ORDER[1]), ct.bid(ORDER[2])
    acc = ct.zeros((T, T), dtype=ct.float32)
    for k in range(ct.num_tiles(A, axis=2, shape=(1, T, T))):
        x = ct.load(A, index=(b, i, k), shape=(1, T, T), padding_mode=ZERO).reshape((T, T))
        y = ct.load(B, index=(b, k, j), shape=(1, T, T), padding_mode=ZERO).reshape((T, T))
        acc = ct.mma(x, y, acc)
    ct.store(C, index=(b, i, j), tile=acc.reshape((1, T, T)))


@pytest.mark.parametrize("order", [(2, 0, 1), (0, 1, 2), (1, 2, 0)])
def test_batch_along_any_axis(backends: Backends, order: Any) -> None:
    extents = {order[0]: 3, order[1]: 2, order[2]: 2}
    a, b = integers(3, 3, 2 * T, 72), integers(4, 3, 72, 2 * T)
    fresh = lambda: [a, b, np.zeros((3, 2 * T, 2 * T), "f4"), order]  # noqa: E731
    c = backends.run_all(batched, tuple(extents[axis] for axis in range(3)), fresh)[2]
    assert np.array_equal(c, a.astype("f4") @ b.astype("f4"))


@ct.kernel
def numbered(A, B, C):
    """One axis, whose blocks the program places itself; the loop's length depends on the block."""
    v = ct.bid(0)
    i, j = v % 3, v // 3
    acc = ct.zeros((T, T), dtype=ct.float32)
    for k in range(i + 1):
        a = ct.load(A, index=(i, k), shape=(T, T), padding_mode=ZERO)
        acc = ct.mma(a, ct.load(B, index=(k, j), shape=(T, T), padding_mode=ZERO), acc)
    ct.store(C, index=(i, j), tile=acc)


def test_uneven_blocks_of_one_axis(backends: Backends) -> None:
    a, b = integers(5, 3 * T, 3 * T), integers(6, 3 * T, 2 * T)
    c = backends.run_all(numbered, 6, lambda: [a, b, np.zeros((3 * T, 2 * T), "f4")])[2]
    lower = a.astype("f4") * (np.arange(3 * T)[:, None] // T >= np.arange(3 * T)[None, :] // T)
    assert np.array_equal(c, lower @ b.astype("f4"))


@ct.kernel
def small(X, Y, N):
    """A block is one warp: four are started as one (lowering/gpu/grid/pack_blocks.c)."""
    i, j, k = ct.bid(0), ct.bid(1), ct.bid(2)
    x = ct.load(X, index=(k, j, i), shape=(1, 1, T), padding_mode=ZERO)
    ct.store(Y, index=(k, j, i), tile=x + ct.sum(x, axis=2, keepdims=True))
    seen = ct.load(N, index=(k, j, i), shape=(1, 1, 1)) + ct.num_blocks(0) * 100 + ct.num_blocks(1) * 10
    ct.store(N, index=(k, j, i), tile=seen + ct.num_blocks(2))


# Few blocks, and enough for rows of them on any GPU, with a last row that is not full.
@pytest.mark.parametrize("grid", [(1, 1, 1), (7, 2, 3), (4, 1, 1), (61, 9, 5)])
def test_blocks_of_one_warp(backends: Backends, grid: tuple[int, int, int]) -> None:
    x, shape = integers(5, *grid[::-1][:2], grid[0] * T - 3), grid[::-1]
    _, y, n = backends.run_all(small, grid, lambda: [x, np.zeros_like(x), np.zeros(shape, "i4")])
    sums = np.add.reduceat(x.astype("f4"), np.arange(0, x.shape[2], T), axis=2).repeat(T, axis=2)[..., : x.shape[2]]
    assert np.array_equal(y, (x + sums).astype(np.float16))
    assert (n == grid[0] * 100 + grid[1] * 10 + grid[2]).all()


@ct.kernel
def triangle(A, B, C, FALLS: ct.Constant[int]):
    """Blocks have more to do from column to column, or less."""
    i, b = ct.bid(0), ct.bid(1)
    acc = ct.zeros((T, T), dtype=ct.float32)
    for k in range(i * FALLS, ct.num_blocks(0) * FALLS + (i + 1) * (1 - FALLS)):
        x = ct.load(A, index=(b, i, k), shape=(1, T, T), padding_mode=ZERO).reshape((T, T))
        y = ct.load(B, index=(b, k, 0), shape=(1, T, T), padding_mode=ZERO).reshape((T, T))
        acc = ct.mma(x, y, acc)
    ct.store(C, index=(b, i, 0), tile=acc.reshape((1, T, T)))


# Fewer rows than a group has, a whole group, and a group and some.
@pytest.mark.parametrize("falls", [0, 1])
@pytest.mark.parametrize("rows, columns", [(3, 3), (4, 5), (6, 3), (9, 1)])
def test_longest_blocks_first(backends: Backends, rows: int, columns: int, falls: int) -> None:
    a, b = integers(7, rows, columns * T, columns * T), integers(8, rows, columns * T, T)
    c = backends.run_all(triangle, (columns, rows), lambda: [a, b, np.zeros((rows, columns * T, T), "f4"), falls])[2]
    at = np.arange(columns * T) // T
    seen = at[:, None] <= at if falls else at[:, None] >= at
    assert np.array_equal(c, (a.astype("f4") * seen) @ b.astype("f4"))


@ct.kernel
def turned(X, Y, N, TM: ct.Constant[int], TN: ct.Constant[int]):
    """Blocks that follow what they store: axis 1 of the grid is the one along which it lies side by side."""
    j, i, b = ct.bid(0), ct.bid(1), ct.bid(2)
    x = ct.load(X, index=(b, i, j), shape=(1, TM, TN), padding_mode=ZERO)
    ct.store(Y, index=(b, j, i), tile=ct.permute(x, (0, 2, 1)))
    seen = ct.num_blocks(0) * 100 + ct.num_blocks(1) * 10 + ct.num_blocks(2)
    ct.store(N, index=(b, j, i), tile=ct.full((1, 1, 1), seen, dtype=ct.int32))


# Blocks of several warps, and of one, which are started several at a time.
@pytest.mark.parametrize("tiles, warps", [((32, 64), 4), ((8, 16), 1)])
@pytest.mark.parametrize("grid", [(1, 1, 1), (1, 7, 1), (5, 1, 2), (9, 4, 3)])
def test_blocks_follow_stores(backends: Backends, grid: tuple[int, int, int], tiles: Any, warps: int) -> None:
    columns, rows, batches = grid
    x = integers(9, batches, rows * tiles[0] - 3, columns * tiles[1] - 5)
    kernel = turned.replace_hints(num_warps=warps)
    y, n = np.zeros((batches, x.shape[2], x.shape[1]), np.float16), np.zeros((batches, columns, rows), "i4")
    _, y, n, *_ = backends.run_all(kernel, grid, lambda: [x, y.copy(), n.copy(), *tiles])
    assert np.array_equal(y, x.transpose(0, 2, 1))
    assert (n == columns * 100 + rows * 10 + batches).all()


@ct.kernel
def along_axis_1(X, SEEN):
    """What only moves memory, and stores side by side along axis 1."""
    i, j, k = ct.bid(0), ct.bid(1), ct.bid(2)
    x = ct.load(X, index=(k, i, j), shape=(1, 1, 8))
    ct.store(SEEN, index=(k, i, j), tile=x + (ct.num_blocks(0) * 100 + ct.num_blocks(1) * 10 + ct.num_blocks(2)))


@pytest.mark.parametrize("grid", [(3, 5, 2), (1, 4, 1), (4, 1, 1)], ids=str)
def test_blocks_that_run_along_axis_1(backends: Backends, grid: tuple[int, int, int]) -> None:
    x = np.arange(grid[0] * grid[1] * grid[2] * 8, dtype="i4").reshape(grid[2], grid[0], grid[1] * 8)
    seen = backends.run_all(along_axis_1, grid, lambda: [x, np.zeros_like(x)])[1]
    assert np.array_equal(seen, x + grid[0] * 100 + grid[1] * 10 + grid[2])
