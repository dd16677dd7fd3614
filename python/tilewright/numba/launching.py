"""Launches of kernels of Numba programs, `kernel[blocks, threads, stream, shared](...)`, and their arguments."""

from __future__ import annotations

import math
import operator
import pickle
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _core, arrays, knobs
from ..device import records
from ..errors import LaunchError, TileCheckError, TileTypeError
from ..quiet import quiet
from . import twins, types
from .host_memory import HostArray, on_device

if TYPE_CHECKING:
    from .kernels import Kernel


def parts_of(configuration: Any) -> tuple[Any, Any, Any, int]:
    parts = configuration if isinstance(configuration, tuple) else (configuration,)
    if not 2 <= len(parts) <= 4:
        raise LaunchError(f"expected kernel[blocks, threads, stream, shared bytes](...), found [{configuration!r}]")
    grid, block, stream, shared = (*parts, 0, 0)[:4]
    return grid, block, stream, shared


class Configured:
    """A kernel with its grid: calling it launches."""

    def __init__(self, kernel: Kernel, grid: Any, block: Any, stream: Any, shared: int) -> None:
        self.kernel, self.grid, self.block, self.stream = kernel, grid, block, stream or None
        if not isinstance(shared, int) or shared < 0:
            raise LaunchError(f"kernel {kernel.name}: shared memory is a number of bytes, found {shared!r}")
        self.shared = shared
        self.pre_launch_callbacks: list[Callable[..., None]] = []

    @property
    def griddim(self) -> tuple[int, ...]:
        return _along_axes(self.grid)

    @property
    def blockdim(self) -> tuple[int, ...]:
        return _along_axes(self.block)

    def __getstate__(self) -> dict[str, Any]:
        if self.pre_launch_callbacks:
            raise pickle.PicklingError(
                "Cannot pickle configured launches with pre-launch callbacks; take them off first"
            )
        return vars(self)

    @quiet
    def __call__(self, *args: Any) -> None:
        kernel = self.kernel
        for callback in self.pre_launch_callbacks:
            callback(kernel, self)
        args = _extended(kernel.extensions, args, self.stream)
        if kernel.signature is not None:
            args = _typed(kernel, kernel.signature, args)
        twins.launched(kernel, args, self._start)

    def _start(self, kernel: Kernel, args: tuple[Any, ...]) -> None:
        on_gpu, copies = _place(args, self.stream)
        try:
            _launch(self, kernel, on_gpu)
        except TileCheckError:  # the kernel has run to its end
            self._bring_back(copies)
            raise
        self._bring_back(copies)

    def _bring_back(self, copies: list[tuple[Any, Any]]) -> None:
        for host, copy in copies:
            copy.copy_to_host(host, self.stream)


def _along_axes(extents: Any) -> tuple[int, ...]:
    return (*(extents if isinstance(extents, tuple | list) else (extents,)), 1, 1)[:3]


def _launch(configured: Configured, kernel: Kernel, args: tuple[Any, ...]) -> None:
    stream = configured.stream if _is_on_gpu(args) else None
    given = tuple(map(_argument, args))
    twins.check_rows(kernel, given)
    _check_bounds(kernel, configured.block)
    if kernel.options.get("debug") or knobs.check():
        from .. import checking  # which needs NumPy

        return checking.launch_threads(stream, configured.grid, configured.block, kernel, given, configured.shared)
    _core.launch_threads(stream, configured.grid, configured.block, kernel, given, configured.shared)


def _check_bounds(kernel: Kernel, block: Any) -> None:
    """The driver's error for more threads than the kernel was compiled for names neither."""
    most = kernel.hints.get("most_threads")
    threads = math.prod(block) if isinstance(block, tuple | list) else block
    if most is not None and threads > most:
        raise LaunchError(
            f"kernel {kernel.name}: a block has {threads} threads, and launch_bounds says {most} at most; "
            "launch fewer, or raise launch_bounds"
        )


def _argument(value: Any) -> Any:
    """What a kernel of threads takes: a complex number of Python is one of two float64."""
    import numpy as np

    if isinstance(value, _One):
        array = records.argument(value.array)
        return records.Element(array, 0, array.form)
    return records.argument(np.complex128(value) if type(value) is complex else value)


def _is_on_gpu(args: tuple[Any, ...]) -> bool:
    return not _has_cpu_array(args)


class NoLaunch:
    """`kernel.forall(0)`: there is nothing to do."""

    def __call__(self, *args: Any) -> None:
        return


def _extended(extensions: Sequence[Any], args: tuple[Any, ...], stream: Any) -> tuple[Any, ...]:
    """What the kernel's extensions make of the arguments, the last one first."""
    for extension in reversed(extensions):
        args = tuple(extension.prepare_args(None, a, stream=stream, retr=[])[1] for a in args)
    return args


