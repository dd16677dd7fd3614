"""Weights that every block reads behind a reduction come piece by piece with the stores that need them, but not where
the stores go into the weights."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from harness import Backends

from tilewright import compile
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
    pytestconfig: pytest.Config,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Apart, or where the only row of the result begins so many elements before the weights."""
    if shift is not None and pytestconfig.pluginmanager.hasplugin("emulated"):  # what a launch would find out by itself
        monkeypatch.setattr(compile, "capture_kernel", functools.partial(compile.capture_kernel, overlapping=True))
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
