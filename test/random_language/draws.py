"""The numbers that a program is made from, and plainer ones.

Every decision of a generator is one `below(n)`, and 0 is the plainest. The decisions that a program took can be given
again, changed: what is missing at the end is 0, what is too large is taken modulo n. So each list of numbers is a
program, and a failing program gets plainer by deleting and lowering numbers, whatever they decide.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any


class Draws:
    def __init__(self, seed: int, given: Sequence[int] | None = None) -> None:
        self.given = given
        self.random = random.Random(seed)
        self.made: list[int] = []

    def below(self, n: int) -> int:
        place = len(self.made)
        if self.given is None:
            value = self.random.randrange(n)
        else:
            value = self.given[place] % n if place < len(self.given) else 0
        self.made.append(value)
        return value

    def pick(self, values: Any) -> Any:
        return values[self.below(len(values))]

    def rarely(self, one_in: int) -> bool:
        return self.below(one_in) == one_in - 1


class Writer:
    """The lines of a program as they are made: at a depth, with names that none has yet."""

    def __init__(self, draws: Draws) -> None:
        self.draws, self.pick, self.rarely = draws, draws.pick, draws.rarely
        self.names = itertools.count()
        self.lines: list[str] = []
        self.depth = 1

    def emit(self, *lines: str) -> None:
        self.lines += ["    " * self.depth + line for line in lines]

    def name(self, letter: str) -> str:
        return f"{letter}{next(self.names)}"


def plainer(draws: Sequence[int]) -> Iterator[list[int]]:
    """Lists with less in them: without the end, without a part, with zeros for a part, with lower numbers."""
    made = list(draws)
    while made and made[-1] == 0:
        made.pop()
    size = len(made) // 2
    while size:
        for start in range(0, len(made), size):
            yield made[:start] + made[start + size :]
        for start in range(0, len(made), size):
            if any(made[start : start + size]):
                yield [*made[:start], *[0] * len(made[start : start + size]), *made[start + size :]]
        size //= 2
    for place, value in enumerate(made):
        for lower in {value // 2, value - 1} - {value, -1}:
            yield [*made[:place], lower, *made[place + 1 :]]


class Programs:
    """Programs of a class, each by its choices: a seed, or the draws that were made, and perhaps changed."""

    def __init__(self, kind: Callable[[Draws], Any]) -> None:
        self.kind = kind

    def of(self, choices: Any) -> Any:
        return self.kind(Draws(choices["seed"], choices.get("draws")))

    def source_of(self, choices: Any) -> str:
        source: str = self.of(choices).source(json.dumps(choices))
        return source

    def plainer(self, choices: Any) -> Iterator[Any]:
        for candidate in plainer(choices.get("draws") or self.of(choices).draws.made):
            yield choices | {"draws": candidate}
