"""What a function means is told twice, by different means: a mistake in one of the two is seen by comparing them.

The reference computes with NumPy, and the front end folds constants with Python's own numbers and `math`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tilewright import tile as ct
from tilewright._optable import OPS
from tilewright.capture import emit
from tilewright.reference import elementwise

FUNCTIONS = [op.public for op in OPS if op.operands == 1 and op.result == "float"]
BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "minimum", "maximum", "cdiv", "less", "equal")


class Broken:
    """Stands for a library of which nothing may be asked."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} was asked for")


@pytest.mark.parametrize("name", [*FUNCTIONS, "floor", "ceil"])
def test_both_agree(name: str) -> None:
    for x in (0.1, 0.75, 1.0, 3.5):
        assert math.isclose(emit.fold(name, x), elementwise.float_function(name, x), rel_tol=1e-15)


@pytest.mark.parametrize("name", [*FUNCTIONS, *BINARY])
def test_the_front_end_folds_without_numpy(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = emit.fold(name, *([0.5] if name in FUNCTIONS else [7, 2]))
    for function in ("exp", "exp2", "log", "log2", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "add", "mod"):
        monkeypatch.setattr(np, function, None)
    assert emit.fold(name, *([0.5] if name in FUNCTIONS else [7, 2])) == expected


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_reference_asks_nothing_of_the_front_end(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    @ct.kernel
    def kernel(X):
        ct.store(X, 0, getattr(ct, name)(ct.load(X, 0, 8)) + getattr(ct, name)(0.5))

    kernel.interpret(1, (np.zeros(8, np.float32),))  # which asks the front end once whether this is tile code
    monkeypatch.setattr(emit, "FOLD", {})
    monkeypatch.setattr(emit, "math", Broken())
    monkeypatch.setattr(emit, "fold", None)
    x = np.full(8, 0.5, np.float32)
    kernel.interpret(1, (x,))
    assert np.allclose(x, 2 * elementwise.float_function(name, 0.5), rtol=1e-6)
