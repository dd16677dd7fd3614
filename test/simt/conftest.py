"""Executions of SIMT kernels: a test that takes `run` holds on each of them.

    run(kernel, *args, grid=1, block=32)        # NumPy arrays change in place

"interpret" runs the Python body, "cpu" the code for the CPU, "emulator" that for a GPU, thread by thread
(test/emulator); --backend=cuda runs on a GPU instead. `launch` has the executions of a kernel of tiles with code of
threads in it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright
from cuda import device
from tilewright import tile as ct

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "emulator"))
sys.path.insert(0, str(Path(__file__).parent.parent / "python"))
sys.path.insert(0, str(Path(__file__).parent.parent.parent / "bench"))
import emulate
from executions import on_each

Run = Callable[..., None]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    on_each(metafunc, "at_once")
    if "run" not in metafunc.fixturenames:
        return
    chosen = metafunc.config.getoption("--backend")
    names = {"cuda": ["cuda"], "all": ["interpret", "cpu", "emulator", "cuda"]}
    found = names.get(chosen, ["interpret", "cpu", "emulator"])
    if metafunc.definition.get_closest_marker("host_execution"):
        found = [name for name in found if name in ("interpret", "cpu")]
    metafunc.parametrize("run", found, indirect=True)


@pytest.fixture
def run(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Run:
    execution = {"interpret": _interpret, "cuda": _on_gpu}.get(request.param, _on_cpu)
    if request.param == "emulator":
        emulate.stand_in(monkeypatch)
        return _afresh
    return execution


@pytest.fixture
def at_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Run:
    """As `run`, where all blocks of a grid run at a time."""
    if request.param == "emulator":
        emulate.stand_in(monkeypatch)
        return _afresh
    return _on_gpu if request.param == "cuda" else _on_cpu


@pytest.fixture(params=("interpret", "cpu", "sm_80", "sm_90a"))
def launch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """launch(kernel, grid, arguments): a tile kernel in one of the executions."""
    if request.param.startswith("sm_"):
        emulate.stand_in(monkeypatch, request.param)

    def on(kernel: Any, grid: Any, args: tuple[Any, ...]) -> None:
        fresh = ct.kernel(kernel.function)  # without variants of another execution
        fresh.interpret(grid, args) if request.param == "interpret" else ct.launch(None, grid, fresh, args)

    return on


def _interpret(kernel: Any, *args: Any, grid: Any = 1, block: Any = 1, shared: int = 0) -> None:
    kernel.interpret(args, grid, block, shared)


def _on_cpu(kernel: Any, *args: Any, **how: Any) -> None:
    device.launch(kernel, *args, **{"grid": 1, "block": 1, **how})


def _afresh(kernel: Any, *args: Any, **how: Any) -> None:
    """A launch of a kernel that has no variant of another execution."""
    device.launch(device.kernel(kernel.underlying), *args, **{"grid": 1, "block": 1, **how})


def _placed(array: np.ndarray) -> Any:
    """A copy on the GPU, which steps through memory as `array` does."""
    whole = array
    while isinstance(whole.base, np.ndarray) and not whole.flags.c_contiguous:
        whole = whole.base
    if whole is array or whole.dtype != array.dtype:
        return tilewright.to_device(array, device="cuda:0")
    view = Strided(tilewright.to_device(whole, device="cuda:0"), array, whole)
    return tilewright.as_array(view) if array.dtype.names else view  # only an array of our own has structs


class Strided:
    """A view of a device array as `view` is of `whole`, whose copy that is."""

    def __init__(self, copy: Any, view: np.ndarray, whole: np.ndarray) -> None:
        self.copy, self.view = copy, view
        address, base = (a.__array_interface__["data"][0] for a in (view, whole))
        self.offset = address - base
        exported = copy.__cuda_array_interface__
        start = {"data": (exported["data"][0] + self.offset, False)}
        self.__cuda_array_interface__ = exported | start | {"shape": view.shape, "strides": view.strides}

    def to_numpy(self) -> np.ndarray:
        """What the view holds now."""
        return np.ndarray(self.view.shape, self.view.dtype, self.copy.to_numpy(), self.offset, self.view.strides)


def _on_gpu(kernel: Any, *args: Any, **how: Any) -> None:
    gpu = [_placed(a) if isinstance(a, np.ndarray) else a for a in args]
    device.launch(kernel, *gpu, **{"grid": 1, "block": 1, **how})
    for mine, other in zip(args, gpu, strict=True):
        if isinstance(mine, np.ndarray) and mine.flags.writeable:
            mine[...] = other.to_numpy()
