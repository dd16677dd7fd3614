"""Random programs over the whole language (test/random_language), on the CPU, and compiled for GPUs."""

from __future__ import annotations

import sys
from pathlib import Path

from mesh import FINE, Base, Kind, Outcome

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from random_language.check import check, source_of

BACKENDS = ("cpu", "sm_90a", "cpu", "sm_80")


class Mesh(Base):
    limit = 120.0

    def source(self, number: int) -> str:
        return source_of({"kind": "language", "seed": number})

    def case(self, number: int) -> Outcome:
        backend = BACKENDS[number % len(BACKENDS)]
        found = check({"kind": "language", "seed": number}, backend, self.folder)
        if found.kind == "right":
            return FINE
        kind = Kind.REFUSED if found.kind == "refused" and backend != "cpu" else Kind.WRONG
        return Outcome(kind, f"{backend}: {found.text}")
