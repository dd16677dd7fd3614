"""The stages of a module in order, and other plans for a kernel of which something does not fit.

A kernel for a GPU whose first plan takes more registers or shared memory than there are, or that a pass cannot go on
with, starts again from the stage "tile" with the number of the next plan as an attribute of the module: the passes
read it (lowering/gpu/replan.c has the list, and a remark of each). Where no plan is left, the error is the first one's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from . import _core, knobs
from .errors import TileError, TileValueError

Diagnostics = list[tuple[int, str, str]]


class MalformedError(Exception):
    """A pass left IR that MLIR's verifier refuses. No error of a program, and no reason for another plan."""


def step(module: Any, goal: str) -> Diagnostics:
    """`module.lower(goal)`; with TILEWRIGHT_VERIFY pass by pass, and the verifier looks at what each of them left."""
    if not knobs.verify():
        return list(module.lower(goal))
    target = (module.attribute("tile.target") or "").strip('"')
    rows = [(stage, name) for stage, name, _ in _core.passes(target)]
    ends = [i for i, row in enumerate(rows) if goal in row]
    names = [name for _, name in rows[: ends[-1] + 1 if ends else None]]
    told: Diagnostics = []
    for name in [*names, goal] if goal not in names else names:
        told += module.lower(name)  # nothing where it has run already
        _verify(module, name)
    return told


def _verify(module: Any, name: str) -> None:
    try:
        module.verify()
    except TileError as error:
        raise MalformedError(f"{name} left IR that the verifier refuses: {error}\n{module.text(True)}") from error


def lower(module: Any, stages: Sequence[str], run: Callable[[str], Diagnostics], plan: int = 0) -> Diagnostics:
    """Take the module at the stage "tile" through the stages, each by `run`; what was said by the plan that did it.

    `plan` is the first to try: 0 is what the compiler would choose, others have been told apart before.
    """
    module.keep()
    first: TileError | None = None
    reason, lacks = "the first one does not run", ""
    while True:
        if plan:
            module.replan(plan, reason)
        try:
            return [told for stage in stages for told in run(stage)]
        except TileError as error:
            what = module.does_not_fit()
            lacks = what or lacks
            if first is None:
                reason = error.message.splitlines()[0]
                first = _refusal(error) if what else error
            plan = _core.next_plan(plan, lacks) if _for_gpu(module) else 0
            if not plan:
                raise first from None


def _for_gpu(module: Any) -> bool:
    return (module.attribute("tile.target") or "").startswith('"sm_')


def _refusal(error: TileError) -> TileError:
    """What does not fit is the program's tile, not a failure of the compiler."""
    return error if isinstance(error, TileValueError) else TileValueError(error.message, error.places)
