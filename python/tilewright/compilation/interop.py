"""Functions and kernels with `interop=True` as a file that a program of C++ is linked with."""

from __future__ import annotations

import os
import subprocess
import tempfile
import types
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from .. import compile, plans
from ..capture.c_entry import CEntry, capture_for_c
from ..device.functions import kernel as device_kernel
from ..device.interop import hints_of, signature_of
from ..device.targets import HOST_NAME
from ..errors import TileCompilationError, TileTypeError, TileUnsupportedFeatureError, TileValueError
from ..quiet import quiet
from ..toolkit import find_tool
from .export import join, write

FORMATS = ("ptx", "object")


@quiet
def export_functions(
    functions: Sequence[Any],
    output_file: IO[bytes] | str | bytes | os.PathLike[str],
    *,
    gpu_code: str = "",
    output_format: str,
) -> None:
    """Write functions and kernels that are made with `interop=True` for programs of C++, which declare them extern "C".

    gpu_code: the GPU, such as "sm_90a"; "host" is this machine, for functions.
    output_format: "ptx", or "object", which the linker takes: for a GPU ptxas must be there.
    """
    if output_format not in FORMATS:
        raise TileValueError(f"output_format is 'ptx' or 'object', found {output_format!r}")
    on_host = gpu_code == HOST_NAME
    if not on_host and not gpu_code.startswith("sm_"):
        raise TileValueError(f"gpu_code is a GPU such as 'sm_90a', or 'host', found {gpu_code!r}")
    if on_host and (output_format != "object" or len(functions) != 1):
        raise TileValueError("a file for the host is an object with one function: output_format='object', and one")
    if not functions:
        raise TileValueError("export_functions needs one function or more, found none")
    made = [_made(f, gpu_code) for f in functions]
    if on_host:
        return write(output_file, made[0])
    ptx = join([text.decode() for text in made])
    write(output_file, ptx.encode() if output_format == "ptx" else relocatable(ptx, gpu_code))


def include_folder() -> str:
    """Where `cuda/interoperable_array_descriptor.h` is, for the C++ compiler's -I."""
    return str(Path(__file__).resolve().parent.parent / "include")


def entry_of(f: Any, target: str) -> CEntry:
    """What the hints of a function or kernel say, by the convention of a target."""
    is_kernel = isinstance(f, device_kernel)
    function = getattr(f, "underlying", f)
    if not isinstance(function, types.FunctionType) or not getattr(f, "interop", False):
        raise TileTypeError(f"C++ calls what is made with interop=True, found {f!r}; write @device.func(interop=True)")
    if is_kernel and target == HOST_NAME:
        raise TileTypeError(f"{function.__name__} is a kernel, and those run on a GPU; the host calls a @device.func")
    parameters, result = hints_of(function)
    return CEntry(parameters, result, signature_of(parameters, result, target, is_kernel), is_kernel)


def _made(f: Any, target: str) -> bytes:
    entry = entry_of(f, target)
    module = capture_for_c(f.underlying, entry, target)
    if target == HOST_NAME:
        plans.lower(module, compile.CPU_STAGES, module.lower)
        return bytes(module.emit(compile.EMIT_OBJECT))
    plans.lower(module, compile.GPU_STAGES, module.lower)
    return bytes(module.emit(compile.EMIT_ASSEMBLY))


def relocatable(ptx: str, target: str) -> bytes:
    """An object that nvlink takes, by ptxas."""
    ptxas = find_tool("ptxas")
    if ptxas is None:
        raise TileUnsupportedFeatureError(
            "an object for a GPU needs ptxas of the CUDA toolkit; write 'ptx', and where the toolkit is, "
            f"ptxas -c -arch={target} FILE.ptx -o FILE.o"
        )
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "functions.ptx", Path(folder) / "functions.o"
        source.write_text(ptx)
        done = subprocess.run([ptxas, "-c", f"-arch={target}", source, "-o", made], capture_output=True, text=True)
        if done.returncode:
            raise TileCompilationError(f"ptxas refused the PTX for {target}: {done.stderr.strip()}")
        return made.read_bytes()
