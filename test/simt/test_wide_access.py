"""Accesses of a thread to neighbours become one where the address allows it, and those of both sides of a branch."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from cuda import device
from simt_kernels import nbody
from tilewright.cli import lower

BLOCK = 8


def _kernel(align: int) -> Any:
    @device.kernel
    def sums(x, out):
        rows = device.shared_array((BLOCK, 4), device.float32, align=align)
        t = device.int32(device.thread_idx.x)
        for c in range(4):
            rows[t, c] = x[t, c]
        device.syncthreads()
        total = device.float32(0)
        for k in range(BLOCK):
            total += device.rsqrt(rows[k, 0] + rows[k, 1] * rows[k, 2]) * rows[k, 3]
        out[t] = total

    return sums


ALIGNED, SHIFTED = _kernel(16), _kernel(4)


@pytest.mark.parametrize("kernel", [ALIGNED, SHIFTED], ids=["aligned", "anywhere"])
def test_neighbours_in_shared_memory(run: Any, kernel: Any) -> None:
    x = np.random.default_rng(0).random((BLOCK, 4)).astype(np.float32)
    out = np.zeros(BLOCK, np.float32)
    run(kernel, x, out, block=BLOCK)
    expected = (x[:, 3] / np.sqrt(x[:, 0] + x[:, 1] * x[:, 2])).sum()
    np.testing.assert_allclose(out, expected, rtol=1e-5)


def test_width_of_loads() -> None:
    arrays = [("array", "float32", n, 4, (1,) * n, ((0, 1),) * n, True, False) for n in (2, 1)]
    text = lower(ALIGNED, tuple(arrays), "sm_90a", "ptx").decode()
    assert re.findall(r"ld\.shared\.\S+", text) == ["ld.shared.v4.b32"]


@device.kernel
def border(x, y):
    i = device.tid(1)
    if i > 0:
        y[i] = 0.5 * (x[i - 1] + x[i])
    else:
        y[i] = x[i]


def test_sides_of_a_branch_store_once() -> None:
    array = ("array", "float32", 1, 4, (1,), ((1, 1),), True, False)
    text = lower(border, (array, array), "sm_90a", "ptx").decode()
    assert len(re.findall(r"st\.global", text)) == 1


def test_a_body_is_read_at_once() -> None:
    """A function stands between its numbers. Rows of global memory stay apart: their registers would be neighbours."""
    rows = ("array", "float32", 2, 16, (4, 4), ((0, 4), (1, 1)), True, False)
    text = lower(nbody, (rows, rows), "sm_90a", "ptx").decode()
    assert re.findall(r"ld\.shared\.\S+", text) == ["ld.shared.v4.b32"]
    assert "ld.global.v4" not in text
