"""PTX of kernels and functions without a launch: `cuda.compile_ptx`, `cuda.compile`."""

from __future__ import annotations

from typing import Any

from ..errors import TileTypeError, TileUnsupportedFeatureError, TileValueError
from ..quiet import quiet
from . import types
from .compiled import LEAST, Overload, facts_of, target_of
from .kernels import DeviceFunction, Kernel, jit

ABIS = ("c", "numba")


@quiet
def compile_ptx(
    pyfunc: Any, sig: Any, debug: bool = False, lineinfo: bool = False, device: bool = False, fastmath: bool = False,
    cc: Any = None, opt: Any = None, abi: str = "numba", abi_info: Any = None, forceinline: bool = False,
    launch_bounds: Any = None,
) -> tuple[str, types.Type]:  # fmt: skip
    """(PTX of a kernel with this signature, the type that it gives); `cc`: compute capability, (8, 0) by default.

    With `device=True` it is that of a function which C++ calls, as of `compile`.
    """
    if device:
        return compile(pyfunc, sig, cc=cc or LEAST, abi_info=abi_info)
    if abi not in ABIS:
        raise TileUnsupportedFeatureError(f"cuda.compile_ptx: Unsupported ABI: {abi}; it is 'numba' or 'c'")
    options = {"debug": debug, "lineinfo": lineinfo, "fastmath": fastmath, "launch_bounds": launch_bounds}
    kernel = pyfunc if isinstance(pyfunc, Kernel) else jit(pyfunc, **options)
    return Overload(kernel, target_of(cc or LEAST), facts_of(types.parse(sig))).inspect_asm(), types.void


def compile_ptx_for_current_device(pyfunc: Any, sig: Any, **options: Any) -> tuple[str, types.Type]:
    return compile_ptx(pyfunc, sig, cc=_current(), **options)


def compile_for_current_device(pyfunc: Any, sig: Any, **options: Any) -> tuple[str, Any]:
    return compile(pyfunc, sig, cc=_current(), **options)


def _current() -> tuple[int, int]:
    from .devices import get_current_device

    return get_current_device().compute_capability


@quiet
def compile(
    pyfunc: Any, sig: Any, debug: bool = False, lineinfo: bool = False, device: bool = True, fastmath: bool = False,
    cc: Any = None, opt: Any = None, abi: str = "c", abi_info: Any = None, output: str = "ptx",
    forceinline: bool = False, launch_bounds: Any = None,
) -> tuple[str, Any]:  # fmt: skip
    """(code, type of the result) of a function that C++ calls; `device=False`: of a kernel, as by `compile_ptx`.

    output: "ptx", or "llvm" for LLVM IR as text. abi_info: {"abi_name": …} is the symbol's name.
    """
    from ..compute import compiling  # which needs this package

    if abi not in ABIS:
        raise TileUnsupportedFeatureError(f"cuda.compile: Unsupported ABI: {abi}; it is 'c'")
    if not device:
        if abi == "c" and abi_info:
            raise TileValueError("cuda.compile: the C ABI is of device functions; a kernel has its function's name")
        options: dict[str, Any] = {"debug": debug, "lineinfo": lineinfo, "fastmath": fastmath}
        return compile_ptx(pyfunc, sig, cc=cc, launch_bounds=launch_bounds, **options)
    if abi != "c":
        raise TileTypeError(f"cuda.compile: functions are called as C++ calls them, abi='c', found {abi!r}")
    function = pyfunc.function if isinstance(pyfunc, DeviceFunction) else pyfunc
    code, result = compiling.compile(function, sig, output=output, cc=cc, name=(abi_info or {}).get("abi_name"))
    return code, types.of_dtype(result)


def compile_all(pyfunc: Any, sig: Any, **options: Any) -> tuple[list[Any], Any]:
    """([code], type of the result): what `compile` gives; the code of what it calls is in it."""
    code, result = compile(pyfunc, sig, **options)
    return [code], result


__all__ = ["compile", "compile_all", "compile_for_current_device", "compile_ptx", "compile_ptx_for_current_device"]
