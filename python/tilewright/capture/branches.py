"""Branches: scf.if on a run-time scalar, and what the variables are after it.

Variables that differ after the two sides become results of the op. A side that has returned from
the function gives none; one that left a loop still does, since its variables live on there. A flag
of frame.py that is true on one side and false on the other is the condition itself.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from ..dtype import DType, bool_, constant_dtype, int32, promote, promote_constant
from ..errors import TileError, TileTypeError
from ..structure import parts_of, with_parts
from .frame import RETURN, VALUE, Frame, is_flag
from .selection import Place, is_selectable, united
from .source import is_read_later
from .values import (
    Array,
    LocalFunction,
    Selection,
    Shape,
    Tile,
    Unusable,
    describe,
    is_number,
    is_run_time,
    same_form,
    tile_type,
    type_name,
)


class _Missing:
    """A variable's value on a path where it has none, or where none is needed."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING = _Missing()

CHOICE = "$choice"  # the name of what an expression gives
DEFAULTS = "$defaults"  # of the parameters of a function


def choose(
    frame: Frame,
    condition: Tile,
    then: Callable[[], Any],
    orelse: Callable[[], Any],
    node: ast.AST,
) -> Any:
    """The value of one of two expressions, of which only the chosen one is evaluated."""

    def keep(side: Callable[[], Any]) -> Callable[[], None]:
        def run() -> None:
            frame.env[CHOICE] = side()

        return run

    branch(frame, condition, keep(then), keep(orelse), node)
    value = frame.env.pop(CHOICE)
    if type(value) is Unusable:
        raise TileTypeError(value.message)
    return value


def each(frame: Frame, selection: Selection, run: Callable[[Any], Any]) -> Any:
    """What `run` gives for the chosen one: a branch over all."""

    def of(place: int) -> Any:
        choice = selection.choices[place]
        if place + 1 == len(selection.choices):
            return run(choice)
        chosen = frame.emit.compare("equal", selection.index, place)
        return choose(frame, chosen, lambda: run(choice), lambda: of(place + 1), frame.node)

    return of(0)


def branch(
    frame: Frame,
    condition: Tile,
    then: Callable[[], None],
    orelse: Callable[[], None] | None,
    node: ast.AST,
    unless: frozenset[str] = frozenset(),
) -> None:
    """scf.if. With `unless`, the flags that tell that the else side has left the statements."""
    frame.refuse_in_combiner("a branch on a run-time value", "ct.where chooses between values")
    before = frame.env
    then_block, then_env = _side(frame, before, then)
    else_block, else_env = _side(frame, before, orelse)
    frame.env = dict(before)
    join = _Join(frame, before, then_env, else_env, node, unless)
    merged = join.variables()
    frame.at(node)
    if join.results or orelse is not None:
        else_block = else_block or frame.builder.block()
    _yield(frame, then_block, [r.then for r in join.results], join.results)
    if else_block is not None:
        _yield(frame, else_block, [r.orelse for r in join.results], join.results)
    types = [tile_type(r.tile.dtype, r.tile.shape) for r in join.results]
    frame.at(node)
    values = frame.builder.op("scf.if", [condition.ir], None, types, [then_block, else_block])
    _fill([r.tile for r in join.results], values)
    for name in join.is_condition:
        merged[name] = condition
    for name in join.is_negated:
        merged[name] = frame.emit.logical_not(condition)
    frame.env = merged


def _side(frame: Frame, before: dict[str, Any], run: Callable[[], None] | None) -> tuple[Any, dict[str, Any]]:
    if run is None:
        return None, before
    block = frame.builder.block()
    frame.builder.enter(block)
    frame.env = dict(before)
    run()
    frame.builder.leave()
    return block, frame.env


def _fill(tiles: Sequence[Tile], values: Any) -> None:
    """Give the tiles that stand for the results of an op their values."""
    if len(tiles) == 1:
        tiles[0].ir = values
    else:
        for tile, value in zip(tiles, values or (), strict=True):
            tile.ir = value


def _yield(frame: Frame, block: Any, values: list[Any], results: Sequence[_Result]) -> None:
    frame.builder.enter(block)
    tiles = [as_tile(frame, v, r.tile) for v, r in zip(values, results, strict=True)]
    frame.builder.op("scf.yield", [t.ir for t in tiles], None, [])
    frame.builder.leave()


def as_tile(frame: Frame, value: Any, like: Tile) -> Tile:
    if value is MISSING:
        return frame.emit.constant(0, like.dtype, like.shape)
    if isinstance(value, Place):
        return value.tile(frame.emit)
    if isinstance(value, Tile):
        return frame.emit.cast(value, like.dtype)
    return frame.emit.constant(frame.capture.rules.number_as(value, like.dtype), like.dtype)


