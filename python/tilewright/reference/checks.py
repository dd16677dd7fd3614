"""Checks: what is a constant while a kernel is interpreted."""

from __future__ import annotations

import operator
from typing import Any

from ..errors import TileTypeError
from ..shape_rules import ShapeRules
from .values import Tile


def static_int(value: Any, what: str) -> int:
    if isinstance(value, Tile):
        raise TileTypeError(f"{what} must be a constant, found a run-time {value.dtype} value")
    try:
        return operator.index(value)
    except TypeError:
        raise TileTypeError(f"{what} must be a constant integer, found {value!r}") from None


RULES = ShapeRules(static_int)
static_ints, check_tile_shape = RULES.static_ints, RULES.check_tile_shape
check_axis, check_axes, check_order = RULES.check_axis, RULES.check_axes, RULES.check_order
