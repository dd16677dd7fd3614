"""Linking: functions of C++ that kernels call, from files of PTX, machine code or source.

A module of the tile dialect names the files that it needs, with what was in them (`tile.links`), so that a kernel is
compiled again when a file changes. The driver links for its own GPUs; code for others is linked by programs of the CUDA
toolkit. CUDA C++ becomes PTX first, by NVRTC or nvcc.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterable
from pathlib import Path

from . import _core, nvjitlink, nvrtc
from .errors import TileCompilationError, TileUnsupportedFeatureError, TileValueError
from .toolkit import find_tool

Part = tuple[str, bytes]  # a file's path, and PTX or machine code


def described(files: Iterable[str]) -> str:
    """Of each file what is in it, and its path. What two files have is there once: a linker takes it once."""
    named: dict[tuple[str, str], Path] = {}
    for file in files:
        code, path = hashlib.sha256(_content(file)).hexdigest(), Path(file).resolve()
        named.setdefault((code, path.suffix), path)
    return ";".join(f"{code} {path}" for (code, _), path in named.items())


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


def stored(code: bytes, suffix: str) -> str:
    """A file with this code, for as long as the process lives."""
    path = _folder() / (hashlib.sha256(code).hexdigest()[:32] + suffix)
    if not path.exists():  # and never in part: other threads may read it
        with tempfile.NamedTemporaryFile(dir=_folder(), delete=False) as whole:
            whole.write(code)
        os.replace(whole.name, path)
    return str(path)


_making = threading.Lock()


def _folder() -> Path:
    with _making:  # a cache alone lets threads that come at the same time have one each
        return _made_folder()


@functools.cache
def _made_folder() -> Path:
    folder = tempfile.mkdtemp(prefix="tilewright-link-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def linked(ptx: bytes, target: str, files: Iterable[Path], device: int | None) -> bytes:
    """A cubin of PTX and the functions that it calls: by the driver of a GPU of the target, or where there is none by
    the toolkit's programs."""
    parts = [(str(path), _linkable(path, target)) for path in files]
    if any(name.endswith(".ltoir") for name, _ in parts):
        return nvjitlink.linked(target, [("kernel.ptx", ptx), *parts])
    if device is None:
        return _linked_by_tools(ptx, target, parts)
    return _core.ptx_to_cubin(ptx.decode(), device, tuple(parts))[0]


def _linkable(path: Path, target: str) -> bytes:
    code = path.read_bytes()
    if path.suffix != ".cu":
        return code
    if nvrtc.library() is not None:
        return nvrtc.ptx_of(code, str(path), target)
    return _by_nvcc(path, target)


def _by_nvcc(path: Path, target: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "source.ptx"
        _run("nvcc", "-rdc=true", "-ptx", f"-arch={target}", str(path), "-o", str(made))
        return made.read_bytes()


def _linked_by_tools(ptx: bytes, target: str, parts: Iterable[Part]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder) / "linked.cubin"
        named = [("kernel.ptx", ptx), *parts]
        files = [_machine_code(part, target, Path(folder) / str(i)) for i, part in enumerate(named)]
        _run("nvlink", f"-arch={target}", *files, "-o", str(whole))
        return whole.read_bytes()


def _machine_code(part: Part, target: str, place: Path) -> str:
    """A file that nvlink takes, beside `place`."""
    name, code = part
    is_ptx = Path(name).suffix in (".ptx", ".cu")
    given, made = place.with_suffix(".ptx" if is_ptx else Path(name).suffix), place.with_suffix(".cubin")
    given.write_bytes(code)
    if not is_ptx:
        return str(given)
    _run("ptxas", "-c", f"-arch={target}", str(given), "-o", str(made), what=name)
    return str(made)


def _run(tool: str, *arguments: str, what: str = "what link= names") -> None:
    found = find_tool(tool)
    if found is None:
        raise TileUnsupportedFeatureError(
            f"link= for a GPU that is not there needs {tool} of the CUDA toolkit, or of the package nvidia-cuda-nvcc"
        )
    done = subprocess.run([found, *arguments], capture_output=True, text=True)
    if done.returncode:
        raise TileCompilationError(f"{tool} refused {what}: {(done.stderr or done.stdout).strip()}")
