"""SIMT kernels: `from cuda import device`, or `from tilewright import device`.

    @device.kernel
    def scale(x, y, a):
        i = device.tid(1)
        if i < x.shape[0]:
            y[i] = a * x[i]

    device.launch(scale, x, y, 2.0, grid=cdiv(n, 256), block=256, stream=stream)

A kernel runs once for each thread. It goes through the same dialect and lowering as a tile kernel: a value
of a thread is a tile of one element. Arrays decide where it runs, as with `tile.launch`. An index outside
of an array is undefined behaviour; compare it with the extents first. (Source: seed 001, `cuda.device`.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import _core
from .dtype import (
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from .errors import TileError, TileTypeError, TileValueError
from .kernel import function as func
from .kernel import kernel as _tile_kernel

if TYPE_CHECKING:
    from .capture.frame import Frame

__all__ = [
    "bfloat16",
    "block_dim",
    "block_idx",
    "bool_",
    "float16",
    "float32",
    "float64",
    "func",
    "grid_dim",
    "grid_size",
    "int8",
    "int16",
    "int32",
    "int64",
    "kernel",
    "launch",
    "shared_array",
    "syncthreads",
    "thread_idx",
    "tid",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]


class kernel(_tile_kernel):
    """Make a SIMT kernel of a function: `@device.kernel`."""

    simt = True
    decorator = "@device.kernel"
    hint_names = ()

    def interpret(self, grid: int | Sequence[int], args: tuple[Any, ...]) -> None:
        raise TileError(f"the SIMT kernel {self.name} has no reference execution; launch it on NumPy arrays instead")


class _Position:
    """`thread_idx` and its like: x, y and z are int32 scalars in a kernel."""

    def __init__(self, name: str, op: str) -> None:
        self._name, self._op = name, op

    def __getattr__(self, name: str) -> Any:
        if name in ("x", "y", "z"):
            raise TileError(f"device.{self._name}.{name} has a value only in a kernel")
        raise AttributeError(name)

    def __tw_attribute__(self, frame: Frame, name: str) -> Any:
        from .capture import simt

        return simt.position(frame, self._name, self._op, name)


thread_idx = _Position("thread_idx", "tile.thread_id")
block_idx = _Position("block_idx", "tile.block_id")
block_dim = _Position("block_dim", "tile.block_dim")
grid_dim = _Position("grid_dim", "tile.num_blocks")


def tid(ndims):  # tile code
    """Index of the thread in the grid: an int32 for ndims 1, a tuple for 2 and 3."""
    x = thread_idx.x + block_idx.x * block_dim.x
    if ndims == 1:
        return x
    y = thread_idx.y + block_idx.y * block_dim.y
    if ndims == 2:
        return x, y
    return x, y, thread_idx.z + block_idx.z * block_dim.z


def grid_size(ndims):  # tile code
    """Number of threads in the grid along each axis: an int32 for ndims 1, a tuple for 2 and 3."""
    x = block_dim.x * grid_dim.x
    if ndims == 1:
        return x
    y = block_dim.y * grid_dim.y
    if ndims == 2:
        return x, y
    return x, y, block_dim.z * grid_dim.z


class _SyncThreads:
    """Wait until every thread of the block is here, and see what they wrote to shared and global memory."""

    def __call__(self) -> None:
        raise TileError("device.syncthreads() can only be called in a kernel")

    def __tw_call__(self, frame: Frame) -> None:
        from .capture import simt

        simt.sync_threads(frame)


class _SharedArray:
    """shared_array(shape, dtype): an array that the threads of a block share; its elements are undefined at first.

    The shape is constant. Every call in the source is one array, whose memory is the block's for the whole kernel.
    """

    def __call__(self, shape: Any, dtype: Any) -> Any:
        raise TileError("device.shared_array() can only be called in a kernel")

    def __tw_call__(self, frame: Frame, shape: Any, dtype: Any) -> Any:
        from .capture import simt

        return simt.shared_array(frame, shape, dtype)


syncthreads = _SyncThreads()
shared_array = _SharedArray()


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
