"""One random program of threads, run by the reference and by a back end, whose results must be the same.

    outcome = check({"kind": "simt", "seed": 7}, "cpu", folder)

A back end is cpu (or what is installed in its place), gpu, interpret, or a target, for which it is only compiled.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import tilewright
from cuda import device
from program_outcome import Outcome, compiled, guarded, kernel_of
from random_language import draws

from .program import Program

PROGRAMS = draws.Programs(Program)
program_of, source_of, plainer = PROGRAMS.of, PROGRAMS.source_of, PROGRAMS.plainer


def check(choices: Any, backend: str, folder: Path) -> Outcome:
    return guarded(lambda: unguarded(program_of(choices), backend, folder))


def unguarded(program: Program, backend: str, folder: Path) -> Outcome:
    kernel = kernel_of(program.source(), folder)
    if backend.startswith("sm_"):
        return compiled(kernel, backend, [*program.arrays().values(), program.n])
    wanted, found = program.arrays(), program.arrays()
    kernel.interpret((*wanted.values(), program.n), program.grid, program.block)
    if backend == "interpret":
        return Outcome("right")
    placed = {name: tilewright.to_device(a, device="cuda:0") if backend == "gpu" else a for name, a in found.items()}
    device.launch(kernel, *placed.values(), program.n, grid=program.grid, block=program.block)
    if backend == "gpu":
        found = {name: array.to_numpy() for name, array in placed.items()}
    problems = [difference(name, found[name], wanted[name]) for name in wanted]
    return Outcome("wrong", "; ".join(filter(None, problems))) if any(problems) else Outcome("right")


def difference(name: str, found: np.ndarray, wanted: np.ndarray) -> str:
    wrong = np.nonzero(found != wanted)
    if not wrong[0].size:
        return ""
    at = tuple(int(i[0]) for i in wrong)
    return f"{name}: {wrong[0].size} of {found.size}, first at {at}: found {found[at]!r}, expected {wanted[at]!r}"
