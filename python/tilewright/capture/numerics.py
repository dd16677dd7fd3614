"""Numerics: operations under a rounding mode, or with subnormal numbers flushed.

Made of the plain operations, so that all executions agree on them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._optable import BY_PUBLIC, ROUNDED_KIND, ROUNDING
from ..annotations import RoundingMode
from ..dtype import DType, bool_, float32, float64, int16, int32, promote, tfloat32
from ..modes import STEPS, check_flush, check_rounding, is_directed, is_exact, marks_of
from ..shape_rules import broadcast_shapes
from .checks import constant_flag
from .combine import Body
from .emit import fold
from .frame import Frame
from .values import Tile, is_number


def flushed(frame: Frame, x: Tile) -> Tile:
    """Zero of the same sign in the place of a subnormal number."""
    return frame.emit.typed("tile.flush", [x.ir], None, x.dtype, x.shape)


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
    propagate_nan: Any = False,
) -> Any:
    flush = constant_flag(flush_to_zero, f"ct.{name}: flush_to_zero")
    keep_nan = constant_flag(propagate_nan, f"ct.{name}: propagate_nan")
    if rounding_mode is None and not flush:
        return frame.emit.binary(name, x, y, keep_nan)
    a, b = frame.emit.operands(name, (x, y))
    dtype = promote(a.dtype, b.dtype)
    dtype = float32 if name == "truediv" and dtype.is_integral else dtype
    check_rounding(name, rounding_mode, dtype)
    if is_number(x) and is_number(y) and not is_directed(rounding_mode):
        return fold(name, x, y)
    if check_flush(name, flush, dtype):
        a, b = (flushed(frame, frame.emit.cast(v, dtype)) for v in (a, b))
    if is_exact(name, rounding_mode):
        shape = broadcast_shapes(a.shape, b.shape, f"ct.{name}")
        result = _told(frame, name, [frame.emit.broadcast(v, shape) for v in (a, b)], dtype, rounding_mode)
    else:
        result = frame.emit.binary(name, a, b, keep_nan, marks_of(name, rounding_mode, flush))
    return flushed(frame, result) if flush else result


def _told(frame: Frame, name: str, operands: list[Tile], dtype: DType, mode: RoundingMode) -> Tile:
    """tile.rounded, which is of float32 and float64. What has 16 bits is computed in float32 and rounded to 16 bits in
    the same direction, which is once; to the nearest, float32 has bits enough to round to it first."""
    wide = dtype if dtype is float64 else float32
    values = [frame.emit.cast(frame.emit.cast(v, dtype), wide).ir for v in operands]  # an integer is rounded to `dtype`
    attributes = {"kind": ROUNDED_KIND["div" if name == "truediv" else name], "rounding": ROUNDING[mode.name.lower()]}
    result = frame.emit.typed("tile.rounded", values, attributes, wide, operands[0].shape)
    if is_directed(mode) and dtype is not wide:
        return rounded(frame, result, dtype, mode)
    return frame.emit.cast(result, dtype)


def unary(frame: Frame, name: str, x: Any, rounding_mode: Any = None, flush_to_zero: Any = False) -> Any:
    flush = constant_flag(flush_to_zero, f"ct.{name}: flush_to_zero")
    if isinstance(x, Tile) and x.dtype is bool_ and name == "abs":
        return x
    if isinstance(x, Tile) and x.dtype is bool_:
        x = _of_bool(frame, name, x)
    if rounding_mode is None and not flush:
        return frame.emit.unary(name, x)
    operand = frame.emit.tile(x, f"ct.{name}")
    dtype = operand.dtype if operand.dtype.is_float else float32
    check_rounding(name, rounding_mode, dtype)
    if is_number(x) and not is_directed(rounding_mode):
        return fold(name, x)
    operand = frame.emit.cast(operand, dtype)
    flushes = check_flush(name, flush, dtype)
    if flushes and name != "exp2":  # 2 to the power of a subnormal number is 1, as that of zero is
        operand = flushed(frame, operand)
    if is_exact(name, rounding_mode):
        result = _told(frame, name, [operand], dtype, rounding_mode)
    else:
        result = frame.emit.unary(name, operand, marks_of(name, rounding_mode, flush))
    return flushed(frame, result) if flushes else result


def _of_bool(frame: Frame, name: str, x: Tile) -> Tile:
    """A bool as the number that an operation on numbers takes it for."""
    if BY_PUBLIC[name].result == "float":
        return frame.emit.cast(x, float32)
    return frame.emit.cast(x, int32) if name == "negative" else x


# A reduction or a scan: by the compiler's own step; and by a step given, of which 0 or 1 changes nothing.
Reduction = tuple[Callable[[Tile], Tile], Callable[[Tile, Body, float], Tile]]


def under_modes(
    frame: Frame, name: str, x: Tile, run: Reduction, rounding_mode: Any = None, flush_to_zero: Any = False
) -> Tile:
    """A reduction or a scan of x. Of what comes together on the way only the end is flushed."""
    flush = constant_flag(flush_to_zero, f"ct.{name}: flush_to_zero")
    check_rounding(name, rounding_mode, x.dtype)
    flushes = check_flush(name, flush, x.dtype)
    x = flushed(frame, x) if flushes else x
    made = _by_steps(frame, name, x, run[1], rounding_mode) if is_directed(rounding_mode) else run[0](x)
    return flushed(frame, made) if flushes else made


def _by_steps(frame: Frame, name: str, x: Tile, run: Callable[[Tile, Body, float], Tile], mode: RoundingMode) -> Tile:
    """Each sum or product of two is rounded in the mode's direction; what has 16 bits comes together in float32 and is
    rounded to 16 bits in the same direction."""
    wide, of_two = x.dtype if x.dtype is float64 else float32, STEPS[name]
    unit = 1.0 if of_two == "mul" else 0.0 if mode is RoundingMode.RM else -0.0  # what leaves each zero its sign
    made = run(frame.emit.cast(x, wide), lambda pair: binary(frame, of_two, pair[0], pair[1], mode), unit)
    return made if x.dtype is wide else rounded(frame, made, x.dtype, mode)


# ---------------------------------------------------------------------------------------------
# Conversions that round as they are told


def rounded(frame: Frame, x: Tile, target: DType, mode: RoundingMode) -> Tile:
    """x as a float of fewer bits: the nearest one, or the one beside it that lies on the right side."""
    wide = frame.emit.cast(x, x.dtype if x.dtype is float64 else float32)
    if target is tfloat32:
        return _to_tfloat32(frame, wide, mode)
    emit, near = frame.emit, frame.emit.cast(wide, target)
    back = emit.cast(near, wide.dtype)
    bits = _bits_as(frame, near, int32 if target.bits == 32 else int16)
    inward, outward = emit.binary("sub", bits, 1), emit.binary("add", bits, 1)
    negative = emit.compare("less", bits, 0)
    if mode is RoundingMode.RZ:
        passed, beside = emit.compare("greater", emit.unary("abs", back), emit.unary("abs", wide)), inward
    elif mode is RoundingMode.RM:
        passed, beside = emit.compare("greater", back, wide), emit.select(negative, outward, inward)
    else:
        passed, beside = emit.compare("less", back, wide), emit.select(negative, inward, outward)
    return _bits_as(frame, emit.select(passed, beside, bits), target)


def _to_tfloat32(frame: Frame, x: Tile, mode: RoundingMode) -> Tile:
    """By the bits of a float32, of which 13 go; a carry out of the mantissa is one of the exponent."""
    emit, dropped = frame.emit, (1 << 13) - 1
    if x.dtype is float64:  # the same direction twice is once
        x = rounded(frame, x, float32, mode)
    bits = _bits_as(frame, x, int32)
    half, negative = 1 << 12, emit.compare("less", bits, 0)
    odd = emit.binary("bitwise_and", emit.binary("bitwise_rshift", bits, 13), 1)
    more: Any = {
        RoundingMode.RZ: 0,
        RoundingMode.RA: half,
        RoundingMode.RN: emit.binary("add", odd, half - 1),
        RoundingMode.RM: emit.select(negative, dropped, 0),
        RoundingMode.RP: emit.select(negative, 0, dropped),
    }[mode]
    moved = emit.select(isnan(frame, x), bits, emit.binary("add", bits, more))
    return _bits_as(frame, emit.binary("bitwise_and", moved, ~dropped), tfloat32)


def _bits_as(frame: Frame, x: Tile, dtype: DType) -> Tile:
    return frame.emit.bitcast(x, dtype)
