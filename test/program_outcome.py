"""What comes of one random program: its kernel made of a text, and how it ended.

Families of programs (random_products, random_language, random_simt, random_numba) share this; program_runner.py starts
them.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.util
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tilewright import compile as compiler
from tilewright import errors
from tilewright.times import Times

sys.path.insert(0, str(Path(__file__).parent / "emulator"))
import registers

HARM = (  # errors after which the GPU runs nothing more for this process
    "CUDA error", "ILLEGAL_ADDRESS", "ILLEGAL_INSTRUCTION", "MISALIGNED", "LAUNCH_FAILED", "LAUNCH_TIMEOUT",
    "HARDWARE_STACK", "INVALID_ADDRESS_SPACE", "INVALID_PC", "CUDA_ERROR_ASSERT", "CUDA_ERROR_UNKNOWN",
)  # a table of several in a line  # fmt: skip


@dataclasses.dataclass
class Outcome:
    kind: str
    text: str = ""


def kernel_of(source: str, folder: Path) -> Any:
    """The kernel of a text, which gets a file of its own: capture reads sources."""
    path = folder / f"program_{hashlib.sha256(source.encode()).hexdigest()[:16]}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


def kind_of(error: Exception) -> str:
    """The compiler, ours or the driver's, refuses the program; or it harmed the GPU's context; or this tool failed."""
    text = str(error)
    if any(word in text for word in HARM):
        return "crashed"
    refused = isinstance(error, errors.TileError) and not isinstance(error, errors.DriverError)
    return "refused" if refused else "failed"


def guarded(run: Callable[[], Outcome]) -> Outcome:
    """How a program ended: an error is an outcome, too. Warnings of NumPy, whose numbers may be any, are none."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return run()
    except Exception as error:
        return Outcome(kind_of(error), f"{type(error).__name__}: {error}")


def assembled(ptx: bytes, target: str) -> bytes:
    """As the driver would: what ptxas does not take is planned again. The PTX itself is what is looked at."""
    ptxas = shutil.which("ptxas")
    if ptxas is not None:
        with tempfile.NamedTemporaryFile(suffix=".ptx") as file:
            file.write(ptx.rstrip(b"\0"))
            file.flush()
            command = [ptxas, f"-arch={target}", "-o", "/dev/null", file.name]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise errors.TileCompilationError(f"ptxas: {done.stderr.strip()}")
    return ptx


def compiled(kernel: Any, target: str, arguments: list[Any]) -> Outcome:
    """To PTX, and on through ptxas where there is one."""
    _, key = kernel.specialization(tuple(arguments))
    module = kernel.capture(target, key)
    code = compiler.build(module, target, kernel.name, Times(kernel.name, target), assembled).code
    misuses = registers.misused(code.decode(errors="replace"))
    return Outcome("wrong", " / ".join(misuses[:3])) if misuses else Outcome("right")
