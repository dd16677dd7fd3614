"""Barriers of the whole grid: what all blocks wait for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tilewright import _core, device, plans
from tilewright import compile as compiler
from tilewright.capture import ArrayArgument, capture
from tilewright.dtype import int32
from tilewright.errors import LaunchError
from tilewright.numba import cuda

Run = Callable[..., None]


@pytest.fixture
def by_launcher(pytestconfig: pytest.Config) -> None:
    if pytestconfig.pluginmanager.hasplugin("emulated"):
        pytest.skip("what a launcher refuses and finds, the emulator gives up at")


@device.kernel
def heat(a, b, steps):
    """Each step reads what other blocks wrote in the one before."""
    t, n = device.tid(1), a.size
    for step in range(steps):
        left, right = (t - 1) if t > 0 else 0, (t + 1) if t < n - 1 else n - 1
        if step % 2 == 0:
            b[t] = a[left] + 2 * a[t] + a[right]
        else:
            a[t] = b[left] + 2 * b[t] + b[right]
        device.syncgrid()


@pytest.mark.parametrize(("grid", "block"), [(1, 1), (1, 96), (7, 32), (16, 128), (33, 40)])
def test_steps_over_the_grid(at_once: Run, grid: int, block: int) -> None:
    n = grid * block
    a, b = np.arange(n, dtype=np.int32) % 5, np.zeros(n, np.int32)
    expected = a.copy()
    for _ in range(6):
        expected = np.concatenate([expected[:1], expected[:-1]]) + 2 * expected + np.append(expected[1:], expected[-1:])
    at_once(heat, a, b, 6, grid=grid, block=block)
    np.testing.assert_array_equal(a, expected)


@device.kernel
def share_of_sum(x, sums, out):
    """Blocks in three dimensions, with shared arrays of their own and the launch's, and threads that have left."""
    static, dynamic = device.shared_array(64, device.int32), device.dynamic_shared_array().view(device.int32)
    tx, ty = device.int32(device.thread_idx.x), device.int32(device.thread_idx.y)
    t = ty * device.int32(device.block_dim.x) + tx
    across = device.int32(device.block_idx.y) + device.int32(device.block_idx.z) * device.int32(device.grid_dim.y)
    b = device.int32(device.block_idx.x) + across * device.int32(device.grid_dim.x)
    if t >= x.shape[1]:
        return
    static[t], dynamic[t] = x[b, t], 0
    device.syncthreads()
    if t == 0:
        total = device.int32(0)
        for i in range(x.shape[1]):
            total += static[i]
        sums[b] = total
    device.syncgrid()
    for i in range(sums.size):
        dynamic[t] += sums[i]
    out[b, t] = dynamic[t] - static[t]


def test_each_block_has_its_shared_memory(at_once: Run) -> None:
    grid, block = (3, 2, 2), (16, 4)
    x = np.random.default_rng(1).integers(-50, 50, (12, 50)).astype(np.int32)
    sums, out = np.zeros(12, np.int32), np.zeros((12, 50), np.int32)
    at_once(share_of_sum, x, sums, out, grid=grid, block=block, shared=64 * 4)
    np.testing.assert_array_equal(sums, x.sum(axis=1))
    np.testing.assert_array_equal(out, x.sum() - x)


@cuda.jit
def sequential_rows(m):
    column, grid = cuda.grid(1), cuda.cg.this_grid()
    for row in range(1, m.shape[0]):
        m[row, column] = m[row - 1, m.shape[1] - column - 1] + 1
        grid.sync()


@cuda.jit
def asks_only(m):
    cuda.cg.this_grid()
    m[0, 0] = 0


@cuda.jit
def neither(m):
    m[0, 0] = 0


def test_numbas_grid(by_launcher: None) -> None:
    m = np.zeros((100, 256), np.int32)
    sequential_rows[8, 32](m)
    np.testing.assert_array_equal(m, np.broadcast_to(np.arange(100)[:, None], m.shape))
    (overload,) = sequential_rows.overloads.values()
    assert overload.cooperative
    most = overload.max_cooperative_grid_blocks((16, 2))
    assert most == overload.max_cooperative_grid_blocks(32) >= 132
    assert overload.max_cooperative_grid_blocks(64) < 2 * most
    asks_only[8, 32](m)
    assert [overload.cooperative for overload in asks_only.overloads.values()] == [True]
    neither[8, 32](m)
    assert [overload.cooperative for overload in neither.overloads.values()] == [False]
    with pytest.raises(LaunchError, match=rf"{most + 1} blocks of 32 threads, and .* runs {most} of them"):
        sequential_rows[most + 1, 32](np.zeros((2, 32 * (most + 1)), np.int32))


@device.kernel
def some_blocks(x):
    if device.block_idx.x < 2:
        device.syncgrid()
    x[device.tid(1)] = 1


@device.kernel
def two_places(x):
    if device.block_idx.x == 1:
        device.syncgrid()
    else:
        device.syncgrid()
    x[device.tid(1)] = 1


@device.kernel
def some_threads(x):
    if device.thread_idx.x < 2:
        device.syncgrid()
    else:
        device.syncthreads()


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (some_blocks, r"block \(0, 0, 0\) waits at .*:\d+, block \(2, 0, 0\) has ended"),
        (two_places, r"block \(0, 0, 0\) waits at .*:\d+, block \(1, 0, 0\) waits at .*:\d+"),
        (some_threads, r"in block \(0, 0, 0\): thread \(0, 0, 0\) waits at .*, thread \(2, 0, 0\) waits at"),
    ],
)
def test_a_barrier_of_some_is_reported_on_the_cpu(by_launcher: None, kernel: Any, message: str) -> None:
    with pytest.raises(LaunchError, match=message):
        device.launch(kernel, np.zeros(64), grid=4, block=16)
    device.launch(heat, np.zeros(4, np.int32), np.zeros(4, np.int32), 2, grid=2, block=2)


def test_interpret_has_a_grid_of_one_block() -> None:
    a, b = np.array([1, 2, 3], np.int32), np.zeros(3, np.int32)
    heat.interpret((a, b, 1), 1, 3)
    assert list(b) == [5, 8, 11]
    with pytest.raises(LaunchError, match="one block at a time"):
        heat.interpret((a, b, 1), 3, 1)


@device.kernel
def alone(x):
    device.syncthreads()
    x[device.tid(1)] = 1


@pytest.mark.parametrize("target", ["cpu", "sm_80", "sm_90a", "sm_120"])
@pytest.mark.parametrize(("kernel", "together"), [(some_threads, True), (alone, False)])
def test_the_launch_is_cooperative(target: str, kernel: Any, together: bool) -> None:
    array = ArrayArgument(int32, 1, 16, (1,), ((1, 1),))
    module = capture(kernel.function, [array], target, rules=kernel.rules).module
    stages = compiler.CPU_STAGES if target == "cpu" else compiler.GPU_STAGES
    plans.lower(module, stages, module.lower)
    facts = _core.launch_facts(compiler.record_of(module))
    assert bool(facts["cooperative"]) == together
    if target != "cpu":
        assert ("%envreg2" in module.emit(compiler.EMIT_ASSEMBLY).decode()) == together