@dataclasses.dataclass(slots=True)
class _Result:
    tile: Tile
    then: Any
    orelse: Any


class _Join:
    """What the variables are after the two sides of a branch."""

    def __init__(
        self,
        frame: Frame,
        before: dict[str, Any],
        then_env: dict[str, Any],
        else_env: dict[str, Any],
        node: ast.AST,
        unless: frozenset[str],
    ) -> None:
        self.frame = frame
        self.node = node
        self.before, self.then_env, self.else_env = before, then_env, else_env
        self.unless = unless
        # Where a side has returned, its variables are of no use; after a break they still are.
        self.then_left = then_env[RETURN] is True
        self.else_left = else_env[RETURN] is True or unless == {RETURN}
        self.results: list[_Result] = []
        self.is_condition: list[str] = []
        self.is_negated: list[str] = []
        self.outside = {id(v) for v in before.values()}

    def variables(self) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for name in {**self.then_env, **self.else_env}:
            a, b = self.then_env.get(name, MISSING), self.else_env.get(name, MISSING)
            if a is b:
                merged[name] = a
            elif is_flag(name):
                merged[name] = self._flag(name, a, b)
            elif name == VALUE:
                a = MISSING if self.then_env[RETURN] is False else a
                b = MISSING if self.else_env[RETURN] is False and not self.unless else b
                merged[name] = self._join(name, a, b)
            else:
                merged[name] = self._variable(name, a, b)
        return merged

    def _flag(self, name: str, a: Any, b: Any) -> Any:
        a, b = (False if v is MISSING else v for v in (a, b))
        if name in self.unless and a is False:
            return b  # b is true only where the else side was taken
        if self.unless == {name} and a is True:
            return True  # b is true wherever the else side was taken
        if a is True and b is False:
            self.is_condition.append(name)
            return a
        if a is False and b is True:
            self.is_negated.append(name)
            return a
        return a if a is b else self._result(bool_, (), a, b)

    def _variable(self, name: str, a: Any, b: Any) -> Any:
        if self.then_left and not self.else_left:
            a = MISSING
        elif self.else_left and not self.then_left:
            b = MISSING
        elif (a is MISSING or b is MISSING) and not self._is_filled(name, b if a is MISSING else a):
            place = self.frame.places(self.node)
            return Unusable(
                f"the variable '{name}' may not be assigned: only one side of the 'if' in line "
                f"{place[-1].line} assigns it; assign it on both sides or before",
            )
        if a is MISSING and b is MISSING:
            return Unusable(f"the variable '{name}' has no value here")
        return self._join(name, a, b)

    def _is_filled(self, name: str, value: Any) -> bool:
        """Whether the side without a value gives a 0."""
        if not self.frame.capture.rules.fills or not (_is_scalar(value) or parts_of(value) is not None):
            return False
        return is_read_later(self.frame.source.tree, self.node, name)

    def _join(self, name: str, a: Any, b: Any) -> Any:
        if a is b or type(a) is Unusable:
            return a
        if type(b) is Unusable:
            return b
        if a is MISSING or b is MISSING:
            return self._lift(name, a, b)
        if parts_of(a) is not None and same_form(a, b):
            return self._tree(name, a, b)
        if is_one_function(a, b):
            return self._function(name, a, b)
        choices = united(a, b)
        if choices is not None:
            return Selection(choices, self._result(int32, (), Place(a, choices), Place(b, choices)))
        own = None if self.frame.of_library else self.frame.capture.rules.common(a, b)
        common = own or _common_type(a, b) or (_number_type(a, b) if name == CHOICE else None)
        if common is not None:
            return self._result(*common, a, b)
        if not is_run_time(a) and not is_run_time(b) and same_constant(a, b):
            return a
        return Unusable(self._conflict(name, a, b))

    def _conflict(self, name: str, a: Any, b: Any) -> str:
        if self.unless:
            a, b = b, a  # the order of the text
        if name == VALUE:
            return (
                f"the results of the 'return' statements differ in type: {type_name(a)} and "
                f"{type_name(b)}; convert one, as with astype"
            )
        what = "the value" if name == CHOICE else f"the variable '{name}'"
        line = self.frame.places(self.node)[-1].line
        if is_selectable(a) or is_selectable(b):
            return (
                f"{what} is {describe(a)} where the condition in line {line} holds, {describe(b)} where it does not; "
                "one of several arrays or views can be chosen if all are of one dtype and as many dimensions, and none "
                "is a slice: slice, or use, each in its branch"
            )
        return (
            f"{what} changes type in the branches of the condition in line {line}: {type_name(a)} "
            f"where it holds, {type_name(b)} where it does not; convert one, as with astype, or use "
            "two names"
        )

    def _tree(self, name: str, a: Any, b: Any) -> Any:
        """Tuples, dicts or records of one form, part by part; one of them may be MISSING."""
        like = b if a is MISSING else a
        count = len(parts_of(like) or ())
        sides = ([MISSING] * count if v is MISSING else parts_of(v) or [] for v in (a, b))
        entries = [self._join(name, x, y) for x, y in zip(*sides, strict=True)]
        return next((e for e in entries if type(e) is Unusable), None) or with_parts(like, entries)

    def _function(self, name: str, a: LocalFunction, b: LocalFunction) -> Any:
        """A function that both sides have made, each around values of its own."""
        held = [{**f.frame.env, DEFAULTS: (f.defaults, f.keyword_defaults)} for f in (a, b)]
        read = {n.id for n in ast.walk(a.node) if isinstance(n, ast.Name)} | {DEFAULTS}
        env = dict(held[0])
        for variable in sorted(read & held[0].keys() | read & held[1].keys()):
            values = (side.get(variable, MISSING) for side in held)
            env[variable] = self._join(name if variable == DEFAULTS else variable, *values)
        if type(found := env.pop(DEFAULTS)) is Unusable:
            return found
        around = dataclasses.replace(a.frame, env=env)
        return LocalFunction(a.node, around, *found)

    def _lift(self, name: str, a: Any, b: Any) -> Any:
        """A value that one side has, and the other does not need."""
        value = b if a is MISSING else a
        if parts_of(value) is not None:
            return self._tree(name, a, b)
        if isinstance(value, Selection) and id(value) not in self.outside:
            sides = (MISSING if v is MISSING else v.index for v in (a, b))
            return Selection(value.choices, self._result(int32, (), *sides))
        if not isinstance(value, Tile) or id(value) in self.outside:
            return value
        return self._result(value.dtype, value.shape, a, b)

    def _result(self, dtype: DType, shape: Shape, a: Any, b: Any) -> Any:
        for value, other in ((a, b), (b, a)):
            if other is MISSING and id(value) in self.outside:
                return value
        if is_number(a) and is_number(b) and same_constant(a, b):
            return a
        tile = Tile(None, dtype, shape, None, all(is_number(v) or getattr(v, "loose", v is MISSING) for v in (a, b)))
        self.results.append(_Result(tile, a, b))
        return tile


