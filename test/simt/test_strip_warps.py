"""Warps: where lanes part, leave, and meet again, in rows of a block and in blocks of other shapes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from cuda import device
from tilewright.errors import LaunchError

FULL = 0xFFFFFFFF


@device.kernel
def parted(x, out):
    """Shuffles, votes and matches in branches that some lanes take, with the masks of these; then all together."""
    t = device.int32(device.thread_idx.x)
    lane, warp = t % 32, t // 32
    v = x[t]
    if lane < 16:
        v += device.shfl_xor_sync(0xFFFF, v, 8)
        if lane < 4:
            v += device.shfl_sync(0xF, v, 3)
            out[t, 1] = device.int32(device.uint32(device.match_any_sync(0xF, lane % 2)))
        out[t, 2] = 1 if device.any_sync(0xFFFF, lambda: lane == 9) else 0
    v += device.shfl_down_sync(FULL, v, 1)
    if warp == 1:  # the same for all lanes of a warp
        v = device.shfl_sync(FULL, v, (lane * 7 + 1) % 32)
    out[t, 0] = v


def test_lanes_that_part(run: Any) -> None:
    x = np.arange(64, dtype=np.int32) * 5 % 23
    out = np.zeros((64, 3), np.int32)
    run(parted, x, out, grid=1, block=64)
    expected = np.zeros_like(out)
    for warp in range(2):
        v = x[32 * warp : 32 * warp + 32].copy()
        here = expected[32 * warp : 32 * warp + 32]
        v[:16] += v[np.arange(16) ^ 8]
        v[:4] += v[3]
        here[:4, 1] = [0b0101, 0b1010, 0b0101, 0b1010]
        here[:16, 2] = 1
        v[:31] += v[1:].copy()
        v[31] *= 2
        here[:, 0] = v[(np.arange(32) * 7 + 1) % 32] if warp == 1 else v
    np.testing.assert_array_equal(out, expected)


@device.kernel
def leaving(x, out, n):
    """Lanes that have left the kernel count nowhere, where lanes of a warp meet."""
    t = device.tid(1)
    if t >= n:
        return
    v = x[t]
    for k in range(5):
        v += device.shfl_xor_sync(FULL, v, 1 << k) if t // 32 < n // 32 else device.int32(0)
    lanes = device.ballot_sync(FULL, lambda: x[t] > 3)
    out[t, 0] = v
    out[t, 1] = device.int32(device.uint32(lanes))


@pytest.mark.parametrize("n", [64, 70])
def test_lanes_that_left(run: Any, n: int) -> None:
    x = np.arange(96, dtype=np.int32) * 7 % 11
    out = np.zeros((96, 2), np.int32)
    run(leaving, x, out, n, grid=1, block=96)
    for warp in range(3):
        rows = slice(32 * warp, min(32 * warp + 32, n))
        some = x[rows]
        if len(some) == 32:
            assert (out[rows, 0] == some.sum()).all()
        elif len(some):
            np.testing.assert_array_equal(out[rows, 0], some)
        bits = sum(1 << i for i, v in enumerate(some) if v > 3)
        assert (out[rows, 1].view(np.uint32) == bits).all()
    assert not out[n:].any()


@device.kernel
def rounds(starts, x, out):
    """Sums of rows by warps, a stride of warps apart, whose lanes come together in each round."""
    t = device.int32(device.thread_idx.x)
    lane = t % 32
    for row in range(t // 32, starts.size - 1, device.int32(device.block_dim.x) // 32):
        total = device.float32(0)
        for k in range(starts[row] + lane, starts[row + 1], 32):
            total += x[k]
        step = device.int32(16)
        while step > 0:
            total += device.shfl_down_sync(FULL, total, step)
            step = step // 2
        if lane == 0:
            out[row] = total


@pytest.mark.parametrize("block", [32, 64])
def test_rows_by_warps(run: Any, block: int) -> None:
    lengths = np.array([40, 0, 1, 100, 33, 7, 64])
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    x = (np.arange(starts[-1]) % 13).astype(np.float32)
    out = np.full(len(lengths), -1, np.float32)
    run(rounds, starts, x, out, grid=1, block=block)
    np.testing.assert_array_equal(out, [x[a:b].sum() for a, b in itertools.pairwise(starts)])


@device.kernel
def sums(x, out):
    """An inclusive sum in each warp, whatever the shape of the block."""
    p, d = device.thread_idx, device.block_dim
    t = device.int32((p.z * d.y + p.y) * d.x + p.x)
    v = x[t]
    for k in range(5):
        left = device.shfl_up_sync(FULL, v, 1 << k)
        if device.lane_id >= 1 << k:
            v += left
    out[t] = v * 100 + device.lane_id


@pytest.mark.parametrize("block", [(64, 1, 1), (16, 4, 1), (32, 2, 2), (5, 4, 3), (40, 1, 1)])
def test_blocks_of_any_shape(run: Any, block: tuple[int, int, int]) -> None:
    n = int(np.prod(block))
    x = np.arange(n, dtype=np.int32) % 7
    out = np.zeros(n, np.int32)
    run(sums, x, out, grid=1, block=block)
    expected = np.concatenate([np.cumsum(x[i : i + 32]) for i in range(0, n, 32)])
    np.testing.assert_array_equal(out, expected * 100 + np.arange(n) % 32)


@device.kernel
def both_sides(x, out):
    """Lanes meet from two sides of a branch, and from different rounds of a loop."""
    lane = device.lane_id
    if lane < 16:
        x[lane] = lane
        device.syncwarp()
    else:
        x[lane] = -lane
        device.syncwarp()
    for k in range(2):
        if lane % 2 == k:
            out[lane] = x[31 - lane]
            device.syncwarp()


@pytest.mark.host_execution
def test_lanes_that_meet_from_two_places(run: Any) -> None:
    out = np.zeros(32, np.int32)
    run(both_sides, np.zeros(32, np.int32), out, grid=1, block=32)
    lane = np.arange(32)
    np.testing.assert_array_equal(out[::-1], np.where(lane < 16, lane, -lane))


@device.kernel
def missing(x):
    lane = device.lane_id
    if x[lane] > 0:
        x[lane] = device.shfl_sync(FULL, x[lane], 0)
    device.syncthreads()
    x[lane] += 1


@pytest.mark.host_execution
def test_lanes_that_go_elsewhere(run: Any) -> None:
    run(missing, np.ones(32, np.int32), grid=1, block=32)
    line = missing.underlying.__code__.co_firstlineno + 4
    x = np.ones(32, np.int32)
    x[3] = 0
    found = rf"divergent barrier in block .*test_strip_warps.py:{line} for lanes 0xffffffff"
    with pytest.raises(LaunchError, match=found):
        run(missing, x, grid=1, block=32)


@device.kernel
def counted(x, bins, places, last):
    """Atomics on shared arrays and on arrays, by all lanes and by some, whose results are used."""
    own = device.shared_array(8, device.int32)
    largest = device.shared_array(1, device.float32)
    t = device.int32(device.thread_idx.x)
    if t < 8:
        own[t] = 0
    if t == 0:
        largest[0] = 0
    device.syncthreads()
    v = x[t]
    places[t] = device.atomic_ref(own, v % 8).add(1, "relaxed", "block")
    if v % 3 == 1:
        device.atomic_ref(largest, 0).max(device.float32(v), "relaxed", "block")
        device.atomic_ref(bins, v % 8).sub(1)
    device.syncthreads()
    if t < 8:
        device.atomic_ref(bins, t).add(own[t])
    last[t] = largest[0]


@pytest.mark.parametrize("block", [45, 64])
def test_atomics_of_lanes(run: Any, block: int) -> None:
    x = np.arange(block, dtype=np.int32) * 11 % 37
    bins, places, last = np.zeros(8, np.int32), np.zeros(block, np.int32), np.zeros(block, np.float32)
    run(counted, x, bins, places, last, grid=1, block=block)
    for b in range(8):
        assert sorted(places[x % 8 == b]) == list(range(int((x % 8 == b).sum())))
    some = x[x % 3 == 1]
    np.testing.assert_array_equal(bins, np.bincount(x % 8, minlength=8) - np.bincount(some % 8, minlength=8))
    assert (last == some.max()).all()
