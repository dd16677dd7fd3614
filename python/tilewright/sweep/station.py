"""A station: a process that measures candidates on one device. It lives in a worker of this host or of a cluster.

It makes the arguments of a shape itself, so that a task is a few words. Candidates run in a process below it (tune's
bench), which a hang or a crash takes along and nothing else; the next ones are compiled meanwhile.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import functools
import hashlib
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, InvalidStateError, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from .. import _core, cli, compile
from ..errors import TileError, TileValueError
from ..tune import cost, memory, record
from ..tune.alone import alone, name_of, settle
from ..tune.programs import estimate, listed_layouts, program_of
from ..tune.samples import device_of, make_arguments
from ..tune.search import SAME, search_problem
from ..tune.space import Candidate, Problem
from ..tune.statistics import Measurement
from ..tune.trial import TRIAL_SECONDS, Program
from ..tune.worker import Assembler, FailedError, LostError, SafeBench, Spare, UnfitError
from . import artefacts
from .records import Record, choice_text
from .shapes import Grid, Shape

# Candidates that a station compiles at a time: on a CPU they take it from what is measured, on a GPU each needs the
# interpreter for some milliseconds, which the others wait for.
COMPILING, MOST_COMPILING = 4, 24
LOOK_SECONDS = 0.05  # between two looks for what compiles for too long
NO_MORE = "its shape is not measured any more"
FOR_MEASURING = 2  # processors of a station: its own, and that of the process that measures


@dataclasses.dataclass(frozen=True)
class Settings:
    """What all trials of a sweep have in common."""

    place: str  # FILE:KERNEL
    timeout: float = 10.0
    compile_timeout: float = 60.0
    tolerance: float | None = None
    scratch: tuple[str, ...] = ()
    secret: bytes = dataclasses.field(default=b"", repr=False)  # of this sweep, for artefacts
    stations: int = 0  # of this host, which share its processors; 0: nobody knows


@dataclasses.dataclass(frozen=True)
class Task:
    """A candidate of a shape; `rank` is the model's."""

    shape: Shape
    choice: tuple[tuple[str, Any], ...]
    rank: int = 0
    device: str = ""  # which the sweep is about
    made: tuple[str, ...] = ()  # and what it is made of: MADE_OF of its records


# What a worker must have as the sweep has it, and how a person says so.
MADE_OF = (("driver", "driver"), ("compiler", "build of the compiler"), ("source", "source of the kernel"))


def made_of(base: Record) -> tuple[str, ...]:
    return tuple(getattr(base, field) for field, _ in MADE_OF)


def gpu_count() -> int:
    try:
        return _core.device_count()
    except TileError:
        return 0


