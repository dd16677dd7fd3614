"""Gathers whose neighbours lie close by, x[i - 1] or x[2 * i + 1]: vectors around them are loaded, and each element is
taken from its place."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from harness import Backends

from tilewright import tile as ct

DTYPES = [np.int8, ml_dtypes.bfloat16, np.float32, np.float64]


@ct.kernel
def shifted(X, Y, n: int, STEP: ct.Constant, BY: ct.Constant, PADDING: ct.Constant, TM: ct.Constant, TN: ct.Constant):
    """Two neighbours; the second one is masked."""
    rows = (ct.bid(0) * TM + ct.arange(TM, dtype=ct.int32))[:, None]
    columns = (ct.bid(1) * TN + ct.arange(TN, dtype=ct.int32))[None, :]
    at = STEP * columns + BY
    x = ct.gather(X, (rows, at), padding_value=PADDING).astype(ct.float32)
    y = ct.gather(X, (rows, at + 1), mask=at % 3 != 1, padding_value=PADDING).astype(ct.float32)
    ct.scatter(Y, (rows, columns), x + 2.0 * y)


def taken(x: np.ndarray, at: np.ndarray, padding: float) -> np.ndarray:
    inside = (at >= 0) & (at < x.shape[1])
    return np.where(inside[None, :], x.astype("f8")[:, np.where(inside, at, 0)], padding)


@pytest.mark.parametrize("width", [144, 77], ids=["vectors", "odd"])
@pytest.mark.parametrize(("step", "by"), [(1, -3), (1, 1), (1, 130), (2, 0), (2, 1), (2, -3), (4, 3), (8, 1), (3, 1)])
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
def test_neighbours(backends: Backends, dtype: Any, step: int, by: int, width: int) -> None:
    """Elements before the array and behind it are padding; so is a masked one."""
    x = np.random.default_rng(1).integers(-9, 10, (5, width)).astype(dtype)
    padding = 0 if dtype == np.int8 else 7
    arguments = lambda: [x.copy(), np.zeros((5, 160), np.float32), width, step, by, padding, 4, 64]  # noqa: E731
    found = backends.run_all(shifted, (2, 3), arguments)[1]
    at = step * np.arange(160) + by
    second = np.where(np.fmod(at, 3) % 3 != 1, taken(x, at + 1, padding), padding)
    assert np.array_equal(found, taken(x, at, padding) + 2 * second)


def test_neighbours_in_a_loop(backends: Backends) -> None:
    """An index that moves with the loop; the last iterations are past the end."""

    @ct.kernel
    def sums(X, Y, n: int, T: ct.Constant):
        total = ct.zeros((T,), ct.float32)
        for j in range(ct.cdiv(n, T) + 1):
            at = j * T + ct.arange(T, dtype=ct.int32)
            total += ct.gather(X, (ct.bid(0), at - 1)) - 3.0 * ct.gather(X, (ct.bid(0), at + 2))
        ct.store(Y, (ct.bid(0), 0), total.reshape((1, T)))

    x = np.random.default_rng(2).integers(-9, 10, (3, 208)).astype(np.float32)
    found = backends.run_all(sums, 3, lambda: [x.copy(), np.zeros((3, 64), np.float32), 208, 64])[1]
    at = np.arange(5 * 64)
    assert np.array_equal(found, (taken(x, at - 1, 0) - 3 * taken(x, at + 2, 0)).reshape(3, 5, 64).sum(axis=1))


@ct.kernel
def pairs(X, Y, limit: int, BY: ct.Constant, MASKED: ct.Constant, TM: ct.Constant, TN: ct.Constant):
    """Turns each two neighbours round; of some columns, if masked."""
    rows = (ct.bid(0) * TM + ct.arange(TM, dtype=ct.int32))[:, None]
    pair = (ct.bid(1) * TN + ct.arange(TN, dtype=ct.int32))[None, :]
    even, odd = ct.gather(X, (rows, 2 * pair + BY)), ct.gather(X, (rows, 2 * pair + BY + 1))
    if MASKED:
        ct.scatter(Y, (rows, 2 * pair + BY), odd, mask=pair < limit)
        ct.scatter(Y, (rows, 2 * pair + BY + 1), even, mask=pair < limit)
    else:
        ct.scatter(Y, (rows, 2 * pair + BY), odd)
        ct.scatter(Y, (rows, 2 * pair + BY + 1), even)


@pytest.mark.parametrize("width", [144, 77], ids=["vectors", "odd"])
@pytest.mark.parametrize(("by", "limit"), [(0, None), (1, None), (-2, None), (16, None), (0, 48), (0, 37)])
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
def test_pairs(backends: Backends, dtype: Any, by: int, limit: int | None, width: int) -> None:
    """Stores to even and odd elements; those outside of the array, or masked, stay."""
    x = np.random.default_rng(3).integers(-9, 10, (5, width)).astype(dtype)
    arguments = lambda: [x.copy(), np.full_like(x, 5), limit or 0, by, limit is not None, 4, 32]  # noqa: E731
    found = backends.run_all(pairs, (2, 3), arguments)[1]
    want, pair = np.full((5, width), 5.0), np.arange(96)
    for at, other in ((2 * pair + by, 2 * pair + by + 1), (2 * pair + by + 1, 2 * pair + by)):
        written = (at >= 0) & (at < width) & (True if limit is None else pair < limit)
        want[:, at[written]] = taken(x, other, 0)[:, written]
    assert np.array_equal(found.astype("f8"), want)


def test_pairs_that_touch(backends: Backends) -> None:
    """A store between two that make a pair comes between them; a third one to the even elements comes last."""

    @ct.kernel
    def thrice(Y, T: ct.Constant):
        pair = ct.arange(T, dtype=ct.int32)
        one = ct.full((T,), 1.0, ct.float32)
        ct.scatter(Y, 2 * pair, one)
        ct.scatter(Y, 2 * pair, 2.0 * one)
        ct.scatter(Y, 2 * pair + 1, 3.0 * one)
        ct.scatter(Y, 2 * pair + 1, 4.0 * one)

    found = backends.run_all(thrice, 1, lambda: [np.zeros(256, np.float32), 128])[0]
    assert np.array_equal(found, np.tile([2, 4], 128))


def test_neighbours_in_a_part_of_an_array(backends: Backends) -> None:
    """What the loop cuts out has an extent of its own."""

    @ct.kernel
    def ends(X, Y, T: ct.Constant):
        total = ct.zeros((T,), ct.float32)
        for row in range(X.shape[0]):
            part = X.slice(axis=1, start=0, stop=16 * (row + 1))
            total += ct.gather(part, (row, ct.arange(T, dtype=ct.int32) + 1))
        ct.store(Y, 0, total)

    x = np.random.default_rng(4).integers(-9, 10, (4, 80)).astype(np.float32)
    found = backends.run_all(ends, 1, lambda: [x.copy(), np.zeros(128, np.float32), 128])[1]
    want = sum(taken(x[row : row + 1, : 16 * (row + 1)], np.arange(128) + 1, 0)[0] for row in range(4))
    assert np.array_equal(found, want)


def test_more_neighbours_than_are_kept(backends: Backends) -> None:
    """Thirty gathers of four vectors each for a thread."""

    @ct.kernel
    def sums(X, Y, T: ct.Constant):
        at = ct.arange(T, dtype=ct.int32)
        total = ct.zeros((T,), ct.float32)
        for by in ct.static_iter(range(30)):
            total += ct.gather(X, at + by) * (by + 1.0)
        ct.store(Y, 0, total)

    x = np.random.default_rng(5).integers(-3, 4, 544).astype(np.float32)
    found = backends.run_all(sums, 1, lambda: [x.copy(), np.zeros(512, np.float32), 512])[1]
    assert np.array_equal(found, sum((by + 1) * x[by : by + 512] for by in range(30)))


@pytest.mark.parametrize("width", [16, 1008, 1024, 1040])
def test_a_tile_beside_its_neighbours(backends: Backends, width: int) -> None:
    """The tile's vectors are those of the gathers: at both ends of a row, in the last tile, and in none."""

    @ct.kernel
    def beside(X, Y, T: ct.Constant):
        row, block = ct.bid(0), ct.bid(1)
        at = block * T + ct.arange(T, dtype=ct.int32)
        left = ct.gather(X, (row, at - 1), padding_value=0).astype(ct.float32)
        middle = ct.gather(X, (row, at), padding_value=0).astype(ct.float32)
        right = ct.gather(X, (row, at + 2), padding_value=0).astype(ct.float32)
        ct.scatter(Y, (row, at), left + 10 * middle + 100 * right)

    x = np.random.default_rng(6).integers(-9, 10, (4, width)).astype(ml_dtypes.bfloat16)
    found = backends.run_all(beside, (5, 3), lambda: [x.copy(), np.zeros(x.shape, np.float32), 512])[1]
    at = np.arange(width)
    assert np.array_equal(found, taken(x, at - 1, 0) + 10 * x.astype("f8") + 100 * taken(x, at + 2, 0))
