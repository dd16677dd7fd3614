"""Operators, comparisons and conditions. Constants are computed by Python itself."""

from __future__ import annotations

import ast
import operator
import types
from collections.abc import Callable
from typing import Any

from .. import tile as ct
from ..dtype import bool_, int32
from ..errors import TileError, TileTypeError, TileValueError
from ..structure import parts_of
from . import elementwise, ops, texts
from .branches import choose
from .emit import CONSTANT_LIMIT, fold
from .expressions import evaluate, handles
from .frame import Frame
from .lengths import check_format
from .simt import operators as simt_operators
from .values import Array, Format, Method, Range, Tile, describe, is_number, is_run_time, same_form

BINARY = {name: function.__tw_op__ for name, function in ct.BINARY_OPERATORS.items()}  # type: ignore[attr-defined]
COMPARE = {name: function.__tw_op__ for name, function in ct.COMPARISONS.items()}  # type: ignore[attr-defined]


def binary(frame: Frame, name: str, x: Any, y: Any, node: ast.AST) -> Any:
    """x and y under an operator of Python."""
    if not frame.of_library:
        frame.at(node)
        found = frame.capture.rules.binary(frame, name, x, y)
        if found is not None:
            return found
    if is_number(x) and is_number(y):
        return fold(name, x, y)
    if frame.capture.rules.simt:
        found = simt_operators.binary(frame, name, x, y)
        if found is not None:
            return found
    if isinstance(x, str | Format) and isinstance(y, str | Format) and name == "add":
        return texts.text([*texts.parts_of(x), *texts.parts_of(y)])
    if (not is_run_time(x) and not is_run_time(y)) or isinstance(x, tuple) or isinstance(y, tuple):
        return _plain_binary(name, x, y)
    frame.at(node)
    if name == "matmul":
        if frame.capture.rules.simt and not frame.of_library:
            raise TileTypeError("a thread has no product of matrices; write a loop over the elements")
        return ops.OPS["matmul"](frame, x, y)
    return frame.emit.binary(name, x, y)


def _operand_advice(*operands: Any) -> str:
    if isinstance(operands[0], str | Format):
        return "; of values that the running kernel knows an f-string makes text, and ct.printf prints it"
    for value in operands:
        if isinstance(value, tuple):
            return "; ct.astile makes a tile of constants"
        if isinstance(value, Method):
            return f"; call it, as in x.{value.name}(...)"
        if value is None:
            return "; what gives no value, as ct.store, is no operand"
    return "; expected tiles or numbers"


def _plain_binary(name: str, x: Any, y: Any) -> Any:
    """An operator on what is neither tile nor number: text, tuples, and classes for isinstance."""
    if name == "bitwise_or" and isinstance(x, type | types.UnionType) and isinstance(y, type | types.UnionType):
        return x | y
    joins = name == "add" and isinstance(x, tuple) and isinstance(y, tuple)
    repeats = name == "mul" and isinstance(x, tuple) and type(y) is int
    fills = isinstance(x, str) and name == "mod" and not is_run_time(y)
    texts = fills or (isinstance(x, str) and isinstance(y, str | int) and name in ("add", "mul"))
    if not (joins or repeats or texts):
        raise TileTypeError(f"ct.{name} of {describe(x)} and {describe(y)} is not defined{_operand_advice(x, y)}")
    if name == "mul" and isinstance(y, int) and len(x) * y > CONSTANT_LIMIT:
        raise TileValueError(f"ct.{name}: the result is too large to be a constant: {len(x)} times {y}")
    if fills:
        check_format(x, y if isinstance(y, tuple) else (y,))
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
    if not frame.of_library:
        found = frame.capture.rules.unary(frame, type(node.op).__name__, value)
        if found is not None:
            return found
    if frame.capture.rules.simt:
        found = simt_operators.unary(frame, type(node.op).__name__, value)
        if found is not None:
            return found
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
    if name is not None and not frame.of_library:
        found = frame.capture.rules.compare(frame, name, x, y)
        if found is not None:
            return found
    if name is not None and (isinstance(x, Tile) or isinstance(y, Tile)):
        comparable = all(isinstance(v, Tile | Array) or is_number(v) for v in (x, y))
        if not comparable and name in ("equal", "not_equal"):
            return name == "not_equal"  # a number is never None or a string
        return frame.emit.compare(name, x, y)
    if frame.capture.rules.simt and isinstance(kind, ast.Eq | ast.NotEq):
        found = simt_operators.compare(frame, isinstance(kind, ast.Eq), x, y)
        if found is not None:
            return found
    if same_form(x, y) and not isinstance(x, tuple) and isinstance(kind, ast.Eq | ast.NotEq):
        return _compare_parts(frame, kind, x, y)
    if is_run_time(x) or is_run_time(y):
        return _compare_run_time(frame, kind, x, y)
    try:
        return _COMPARE_PLAIN[type(kind)](x, y)
    except TypeError as error:
        raise TileTypeError(f"{describe(x)} and {describe(y)} do not compare: {error}") from None


