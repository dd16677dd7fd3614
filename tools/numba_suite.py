"""Runs the tests of numba-cuda against tilewright.numba: which pass, and what the others meet.

    python tools/numba_suite.py CHECKOUT [--out tools/numba.tsv]

CHECKOUT is a copy of https://github.com/NVIDIA/numba-cuda. A module `numba` in front of ours (numba_shim.py) answers
the imports of its tests; one that uses what is no part of the public interface is skipped. Functions that a test makes
by `exec` get their source, as those of a notebook have it. Each file has a process of its own, and a row of the table:
passed, failed, skipped, and the first words of what the others met.
"""

from __future__ import annotations

import argparse
import collections
import csv
import os
import re
import subprocess
import sys
import tempfile
import types
import unittest
from pathlib import Path

import numba_shim

TESTS = "numba_cuda/numba/cuda/tests"
FOLDERS = ("cudapy", "cudadrv", "doc_examples")
SECONDS = 120  # of one file
# Names of objects of ours that are Numba's own affair.
INTERNAL = re.compile(
    r"no attribute '(gpu_data|memory_manager|deallocations|memhostalloc|fndesc|_[a-z_]+)'$|name 'njit' is not defined$"
)
# Why a test does not pass, by what it met.
REASONS = {
    r"not found in '//|Regex didn't match|unexpectedly None|False is not true": "tests the text of Numba's code",
    r"ltoir|LTO-IR": "LTO-IR is NVIDIA's own format",
    r"datetime64|timedelta|str384|bytes\d|dtype\('[S<]": "dates and texts are no elements of kernels",
    r"ZeroDivisionError|IndexError not raised": "check mode has its own error, and a float quotient by 0 is none",
    r"recursion|calls itself": "recursion ends by constants",
    r"CalledProcessError": "kernels have no bfloat16 of Numba's",
    r"Tuples differ": "a transposed part of an array is a view",
    r"is not a multiple": "elements lie at multiples of their size",
    r"attribute 'ctypes'": "an array of a kernel tells no address",
    r"ndarray.copy": "kernels allocate nothing",
    r"before it is assigned|in the branches": "a variable without a value, or of two ranks, is refused",
    r"const_array": "an array of constants has elements",
    r"device function, which": "another class of exception",
    r"cannot pickle 'Array'": "an array of a device stays in its process",
    r"'is' asks": "members of enumerations are numbers",
    r"[A-Za-z]+ not raised|Emitted warnings": "taken here, refused or warned of there",
    r"no callbacks|modules are shared": "modules are shared, and unloaded late",
    r"not public|has no len|is internal|numba.cuda.cudadrv": "asks for what is internal to Numba",
    r"attribute '(handle|mem\w+|IntEnumMember)'|__version__|check_w": "asks for what is internal to Numba, too",
    r"^AssertionError:  \(1\)$": "the last bits of a function, or a constant of the first launch",
    r"does not match|!= '|not found in|remap|options are not supported|is not iterable": "another message",
    r"0 not greater|0 != \d": "figures of machine code, which the CPU has not",
}
# What fails where there is no GPU, and only there.
ON_GPUS = re.compile(r"__cuda_array_interface__: the array is on the CPU|: needs a GPU|CPU; run it where a GPU is")


def _told(trace: str) -> str:
    """The line of a trace that says what is wrong: behind it stand the lines of the kernel."""
    lines = [line for line in trace.strip().splitlines() if re.match(r"[A-Za-z_.]*(Error|Exception|Iteration)\b", line)]
    return (lines or trace.strip().splitlines())[-1].replace("tilewright.errors.", "").partition("Command '[")[0]


def run_file(path: Path, folder: Path) -> None:
    """In this process; the last line tells what came of it."""
    tests = path.parent.parent
    os.environ.update(numba_shim.for_children(tests, folder))
    numba_shim.install(tests)
    name = f"numba.cuda.tests.{path.parent.name}.{path.stem}"
    made = types.ModuleType(name)
    made.__dict__.update(__file__=str(path), __package__=name.rpartition(".")[0], exec=numba_shim.exec_with_source)
    sys.modules[name] = made
    try:
        exec(compile(path.read_text(), str(path), "exec"), made.__dict__)
    except (ImportError, AttributeError, TypeError, unittest.SkipTest) as error:
        print(f"@@\t0\t0\t0\tnot public: {error}")
        return
    suite = unittest.defaultTestLoader.loadTestsFromModule(made)
    with open(os.devnull, "w") as nowhere:
        result = unittest.TextTestRunner(stream=nowhere, verbosity=0).run(suite)
    rows = result.failures + result.errors
    all_rows = {test.id().partition(" ")[0] for test, _ in rows}
    rows = [(test, text) for test, text in rows if not (ON_GPUS.search(text) or INTERNAL.search(text.strip()))]
    failed = {test.id().partition(" ")[0]: (test, text) for test, text in rows}  # several parts are one test
    bad = failed.values()
    met = collections.Counter(_told(text) for _, text in bad)
    skipped = {test.id().partition(" ")[0] for test, _ in result.skipped} | (all_rows - failed.keys())
    for test, text in bad:
        print(f"-- {test}\n{text}")
    told = "; ".join(f"{words[:90]} ({count})" for words, count in met.most_common(4))
    print(f"@@\t{max(0, result.testsRun - len(bad) - len(skipped))}\t{len(bad)}\t{len(skipped)}\t{told}")


def why(told: str) -> str:
    """Reasons of what the tests of a file met; "" where none of them is known."""
    return "; ".join(reason for pattern, reason in REASONS.items() if re.search(pattern, told))


def row_of(path: Path) -> list[str]:
    """Of a process of its own, whose temporary files go when it ends, however it does."""
    command = [sys.executable, __file__, "--file", str(path)]
    try:
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "TMPDIR": folder}
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, env=environment)
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
        with tempfile.TemporaryDirectory() as made:
            run_file(options.file, Path(made))
        return
    folders = [options.checkout / TESTS / folder for folder in FOLDERS]
    files = [path for folder in folders for path in sorted(folder.glob(f"test_{options.only}*.py"))]
    rows = [[f"{path.parent.name}/{path.stem}", *row_of(path)] for path in files]
    rows = [[*row, why(row[-1])] for row in rows]
    table = [["file", "passed", "failed", "skipped", "what the others met", "why"], *rows]
    with open(options.out or os.devnull, "w", newline="") as file:
        csv.writer(file, delimiter="\t", lineterminator="\n").writerows(table)
    for row in table:
        print(*row, sep="\t")
    print("passed", sum(int(r[1]) for r in rows), "failed", sum(int(r[2]) for r in rows))


if __name__ == "__main__":
    main()
