"""Functions of whole arrays: `@vectorize` makes one of a function of numbers, `@guvectorize` of a function of arrays.

    @vectorize(["float32(float32, float32)"], target="cuda")      @guvectorize(["void(float32[:], float32[:])"],
    def hypot(x, y): …                                                         "(n)->()", target="cuda")

What goes in broadcasts over the axes that are in front of those of the layout; a thread computes one element of these.
"""

# The kernels' values have no types that a checker knows.
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import functools
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from .. import arrays
from ..errors import TileTypeError, TileValueError
from ..quiet import quiet
from . import intrinsics as cuda
from . import types
from .devices import current_number
from .kernels import Kernel, jit
from .memory import _handle
from .pickling import Packed, is_of_its_module
from .reduction import Reduce

_THREADS, _BLOCKS = 128, 1024


class UFunc(ABC):
    """A function of arrays."""

    max_blocksize = _THREADS

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = self.py_func = function
        functools.update_wrapper(self, function)

    @property
    @abstractmethod
    def nin(self) -> int:
        """How many arrays go in."""

    @property
    def nout(self) -> int:
        return 1

    @abstractmethod
    def _compute(self, given: list[Any], stream: Any) -> list[arrays.Array]:
        """The results for arrays of NumPy or of the device."""

    @quiet
    def __call__(self, *operands: Any, out: Any = None, stream: Any = 0) -> Any:
        """NumPy arrays, or arrays of the device if one of the operands is one."""
        operands, out = self._split(operands, out)
        on_device = any(_is_on_device(v) for v in (*operands, *out))
        made = self._compute([_as_array(v) for v in operands], stream)
        if out:
            found = [_written(o, m) for o, m in zip(out, made, strict=True)]
        else:
            found = made if on_device else [_on_host(m) for m in made]
        return found[0] if self.nout == 1 else tuple(found)

    def __reduce__(self) -> Any:
        """As of a kernel."""
        if is_of_its_module(self, self.py_func):
            return self.py_func.__qualname__
        return type(self), (Packed(self.py_func), *self._made_from())

    @abstractmethod
    def _made_from(self) -> tuple[Any, ...]:
        """The arguments behind the function."""

    def _split(self, operands: tuple[Any, ...], out: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """(what goes in, the arrays for what comes out, if they are given)."""
        name: Any = getattr(self, "__name__", "the function")
        if len(operands) not in (self.nin, self.nin + self.nout):
            raise TileTypeError(f"{name} takes {self.nin} arrays, found {len(operands)}")
        behind = operands[self.nin :]
        if behind and out is not None:
            raise TileValueError("cannot specify argument 'out' as both positional and keyword")
        given = behind or (() if out is None else out if isinstance(out, tuple) else (out,))
        if any(not hasattr(array, "shape") for array in given):
            raise TileTypeError(
                f"{name} takes {self.nin} array(s), and expects arrays for its results behind them, found {given}"
            )
        return operands[: self.nin], given


def _is_on_device(value: Any) -> bool:
    return isinstance(value, arrays.Array) or hasattr(value, "__cuda_array_interface__")


def _as_array(value: Any) -> Any:
    import numpy as np

    if isinstance(value, arrays.Array):
        return value
    return arrays.as_array(value) if _is_on_device(value) else np.asarray(value)


def _on_host(made: arrays.Array) -> Any:
    return made.copy_to_host() if made.shape else made.copy_to_host()[()]


def _written(out: Any, made: arrays.Array) -> Any:
    if out.shape != made.shape and _without_ones(out.shape) == _without_ones(made.shape):
        made = made.reshape(out.shape)  # axes in front that have one element
    if isinstance(out, arrays.Array):
        out.copy_to_device(made)
    elif _is_on_device(out):
        arrays.as_array(out).copy_to_device(made)
    else:
        made.copy_to_host(out)
    return out


def _without_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Without the axes in front that have one element."""
    first = next((i for i, extent in enumerate(shape) if extent != 1), len(shape))
    return tuple(shape[first:])


def _rows(value: Any, outer: tuple[int, ...], core: tuple[int, ...], dtype: Any, stream: Any) -> arrays.Array:
    """On the device, broadcast over the outer axes, which are one."""
    import numpy as np

    whole, flat = (*outer, *core), (math.prod(outer), *core)
    fits = isinstance(value, arrays.Array) and value.shape == whole and value.dtype == dtype
    if fits and value.is_c_contiguous():
        return value.reshape(flat)
    host = value.to_numpy() if isinstance(value, arrays.Array) else value
    copied = np.ascontiguousarray(np.broadcast_to(host, whole).astype(dtype, copy=False)).reshape(flat)
    return arrays.to_device(copied, device=current_number(), stream=_handle(stream))


def _launch(kernel: Kernel, count: int, threads: int, stream: Any, *args: Any) -> None:
    if count:
        kernel[min(_BLOCKS, -(-count // threads)), threads, stream](*args)


def _chosen(signatures: Sequence[types.Signature], dtypes: Sequence[Any]) -> types.Signature | None:
    """The signature of these dtypes, or the first one that they convert to without a loss."""
    import numpy as np

    def takes(signature: types.Signature, exactly: bool) -> bool:
        wanted = [t.dtype if isinstance(t, types.Type) else t.element.dtype for t in signature.arguments]
        rows = list(zip(dtypes, wanted, strict=False))
        if exactly:
            return all(d == w for d, w in rows)
        return all(np.can_cast(d, w, "same_kind" if d.kind in "iu" else "safe") for d, w in rows)

    return next((s for exactly in (True, False) for s in signatures if takes(s, exactly)), None)


# === @vectorize ===


def _elementwise(function: Callable[..., Any]) -> Kernel:
    def kernel(out, operands):
        for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
            out[i] = function(*[a[i] for a in operands])

    made: Kernel = jit(kernel)
    return made


class Vectorized(UFunc):
    """A function of arrays, element by element."""

    def __init__(self, function: Callable[..., Any], signatures: Sequence[types.Signature]) -> None:
        super().__init__(getattr(function, "function", function))
        self.signatures = list(signatures)
        for signature in signatures:
            if signature.result is types.void or any(isinstance(a, types.Array) for a in signature.arguments):
                raise TileTypeError(f"@vectorize: a signature is of numbers, as float32(float32), found {signature}")
        self._kernel = _elementwise(self.function)
        self._found: dict[tuple[str, ...], types.Signature] = {}

    @property
    def nin(self) -> int:
        return int(self.function.__code__.co_argcount)

    def _made_from(self) -> tuple[Any, ...]:
        return (self.signatures,)

    def _signature_for(self, given: list[Any]) -> types.Signature:
        """Of the signatures, or where there is none, as the function turns out for these dtypes."""
        dtypes = [v.dtype for v in given]
        found = _chosen(self.signatures, dtypes) if self.signatures else self._typed(dtypes)
        if found is None:
            names = ", ".join(map(str, dtypes))
            raise TileTypeError(f"none of the signatures {self.signatures} takes ({names}); convert the arrays")
        return found

    def _typed(self, dtypes: list[Any]) -> types.Signature:
        from ..capture.simt.numba import result_type

        key = tuple(map(str, dtypes))
        if key not in self._found:
            arguments = tuple(types.from_dtype(d) for d in dtypes)
            self._found[key] = types.Signature(result_type(self.function, arguments), arguments)
        return self._found[key]

    def _compute(self, given: list[Any], stream: Any) -> list[arrays.Array]:
        import numpy as np

        signature = self._signature_for(given)
        shape = np.broadcast_shapes(*(v.shape for v in given))
        rows = zip(given, signature.arguments, strict=True)
        flat = tuple(_rows(v, shape, (), of.dtype, stream) for v, of in rows)
        made = arrays.empty(shape, signature.result.dtype, device=current_number(), stream=_handle(stream))
        _launch(self._kernel, made.size, self.max_blocksize, stream, made.reshape(made.size), flat)
        return [made]

    @quiet
    def reduce(self, arg: Any, stream: Any = 0) -> Any:
        """All elements of an array of one axis, joined by this function of two."""
        if self.nin != 2:
            raise TileTypeError(f"reduce needs a function of two numbers, found one of {self.nin}")
        return Reduce(self.function)(arg, init=None, stream=stream)


@quiet
def vectorize(signatures: Any = (), target: str = "cuda", **options: Any) -> Any:
    """Make a function of arrays of one of numbers: `@vectorize(["float32(float32, float32)"], target="cuda")`.

    Without signatures there is one for all dtypes that it is called with.
    """
    _check("@vectorize", target, options)
    if callable(signatures) and not isinstance(signatures, types.Signature):
        return Vectorized(signatures, [])
    parsed = [types.parse(s) for s in ([signatures] if isinstance(signatures, str) else signatures)]
    return quiet(lambda function: Vectorized(function, parsed))


def _check(what: str, target: str, options: dict[str, Any]) -> None:
    if target != "cuda":
        raise TileValueError(f"{what}: the target is 'cuda', found {target!r}")
    if options.pop("nopython", True) is not True:
        raise TileTypeError("nopython flag must be True")
    if unknown := options.keys() - {"fastmath", "cache", "identity", "writable_args", "opt"}:
        raise TileTypeError(f"The following target options are not supported: {', '.join(sorted(map(repr, unknown)))}")


# === @guvectorize ===


def _by_rows(function: Callable[..., Any], whole: tuple[bool, ...]) -> Kernel:
    """`whole`: of each array, whether the function takes an array, or a number of it."""

    def kernel(count, operands):
        for i in range(cuda.grid(1), count, cuda.gridsize(1)):
            function(*[a[i] if is_whole else a[i, 0] for a, is_whole in zip(operands, whole, strict=True)])

    made: Kernel = jit(kernel)
    return made


def _parsed_layout(layout: str) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """The names of axes of what goes in, and of what comes out: of "(m,n),(n)->(m)"."""
    group = r"\(\s*(?:\w+\s*(?:,\s*\w+\s*)*)?\)"
    if not re.fullmatch(rf"\s*{group}(?:\s*,\s*{group})*\s*->\s*{group}(?:\s*,\s*{group})*\s*", layout):
        raise TileValueError(f"@guvectorize: a layout is written as '(m,n),(n)->(m)', found {layout!r}")
    sides = [re.findall(group, side) for side in layout.split("->")]
    ins, outs = ([tuple(re.findall(r"\w+", part)) for part in side] for side in sides)
    if unknown := {name for axes in outs for name in axes} - {name for axes in ins for name in axes}:
        raise TileValueError(f"@guvectorize: nothing that goes in has the axis {min(unknown)} of {layout!r}")
    return ins, outs


class GUFunc(UFunc):
    """A function of arrays, by parts of them that a layout names."""

    def __init__(self, function: Callable[..., Any], signatures: Sequence[types.Signature], layout: str) -> None:
        super().__init__(getattr(function, "function", function))
        self.signatures, self.signature = list(signatures), layout
        self._ins, self._outs = _parsed_layout(layout)
        self._kernels: dict[tuple[bool, ...], Kernel] = {}
        for signature in signatures:
            self._check(signature)

    def _made_from(self) -> tuple[Any, ...]:
        return self.signatures, self.signature

    def _check(self, signature: types.Signature) -> None:
        if len(signature.arguments) != self.nin + self.nout:
            raise TileTypeError(
                f"@guvectorize: the layout {self.signature!r} has {self.nin + self.nout} arrays, the signature "
                f"{signature} {len(signature.arguments)}"
            )

    @property
    def nin(self) -> int:
        return len(self._ins)

    @property
    def nout(self) -> int:
        return len(self._outs)

    def _signature_for(self, given: list[Any]) -> types.Signature:
        dtypes = [v.dtype for v in given]
        found = _chosen(self.signatures, dtypes)
        if found is None:
            names = ", ".join(map(str, dtypes))
            raise TileTypeError(f"none of the signatures {self.signatures} takes ({names}); convert the arrays")
        return found

    def _sizes(self, given: list[Any]) -> dict[str, int]:
        """Of the axes by their names, which all that goes in agrees on."""
        sizes: dict[str, int] = {}
        for number, (value, axes) in enumerate(zip(given, self._ins, strict=True)):
            if len(value.shape) < len(axes):
                found = len(value.shape)
                raise TileValueError(f"array {number} has {found} axes, {self.signature!r} needs {len(axes)} or more")
            for name, extent in zip(axes, value.shape[len(value.shape) - len(axes) :], strict=True):
                if sizes.setdefault(name, extent) != extent:
                    raise TileValueError(f"array {number} has {extent} elements along {name}, another {sizes[name]}")
        return sizes

    def _compute(self, given: list[Any], stream: Any) -> list[arrays.Array]:
        import numpy as np

        signature, sizes = self._signature_for(given), self._sizes(given)
        cores = [tuple(sizes[name] for name in axes) for axes in (*self._ins, *self._outs)]
        outer = np.broadcast_shapes(*(v.shape[: len(v.shape) - len(a)] for v, a in zip(given, self._ins, strict=True)))
        kinds = signature.arguments
        dtypes = [t.element.dtype if isinstance(t, types.Array) else t.dtype for t in kinds]
        rows = [_rows(*row, stream) for row in zip(given, [outer] * self.nin, cores, dtypes, strict=False)]
        device, handle = current_number(), _handle(stream)
        out = list(zip(cores, dtypes, strict=True))[self.nin :]
        made = [arrays.empty((*outer, *core), dtype, device=device, stream=handle) for core, dtype in out]
        count = math.prod(outer)
        flat = [m.reshape(count, *core) for m, (core, _) in zip(made, out, strict=True)]
        operands = tuple(_with_axis(a) for a in [*rows, *flat])
        _launch(self._kernel_for(kinds), count, self.max_blocksize, stream, count, operands)
        return made

    def _kernel_for(self, kinds: Sequence[Any]) -> Kernel:
        whole = tuple(isinstance(t, types.Array) for t in kinds)
        if whole not in self._kernels:
            self._kernels.setdefault(whole, _by_rows(self.function, whole))
        return self._kernels[whole]


def _with_axis(rows: arrays.Array) -> arrays.Array:
    """A number of a row is an array of one, for a function that takes arrays."""
    return rows.reshape(rows.shape[0], 1) if len(rows.shape) == 1 else rows


@quiet
def guvectorize(signatures: Any, layout: str, target: str = "cuda", **options: Any) -> Any:
    """Make a function of arrays by parts of them: `@guvectorize(["void(float32[:], float32[:])"], "(n)->()")`."""
    _check("@guvectorize", target, options)
    parsed = [types.parse(s) for s in ([signatures] if isinstance(signatures, str) else signatures)]
    return quiet(lambda function: GUFunc(function, parsed, layout))


__all__ = ["guvectorize", "vectorize"]
