"""Runs the tests of numba-cuda against tilewright.numba: which pass, and what the others meet.

    python tools/numba_suite.py CHECKOUT [--out tools/numba.tsv]

CHECKOUT is a copy of https://github.com/NVIDIA/numba-cuda. A module `numba` in front of ours answers the imports of its
tests (numba_cuda/numba/cuda/tests/cudapy); a test that imports what is no part of the public interface is not counted.
Each file has a process of its own. The table has a row a file: passed, failed, skipped, and the first words of what the
others met.
"""

from __future__ import annotations

import argparse
import collections
import csv
import importlib.abc
import importlib.machinery
import os
import re
import subprocess
import sys
import types
import unittest
from pathlib import Path
from typing import Any

TESTS = "numba_cuda/numba/cuda/tests/cudapy"
SECONDS = 120  # of one file


def module(name: str, **members: Any) -> types.ModuleType:
    made = types.ModuleType(name)
    made.__dict__.update(members)
    sys.modules[name] = made
    return made


def _same(*_: Any, **__: Any) -> Any:
    """A decorator that skips on another kind of GPU, or under the simulator: neither is here."""
    return _[0] if len(_) == 1 and callable(_[0]) and not isinstance(_[0], str) else lambda test: test


class Internal:
    """A name that is no part of the public interface: a test that uses it is skipped."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise unittest.SkipTest(f"uses {self.__name__}, which is internal")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Internal(f"{self.__name__}.{name}")

    def __mro_entries__(self, bases: Any) -> Any:
        return ()


class _Internals(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Modules of numba that are not here."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if name.startswith("numba.") else None

    def create_module(self, spec: Any) -> Any:
        return None

    def exec_module(self, made: types.ModuleType) -> None:
        made.__getattr__ = _internal_of(made.__name__)  # type: ignore[method-assign]


def _internal_of(module_name: str) -> Any:
    def find(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _same if name.startswith(("skip", "xfail", "expected")) else Internal(f"{module_name}.{name}")

    return find


class ForeignArray:
    """An array of another library, by the CUDA Array Interface alone."""

    def __init__(self, array: Any) -> None:
        self._array = array

    @property
    def __cuda_array_interface__(self) -> Any:
        return self._array.__cuda_array_interface__


class CUDATestCase(unittest.TestCase):
    def setUp(self) -> None:
        self._warn = None

    def skip_if_lto(self, reason: str) -> None:
        return

    def assertPreciseEqual(self, first: Any, second: Any, prec: str = "exact", **_: Any) -> None:
        import numpy as np

        if prec == "exact":
            np.testing.assert_array_equal(first, second)
        else:
            np.testing.assert_allclose(first, second, rtol=1e-6 if prec == "single" else 1e-14)


def install() -> None:
    """What the tests import."""
    import tilewright.numba as ours
    from tilewright import errors
    from tilewright.numba import cuda
    from tilewright.numba import types as our_types

    our_types.__dict__.setdefault("float_", our_types.float32)
    numba = module("numba", **{n: getattr(ours, n) for n in ours.__all__}, types=our_types, __version__="0.61")
    config = types.SimpleNamespace(ENABLE_CUDASIM=False, CUDA_ENABLE_PYNVJITLINK=False, CUDA_LOW_OCCUPANCY_WARNINGS=0)
    space = module("numba.cuda", **{n: getattr(cuda, n) for n in cuda.__all__}, types=our_types, config=config)
    space.__dict__.update({name: getattr(our_types, name) for name in our_types.__all__}, HAS_NUMBA=False)
    space.__path__ = []  # type: ignore[attr-defined]
    numba.__path__, numba.cuda = [], space  # type: ignore[attr-defined]
    skips = {f"skip_{name}": _same for name in SKIPS}
    module("numba.cuda.testing", unittest=unittest, CUDATestCase=CUDATestCase, ForeignArray=ForeignArray, **skips)
    module("numba.cuda.tests", __path__=[])
    module("numba.cuda.tests.support", TestCase=CUDATestCase, **skips)
    module("numba.cuda.random", **{n: getattr(cuda.random, n) for n in cuda.random.__all__})
    module("numba.cuda.types", **our_types.__dict__)
    module("numba.cuda.core", config=config, errors=errors, __path__=[])
    module("numba.cuda.core.config", **vars(config))
    failures = dict.fromkeys(("TypingError", "UnsupportedError", "LoweringError"), errors.TileError)
    module("numba.cuda.core.errors", **failures, NumbaPerformanceWarning=UserWarning)
    module("numba.cuda.np", __path__=[])
    module("numba.cuda.np.numpy_support", from_dtype=from_dtype, as_dtype=lambda of: of.dtype)
    for name in [n for n in sys.modules if n == "numba" or n.startswith("numba.")]:
        sys.modules[name].__dict__.setdefault("__getattr__", _internal_of(name))
    sys.meta_path.append(_Internals())


def from_dtype(dtype: Any) -> Any:
    from tilewright.errors import TileTypeError
    from tilewright.numba import types

    try:
        return types.from_dtype(dtype)
    except TileTypeError as error:
        raise unittest.SkipTest(str(error)) from None


SKIPS = (
    "on_cudasim", "unless_cudasim", "on_standalone_numba_cuda", "unless_cc_53", "unless_cc_60", "unless_cc_75",
    "unless_cc_80", "unless_cc_90", "unless_conda_cudatoolkit", "if_external_memmgr", "under_cuda_memcheck",
    "if_curand_kernel_missing", "if_nvjitlink_missing", "if_mvc_enabled", "without_nvdisasm", "with_nvdisasm", "on_arm",
    "if_cuda_includes_missing", "if_cupy_unavailable", "on_wsl2", "if_lto", "on_nvjitlink_13_1_sm_120", "unless_cffi",
)  # a table of several in a line  # fmt: skip


def _told(trace: str) -> str:
    """The line of a trace that says what is wrong: behind it stand the lines of the kernel."""
    lines = [line for line in trace.strip().splitlines() if re.match(r"[A-Za-z_.]*(Error|Exception|Iteration)\b", line)]
    return (lines or trace.strip().splitlines())[-1].replace("tilewright.errors.", "").partition("Command '[")[0]


def run_file(path: Path) -> None:
    """In this process; the last line tells what came of it."""
    install()
    sys.path.insert(0, str(path.parent))
    found: dict[str, Any] = {"__name__": path.stem, "__file__": str(path)}
    try:
        spec = compile(path.read_text(), str(path), "exec")
        made = types.ModuleType(path.stem)
        made.__file__ = str(path)
        sys.modules[path.stem] = made
        found = made.__dict__
        exec(spec, found)
    except (ImportError, AttributeError, TypeError, unittest.SkipTest) as error:
        print(f"@@\t0\t0\t0\tnot public: {error}")
        return
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules[path.stem])
    with open(os.devnull, "w") as nowhere:
        result = unittest.TextTestRunner(stream=nowhere, verbosity=0).run(suite)
    rows = result.failures + result.errors
    bad = {test.id().partition(" ")[0]: (test, text) for test, text in rows}.values()  # several parts are one test
    met = collections.Counter(_told(text) for _, text in bad)
    skipped = {test.id().partition(" ")[0] for test, _ in result.skipped}
    for test, text in bad:
        print(f"-- {test}\n{text}")
    told = "; ".join(f"{words[:90]} ({count})" for words, count in met.most_common(4))
    print(f"@@\t{max(0, result.testsRun - len(bad) - len(skipped))}\t{len(bad)}\t{len(skipped)}\t{told}")


def row_of(path: Path) -> list[str]:
    command = [sys.executable, __file__, "--file", str(path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return ["0", "0", "0", f"not done in {SECONDS} s"]
    lines = [line for line in done.stdout.splitlines() if line.startswith("@@\t")]
    if lines:
        return lines[-1].split("\t")[1:]
    return ["0", "0", "0", (done.stderr.strip() or "it died").splitlines()[-1][:90]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", nargs="?", type=Path)
    parser.add_argument("--file", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.file:
        run_file(options.file)
        return
    files = sorted((options.checkout / TESTS).glob(f"test_{options.only}*.py"))
    rows = [[path.stem, *row_of(path)] for path in files]
    table = [["file", "passed", "failed", "skipped", "what the others met"], *rows]
    with open(options.out or os.devnull, "w", newline="") as file:
        csv.writer(file, delimiter="\t", lineterminator="\n").writerows(table)
    for row in table:
        print(*row, sep="\t")
    print("passed", sum(int(r[1]) for r in rows), "failed", sum(int(r[2]) for r in rows))


if __name__ == "__main__":
    main()
