"""nvJitLink: PTX, machine code and LTO-IR to a cubin by NVIDIA's library, for code that only it reads."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .errors import TileCompilationError
from .toolkit import find_library

_KINDS = {".cubin": 1, ".ptx": 2, ".cu": 2, ".ltoir": 3, ".fatbin": 4, ".o": 5, ".a": 6}


@functools.cache
def library() -> Any:
    """nvJitLink, or None where it is not installed."""
    import ctypes  # slow to load

    path = find_library("nvJitLink")
    return None if path is None else ctypes.CDLL(path)


def linked(target: str, parts: Iterable[tuple[str, bytes]]) -> bytes:
    """A cubin of (name, code); the ending of a name says what it is."""
    import ctypes

    linker, handle = library(), ctypes.c_void_p()
    options = [f"-arch={target}".encode(), b"-lto"]
    _checked(linker, None, linker.nvJitLinkCreate(ctypes.byref(handle), 2, (ctypes.c_char_p * 2)(*options)), target)
    try:
        for name, code in parts:
            kind, size = _KINDS.get(Path(name).suffix, 10), ctypes.c_size_t(len(code) + (name.endswith(".ptx")))
            _checked(linker, handle, linker.nvJitLinkAddData(handle, kind, code, size, name.encode()), name)
        _checked(linker, handle, linker.nvJitLinkComplete(handle), "the kernel")
        return _output(linker.nvJitLinkGetLinkedCubinSize, linker.nvJitLinkGetLinkedCubin, handle)
    finally:
        linker.nvJitLinkDestroy(ctypes.byref(handle))


def _checked(linker: Any, handle: Any, result: int, what: str) -> None:
    if result:
        log = b"" if handle is None else _output(linker.nvJitLinkGetErrorLogSize, linker.nvJitLinkGetErrorLog, handle)
        told = log.rstrip(b"\0").decode(errors="replace").strip() or f"error {result}"
        raise TileCompilationError(f"nvJitLink refused {what}:\n{told}")


def _output(size_of: Any, get: Any, handle: Any) -> bytes:
    import ctypes

    size = ctypes.c_size_t()
    size_of(handle, ctypes.byref(size))
    found = ctypes.create_string_buffer(max(1, size.value))
    get(handle, found)
    return found.raw[: size.value]
