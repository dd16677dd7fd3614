"""Text of values that are known only when the kernel runs: f-strings, str(), repr(), and what `print` writes.

A text is a string where all of it is known, else a Format: its parts are text, and tiles with their conversions.
Structures are written as Python writes them, objects of dataclasses by the methods that their class has.
"""

from __future__ import annotations

import ast
import dataclasses
import reprlib
from collections.abc import Callable, Iterable
from typing import Any

from ..dtype import float64
from ..errors import TileTypeError
from ..formats import python_format
from ..structure import is_record
from . import records
from .expressions import evaluate, handles
from .frame import Frame
from .lengths import check_format
from .values import Array, Format, Selection, Tile, describe, is_run_time

Part = str | tuple[Any, Any]  # text, or a tile with its conversion or None


def text(parts: Iterable[Part]) -> str | Format:
    """What the parts make up: a string, if no tile is among them."""
    parts = tuple(parts)
    return Format(parts) if any(not isinstance(part, str) for part in parts) else "".join(map(str, parts))


def parts_of(value: str | Format) -> tuple[Part, ...]:
    return value.parts if isinstance(value, Format) else (value,)


def text_of(frame: Frame, value: Any) -> str | Format:
    """str(value)"""
    if isinstance(value, str | Format):
        return value
    if hasattr(type(value), "__tw_parts__"):
        return repr_of(frame, value.__tw_parts__(frame))
    if records.method_of(value, "__str__") is not None:
        return _by_method(frame, value, "__str__")
    return repr_of(frame, value) if is_run_time(value) or _is_dataclass(value) else str(value)


def repr_of(frame: Frame, value: Any) -> str | Format:
    """repr(value); of a tile, which has none in tile code, its elements."""
    if isinstance(value, Tile):
        return Format(((value, None),))
    if isinstance(value, Array | Selection):
        instead = "print its elements" if frame.capture.rules.simt else "load a tile of it, with ct.load or ct.gather"
        raise TileTypeError(f"{describe(value)} has no text; {instead}")
    if isinstance(value, Format):
        return _quoted(value)
    if _is_dataclass(value):
        return _repr_of_record(frame, value)
    return text(_structure(frame, value)) if is_run_time(value) else repr(value)


def _is_dataclass(value: Any) -> bool:
    return is_record(value) and dataclasses.is_dataclass(value)


def _structure(frame: Frame, value: Any) -> Iterable[Part]:
    if isinstance(value, dict):
        yield from _listed("{}", [(f"{key!r}: ", entry) for key, entry in value.items()], frame)
    elif hasattr(value, "_fields"):
        yield type(value).__name__
        yield from _listed("()", [(f"{name}=", part) for name, part in zip(value._fields, value, strict=True)], frame)
    elif isinstance(value, tuple):
        yield from _listed("()", [("", part) for part in value], frame, "," if len(value) == 1 else "")
    else:
        raise TileTypeError(f"{describe(value)} has no text in tile code")


def _listed(brackets: str, entries: list[tuple[str, Any]], frame: Frame, end: str = "") -> Iterable[Part]:
    yield brackets[0]
    for i, (name, value) in enumerate(entries):
        yield f"{', ' if i else ''}{name}"
        yield from parts_of(repr_of(frame, value))
    yield end + brackets[1]


_GENERATED = {dataclasses.__file__, reprlib.__file__, "<string>"}  # where @dataclass has its __repr__ from


def _repr_of_record(frame: Frame, value: Any) -> str | Format:
    own, name = records.method_of(value, "__repr__"), type(value).__qualname__
    if own is None:
        return f"<{name} object>"
    if own.__code__.co_filename not in _GENERATED:
        return _by_method(frame, value, "__repr__")
    shown = [(f"{field.name}=", getattr(value, field.name)) for field in dataclasses.fields(value) if field.repr]
    return text([name, *_listed("()", shown, frame)])


def _by_method(frame: Frame, value: Any, name: str) -> str | Format:
    found = records.call_method(frame, value, name, [], {})
    if not isinstance(found, str | Format):
        raise TileTypeError(f"{name} of {type(value).__name__} gives {describe(found)}, expected text")
    return found


def _quoted(value: Format) -> Format:
    """The text between quotes, of which Python takes double ones if it has single ones alone."""
    known = "".join(part for part in value.parts if isinstance(part, str))
    other = '"' if "'" in known and '"' not in known else "'"
    first = "'" if other == '"' else '"'  # a quote that has repr() choose the other one
    escaped = [repr(first + part)[2:-1] if isinstance(part, str) else part for part in value.parts]
    return Format((other, *escaped, other))


# ---- f-strings, and Python's functions --------------------------------------------------------------------------

_CONVERT: dict[int, Callable[[Frame, Any], Any]] = {
    -1: lambda frame, value: value,
    ord("r"): repr_of,
    ord("s"): text_of,
    ord("a"): lambda frame, value: repr_of(frame, value) if is_run_time(value) else ascii(value),
}


@handles(ast.JoinedStr)
def _f_string(frame: Frame, node: ast.JoinedStr) -> str | Format:
    parts: list[Part] = []
    for part in node.values:
        if isinstance(part, ast.Constant):
            parts.append(str(part.value))
            continue
        assert isinstance(part, ast.FormattedValue)
        value = _CONVERT[part.conversion](frame, evaluate(frame, part.value))
        spec = evaluate(frame, part.format_spec) if part.format_spec else ""
        frame.at(part)
        parts.extend(parts_of(formatted(frame, value, spec)))
    return text(parts)


def formatted(frame: Frame, value: Any, spec: Any = "") -> str | Format:
    """format(value, spec)"""
    if not isinstance(spec, str):
        raise TileTypeError(f"a format must be known when the kernel is compiled, found {describe(spec)}")
    if isinstance(value, Tile) and spec:
        shown = python_format(spec, value.dtype, len(value.shape))
        if shown.is_percentage:
            value = frame.emit.binary("mul", frame.emit.cast(value, float64), 100.0)
        return text(part for part in (shown.before, (value, shown.conversion), shown.after) if part)
    if _is_dataclass(value) and records.method_of(value, "__format__") is not None:
        kind = type(value).__name__
        raise TileTypeError(f"'{kind}' has its own __format__, which tile code does not call; write {{x!s}} or {{x!r}}")
    if is_run_time(value) or (_is_dataclass(value) and not spec):
        if spec:
            raise TileTypeError(f"the format {spec!r} is for a number, or a tile of them; found {describe(value)}")
        return text_of(frame, value)
    check_format(spec)
    return format(value, spec)
