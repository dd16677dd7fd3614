"""Calls: of operations, of functions of the user, of methods, and of what Python computes from constants."""

from __future__ import annotations

import ast
import contextlib
import enum
import functools
import math
import types
from typing import Any

from .. import _core
from .. import tile as ct
from ..dtype import DType, as_dtype, check_scalar, constant_of, require_supported
from ..errors import TileSyntaxError, TileTypeError, TileValueError
from ..names import ELSEWHERE, THREADS
from . import maps, ops, records, shapes, static
from .attributes import attribute
from .branches import each
from .builtin_functions import BUILTINS, call_builtin
from .expressions import evaluate, handles, items_of
from .frame import Frame
from .inlining import generator_context, inline, is_context_manager
from .lengths import check_call
from .parameters import binder_of, binder_of_special
from .simt import functions as _simt_functions  # noqa: F401  (it says what built-ins are in device code)
from .simt import methods as simt_methods
from .values import (
    LocalFunction,
    Method,
    Selection,
    describe,
    is_number,
    is_record_type,
    is_run_time,
    require_tile_or_number,
)


@handles(ast.Call)
def _call(frame: Frame, node: ast.Call) -> Any:
    function = evaluate(frame, node.func)
    if (name := static.keyword(frame, node, function)) is not None:
        return static.called(frame, node, name)
    args = items_of(frame, node.args)
    keywords: dict[str, Any] = {}
    for keyword in node.keywords:
        value = evaluate(frame, keyword.value)
        if keyword.arg is not None:
            keywords[keyword.arg] = value
        elif isinstance(value, dict) and all(isinstance(name, str) for name in value):
            keywords.update(value)
        else:
            raise TileTypeError(f"only a dict of names can follow '**', found {describe(value)}", frame.places(node))
    frame.at(node)
    return call(frame, function, args, keywords, node)


def call(frame: Frame, function: Any, args: list[Any], keywords: dict[str, Any], node: Any) -> Any:
    name = getattr(function, "__tw_op__", None)
    if name is not None:
        return _call_op(frame, name, function, args, keywords)
    if isinstance(function, Method):
        return _call_method(frame, function, args, keywords)
    if hasattr(type(function), "__tw_call__"):
        return _call_special(frame, function, args, keywords)
    if isinstance(function, DType) or _is_torch_dtype(function):
        return _call_dtype(frame, as_dtype(function), args, keywords)
    if getattr(function, "__tw_host_only__", False):
        raise TileTypeError(
            f"'{function.__name__}' is a function of the host, by ct.function(tile=False); tile code cannot call it"
        )
    if isinstance(function, types.FunctionType) and is_context_manager(function):
        return generator_context(frame, function.__wrapped__, args, keywords, node)  # type: ignore[attr-defined]
    if isinstance(function, types.FunctionType) and function in BUILTINS:
        return call_builtin(frame, BUILTINS[function], function, args, keywords)
    if isinstance(function, types.FunctionType) and maps.is_mapped(frame, function, args, keywords):
        return maps.call(frame, function, args, keywords, node)
    if isinstance(function, types.FunctionType | LocalFunction):
        return inline(frame, function, args, keywords, node)
    if isinstance(function, types.MethodType) and isinstance(function.__func__, types.FunctionType):
        return call(frame, function.__func__, [function.__self__, *args], keywords, node)
    if isinstance(function, functools.partial):
        return call(frame, function.func, [*function.args, *args], {**function.keywords, **keywords}, node)
    if hasattr(function, "__tw_make__"):
        return function.__tw_make__(frame, args, keywords)
    if function is types.SimpleNamespace and frame.capture.rules.simt:
        if args:
            raise TileTypeError(f"SimpleNamespace takes names, as in SimpleNamespace(x=1), found {describe(args[0])}")
        return types.SimpleNamespace(**keywords)
    if is_record_type(function):
        return records.make(frame, function, args, keywords)
    if records.method_of(function, "__call__"):
        return records.call_method(frame, function, "__call__", args, keywords)
    if isinstance(function, _core.Dispatcher):
        raise TileTypeError(
            f"the kernel '{function.name}' cannot be called like a function; start it on the "
            "host with ct.launch, or make what both need a @ct.function"
        )
    try:
        builtin = frame.capture.rules.builtins.get(function) or BUILTINS.get(function)
    except TypeError:  # not hashable
        builtin = None
    if builtin is not None:
        return call_builtin(frame, builtin, function, args, keywords)
    return _call_plain(frame, function, args, keywords)


