"""Iteration over what is known at compile time: loops that are unrolled, comprehensions, and the built-ins about them.

What an iterable is, elements.py says; `zip`, `enumerate`, `reversed`, `map` and `filter` make more of them.
"""

from __future__ import annotations

import ast
import builtins
import functools
from collections.abc import Callable
from typing import Any

from ..errors import TileTypeError
from .builtin_functions import BUILTINS
from .calls import call
from .elements import elements
from .expressions import evaluate, handles
from .frame import Frame
from .operators import condition, truth_of
from .statements import assign, run_statements, run_unless
from .static import iterated
from .values import Tile, describe, is_run_time
from .walking import Walk, walks

# ---------------------------------------------------------------------------------------------
# Loops


def unrolled(frame: Frame, node: ast.For, values: list[Any]) -> None:
    """The body once for each element. What `break`, `continue` and `return` say at run time guards the rest."""
    frame.loops += 1
    depth = frame.loops
    frame.env[f"$break{depth}"] = frame.env[f"$continue{depth}"] = False
    _run_from(frame, node, values, 0)
    frame.env.pop(f"$break{depth}", None)
    frame.env.pop(f"$continue{depth}", None)
    frame.loops -= 1


def _run_from(frame: Frame, node: ast.For, values: list[Any], first: int) -> None:
    depth = frame.loops
    for i in range(first, len(values)):
        assign(frame, node.target, values[i])
        run_statements(frame, node.body)
        frame.env[f"$continue{depth}"] = False
        state = frame.exit_state()
        if state is True:
            return
        if isinstance(state, Tile):
            if i + 1 < len(values) or node.orelse:
                run_unless(frame, state, functools.partial(_run_from, frame, node, values, i + 1), node)
            return
    _run_orelse(frame, node)


def _run_orelse(frame: Frame, node: ast.For) -> None:
    """`else` belongs to the loop around: its `break` leaves that one."""
    depth = frame.loops
    frame.loops -= 1
    run_statements(frame, node.orelse)
    frame.loops = depth


# ---------------------------------------------------------------------------------------------
# Comprehensions


def _each(frame: Frame, generators: list[ast.comprehension], around: Frame, take: Callable[[], None]) -> None:
    """The first iterable is evaluated in the frame around the comprehension, the others in its own."""
    if not generators:
        take()
        return
    first, *rest = generators
    for value in _iterated(around, first.iter):
        assign(frame, first.target, value)
        if all(_is_kept(frame, test) for test in first.ifs):
            _each(frame, rest, frame, take)


def _iterated(frame: Frame, node: ast.expr) -> list[Any]:
    static = iterated(frame, node)
    if static is not None:
        return static
    iterable = evaluate(frame, node)
    frame.at(node)
    return elements(frame, iterable, "a comprehension")


def _is_kept(frame: Frame, test: ast.expr) -> bool:
    truth = condition(frame, test, "the condition of a comprehension")
    if isinstance(truth, Tile):
        raise TileTypeError(
            "the condition of a comprehension must be a constant: how many elements there are is "
            "known at compile time; choose between values with ct.where",
            frame.places(test),
        )
    return truth


def _comprehend(frame: Frame, generators: list[ast.comprehension], take: Callable[[Frame], None]) -> None:
    """Its variables are its own; functions that are made in it see the last values of them."""
    own = frozenset(n.id for g in generators for n in ast.walk(g.target) if isinstance(n, ast.Name))
    inner = Frame(frame.capture, frame.source, {}, frame.callers, frame, of_library=frame.of_library, own=own)
    _each(inner, generators, frame, lambda: take(inner))


@handles(ast.ListComp, ast.GeneratorExp)
def _list(frame: Frame, node: ast.ListComp | ast.GeneratorExp | ast.SetComp) -> Any:
    values: list[Any] = []
    _comprehend(frame, node.generators, lambda inner: values.append(evaluate(inner, node.elt)))
    return tuple(values)


@handles(ast.SetComp)
def _set(frame: Frame, node: ast.SetComp) -> Any:
    values = _list(frame, node)
    return _as_set(values)


@handles(ast.DictComp)
def _dict(frame: Frame, node: ast.DictComp) -> Any:
    values: dict[Any, Any] = {}

    def take(inner: Frame) -> None:
        key = evaluate(inner, node.key)
        values[_key(key)] = evaluate(inner, node.value)

    _comprehend(frame, node.generators, take)
    return values


