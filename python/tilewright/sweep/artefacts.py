"""Artefacts: candidates that one worker of a cluster compiles and another one measures.

An artefact is bytes from another machine, which shall be run as code. So the worker that measures takes it only if

- it bears the mark of this sweep: a keyed digest (HMAC-SHA256) over its address and its bytes, by a secret that the
  sweep makes anew and that no file keeps;
- its address is that of the program which the worker has captured itself: the text of its IR, the target, this build of
  the compiler;
- it decodes as what the disk cache keeps: a launch record that is checked field by field, and code.

Anything else is left, and the worker compiles for itself. What was taken runs in the process that candidates run in,
and goes to no disk cache: a later program of the user's never meets it.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import hmac
import re
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .. import _core, cli, compile, knobs
from ..compilation.export import assemble as assemble_by_ptxas
from ..errors import TileError
from ..structure import constant_parameters
from ..times import Times
from ..toolkit import find_tool

MOST_BYTES = 64 << 20


@dataclasses.dataclass(frozen=True)
class Artefact:
    """The image of one program, as it travels."""

    address: bytes
    blob: bytes
    mark: bytes


@dataclasses.dataclass(frozen=True)
class Wanted:
    """What a worker that compiles is told of the one that measures: what a launch there is compiled for."""

    target: str
    key: compile.Key
    driver: int  # its version, of which an assembler must be


_naming = threading.Lock()


def compiler_name() -> str:
    """This build of the compiler, wherever it is installed."""
    with _naming:  # by whoever needs it first
        return _compiler_name()


@functools.cache
def _compiler_name() -> str:
    from .. import __version__

    return f"{__version__}-{digest_of_build(Path(_core.__file__), Path(__file__).parents[1])[:12]}"


MEASURES = ("sweep", "tune", "examples", "cli.py")  # and makes no program


def digest_of_build(core: Path, package: Path) -> str:
    """Of the compiler, and of what captures kernels for it."""
    with open(core, "rb") as file:
        found = hashlib.file_digest(file, "sha256")
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package)
        if name.parts[0] not in MEASURES:
            found.update(f"{name.as_posix()}\n".encode() + path.read_bytes())
    return found.hexdigest()


def _address(text: str, target: str, plan: int) -> bytes:
    return hashlib.sha256(f"{compiler_name()}\n{target}\nplan {plan}\n{text}".encode()).digest()


def _mark(secret: bytes, address: bytes, blob: bytes) -> bytes:
    return hmac.digest(secret, address + blob, "sha256")


def make(secret: bytes, text: str, target: str, plan: int, image: compile.Image) -> Artefact:
    address, blob = _address(text, target, plan), image.pack()
    return Artefact(address, blob, _mark(secret, address, blob))


def reader(secret: bytes, artefact: Any, taken: Callable[[], None] = lambda: None) -> compile.Fetch:
    """For `compile.Specialization`: the artefact's image where a program of this worker is the one that it is of."""

    def fetch(text: str, target: str, plan: int) -> compile.Image | None:
        image = checked(secret, artefact, _address(text, target, plan))
        if image is not None:
            taken()
        return image

    return fetch


def checked(secret: bytes, artefact: Any, address: bytes) -> compile.Image | None:
    """The image of a sound artefact for this address; None of anything else."""
    if not isinstance(artefact, Artefact):
        return None
    parts = (artefact.address, artefact.blob, artefact.mark)
    if not all(type(part) is bytes for part in parts) or len(artefact.blob) > MOST_BYTES:
        return None
    if artefact.address != address:
        return None
    if not hmac.compare_digest(artefact.mark, _mark(secret, address, artefact.blob)):
        return None
    return compile.Image.unpack(artefact.blob)


# --- the worker that compiles -----------------------------------------------------------------------------------------


def wanted_choice(kernel: Any, wanted: Wanted, choice: dict[str, Any]) -> tuple[Any, compile.Key]:
    """The kernel with the choice's hints, and the key with its constants."""
    constants = constant_parameters(kernel.function)
    hints = {name: value for name, value in choice.items() if name not in constants}
    rows = zip(kernel.parameters, wanted.key, strict=True)
    key = tuple(("const", choice[name]) if name in constants and name in choice else entry for name, entry in rows)
    return (kernel.replace_hints(**hints) if hints else kernel), key


def compiled(secret: bytes, place: str, wanted: Wanted, choice: dict[str, Any]) -> Artefact | None:
    """The artefact of a candidate; None where it does not compile, which the worker that measures finds out itself."""
    try:
        kernel, key = wanted_choice(cli.load_kernel(place), wanted, choice)
        captured = compile.capture_kernel(kernel, wanted.target, key)
        text = captured.module.text(compile.needs_places(kernel.hints_for(wanted.target)))
        times = Times(kernel.name, wanted.target)
        assembler = functools.partial(_assembled, wanted.driver)
        image = compile.image_of(captured.module, text, wanted.target, kernel.name, times, assembler, cached=False)
        return make(secret, text, wanted.target, 0, image)
    except TileError:
        return None


def _assembled(driver: int, ptx: bytes, target: str) -> bytes:
    """Machine code by ptxas of the driver's own version, which makes what the driver would; else PTX."""
    if ptxas_version() != (driver // 1000, driver % 1000 // 10):
        return ptx
    return assemble_by_ptxas(ptx.decode(), target)


@functools.cache
def ptxas_version() -> tuple[int, int] | None:
    ptxas = find_tool("ptxas")
    if ptxas is None:
        return None
    told = subprocess.run([ptxas, "--version"], capture_output=True, text=True, env=knobs.environment_of_children())
    match = re.search(r"release (\d+)\.(\d+)", told.stdout)
    return (int(match[1]), int(match[2])) if match else None
