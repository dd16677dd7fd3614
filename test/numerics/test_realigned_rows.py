"""Rows that begin anywhere: each length, each place within 16 bytes, beside elements that stay as they were."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from harness import Backends

from tilewright import tile as ct

DTYPES = [ml_dtypes.bfloat16, np.float16, np.int8, np.uint8, np.int16, np.float32, np.int64]
T, MANY = 1024, 4096  # of two warps


@ct.kernel(num_warps=2)
def doubled_rows(X, Y, T: ct.Constant[int]):
    """A tile of a row, maybe one behind the last in both directions."""
    at = ct.bid(0), ct.bid(1)
    x = ct.load(X, at, (1, T), padding_mode=ct.PaddingMode.ZERO)
    ct.store(Y, at, x + x)


@ct.kernel(num_warps=2)
def padded_rows(X, Y, T: ct.Constant[int]):
    """What lies outside of the array is stored, too: Y has whole tiles. A thread has several elements side by side."""
    at = ct.bid(0), ct.bid(1)
    x = ct.load(X, at, (1, T), padding_mode=ct.PaddingMode.NEG_INF)
    ct.store(Y, at, x)


@ct.kernel(num_warps=2)
def rows_in_loop(X, Y, T: ct.Constant[int]):
    row = ct.bid(0)
    for j in range(ct.num_tiles(X, axis=1, shape=(1, T)) + 1):
        x = ct.load(X, (row, j), (1, T), padding_mode=ct.PaddingMode.ZERO)
        ct.store(Y, (row, j), x + x)


@ct.kernel(num_warps=2)
def twice_in_place(X, T: ct.Constant[int]):
    """What one thread stores another one loads."""
    row = ct.bid(0)
    x = ct.load(X, (row, 0), (1, T), padding_mode=ct.PaddingMode.ZERO)
    ct.store(X, (row, 0), x + x)
    half = ct.load(X, (row, 1), (1, T // 2), padding_mode=ct.PaddingMode.ZERO)
    ct.store(X, (row, 1), half + half)
    whole = ct.load(X, (row, 0), (1, T), padding_mode=ct.PaddingMode.ZERO)
    ct.store(X, (row, 0), whole + x)


@ct.kernel(num_warps=2)
def turned_rows(X, Y, T: ct.Constant[int]):
    """The last axis of the tile is not the one that is contiguous."""
    row = ct.bid(0)
    x = ct.load(X, (row, 0), (1, T), padding_mode=ct.PaddingMode.ZERO)
    ct.store(Y, (0, row), ct.reshape(x, (T, 1)), order=(1, 0))


@ct.kernel(num_warps=2)
def flat_rows(X, Y, T: ct.Constant[int]):
    x = ct.load(X, (ct.bid(0),), (T,), padding_mode=ct.PaddingMode.ZERO)
    ct.store(Y, (ct.bid(0),), x + x)


def numbers(dtype: Any, *shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).integers(0, 60, shape).astype(dtype)


def view(x: np.ndarray, begin: int, between: int) -> np.ndarray:
    """A matrix that begins so many elements behind 16 bytes, so many between its rows, in an array of sevens."""
    rows, columns = x.shape
    around = np.full(32 + begin + rows * (columns + between) + 32, 7, x.dtype)
    assert around.ctypes.data % 16 == 0
    out = around[32 + begin :][: rows * (columns + between)].reshape(rows, columns + between)[:, :columns]
    out[...] = x
    return out


LENGTHS = [1, 3, 7, 8, 9, 15, 16, 17, 31, 33, 249, 255, 256, 257, 1022, 1023, 1024, 1025, 1031, 2047, 2049, 3001]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", LENGTHS)
def test_each_length(backends: Backends, columns: int, dtype: Any) -> None:
    x = numbers(dtype, 9, columns)
    between = 1 - columns % 2
    backends.run_all(
        doubled_rows,
        (10, -(-columns // T) + 1),
        lambda: [view(x, columns % 3, between), view(np.zeros_like(x), columns % 5, between), T],
    )


@pytest.mark.parametrize("begin", range(16))
def test_each_place(backends: Backends, begin: int) -> None:
    """Of bytes; the row behind begins at another one."""
    x = numbers(np.int8, 2, 1500)
    backends.run_all(doubled_rows, (2, 2), lambda: [view(x, 15 - begin, 3), view(np.zeros_like(x), begin, 13), T])


@pytest.mark.parametrize("between", [0, 1, 2, 3, 4, 6])
@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float32])
def test_rows_at_multiples_of_several_elements(backends: Backends, dtype: Any, between: int) -> None:
    """Threads have vectors then, which are shorter than a piece."""
    x = numbers(dtype, 5, 1018)
    backends.run_all(doubled_rows, (6, 2), lambda: [view(x, 0, between), view(np.zeros_like(x), 0, between), T])


@pytest.mark.parametrize("columns", [1001, 1004, 2047])
def test_padding(backends: Backends, columns: int) -> None:
    x = numbers(np.float16, 5, columns)
    y = np.zeros((5, 3 * T), np.float16)
    backends.run_all(padded_rows, (6, 3), lambda: [view(x, 1, 0), y.copy(), T])


@pytest.mark.parametrize("columns", [2047, 2048, 4095, 4097, 9001])
def test_several_tiles_in_a_loop(backends: Backends, columns: int) -> None:
    x = numbers(np.float16, 3, columns)
    between = 1 - columns % 2
    backends.run_all(rows_in_loop, (3,), lambda: [view(x, 5, between), view(np.zeros_like(x), 3, between), MANY])


@pytest.mark.parametrize("columns", [1023, 4095])
def test_in_place(backends: Backends, columns: int) -> None:
    x = numbers(np.float16, 3, columns)
    backends.run_all(twice_in_place, (3,), lambda: [view(x, 1, 0), columns + 1])


def test_the_other_axis(backends: Backends) -> None:
    x = numbers(np.float16, 5, 1021)
    backends.run_all(turned_rows, (5,), lambda: [x.copy(), view(np.zeros_like(x), 1, 0).T, T])


@pytest.mark.parametrize("begin", [1, 6])
def test_one_dimension(backends: Backends, begin: int) -> None:
    x = numbers(np.float16, 1, 2700)
    backends.run_all(flat_rows, (4,), lambda: [view(x, 3, 0)[0], view(np.zeros_like(x), begin, 0)[0], T])
