"""Repeats: calls of a function with operands like those of one before. Its ops are copied: its body is captured once.

    item(states, i)     captured
    item(states, j)     the same ops, of j in the place of i

Operands are alike where all that the capture of a body can see of them is the same: dtypes, constants, the functions
and the arrays themselves. Which values they are is all that may differ. Of a function that is defined in the kernel,
what its free names stand for is the same.
"""

from __future__ import annotations

import ast
import dataclasses
import types
from typing import TYPE_CHECKING, Any

from .. import tile as ct
from ..dtype import DType
from ..structure import is_record, parts_of, with_parts
from .values import Array, LocalFunction, Tile, Unusable

if TYPE_CHECKING:
    from .frame import Frame

_PLAIN = {int, bool, str, type(None)}
_BY_IDENTITY = (types.FunctionType, types.BuiltinFunctionType, type(ct.load), types.ModuleType, type, DType)


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

    def __init__(self, frame: Frame, function: Any, env: dict[str, Any], of_library: bool) -> None:
        self.repeats, self.builder = frame.capture.repeats, frame.builder
        alike = _Alike()
        self.operands, self.held = alike.operands, (function, env, alike.held)
        self.key: Any = None
        try:
            key = (of_library, alike.function(function), *[alike.operand(value) for value in env.values()])
        except _UnlikeError:
            return
        if alike.within.isdisjoint(alike.places):
            self.key = key

    def copied(self) -> tuple[Any] | None:
        """What the call gives, alone in a tuple."""
        known = self.repeats.calls.get(self.key) if self.key is not None else None
        if known is None:
            return None
        found = self.builder.repeat(known.span, _irs(known.operands), _irs(self.operands), _irs(known.results))
        if found is None:
            return None
        instead = {id(old): new for old, new in zip(known.operands, self.operands, strict=True)}
        for old, ir in zip(known.results, found, strict=True):
            if id(old) not in instead:
                instead[id(old)] = Tile(ir, old.dtype, old.shape, old.known, old.loose, old.least)
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


class _Alike:
    """What values have in common with those like them.

    `operands` are the run-time scalars among them, `places` their values in the IR, by identity, numbered; `within` are
    the values that make up what is the same in each call, which is in `held`.
    """

    def __init__(self) -> None:
        self.operands: list[Tile] = []
        self.places: dict[int, int] = {}
        self.within: set[int] = set()
        self.held: list[Any] = []
        self.active: list[LocalFunction] = []

    def operand(self, value: Any) -> Any:
        kind = type(value)
        if kind is Tile:
            self.operands.append(value)
            place = self.places.setdefault(id(value.ir), len(self.places))
            if value.known is None:
                return place, value.dtype, value.shape, value.loose, value.least
            return place, value.dtype, value.shape, value.loose, value.least, type(value.known), repr(value.known)
        if kind is tuple:
            return tuple([self.operand(part) for part in value])
        if kind in _PLAIN:
            return kind, value
        if kind is float:
            return kind, value.hex()
        if kind is LocalFunction:
            return self.function(value)
        if kind is Array or isinstance(value, _BY_IDENTITY):
            return self.same(value)
        if _has_parts(value):
            return kind, *(self.operand(part) for part in _parts(value))
        raise _UnlikeError

    def function(self, function: Any) -> Any:
        """A function by itself and, where it is defined in the kernel, by all that its names stand for there."""
        if type(function) is not LocalFunction:
            return self.same(function)
        if any(function.node is other.node for other in self.active):
            raise _UnlikeError
        self.active.append(function)
        found = [self.same(function.node), self.same(function.frame.source.function)]
        found += [self.same(value) for value in (*function.defaults, *function.keyword_defaults.values())]
        for name in _names_in(function.node):
            frame = function.frame
            while frame is not None and name not in frame.env:
                frame = frame.lexical
            found.append(None if frame is None else self.same(frame.env[name]))
        self.active.pop()
        return tuple(found)

    def same(self, value: Any) -> Any:
        """What is one object in each call."""
        kind = type(value)
        if kind is LocalFunction:
            return self.function(value)
        if kind is tuple:
            return tuple([self.same(part) for part in value])
        self.held.append(value)
        if kind is Tile:
            self.within.add(id(value.ir))
        elif kind is Array:
            self._note_parts(value)
        elif kind is not Unusable and not isinstance(value, (*_BY_IDENTITY, ast.AST)):
            self._note_fields(value)
        return id(value)

    def _note_parts(self, array: Array) -> None:
        parts = [part for window in array.windows.values() for part in window]
        if array.laid is not None:
            parts += [*array.laid.extents, *array.laid.strides]
            self._note_parts(array.laid.array)
        self.within.update(id(part.ir) for part in parts if isinstance(part, Tile))

    def _note_fields(self, value: Any) -> None:
        if isinstance(value, tuple):
            fields: Any = value
        elif dataclasses.is_dataclass(value):
            fields = [getattr(value, field.name) for field in dataclasses.fields(value)]
        elif isinstance(value, dict | types.SimpleNamespace):
            raise _UnlikeError
        else:
            return
        for field in fields:
            self.same(field)


def _names_in(node: Any) -> tuple[str, ...]:
    """All names that a function reads, or assigns."""
    known: tuple[str, ...] | None = getattr(node, "_tw_names_in", None)
    if known is None:
        known = node._tw_names_in = tuple(sorted({n.id for n in ast.walk(node) if isinstance(n, ast.Name)}))
    return known


def _has_parts(value: Any) -> bool:
    return isinstance(value, tuple) or is_record(value) or hasattr(type(value), "__tw_tree__")


def _parts(value: Any) -> list[Any]:
    if hasattr(type(value), "__tw_tree__"):
        return [getattr(value, field.name) for field in dataclasses.fields(value)]
    return parts_of(value) or []


def _results(value: Any, results: list[Tile]) -> None:
    if type(value) is Tile:
        results.append(value)
    elif _has_parts(value):
        for part in _parts(value):
            _results(part, results)
    elif type(value) not in _PLAIN and type(value) is not float:
        raise _UnlikeError


def _replaced(value: Any, instead: dict[int, Tile]) -> Any:
    if type(value) is Tile:
        return instead[id(value)]
    return with_parts(value, [_replaced(part, instead) for part in _parts(value)]) if _has_parts(value) else value
