"""Checks: what the operations ask of their arguments, with one message for each rule."""

from __future__ import annotations

from typing import Any

from ..dtype import DType, as_dtype, require_supported
from ..errors import TileTypeError
from ..shape_rules import ShapeRules, check_fits
from .frame import Frame
from .values import Array, Shape, Tile, describe


def array_of(value: Any, what: str) -> Array:
    if not isinstance(value, Array):
        many = "; NumPy makes an array of a list: np.asarray(values)" if isinstance(value, tuple) else ""
        raise TileTypeError(f"{what} needs an array (an argument of the kernel), found {describe(value)}{many}")
    return value


def constant_flag(value: Any, what: str) -> bool:
    if isinstance(value, Tile):
        raise TileTypeError(f"{what} must be a constant, found {describe(value)}")
    if type(value) not in (bool, int):
        raise TileTypeError(f"{what} must be True or False, found {describe(value)}")
    return bool(value)


def dtype_of(value: Any, what: str) -> DType:
    try:
        return require_supported(as_dtype(value))
    except TileTypeError:
        expected = "; expected one of ct, torch or NumPy, as ct.float32"
        if type(value) is int:
            expected += "; a shape of several extents is one tuple"
        raise TileTypeError(f"{what}: no dtype is meant by {describe(value)}{expected}") from None


def static_int(value: Any, what: str) -> int:
    if isinstance(value, Tile):
        raise TileTypeError(
            f"{what} must be a constant, found {describe(value)}; a parameter becomes one by the annotation ct.Constant"
        )
    if type(value) is not int:
        raise TileTypeError(f"{what} must be a constant integer, found {describe(value)}")
    return value


RULES = ShapeRules(static_int)
static_ints, check_tile_shape = RULES.static_ints, RULES.check_tile_shape
check_axis, check_axes, check_order = RULES.check_axis, RULES.check_axes, RULES.check_order


def fit(frame: Frame, value: Tile, shape: Shape, what: str) -> Tile:
    """A tile broadcast to exactly `shape`."""
    check_fits(value.shape, shape, what)
    return frame.emit.broadcast(value, shape)
