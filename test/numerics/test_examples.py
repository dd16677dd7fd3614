"""The examples of docs/api.md compute on each back end what the reference execution computes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import Backends, ulp

from tilewright import interpret
from tilewright import tile as ct

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import api

EXAMPLES = api.examples(api.functions_of({name: getattr(ct, name) for name in dir(ct)}))
OUTPUTS = {"print", "printf"}  # of which test_print.py says more
VALUES = sorted(EXAMPLES.keys() - api.STATEMENTS)


def result_of(example: str, folder: str) -> Any:
    """What the reference makes of an example; a kernel could not hand it out, so the front end is not asked."""
    module = api.kernels({"seen": f"SEEN.append({example})"}, folder)
    module.SEEN = []
    interpret.run(module.seen_example.function, 1, api.arguments(), lambda: None)
    return module.SEEN[0]


@pytest.mark.parametrize("name", VALUES)
def test_the_value(name: str, backends: Backends, tmp_path: Path) -> None:
    seen = result_of(EXAMPLES[name], str(tmp_path))
    dtype, shape = (seen.dtype, seen.shape) if hasattr(seen, "dtype") else (ct.float32, ())
    (tmp_path / "kernel").mkdir()
    statement = f"ct.store(OUT, index=(0,) * {max(1, len(shape))}, tile={EXAMPLES[name]})"
    kernel = api.kernels({name: statement}, str(tmp_path / "kernel"), more=", OUT")

    def arguments() -> list[Any]:
        return [*api.arguments(), np.zeros(shape or (1,), dtype.numpy)]

    backends.run_all(getattr(kernel, f"{name}_example"), 1, arguments, tolerance=ulp(8))


@pytest.mark.parametrize("name", sorted(api.STATEMENTS - OUTPUTS))
def test_the_statement(name: str, backends: Backends, tmp_path: Path) -> None:
    kernel = api.kernels({name: EXAMPLES[name]}, str(tmp_path))
    backends.run_all(getattr(kernel, f"{name}_example"), 1, lambda: list(api.arguments()))
