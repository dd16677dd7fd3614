"""Threads of a block share the iterations of a loop on a GPU, so that each loads a vector of small elements. No result
shows it, but a wrong one."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from cuda import device
from tilewright.cli import lower

BINS = 64


@device.kernel
def histogram(values, bins):
    own = device.shared_array(BINS, device.uint32)
    for b in range(device.int32(device.thread_idx.x), BINS, device.int32(device.block_dim.x)):
        own[b] = 0
    device.syncthreads()
    for i in range(device.tid(1), values.size, device.grid_size(1)):
        device.atomic_ref(own, values[i] & 63).add(1, "relaxed", "block")
    device.syncthreads()
    for b in range(device.int32(device.thread_idx.x), BINS, device.int32(device.block_dim.x)):
        device.atomic_ref(bins, b).add(own[b], "relaxed", "device")


@device.kernel
def table(values, weights, bins, most):
    """Without shared memory: a sum of what a table has, and the largest value."""
    for i in range(device.tid(1), values.size, device.grid_size(1)):
        v = device.int32(values[i]) & 63
        device.atomic_ref(bins, v).add(weights[v], "relaxed", "device")
        device.atomic_ref(most, 0).max(v, "relaxed", "device")


@device.kernel
def rows(values, bins):
    """Each row of threads goes over all of the values."""
    for i in range(device.int32(device.thread_idx.x), values.size, device.int32(device.block_dim.x)):
        device.atomic_ref(bins, values[i] & 63).add(1, "relaxed", "device")


@device.kernel
def own_sums(values, sums):
    t = device.int32(device.thread_idx.x)
    for i in range(t, values.size, device.int32(device.block_dim.x)):
        device.atomic_ref(sums, t).add(device.int32(values[i]), "relaxed", "device")


@device.kernel
def seen_behind(values, bins, seen):
    """A thread sees what it has added itself, without a barrier."""
    t = device.int32(device.thread_idx.x)
    for i in range(t, values.size, device.int32(device.block_dim.x)):
        device.atomic_ref(bins, values[i] & 63).add(1, "relaxed", "device")
    seen[t] = device.atomic_ref(bins, values[t] & 63).load("relaxed", "device")


@device.kernel
def for_some(values, bins):
    if device.thread_idx.x % 2 == 0:
        for i in range(device.int32(device.thread_idx.x), values.size, device.int32(device.block_dim.x)):
            device.atomic_ref(bins, values[i] & 63).add(1, "relaxed", "device")


@device.kernel
def exchanged(values, last):
    """The last one of a thread wins."""
    for i in range(device.int32(device.thread_idx.x), values.size, device.int32(device.block_dim.x)):
        device.atomic_ref(last, 0).exch(device.int32(values[i]), "relaxed", "device")


@device.kernel
def beside_its_own(values, bins):
    t = device.int32(device.thread_idx.x)
    for i in range(t, values.size, device.int32(device.block_dim.x)):
        device.atomic_ref(bins, t + device.int32(values[i] & 31)).add(1, "relaxed", "device")


@device.kernel
def of_lanes(values, bins):
    for i in range(device.int32(device.thread_idx.x), values.size, device.int32(device.block_dim.x)):
        device.atomic_ref(bins, device.lane_id).add(device.uint32(values[i]), "relaxed", "device")


@device.kernel
def numbered(values, bins):
    for i in range(device.int32(device.thread_idx.x), values.size, device.int32(device.block_dim.x)):
        device.atomic_ref(bins, values[i] & 63).add(device.uint32(i), "relaxed", "device")


def values_of(n: int, dtype: str = "uint8", skip: int = 0) -> np.ndarray:
    """Of which the first byte lies `skip` elements behind a multiple of 16."""
    whole = np.random.default_rng(n).integers(0, 100, n + 64).astype(dtype)
    lead = -whole.ctypes.data % 64 // whole.itemsize + skip
    return whole[lead : lead + n]


@pytest.mark.parametrize("grid, block", [(1, 16), (2, 32), (3, 48), (2, 40), (1, 8), (2, (32, 2)), (2, 33)])
@pytest.mark.parametrize("n", [0, 1, 255, 256, 1023, 1024, 1025, 3000])
def test_histogram(run: Any, grid: int, block: Any, n: int) -> None:
    values, bins = values_of(n), np.zeros(BINS, np.uint32)
    run(histogram, values, bins, grid=grid, block=block)
    if isinstance(block, tuple):  # rows of threads are numbered along x alone, and each goes over all
        bins //= block[1] ** 2
    assert np.array_equal(bins, np.bincount(values & 63, minlength=BINS))


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "float16", "int32"])
@pytest.mark.parametrize("skip", [0, 1])
def test_elements_of_all_sizes(run: Any, dtype: str, skip: int) -> None:
    values = values_of(2100, "uint8" if dtype == "float16" else dtype, skip).astype(dtype)
    weights = np.arange(BINS, dtype=np.int32)
    bins, most = np.zeros(BINS, np.int32), np.zeros(1, np.int32)
    run(table, values, weights, bins, most, grid=2, block=64)
    kept = values.astype(np.int32) & 63
    assert np.array_equal(bins, np.bincount(kept, minlength=BINS) * weights) and most[0] == kept.max()


def test_rows_of_threads(run: Any) -> None:
    values, bins = values_of(1500), np.zeros(BINS, np.uint32)
    run(rows, values, bins, grid=1, block=(32, 3))
    assert np.array_equal(bins, 3 * np.bincount(values & 63, minlength=BINS))


def test_sums_of_a_thread(run: Any) -> None:
    values, sums = values_of(1500), np.zeros(32, np.int32)
    run(own_sums, values, sums, grid=1, block=32)
    assert sums.tolist() == [int(values[t::32].sum()) for t in range(32)]


def test_places_of_a_thread(run: Any) -> None:
    values, bins = values_of(2000), np.zeros(64, np.uint32)
    run(beside_its_own, values, bins, grid=1, block=32)
    places = np.arange(2000) % 32 + (values & 31)
    assert np.array_equal(bins, np.bincount(places, minlength=64))


def array(dtype: str) -> tuple[Any, ...]:
    return ("array", dtype, 1, 16, (1,), ((1, 1),), True, False)


def order(kernel: Any, *key: Any) -> str:
    """L for a load from global memory, V for one of 16 bytes, A for an atomic access, in the order of the code."""
    text = lower(kernel, key, "sm_90a", "ptx").decode()
    found = re.findall(r"ld\.global\.v4|ld\.global|\bred\.|\batom\.", text)
    return "".join("V" if part.endswith("v4") else "L" if part.startswith("ld") else "A" for part in found)


def test_a_vector_is_loaded_for_sixteen_iterations() -> None:
    assert "V" + "A" * 16 + "LA" in order(histogram, array("uint8"), array("uint32"))
    assert "V" + "A" * 8 + "LA" in order(histogram, array("uint16"), array("uint32"))
    assert "V" + "A" * 16 + "LA" in order(rows, array("uint8"), array("uint32"))


@pytest.mark.parametrize(
    "kernel, others",
    [
        (own_sums, ["int32"]),
        (seen_behind, ["uint32", "uint32"]),
        (for_some, ["uint32"]),
        (exchanged, ["int32"]),
        (numbered, ["uint32"]),
        (beside_its_own, ["uint32"]),
        (of_lanes, ["uint32"]),
    ],
)
def test_what_threads_do_for_themselves_they_do(kernel: Any, others: list[str]) -> None:
    assert "V" not in order(kernel, array("uint8"), *map(array, others))
