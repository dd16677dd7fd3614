"""Records: arrays of structs. Each number of an element is read and written at its offset in the array's bytes.

A number lies at a multiple of its size, as in C, but in packed dtypes of NumPy: then it is made of its bytes.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import types
from collections.abc import Iterator
from typing import Any

from ...device.complexes import Complex
from ...device.records import Element, Fit, Form, Records, form_of_dtype, is_number
from ...dtype import UNSIGNED_BY_BITS, DType, bool_, uint8
from ...errors import TileTypeError
from .. import memory
from ..frame import Frame
from ..values import Array, Tile, describe
from . import arrays, complexes, structs, views


def attribute(frame: Frame, value: Any, name: str) -> Any:
    whole: Array = value.bytes
    ndim = whole.ndim - 1
    if name in ("ndim", "ndims"):
        return ndim
    if name == "dtype":
        return value.form.kind
    if name in ("shape", "strides"):
        return arrays.attribute(frame, whole, name)[:ndim]
    if name == "size":
        count: Any = 1
        for extent in arrays.attribute(frame, whole, "shape")[:ndim]:
            count = frame.emit.binary("mul", count, extent)
        return count
    if name in _names(value.form):
        return _field(frame, value, value.form.parts[_names(value.form).index(name)])
    raise TileTypeError(f"an array of structs has no attribute '{name}' in device code; it has dtype, shape, size")


def _names(form: Form) -> list[str]:
    return [] if form.kind is tuple else [field.name for field in dataclasses.fields(form.kind)]


def _field(frame: Frame, value: Any, part: Form) -> Any:
    """The field of all elements: an array in the same memory."""
    if part.shape and _refers(frame) and value.fit is Fit.ALIGNED:
        return _of_arrays(frame, value, part)
    if not is_number(part):
        return dataclasses.replace(value, form=part)
    if value.fit is not Fit.ALIGNED:
        raise TileTypeError("a field of a packed struct is no array in device code; expected it of an element")
    whole, numbers = views.shape_of(frame, value.bytes), views.Integers(frame)
    strides = [numbers.div(stride, part.kind.itemsize) for stride in whole.strides[:-1]]
    return views.made(frame, value.bytes, views.Shape(part.offset, whole.extents[:-1], strides), part.kind)


def _refers(frame: Frame) -> bool:
    return frame.capture.rules.refers_to_records


def _number_of(part: Form) -> DType:
    while part.parts:
        part = part.parts[0]
    dtype: DType = part.kind
    return dtype


def _strides_of(shape: tuple[int, ...]) -> list[int]:
    return [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]


def _of_arrays(frame: Frame, value: Any, part: Form) -> Any:
    """A field that is an array, of all elements: its axes are the last ones."""
    whole, numbers, dtype = views.shape_of(frame, value.bytes), views.Integers(frame), _number_of(part)
    strides = [numbers.div(stride, dtype.itemsize) for stride in whole.strides[:-1]]
    extents = [*whole.extents[:-1], *part.shape]
    return views.made(frame, value.bytes, views.Shape(part.offset, extents, strides + _strides_of(part.shape)), dtype)


def over_bytes(whole: Array, dtype: Any) -> Any:
    """An array of structs, or of complex numbers, over the bytes of an array that a kernel makes: one axis more."""
    form = form_of_dtype(dtype)
    aligned = all((leaf.offset | dtype.itemsize) % leaf.kind.itemsize == 0 for leaf in form.leaves())
    return Records(whole, form, Fit.ALIGNED if aligned else Fit.PACKED)


# ---------------------------------------------------------------------------------------------
# Elements


def read(frame: Frame, value: Any, index: Any) -> Any:
    """`array[index]`: a struct; by a name, the field of all elements."""
    if isinstance(index, str):
        return attribute(frame, value, index)
    return item_at(frame, value, offset_of(frame, value, index))


def item_at(frame: Frame, value: Any, offset: Any) -> Any:
    """The element at an offset in bytes."""
    if value.form.holds_atomics:
        return Reference(value, value.form, offset)
    return _held(frame, value, value.form, offset)


def _held(frame: Frame, value: Any, form: Form, offset: Any) -> Any:
    """What a name holds: in Numba's programs structs and arrays in their places, else a copy."""
    if not _refers(frame):
        return _value(frame, value, form, offset)
    if hasattr(form.kind, "__tw_struct__"):
        return Element(value, offset, form)
    if form.shape and value.fit is Fit.ALIGNED:
        place = views.Integers(frame).add(offset, form.offset)
        shape = views.Shape(place, list(form.shape), _strides_of(form.shape))
        return views.made(frame, value.bytes, shape, _number_of(form))
    return _value(frame, value, form, offset)


