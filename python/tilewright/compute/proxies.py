"""Arguments that are only types: an object is made of them, for named GPUs, where there is no GPU and no data."""

from __future__ import annotations

from typing import Any

from .types import ItemType, item_type, name_of


class ProxyArray:
    """Stands for an array of a dtype when an object is made."""

    def __init__(self, dtype: Any) -> None:
        self.dtype: ItemType = dtype
        self.item_type: ItemType = item_type(dtype)

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
