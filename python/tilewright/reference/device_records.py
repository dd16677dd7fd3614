"""Arrays of structs under `kernel.interpret`: NumPy's memory, whose elements are structs of numbers."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from ..errors import TileTypeError
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
        return _value(self.form, self.data[self._place(index)])

    def __setitem__(self, index: Any, value: Any) -> None:
        self.data[self._place(index)] = _fields(self.form, value)


def _value(form: Any, found: Any) -> Any:
    """An element, or a part of one, of NumPy."""
    if isinstance(found, np.complexfloating):
        return ComplexNumber(found, form.kind.name)
    if not form.parts:
        return found.item() if form.loose else Number(found, form.kind)
    held = [found[name] for name in found.dtype.names] if found.dtype.names else list(found)
    parts = [_value(part, one) for part, one in zip(form.parts, held, strict=True)]
    return tuple(parts) if form.kind is tuple else form.kind(*parts)


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