def compiling_at_once(stations: int, device: int | None) -> int:
    """How many candidates a station compiles at a time, where so many share the host's processors."""
    processors = len(os.sched_getaffinity(0))
    if device is None or not stations:
        return min(COMPILING, processors)
    return max(2, min(processors // stations - FOR_MEASURING, MOST_COMPILING))


def driver_of(device: int | None) -> str:
    return "none" if device is None else str(_core.driver_version())


class _Launch(Problem):
    """A problem whose grid is an expression."""

    def __init__(self, kernel: Any, args: tuple[Any, ...], expression: Grid, scratch: tuple[str, ...]) -> None:
        super().__init__(kernel, args, 1, scratch)
        self.expression = expression

    def grid_of(self, candidate: Candidate) -> tuple[int, int, int]:
        x, y, z = [*self.expression.of(self.constants_of(candidate, self.expression.names)), 1, 1][:3]
        return x, y, z


class Session:
    """The launch of one shape on the station's device."""

    def __init__(self, settings: Settings, device: str, shape: Shape, spare: Spare | None = None) -> None:
        kernel = cli.load_kernel(settings.place)
        key = cli.specialization(kernel, shape.arguments)
        self.settings, self.shape, self.spare = settings, shape, spare
        args, self.memory = make_arguments(kernel, key, shape.arguments, device)
        self.given = list(zip(kernel.parameters, key, strict=True))
        grid = shape.grid_of(kernel)
        self.problem = _Launch(kernel, args, grid, settings.scratch)
        self.facts = self.problem.facts()
        self.layout = self.facts.layout()
        self.machine = cost.machine_of(self.layout.device)
        self.path: Path | None = None
        self.bench: SafeBench | None = None
        self.failure: TileValueError | None = None  # of the kernel as given
        self.numbers = 0
        self.counted: dict[Any, cost.Work] = {}
        self.times: dict[str, tuple[str, Measurement]] = {}  # of programs: by which candidate, and the time

    @functools.cached_property
    def base(self) -> Record:
        """What all records of the session say."""
        from .. import __version__

        return Record(
            device=self.machine.name,
            driver=driver_of(self.layout.device),
            compiler=artefacts.compiler_name(),
            kernel=self.problem.kernel.name,
            source=record.source_hash(self.problem.kernel.function),
            shape_class=record.shape_class(self.facts.leaf_key, self.layout),
            arguments=record.arguments_text(self.facts.names, self.layout),
            choice={},
            status="failed",
            given={name: entry[1] for name, entry in self.given if entry[0] == "const"},
            grid=f"{''.join(self.shape.grid.split())} = {','.join(map(str, self.problem.grid_of(Candidate())))}",
            machine=machine_figures(self.machine),
            version=__version__,
            date=datetime.date.today().isoformat(),
        )

    def wanted(self) -> artefacts.Wanted:
        return artefacts.Wanted(self.facts.target, self.facts.key, _core.driver_version())

    def compiled(
        self, candidate: Candidate, assembler: Assembler | None, fetch: compile.Fetch | None = None
    ) -> tuple[Any, float, Program, dict[str, Any]]:
        work, seconds = self.estimate(candidate)
        return work, seconds, *program_of(self.problem, self.facts, self.layout, candidate, assembler, fetch)

    def expected(self, candidate: Candidate) -> float:
        """Seconds, by the cost model."""
        return self.estimate(candidate)[1]

    def estimate(self, candidate: Candidate) -> tuple[cost.Work, float]:
        return estimate(self.problem, self.facts, self.layout, self.machine, candidate, self.counted)

    def start(self) -> SafeBench:
        """The bench, in which the kernel as given has run: its result is what the others must give. Where it does not
        compile, that of the first which works. It is compiled while the bench copies the arguments."""
        if self.failure is not None:
            raise self.failure
        if self.bench is None:
            thread = ThreadPoolExecutor(1)
            compiled = thread.submit(self.compiled, Candidate(), None)
            try:
                self._begin()
                assert self.bench is not None
                with contextlib.suppress(TileError, TimeoutError):  # which its own trial tells
                    *_, program, _ = compiled.result(self.settings.compile_timeout)
                    with alone(self.layout.device):
                        self.bench.call("first", 0, program, timeout=60.0 + self.settings.timeout)
                        self.bench.adopt(0, program)
            except (FailedError, LostError) as error:
                self.close()
                name = self.problem.kernel.name
                self.failure = TileValueError(f"kernel {name} as given does not run: {error}")
                raise self.failure from None
            finally:
                thread.shutdown(wait=False)
        return self.bench

    def _begin(self) -> None:
        """Copies of the arguments, and the process that has them: what fails there, no candidate is to blame for."""
        try:
            self.path = memory.save(self.layout)
            self.bench = SafeBench(self.layout, self.path, self.spare.take if self.spare else None)
            self.bench.begin()
        except (FailedError, LostError, TileError, MemoryError, OSError) as error:
            self.close()
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            size = f"{sum(size for _, size in self.layout.segments):,} bytes of arguments"
            self.failure = UnfitError(f"cannot run candidates on {self.machine.name}, with {size}: {why}")
            raise self.failure from None

    @property
    def has_reference(self) -> bool:
        return self.bench is not None and self.bench.reference is not None

    def time_of(self, program: Program, choice: dict[str, Any]) -> tuple[Measurement, str]:
        """The time of a candidate, and whose program it has if that has been measured: once is enough."""
        key = digest_of(program)
        if key in self.times:
            twin, found = self.times[key]
            return found, twin
        found = self._measured(program)
        self.times[key] = choice_text(choice), found
        return found, ""

    def learn(self, known: Sequence[Known]) -> None:
        """What others have measured."""
        for one in known:
            self.times.setdefault(one.program, (one.choice, one.measurement))

    def _measured(self, program: Program) -> Measurement:
        bench, timeout = self.start(), self.settings.timeout
        self.numbers += 1
        number = self.numbers
        try:
            bench.call("add", number, program, timeout=60.0)
            with alone(self.layout.device):
                taken = bench.call("first", number, program, timeout=timeout)
                if bench.reference is None:
                    bench.adopt(number, program)
                bench.call("check", number, self.settings.tolerance, timeout=60.0 + timeout)
                best = min((found.median for _, found in self.times.values()), default=float("inf"))
                samples = bench.call("sample", number, taken, best, timeout=TRIAL_SECONDS + 5 * timeout)
            return Measurement.of(samples)
        finally:
            bench.forget(number)
            with contextlib.suppress(FailedError, LostError):
                if bench.worker is not None:
                    bench.call("drop", number, timeout=60.0)

    def close(self) -> None:
        if self.path is not None:  # first: whoever waits for the end of this process may end it
            memory.remove(self.path)
        if self.bench is not None:
            self.bench.close()
            self.bench = None
        self.memory.close()


def digest_of(program: Program) -> str:
    """The same of what runs the same code on the same grid, in every process."""
    return hashlib.sha256(repr(program.grid).encode() + program.image).hexdigest()[:32]


def machine_figures(machine: cost.Machine) -> dict[str, float]:
    """A machine as a record has it."""
    figures = dataclasses.asdict(machine)
    figures.pop("name")
    chip = figures.pop("chip")
    return {name: float(value) for name, value in (figures | chip).items() if isinstance(value, int | float)}


def figures_of(found: Measurement) -> dict[str, Any]:
    """A measurement as a record has it."""
    us, low, high = (1e6 * seconds for seconds in (found.median, found.low, found.high))
    return {"us": us, "low_us": low, "high_us": high, "samples": found.samples}


@dataclasses.dataclass(frozen=True)
class Known:
    """The time of a program, and the candidate by which it was measured."""

    program: str
    choice: str
    measurement: Measurement

    @classmethod
    def of(cls, record: Record) -> Known | None:
        """None of a record that has the time of another, or none."""
        if not record.measured or record.is_twin or not record.program:
            return None
        median, low, high = (1e-6 * us for us in (record.us, record.low_us, record.high_us))
        return cls(record.program, choice_text(record.choice), Measurement(median, low, high, record.samples))


@dataclasses.dataclass(frozen=True)
class Decided:
    """The best of a few, and what it and the kernel as given took in turns: microseconds, None where it failed."""

    choice: dict[str, Any]
    us: float | None = None
    given_us: float | None = None
    times: tuple[tuple[dict[str, Any], Measurement], ...] = ()  # of all of them, as far as they worked
    note: str = ""  # it is not kept


class _Trial:
    """A candidate on its way to a record: it is compiled in one of a station's threads, and then measured by the one
    that measures."""

    def __init__(self, task: Task, base: Record) -> None:
        self.task, self.base = task, base
        self.record: Future[Record] = Future()
        self.compiled: Future[Any] = Future()
        self.began: float | None = None  # to compile

    @property
    def is_compiled(self) -> bool:
        return self.compiled.done()

    def settle(self, made: Callable[[], Record]) -> None:
        with contextlib.suppress(InvalidStateError):  # it was given up
            try:
                self.record.set_result(made())
            except BaseException as error:
                self.record.set_exception(error)

    def give_up_after(self, seconds: float) -> None:
        """Where it is compiled for longer than that."""
        if not self.is_compiled and self.began is not None and time.monotonic() - self.began > seconds:
            self.fail(f"takes longer than {seconds:.0f} s to compile")

    def fail(self, why: str) -> None:
        self.settle(lambda: dataclasses.replace(self.base, why=why))


class Station:
    """Sessions on one device, the latest of which lives on. Safe in several threads: one measures at a time."""

    def __init__(self, settings: Settings, device: str, meant: str = "") -> None:
        """`meant`: the device, as whoever asks knows it (alone.py)."""
        self.settings, self.device = settings, device
        self.number = device_of(device)
        self.spare: Spare | None = None
        self.measures = ThreadPoolExecutor(1)
        self.measures.submit(artefacts.compiler_name)  # a digest of a large file, which records have
        if self.number is not None:  # first: its device opens while this process opens its own
            self.spare = Spare(self.number)
        if device.startswith("cuda") and (self.number or 0) >= gpu_count():
            self._close_processes()
            raise UnfitError(f"this worker has no GPU, which {device} asks for: its driver shows {gpu_count()}")
        self._check_device(meant)
        self.session: Session | None = None
        self.measuring, self.opening = threading.RLock(), threading.RLock()
        at_once = compiling_at_once(settings.stations, self.number)
        # Here: another process would open its device first, and only one can at a time.
        self.assembler = Assembler() if self.number is not None else None
        self.threads = ThreadPoolExecutor(at_once)
        # More of them would only keep each other from the interpreter, which a capture needs most of the time.
        self.ranks = ThreadPoolExecutor(min(COMPILING, at_once))
        self.trials: dict[Task, _Trial] = {}
        self.queue: list[_Trial] = []  # of those that are not measured yet, in the order of the tasks
        self.queueing = threading.Lock()
        self.taken = 0  # artefacts of other workers

    def _check_device(self, meant: str) -> None:
        if not meant or self.number is None or not _core.device_info(self.number)["uuid"]:
            return
        if name_of(self.number) != meant:
            self._close_processes()
            raise UnfitError(
                f"{self.device} of this worker is {name_of(self.number)}, and {meant} is meant; CUDA_VISIBLE_DEVICES "
                "must stay as it was when the program began"
            )

    def _session(self, shape: Shape) -> Session:
        with self.opening:
            if self.session is None or self.session.shape != shape:
                with self.measuring:
                    if self.session is not None:
                        self.session.close()
                    self.session = None  # until there is the next one, which there may not be
                    self._give_up()
                    self.session = Session(self.settings, self.device, shape, self.spare)
                self.threads.submit(self._warm, self.session)
            return self.session

    def _session_of(self, task: Task) -> Session:
        """Of a shape that another worker has opened: what is wrong is this one's fault."""
        try:
            session = self._session(task.shape)
        except (TileError, MemoryError) as error:
            why = (str(error) or type(error).__name__).splitlines()[0]
            raise UnfitError(f"cannot open {task.shape}: {why}") from None
        _check(task, session.base)
        return session

    def _warm(self, session: Session) -> None:
        """Has the kernel as given run while candidates are ranked. What is wrong with it, its own trial tells."""
        with self.measuring, contextlib.suppress(TileError, FailedError, LostError):
            if session is self.session:
                session.start()
        self._next(session)

    def describe(self, shape: Shape) -> Record:
        """A record without a choice: the device, the kernel and its arguments."""
        return self._session(shape).base

    def layouts(self, shape: Shape, tile: str) -> list[str]:
        return listed_layouts(self._session(shape).problem, tile)

    def rank(self, shape: Shape, choices: list[dict[str, Any]]) -> list[float | None]:
        """What the cost model expects of each, in seconds; None of what is not accepted."""
        session = self._session(shape)
        return list(self.ranks.map(lambda choice: self._expected(session, choice), choices))

    def _expected(self, session: Session, choice: dict[str, Any]) -> float | None:
        try:
            candidate = session.problem.candidate(choice)
            return session.expected(candidate)
        except TileError:
            return None

    def wanted(self, shape: Shape) -> artefacts.Wanted | None:
        """What another worker compiles candidates for; None: they are compiled where they run, for that very CPU."""
        return self._session(shape).wanted() if self.number is not None else None

    def _take(self) -> None:
        self.taken += 1

    def _compile(
        self, session: Session, trial: _Trial, artefact: artefacts.Artefact | None
    ) -> tuple[Any, float, Program, dict[str, Any]]:
        trial.began = time.monotonic()
        fetch = artefacts.reader(self.settings.secret, artefact, self._take) if artefact is not None else None
        return session.compiled(session.problem.candidate(dict(trial.task.choice)), self.assembler, fetch)

    def measure(
        self, tasks: Sequence[Task], known: Sequence[Known] = (), artefact: artefacts.Artefact | None = None
    ) -> list[tuple[int, Record]]:
        """What came of the first candidates that are done, each with its place among the `tasks`, which are of one
        shape. All of them are compiled, several at a time, and each is measured when its code is there. Who asks again
        has the others among the tasks, which go on meanwhile. What is `known` is not measured again. `artefact`: what
        another worker has compiled of the only one."""
        session = self._session_of(tasks[0])
        session.learn(known)
        with self.opening:
            trials = [self.trials.get(task) or self._begin(session, task, artefact) for task in tasks]
        while not wait([trial.record for trial in trials], LOOK_SECONDS, FIRST_COMPLETED).done:
            for trial in trials:
                trial.give_up_after(self.settings.compile_timeout)
            self._next(session)
        if self.spare:
            self.spare.renew()  # by now no code is waited for, which processes must open devices for
        done = [at for at, trial in enumerate(trials) if trial.record.done()]
        for at in done:
            self.trials.pop(tasks[at], None)
        return [(at, trials[at].record.result()) for at in done]

    def _begin(self, session: Session, task: Task, artefact: artefacts.Artefact | None) -> _Trial:
        """Has a candidate compiled, and measured behind that."""
        base = dataclasses.replace(session.base, choice=dict(task.choice), rank=task.rank)
        trial = self.trials[task] = _Trial(task, base)
        with self.queueing:
            self.queue.append(trial)
        trial.compiled = self.threads.submit(self._compile, session, trial, artefact)
        trial.compiled.add_done_callback(lambda _: self._next(session))
        return trial

    def _next(self, session: Session) -> None:
        """Has those measured whose code is there, the kernel as given before all others. The first that works is what
        others are compared with: until it is there, they come one after the other."""
        with self.queueing, contextlib.suppress(RuntimeError):  # the station is closed
            self.queue = [trial for trial in self.queue if not trial.record.done()]
            first = self.queue[:1]
            row = self.queue if session.has_reference and all(trial.task.choice for trial in first) else first
            for trial in [trial for trial in row if trial.is_compiled]:
                self.queue.remove(trial)
                self.measures.submit(self._measure, session, trial)

    def _give_up(self) -> None:
        """What has not been measured, of a shape that is measured no more."""
        self.trials.clear()
        with self.queueing:
            for trial in self.queue:
                trial.fail(NO_MORE)
            self.queue.clear()

    def _measure(self, session: Session, trial: _Trial) -> None:
        trial.settle(lambda: self._measured(session, trial.base, trial.compiled))
        self._next(session)

    def _measured(self, session: Session, base: Record, compiled: Future[Any]) -> Record:
        start = time.monotonic()
        try:
            work, predicted, program, launched = compiled.result()
            counted = {name: float(value) for name, value in dataclasses.asdict(work).items()}
            base = dataclasses.replace(
                base, work=counted, predicted_us=1e6 * predicted, launched=launched, program=digest_of(program)
            )
            with self.measuring:
                if session is not self.session:
                    return dataclasses.replace(base, why=NO_MORE)
                found, twin = session.time_of(program, base.choice)
        except UnfitError:
            raise
        except (TileError, MemoryError, FailedError, LostError) as error:
            why = (str(error) or type(error).__name__).splitlines()[0][:1000]
            return dataclasses.replace(base, why=_printable(why), seconds=time.monotonic() - start)
        return dataclasses.replace(
            base,
            status="measured",
            why=f"{SAME}: {twin}" if twin else "",
            **figures_of(found),
            seconds=time.monotonic() - start,
        )

    def decide(self, shape: Shape, choices: list[dict[str, Any]], budget: float, keep: bool) -> Decided:
        """The best of a few, measured in turns beside the kernel as given; with `keep` for tune.launch, too."""
        session = self._session(shape)
        if session.failure is not None:  # its arrays are given back
            raise session.failure
        space = [session.problem.candidate(choice) for choice in choices]
        rows = [_choice_of(candidate) for candidate in space]
        with self.measuring:
            found = search_problem(session.problem, rows, budget, self.settings, keep)
        us, given = (1e6 * t.measurement.median if t.measurement else None for t in (found.best, found.untuned))
        measured = tuple((_choice_of(t.candidate), t.measurement) for t in found.trials if t.measurement is not None)
        is_lost = keep and found.path is None
        note = f"{str(record.default_path())!r} cannot be written, so that tune.launch finds no best" if is_lost else ""
        return Decided(_choice_of(found.best.candidate), us, given, measured, note)

    def stop(self) -> None:
        """The process ends now, and its own processes with it: the copy of the arguments must not stay."""
        if self.session is not None and self.session.path is not None:
            memory.remove(self.session.path)

    def close(self) -> None:
        if self.session is not None:
            self.session.close()
        self._close_processes()
        for threads in (self.threads, self.ranks, self.measures):
            threads.shutdown(wait=False, cancel_futures=True)

    def _close_processes(self) -> None:
        if self.spare:
            self.spare.close()


def _check(task: Task, base: Record) -> None:
    """What a station measures must be comparable to what others of the sweep do."""
    if task.device and task.device != base.device:
        raise UnfitError(
            f"this worker is a {base.device}, and the sweep is of a {task.device}; name the devices of one "
            "kind, or a resource of their workers, as in --on dask://host:8786?GPU=1"
        )
    for (_, what), theirs, ours in zip(MADE_OF, task.made, made_of(base), strict=False):
        if theirs != ours:
            raise UnfitError(
                f"this worker has another {what} ({ours}) than the sweep ({theirs}); give all workers the same, or "
                "those that have it a resource, as in --on dask://host:8786?GPU=1"
            )


def _choice_of(candidate: Candidate) -> dict[str, Any]:
    return dict(candidate.constants) | dict(candidate.hints)


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)


# Of a worker of a cluster, which lives on when a sweep has ended.
_HERE: dict[tuple[Settings, str], Station] = {}
_ASKED: dict[tuple[Settings, str], float] = {}  # when each was asked last
_ONE = threading.Lock()
FORGOTTEN_SECONDS = 3600.0  # after which the sweep of a station is taken to be dead


def serve(settings: Settings, device: str, method: str, *arguments: Any) -> Any:
    """A call to the station of this process, which the first call makes: what a worker of a cluster runs."""
    try:
        file = settings.place.rpartition(":")[0]
        if file.endswith(".py") and not Path(file).exists():
            raise UnfitError(f"the worker on {socket.gethostname()} has no {file!r}, from which it reads the kernel")
        return getattr(_station(settings, device), method)(*arguments)
    except UnfitError as error:
        error.worker = _address()
        raise


def leave(settings: Settings, device: str) -> None:
    """The sweep has ended: its processes end, and give back what they have of the device."""
    with _ONE:
        _ASKED.pop((settings, device), None)
        station = _HERE.pop((settings, device), None)
    if station is not None:
        threading.Thread(target=station.close, daemon=True).start()  # who asks has other things to do


def _station(settings: Settings, device: str) -> Station:
    key = settings, device
    with _ONE:
        now = time.monotonic()
        _ASKED[key] = now
        if key not in _HERE:
            for old in [old for old in _HERE if now - _ASKED[old] > FORGOTTEN_SECONDS]:
                _ASKED.pop(old)
                threading.Thread(target=_HERE.pop(old).close, daemon=True).start()
            _HERE[key] = Station(settings, _own_device(device))
        return _HERE[key]


def _own_device(device: str) -> str:
    """Workers of a host that see the same GPUs have one each."""
    return f"cuda:{_own_gpu()}" if device in ("auto", "cuda") and gpu_count() else device


@functools.cache
def _own_gpu() -> int:
    """The same for all sweeps of this process."""
    return settle(gpu_count())


def _address() -> str:
    """Of this worker, by which its scheduler knows it."""
    distributed = sys.modules.get("distributed")
    try:
        return str(distributed.get_worker().address) if distributed else ""
    except ValueError:
        return ""
