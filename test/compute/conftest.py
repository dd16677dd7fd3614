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
sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "emulator"))
sys.path.insert(0, str(Path(__file__).parent.parent.parent / "bench"))
import emulate
import executions

from tilewright import arrays, compute
from tilewright.compute import objects, plans

TILES = {"emulator": ["emulator, by tiles"], "cuda": ["cuda, by tiles"]}  # few items as if they were many
WITH_TILES = {"test_reduce", "test_scan", "test_sort", "test_random", "test_dtypes"}


def pytest_generate_tests(metafunc):
    executions.on_each(metafunc, "device", TILES if metafunc.module.__name__ in WITH_TILES else None)


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
    name, _, by_tiles = request.param.partition(", ")
    executions.needs_gpu(name)
    if by_tiles:
        monkeypatch.setattr(plans, "FEW", -1)
        compute.clear_all_caches()  # whose plans have compared with the other number
    if name == "cuda":
        return Gpu()
    if name == "emulator":
        emulate.stand_in(monkeypatch)
        monkeypatch.setattr(objects, "shape_for", lambda place: plans.GPU)
    return Host(name)
