"""One random kernel of Numba, run by a back end, whose results must be what Numba's rules say (meaning.py).

    outcome = check({"kind": "numba", "seed": 7}, "cpu", folder)

A back end is cpu (or what is installed in its place), gpu, or a target, for which it is only compiled.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from program_outcome import Outcome, compiled, guarded, kernel_of
from random_language import draws
from tilewright.numba import cuda

from . import meaning
from .program import Program

PROGRAMS = draws.Programs(Program)
program_of, source_of, plainer = PROGRAMS.of, PROGRAMS.source_of, PROGRAMS.plainer


def check(choices: Any, backend: str, folder: Path) -> Outcome:
    return guarded(lambda: unguarded(program_of(choices), backend, folder))


def unguarded(program: Program, backend: str, folder: Path) -> Outcome:
    kernel = kernel_of(program.source(), folder)
    if backend.startswith("sm_"):
        return compiled(kernel, backend, [*program.arrays().values(), program.n])
    wanted = wanted_of(program)
    if wanted is None:
        return Outcome("right", "has no meaning")
    found = program.arrays()
    placed = {name: cuda.to_device(a) if backend == "gpu" else a for name, a in found.items()}
    kernel[program.grid, program.threads](*placed.values(), program.n)
    if backend == "gpu":
        found = {name: array.copy_to_host() for name, array in placed.items()}
    problems = [difference(name, found[name], wanted[name]) for name in wanted]
    return Outcome("wrong", "; ".join(filter(None, problems))) if any(problems) else Outcome("right")


def wanted_of(program: Program) -> dict[str, np.ndarray] | None:
    """The arrays as the kernel should leave them; None where it comes to what is not defined."""
    arrays, thread = program.arrays(), meaning.Thread()
    text = re.sub(r"^@cuda.*$", "", program.source(), flags=re.MULTILINE).replace("cuda.syncthreads()", "yield")
    text = re.sub(r"^(import|from) .*$", "", text, flags=re.MULTILINE)
    text = text.replace("t, g = int64(", "yield from ()\n    t, g = int64(")
    space = meaning.names(thread)
    exec(compile(text, "<meaning>", "exec"), space)
    arguments = [meaning.Array(a) for a in arrays.values()]
    try:
        meaning.run(
            space["kernel"], thread, [*arguments, meaning.Number(program.n, "int64")], program.grid, program.threads
        )
    except meaning.Undefined:
        return None
    return arrays


def difference(name: str, found: np.ndarray, wanted: np.ndarray) -> str:
    alike = (found == wanted) | ((found != found) & (wanted != wanted))
    if alike.all():
        return ""
    at = int(np.nonzero(~alike)[0][0])
    return f"{name}: {(~alike).sum()} of {found.size}, first at {at}: found {found[at]!r}, expected {wanted[at]!r}"
