"""Launching with what a search has found: what the record says of a kernel and its arguments, and `tune.launch`.

A launch like an earlier one is found in C (python/ext/tuned.c) and does not come here: `launch_first` asks the record
once for each kernel and shapes, and tells the kernel what to launch in its place.
"""

from __future__ import annotations

import dataclasses
import inspect
import os
import types
import weakref
from pathlib import Path
from typing import Any

from .. import _core
from ..errors import TileError
from ..kernel import kernel as tile_kernel
from ..kernel import launch as launch_as_given
from . import cost, record
from .space import Candidate, Grid, Problem


@dataclasses.dataclass(frozen=True)
class Best:
    """What the record has for a kernel and its arguments."""

    kernel: Any  # with the hints of the record
    constants: dict[str, Any]
    entry: record.Entry

    def args(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments with the constants of the record."""
        return tuple(self.constants.get(n, value) for n, value in zip(self.kernel.parameters, args, strict=True))


def best(kernel: Any, args: tuple[Any, ...], *, record_file: str | os.PathLike[str] | None = None) -> Best | None:
    """What an earlier search, in this process or another one, has found for such arguments; None: nothing."""
    problem = Problem(kernel, args, 1)
    facts = problem.facts()
    layout = facts.layout()
    device = cost.machine_of(layout.device).name
    source, wanted = record.source_hash(kernel.function), record.shape_class(facts.leaf_key, layout)
    arguments = record.arguments_text(facts.names, layout)
    found = [
        entry
        for entry in record.read(Path(record_file) if record_file is not None else record.default_path())
        if (entry.device, entry.kernel, entry.source, entry.shape_class) == (device, kernel.name, source, wanted)
    ]
    for entry in sorted(found, key=lambda entry: record.distance(entry.arguments, arguments)):
        try:
            candidate = problem.candidate(entry.constants | entry.hints)
            return Best(problem.kernel_of(candidate), dict(candidate.constants), entry)
        except TileError:  # of another version of the kernel or the compiler
            continue
    return None


class Tuned:
    """A launch with what the record has: the kernel with its hints, and the constants by position."""

    def __init__(self, kernel: tile_kernel, args: tuple[Any, ...], record_file: Any) -> None:
        found = best(kernel, args, record_file=record_file)
        self.kernel = found.kernel if found else kernel
        places = {name: at for at, name in enumerate(kernel.parameters)}
        self.constants = tuple((places[name], value) for name, value in (found.constants if found else {}).items())

    def args(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        chosen = dict(self.constants)
        return tuple(chosen.get(at, value) for at, value in enumerate(args))

    def picks(self, grid: Any) -> tuple[Any, ...] | None:
        """Where a plain function of a grid has its arguments from: a position in those of a launch, or (constant,)."""
        names = _plain_parameters(grid)
        places = {name: at for at, name in enumerate(self.kernel.parameters)}
        if names is None or not all(name in places for name in names):
            return None
        chosen = {at: (value,) for at, value in self.constants}
        return tuple(chosen.get(places[name], places[name]) for name in names)


def _plain_parameters(grid: Any) -> tuple[str, ...] | None:
    """Of a function that takes parameters by position, and no others."""
    if not isinstance(grid, types.FunctionType):
        return None
    code = grid.__code__
    if code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS) or code.co_kwonlyargcount:
        return None
    return code.co_varnames[: code.co_argcount]


MOST_TUNED = 4096  # launches of different shapes that a kernel remembers
_tuned: weakref.WeakKeyDictionary[Any, dict[bytes, Tuned]] = weakref.WeakKeyDictionary()  # by what was launched


def forget(kernel: tile_kernel) -> None:
    """Has the next launch of the kernel read the record again."""
    owners = [owner for ref in _tuned.keyrefs() if (owner := ref()) is not None]
    for owner in owners:
        if kernel in (owner, getattr(owner, "kernel", None)):
            _tuned.pop(owner, None)
    kernel.forget_tuned()


def grid_of(grid: Grid, kernel: tile_kernel, args: tuple[Any, ...]) -> Any:
    """What a function says of the grid; a plain one is asked without taking the arguments apart."""
    names = _plain_parameters(grid)
    if names is not None:
        places = {name: at for at, name in enumerate(kernel.parameters)}
        if all(name in places for name in names):
            return grid(*[args[places[name]] for name in names])  # type: ignore[operator]
    return Problem(kernel, args, grid).grid_of(Candidate())


def _known(owner: Any, kernel: tile_kernel, args: tuple[Any, ...], record_file: Any) -> Tuned:
    known, key = _tuned.setdefault(owner, {}), kernel.shape_key(args)
    found = known.get(key)
    if found is None:
        if len(known) >= MOST_TUNED:
            known.clear()
        found = known[key] = Tuned(kernel, args, record_file)
    return found


def launch_first(stream: Any, grid: Grid, kernel: Any, args: tuple[Any, ...]) -> None:
    """`tune.launch` of what was not launched before. A kernel that searches for itself has `prepare`."""
    owner, record_file = kernel, None
    if hasattr(owner, "prepare"):
        kernel, record_file = owner.prepare(grid, args)
    Problem(kernel, args, grid)  # says what is wrong with them
    found = _known(owner, kernel, args, record_file)
    chosen = found.args(args)
    extents = grid_of(grid, found.kernel, chosen) if callable(grid) else grid
    launch_as_given(stream, extents, found.kernel, chosen)
    if launch_as_given is _core.launch:
        picks = found.picks(grid)
        # What is called and no plain function is remembered by its type: it is asked for by `grid_of` each time.
        code = grid.__code__ if picks is not None else type(grid) if callable(grid) else None  # type: ignore[union-attr]
        kernel.remember_tuned(owner, args, found.kernel, found.constants, code, picks)


# As ct.launch, which a variable may have replaced by the reference, a checked launch or one with a name in a timeline.
launch = _core.launch_tuned if launch_as_given is _core.launch else launch_first
