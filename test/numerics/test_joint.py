"""Programs of test/joint: the reference takes each, every back end takes it, and their results are equal.

What none takes is in test/errors, where test_error_corpus.py holds the reference and the compiler to the same words.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import Backends

sys.path.insert(0, str(Path(__file__).parents[1] / "joint"))
from joint_programs import Program, arguments, programs

PROGRAMS = programs()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_program(backends: Backends, kernel_of: Callable[[str], Any], program: Program) -> None:
    found = backends.run_all(kernel_of(program.source), 2, arguments)
    assert any(np.any(array) for array in found[6:9]), "a program that stores nothing shows nothing"


def test_there_are_enough() -> None:
    assert len(PROGRAMS) >= 90 and len({p.name for p in PROGRAMS}) == len(PROGRAMS)
