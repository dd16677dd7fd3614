"""Views: parts of an array under extents and strides of their own, which are `tile.view` of it.

A slice, a reshape and `view` of another dtype are arrays like any; they share the memory, and nothing is copied.
Extents and strides are int64 scalars, those known at compile time constants.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import re
from typing import Any

from ...dtype import DType, int32, int64
from ...errors import RowsError, TileTypeError, TileValueError
from .. import memory
from ..assertions import emit_assert
from ..frame import Frame
from ..values import Array, Tile, describe
from .numbers import dtype_of


@dataclasses.dataclass(slots=True)
class Shape:
    """What a view is made of: where it begins, in bytes, and its axes; entries are int64 scalars or Python's ints."""

    offset: Any
    extents: list[Any]
    strides: list[Any]  # in elements


def shape_of(frame: Frame, array: Array) -> Shape:
    axes = range(array.ndim)
    extents = [_fixed(array.extents, d) or frame.emit.cast(memory.extent(frame, array, d), int64) for d in axes]
    strides = [1 if array.unit == d else _fixed(array.strides, d) or memory.stride(frame, array, d) for d in axes]
    return Shape(0, extents, strides)


def _fixed(known: Any, axis: int) -> int | None:
    found = known.get(axis)
    return found if type(found) is int else None


def made(frame: Frame, array: Array, shape: Shape, dtype: DType | None = None, align: int | None = None) -> Array:
    """The array of this shape in the memory of another one; `align` bytes divide its address, as the caller knows."""
    dtype = dtype or array.dtype
    offset, *rest = (_wide(frame, v) for v in (shape.offset, *shape.extents, *shape.strides))
    rank = len(shape.extents)
    space = re.search(r", (\d+)>$", array.ir.type)
    where = f", {space[1]}" if space else ""
    layout = f", strided<[{', '.join('?' * rank)}]>" if rank else ""
    text = f"memref<{'?x' * rank}{dtype.mlir}{layout}{where}>"
    attributes: dict[str, Any] = {"operandSegmentSizes": (1, 1, rank, rank)}
    if align is not None:
        attributes["align"] = frame.builder.attribute(f"{align} : i64")
    value = frame.builder.op("tile.view", [array.ir, offset.ir, *(t.ir for t in rest)], attributes, [text])
    extents = {d: n for d, n in enumerate(shape.extents) if type(n) is int}
    strides = {d: n for d, n in enumerate(shape.strides) if type(n) is int}
    return Array(value, dtype, rank, array.name, array.position, int32, None, {}, extents, strides)


def _wide(frame: Frame, value: Any) -> Tile:
    return frame.emit.constant(value, int64) if type(value) is int else frame.emit.cast(value, int64)


def aligned(frame: Frame, array: Array, align: int) -> Array:
    """The same array, whose address `align` bytes divide, as the caller knows: accesses to neighbours may be one."""
    return made(frame, array, shape_of(frame, array), align=align)


# ---------------------------------------------------------------------------------------------
# Arithmetic of what may be constant


class Integers:
    """Sums and products of int64 scalars and of ints, which stay ints."""

    def __init__(self, frame: Frame) -> None:
        self.emit = frame.emit

    def add(self, x: Any, y: Any) -> Any:
        return y if x == 0 else x if type(y) is int and y == 0 else self._binary("add", x, y)

    def mul(self, x: Any, y: Any) -> Any:
        return y if type(x) is int and x == 1 else x if type(y) is int and y == 1 else self._binary("mul", x, y)

    def sub(self, x: Any, y: Any) -> Any:
        return x if type(y) is int and y == 0 else self._binary("sub", x, y)

    def least(self, x: Any, y: Any) -> Any:
        return self._binary("minimum", x, y)

    def most(self, x: Any, y: Any) -> Any:
        return self._binary("maximum", x, y)

    def div(self, x: Any, y: int) -> Any:
        return x if y == 1 else self._binary("floordiv", x, y)

    def from_end(self, x: Any, extent: Any) -> Any:
        """An index below zero counts from the end."""
        if type(x) is int:
            return x if x >= 0 else self.add(x, extent)
        below = self.emit.compare("less", x, 0)
        return self.emit.select(below, self.add(x, extent), x)

    def _binary(self, name: str, x: Any, y: Any) -> Any:
        x, y = (self.emit.cast(v, int64) if isinstance(v, Tile) else v for v in (x, y))
        return self.emit.binary(name, x, y)


# ---------------------------------------------------------------------------------------------
# Subscripts


def is_element(array: Array, index: Any) -> bool:
    """Whether a subscript names one element."""
    parts = index if isinstance(index, tuple) else (index,)
    return len(parts) == array.ndim and not any(isinstance(p, slice) or p is None or p is Ellipsis for p in parts)


