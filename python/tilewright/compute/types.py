"""The types of items: numbers, complex numbers, structs, and tuples of those.

An item type is a `DType`, a class by `gpu_struct` or `device.struct`, a complex class of `tilewright.device`, or a
tuple of item types, which is what a `ZipIterator` has.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any

from .. import dtype as dt
from ..arrays import Array
from ..capture.simt import complexes as complex_values
from ..capture.simt import made_arrays
from ..capture.values import Tile, describe, is_number
from ..device import records
from ..device.complexes import KINDS, Complex, of_parts
from ..dtype import DType, as_dtype
from ..errors import TileError, TileTypeError, TileValueError
from ..layout import Layout, layout_of, struct_layout

if TYPE_CHECKING:
    from ..capture.frame import Frame

ItemType = Any  # DType | type[Complex] | a struct class | tuple[ItemType, ...]


def is_struct(t: ItemType) -> bool:
    return hasattr(t, "__tw_struct__")


def is_complex(t: ItemType) -> bool:
    return isinstance(t, type) and issubclass(t, Complex)


def parts_of(t: ItemType) -> tuple[ItemType, ...]:
    """The types of the parts of a tuple or a struct; none of a number."""
    if isinstance(t, tuple):
        return t
    return tuple(map(item_type, t.__tw_struct__.values())) if is_struct(t) else ()


def name_of(t: ItemType) -> str:
    if isinstance(t, tuple):
        return f"({', '.join(map(name_of, t))})"
    return t.name if isinstance(t, DType) or is_complex(t) else f"struct {t.__name__}"


# --- from what users write --------------------------------------------------------------------------------------


def item_type(hint: Any) -> ItemType:
    """Of a NumPy dtype or scalar class, a `DType`, a struct class, or a type of `tilewright.numba`."""
    import numpy as np

    if isinstance(hint, np.dtype) and hint.names is None:
        return _of_numbers(hint)
    if isinstance(hint, DType) or is_struct(hint) or is_complex(hint):
        return hint
    if isinstance(hint, dict):
        return gpu_struct(hint)
    of = getattr(hint, "of", None)  # a type of tilewright.numba
    if isinstance(of, DType):
        return of
    if getattr(hint, "name", None) in KINDS and not isinstance(hint, np.dtype):
        return KINDS[hint.name]
    try:
        found = np.dtype(hint)
    except TypeError:
        return as_dtype(hint)
    if found.names is None:
        return _of_numbers(found)
    kind = records.form_of_dtype(found).kind
    return _struct_of_dtype(found) if is_struct(kind) and not hasattr(kind, "__tw_gpu_struct__") else kind


@functools.cache
def _of_numbers(dtype: Any) -> ItemType:
    return records.form_of_dtype(dtype).kind if dtype.kind == "c" else as_dtype(dtype)


def stored_type(dtype: Any) -> ItemType:
    """What kernels read from arrays of a dtype, and store."""
    if isinstance(dtype, DType) or dtype.names is None:
        return item_type(dtype)
    return records.form_of_dtype(dtype).kind


_of_dtypes: dict[Any, Any] = {}


def _struct_of_dtype(dtype: Any) -> Any:
    """A struct of the fields of a structured dtype of NumPy, the same one every time."""
    found = _of_dtypes.get(dtype)
    return _of_dtypes.setdefault(dtype, gpu_struct(dtype)) if found is None else found


def numpy_dtype(t: ItemType) -> Any:
    """The NumPy dtype of arrays of it; of a dtype itself."""
    import numpy as np

    if isinstance(t, np.dtype):
        return t
    if isinstance(t, DType):
        return _of_dtype(t)
    if isinstance(t, tuple):
        return records.numpy_dtype(_hint(t))
    return records.numpy_dtype(t)


@functools.cache
def _of_dtype(t: DType) -> Any:
    return records.numpy_dtype(t)


def _hint(t: ItemType) -> Any:
    made: Any = tuple
    return made[tuple(map(_hint, t))] if isinstance(t, tuple) else t


def array_dtype(t: ItemType) -> Any:
    """The dtype of an array of our own of it."""
    return t if isinstance(t, DType) else numpy_dtype(t)


def size_of(t: ItemType) -> int:
    return t.itemsize if isinstance(t, DType) else int(numpy_dtype(t).itemsize)


# --- gpu_struct -------------------------------------------------------------------------------------------------


def gpu_struct(fields: Any, name: str | None = None) -> Any:
    """Make a struct of a class with type hints, a dict of types by names, or a structured NumPy dtype.

        @gpu_struct
        class Pixel:
            r: np.int32
            g: np.int32

    `Pixel(1, 2)` makes one, on the host and in operators; `Pixel.dtype` is the NumPy dtype of arrays of it.
    """
    import numpy as np

    if isinstance(fields, type) and not issubclass(fields, np.generic):
        hints, name = _hints_of(fields), name or fields.__name__
    elif isinstance(fields, dict):
        hints = dict(fields)
    else:
        dtype = np.dtype(fields)
        if dtype.names is None:
            raise TileTypeError(f"gpu_struct makes a struct of a class, a dict or a structured dtype, found {fields!r}")
        hints = {field: dtype.fields[field][0] for field in dtype.names}
    return _struct_class(name or "AnonymousStruct", hints, fields if isinstance(fields, type) else object)


def _hints_of(cls: type) -> dict[str, Any]:
    import sys

    from ..structure import annotations_of

    found, frame = {}, sys._getframe(2)
    for field, hint in annotations_of(cls).items():
        found[field] = eval(hint, {**frame.f_globals, **frame.f_locals}) if isinstance(hint, str) else hint
    return found


def _struct_class(name: str, hints: dict[str, Any], base: type) -> Any:
    if not hints:
        raise TileTypeError(f"gpu_struct {name} has no fields; write one as NAME: TYPE")
    types: dict[str, Any] = {}
    for field, hint in hints.items():
        if not isinstance(field, str) or not field.isidentifier():
            raise TileValueError(f"gpu_struct {name}: {field!r} is not a valid Python identifier, as a field has")
        try:
            types[field] = item_type(hint)
        except (TileError, TypeError) as error:
            raise TileTypeError(f"gpu_struct {name}: the field '{field}': {error}") from None
    members = {
        "__annotations__": types,
        "__module__": "cuda.compute",
        "__init__": _initialize,
        "__getitem__": _field_at,
        "__iter__": lambda self: (getattr(self, field) for field in types),
        "__eq__": _equal,
        "__hash__": None,
        "__tw_struct__": types,
        "__tw_gpu_struct__": True,
        "__tw_tree__": True,
        "__tw_layout__": classmethod(lambda cls: struct_layout(types.values(), 1)),
        "__tw_make__": classmethod(_make),
        "__tw_item__": _item,
        "dtype": records.OfClass(),
        "_data": property(lambda self: scalar_array(type(self), self)),
    }
    kept = {n: v for n, v in vars(base).items() if isinstance(v, property) or callable(v)} if base is not object else {}
    made = type(name, (), {**{n: v for n, v in kept.items() if not n.startswith("__")}, **members})
    return dataclasses.dataclass(frozen=True, init=False, eq=False)(made)


def _initialize(self: Any, *values: Any, **named: Any) -> None:
    kind = type(self)
    fields = list(kind.__tw_struct__)
    if len(values) == 1 and len(fields) > 1 and not named:  # all of them in one
        values = tuple(_held(kind, values[0], kind.__name__))
    count = len(values) + len(named)
    if count != len(fields) or not named.keys() <= set(fields[len(values) :]):
        raise TileTypeError(f"{kind.__name__} takes ({', '.join(fields)}), found {count} values")
    given = {**dict(zip(fields, values, strict=False)), **named}
    for field, t in kind.__tw_struct__.items():
        object.__setattr__(self, field, on_host(t, given[field], f"the field '{field}' of {kind.__name__}"))


def _field_at(self: Any, index: int | str) -> Any:
    fields = list(type(self).__tw_struct__)
    return getattr(self, index if isinstance(index, str) else fields[index])


def _equal(self: Any, other: Any) -> bool:
    return type(self) is type(other) and all(getattr(self, f) == getattr(other, f) for f in type(self).__tw_struct__)


def _make(cls: Any, frame: Frame, args: list[Any], keywords: dict[str, Any]) -> Any:
    fields = list(cls.__tw_struct__)
    given = {**dict(zip(fields, args, strict=False)), **keywords}
    if len(args) + len(keywords) != len(fields) or given.keys() != set(fields):
        raise TileTypeError(f"{cls.__name__} takes ({', '.join(fields)}), found {len(args) + len(keywords)} values")
    return _struct_of(cls, [converted(frame, given[f], t, f"the field '{f}'") for f, t in cls.__tw_struct__.items()])


def _struct_of(cls: Any, values: list[Any]) -> Any:
    made = object.__new__(cls)
    for field, value in zip(cls.__tw_struct__, values, strict=True):
        object.__setattr__(made, field, value)
    return made


def _item(self: Any, frame: Frame, index: Any) -> Any:
    """`item[1]` and `item["r"]` in an operator."""
    fields = list(type(self).__tw_struct__)
    if type(index) is int and -len(fields) <= index < len(fields):
        return getattr(self, fields[index])
    if isinstance(index, str) and index in fields:
        return getattr(self, index)
    known = ", ".join(fields)
    raise TileTypeError(f"a {type(self).__name__} has the fields {known}, found the index {describe(index)}")


# --- values of the host -----------------------------------------------------------------------------------------


def on_host(t: ItemType, value: Any, what: str) -> Any:
    """A value of the host as a launch takes it: NumPy's scalar, a struct of those, or a tuple."""
    import numpy as np

    if isinstance(value, np.ndarray):
        if value.size != 1:
            raise TileTypeError(f"{what} is one value, found an array of shape {value.shape}")
        value = value.reshape(())[()]
    parts = parts_of(t)
    if parts:
        held = _held(t, value, what)
        made = [on_host(p, v, what) for p, v in zip(parts, held, strict=True)]
        return tuple(made) if isinstance(t, tuple) else _struct_of(t, made)
    try:
        return numpy_dtype(t).type(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise TileTypeError(f"{what} is a {name_of(t)}, found {value!r}: {error}") from None


def _held(t: ItemType, value: Any, what: str) -> list[Any]:
    import numpy as np

    count = len(parts_of(t))
    fields = getattr(type(value), "__tw_struct__", None)
    if fields is not None:
        held = [getattr(value, f) for f in fields]
    elif isinstance(value, np.void):
        held = list(value.item())
    elif isinstance(value, tuple | list):
        held = list(value)
    elif isinstance(value, dict) and is_struct(t) and value.keys() == t.__tw_struct__.keys():
        held = [value[f] for f in t.__tw_struct__]
    else:
        raise TileTypeError(f"{what} is a {name_of(t)}, found {value!r}")
    if len(held) != count:
        raise TileTypeError(f"{what} is a {name_of(t)} of {count} parts, found {len(held)}")
    return held


def type_of_value(value: Any) -> ItemType:
    """The item type of a value of the host: an array of one element, a scalar, a struct."""
    if is_struct(type(value)):
        return type(value)
    if hasattr(value, "dtype"):
        return item_type(value.dtype)
    if isinstance(value, tuple):
        return tuple(map(type_of_value, value))
    import numpy as np

    if isinstance(value, bool | int | float | complex):
        return item_type(np.asarray(value).dtype)
    raise TileTypeError(f"expected a NumPy scalar, an array of one element or a struct, found {value!r}")


def scalar_array(t: ItemType, value: Any) -> Any:
    """An array of one element on the host."""
    import numpy as np

    array = np.zeros(1, numpy_dtype(t))
    array[0] = _plain(value)
    return array


def _plain(value: Any) -> Any:
    fields = getattr(type(value), "__tw_struct__", None)
    return value if fields is None else tuple(_plain(getattr(value, f)) for f in fields)


def argument_of(t: ItemType, value: Any) -> Any:
    """`on_host`'s value as a launch takes it: floats of 16 bits as float32, which holds them."""
    import numpy as np

    if isinstance(t, DType):
        return np.float32(value) if t.is_float and t.bits < 32 else value
    if is_complex(t):
        return records.argument(value)
    made = [argument_of(p, v) for p, v in zip(parts_of(t), _held(t, value, "a value"), strict=True)]
    return tuple(made)


# --- values in kernels ------------------------------------------------------------------------------------------


def type_in_kernel(frame: Frame, value: Any) -> ItemType:
    """The item type of a value of a running kernel."""
    if isinstance(value, Tile) and not value.shape:
        return value.dtype
    if is_number(value):
        rules: Any = frame.capture.rules
        return rules.literal(value)
    if isinstance(value, tuple):
        return tuple(type_in_kernel(frame, v) for v in value)
    if isinstance(value, Complex):
        return KINDS["complex64"] if type(value).name == "complex" else type(value)
    if is_struct(type(value)):
        return type(value)
    raise TileTypeError(f"an item is a number, a complex number, a struct or a tuple of those, found {describe(value)}")


def converted(frame: Frame, value: Any, t: ItemType, what: str) -> Any:
    """A value of a kernel as one of an item type: numbers convert, structs and tuples part by part."""
    if isinstance(t, DType):
        if not isinstance(value, Tile) and not is_number(value):
            raise TileTypeError(f"{what}: expected {t}, found {_found(value)}")
        return frame.capture.rules.converted(frame.emit, value, t, what)
    if is_complex(t):
        return complex_values.converted(frame, value, t, what)
    parts, held = parts_of(t), _parts_in_kernel(value)
    if held is None or len(held) != len(parts):
        raise TileTypeError(f"{what}: expected {name_of(t)}, found {_found(value)}")
    made = [converted(frame, v, p, what) for v, p in zip(held, parts, strict=True)]
    return tuple(made) if isinstance(t, tuple) else _struct_of(t, made)


def _found(value: Any) -> str:
    if isinstance(value, Complex):
        return f"a {type(value).name}; take its part, as in z.real"
    return f"a tuple of {len(value)}" if isinstance(value, tuple) else describe(value)


def _parts_in_kernel(value: Any) -> list[Any] | None:
    if isinstance(value, tuple):
        return list(value)
    fields = getattr(type(value), "__tw_struct__", None)
    return None if fields is None else [getattr(value, f) for f in fields]


def _zero(frame: Frame, t: ItemType) -> Any:
    if isinstance(t, DType):
        return frame.emit.constant(False if t.is_bool else 0.0 if t.is_float else 0, t)
    if is_complex(t):
        return of_parts(t, _zero(frame, t.part), _zero(frame, t.part))
    made = [_zero(frame, p) for p in parts_of(t)]
    return tuple(made) if isinstance(t, tuple) else _struct_of(t, made)


class Convert:
    """In a kernel: `convert(value)` is the value as one of the type."""

    def __init__(self, t: ItemType, what: str) -> None:
        self.type, self.what = t, what

    def __call__(self, value: Any) -> Any:
        raise TileError("a conversion of kernels was called on the host")

    def __tw_call__(self, frame: Frame, value: Any) -> Any:
        return converted(frame, value, self.type, self.what)


class Zero:
    """In a kernel: `zero()` is a value of the type whose numbers are 0."""

    def __init__(self, t: ItemType) -> None:
        self.type = t

    def __call__(self) -> Any:
        raise TileError("a zero of kernels was called on the host")

    def __tw_call__(self, frame: Frame) -> Any:
        return _zero(frame, self.type)


class Shared:
    """In a kernel: `shared()` is an array of `count` items that the threads of a block share."""

    def __init__(self, t: ItemType, count: int) -> None:
        self.type, self.count = t, count

    def __call__(self) -> Any:
        raise TileError("a shared array of kernels was made on the host")

    def __tw_call__(self, frame: Frame) -> Any:
        if isinstance(self.type, DType):
            return made_arrays.shared_array(frame, self.count, self.type, "C", None)
        form = records.form_of_dtype(numpy_dtype(self.type))
        size = size_of(self.type)
        held = made_arrays.shared_array(frame, (self.count, size), dt.uint8, "C", 16)
        return records.Records(held, form, records.Fit.ALIGNED)


class Local:
    """In a kernel: `local()` is an array of `count` numbers that a thread has by itself."""

    def __init__(self, t: DType, count: int) -> None:
        self.type, self.count = t, count

    def __call__(self) -> Any:
        raise TileError("a local array of kernels was made on the host")

    def __tw_call__(self, frame: Frame) -> Any:
        return made_arrays.local_array(frame, self.count, self.type, "C", None)


def layout(t: Any) -> Layout:
    """Size and alignment of a type in device memory."""
    if getattr(t, "name", None) in KINDS:
        return layout_of(KINDS[t.name])
    return layout_of(item_type(t))


def sizeof(t: Any) -> int:
    """Bytes that an item of a type takes."""
    return layout(t).size


def alignof(t: Any) -> int:
    """Bytes that divide the address of an item of a type in a signature of C."""
    return layout(t).align


def view_as(array: Any, t: ItemType) -> Any:
    """Bytes as items of a type."""
    return array.view(array_dtype(t) if isinstance(array, Array) else numpy_dtype(t))


__all__ = ["alignof", "gpu_struct", "sizeof"]