def field_name(element: Any, index: Any) -> str:
    """Of an index into a record: a name, or the number of a field."""
    names = _names(element.form)
    if type(index) is int and -len(names) <= index < len(names):
        return names[index]
    if not isinstance(index, str):
        raise TileTypeError(f"a record is indexed by the name of a field, found {describe(index)}; it has {names}")
    return index


def field_at(frame: Frame, element: Any, name: str) -> Any:
    kind, names = element.form.kind, _names(element.form)
    if name in names:
        return _held(frame, element.array, element.form.parts[names.index(name)], element.offset)
    method = inspect.getattr_static(kind, name, None)
    if not isinstance(method, types.FunctionType):
        raise TileTypeError(f"a {kind.__name__} has no attribute '{name}'; it has {', '.join(names)}")
    return _Method(element, method)


def copied(frame: Frame, element: Any) -> Any:
    """The struct that a record holds."""
    return _value(frame, element.array, element.form, element.offset)


class Reference:
    """An element with atomics, which is accessed where it is: `array[i]`, and `self` in its methods."""

    def __init__(self, array: Any, form: Form, offset: Any) -> None:
        self.array, self.form, self.offset = array, form, offset

    def __tw_attribute__(self, frame: Frame, name: str) -> Any:
        kind, names = self.form.kind, list(self.form.kind.__tw_struct__)
        if name in names:
            return self._field(frame, self.form.parts[names.index(name)])
        method = inspect.getattr_static(kind, name, None)
        if not isinstance(method, types.FunctionType):
            raise TileTypeError(f"a {kind.__name__} has no attribute '{name}'; it has {', '.join(names)}")
        return _Method(self, method)

    def _field(self, frame: Frame, form: Form) -> Any:
        from . import atomics  # which needs this module

        if form.is_atomic:
            offset = views.Integers(frame).add(self.offset, form.offset)
            return atomics.AtomicRef(_at(frame, self.array, form.kind, offset), [])
        if form.holds_atomics:
            return Reference(self.array, form, self.offset)
        return _value(frame, self.array, form, self.offset)


class _Method:
    """A method of such an element, about to be called."""

    def __init__(self, receiver: Any, function: types.FunctionType) -> None:
        self._receiver, self._function = receiver, function
        self.__name__ = function.__name__

    def __call__(self) -> None:
        raise TypeError("a value of the capture")

    def __tw_call__(self, frame: Frame, *args: Any, **keywords: Any) -> Any:
        from ..inlining import inline  # which stands above this package

        return inline(frame, self._function, [self._receiver, *args], keywords, frame.node)


def write(frame: Frame, value: Any, index: Any, new: Any) -> Any:
    """`array[index] = new`; the array is the same one then."""
    if value.form.holds_atomics:
        raise TileTypeError(f"a {value.form.kind.__name__} holds atomics, and so is not copied; set its fields")
    store_at(frame, value, offset_of(frame, value, index), new)
    return value


def store_at(frame: Frame, value: Any, offset: Any, new: Any) -> None:
    _store(frame, value, value.form, offset, new, "an element of an array of structs")


def write_field(frame: Frame, value: Any, index: Any, name: str, new: Any) -> None:
    """`array[index].name = new`: of the field alone."""
    set_field(frame, value, value.form, offset_of(frame, value, index), name, new)


def set_field(frame: Frame, value: Any, form: Form, offset: Any, name: str, new: Any) -> None:
    """Of a struct at an offset of an array's bytes."""
    kind, names = form.kind, list(form.kind.__tw_struct__)
    if name not in names:
        raise TileTypeError(f"a {kind.__name__} has no field '{name}', and gets none; it has {', '.join(names)}")
    part = form.parts[names.index(name)]
    if part.holds_atomics:
        raise TileTypeError(f"the field '{name}' of {kind.__name__} is an atomic; set it by {name}.store(value)")
    _store(frame, value, part, offset, new, f"the field '{name}' of {kind.__name__}")


