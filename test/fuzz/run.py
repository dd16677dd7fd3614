"""Fuzzing: every mesh at once, for some seconds or so many cases, with progress and a table at the end.

    python test/fuzz/run.py --seconds 3600                      all meshes, side by side
    python test/fuzz/run.py --mesh mutants --cases 100000       one of them
    python test/fuzz/run.py --mesh mutants --case 4711          one case again, in this process

Case n of a mesh is the same in every run; `--first` says where to begin. Bad cases are kept in build/fuzz, each with
what was wrong. The exit status is 1 if there were any.
"""

from __future__ import annotations

import argparse
import collections
import faulthandler
import importlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:] = [str(HERE), *sys.path, str(ROOT / "python")]  # the package in use, of a sanitized build, too

from mesh import Kind, Outcome  # noqa: E402 - needs the line above

MESHES = ("mutants", "control", "tiles", "products", "arrays", "cache", "commands")
START_SECONDS = 120.0  # until a process has begun its first case
MOST_KEPT = 100  # files of one mesh


IDLE = 10  # so many times its seconds a case may take on a machine that is busy with other things


def seconds_of(process: subprocess.Popen[bytes]) -> float:
    """Of all CPUs, that its threads have had; 0 when it has ended."""
    try:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def make(name: str, folder: Path) -> Any:
    return importlib.import_module(name).Mesh(folder)


def serve(name: str, folder: Path, first: int, step: int, end: int) -> None:
    """Cases first, first + step, … below `end` (if it is not 0), a line before each and one after it."""
    faulthandler.enable()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a kernel prints is no answer
    mesh = make(name, folder)
    number = first
    while os.getppid() != 1 and (not end or number < end):
        print(json.dumps(["begin", number]), file=answers, flush=True)
        outcome = mesh.case(number)
        print(json.dumps(["end", number, outcome.kind.value, outcome.text]), file=answers, flush=True)
        number += step


class Runner:
    """One mesh: its process, and what it has found."""

    def __init__(self, name: str, folder: Path, first: int, step: int, end: int, kept: Path) -> None:
        self.name, self.folder, self.step, self.end_at, self.kept = name, folder, step, end, kept
        self.folder.mkdir(parents=True, exist_ok=True)
        self.mesh = make(name, folder)
        self.counts: collections.Counter[Kind] = collections.Counter()
        self.current: int | None = None
        self.next = first
        self.start()

    def start(self) -> None:
        numbers = map(str, (self.next, self.step, self.end_at))
        command = [sys.executable, __file__, "--serve", self.name, str(self.folder), *numbers]
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed in end()
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.errors, start_new_session=True)
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), False)
        self.rest = b""
        self.begin_case()
        self.current = None

    def begin_case(self) -> None:
        self.since, self.had = time.monotonic(), seconds_of(self.process)

    @property
    def is_late(self) -> bool:
        limit = self.mesh.limit if self.current is not None else START_SECONDS
        return seconds_of(self.process) - self.had > limit or time.monotonic() - self.since > IDLE * limit

    @property
    def done(self) -> int:
        return sum(self.counts.values())

    def end(self) -> bytes:
        """Ends the process, and gives what it said last."""
        if self.errors.closed:
            return b""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.errors.seek(max(0, self.errors.seek(0, os.SEEK_END) - 6000))
        said = self.errors.read()
        self.errors.close()
        assert self.process.stdout is not None
        self.process.stdout.close()
        return said

    def step_once(self) -> None:
        """Reads what there is, and looks after a process that ended or hangs."""
        assert self.process.stdout is not None
        data = self.process.stdout.read()
        for line in self.lines(data or b""):
            self.begin_case()
            if line[0] == "begin":
                self.current = line[1]
            else:
                self.current, self.next = None, line[1] + self.step
                self.note(line[1], Outcome(Kind(line[2]), line[3]))
        if self.is_over:
            return
        if data == b"" and self.process.poll() is not None:
            self.restart(Kind.CRASH)
        elif self.is_late:
            self.restart(Kind.HANG)

    @property
    def is_over(self) -> bool:
        return bool(self.end_at) and self.next >= self.end_at

    def lines(self, data: bytes) -> list[Any]:
        *whole, self.rest = (self.rest + data).split(b"\n")
        return [json.loads(line) for line in whole]

    def restart(self, kind: Kind) -> None:
        number, said = self.current, self.end().decode(errors="replace")
        if number is None:
            raise SystemExit(f"mesh {self.name} does not start:\n{said}")
        self.note(number, Outcome(kind, f"exit status {self.process.returncode}\n{said}"))
        self.next = number + self.step
        if not self.is_over:
            self.start()

    def note(self, number: int, outcome: Outcome) -> None:
        self.counts[outcome.kind] += 1
        if not outcome.kind.is_bad or self.counts[outcome.kind] > MOST_KEPT:
            return
        self.kept.mkdir(parents=True, exist_ok=True)
        file = self.kept / f"{self.name}-{number}.txt"
        file.write_text(f"{outcome.kind.value}: {outcome.text}\n\n{self.mesh.source(number)}")
        print(f"\n{self.name} {number}: {outcome.kind.value}: {outcome.text[:300]}\n  kept in {file}", flush=True)


