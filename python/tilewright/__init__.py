"""Tilewright: tile programs in Python, compiled to Tensor Cores and to the CPU."""

import importlib as _importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .arrays import Array, as_array, empty, empty_like, from_interface, to_device, zeros

__version__ = "0.1.0"
__all__ = ["Array", "as_array", "empty", "empty_like", "from_interface", "to_device", "zeros"]

# What `import tilewright` lets a program name without an import of its own.
_MODULES = ("compilation", "compute", "device", "dropin", "jax", "numba", "tile", "tune")


def __dir__() -> list[str]:
    return sorted((*__all__, *_MODULES, "__version__"))


def __getattr__(name: str) -> Any:
    """Arrays, which load the extension when they are first asked for, and the modules of the package."""
    if name in __all__:
        from . import arrays

        return getattr(arrays, name)
    if name in _MODULES:
        return _importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module 'tilewright' has no attribute {name!r}")
