"""Kernels and functions, and the launch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _core
from ..capture import DEVICE
from ..errors import TileError, TileTypeError, TileValueError
from ..kernel import function as func
from ..kernel import kernel as _tile_kernel

__all__ = ["func", "kernel", "launch"]


class kernel(_tile_kernel):
    """Make a SIMT kernel of a function: `@device.kernel`."""

    rules = DEVICE
    decorator = "@device.kernel"
    hint_names = ()

    def interpret(self, grid: int | Sequence[int], args: tuple[Any, ...]) -> None:
        raise TileError(f"the SIMT kernel {self.name} has no reference execution; launch it on NumPy arrays instead")


def launch(
    f: kernel,
    *args: Any,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    stream: Any = None,
    shared: int = 0,
) -> None:
    """Start `f(*args)` on `grid` blocks of `block` threads, in the order of `stream`."""
    if not isinstance(f, kernel):
        raise TileTypeError(f"device.launch starts a @device.kernel, found {f!r}")
    if shared:
        raise TileValueError("dynamic shared memory is not supported; use device.shared_array in the kernel")
    _core.launch_threads(stream, grid, block, f, args)
