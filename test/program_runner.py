"""Runs many random programs at once, and tells which are wrong, refused, crash, or do not end.

A family of programs (random_products, random_language, random_simt, random_numba) says what its programs are; this file
runs them. After a crash, an error of the GPU or a program that does not end, a new process goes on with the next.
"""

from __future__ import annotations

import argparse
import collections
import importlib
import json
import os
import queue
import re
import select
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

EMULATOR = str(Path(__file__).resolve().parent / "emulator")
BAD = ("wrong", "crashed", "timed out", "failed")
EACH = {"wrong": 40}  # files of one class of failures, where not 8
GRACE = 30  # seconds that the last programs have
Choices = Any  # what makes a program, as JSON


class Family(Protocol):
    """A kind of programs. `script` runs `main` of it, in a worker, too."""

    script: Path

    def choose(self, seed: int, options: argparse.Namespace) -> Choices: ...
    def check(self, choices: Choices, backend: str, folder: Path) -> Any: ...
    def source_of(self, choices: Choices) -> str: ...
    def plainer(self, choices: Choices) -> Iterator[Choices]: ...
    def add_options(self, parser: argparse.ArgumentParser) -> None: ...


class Drawn:
    """A family that a seed alone chooses from. The module `check` of its package does the rest, in workers: it is not
    loaded before it is needed."""

    def __init__(self, kind: str, script: str) -> None:
        self.kind, self.script = kind, Path(script).resolve()
        self.module = f"{self.script.parent.name}.check"

    def choose(self, seed: int, options: argparse.Namespace) -> Choices:
        return {"kind": self.kind, "seed": seed}

    def check(self, choices: Choices, backend: str, folder: Path) -> Any:
        return importlib.import_module(self.module).check(choices, backend, folder)

    def source_of(self, choices: Choices) -> str:
        source: str = importlib.import_module(self.module).source_of(choices)
        return source

    def plainer(self, choices: Choices) -> Iterator[Choices]:
        yield from importlib.import_module(self.module).plainer(choices)

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        pass


def work(family: Family, backend: str) -> None:
    """Programs come as lines of choices, outcomes go as lines; the process ends after what may have harmed it."""
    if backend == "emulated":
        sys.path.insert(0, EMULATOR)
        import emulate

        emulate.install()
        backend = "cpu"
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a kernel prints is no answer
    with tempfile.TemporaryDirectory() as folder:
        for line in sys.stdin:
            outcome = family.check(json.loads(line), backend, Path(folder))
            print(json.dumps([outcome.kind, outcome.text]), file=answers, flush=True)
            if outcome.kind in ("crashed", "failed"):
                return


class Worker:
    """A process that checks programs, and its next one after it has died."""

    def __init__(self, family: Family, backend: str, limit: float) -> None:
        self.limit = limit
        self.command = [sys.executable, str(family.script), "--work", "--backend", backend]
        self.process: Any = None

    def start(self) -> None:
        environment = os.environ | {"TILEWRIGHT_NO_CACHE": "1", "TILEWRIGHT_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the process
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self.errors}
        self.process = subprocess.Popen(self.command, env=environment, text=True, **pipes)

    def check(self, choices: Choices) -> tuple[str, str]:
        if self.process is None:
            self.start()
        limit = self.limit
        try:
            print(json.dumps(choices), file=self.process.stdin, flush=True)
            if not select.select([self.process.stdout], [], [], limit)[0]:
                return self.end("timed out", f"no result after {limit:g} s")
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            return self.end("crashed", "")
        kind, text = json.loads(answer)
        if kind in ("crashed", "failed"):
            self.end(kind, text)
        return kind, text

    def end(self, kind: str, text: str) -> tuple[str, str]:
        if self.process is None:
            return kind, text
        if kind != "crashed":
            self.process.kill()
        status = self.process.wait()
        self.errors.seek(0)
        said = self.errors.read().decode(errors="replace").strip().splitlines()[-3:]
        self.errors.close()
        self.process = None
        return kind, text or f"the process ended with {status}: {' / '.join(said)}"


def class_of(kind: str, text: str) -> str:
    """Failures that say the same but for names, numbers and places."""
    lines = [line for line in text.splitlines() if line.strip()]
    line = next((x for x in lines if "insufficient" in x or "ptxas" in x), lines[0] if lines else "")
    if kind == "wrong":
        return "wrong"
    return f"{kind}: {re.sub(r'0x[0-9a-f]+|program_[0-9a-f]+|[0-9]+', '#', line)[:150]}"


