"""`with`: context managers that are generators, and those that do nothing but hold constants.

A generator under `contextlib.contextmanager` is inlined around the body: what stands before its `yield` comes before,
what stands behind comes after, its `finally` too. Another object's `__enter__` and `__exit__` are called as methods.
"""

from __future__ import annotations

import ast
import contextlib
import types
from collections.abc import Callable
from typing import Any

from ..errors import TileSyntaxError, TileTypeError
from .expressions import evaluate
from .expressions import handles as handles_expression
from .frame import Frame
from .inlining import GeneratorContext, inline
from .statements import assign, handles, run_statements
from .values import describe


@handles(ast.With)
def _with(frame: Frame, node: ast.With) -> None:
    _enter(frame, node.items, node)


def _enter(frame: Frame, items: list[ast.withitem], node: ast.With) -> None:
    if not items:
        run_statements(frame, node.body)
        return
    first, *rest = items
    manager = evaluate(frame, first.context_expr)

    def run(value: Any) -> None:
        if first.optional_vars is not None:
            assign(frame, first.optional_vars, value)
        _enter(frame, rest, node)

    frame.at(node)
    if isinstance(manager, GeneratorContext):
        manager.enter(run)
    elif isinstance(manager, contextlib.nullcontext):
        run(frame.adopt(manager.enter_result))
    else:
        _enter_object(frame, manager, run, first.context_expr)


def _enter_object(frame: Frame, manager: Any, run: Callable[[Any], None], node: ast.expr) -> None:
    enter, leave = (getattr(type(manager), name, None) for name in ("__enter__", "__exit__"))
    if not isinstance(enter, types.FunctionType) or not isinstance(leave, types.FunctionType):
        raise TileTypeError(
            f"{describe(manager)} is no context manager of tile code; expected a function with "
            "@contextlib.contextmanager, or an object of a Python class with __enter__ and __exit__",
            frame.places(node),
        )
    run(inline(frame, enter, [manager], {}, node))
    inline(frame, leave, [manager, None, None, None], {}, node)


@handles_expression(ast.Yield)
def _yield(frame: Frame, node: ast.Yield) -> None:
    if frame.on_yield is None:
        raise TileSyntaxError("'yield' is only possible in a function with @contextlib.contextmanager")
    frame.on_yield(frame, None if node.value is None else evaluate(frame, node.value))


@handles(ast.Try)
def _try(frame: Frame, node: ast.Try) -> None:
    """`try` with nothing but a `finally`: tile code raises nothing."""
    if node.handlers or node.orelse:
        raise TileSyntaxError(
            f"a 'try' statement with 'except' is not supported: {frame.capture.rules.code} raises no exceptions; "
            "ask for the condition by 'if'"
        )
    run_statements(frame, node.body)
    if frame.exit_state() is not False:
        raise TileSyntaxError(
            f"a 'return', 'break' or 'continue' inside of 'try' is not supported in {frame.capture.rules.code}"
        )
    run_statements(frame, node.finalbody)
