"""A `@device.func` called on tiles, in the reference execution: the function's body for one element after the other."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import dtype as dt
from ..errors import TileTypeError
from ..shape_rules import broadcast_shapes
from .numbers import Number
from .values import Array, Tile


def mapped(function: types.FunctionType, plain: Callable[..., Any]) -> Callable[..., Any]:
    """The function as tile code calls it; `plain` is what it is without tiles."""

    def call(*args: Any, **keywords: Any) -> Any:
        if any(_is_tile(v) for v in (*args, *keywords.values())):
            return _each(function, args, keywords)
        return plain(*args, **keywords)

    call.__tw_function__ = function  # type: ignore[attr-defined]
    return call


def _is_tile(value: Any) -> bool:
    return isinstance(value, Tile) and value.shape != ()


def _each(function: types.FunctionType, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    what = f"the @device.func '{function.__name__}'"
    shape: tuple[int, ...] = ()
    for value in (*args, *keywords.values()):
        if _is_tile(value):
            shape = broadcast_shapes(shape, value.shape, what)
    found = []
    for place in np.ndindex(shape):
        at = [_element(v, shape, place) for v in args]
        found.append(_run(function, at, {name: _element(v, shape, place) for name, v in keywords.items()}))
    if isinstance(found[0], tuple):
        return tuple(_tile(what, list(column), shape) for column in zip(*found, strict=True))
    return None if found[0] is None else _tile(what, found, shape)


def _element(value: Any, shape: tuple[int, ...], place: tuple[int, ...]) -> Any:
    """What the function gets of an argument."""
    from .device_arrays import DeviceArray  # which needs this package

    if isinstance(value, Tile):
        whole = np.broadcast_to(value._data, shape) if value.shape else value._data
        return Number(whole[place if value.shape else ()], value.dtype)
    return DeviceArray(value._data) if isinstance(value, Array) else value


def _run(function: types.FunctionType, args: list[Any], keywords: dict[str, Any]) -> Any:
    """One call, by a thread of its own."""
    from . import device  # which needs this package
    from .device_block import Block

    one, told, body = (1, 1, 1), [], device.runnable(function)
    Block([device.Thread((0, 0, 0), (0, 0, 0), one, one)]).run(lambda: told.append(body(*args, **keywords)))
    return told[0]


def _tile(what: str, found: list[Any], shape: tuple[int, ...]) -> Tile:
    kinds = {_dtype(what, value) for value in found}
    if len(kinds) != 1:
        raise TileTypeError(f"{what} returns {' and '.join(sorted(map(str, kinds)))}; expected one dtype")
    (dtype,) = kinds
    return Tile(np.array([_plain(v) for v in found], dtype.numpy).reshape(shape), dtype)


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Number) else value


def _dtype(what: str, value: Any) -> dt.DType:
    if isinstance(value, Number):
        return value.dtype
    if not isinstance(value, bool | int | float):
        raise TileTypeError(
            f"{what} is called on tiles, and returns {value!r}; expected a number, a tuple of numbers or nothing"
        )
    return {bool: dt.bool_, int: dt.int32, float: dt.float32}[type(value)]
