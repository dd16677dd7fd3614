"""Arguments that are only types: an object is made of them, for named GPUs, where there is no GPU and no data."""

from __future__ import annotations

from typing import Any

from .types import ItemType, item_type, name_of, numpy_dtype


class _NoData(dict[str, Any]):
    def __missing__(self, key: str) -> Any:
        if key == "data":
            raise RuntimeError("a ProxyArray has no memory: it is a build-time placeholder; pass an array to the call")
        raise KeyError(key)

    def get(self, key: str, default: Any = None) -> Any:
        return self[key] if key == "data" else super().get(key, default)


class ProxyArray:
    """Stands for an array of a dtype when an object is made."""

    def __init__(self, dtype: Any) -> None:
        self.dtype: ItemType = dtype
        self.item_type: ItemType = item_type(dtype)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """That of an array of one item, whose address is an error to ask for."""
        return _NoData(shape=(1,), typestr=numpy_dtype(self.item_type).str, strides=None, version=3)

    def __repr__(self) -> str:
        return f"ProxyArray({name_of(self.item_type)})"


class ProxyValue:
    """Stands for a value of a dtype, such as h_init, when an object is made."""

    def __init__(self, dtype: Any) -> None:
        self.dtype: ItemType = dtype
        self.item_type: ItemType = item_type(dtype)

    def __repr__(self) -> str:
        return f"ProxyValue({name_of(self.item_type)})"


__all__ = ["ProxyArray", "ProxyValue"]
