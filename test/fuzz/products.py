"""Random programs with products (test/random_products), on the CPU, by the reference, and for a GPU."""

from __future__ import annotations

import sys
from pathlib import Path

from mesh import FINE, Base, Kind, Outcome

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "random_products"))
from check import check, source_of
from choices import choose

BACKENDS = ("cpu", "sm_90a", "interpret", "sm_80")


class Mesh(Base):
    limit = 300.0

    def source(self, number: int) -> str:
        return source_of(choose(number, "small"))

    def case(self, number: int) -> Outcome:
        backend = BACKENDS[number % len(BACKENDS)]
        found = check(choose(number, "small"), backend, self.folder)
        kinds = {"right": FINE, "refused": Outcome(Kind.REFUSED, f"{backend}: {found.text}")}
        return kinds.get(found.kind, Outcome(Kind.WRONG, f"{backend}: {found.text}"))
