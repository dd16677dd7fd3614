"""The stages of a module in order, and other plans for a kernel of which something does not fit.

A kernel for a GPU whose first plan takes more registers or shared memory than there are, or that a pass cannot go on
with, starts again from the stage "tile" with the number of the next plan as an attribute of the module: the passes
read it (lowering/gpu/replan.c has the list, and a remark of each). Where no plan is left, the error is the first one's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from . import _core
from .errors import TileError, TileValueError

Diagnostics = list[tuple[int, str, str]]


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
