"""Candidates: what the cost model expects of one, and the program that a launch of it runs."""

from __future__ import annotations

import math
from typing import Any

from .. import _core, compile, hints
from ..errors import TileValueError
from ..structure import leaves
from . import cost, memory
from .space import Candidate, Facts, Problem
from .trial import Program
from .worker import Assembler, Assemblers

# Hints by which a kernel does the same work in another way: candidates that differ in them alone are counted once.
SAME_WORK = ("num_warps", "num_stages", "raster", "group")


def estimate(
    problem: Problem,
    facts: Facts,
    layout: memory.Layout,
    machine: cost.Machine,
    candidate: Candidate,
    counted: dict[Any, cost.Work] | None = None,
) -> tuple[cost.Work, float]:
    """What a launch does, and how many seconds it should take, by the kernel as it is written. `counted`: what such
    calls have counted before, of the same problem."""
    of_tiles = [hints.told(*hint) for hint in candidate.hints if hints.tile_of(hint[0])]
    if of_tiles and not machine.is_gpu:
        raise TileValueError(f"{of_tiles[0]} is a choice on GPUs; on a CPU no threads hold parts of a tile")
    kernel, grid = problem.kernel_of(candidate), problem.grid_of(candidate)
    of_layouts = machine.is_gpu and asks_for_layouts(kernel.hints)
    same = candidate.constants, tuple(hint for hint in candidate.hints if hint[0] not in SAME_WORK), grid
    work = counted.get(same) if counted is not None and not of_layouts else None
    if work is not None:
        return work, cost.predict(work, machine, dict(kernel.hints))
    _, key = kernel.specialization(problem.args_of(candidate))
    module = kernel.capture(facts.target, key)
    module.lower("legal")
    work = cost.count(module, layout, _values(problem, facts, layout, candidate), grid, facts.constants)
    if counted is not None:
        counted[same] = work
    seconds = cost.predict(work, machine, dict(kernel.hints))
    if of_layouts:
        plain = kernel.replace_hints(**{n: None for n in kernel.hints if asks_for_layouts({n: kernel.hints[n]})})
        free = plain.capture(facts.target, key)
        free.lower("legal")
        seconds += _layout_seconds(module, free, grid, machine, kernel.hints.get("layout_rank") or 0)
    return work, seconds


def asks_for_layouts(wanted: dict[str, Any]) -> bool:
    return bool(wanted.get("layout_rank")) or any(n.startswith("layout(") and v for n, v in wanted.items())


def _layout_seconds(module: Any, free: Any, grid: tuple[int, int, int], machine: cost.Machine, rank: int) -> float:
    """What layouts that a program asks for should take longer than the best, by the compiler's own estimate."""
    for one in (module, free):
        one.lower("layout")
    ((name, record),) = module.kernels()
    slots, best = module.layout_costs(name), free.layout_costs(name)
    if rank >= len(slots):
        raise TileValueError(f"the layouts have {max(0, len(slots) - 1) or 'no'} runners-up")
    warps = _core.launch_facts(record)["num_warps"] or 1
    return cost.slot_seconds((slots[rank] - best[0]) * warps * math.prod(grid), machine)


def listed_layouts(problem: Problem, tile: str) -> list[str]:
    """The kinds of layouts that the tile with this name may have, the compiler's own first."""
    facts = problem.facts()
    if facts.target.startswith("cpu"):
        raise TileValueError(f"axis layout({tile}) has no values on a CPU, where no threads hold parts of a tile")
    _, key = problem.kernel.specialization(problem.args)
    module = problem.kernel.capture(facts.target, key)
    for stage in ("legal", "layout"):
        module.lower(stage)
    rows = module.layouts(problem.kernel.name)
    found = [(taken, choices) for names, _, taken, choices in rows if tile in names]
    if not found:
        known = sorted({name for names, *_ in rows for name in names})
        raise TileValueError(
            f"kernel {problem.kernel.name} has no axis layout({tile}): threads hold no such tile; they hold "
            f"{', '.join(known) or 'none'}"
        )
    every = [[choices[taken][0], *(kind for kind, *_ in choices)] for taken, choices in found]
    return [kind for kind in dict.fromkeys(every[0]) if all(kind in kinds for kinds in every)]


def _values(problem: Problem, facts: Facts, layout: memory.Layout, candidate: Candidate) -> tuple[Any, ...]:
    """The scalars among the leaves; None for arrays, 0 for constants, which are in the code."""
    kernel, args = problem.kernel, problem.args_of(candidate)
    return tuple(
        None if i in layout.views else 0 if i in facts.constants else leaf.value
        for i, leaf in enumerate(leaves(kernel.parameters, args, kernel.forms))
    )


def program_of(
    problem: Problem,
    facts: Facts,
    layout: memory.Layout,
    candidate: Candidate,
    assembler: Assembler | Assemblers | None,
    fetch: compile.Fetch | None = None,
) -> tuple[Program, dict[str, hints.Value]]:
    """What a launch of a candidate runs, and the hints that it runs it with beyond the candidate's: the launch itself
    is asked, which may slice, share or coarsen tiles, or other clusters."""
    kernel, grid = problem.kernel_of(candidate), problem.grid_of(candidate)
    made: dict[Any, tuple[compile.Specialization, compile.Image]] = {}

    def load(image: compile.Image) -> None:  # in another process than it runs in: the driver keeps what comes of it
        if assembler and image.is_ptx and layout.device is not None:
            assembler.load(image.pack(), kernel.name, facts.target, layout.device)

    def hear(of: compile.Specialization, image: compile.Image, variant: Any) -> None:
        made[variant] = of, image
        if image.is_asked_for_room:
            load(image)

    def compiled(_: Any, target: str, key: compile.Key) -> Any:
        assemble = assembler.assemble if assembler else None
        return compile.Specialization(kernel, target, key, assembler=assemble, made=hear, fetch=fetch).compile()[0]

    constants = [i for i, (kind, *_) in enumerate(facts.key) if kind == "const"]
    dispatcher = _core.Dispatcher(kernel.name, kernel.parameters, constants, compiled, forms=kernel.forms)
    variant = dispatcher.chosen(grid, problem.args_of(candidate))
    chosen, image = made[variant]
    if not image.is_asked_for_room:
        load(image)
    program = Program(
        image=image.settled().pack(),
        name=kernel.name,
        target=facts.target,
        written=variant.written,
        parameters=facts.names,
        constants=tuple(sorted(facts.constants)),
        values=_values(problem, facts, layout, candidate),
        grid=grid,
        scratch=sum(1 << facts.names.index(name) for name in problem.scratch),
    )
    settled = chosen.kernel.hints.items()
    return program, {name: value for name, value in settled if kernel.hints.get(name) != value}
