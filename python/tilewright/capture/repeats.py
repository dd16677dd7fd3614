"""Repeats: calls of a function with operands like those of one before. Its ops are copied: its body is captured once.

    item(states, i)     captured
    item(states, j)     the same ops, of j in the place of i

Operands are alike where all that the capture of a body can see of them is the same: dtypes, constants, the functions
and the arrays themselves. Which values they are is all that may differ.
"""

from __future__ import annotations

import dataclasses
import types
from typing import TYPE_CHECKING, Any

from ..dtype import DType
from ..structure import is_record, parts_of, with_parts
from .values import Array, Tile

if TYPE_CHECKING:
    from .frame import Frame

_PLAIN = (int, bool, str, type(None))
_BY_IDENTITY = (types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type, DType)


class _UnlikeError(Exception):
    """A value of which nobody can say whether another one is like it."""


@dataclasses.dataclass(slots=True)
class _Call:
    """One that was captured: its operands, its ops, and what it gave, whose run-time values are `results`."""

    held: Any  # what the key names by identity lives as long
    operands: list[Tile]
    span: Any
    value: Any
    results: list[Tile]


class Repeats:
    """The calls of one kernel's capture that may come again."""

    def __init__(self) -> None:
        self.calls: dict[Any, _Call] = {}
        self.spoilt = 0  # how often a body has read what its operands do not say

    def spoil(self) -> None:
        """What is captured now depends on more than its operands."""
        self.spoilt += 1


class Repeated:
    """A call, which may be like one before: `copied` says so; if it is not, `captured` remembers it."""

    def __init__(self, frame: Frame, function: types.FunctionType, env: dict[str, Any], of_library: bool) -> None:
        self.repeats, self.builder = frame.capture.repeats, frame.builder
        self.operands: list[Tile] = []
        self.held = (function, env)
        within: list[Any] = []
        try:
            key = tuple(_key(value, self.operands, within) for value in env.values())
        except _UnlikeError:
            self.key: Any = None
            return
        values = {id(tile.ir) for tile in self.operands}
        apart = len(values) == len(self.operands) and not any(id(ir) in values for ir in within)
        self.key = (id(function), of_library, *key) if apart else None

    def copied(self) -> tuple[Any] | None:
        """What the call gives, alone in a tuple."""
        known = self.repeats.calls.get(self.key) if self.key is not None else None
        if known is None:
            return None
        found = self.builder.repeat(known.span, _irs(known.operands), _irs(self.operands), _irs(known.results))
        if found is None:
            return None
        instead = {id(old): new for old, new in zip(known.operands, self.operands, strict=True)}
        made = zip(known.results, found, strict=True)
        instead |= {id(old): dataclasses.replace(old, ir=ir) for old, ir in made if id(old) not in instead}
        return (_replaced(known.value, instead),)

    def begin(self) -> None:
        if self.key is not None:
            self.span, self.spoilt = self.builder.span(), self.repeats.spoilt

    def captured(self, value: Any) -> None:
        if self.key is None or self.spoilt != self.repeats.spoilt:
            return
        results: list[Tile] = []
        try:
            _results(value, results)
        except _UnlikeError:
            return
        self.builder.end_span(self.span)
        self.repeats.calls[self.key] = _Call(self.held, self.operands, self.span, value, results)


def _irs(tiles: list[Tile]) -> list[Any]:
    return [tile.ir for tile in tiles]


def _key(value: Any, operands: list[Tile], within: list[Any]) -> Any:
    """What a value has in common with those like it. `operands` are its run-time scalars; `within` are values of the
    IR that make up what is named by identity."""
    kind = type(value)
    if kind is Tile:
        operands.append(value)
        known = None if value.known is None else (type(value.known), repr(value.known))
        return Tile, value.dtype, value.shape, value.loose, value.least, known
    if kind in _PLAIN:
        return kind, value
    if kind is float:
        return kind, value.hex()
    if kind is Array:
        _note_values(value, within)
        return kind, id(value)
    if isinstance(value, _BY_IDENTITY):
        return kind, id(value)
    if isinstance(value, tuple) or is_record(value) or hasattr(kind, "__tw_tree__"):
        return kind, *(_key(part, operands, within) for part in _parts(value))
    raise _UnlikeError


def _note_values(array: Array, within: list[Any]) -> None:
    parts = [part for window in array.windows.values() for part in window]
    if array.laid is not None:
        parts += [*array.laid.extents, *array.laid.strides]
        _note_values(array.laid.array, within)
    within.extend(part.ir for part in parts if isinstance(part, Tile))


def _parts(value: Any) -> list[Any]:
    if hasattr(type(value), "__tw_tree__"):
        return [getattr(value, field.name) for field in dataclasses.fields(value)]
    return parts_of(value) or []


def _results(value: Any, results: list[Tile]) -> None:
    if type(value) is Tile:
        results.append(value)
    elif isinstance(value, tuple) or is_record(value) or hasattr(type(value), "__tw_tree__"):
        for part in _parts(value):
            _results(part, results)
    elif type(value) not in _PLAIN and type(value) is not float:
        raise _UnlikeError


def _replaced(value: Any, instead: dict[int, Tile]) -> Any:
    if type(value) is Tile:
        return instead[id(value)]
    if isinstance(value, tuple) or is_record(value) or hasattr(type(value), "__tw_tree__"):
        return with_parts(value, [_replaced(part, instead) for part in _parts(value)])
    return value