def part(frame: Frame, array: Array, index: Any) -> Array:
    """`array[index]` that is no single element: integers, slices, `...` and None; missing axes are whole."""
    whole, found = shape_of(frame, array), Shape(0, [], [])
    axis, numbers = 0, Integers(frame)
    for entry in _complete(array, index if isinstance(index, tuple) else (index,)):
        if entry is None:
            found.extents.append(1)
            found.strides.append(0)
            continue
        first = _place(numbers, entry, whole.extents[axis], whole.strides[axis], found)
        step = numbers.mul(first, numbers.mul(whole.strides[axis], array.dtype.itemsize))
        found.offset = numbers.add(found.offset, step)
        axis += 1
    result = made(frame, array, found)
    result.rows = array.rows and _keeps_rows(index)
    return result


def _complete(array: Array, parts: tuple[Any, ...]) -> list[Any]:
    """One entry an axis, and None for each new one."""
    given = [p for p in parts if p is not None and p is not Ellipsis]
    missing = array.ndim - len(given)
    if missing < 0 or sum(p is Ellipsis for p in parts) > 1:
        raise TileTypeError(f"{describe(array)} is indexed by at most {array.ndim} entries, found {len(given)}")
    at = next((i for i, p in enumerate(parts) if p is Ellipsis), len(parts))
    return [*parts[:at], *[slice(None)] * missing, *parts[at + 1 :]]


def _place(numbers: Integers, entry: Any, extent: Any, stride: Any, found: Shape) -> Any:
    """Where an entry begins along its axis; a slice adds an axis."""
    if not isinstance(entry, slice):
        if not (type(entry) is int or (isinstance(entry, Tile) and entry.dtype.is_integral)):
            raise TileTypeError(f"an index is an integer or a slice, found {describe(entry)}")
        return numbers.add(entry, extent) if type(entry) is int and entry < 0 else entry
    step = 1 if entry.step is None else entry.step
    if type(step) is not int or step == 0:
        raise TileValueError(f"the step of a slice is a constant that is not zero, found {describe(step)}")
    low, high = (0, extent) if step > 0 else (-1, numbers.sub(extent, 1))
    start, stop = _bound(numbers, entry.start, extent, low, high), _bound(numbers, entry.stop, extent, low, high)
    start, stop = (low if step > 0 else high) if start is None else start, stop
    stop = (high if step > 0 else low) if stop is None else stop
    length = numbers.sub(stop, start) if step > 0 else numbers.sub(start, stop)
    length = numbers.most(numbers.div(numbers.add(length, abs(step) - 1), abs(step)), 0)
    found.extents.append(length)
    found.strides.append(numbers.mul(stride, step))
    return start


def _bound(numbers: Integers, value: Any, extent: Any, low: Any, high: Any) -> Any:
    """A bound of a slice as Python takes it: from the end if below zero, and within the axis."""
    if value is None:
        return None
    if type(value) is not int and not (isinstance(value, Tile) and value.dtype.is_integral):
        raise TileTypeError(f"a bound of a slice is an integer, found {describe(value)}")
    if type(value) is int and value == 0 and type(low) is int and low == 0:
        return 0
    return numbers.most(numbers.least(numbers.from_end(value, extent), high), low)


# ---------------------------------------------------------------------------------------------
# Methods


def view(frame: Frame, array: Array, dtype: Any) -> Array:
    """`array.view(dtype)`: the same memory. Where sizes differ the last axis must lie side by side, as in NumPy."""
    wanted, shape, numbers = dtype_of(dtype, "view"), shape_of(frame, array), Integers(frame)
    old, new = array.dtype.itemsize, wanted.itemsize
    if old == new:
        return made(frame, array, shape, wanted)
    if not array.ndim or not _is_side_by_side(array, array.ndim - 1):
        raise TileTypeError(
            f"view: {array.dtype} and {wanted} differ in size, and the elements of {describe(array)} are not known to "
            "lie side by side; expected a contiguous last axis"
        )
    for axis in range(array.ndim - 1):
        shape.strides[axis] = numbers.div(numbers.mul(shape.strides[axis], old), new)
    shape.extents[-1], shape.strides[-1] = numbers.div(numbers.mul(shape.extents[-1], old), new), 1
    if new > old and frame.capture.checked:
        shape.offset = _at_multiple(frame, array, new)
    return made(frame, array, shape, wanted)


def _at_multiple(frame: Frame, array: Array, size: int) -> Tile:
    """In check mode elements that do not lie at a multiple of their size say so, and are those that do before them."""
    emit = frame.emit
    address = emit.typed("tile.address", [array.ir], None, int64, ())
    beyond = emit.binary("bitwise_and", address, emit.constant(size - 1, int64))
    emit_assert(frame, emit.compare("equal", beyond, 0), f"view: the address is not a multiple of {size} bytes")
    return emit.binary("sub", emit.constant(0, int64), beyond)


