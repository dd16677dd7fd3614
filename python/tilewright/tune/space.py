"""Spaces: what may vary, and the candidates that come of it.

    {"TM": (64, 128), "TN": (128, 256), "num_warps": (4, 8)}      every combination
    [{"TM": 64, "TN": 256}, {"TM": 128, "num_warps": 8}]          these

A name is a constant parameter of the kernel or one of its hints. What a candidate does not name stays as it is.
"""

from __future__ import annotations

import dataclasses
import inspect
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from .. import _core, hints, structure
from ..errors import TileTypeError, TileValueError
from ..kernel import kernel as tile_kernel
from ..structure import constant_parameters
from . import memory

Value: TypeAlias = int | float | bool | str | None
Space: TypeAlias = Mapping[str, Iterable[Any]] | Iterable[Mapping[str, Any]]
Grid: TypeAlias = int | Sequence[int] | Callable[..., int | Sequence[int]]


class Facts:
    """What a launch is compiled for, and its leaves: tuples, lists, dicts and records taken apart, as a launch does.

    A program takes leaves. So what a search copies, compares and passes on are these, by position.
    """

    def __init__(self, kernel: tile_kernel, args: tuple[Any, ...]) -> None:
        self.target, self.key = kernel.specialization(args)
        leaves = structure.leaves(kernel.parameters, args, kernel.forms)
        self.names = tuple(leaf.name for leaf in leaves)
        self.values = tuple(leaf.value for leaf in leaves)
        self.leaf_key = tuple(structure.leaf_entries(self.key))
        self.constants = {i for i, (kind, *_) in enumerate(self.leaf_key) if kind == "const"}
        self.arrays = [i for i, (kind, *_) in enumerate(self.leaf_key) if kind == "array"]

    def layout(self) -> memory.Layout:
        return memory.describe(self.values, self.arrays)

    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Of the arrays."""
        arrays = [self.values[i] for i in self.arrays]
        return tuple(tuple(getattr(a, "shape", None) or _core.describe_array(a)["shape"]) for a in arrays)


@dataclasses.dataclass(frozen=True)
class Candidate:
    """One choice: constants by parameter, hints by name; empty is the kernel as it was given."""

    constants: tuple[tuple[str, Any], ...] = ()
    hints: tuple[tuple[str, hints.Value], ...] = ()

    def __str__(self) -> str:
        chosen = (*self.constants, *self.hints)
        return " ".join(hints.told(name, value) for name, value in chosen) or "as given"


class Problem:
    """A kernel with the arguments of one launch: the same for every candidate."""

    def __init__(self, kernel: tile_kernel, args: tuple[Any, ...], grid: Grid, scratch: Sequence[str] = ()) -> None:
        """`scratch`: arrays, by name, in which candidates may leave what they like."""
        if not isinstance(kernel, tile_kernel) or kernel.rules.simt:
            raise TileTypeError(f"tune works on a @ct.kernel, found {kernel!r}")
        self.kernel, self.args, self.grid = kernel, tuple(args), grid
        self.constants = [name for name in kernel.parameters if name in constant_parameters(kernel.function)]
        if len(self.args) != len(kernel.parameters):
            names = ", ".join(kernel.parameters)
            raise TileTypeError(f"kernel {kernel.name} takes ({names}), found {len(self.args)} arguments")
        self.scratch = tuple(scratch)

    def facts(self) -> Facts:
        facts = Facts(self.kernel, self.args)
        arrays = [facts.names[i] for i in facts.arrays]
        if strangers := [name for name in self.scratch if name not in arrays]:
            known = ", ".join(arrays) or "none"
            raise TileValueError(f"scratch: kernel {self.kernel.name} has no array {strangers[0]!r}; it has {known}")
        return facts

    def candidates(self, space: Space) -> list[Candidate]:
        """The candidates of a space, the one as given first, none twice."""
        if isinstance(space, Mapping):
            empty = [name for name, choices in space.items() if not len(tuple(choices))]
            if empty:
                raise TileValueError(f"the space has no values of {empty[0]!r}; expected one or more of each name")
            values = [tuple(choices) for choices in space.values()]
            rows: Iterable[Mapping[str, Any]] = (
                dict(zip(space, combination, strict=True)) for combination in itertools.product(*values)
            )
        else:
            rows = space
        found = dict.fromkeys(self.candidate(row) for row in rows)
        return list(dict.fromkeys([Candidate(), *found]))

    def candidate(self, row: Mapping[str, Any]) -> Candidate:
        """Checks the names of a row; what equals the kernel as given is left out of it."""
        row = hints.full_names(row)
        unknown = [n for n in row if n not in self.constants and not hints.is_hint(n, self.kernel.hint_names)]
        if unknown:
            raise TileValueError(
                f"kernel {self.kernel.name} has neither a constant nor a hint {unknown[0]!r}; constants: "
                f"{', '.join(self.constants) or 'none'}; hints: {', '.join(self.kernel.hint_names)}"
            )
        given = dict(zip(self.kernel.parameters, self.args, strict=True))
        constants = tuple((n, row[n]) for n in self.constants if n in row and row[n] != given[n])
        of_kernel = [n for n in self.kernel.hint_names if n in row]
        named = [*of_kernel, *sorted(n for n in row if hints.tile_of(n))]
        return Candidate(constants, tuple((n, row[n]) for n in named if row[n] != self.kernel.hints.get(n)))

    def kernel_of(self, candidate: Candidate) -> tile_kernel:
        return self.kernel.replace_hints(**dict(candidate.hints)) if candidate.hints else self.kernel

    def args_of(self, candidate: Candidate) -> tuple[Any, ...]:
        chosen = dict(candidate.constants)
        return tuple(chosen.get(n, value) for n, value in zip(self.kernel.parameters, self.args, strict=True))

    def grid_of(self, candidate: Candidate) -> tuple[int, int, int]:
        """Three extents. A function of a grid is called with the parameters that it names."""
        grid = self.grid
        if callable(grid):
            arguments = dict(zip(self.kernel.parameters, self.args_of(candidate), strict=True))
            wanted = inspect.signature(grid).parameters
            unknown = [name for name in wanted if name not in arguments]
            if unknown:
                raise TileTypeError(
                    f"the grid asks for {unknown[0]!r}; kernel {self.kernel.name} has ({', '.join(arguments)})"
                )
            grid = grid(*(arguments[name] for name in wanted))
        extents = list(grid) if isinstance(grid, Iterable) and not isinstance(grid, str) else [grid]
        if not 1 <= len(extents) <= 3 or not all(hasattr(extent, "__index__") for extent in extents):
            raise TileValueError(f"a grid has one to three extents, which are integers, found {grid!r}")
        x, y, z = [*extents, 1, 1][:3]
        return int(x), int(y), int(z)

    def constants_of(self, candidate: Candidate, names: Iterable[str]) -> dict[str, Any]:
        """The named constants as the candidate has them, and as given where it says nothing."""
        arguments = dict(zip(self.kernel.parameters, self.args_of(candidate), strict=True))
        return {name: arguments[name] for name in names}