def offset_of(frame: Frame, value: Any, index: Any) -> Any:
    """Of an element, in bytes."""
    whole: Array = value.bytes
    parts = index if isinstance(index, tuple) else (index,)
    numbers, shape = views.Integers(frame), views.shape_of(frame, whole)
    if len(parts) != whole.ndim - 1 or not all(_is_integer(p) for p in parts):
        found = describe(index)
        raise TileTypeError(f"an array of structs is indexed by {whole.ndim - 1} integers, one an axis, found {found}")
    offset: Any = 0
    for axis, part in enumerate(parts):
        place = numbers.add(part, shape.extents[axis]) if type(part) is int and part < 0 else part
        offset = numbers.add(offset, numbers.mul(place, shape.strides[axis]))
    return offset


def _is_integer(value: Any) -> bool:
    return type(value) is int or (isinstance(value, Tile) and value.dtype.is_integral)


def _value(frame: Frame, value: Any, form: Form, offset: Any) -> Any:
    if is_number(form):
        found = _load(frame, value, form.kind, views.Integers(frame).add(offset, form.offset))
        return dataclasses.replace(found, loose=form.loose)
    parts = [_value(frame, value, part, offset) for part in form.parts]
    if form.kind is tuple:
        return tuple(parts)
    names = [field.name for field in dataclasses.fields(form.kind)]
    return structs.struct(form.kind, dict(zip(names, parts, strict=True)))


def _store(frame: Frame, value: Any, form: Form, offset: Any, new: Any, what: str) -> None:
    if isinstance(new, Element):
        new = copied(frame, new)
    if is_number(form):
        tile = frame.capture.rules.converted(frame.emit, new, form.kind, what)
        _put(frame, value, tile, views.Integers(frame).add(offset, form.offset))
        return
    if isinstance(form.kind, type) and issubclass(form.kind, Complex):
        new = complexes.converted(frame, new, form.kind, what)
    if form.kind is tuple and isinstance(new, Array) and new.ndim:  # as many elements as the field has
        new = tuple(arrays.read(frame, new, i) for i in range(len(form.parts)))
    if not isinstance(new, form.kind) or (form.kind is tuple and len(new) != len(form.parts)):
        raise TileTypeError(f"{what} is a {form.kind.__name__}, found {describe(new)}; expected one")
    for part, held in zip(form.parts, _parts(new), strict=True):
        _store(frame, value, part, offset, held, what)


def _parts(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple) else [getattr(value, f.name) for f in dataclasses.fields(value)]


# ---------------------------------------------------------------------------------------------
# Numbers


def _at(frame: Frame, value: Any, dtype: DType, offset: Any) -> Array:
    """An array without axes at a place of the bytes."""
    return views.made(frame, value.bytes, views.Shape(offset, [], []), dtype)


def _bytes(frame: Frame, offset: Any, count: int) -> Iterator[tuple[int, Any]]:
    numbers = views.Integers(frame)
    return ((8 * i, numbers.add(offset, i)) for i in range(count))


def _load(frame: Frame, value: Any, dtype: DType, offset: Any) -> Tile:
    if value.fit is Fit.ALIGNED or dtype.itemsize == 1:
        return memory.read_element(frame, _at(frame, value, dtype, offset), ())
    emit, bits = frame.emit, UNSIGNED_BY_BITS[dtype.bits]
    whole: Any = emit.constant(0, bits)
    for shift, place in _bytes(frame, offset, dtype.itemsize):
        byte = emit.cast(memory.read_element(frame, _at(frame, value, uint8, place), ()), bits)
        whole = emit.binary("bitwise_or", whole, emit.binary("bitwise_lshift", byte, shift))
    return emit.bitcast(whole, dtype)


def _put(frame: Frame, value: Any, tile: Tile, offset: Any) -> None:
    if value.fit is Fit.ALIGNED or tile.dtype.itemsize == 1 or tile.dtype is bool_:
        memory.write_element(frame, _at(frame, value, tile.dtype, offset), (), tile)
        return
    emit = frame.emit
    bits = emit.bitcast(tile, UNSIGNED_BY_BITS[tile.dtype.bits])
    for shift, place in _bytes(frame, offset, tile.dtype.itemsize):
        byte = emit.cast(emit.binary("bitwise_rshift", bits, shift), uint8)
        memory.write_element(frame, _at(frame, value, uint8, place), (), byte)
