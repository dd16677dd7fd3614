"""`cuda.compute.types`: the types of items by names, for annotations, `gpu_struct`, and `value_type=` of iterators."""

from __future__ import annotations

from typing import Any

from ..dtype import bool_ as boolean
from ..dtype import float16, float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64
from ..numba.types import CPointer
from .types import ItemType, gpu_struct, item_type, numpy_dtype

pointer = CPointer


def from_numpy_dtype(dtype: Any) -> ItemType:
    """The type of the items of arrays of a NumPy dtype."""
    return item_type(dtype)


def struct(fields: dict[str, Any], name: str = "AnonStruct") -> Any:
    """A struct of fields of these types: what `gpu_struct` makes of a dict."""
    return gpu_struct(dict(fields), name)


def to_ctypes_type(of: Any) -> Any:
    """The class of `ctypes` for an item of a type."""
    import numpy as np

    return np.ctypeslib.as_ctypes_type(numpy_dtype(item_type(of)))


__all__ = [
    "boolean",
    "float16",
    "float32",
    "float64",
    "from_numpy_dtype",
    "int8",
    "int16",
    "int32",
    "int64",
    "pointer",
    "struct",
    "to_ctypes_type",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]
