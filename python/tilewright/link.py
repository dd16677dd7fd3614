"""Linking: functions of C++ that kernels call, from files of PTX, machine code or source.

A module of the tile dialect names the files that it needs, with what was in them (`tile.links`), so that a kernel is
compiled again when a file changes.
"""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from .errors import TileCompilationError, TileUnsupportedFeatureError, TileValueError
from .toolkit import find_tool

_COMPILED = {".ptx": ("ptxas", "-c"), ".cu": ("nvcc", "-rdc=true", "-cubin")}  # into machine code


def described(files: Iterable[str]) -> str:
    """Of each file what is in it, and its path."""
    return ";".join(f"{hashlib.sha256(_content(file)).hexdigest()} {Path(file).resolve()}" for file in files)


def _content(file: str) -> bytes:
    if not file.isascii() or set(file) & set(';"\\'):
        raise TileValueError(f"link= names {file!r}; expected a path without ';', quotes and letters beyond ASCII")
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise TileValueError(f"link= names {file}, which cannot be read: {error.strerror}") from None


def files_of(text: str) -> list[Path]:
    """The files of `described`, or of the attribute as it is printed."""
    return [Path(part.partition(" ")[2]) for part in text.strip('"').split(";")]


def linked(ptx: bytes, target: str, files: Iterable[Path]) -> bytes:
    """A cubin of PTX and the functions that it calls, by nvlink."""
    with tempfile.TemporaryDirectory() as folder:
        own, whole = Path(folder) / "kernel.ptx", Path(folder) / "linked.cubin"
        own.write_bytes(ptx)
        parts = [_machine_code(path, target, Path(folder), i) for i, path in enumerate([own, *files])]
        _run("nvlink", f"-arch={target}", *map(str, parts), "-o", str(whole))
        return whole.read_bytes()


def _machine_code(path: Path, target: str, folder: Path, number: int) -> Path:
    command = _COMPILED.get(path.suffix)
    if command is None:
        return path
    made = folder / f"{number}.cubin"
    _run(*command, f"-arch={target}", str(path), "-o", str(made))
    return made


def _run(tool: str, *arguments: str) -> None:
    found = find_tool(tool)
    if found is None:
        raise TileUnsupportedFeatureError(f"link= needs {tool} of the CUDA toolkit, or of the package nvidia-cuda-nvcc")
    done = subprocess.run([found, *arguments], capture_output=True, text=True)
    if done.returncode:
        raise TileCompilationError(f"{tool} refused what link= names: {(done.stderr or done.stdout).strip()}")