def _compare_parts(frame: Frame, kind: ast.cmpop, x: Any, y: Any) -> Any:
    """Whether tuples, or records of one form, hold the same."""
    a, b = parts_of(x) or [], parts_of(y) or []
    same: Any = len(a) == len(b)
    for left, right in zip(a, b, strict=False):
        same = frame.emit.binary("bitwise_and", same, compare_pair(frame, ast.Eq(), left, right))
    if isinstance(kind, ast.Eq):
        return same
    return frame.emit.logical_not(same) if isinstance(same, Tile) else not same


def _is_truth(value: Any) -> bool:
    return isinstance(value, bool) or (isinstance(value, Tile) and value.dtype is bool_ and not value.shape)


def _compare_run_time(frame: Frame, kind: ast.cmpop, x: Any, y: Any) -> Any:
    if isinstance(kind, ast.Is | ast.IsNot):
        if _is_truth(x) and _is_truth(y):  # of each there is one object
            same = frame.emit.compare("equal", *(frame.emit.cast(frame.emit.tile(v, "'is'"), int32) for v in (x, y)))
            return same if isinstance(kind, ast.Is) else frame.emit.logical_not(same)
        if isinstance(x, Tile) and isinstance(y, Tile):
            said = "is" if isinstance(kind, ast.Is) else "is not"
            raise TileTypeError(f"'{said}' asks whether a value is None, found two tiles; == compares their elements")
        return (x is y) is isinstance(kind, ast.Is)
    if isinstance(x, tuple) and isinstance(y, tuple) and isinstance(kind, ast.Eq | ast.NotEq):
        return _compare_parts(frame, kind, x, y)
    if isinstance(kind, ast.In | ast.NotIn) and isinstance(y, dict) and not is_run_time(x):
        return (x in y) is isinstance(kind, ast.In)
    if isinstance(kind, ast.In | ast.NotIn) and isinstance(y, tuple):
        found: Any = False
        for entry in y:
            if any(isinstance(v, Tile) and v.shape for v in (x, entry)):
                raise TileTypeError(f"'in' compares scalars, found {describe(x)} and {describe(entry)}")
            same = compare_pair(frame, ast.Eq(), x, entry)
            if same is True:
                found = True
                break
            found = frame.emit.binary("bitwise_or", found, same)
        if isinstance(kind, ast.In):
            return found
        return frame.emit.logical_not(found) if isinstance(found, Tile) else not found
    if any(isinstance(v, Array) for v in (x, y)) and not isinstance(kind, ast.In | ast.NotIn):
        advice = "load a tile of the array first, with ct.load or ct.gather"
    elif isinstance(kind, ast.In | ast.NotIn):
        advice = "ct.max(x == value) tells whether it is in a tile"
    elif isinstance(x, tuple) and isinstance(y, tuple):
        advice = "of run-time values there are == and !=; compare their elements one by one"
    else:
        advice = "expected tiles and numbers"
    if frame.capture.rules.simt:
        advice = "expected two numbers, or == of values of one type"
    raise TileTypeError(f"{describe(x)} and {describe(y)} do not compare; {advice}")


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
