"""The fixture that runs kernels on the back ends of --backend."""

from __future__ import annotations

import pytest
from harness import Backends


@pytest.fixture(scope="session")
def backends(pytestconfig: pytest.Config) -> Backends:
    chosen = pytestconfig.getoption("--backend")
    if chosen.startswith("sm_"):
        return Backends((chosen,))
    names = {"reference": (), "cpu": ("cpu",), "cuda": ("cuda",), "all": ("cpu", "cuda")}
    return Backends(names[chosen])
