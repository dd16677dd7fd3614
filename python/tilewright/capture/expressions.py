"""Expressions: each kind of node has a function that gives its value. Names and literals are here.

What is known at compile time is computed by Python itself; the rest becomes ops.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from ..errors import TileError, TileSyntaxError, TileTypeError, TileValueError
from ..registry import into
from .elements import elements
from .frame import Frame
from .values import LocalFunction, lambda_as_function

Handler = Callable[[Frame, Any], Any]
_handlers: dict[type[ast.AST], Handler] = {}
handles = into(_handlers)

# What a user calls the syntax that we refuse.
UNSUPPORTED = {
    ast.Await: "'await'",
    ast.YieldFrom: "'yield from'",
    ast.Slice: "a slice",
    ast.AsyncWith: "an 'async with' statement",
    ast.AsyncFor: "an 'async for' statement",
    ast.AsyncFunctionDef: "an 'async def'",
    ast.ClassDef: "a class",
    ast.Import: "an 'import' statement",
    ast.ImportFrom: "an 'import' statement",
    ast.Global: "a 'global' statement",
    ast.Nonlocal: "a 'nonlocal' statement",
}


_INSTEAD: dict[type, str] = {
    ast.ClassDef: "; define it outside of the kernel, as a dataclass or a named tuple",
    ast.Global: "; a kernel changes arrays only",
    ast.Nonlocal: "; return the value",
    ast.Import: "; import outside of the kernel",
    ast.ImportFrom: "; import outside of the kernel",
}


def unsupported(frame: Frame, node: ast.AST) -> TileSyntaxError:
    name = UNSUPPORTED.get(type(node), f"'{type(node).__name__}'")
    return TileSyntaxError(f"{name} is not supported in {frame.capture.rules.code}{_INSTEAD.get(type(node), '')}")


def evaluate(frame: Frame, node: ast.AST) -> Any:
    """The value of an expression."""
    handler = _handlers.get(type(node))
    try:
        if handler is None:
            raise unsupported(frame, node)
        return handler(frame, node)
    except TileError as error:
        if not error.places:
            error.places = frame.places(node)
        raise
    except RecursionError:
        raise TileSyntaxError("the expression is nested too deeply", frame.places(node)) from None
    except (ValueError, ArithmeticError, MemoryError) as error:  # of Python, on constants
        raise TileValueError(f"{error or type(error).__name__}", frame.places(node)) from None


@handles(ast.Constant)
def _constant(frame: Frame, node: ast.Constant) -> Any:
    if isinstance(node.value, complex) and frame.capture.rules.simt:
        from .simt import complexes  # which needs the classes

        return complexes.literal(frame, node.value)
    if isinstance(node.value, complex | bytes):
        kind = type(node.value).__name__
        raise TileTypeError(f"{frame.capture.rules.code} has no {kind} constants; expected a real number")
    return node.value


@handles(ast.Name)
def _name(frame: Frame, node: ast.Name) -> Any:
    return frame.lookup(node)


@handles(ast.Lambda)
def _lambda(frame: Frame, node: ast.Lambda) -> LocalFunction:
    return local_function(frame, lambda_as_function(node))


def local_function(frame: Frame, node: ast.FunctionDef) -> LocalFunction:
    """A function defined inside of another, with the defaults that it has there."""
    defaults = tuple(evaluate(frame, d) for d in node.args.defaults)
    by_name = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
    keyword_defaults = {a.arg: evaluate(frame, d) for a, d in by_name if d is not None}
    return LocalFunction(node, frame, defaults, keyword_defaults)


@handles(ast.Tuple, ast.List)
def _tuple(frame: Frame, node: ast.Tuple) -> Any:
    return tuple(items_of(frame, node.elts))


def items_of(frame: Frame, nodes: list[ast.expr]) -> list[Any]:
    """The values of expressions, of which some may be starred tuples."""
    values: list[Any] = []
    for node in nodes:
        if isinstance(node, ast.Starred):
            value = evaluate(frame, node.value)
            values.extend(elements(frame, value, "'*'"))
        else:
            values.append(evaluate(frame, node))
    return values
