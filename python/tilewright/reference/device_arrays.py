"""Arrays under `kernel.interpret` of cuda.device: NumPy's memory, whose elements are numbers of their format."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import dtype as dt
from ..errors import TileTypeError, TileValueError
from .numbers import Number, as_format


class DeviceArray:
    """A view of a NumPy array."""

    def __init__(self, data: Any) -> None:
        self.data = data
        self.dtype = dt.as_dtype(data.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.data.shape)

    @property
    def strides(self) -> tuple[int, ...]:
        return tuple(self.data.strides)

    @property
    def ndim(self) -> int:
        return int(self.data.ndim)

    @property
    def ndims(self) -> int:
        return int(self.data.ndim)

    @property
    def size(self) -> int:
        return int(self.data.size)

    def view(self, dtype: Any) -> DeviceArray:
        return DeviceArray(self.data.view(dt.as_dtype(dtype).numpy))

    def reshape(self, *shape: Any) -> DeviceArray:
        extents = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
        if not self.data.flags.c_contiguous:
            raise TileTypeError("reshape: the elements do not lie side by side in row-major order: it would copy")
        return DeviceArray(self.data.reshape([int(n) for n in extents]))

    def astype(self, dtype: Any, copy: bool = True) -> DeviceArray:
        if dt.as_dtype(dtype) is not self.dtype or copy is not False:
            raise TileTypeError("astype would allocate an array; convert elements")
        return self

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        found = self.data[self._place(index)]
        return DeviceArray(found) if isinstance(found, np.ndarray) and found.ndim else self._element(found)

    def __setitem__(self, index: Any, value: Any) -> None:
        self.data[self._place(index)] = as_format(self._checked(value), self.dtype)

    def _element(self, found: Any) -> Number:
        return Number(found, self.dtype)

    def _checked(self, value: Any) -> Any:
        """A value that is stored: of the array's kind of numbers, or a lower one."""
        value = value.__tw_now__() if hasattr(value, "__tw_now__") else value
        if isinstance(value, Number):
            kind = value.dtype.category
        elif isinstance(value, bool | int | float):
            kind = {bool: dt.bool_, int: dt.int32, float: dt.float32}[type(value)].category
        else:
            raise TileTypeError(f"an element of {self.dtype} is a number, found {value!r}")
        if kind > self.dtype.category:
            raise TileTypeError(f"{value!r} does not convert to {self.dtype} by itself; write the conversion")
        return value

    def _place(self, index: Any) -> Any:
        parts = index if isinstance(index, tuple) else (index,)
        return tuple(self._part(i) for i in parts)

    def _part(self, part: Any) -> Any:
        part = part.__tw_now__() if hasattr(part, "__tw_now__") else part
        if isinstance(part, slice):
            return slice(*(None if p is None else int(p) for p in (part.start, part.stop, part.step)))
        if part is Ellipsis or part is None:
            return part
        if not isinstance(part, Number | int) or (isinstance(part, Number) and not part.dtype.is_integral):
            raise TileValueError(f"an index is an integer or a slice, found {part!r}")
        return int(part)
