"""Fixtures: what runs kernels on the back ends of --backend, and what makes a kernel of a text."""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Callable
from typing import Any

import pytest
from harness import Backends


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
    folder, numbers = tmp_path_factory.mktemp("programs"), itertools.count()

    def load(source: str) -> Any:
        path = folder / f"program{next(numbers)}.py"
        path.write_text(source)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.kernel

    return load
