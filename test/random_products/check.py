"""One random program: its text in a file, launched or compiled, its results held against what they must be.

    outcome = check(choose(7), "cpu", folder)

`.kind` is right, wrong, refused, crashed or failed; `.text` tells what about it. A program that is only compiled is
wrong if its PTX uses registers of products that are under way.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
from attention_programs import Attention
from backward_programs import Backward
from choices import Choices
from gemm import Gemm
from numbers_of import NumPy, Torch

from program_outcome import Outcome, compiled, kernel_of, kind_of
from tilewright import tile as ct

LAUNCHES = 2  # results must be right each time


def program_of(choices: Choices) -> Any:
    blocks = 3 if choices["small"] else 132  # of a persistent grid
    return {"gemm": Gemm, "attention": Attention, "backward": Backward}[choices["kind"]](choices, blocks)


def source_of(choices: Choices) -> str:
    return program_of(choices).source(json.dumps(choices))


def check(choices: Choices, backend: str, folder: Path) -> Outcome:
    """`backend`: gpu; cpu (or what is installed in its place); interpret; or a target, for which it is compiled."""
    for patience in (5, 10, 20, 0):
        try:
            return unguarded(choices, backend, folder)
        except Exception as error:
            if not (patience and type(error).__name__ == "OutOfMemoryError"):
                return Outcome(kind_of(error), f"{type(error).__name__}: {error}")
        time.sleep(patience)  # the memory of the GPU is another process's
    raise AssertionError("the last try has an outcome")


def unguarded(choices: Choices, backend: str, folder: Path) -> Outcome:
    program = program_of(choices)
    kernel = kernel_of(program.source(json.dumps(choices)), folder)
    numbers = Torch(choices["seed"]) if backend == "gpu" else NumPy(choices["seed"])
    if backend.startswith("sm_"):
        return compiled(kernel, backend, arguments_of(choices, numbers))
    arguments, outputs = program.prepare(numbers)
    return launched(kernel, program.grid(), backend, numbers, arguments, outputs)


def arguments_of(choices: Choices, numbers: Any) -> list[Any]:
    """What a program is compiled for, without the work that many heads are: no code depends on their number."""
    few = choices if choices["kind"] == "gemm" else choices | {"size": (choices["size"][0], 2)}
    arguments, outputs = program_of(few).prepare(numbers)
    return [*arguments, *fresh(numbers, outputs)]


def fresh(numbers: Any, outputs: list[Any]) -> list[Any]:
    return [numbers.poisoned(tuple(o.want.shape), o.dtype) for o in outputs]


def launched(kernel: Any, grid: Any, backend: str, numbers: Any, arguments: Any, outputs: Any) -> Outcome:
    for _ in range(LAUNCHES if backend == "gpu" else 1):
        results = fresh(numbers, outputs)
        if backend == "interpret":
            kernel.interpret(grid, (*arguments, *results))
        elif backend == "gpu":
            ct.launch(numbers.lib.cuda.current_stream(), grid, kernel, (*arguments, *results))
            numbers.lib.cuda.synchronize()
            numbers.lib.cuda.empty_cache()  # other processes want memory, too
        else:
            ct.launch(None, grid, kernel, (*arguments, *results))
        for result, output in zip(results, outputs, strict=True):
            problem = difference(numbers, result, output)
            if problem:
                return Outcome("wrong", problem)
    return Outcome("right")


def difference(numbers: Any, result: Any, output: Any) -> str:
    found = numbers.wide(result)
    wrong = ~(abs(found - output.want) <= output.allowed)
    if wrong.any():
        first, count = numbers.first_and_count(wrong)
        value, want, limit = (float(x[first]) for x in (found, output.want, output.allowed))
        return f"{count} elements are wrong, first at {first}: found {value}, expected {want} to {limit:.2g}"
    return "" if numbers.margin_is_whole(result, output.dtype) else "elements behind the array were written"
