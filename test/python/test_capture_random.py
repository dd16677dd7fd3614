"""Random control flow: what the capture makes of it computes what Python does."""

from __future__ import annotations

import linecache
import random
from typing import Any

import numpy as np
import pytest

from tilewright import tile as ct

NAMES = ("x", "y", "z")


class Program:
    """A random function of two integers, `f(a, b)`, that gives a tuple of three."""

    def __init__(self, seed: int) -> None:
        self.pick = random.Random(seed)
        self.lines: list[str] = []
        self.counter = 0
        self.indices: list[str] = []  # loop variables in scope

    def emit(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def operand(self) -> str:
        return self.pick.choice([*NAMES, *self.indices, "a", "b", str(self.pick.randrange(-3, 9))])

    def expression(self) -> str:
        x, y = self.operand(), self.operand()
        form = self.pick.choice(
            [
                "({} + {}) % 1009",
                "({} * 3 - {}) % 1013",
                "({} - {}) % 1019",
                "{} // 2 + {} % 7",
                "min({}, {})",
                "({} if x < y else {})",
                "double({}) + {} % 5",
            ]
        )
        return form.format(x, y)

    def condition(self) -> str:
        pick = self.pick
        one = f"{self.operand()} {pick.choice(['<', '<=', '==', '!=', '>'])} {self.operand()}"
        two = f"({self.operand()} + {self.operand()}) % {pick.randrange(2, 5)} == {pick.randrange(2)}"
        form = pick.choice(["{0}", "{1}", "{0} and {1}", "{0} or {1}", "not ({1})", "x < {2} <= z"])
        return form.format(one, two, self.operand())

    def block(self, depth: int, size: int, loops: int) -> None:
        for _ in range(self.pick.randrange(1, size + 1)):
            self.statement(depth, size, loops)

    def statement(self, depth: int, size: int, loops: int) -> None:
        kind = self.pick.random()
        if depth > 5 or kind < 0.4:
            self.emit(depth, f"{self.pick.choice(NAMES)} = {self.expression()}")
        elif kind < 0.65:
            self.branch(depth, size, loops)
        elif kind < 0.8 and loops < 3:
            self.for_loop(depth, size, loops)
        elif kind < 0.88 and loops < 3:
            self.while_loop(depth, size, loops)
        elif loops and kind < 0.96:
            self.emit(depth, f"if {self.condition()}:")
            self.emit(depth + 1, self.pick.choice(["break", "continue"]))
        else:
            self.emit(depth, f"if {self.condition()}:")
            self.emit(depth + 1, f"return {self.expression()}, {self.operand()}, {self.expression()}")

    def branch(self, depth: int, size: int, loops: int) -> None:
        self.emit(depth, f"if {self.condition()}:")
        self.block(depth + 1, size - 1 or 1, loops)
        for _ in range(self.pick.choice([0, 0, 1])):
            self.emit(depth, f"elif {self.condition()}:")
            self.block(depth + 1, size - 1 or 1, loops)
        if self.pick.random() < 0.5:
            self.emit(depth, "else:")
            self.block(depth + 1, size - 1 or 1, loops)

    def for_loop(self, depth: int, size: int, loops: int) -> None:
        self.counter += 1
        name = f"i{self.counter}"
        bounds = self.pick.choice(["{} % 6", "1, {} % 7", "{} % 5, -3, -2", "0, 9, {} % 3 + 1"])
        self.emit(depth, f"for {name} in range({bounds.format(self.operand())}):")
        self.indices.append(name)
        self.block(depth + 1, size - 1 or 1, loops + 1)
        self.indices.pop()

    def while_loop(self, depth: int, size: int, loops: int) -> None:
        self.counter += 1
        name = f"n{self.counter}"
        self.emit(depth, f"{name} = 0")
        test = f"{name} < 6 and ({self.condition()})" if self.pick.random() < 0.7 else f"{name} < 4"
        self.emit(depth, f"while {test}:")
        self.emit(depth + 1, f"{name} += 1")
        self.block(depth + 1, size - 1 or 1, loops + 1)

    def source(self) -> str:
        self.emit(1, "x, y, z = a, b, 1")
        self.block(1, 4, 0)
        self.emit(1, "return x, y, z")
        return "def f(a, b):\n" + "\n".join(self.lines) + "\n"


HEAD = """
def double(v):
    if abs(v) > 500:
        return v % 500
    return v * 2

"""
KERNEL = """
def kernel(Z, a, b):
    x, y, z = f(a, b)
    ct.scatter(Z, 0, x)
    ct.scatter(Z, 1, y)
    ct.scatter(Z, 2, z)
"""


def make(seed: int) -> tuple[str, dict[str, Any]]:
    text = HEAD + Program(seed).source() + KERNEL
    file = f"<random program {seed}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict[str, Any] = {"ct": ct}
    exec(compile(text, file, "exec"), names)
    return text, names


@pytest.mark.parametrize("seed", range(40))
def test_random_program(seed: int) -> None:
    text, names = make(seed)
    kernel = ct.kernel(names["kernel"])
    for a, b in ((0, 0), (3, 8), (17, 5), (-4, 11)):
        z = np.zeros(3, np.int32)
        ct.launch(None, 1, kernel, (z, a, b))
        assert tuple(z) == names["f"](a, b), f"f({a}, {b}) of:\n{text}"