def is_one_function(a: Any, b: Any) -> bool:
    """Whether two functions come from one definition, in two calls of the function around it that have returned."""
    if not isinstance(a, LocalFunction) or not isinstance(b, LocalFunction) or a.node is not b.node:
        return False
    returned = a.frame.env[RETURN] is True and b.frame.env[RETURN] is True  # their variables stay as they are
    return returned and a.frame is not b.frame and a.frame.lexical is b.frame.lexical


def same_constant(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return repr(a) == repr(b)  # tells 0.0 from -0.0, and NaN equals itself
    if isinstance(a, Tile | Array | LocalFunction):
        return False
    try:
        return bool(a == b)
    except Exception:  # whatever a user's __eq__ raises
        return False


def _common_type(a: Any, b: Any) -> tuple[DType, Shape] | None:
    """The type that both values have, or take as loosely typed constants; None if there is none."""
    if isinstance(a, Tile) and isinstance(b, Tile):
        return (a.dtype, a.shape) if a.dtype is b.dtype and a.shape == b.shape else None
    if isinstance(a, Tile) and is_number(b):
        return (a.dtype, ()) if not a.shape and fits(b, a.dtype) else None
    if isinstance(b, Tile) and is_number(a):
        return _common_type(b, a)
    if is_number(a) and is_number(b):
        x, y = constant_dtype(a), constant_dtype(b)
        return (promote(x, y), ()) if x.category == y.category else None
    return None


def _number_type(a: Any, b: Any) -> tuple[DType, Shape] | None:
    """Of a bool and an integer that one expression gives: Python's bools are integers."""
    dtypes = [v.dtype if isinstance(v, Tile) else constant_dtype(v) for v in (a, b) if _is_scalar(v)]
    if len(dtypes) < 2 or bool_ not in dtypes:
        return None
    other = dtypes[1] if dtypes[0] is bool_ else dtypes[0]
    return (other, ()) if other.is_integral else None


def _is_scalar(value: Any) -> bool:
    return (isinstance(value, Tile) and not value.shape) or is_number(value)


def fits(number: Any, dtype: DType) -> bool:
    try:
        return promote_constant(number, dtype) is dtype
    except TileError:
        return False
