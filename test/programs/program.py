"""What the programs of this folder have in common.

They are written as people write such kernels elsewhere: in papers, for Triton, in NVIDIA's samples. Each file has some;
a function behind a kernel makes its arrays and what they must hold:

    @program(small={"length": 100}, full={"length": 4096})
    def softmax(numbers, length) -> Launch: ...

`numbers` makes arrays by NumPy or by torch on a GPU (test/random_products/numbers_of.py); formulas use what both call
alike. test/numerics/test_programs.py runs the small ones everywhere, bench/programs.py times the full ones.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

LOG2E = math.log2(math.e)


@dataclasses.dataclass
class Launch:
    kernel: Any
    grid: tuple[int, ...]
    arguments: list[Any]
    output: int  # which argument
    want: Callable[[], Any]  # what that must hold, in float64
    moved: float = 0.0  # bytes read and written once
    operations: float = 0.0  # of products


@dataclasses.dataclass(frozen=True)
class Program:
    make: Callable[..., Launch]
    small: dict[str, Any]
    full: dict[str, Any]


PROGRAMS: dict[str, Program] = {}


def program(small: dict[str, Any], full: dict[str, Any], names: str = "") -> Callable[[Any], Any]:
    """Registers what makes a launch, under its own name and, if it is given, another one."""

    def register(make: Callable[..., Launch]) -> Callable[..., Launch]:
        PROGRAMS[names or make.__name__.replace("_", " ")] = Program(make, small, full)
        return make

    return register


def bytes_of(*arrays: Any) -> float:
    return float(sum(x.nbytes for x in arrays))
