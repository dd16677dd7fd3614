"""Loops of device code over what a launch says the length of: arrays, and `zip` and `enumerate` of them.

    for i, (x, y) in enumerate(zip(a, b)): ...

is `for $place in range(min(len(a), len(b)))`, whose body begins with `i, (x, y) = $place, ($0[$place], $1[$place])`.
"""

from __future__ import annotations

import ast
import dataclasses
from typing import Any

from ..dtype import int64
from .frame import Frame
from .simt import arrays as simt_arrays
from .statements import run_statements
from .values import Array, Range


@dataclasses.dataclass(frozen=True, eq=False)
class Walk:
    """`zip(parts)`, or `enumerate(part)` from a number on."""

    parts: tuple[Any, ...]
    start: int | None = None  # None: zip

    def form(self) -> str:
        inside = ",".join(form_of(part) for part in self.parts)
        return f"zip({inside})" if self.start is None else f"{self.start}+({inside})"


def walks(frame: Frame, iterables: Any) -> bool:
    """Whether a loop over these is a loop at run time."""
    return bool(frame.capture.rules.walks_arrays) and all(
        isinstance(v, Walk) or (isinstance(v, Array) and v.ndim) or _counts(v) for v in iterables
    )


def _counts(value: Any) -> bool:
    """A range that the launch knows."""
    return isinstance(value, Range) and any(type(n) is not int for n in (value.start, value.stop, value.step))


def _is_plain(value: Range) -> bool:
    """From a number on, one by one."""
    return type(value.start) is int and type(value.step) is int and value.step == 1


def form_of(value: Any) -> str:
    """What the code of a loop over it hangs on."""
    if isinstance(value, Range):
        return f"{value.start}" if _is_plain(value) else "range"
    return value.form() if isinstance(value, Walk) else "array"


def leaves_of(value: Any) -> list[Any]:
    """The arrays and ranges, in order."""
    return [leaf for part in value.parts for leaf in leaves_of(part)] if isinstance(value, Walk) else [value]


def _whole(frame: Frame, value: Any) -> Any:
    return frame.emit.constant(value, int64) if type(value) is int else frame.emit.cast(value, int64)


def _length(frame: Frame, value: Any) -> Any:
    emit = frame.emit
    if isinstance(value, Range):
        start, stop, step = (_whole(frame, n) for n in (value.start, value.stop, value.step))
        if _is_plain(value):
            return emit.binary("sub", stop, start) if value.start else stop
        size = emit.unary("abs", step)
        if type(value.step) is int:
            distance = emit.binary("sub", stop, start) if value.step > 0 else emit.binary("sub", start, stop)
        else:
            is_up = emit.compare("greater", step, 0)
            distance = emit.select(is_up, emit.binary("sub", stop, start), emit.binary("sub", start, stop))
        rounded = emit.binary("sub", emit.binary("add", distance, size), emit.constant(1, int64))
        return emit.binary("floordiv", rounded, size)
    return emit.cast(simt_arrays.extent(frame, value, 0), int64)


def _least(frame: Frame, values: list[Any]) -> Any:
    if len(values) == 1 and isinstance(values[0], Array):
        return simt_arrays.extent(frame, values[0], 0)
    found, *others = (_length(frame, value) for value in values)
    for other in others:
        found = frame.emit.binary("minimum", found, other)
    return found


def _loaded(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _from(number: int) -> ast.expr:
    return ast.BinOp(_loaded("$place"), ast.Add(), ast.Constant(number)) if number else _loaded("$place")


def _part(value: Any, count: list[int]) -> ast.expr:
    """The expression of an element."""
    if isinstance(value, Walk):
        parts: list[ast.expr] = [_part(part, count) for part in value.parts]
        whole = parts if value.start is None else [_from(value.start), *parts]
        return ast.Tuple(whole, ast.Load())
    name = f"${count[0]}"
    count[0] += 1
    if isinstance(value, Range):
        if _is_plain(value):
            return _from(value.start)
        steps = ast.BinOp(_loaded("$place"), ast.Mult(), _loaded(f"{name}step"))
        return ast.BinOp(_loaded(f"{name}start"), ast.Add(), steps)
    return ast.Subscript(_loaded(name), _loaded("$place"), ast.Load())


def _counted(node: ast.For, value: Any) -> ast.For:
    """The loop over places, made once for each form, because what a loop learns belongs to its node."""
    known: dict[str, ast.For] = node.__dict__.setdefault("_tw_counted", {})
    form = form_of(value)
    if form not in known:
        first = ast.Assign([node.target], _part(value, [0]))
        made = ast.For(ast.Name("$place", ast.Store()), _loaded("$range"), [first, *node.body], node.orelse)
        for child in (made.target, made.iter, first, *ast.walk(first.value)):
            ast.copy_location(child, node.iter)
        known.setdefault(form, ast.copy_location(made, node))
    return known[form]


def walk(frame: Frame, node: ast.For, value: Any) -> None:
    leaves = leaves_of(value)
    values = {"$range": Range(0, _least(frame, leaves), 1)} | {f"${i}": leaf for i, leaf in enumerate(leaves)}
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, Range):
            values |= {f"${i}start": _whole(frame, leaf.start), f"${i}step": _whole(frame, leaf.step)}
    around = {name: frame.env.get(name) for name in values}
    frame.env |= values
    run_statements(frame, [_counted(node, value)])
    frame.env |= around