def _place(args: tuple[Any, ...], stream: Any) -> tuple[tuple[Any, ...], list[tuple[Any, Any]]]:
    """NumPy arrays, where there is a GPU, go there for the launch and come back; on the CPU they stay. A record goes
    as an array of one."""
    if not arrays._has_gpu() or _has_cpu_array(args):
        return _each(args, _on_cpu), []
    copies: list[tuple[Any, Any]] = []
    return _each(args, lambda value: _on_gpu(value, stream, copies)), copies


def _each(values: tuple[Any, ...], place: Callable[[Any], Any]) -> tuple[Any, ...]:
    """What `place` makes of each value, of those in tuples, too; the same object where that changes none."""
    placed = [_each(v, place) if isinstance(v, tuple) else place(v) for v in values]
    if all(map(operator.is_, placed, values)):
        return values
    return type(values)._make(placed) if hasattr(values, "_make") else tuple(placed)


def _on_gpu(value: Any, stream: Any, copies: list[tuple[Any, Any]]) -> Any:
    """The value where the GPU can reach it; what is to come back behind the launch is added to `copies`."""
    if isinstance(value, HostArray):
        return on_device(value)
    if _is_record(value):
        return _One(_on_gpu(_array_of(value), stream, copies))
    mode = value if isinstance(value, _Copied) else _mode_of(value) if _is_numpy(value) else None
    if mode is None:
        return value
    copy = arrays.to_device(mode.host, stream=stream) if mode.goes_in else arrays.empty_like(mode.host)
    if mode.comes_out:
        copies.append((mode.host, copy))
    return copy


def _mode_of(host: Any) -> _Copied:
    """What may not be written does not come back."""
    return InOut(host) if host.flags.writeable else In(host)


def _has_cpu_array(args: tuple[Any, ...]) -> bool:
    return any(
        _has_cpu_array(a) if isinstance(a, tuple) else isinstance(a, arrays.Array) and a.device == "cpu" for a in args
    )


def _is_numpy(value: Any) -> bool:
    import numpy as np

    return isinstance(value, np.ndarray) and value.ndim > 0


class _One(NamedTuple):
    """A record, as the array that it is the only element of."""

    array: Any


def _is_record(value: Any) -> bool:
    import numpy as np

    return isinstance(value, np.void) and value.dtype.names is not None


def _array_of(record: Any) -> Any:
    """In the memory of the record."""
    import numpy as np

    return np.asarray(record)[None]


def _on_cpu(value: Any) -> Any:
    if isinstance(value, _Copied):
        return value.host if value.comes_out else value.host.copy()
    return _One(_array_of(value)) if _is_record(value) else value


class _Copied:
    goes_in = comes_out = True

    def __init__(self, host: Any) -> None:
        self.host = host


class In(_Copied):
    """A NumPy array that a launch only reads."""

    comes_out = False


class Out(_Copied):
    """A NumPy array that a launch only writes."""

    goes_in = False


class InOut(_Copied):
    """A NumPy array that a launch reads and writes."""


def _typed(kernel: Kernel, signature: types.Signature, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments as the signature has them; numbers are converted."""
    if len(args) != len(signature.arguments):
        raise TileTypeError(f"kernel {kernel.name} takes {len(signature.arguments)} arguments, found {len(args)}")
    rows = zip(kernel.parameters, signature.arguments, args, strict=True)
    return tuple(_one_typed(kernel.name, *row) for row in rows)


def _differs_in_sign(held: Any, wanted: types.Array) -> bool:
    """An array of integers may come for one of as many bits with the other sign."""
    import numpy as np

    if not isinstance(held, np.ndarray | arrays.Array) or getattr(held.dtype, "kind", "") not in "iu":
        return False
    other = wanted.element.dtype
    return held.dtype != other and other.kind in "iu" and held.dtype.itemsize == other.itemsize


def _number(dtype: Any, value: Any) -> Any:
    """A number of a dtype; an integer that is too large wraps, as in C."""
    import numpy as np

    try:
        return dtype.type(value)
    except OverflowError:
        return np.asarray(value & (2**64 - 1), np.uint64).astype(dtype)[()]


def _is_same(dtype: Any, wanted: Any) -> bool:
    """Whether an array's dtype is NumPy's `wanted`, of whatever library it is."""
    import numpy as np

    if isinstance(dtype, np.dtype) and dtype.names is not None:
        return bool(dtype == wanted)
    return str(dtype).removeprefix("torch.") == str(wanted)


def _one_typed(kernel: str, name: str, wanted: Any, value: Any) -> Any:
    if isinstance(wanted, types.Type):
        return value if wanted is types.void else _number(wanted.dtype, value)
    held = value.host if isinstance(value, _Copied) else value
    if _differs_in_sign(held, wanted):
        return held.view(wanted.element.dtype)
    dtype, shape = getattr(held, "dtype", None), getattr(held, "shape", None)
    if shape is None or len(shape) != wanted.ndim or not _is_same(dtype, wanted.element.dtype):
        raise TileTypeError(
            f"kernel {kernel}, argument '{name}': its signature has {wanted}, found "
            f"{type(held).__name__} of {dtype} and shape {shape}; convert it, or leave the signature away"
        )
    return value
