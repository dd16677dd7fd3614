"""Random programs of typed tiles: the CPU computes what the reference does, bit for bit; for a GPU they compile."""

from __future__ import annotations

import importlib.util
import itertools
import linecache
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
from mesh import FINE, Base, Kind, Outcome

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "numerics"))
from harness import random_values
from test_random_programs import Program

from tilewright import compile as compiler
from tilewright import tile as ct
from tilewright.errors import TileError
from tilewright.times import Times

TARGETS = ("sm_90a", "sm_80")


def drawing(pick: random.Random) -> Any:
    """What hypothesis draws from its strategies, by a generator of our own: case n is the same everywhere."""

    def draw(strategy: Any) -> Any:
        inner = getattr(strategy, "wrapped_strategy", strategy)
        if hasattr(inner, "elements"):
            return pick.choice(list(inner.elements))
        if hasattr(inner, "start"):
            return pick.randint(inner.start, inner.end)
        return pick.random() < 0.5

    return draw


class Mesh(Base):
    def program(self, number: int) -> tuple[Program, str, random.Random]:
        pick = random.Random(number)
        program = Program(drawing(pick))
        return program, program.source(), pick

    def source(self, number: int) -> str:
        return self.program(number)[1]

    def kernel(self, number: int, source: str) -> Any:
        path = self.folder / f"program_{number % 8}.py"  # capture reads it again
        path.write_text(source)
        linecache.checkcache(str(path))
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.kernel

    def case(self, number: int) -> Outcome:
        program, source, pick = self.program(number)
        kernel = self.kernel(number, source)
        rows, columns = program.full
        inputs = [random_values(d, rows * columns, i).reshape(rows, columns) for i, d in enumerate(program.inputs)]
        outputs = [(s, d.numpy) for d, s in program.types.values()]
        n = pick.randint(0, 5)

        def arguments() -> tuple[Any, ...]:
            scratch = np.arange(2 * rows * columns, dtype=np.int32).reshape(2 * rows, columns)
            return (*(x.copy() for x in inputs), *itertools.starmap(np.zeros, outputs), scratch, n)

        expected, found = arguments(), arguments()
        kernel.interpret(1, expected)
        ct.launch(None, 1, kernel, found)
        for i, (x, y) in enumerate(zip(found[:-1], expected[:-1], strict=True)):
            if not np.array_equal(x.astype(np.float64), y.astype(np.float64), equal_nan=True):
                return Outcome(Kind.WRONG, f"argument {i} differs from the reference, with n = {n}")
        target = TARGETS[number % len(TARGETS)]
        kernel = kernel.replace_hints(num_warps=pick.choice((None, 1, 4, 8)))
        try:
            _, key = kernel.specialization(found)
            compiler.build(kernel.capture(target, key), target, kernel.name, Times(kernel.name, target))
        except TileError as error:
            return Outcome(Kind.REFUSED, f"{target}: {error}")
        return FINE