@handles(ast.Dict)
def _dict_display(frame: Frame, node: ast.Dict) -> Any:
    values: dict[Any, Any] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if key is not None:
            values[_key(evaluate(frame, key))] = evaluate(frame, value)
            continue
        more = evaluate(frame, value)
        if not isinstance(more, dict):
            raise TileTypeError(f"only a dict can follow '**', found {describe(more)}", frame.places(value))
        values.update(more)
    return values


def _key(value: Any) -> Any:
    if is_run_time(value):
        raise TileTypeError(f"a key must be a constant, found {describe(value)}")
    try:
        hash(value)
    except TypeError:
        raise TileTypeError(f"a key must be hashable, found {describe(value)}") from None
    return value


@handles(ast.Set)
def _set_display(frame: Frame, node: ast.Set) -> Any:
    return _as_set(tuple(evaluate(frame, v) for v in node.elts))


def _as_set(values: tuple[Any, ...]) -> frozenset[Any]:
    return frozenset(_key(v) for v in values)


@handles(ast.NamedExpr)
def _walrus(frame: Frame, node: ast.NamedExpr) -> Any:
    value = evaluate(frame, node.value)
    while frame.own and frame.lexical is not None:  # a comprehension: the variable is of the function around it
        frame = frame.lexical
    assign(frame, node.target, value)
    return value


# ---------------------------------------------------------------------------------------------
# Built-ins


def _constant_length(name: str) -> str:
    return f"the argument of {name}"


def _zip(frame: Frame, *iterables: Any, strict: bool = False) -> Any:
    if iterables and not strict and walks(frame, iterables):
        return Walk(iterables)
    lists = [elements(frame, v, _constant_length("zip")) for v in iterables]
    try:
        return tuple(zip(*lists, strict=strict))
    except ValueError as error:
        raise TileTypeError(str(error)) from None


def _enumerate(frame: Frame, iterable: Any, start: int = 0) -> Any:
    if walks(frame, [iterable]) and type(start) is int:
        return Walk((iterable,), start)
    return tuple(builtins.enumerate(elements(frame, iterable, _constant_length("enumerate")), start))


def _reversed(frame: Frame, iterable: Any) -> Any:
    return tuple(builtins.reversed(elements(frame, iterable, _constant_length("reversed"))))


def _apply(frame: Frame, function: Any, args: list[Any]) -> Any:
    return call(frame, function, args, {}, None)


def _map(frame: Frame, function: Any, *iterables: Any) -> Any:
    lists = [elements(frame, v, _constant_length("map")) for v in iterables]
    return tuple(_apply(frame, function, list(args)) for args in zip(*lists, strict=False))


def _filter(frame: Frame, function: Any, iterable: Any) -> Any:
    kept = []
    for value in elements(frame, iterable, _constant_length("filter")):
        truth = truth_of(frame, value if function is None else _apply(frame, function, [value]), "filter")
        if isinstance(truth, Tile):
            raise TileTypeError("filter needs a constant condition; choose between values with ct.where")
        if truth:
            kept.append(value)
    return tuple(kept)


def _any_all(name: str, op: str, start: bool) -> Callable[..., Any]:
    def fold(frame: Frame, iterable: Any) -> Any:
        result: Any = start
        for value in elements(frame, iterable, _constant_length(name)):
            truth = truth_of(frame, value, name)
            if truth is (not start):
                return truth
            if truth is not start:
                result = frame.emit.binary(op, result, truth) if isinstance(result, Tile) else truth
        return result

    return fold


def _collect(frame: Frame, value: Any = ()) -> Any:
    """tuple(...) and list(...)."""
    return tuple(elements(frame, value, "tuple"))


def _to_dict(frame: Frame, value: Any = (), **keywords: Any) -> Any:
    pairs = value.items() if isinstance(value, dict) else elements(frame, value, "dict")
    return {**{_key(k): v for k, v in pairs}, **keywords}


BUILTINS.update(
    {
        zip: _zip,
        enumerate: _enumerate,
        reversed: _reversed,
        map: _map,
        filter: _filter,
        any: _any_all("any", "bitwise_or", False),
        all: _any_all("all", "bitwise_and", True),
        tuple: _collect,
        list: _collect,
        dict: _to_dict,
    }
)


__all__ = ["unrolled"]
