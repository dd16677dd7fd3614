"""Static evaluation: Python itself computes the arguments of ct.static_eval, ct.static_assert, ct.static_iter and
ct.static_exception.

What is known only when the kernel runs is a symbol there. It has the dtype, the shape and the methods that it has in
tile code, can be passed on and given back, and takes part in arithmetic, which becomes ops. It has no value: what asks
for one raises TileStaticEvalError, as does an operation that is no arithmetic.
"""

from __future__ import annotations

import ast
import itertools
import operator
import types
from collections.abc import Callable, Iterable
from typing import Any

from .. import tile as ct
from ..errors import (
    StaticException,
    TileError,
    TileStaticAssertionError,
    TileStaticEvalError,
    TileSyntaxError,
    TileTypeError,
)
from ..structure import is_record, parts_of, with_parts
from . import records
from .attributes import attribute
from .elements import MOST
from .expressions import evaluate
from .frame import Frame
from .ops import OPS
from .values import Array, Format, LocalFunction, Method, Range, Selection, Tile, describe, is_numpy_scalar

_ARITHMETIC = {f.__tw_op__ for f in (*ct.BINARY_OPERATORS.values(), *ct.COMPARISONS.values())}  # type: ignore[attr-defined]
_ARITHMETIC |= {"negative", "bitwise_not", "minimum", "maximum", "cdiv", "divmod"}

KEYWORDS = {"static_eval", "static_assert", "static_iter", "static_exception"}


class Symbol:
    """A value of tile code inside of a static evaluation."""

    __slots__ = ("_frame", "_value")

    __array_ufunc__ = None  # NumPy's scalars leave arithmetic to it

    def __init__(self, frame: Frame, value: Any) -> None:
        self._frame = frame
        self._value = value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _shown(self._frame, attribute(self._frame, self._value, name))

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        if isinstance(self._value, Method | LocalFunction) or _is_special(self._value):
            raise _not_inside(f"{getattr(self._value, '__name__', None) or self._value.name}()")
        raise TileStaticEvalError(f"{describe(self._value)} cannot be called")

    def _has_no_value(self, *_: Any) -> Any:
        raise TileStaticEvalError(
            f"{describe(self._value)} has no value at compile time; expected constants, shapes and dtypes"
        )

    __bool__ = __int__ = __index__ = __float__ = __len__ = __iter__ = __getitem__ = _has_no_value

    def __repr__(self) -> str:
        value = self._value
        if isinstance(value, Tile):
            return f"<tile[{value.dtype}, {value.shape}]>"
        if isinstance(value, Array):
            extents = ", ".join(str(value.extents.get(axis, "?")) for axis in range(value.ndim))
            return f"<array[{value.dtype}, ({extents}{',' if value.ndim == 1 else ''})]>"
        return f"<{describe(value)}>"

    __hash__ = object.__hash__


def _not_inside(what: str) -> TileStaticEvalError:
    return TileStaticEvalError(f"{what} cannot be called in a static evaluation; call it before, and name its result")


def _operator(name: str, swapped: bool) -> Callable[[Symbol, Any], Any]:
    def apply(self: Symbol, other: Any) -> Any:
        operands = (other, self) if swapped else (self, other)
        return _operation(self._frame, name, *operands)

    return apply


def _operation(frame: Frame, name: str, *operands: Any) -> Any:
    return _shown(frame, OPS[name](frame, *(frame.adopt(_hidden(v)) for v in operands)))


def _add_operators() -> None:
    methods = {"Mult": "mul", "Div": "truediv", "MatMult": "matmul", "BitAnd": "and", "BitOr": "or", "BitXor": "xor"}
    for node, function in ct.BINARY_OPERATORS.items():
        method, name = methods.get(node, node.lower()), function.__tw_op__  # type: ignore[attr-defined]
        setattr(Symbol, f"__{method}__", _operator(name, False))
        setattr(Symbol, f"__r{method}__", _operator(name, True))
    methods = {"NotEq": "ne", "LtE": "le", "GtE": "ge"}
    for node, function in ct.COMPARISONS.items():
        name = function.__tw_op__  # type: ignore[attr-defined]
        setattr(Symbol, f"__{methods.get(node, node.lower())}__", _operator(name, False))
    for method, name in (("neg", "negative"), ("invert", "bitwise_not")):
        setattr(Symbol, f"__{method}__", lambda self, name=name: _operation(self._frame, name, self))


_add_operators()


