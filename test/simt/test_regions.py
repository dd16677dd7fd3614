"""`ct.threads`: code of threads in a kernel of tiles, with shared arrays, barriers, warp operations and atomics."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright.tile as ct
from cuda import device
from tilewright.errors import TileCheckError, TileError, TileTypeError

Launch = Callable[..., None]


@device.func
def count(bins, values):
    for i in range(device.int32(device.thread_idx.x), values.size, device.int32(device.block_dim.x)):
        device.atomic_ref(bins, values[i]).add(1, "relaxed", "block")


@ct.kernel
def histogram(values, bins, N: ct.Constant[int]):
    own, _ = ct.threads(count, ct.zeros((32,), ct.int32), ct.load(values, (ct.bid(0),), (N,)))
    ct.atomic_add(bins, ct.arange(32, dtype=ct.int32), own)


@pytest.mark.parametrize("n", [16, 512])
def test_tiles_go_in_and_come_out(launch: Launch, n: int) -> None:
    values, bins = np.random.default_rng(n).integers(0, 32, 1024).astype(np.uint8), np.zeros(32, np.int32)
    launch(histogram, 1024 // n, (values, bins, n))
    np.testing.assert_array_equal(bins, np.bincount(values, minlength=32))


def example() -> Any:
    path = Path(__file__).resolve().parents[2] / "python" / "examples" / "histogram.py"
    spec = importlib.util.spec_from_file_location("histogram_example", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_example_counts_as_tiles_do(launch: Launch) -> None:
    module = example()
    values = np.random.default_rng(2).integers(0, 256, 2048).astype(np.uint8)
    for kernel in (module.histogram, module.by_tiles):
        bins = np.zeros(256, np.int32)
        launch(kernel, 2, (values, bins, 512, 2))
        np.testing.assert_array_equal(bins, np.bincount(values, minlength=256))


@device.func
def align(table, a, b):
    """Longest common subsequence, diagonal after diagonal: those of one wait for those before."""
    n, size = a.size, device.int32(device.block_dim.x)
    for diagonal in range(2 * n - 1):
        for i in range(device.int32(device.thread_idx.x), n, size):
            j = diagonal - i
            if j >= 0 and j < n:
                left = table[i, j - 1] if j > 0 else device.int32(0)
                up = table[i - 1, j] if i > 0 else device.int32(0)
                before = table[i - 1, j - 1] if i > 0 and j > 0 else device.int32(0)
                table[i, j] = before + 1 if a[i] == b[j] else max(left, up)
        device.syncthreads()


@ct.kernel
def common(A, B, lengths, N: ct.Constant[int]):
    a, b = ct.load(A, (ct.bid(0), 0), (1, N)), ct.load(B, (ct.bid(0), 0), (1, N))
    table, _, _ = ct.threads(align, ct.zeros((N, N), ct.int32), a.reshape((N,)), b.reshape((N,)))
    ct.store(lengths, (ct.bid(0),), ct.max(table, axis=(0, 1)).reshape((1,)))


def longest(a: Any, b: Any) -> int:
    row = np.zeros(len(b) + 1, np.int64)
    for x in a:
        before = row.copy()
        for j, y in enumerate(b):
            row[j + 1] = before[j] + 1 if x == y else max(row[j], before[j + 1])
    return int(row[-1])


def test_threads_wait_for_each_other(launch: Launch) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 4, (2, 2, 16)).astype(np.int8)
    lengths = np.zeros(2, np.int32)
    launch(common, 2, (a, b, lengths, 16))
    assert lengths.tolist() == [longest(x, y) for x, y in zip(a, b, strict=True)]


@device.func
def rotate(x, flags, by):
    """Every step is read by a neighbour; the last of a warp tells it to the others."""
    seen = device.shared_array(64, device.float32)
    t = device.int32(device.thread_idx.x)
    mine = x[t % 8, t // 8] if t < 64 else device.float16(0)
    for step in range(by):
        if t < 64:
            seen[t] = mine
        device.syncthreads()
        if t < 64:
            mine = device.float16(seen[(t + step) % 64])
        device.syncthreads()
    total = mine
    for k in range(5):
        total += device.shfl_xor_sync(0xFFFFFFFF, total, 1 << k)
    if t < 64:
        x[t % 8, t // 8] = total
        flags[t] = device.all_sync(0xFFFFFFFF, lambda: t < 32)


@ct.kernel
def turned(X, Y, F, W, steps):
    x = ct.load(X, (0, 0), (8, 8))
    flags = ct.load(F, (0,), (64,))
    for k in range(steps):
        x, flags = ct.threads(rotate, x, flags, k + 2)
        x = ct.mma(x, ct.load(W, (0, 0), (8, 8)), ct.zeros((8, 8), ct.float32)).astype(ct.float16)
    ct.store(Y, (0, 0), x)
    ct.store(F, (0,), ct.where(flags, True, False))


def test_warps_shared_arrays_and_loops(launch: Launch) -> None:
    rng = np.random.default_rng(1)
    x, w = rng.integers(-2, 3, (8, 8)).astype(np.float16), (2.0**-5 * rng.permutation(np.eye(8))).astype(np.float16)
    y, flags = np.zeros_like(x), np.zeros(64, np.bool_)
    launch(turned, 1, (x, y, flags, w, 3))
    expected = x
    for k in range(3):
        flat = expected.T.reshape(-1)
        for step in range(k + 2):
            flat = np.roll(flat, -step)
        sums = np.repeat(flat.reshape(2, 32).astype(np.float64).sum(axis=1), 32)
        expected = (sums.reshape(8, 8).T.astype(np.float16) @ w.astype(np.float64)).astype(np.float16)
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(flags, np.arange(64) < 32)


@device.func
def negate_some(acc, picked):
    for i in range(device.int32(device.thread_idx.x), picked.size, device.int32(device.block_dim.x)):
        for j in range(acc.shape[1]):
            acc[picked[i], j] = -acc[picked[i], j]


@ct.kernel
def among_products(A, B, P, C, M: ct.Constant[int], K: ct.Constant[int]):
    acc = ct.zeros((M, M), ct.float32)
    for k in range(ct.num_tiles(A, axis=1, shape=(M, K))):
        acc = ct.mma(ct.load(A, (ct.bid(0), k), (M, K)), ct.load(B, (k, 0), (K, M)), acc)
        acc, _ = ct.threads(negate_some, acc, ct.load(P, (k,), (8,)))
    ct.store(C, (ct.bid(0), 0), acc)


@pytest.mark.parametrize("m", [32, 128])
def test_between_products_whose_operands_are_copied(launch: Launch, m: int) -> None:
    rng = np.random.default_rng(m)
    a, b = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((2 * m, 96), (96, m)))
    picked = np.concatenate([rng.permutation(m)[:8] for _ in range(3)]).astype(np.int32)
    c = np.zeros((2 * m, m), np.float32)
    launch(among_products, 2, (a, b, picked, c, m, 32))
    expected = np.zeros((2, m, m))
    for k in range(3):
        part = slice(32 * k, 32 * k + 32)
        expected += (a[:, part].astype(np.float64) @ b[part]).reshape(2, m, m)
        expected[:, picked[8 * k : 8 * k + 8]] *= -1
    np.testing.assert_array_equal(c, expected.reshape(2 * m, m))


def test_check_mode_tells_the_thread() -> None:
    x = np.arange(16, dtype=np.float32)
    with pytest.raises(TileCheckError) as caught:
        ct.launch(None, 1, outside, (x,), check=True)
    assert (
        "thread (15, 0, 0) of block (0, 0, 0) writes X[16] (the value 15.0), which is outside of its shape (16,)"
        in str(caught.value)
    )
    assert len(caught.value.findings) == 1
    np.testing.assert_array_equal(x, [0, *range(15)])


@ct.kernel
def outside(X):
    ct.threads(beyond, ct.load(X, (0,), (16,)), X)


@device.func
def beyond(own, x):
    if device.thread_idx.x < own.size:
        x[device.int32(device.thread_idx.x) + 1] = own[device.int32(device.thread_idx.x)]


@device.func
def first_of(out, limit):
    t = device.tid(1)
    if device.thread_idx.x >= limit:
        return
    out[device.int32(device.block_idx.x), device.int32(device.thread_idx.x)] = t - device.int32(
        device.block_idx.x * device.block_dim.x
    )


@ct.kernel
def without_tiles(out, limit):
    ct.threads(first_of, out, limit)


def test_arrays_and_numbers_alone(launch: Launch) -> None:
    out = np.full((3, 16), -1, np.int32)
    launch(without_tiles, 3, (out, 12))
    expected = np.where(np.arange(16) < 12, np.arange(16), -1)
    np.testing.assert_array_equal(out, np.broadcast_to(expected, (3, 16)))


@device.func
def gives(x):
    return x.size


@device.func
def takes(x):
    x[0] = 1


@device.func
def parts(x):
    if device.thread_idx.x < 16:
        device.syncthreads()
    x[0] = 1


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (gives, "ct.threads: 'gives' returns a run-time int32 scalar; it returns nothing"),
        (len, "expected a @device.func, which each thread of the block calls, found <built-in function len>"),
        (count, r"count\(bins, values\): missing a required argument: 'values'"),
        (parts, "may not all come to a barrier together"),
    ],
)
def test_wrong_programs(function: Any, words: str) -> None:
    @ct.kernel
    def kernel(X):
        ct.store(X, (0,), ct.threads(function, ct.load(X, (0,), (16,))))

    with pytest.raises(TileError, match=words):
        ct.launch(None, 1, kernel, (np.zeros(16, np.float32),))


def test_elements_of_four_bits_are_refused() -> None:
    @ct.kernel
    def kernel(X):
        ct.threads(takes, ct.load(X, (0,), (16,)).astype(ct.float4_e2m1fn))

    with pytest.raises(TileTypeError, match="elements of 8 bits or more"):
        ct.launch(None, 1, kernel, (np.zeros(16, np.float32),))
