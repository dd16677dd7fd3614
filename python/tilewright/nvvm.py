"""libNVVM: LLVM IR to LTO-IR by NVIDIA's library, for programs that ask for it by name."""

from __future__ import annotations

import functools
import re
from typing import Any

from .errors import TileCompilationError
from .toolkit import find_library

_VERSION = "\n!nvvmir.version = !{!4294967294}\n!4294967294 = !{i32 2, i32 0}\n"
# What libNVVM does not take: attributes of functions, of which this LLVM has new ones (those of intrinsics are known by
# their names), and flags of the module, which are other ones in code of CUDA C++.
_DROPPED = re.compile(r"^attributes #\d+ = .*$|^!llvm\.module\.flags = .*$| #\d+(?=$| \{$)", re.MULTILINE)


@functools.cache
def library() -> Any:
    """libNVVM, or None where it is not installed."""
    import ctypes  # slow to load

    path = find_library("nvvm")
    return None if path is None else ctypes.CDLL(path)


def lto_of(text: str, name: str, number: int) -> bytes:
    """LTO-IR of LLVM IR, for a compute capability such as 100."""
    import ctypes

    nvvm, program = library(), ctypes.c_void_p()
    source = (_DROPPED.sub("", text) + _VERSION).encode()
    options = [f"-arch=compute_{number}".encode(), b"-gen-lto"]
    _checked(nvvm, program, nvvm.nvvmCreateProgram(ctypes.byref(program)), name)
    try:
        _checked(nvvm, program, nvvm.nvvmAddModuleToProgram(program, source, len(source), name.encode()), name)
        _checked(nvvm, program, nvvm.nvvmCompileProgram(program, 2, (ctypes.c_char_p * 2)(*options)), name)
        return _output(nvvm.nvvmGetCompiledResultSize, nvvm.nvvmGetCompiledResult, program)
    finally:
        nvvm.nvvmDestroyProgram(ctypes.byref(program))


def _checked(nvvm: Any, program: Any, result: int, name: str) -> None:
    if result:
        log = _output(nvvm.nvvmGetProgramLogSize, nvvm.nvvmGetProgramLog, program).rstrip(b"\0")
        told = log.decode(errors="replace").strip() or f"error {result}"
        raise TileCompilationError(f"libNVVM refused {name}:\n{told}")


def _output(size_of: Any, get: Any, program: Any) -> bytes:
    import ctypes

    size = ctypes.c_size_t()
    size_of(program, ctypes.byref(size))
    found = ctypes.create_string_buffer(max(1, size.value))
    get(program, found)
    return found.raw[: size.value]
