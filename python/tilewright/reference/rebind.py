"""Built-ins that mean something else in tile code, and how a kernel comes to see them."""

from __future__ import annotations

import ast
import builtins
import functools
import itertools
import linecache
import operator
import sys
import types
import typing
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import dtype as dt
from .. import tile as ct
from ..errors import TileTypeError
from . import maps
from .values import TILE_CODE, Tile


class _Range:
    """`range`, whose values are run-time integers at the head of a loop: int32, or int64 where a bound is.

    Elsewhere, as in a comprehension, they are constants, and so are its bounds.
    """

    def __init__(self, *bounds: Any) -> None:
        self.bounds = bounds

    def __iter__(self) -> Iterator[Any]:
        values = builtins.range(*(operator.index(b) for b in self.bounds))
        if not _is_at_loop(sys._getframe(1)):
            return iter(values)
        dtype = self._dtype()
        return (Tile(np.array(value, dtype.numpy), dtype) for value in values)

    def _dtype(self) -> dt.DType:
        dtype = dt.int32
        for bound in self.bounds:
            if isinstance(bound, Tile):
                dtype = dt.promote(dtype, bound.dtype) if bound.dtype.is_integral else dtype
            elif dt.constant_dtype(operator.index(bound)) is not dt.int32:
                dtype = dt.int64
        return dtype


def _is_at_loop(frame: types.FrameType) -> bool:
    """Whether what a frame is about to do is the head of a `for` statement."""
    place = next(itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None))
    heads = _loop_heads(frame.f_code.co_filename)
    return place in heads if heads is not None else frame.f_code.co_name not in ("<listcomp>", "<genexpr>")


@functools.lru_cache(maxsize=64)
def _loop_heads(file: str) -> frozenset[tuple[int | None, ...]] | None:
    """Where `for` statements and what they go over stand in a file: (line, end line, column, end column).

    Versions of Python differ in which of the two an iteration is said to come from.
    """
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return None
    nodes = [part for node in ast.walk(tree) if isinstance(node, ast.For) for part in (node, node.iter)]
    return frozenset((n.lineno, n.end_lineno, n.col_offset, n.end_col_offset) for n in nodes)


def _extremum(builtin: Callable[..., Any], public: Callable[..., Any]) -> Callable[..., Any]:
    def choose(*args: Any, **kwargs: Any) -> Any:
        if len(args) < 2 or kwargs or not any(isinstance(a, Tile) for a in args):
            return builtin(*args, **kwargs)
        result = args[0]
        for other in args[1:]:
            result = public(result, other)
        return result

    return choose


def _isinstance(value: Any, kinds: Any) -> bool:
    """Lists are tuples in tile code, and a scalar is a number or a tile without axes."""
    asked = tuple(_kinds(kinds))
    if ct.Scalar in asked and (isinstance(value, bool | int | float) or getattr(value, "shape", None) == ()):
        return True
    return isinstance(value, tuple(kind for kind in asked if kind != ct.Scalar))


def _kinds(kinds: Any) -> Iterator[Any]:
    for kind in kinds if isinstance(kinds, tuple) else typing.get_args(kinds) or (kinds,):
        if isinstance(kind, tuple):
            yield from _kinds(kind)
        else:
            yield from (list, tuple) if kind in (list, tuple) else (kind,)


_BUILTINS = {
    **vars(builtins),
    TILE_CODE: True,
    "range": _Range,
    "isinstance": _isinstance,
    "min": _extremum(builtins.min, ct.minimum),
    "max": _extremum(builtins.max, ct.maximum),
}


class Rebinder:
    """Makes functions that run the same code, so that breakpoints hold, with our built-ins.

    Follows the Python functions which a function names, as globals or in its closure.
    """

    def __init__(self) -> None:
        self._functions: dict[int, types.FunctionType] = {}
        self._globals: dict[int, dict[str, Any]] = {}

    def rebind(self, function: types.FunctionType) -> types.FunctionType:
        if id(function) in self._functions:
            return self._functions[id(function)]
        names = self._module(function)
        cells = tuple(types.CellType() for _ in function.__closure__ or ())
        copy = types.FunctionType(function.__code__, names, function.__name__, function.__defaults__, cells or None)
        copy.__kwdefaults__ = function.__kwdefaults__
        self._functions[id(function)] = copy
        for cell, new in zip(function.__closure__ or (), cells, strict=True):
            try:
                new.cell_contents = self._value(cell.cell_contents)
            except ValueError:  # the cell is still empty
                continue
        for name in _names(function.__code__):
            if name in function.__globals__:
                names[name] = self._value(function.__globals__[name])
        return copy

    def _module(self, function: types.FunctionType) -> dict[str, Any]:
        key = id(function.__globals__)
        if key not in self._globals:
            self._globals[key] = {**function.__globals__, "__builtins__": _BUILTINS}
        return self._globals[key]

    def _value(self, value: Any) -> Any:
        if hasattr(value, "__tw_op__"):
            return value
        if getattr(value, "__tw_host_only__", False):
            return _refuse_host_only
        inner = value if isinstance(value, types.FunctionType) else _wrapped(value)
        if inner is None or (inner.__module__ or "").startswith("tilewright."):
            return value
        rebound = self.rebind(inner)
        return maps.mapped(inner, rebound) if getattr(inner, "__tw_func__", False) else rebound


def _refuse_host_only(*args: Any, **keywords: Any) -> None:
    raise TileTypeError("a function of the host, by ct.function(tile=False); tile code cannot call it")


def _wrapped(value: Any) -> types.FunctionType | None:
    """The Python function inside a @ct.function, which runs as itself here."""
    if type(value).__module__ != "tilewright.kernel":
        return None
    inner = getattr(value, "__wrapped__", None)
    return inner if isinstance(inner, types.FunctionType) else None


def _names(code: types.CodeType) -> Iterator[str]:
    """Global names that the code, or code nested in it, refers to."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)
