"""What traps on a GPU is an error of the launch on the emulator, too, and the next kernel runs."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import tilewright.tile as ct
from cuda import device
from tilewright.errors import LaunchError

sys.path.insert(0, str(Path(__file__).parent.parent / "emulator"))
import emulate


@ct.kernel
def counts(Z, step):
    for i in range(0, 10, step):
        ct.scatter(Z, ct.bid(0), i)


@device.kernel
def waits(x):
    """One thread fails while the others wait at a barrier."""
    s = device.shared_array(32, device.int32)
    t = device.thread_idx.x
    s[t] = 1
    if t == 5:
        assert x[t] > 0, "100% wrong"
    device.syncthreads()
    x[t] = s[31 - t]


def test_traps(monkeypatch: pytest.MonkeyPatch) -> None:
    emulate.stand_in(monkeypatch)
    z = np.zeros(3, np.int32)
    with pytest.raises(LaunchError, match="zero"):
        ct.launch(None, 3, counts, (z, 0))
    ct.launch(None, 3, counts, (z, 4))
    assert z.tolist() == [8, 8, 8]
    x = np.arange(-5, 27, dtype=np.int32)
    with pytest.raises(LaunchError, match="100% wrong"):
        device.launch(waits, x, grid=1, block=32)
    x += 1
    device.launch(waits, x, grid=1, block=32)
    assert x.tolist() == [1] * 32