def run(
    names: list[str], seconds: float, cases: int, first: int, jobs: int, kept: Path
) -> dict[str, collections.Counter[Kind]]:
    """`jobs` processes a mesh. Ends after `seconds`, or when each mesh has done `cases`."""
    scratch = Path(tempfile.mkdtemp(prefix="fuzz-"))
    end = first + cases if cases else 0
    runners = [Runner(n, scratch / f"{n}{j}", first + j, jobs, end, kept) for n in names for j in range(jobs)]
    began = shown = time.monotonic()
    try:
        while runners_left := [r for r in runners if not r.is_over]:
            select.select([r.process.stdout for r in runners_left], [], [], 0.5)
            for runner in runners_left:
                runner.step_once()
            now = time.monotonic()
            if now - shown > 5 or now - began > seconds:
                shown = now
                print(
                    f"\r{now - began:6.0f} s  " + "  ".join(f"{n} {total(runners, n)}" for n in names),
                    end="",
                    flush=True,
                )
            if now - began > seconds:
                break
    finally:
        for runner in runners:
            runner.end()
        shutil.rmtree(scratch, ignore_errors=True)
    print()
    return {n: sum((r.counts for r in runners if r.name == n), collections.Counter()) for n in names}


def total(runners: list[Runner], name: str) -> int:
    return sum(r.done for r in runners if r.name == name)


def table(counts: dict[str, collections.Counter[Kind]]) -> str:
    rows = [["mesh", "cases", *(k.value for k in Kind)]]
    rows += [[name, str(sum(c.values())), *(str(c[k]) for k in Kind)] for name, c in counts.items()]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.rjust(w) if i else cell.ljust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True)))
        for row in rows
    )


def main() -> int:
    if sys.argv[1:2] == ["--serve"]:
        name, folder, first, step, end = sys.argv[2:]
        serve(name, Path(folder), int(first), int(step), int(end))
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mesh", action="append", choices=MESHES, help="which; may repeat (default: all)")
    parser.add_argument("--seconds", type=float, default=1e9, help="of all meshes, side by side (default: no end)")
    parser.add_argument("--cases", type=int, default=0, help="of each mesh; 0: as many as there is time for")
    parser.add_argument("--first", type=int, default=0, help="the number of the first case (default: 0)")
    parser.add_argument("--jobs", type=int, default=1, help="processes of each mesh (1)")
    parser.add_argument("--case", type=int, help="this one only, in this process")
    parser.add_argument("--kept", type=Path, default=ROOT / "build" / "fuzz", help="where bad cases go (build/fuzz)")
    options = parser.parse_args()
    names = options.mesh or list(MESHES)
    if options.case is not None:
        mesh = make(names[0], Path(tempfile.mkdtemp(prefix="fuzz-")))
        print(mesh.source(options.case), flush=True)
        outcome = mesh.case(options.case)
        print(f"{outcome.kind.value}: {outcome.text}")
        return outcome.kind.is_bad
    counts = run(names, options.seconds, options.cases, options.first, options.jobs, options.kept)
    print(table(counts))
    return any(c[k] for c in counts.values() for k in Kind if k.is_bad)


if __name__ == "__main__":
    sys.exit(main())
