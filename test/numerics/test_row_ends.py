"""Rows that end in the last elements of a tile: the code for a GPU is there twice, with few guards, and with all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from harness import Backends

from tilewright import tile as ct

BF16 = ml_dtypes.bfloat16
T = 2048


@ct.kernel(num_warps=1)
def centred(X, W, Y, n: int, TN: ct.Constant[int]):
    """By gathers whose mask says where the row ends; the sum is exact."""
    row = ct.bid(0)
    columns = ct.arange(TN, dtype=ct.int32)
    mask = columns < n
    x = ct.gather(X, (row, columns), mask=mask, padding_value=0).astype(ct.float32)
    x = ct.where(mask, x - ct.sum(x), 7.0)
    low = ct.min(ct.where(columns >= n, 100.0, x))
    w = ct.gather(W, columns, mask=mask).astype(ct.float32)
    ct.scatter(Y, (row, columns), (x * w + low).astype(Y.dtype), mask=mask)


@ct.kernel(num_warps=1)
def tiles_less_most(X, W, Y, R: ct.Constant[int], TN: ct.Constant[int]):
    """Of several tiles along a row, and rows in a tile."""
    i, j = ct.bid(0), ct.bid(1)
    x = ct.load(X, index=(i, j), shape=(R, TN), padding_mode=ct.PaddingMode.NEG_INF).astype(ct.float32)
    w = ct.load(W, index=(i, j), shape=(R, TN), padding_mode=ct.PaddingMode.ZERO)
    ct.store(Y, index=(i, j), tile=(x - ct.max(x, axis=1, keepdims=True) + w).astype(Y.dtype))


@ct.kernel(num_warps=1)
def behind(X, W, Y, first: int, TN: ct.Constant[int]):
    """A tile whose number the launch gives, which may be before the array or behind it."""
    x = ct.load(X, index=(ct.bid(0), first), shape=(1, TN), padding_mode=ct.PaddingMode.ZERO)
    w = ct.load(W, index=(ct.bid(0), first), shape=(1, TN), padding_mode=ct.PaddingMode.ZERO)
    ct.store(Y, index=(ct.bid(0), first), tile=x + ct.sum(x) * w)


class Surrounded:
    """Makes arrays of nines that are a part of others, whose other elements no kernel may change."""

    def __init__(self) -> None:
        self.made: list[tuple[np.ndarray, tuple[slice, ...]]] = []

    def __call__(self, *shape: int) -> np.ndarray:
        whole = np.full(tuple(n + 4096 // len(shape) for n in shape), 9, np.float32)
        part = tuple(slice(0, n) for n in shape)
        self.made.append((whole, part))
        return whole[part]

    def check(self) -> None:
        for whole, part in self.made:
            whole[part] = 9
            assert np.all(whole == 9)


@pytest.fixture
def surrounded() -> Iterator[Surrounded]:
    arrays = Surrounded()
    yield arrays
    arrays.check()


def whole_numbers(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(shape[-1]).integers(-3, 5, shape).astype(dtype)


@pytest.mark.parametrize("dtype", [BF16, np.float32], ids=["bf16", "f32"])
@pytest.mark.parametrize("wide", [0, 5])
@pytest.mark.parametrize("n", [2047, 1793, 1792, 1791, 1025, 1])
def test_masks(backends: Backends, surrounded: Surrounded, n: int, wide: int, dtype: Any) -> None:
    """Rows of the array that end where the mask does, and behind it."""
    x, w = whole_numbers(3, n + wide, dtype=dtype), whole_numbers(n + wide, dtype=dtype)
    backends.run_all(centred, (3,), lambda: [x, w, surrounded(*x.shape), n, T])


@pytest.mark.parametrize(
    "rows, columns", [(4, 2047), (3, 2047), (4, 1791), (3, T + 1793), (4, 2 * T - 1), (5, 2 * T + 1)]
)
def test_tiles(backends: Backends, surrounded: Surrounded, rows: int, columns: int) -> None:
    x = whole_numbers(rows, columns)
    grid = (-(-rows // 2), -(-columns // T))
    backends.run_all(tiles_less_most, grid, lambda: [x, x + 1, surrounded(*x.shape), 2, T])


@pytest.mark.parametrize("first", [0, 1, 2, -1])
@pytest.mark.parametrize("n", [2 * T - 1, T + 1793, T + 1791, 2047])
def test_places(backends: Backends, surrounded: Surrounded, n: int, first: int) -> None:
    x = whole_numbers(2, n)
    backends.run_all(behind, (2,), lambda: [x, x + 1, surrounded(2, n), first, T])


def test_arrays_of_two_lengths(backends: Backends, surrounded: Surrounded) -> None:
    """Of which one reaches as far as is wanted."""
    for read, written in ((2047, 1501), (1501, 2047)):
        x = whole_numbers(2, read)
        backends.run_all(behind, (2,), lambda x=x, n=written: [x, x + 1, surrounded(2, n), 0, T])
