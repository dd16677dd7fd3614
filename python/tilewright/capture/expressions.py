"""Expressions: each kind of node has a function here that gives its value.

What is known at compile time is computed by Python itself; the rest becomes ops.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import difflib
import enum
import functools
import inspect
import math
import operator
import re
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from .. import _core
from .. import tile as ct
from ..dtype import DType, bool_, constant_dtype, float32, int32, int64
from ..errors import (
    Place,
    TileError,
    TileRecursionError,
    TileStaticEvalError,
    TileSyntaxError,
    TileTypeError,
    TileValueError,
)
from ..formats import python_conversion
from ..names import ELSEWHERE, MODULES, advice, keyword_advice, module_advice
from ..views import ARRAY_METHODS
from . import elementwise, memory, ops, records, shapes, views
from .branches import choose, each
from .elements import elements
from .emit import fold
from .frame import RETURN, VALUE, Frame
from .selection import are_alike, entry
from .simt import arrays as simt_arrays
from .source import source_of
from .values import (
    Array,
    Format,
    LocalFunction,
    Method,
    Range,
    Selection,
    Tile,
    Unusable,
    describe,
    is_number,
    is_record_type,
    is_run_time,
    lambda_as_function,
)

BINARY = {name: function.__tw_op__ for name, function in ct.BINARY_OPERATORS.items()}  # type: ignore[attr-defined]
COMPARE = {name: function.__tw_op__ for name, function in ct.COMPARISONS.items()}  # type: ignore[attr-defined]

Handler = Callable[[Frame, Any], Any]
_handlers: dict[type[ast.AST], Handler] = {}

# What a user calls the syntax that we refuse.
UNSUPPORTED = {
    ast.Await: "'await'",
    ast.YieldFrom: "'yield from'",
    ast.Slice: "a slice",
    ast.AsyncWith: "an 'async with' statement",
    ast.AsyncFor: "an 'async for' statement",
    ast.AsyncFunctionDef: "an 'async def'",
    ast.ClassDef: "a class",
    ast.Raise: "a 'raise' statement",
    ast.Import: "an 'import' statement",
    ast.ImportFrom: "an 'import' statement",
    ast.Global: "a 'global' statement",
    ast.Nonlocal: "a 'nonlocal' statement",
}


_INSTEAD: dict[type, str] = {
    ast.ClassDef: "; define it outside of the kernel, as a dataclass or a named tuple",
    ast.Raise: "; 'assert' tells of what goes wrong at run time, ct.static_assert at compile time",
    ast.Global: "; a kernel changes arrays only, by ct.store",
    ast.Nonlocal: "; return the value",
    ast.Import: "; import outside of the kernel",
    ast.ImportFrom: "; import outside of the kernel",
}


def unsupported(node: ast.AST) -> TileSyntaxError:
    name = UNSUPPORTED.get(type(node), f"'{type(node).__name__}'")
    return TileSyntaxError(f"{name} is not supported in tile code{_INSTEAD.get(type(node), '')}")


def evaluate(frame: Frame, node: ast.AST) -> Any:
    """The value of an expression."""
    handler = _handlers.get(type(node))
    try:
        if handler is None:
            raise unsupported(node)
        return handler(frame, node)
    except TileError as error:
        if not error.places:
            error.places = frame.places(node)
        raise
    except RecursionError:
        raise TileSyntaxError("the expression is nested too deeply", frame.places(node)) from None
    except (ValueError, ArithmeticError, MemoryError) as error:  # of Python, on constants
        raise TileValueError(f"{error or type(error).__name__}", frame.places(node)) from None


def handles(*kinds: type[ast.AST]) -> Callable[[Handler], Handler]:
    def register(handler: Handler) -> Handler:
        for kind in kinds:
            _handlers[kind] = handler
        return handler

    return register


# ---------------------------------------------------------------------------------------------
# Names and literals


@handles(ast.Constant)
def _constant(frame: Frame, node: ast.Constant) -> Any:
    if isinstance(node.value, complex | bytes):
        kind = type(node.value).__name__
        raise TileTypeError(f"a {kind} constant cannot be used in tile code")
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
    return tuple(_items(frame, node.elts))


def _items(frame: Frame, nodes: list[ast.expr]) -> list[Any]:
    """The values of expressions, of which some may be starred tuples."""
    values: list[Any] = []
    for node in nodes:
        if isinstance(node, ast.Starred):
            value = evaluate(frame, node.value)
            values.extend(elements(frame, value, "'*'"))
        else:
            values.append(evaluate(frame, node))
    return values


_CONVERT: dict[int, Callable[[Any], Any]] = {-1: lambda v: v, 114: repr, 115: str, 97: ascii}


@handles(ast.JoinedStr)
def _f_string(frame: Frame, node: ast.JoinedStr) -> Any:
    parts: list[str | tuple[Any, Any]] = []
    for part in node.values:
        if isinstance(part, ast.Constant):
            parts.append(str(part.value))
            continue
        assert isinstance(part, ast.FormattedValue)
        value = evaluate(frame, part.value)
        spec = evaluate(frame, part.format_spec) if part.format_spec else ""
        if isinstance(value, Tile):
            parts.append((value, python_conversion(spec, value.dtype.is_float) if spec else None))
        elif is_run_time(value):
            raise TileTypeError(f"an f-string cannot show {describe(value)}", frame.places(part))
        else:
            parts.append(format(_CONVERT[part.conversion](value), spec))
    if all(isinstance(part, str) for part in parts):
        return "".join(parts)  # type: ignore[arg-type]
    return Format(tuple(parts))


# ---------------------------------------------------------------------------------------------
# Operators


def binary(frame: Frame, name: str, x: Any, y: Any, node: ast.AST) -> Any:
    """x and y under an operator of Python."""
    if is_number(x) and is_number(y):
        return fold(name, x, y)
    if (not is_run_time(x) and not is_run_time(y)) or isinstance(x, tuple) or isinstance(y, tuple):
        return _plain_binary(name, x, y)
    frame.at(node)
    if name == "matmul":
        return ops.OPS["matmul"](frame, x, y)
    return frame.emit.binary(name, x, y)


def _operand_advice(*operands: Any) -> str:
    for value in operands:
        if isinstance(value, tuple):
            return "; ct.astile makes a tile of constants"
        if isinstance(value, Method):
            return f"; call it, as in x.{value.name}(...)"
        if value is None:
            return "; what gives no value, as ct.store, is no operand"
    return "; expected tiles or numbers"


def _plain_binary(name: str, x: Any, y: Any) -> Any:
    """An operator on what is neither tile nor number: text and tuples."""
    joins = name == "add" and isinstance(x, tuple) and isinstance(y, tuple)
    repeats = name == "mul" and isinstance(x, tuple) and type(y) is int
    texts = isinstance(x, str) and isinstance(y, str | int) and name in ("add", "mul", "mod")
    if not (joins or repeats or texts):
        raise TileTypeError(f"ct.{name} of {describe(x)} and {describe(y)} is not defined{_operand_advice(x, y)}")
    try:
        return {"add": operator.add, "mul": operator.mul, "mod": operator.mod}[name](x, y)
    except (MemoryError, OverflowError):
        raise TileValueError(f"ct.{name}: the result is too large to be a constant") from None
    except (TypeError, ValueError) as error:
        raise TileTypeError(f"ct.{name} of {describe(x)} and {describe(y)}: {error}") from None


@handles(ast.BinOp)
def _binary(frame: Frame, node: ast.BinOp) -> Any:
    x = evaluate(frame, node.left)
    y = evaluate(frame, node.right)
    return binary(frame, BINARY[type(node.op).__name__], x, y, node)


@handles(ast.UnaryOp)
def _unary(frame: Frame, node: ast.UnaryOp) -> Any:
    value = evaluate(frame, node.operand)
    frame.at(node)
    if isinstance(node.op, ast.Not):
        truth = truth_of(frame, value, "'not'")
        return frame.emit.logical_not(truth) if isinstance(truth, Tile) else not truth
    if isinstance(node.op, ast.UAdd):
        return +value if is_number(value) else elementwise.positive(frame, value)
    return ops.OPS["negative" if isinstance(node.op, ast.USub) else "bitwise_not"](frame, value)


def truth_of(frame: Frame, value: Any, what: str) -> bool | Tile:
    """The truth of a condition: known at compile time, or a run-time bool scalar."""
    if isinstance(value, Tile):
        return frame.emit.truth(value, what)
    if isinstance(value, Array | Format | Range | Method):
        raise TileTypeError(f"{what} needs a scalar, found {describe(value)}")
    return bool(value)


def condition(frame: Frame, node: ast.expr, what: str) -> bool | Tile:
    """The truth of an expression, of which only that is asked: the sides of 'and' and 'or' may differ in type."""
    if isinstance(node, ast.BoolOp):
        is_and = isinstance(node.op, ast.And)
        truth = condition(frame, node.values[0], what)
        for right in node.values[1:]:
            truth = _join_truth(frame, is_and, truth, right, what)
        return truth
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        truth = condition(frame, node.operand, what)
        return frame.emit.logical_not(truth) if isinstance(truth, Tile) else not truth
    value = evaluate(frame, node)
    frame.at(node)
    try:
        return truth_of(frame, value, what)
    except TileError as error:
        error.places = error.places or frame.places(node)
        raise


def _join_truth(frame: Frame, is_and: bool, left: bool | Tile, right: ast.expr, what: str) -> bool | Tile:
    """The truth of `left and right`, `left or right`; the right side is evaluated only where it decides."""
    if not isinstance(left, Tile):
        return condition(frame, right, what) if left is is_and else left
    if _has_no_effect(right):
        joined: Tile = frame.emit.binary("bitwise_and" if is_and else "bitwise_or", left, condition(frame, right, what))
        return joined

    def take_right() -> Any:
        return condition(frame, right, what)

    def take_left() -> Any:
        return not is_and

    chosen: bool | Tile = choose(frame, left, *((take_right, take_left) if is_and else (take_left, take_right)), right)
    return chosen


@handles(ast.BoolOp)
def _bool_op(frame: Frame, node: ast.BoolOp) -> Any:
    value = evaluate(frame, node.values[0])
    for right in node.values[1:]:
        value = _and_or(frame, isinstance(node.op, ast.And), value, right, node)
    return value


def _and_or(frame: Frame, is_and: bool, left: Any, right: ast.expr, node: ast.AST) -> Any:
    """`left and right`, `left or right`: the right side is evaluated only where it decides."""
    frame.at(node)
    truth = truth_of(frame, left, "'and'" if is_and else "'or'")
    if not isinstance(truth, Tile):
        return evaluate(frame, right) if truth is is_and else left
    if _has_no_effect(right):
        value = evaluate(frame, right)
        if isinstance(value, Tile | bool) and _is_bool(value) and left.dtype is bool_:
            frame.at(node)
            return frame.emit.binary("bitwise_and" if is_and else "bitwise_or", truth, value)

    def take_right() -> Any:
        return evaluate(frame, right)

    def take_left() -> Any:
        return left

    return choose(frame, truth, *((take_right, take_left) if is_and else (take_left, take_right)), node)


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool) or (value.dtype is bool_ and not value.shape)


def _has_no_effect(node: ast.expr) -> bool:
    return not any(isinstance(n, ast.Call | ast.BoolOp | ast.IfExp) for n in ast.walk(node))


@handles(ast.IfExp)
def _conditional(frame: Frame, node: ast.IfExp) -> Any:
    truth = condition(frame, node.test, "the condition")
    if not isinstance(truth, Tile):
        return evaluate(frame, node.body if truth else node.orelse)
    return choose(
        frame,
        truth,
        lambda: evaluate(frame, node.body),
        lambda: evaluate(frame, node.orelse),
        node,
    )


@handles(ast.Compare)
def _compare(frame: Frame, node: ast.Compare) -> Any:
    left = evaluate(frame, node.left)
    result: Any = True
    for kind, right_node in zip(node.ops, node.comparators, strict=True):
        right = evaluate(frame, right_node)
        frame.at(node)
        one = compare_pair(frame, kind, left, right)
        if result is True:
            result = one
        elif isinstance(result, Tile) or isinstance(one, Tile):
            result = frame.emit.binary("bitwise_and", result, one)
        else:
            result = result and one
        left = right
    return result


def compare_pair(frame: Frame, kind: ast.cmpop, x: Any, y: Any) -> Any:
    name = COMPARE.get(type(kind).__name__)
    if name is not None and (isinstance(x, Tile) or isinstance(y, Tile)):
        comparable = all(isinstance(v, Tile | Array) or is_number(v) for v in (x, y))
        if not comparable and name in ("equal", "not_equal"):
            return name == "not_equal"  # a number is never None or a string
        return frame.emit.compare(name, x, y)
    if is_run_time(x) or is_run_time(y):
        return _compare_run_time(frame, kind, x, y)
    try:
        return _COMPARE_PLAIN[type(kind)](x, y)
    except TypeError as error:
        raise TileTypeError(f"{describe(x)} and {describe(y)} do not compare: {error}") from None


def _compare_run_time(frame: Frame, kind: ast.cmpop, x: Any, y: Any) -> Any:
    if isinstance(kind, ast.Is | ast.IsNot):
        return (x is y) is isinstance(kind, ast.Is)
    if isinstance(x, tuple) and isinstance(y, tuple) and isinstance(kind, ast.Eq | ast.NotEq):
        same: Any = len(x) == len(y)
        for a, b in zip(x, y, strict=False):
            same = frame.emit.binary("bitwise_and", same, compare_pair(frame, ast.Eq(), a, b))
        if isinstance(kind, ast.Eq):
            return same
        return frame.emit.logical_not(same) if isinstance(same, Tile) else not same
    if isinstance(kind, ast.In | ast.NotIn) and isinstance(y, dict) and not is_run_time(x):
        return (x in y) is isinstance(kind, ast.In)
    if isinstance(kind, ast.In | ast.NotIn) and isinstance(y, tuple):
        found: Any = False
        for entry in y:
            same = compare_pair(frame, ast.Eq(), x, entry)
            if same is True:
                found = True
                break
            found = frame.emit.binary("bitwise_or", found, same)
        if isinstance(kind, ast.In):
            return found
        return frame.emit.logical_not(found) if isinstance(found, Tile) else not found
    raise TileTypeError(
        f"{describe(x)} and {describe(y)} do not compare; ct.max(x == value) tells whether it is in a tile"
    )


_COMPARE_PLAIN: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda x, y: x in y,
    ast.NotIn: lambda x, y: x not in y,
}

# ---------------------------------------------------------------------------------------------
# Attributes and subscripts


@handles(ast.Attribute)
def _attribute(frame: Frame, node: ast.Attribute) -> Any:
    if isinstance(node.value, ast.Name) and node.value.id in MODULES and not frame.knows(node.value.id):
        hint = module_advice(node.value.id, node.attr, set(dir(ct)))
        raise TileSyntaxError(f"the name '{node.value.id}' is not defined{hint}", frame.places(node))
    value = evaluate(frame, node.value)
    frame.at(node)
    return attribute(frame, value, node.attr)


def attribute(frame: Frame, value: Any, name: str) -> Any:
    if hasattr(type(value), "__tw_attribute__"):
        return value.__tw_attribute__(frame, name)
    if isinstance(value, Tile):
        return _tile_attribute(frame, value, name)
    if isinstance(value, Array):
        return _array_attribute(frame, value, name)
    if isinstance(value, Selection):
        return _attribute_of_chosen(frame, value, name)
    if is_number(value) and name in ("dtype", "shape", "ndim"):
        return {"dtype": constant_dtype(value), "shape": (), "ndim": 0}[name]
    if is_number(value) and name == "astype":
        return Method(value, name)
    if isinstance(value, Format | Range | Method | LocalFunction):
        raise TileTypeError(f"{describe(value)} has no attribute '{name}' in tile code; it has none")
    if type(value) is tuple and is_run_time(value):
        return Method(value, name)
    if records.is_property(value, name):
        return records.get_property(frame, value, name)
    try:
        found = getattr(value, name)
    except AttributeError:
        raise TileTypeError(f"{describe(value)} has no attribute '{name}'{_near(value, name)}") from None
    _note_attribute(frame, value, name, found)
    return frame.adopt(found)


def _attribute_of_chosen(frame: Frame, selection: Selection, name: str) -> Any:
    """Of one of several arrays or views: which one is decided when a method is called."""
    kind = type(selection.choices[0])
    if name in ARRAY_METHODS if kind is Array else callable(getattr(kind, name, None)):
        return Method(selection, name)
    return each(frame, selection, lambda choice: attribute(frame, choice, name))


def _near(value: Any, name: str) -> str:
    """What may be meant by an attribute that a module does not have."""
    if not isinstance(value, types.ModuleType):
        return advice(name, (n for n in dir(value) if not n.startswith("_")), "")
    is_ours = getattr(value, "kernel", None) is ct.kernel
    return advice(name, dir(value)) if is_ours else advice(name, dir(value), "")


def _note_attribute(frame: Frame, value: Any, name: str, found: Any) -> None:
    """Attributes of modules, classes and objects can be set; not those of what Python, NumPy and this package have."""
    if isinstance(value, types.ModuleType):
        frame.capture.note_read(vars(value), name, found)
        return
    owner = value if isinstance(value, type) else type(value)
    origin = owner.__module__.partition(".")[0]
    fixed = origin in ("builtins", "numpy", "ml_dtypes", "enum", "tilewright")
    if not fixed and (
        type(found) in _COMPARED or getattr(value, name, None) is found
    ):  # what is made anew cannot be told
        frame.capture.note_read(value, name, found)


_COMPARED = (int, float, bool, str, bytes, tuple, list, dict, set)


def _tile_attribute(frame: Frame, value: Tile, name: str) -> Any:
    if name == "dtype":
        return value.dtype
    if name == "shape":
        return value.shape
    if name == "ndim":
        return len(value.shape)
    if name == "T":
        return ops.OPS["transpose"](frame, value, None, None)
    if name == "item" or name in ct.TILE_METHODS:
        return Method(value, name)
    known = ", ".join(("dtype", "shape", "ndim", "T", "item", *ct.TILE_METHODS))
    near = difflib.get_close_matches(name, ct.TILE_METHODS, n=1)
    meant = f"; did you mean {near[0]}?" if near else f"; it has {known}"
    instead = f"; write {ELSEWHERE[name]}" if name in ELSEWHERE else meant
    hint = f"; use ct.{name}(x)" if name in ct.OPS else instead
    raise TileTypeError(f"a tile has no attribute '{name}'{hint}")


def _array_attribute(frame: Frame, value: Array, name: str) -> Any:
    if name == "dtype":
        return value.dtype
    if name == "ndim":
        return value.ndim
    if name == "shape":
        return tuple(_extent(frame, value, d) for d in range(value.ndim))
    if name == "strides":
        return tuple(_stride(frame, value, d) for d in range(value.ndim))
    if name in ARRAY_METHODS:
        return views.attribute(frame, value, name)
    near = difflib.get_close_matches(name, ct.ARRAY_ATTRIBUTES, n=1)
    known = f"did you mean {near[0]}?" if near else f"it has {', '.join(ct.ARRAY_ATTRIBUTES)}"
    if name in ct.OPS:
        known = f"use ct.{name}"
    raise TileTypeError(f"an array has no attribute '{name}' in tile code; {known}")


def _extent(frame: Frame, array: Array, axis: int) -> Any:
    _, length = array.windows.get(axis, (None, array.extents.get(axis)))
    return length if isinstance(length, int) else frame.emit.cast(memory.extent(frame, array, axis), array.index_dtype)


def _stride(frame: Frame, array: Array, axis: int) -> Any:
    if axis in array.strides:
        return array.strides[axis]
    return frame.emit.typed("tile.stride", [array.ir], {"axis": axis}, int64, ())


@handles(ast.Subscript)
def _subscript(frame: Frame, node: ast.Subscript) -> Any:
    value = evaluate(frame, node.value)
    index = index_of(frame, node.slice)
    frame.at(node)
    if isinstance(value, Tile):
        return shapes.new_axes(frame, value, index)
    return entry_of(frame, value, index)


def entry_of(frame: Frame, value: Any, index: Any) -> Any:
    """value[index] of what is no tile."""
    if isinstance(value, Selection):
        return each(frame, value, lambda choice: entry_of(frame, choice, index))
    if records.method_of(value, "__getitem__"):
        return records.call_method(frame, value, "__getitem__", [index], {})
    if isinstance(value, Array) and frame.capture.rules.simt:
        return simt_arrays.read(frame, value, index)
    if isinstance(value, Array):
        raise TileTypeError(
            f"the array '{value.name}' cannot be indexed; use ct.load for a tile, or ct.gather for single elements"
        )
    if isinstance(index, Tile) and isinstance(value, tuple) and index.known is not None:
        index = index.known
    if isinstance(index, Tile) and isinstance(value, tuple) and not index.shape and index.dtype.is_integral:
        return _run_time_entry(frame, value, index)
    if is_run_time(index) or (isinstance(index, slice) and is_run_time((index.start, index.stop, index.step))):
        raise TileTypeError(
            f"an index into {describe(value)} must be a constant; choose by 'if' and 'else', or ct.where"
        )
    try:
        return frame.adopt(value[index])
    except (TypeError, IndexError, KeyError) as error:
        told = f"it has {len(value)}" if isinstance(error, IndexError) and isinstance(value, tuple) else str(error)
        kind = TileTypeError if isinstance(error, TypeError) else TileValueError
        raise kind(f"{describe(value)} has no entry {index!r}; {told}") from None


def _run_time_entry(frame: Frame, values: tuple[Any, ...], index: Tile) -> Any:
    """An entry of a tuple of arrays that the running kernel chooses."""
    if not are_alike(values) or any(isinstance(v, Selection) for v in values):
        raise TileTypeError(
            f"an index into {describe(values)} must be a constant; a run-time index chooses between arrays, or views, "
            "of one dtype and as many dimensions"
        )
    return entry(frame.emit, values, index)


def index_of(frame: Frame, node: ast.expr) -> Any:
    if isinstance(node, ast.Slice):
        parts = (node.lower, node.upper, node.step)
        return slice(*(None if part is None else evaluate(frame, part) for part in parts))
    if isinstance(node, ast.Tuple):
        return tuple(index_of(frame, part) for part in node.elts)
    return evaluate(frame, node)


# ---------------------------------------------------------------------------------------------
# Calls


@handles(ast.Call)
def _call(frame: Frame, node: ast.Call) -> Any:
    function = evaluate(frame, node.func)
    if function is ct.static_eval:
        return _static_eval(frame, node)
    args = _items(frame, node.args)
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


def _static_eval(frame: Frame, node: ast.Call) -> Any:
    """ct.static_eval(expression): Python itself computes it, with all that Python has."""
    if len(node.args) != 1 or node.keywords:
        raise TileTypeError("ct.static_eval takes one expression")
    (expression,) = node.args
    names = {n.id: n for n in ast.walk(expression) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    values = {}
    for name, use in names.items():
        try:
            values[name] = frame.lookup(use)
        except TileSyntaxError:
            continue  # a variable of a comprehension, or a mistake that Python reports
    code = compile(ast.Expression(expression), frame.source.file, "eval")
    try:
        value = eval(code, {**frame.source.function.__globals__, **values})
    except Exception as error:
        told = f"ct.static_eval: {type(error).__name__}: {error}; expected Python on constants only"
        raise TileStaticEvalError(told, frame.places(node)) from error
    return frame.adopt(value)


class GeneratorContext:
    """A call of a function under `contextlib.contextmanager`, not yet entered."""

    def __init__(self, enter: Callable[[Callable[[Any], None]], None]) -> None:
        self.enter = enter


def _generator_context(
    frame: Frame, function: types.FunctionType, args: list[Any], keywords: dict[str, Any], node: ast.AST
) -> GeneratorContext:
    """What a call of `function`, a generator under `contextlib.contextmanager`, gives."""

    def enter(run: Callable[[Any], None]) -> None:
        runs = 0

        def on_yield(called: Frame, value: Any) -> None:
            nonlocal runs
            runs += 1
            if isinstance(called.exit_state(), Tile) or called.loops or runs > 1:
                raise TileSyntaxError(f"'{function.__name__}' must yield once, outside of branches and loops")
            run(value)

        inline(frame, function, args, keywords, node, on_yield)
        if runs != 1:
            raise TileSyntaxError(f"'{function.__name__}' does not yield", frame.places(node))

    return GeneratorContext(enter)


def call(frame: Frame, function: Any, args: list[Any], keywords: dict[str, Any], node: Any) -> Any:
    name = getattr(function, "__tw_op__", None)
    if name is not None:
        return _call_op(frame, name, function, args, keywords)
    if isinstance(function, Method):
        return _call_method(frame, function, args, keywords)
    if hasattr(type(function), "__tw_call__"):
        return _call_special(frame, function, args, keywords)
    if isinstance(function, DType):
        return _call_dtype(frame, function, args, keywords)
    if getattr(function, "__tw_host_only__", False):
        raise TileTypeError(
            f"'{function.__name__}' is a function of the host, by ct.function(tile=False); tile code cannot call it"
        )
    if isinstance(function, types.FunctionType) and is_context_manager(function):
        return _generator_context(frame, function.__wrapped__, args, keywords, node)  # type: ignore[attr-defined]
    if isinstance(function, types.FunctionType) and function in BUILTINS:
        return _call_builtin(frame, BUILTINS[function], function, args, keywords)
    if isinstance(function, types.FunctionType | LocalFunction):
        return inline(frame, function, args, keywords, node)
    if isinstance(function, types.MethodType) and isinstance(function.__func__, types.FunctionType):
        return inline(frame, function.__func__, [function.__self__, *args], keywords, node)
    if isinstance(function, functools.partial):
        return call(frame, function.func, [*function.args, *args], {**function.keywords, **keywords}, node)
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
        builtin = BUILTINS.get(function)
    except TypeError:  # not hashable
        builtin = None
    if builtin is not None:
        return _call_builtin(frame, builtin, function, args, keywords)
    return _call_plain(frame, function, args, keywords)


class _Binder:
    """Binds the arguments of calls to the parameters of a function, as Python does."""

    def __init__(self, function: Any) -> None:
        self.made_from = _parameters_of(function)
        # Without annotations, so that it reads well in a message.
        empty = inspect.Parameter.empty
        parameters = [p.replace(annotation=empty) for p in inspect.signature(function).parameters.values()]
        self.signature = inspect.Signature(parameters)
        kinds = inspect.Parameter
        self.positional = [p.name for p in parameters if p.kind <= kinds.POSITIONAL_OR_KEYWORD]
        self.only_by_name = [p.name for p in parameters if p.kind == kinds.KEYWORD_ONLY]
        by_name = [p.name for p in parameters if p.kind == kinds.POSITIONAL_OR_KEYWORD]
        self.by_name = frozenset((*by_name, *self.only_by_name))
        self.defaults = {p.name: p.default for p in parameters if p.default is not empty}
        self.is_plain = len(self.positional) + len(self.only_by_name) == len(parameters)

    def bind(self, name: str, args: list[Any], keywords: dict[str, Any]) -> dict[str, Any]:
        """Parameter -> value, with defaults."""
        values = self._bind_plain(args, keywords)
        if values is not None:
            return values
        try:
            bound = self.signature.bind(*args, **keywords)
        except TypeError as error:
            unknown = [k for k in keywords if k not in self.by_name]
            hint = keyword_advice(unknown[0], self.by_name) if unknown else ""
            if len(args) > len(self.positional):
                hint = f"; it takes {len(self.positional)} by position, the others by name"
            signature = re.sub(r"<(\w+\.\w+): [^>]*>", r"ct.\1", str(self.signature))
            raise TileTypeError(f"{name}{signature}: {error}{hint}") from None
        bound.apply_defaults()
        return bound.arguments

    def arguments(self, name: str, args: list[Any], keywords: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """The values by position and those by name."""
        values = self.bind(name, args, keywords)
        if not self.is_plain:
            bound = inspect.BoundArguments(self.signature, values)
            return list(bound.args), bound.kwargs
        return [values[n] for n in self.positional], {n: values[n] for n in self.only_by_name}

    def _bind_plain(self, args: list[Any], keywords: dict[str, Any]) -> dict[str, Any] | None:
        """The same, quickly, where nothing is wrong and there are no '*' and '**' parameters."""
        if not self.is_plain or len(args) > len(self.positional):
            return None
        values = dict(zip(self.positional, args, strict=False))
        for key, value in keywords.items():
            if key in values or key not in self.by_name:
                return None
            values[key] = value
        for key, value in self.defaults.items():
            values.setdefault(key, value)
        return values if len(values) == len(self.signature.parameters) else None


_binders: weakref.WeakKeyDictionary[Any, _Binder] = weakref.WeakKeyDictionary()


def _binder(function: Any) -> _Binder:
    binder = _binders.get(function)
    if binder is None or not all(map(operator.is_, binder.made_from, _parameters_of(function))):
        binder = _binders[function] = _Binder(function)
    return binder


def _parameters_of(function: Any) -> tuple[Any, ...]:
    """What the parameters of a function follow from, which can be set."""
    return tuple(getattr(function, part, None) for part in ("__code__", "__defaults__", "__kwdefaults__"))


def _call_op(frame: Frame, name: str, function: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
    positional, by_name = _binder(function).arguments(f"ct.{name}", args, keywords)
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
    name = type(function).__name__.strip("_")
    positional, by_name = _Binder(function).arguments(name, args, keywords)
    return function.__tw_call__(frame, *positional, **by_name)


def _call_method(frame: Frame, method: Method, args: list[Any], keywords: dict[str, Any]) -> Any:
    receiver, name = method.receiver, method.name
    if isinstance(receiver, Selection):
        return each(frame, receiver, lambda v: call(frame, attribute(frame, v, name), args, keywords, frame.node))
    if isinstance(receiver, tuple):
        raise TileTypeError(f"the method '{name}' of a tuple of run-time values is not supported")
    if name == "item":
        return shapes.item(frame, receiver)
    if name in ("reshape", "permute") and len(args) > 1:
        args = [tuple(args)]
    return _call_op(frame, name, ct.TILE_METHODS[name], [receiver, *args], keywords)


def _call_dtype(frame: Frame, dtype: DType, args: list[Any], keywords: dict[str, Any]) -> Any:
    if len(args) > 1 or keywords:
        raise TileTypeError(f"ct.{dtype} takes one value, found {len(args) + len(keywords)}")
    return ops.OPS["astype"](frame, *(args or (0,)), dtype)


def _call_plain(frame: Frame, function: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
    """A function that is not tile code, on constants: Python computes it."""
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None)
    if not callable(function):
        raise TileTypeError(f"{describe(function)} cannot be called; expected an operation, a function or a method")
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
        expected = "expected an operation of tilewright.tile, a Python function, or a @ct.function"
        told = _in_tile_code(str(name).rsplit(".", 1)[-1])
        raise TileSyntaxError(f"{name or repr(function)} cannot be called in tile code; {told or expected}")
    if isinstance(receiver, dict | tuple) and name in _READS_OF_CONTAINERS:
        return frame.adopt(function(*args, **keywords))
    if is_run_time(tuple(args)) or is_run_time(tuple(keywords.values())):
        told = _in_tile_code(str(name).rsplit(".", 1)[-1])
        whole = name if module == "builtins" else f"{module}.{name}"
        raise TileTypeError(f"'{whole}' works on constants only; {told or 'expected no run-time values'}")
    try:
        return frame.adopt(function(*args, **keywords))
    except Exception as error:
        raise TileValueError(f"'{name}' of constants: {error}") from None


def _in_tile_code(name: str) -> str:
    """What tile code has for a function of NumPy, Triton or another system; empty where there is nothing known."""
    found = getattr(ct, name, None)
    is_here = name in ct.OPS or isinstance(found, DType) or getattr(found, "__module__", "") == "tilewright.library"
    return f"use ct.{name}" if is_here else f"write {ELSEWHERE[name]}" if name in ELSEWHERE else ""


_READS_OF_CONTAINERS = frozenset(f"dict.{n}" for n in ("get", "items", "keys", "values", "copy"))
_REFUSED = frozenset((eval, exec, compile, open, input, globals, locals, vars, setattr, delattr, breakpoint))

# ---------------------------------------------------------------------------------------------
# Builtins that have a meaning on tiles

Builtin = Callable[..., Any]


def _call_builtin(frame: Frame, builtin: Builtin, function: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
    try:
        return builtin(frame, *args, **keywords)
    except TileError:
        raise
    except TypeError as error:
        raise TileTypeError(f"{function.__name__}: {error}") from None
    except (ValueError, ArithmeticError) as error:
        raise TileValueError(f"{function.__name__}: {error}") from None


def _range(frame: Frame, *bounds: Any) -> Range:
    if not 1 <= len(bounds) <= 3:
        raise TileTypeError(f"range takes one to three values, found {len(bounds)}")
    for bound in bounds:
        if not (type(bound) is int or isinstance(bound, Tile)):
            raise TileTypeError(f"a bound of range must be an integer, found {describe(bound)}")
    start, stop = (0, bounds[0]) if len(bounds) == 1 else bounds[:2]
    return Range(start, stop, bounds[2] if len(bounds) == 3 else 1)


def _len(frame: Frame, value: Any) -> int:
    if isinstance(value, Tile | Array | Format | Range) or not hasattr(value, "__len__"):
        hint = "; its extent is x.shape[0]" if isinstance(value, Tile | Array) else ""
        raise TileTypeError(f"len needs a tuple, found {describe(value)}{hint}")
    return len(value)


def _extremum(name: str, plain: Builtin) -> Builtin:
    def choose(frame: Frame, *args: Any, **keywords: Any) -> Any:
        values = args[0] if len(args) == 1 and isinstance(args[0], tuple) else args
        if not is_run_time(tuple(values)):
            return plain(*args, **keywords)
        if keywords or not values or any(isinstance(v, Array) for v in values):
            raise TileTypeError(f"{plain.__name__} of run-time values takes only scalars and tiles")
        if len(args) == 1 and isinstance(args[0], Tile):
            raise TileTypeError(f"{plain.__name__} of one tile: use ct.{plain.__name__}(x)")
        result = values[0]
        for value in values[1:]:
            result = frame.emit.binary(name, result, value)
        return result

    return choose


def _abs(frame: Frame, value: Any) -> Any:
    return frame.emit.unary("abs", value)


def _to_number(plain: type, dtype: DType) -> Builtin:
    def convert(frame: Frame, value: Any = 0) -> Any:
        if not isinstance(value, Tile):
            if isinstance(value, Array):
                raise TileTypeError(f"{plain.__name__} needs a scalar, found {describe(value)}")
            return plain(value)
        if value.shape:
            raise TileTypeError(
                f"{plain.__name__} needs a scalar, found {describe(value)}; convert a tile by x.astype(ct.{dtype})"
            )
        if plain is int and value.dtype.is_integral:
            return value
        return frame.emit.cast(value, dtype)

    return convert


def _print(frame: Frame, *args: Any, **keywords: Any) -> None:
    unknown = keywords.keys() - {"sep", "end"}
    if unknown:
        raise TileTypeError(f"print in tile code takes no '{min(unknown)}'; it takes sep and end")
    ops.OPS["print"](frame, *args, **{"sep": " ", "end": "\n", **keywords})


def _isinstance(frame: Frame, value: Any, kinds: Any) -> bool:
    return not isinstance(value, Tile | Array | Format) and isinstance(value, kinds)


def _pow(frame: Frame, x: Any, y: Any) -> Any:
    return frame.emit.binary("pow", x, y)


BUILTINS: dict[Any, Builtin] = {
    range: _range,
    len: _len,
    min: _extremum("minimum", min),
    max: _extremum("maximum", max),
    abs: _abs,
    int: _to_number(int, int32),
    float: _to_number(float, float32),
    bool: _to_number(bool, bool_),
    print: _print,
    isinstance: _isinstance,
    pow: _pow,
    divmod: ops.OPS["divmod"],
    type: records.type_of,
    dataclasses.replace: records.replace,
    math.prod: lambda frame, values, *, start=1: _product(frame, values, start),
    sum: lambda frame, values, start=0: _sum(frame, values, start),
}


def _compare_by_function(kind: ast.cmpop, frame: Frame, x: Any, y: Any) -> Any:
    return compare_pair(frame, kind, x, y)


def _operator_functions() -> Iterator[tuple[Any, Builtin]]:
    """operator.add and its like, which are the operators."""
    of_node = {"Mult": "mul", "Div": "truediv", "MatMult": "matmul", "BitAnd": "and_", "BitOr": "or_", "BitXor": "xor"}
    of_node |= {"NotEq": "ne", "LtE": "le", "GtE": "ge"}
    for node, name in BINARY.items():
        function = getattr(operator, of_node.get(node, node.lower()))
        yield function, lambda frame, x, y, name=name: binary(frame, name, x, y, frame.node)
    for node in COMPARE:
        function, kind = getattr(operator, of_node.get(node, node.lower())), getattr(ast, node)()
        yield function, functools.partial(_compare_by_function, kind)
    yield operator.neg, lambda frame, x: ops.OPS["negative"](frame, x)


BUILTINS.update(_operator_functions())


def _sum(frame: Frame, values: Any, start: Any) -> Any:
    if not isinstance(values, tuple):
        raise TileTypeError(f"sum needs a tuple, found {describe(values)}; ct.sum adds up a tile")
    for value in values:
        start = frame.emit.binary("add", start, value)
    return start


def _product(frame: Frame, values: Any, start: Any) -> Any:
    if not isinstance(values, tuple):
        raise TileTypeError(f"math.prod needs a tuple, found {describe(values)}")
    for value in values:
        start = frame.emit.binary("mul", start, value)
    return start


# ---------------------------------------------------------------------------------------------
# Functions of the user, whose bodies are captured where they are called

MOST_CALLS_OF_ITSELF = 64


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
        env = _bind_local(function, args, keywords)
        called = Frame(frame.capture, function.frame.source, env, frame.places(node), function.frame)
        key, body, name = function.node, function.node.body, function.name
    else:
        env = _binder(function).bind(function.__name__, args, keywords)
        env = {key: frame.adopt(value) for key, value in env.items()}
        source = source_of(function)
        for part in ("__code__", "__defaults__", "__kwdefaults__"):
            if part == "__code__" or getattr(function, part) is not None:
                frame.capture.note_read(function, part, getattr(function, part))
        of_library = frame.of_library or function.__module__ == "tilewright.library"
        called = Frame(frame.capture, source, env, frame.places(node), of_library=of_library)
        key, body, name = function.__code__, source.tree.body, function.__name__
    if frame.capture.active.count(key) >= MOST_CALLS_OF_ITSELF:
        raise TileRecursionError(
            f"recursion: '{name}' calls itself, directly or through others, and has not ended after "
            f"{MOST_CALLS_OF_ITSELF} calls; its end must depend on constants; tile code has loops instead",
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
    return _returned(called, name)


def _returned(called: Frame, name: str) -> Any:
    returned = called.env[RETURN]
    value = called.env.get(VALUE)
    if returned is False:
        return None
    if returned is not True and value is not None:
        raise TileTypeError(
            f"'{name}' returns {describe_result(value)} on some paths and nothing on others; "
            "return a value on every path"
        )
    if type(value) is Unusable:
        raise TileTypeError(value.message, value.places)
    return value


def describe_result(value: Any) -> str:
    return "a value" if type(value) is Unusable else describe(value)


def is_context_manager(function: types.FunctionType) -> bool:
    """Whether a function was made by `contextlib.contextmanager` of a generator."""
    inner = getattr(function, "__wrapped__", None)
    return function.__module__ != "contextlib" and inspect.isgeneratorfunction(inner) and inner is not None


def _bind_local(function: LocalFunction, args: list[Any], keywords: dict[str, Any]) -> dict[str, Any]:
    signature = _local_signature(function)
    try:
        bound = signature.bind(*args, **keywords)
    except TypeError as error:
        names = ", ".join(str(p) for p in signature.parameters.values())
        raise TileTypeError(f"'{function.name}' takes ({names}): {error}") from None
    bound.apply_defaults()
    return dict(bound.arguments)


def _local_signature(function: LocalFunction) -> inspect.Signature:
    args, kinds = function.node.args, inspect.Parameter
    plain: list[tuple[ast.arg, Any]] = [(a, kinds.POSITIONAL_ONLY) for a in args.posonlyargs]
    plain += [(a, kinds.POSITIONAL_OR_KEYWORD) for a in args.args]
    defaults = [kinds.empty] * (len(plain) - len(function.defaults)) + list(function.defaults)
    found = [kinds(a.arg, kind, default=d) for (a, kind), d in zip(plain, defaults, strict=True)]
    if args.vararg:
        found.append(kinds(args.vararg.arg, kinds.VAR_POSITIONAL))
    by_name = function.keyword_defaults
    found += [kinds(a.arg, kinds.KEYWORD_ONLY, default=by_name.get(a.arg, kinds.empty)) for a in args.kwonlyargs]
    if args.kwarg:
        found.append(kinds(args.kwarg.arg, kinds.VAR_KEYWORD))
    return inspect.Signature(found)


__all__ = [
    "BINARY",
    "BUILTINS",
    "Place",
    "binary",
    "call",
    "compare_pair",
    "condition",
    "entry_of",
    "evaluate",
    "handles",
    "index_of",
    "inline",
    "local_function",
    "truth_of",
    "unsupported",
]
