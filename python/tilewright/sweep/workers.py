"""Workers: where stations are. Processes of this host, one a device, or those of a Dask cluster (cluster.py).

    auto  cpu  cpu*2  cuda  cuda:0,cuda:1      of this host: `cuda` and `auto` are all of its GPUs
    dask://host:8786      a cluster

A worker that dies costs at most the trial of the candidate that kills it: another one takes its place. Devices of
several kinds make a pool each: every candidate is measured on every kind.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import queue
import re
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait
from typing import Any, NoReturn

from .. import _core
from ..errors import TileError, TileValueError
from ..tune.alone import name_of
from ..tune.samples import device_of
from ..tune.worker import FailedError, LostError, UnfitError, Worker
from .cluster import open_cluster
from .pool import GoneError, Pool, side_by_side
from .records import Record
from .shapes import Shape
from .station import Known, Settings, Task, compiling_at_once, gpu_count

MOST_DEATHS = 3  # of one worker, one after the other


def open_pools(text: str, settings: Settings) -> list[Pool]:
    """A pool for each kind of device."""
    if text.startswith("dask://"):
        return open_cluster(text, settings)
    kinds: dict[str, list[str]] = {}
    for name in devices(text):
        number = device_of(name)
        kinds.setdefault("cpu" if number is None else _core.device_info(number)["name"], []).append(name)
    settings = dataclasses.replace(settings, stations=sum(map(len, kinds.values())))
    return [Local(settings, names) for names in kinds.values()]


def devices(text: str) -> list[str]:
    """`cuda:0,cuda:1`, `cpu*2`, `auto` as one name a worker."""
    found = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(auto|cpu|cuda(?::\d+)?)\s*(?:\*\s*([1-9]\d{0,2}))?\s*", part)
        if match is None:
            raise TileValueError(
                f"--on {text!r}: {part!r} is no device; expected auto, cpu, cpu*2, cuda, cuda:1, or a cluster as in "
                "dask://host:8786"
            )
        found += _devices_of(match[1]) * int(match[2] or 1)
    numbers = [device_of(name) for name in found]
    twice = [n for n in numbers if n is not None and numbers.count(n) > 1]
    if twice:
        raise TileValueError(
            f"--on {text!r}: cuda:{twice[0]} is named {numbers.count(twice[0])} times; two workers on one GPU would "
            "measure each other"
        )
    return found


def _devices_of(name: str) -> list[str]:
    count = gpu_count()
    if name == "cpu" or (name == "auto" and not count):
        return ["cpu"]
    if name in ("auto", "cuda"):
        if not count:
            raise TileValueError("--on cuda: this host has no GPU that the driver shows; tilewright doctor says more")
        return [f"cuda:{i}" for i in range(count)]
    if (device_of(name) or 0) >= count:
        raise TileValueError(f"--on {name}: this host has {count or 'no'} GPU{'s' if count != 1 else ''}")
    return [name]


def alone(name: str) -> tuple[str, dict[str, str]]:
    """A device by its name in a process that sees no other GPU, and the environment of that: to begin, the driver
    opens all that a process sees, and a sweep has many processes."""
    number = device_of(name)
    if number is None or gpu_count() < 2:
        return name, {}
    seen = [part.strip() for part in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if part.strip()]
    return "cuda:0", {"CUDA_VISIBLE_DEVICES": seen[number] if number < len(seen) else str(number)}


class Local:
    """A process a device, with a station in it."""

    def __init__(self, settings: Settings, names: list[str]) -> None:
        self.settings, self.names, self.count = settings, names, len(names)
        self.workers: dict[int, Worker] = {}
        self.unfit: dict[str, str] = {}
        self.gone: dict[int, GoneError] = {}  # that do not start, or die again and again
        self.idle: dict[int, TileError] = {}  # that cannot measure the latest shape
        self.is_stopped = False
        # All at once: each takes a second to open its device.
        self.starters, self.openers = ThreadPoolExecutor(self.count), ThreadPoolExecutor(self.count)
        self.starting = {number: self._start(number) for number in range(self.count)}
        self.opening: dict[int, Future[Record]] = {}  # of the latest shape, by worker

    def _start(self, number: int) -> Future[Worker]:
        name, environment = alone(self.names[number])
        meant = name_of(device_of(self.names[number]))
        return self.starters.submit(Worker, "station", self.settings, name, meant, environment=environment)

    def _worker(self, number: int) -> Worker:
        if number not in self.workers:
            try:
                self.workers[number] = (self.starting.pop(number, None) or self._start(number)).result()
            except (LostError, FailedError, OSError) as error:
                self._gives_up(number, GoneError(f"the worker on {self.names[number]} does not start: {error}"))
        return self.workers[number]

    def _gives_up(self, number: int, error: GoneError) -> NoReturn:
        self.gone[number] = error
        self.unfit[self.names[number]] = error.message
        raise error from None

    def _cannot(self, number: int, error: TileError) -> None:
        """Measure this shape; another one, perhaps."""
        self.idle[number] = error
        who = f"the worker on {self.names[number]}"
        self.unfit[self.names[number]] = error.message if error.message.startswith(who) else f"{who}: {error.message}"

    def _left(self) -> list[int]:
        """The workers that have not given up. GoneError where there is none."""
        left = [number for number in range(self.count) if number not in self.gone]
        if not left:
            raise next(iter(self.gone.values()))
        return left

    def _limit(self) -> float:
        """Seconds after which a worker hangs: whatever a candidate may take, its process ends before that."""
        return 300.0 + self.settings.compile_timeout + 120 * self.settings.timeout

    def describe(self, shape: Shape) -> Record:
        before, left = dict(self.opening), self._left()
        self.idle.clear()
        self.opening = {n: self.openers.submit(self._describe, n, shape, before.get(n)) for n in left}
        for done in as_completed(self.opening.values()):
            if done.exception() is None:
                return done.result()
        return self.opening[left[0]].result()

    def _describe(self, number: int, shape: Shape, before: Future[Record] | None) -> Record:
        if before is not None:
            wait([before])  # a worker has one call at a time
        found: Record = self._ask(number, "describe", shape)
        return found

    def ask(self, method: str, *arguments: Any) -> Any:
        """The first that can."""
        problem: TileError | None = None
        for number in self._left():
            try:
                self._opened(number)
                if number not in self.idle:
                    return self._ask(number, method, *arguments)
            except (GoneError, UnfitError) as error:
                problem = problem or error
        raise problem or next(iter(self.idle.values()))

    def _opened(self, number: int) -> None:
        """Waits until a worker has answered what it was asked last; one that could not, others did."""
        if number in self.opening:
            error = self.opening[number].exception()
            if isinstance(error, TileError) and number not in self.idle:
                self._cannot(number, error)

    def _ask(self, number: int, method: str, *arguments: Any) -> Any:
        """One that dies over it is asked once more."""
        for last in (False, True):
            try:
                return self._worker(number).call(method, *arguments, timeout=3600.0)
            except FailedError as error:
                raise TileValueError(str(error)) from None
            except LostError as error:
                self.workers.pop(number, None)
                if last or self.is_stopped:
                    raise GoneError(f"the worker on {self.names[number]} {error}") from None

    def ask_all(self, method: str, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        free: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        lock, left, problems = threading.Lock(), set(self._left()), list[BaseException]()

        def leave(number: int, error: BaseException) -> None:
            with lock:
                left.discard(number)
                problems.append(error)
                if not left:
                    for _ in range(self.count):  # all who wait
                        free.put(None)

        def join(number: int, opened: Future[Record] | None = None) -> None:
            if opened is None or (error := opened.exception()) is None:
                free.put(number)
            else:
                leave(number, error)

        for number in sorted(left):  # one that still opens its device comes when it has
            if number in self.opening:
                self.opening[number].add_done_callback(functools.partial(join, number))
            else:
                join(number)

        def one(arguments: tuple[Any, ...]) -> Any:
            while (number := free.get()) is not None:
                try:
                    found = self._ask(number, method, *arguments)
                except (GoneError, UnfitError) as error:
                    leave(number, error)
                    continue
                except BaseException:
                    free.put(number)
                    raise
                free.put(number)
                return found
            raise problems[-1]

        with ThreadPoolExecutor(self.count) as threads:
            return list(threads.map(one, calls))

    def run(
        self,
        source: Callable[[], Task | None],
        found: Callable[[Task, Record | str], None],
        begins: Callable[[Task], bool],
        ahead: int | None = None,
        known: Sequence[Known] = (),
    ) -> None:
        lock = threading.Lock()
        returned: queue.SimpleQueue[Task] = queue.SimpleQueue()

        def next_task() -> Task | None:
            with lock:
                return source() if returned.empty() else returned.get()

        def tell(task: Task, outcome: Record | str) -> None:
            with lock:
                found(task, outcome)

        def begin(task: Task) -> bool:
            with lock:
                return begins(task)

        def serve_one(number: int) -> None:
            self._opened(number)
            if number not in self.idle:
                self._serve(number, next_task, begin, tell, returned, self._ahead(number, ahead), known)

        able = [number for number in self._left() if number not in self.idle]
        if not able:
            raise UnfitError(next(iter(self.idle.values())).message)
        problems = side_by_side(serve_one, able, self.stop)
        if serious := [error for error in problems if not isinstance(error, GoneError)]:
            raise serious[0]
        if self.is_stopped:
            return
        if not returned.empty():  # what a worker that gave up had taken, after the others were done
            self.run(lambda: None if returned.empty() else returned.get(), found, begins, ahead, known)
        elif problems and len(problems) == len(able):
            raise problems[0]

    def _ahead(self, number: int, most: int | None) -> int:
        at_once = compiling_at_once(self.settings.stations, device_of(self.names[number]))
        return at_once if most is None else min(most, at_once)

    def _serve(
        self,
        number: int,
        next_task: Callable[[], Task | None],
        begin: Callable[[Task], bool],
        tell: Callable[[Task, Record | str], None],
        returned: queue.SimpleQueue[Task],
        ahead: int,
        known: Sequence[Known],
    ) -> None:
        mine, deaths, told, suspects = list[Task](), 0, 0, 0
        self._opened(number)
        try:
            while True:
                while len(mine) <= ahead and not suspects and (task := next_task()) is not None:
                    mine.append(task)
                if not mine:
                    return
                asked = mine[:1] if suspects else list(mine)
                if not begin(mine[0]):
                    return mine.clear()
                news = known[told:]
                told += len(news)
                done: list[tuple[int, Record | str]]
                try:
                    done = self._worker(number).call("measure", asked, news, timeout=self._limit())
                    deaths = 0
                except FailedError as error:
                    done = [(0, str(error))]
                except (UnfitError, GoneError) as error:  # which no candidate is to blame for
                    if isinstance(error, GoneError):
                        raise
                    return self._cannot(number, error)
                except LostError as error:
                    self.workers.pop(number, None)
                    deaths, told = deaths + 1, 0
                    # Any of them may have done it: they come again, one at a time.
                    done = [(0, f"its worker {error}")] if len(asked) == 1 else []
                    suspects = len(mine)
                if self.is_stopped:
                    return
                suspects = max(0, suspects - len(done))
                mine = [task for at, task in enumerate(mine) if at not in dict(done)]
                for at, outcome in done:
                    tell(asked[at], outcome)
                if deaths == MOST_DEATHS:
                    how = f"died {deaths} times, one after the other"
                    self._gives_up(number, GoneError(f"the worker on {self.names[number]} {how}"))
        finally:
            for task in mine:
                returned.put(task)

    def stop(self) -> None:
        self.is_stopped = True
        for worker in list(self.workers.values()):
            worker.stop()

    def close(self) -> None:
        wait(self.opening.values(), Worker.STOP_SECONDS)
        for number in list(self.starting):
            with contextlib.suppress(GoneError):
                self._worker(number)
        every = list(self.workers.values())
        for worker in every:
            worker.hang_up()
        for worker in every:
            worker.close()
        self.starters.shutdown()
        self.openers.shutdown(wait=False)
