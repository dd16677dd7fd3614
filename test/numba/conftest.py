"""Executions of kernels of Numba programs: a test that takes `run` holds on each of them.

    *arrays, = run(kernel, grid, block, *arguments)      # the arrays as the kernel left them

"cpu" runs the code for the CPU, "emulator" that for a GPU (test/emulator); --backend=cuda runs on a GPU.
"""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "emulator"))
sys.path.insert(0, str(Path(__file__).parent.parent.parent / "bench"))
import emulate
import executions

from tilewright import arrays


def pytest_generate_tests(metafunc):
    executions.on_each(metafunc, "run")


@pytest.fixture
def run(request, monkeypatch):
    if request.param == "emulator":
        emulate.stand_in(monkeypatch)
        return afresh
    executions.needs_gpu(request.param)
    return {"cpu": on_cpu, "cuda": on_gpu}[request.param]


def on_gpu(kernel, grid, block, *arguments):
    kernel[grid, block](*arguments)
    return list(arguments)


def on_cpu(kernel, grid, block, *arguments):
    given = [arrays.to_device(a, device="cpu") if isinstance(a, np.ndarray) else a for a in arguments]
    kernel[grid, block](*given)
    return [a.to_numpy() if isinstance(a, arrays.Array) else a for a in given]


def afresh(kernel, grid, block, *arguments):
    """A launch of a kernel that has no variant of another execution."""
    return on_cpu(type(kernel)(kernel.function), grid, block, *arguments)
