"""NVRTC: CUDA C++ to PTX by NVIDIA's library, for `link=` of a `.cu` file alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .errors import TileCompilationError
from .toolkit import include_folders, loaded, output_of, text_of


def library() -> Any:
    """NVRTC, or None where it is not installed."""
    return loaded("nvrtc")


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
            log = text_of(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
            raise TileCompilationError(f"NVRTC refused {name}, which link= names:\n{log.strip()}")
        return output_of(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, program).rstrip(b"\0")
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _checked(nvrtc: Any, result: int, name: str) -> None:
    import ctypes

    if result:
        nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
        raise TileCompilationError(f"NVRTC refused {name}: {nvrtc.nvrtcGetErrorString(result).decode()}")
