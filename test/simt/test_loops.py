"""Loops of threads: `range` with steps that are known at run time only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cuda import device
from tilewright.cli import lower

BLOCK, GRID = 8, 3


@device.kernel
def strides(x, out, sums):
    """By the threads of a block, and of the grid: the step is known to be above zero."""
    for i in range(device.int32(device.thread_idx.x), x.size, device.int32(device.block_dim.x)):
        device.atomic_ref(sums, 0).add(x[i], "relaxed", "device")
    for i in range(device.tid(1), x.size, device.grid_size(1)):
        out[i] += x[i]
    for i in range(-2 * device.int32(device.block_dim.x), 4, device.int32(device.block_dim.x)):
        device.atomic_ref(sums, 1).add(i, "relaxed", "device")
    for i in range(x.size, device.tid(1), device.grid_size(1)):
        out[i] = -1


def test_steps_of_a_block_and_of_a_grid(run: Any) -> None:
    x = np.arange(50, dtype=np.int32)
    out, sums = np.zeros_like(x), np.zeros(2, np.int32)
    run(strides, x, out, sums, grid=GRID, block=BLOCK)
    np.testing.assert_array_equal(out, x)
    np.testing.assert_array_equal(sums, [GRID * x.sum(), GRID * BLOCK * (-16 - 8 + 0)])


@device.kernel
def counted(start, stop, step, count, last):
    for i in range(start, stop, step):
        count[0] += 1
        last[0] = i


@pytest.mark.parametrize(
    ("start", "stop", "step"),
    [
        (0, 10, 3),
        (10, 0, -3),
        (5, 5, 1),
        (5, 4, 1),
        (2**31 - 5, 2**31 - 1, 3),
        (-(2**31), 2**31 - 1, 2**30),
        (3, -3, -1),
    ],
)
def test_steps_of_either_sign(run: Any, start: int, stop: int, step: int) -> None:
    count, last = np.zeros(1, np.int32), np.zeros(1, np.int32)
    run(counted, *map(np.int32, (start, stop, step)), count, last)
    expected = range(start, stop, step)
    assert count[0] == len(expected)
    assert not expected or last[0] == expected[-1]


@device.kernel
def to_the_end(stop, count):
    """The last sum is beyond the numbers of 32 bits."""
    for _ in range(2**31 - 1 - device.int32(device.block_dim.x) // 2, stop, device.int32(device.block_dim.x)):
        count[device.thread_idx.x] += 1


def test_a_step_past_the_last_number(run: Any) -> None:
    count = np.zeros(BLOCK, np.int32)
    run(to_the_end, np.int32(2**31 - 1), count, block=BLOCK)
    assert (count == 1).all()


def test_a_known_sign_is_not_looked_at() -> None:
    array = ("array", "int32", 1, 4, (1,), ((0, 1),), True, False)
    text = lower(strides, (array, array, array), "sm_90a", "ptx").decode()
    assert "trap" not in text and "vprintf" not in text and "div.s64" not in text


@device.kernel
def walks(x, out, sums, places):
    """Rounds that differ from thread to thread, in which threads part; what they carry; a walk within a walk."""
    t = device.tid(1)
    total, last = x.dtype(0), device.int32(-1)
    for i in range(t, x.size, device.grid_size(1)):
        if x[i] > 3:
            total += x[i]
        out[i] = x[i] + last
        last = i
    device.syncthreads()
    places[t, 0] = last
    for _ in range(t, x.size, device.grid_size(1)):
        for j in range(t, x.size, device.grid_size(1)):
            total += x[j]
    places[t, 1] = device.int32(total)
    device.atomic_ref(sums, 0).add(device.int32(total), "relaxed", "device")


@pytest.mark.parametrize("block", [1, 8, 16, 33, (8, 4)], ids=str)
@pytest.mark.parametrize("size", [0, 1, 31, 500])
def test_a_thread_walks_as_far_as_it_has_elements(run: Any, block: Any, size: int) -> None:
    x = np.random.default_rng(size).integers(-9, 9, size).astype(np.int32)
    across, rows = block if isinstance(block, tuple) else (block, 1)
    threads = GRID * across
    out, sums = np.zeros_like(x), np.zeros(1, np.int32)
    places = np.zeros((threads, 2), np.int32)
    run(walks, x, out, sums, places, grid=GRID, block=block)
    i = np.arange(size)
    np.testing.assert_array_equal(out, x + np.where(i < threads, -1, i - threads))
    expected = np.array([[-1, 0]] * threads)
    for t in range(min(threads, size)):
        own = x[t::threads]
        expected[t] = (range(size)[t::threads][-1], own[own > 3].sum() + own.size * own.sum())
    np.testing.assert_array_equal(places, expected)
    assert sums[0] == rows * expected[:, 1].sum()


@device.kernel
def even_walk(x, out, rounds):
    """As many rounds for each thread."""
    t, total = device.tid(1), device.float32(0)
    for k in range(rounds):
        total += x[t + k * device.grid_size(1)]
    out[t] = total


def test_threads_walk_alike(run: Any) -> None:
    threads, rounds = GRID * BLOCK, 5
    x = np.arange(threads * rounds, dtype=np.float32)
    out = np.zeros(threads, np.float32)
    run(even_walk, x, out, np.int32(rounds), grid=GRID, block=BLOCK)
    np.testing.assert_array_equal(out, x.reshape(rounds, threads).sum(axis=0))