def _shown(frame: Frame, value: Any) -> Any:
    """A value as Python sees it."""
    if isinstance(value, Tile) and value.known is not None:
        return value.known
    if isinstance(value, Tile | Array | Selection | Method | LocalFunction | Format | Range) or _is_special(value):
        return Symbol(frame, value)
    return _within(value, lambda v: _shown(frame, v))


def _is_special(value: Any) -> bool:
    return hasattr(type(value), "__tw_call__") or hasattr(type(value), "__tw_attribute__")


def _hidden(value: Any) -> Any:
    """What Python gave back, as a value."""
    return value._value if isinstance(value, Symbol) else _within(value, _hidden)


def _within(value: Any, change: Callable[[Any], Any]) -> Any:
    """A tuple, list, dict or record with its parts changed; the same object where none of them is."""
    parts = value if type(value) is list else parts_of(value)
    if parts is None:
        return value
    changed = [change(v) for v in parts]
    if all(map(operator.is_, parts, changed)):
        return value
    return changed if type(value) is list else with_parts(value, changed)


class _Operations:
    """What a call of ct.NAME does while Python computes."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame

    def __call__(self, name: str, *args: Any, **keywords: Any) -> Any:
        if name not in _ARITHMETIC:
            raise _not_inside(f"ct.{name}()")
        return _shown(self.frame, OPS[name](self.frame, *(self.frame.adopt(_hidden(v)) for v in args), **keywords))


def evaluated(frame: Frame, expression: ast.expr, what: str, take: Callable[[Any], Any] = lambda value: value) -> Any:
    """What Python makes of an expression, and `take` of that."""
    assigned = [n.target.id for n in ast.walk(expression) if isinstance(n, ast.NamedExpr)]
    if assigned:
        raise TileSyntaxError(f"{what} may not assign a variable, as it does '{assigned[0]}'; assign it before")
    names = {n.id: n for n in ast.walk(expression) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    own = {name for n in ast.walk(expression) if (name := _bound(n)) is not None}
    values = {name: _looked_up(frame, use) for name, use in names.items() if name not in own or frame.knows(name)}
    token = ct._static.set(_Operations(frame))
    try:
        found = take(eval(_compiled(frame, expression), {**frame.source.function.__globals__, **values}))
    except TileError:
        raise
    except Exception as error:
        told = f"{what}: {type(error).__name__}: {error}; expected Python on constants only"
        raise StaticException(told, frame.places(expression)) from error
    finally:
        ct._static.reset(token)
    for value in values.values():
        frame.note(value)
    return frame.adopt(_hidden(found))


def _bound(node: ast.AST) -> str | None:
    """The variable of a comprehension, or the parameter of a lambda, that a node of an expression is."""
    if isinstance(node, ast.arg):
        return node.arg
    return node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else None


def _looked_up(frame: Frame, use: ast.Name) -> Any:
    """A variable as Python sees it: one from outside of the kernel as it is, so that a list takes what is appended."""
    holder: Frame | None = frame
    while holder is not None:
        if use.id in holder.env:
            return _shown(frame, frame.lookup(use))
        if use.id in holder.own or (use.id in holder.source.locals and holder.lexical is None):
            return frame.lookup(use)  # which refuses it
        outermost, holder = holder, holder.lexical
    return outermost.outside(use.id)


def _compiled(frame: Frame, expression: ast.expr) -> types.CodeType:
    known: types.CodeType | None = getattr(expression, "_tw_code", None)
    if known is None:
        known = compile(ast.Expression(expression), frame.source.file, "eval")
        expression._tw_code = known  # type: ignore[attr-defined]
    return known


def keyword(frame: Frame, node: ast.Call, function: Any) -> str | None:
    """Which of the functions that Python evaluates is called, directly by its name; None if it is none of them."""
    name = getattr(function, "__tw_op__", None)
    if name not in KEYWORDS:
        return None
    if isinstance(node.func, ast.Name) and node.func.id in frame.env:
        raise TileSyntaxError(f"ct.{name} is called by its own name alone, found the variable '{node.func.id}'")
    return str(name)


def called(frame: Frame, node: ast.Call, name: str) -> Any:
    """A call of one of them as an expression."""
    if name == "static_iter":
        raise TileSyntaxError("ct.static_iter is what a 'for' goes over: for i in ct.static_iter(...)")
    if name == "static_exception":
        raise TileSyntaxError("ct.static_exception stands behind 'raise': raise ct.static_exception(ValueError(...))")
    if name == "static_assert":
        return _static_assert(frame, node)
    return evaluated(frame, _only_argument(node, name), "ct.static_eval", _checked)


def _checked(value: Any) -> Any:
    if is_record(value):
        records.check_class(type(value))
    return value


def _only_argument(node: ast.Call, name: str, keyword: str | None = None) -> ast.expr:
    if not node.args and len(node.keywords) == 1 and node.keywords[0].arg == keyword is not None:
        return node.keywords[0].value
    if len(node.args) != 1 or node.keywords or isinstance(node.args[0], ast.Starred):
        raise TileSyntaxError(f"ct.{name} takes one expression")
    return node.args[0]


def _static_assert(frame: Frame, node: ast.Call) -> None:
    if not 1 <= len(node.args) <= 2 or node.keywords:
        raise TileSyntaxError("ct.static_assert(condition, message=None, /) takes one or two values, by position")
    holds = _condition(frame, node.args[0])
    if holds:
        return
    message = evaluated(frame, node.args[1], "ct.static_assert", _text) if len(node.args) == 2 else ""
    raise TileStaticAssertionError(f"static assertion failed{': ' + message if message else ''}")


def _condition(frame: Frame, expression: ast.expr) -> bool:
    """A condition that Python computes; or, where Python alone cannot, one that tile code knows at compile time."""
    try:
        value = evaluated(frame, expression, "ct.static_assert", _plain)
    except TileStaticEvalError:
        _refuse_operations(frame, expression)
        value = evaluate(frame, expression)
    if isinstance(value, Tile | Array | Format | Selection):
        raise TileTypeError(
            f"ct.static_assert needs a constant, found {describe(value)}, which is known at run time only; "
            "assert looks at it there"
        )
    if type(value) is not bool:
        raise TileTypeError(f"ct.static_assert needs a condition, True or False, found {describe(value)}")
    return bool(value)


def _refuse_operations(frame: Frame, expression: ast.expr) -> None:
    """Refuses calls of ct.NAME that are no arithmetic: what only asks at compile time makes no tiles."""
    for node in ast.walk(expression):
        function = node.func if isinstance(node, ast.Call) else None
        if isinstance(function, ast.Attribute) and _is_known(frame, function.value):
            name = getattr(evaluate(frame, function), "__tw_op__", None)
            if name is not None and name not in _ARITHMETIC:
                raise _not_inside(f"ct.{name}()")


def _is_known(frame: Frame, node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and frame.knows(node.id)


def _plain(value: Any) -> Any:
    return value.item() if is_numpy_scalar(value) else value


def _text(message: Any) -> str:
    return "" if message is None else str(message)


def iterated(frame: Frame, node: ast.expr) -> list[Any] | None:
    """The elements of `ct.static_iter(...)` at the head of a loop or comprehension; None of anything else."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name | ast.Attribute):
        return None
    if keyword(frame, node, evaluate(frame, node.func)) != "static_iter":
        return None
    frame.at(node)
    return list(evaluated(frame, _only_argument(node, "static_iter", "iterable"), "ct.static_iter", _elements))


