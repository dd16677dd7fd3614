"""Arrays of a thread that loops walk: in registers on GPUs, where all indices are known once loops are written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_assembly import argument

from tilewright import compile as compiler
from tilewright import device, plans
from tilewright.capture import capture
from tilewright.capture.kernel import ScalarArgument
from tilewright.dtype import as_dtype


@device.kernel
def products(a, b, c):
    """Each thread computes 4 by 4 elements of c."""
    sums = device.local_array((4, 4), device.float32)
    row, column = device.tid(2)
    for i in range(4):
        for j in range(4):
            sums[i, j] = 0
    for k in range(a.shape[1]):
        for i in range(4):
            for j in range(4):
                sums[i, j] += a[4 * row + i, k] * b[k, 4 * column + j]
    for i in range(4):
        for j in range(4):
            c[4 * row + i, 4 * column + j] = sums[i, j]


@device.kernel
def sorts(x, n):
    """Each thread sorts 8 numbers; steps backwards, ends early, and a branch around a loop."""
    own = device.local_array(8, device.int32)
    t = device.tid(1)
    for k in range(7, -1, -1):
        own[k] = x[t, k]
    if t < n:
        for _ in range(8):
            for j in range(7):
                if own[j] > own[j + 1]:
                    least = own[j + 1]
                    own[j + 1] = own[j]
                    own[j] = least
    for k in range(0, 8, 2):
        x[t, k] = own[k]
        x[t, k + 1] = own[k + 1]


@device.kernel
def counts(x, y):
    """An index that the program computes keeps the array in memory."""
    own = device.local_array(4, device.int32)
    t = device.tid(1)
    for k in range(4):
        own[k] = 0
    for k in range(x.shape[1]):
        own[x[t, k] % 4] += 1
    for k in range(4):
        y[t, k] = own[k]


def test_products(run: Any) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(-3, 4, (8, 5)).astype(np.float32), rng.integers(-3, 4, (5, 16)).astype(np.float32)
    c = np.empty((8, 16), np.float32)
    run(products, a, b, c, grid=(1, 1), block=(2, 4))
    np.testing.assert_array_equal(c, a @ b)


def test_sorts(run: Any) -> None:
    x = np.random.default_rng(0).integers(-100, 100, (32, 8)).astype(np.int32)
    expected = x.copy()
    expected[:20].sort(axis=1)
    run(sorts, x, 20, grid=1, block=32)
    np.testing.assert_array_equal(x, expected)


def test_counts(run: Any) -> None:
    x = np.random.default_rng(0).integers(0, 100, (32, 9)).astype(np.int32)
    y = np.empty((32, 4), np.int32)
    run(counts, x, y, grid=1, block=32)
    np.testing.assert_array_equal(y, [np.bincount(row % 4, minlength=4) for row in x])


@pytest.mark.parametrize(
    ("kernel", "ranks", "in_memory"), [(products, (2, 2, 2), False), (sorts, (2, 0), False), (counts, (2, 2), True)]
)
def test_where_they_lie(kernel: Any, ranks: tuple[int, ...], in_memory: bool) -> None:
    dtype = np.float32 if kernel is products else np.int32
    arguments = [argument((dtype, rank)) if rank else ScalarArgument(as_dtype(np.int32)) for rank in ranks]
    captured = capture(kernel.function, arguments, "sm_90a", rules=kernel.rules)
    plans.lower(captured.module, compiler.GPU_STAGES, captured.module.lower)
    ptx = captured.module.emit(compiler.EMIT_ASSEMBLY).decode()
    assert (".local" in ptx) == in_memory
    assert (".maxnreg 64" in ptx) == (kernel is products)  # of 16 words
