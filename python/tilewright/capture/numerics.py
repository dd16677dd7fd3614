"""Numerics: operations under a rounding mode, with subnormal numbers flushed, or with NaN left out of account.

Made of the plain operations, so that all executions agree on them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._optable import BY_PUBLIC
from ..dtype import DType, bool_, float32, int32, promote
from ..errors import TileTypeError
from ..modes import LEAST_NORMAL, check_flush, check_rounding
from .emit import fold
from .frame import Frame
from .values import Tile, describe, is_number


def constant_flag(value: Any, what: str) -> bool:
    if isinstance(value, Tile):
        raise TileTypeError(f"{what} must be a constant, found {describe(value)}")
    return bool(value)


def flushed(frame: Frame, x: Tile) -> Tile:
    """Zero of the same sign in the place of a subnormal number."""
    emit = frame.emit
    subnormal = emit.compare("less", emit.unary("abs", x), LEAST_NORMAL)
    return emit.select(subnormal, emit.binary("mul", x, 0.0), x)


def isnan(frame: Frame, x: Tile) -> Tile:
    found: Tile = frame.emit.compare("not_equal", x, x)
    return found


def binary(
    frame: Frame,
    name: str,
    x: Any,
    y: Any,
    rounding_mode: Any = None,
    flush_to_zero: Any = False,
    propagate_nan: Any = True,
) -> Any:
    flush = constant_flag(flush_to_zero, f"ct.{name}: flush_to_zero")
    keep_nan = constant_flag(propagate_nan, f"ct.{name}: propagate_nan")
    if rounding_mode is None and not flush and keep_nan:
        return frame.emit.binary(name, x, y)
    a, b = frame.emit.operands(name, (x, y))
    dtype = promote(a.dtype, b.dtype)
    dtype = float32 if name == "truediv" and dtype.is_integral else dtype
    check_rounding(name, rounding_mode, dtype)
    if is_number(x) and is_number(y):
        return fold(name, x, y)
    if check_flush(name, flush, dtype):
        a, b = (flushed(frame, frame.emit.cast(v, dtype)) for v in (a, b))
    result = frame.emit.binary(name, a, b)
    if not keep_nan and dtype.is_float:
        result = _unless_nan(frame, dtype, a, b, result)
    return flushed(frame, result) if flush else result


def _unless_nan(frame: Frame, dtype: DType, x: Tile, y: Tile, both: Tile) -> Tile:
    """`both`, or the other of x and y where one is NaN."""
    x, y = (frame.emit.cast(v, dtype) for v in (x, y))
    return frame.emit.select(isnan(frame, x), y, frame.emit.select(isnan(frame, y), x, both))


def unary(frame: Frame, name: str, x: Any, rounding_mode: Any = None, flush_to_zero: Any = False) -> Any:
    flush = constant_flag(flush_to_zero, f"ct.{name}: flush_to_zero")
    if isinstance(x, Tile) and x.dtype is bool_:
        x = _of_bool(frame, name, x)
    if rounding_mode is None and not flush:
        return frame.emit.unary(name, x)
    operand = frame.emit.tile(x, f"ct.{name}")
    dtype = operand.dtype if operand.dtype.is_float else float32
    check_rounding(name, rounding_mode, dtype)
    if is_number(x):
        return fold(name, x)
    if not check_flush(name, flush, dtype):
        return frame.emit.unary(name, x)
    return flushed(frame, frame.emit.unary(name, flushed(frame, frame.emit.cast(operand, dtype))))


def _of_bool(frame: Frame, name: str, x: Tile) -> Tile:
    """A bool as the number that an operation on numbers takes it for."""
    if BY_PUBLIC[name].result == "float":
        return frame.emit.cast(x, float32)
    return frame.emit.cast(x, int32) if name == "negative" else x


Reduction = Callable[[Tile], Tile]


def under_modes(
    frame: Frame, name: str, x: Tile, run: Reduction, rounding_mode: Any = None, flush_to_zero: Any = False
) -> Tile:
    """A reduction or a scan of x. Of what comes together on the way only the end is flushed."""
    flush = constant_flag(flush_to_zero, f"ct.{name}: flush_to_zero")
    check_rounding(name, rounding_mode, x.dtype)
    if not check_flush(name, flush, x.dtype):
        return run(x)
    return flushed(frame, run(flushed(frame, x)))


def extreme_number(frame: Frame, name: str, x: Tile, run: Reduction) -> Tile:
    """The max or min of the elements that are numbers; NaN where there is none."""
    emit, sign = frame.emit, -1.0 if name == "max" else 1.0
    nan = isnan(frame, x)
    found = run(emit.select(nan, sign * float("inf"), x))
    numbers = run(emit.select(nan, sign, emit.constant(-sign, x.dtype, x.shape)))  # -sign: there is one
    return emit.select(emit.compare("equal", numbers, sign), float("nan"), found)


def place_of_extreme_number(
    frame: Frame, x: Tile, extreme: Reduction, first_extreme: Reduction, first_true: Reduction, sign: float
) -> Tile:
    """The index of the first max or min of the elements that are numbers, or 0: an infinity beats NaN, too."""
    emit, nan = frame.emit, isnan(frame, x)
    numbers = emit.select(nan, sign * float("inf"), x)
    found = first_extreme(numbers)
    is_worst = emit.compare("equal", extreme(numbers), sign * float("inf"))
    return emit.select(is_worst, first_true(emit.logical_not(nan)), found)
