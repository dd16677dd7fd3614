"""Every check that needs no test to run; all of them run, the exit status is 1 if any found something.

include direction, generated files, clang-format, clang-tidy (the C only), ruff, ruff format, mypy
"""

import argparse
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
FINDING = re.compile(r"^\S+:\d+:\d+: (error|warning): ")
PYTHON_FOLDERS = ["python", "test", "tools", "bench"]


def tracked(*patterns: str) -> list[str]:
    command = ["git", "ls-files", "-co", "--exclude-standard", *patterns]
    files = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    return [name for name in files if (ROOT / name).exists()]


def run(command: list[str]) -> tuple[bool, str]:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return done.returncode == 0, done.stdout + (done.stderr if done.returncode else "")


def report(name: str, ok: bool, output: str, seconds: float) -> bool:
    print(f"{'ok    ' if ok else 'FAILED'} {name} ({seconds:.1f} s)", flush=True)
    if not ok:
        print(output.rstrip()[-6000:], flush=True)
    return ok


def check(name: str, command: list[str]) -> bool:
    begin = time.monotonic()
    ok, output = run(command)
    return report(name, ok, output, time.monotonic() - begin)


def clang_tidy(build: Path, jobs: int) -> bool:
    """One process a file; test programs and MLIR's own headers are not looked at."""
    begin = time.monotonic()
    files = tracked("base/*.c", "dialect/*.c", "lowering/*.c", "runtime/*.c", "python/ext/*.c")
    with ThreadPoolExecutor(jobs) as pool:
        results = list(pool.map(lambda name: run(["clang-tidy-22", "--quiet", "-p", str(build), name]), files))
    found = [line for ok, output in results if not ok for line in output.splitlines() if FINDING.search(line)]
    return report(f"clang-tidy ({len(files)} files)", not found, "\n".join(found), time.monotonic() - begin)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    c_files = tracked("*.c", "*.h", "*.cpp")
    results = [
        check("include direction", [sys.executable, "tools/check_layers.py"]),
        check("figures of the README", [sys.executable, "bench/readme.py", "--check"]),
        check("generated files", [sys.executable, "tools/twgen.py", "check", str(options.build / "TileOps.json")]),
        check(f"clang-format ({len(c_files)} files)", ["clang-format-22", "--dry-run", "--Werror", *c_files]),
        check("ruff", [str(BIN / "ruff"), "check", *PYTHON_FOLDERS]),
        check("ruff format", [str(BIN / "ruff"), "format", "--check", *PYTHON_FOLDERS]),
        check("mypy", [str(BIN / "mypy")]),
        clang_tidy(options.build, options.jobs),
    ]
    print(f"lint: {sum(results)} passed, {len(results) - sum(results)} failed")
    return not all(results)


if __name__ == "__main__":
    sys.exit(main())
