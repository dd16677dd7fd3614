"""Loops of threads that add up atomically load for several iterations at a time on a GPU, which no result shows."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from cuda import device
from tilewright.cli import lower

THREADS = 32


@device.kernel
def histogram(values, bins):
    own = device.shared_array(16, device.uint32)
    t = device.int32(device.thread_idx.x)
    if t < 16:
        own[t] = 0
    device.syncthreads()
    for i in range(device.tid(1), values.size, device.grid_size(1)):
        device.atomic_ref(own, values[i]).add(1, "relaxed", "block")
    device.syncthreads()
    if t < 16:
        device.atomic_ref(bins, t).add(own[t], "relaxed", "device")


@device.kernel
def sums(values, bins, totals):
    """A number goes from iteration to iteration beside the sums in memory."""
    total = device.int32(0)
    i = device.tid(1)
    for k in range(values.shape[0]):
        total += values[k, i]
        device.atomic_ref(bins, total % 16).add(values[k, i], "relaxed", "device")
    totals[i] = total


@device.kernel
def of_one_array(x, n):
    """What is loaded is what iterations before have added to."""
    for k in range(n):
        device.atomic_ref(x, k + 1).add(x[k], "relaxed", "device")


@device.kernel
def taken(x, places, found):
    """The sums are looked at."""
    for k in range(x.size):
        found[k] = device.atomic_ref(places, 0).add(x[k], "relaxed", "device")


@pytest.mark.parametrize("n", [0, 1, 63, 64, 511, 512, 513, 700])
def test_histogram(run: Any, n: int) -> None:
    values, bins = np.random.default_rng(n).integers(0, 16, n, np.uint8), np.zeros(16, np.uint32)
    run(histogram, values, bins, grid=2, block=THREADS)
    assert np.array_equal(bins, np.bincount(values, minlength=16))


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 19])
def test_numbers_that_a_loop_carries(run: Any, count: int) -> None:
    values = np.random.default_rng(count).integers(0, 9, (count, THREADS), np.int32)
    bins, totals = np.zeros(16, np.int32), np.zeros(THREADS, np.int32)
    run(sums, values, bins, totals, grid=1, block=THREADS)
    running = np.cumsum(values, axis=0, dtype=np.int32)
    expected = np.bincount((running % 16).ravel(), values.ravel(), 16)
    assert np.array_equal(bins, expected) and np.array_equal(totals, values.sum(axis=0))


def test_sums_that_are_read_again(run: Any) -> None:
    x = np.zeros(30, np.int32)
    x[:3] = 1, 2, 3
    expected = x.copy()
    for k in range(25):
        expected[k + 1] += expected[k]
    run(of_one_array, x, 25, grid=1, block=1)
    assert np.array_equal(x, expected)


def test_sums_that_are_looked_at(run: Any) -> None:
    x, places, found = np.arange(20, dtype=np.int32), np.zeros(1, np.int32), np.zeros(20, np.int32)
    run(taken, x, places, found, grid=1, block=1)
    assert np.array_equal(found, np.cumsum(x) - x)


def array(dtype: str, ndim: int = 1) -> tuple[Any, ...]:
    return ("array", dtype, ndim, 16, (1,) * ndim, ((0, 1),) * (ndim - 1) + ((1, 1),), True, False)


def order(kernel: Any, *key: Any) -> str:
    """L for a load from global memory, A for an atomic access, in the order of the code."""
    text = lower(kernel, key, "sm_90a", "ptx").decode()
    return "".join("L" if "ld" in found else "A" for found in re.findall(r"ld\.global|\bred\.|\batom\.", text))


def test_loads_of_eight_iterations_come_first() -> None:
    assert "L" * 8 + "A" * 8 in order(histogram, array("int32"), array("uint32"))
    assert "LLA" not in order(of_one_array, array("int32"), ("scalar", "int32", 1))
    assert "LLA" not in order(taken, *[array("int32")] * 3)
