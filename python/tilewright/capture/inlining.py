"""Functions of the user, whose bodies are captured where they are called."""

from __future__ import annotations

import ast
import contextlib
import types
from collections.abc import Callable
from typing import Any

from ..errors import TileRecursionError, TileSyntaxError, TileTypeError
from .frame import RETURN, VALUE, Frame
from .parameters import bind_local, binder_of
from .repeats import Repeated
from .simt import constants
from .source import own_nodes, source_of
from .values import LocalFunction, Tile, Unusable, describe, require_tile_or_number

MOST_CALLS_OF_ITSELF = 256
_LIBRARIES = (
    "tilewright.library",
    "tilewright.assign",
    "tilewright.c_math",
    "tilewright.numba.lowering",
)  # what is in them is typed as tile code


def inline(
    frame: Frame,
    function: types.FunctionType | LocalFunction,
    args: list[Any],
    keywords: dict[str, Any],
    node: ast.AST,
    on_yield: Callable[[Frame, Any], None] | None = None,
) -> Any:
    """What a call of the user's function gives. `on_yield` is what its `yield` does, if it is a generator."""
    if isinstance(function, LocalFunction):
        env = bind_local(function, args, keywords)
        repeated, found = _repeated(frame, function, env, frame.of_library, on_yield)
        if found is not None:
            return found[0]
        called = Frame(frame.capture, function.frame.source, env, frame.places(node), function.frame)
        key, body, name = function.node, function.node.body, function.name
    else:
        is_operation = not frame.of_library and function.__module__ == "tilewright.library"
        called_as = f"ct.{function.__name__}" if is_operation else function.__name__
        env = binder_of(function).bind(called_as, args, keywords)
        if is_operation:
            _check_operands(function, args)
        env = {key: frame.adopt(value) for key, value in env.items()}
        if frame.capture.rules.simt:
            constants.check(frame, function, env)
        of_library = frame.of_library or function.__module__ in _LIBRARIES
        repeated, found = _repeated(frame, function, env, of_library, on_yield)
        if found is not None:
            return found[0]
        source = source_of(function)
        for part in ("__code__", "__defaults__", "__kwdefaults__"):
            if part == "__code__" or getattr(function, part) is not None:
                frame.capture.note_read(function, part, getattr(function, part))
        called = Frame(frame.capture, source, env, frame.places(node), of_library=of_library)
        key, body, name = function.__code__, source.tree.body, function.__name__
    if frame.capture.active.count(key) >= MOST_CALLS_OF_ITSELF:
        code = frame.capture.rules.code
        raise TileRecursionError(
            f"recursion: '{name}' calls itself, directly or through others, and has not ended after "
            f"{MOST_CALLS_OF_ITSELF} calls; its end must depend on constants; {code} has loops instead",
            (*frame.callers[:2], frame.source.place(node)),
        )
    from .statements import run_body

    called.on_yield = on_yield
    capture, builder = frame.capture, frame.builder
    capture.active.append(key)
    if called.of_library:
        run_body(called, body)
    else:
        location = builder.call()
        builder.file(called.source.file, name)
        run_body(called, body)
        builder.end_call(location)
        builder.file(frame.source.file, frame.source.name)
    capture.active.pop()
    value = returned_value(called, name)
    if repeated is not None:
        repeated.captured(value)
    return value


def _repeated(
    frame: Frame, function: Any, env: dict[str, Any], of_library: bool, on_yield: Any
) -> tuple[Repeated | None, tuple[Any] | None]:
    """A call that may be repeated, and what it gives if it is like one before."""
    if not frame.capture.rules.repeats or on_yield is not None or frame.capture.checked:
        return None, None
    repeated = Repeated(frame, function, env, of_library)
    found = repeated.copied()
    if found is None:
        repeated.begin()
    return repeated, found


def _check_operands(function: types.FunctionType, args: list[Any]) -> None:
    """What a user calls is named in errors, not what it is made of: operands are the parameters without a default."""
    code = function.__code__
    without_default = code.co_argcount - len(function.__defaults__ or ())
    for value in args[: min(code.co_posonlyargcount, without_default)]:
        require_tile_or_number(value, f"ct.{function.__name__}")


def returned_value(called: Frame, name: str) -> Any:
    returned = called.env[RETURN]
    value = called.env.get(VALUE)
    if returned is False:
        return None
    if returned is not True and value is not None:
        raise TileSyntaxError(
            f"'{name}' returns {_describe_result(value)} on some paths and nothing on others; "
            "return a value on every path"
        )
    if type(value) is Unusable:
        raise TileTypeError(value.message, value.places)
    return value


def _describe_result(value: Any) -> str:
    return "a value" if type(value) is Unusable else describe(value)


def is_context_manager(function: types.FunctionType) -> bool:
    """Whether a function was made by `contextlib.contextmanager`."""
    return function.__code__ is _MADE_BY_CONTEXTMANAGER and isinstance(
        getattr(function, "__wrapped__", None), types.FunctionType
    )


_MADE_BY_CONTEXTMANAGER = contextlib.contextmanager(lambda: iter(())).__code__


class GeneratorContext:
    """A call of a function under `contextlib.contextmanager`, not yet entered."""

    def __init__(self, enter: Callable[[Callable[[Any], None]], None]) -> None:
        self.enter = enter


def generator_context(
    frame: Frame, function: types.FunctionType, args: list[Any], keywords: dict[str, Any], node: ast.AST
) -> GeneratorContext:
    """What a call of `function`, a generator under `contextlib.contextmanager`, gives."""

    if any(isinstance(n, ast.Return) for n in own_nodes(source_of(function).tree)):
        raise TileSyntaxError(
            f"'{function.__name__}' returns, and what is behind its 'yield' would be left out; write branches instead"
        )

    outside = f"'{function.__name__}' must yield once, outside of branches and loops"
    branches = (n for n in own_nodes(source_of(function).tree) if isinstance(n, ast.If))
    if any(isinstance(n, ast.Yield) for branch in branches for n in ast.walk(branch)):
        raise TileTypeError(outside)

    def enter(run: Callable[[Any], None]) -> None:
        runs = 0

        def on_yield(called: Frame, value: Any) -> None:
            nonlocal runs
            runs += 1
            if isinstance(called.exit_state(), Tile) or called.loops or runs > 1:
                raise TileTypeError(outside)
            run(value)

        inline(frame, function, args, keywords, node, on_yield)
        if runs != 1:
            raise TileTypeError(f"'{function.__name__}' does not yield", frame.places(node))

    return GeneratorContext(enter)
