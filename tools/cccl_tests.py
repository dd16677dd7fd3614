"""NVIDIA's tests and examples of `cuda.compute` against `tilewright.compute`: how many of each file pass.

    python tools/cccl_tests.py FOLDER [--out FILE]     # python/cuda_cccl/tests of a clone of NVIDIA/cccl
    python tools/cccl_tests.py FOLDER --backend cuda --jobs 16 --seconds 55 --failures FILE     # on a GPU, with CuPy

The tests are run where they are, not copied; cccl_standins.py has what they import from elsewhere. Tests marked `large`
are left out. A test that fails since it asks for a private name of the peer's is counted apart; WHY says what the other
failures are.
"""

from __future__ import annotations

import argparse
import collections
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# How a test fails that takes hold of what is inside the peer: its modules, and members of its objects.
PRIVATE = re.compile(
    r"a private name of the peer's|cuda\.compute\.algorithms\._\w+ is not part"
    r"|type object '(TypeEnum|OpKind|IteratorKind)' has no attribute|does not expose a build result"
    r"|has no attribute '(build_results|\w+_cccl|_type_descriptor|cache_clear|get_\w+_op|always_false_op|LOAD)'"
)
_CPP = "operators of CUDA C++ run on GPUs alone; one includes a header that is not installed"
WHY = {
    "test_binary_search.py": "places may be any integers: those of NumPy and torch are signed",
    "test_histogram.py": "two objects of one key are to differ by a size of which no kernel of ours depends",
    "test_iterators.py": "operators of one text are equal, whatever their names: they compile once",
    "test_no_numba.py": _CPP,
    "test_raw_op.py": _CPP,
    "test_numba_path_thread_safety.py": "objects of one key are to differ, for they hold arguments; ours do not",
    "test_reduce.py": "an array of the CUDA Array Interface, which there is on GPUs alone",
    "test_segmented_reduce.py": "random floats, whose sum in another order ends in another digit in some runs",
    "test_serialization_diagnostics.py": "bytes of the peer's format are changed",
    "test_examples.py": _CPP,
}


def run(folder: Path, backend: str, jobs: int, seconds: float) -> list[tuple[str, str, str]]:
    """Outcome, test and message of all tests; those that have ended by then, if `seconds` are over before."""
    with tempfile.TemporaryDirectory() as scratch:
        # examples are run in processes of their own, which need the stand-ins too
        (Path(scratch) / "sitecustomize.py").write_text("import cccl_standins\n")
        outcomes = Path(scratch) / "outcomes.tsv"
        outcomes.touch()
        given = [path for path in [os.environ.get("PYTHONPATH")] if path]
        paths = os.pathsep.join([*given, *map(str, (ROOT / "python", ROOT / "tools", scratch))])
        outer = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        environment = {**outer, "PYTHONPATH": paths, "CCCL_BACKEND": backend, "CCCL_OUTCOMES": str(outcomes)}
        command = [sys.executable, "-m", "pytest", "-q", "-p", "cccl_standins", "-p", "no:cacheprovider"]
        command += ["-m", "not large", "-n", str(jobs), "compute", "test_examples.py"]
        log = Path(scratch) / "log"
        with log.open("w") as output:
            done = subprocess.Popen(
                command, cwd=folder, env=environment, stdout=output, stderr=output, start_new_session=True
            )
        try:
            done.wait(seconds or None)
        except subprocess.TimeoutExpired:
            print(f"{seconds} seconds are over")
            os.killpg(done.pid, signal.SIGKILL)
            done.wait()
        rows = [line.split("\t", 2) for line in outcomes.read_text().splitlines()]
        if not rows:
            print("no test has ended:", *log.read_text().splitlines()[-20:], sep="\n")
        return [(row[0], row[1], row[2] if len(row) > 2 else "") for row in rows]


def table(found: list[tuple[str, str, str]]) -> list[str]:
    """A row for each file."""
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for outcome, test, message in found:
        kind = "private" if outcome == "failed" and PRIVATE.search(message) else outcome
        counts[Path(test.partition("::")[0]).name][kind] += 1
    rows = ["file\tpassed\tfailed\tprivate\tskipped\twhy"]
    for file, of in sorted(counts.items()):
        numbers = "\t".join(str(of[kind]) for kind in ("passed", "failed", "private", "skipped"))
        rows.append(f"{file}\t{numbers}\t{WHY.get(file, '') if of['failed'] else ''}".rstrip("\t"))
    total = [sum(of[kind] for of in counts.values()) for kind in ("passed", "failed", "private", "skipped")]
    return [*rows, "\t".join(map(str, ("all", *total)))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--jobs", type=int, default=0, help="processes at once")
    parser.add_argument("--seconds", type=float, default=0, help="the most that it may take")
    parser.add_argument("--failures", type=Path, help="a file for the failures that are not for private names")
    parser.add_argument("--out", type=Path, default=ROOT / "tools" / "compute.tsv")
    options = parser.parse_args()
    found = run(options.folder.resolve(), options.backend, options.jobs, options.seconds)
    rows = table(found)
    options.out.write_text("\n".join(rows) + "\n")
    failures = [f"{test}\t{told}" for kind, test, told in found if kind == "failed" and not PRIVATE.search(told)]
    if options.failures:
        options.failures.write_text("\n".join(failures) + "\n")
    print("\n".join(rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
