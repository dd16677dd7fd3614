"""libNVVM: LLVM IR to LTO-IR by NVIDIA's library, for programs that ask for it by name."""

from __future__ import annotations

import functools
import re
from typing import Any

from .toolkit import checked, loaded, output_of, text_of

_VERSION = "\n!nvvmir.version = !{!4294967294}\n!4294967294 = !{i32 2, i32 0}\n"
# What libNVVM does not take: attributes of functions, of which this LLVM has new ones (those of intrinsics are known by
# their names), and flags of the module, which are other ones in code of CUDA C++.
_DROPPED = re.compile(r"^attributes #\d+ = .*$|^!llvm\.module\.flags = .*$| #\d+(?=$| \{$)", re.MULTILINE)


def library() -> Any:
    """libNVVM, or None where it is not installed."""
    return loaded("nvvm")


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
        return output_of(nvvm.nvvmGetCompiledResultSize, nvvm.nvvmGetCompiledResult, program)
    finally:
        nvvm.nvvmDestroyProgram(ctypes.byref(program))


def _checked(nvvm: Any, program: Any, result: int, name: str) -> None:
    log = functools.partial(text_of, nvvm.nvvmGetProgramLogSize, nvvm.nvvmGetProgramLog, program)
    checked(result, f"libNVVM refused {name}", log)
