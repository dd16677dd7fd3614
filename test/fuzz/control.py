"""Random control flow: what is compiled for the CPU computes what Python does; for a GPU it compiles."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from mesh import FINE, Base, Kind, Outcome

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
import test_capture_random as programs

from tilewright import compile as compiler
from tilewright import tile as ct
from tilewright.times import Times

TARGETS = ("sm_90a", "sm_80")


class Mesh(Base):
    def source(self, number: int) -> str:
        return programs.make(number)[0]

    def case(self, number: int) -> Outcome:
        _, names = programs.make(number)
        kernel = ct.kernel(names["kernel"])
        for a, b in ((0, 0), (3, 8), (17, 5), (-4, 11)):
            z, expected = np.zeros(3, np.int32), names["f"](a, b)
            ct.launch(None, 1, kernel, (z, a, b))
            if tuple(z) != expected:
                return Outcome(Kind.WRONG, f"f({a}, {b}) is {expected}, found {tuple(z)}")
        target = TARGETS[number % len(TARGETS)]
        _, key = kernel.specialization((z, 1, 2))
        compiler.build(kernel.capture(target, key), target, kernel.name, Times(kernel.name, target))
        return FINE
