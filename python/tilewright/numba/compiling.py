"""PTX of kernels without a launch: `cuda.compile_ptx`, `cuda.compile`, `kernel.inspect_asm`."""

from __future__ import annotations

from typing import Any

from ..cli import lower
from ..errors import TileTypeError
from . import types
from .kernels import Kernel, jit


def _key(signature: types.Signature) -> tuple[Any, ...]:
    """The facts of arguments of these types: none but those."""
    return tuple(map(_entry, signature.arguments))


def _entry(of: Any) -> tuple[Any, ...]:
    element = of.element if isinstance(of, types.Array) else of
    if element.of is None:
        raise TileTypeError(f"kernels have no arguments of {of} yet")
    if not isinstance(of, types.Array):
        return ("scalar", element.of.name, 1)
    anything = tuple((0, 1) for _ in range(of.ndim))
    return ("array", element.of.name, of.ndim, element.of.itemsize, (1,) * of.ndim, anything, True, False)


def compile_ptx(
    pyfunc: Any, sig: Any, debug: bool = False, lineinfo: bool = False, device: bool = False, cc: Any = None, **_: Any
) -> tuple[str, types.Type]:
    """(PTX of a kernel with this signature, the type that it gives); `cc`: compute capability, (8, 0) by default.

    With `device=True` it is that of a function which C++ calls, as of `compile`.
    """
    if device:
        return compile(pyfunc, sig, cc=cc)
    signature = types.parse(sig)
    kernel = pyfunc if isinstance(pyfunc, Kernel) else jit(pyfunc)
    major, minor = cc or (8, 0)
    target = f"sm_{major}{minor}{'a' if major >= 9 else ''}"
    return _ptx(kernel, target, _key(signature)), types.void


def _ptx(kernel: Kernel, target: str, key: tuple[Any, ...]) -> str:
    return lower(kernel, key, target, "ptx").decode()


def compile(
    pyfunc: Any, sig: Any, output: str = "ptx", device: bool = True, cc: Any = None, abi: str = "c", **options: Any
) -> tuple[str, Any]:
    """(code, type of the result) of a function that C++ calls; `device=False`: of a kernel, as by `compile_ptx`.

    output: "ptx", or "llvm" for LLVM IR as text.
    """
    from ..compute import compiling  # which needs this package

    if abi != "c":
        raise TileTypeError(f"cuda.compile: functions are called as C++ calls them, abi='c', found {abi!r}")
    if not device:
        return compile_ptx(pyfunc, sig, cc=cc, **options)
    return compiling.compile(pyfunc, sig, output=output, cc=cc)


def ptx_of(kernel: Kernel, signature: Any = None) -> Any:
    """The PTX of what was launched on GPUs so far, by target and facts; of signatures, for sm_80."""
    if signature is not None:
        return compile_ptx(kernel, signature)[0]
    if kernel.signature is not None:
        return {kernel.signature.arguments: compile_ptx(kernel, kernel.signature)[0]}
    variants = [(target, key) for target, key, _ in kernel.variants() if target.startswith("sm_")]
    return {(target, key): _ptx(kernel, target, key) for target, key in variants}


__all__ = ["compile", "compile_ptx"]
