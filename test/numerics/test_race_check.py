"""Waits that are too short show as results that differ from those of a build in which nothing overlaps.

On a GPU, bit by bit, several times, with loops long enough for every buffer to come around.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from harness import Backends
from zoo import table

from tilewright import tile as ct

CASES = {case.name: case for case in table(grow=5)}
ROUNDS = 5


def results(case: Any, fresh: dict[str, Any]) -> list[np.ndarray]:
    """Outputs of kernels that were compiled under the environment of this moment."""
    import torch
    from gpu_arrays import GpuArray

    inputs, outputs = case.arguments()
    arrays = [GpuArray(x) for x in (*inputs, *outputs)]
    for grid, kernel, args in case.launches(*(array.value for array in arrays)):
        fresh.setdefault(kernel.name, ct.kernel(kernel.function))
        ct.launch(torch.cuda.current_stream(), grid, fresh[kernel.name], args)
    torch.cuda.synchronize()
    for array in arrays:
        array.copy_back()
    return [array.host.copy() for array in arrays[len(inputs) :]]


@pytest.mark.parametrize("name", CASES)
def test_same_bits_as_without_overlap(backends: Backends, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    if "cuda" not in backends.names:
        pytest.skip("needs a GPU")
    case = CASES[name]
    monkeypatch.setenv("TILEWRIGHT_RACE_CHECK", "1")
    expected = results(case, {})
    monkeypatch.delenv("TILEWRIGHT_RACE_CHECK")
    kernels: dict[str, Any] = {}
    for _ in range(ROUNDS):
        for found, wanted in zip(results(case, kernels), expected, strict=True):
            assert np.array_equal(found.view(np.uint8), wanted.view(np.uint8))


@pytest.mark.parametrize("name", CASES)
def test_compiles_without_overlap(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """For Hopper, whose kernels overlap most; each wait is for everything."""
    monkeypatch.setenv("TILEWRIGHT_RACE_CHECK", "1")
    inputs, outputs = CASES[name].arguments()
    for _, kernel, args in CASES[name].launches(*inputs, *outputs):
        module = kernel.capture("sm_90a", kernel.specialization(args)[1])
        module.lower("tile-insert-barriers")
        waits = [line for line in module.text().splitlines() if "async_wait" in line or "mma_wait" in line]
        assert "_turn {tile.groups}" not in module.text()  # groups that meet everywhere cannot wait for their turn
        assert not [line for line in waits if not re.search(r"(async_wait|mma_wait .*,) 0( |$)", line)]
        module.lower("llvm")
