"""Threads side by side in vectors: where they part, meet again, and access neighbours, in blocks of any shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cuda import device

SHAPES = [(64, 1, 1), (37, 1, 1), (5, 3, 2), (16, 4, 1)]


def count(block: tuple[int, int, int]) -> int:
    return block[0] * block[1] * block[2]


@device.func
def number():
    p, d = device.thread_idx, device.block_dim
    return device.int32((p.z * d.y + p.y) * d.x + p.x)


@device.kernel
def branches(x, out, n):
    """Sides with effects, with results, empty, nested, and behind a return."""
    t = number()
    if t >= n:
        return
    v = x[t]
    if v % 3 == 0:
        out[t, 0] = v
        v = v * 2 if v > 8 else v + x[n - 1 - t]
    elif t % 2 == 1:
        v = -v
        if v < -6:
            out[t, 0] = 7
    if n > 3:  # the same for all
        v += 100
    out[t, 1] = v


@pytest.mark.parametrize("block", SHAPES)
def test_branches(run: Any, block: tuple[int, int, int]) -> None:
    n = count(block) - 3
    x = np.arange(n + 3, dtype=np.int32) * 7 % 19
    out = np.zeros((n + 3, 2), np.int32)
    run(branches, x, out, n, grid=1, block=block)
    expected = np.zeros_like(out)
    for t in range(n):
        v = int(x[t])
        if v % 3 == 0:
            expected[t, 0] = v
            v = v * 2 if v > 8 else v + int(x[n - 1 - t])
        elif t % 2 == 1:
            v = -v
            expected[t, 0] = 7 if v < -6 else 0
        expected[t, 1] = v + 100
    np.testing.assert_array_equal(out, expected)


@device.kernel
def loops(starts, x, out):
    """Rounds that differ: none, some, of unlike steps; loops in such loops; a loop that threads leave one by one."""
    t = number()
    first, last = starts[t], starts[t + 1]
    total, steps = device.int32(0), device.int32(0)
    for i in range(first, last):
        total += x[i]
        for _ in range(i % 3):
            steps += 1
        if total > 40:
            total -= 10
    for i in range(last - 1, first - 1, -1):
        total = total * 2 % 1009 + x[i]
    for i in range(device.int64(t), device.int64(x.size), device.int64(1 + t)):
        total += x[i]
    k = total
    while k > 1 and k != 5:
        k = k // 2 if k % 2 == 0 else k - 3
        if k == 4:
            steps += 100
    out[t, 0] = total
    out[t, 1] = steps
    out[t, 2] = k


@pytest.mark.parametrize("block", SHAPES)
def test_loops(run: Any, block: tuple[int, int, int]) -> None:
    n = count(block)
    lengths = np.arange(n) * 5 % 9
    lengths[:3] = (0, 1, 30)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    x = (np.arange(starts[-1]) * 3 % 11).astype(np.int32)
    out = np.zeros((n, 3), np.int32)
    run(loops, starts, x, out, grid=1, block=block)
    for t in range(n):
        total = steps = 0
        row = [int(v) for v in x[starts[t] : starts[t + 1]]]
        for i, v in enumerate(row, int(starts[t])):
            total += v
            steps += i % 3
            total -= 10 if total > 40 else 0
        for v in row[::-1]:
            total = total * 2 % 1009 + v
        total += int(x[t :: 1 + t].sum())
        k = total
        while k > 1 and k != 5:
            k = k // 2 if k % 2 == 0 else k - 3
            steps += 100 if k == 4 else 0
        assert tuple(out[t]) == (total, steps, k)


@device.kernel
def neighbours(x, out, shift):
    """Indices that are unsigned and wrap below zero, that run backwards, by twos, of an element for all."""
    t = device.thread_idx.x
    n = device.uint32(x.size)
    left, right = t - device.uint32(1), t + device.uint32(shift)
    total = device.float64(0)
    if left < n:
        total += x[left]
    if right < n:
        total += 10.0 * x[right]
    total += 100.0 * x[n - 1 - t] + 1000.0 * x[2 * t // 3] + 10000.0 * x[shift]
    out[t] = total


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint16, np.bool_, np.float64])
def test_neighbours(run: Any, dtype: Any) -> None:
    n, shift = 45, 3
    x = (np.arange(n) % 5 % 2 if dtype is np.bool_ else np.arange(n) % 7).astype(dtype)
    out = np.zeros(n)
    run(neighbours, x, out, shift, grid=1, block=n)
    t, wide = np.arange(n), x.astype(np.float64)
    expected = np.where(t > 0, wide[t - 1], 0) + 10 * np.where(t + shift < n, wide[(t + shift) % n], 0)
    expected += 100 * wide[::-1] + 1000 * wide[2 * t // 3] + 10000 * wide[shift]
    np.testing.assert_array_equal(out, expected)


@device.kernel
def scattered(x, out):
    """Elements that few threads write, one that a thread writes, and what a thread reads of what it wrote."""
    t = device.int32(device.thread_idx.x)
    if t % 5 == 2:
        out[t * 7 % 40] = x[t]
    if t == 33:
        out[38] = 1
    out[40 + t] = x[t]
    out[40 + t] = out[40 + t] + 1


def test_scattered(run: Any) -> None:
    x = np.arange(40, dtype=np.float32) + 5
    out = np.zeros(80, np.float32)
    run(scattered, x, out, grid=1, block=40)
    expected = np.zeros(80, np.float32)
    some = np.arange(2, 40, 5)
    expected[some * 7 % 40] = x[some]
    expected[38] = 1
    expected[40:] = x + 1
    np.testing.assert_array_equal(out, expected)