def _is_side_by_side(array: Array, axis: int) -> bool:
    return array.unit == axis or _fixed(array.strides, axis) == 1 or (axis == array.ndim - 1 and _rows(array))


def _rows(array: Array) -> bool:
    """Whether the type says that elements lie in row-major order: without strides of its own."""
    return "strided" not in array.ir.type


def reshape(frame: Frame, array: Array, *shape: Any) -> Array:
    """`array.reshape(shape)` of an array whose elements lie side by side in row-major order."""
    extents = list(shape[0]) if len(shape) == 1 and isinstance(shape[0], tuple) else list(shape)
    whole, numbers = shape_of(frame, array), Integers(frame)
    _check_contiguous(frame, array)
    unknown = [d for d, n in enumerate(extents) if type(n) is int and n == -1]
    if len(unknown) > 1 or not all(isinstance(n, Tile) or type(n) is int for n in extents):
        raise TileTypeError(f"reshape: the shape is made of integers, of which one may be -1, found {describe(shape)}")
    if unknown:
        extents[unknown[0]] = _rest(numbers, whole, [n for n in extents if not (type(n) is int and n == -1)])
    elif all(type(n) is int for n in (*extents, *whole.extents)) and math.prod(extents) != math.prod(whole.extents):
        raise TileValueError(f"reshape: {math.prod(whole.extents)} elements have no shape {tuple(extents)}")
    else:
        extents = _completed(numbers, whole, extents)
    strides: list[Any] = [1] * len(extents)
    for axis in range(len(extents) - 2, -1, -1):
        strides[axis] = numbers.mul(strides[axis + 1], extents[axis + 1])
    found = made(frame, array, Shape(0, extents, strides))
    found.rows = array.rows
    return found


def ravel(frame: Frame, array: Array) -> Array:
    """`array.ravel()`: the elements along one axis."""
    return reshape(frame, array, -1)


def _check_contiguous(frame: Frame, array: Array) -> None:
    if array.ndim == 0 or _rows(array) or (array.ndim == 1 and _is_side_by_side(array, 0)):
        return
    if array.rows and array.position in frame.capture.rows:
        return
    message = (
        f"reshape: the elements of {describe(array)} are not known to lie side by side in row-major order, so that "
        "it would copy; expected an array of one axis with stride 1, or one that the kernel made"
    )
    if array.rows and array.position >= 0 and frame.capture.rules.asks_for_rows:
        raise RowsError(message, array.position)
    raise TileTypeError(message)


def _keeps_rows(index: Any) -> bool:
    """Whether a part lies in row-major order if the whole does: integers, a slice of step 1, and whole axes."""
    parts = index if isinstance(index, tuple) else (index,)
    first = next((i for i, p in enumerate(parts) if isinstance(p, slice)), len(parts))
    behind = parts[first:]
    if any(p is None or p is Ellipsis for p in parts) or not all(isinstance(p, slice) for p in behind):
        return False
    is_plain = all(p.step is None or (type(p.step) is int and p.step == 1) for p in behind)
    return is_plain and all(p.start is None and p.stop is None for p in behind[1:])


def _rest(numbers: Integers, whole: Shape, known: list[Any]) -> Any:
    count: Any = 1
    for extent in whole.extents:
        count = numbers.mul(count, extent)
    for extent in known:
        count = numbers._binary("floordiv", count, extent)
    return count


def _completed(numbers: Integers, whole: Shape, extents: list[Any]) -> list[Any]:
    """Extents of which one may turn out to be -1: the rest."""
    may_be = [isinstance(n, Tile) and may_be_negative(n) for n in extents]
    if not any(may_be):
        return extents
    others = functools.reduce(numbers.mul, extents, -1)  # of the others, if one is -1
    rest = numbers._binary("floordiv", functools.reduce(numbers.mul, whole.extents, 1), numbers.most(others, 1))
    emit = numbers.emit
    return [
        emit.select(emit.compare("equal", n, -1), rest, emit.cast(n, int64)) if may else n
        for n, may in zip(extents, may_be, strict=True)
    ]


def may_be_negative(index: Tile) -> bool:
    if index.known is not None:
        return bool(index.known < 0)
    return index.dtype.min < 0 and (index.least is None or index.least < 0)


def transposed(frame: Frame, array: Array) -> Array:
    """`array.T`: the axes the other way round."""
    shape = shape_of(frame, array)
    return made(frame, array, Shape(0, shape.extents[::-1], shape.strides[::-1]))


def astype(frame: Frame, array: Array, dtype: Any, copy: Any = True) -> Array:
    """`array.astype(dtype, copy=False)`, which allocates nothing only where the dtype is the same."""
    if dtype_of(dtype, "astype") is not array.dtype or copy is not False:
        raise TileTypeError(
            f"astype of {describe(array)} to {describe(dtype)} would allocate an array; in device code write "
            "astype(the same dtype, copy=False), or convert elements"
        )
    return array
