"""nvJitLink: PTX, machine code and LTO-IR to a cubin by NVIDIA's library, for code that only it reads."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .toolkit import checked, loaded, output_of, text_of

_KINDS = {".cubin": 1, ".ptx": 2, ".cu": 2, ".ltoir": 3, ".fatbin": 4, ".o": 5, ".a": 6}


def library() -> Any:
    """nvJitLink, or None where it is not installed."""
    return loaded("nvJitLink")


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
        return output_of(linker.nvJitLinkGetLinkedCubinSize, linker.nvJitLinkGetLinkedCubin, handle)
    finally:
        linker.nvJitLinkDestroy(ctypes.byref(handle))


def _checked(linker: Any, handle: Any, result: int, what: str) -> None:
    log = functools.partial(text_of, linker.nvJitLinkGetErrorLogSize, linker.nvJitLinkGetErrorLog, handle)
    checked(result, f"nvJitLink refused {what}", str if handle is None else log)
