"""NVRTC: CUDA C++ to PTX by NVIDIA's library, for `link=` of a `.cu` file alone."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from .errors import TileCompilationError
from .toolkit import find_library, include_folders


@functools.cache
def library() -> Any:
    """NVRTC, or None where it is not installed."""
    import ctypes  # slow to load

    path = find_library("nvrtc")
    return None if path is None else ctypes.CDLL(path)


def ptx_of(source: bytes, name: str, target: str, options: Sequence[str] = ()) -> bytes:
    """PTX whose functions other code may call."""
    import ctypes

    nvrtc, program = library(), ctypes.c_void_p()
    folders = (f"--include-path={folder}" for folder in include_folders())
    arch = f"--gpu-architecture={target.replace('sm_', 'compute_')}"
    words = [word.encode() for word in (arch, "--relocatable-device-code=true", *folders, *options)]
    _checked(nvrtc, nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, name.encode(), 0, None, None), name)
    try:
        result = nvrtc.nvrtcCompileProgram(program, len(words), (ctypes.c_char_p * len(words))(*words))
        if result:
            log = _text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program).decode(errors="replace")
            raise TileCompilationError(f"NVRTC refused {name}, which link= names:\n{log.strip()}")
        return _text(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, program)
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _checked(nvrtc: Any, result: int, name: str) -> None:
    import ctypes

    if result:
        nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
        raise TileCompilationError(f"NVRTC refused {name}: {nvrtc.nvrtcGetErrorString(result).decode()}")


def _text(size_of: Any, get: Any, program: Any) -> bytes:
    import ctypes

    size = ctypes.c_size_t()
    size_of(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    get(program, text)
    return text.value
