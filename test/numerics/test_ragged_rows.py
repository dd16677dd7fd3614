"""Rows that begin at odd places and end within a tile, at half of it, at three quarters, and beside them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from harness import Backends

from tilewright import tile as ct

BF16 = ml_dtypes.bfloat16


@ct.kernel
def scaled_rows(X, W, Y, n: int, T: ct.Constant[int]):
    """A row less its sum, times weights: loads in front of a reduction and behind it, and a store."""
    row = ct.bid(0)
    columns = ct.arange(T, dtype=ct.int32)
    x = ct.gather(X, (row, columns), mask=columns < n, padding_value=0).astype(ct.float32)
    w = ct.gather(W, columns, mask=columns < n, padding_value=0).astype(ct.float32)
    ct.scatter(Y, (row, columns), (x - ct.sum(x)) * w, mask=columns < n)


@ct.kernel
def rows_in_tiles(X, Y, T: ct.Constant[int]):
    row = ct.bid(0)
    for j in range(ct.num_tiles(X, axis=1, shape=(1, T))):
        ct.store(Y, (row, j), ct.load(X, (row, j), (1, T), padding_mode=ct.PaddingMode.ZERO) + 1)


def numbers(rows: int, columns: int, dtype: Any = BF16) -> np.ndarray:
    return np.random.default_rng(columns).integers(-4, 5, (rows, columns)).astype(dtype)


@pytest.mark.parametrize("columns", [0, 1, 2047, 2048, 2049, 3071, 3072, 3073, 4095, 4097])
def test_rows_of_one_tile(backends: Backends, columns: int) -> None:
    x, w = numbers(3, columns), numbers(1, columns)[0]
    backends.run_all(scaled_rows, (3,), lambda: [x.copy(), w.copy(), np.zeros(x.shape, np.float32), columns, 4096])


def test_arrays_of_other_lengths(backends: Backends) -> None:
    """Each decides for itself what lies inside: of the rows all, of the weights a part."""
    x, w = numbers(3, 4095), numbers(1, 1500)[0]
    for n in (4095, 3000, 1499):
        backends.run_all(scaled_rows, (3,), lambda n=n: [x.copy(), w.copy(), np.zeros(x.shape, np.float32), n, 4096])


@pytest.mark.parametrize("columns", [0, 1, 2047, 2048, 2049, 6145])
def test_rows_of_several_tiles(backends: Backends, columns: int) -> None:
    x = numbers(3, columns)
    backends.run_all(rows_in_tiles, (4,), lambda: [x.copy(), np.zeros_like(x), 2048])
