"""Fixtures: what runs kernels on the back ends of --backend, and what makes a kernel of a text."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from harness import Backends

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import program_outcome


@pytest.fixture(scope="session")
def backends(pytestconfig: pytest.Config) -> Backends:
    chosen = pytestconfig.getoption("--backend")
    if chosen.startswith("sm_"):
        return Backends((chosen,))
    names = {"reference": (), "cpu": ("cpu",), "cuda": ("cuda",), "all": ("cpu", "cuda")}
    return Backends(names[chosen])


@pytest.fixture(scope="session")
def kernel_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Any]:
    """The function `kernel` of a text, which gets a file of its own: capture reads sources."""
    folder = tmp_path_factory.mktemp("programs")
    return lambda source: program_outcome.kernel_of(source, folder)
