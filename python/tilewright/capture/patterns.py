"""`match`: the cases in turn, each a condition and the names that it binds.

A condition on constants is decided at compile time, and the cases that cannot be are never looked at. One on a
run-time scalar becomes a branch, as an `if` would.
"""

from __future__ import annotations

import ast
from typing import Any

from ..errors import TileSyntaxError, TileTypeError
from ..structure import is_record
from .branches import branch
from .expressions import evaluate
from .frame import Frame
from .operators import compare_pair, condition, truth_of
from .statements import handles, run_statements
from .values import Tile, describe, is_record_type

Bindings = dict[str, Any]


@handles(ast.Match)
def _match(frame: Frame, node: ast.Match) -> None:
    subject = evaluate(frame, node.subject)
    _run_cases(frame, subject, node.cases, node)


def _run_cases(frame: Frame, subject: Any, cases: list[ast.match_case], node: ast.Match) -> None:
    for i, case in enumerate(cases):
        bindings: Bindings = {}
        frame.at(case.pattern)
        holds = _matches(frame, subject, case.pattern, bindings)
        if holds is False:
            continue
        frame.env.update(bindings)
        if case.guard is not None:
            guard = condition(frame, case.guard, "the guard of a 'case'")
            holds = _both(frame, holds, guard)
        if holds is False:
            continue
        if holds is True:
            run_statements(frame, case.body)
            return
        rest = cases[i + 1 :]
        branch(
            frame,
            holds,
            lambda case=case: run_statements(frame, case.body),  # type: ignore[misc]
            (lambda rest=rest: _run_cases(frame, subject, rest, node)) if rest else None,  # type: ignore[misc]
            case.body[0],
        )
        return


def _joined(frame: Frame, name: str, decides: bool, a: bool | Tile, b: bool | Tile) -> bool | Tile:
    """One of the two that is known leaves the other, or decides."""
    if a is decides or b is decides:
        return decides
    if isinstance(a, bool):
        return b
    joined: Tile = a if isinstance(b, bool) else frame.emit.binary(name, a, b)
    return joined


def _both(frame: Frame, a: bool | Tile, b: bool | Tile) -> bool | Tile:
    return _joined(frame, "bitwise_and", False, a, b)


def _either(frame: Frame, a: bool | Tile, b: bool | Tile) -> bool | Tile:
    return _joined(frame, "bitwise_or", True, a, b)


def _matches(frame: Frame, subject: Any, pattern: ast.pattern, bindings: Bindings) -> bool | Tile:
    """Whether a pattern fits: known at compile time, or a run-time bool."""
    match pattern:
        case ast.MatchValue():
            return truth_of(frame, compare_pair(frame, ast.Eq(), subject, evaluate(frame, pattern.value)), "a 'case'")
        case ast.MatchSingleton():
            return subject is pattern.value
        case ast.MatchOr():
            return _matches_any(frame, subject, pattern, bindings)
        case ast.MatchAs():
            return _matches_as(frame, subject, pattern, bindings)
        case ast.MatchSequence():
            return _matches_sequence(frame, subject, pattern.patterns, bindings)
        case ast.MatchClass():
            return _matches_class(frame, subject, pattern, bindings)
    raise TileSyntaxError(f"this kind of pattern is not supported in {frame.capture.rules.code}", frame.places(pattern))


def _matches_any(frame: Frame, subject: Any, pattern: ast.MatchOr, bindings: Bindings) -> bool | Tile:
    holds: bool | Tile = False
    for one in pattern.patterns:
        holds = _either(frame, holds, _matches(frame, subject, one, bindings))
        if holds is True:
            break
    return holds


def _matches_as(frame: Frame, subject: Any, pattern: ast.MatchAs, bindings: Bindings) -> bool | Tile:
    holds = True if pattern.pattern is None else _matches(frame, subject, pattern.pattern, bindings)
    if pattern.name is not None:
        bindings[pattern.name] = subject
    return holds


def _matches_sequence(frame: Frame, subject: Any, patterns: list[ast.pattern], bindings: Bindings) -> bool | Tile:
    if not isinstance(subject, tuple):
        return False
    stars = [i for i, p in enumerate(patterns) if isinstance(p, ast.MatchStar)]
    if len(subject) < len(patterns) - 1 if stars else len(subject) != len(patterns):
        return False
    values: tuple[Any, ...] = subject
    if stars:
        at, more = stars[0], len(subject) - len(patterns) + 1
        values = (*subject[:at], subject[at : at + more], *subject[at + more :])
    holds: bool | Tile = True
    for one, value in zip(patterns, values, strict=True):
        if isinstance(one, ast.MatchStar):
            if one.name is not None:
                bindings[one.name] = value
        else:
            holds = _both(frame, holds, _matches(frame, value, one, bindings))
        if holds is False:
            break
    return holds


def _matches_class(frame: Frame, subject: Any, pattern: ast.MatchClass, bindings: Bindings) -> bool | Tile:
    kind = evaluate(frame, pattern.cls)
    if not is_record_type(kind):
        raise TileTypeError(f"a 'case' with a class needs a dataclass, found {describe(kind)}", frame.places(pattern))
    if not isinstance(subject, kind) or not (is_record(subject) or isinstance(subject, tuple)):
        return False
    names = [*kind.__match_args__[: len(pattern.patterns)], *pattern.kwd_attrs]
    holds: bool | Tile = True
    for name, one in zip(names, [*pattern.patterns, *pattern.kwd_patterns], strict=True):
        holds = _both(frame, holds, _matches(frame, getattr(subject, name), one, bindings))
    return holds
