"""Exceptions that a user sees: what was found, what was expected, what to do, and where.

The text of an exception about tile code ends with the source line and a caret under the
expression; calls that led there stand before it, the outermost first, as in Python's tracebacks:

    no implicit promotion between int32 and uint32; convert one operand, as in x.astype(ct.int64)
      File "kernels.py", line 20, in matmul
        y = combine(a, b)
            ^^^^^^^^^^^^^
      File "kernels.py", line 12, in combine
        return a + b
               ^^^^^
"""

from __future__ import annotations

import dataclasses
import linecache
import re
from collections.abc import Sequence
from typing import Any


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """A range of a source file: lines and columns from 1, the end column excluded."""

    file: str
    line: int
    column: int = 1
    end_line: int = 0
    end_column: int = 0
    function: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def code(self) -> tuple[str, str] | None:
        """The source line and the carets under it; None where the source is not at hand."""
        line = linecache.getline(self.file, self.line).rstrip()
        if not line:
            return None
        start = _characters(line, self.column - 1)
        one_line = self.end_line in (0, self.line)
        end = _characters(line, self.end_column - 1) if one_line and self.end_column else len(line)
        return line, " " * start + "^" * max(1, min(end, len(line)) - start)

    def text(self) -> str:
        """The lines of a traceback."""
        where = f'  File "{self.file}", line {self.line}'
        if self.function:
            where += f", in {self.function}"
        found = self.code()
        if found is None:
            return where
        line, carets = found
        indent = min(len(line) - len(line.lstrip()), len(carets) - len(carets.lstrip()))
        return f"{where}\n    {line[indent:]}\n    {carets[indent:]}"


def _characters(line: str, column: int) -> int:
    """How many characters the first `column` bytes of a line are."""
    return len(line.encode()[:column].decode(errors="ignore"))


class TileError(Exception):
    """Base of all errors of tile code.

    `places` are the calls that lead to the error, outermost first; the last is where it is.
    """

    def __init__(self, message: str = "", places: Sequence[Place] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.places: tuple[Place, ...] = tuple(places)

    @property
    def where(self) -> Place | None:
        return self.places[-1] if self.places else None

    def __str__(self) -> str:
        return "\n".join([self.message, *(place.text() for place in self.places)])


class TileSyntaxError(TileError):
    """Python that tile code does not have."""


class TileTypeError(TileError, TypeError):
    """Dtypes, shapes or kinds of values that do not fit an operation."""


class HeldArrayError(TileTypeError):
    """An array of the device in a variable from outside of a kernel, which its launch has to add to the arguments."""

    def __init__(self, holder: Any, variable: str) -> None:
        super().__init__(
            f"the variable '{variable}' from outside of the kernel is an array of the device, which only a launch has; "
            "launch the kernel, or pass the array as an argument"
        )
        self.holder, self.variable = holder, variable


class RowsError(TileTypeError):
    """An argument of a kernel whose launch has to tell whether its elements lie in row-major order."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


class TileValueError(TileError, ValueError):
    """A value out of its range."""


class TileIndexError(TileError, IndexError):
    """An index that an array does not have."""


class TileZeroDivisionError(TileError, ZeroDivisionError):
    """A division by zero that the host asked for."""


class TileUnsupportedFeatureError(TileError):
    """What the language has and this compiler, or this target, has not."""


class TileStaticEvalError(TileError):
    """An expression that Python was to compute at compile time is none of constants."""


class StaticException(TileStaticEvalError):  # noqa: N818 - its name in cuTile
    """An exception at compile time: of `raise ct.static_exception(...)`, or of what Python was to compute."""


class TileStaticAssertionError(TileValueError):
    """A `static_assert` whose condition does not hold."""


class TileRecursionError(TileSyntaxError):
    """A function that calls itself without end."""


class HostCallError(TileError, RuntimeError):
    """An operation of tile code that the host has called."""


class TileInternalError(TileError):
    """Something went wrong for which the program is not to blame."""


class TileCompilationError(TileInternalError):
    """The compiler failed at something that it should have been able to do."""


TileCompilerExecutionError = TileCompilationError  # its name in cuTile


class TileCompilerTimeoutError(TileInternalError):
    """A compilation that took longer than `ct.compiler_timeout` allows."""


class LaunchError(TileError):
    """A launch that cannot be made: its grid, stream or places of its arrays."""


class TileCheckError(TileError):
    """What a launch in check mode has found wrong. `findings` has all that it has told, the first one's block first."""

    def __init__(self, message: str = "", places: Sequence[Place] = (), findings: Sequence[Any] = ()) -> None:
        super().__init__(message, places)
        self.findings = tuple(findings)


class DriverError(TileError):
    """The GPU's driver is missing, too old, or reports an error."""


# ---------------------------------------------------------------------------------------------
# From the compiler's diagnostics

_ERROR, _NOTE = 0, 2  # MLIR's severities
_POSITION = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)(?: to (?:(\d+))?:(\d+))?')
_OP = re.compile(r"^'(\w+)\.([\w.]+)' op ")
_TILE = re.compile(r"\b(\d+(?:x\d+)*)x((?:[bt]?f|i)\d\w*)\b")


def places_of(location: str) -> tuple[Place, ...]:
    """The places in the text of an MLIR location, outermost call first."""
    found = []
    for file, line, column, end_line, end_column in _POSITION.findall(location):
        last_line = int(end_line or line) if end_column else 0
        found.append(Place(file, int(line), int(column), last_line, int(end_column or 0)))
    return tuple(reversed(found))


def from_message(message: str, name: str | None = None) -> TileError:
    """The exception for what an op of the dialect says when it refuses its operands.

    `name` stands for the op's own name, as the user wrote it.
    """
    match = _OP.match(message)
    if match is None:
        return TileCompilationError(message)
    rest = _TILE.sub(_tile_text, message[match.end() :])
    subject = name or _public(match[1], match[2])
    return TileTypeError(f"{subject}: {rest}" if subject else f"this {rest}")


def _tile_text(tile: re.Match[str]) -> str:
    """64x32xbf16 as a program has it: (64, 32) bfloat16."""
    extents, element = tile[1].split("x"), tile[2]
    dtype = re.sub(r"^(tf|bf|f|i)", lambda m: {"tf": "tfloat", "bf": "bfloat", "f": "float", "i": "int"}[m[1]], element)
    shape = ", ".join(extents) if len(extents) > 1 else f"{extents[0]},"
    return f"({shape}) {re.sub('E(.*)', lambda m: f'_e{m[1].lower()}', dtype)}"


def _public(dialect: str, op: str) -> str | None:
    """An op as tile code has it; None for those that passes make."""
    from ._optable import OPS

    found = [row.public for row in OPS if row.name == f"{dialect}.{op}" and row.public]
    return f"ct.{found[0]}" if found else None


def from_diagnostics(diagnostics: Sequence[tuple[int, str, str]]) -> TileError:
    """The exception for a compilation that failed: (severity, location, message), in order."""
    errors = [d for d in diagnostics if d[0] == _ERROR]
    if not errors:
        return TileCompilationError(
            "the compiler failed without saying why; TILEWRIGHT_DUMP=DIR writes each stage down"
        )
    _, location, message = errors[0]
    notes = [text for severity, _, text in diagnostics if severity == _NOTE]
    error = from_message(message)
    error.message = "\n".join([error.message, *(text for _, _, text in errors[1:]), *notes])
    error.args = (error.message,)
    error.places = places_of(location)
    return error
