"""Kernels whose blocks the CPU cuts at their barriers: what crosses one, and what stands around one."""

from __future__ import annotations

import importlib.util
import platform
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cuda import device
from tilewright import cli
from tilewright import compile as compiler


@device.kernel
def crossing(x, out):
    """Values of every kind that are read behind two barriers; blocks of three dimensions."""
    s = device.shared_array(64, device.float32)
    px, py, pz = device.thread_idx
    t = device.int32((pz * device.block_dim.y + py) * device.block_dim.x + px)
    v = x[t]
    is_large = v > 10.0
    wide = device.float64(v) * 3
    s[t] = v
    device.syncthreads()
    other = s[63 - t]
    device.syncthreads()
    s[t] = other * 2
    device.syncthreads()
    out[t, 0] = s[(t + 1) % 64] + (1.0 if is_large else 0.0)
    out[t, 1] = device.float32(wide) + other


@pytest.mark.spec("D-508")
def test_values_across_barriers(run: Any) -> None:
    x = np.arange(64, dtype=np.float32)
    out = np.zeros((64, 2), np.float32)
    run(crossing, x, out, grid=1, block=(4, 8, 2))
    other = x[::-1]
    np.testing.assert_array_equal(out[:, 0], 2 * np.roll(other, -1) + (x > 10))
    np.testing.assert_array_equal(out[:, 1], 3 * x + other)


@device.kernel
def places_in_branches(x, lanes, n):
    """Where a thread stands is asked for in branches and loops that all threads take, and nowhere else."""
    if n > 3:
        return
    for k in range(n):
        if n > 1:
            i = device.tid(1)
            if i < x.size:
                x[i] += i + k
        else:
            x[device.thread_idx.y] = device.int32(device.block_dim.x)
    if n > 2:
        lanes[device.tid(1)] = device.lane_id


def test_places_in_branches(run: Any) -> None:
    x, lanes = np.zeros(70, np.int32), np.zeros(96, np.int32)
    run(places_in_branches, x, lanes, 3, grid=2, block=48)
    assert x.tolist() == [3 * i + 3 for i in range(70)]
    assert lanes.tolist() == [i % 48 % 32 for i in range(96)]
    run(places_in_branches, x, lanes, 1, grid=1, block=(3, 2))
    assert x[:3].tolist() == [3, 3, 9]
    run(places_in_branches, x, lanes, 4, grid=1, block=8)
    assert x[:3].tolist() == [3, 3, 9]


@device.kernel
def around(x, out, n):
    """A barrier in loops, in a branch that all take, and in a loop that a vote ends."""
    s = device.shared_array(32, device.int32)
    t = device.int32(device.thread_idx.x)
    total = device.int32(0)
    for i in range(n):
        for j in range(2):
            s[t] = x[t] + i
            device.syncthreads()
            total += s[(t + j + 1) % 32]
            device.syncthreads()
    if n > 2:
        s[t] = total
        device.syncthreads()
        total = total + s[31 - t]
    left = x[t]
    rounds = device.int32(0)
    while device.syncthreads_or(lambda: left > 0):  # noqa: B023
        left -= 3
        rounds += 1
    out[t, 0] = total
    out[t, 1] = rounds
    out[t, 2] = device.syncthreads_count(lambda: left < -1)


@pytest.mark.spec("D-508", "D-509", "D-511")
@pytest.mark.parametrize("n", [0, 2, 3])
def test_barriers_in_loops_and_branches(run: Any, n: int) -> None:
    x = (np.arange(32, dtype=np.int32) * 5) % 17
    out = np.zeros((32, 3), np.int32)
    run(around, x, out, n, grid=1, block=32)
    total = sum(np.roll(x, -1 - j) + i for i in range(n) for j in range(2)) + np.zeros(32, np.int32)
    total = total + total[::-1] if n > 2 else total
    rounds = -(-int(x.max()) // 3)
    expected = [total, np.full(32, rounds), np.full(32, np.count_nonzero(x - 3 * rounds < -1))]
    np.testing.assert_array_equal(out, np.stack(expected, axis=1))


@device.kernel
def counted(x, out):
    """A bin of each block, which threads of many others count into."""
    own = device.shared_array(8, device.int32)
    t = device.int32(device.thread_idx.x)
    if t < 8:
        own[t] = 0
    device.syncthreads()
    for i in range(device.tid(1), x.shape[0], device.grid_size(1)):
        device.atomic_ref(own, x[i] & 7).add(1, "relaxed", "block")
    device.syncthreads()
    if t < 8:
        device.atomic_ref(out, t).add(own[t])


@pytest.mark.spec("D-501")
def test_atomics_between_barriers(run: Any) -> None:
    x = np.arange(1000, dtype=np.int32) * 3
    out = np.zeros(8, np.int32)
    run(counted, x, out, grid=3, block=40)
    np.testing.assert_array_equal(out, np.bincount(x & 7, minlength=8))


def kernel_that_carries(count: int, folder: Path) -> Any:
    """A loop with a barrier that carries `count` values."""
    body = ["t = device.int32(device.thread_idx.x)", *(f"v{i} = x[{i}]" for i in range(count))]
    body += ["for _ in range(x.shape[0] // 35):"]
    body += [f"    v{i} = v{i} + v{(i + 1) % count} % 7 + t" for i in range(count)]
    body += ["    device.syncthreads()", *(f"out[t, {i}] = v{i}" for i in range(count))]
    source = folder / "carries.py"
    source.write_text(
        "from cuda import device\n\n@device.kernel\ndef kernel(x, out):\n    " + "\n    ".join(body) + "\n"
    )
    spec = importlib.util.spec_from_file_location("carries", source)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


def test_a_loop_with_a_barrier_carries_any_number_of_values(run: Any, tmp_path: Path) -> None:
    count, threads = 70, 32
    x, out = np.arange(count, dtype=np.int32), np.zeros((threads, count), np.int32)
    run(kernel_that_carries(count, tmp_path), x, out, grid=1, block=threads)
    values = np.repeat(x[None], threads, axis=0)
    for _ in range(count // 35):
        for i in range(count):
            values[:, i] += values[:, (i + 1) % count] % 7 + np.arange(threads)
    np.testing.assert_array_equal(out, values)


@device.kernel
def axpy(a, x, y):
    i = device.tid(1)
    if i < y.shape[0]:
        y[i] = a * x[i] + y[i]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="looks for instructions of x86-64")
def test_loops_over_threads_are_vectorized() -> None:
    key = tuple(cli.parse_argument(a)[1] for a in ("a=f32", "x=f32[?]", "y=f32[?]"))
    module = compiler.capture_kernel(axpy, "cpu", key).module
    module.lower("llvm")
    assert re.search(r"v?(mulps|fmadd\d+ps)", module.emit(compiler.EMIT_ASSEMBLY).decode())
