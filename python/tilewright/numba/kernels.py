"""`@cuda.jit`: kernels of Numba programs, and how they are launched."""

from __future__ import annotations

import functools
import types as python_types
from typing import TYPE_CHECKING, Any

from .. import _core, arrays
from ..capture.numba_rules import NPM, NUMBA, ThreadRules
from ..device import records
from ..errors import LaunchError, TileTypeError, TileValueError
from ..kernel import kernel as _kernel
from . import types

if TYPE_CHECKING:
    from ..capture.frame import Frame

RULES: dict[str, ThreadRules] = {"numba": NUMBA, "npm": NPM}
# Options of Numba that ask for what happens here anyway, or change no result.
_OPTIONS = frozenset(("debug", "opt", "lineinfo", "inline", "fastmath", "max_registers", "cache", "func_or_sig"))
_OPTIONS |= {"forceinline", "launch_bounds", "abi", "abi_info", "boundscheck", "nopython", "lto", "fma", "extensions"}


class Kernel(_kernel):
    """What `@cuda.jit` makes of a function: `kernel[grid, block](...)` launches it; other kernels may call it."""

    rules: ThreadRules = NUMBA
    decorator = "@cuda.jit"
    hint_names = ()
    signature: types.Signature | None = None

    def __getitem__(self, configuration: Any) -> Configured:
        return _configured(self, *_parts_of(configuration))

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        raise LaunchError(
            f"the kernel {self.name} was called without a grid; launch it by {self.name}[blocks, threads](...)"
        )

    def forall(self, count: int, tpb: int = 0, stream: Any = 0, sharedmem: int = 0) -> Configured:
        """A launch of one thread for each of `count` elements, or some more."""
        threads = tpb or 128
        return self[max(1, -(-count // threads)), threads, stream, sharedmem]

    @property
    def py_func(self) -> Any:
        return self.function

    def __tw_value__(self, frame: Frame) -> Any:
        """In another kernel it is the function."""
        return self.function

    def __repr__(self) -> str:
        return f"<cuda.jit kernel {self.name}({', '.join(self.parameters)})>"

    def inspect_asm(self, signature: Any = None) -> Any:
        """The PTX of what was compiled for a GPU so far: a text for a signature, else one for each."""
        from .compiling import ptx_of

        return ptx_of(self, signature)

    def specialize(self, *args: Any) -> Kernel:
        return self


class _NpmKernel(Kernel):
    rules = NPM


_CLASSES = {"numba": Kernel, "npm": _NpmKernel}


def jit(
    func_or_sig: Any = None,
    device: bool = False,
    inline: Any = "never",
    link: Any = (),
    debug: Any = None,
    opt: Any = True,
    lineinfo: bool = False,
    cache: bool = False,
    *,
    rules: str = "numba",
    **options: Any,
) -> Any:
    """Make a kernel, or with `device=True` a function for kernels: `@cuda.jit`, `@cuda.jit("void(float32[:])")`."""
    unknown = options.keys() - _OPTIONS
    if unknown:
        raise TileTypeError(f"@cuda.jit has no option '{min(unknown)}'; it has device, {', '.join(sorted(_OPTIONS))}")
    if rules not in RULES:
        raise TileValueError(f"@cuda.jit: the rules are 'numba' or 'npm', found {rules!r}")
    if link:
        raise TileTypeError("@cuda.jit: link= of code in CUDA C++ is not supported; write the function in Python")
    make = functools.partial(_make, device=device, kind=_CLASSES[rules])
    if isinstance(func_or_sig, python_types.FunctionType):
        return make(func_or_sig, None)
    signature = None if func_or_sig is None else types.parse(func_or_sig)
    return lambda function: make(function, signature)


def _make(function: Any, signature: types.Signature | None, device: bool, kind: type[Kernel]) -> Any:
    if isinstance(function, Kernel):
        function = function.function
    if not isinstance(function, python_types.FunctionType):
        raise TileTypeError(f"@cuda.jit needs a function made by 'def', found {function!r}")
    if device:
        return function
    made = kind(function)
    _check_signature(made, signature)
    made.signature = signature
    return made


def _check_signature(kernel: Kernel, signature: types.Signature | None) -> None:
    if signature is None:
        return
    if signature.result is not types.void:
        raise TileTypeError(f"kernel {kernel.name}: a kernel returns nothing, found the signature {signature}")
    if len(signature.arguments) != len(kernel.parameters):
        raise TileTypeError(
            f"kernel {kernel.name} takes {len(kernel.parameters)} arguments, its signature {signature} has "
            f"{len(signature.arguments)}"
        )


def _parts_of(configuration: Any) -> tuple[Any, Any, Any, int]:
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

    def __call__(self, *args: Any) -> None:
        kernel = self.kernel
        if kernel.signature is not None:
            args = _typed(kernel, kernel.signature, args)
        on_gpu, copies = _place(args, self.stream)
        _launch(self, on_gpu)
        for host, copy in copies:
            copy.copy_to_host(host, self.stream)


def _launch(configured: Configured, args: tuple[Any, ...]) -> None:
    stream = configured.stream if _is_on_gpu(args) else None
    given = tuple(map(_argument, args))
    _core.launch_threads(stream, configured.grid, configured.block, configured.kernel, given, configured.shared)


def _argument(value: Any) -> Any:
    """What a kernel of threads takes: a complex number of Python is one of two float64."""
    import numpy as np

    return records.argument(np.complex128(value) if type(value) is complex else value)


def _is_on_gpu(args: tuple[Any, ...]) -> bool:
    return not any(isinstance(a, arrays.Array) and a.device == "cpu" for a in args)


def _configured(kernel: Kernel, grid: Any, block: Any, stream: Any, shared: Any) -> Configured:
    return Configured(kernel, grid, block, stream, shared)


def _place(args: tuple[Any, ...], stream: Any) -> tuple[tuple[Any, ...], list[tuple[Any, Any]]]:
    """NumPy arrays, where there is a GPU, go there for the launch and come back; on the CPU they stay."""
    if not arrays._has_gpu() or _has_cpu_array(args):
        return tuple(a.host if isinstance(a, _Copied) else a for a in args), []
    placed, copies = list(args), []
    for i, value in enumerate(args):
        mode = value if isinstance(value, _Copied) else _mode_of(value) if _is_numpy(value) else None
        if mode is None:
            continue
        placed[i] = arrays.to_device(mode.host, stream=stream) if mode.goes_in else arrays.empty_like(mode.host)
        if mode.comes_out:
            copies.append((mode.host, placed[i]))
    return tuple(placed), copies


def _mode_of(host: Any) -> _Copied:
    """What may not be written does not come back."""
    return InOut(host) if host.flags.writeable else In(host)


def _has_cpu_array(args: tuple[Any, ...]) -> bool:
    return any(isinstance(a, arrays.Array) and a.device == "cpu" for a in args)


def _is_numpy(value: Any) -> bool:
    import numpy as np

    return isinstance(value, np.ndarray) and value.ndim > 0


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


def _one_typed(kernel: str, name: str, wanted: Any, value: Any) -> Any:
    if isinstance(wanted, types.Type):
        return value if wanted is types.void else wanted.dtype.type(value)
    held = value.host if isinstance(value, _Copied) else value
    if _differs_in_sign(held, wanted):
        return held.view(wanted.element.dtype)
    dtype, shape = getattr(held, "dtype", None), getattr(held, "shape", None)
    if shape is None or len(shape) != wanted.ndim or str(dtype).removeprefix("torch.") != str(wanted.element.dtype):
        raise TileTypeError(
            f"kernel {kernel}, argument '{name}': its signature has {wanted}, found "
            f"{type(held).__name__} of {dtype} and shape {shape}; convert it, or leave the signature away"
        )
    return value
