"""Assertions: what a program states of its values."""

from __future__ import annotations

import ast
from typing import Any

from ..dtype import bool_
from ..errors import TileStaticAssertionError, TileTypeError
from ..shape_rules import check_divisor
from .frame import Frame
from .table import op
from .values import Tile, describe, is_number, is_run_time


@op("assert_")
def _assert(frame: Frame, condition: Any, message: Any) -> None:
    if not isinstance(message, str | None):
        raise TileTypeError(f"ct.assert_ needs a constant message, found {describe(message)}")
    holds = frame.emit.tile(condition, "ct.assert_")
    if holds.dtype is not bool_:
        raise TileTypeError(f"ct.assert_ needs a bool_ condition, found {describe(holds)}; compare, as in x != 0")
    emit_assert(frame, holds, message or "ct.assert_ failed")


def emit_assert(frame: Frame, holds: Tile, message: str, node: ast.AST | None = None) -> None:
    """The kernel says the message, and where that is, if a condition does not hold. There is the call, or `node`."""
    frame.builder.op("tile.assert", [holds.ir], {"message": frame.told(node or frame.node, message)}, [])


@op("assume_divisible_by")
def _assume_divisible_by(frame: Frame, x: Any, divisor: Any) -> Any:
    is_constant = is_number(x) and isinstance(x, int) and not isinstance(x, bool)
    check_divisor(divisor, x if is_constant else None)
    if is_constant:
        return x
    if not isinstance(x, Tile) or x.shape or not x.dtype.is_integral:
        raise TileTypeError(f"ct.assume_divisible_by needs an integer scalar, found {describe(x)}")
    if divisor > x.dtype.max:
        raise TileTypeError(f"ct.assume_divisible_by: {x.dtype} has no multiples of {divisor} but 0; expected less")
    return frame.emit.typed("tile.assume_divisible", [x.ir], {"divisor": divisor}, x.dtype, ())


@op("ensure_constant")
def _ensure_constant(frame: Frame, value: Any) -> Any:
    if is_run_time(value):
        raise TileStaticAssertionError(
            f"ct.ensure_constant: {describe(value)} is known at run time only; a parameter becomes a constant by the "
            "annotation ct.Constant"
        )
    return value
