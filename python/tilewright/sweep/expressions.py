"""Expressions of Python in axes, constraints and grids: read, checked and computed here, with no `eval`.

    TM * TN <= 16384        family == "wgmma" and stages >= 3        cdiv(A.shape[0], TM)

Numbers, strings, comparisons, arithmetic without powers, `and`, `or`, `not`, `x if c else y`, tuples, `in`, the
functions min, max, abs and cdiv, and the shapes of arrays. Anything else is refused by name.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import TileValueError

MOST_TEXT = 2000
MOST_DEPTH = 50  # of nodes in nodes
MOST_BITS = 4096  # of an integer on the way

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitAnd: operator.and_,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda x, y: x in y,
    ast.NotIn: lambda x, y: x not in y,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.Not: operator.not_,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
FUNCTIONS: dict[str, Callable[..., Any]] = {"min": min, "max": max, "abs": abs, "cdiv": lambda x, y: -(-x // y)}


class Expression:
    """A text and its names; `of(values)` computes it."""

    def __init__(self, text: str, what: str) -> None:
        self.text, self.what = text.strip(), what
        if len(text) > MOST_TEXT:
            raise TileValueError(f"{what}: an expression of {len(text)} characters; the most is {MOST_TEXT}")
        deep = self._wrong("is nested too deeply")
        try:
            self.tree = ast.parse(self.text, mode="eval").body
        except (RecursionError, MemoryError):  # of deep trees, by the version of Python
            raise deep from None
        except (SyntaxError, ValueError) as error:
            raise self._wrong(f"is no expression of Python: {getattr(error, 'msg', error)}") from None
        level: list[ast.AST] = [self.tree]
        for _ in range(MOST_DEPTH):
            level = [child for node in level for child in ast.iter_child_nodes(node)]
        if level:
            raise deep
        self.names = tuple(dict.fromkeys(self._names(self.tree)))

    def __repr__(self) -> str:
        return self.text

    def _wrong(self, why: str) -> TileValueError:
        return TileValueError(f"{self.what}: {self.text[:200]!r} {why}")

    def _names(self, node: ast.AST) -> list[str]:
        """The names below a node, which must be of the kinds that there are."""
        self._check(node)
        if isinstance(node, ast.Name):
            return [node.id]
        skipped = node.func if isinstance(node, ast.Call) else None
        children = (child for child in ast.iter_child_nodes(node) if child is not skipped)
        return [name for child in children for name in self._names(child)]

    def _check(self, node: ast.AST) -> None:
        plain = (ast.Name, ast.BoolOp, ast.IfExp, ast.Tuple, ast.List, ast.Subscript, ast.Load, ast.And, ast.Or)
        good = (
            isinstance(node, plain)
            or (isinstance(node, ast.Constant) and isinstance(node.value, int | float | str | None))
            or (isinstance(node, ast.BinOp) and type(node.op) in _BINARY)
            or (isinstance(node, ast.UnaryOp) and type(node.op) in _UNARY)
            or (isinstance(node, ast.Compare) and all(type(op) in _COMPARE for op in node.ops))
            or (isinstance(node, ast.Attribute) and node.attr == "shape")
            or type(node) in (*_BINARY, *_UNARY, *_COMPARE)
        )
        if isinstance(node, ast.Call):
            good = isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS and not node.keywords
        if not good:
            told = ast.unparse(node) if isinstance(node, ast.expr) else type(node).__name__
            known = ", ".join(FUNCTIONS)
            raise self._wrong(f"has {told!r}; there are arithmetic, comparisons, shapes of arrays and {known}")

    def of(self, values: Mapping[str, Any]) -> Any:
        """`values`: what each name is; of arrays, their shapes."""
        try:
            return self._value(self.tree, values)
        except (ArithmeticError, TypeError, ValueError, IndexError) as error:
            if isinstance(error, TileValueError):
                raise
            free = [name for name in self.names if name in values and values[name] is None]
            told = f"; {free[0]} is None where it is left to the compiler: {free[0]} == None or …" if free else ""
            raise self._wrong(f"cannot be computed: {error}{told}") from None

    def _value(self, node: ast.AST, values: Mapping[str, Any]) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            if node.id not in values:
                raise self._wrong(
                    f"has the name {node.id!r}, which is unknown; there are {', '.join(values) or 'none'}"
                )
            return values[node.id]
        if isinstance(node, ast.BinOp):
            return self._binary(node, values)
        if isinstance(node, ast.BoolOp):
            return self._logical(node, values)
        if isinstance(node, ast.UnaryOp):
            return _UNARY[type(node.op)](self._value(node.operand, values))
        if isinstance(node, ast.Compare):
            return self._comparison(node, values)
        if isinstance(node, ast.IfExp):
            return self._value(node.body if self._value(node.test, values) else node.orelse, values)
        if isinstance(node, ast.Tuple | ast.List):
            return tuple(self._value(part, values) for part in node.elts)
        if isinstance(node, ast.Attribute):
            return self._value(node.value, values)
        if isinstance(node, ast.Subscript):
            return self._value(node.value, values)[self._value(node.slice, values)]
        assert isinstance(node, ast.Call) and isinstance(node.func, ast.Name)  # says _check
        return FUNCTIONS[node.func.id](*(self._value(part, values) for part in node.args))

    def _binary(self, node: ast.BinOp, values: Mapping[str, Any]) -> Any:
        x, y = self._value(node.left, values), self._value(node.right, values)
        for number in (x, y):
            if not isinstance(number, int | float) or (isinstance(number, int) and number.bit_length() > MOST_BITS):
                raise self._wrong(f"computes with {number!r:.60}, which is no number of a usual size")
        return _BINARY[type(node.op)](x, y)

    def _logical(self, node: ast.BoolOp, values: Mapping[str, Any]) -> Any:
        ends = isinstance(node.op, ast.Or)
        found: Any = not ends
        for part in node.values:
            found = self._value(part, values)
            if bool(found) == ends:
                break
        return found

    def _comparison(self, node: ast.Compare, values: Mapping[str, Any]) -> bool:
        left = self._value(node.left, values)
        for op, part in zip(node.ops, node.comparators, strict=True):
            right = self._value(part, values)
            if not _COMPARE[type(op)](left, right):
                return False
            left = right
        return True
