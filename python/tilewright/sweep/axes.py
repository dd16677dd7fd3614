"""Axes: what a sweep varies, as a person writes it.

    TM=64,128,256            values of a constant of the kernel         TM=32..256*2     32, 64, 128, 256
    TN=TM,2*TM               values that depend on other axes           stages=2..5      2, 3, 4, 5
    warps                    every legal value of a hint                family=mma.sync  a word
    layout(p)                every layout of the tile p that the compiler lists
    stages=auto,3 if family != "fma"      an axis only where the condition holds; `auto`: the compiler's own choice

A space is axes in their order (one that speaks of another one comes behind it) and constraints (`where`); what an axis
is not there for stays as given.
"""

from __future__ import annotations

import dataclasses
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from .. import hints
from ..errors import TileValueError
from .expressions import Expression

Row: TypeAlias = dict[str, Any]
MOST_VALUES = 4096  # of an axis
MOST_ROWS = 200_000  # of a space that is listed

_RANGE = re.compile(r"(.+?)\.\.(.+?)(?:\s*([*+])\s*(\d+))?")


@dataclasses.dataclass(frozen=True)
class Axis:
    """A name, what gives its values for the values of other axes, and where it is there; `names` are those that its
    values speak of."""

    name: str
    values: Callable[[Mapping[str, Any]], tuple[Any, ...]]
    condition: Expression | None = None
    names: tuple[str, ...] = ()

    @property
    def others(self) -> set[str]:
        """The names, of axes or not, that must be known first."""
        asked = (*self.names, *(self.condition.names if self.condition is not None else ()))
        return {hints.full_name(name) for name in asked} - {self.name}

    def at(self, known: Mapping[str, Any]) -> tuple[Any, ...] | None:
        """The values; None where the axis is not there."""
        if self.condition is not None and not self.condition.of(known):
            return None
        found = tuple(dict.fromkeys(self.values(known)))
        if len(found) > MOST_VALUES:
            raise TileValueError(f"axis {self.name} has {len(found)} values; the most is {MOST_VALUES}")
        return found


# --- from text --------------------------------------------------------------------------------------------------------


def parts_of(text: str, separator: str) -> list[str]:
    """A text at separators outside of brackets and quotes."""
    parts, depth, quote, start, at = [], 0, "", 0, 0
    while at < len(text):
        c = text[at]
        if quote:
            quote = "" if c == quote else quote
        elif c in "'\"":
            quote = c
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        elif depth == 0 and text.startswith(separator, at):
            parts.append(text[start:at])
            at += len(separator)
            start = at
            continue
        at += 1
    return [*parts, text[start:]]


def read_axis(text: str, kernel: Any, constants: Sequence[str], listed: Callable[[str], Sequence[str]]) -> Axis:
    """`listed(name)` are the values of a hint of a tile, which the compiler knows."""
    body, *conditions = parts_of(text, " if ")
    name, equals, written = body.partition("=")
    name = hints.full_name(name.strip())
    what = f"axis {name}"
    if len(conditions) > 1:
        raise TileValueError(f"{what}: {text!r} has more than one condition; join them by `and`")
    condition = Expression(conditions[0], what) if conditions else None
    is_hint = hints.is_hint(name, kernel.hint_names)
    if not is_hint and name not in constants:
        raise TileValueError(_unknown(name, kernel, constants))
    if is_hint:
        values, names = _hint_values(name, written.strip(), bool(equals), what, listed)
        return Axis(name, values, condition, names)
    if not written.strip():
        raise TileValueError(f"{what}: say which values, as in {name}=64,128 or {name}=32..256*2")
    pieces = [_piece(part.strip(), what) for part in parts_of(written, ",")]
    every = tuple(name for _, names in pieces for name in names)
    return Axis(name, lambda known: tuple(value for piece, _ in pieces for value in piece(known)), condition, every)


def _unknown(name: str, kernel: Any, constants: Sequence[str]) -> str:
    near = hints.hint_advice(name, (*constants, *hints.SHORT, *kernel.hint_names))
    of_tiles = ", ".join(f"{kind}(t)" for kind in hints.OF_TILES)
    return (
        f"kernel {kernel.name} has no axis {name!r}{near}; its constants are {', '.join(constants) or 'none'}, its "
        f"hints {', '.join((*kernel.hint_names, *hints.SHORT))}, and of a tile t {of_tiles}"
    )


