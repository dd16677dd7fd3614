"""Arrays of structs under `kernel.interpret`: NumPy's memory, whose elements are structs of numbers."""

from __future__ import annotations

import dataclasses
import inspect
import types
from typing import Any

import numpy as np

from ..errors import TileTypeError
from . import threads
from .complexes import ComplexNumber
from .device_arrays import DeviceArray
from .numbers import Number, as_format


class RecordArray(DeviceArray):
    """A view of a NumPy array of a structured dtype."""

    def __init__(self, data: Any) -> None:
        from ..device.records import form_of_dtype  # which needs this package

        self.data, self.form = data, form_of_dtype(data.dtype)
        self.dtype = self.form.kind

    def __getitem__(self, index: Any) -> Any:
        if self.form.holds_atomics:
            return Reference(self.form, self.data, self._place(index))
        return element(self.form, self.data[self._place(index)])

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(value, Reference) and value.is_at(self.data, self._place(index)):
            return  # a field of it was set
        if self.form.holds_atomics:
            raise TileTypeError(f"a {self.form.kind.__name__} holds atomics, and so is not copied; set its fields")
        self.data[self._place(index)] = _fields(self.form, value)


class Reference:
    """An element with atomics, which is accessed where it is."""

    def __init__(self, form: Any, data: Any, place: Any) -> None:
        vars(self).update(_form=form, _data=data, _place=place)

    def is_at(self, data: Any, place: Any) -> bool:
        return self._data is data and self._place == place

    def __setattr__(self, name: str, value: Any) -> None:
        kind, names = self._form.kind, list(self._form.kind.__tw_struct__)
        if name not in names:
            raise TileTypeError(f"a {kind.__name__} has no field '{name}', and gets none; it has {', '.join(names)}")
        part = self._form.parts[names.index(name)]
        if part.holds_atomics:
            raise TileTypeError(f"the field '{name}' of {kind.__name__} is an atomic; set it by {name}.store(value)")
        self._data[name][self._place] = _fields(part, value)

    def __getattr__(self, name: str) -> Any:
        from . import device_atomics  # which needs this module

        kind, names = self._form.kind, list(self._form.kind.__tw_struct__)
        if name not in names:
            method = inspect.getattr_static(kind, name, None)
            if not isinstance(method, types.FunctionType):
                raise TileTypeError(f"a {kind.__name__} has no attribute '{name}'; it has {', '.join(names)}")
            return types.MethodType(method, self)
        form = self._form.parts[names.index(name)]
        if form.is_atomic:
            return device_atomics.Atomic(threads.current(), DeviceArray(self._data[name]), self._place)
        if form.holds_atomics:
            return Reference(form, self._data[name], self._place)
        return element(form, self._data[self._place][name])


def element(form: Any, found: Any) -> Any:
    """An element, or a part of one, of NumPy."""
    if isinstance(found, np.complexfloating):
        return ComplexNumber(found, form.kind.name)
    if not form.parts:
        return found.item() if form.loose else Number(found, form.kind)
    held = [found[name] for name in found.dtype.names] if found.dtype.names else list(found)
    parts = [element(part, one) for part, one in zip(form.parts, held, strict=True)]
    if form.kind is tuple:
        return tuple(parts)
    made = object.__new__(form.kind)  # the constructor is the host's, which takes NumPy's numbers
    for field, part in zip(dataclasses.fields(form.kind), parts, strict=True):
        object.__setattr__(made, field.name, part)
    return made


def _fields(form: Any, value: Any) -> Any:
    """What NumPy stores for a value."""
    if not form.parts:
        return as_format(value, form.kind)
    if hasattr(form.kind, "part"):
        return ComplexNumber.of(value, None, form.kind.name).value
    if not isinstance(value, form.kind):
        raise TileTypeError(f"an element is a {form.kind.__name__}, found {value!r}; expected one")
    held = value if isinstance(value, tuple) else [getattr(value, f.name) for f in dataclasses.fields(value)]
    return tuple(_fields(part, one) for part, one in zip(form.parts, held, strict=True))
