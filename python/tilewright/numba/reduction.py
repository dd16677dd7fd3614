"""`@cuda.reduce`: joins all elements of an array by an associative function of two."""

# The kernels' values have no types that a checker knows.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, attr-defined"

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from .. import arrays
from ..errors import TileTypeError
from ..quiet import quiet
from . import intrinsics as cuda
from . import types
from .devices import current_number
from .kernels import Kernel, jit
from .memory import _handle

_THREADS, _BLOCKS = 128, 64


def _reduction(function: Callable[..., Any], of: types.Type) -> Kernel:
    size = _THREADS

    def kernel(x, partial):
        """Each thread walks the array, then a tree over the block; threads without elements have no say."""
        shared = cuda.shared.array(size, of)
        t = cuda.threadIdx.x
        i = cuda.grid(1)
        there = min(x.size - cuda.blockIdx.x * size, size)
        if i < x.size:
            found = x[i]
            for k in range(i + cuda.gridsize(1), x.size, cuda.gridsize(1)):
                found = of(function(found, x[k]))
            shared[t] = found
        cuda.syncthreads()
        step = size // 2
        while step > 0:
            if t < step and t + step < there:
                shared[t] = function(shared[t], shared[t + step])
            cuda.syncthreads()
            step = step // 2
        if t == 0:
            partial[cuda.blockIdx.x] = shared[0]

    made: Kernel = jit(kernel)
    return made


class Reduce:
    """`@cuda.reduce`: joins the elements of an array by an associative function of two."""

    @quiet
    def __init__(self, functor: Callable[..., Any]) -> None:
        taken = inspect.signature(functor)
        if len(taken.parameters) != 2:
            raise TileTypeError(f"@cuda.reduce needs a function of two values, found {functor.__name__}{taken}")
        self.functor = functor
        functools.update_wrapper(self, functor)
        self._kernels: dict[str, Kernel] = {}

    @quiet
    def __call__(self, arr: Any, size: int | None = None, res: Any = None, init: Any = 0, stream: Any = 0) -> Any:
        """The result with `init` first; of an array without elements `init`. `res`: an array to put it into."""
        import numpy as np

        given = arr
        if not isinstance(arr, arrays.Array):
            given = arrays.to_device(arr, device=current_number(), stream=_handle(stream))
        if len(given.shape) != 1:
            raise TileTypeError(f"a reduction takes an array of one axis, found {len(given.shape)}")
        given = given if size is None else given[:size]
        found = None if init is None else np.asarray(init, given.dtype)[()]
        if given.size:
            found = self._joined(given, stream)
            found = self.functor(np.asarray(init, given.dtype)[()], found) if self._counts(init) else found
        if res is None:
            return given.dtype.type(found)
        res[:1] = found
        return None

    @staticmethod
    def _counts(init: Any) -> bool:
        return init is not None

    def _joined(self, given: arrays.Array, stream: Any) -> Any:
        name = given.dtype.name
        if name not in self._kernels:
            made = _reduction(self.functor, types.NAMES["bool_" if name == "bool" else name])
            self._kernels.setdefault(name, made)
        blocks = min(_BLOCKS, -(-given.size // _THREADS))
        partial = arrays.empty(blocks, given.dtype, device=current_number(), stream=_handle(stream))
        self._kernels[name][blocks, _THREADS, stream](given, partial)
        if blocks == 1:
            return partial[0]
        whole = arrays.empty(1, given.dtype, device=current_number(), stream=_handle(stream))
        self._kernels[name][1, _THREADS, stream](partial, whole)
        return whole[0]


reduce = Reduce

__all__ = ["Reduce", "reduce"]
