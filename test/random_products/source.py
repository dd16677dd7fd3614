"""Lines of Python, indented: what both kinds of programs are written with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Step = Callable[[str], None]  # writes one iteration, whose number is an expression
ONE_STEP = {
    "for": ["for {k} in range({n}):"],
    "step": ["for {k}0 in range(0, ({n}) * 16, 16):", "    {k} = {k}0 // 16"],
    "reversed": ["for {k} in range({n} - 1, -1, -1):"],
    "break": ["for {k} in range(100000):", "    if {k} >= {n}:", "        break"],
}


class Lines:
    def __init__(self) -> None:
        self.text: list[str] = []
        self.depth = 1

    def add(self, *lines: str) -> None:
        self.text += ["    " * self.depth + line for line in lines]

    def inner(self, step: Step, number: str) -> None:
        self.depth += 1
        step(number)
        self.depth -= 1

    def loop(self, form: str, k: str, count: str, step: Step) -> None:
        """The steps 0 to count (at least one), in one of the forms in which people write that."""
        if form in ONE_STEP:
            self.add(*(line.format(k=k, n=count) for line in ONE_STEP[form]))
            self.inner(step, k)
            return
        getattr(self, f"loop_{form}")(k, count, step)

    def loop_while(self, k: str, count: str, step: Step) -> None:
        self.add(f"{k} = 0", f"while {k} < {count}:")
        self.inner(step, k)
        self.add(f"    {k} += 1")

    def loop_two(self, k: str, count: str, step: Step) -> None:
        """Unrolled by hand: what lies behind the end is zero, or masked."""
        self.add(f"for {k} in range(0, {count}, 2):")
        self.inner(step, k)
        self.inner(step, f"({k} + 1)")

    def loop_remainder(self, k: str, count: str, step: Step) -> None:
        self.add(f"for {k} in range({count} - 1):")
        self.inner(step, k)
        step(f"({count} - 1)")

    def loop_peeled(self, k: str, count: str, step: Step) -> None:
        step("0")
        self.add(f"for {k} in range(1, {count}):")
        self.inner(step, k)

    def loop_nested(self, k: str, count: str, step: Step) -> None:
        self.add("for part in range(2):")
        self.depth += 1
        self.add(f"for {k} in range(part, {count}, 2):")
        self.inner(step, k)
        self.depth -= 1

    def loop_branch(self, k: str, count: str, step: Step) -> None:
        self.add(f"for {k} in range({count}):", f"    if {k} % 2 == 0:")
        self.depth += 1
        self.inner(step, k)
        self.add("else:")
        self.inner(step, k)
        self.depth -= 1


def file(hints: dict[str, Any], constants: dict[str, Any], parameters: list[str], lines: list[str], about: str) -> str:
    """The text of a program."""
    given = ", ".join(f"{name}={value}" for name, value in hints.items())
    head = [f"# {about}", "import math", "", "from tilewright import tile as ct", "", "ZERO = ct.PaddingMode.ZERO"]
    head += [f"{name} = {value}" for name, value in constants.items()]
    head += ["", "", f"@ct.kernel({given})", f"def kernel({', '.join(parameters)}):"]
    return "\n".join([*head, *lines]) + "\n"