Values: TypeAlias = Callable[[Mapping[str, Any]], tuple[Any, ...]]


def _piece(text: str, what: str, is_hint: bool = False) -> tuple[Values, tuple[str, ...]]:
    """What gives its values, and the names that it speaks of."""
    if text == "none" or (text == "auto" and is_hint):
        return lambda known: (None,), ()
    match = _RANGE.fullmatch(text)
    if match is None:
        value = Expression(text, what)
        return lambda known: (value.of(known),), value.names
    low, high = Expression(match[1], what), Expression(match[2], what)
    times, step = match[3] == "*", int(match[4] or 1)
    if times and step < 2:
        raise TileValueError(f"{what}: {text!r} steps by *{step}; expected *2 or more")
    return lambda known: _steps(low.of(known), high.of(known), times, max(1, step), what), (*low.names, *high.names)


def _steps(low: Any, high: Any, times: bool, step: int, what: str) -> tuple[int, ...]:
    if type(low) is not int or type(high) is not int or (times and low < 1):
        raise TileValueError(f"{what}: a range is of integers, and steps by * from 1 on, found {low!r}..{high!r}")
    bits = high.bit_length() - low.bit_length() + 1  # a step by * is one of a bit or more
    count = max(bits, 0) + 1 if times else (high - low) // step + 1
    if count > MOST_VALUES:
        raise TileValueError(f"{what}: {low}..{high} has more values than {MOST_VALUES}, which is the most")
    found = [low * step**i if times else low + step * i for i in range(max(0, count))]
    return tuple(n for n in found if n <= high)


def _hint_values(
    name: str, written: str, has_values: bool, what: str, listed: Callable[[str], Sequence[str]]
) -> tuple[Values, tuple[str, ...]]:
    legal = hints.legal_values(name)
    if has_values and not written:
        raise TileValueError(f"{what}: no values are behind the '='; {name!r} alone takes all of them")
    if not has_values:
        everything = tuple(listed(name)) if legal is None else legal
        return lambda known: everything, ()
    if legal is None or name in hints.WORDS:
        words = tuple(hints.read_word(name, part.strip()) for part in parts_of(written, ","))
        known_words = legal if legal is not None else None
        for word in words:
            if word is not None and known_words is not None and word not in known_words:
                raise TileValueError(f"{what} has no value {word!r}; it has {', '.join(map(str, known_words))}")
        return lambda known: words, ()
    pieces = [(_RANGE.fullmatch(part.strip()), *_piece(part.strip(), what, True)) for part in parts_of(written, ",")]

    def values(known: Mapping[str, Any]) -> tuple[Any, ...]:
        found: list[Any] = []
        for is_range, piece, _ in pieces:
            for value in piece(known):
                if value is None or value in legal:
                    found.append(value)
                elif not is_range:  # a range leaves out what is not legal, as 3 among numbers of warps
                    low, high = hints.RANGES[name]
                    raise TileValueError(f"{what} has no value {value!r}; legal are {_told(legal, low, high)}")
        return tuple(found)

    return values, tuple(name for *_, names in pieces for name in names)


def _told(legal: Sequence[Any], low: int, high: int) -> str:
    return ", ".join(map(str, legal)) if len(legal) <= 8 else f"{low} to {high}"


# --- the space --------------------------------------------------------------------------------------------------------


