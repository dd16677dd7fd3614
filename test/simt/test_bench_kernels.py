"""The kernels of bench/simt.py, on small inputs: right on the CPU, and as the code for a GPU that the emulator runs."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import emulate
import numpy as np
import pytest

import simt_cases

SHRINK = 16


def check(make: Any) -> None:
    importlib.reload(simt_cases.k)  # kernels that no other execution has compiled
    few = {"blocks": 3} if "blocks" in inspect.signature(make).parameters else {}
    case = make(np.random.default_rng(0), SHRINK, **few)
    case.run({**case.inputs, **case.outputs})
    assert case.wrong(case.outputs) <= 1


@pytest.mark.parametrize("make", simt_cases.CASES, ids=lambda make: make.__name__)
def test_on_the_cpu(make: Any) -> None:
    check(make)


@pytest.mark.parametrize("make", simt_cases.CASES, ids=lambda make: make.__name__)
@pytest.mark.skipif(emulate.MISSING is not None, reason="the emulator compiles with clang")
def test_as_code_of_a_gpu(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    emulate.stand_in(monkeypatch, "sm_90a")
    check(make)
