"""One random program, run by the reference and by a back end, whose results must be the same.

    outcome = check({"kind": "language", "seed": 7}, "cpu", folder)

A back end is cpu (or what is installed in its place), gpu, interpret, or a target, for which it is only compiled.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from program_outcome import Outcome, compiled, guarded, kernel_of
from tilewright import interpret
from tilewright import tile as ct

from . import draws
from .arrays import Plan, stored_whole
from .program import NUMBERS, Program

LAUNCHES = 2  # on a GPU: results must be right each time


PROGRAMS = draws.Programs(Program)
program_of, source_of, plainer = PROGRAMS.of, PROGRAMS.source_of, PROGRAMS.plainer


def check(choices: Any, backend: str, folder: Path) -> Outcome:
    return guarded(lambda: unguarded(program_of(choices), backend, folder))


def unguarded(program: Program, backend: str, folder: Path) -> Outcome:
    kernel = kernel_of(program.source(), folder)
    if backend.startswith("sm_"):
        return compiled(kernel, backend, list(program.held(kernel, program.arguments())))
    wanted = program.arguments()
    if backend == "interpret":
        kernel.interpret(program.grid, program.held(kernel, wanted))
        return Outcome("right")
    for turn in range(LAUNCHES if backend == "gpu" else 1):
        found = program.arguments()
        launch(kernel, program, found, backend)
        if turn == 0:  # the launch has asked the front end, so that the reference need not
            interpret.run(kernel.function, program.grid, program.held(kernel, wanted))
        problems = [stored_whole(plan, *pair) for plan, pair in paired(program, found, wanted)]
        if any(problems):
            return Outcome("wrong", "; ".join(text for text in problems if text))
    return Outcome("right")


def paired(program: Program, found: list[Any], wanted: list[Any]) -> Iterator[tuple[Plan, tuple[Any, Any]]]:
    plans = [*program.arrays, NUMBERS]
    return zip(plans, list(zip(found, wanted, strict=True))[: len(plans)], strict=True)


def launch(kernel: Any, program: Program, arguments: list[Any], backend: str) -> None:
    if backend != "gpu":
        ct.launch(None, program.grid, kernel, program.held(kernel, arguments))
        return
    from .device import Device

    with Device() as device:
        moved = [device.moved(x) for x in arguments]
        ct.launch(None, program.grid, kernel, program.held(kernel, moved))
        device.copy_back()
