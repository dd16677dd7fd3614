"""Loops that store in each iteration what a product gave: the next tiles may be on their way before, but not where the
array that is stored to overlaps the one that is loaded."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Backends

from tilewright import tile as ct

ZERO = ct.PaddingMode.ZERO


@ct.kernel
def rows(X, W, Y, T: ct.Constant[int], N: ct.Constant[int]):
    """Y = X @ W, a tile of rows after the other."""
    w = ct.load(W, index=(0, ct.bid(0)), shape=(T, N), padding_mode=ZERO)
    for i in range(ct.num_tiles(X, axis=0, shape=(T, T))):
        x = ct.load(X, index=(i, 0), shape=(T, T), padding_mode=ZERO)
        y = ct.mma(x, w, ct.zeros((T, N), dtype=ct.float32))
        ct.store(Y, index=(i, ct.bid(0)), tile=y.astype(Y.dtype))


@ct.kernel
def running_sum(X, W, Y, T: ct.Constant[int]):
    """Products that add up, with each sum stored: one depends on the rows' own tile, the other on all before."""
    total = ct.zeros((T, T), dtype=ct.float32)
    for i in range(ct.num_tiles(X, axis=0, shape=(T, T))):
        x = ct.load(X, index=(i, 0), shape=(T, T), padding_mode=ZERO)
        w = ct.load(W, index=(i, 0), shape=(T, T), padding_mode=ZERO)
        y = ct.mma(x, total.astype(x.dtype), ct.zeros((T, T), dtype=ct.float32))
        total = ct.mma(x.T, w, total)
        ct.store(Y, index=(i, 0), tile=y.astype(Y.dtype))


@ct.kernel
def sums_so_far(X, Y, T: ct.Constant[int]):
    """Rows are walked along a tile at a time, without products."""
    row = ct.bid(0)
    before = ct.zeros((1, 1), dtype=ct.float32)
    for i in range(ct.num_tiles(X, axis=1, shape=(1, T))):
        x = ct.load(X, index=(row, i), shape=(1, T), padding_mode=ZERO)
        ct.store(Y, index=(row, i), tile=ct.cumsum(x, axis=1) + before)
        before += ct.sum(x, axis=1, keepdims=True)


def integers(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(np.float16)


@pytest.mark.parametrize("length", [64, 200, 640])
@pytest.mark.parametrize("warps", [4, 8])
def test_apart(backends: Backends, length: int, warps: int) -> None:
    x, w = integers(1, length, 64), integers(2, 64, 128)
    kernel = rows.replace_hints(num_warps=warps)
    y = backends.run_all(kernel, (2,), lambda: [x, w, np.full((length, 128), 7, np.float16), 64, 64])[2]
    assert np.array_equal(y, (x.astype("f4") @ w.astype("f4")).astype("f2"))


@pytest.mark.parametrize("warps", [4, 8])
def test_sums(backends: Backends, warps: int) -> None:
    x, w = (np.sign(integers(seed, 300, 64)) * (np.arange(64) % 8 == seed) for seed in (3, 4))
    kernel = running_sum.replace_hints(num_warps=warps)
    backends.run_all(kernel, (1,), lambda: [x.astype("f2"), w.astype("f2"), np.full((300, 64), 7, np.float16), 64])


@pytest.mark.parametrize("shift", [None, 0, 5, 64])
def test_sums_so_far(backends: Backends, shift: int | None) -> None:
    """Of arrays apart, or of rows that begin where those of X do, or some columns later."""
    length = 5 * 64 + 3

    def fresh() -> list[object]:
        memory = np.concatenate([integers(6, 3, length), np.zeros((3, length), np.float16)], axis=1).astype("f4")
        start = length if shift is None else shift
        return [memory[:, :length], memory[:, start : start + length], 64]

    x, y, _ = backends.run_all(sums_so_far, (3,), fresh)
    first = fresh()[0]
    assert isinstance(first, np.ndarray)
    assert shift not in (None, 0) or np.array_equal(y, np.cumsum(first, axis=1))
    assert shift != 64 or not np.array_equal(x, first)


@pytest.mark.parametrize("shift", [0, 1, 64, 72])
def test_overlapping(backends: Backends, shift: int) -> None:
    """The rows of Y begin where those of X do, or later: then a tile is made from what the one before has left. W moves
    columns by one, so that the number of moves shows."""
    w = np.roll(np.eye(64, dtype=np.float16), 1, axis=1)
    length = 5 * 64

    def fresh() -> list[object]:
        memory = np.concatenate([integers(5, length, 64), np.zeros((shift, 64), np.float16)])
        return [memory[:length], w, memory[shift:], 64, 64]

    y = backends.run_all(rows, (1,), fresh)[2]
    x = fresh()[0]
    assert isinstance(x, np.ndarray)
    if shift == 64:
        assert np.array_equal(y[-64:], np.roll(x[:64], 5, axis=1))
    if shift == 0:
        assert np.array_equal(y, np.roll(x, 1, axis=1))
