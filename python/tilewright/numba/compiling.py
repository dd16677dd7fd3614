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
    """(PTX of a kernel with this signature, the type that it gives); `cc`: compute capability, (8, 0) by default."""
    signature = types.parse(sig)
    if device:
        raise TileTypeError("compile_ptx: a device function has no PTX: it is compiled into the kernels that call it")
    kernel = pyfunc if isinstance(pyfunc, Kernel) else jit(pyfunc)
    major, minor = cc or (8, 0)
    target = f"sm_{major}{minor}{'a' if major >= 9 else ''}"
    return _ptx(kernel, target, _key(signature)), types.void


def _ptx(kernel: Kernel, target: str, key: tuple[Any, ...]) -> str:
    return lower(kernel, key, target, "ptx").decode()


def compile(pyfunc: Any, sig: Any, output: str = "ptx", **options: Any) -> tuple[str, types.Type]:
    """`compile_ptx`; other outputs are not made."""
    if output != "ptx":
        raise TileTypeError(f"cuda.compile makes PTX, found output={output!r}")
    return compile_ptx(pyfunc, sig, **options)


def ptx_of(kernel: Kernel, signature: Any = None) -> Any:
    """The PTX of what was launched on GPUs so far, by target and facts; of signatures, for sm_80."""
    if signature is not None:
        return compile_ptx(kernel, signature)[0]
    if kernel.signature is not None:
        return {kernel.signature.arguments: compile_ptx(kernel, kernel.signature)[0]}
    variants = [(target, key) for target, key, _ in kernel.variants() if target.startswith("sm_")]
    return {(target, key): _ptx(kernel, target, key) for target, key in variants}


__all__ = ["compile", "compile_ptx"]
