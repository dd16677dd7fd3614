"""A random program: its lines, its variables with what is known of them, and the arrays that it needs.

    program = Program(Draws(7))
    program.source()     # a file with `kernel`
    program.arguments()  # fresh arguments for one launch

expressions.py has what tiles are made of, memory.py accesses to arrays, control.py statements around statements.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tilewright import tile as ct

from .arrays import Plan, zeros
from .draws import Draws
from .values import Type

GRIDS = ((1,), (1,), (3,), (2, 2), (2, 1, 2))
HINTS = ({}, {}, {}, {"num_warps": 1}, {"num_warps": 4}, {"num_warps": 8}, {"num_ctas": 2}, {"occupancy": 2})
SCALARS = 12  # places for scalars in the array NUMBERS, a row for each block
NUMBERS = Plan("NUMBERS", ct.int32, ())


class Program:
    def __init__(self, draws: Draws) -> None:
        from . import control, memory

        self.draws, self.pick, self.rarely = draws, draws.pick, draws.rarely
        self.count = itertools.count()
        self.lines: list[str] = []
        self.outside: list[str] = []  # lines in front of the kernel
        self.depth = 1
        self.loops: list[str] = []  # whether one may break, by loop: "for", "while", or "def" for a function's own
        self.tiles: dict[str, Type] = {}
        self.numbers: list[str] = ["n0", "n1", "b"]  # integer scalars of small magnitude
        self.kept = {"n0", "n1", "b"}  # those that are not assigned to
        self.flags: list[str] = []  # bool scalars
        self.arrays: list[Plan] = []
        self.returns: Type | None = None  # what `return` gives within a nested function
        self.grid = self.pick(GRIDS)
        self.blocks = int(np.prod(self.grid))
        self.hints = self.pick(HINTS)
        self.scalars = [self.draws.below(9) for _ in range(2)]
        self.scratch = memory.scratch(self)
        memory.inputs(self)
        for _ in range(1 + self.draws.below(14)):
            control.statement(self)
        memory.outputs(self)

    # ---- what generators use --------------------------------------------------------------------------

    def emit(self, *lines: str) -> None:
        self.lines += ["    " * self.depth + line for line in lines]

    def name(self, letter: str) -> str:
        return f"{letter}{next(self.count)}"

    def find(self, accept: Callable[[Type], bool]) -> str | None:
        """A variable of such a type."""
        names = [name for name, type_ in self.tiles.items() if accept(type_)]
        return self.pick(names[::-1]) if names else None  # the plainest choice is the last one

    def array(self, plan: Plan) -> str:
        self.arrays.append(plan)
        return plan.name

    @contextlib.contextmanager
    def inner(self) -> Iterator[None]:
        """Lines of a block of their own: what they define is not there behind it."""
        tiles, numbers, flags = dict(self.tiles), list(self.numbers), list(self.flags)
        self.depth += 1
        yield
        self.depth -= 1
        self.tiles, self.numbers, self.flags = tiles, numbers, flags

    # ---- what runs them -------------------------------------------------------------------------------

    def source(self, about: str = "") -> str:
        hints = ", ".join(f"{name}={value}" for name, value in self.hints.items())
        names = ", ".join([*(plan.name for plan in self.arrays), "NUMBERS", "n0", "n1"])
        head = [f"# {about}"] if about else []
        head += ["from tilewright import tile as ct", "", *self.outside, "", f"@ct.kernel({hints})"]
        head += [f"def kernel({names}):", *self.position()]
        scalars = [x for x in self.numbers if x not in self.kept][:SCALARS]
        tail = [f"    ct.scatter(NUMBERS, (b, {i}), {x})" for i, x in enumerate(scalars)]
        return "\n".join([*head, *self.lines, *tail, f"# a launch: grid {self.grid}, n0 and n1 {self.scalars}", ""])

    def position(self) -> list[str]:
        terms = ["ct.bid(0)", "ct.num_blocks(0) * ct.bid(1)", "ct.num_blocks(0) * ct.num_blocks(1) * ct.bid(2)"]
        return [f"    b = {' + '.join(terms[: len(self.grid)])}"]

    def arguments(self) -> list[Any]:
        arrays = [plan.make() for plan in self.arrays]
        return [*arrays, zeros((self.blocks, SCALARS), ct.int32), *self.scalars]
