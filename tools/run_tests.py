"""Run every test, quick ones first, and close with the counts of each runner.

    quick checks (include direction, generated files, ruff) -> C unit tests (ctest) -> lit -> pytest

All of them run even after a failure, so that one run tells everything; the exit status is 1 if any failed, or if a
runner that should have found tests found none.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent


@dataclass
class Result:
    name: str
    ok: bool
    seconds: float
    passed: int
    failed: int
    skipped: int
    closing: str = ""

    def line(self) -> str:
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        return f"{self.name}: {self.passed} passed, {self.failed} failed{skipped}"


def stream(command: list[str], extra_environment: dict[str, str]) -> tuple[int, str]:
    """Run a command, show what it prints as it comes, and return its status and output."""
    environment = os.environ | extra_environment
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        sys.stdout.write(line)
        sys.stdout.flush()
        lines.append(line)
    return process.wait(), "".join(lines)


def count(pattern: str, text: str) -> int:
    return sum(int(number) for number in re.findall(pattern, text))


def run(name: str, command: list[str], counts: dict[str, str], environment: dict[str, str]) -> Result:
    print(f"\n== {name}", flush=True)
    begin = time.monotonic()
    status, output = stream(command, environment)
    seconds = time.monotonic() - begin
    last = [line for line in output.splitlines() if line.strip()]
    closing = last[-1] if last else ""
    passed, failed, skipped = (count(counts[kind], output) for kind in ("passed", "failed", "skipped"))
    return Result(name, status == 0 and passed > 0, seconds, passed, failed, skipped, closing)


def run_check(name: str, command: list[str]) -> Result:
    begin = time.monotonic()
    status, _ = stream(command, {})
    return Result(name, status == 0, time.monotonic() - begin, int(status == 0), int(status != 0), 0)


def quick_checks(build: Path) -> Result:
    print("== quick checks", flush=True)
    checks = [
        ("layers", [sys.executable, "tools/check_layers.py"]),
        ("generated", [sys.executable, "tools/twgen.py", "check", str(build / "TileOps.json")]),
        ("ruff", [str(BIN / "ruff"), "check", "--quiet", "--no-cache", "python", "test", "tools", "bench"]),
    ]
    results = [run_check(name, command) for name, command in checks]
    passed = sum(result.ok for result in results)
    seconds = sum(result.seconds for result in results)
    return Result("checks", passed == len(results), seconds, passed, len(results) - passed, 0)


CTEST = {"passed": r"tests? failed out of (\d+)", "failed": r"(\d+) tests? failed out of", "skipped": r"(?!)()"}
LIT = {
    "passed": r"(?m)^\s*Passed\s*:\s*(\d+)",
    "failed": r"(?m)^\s*(?:Failed|Unresolved|Timed Out)\s*:\s*(\d+)",
    "skipped": r"(?m)^\s*(?:Unsupported|Expectedly Failed)\s*:\s*(\d+)",
}
PYTEST = {  # only in the closing line, which ends with the time
    "passed": r"(\d+) passed\b[^\n]* in [\d.:]+",
    "failed": r"(\d+) (?:failed|errors?)\b[^\n]* in [\d.:]+s",
    "skipped": r"(\d+) (?:skipped|xfailed)\b[^\n]* in [\d.:]+s",
}


@dataclass
class Part:
    """A runner with what it is started with; `test/python/test_every_test_runs.py` asks each what it would run."""

    name: str
    command: list[str]
    counts: dict[str, str]


def parts(build: Path, jobs: str, sanitize: bool = False) -> list[Part]:
    """The runners, quick ones first. Without the sanitizers pytest runs what pyproject.toml says: all of test/."""
    unit = ["ctest", "--test-dir", str(build), "--output-on-failure", "--no-tests=error", "-j", jobs]
    lit = [str(BIN / "lit"), "-s", "-j", jobs, "test"]
    pytest = [sys.executable, "-m", "pytest", "-q", "-n", jobs, "--durations=10"]
    if sanitize:
        # Packaging, the command line and the documents start processes of their own and add no C.
        pytest += ["-o", f"pythonpath={build / 'python'}", "test/numerics", "test/simt", "test/python"]
        pytest += [f"--ignore=test/python/test_{name}.py" for name in ("wheel", "cli", "docs", "adding_an_op")]
    return [Part("unit", unit, CTEST), Part("lit", lit, LIT), Part("pytest", pytest, PYTEST)]


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs every test, quick ones first, and counts them at the end.")
    parser.add_argument("--build", type=Path, required=True, help="the tree of make build, or of make sanitize")
    parser.add_argument("--jobs", default="2", help="processes of each runner (default: 2)")
    parser.add_argument("--sanitize", action="store_true", help="under the sanitizers")
    options = parser.parse_args()
    build = options.build.resolve()
    environment = {"TW_BIN": str(build / "bin"), "PYTHONPATH": str(ROOT / "python")}
    if options.sanitize:
        # MLIR and LLVM come uninstrumented from the distribution: what they poison and how long their containers are
        # looks wrong from our side.
        environment |= {
            "ASAN_OPTIONS": "detect_leaks=0:detect_container_overflow=0:allocator_may_return_null=1",
            "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
            "PYTHONPATH": str(build / "python"),
        }

    results = [] if options.sanitize else [quick_checks(build)]
    for part in parts(build, options.jobs, options.sanitize):
        if options.sanitize and part.name == "pytest":  # the interpreter knows nothing of them: they are loaded before
            library = ["clang-22", "-print-file-name=libclang_rt.asan-x86_64.so"]
            environment["LD_PRELOAD"] = subprocess.check_output(library, text=True).strip()
        results.append(run(part.name, part.command, part.counts, environment))
        if part.name == "unit":
            results[-1].passed -= results[-1].failed

    print("\n== summary")
    for result in results:
        print(f"{'ok    ' if result.ok else 'FAILED'} {result.name} ({result.seconds:.0f} s)")
    print(results[-1].closing)
    for result in results:
        print(result.line())
    return not all(result.ok for result in results)


if __name__ == "__main__":
    sys.exit(main())
