"""Programs and libraries of the CUDA toolkit, which nothing needs but a look at machine code, an export of it, and
code in CUDA C++ that a kernel is linked with.
"""

from __future__ import annotations

import functools
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .errors import TileCompilationError

_PARTS = ("cuda_nvcc", "cuda_nvrtc", "cuda_runtime", "cu13")  # of packages up to CUDA 12, and from 13 on


def _places() -> Iterator[Path]:
    """Where a toolkit may be: a usual place, the program nvcc's, NVIDIA's packages for Python."""
    yield Path("/usr/local/cuda")
    nvcc = shutil.which("nvcc")
    if nvcc is not None:
        yield Path(nvcc).resolve().parent.parent
    yield from (Path(folder) / "nvidia" / part for folder in sys.path for part in _PARTS)


def find_tool(name: str) -> str | None:
    """From PATH, from a usual place, or from NVIDIA's packages for Python; None where it is not found."""
    found = (place / "bin" / name for place in _places())
    return shutil.which(name) or next((str(path) for path in found if path.is_file()), None)


def find_library(name: str) -> str | None:
    """The file of a library, such as "nvrtc"; None where it is not found."""
    folders = [place / part for place in _places() for part in ("lib64", "lib", "nvvm/lib64")]
    found = (path for folder in folders for path in sorted(folder.glob(f"lib{name}.so.[0-9]*")))
    return next(map(str, found), None)


@functools.cache
def loaded(name: str) -> Any:
    """A library, such as "nvrtc", or None where it is not installed."""
    import ctypes  # slow to load

    path = find_library(name)
    return None if path is None else ctypes.CDLL(path)


def output_of(size_of: Any, get: Any, handle: Any) -> bytes:
    """What a library gives by two functions: of its size, and of the bytes."""
    import ctypes

    size = ctypes.c_size_t()
    size_of(handle, ctypes.byref(size))
    found = ctypes.create_string_buffer(max(1, size.value))
    get(handle, found)
    return found.raw[: size.value]


def text_of(size_of: Any, get: Any, handle: Any) -> str:
    """The same, of a text that ends in a zero."""
    return output_of(size_of, get, handle).rstrip(b"\0").decode(errors="replace")


def checked(result: int, what: str, log: Callable[[], str]) -> None:
    """`what`: who refused what. The log says why, or the number of the error."""
    if result:
        raise TileCompilationError(f"{what}:\n{log().strip() or f'error {result}'}")


def include_folders() -> list[str]:
    """The folders with CUDA's headers."""
    found = (place / "include" for place in _places())
    return [str(folder) for folder in found if (folder / "cuda_fp16.h").is_file() or (folder / "cuda.h").is_file()][:2]
