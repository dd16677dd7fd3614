"""Checks: what the operations ask of their arguments, with one message for each rule."""

from __future__ import annotations

import math
from typing import Any

from ..dtype import DType, as_dtype
from ..errors import TileTypeError, TileValueError
from .frame import Frame
from .values import Array, Shape, Tile, describe, dimensions

MOST_ELEMENTS = 2**30  # of a tile, so that a position in it is an int32


def array_of(value: Any, what: str) -> Array:
    if not isinstance(value, Array):
        raise TileTypeError(f"{what} needs an array (an argument of the kernel), found {describe(value)}")
    return value


def constant_flag(value: Any, what: str) -> bool:
    if isinstance(value, Tile):
        raise TileTypeError(f"{what} must be a constant, found {describe(value)}")
    return bool(value)


def dtype_of(value: Any, what: str) -> DType:
    try:
        return as_dtype(value)
    except TileTypeError:
        raise TileTypeError(f"{what}: no dtype is meant by {describe(value)}") from None


def static_int(value: Any, what: str) -> int:
    if isinstance(value, Tile):
        raise TileTypeError(
            f"{what} must be a constant, found {describe(value)}; a parameter becomes one by the annotation ct.Constant"
        )
    if type(value) is not int:
        raise TileTypeError(f"{what} must be a constant integer, found {describe(value)}")
    return value


def static_ints(value: Any, what: str) -> Shape:
    if not isinstance(value, tuple):
        return (static_int(value, what),)
    return tuple(static_int(v, f"{what}[{i}]") for i, v in enumerate(value))


def check_tile_shape(value: Any, what: str) -> Shape:
    shape = static_ints(value, what)
    for axis, n in enumerate(shape):
        if n < 1 or n & (n - 1):
            raise TileValueError(
                f"{what}: dimension {axis} of {shape} is {n}, which is no power of two; expected "
                f"1, 2, 4, 8, …, as in {1 << max(0, n - 1).bit_length()} with a padding mode for "
                "the rest"
            )
    if math.prod(shape) > MOST_ELEMENTS:
        raise TileValueError(f"{what}: a tile of shape {shape} is too large; it has at most 2**30 elements")
    return shape


def check_axis(value: Any, ndim: int, what: str) -> int:
    axis = static_int(value, f"{what}: axis")
    if not -ndim <= axis < ndim:
        raise TileValueError(f"{what}: axis {axis} is outside a tile of {dimensions(ndim)}")
    return axis % ndim


def check_axes(value: Any, ndim: int, what: str) -> Shape:
    if value is None:
        return tuple(range(ndim))
    axes = tuple(check_axis(v, ndim, what) for v in (value if isinstance(value, tuple) else (value,)))
    if len(set(axes)) != len(axes):
        raise TileTypeError(f"{what}: axis {value} names one axis twice")
    return axes


def check_order(value: Any, ndim: int, what: str) -> Shape:
    if value == "C":
        return tuple(range(ndim))
    if value == "F":
        return tuple(reversed(range(ndim)))
    if isinstance(value, str):
        raise TileValueError(f"{what}: order {value!r} is neither 'C', 'F' nor a permutation")
    axes = static_ints(value, f"{what}: order")
    if sorted(axes) != list(range(ndim)):
        raise TileValueError(f"{what}: order {axes} is no permutation of {ndim} axes")
    return axes


def broadcast_shapes(a: Shape, b: Shape, what: str) -> Shape:
    rank = max(len(a), len(b))
    result = []
    for m, n in zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b, strict=True):
        if m != n and m != 1 and n != 1:
            raise TileValueError(f"{what}: shapes {a} and {b} do not broadcast; expected equal lengths, or 1")
        result.append(max(m, n))
    return tuple(result)


def fit(frame: Frame, value: Tile, shape: Shape, what: str) -> Tile:
    """A tile broadcast to exactly `shape`."""
    if broadcast_shapes(value.shape, shape, what) != shape:
        raise TileValueError(f"{what} of shape {value.shape} does not broadcast to {shape}")
    return frame.emit.broadcast(value, shape)
