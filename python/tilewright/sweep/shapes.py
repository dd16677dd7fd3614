"""Shapes: the launches that a sweep measures, from a file of TOML or the arguments of a command.

    grid = "cdiv(M, TM), cdiv(N, TN)"

    [arguments]                  # of every shape; {M} stands for the value of M
    A = "bf16[{M},{K}]"
    TM = 128

    [[shapes]]
    M = 4096
    K = 512

Parameters of the kernel are its arguments, written as for `--arg`; other names are variables for braces and the grid.
"""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import TileTypeError, TileValueError
from ..tune.samples import extents
from .expressions import Expression

MOST_BYTES, MOST_SHAPES = 1 << 20, 10_000


@dataclasses.dataclass(frozen=True)
class Shape:
    """One launch: the texts of its arguments, its variables, and its grid."""

    arguments: tuple[str, ...]
    variables: tuple[tuple[str, Any], ...]
    grid: str

    def __str__(self) -> str:
        return ", ".join(f"{n}={v}" for n, v in self.variables) or ", ".join(a for a in self.arguments if "[" in a)

    def grid_of(self, kernel: Any) -> Grid:
        return Grid(kernel, self)


class Grid:
    """The expression of a grid, of the constants of a candidate."""

    def __init__(self, kernel: Any, shape: Shape) -> None:
        self.expression = Expression(f"({shape.grid},)", "the grid")
        self.fixed = dict(shape.variables) | extents(shape.arguments)
        unknown = [n for n in self.expression.names if n not in self.fixed and n not in kernel.parameters]
        if unknown:
            known = ", ".join(dict.fromkeys([*kernel.parameters, *self.fixed]))
            raise TileValueError(
                f"the grid {shape.grid!r} has the name {unknown[0]!r}, which is unknown; there are {known}"
            )
        self.names = [n for n in self.expression.names if n not in self.fixed]

    def of(self, constants: Mapping[str, Any]) -> tuple[int, ...]:
        found = self.expression.of(self.fixed | dict(constants))
        flat = found[0] if len(found) == 1 and isinstance(found[0], tuple) else found
        if not 1 <= len(flat) <= 3 or not all(type(n) is int and n > 0 for n in flat):
            raise TileValueError(
                f"the grid {self.expression.text!r} gives {flat}; expected one to three positive integers"
            )
        return tuple(flat)


def of_command(arguments: Sequence[str], grid: str | None) -> list[Shape]:
    if grid is None:
        raise TileValueError(
            "say how many blocks a launch has: --grid 'cdiv(A.shape[0], TM), …', or grid = … in --shapes"
        )
    return [Shape(tuple(arguments), (), grid)]


def read(path: Path, kernel: Any, grid: str | None = None) -> list[Shape]:
    """The shapes of a file; `grid` of the command counts before its own."""
    table = _table(path)
    grid = grid or table.get("grid")
    unknown = sorted(set(table) - {"grid", "arguments", "shapes"})
    if unknown:
        raise TileValueError(f"{path} has {unknown[0]!r}; a file of shapes has grid, [arguments] and [[shapes]]")
    if not isinstance(grid, str):
        raise TileValueError(f'{path} has no grid: expected a text such as grid = "cdiv(M, TM)", found {grid!r}')
    common, rows = table.get("arguments", {}), table.get("shapes", [{}])
    if not isinstance(common, dict) or not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise TileTypeError(f"{path}: [arguments] is a table, and [[shapes]] are tables")
    if not 1 <= len(rows) <= MOST_SHAPES:
        raise TileValueError(f"{path} has {len(rows)} shapes; expected 1 to {MOST_SHAPES}")
    return [_shape(path, common | row, kernel, grid) for row in rows]


def _table(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise TileValueError(f"{path} is larger than {MOST_BYTES} bytes, which a file of shapes is not")
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise TileValueError(f"the shapes {str(path)!r} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TileValueError(f"{path} is no TOML: {error}") from None


def _shape(path: Path, values: Mapping[str, Any], kernel: Any, grid: str) -> Shape:
    for name, value in values.items():
        if not isinstance(value, int | float | str):
            raise TileTypeError(f"{path}: {name} is a text or a number, found {value!r}")
    variables = {n: v for n, v in values.items() if n not in kernel.parameters}
    missing = [name for name in kernel.parameters if name not in values]
    if missing:
        raise TileValueError(f"{path}: a shape says nothing of {missing[0]!r}; kernel {kernel.name} takes it")

    def filled(text: str) -> str:
        def value(match: re.Match[str]) -> str:
            if match[1] not in values:
                raise TileValueError(f"{path}: {text!r} speaks of {match[1]!r}, which has no value")
            return str(values[match[1]])

        return re.sub(r"\{(\w+)\}", value, text)

    texts = ((n, filled(v) if isinstance(v, str) else repr(v)) for n, v in values.items() if n in kernel.parameters)
    return Shape(tuple(f"{n}={text}" for n, text in texts), tuple(variables.items()), grid)
