"""The extension module keeps its state in itself: imported twice, or by a subinterpreter, each import works alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

AGAIN = """
import gc, importlib, sys, tilewright, weakref
import numpy as np
from tilewright import _core as first

del sys.modules["tilewright._core"]
second = importlib.import_module("tilewright._core")
"""

# Runs a tile kernel over arrays of the standard library, sees a typed error, and frees what it made.
KERNEL = """
import array
from tilewright import _core, errors, tile as ct

SOURCE = '''
from tilewright import tile as ct

@ct.kernel
def double(X, Y):
    ct.store(Y, index=(ct.bid(0),), tile=ct.load(X, index=(ct.bid(0),), shape=(4,)) * 2.0)
'''

def check(folder):
    import importlib.util
    path = f"{folder}/doubling.py"
    with open(path, "w") as file:
        file.write(SOURCE)
    spec = importlib.util.spec_from_file_location("doubling", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    x, y = array.array("f", range(8)), array.array("f", [0] * 8)
    ct.launch(None, 2, module.double, (x, y))
    assert list(y) == [2.0 * value for value in x], y
    try:
        ct.launch(None, 2, module.double, (x, object()))
    except errors.TileTypeError as error:
        assert "argument 'Y'" in str(error), error
    else:
        raise AssertionError("an object was taken for an array")
    try:
        _core.parse("module { what }")
    except errors.TileCompilationError:
        pass
"""


def run(code: str, *arguments: str) -> str:
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_second_import_makes_a_module_of_its_own() -> None:
    run(
        AGAIN
        + """
for name in ("Dispatcher", "CpuKernel", "CudaKernel", "ArrayView", "Module", "Code", "Builder", "BuildError"):
    assert getattr(first, name) is not getattr(second, name), name
kernel = second.Dispatcher("f", ["X"], [], lambda *_: None)
try:
    first.launch(None, 1, kernel, (np.zeros(4),))
except Exception as error:
    assert "which is no kernel" in str(error), error
else:
    raise AssertionError("a kernel of another module was launched")
body = second.Builder("f.py")
assert type(body.finish()) is second.Module
"""
    )


def test_both_imports_launch() -> None:
    run(
        AGAIN
        + """
import ctypes

@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p)
def entry(words, grid, begin, end, scratch):
    runs.append((begin, end))

runs = []
for core in (first, second, first):
    code = core.CpuKernel(ctypes.cast(entry, ctypes.c_void_p).value, "f", core.launch_record(num_threads=1))
    kernel = core.Dispatcher("f", ["X"], [], lambda *_: code)
    core.launch(None, 1, kernel, (np.zeros(4),))
    assert kernel.specialization((core.ArrayView(np.zeros(4, np.float32), "tfloat32"),))[1][0][1] == "tfloat32"
assert len(runs) == 3, runs
"""
    )


def test_a_module_that_nobody_holds_is_freed() -> None:
    run(
        AGAIN
        + """
class Kernel(second.Dispatcher):
    pass

kernel = Kernel("f", ["X"], [], lambda *_: None)
kernel.specialization((np.zeros(4),))
gone = [weakref.ref(second), weakref.ref(second.Dispatcher), weakref.ref(Kernel)]
del Kernel, kernel, second, sys.modules["tilewright._core"], tilewright._core
gc.collect()
assert [ref() for ref in gone] == [None] * 3
"""
    )


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="subinterpreters are made by other calls there")
def test_a_subinterpreter_has_a_module_of_its_own(tmp_path: Path) -> None:
    run(
        KERNEL
        + """
import sys, _xxsubinterpreters as interpreters
check(sys.argv[1])
for _ in range(2):
    own = interpreters.create()
    interpreters.run_string(own, f"import sys; sys.path[:] = {sys.path!r}\\n{sys.argv[2]}\\ncheck({sys.argv[1]!r})")
    interpreters.destroy(own)
check(sys.argv[1])
""",
        str(tmp_path),
        KERNEL,
    )
