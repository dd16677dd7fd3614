"""The search: candidates -> cost model -> compiled in parallel -> tried in a worker -> timed in turns -> the best.

Nothing that a candidate does reaches the caller: it runs on copies of the arrays, in a process of its own.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import functools
import html
import importlib.util
import io
import os
import queue
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from ..errors import TileError, TileValueError
from ..kernel import launch
from ..quiet import quiet
from . import cost, launching, memory, record
from .alone import alone
from .programs import estimate, program_of
from .progress import Progress
from .space import Candidate, Grid, Problem, Space
from .statistics import Measurement, is_decided, survivors, winner
from .trial import Program, launches_at_once
from .worker import MAX_ASSEMBLERS, Assemblers, FailedError, LostError, SafeBench

MIN_ROUNDS, MAX_ROUNDS = 8, 60
WARM_UP_SECONDS = 0.3
Done = TypeVar("Done")
SAME = "is the same program as"
UNLIKELY = "not tried, the cost model expects less"


@dataclasses.dataclass
class Trial:
    """What became of a candidate."""

    candidate: Candidate
    predicted: float | None = None  # seconds, by the cost model
    work: cost.Work | None = None
    measurement: Measurement | None = None
    error: float | None = None  # largest difference from the reference
    dropped: str | None = None  # why it was not measured
    launched: dict[str, int | str] = dataclasses.field(default_factory=dict)  # hints that a launch of it adds

    @property
    def title(self) -> str:
        """The candidate, and what a launch adds to it."""
        added = " ".join(f"{name}={value}" for name, value in self.launched.items())
        return f"{self.candidate} (launched with {added})" if added else str(self.candidate)

    def __str__(self) -> str:
        return f"{self.title}: {self.measurement or self.dropped}"


@dataclasses.dataclass(repr=False)
class Result:
    """What a search found. `trials` has the kernel as given first, then the candidates as the cost model ranks them."""

    problem: Problem
    machine: cost.Machine
    trials: list[Trial]
    best: Trial
    path: Path | None = None  # of the record it was kept in

    @property
    def untuned(self) -> Trial:
        return self.trials[0]

    @property
    def speedup(self) -> float | None:
        """Time of the kernel as given over that of the best."""
        if self.untuned.measurement is None or self.best.measurement is None:
            return None
        return self.untuned.measurement.median / self.best.measurement.median

    @property
    def kernel(self) -> Any:
        return self.problem.kernel_of(self.best.candidate)

    @property
    def args(self) -> tuple[Any, ...]:
        return self.problem.args_of(self.best.candidate)

    @property
    def grid(self) -> tuple[int, int, int]:
        return self.problem.grid_of(self.best.candidate)

    def launch(self, stream: Any = None) -> None:
        """Launches the best on the arguments of the search."""
        launch(stream, self.grid, self.kernel, self.args)

    def measured(self) -> list[Trial]:
        """The candidates with a time, the quickest first."""
        found = [trial for trial in self.trials if trial.measurement is not None]
        return sorted(found, key=lambda trial: trial.measurement.median if trial.measurement else 0.0)

    def __str__(self) -> str:
        title = f"{self.problem.kernel.name} on {self.machine.name}"
        wide = max(len(trial.title) for trial in self.measured())
        measured = (
            f"  {'*' if trial is self.best else ' '} {trial.title:{wide}}  {trial.measurement}"
            for trial in self.measured()
        )
        reasons = [(trial.dropped or "", trial) for trial in self.trials if trial.dropped]
        told = [f"  - {trial}" for why, trial in reasons if why != UNLIKELY and not why.startswith(SAME)]
        same = sum(why.startswith(SAME) for why, _ in reasons)
        rest = len(reasons) - len(told) - same
        more = [f"  - {same} more come to the same programs as these"] if same else []
        more += [f"  - {rest} more: {UNLIKELY}"] if rest else []
        return "\n".join([title, *measured, *told, *more])

    __repr__ = __str__  # for a prompt

    def _repr_html_(self) -> str:
        """For a notebook: the table, and under it the picture that plot() draws, if there is matplotlib."""
        picture = ""
        if importlib.util.find_spec("matplotlib") is not None:
            from .plot import draw

            file = io.BytesIO()
            draw(self, file)
            picture = file.getvalue().decode().partition("<svg")[2]
        return f"<pre>{html.escape(str(self))}</pre>" + (f"<svg{picture}" if picture else "")

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draws the sweep to a file (.svg, .png, .pdf); needs matplotlib."""
        from .plot import draw

        draw(self, path)


