"""Check mode of kernels of threads: what goes wrong is told with its line, and the next launch runs."""

from __future__ import annotations

from typing import Any

import emulate
import numpy as np
import pytest

from cuda import device
from tilewright import compile as compiler
from tilewright.errors import LaunchError, TileCheckError


@device.kernel
def shifted(x, y):
    i = device.tid(1)
    y[i + 1] = x[i]


@device.kernel
def around(x, y):
    own = device.shared_array(4, device.float32)
    t = device.int32(device.thread_idx.x)
    own[t] = x[t]
    device.syncthreads()
    for k in range(2):
        if t == 3:
            y[t] = own[t + k]


@device.kernel
def counts(x, bins):
    device.atomic_ref(bins, x[device.tid(1)]).add(1)


@device.kernel
def asserts(x):
    i = device.tid(1)
    assert x[i] < 5, "too large"
    x[i] = 0


@pytest.fixture(params=["cpu", "emulator"])
def execution(request: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "emulator":
        if emulate.MISSING is not None:
            pytest.skip(str(emulate.MISSING))
        monkeypatch.setattr(emulate, "TARGET", "sm_90")
        monkeypatch.setattr(compiler, "compile_kernel", emulate.compile_kernel)
    return str(request.param)


def told(kernel: Any, *args: Any, **how: Any) -> TileCheckError:
    with pytest.raises(TileCheckError) as error:
        device.launch(device.kernel(kernel.underlying), *args, check=True, **{"grid": 1, "block": 4, **how})
    return error.value


def test_an_index_outside(execution: str) -> None:
    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    error = told(shifted, x, y, grid=(2, 1), block=4)
    assert "thread (3, 0, 0) of block (1, 0, 0) writes y[8] (the value 7.0), which is outside of its" in str(error)
    assert "y[i + 1] = x[i]" in str(error) and len(error.findings) == 1
    assert list(y) == [0, 0, 1, 2, 3, 4, 5, 6]
    told(shifted, x, y, grid=3, block=4)  # the next launch runs, and tells of its own
    device.launch(shifted, x, np.zeros(9, np.float32), grid=2, block=4, check=True)


def test_a_shared_array(execution: str) -> None:
    error = told(around, np.ones(4, np.float32), np.zeros(4, np.float32))
    assert "thread (3, 0, 0) of block (0, 0, 0) reads an array outside of its shape; compare the index" in str(error)


def test_an_atomic_access(execution: str) -> None:
    x, bins = np.array([0, 1, 2, 9], np.int32), np.zeros(4, np.int32)
    assert "writes bins[9] (the value 1), which is outside" in str(told(counts, x, bins))
    assert list(bins) == [1, 1, 1, 0]


@device.kernel
def halves(x, mask):
    t = device.int32(device.thread_idx.x)
    x[t] = device.shfl_xor_sync(mask, x[t], 1)


def test_a_mask_without_its_lane(execution: str) -> None:
    x = np.arange(32, dtype=np.int32)
    error = told(halves, x, 0xFFFF, block=32)
    assert "thread (16, 0, 0) of block (0, 0, 0) fails an assertion: device.shfl_xor_sync: the mask lacks" in str(error)
    assert {f.thread[0] for f in error.findings if f.thread} <= set(range(16, 32))
    assert list(x[:16]) == [i ^ 1 for i in range(16)]
    device.launch(halves, x, -1, grid=1, block=32, check=True)


def test_an_assertion(execution: str) -> None:
    x = np.array([1, 2, 7, 8], np.float32)
    error = told(asserts, x)
    assert "thread (2, 0, 0) of block (0, 0, 0) fails an assertion: too large" in str(error)
    assert {f.thread for f in error.findings} == {(2, 0, 0), (3, 0, 0)} and list(x) == [0, 0, 0, 0]


def test_for_a_whole_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CHECK", "1")
    with pytest.raises(TileCheckError, match="reads x"):
        device.launch(shifted, np.zeros(2, np.float32), np.zeros(9, np.float32), grid=1, block=4)


@device.kernel
def parted(x):
    t = device.int32(device.thread_idx.x)
    if t < x[0]:
        device.syncthreads()
        x[t + 8] = 1
    else:
        device.syncthreads()
        x[t + 8] = 2
    device.syncthreads()


def test_a_barrier_that_some_threads_do_not_come_to(execution: str) -> None:
    x = np.zeros(48, np.int32)
    if execution == "cpu":  # where the launch tells it without check mode, too
        with pytest.raises(LaunchError, match="divergent barrier in block"):
            device.launch(parted, np.full(48, 16, np.int32), grid=1, block=32, check=True)
    else:
        error = told(parted, np.full(48, 16, np.int32), block=32)
        assert "comes to a barrier while others come to another one" in str(error)
        assert {f.places[-1].line for f in error.findings} == {PARTED + 4, PARTED + 7}
        assert len(error.findings) == 32
    device.launch(parted, x, grid=1, block=32, check=True)
    assert x[8:40].tolist() == [2] * 32


PARTED = parted.underlying.__code__.co_firstlineno


@device.kernel
def widened(x, first, out):
    wide = x[first:].view(device.float64)
    out[0] = wide[0]


def test_a_view_that_is_not_aligned(execution: str) -> None:
    x, out = np.arange(4.0).view(np.float32), np.zeros(1)
    error = told(widened, x, 3, out, block=1)
    assert "fails an assertion: view: the address is not a multiple of 8 bytes" in str(error)
    assert ".view(device.float64)" in str(error) and out[0] == 1
    device.launch(widened, x, 4, out, grid=1, block=1, check=True)
    assert out[0] == 2
