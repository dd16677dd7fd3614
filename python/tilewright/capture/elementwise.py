"""Elementwise operations: those of the table, and those with rules of their own."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..dtype import bool_, constant_dtype, int32, require_arithmetic
from ..errors import TileTypeError
from ..modes import check_cast_rounding, check_divmod, rounds_by_mode
from . import numerics
from .checks import dtype_of
from .emit import BINARY_OPS, COMPARE_KINDS, TERNARY_OPS, UNARY_OPS
from .frame import Frame
from .table import OPS, op
from .values import Tile, is_number, require_tile_or_number


def _register_elementwise() -> None:
    def binary(name: str) -> Callable[..., Any]:
        return lambda frame, x, y, **modes: numerics.binary(frame, name, x, y, **modes)

    def compare(name: str) -> Callable[..., Any]:
        return lambda frame, x, y: frame.emit.compare(name, x, y)

    def unary(name: str) -> Callable[..., Any]:
        return lambda frame, x, **modes: numerics.unary(frame, name, x, **modes)

    def ternary(name: str) -> Callable[..., Any]:
        return lambda frame, condition, x, y: frame.emit.ternary(name, condition, x, y)

    made = ((BINARY_OPS, binary), (COMPARE_KINDS, compare), (UNARY_OPS, unary), (TERNARY_OPS, ternary))
    for names, make in made:
        for name in names:
            OPS[name] = make(name)


_register_elementwise()


def positive(frame: Frame, value: Any) -> Any:
    """+x."""
    value = require_tile_or_number(value, "+x")
    if value.dtype is bool_:
        return frame.emit.cast(value, int32)
    require_arithmetic(value.dtype, "+x")
    return value


@op("cdiv")
def _cdiv(frame: Frame, x: Any, y: Any) -> Any:
    for value in (x, y):
        if isinstance(value, float):
            raise TileTypeError(f"ct.cdiv needs integers, found the constant {value!r}")
    return frame.emit.binary("cdiv", x, y)


@op("astype")
def _astype(frame: Frame, x: Any, dtype: Any, rounding_mode: Any = None) -> Tile:
    value = require_tile_or_number(x, "ct.astype")
    dtype = dtype_of(dtype, "ct.astype")
    source = constant_dtype(value) if is_number(value) else value.dtype
    check_cast_rounding(rounding_mode, source, dtype)
    if rounding_mode is not None and rounds_by_mode(rounding_mode, source, dtype):
        return numerics.rounded(frame, frame.emit.tile(value, "ct.astype"), dtype, rounding_mode)
    return frame.emit.cast(value, dtype)


@op("divmod")
def _divmod(frame: Frame, x: Any, y: Any) -> tuple[Any, Any]:
    found = frame.emit.binary("floordiv", x, y), frame.emit.binary("mod", x, y)
    if not frame.capture.rules.simt and isinstance(found[1], Tile):
        check_divmod(found[1].dtype)
    return found


@op("isnan")
def _isnan(frame: Frame, x: Any) -> Any:
    value = require_tile_or_number(x, "ct.isnan")
    if is_number(value):
        return math.isnan(value)
    if not value.dtype.is_float:
        raise TileTypeError(f"ct.isnan needs floats, found {value.dtype}, which has no NaN")
    require_arithmetic(value.dtype, "ct.isnan")
    return numerics.isnan(frame, value)
