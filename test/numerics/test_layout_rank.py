"""Other layouts than the best by estimate, which `layout_rank` asks for: the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import Backends, Tolerance

from tilewright import tile as ct

ZERO = ct.PaddingMode.ZERO


@ct.kernel
def across(X, Y, T: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    ct.store(Y, index=(j, i), tile=ct.load(X, index=(i, j), shape=(T, T), padding_mode=ZERO).T)


@ct.kernel
def softmax(X, Y, T: ct.Constant[int]):
    x = ct.load(X, index=(ct.bid(0), 0), shape=(4, T), padding_mode=ct.PaddingMode.NEG_INF)
    e = ct.exp(x - ct.max(x, axis=1, keepdims=True))
    ct.store(Y, index=(ct.bid(0), 0), tile=e / ct.sum(e, axis=1, keepdims=True))


@ct.kernel
def gram(X, Y, T: ct.Constant[int]):
    """A product, its transpose, and sums along both axes."""
    x = ct.load(X, index=(0, 0), shape=(T, T), padding_mode=ZERO)
    y = ct.mma(x, x.T, ct.zeros((T, T), dtype=ct.float32))
    rows, columns = ct.sum(y, axis=1, keepdims=True), ct.sum(y, axis=0, keepdims=True)
    ct.store(Y, index=(0, 0), tile=y.T + rows * 2 - columns)


def integers(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).integers(-2, 3, shape).astype("f4")


@pytest.mark.parametrize("choice", [1, 2, 3, 7])
@pytest.mark.parametrize(
    ("kernel", "grid", "tile", "shape", "dtype"),
    [
        (across, (3, 2), 32, (70, 50), "f4"),
        (across, (2, 1), 64, (70, 50), "f2"),
        (softmax, (3,), 128, (10, 100), "f4"),
        (gram, (1,), 32, (30, 30), "f2"),
    ],
)
def test_choices(
    backends: Backends, kernel: Any, grid: Any, tile: int, shape: tuple[int, int], dtype: str, choice: int
) -> None:
    x = integers(*shape)
    y = {
        "across": lambda: x.T,
        "softmax": lambda: np.exp(x) / np.exp(x).sum(1, keepdims=True),
        "gram": lambda: x @ x.T + 2 * (x @ x.T).sum(1, keepdims=True) - (x @ x.T).sum(0, keepdims=True),
    }[kernel.name]()
    chosen = kernel.replace_hints(layout_rank=choice)
    make = lambda: [x.astype(dtype), np.zeros(y.shape, "f4" if kernel is gram else dtype), tile]  # noqa: E731
    close = {1: Tolerance(ulp=16)} if kernel is softmax else {}
    found = backends.run_all(chosen, grid, make, tolerance=close)[1]
    np.testing.assert_allclose(found, y, rtol=1e-5 if kernel is softmax else 0)