def _call_op(frame: Frame, name: str, function: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
    positional, by_name = binder_of(function).arguments(f"ct.{name}", args, keywords)
    chosen = next((v for v in positional if isinstance(v, Selection)), None)
    if chosen is not None:

        def of(choice: Any) -> Any:
            given = [choice if value is chosen else value for value in positional]
            return _call_op(frame, name, function, given, by_name)

        return each(frame, chosen, of)
    if name in ops.EFFECTS:
        frame.refuse_in_combiner(f"ct.{name}", "it has an effect: do that before or behind")
    return ops.OPS[name](frame, *positional, **by_name)


def _call_special(frame: Frame, function: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
    """An object that says itself what a call of it becomes."""
    name = getattr(function, "__name__", None) or type(function).__name__.strip("_")
    positional, by_name = binder_of_special(function).arguments(name, args, keywords)
    return function.__tw_call__(frame, *positional, **by_name)


def _call_method(frame: Frame, method: Method, args: list[Any], keywords: dict[str, Any]) -> Any:
    receiver, name = method.receiver, method.name
    if isinstance(receiver, Selection):
        return each(frame, receiver, lambda v: call(frame, attribute(frame, v, name), args, keywords, frame.node))
    if isinstance(receiver, tuple):
        raise TileTypeError(f"the method '{name}' of a tuple of run-time values is not supported")
    if frame.capture.rules.simt:
        return simt_methods.call(frame, receiver, name, args, keywords)
    if name == "item":
        return shapes.item(frame, receiver)
    if name in ("reshape", "permute") and len(args) > 1:
        args = [tuple(args)]
    return _call_op(frame, name, ct.TILE_METHODS[name], [receiver, *args], keywords)


def _call_dtype(frame: Frame, dtype: DType, args: list[Any], keywords: dict[str, Any]) -> Any:
    if len(args) > 1 or keywords:
        raise TileTypeError(f"ct.{dtype} takes one value, found {len(args) + len(keywords)}")
    require_supported(dtype)
    check_scalar(dtype)
    value = args[0] if args else 0
    if type(value) is str:
        value = _number_in_text(value, dtype)
    if is_number(value):
        return frame.emit.typed_constant(constant_of(value, dtype), dtype)
    return frame.emit.cast(require_tile_or_number(value, f"ct.{dtype}"), dtype)


def _is_torch_dtype(value: Any) -> bool:
    return type(value).__name__ == "dtype" and type(value).__module__ == "torch"


def _number_in_text(text: str, dtype: DType) -> int | float:
    """`ct.float32("-inf")`, `ct.int32("12")`: what Python's float and int make of a text."""
    try:
        return float(text) if dtype.is_float else int(text)
    except ValueError as error:
        raise TileTypeError(f"ct.{dtype}: {error}") from None


def _call_plain(frame: Frame, function: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
    """A function that is not tile code, on constants: Python computes it."""
    if function is breakpoint:  # stops the reference execution; compiled code goes on
        return None
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None)
    if not callable(function):
        expected = "expected an operation, a function or a method"
        called = frame.node.func if isinstance(frame.node, ast.Call) else None
        if isinstance(called, ast.Attribute) and called.attr in ("T", "shape", "dtype", "ndim", "strides"):
            expected = f"'{called.attr}' is no method, write it without ()"
        raise TileTypeError(f"{describe(function)} cannot be called; {expected}")
    module = getattr(function, "__module__", None) or getattr(
        getattr(function, "__objclass__", None), "__module__", None
    )
    receiver = getattr(function, "__self__", None)
    known = module in ("math", "operator", "numpy", "_operator", "builtins") or (
        isinstance(receiver, int | float | str | tuple | bytes | dict | frozenset)
    )
    if isinstance(function, type) and issubclass(function, enum.Enum | contextlib.nullcontext):
        known = True
    if not known or function in _REFUSED:
        told = _of_python(frame, function) or _instead(frame, str(name).rsplit(".", 1)[-1])
        told = told or frame.capture.rules.callables
        what = name or f"an object of {type(function).__name__}"
        raise TileSyntaxError(f"{what} cannot be called in {frame.capture.rules.code}; {told}")
    if isinstance(receiver, dict | tuple) and name in _READS_OF_CONTAINERS:
        return frame.adopt(function(*args, **keywords))
    if is_run_time(tuple(args)) or is_run_time(tuple(keywords.values())):
        told = _instead(frame, str(name).rsplit(".", 1)[-1])
        whole = name if module == "builtins" else f"{module}.{name}"
        raise TileTypeError(f"'{whole}' works on constants only; {told or 'expected no run-time values'}")
    check_call(function, [*args, *keywords.values()])
    try:
        return frame.adopt(function(*args, **keywords))
    except Exception as error:
        is_numpy_type = module == "numpy" and isinstance(function, type)  # as a dtype that is called
        raise (TileTypeError if is_numpy_type else TileValueError)(f"'{name}' of constants: {error}") from None


def _instead(frame: Frame, name: str) -> str:
    """What there is for a function of NumPy, Triton or another system; empty where there is nothing known."""
    if frame.capture.rules.simt:
        if name in THREADS or hasattr(math, name):
            return f"use {THREADS.get(name, f'math.{name}')}"
        return ""
    found = getattr(ct, name, None)
    is_here = name in ct.OPS or isinstance(found, DType) or getattr(found, "__module__", "") == "tilewright.library"
    return f"use ct.{name}" if is_here else f"write {ELSEWHERE[name]}" if name in ELSEWHERE else ""


def _of_python(frame: Frame, function: Any) -> str:
    """What there is for a function or class of Python's in tile code."""
    module, name = getattr(function, "__module__", None), getattr(function, "__name__", "")
    if frame.capture.rules.simt:
        return ""
    if function is ct.launch or function is ct.kernel:
        return "kernels are made and started on the host; what a kernel calls is a Python function"
    if module in _OF_THE_HOST or (module == "builtins" and name in ("eval", "exec", "compile", "input")):
        return "call it on the host, and give the kernel what comes of it as an argument"
    if module in ("functools", "_functools"):
        return {"partial": "write a lambda", "reduce": "write a loop"}.get(name, "")
    if module == "itertools":
        return f"a loop over ct.static_iter(itertools.{name}(...)) is unrolled"
    if isinstance(function, type) and module not in ("builtins", "numpy"):
        return "of classes there are dataclasses, named tuples and enumerations; use one of them, or functions"
    return ""


_READS_OF_CONTAINERS = frozenset(f"dict.{n}" for n in ("get", "items", "keys", "values", "copy"))
_OF_THE_HOST = ("_io", "io", "random", "time")
_REFUSED = frozenset((eval, exec, compile, open, input, globals, locals, vars, setattr, delattr))
