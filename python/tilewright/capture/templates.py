"""Templates: what a loop assumes of the form of a variable. A slot stands for each part that changes."""

from __future__ import annotations

import dataclasses
from typing import Any

from ..dtype import DType, constant_dtype, int32
from ..structure import parts_of, with_parts
from .branches import MISSING, fits, same_constant
from .selection import Place, covers, united
from .values import LocalFunction, Selection, Shape, Tile, Unusable, is_number, same_form


@dataclasses.dataclass(slots=True)
class Slot:
    """One loop-carried scalar or tile. `loose` is the constant that it starts from, if it does.

    `is_loose`: as `loose` of a Tile, which it becomes.
    """

    dtype: DType
    shape: Shape
    loose: Any = None
    is_loose: bool = False

    def matches(self, value: Any) -> bool:
        if isinstance(value, Tile):
            typed = self.is_loose and not value.loose
            return value.dtype is self.dtype and value.shape == self.shape and not typed
        return is_number(value) and not self.shape and fits(value, self.dtype)


@dataclasses.dataclass(slots=True)
class Merging(Slot):
    """A loop-carried scalar whose type is what the rules (numba_rules.py) make of all that it is given."""

    rules: Any = None

    def matches(self, value: Any) -> bool:
        return self.rules.is_scalar(value) and self._merged(value) is self.dtype

    def adopted(self, value: Any) -> Merging | None:
        if not self.rules.is_scalar(value):
            return None
        return Merging(self._merged(value), self.shape, rules=self.rules)

    def _merged(self, value: Any) -> DType:
        merged: DType = self.rules.merged(self.dtype, self.rules.dtype_of(value))
        return merged


@dataclasses.dataclass(slots=True)
class Fixed:
    """In a template: a compile-time value that stays."""

    value: Any


@dataclasses.dataclass(slots=True)
class Tree:
    """In a template: a tuple, dict or record of the form of `like`."""

    like: Any
    parts: tuple[Any, ...]


@dataclasses.dataclass(slots=True)
class Pick:
    """In a template: one of several arrays or views."""

    choices: tuple[Any, ...]
    slot: Slot = dataclasses.field(default_factory=lambda: Slot(int32, ()))


def fixed(value: Any) -> Fixed | Tree:
    """The template of a value of which nothing changes, yet."""
    held = parts_of(value)
    return Fixed(value) if held is None else Tree(value, tuple(map(fixed, held)))


def template_of(value: Any, is_loose: bool = False) -> Any:
    """A value with slots for what may change; None for one that cannot be carried.

    `is_loose`: a constant stays loosely typed when it changes.
    """
    if isinstance(value, Selection):
        return Pick(value.choices)
    if isinstance(value, Tile):
        return Slot(value.dtype, value.shape, None, value.loose)
    if is_number(value):
        return Slot(constant_dtype(value), (), value, is_loose)
    held = parts_of(value)
    if held is None:
        return None
    parts = tuple(template_of(v, is_loose) for v in held)
    if all(p is None for p in parts):
        return None
    return Tree(value, tuple(Fixed(v) if p is None else p for p, v in zip(parts, held, strict=True)))


def with_slots(template: Any, learnt: Any) -> Any:
    """A template of this entry with the slots of one that an entry of the same form has led to."""
    if not isinstance(template, Tree):
        return learnt if isinstance(learnt, Slot | Pick) else template
    return Tree(template.like, tuple(with_slots(t, o) for t, o in zip(template.parts, learnt.parts, strict=True)))


def all_alike(a: list[dict[str, Any]], b: list[dict[str, Any]]) -> bool:
    return all(map(_alike, a, b)) and len(a) == len(b)


def _alike(a: Any, b: Any) -> bool:
    """Whether a capture cannot tell two values, but for where they are. What a function reads is not known here."""
    if isinstance(a, Tile):
        kinds = (a.dtype, a.shape, a.known, a.loose, a.least)
        return isinstance(b, Tile) and kinds == (b.dtype, b.shape, b.known, b.loose, b.least)
    if isinstance(a, Selection):
        return isinstance(b, Selection) and len(a.choices) == len(b.choices) and covers(a.choices, b)
    if isinstance(a, Unusable):
        return isinstance(b, Unusable) and a.message == b.message
    if isinstance(a, LocalFunction):
        return False
    held = parts_of(a)
    if held is None:
        return same_constant(a, b)
    return same_form(a, b) and all(map(_alike, held, parts_of(b) or ()))


def leaves(template: Any) -> list[Slot]:
    if isinstance(template, Slot):
        return [template]
    if isinstance(template, Pick):
        return [template.slot]
    parts = template.parts if isinstance(template, Tree) else template if isinstance(template, list) else ()
    return [slot for t in parts for slot in leaves(t)]


def pairs(template: Any, value: Any) -> list[tuple[Slot, Any]]:
    """Each slot of a template with what stands there in a value of its form."""
    if isinstance(template, Slot):
        return [(template, value)]
    if isinstance(template, Pick):
        return [(template.slot, value if value is MISSING else Place(value, template.choices))]
    if not isinstance(template, Tree):
        return []
    values = [MISSING] * len(template.parts) if value is MISSING else parts_of(value) or []
    return [pair for t, v in zip(template.parts, values, strict=True) for pair in pairs(t, v)]


def rebuild(template: Any, values: Any) -> Any:
    if isinstance(template, Slot):
        return Tile(next(values), template.dtype, template.shape, None, template.is_loose)
    if isinstance(template, Pick):
        return Selection(template.choices, Tile(next(values), int32, ()))
    if isinstance(template, Tree):
        return with_parts(template.like, [rebuild(t, values) for t in template.parts])
    return template.value if isinstance(template, Fixed) else template


def matches(template: Any, value: Any) -> bool:
    if isinstance(template, Slot):
        return template.matches(value)
    if isinstance(template, Pick):
        return covers(template.choices, value)
    if isinstance(template, Fixed):
        return same_constant(template.value, value)
    return same_form(template.like, value) and all(
        matches(t, v) for t, v in zip(template.parts, parts_of(value) or (), strict=True)
    )


def adopt(template: Any, value: Any) -> Any:
    """A template that starts from the same constants and has the type of `value`, or None."""
    if isinstance(template, Slot):
        return _adopt_slot(template, value)
    if isinstance(template, Tree):
        if not same_form(template.like, value):
            return None
        parts = tuple(adopt(t, v) for t, v in zip(template.parts, parts_of(value) or (), strict=True))
        return None if any(p is None for p in parts) else Tree(template.like, parts)
    if isinstance(template, Fixed) and matches(template, value):
        return template
    known = template.value if isinstance(template, Fixed) else Selection(template.choices, Tile(None, int32, ()))
    choices = united(known, value)
    return None if choices is None else Pick(choices)


def _adopt_slot(template: Slot, value: Any) -> Slot | None:
    if isinstance(template, Merging):
        return template.adopted(value)
    if template.matches(value):
        return template
    typed = dataclasses.replace(template, is_loose=False)
    if typed.matches(value):
        return typed
    if template.loose is None:
        return None
    dtype = value.dtype if isinstance(value, Tile) and not value.shape else None
    if is_number(value):
        dtype = constant_dtype(value)
    if dtype is not None and fits(template.loose, dtype):
        return Slot(dtype, (), template.loose, template.is_loose and (is_number(value) or value.loose))
    return None
