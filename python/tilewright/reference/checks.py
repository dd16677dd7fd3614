"""What every operation asks of shapes, axes and constants, with one message for each rule."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import TileTypeError, TileValueError
from .values import Shape, Tile

MOST_ELEMENTS = 2**30


def static_int(value: Any, what: str) -> int:
    if isinstance(value, Tile):
        raise TileTypeError(f"{what} must be a constant, found a run-time {value.dtype} value")
    try:
        return operator.index(value)
    except TypeError:
        raise TileTypeError(f"{what} must be a constant integer, found {value!r}") from None


def static_ints(value: Any, what: str) -> Shape:
    values = value if isinstance(value, Sequence) and not isinstance(value, str) else (value,)
    return tuple(static_int(v, f"{what}[{i}]") for i, v in enumerate(values))


def check_tile_shape(value: Any, what: str) -> Shape:
    shape = static_ints(value, what)
    for axis, n in enumerate(shape):
        if n < 1 or n & (n - 1):
            raise TileValueError(f"{what}: dimension {axis} of {shape} is {n}, which is no power of two")
    if math.prod(shape) > MOST_ELEMENTS:
        raise TileValueError(f"{what}: a tile of shape {shape} is too large; it has at most 2**30 elements")
    return shape


def broadcast_shapes(a: Shape, b: Shape, what: str) -> Shape:
    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        raise TileValueError(f"{what}: shapes {a} and {b} do not broadcast") from None


def check_axis(axis: Any, ndim: int, what: str) -> int:
    value = static_int(axis, f"{what}: axis")
    if not -ndim <= value < ndim:
        raise TileValueError(f"{what}: axis {value} is outside a tile of {ndim} dimensions")
    return value % ndim


def check_axes(axis: Any, ndim: int, what: str) -> Shape:
    if axis is None:
        return tuple(range(ndim))
    values = axis if isinstance(axis, Sequence) else (axis,)
    axes = tuple(check_axis(a, ndim, what) for a in values)
    if len(set(axes)) != len(axes):
        raise TileTypeError(f"{what}: axis {axis} names one axis twice")
    return axes


def check_order(order: Any, ndim: int, what: str) -> Shape:
    if order == "C":
        return tuple(range(ndim))
    if order == "F":
        return tuple(reversed(range(ndim)))
    if isinstance(order, str):
        raise TileValueError(f"{what}: order {order!r} is neither 'C', 'F' nor a permutation")
    axes = static_ints(order, f"{what}: order")
    if sorted(axes) != list(range(ndim)):
        raise TileValueError(f"{what}: order {axes} is no permutation of {ndim} axes")
    return axes
