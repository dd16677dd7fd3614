"""TILEWRIGHT_VERIFY: MLIR's verifier looks at what each pass leaves. Here, of random programs."""

from __future__ import annotations

import functools
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "random_products"))
import check as products
from choices import choose
from numbers_of import NumPy

from program_outcome import kernel_of
from random_language import check as language
from tilewright import compile as compiler
from tilewright import plans
from tilewright.errors import TileCompilationError

PROGRAMS = 30  # of the language, for each target
PRODUCTS = 5


@pytest.fixture(autouse=True)
def verified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_VERIFY", "1")


def lower(kernel: Any, target: str, arguments: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = kernel.capture(target, kernel.specialization(tuple(arguments))[1])
        stages = compiler.CPU_STAGES if target == "cpu" else compiler.GPU_STAGES
        plans.lower(module, stages, functools.partial(plans.step, module))


@pytest.mark.parametrize("target", ["sm_90a", "sm_80", "cpu"])
def test_programs(target: str, tmp_path: Path) -> None:
    for seed in range(PROGRAMS):
        program = language.program_of({"seed": 600_000 + seed})
        kernel = kernel_of(program.source(), tmp_path)
        lower(kernel, target, program.held(kernel, program.arguments()))


@pytest.mark.parametrize("target", ["sm_90a", "sm_80", "cpu"])
def test_products(target: str, tmp_path: Path) -> None:
    for seed in range(PRODUCTS):
        program, numbers = products.program_of(choose(600_000 + seed, "small", None)), NumPy(0)
        arguments, outputs = program.prepare(numbers)
        lower(kernel_of(program.source(""), tmp_path), target, (*arguments, *products.fresh(numbers, outputs)))


class Broken:
    """A module that one pass breaks."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def attribute(self, name: str) -> str:
        return '"sm_90a"'

    def lower(self, goal: str) -> list[Any]:
        self.done.append(goal)
        return []

    def verify(self) -> None:
        if self.done[-1] == "tile-plan-block":
            raise TileCompilationError("operand #0 does not dominate this use")

    def text(self, _: bool) -> str:
        return "module {}"


def test_the_pass_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """And no other plan is tried, which would hide it."""
    module = Broken()
    with pytest.raises(plans.MalformedError, match="tile-plan-block left IR that the verifier refuses: operand #0"):
        plans.step(module, "layout")
    assert module.done[-2:] == ["tile-split-loops", "tile-plan-block"]
    monkeypatch.delenv("TILEWRIGHT_VERIFY")
    module.done.clear()
    plans.step(module, "layout")
    assert module.done == ["layout"]
    assert not issubclass(plans.MalformedError, compiler.TileCompilationError)