@quiet
def search(
    kernel: Any,
    args: tuple[Any, ...],
    *,
    space: Space,
    grid: Grid,
    limit: int | None = 24,
    budget: float = 120.0,
    timeout: float = 10.0,
    compile_timeout: float = 60.0,
    tolerance: float | None = None,
    scratch: Sequence[str] = (),
    isolate: bool = True,
    flush_l2: bool = True,
    record_file: str | os.PathLike[str] | bool | None = True,
    progress: bool | None = None,
) -> Result:
    """Find the quickest of a kernel's candidates for the given arguments, and keep it for later.

        tune.search(
            matmul, (a, b, c, 128, 128, 64),
            space={"TM": (64, 128, 256), "TN": (128, 256), "num_warps": (4, 8)},
            grid=lambda A, B, TM, TN: (ct.cdiv(A.shape[0], TM), ct.cdiv(B.shape[1], TN)),
        )

    kernel, args: as in `ct.launch`. The constants in `args` and the kernel's own hints are the untuned candidate: it is
        tried first, its result is what the others must give, and it is kept where nothing is clearly quicker.
    space: values by name for constants and hints, of which every combination is a candidate; or a list of candidates,
        each a dict.
    grid: of a launch: extents, or a function of the parameters that it names, as candidates have them.
    limit: how many candidates are compiled and measured: the best by the cost model. None: all.
    budget: seconds for measuring. It stops earlier when the best is clear: intervals of 95 % that do not overlap.
    timeout, compile_timeout: seconds after which a launch hangs, and a compilation is given up.
    tolerance: the largest difference between results, relative to a value plus the root mean square of all; by default
        one that fits the dtype.
    scratch: arrays, by name, whose contents nobody wants: candidates may differ in what they leave there. Of all others
        each must leave what the kernel as given does.
    isolate: run the candidates in a process of their own, on copies of the arrays. False: here, on the arrays
        themselves, which have their contents back afterwards; a candidate that hangs or faults then ends this process.
    flush_l2: each launch that is measured finds the GPU's L2 cache empty; False: what the one before has left there.
    record_file: where the best is kept (default: TILEWRIGHT_TUNED, else beside the disk cache); False or None: nowhere.
    progress: show a bar (with rich, if it is installed); by default on a terminal.

    What hangs, faults, fails to compile or gives another result is dropped; `Result.trials` says why.
    """
    found = Search(
        Problem(kernel, args, grid, _names(scratch)), tolerance, timeout, compile_timeout, Progress(progress)
    )
    found.flush_l2 = flush_l2
    return found.run(space, limit, budget, isolate, record_file)


def _names(scratch: Sequence[str]) -> tuple[str, ...]:
    return (scratch,) if isinstance(scratch, str) else tuple(scratch)


class Settings(Protocol):
    """Of a sweep: what its own trials may take, and how far results may differ."""

    @property
    def timeout(self) -> float: ...
    @property
    def compile_timeout(self) -> float: ...
    @property
    def tolerance(self) -> float | None: ...


def search_problem(problem: Problem, space: Space, budget: float, settings: Settings, keep: bool) -> Result:
    """All candidates of a space in turns, beside the kernel as given; with `keep` the best is kept where tune.launch
    finds it."""
    search = Search(problem, settings.tolerance, settings.timeout, settings.compile_timeout, Progress(False))
    return search.run(space, None, budget, True, keep)


