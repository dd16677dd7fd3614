"""Results of products on their way to memory: what a GPU writes by way of shared memory arrives whole, and nothing
beside it changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import Backends

from tilewright import tile as ct

ZERO = ct.PaddingMode.ZERO
MARGIN = 16


@ct.kernel
def product(A, B, C, TM: ct.Constant[int], TN: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((TM, TN), dtype=ct.float32)
    for k in range(ct.num_tiles(A, axis=1, shape=(TM, 64))):
        a = ct.load(A, index=(i, k), shape=(TM, 64), padding_mode=ZERO)
        acc = ct.mma(a, ct.load(B, index=(k, j), shape=(64, TN), padding_mode=ZERO), acc)
    ct.store(C, index=(i, j), tile=acc.astype(C.dtype))


eight_warps = ct.kernel(num_warps=8)(product.function)


def integers(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(np.float16)


def run(backends: Backends, a: Any, b: Any, dtype: Any, tiles: Any, turned: bool, kernel: Any = product) -> None:
    m, n = len(a), b.shape[1]
    grid = (-(-m // tiles[0]), -(-n // tiles[1]))

    def fresh() -> list[Any]:
        whole = np.full((m + MARGIN, n + MARGIN), 7, dtype, order="F" if turned else "C")
        return [a, b, whole[:m, :n], *tiles]

    c = backends.run_all(kernel, grid, fresh)[2]
    assert np.array_equal(c, (a.astype("f4") @ b.astype("f4")).astype(dtype))
    assert (c.base[m:] == 7).all() and (c.base[:, n:] == 7).all()


# One box, and several; inside, and over both edges of the array.
@pytest.mark.parametrize("tiles", [(64, 32), (64, 64), (64, 256), (128, 64), (128, 128)])
@pytest.mark.parametrize("ragged", [False, True])
def test_tiles(backends: Backends, tiles: tuple[int, int], ragged: bool) -> None:
    m, n = (tiles[0] + 24, tiles[1] + 40) if ragged else tiles
    run(backends, integers(1, m, 72), integers(2, 72, n), np.float16, tiles, False)


# Warpgroups below and beside each other, each with boxes of its own.
@pytest.mark.parametrize("tiles", [(128, 64), (128, 128), (64, 128), (256, 64)])
def test_two_warpgroups(backends: Backends, tiles: tuple[int, int]) -> None:
    m, n = tiles[0] + 72, tiles[1] + 40
    run(backends, integers(6, m, 72), integers(7, 72, n), np.float16, tiles, False, eight_warps)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32])
@pytest.mark.parametrize("turned", [False, True])
def test_dtypes_and_orders(backends: Backends, dtype: Any, turned: bool) -> None:
    run(backends, integers(3, 88, 64), integers(4, 64, 104), dtype, (64, 64), turned)


@ct.kernel
def twice(A, C, D):
    """Two results, one of them read again, and a store in a loop."""
    i = ct.bid(0)
    acc = ct.zeros((64, 64), dtype=ct.float32)
    for k in range(ct.num_tiles(A, axis=1, shape=(64, 64))):
        a = ct.load(A, index=(i, k), shape=(64, 64), padding_mode=ZERO)
        acc = ct.mma(a, a.T, acc)
    ct.store(C, index=(i, 0), tile=acc.astype(C.dtype))
    ct.store(D, index=(i, 0), tile=acc.astype(D.dtype))
    for j in range(1, 3):
        again = ct.load(D, index=(i, j - 1), shape=(64, 64))
        ct.store(D, index=(i, j), tile=again + again)


def test_what_is_read_again(backends: Backends) -> None:
    a = np.random.default_rng(5).integers(-1, 2, (128, 64)).astype(np.float16)
    fresh = lambda: [a, np.zeros((128, 64), np.float16), np.zeros((128, 192), np.float16)]  # noqa: E731
    _, c, d = backends.run_all(twice, 2, fresh)
    blocks = a.astype("f4").reshape(2, 64, 64)
    expected = (blocks @ blocks.swapaxes(1, 2)).reshape(128, 64)
    assert np.array_equal(c, expected)
    assert np.array_equal(d, np.concatenate([expected, 2 * expected, 4 * expected], axis=1))


@ct.kernel
def half_tiles(A, B, C, TM: ct.Constant[int], TN: ct.Constant[int], APART: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    left, right = ct.zeros((TM, TN), dtype=ct.float32), ct.zeros((TM, TN), dtype=ct.float32)
    for k in range(ct.num_tiles(A, axis=1, shape=(TM, 64))):
        a = ct.load(A, index=(i, k), shape=(TM, 64), padding_mode=ZERO)
        left = ct.mma(a, ct.load(B, index=(k, 2 * j), shape=(64, TN), padding_mode=ZERO), left)
        right = ct.mma(a, ct.load(B, index=(k, 2 * j + 1), shape=(64, TN), padding_mode=ZERO), right)
    ct.store(C, index=(i, 2 * j), tile=left.astype(C.dtype))
    ct.store(C, index=(i, 2 * j + APART), tile=right.astype(C.dtype))


# Two tiles of one array, of which the second may be stored over the first.
@pytest.mark.parametrize("tiles", [(64, 64), (128, 128), (64, 8)])
@pytest.mark.parametrize("apart", [0, 1])
def test_half_tiles(backends: Backends, tiles: tuple[int, int], apart: int) -> None:
    m, n = tiles[0] * 2 + 24, tiles[1] * 4
    a, b = integers(3, m, 136), integers(4, 136, n)
    c = backends.run_all(half_tiles, (3, 2), lambda: [a, b, np.full((m, n), 7, np.float16), *tiles, apart])[2]
    wanted = (a.astype("f4") @ b.astype("f4")).reshape(m, 2, 2, tiles[1])
    if apart == 0:
        wanted = np.stack([wanted[:, :, 1], np.full_like(wanted[:, :, 1], 7)], 2)
    assert np.array_equal(c, wanted.reshape(m, n))
