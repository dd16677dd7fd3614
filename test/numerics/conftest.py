"""The fixture that runs kernels on the back ends of --backend."""

from __future__ import annotations

import pytest
from harness import Backends, compiler_is_here


@pytest.fixture(scope="session")
def backends(pytestconfig: pytest.Config) -> Backends:
    chosen = pytestconfig.getoption("--backend")
    names = {"reference": (), "cpu": ("cpu",), "cuda": ("cuda",), "all": ("cpu", "cuda")}[chosen]
    if chosen == "cpu" and not compiler_is_here():
        names = ()
    return Backends(names)
