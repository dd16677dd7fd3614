"""Arrays of structs: NumPy arrays of a structured dtype, whose elements are structs of device code.

`np.zeros(n, Point.dtype)` makes one for a class by @device.struct; an array of another structured dtype has elements of
a struct with the same fields. A launch passes the bytes, with one axis more, and what lies where in an element.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import sys
import typing
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..annotations import Constant
from ..arrays import Array
from ..dtype import DType, as_dtype
from ..errors import TileTypeError
from ..layout import Aligned, layout_of
from . import complexes
from .atomics import Atomic
from .complexes import KINDS, Complex, PythonComplex, complex64

if TYPE_CHECKING:
    from ..capture.frame import Frame

METADATA = "tilewright"  # what a NumPy dtype says of the class that it was made from


@dataclasses.dataclass(frozen=True)
class Form:
    """What lies at an offset of an element: a number of `kind`, or the parts of a struct, a vector or a tuple."""

    kind: Any
    offset: int
    loose: bool = False
    parts: tuple[Form, ...] = ()
    is_atomic: bool = False  # a field that is accessed in its place
    size: int = 0  # in bytes, of elements of an array
    shape: tuple[int, ...] = ()  # of a field that is an array of numbers; its parts are tuples

    @functools.cached_property
    def holds_atomics(self) -> bool:
        return any(leaf.is_atomic for leaf in self.leaves())

    def leaves(self) -> Iterator[Form]:
        if not self.parts:
            yield self
        for part in self.parts:
            yield from part.leaves()


def _fields(t: Any) -> list[tuple[str, Any]]:
    """(name, type) of each part of a struct, a vector or a tuple; none of a number."""
    if typing.get_origin(t) is tuple:
        return [(f"f{i}", part) for i, part in enumerate(typing.get_args(t))]
    if hasattr(t, "__tw_struct__"):
        return list(t.__tw_struct__.items())
    if t is complex:
        t = complex64
    if isinstance(t, type) and issubclass(t, Complex):
        return [("real", t.part), ("imag", t.part)]
    return [(axis, t.dtype) for axis in "xyzw"[: t.size]] if hasattr(t, "__tw_tree__") else []


def form_of(t: Any, offset: int = 0) -> Form:
    t = t.type if isinstance(t, Aligned) else t
    if isinstance(t, Atomic):
        return Form(t.dtype, offset, is_atomic=True)
    fields = _fields(t)
    if not fields:
        return Form(as_dtype(t), offset, t in (bool, int, float))
    kind = tuple if typing.get_origin(t) is tuple else PythonComplex if t is complex else t
    places = zip(fields, layout_of(t).fields, strict=True)
    return Form(kind, offset, False, tuple(form_of(part, offset + at) for (_, part), at in places))


def numpy_dtype(t: Any) -> Any:
    """The NumPy dtype of a type, with the offsets of C."""
    import numpy as np

    t = t.type if isinstance(t, Aligned) else t.dtype if isinstance(t, Atomic) else t
    fields, layout = _fields(t), layout_of(t)
    if not fields:
        return np.dtype(as_dtype(t).numpy)
    if fields[0][0] == "real":
        return np.dtype(t.name if t is not complex else np.complex64)
    described = {
        "names": [name for name, _ in fields],
        "formats": [numpy_dtype(part) for _, part in fields],
        "offsets": list(layout.fields),
        "itemsize": layout.size,
    }
    return np.dtype(described, metadata={METADATA: t})  # type: ignore[call-overload]


class OfClass:
    """`Point.dtype`: the NumPy dtype of arrays of a struct."""

    def __get__(self, instance: Any, owner: type) -> Any:
        return numpy_dtype(owner)


_forms: dict[Any, Form] = {}


def form_of_dtype(dtype: Any) -> Form:
    """Of a NumPy dtype: of the class that it was made from, or of a struct with its fields."""
    made_from = (dtype.metadata or {}).get(METADATA)
    key = dtype, made_from
    known = _forms.get(key)
    if known is None:
        found = form_of(made_from) if made_from is not None else _anonymous(dtype, 0)
        known = _forms.setdefault(key, dataclasses.replace(found, size=dtype.itemsize))
    return known


def _anonymous(dtype: Any, offset: int) -> Form:
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return _tuples(base, shape, offset)
    if dtype.kind == "c":
        return form_of(KINDS[dtype.name], offset)
    if dtype.names is None:
        return Form(as_dtype(dtype), offset)
    parts = tuple(_anonymous(dtype.fields[name][0], offset + dtype.fields[name][1]) for name in dtype.names)
    if not all(name.isidentifier() for name in dtype.names):
        raise TileTypeError(f"the fields of {dtype} are names that a program can write; expected such names")
    return Form(_struct_of(dtype.names, tuple(map(_hint, parts))), offset, False, parts)


def _tuples(base: Any, shape: tuple[int, ...], offset: int) -> Form:
    """A field that is an array is a tuple."""
    if not shape:
        return _anonymous(base, offset)
    count, *rest = shape
    step = base.itemsize
    for extent in rest:
        step *= extent
    parts = tuple(_tuples(base, tuple(rest), offset + i * step) for i in range(count))
    of_numbers = is_number(parts[0]) or parts[0].shape
    return Form(tuple, offset, False, parts, shape=shape if of_numbers else ())


@functools.cache
def _struct_of(names: tuple[str, ...], hints: tuple[Any, ...]) -> Any:
    """One for all dtypes whose fields have these names and types."""
    from .structs import struct  # which needs this module

    fields = dict(zip(names, hints, strict=True))
    return struct(type("record", (), {"__annotations__": fields, "__module__": "cuda.device"}))


def _hint(form: Form) -> Any:
    return tuple[tuple(map(_hint, form.parts))] if form.kind is tuple else form.kind  # type: ignore[misc]


# ---------------------------------------------------------------------------------------------
# An argument


class Fit(enum.Enum):
    """Whether numbers lie at multiples of their sizes. No bool, which a loop would take for a number that changes."""

    ALIGNED = "aligned"
    PACKED = "packed"


class RecordArray:
    """What a kernel gets for an array of structs; `bytes` has the axes of the array and one more."""

    bytes: Any
    form: Form
    fit: Fit

    def __tw_attribute__(self, frame: Frame, name: str) -> Any:
        from ..capture.simt import records

        return records.attribute(frame, self, name)

    def __tw_item__(self, frame: Frame, index: Any) -> Any:
        from ..capture.simt import records

        return records.read(frame, self, index)

    def __tw_with_item__(self, frame: Frame, index: Any, value: Any) -> Any:
        from ..capture.simt import records

        return records.write(frame, self, index, value)

    def __tw_store_field__(self, frame: Frame, index: Any, name: str, value: Any) -> None:
        from ..capture.simt import records

        records.write_field(frame, self, index, name, value)


_FIELDS = [("bytes", Any), ("form", Constant), ("fit", Constant)]
Records = dataclasses.make_dataclass(
    "Records", _FIELDS, bases=(RecordArray,), namespace={"__module__": "cuda.device"}, frozen=True
)
Records.__module__ = "cuda.device"  # a launch takes apart what is not of this package


class RecordElement:
    """A record of a Numba program: an element of an array, or a struct in one, in its place. Its fields are read and
    written there; a field that is an array is one in the same memory."""

    array: Any
    offset: Any  # of the element, in bytes
    form: Form

    def __tw_attribute__(self, frame: Frame, name: str) -> Any:
        from ..capture.simt import records

        return records.field_at(frame, self, name)

    def __tw_item__(self, frame: Frame, index: Any) -> Any:
        from ..capture.simt import records

        return records.field_at(frame, self, records.field_name(self, index))

    def __tw_with_item__(self, frame: Frame, index: Any, value: Any) -> Any:
        from ..capture.simt import records

        self.__tw_set_field__(frame, records.field_name(self, index), value)
        return self

    def __tw_set_field__(self, frame: Frame, name: str, value: Any) -> None:
        from ..capture.simt import records

        records.set_field(frame, self.array, self.form, self.offset, name, value)


_ELEMENT = [("array", Any), ("offset", Any), ("form", Constant)]
Element = dataclasses.make_dataclass(
    "Element", _ELEMENT, bases=(RecordElement,), namespace={"__module__": "cuda.device"}, frozen=True
)
Element.__module__ = "cuda.device"


def argument(value: Any) -> Any:
    """An argument of a launch: an array of structs as bytes and what they hold, anything else as it is."""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return value
    if isinstance(value, tuple) and type(value) is tuple:
        return tuple(map(argument, value))
    if type(value) is complex or isinstance(value, numpy.complexfloating):
        return complexes.argument(value)
    if isinstance(value, numpy.void) and value.dtype.names is not None:
        return of_record(form_of_dtype(value.dtype), value)
    if not isinstance(value, numpy.ndarray | Array) or not _has_parts(value.dtype):
        return value
    form = form_of_dtype(value.dtype)
    address = value.address if isinstance(value, Array) else value.ctypes.data
    is_aligned = all(_is_aligned(leaf, [address, *value.strides, value.dtype.itemsize]) for leaf in form.leaves())
    whole = value.as_bytes() if isinstance(value, Array) else value[..., None].view(numpy.uint8)
    return Records(whole, form, Fit.ALIGNED if is_aligned else Fit.PACKED)


def of_record(form: Form, found: Any) -> Any:
    """A scalar of a structured dtype, or a part of one, as an object of the struct that it is."""
    if not form.parts:
        return found.item() if form.loose else found
    if not found.dtype.names and form.kind is not tuple:
        return complexes.argument(found)
    held = [found[name] for name in found.dtype.names] if found.dtype.names else list(found)
    parts = [of_record(part, one) for part, one in zip(form.parts, held, strict=True)]
    return tuple(parts) if form.kind is tuple else form.kind(*parts)


def _has_parts(dtype: Any) -> bool:
    return not isinstance(dtype, DType) and (dtype.names is not None or dtype.kind == "c")


def _is_aligned(leaf: Form, places: list[int]) -> bool:
    """Whether a number of every element lies at a multiple of its size."""
    return all((place + (0 if i else leaf.offset)) % leaf.kind.itemsize == 0 for i, place in enumerate(places))


def is_number(form: Form) -> bool:
    return isinstance(form.kind, DType)
