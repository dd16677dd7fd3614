"""Tiles that several walks along a row read, which the GPU keeps in shared memory."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from harness import Backends

from tilewright import tile as ct

BF16 = ml_dtypes.bfloat16


@ct.kernel
def below_greatest(X, Y, T: ct.Constant[int]):
    """How far each element is below the greatest of its row."""
    row = ct.bid(0)
    m = ct.full((1, 1), -1e30, dtype=ct.float32)
    for j in range(ct.num_tiles(X, axis=1, shape=(1, T))):
        x = ct.load(X, index=(row, j), shape=(1, T), padding_mode=ct.PaddingMode.NEG_INF).astype(ct.float32)
        m = ct.maximum(m, ct.max(x, axis=1, keepdims=True))
    for j in range(ct.num_tiles(X, axis=1, shape=(1, T))):
        x = ct.load(X, index=(row, j), shape=(1, T), padding_mode=ct.PaddingMode.NEG_INF).astype(ct.float32)
        ct.store(Y, index=(row, j), tile=(x - m).astype(Y.dtype))


@ct.kernel
def rows_in_turn(X, Y, R: ct.Constant[int], T: ct.Constant[int]):
    """The same for R rows after another, with what pads read as zero, and a third walk."""
    for r in range(R):
        row = ct.bid(0) * R + r
        total = ct.zeros((1, 1), dtype=ct.float32)
        most = ct.zeros((1, 1), dtype=ct.float32)
        for j in range(ct.num_tiles(X, axis=1, shape=(1, T))):
            x = ct.load(X, index=(row, j), shape=(1, T), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
            total = total + ct.sum(x, axis=1, keepdims=True)
        for j in range(ct.num_tiles(X, axis=1, shape=(1, T))):
            x = ct.load(X, index=(row, j), shape=(1, T), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
            most = ct.maximum(most, ct.max(abs(x - total), axis=1, keepdims=True))
        for j in range(ct.num_tiles(X, axis=1, shape=(1, T))):
            x = ct.load(X, index=(row, j), shape=(1, T), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
            ct.store(Y, index=(row, j), tile=(x + total + most).astype(Y.dtype))


def whole_numbers(rows: int, columns: int, dtype: Any) -> np.ndarray:
    return np.random.default_rng(columns).integers(-4, 5, (rows, columns)).astype(dtype)


@pytest.mark.parametrize("dtype", [BF16, np.float32], ids=["bf16", "f32"])
@pytest.mark.parametrize("columns", [0, 8, 1024, 4000, 4096, 36864 + 8, 1001])
def test_walks(backends: Backends, columns: int, dtype: Any) -> None:
    x = whole_numbers(2, columns, dtype)
    backends.run_all(below_greatest, (2,), lambda: [x.copy(), np.zeros_like(x), 4096])
    backends.run_all(rows_in_turn, (1,), lambda: [x.copy(), np.zeros(x.shape, np.float32), 2, 1024])


def test_walks_in_place(backends: Backends) -> None:
    def arguments() -> list[Any]:
        x = whole_numbers(2, 9000, np.float32)
        return [x, x, 1024]

    backends.run_all(below_greatest, (2,), arguments)


@ct.kernel
def deviations(X, Y, n: int, T: ct.Constant[int]):
    """Each element less the mean of those in its place of all tiles, which masks take into account, and a count."""
    row, offsets = ct.bid(0), ct.arange(T, dtype=ct.int32)
    count, mean = ct.zeros((T,), ct.float32), ct.zeros((T,), ct.float32)
    for j in range(ct.cdiv(n, T)):
        columns = j * T + offsets
        x = ct.gather(X, (row, columns), mask=columns < n, padding_value=0).astype(ct.float32)
        count = count + ct.where(columns < n, 1.0, 0.0)
        mean = mean + ct.where(columns < n, x - mean, 0.0) / ct.maximum(count, 1.0)
    for j in range(ct.cdiv(n, T)):
        columns = j * T + offsets
        x = ct.gather(X, (row, columns), mask=columns < n, padding_value=0).astype(ct.float32)
        ct.scatter(Y, (row, columns), x - mean + ct.where(columns < n, count, 0.0), mask=columns < n)


@pytest.mark.parametrize("columns", [5, 1024, 1030, 4096, 5000, 36864 + 8])
def test_masked_walks(backends: Backends, columns: int) -> None:
    """Tiles in which the mask holds everywhere are walked along without it, the others with it."""
    x = np.random.default_rng(columns).normal(size=(2, columns)).astype(BF16)
    backends.run_all(deviations, (2,), lambda: [x.copy(), np.zeros(x.shape, np.float32), columns, 1024])


@ct.kernel
def group_deviations(X, Y, channels: int, C: ct.Constant[int], T: ct.Constant[int]):
    """The channels of a group less their sum and the greatest of that: walks in walks, of C or of channels."""
    group = ct.bid(0)
    many = C if C > 0 else channels
    total, most = ct.zeros((T,), ct.float32), ct.full((T,), -1e30, ct.float32)
    for c in range(many):
        for j in range(ct.num_tiles(X, axis=1, shape=(1, T))):
            x = ct.load(X, (group * many + c, j), (1, T), padding_mode=ct.PaddingMode.ZERO).reshape((T,))
            total = total + x.astype(ct.float32)
    whole = ct.sum(total)
    for c in range(many):
        for j in range(ct.num_tiles(X, axis=1, shape=(1, T))):
            x = ct.load(X, (group * many + c, j), (1, T), padding_mode=ct.PaddingMode.ZERO).reshape((T,))
            most = ct.maximum(most, x.astype(ct.float32) - whole)
    greatest = ct.max(most)
    for c in range(many):
        for j in range(ct.num_tiles(X, axis=1, shape=(1, T))):
            x = ct.load(X, (group * many + c, j), (1, T), padding_mode=ct.PaddingMode.ZERO)
            ct.store(Y, (group * many + c, j), (x.astype(ct.float32) - whole - greatest).astype(Y.dtype))


@pytest.mark.parametrize("known", [True, False], ids=["known", "told"])
@pytest.mark.parametrize("channels, columns", [(3, 0), (1, 8), (2, 1000), (3, 1024), (5, 2000), (70, 512), (2, 33000)])
def test_walks_in_walks(backends: Backends, channels: int, columns: int, known: bool) -> None:
    x = whole_numbers(2 * channels, columns, BF16)
    y = np.zeros(x.shape, np.float32)
    backends.run_all(group_deviations, (2,), lambda: [x.copy(), y.copy(), channels, channels if known else 0, 512])


def test_walks_in_walks_in_place(backends: Backends) -> None:
    def arguments() -> list[Any]:
        x = whole_numbers(6, 5000, np.float32)
        return [x, x, 3, 3, 512]

    backends.run_all(group_deviations, (2,), arguments)
