"""Barriers of a block, fences, and arrays that a kernel makes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cuda import device
from tilewright.errors import LaunchError, TileError, TileTypeError, TileValueError


@device.kernel
def votes(x, out):
    t = device.thread_idx.x
    v = x[t]
    out[t, 0] = device.syncthreads_count(lambda: v > 10)
    out[t, 1] = 1 if device.syncthreads_and(lambda: v > 10) else 0

    def is_large():
        return v > 10

    out[t, 2] = 1 if device.syncthreads_or(is_large) else 0


@pytest.mark.spec("D-508", "D-509", "D-510", "D-511", "D-512", "D-507")
@pytest.mark.parametrize("threads", [1, 48, 70])
@pytest.mark.parametrize("least", [0, 20, 100])
def test_votes_of_a_block(run: Any, threads: int, least: int) -> None:
    x = np.arange(least - 30, least - 30 + threads).astype(np.int32)
    out = np.zeros((threads, 3), np.int32)
    run(votes, x, out, grid=1, block=threads)
    expected = [(x > 10).sum(), (x > 10).all(), (x > 10).any()]
    np.testing.assert_array_equal(out, np.tile(expected, (threads, 1)))


@device.kernel
def scan(x, out):
    """An inclusive scan, with a barrier in a loop; threads past the end have left."""
    a = device.shared_array(64, device.int32)
    b = device.shared_array(64, device.int32, align=128)
    t = device.tid(1) % 64
    n = x.shape[0]
    if t >= n:
        return
    a[t] = x[t]
    step = 1
    while step < n:
        device.syncthreads()
        b[t] = a[t] + (a[t - step] if t >= step else 0)
        device.syncthreads()
        a[t] = b[t]
        step *= 2
    out[t] = a[t]


@pytest.mark.spec("D-506", "D-363", "D-370")
def test_barriers_in_a_loop_behind_a_return(run: Any) -> None:
    x = np.arange(50, dtype=np.int32) * 7 % 11
    out = np.zeros_like(x)
    run(scan, x, out, grid=1, block=64)
    np.testing.assert_array_equal(out, np.cumsum(x))


@device.kernel
def diverge(x):
    if device.thread_idx.x < 16:
        device.syncthreads()
        x[0] = 1
    else:
        device.syncthreads()
        x[1] = 2


@pytest.mark.spec("D-506")
@pytest.mark.host_execution
def test_a_divergent_barrier_names_both_lines(run: Any) -> None:
    first = diverge.underlying.__code__.co_firstlineno
    with pytest.raises(LaunchError, match="divergent barrier in block") as error:
        run(diverge, np.zeros(2, np.int32), grid=1, block=32)
    message = str(error.value)
    assert f"test_barriers.py:{first + 3}" in message and f"test_barriers.py:{first + 6}" in message
    assert "thread (0, 0, 0)" in message and "thread (16, 0, 0)" in message


# --- arrays that a kernel makes --------------------------------------------------------------------


@device.kernel
def by_columns(out):
    """What one thread writes by row and column another one reads, of either order."""
    rows = device.shared_array((4, 8), device.int16)
    columns = device.shared_array((4, 8), device.int16, order="F")
    t = device.thread_idx.x
    rows[t // 8, t % 8] = t
    columns[t // 8, t % 8] = t
    device.syncthreads()
    out[t, 0] = rows[t % 4, t // 4]
    out[t, 1] = columns[t % 4, t // 4]
    out[t, 2], out[t, 3] = rows.strides
    out[t, 4], out[t, 5] = columns.strides


@pytest.mark.spec("D-366", "D-367")
def test_orders_of_shared_arrays(run: Any) -> None:
    out = np.zeros((32, 6), np.int32)
    run(by_columns, out, grid=1, block=32)
    t = np.arange(32)
    np.testing.assert_array_equal(out[:, 0], t % 4 * 8 + t // 4)
    np.testing.assert_array_equal(out[:, 1], out[:, 0])
    assert out[0, 2:].tolist() == [16, 2, 2, 8]


@device.kernel
def with_local(x, out):
    i = device.tid(1)
    mine = device.local_array(4, device.float32)
    turned = device.local_array((2, 3), device.int64, order="F", align=64)
    for k in range(4):
        mine[k] = x[i] + k
    for k in range(6):
        turned[k // 3, k % 3] = i * 10 + k
    device.syncthreads()
    out[i, 0] = mine[i % 4]
    out[i, 1] = turned[1, i % 3]
    out[i, 2] = turned.strides[1] * 100 + mine.strides[0]


@pytest.mark.spec("D-355", "D-358", "D-359", "D-360", "D-362", "D-369")
def test_arrays_of_a_thread(run: Any) -> None:
    x = np.arange(64, dtype=np.float32)
    out = np.zeros((64, 3), np.float32)
    run(with_local, x, out, grid=2, block=32)
    i = np.arange(64)
    np.testing.assert_array_equal(out[:, 0], x + i % 4)
    np.testing.assert_array_equal(out[:, 1], i * 10 + 3 + i % 3)
    assert (out[:, 2] == 1604).all()


@device.kernel
def with_dynamic(out):
    before = device.shared_array(3, device.int32)
    more = device.dynamic_shared_array()
    same = device.dynamic_shared_array().view(device.float32)
    t = device.thread_idx.x
    if t < 3:
        before[t] = 7
    same[t] = 1.0
    device.syncthreads()
    more[4 * t + 3] = 0xC0  # -2 now
    device.syncthreads()
    out[t, 0] = same[(t + 1) % 32]
    out[t, 1] = more.shape[0]
    out[t, 2] = same.shape[0] + before[t % 3]


@pytest.mark.spec("D-317", "D-371", "D-372", "D-373")
def test_shared_memory_of_the_launch(run: Any) -> None:
    out = np.zeros((32, 3), np.float32)
    run(with_dynamic, out, grid=1, block=32, shared=128)
    bits = np.uint32(0xC0800000)  # of 1.0, 0x3f800000, with another last byte
    np.testing.assert_array_equal(out, np.tile([bits.view(np.float32), 128, 39], (32, 1)))


@device.kernel
def with_constants(out):
    table = device.const_array((1.5, -2.0, 4.0))
    numbers = device.const_array([[1, 2], [3, 4]], device.uint8)
    i = device.thread_idx.x
    out[i] = table[i % 3] + numbers[i // 2 % 2, i % 2]


@pytest.mark.spec("D-374")
def test_constant_arrays(run: Any) -> None:
    out = np.zeros(12, np.float32)
    run(with_constants, out, grid=1, block=12)
    i = np.arange(12)
    expected = np.array([1.5, -2.0, 4.0])[i % 3] + np.array([[1, 2], [3, 4]])[i // 2 % 2, i % 2]
    np.testing.assert_array_equal(out, expected)


# --- errors -----------------------------------------------------------------------------------------


def refused(kernel: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        device.launch(kernel, np.zeros(4, np.float32), grid=1, block=1)


@pytest.mark.spec("D-513", "D-507")
def test_a_predicate_is_a_function() -> None:
    @device.kernel
    def plain(x):
        x[0] = 1.0 if device.syncthreads_or(x[0] > 0) else 0.0

    @device.kernel
    def with_parameter(x):
        x[0] = device.syncthreads_count(lambda y: y > 0)

    for kernel in (plain, with_parameter):
        refused(kernel, TileTypeError, r"pred is a function without parameters, found .*lambda: x > 0")


@pytest.mark.spec("D-356", "D-357", "D-361", "D-364", "D-365", "D-368")
@pytest.mark.parametrize("make", [device.local_array, device.shared_array])
def test_arguments_of_arrays(make: Any) -> None:
    @device.kernel
    def run_time_shape(x):
        x[0] = make(x.shape[0], device.float32)[0]

    @device.kernel
    def float_shape(x):
        x[0] = make((2, 2.0), device.float32)[0, 0]

    @device.kernel
    def other_order(x):
        x[0] = make(4, device.float32, order="K")[0]

    @device.kernel
    def odd_alignment(x):
        x[0] = make(4, device.float32, align=24)[0]

    refused(run_time_shape, TileValueError, "the shape must be constant and positive")
    refused(float_shape, TileTypeError, "the shape must be an integer or a tuple of integers")
    refused(other_order, TileValueError, "expected order 'C' or 'F', found 'K'")
    refused(odd_alignment, TileValueError, "align is a power of two up to 4096, found the constant 24")


@pytest.mark.spec("D-354", "D-287")
@pytest.mark.parametrize(
    "call",
    [
        lambda: device.local_array(4, device.float32),
        lambda: device.shared_array(4, device.float32),
        lambda: device.dynamic_shared_array(),
        lambda: device.syncthreads_and(lambda: True),
        lambda: device.threadfence(),
        lambda: device.activemask(),
    ],
)
def test_the_host_has_none_of_it(call: Any) -> None:
    with pytest.raises(TileError, match=r"device.\w+\(\) can only be called in a kernel"):
        call()


def test_shared_memory_is_a_number_of_bytes() -> None:
    with pytest.raises(TileValueError, match="expected a number of bytes as shared, found -1"):
        device.launch(with_dynamic, np.zeros((1, 3), np.float32), grid=1, block=1, shared=-1)
