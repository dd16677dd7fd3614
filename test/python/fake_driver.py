"""The stand-in for libcuda (runtime/fake/fakecuda.c): that of the build, or one made here where there is none.

A machine with a GPU may have a C compiler and no build tree: the tests of the launcher run there, too.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCE = ROOT / "runtime/fake/fakecuda.c"
COMPILERS = ("clang-22", "clang", "gcc", "cc")


def built() -> Path | None:
    trees = [Path(os.environ["TW_BIN"]).parent] if "TW_BIN" in os.environ else []
    libraries = [tree / "lib/libfakecuda.so" for tree in (*trees, ROOT / "build/dev")]
    return next((library for library in libraries if library.exists()), None)


def made_here() -> Path | None:
    compiler = next(filter(shutil.which, COMPILERS), None)
    if compiler is None:
        return None
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    library = Path(folder, "libfakecuda.so")
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-pthread", SOURCE, "-o", library], check=True)
    return library


@functools.cache
def find_driver() -> Path:
    """Skips the test where there is neither."""
    library = built() or made_here()
    if library is None:
        pytest.skip(f"the stand-in driver is not built (make build), and there is none of {', '.join(COMPILERS)}")
    return library
