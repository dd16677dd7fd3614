"""Weights that every block reads behind a reduction, and what is added to a product, come piece by piece with the
stores that need them, but not where the stores go into them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import Backends

from tilewright import tile as ct

ZERO = ct.PaddingMode.ZERO


@ct.kernel
def weighted(X, W, B, Y, N: ct.Constant[int]):
    row = ct.bid(0)
    x = ct.load(X, index=(row, 0), shape=(1, N), padding_mode=ZERO)
    w = ct.load(W, index=(0,), shape=(N,), padding_mode=ZERO)
    b = ct.load(B, index=(0,), shape=(N,), padding_mode=ZERO)
    ct.store(Y, index=(row, 0), tile=x * w - ct.sum(x, axis=1, keepdims=True) * b)


@pytest.mark.parametrize("shift", [None, 0, 1, 64, 500], ids=lambda shift: f"shift{shift}")
@pytest.mark.parametrize("columns", [1024, 1000, 3001])
def test_weights(
    backends: Backends,
    columns: int,
    shift: int | None,
) -> None:
    """Apart, or where the only row of the result begins so many elements before the weights."""
    rows = 3 if shift is None else 1

    def fresh() -> list[object]:
        values = np.random.default_rng(7)
        x, b = (values.integers(-4, 5, shape).astype(np.float32) for shape in ((rows, columns), columns))
        memory = values.integers(-4, 5, (rows + 1) * columns + 512).astype(np.float32)
        start = rows * columns if shift is None else shift
        y = memory[: rows * columns].reshape(rows, columns)
        return [x, memory[start : start + columns], b, y, 1 << (columns - 1).bit_length()]

    y = backends.run_all(weighted, (rows,), fresh)[3]
    x, w, b = (np.asarray(array) for array in fresh()[:3])
    assert np.array_equal(y, x * w - x.sum(axis=1, keepdims=True) * b)


# ---- what is added to a product before it is stored ----------------------------------------------------------


@ct.kernel
def added(X, W, R, Y, TM: ct.Constant, TN: ct.Constant, TK: ct.Constant):
    """At the edge of an array a pair may have one element inside."""
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((TM, TN), ct.float32)
    for k in range(ct.num_tiles(X, axis=1, shape=(TM, TK))):
        x = ct.load(X, (i, k), (TM, TK), padding_mode=ZERO)
        acc = ct.mma(x, ct.load(W, (k, j), (TK, TN), padding_mode=ZERO), acc)
    r = ct.load(R, (i, j), (TM, TN), padding_mode=ZERO)
    ct.store(Y, (i, j), (ct.maximum(acc, 0.0) + r.astype(ct.float32)).astype(Y.dtype))


@ct.kernel
def added_by_gathers(X, W, R, Y, TM: ct.Constant, TN: ct.Constant, TK: ct.Constant):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((TM, TN), ct.float32)
    for k in range(ct.num_tiles(X, axis=1, shape=(TM, TK))):
        x = ct.load(X, (i, k), (TM, TK), padding_mode=ZERO)
        acc = ct.mma(x, ct.load(W, (k, j), (TK, TN), padding_mode=ZERO), acc)
    rows = i * TM + ct.arange(TM, dtype=ct.int32)[:, None]
    columns = j * TN + ct.arange(TN, dtype=ct.int32)[None, :]
    r = ct.gather(R, (rows, columns))
    ct.store(Y, (i, j), (ct.maximum(acc, 0.0) + r.astype(ct.float32)).astype(Y.dtype))


@pytest.mark.parametrize("place", ["apart", "in place", "rows before", "an element before"])
@pytest.mark.parametrize("columns", [136, 133, 256])
@pytest.mark.parametrize("kernel", [added, added_by_gathers], ids=lambda kernel: kernel.__name__)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8], ids=lambda dtype: np.dtype(dtype).name)
def test_added_to_a_product(
    backends: Backends,
    dtype: type,
    kernel: Any,
    columns: int,
    place: str,
) -> None:
    """Apart from the result, or the result itself, or where one block's result begins before what it adds."""
    shift = {"apart": None, "in place": 0, "rows before": 2 * columns, "an element before": 1}[place]
    m, k = 72 if shift is None or not shift else 64, 80

    def fresh() -> list[object]:
        values = np.random.default_rng(5)
        x, w = (values.integers(-1, 2, shape).astype(np.float16) for shape in ((m, k), (k, columns)))
        memory = values.integers(-9, 9, 2 * m * columns + 4 * columns).astype(dtype)
        start = m * columns if shift is None else shift
        r, y = (memory[at : at + m * columns].reshape(m, columns) for at in (start, 0))
        return [x, w, r, y, 64, 256, 16]

    grid = (-(-m // 64), 1)
    y = backends.run_all(kernel, grid, fresh)[3]
    x, w, r = (np.array(array) for array in fresh()[:3])
    exact = np.maximum(x.astype(np.float32) @ w.astype(np.float32), 0) + r
    assert np.array_equal(y, exact.astype(dtype))