def _elements(value: Any) -> tuple[Any, ...]:
    if isinstance(value, Symbol):
        value._has_no_value()
    if not isinstance(value, Iterable):
        raise TileTypeError(f"ct.static_iter goes over range(...) or another iterable, found {describe(value)}")
    found = tuple(itertools.islice(value, MOST + 1))
    if len(found) > MOST:
        raise TileStaticEvalError(
            f"ct.static_iter has more than {MOST} iterations to unroll; use 'for i in range(...)'"
        )
    for place, item in enumerate(found):
        if type(item) is list:
            raise TileStaticEvalError(f"ct.static_iter: its item {place} is a list, {item!r}; expected a tuple")
    return found


def raised(frame: Frame, node: ast.Raise) -> None:
    """`raise ct.static_exception(...)`: an error of the program, which the capture has run into."""
    call = node.exc if isinstance(node.exc, ast.Call) and node.cause is None else None
    plain = call is not None and isinstance(call.func, ast.Name | ast.Attribute)
    if call is None or not plain or keyword(frame, call, evaluate(frame, call.func)) != "static_exception":
        raise TileSyntaxError(
            "device code raises no exceptions; 'assert' tells of what goes wrong at run time"
            if frame.capture.rules.simt
            else "a 'raise' statement in tile code raises ct.static_exception(...), at compile time; "
            "'assert' tells of what goes wrong at run time"
        )
    found = evaluated(frame, _only_argument(call, "static_exception"), "ct.static_exception")
    if not isinstance(found, BaseException):
        raise TileTypeError(f"ct.static_exception needs an exception, found {describe(found)}")
    raise StaticException(f"{type(found).__name__}: {found}") from found


__all__ = ["KEYWORDS", "called", "evaluated", "iterated", "keyword", "raised"]
