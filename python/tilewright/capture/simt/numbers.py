"""Numbers in device code: what a scalar, which behaves as an array without dimensions, has."""

from __future__ import annotations

import dataclasses
from typing import Any

from ...dtype import DType, as_dtype
from ...errors import TileError, TileTypeError, TileValueError
from ..frame import Frame
from ..values import Method, Tile, describe

_ATTRIBUTES = {"shape": (), "strides": (), "ndim": 0, "ndims": 0, "size": 1}
_METHODS = ("astype", "item", "reshape", "view")


def attribute(frame: Frame, value: Tile, name: str) -> Any:
    if name == "dtype":
        return value.dtype
    if name in _ATTRIBUTES:
        return _ATTRIBUTES[name]
    if name in ("real", "imag"):
        return value if name == "real" else 0
    methods = (*_METHODS, *frame.capture.rules.methods)
    if name in methods:
        return Method(value, name)
    known = ", ".join(("dtype", *_ATTRIBUTES, *methods))
    raise TileTypeError(f"a number has no attribute '{name}' in device code; it has {known}")


def dtype_of(value: Any, what: str) -> DType:
    try:
        return as_dtype(value)
    except TileError:
        raise TileTypeError(f"{what} needs a dtype such as device.float32, found {describe(value)}") from None


def astype(frame: Frame, value: Tile, dtype: Any, copy: Any = True) -> Tile:
    return frame.emit.cast(value, dtype_of(dtype, "astype"))


def item(frame: Frame, value: Tile) -> Tile:
    return value


def reshape(frame: Frame, value: Tile, *shape: Any) -> Tile:
    if shape not in ((), ((),)):
        raise TileValueError(f"reshape: a number has the shape (), found {describe(shape)}; expected ()")
    return value


def view(frame: Frame, value: Tile, dtype: Any) -> Tile:
    wanted = dtype_of(dtype, "view")
    if wanted.bits != value.dtype.bits or wanted.is_bool:
        raise TileTypeError(
            f"view: {value.dtype} has {value.dtype.bits} bits, {wanted} {wanted.bits}; expected as many"
        )
    if wanted is value.dtype:
        return dataclasses.replace(value, loose=False)
    return frame.emit.bitcast(value, wanted)


METHODS = {"astype": astype, "item": item, "reshape": reshape, "view": view}
