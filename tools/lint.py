"""Every check that needs no test to run; all of them run, the exit status is 1 if any found something.

include direction, generated files, clang-format, clang-tidy (the C only), ruff, ruff format, mypy

clang-tidy takes seconds a file. It looks at the files that differ from the upstream branch, themselves or in a header
that they include, and not twice at the same text: what was clean is remembered in BUILD/tidy. `--all` looks at every
file, whatever is remembered.
"""

import argparse
import hashlib
import os
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


def headers_of(build: Path) -> dict[str, list[str]]:
    """The project's own files that each object was last compiled from, by its source; ninja has written them down."""
    listing = run(["ninja", "-C", str(build), "-t", "deps"])[1]
    found = {}
    for block in listing.split("\n\n"):
        paths = [Path(os.path.normpath(build / line.strip())) for line in block.splitlines()[1:]]
        own = [str(path.relative_to(ROOT)) for path in paths if path.is_relative_to(ROOT) and path.is_file()]
        if own:
            found[own[0]] = sorted(set(own))
    return found


def changed_files() -> set[str]:
    """What differs from the upstream branch, or where there is none, from the last commit; new files, too."""
    upstream = next(
        (name for name in ("@{upstream}", "origin/main") if run(["git", "rev-parse", "-q", "--verify", name])[0]), ""
    )
    base = run(["git", "merge-base", "HEAD", upstream])[1].strip() if upstream else "HEAD~1"
    names = run(["git", "diff", "--name-only", base])[1] + run(["git", "ls-files", "-o", "--exclude-standard"])[1]
    return set(names.split())


def digest(names: list[str]) -> str:
    """Of all that clang-tidy reads of the project for one file."""
    text = hashlib.sha256()
    for name in [".clang-tidy", *names]:
        text.update(name.encode() + b"\0" + (ROOT / name).read_bytes())
    return text.hexdigest()


def clang_tidy(build: Path, jobs: int, everything: bool) -> bool:
    """One process a file; test programs and MLIR's own headers are not looked at."""
    begin = time.monotonic()
    files = tracked("base/*.c", "dialect/*.c", "lowering/*.c", "runtime/*.c", "python/ext/*.c")
    headers = headers_of(build)
    reads = {name: headers.get(name, [name]) for name in files}
    clean = build / "tidy"
    clean.mkdir(exist_ok=True)
    changed = set(reads) | {".clang-tidy"} if everything else changed_files()
    keys = {
        name: digest(reads[name]) for name in files if ".clang-tidy" in changed or not changed.isdisjoint(reads[name])
    }
    todo = [name for name, key in keys.items() if everything or not (clean / key).exists()]

    def look(name: str) -> list[str]:
        ok, output = run(["clang-tidy-22", "--quiet", "-p", str(build), name])
        if ok:
            (clean / keys[name]).touch()
        return [] if ok else [line for line in output.splitlines() if FINDING.search(line)] or [f"{name}: {output}"]

    with ThreadPoolExecutor(jobs) as pool:
        found = [line for lines in pool.map(look, todo) for line in lines]
    return report(
        f"clang-tidy ({len(todo)} of {len(files)} files)", not found, "\n".join(found), time.monotonic() - begin
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs every check of the sources that starts no test.")
    parser.add_argument("--build", type=Path, required=True, help="the tree of make build")
    parser.add_argument("--jobs", type=int, default=2, help="processes of clang-tidy (default: 2)")
    parser.add_argument("--all", action="store_true", help="clang-tidy on every file")
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
        clang_tidy(options.build.resolve(), options.jobs, options.all),
    ]
    print(f"lint: {sum(results)} passed, {len(results) - sum(results)} failed")
    return not all(results)


if __name__ == "__main__":
    sys.exit(main())