class Search:
    flush_l2 = True

    def __init__(
        self, problem: Problem, tolerance: float | None, timeout: float, compile_timeout: float, progress: Progress
    ) -> None:
        self.problem, self.tolerance, self.progress = problem, tolerance, progress
        self.timeout, self.compile_timeout = timeout, compile_timeout
        self.facts = problem.facts()
        self.target, self.layout = self.facts.target, self.facts.layout()
        self.machine = cost.machine_of(self.layout.device)
        self.trials: list[Trial] = []
        self.programs: dict[int, Program] = {}

    def run(
        self,
        space: Space,
        limit: int | None,
        budget: float,
        isolate: bool,
        record_file: str | os.PathLike[str] | bool | None,
    ) -> Result:
        with self.progress:
            with self._assemblers(isolate) as assemblers:
                self.prepare(space, limit, assemblers)
            return self.measure(budget, isolate, record_file)

    @contextlib.contextmanager
    def _assemblers(self, isolate: bool) -> Iterator[Assemblers | None]:
        found = Assemblers(self.compile_timeout) if isolate and self.layout.device is not None else None
        try:
            yield found
        finally:
            if found:
                found.close()

    def prepare(self, space: Space, limit: int | None, assemblers: Assemblers | None) -> None:
        """Compiles what shall be measured."""
        self._compile(self._rank(self.problem.candidates(space), limit), assemblers)

    def measure(
        self,
        budget: float,
        isolate: bool,
        record_file: str | os.PathLike[str] | bool | None,
        warm_up_seconds: float = WARM_UP_SECONDS,
    ) -> Result:
        with self._bench(isolate) as bench:
            self._try(bench)
            best = self._time(bench, budget, warm_up_seconds)
        result = Result(self.problem, self.machine, self.trials, self.trials[best])
        if record_file is not None and record_file is not False:
            self._keep(result, record.default_path() if record_file is True else Path(record_file))
        return result

    def _keep(self, result: Result, path: Path) -> None:
        """A disk that is full does not cost what was measured."""
        try:
            record.write(path, self._entry(result))
        except OSError as error:
            warnings.warn(
                f"tune: {str(path)!r} cannot be written: {error.strerror}; what was found is in the result alone",
                stacklevel=5,
            )
            return
        result.path = path
        launching.forget(self.problem.kernel)

    # --- candidates in the order of the cost model --------------------------------------------------------------------

    def _rank(self, candidates: list[Candidate], limit: int | None) -> list[int]:
        """Fills `trials`; the numbers of those that shall be compiled."""
        found = []
        step = self.progress.step("capture", len(candidates))
        for number, candidate in enumerate(candidates):
            trial = Trial(candidate)
            try:
                trial.work, trial.predicted = self._estimate(candidate)
            except TileError as error:
                trial.dropped = f"is not accepted: {_first_line(error)}"
            found.append((number > 0, trial.predicted or 0.0, number, trial))
            step()
        found.sort(key=lambda row: row[:3])
        self.trials = [trial for *_, trial in found]
        good = [i for i, trial in enumerate(self.trials) if not trial.dropped]
        for i in good[limit:] if limit is not None else []:
            self.trials[i].dropped = UNLIKELY
        return good[:limit]

    def _estimate(self, candidate: Candidate) -> tuple[cost.Work, float]:
        return estimate(self.problem, self.facts, self.layout, self.machine, candidate)

    # --- compilation --------------------------------------------------------------------------------------------------

    def _compile(self, numbers: list[int], assemblers: Assemblers | None) -> None:
        """Fills `programs` with what launches of these candidates run."""
        step = self.progress.step("compile", len(numbers))
        outcomes = {}
        threads = min(len(os.sched_getaffinity(0)), MAX_ASSEMBLERS) if assemblers else len(os.sched_getaffinity(0))
        work = functools.partial(self._program, assemblers)
        for number, outcome in in_parallel(work, numbers, self.compile_timeout, threads):
            step()
            outcomes[number] = outcome
        same: dict[tuple[bytes, tuple[int, int, int]], int] = {}
        for number, outcome in sorted(outcomes.items()):
            if isinstance(outcome, str):
                self.trials[number].dropped = f"does not compile: {outcome}"
                continue
            program, self.trials[number].launched = outcome
            twin = same.setdefault((program.image, program.grid), number)
            if twin != number:
                self.trials[number].dropped = f"{SAME}: {self.trials[twin].candidate}"
            else:
                self.programs[number] = program

    def _program(self, assemblers: Assemblers | None, number: int) -> tuple[Program, dict[str, int | str]]:
        return program_of(self.problem, self.facts, self.layout, self.trials[number].candidate, assemblers)

    # --- trying -------------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _bench(self, isolate: bool) -> Iterator[SafeBench]:
        path = memory.save(self.layout) if isolate else None
        bench = SafeBench(self.layout, path)
        try:
            yield bench
        finally:
            bench.close()
            if path is not None:
                memory.remove(path)

    def _try(self, bench: SafeBench) -> None:
        """The first launch of each; the first that works gives the reference."""
        numbers = sorted(self.programs)
        step = self.progress.step("try", len(numbers))
        for number in numbers:
            trial = self.trials[number]
            try:
                bench.call("add", number, self.programs[number], timeout=60.0)  # no part of what a launch takes
                with alone(self.layout.device):
                    bench.call("first", number, self.programs[number], timeout=self.timeout)
                    if bench.reference is None:
                        bench.adopt(number, self.programs[number])
                    trial.error = bench.call("check", number, self.tolerance, timeout=60.0 + self.timeout)
            except (FailedError, LostError) as error:
                trial.dropped = str(error)
                del self.programs[number]
                bench.forget(number)
            step()
        if not self.programs:
            reasons = "\n  ".join(str(trial) for trial in self.trials if trial.dropped)
            raise TileValueError(f"no candidate of kernel {self.problem.kernel.name} works: {reasons}")

    # --- timing -------------------------------------------------------------------------------------------------------

    def _time(self, bench: SafeBench, budget: float, warm_up_seconds: float) -> int:
        """Rounds in which every candidate that may still be the best has its turn; the number of the best.

        The kernel as given always has one: what the best is compared with is measured at the same clocks. Each round
        has the device to itself, and waits for it outside of the budget.
        """
        samples: dict[int, list[float]] = {number: [] for number in self.programs}
        alive = sorted(self.programs)
        counts = dict.fromkeys(alive, 1)
        step = self.progress.step("time", MAX_ROUNDS)
        with alone(self.layout.device):
            self._warm_up(bench, alive[0], warm_up_seconds)
        deadline = time.monotonic() + budget
        for turn in range(MAX_ROUNDS):
            with alone(self.layout.device) as waited:
                deadline += waited
                alive = self._round(bench, alive, samples, counts)
            if not alive:
                raise TileValueError(f"no candidate of kernel {self.problem.kernel.name} kept working")
            measured = {number: Measurement.of(samples[number]) for number in alive}
            step()
            if turn + 1 >= MIN_ROUNDS:
                left = survivors(measured)
                alive = [number for number in alive if number in left or number == 0]
                if is_decided({number: measured[number] for number in left}):
                    break
            if time.monotonic() > deadline:
                break
        for number, taken in samples.items():
            self.trials[number].measurement = Measurement.of(taken)
        return winner({number: Measurement.of(samples[number]) for number in alive})

    def _round(
        self, bench: SafeBench, numbers: list[int], samples: dict[int, list[float]], counts: dict[int, int]
    ) -> list[int]:
        """A turn of each; those that still work."""
        alive = []
        for number in numbers:
            try:
                limit = self.timeout * counts[number]
                taken = bench.call("time", number, counts[number], self.flush_l2, timeout=limit)
            except (FailedError, LostError) as error:
                self.trials[number].dropped = f"worked at first, then: {error}"
                del samples[number], self.programs[number]
                bench.forget(number)
                continue
            alive.append(number)
            samples[number] += taken
            counts[number] = launches_at_once(taken[0])
        return alive

    def _warm_up(self, bench: SafeBench, number: int, seconds: float) -> None:
        end = time.monotonic() + seconds
        with contextlib.suppress(FailedError, LostError):
            while time.monotonic() < end:
                bench.call("time", number, 1, self.flush_l2, timeout=self.timeout)

    def _entry(self, result: Result) -> record.Entry:
        from .. import __version__

        best, untuned = result.best.measurement, result.untuned.measurement
        assert best is not None
        varied = dict.fromkeys(name for trial in self.trials for name, _ in trial.candidate.constants)
        return record.Entry(
            device=self.machine.name,
            kernel=self.problem.kernel.name,
            source=record.source_hash(self.problem.kernel.function),
            shape_class=record.shape_class(self.facts.leaf_key, self.layout),
            arguments=record.arguments_text(self.facts.names, self.layout),
            constants=self.problem.constants_of(result.best.candidate, varied),
            hints=dict(result.best.candidate.hints),
            launched=dict(result.best.launched),
            us=round(1e6 * best.median, 3),
            low_us=round(1e6 * best.low, 3),
            high_us=round(1e6 * best.high, 3),
            untuned_us=round(1e6 * untuned.median, 3) if untuned is not None else 0.0,
            version=__version__,
            date=datetime.date.today().isoformat(),
        )


