"""Rows of odd length that almost fill their tiles, end anywhere in them, or in fewer of the arrays than in others: what
lies behind an array's end is neither read nor written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import Backends, run

from tilewright import tile as ct

Int = ct.Constant[int]
TILE = 1024  # 32 elements of a thread
LENGTHS = (1, 511, 895, 896, 897, 1001, 1023)


@ct.kernel(num_warps=1)
def normalize(X, W, Y, n: int, TN: Int):
    row = ct.bid(0)
    columns = ct.arange(TN, dtype=ct.int32)
    mask = columns < n
    x = ct.gather(X, (row, columns), mask=mask, padding_value=0).astype(ct.float32)
    mean = ct.sum(x) / n
    centered = ct.where(mask, x - mean, 0.0)
    w = ct.gather(W, columns, mask=mask, padding_value=0).astype(ct.float32)
    ct.scatter(Y, (row, columns), (centered * w + ct.sum(centered * centered)).astype(Y.dtype), mask=mask)


@ct.kernel(num_warps=1)
def double(X, Y, TN: Int):
    row = ct.bid(0)
    x = ct.load(X, index=(row, 0), shape=(1, TN), padding_mode=ct.PaddingMode.ZERO)
    ct.store(Y, index=(row, 0), tile=x + ct.max(x, axis=1, keepdims=True))


def guarded(rows: int, columns: int, dtype: str, width: int) -> tuple[Any, Any]:
    """An array of odd rows that follow one another in memory, and the memory with what lies behind it."""
    memory = np.full(rows * columns + width, 7, dtype)
    return memory[: rows * columns].reshape(rows, columns), memory


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("shorter", ["none", "weights", "input", "output"])
def test_each_array_ends_where_it_ends(backends: Backends, n: int, shorter: str) -> None:
    """`shorter` has 5 columns less than the mask says: they count as zeros, or are not written."""
    rng = np.random.default_rng(n)
    have = {name: max(n - 5 * (name == shorter), 1) for name in ("weights", "input", "output")}
    x, w = rng.integers(-8, 9, (3, have["input"])).astype(np.float16), rng.integers(-3, 4, have["weights"])
    w = w.astype(np.float16)
    for name in backends.names:
        y, memory = guarded(3, have["output"], "float32", TILE)
        run(name, normalize, (5,), [x, w, y, n, TILE])
        if name.startswith("sm_"):
            continue
        wide, weights = np.zeros((3, n)), np.zeros(n)
        wide[:, : have["input"]], weights[: have["weights"]] = x, w
        centered = wide - wide.sum(1, keepdims=True) / n
        want = centered * weights + (centered**2).sum(1, keepdims=True)
        np.testing.assert_allclose(y, want[:, : have["output"]], rtol=2e-5, atol=1e-3)
        assert (memory[y.size :] == 7).all()


@pytest.mark.parametrize("columns", LENGTHS)
def test_rows_of_plain_loads(backends: Backends, columns: int) -> None:
    x = np.random.default_rng(columns).integers(1, 50, (3, columns)).astype(np.int16)
    for name in backends.names:
        y, memory = guarded(3, columns, "int16", TILE)
        run(name, double, (4,), [x, y, TILE])
        if not name.startswith("sm_"):
            np.testing.assert_array_equal(y, x + x.max(1, keepdims=True))
            assert (memory[y.size :] == 7).all()