class Report:
    def __init__(self, family: Family, out: Path | None, backend: str) -> None:
        self.family, self.out, self.backend = family, out, backend
        self.kinds: collections.Counter[str] = collections.Counter()
        self.classes: collections.Counter[str] = collections.Counter()
        self.seeds: dict[str, list[int]] = collections.defaultdict(list)
        self.choices: dict[str, collections.Counter[str]] = {kind: collections.Counter() for kind in ("all", "wrong")}
        self.begin = time.monotonic()
        self.lock = threading.Lock()

    def add(self, choices: Choices, kind: str, text: str) -> None:
        with self.lock:
            self.kinds[kind] += 1
            for name in ("all", "wrong") if kind == "wrong" else ("all",):
                self.choices[name].update(f"{choices['kind']}, {key}: {value}" for key, value in choices.items())
            if kind == "right":
                return
            name = class_of(kind, text)
            self.classes[name] += 1
            self.seeds[name].append(choices["seed"])
            if self.out is not None and self.classes[name] <= EACH.get(name, 8):
                save(self.family, self.out, choices, kind, text)

    def line(self) -> str:
        seconds = time.monotonic() - self.begin
        run = sum(self.kinds.values())
        counts = ", ".join(f"{self.kinds[k]} {k}" for k in ("right", "wrong", "refused", *BAD[1:]))
        return f"{run} programs in {seconds:.0f} s ({run / max(seconds, 1) * 60:.0f} a minute): {counts}"

    def summary(self) -> str:
        rows = [f"  {n:6} {name}; seeds {self.seeds[name][:8]}" for name, n in self.classes.most_common()]
        return "\n".join([f"summary, {self.backend}: {self.line()}", *rows, *self.suspects()])

    def suspects(self) -> list[str]:
        """The choices with which programs are most often wrong."""
        wrong, run = self.choices["wrong"], self.choices["all"]
        often = [key for key, count in wrong.items() if count > 1 and "seed" not in key and "size" not in key]
        often.sort(key=lambda key: wrong[key] / run[key], reverse=True)
        return [f"  wrong with {key}: {wrong[key]} of {run[key]}" for key in often[:12]]


def save(family: Family, out: Path, choices: Choices, kind: str, text: str) -> Path:
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{choices['kind']}_{choices['seed']}_{kind.replace(' ', '_')}.py"
    first = " / ".join(text.splitlines()[:4])[:1000]
    path.write_text(f"# {kind}: {first}\n{family.source_of(choices)}")
    return path


def run_all(family: Family, options: Any) -> Report:
    report = Report(family, options.out, options.backend)
    seeds: queue.SimpleQueue[int] = queue.SimpleQueue()
    for seed in range(options.seed, options.seed + options.count):
        seeds.put(seed)

    def serve() -> None:
        worker = Worker(family, options.backend, options.limit)
        while (left := options.seconds - (time.monotonic() - report.begin)) > 0:
            worker.limit = min(options.limit, left + GRACE)
            try:
                seed = seeds.get_nowait()
            except queue.Empty:
                break
            choices = family.choose(seed, options)
            report.add(choices, *worker.check(choices))
        worker.end("stopped", "-")

    threads = [threading.Thread(target=serve) for _ in range(options.processes)]
    for thread in threads:
        thread.start()
    told = time.monotonic()
    while any(thread.is_alive() for thread in threads):
        time.sleep(0.2)
        if time.monotonic() - told > 15:
            told = time.monotonic()
            print(report.line(), flush=True)
    print(report.summary(), flush=True)
    return report


def choices_in(path: Path) -> Any:
    """Of a file that `save` wrote."""
    return json.loads(next(line[2:] for line in path.read_text().splitlines() if line.startswith("# {")))


def assert_right(family: Family, backend: str, count: int, seed: int, folder: Path) -> None:
    options = argparse.Namespace(backend=backend, count=count, seed=seed, out=folder)
    options.processes, options.seconds, options.limit = 1, 1800, 120
    report = run_all(family, options)
    assert report.kinds["right"] == count, "\n".join([report.summary(), *(p.read_text() for p in folder.glob("*.py"))])


def again(family: Family, options: Any) -> bool:
    """Whether all of these files are right now; with --shrink, writes a plainer program of each that is not."""
    worker, fine = Worker(family, options.backend, options.limit), True
    for path in options.again:
        choices = listed(choices_in(path))
        kind, text = worker.check(choices)
        print(f"{path}: {kind} {text}", flush=True)
        fine = fine and kind == "right"
        if options.shrink and kind != "right":
            shrink(family, worker, choices, kind, text, options)
    worker.end("stopped", "-")
    return fine


def listed(choices: Choices) -> Any:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in choices.items()}


def shrink(family: Family, worker: Worker, choices: Choices, kind: str, text: str, options: Any) -> None:
    """One choice after the other becomes plain while the program fails alike."""
    like, begin, going = class_of(kind, text), time.monotonic(), True
    while going:
        going = False
        for candidate in family.plainer(choices):
            if time.monotonic() - begin > options.seconds:
                break
            new_kind, new_text = worker.check(candidate)
            if candidate != choices and class_of(new_kind, new_text) == like:
                choices, kind, text, going = candidate, new_kind, new_text, True
                break
    path = save(family, options.out or Path("."), choices, f"{kind} plain", text)
    print(f"  plainest that fails alike: {path}\n{path.read_text()}", flush=True)


def main(family: Family, about: str) -> int:
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000, help="programs (default: 1000)")
    parser.add_argument("--processes", type=int, default=2, help="side by side (default: 2)")
    parser.add_argument("--seconds", type=float, default=3600, help="no program begins later")
    parser.add_argument("--limit", type=float, default=120, help="seconds that a program may take")
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--backend", default="gpu", help="what runs them; see above (default: gpu)")
    parser.add_argument("--out", type=Path, help="where programs that fail go")
    parser.add_argument("--again", type=Path, nargs="+", metavar="FILE", help="run these programs once more")
    parser.add_argument("--shrink", action="store_true", help="look for plainer ones that fail alike")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    family.add_options(parser)
    options = parser.parse_args()
    if options.work:
        work(family, options.backend)
        return 0
    if options.again:
        return int(not again(family, options))
    kinds = run_all(family, options).kinds
    return int(any(kinds[kind] for kind in BAD) or not kinds["right"])
