"""Kernels of Numba programs run on the CPU, and (--backend=cuda) on a GPU."""

import numpy as np
import pytest


def pytest_generate_tests(metafunc):
    if "run" in metafunc.fixturenames:
        chosen = metafunc.config.getoption("--backend")
        names = ["cpu", "cuda"] if chosen == "all" else [chosen if chosen == "cuda" else "cpu"]
        metafunc.parametrize("run", names, indirect=True)


@pytest.fixture
def run(request):
    """run(kernel, grid, block, *arguments): NumPy arrays change in place."""
    from tilewright import arrays

    if request.param == "cuda" and not arrays._has_gpu():
        pytest.skip("there is no GPU")

    def launch(kernel, grid, block, *arguments):
        if request.param == "cpu":
            arguments = tuple(arrays.to_device(a, device="cpu") if isinstance(a, np.ndarray) else a for a in arguments)
            originals = launch.originals = list(arguments)
            kernel[grid, block](*arguments)
            return [a.to_numpy() if isinstance(a, arrays.Array) else a for a in originals]
        kernel[grid, block](*arguments)
        return list(arguments)

    return launch
