"""Tilewright: tile programs in Python, compiled to Tensor Cores and to the CPU."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .arrays import Array, as_array, empty, empty_like, from_interface, to_device, zeros

__version__ = "0.1.0"
__all__ = ["Array", "as_array", "empty", "empty_like", "from_interface", "to_device", "zeros"]


def __getattr__(name: str) -> Any:
    """Arrays, which load the extension when they are first asked for."""
    if name in __all__:
        from . import arrays

        return getattr(arrays, name)
    raise AttributeError(f"module 'tilewright' has no attribute {name!r}")
