"""Executions of the algorithms: a test that takes `device` holds on each of them.

    x = device.array(numpy_array)        # where the algorithms take it
    device.host(x)                       # back, when all is done

"cpu" is the code for the CPU, "emulator" that for a GPU, thread by thread (test/emulator);
--backend=cuda runs on a GPU.
"""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "emulator"))
sys.path.insert(0, str(Path(__file__).parent.parent.parent / "bench"))
import emulate
import executions

from tilewright import arrays
from tilewright.compute import objects, plans


def pytest_generate_tests(metafunc):
    executions.on_each(metafunc, "device")


class Host:
    """NumPy arrays, which the CPU works on, and the emulator."""

    def __init__(self, name):
        self.name = name

    def array(self, x):
        return np.ascontiguousarray(x).copy()

    def host(self, x):
        return np.asarray(x)


class Gpu:
    name = "cuda"

    def array(self, x):
        return arrays.to_device(np.ascontiguousarray(x), device="cuda:0")

    def host(self, x):
        return x.to_numpy()


@pytest.fixture
def device(request, monkeypatch):
    executions.needs_gpu(request.param)
    if request.param == "cuda":
        return Gpu()
    if request.param == "emulator":
        emulate.stand_in(monkeypatch)
        monkeypatch.setattr(objects, "shape_for", lambda place: plans.GPU)
    return Host(request.param)