def in_parallel(
    work: Callable[[int], Done], numbers: list[int], timeout: float, threads: int
) -> Iterator[tuple[int, Done | str]]:
    """Runs `work` on each number in threads; (number, result or why there is none) as they come.

    A thread that takes longer than `timeout` is left behind and another one takes its place.
    """
    todo: queue.SimpleQueue[int] = queue.SimpleQueue()
    done: queue.SimpleQueue[tuple[int, Done | str]] = queue.SimpleQueue()
    started: dict[int, float] = {}

    def run() -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                number = todo.get_nowait()
                started[number] = time.monotonic()
                try:
                    done.put((number, work(number)))
                except TileError as error:
                    done.put((number, _first_line(error)))

    def start() -> None:
        threading.Thread(target=run, daemon=True).start()

    for number in numbers:
        todo.put(number)
    for _ in range(min(len(numbers), threads)):
        start()
    waiting = set(numbers)
    while waiting:
        with contextlib.suppress(queue.Empty):
            number, outcome = done.get(timeout=0.1)
            if number in waiting:
                waiting.remove(number)
                yield number, outcome
            continue
        for number in [n for n in waiting if time.monotonic() - started.get(n, time.monotonic()) > timeout]:
            waiting.remove(number)
            start()
            yield number, f"takes longer than {timeout:.0f} s"


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
