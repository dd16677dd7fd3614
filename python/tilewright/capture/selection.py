"""Selections: one of several arrays or views, where only the running kernel knows which.

A variable that holds one array on one side of a branch and another on the other side, one that changes in a loop, and
an entry of a list of arrays at a run-time index. In the IR it is an int32, the place of the chosen one among all. What
uses it branches over them (branches.py), so that each access is one of a known array.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from .. import views
from ..dtype import int32
from .emit import Emitter
from .values import Array, Selection, Tile


def is_selectable(value: Any) -> bool:
    return isinstance(value, Array | Selection | views.TiledView | views.RawArrayMemory)


def choices_of(value: Any) -> tuple[Any, ...]:
    return value.choices if isinstance(value, Selection) else (value,)


def _kind(value: Any) -> Any:
    """What all choices have in common."""
    if isinstance(value, Array):
        return value.dtype, value.ndim, value.index_dtype
    array, kind = value.parts()
    return _kind(array), kind


def _identity(value: Any) -> Any:
    """Two views of an array that do the same are the same."""
    return id(value) if isinstance(value, Array) else (_identity(value.parts()[0]), value.parts()[1])


def _root(value: Any) -> Array:
    array: Array = value if isinstance(value, Array) else value.parts()[0]
    return array


def united(a: Any, b: Any) -> tuple[Any, ...] | None:
    """The choices of both, none twice; None if there is no choosing between them."""
    if not are_alike((a, b)):
        return None
    found: dict[Any, Any] = {}
    for choice in (*choices_of(a), *choices_of(b)):
        found.setdefault(_identity(choice), choice)
    return tuple(found.values())


def are_alike(values: tuple[Any, ...]) -> bool:
    """Whether one can be chosen: they are of one kind, and no parts of arrays, whose bounds have values only there."""
    if not values or not all(map(is_selectable, values)):
        return False
    choices = [choice for value in values for choice in choices_of(value)]
    return all(_kind(choice) == _kind(choices[0]) and not _root(choice).is_part for choice in choices)


def covers(choices: tuple[Any, ...], value: Any) -> bool:
    known = set(map(_identity, choices))
    return is_selectable(value) and all(_identity(choice) in known for choice in choices_of(value))


@dataclasses.dataclass(frozen=True)
class Place:
    """Which of `choices` a value is: an int32 that is made where it is needed."""

    value: Any
    choices: tuple[Any, ...]

    def tile(self, emit: Emitter) -> Tile:
        known = list(map(_identity, self.choices))
        places = [known.index(_identity(choice)) for choice in choices_of(self.value)]
        if not isinstance(self.value, Selection):
            return emit.constant(places[0], int32)
        if places == list(range(len(places))):
            return self.value.index
        found = emit.constant(places[-1], int32)
        for i, place in enumerate(places[:-1]):
            found = emit.select(emit.compare("equal", self.value.index, i), emit.constant(place, int32), found)
        return found


def entry(emit: Emitter, arrays: tuple[Any, ...], index: Tile) -> Selection:
    """One of the arrays of a tuple at a run-time index, from the end if that is negative."""
    index = emit.cast(index, int32)
    from_end = emit.binary("add", index, len(arrays))
    return Selection(arrays, emit.select(emit.compare("less", index, 0), from_end, index))
