"""A random program: its lines, its variables with what is known of them, and the arrays that it needs.

    program = Program(Draws(7))
    program.source()     # a file with `kernel`
    program.arguments()  # fresh arguments for one launch

expressions.py has what tiles are made of, memory.py accesses to arrays, control.py statements around statements.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tilewright import tile as ct

from .arrays import Plan, zeros
from .draws import Draws, Writer
from .values import Type

GRIDS = ((1,), (1,), (3,), (2, 2), (2, 1, 2))
HINTS = ({}, {}, {}, {"num_warps": 1}, {"num_warps": 4}, {"num_warps": 8}, {"num_ctas": 2}, {"occupancy": 2})
LEVELS = ({}, {}, {"opt_level": 0}, {"opt_level": 0})  # the assembler, and LLVM on the CPU, take half as long at 0
SCALARS = 12  # places for scalars in the array NUMBERS, a row for each block
NUMBERS = Plan("NUMBERS", ct.int32, ())

# How the arrays are passed: one by one, or as one argument that holds them.
PASSED = ("", "", "", "tuple", "list", "dict", "record", "nested")

# What kernels call, in front of them.
HELPERS = """
@contextlib.contextmanager
def doubled(n):
    yield n * 2


def raised(t, n):
    return t if n == 0 else raised(t, n - 1) + 1


def folded(t, *others, by=2, times: ct.Constant = 2):
    for other in (t, *others):
        t = t + other * by
    for _ in range(times):
        t = t - 1
    return t


@dataclasses.dataclass(frozen=True)
class Both:
    first: object
    second: object = 0


class Kind(enum.Enum):
    LOW = 1
    HIGH = "high"
    NONE = None


@device.func
def stepped(x, n):
    steps = 0
    while x > 1 and steps < 9:
        x = x // 2 if x % 2 == 0 else x - 3 * n
        steps += 1
    return steps + n


@device.func
def either_of(x, y):
    for k in range(x & 7):
        if y == k:
            return x
    return y


@device.func
def followed(places, x):
    at = x & 3
    for _ in range(3):
        at = places[at, 0] & 3
    return at
"""


class Program(Writer):
    def __init__(self, draws: Draws) -> None:
        from . import control, memory

        super().__init__(draws)
        self.loops: list[str] = []  # whether one may break, by loop: "for", "while", or "def" for a function's own
        self.tiles: dict[str, Type] = {}
        self.numbers: list[str] = ["n0", "n1", "b"]  # integer scalars of small magnitude
        self.kept = {"n0", "n1", "b"}  # those that are not assigned to
        self.flags: list[str] = []  # bool scalars
        self.arrays: list[Plan] = []
        self.returns: Type | None = None  # what `return` gives within a nested function
        self.grid = self.pick(GRIDS)
        self.blocks = int(np.prod(self.grid))
        self.hints = self.pick(HINTS) | self.pick(LEVELS)
        self.scalars = [self.draws.below(9) for _ in range(2)]
        self.scratch = memory.scratch(self)
        memory.inputs(self)
        for _ in range(1 + min(self.draws.below(14), self.draws.below(14))):
            control.statement(self)
        memory.outputs(self)
        self.passed = self.pick(PASSED)

    # ---- what generators use --------------------------------------------------------------------------

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
        arrays = [plan.name for plan in self.arrays]
        names = ", ".join([*(["ARRAYS"] if self.passed else arrays), "NUMBERS", "n0", "n1"])
        head = [f"# {about}"] if about else []
        head += [
            "import contextlib",
            "import dataclasses",
            "import enum",
            "from cuda import device",
            "from tilewright import tile as ct",
            "",
            HELPERS,
            "",
        ]
        if self.passed == "record":
            head += ["@dataclasses.dataclass", "class Arrays:", *(f"    {name}: object" for name in arrays), ""]
        head += [f"@ct.kernel({hints})", f"def kernel({names}):", *self.unpacked(), *self.position()]
        scalars = [x for x in self.numbers if x not in self.kept][:SCALARS]
        tail = [f"    ct.scatter(NUMBERS, (b, {i}), {x})" for i, x in enumerate(scalars)]
        return "\n".join([*head, *self.lines, *tail, f"# a launch: grid {self.grid}, n0 and n1 {self.scalars}", ""])

    def position(self) -> list[str]:
        terms = ["ct.bid(0)", "ct.num_blocks(0) * ct.bid(1)", "ct.num_blocks(0) * ct.num_blocks(1) * ct.bid(2)"]
        return [f"    b = {' + '.join(terms[: len(self.grid)])}"]

    def unpacked(self) -> list[str]:
        """Lines that give each array its name."""
        half = len(self.arrays) // 2
        forms = {
            "dict": lambda i, name: f"ARRAYS[{name!r}]",
            "record": lambda i, name: f"ARRAYS.{name}",
            "nested": lambda i, name: f"ARRAYS[0][{i}]" if i < half else f"ARRAYS[1][0][{name!r}]",
        }
        form = forms.get(self.passed, lambda i, name: f"ARRAYS[{i}]")
        rows = [f"    {plan.name} = {form(i, plan.name)}" for i, plan in enumerate(self.arrays)]
        return rows if self.passed else []

    def held(self, kernel: Any, arguments: list[Any]) -> tuple[Any, ...]:
        """The arguments as the kernel takes them."""
        count = len(self.arrays)
        arrays, half = arguments[:count], count // 2
        by_name = {plan.name: array for plan, array in zip(self.arrays, arrays, strict=True)}
        rest = dict(list(by_name.items())[half:])
        forms: dict[str, Callable[[], Any]] = {
            "tuple": lambda: tuple(arrays),
            "list": lambda: arrays,
            "dict": lambda: by_name,
            "record": lambda: kernel.function.__globals__["Arrays"](**by_name),
            "nested": lambda: (arrays[:half], (rest,)),
        }
        return (*([forms[self.passed]()] if self.passed else arrays), *arguments[count:])

    def arguments(self) -> list[Any]:
        arrays = [plan.make() for plan in self.arrays]
        return [*arrays, zeros((self.blocks, SCALARS), ct.int32), *self.scalars]
