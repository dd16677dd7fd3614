"""The extension module keeps its state in itself: imported twice, or by a subinterpreter, each import works alone."""

from __future__ import annotations

import os
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

# Compiles and runs a tile kernel over arrays of the standard library. NumPy, of which the front end takes some, can be
# imported by one interpreter of a process only.
RUN_KERNEL = """
import array, importlib.util
from tilewright import tile as ct

spec = importlib.util.spec_from_file_location("doubling", folder + "/doubling.py")
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
x, y = array.array("f", range(8)), array.array("f", [0] * 8)
ct.launch(None, 2, module.double, (x, y))
assert list(y) == [2.0 * value for value in x], y
"""
DOUBLING = """
from tilewright import tile as ct

@ct.kernel
def double(X, Y):
    ct.store(Y, index=(ct.bid(0),), tile=ct.load(X, index=(ct.bid(0),), shape=(4,)) * 2.0)
"""

# What an interpreter must have of its own: types, and the classes of exceptions.
USE_MODULE = """
from tilewright import _core, errors

def raised(call, *arguments):
    try:
        call(*arguments)
    except Exception as error:
        return type(error)

kernel = _core.Dispatcher("f", ["X"], [], lambda *_: None)
assert raised(kernel.specialization, (object(),)) is errors.TileTypeError
assert raised(_core.launch, None, 1, 3, ()) is errors.TileTypeError
assert raised(_core.parse, "module { what }") is errors.TileCompilationError
assert type(_core.Builder("f.py").finish()) is _core.Module
"""


def run(code: str, *arguments: str) -> str:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code, *arguments], env=environment, capture_output=True, text=True)
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
    (tmp_path / "doubling.py").write_text(DOUBLING)
    run(
        """
import sys, _xxsubinterpreters as interpreters
folder, use_module, run_kernel = sys.argv[1:]
exec(use_module)
for code in (use_module + run_kernel, use_module):
    own = interpreters.create()
    interpreters.run_string(own, f"import sys; sys.path[:] = {sys.path!r}; folder = {folder!r}\\n" + code)
    interpreters.destroy(own)
exec(use_module)
""",
        str(tmp_path),
        USE_MODULE,
        RUN_KERNEL,
    )


def test_a_kernel_is_pickled_and_copied_as_a_function_is(tmp_path: Path) -> None:
    """By its name; another process that imports its module finds it."""
    (tmp_path / "doubling.py").write_text(DOUBLING + "\nwith_hints = double.replace_hints(num_warps=8)\n")
    program = """
import copy, multiprocessing, pickle
import doubling

def in_process(kernel):
    return kernel is doubling.double

if __name__ == "__main__":
    assert pickle.loads(pickle.dumps(doubling.double)) is copy.deepcopy(doubling.double) is doubling.double
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(in_process, [doubling.double]) == [True]
    try:
        pickle.dumps(doubling.with_hints)
    except pickle.PicklingError:
        pass
    else:
        raise AssertionError("another kernel than its module has under the name")
"""
    (tmp_path / "program.py").write_text(program)
    command = [sys.executable, str(tmp_path / "program.py")]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2] / "python"), str(tmp_path)])
    }
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
