"""Arrays: read and written by index, which is tile.gather and tile.scatter of one element; and what they have."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from ... import assign
from ...dtype import int32, int64
from ...errors import TileTypeError
from ...shape_rules import dimensions
from .. import memory
from ..branches import each
from ..frame import Frame
from ..values import Array, Method, Selection, Tile, describe
from . import views

if TYPE_CHECKING:
    import numpy as np

# ---------------------------------------------------------------------------------------------
# Elements


def read(frame: Frame, array: Array, index: Any) -> Any:
    """`array[index]`: the element, without a check of its bounds, or a part of the array."""
    if not views.is_element(array, index):
        return views.part(frame, array, index)
    return memory.read_element(frame, array, _indices(frame, array, index))


def index_tiles(frame: Frame, array: Array, index: Any) -> list[Tile]:
    """`index` as scalars, one an axis."""
    tiles, _ = memory.element_indices(frame, array, _indices(frame, array, index), "an index")
    return tiles


def write(frame: Frame, array: Array, index: Any, value: Any) -> None:
    """`array[index] = value`, converted to the array's dtype."""
    entries = len(index) if isinstance(index, tuple) else 1
    if frame.capture.rules.assigns_parts and entries <= array.ndim and not views.is_element(array, index):
        _write_part(frame, views.part(frame, array, index), value)
        return
    memory.write_element(frame, array, _indices(frame, array, index), value)


def _write_part(frame: Frame, part: Array, value: Any) -> None:
    """Each element of the part, in order; an array with fewer axes is assigned to each row."""
    from ..inlining import inline

    code: Any = assign.rows if isinstance(value, Array) and value.ndim == part.ndim else assign.fill
    inline(frame, code, [part, value], {}, frame.node)


def axes_of(value: Any) -> int | None:
    """How many an array has, of numbers or of records; None where it is no array."""
    if isinstance(value, Array):
        return value.ndim
    return value.bytes.ndim - 1 if hasattr(type(value), "__tw_store_field__") else None


def write_results(frame: Frame, function: np.ufunc, values: list[Any], out: Any) -> None:
    """`function(*values, out)` of NumPy: the results for all elements, which one thread computes in order."""
    from ..inlining import inline

    name = f"numpy.{function.__name__}"
    axes = axes_of(out)
    if not axes:
        raise TileTypeError(f"{name} writes to an array, found {describe(out)}")
    is_array = [axes_of(value) is not None for value in values]
    for value in values:
        if axes_of(value) not in (None, axes):
            raise TileTypeError(f"{name} of {describe(value)} does not fill {describe(out)}: their axes differ")
    code: Any = assign.of_each if len(values) == 1 else assign.of_each_pair
    given = is_array[0] if len(values) == 1 else tuple(is_array)
    inline(frame, code, [function, *values, given, out, ()], {}, frame.node)


def _indices(frame: Frame, array: Array, index: Any) -> tuple[Any, ...]:
    indices = index if isinstance(index, tuple) else (index,)
    if not views.is_element(array, index):
        if any(isinstance(i, slice) for i in indices):
            raise TileTypeError("a slice of an array is not assigned at once; assign its elements in a loop")
        raise TileTypeError(
            f"{describe(array)} has {dimensions(array.ndim)}, the index is for {len(indices)}; give one for each"
        )
    for i in indices:
        if isinstance(i, Array):
            raise TileTypeError(f"an index is an integer, found {describe(i)}; index with its elements, in a loop")
        if (isinstance(i, Tile) and not i.dtype.is_integral) or isinstance(i, float):
            raise TileTypeError(f"an index is an integer, found {describe(i)}; convert it, as in int(i)")
    return tuple(_from_end(frame, array, axis, i) for axis, i in enumerate(indices))


def _from_end(frame: Frame, array: Array, axis: int, index: Any) -> Any:
    """What is below zero counts from the end; where the rules say so, also what the launch knows only."""
    if isinstance(index, Tile) and frame.capture.rules.wraps_indices and views.may_be_negative(index):
        place = frame.emit.cast(index, int64)
        counted = frame.emit.binary("add", place, frame.emit.cast(extent(frame, array, axis), int64))
        return frame.emit.select(frame.emit.compare("less", place, 0), counted, place)
    if type(index) is not int or index >= 0:
        return index
    return frame.emit.binary("add", extent(frame, array, axis), index)


# ---------------------------------------------------------------------------------------------
# Attributes


def extent(frame: Frame, array: Array, axis: int) -> Tile:
    return frame.capture.rules.extent(frame.emit, memory.extent(frame, array, axis))


def attribute(frame: Frame, array: Array, name: str) -> Any:
    found = _ATTRIBUTES.get(name)
    if found is not None:
        return found(frame, array)
    methods = METHODS | frame.capture.rules.array_methods
    if name in methods:
        return Method(array, name)
    known = ", ".join((*_ATTRIBUTES, *methods))
    raise TileTypeError(f"an array has no attribute '{name}' in device code; it has {known}")


def _shape(frame: Frame, array: Array) -> tuple[Tile, ...]:
    return tuple(extent(frame, array, axis) for axis in range(array.ndim))


def _strides(frame: Frame, array: Array) -> tuple[Tile, ...]:
    """In bytes, as NumPy has them."""
    strides = [memory.stride(frame, array, axis) for axis in range(array.ndim)]
    return tuple(frame.emit.binary("mul", stride, array.dtype.itemsize) for stride in strides)


def _size(frame: Frame, array: Array) -> Any:
    found: Any = frame.emit.constant(1, int32)
    for axis in range(array.ndim):
        found = frame.emit.binary("mul", found, extent(frame, array, axis))
    return dataclasses.replace(found, loose=True)


def length(frame: Frame, value: Any) -> Any:
    """`len(value)`."""
    if isinstance(value, Selection):
        return each(frame, value, lambda choice: length(frame, choice))
    if isinstance(value, Array) and value.ndim:
        return extent(frame, value, 0)
    if hasattr(type(value), "__tw_store_field__"):
        return value.__tw_attribute__(frame, "shape")[0]
    if isinstance(value, Tile | Array) or not hasattr(value, "__len__"):
        raise TileTypeError(f"len needs a tuple, a vector or an array with a dimension, found {describe(value)}")
    return len(value)


_ATTRIBUTES = {
    "dtype": lambda frame, array: array.dtype,
    "shape": _shape,
    "strides": _strides,
    "size": _size,
    "ndim": lambda frame, array: array.ndim,
    "ndims": lambda frame, array: array.ndim,
    "itemsize": lambda frame, array: array.dtype.itemsize,
    "nbytes": lambda frame, array: frame.emit.binary("mul", _size(frame, array), array.dtype.itemsize),
    "T": lambda frame, array: views.transposed(frame, array),
}
METHODS: dict[str, Any] = {"astype": views.astype, "reshape": views.reshape, "view": views.view}
