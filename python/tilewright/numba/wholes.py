"""Functions of whole arrays: `@vectorize` makes one of a scalar function, `@cuda.reduce` joins all elements by one."""

# The kernels' values have no types that a checker knows.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, attr-defined"

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from .. import arrays
from ..errors import TileTypeError, TileValueError
from . import intrinsics as cuda
from . import types
from .kernels import Kernel, jit
from .memory import _device, _handle

_THREADS, _BLOCKS = 128, 64


# === @vectorize ===


def _elementwise(function: Callable[..., Any], count: int) -> Kernel:
    def one(out, a):
        for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
            out[i] = function(a[i])

    def two(out, a, b):
        for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
            out[i] = function(a[i], b[i])

    def three(out, a, b, c):
        for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
            out[i] = function(a[i], b[i], c[i])

    def four(out, a, b, c, d):
        for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
            out[i] = function(a[i], b[i], c[i], d[i])

    bodies = (one, two, three, four)
    if not 1 <= count <= len(bodies):
        raise TileTypeError(f"@vectorize takes functions of one to {len(bodies)} numbers, found {count}")
    made: Kernel = jit(bodies[count - 1])
    return made


class Vectorized:
    """A function of arrays, element by element; the operands broadcast."""

    def __init__(self, function: Callable[..., Any], signatures: Sequence[types.Signature]) -> None:
        self.function, self.signatures = function, signatures
        functools.update_wrapper(self, function)
        for signature in signatures:
            if signature.result is types.void or any(isinstance(a, types.Array) for a in signature.arguments):
                raise TileTypeError(f"@vectorize: a signature is of numbers, as float32(float32), found {signature}")
        self._kernel = _elementwise(function, len(signatures[0].arguments))

    def __call__(self, *operands: Any, out: Any = None, stream: Any = 0) -> Any:
        """A NumPy array, or an array of the device if one of the operands is one."""
        import numpy as np

        count = len(self.signatures[0].arguments)
        if len(operands) != count:
            raise TileTypeError(f"{self.__name__} takes {count} arrays, found {len(operands)}")
        on_device = any(isinstance(v, arrays.Array) for v in operands)
        given = [v if isinstance(v, arrays.Array) else np.asarray(v) for v in operands]
        signature = self._chosen([v.dtype for v in given])
        shape = np.broadcast_shapes(*(v.shape for v in given))
        rows = zip(given, signature.arguments, strict=True)
        flat = [_flat(v, shape, of.dtype, stream) for v, of in rows]
        made = arrays.empty(shape, signature.result.dtype, device=_device(), stream=_handle(stream))
        if made.size:
            blocks = min(_BLOCKS * 16, -(-made.size // _THREADS))
            self._kernel[blocks, _THREADS, stream](made.reshape(made.size), *flat)
        if out is not None:
            return _written(out, made)
        return made if on_device else made.copy_to_host() if shape else made.copy_to_host()[()]

    def _chosen(self, dtypes: list[Any]) -> types.Signature:
        """The first signature that the operands convert to without a loss."""
        import numpy as np

        for signature in self.signatures:
            rows = zip(dtypes, signature.arguments, strict=True)
            if all(np.can_cast(d, of.dtype, "same_kind" if d.kind in "iu" else "safe") for d, of in rows):
                return signature
        found = ", ".join(map(str, dtypes))
        raise TileTypeError(f"none of the signatures {list(self.signatures)} takes ({found}); convert the arrays")


def _flat(value: Any, shape: tuple[int, ...], dtype: Any, stream: Any) -> arrays.Array:
    """On the device, broadcast, and with one axis."""
    import numpy as np

    if isinstance(value, arrays.Array) and value.shape == shape and value.dtype == dtype and value.is_c_contiguous():
        return value.reshape(value.size)
    host = value.to_numpy() if isinstance(value, arrays.Array) else value
    whole = np.ascontiguousarray(np.broadcast_to(host, shape).astype(dtype))
    return arrays.to_device(whole.reshape(-1), device=_device(), stream=_handle(stream))


def _written(out: Any, made: arrays.Array) -> Any:
    if isinstance(out, arrays.Array):
        out.copy_to_device(made)
    else:
        made.copy_to_host(out)
    return out


def vectorize(signatures: Any = (), target: str = "cuda", **options: Any) -> Any:
    """Make a function of arrays of one of numbers: `@vectorize(["float32(float32, float32)"], target="cuda")`."""
    if target != "cuda":
        raise TileValueError(f"@vectorize: the target is 'cuda', found {target!r}")
    if callable(signatures):
        raise TileTypeError("@vectorize needs signatures, as in @vectorize(['float32(float32)'], target='cuda')")
    parsed = [types.parse(s) for s in ([signatures] if isinstance(signatures, str) else signatures)]
    if not parsed:
        raise TileTypeError("@vectorize needs one signature or more")
    return lambda function: Vectorized(function, parsed)


# === @cuda.reduce ===


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

    def __init__(self, functor: Callable[..., Any]) -> None:
        self.functor = functor
        functools.update_wrapper(self, functor)
        self._kernels: dict[str, Kernel] = {}

    def __call__(self, arr: Any, size: int | None = None, res: Any = None, init: Any = 0, stream: Any = 0) -> Any:
        """The result with `init` first; of an array without elements `init`. `res`: an array to put it into."""
        import numpy as np

        given = (
            arr if isinstance(arr, arrays.Array) else arrays.to_device(arr, device=_device(), stream=_handle(stream))
        )
        if len(given.shape) != 1:
            raise TileTypeError(f"a reduction takes an array of one axis, found {len(given.shape)}")
        given = given if size is None else given[:size]
        found = np.asarray(init, given.dtype)[()]
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
            self._kernels[name] = _reduction(self.functor, types.NAMES["bool_" if name == "bool" else name])
        blocks = min(_BLOCKS, -(-given.size // _THREADS))
        partial = arrays.empty(blocks, given.dtype, device=_device(), stream=_handle(stream))
        self._kernels[name][blocks, _THREADS, stream](given, partial)
        if blocks == 1:
            return partial[0]
        whole = arrays.empty(1, given.dtype, device=_device(), stream=_handle(stream))
        self._kernels[name][1, _THREADS, stream](partial, whole)
        return whole[0]


reduce = Reduce

__all__ = ["Reduce", "reduce", "vectorize"]
