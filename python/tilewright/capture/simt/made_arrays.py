"""Arrays that a kernel makes: shared by its block, a thread's own, of constants, and what the launch adds."""

from __future__ import annotations

from typing import Any

from ...dtype import BY_MLIR, DType, as_dtype, uint8
from ...errors import TileError, TileTypeError, TileValueError
from ..frame import Frame
from ..values import Array, describe, is_run_time
from .numbers import dtype_of

MADE = -1  # the `position` of an array that is no parameter
_SHARED, _CONSTANT, _LOCAL = 3, 4, 5  # memory spaces
DYNAMIC = "dynamic shared array"
MOST_ALIGN = 4096


def shared_array(frame: Frame, shape: Any, dtype: Any, order: Any, align: Any) -> Array:
    return _made(frame, "shared_array", _SHARED, shape, dtype, order, align)


def local_array(frame: Frame, shape: Any, dtype: Any, order: Any, align: Any) -> Array:
    return _made(frame, "local_array", _LOCAL, shape, dtype, order, align)


def _made(frame: Frame, name: str, space: int, shape: Any, dtype: Any, order: Any, align: Any) -> Array:
    what = f"device.{name}"
    extents = _extents(shape, what)
    element = _element(dtype, what)
    attributes = {"align": frame.builder.attribute(f"{_alignment(align, element, what)} : i64")}
    return _array(frame, f"tile.{name}", attributes, element, extents, order, space, what)


def _array(
    frame: Frame, op: str, attributes: Any, dtype: DType, extents: tuple[int, ...], order: Any, space: int, what: str
) -> Array:
    if order not in ("C", "F"):
        raise TileValueError(f"{what}: expected order 'C' or 'F', found {describe(order)}")
    strides, step = {}, 1
    axes = range(len(extents)) if order == "F" else reversed(range(len(extents)))
    for axis in axes:
        strides[axis] = step
        step *= extents[axis]
    by_columns = order == "F" and len(extents) > 1
    layout = f", strided<[{', '.join(str(strides[d]) for d in range(len(extents)))}]>" if by_columns else ""
    text = f"memref<{'x'.join(map(str, extents))}x{dtype.mlir}{layout}, {space}>"
    value = frame.builder.op(op, [], attributes, [text])
    name = what.removeprefix("device.").replace("_", " ")
    return Array(value, dtype, len(extents), name, MADE, extents=dict(enumerate(extents)), strides=strides)


def _extents(shape: Any, what: str) -> tuple[int, ...]:
    extents = shape if isinstance(shape, tuple) else (shape,)
    if is_run_time(shape):
        raise TileValueError(f"{what}: the shape must be constant and positive, found {describe(shape)}")
    if not extents or any(type(n) is not int for n in extents):
        raise TileTypeError(f"{what}: the shape must be an integer or a tuple of integers, found {describe(shape)}")
    if any(n <= 0 for n in extents):
        raise TileValueError(f"{what}: the shape must be constant and positive, found {describe(shape)}")
    return extents


def _element(dtype: Any, what: str) -> DType:
    found = dtype_of(dtype, what)
    if found.bits < 8 and not found.is_bool:
        raise TileTypeError(f"{what}: elements are of 8 bits or more, found {found}")
    return found


def _alignment(align: Any, dtype: DType, what: str) -> int:
    if align is None:
        return max(1, dtype.bits // 8)
    if type(align) is not int or not 1 <= align <= MOST_ALIGN or align & (align - 1):
        raise TileValueError(f"{what}: align is a power of two up to {MOST_ALIGN}, found {describe(align)}")
    return align


def dynamic_shared_array(frame: Frame) -> Array:
    return _dynamic(frame, uint8)


def _dynamic(frame: Frame, dtype: DType) -> Array:
    value = frame.builder.op("tile.dynamic_shared", [], None, [f"memref<?x{dtype.mlir}, {_SHARED}>"])
    return Array(value, dtype, 1, DYNAMIC, MADE)


def const_array(frame: Frame, array_like: Any, dtype: Any) -> Array:
    """Of NumPy's bytes."""
    import numpy as np

    what = "device.const_array"
    if is_run_time(array_like):
        raise TileTypeError(f"{what} takes what is known at compile time, found {describe(array_like)}")
    data = np.asarray(array_like)
    if dtype is None and data.dtype in (np.int64, np.float64) and not isinstance(array_like, np.ndarray):
        dtype = {"i": "int32", "f": "float32"}[data.dtype.kind]  # numbers of Python
    try:
        element = as_dtype(data.dtype if dtype is None else dtype)
        data = np.ascontiguousarray(data.astype(element.numpy))
    except (TileError, ValueError, TypeError):
        raise TileTypeError(f"{what} takes numbers, or tuples or lists of them, found {describe(array_like)}") from None
    if element.bits < 8 or element.mlir not in BY_MLIR or data.ndim == 0 or data.size == 0 or element.is_bool:
        raise TileTypeError(f"{what}: an array of one axis or more, of numbers of 8 bits or more, found {data!r}")
    kind = element.mlir.replace("u", "", 1) if element.mlir.startswith("ui") else element.mlir
    shape = "x".join(map(str, data.shape))
    value = frame.builder.attribute(f'dense<"0x{data.tobytes().hex()}"> : tensor<{shape}x{kind}>')
    return _array(frame, "tile.const_array", {"value": value}, element, data.shape, "C", _CONSTANT, what)
