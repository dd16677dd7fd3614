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


@device.kernel
def kept(x, halves, out):
    """Of each thread across barriers: of two axes, of other types; indices that lanes compute; a part of a warp."""
    s = device.shared_array(1024, device.int32)
    own, few = device.local_array((2, 3), device.int32), device.local_array(4, device.float16)
    p, e = device.thread_idx, device.block_dim
    t = device.int32((p.z * e.y + p.y) * e.x + p.x)
    for i in range(2):
        for j in range(3):
            own[i, j] = x[t] * (3 * i + j)
    for k in range(4):
        few[k] = halves[t] + device.float16(k)
    s[t] = own[t % 2, t % 3]
    device.syncthreads()
    if t % 5 > 1:
        own[t % 2, 2] = s[x.size - 1 - t]
        few[t % 4] = device.float16(-1)
    device.syncthreads()
    for k in range(6):
        out[t, k] = own[k // 3, k % 3]
    for k in range(4):
        out[t, 6 + k] = device.int32(few[k])


@pytest.mark.parametrize("block", [1, 7, 64, (8, 4), (4, 2, 3)], ids=str)
def test_arrays_that_outlive_a_barrier(run: Any, block: Any) -> None:
    threads = int(np.prod(block))
    x = np.arange(threads, dtype=np.int32) + 1
    halves, out = (x % 16).astype(np.float16), np.zeros((threads, 10), np.int32)
    run(kept, x, halves, out, grid=1, block=block)
    t = np.arange(threads)
    own = x[:, None] * np.arange(6)
    few = x[:, None] % 16 + np.arange(4)
    told = own[t, t % 2 * 3 + t % 3]
    some = t[t % 5 > 1]
    own[some, some % 2 * 3 + 2] = told[threads - 1 - some]
    few[some, some % 4] = -1
    np.testing.assert_array_equal(out, np.concatenate([own, few], axis=1))