class Space:
    """Axes in order, and constraints on what they and the constants are."""

    def __init__(self, axes: Sequence[Axis], where: Sequence[Expression], given: Mapping[str, Any]) -> None:
        """`given`: what constants and hints are without an axis, and the shapes of arrays."""
        self.where, self.given = tuple(where), dict(given)
        names = [axis.name for axis in axes]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise TileValueError(f"axis {twice[0]} is given {names.count(twice[0])} times; expected once")
        self.axes = _in_order(axes)
        names = [axis.name for axis in self.axes]
        known = {*self.given, *names}
        for constraint in self.where:
            unknown = [name for name in constraint.names if hints.full_name(name) not in known]
            if unknown:
                raise TileValueError(
                    f"the constraint {constraint.text!r} has the name {unknown[0]!r}, which is unknown; there are "
                    f"{', '.join(sorted(known))}"
                )
        # A constraint holds or not once the last of its axes has a value.
        last = [max((names.index(hints.full_name(n)) for n in c.names if hints.full_name(n) in names), default=-1)
                for c in self.where]  # fmt: skip
        self.after = {i: [c for c, at in zip(self.where, last, strict=True) if at == i] for i in range(-1, len(axes))}

    def rows(self) -> Iterator[Row]:
        """Every combination that the constraints leave."""
        if self._holds(-1, {}):
            yield from self._rows(0, {})

    def _rows(self, at: int, row: Row) -> Iterator[Row]:
        if at == len(self.axes):
            yield dict(row)
            return
        for chosen in self._choices(at, row):
            if self._holds(at, chosen):
                yield from self._rows(at + 1, chosen)

    def _choices(self, at: int, row: Row) -> Iterator[Row]:
        axis = self.axes[at]
        values = axis.at(self.known(row))
        if values is None:
            yield row
            return
        for value in values:
            yield row | {axis.name: value}

    def known(self, row: Row) -> dict[str, Any]:
        """What names mean in expressions; short words, too."""
        found = self.given | row
        return found | {short: found.get(full) for short, full in hints.SHORT.items() if full in found}

    def _holds(self, at: int, row: Row) -> bool:
        return all(constraint.of(self.known(row)) for constraint in self.after[at])

    def listed(self) -> list[Row]:
        """All rows, for a sampler that needs them; named errors where there is none, or too many."""
        found = []
        for row in self.rows():
            found.append(row)
            if len(found) > MOST_ROWS:
                raise TileValueError(
                    f"the space has more than {MOST_ROWS} candidates; constrain it by --where, or take "
                    "--sampler random or optuna"
                )
        if not found:
            raise TileValueError(self.why_empty())
        return found

    def why_empty(self) -> str:
        """Of a space without rows: the axis without values, or the constraints."""
        row: Row = {}
        for axis in self.axes:
            values = axis.at(self.known(row))
            if values is not None and not values:
                return f"the space is empty: axis {axis.name} has no values"
            row |= {axis.name: values[0]} if values else {}
        if not self.where:
            return "the space is empty: some axis has no values, whatever the earlier ones are"
        told = ", ".join(repr(c.text) for c in self.where)
        return f"the space is empty: the constraints {told} exclude every candidate"

    def drawn(self, pick: Callable[[Axis, tuple[Any, ...]], Any]) -> Row | None:
        """One row whose values `pick` chooses, or None where a constraint refuses it."""
        row: Row = {}
        if not self._holds(-1, row):
            return None
        for at, axis in enumerate(self.axes):
            values = axis.at(self.known(row))
            if values is not None:
                if not values:
                    return None
                row = row | {axis.name: pick(axis, values)}
            if not self._holds(at, row):
                return None
        return row

    def random(self, count: int, seed: int) -> list[Row]:
        """Rows that differ, at most `count`, each axis drawn by itself."""
        generator, tries, latest = random.Random(seed), 0, 0
        found: dict[Any, Row] = {}
        while len(found) < min(count, MOST_ROWS) and tries - latest < 50 * len(found) + 1000:
            tries += 1
            row = self.drawn(lambda _, values: generator.choice(values))
            if row is not None and key_of(row) not in found:
                found[key_of(row)], latest = row, tries
        if not found and self.where:
            told = ", ".join(repr(c.text) for c in self.where)
            raise TileValueError(
                f"none of {tries} candidates that were drawn is left by the constraints {told}; write the values of "
                "axes so that they leave more, or take --sampler exhaustive"
            )
        if not found:
            raise TileValueError(self.why_empty())
        return list(found.values())


def _in_order(axes: Sequence[Axis]) -> tuple[Axis, ...]:
    """As they are written, but for one that speaks of a later one, which comes behind that."""
    left, found = list(axes), list[Axis]()
    while left:
        names = {axis.name for axis in left}
        following = next((axis for axis in left if not axis.others & names), None)
        if following is None:
            told = " and ".join(axis.name for axis in left)
            raise TileValueError(f"the axes {told} depend on each other; give one of them values of its own")
        left.remove(following)
        found.append(following)
    return tuple(found)


def key_of(row: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(row.items()))
