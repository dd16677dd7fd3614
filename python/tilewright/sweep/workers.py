"""Workers: where stations are. Processes of this host, one a device, or those of a Dask cluster.

    auto  cpu  cpu*2  cuda  cuda:0,cuda:1      of this host: `cuda` and `auto` are all of its GPUs
    dask://host:8786      a cluster that runs; dask://host:8786?GPU=1 where its workers have such a resource
    dask://host:8786?kinds=H200,L40S&compile=CPU      candidates are measured on workers with the resource H200 and on
                          those with L40S, each on both, and compiled on those with the resource CPU
    dask://local*2        a cluster of two processes of this host, which ends with the sweep

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
import secrets
import threading
import urllib.parse
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait
from typing import Any, NoReturn, Protocol

from .. import _core
from ..errors import TileError, TileValueError
from ..tune.alone import name_of
from ..tune.samples import device_of
from ..tune.worker import FailedError, LostError, UnfitError, Worker
from . import artefacts
from .records import Record
from .shapes import Shape
from .station import COMPILING, Known, Settings, Task, compiling_at_once, gpu_count, leave, serve

MOST_DEATHS = 3  # of one worker, one after the other
CONNECT_SECONDS = 10


class GoneError(TileError):
    """No worker is left, or the scheduler is gone."""


class Pool(Protocol):
    """Workers that take tasks from a common source. `unfit`: those that take no more of them, and why."""

    count: int
    unfit: dict[str, str]

    def describe(self, shape: Shape) -> Record:
        """What records of the shape have in common, by the first worker that has opened its device for it; the others
        do so meanwhile."""

    def ask(self, method: str, *arguments: Any) -> Any:
        """A call to any one worker."""

    def ask_all(self, method: str, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Calls that the workers share."""

    def run(
        self,
        source: Callable[[], Task | None],
        found: Callable[[Task, Record | str], None],
        begins: Callable[[Task], bool],
        ahead: int | None = None,
        known: Sequence[Known] = (),
    ) -> None:
        """Measures what `source` gives until that is None. `begins` hears of the next one when a worker is asked for
        more (of a cluster, the first that has not ended), and says whether there is time for it; `found` hears what
        came of each: a record, or why none. A worker takes at most `ahead` tasks beside the one that it measures; None:
        as many as it compiles at a time. What is `known`, which grows meanwhile, is not measured again."""

    def stop(self) -> None:
        """Nothing is told any more, and `run` ends soon, in whatever thread it is."""

    def close(self) -> None: ...


def side_by_side(work: Callable[[Any], None], items: Iterable[Any], stop: Callable[[], None]) -> list[BaseException]:
    """Does the work on each of the items, in a thread of its own; what went wrong, in order of time. `stop` has all of
    them end when this thread is interrupted."""
    problems: list[BaseException] = []

    def one(item: Any) -> None:
        try:
            work(item)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=one, args=(item,), daemon=True) for item in items]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            while thread.is_alive():
                thread.join(0.2)  # Ctrl-C comes through
    except BaseException:
        stop()
        for thread in threads:
            thread.join(2 * Worker.STOP_SECONDS)
        raise
    return problems


def open_pools(text: str, settings: Settings) -> list[Pool]:
    """A pool for each kind of device."""
    if text.startswith("dask://"):
        return _dask(text, settings)
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


# --- this host --------------------------------------------------------------------------------------------------------


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


# --- a cluster --------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Where:
    """What `dask://…` asks for: an address, and the resources of workers that measure, a row a kind, and of those that
    compile."""

    address: str
    kinds: tuple[dict[str, float], ...]
    compilers: dict[str, float]

    @classmethod
    def read(cls, text: str) -> Where:
        address, _, query = text.removeprefix("dask://").partition("?")
        words = {name: values[0] for name, values in urllib.parse.parse_qs(query).items()}
        kinds, compilers = words.pop("kinds", ""), words.pop("compile", "")
        try:
            common = {name: float(value) for name, value in words.items()}
        except ValueError:
            raise TileValueError(f"--on {text}: a resource has a number, as in ?GPU=1") from None
        rows = [common | {name.strip(): 1.0} for name in kinds.split(",") if name.strip()]
        return cls(address, tuple(rows or [common]), {compilers: 1.0} if compilers else {})


def _dask(text: str, settings: Settings) -> list[Pool]:
    try:
        import distributed
    except ImportError:
        raise TileError(f"--on {text} needs Dask: pip install tilewright[sweep]") from None
    where = Where.read(text)
    local = re.fullmatch(r"local(?:\*([1-9]\d{0,2}))?", where.address)
    cluster = None
    try:
        if local:
            cluster = distributed.LocalCluster(
                n_workers=int(local[1] or 2), threads_per_worker=2, processes=True, dashboard_address=None
            )
        client = distributed.Client(cluster or f"tcp://{where.address}", timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise GoneError(f"there is no Dask scheduler at {where.address!r}: {error}") from None
    return on_cluster(settings, client, cluster, where, is_local=bool(local))


def on_cluster(settings: Settings, client: Any, cluster: Any, where: Where, is_local: bool = False) -> list[Pool]:
    """A pool for each kind; the last that is closed closes the client."""
    settings = dataclasses.replace(settings, secret=secrets.token_bytes(32))
    users = Users(client, cluster, len(where.kinds))
    pools: list[Pool] = []
    try:
        for resources in where.kinds:
            wants_gpu = "gpu" in " ".join(resources).lower() or len(where.kinds) > 1 or bool(where.compilers)
            device = "cpu" if is_local else "cuda" if wants_gpu else "auto"
            pools.append(Cluster(settings, users, device, resources, where.compilers))
    except TileError:
        users.end()
        raise
    return pools


@dataclasses.dataclass
class Users:
    """The connection to a cluster, and how many pools have it."""

    client: Any
    cluster: Any
    count: int

    def leave(self) -> None:
        self.count -= 1
        if self.count == 0:
            self.end()

    def end(self) -> None:
        self.client.close(timeout=5)
        if self.cluster is not None:
            self.cluster.close(timeout=10)

    def tasks_of(self, resources: dict[str, float]) -> list[int]:
        return list(self.tasks_by(resources).values()) or [2]

    def tasks_by(self, resources: dict[str, float]) -> dict[str, int]:
        """Of each worker that has the resources, by its address, how many tasks it may have at a time: two, one to
        compile and one to measure, or more where it has threads for them. Where none has them, a task would wait for
        one without an end."""
        every = self.client.scheduler_info(n_workers=-1)["workers"]
        rows = [worker.get("resources") or {} for worker in every.values()]
        found = {
            address: max(2, min(int(worker.get("nthreads") or 1), 1 + COMPILING))
            for (address, worker), row in zip(every.items(), rows, strict=True)
            if all(row.get(name, 0) >= amount for name, amount in resources.items())
        }
        if resources and not found:
            wanted = ", ".join(f"{name}={amount:g}" for name, amount in resources.items())
            known = ", ".join(sorted({name for row in rows for name in row})) or "none"
            raise TileValueError(
                f"no worker of the cluster has the resource {wanted}; its {len(rows)} workers have {known}; start one "
                f"with dask worker --resources {wanted}"
            )
        return found


class Cluster:
    """The workers of a Dask cluster that have some resources: each has some tasks at a time, of which one is measured
    and the others are compiled. With `compilers`, what is measured was compiled by workers with those resources, as
    far as they could."""

    def __init__(
        self, settings: Settings, users: Users, device: str, resources: dict[str, float], compilers: dict[str, float]
    ) -> None:
        self.settings, self.users, self.client = settings, users, users.client
        self.device, self.resources, self.compilers = device, resources, compilers
        tasks = users.tasks_of(resources)
        self.count = len(tasks)
        self.ahead = sum(tasks) + (sum(users.tasks_of(compilers)) if compilers else 0)
        self.wanted: dict[Shape, artefacts.Wanted | None] = {}
        self.unfit: dict[str, str] = {}
        self.idle: set[str] = set()  # addresses of workers that cannot measure the latest shape

    def _check(self) -> None:
        if self.client.status != "running":
            raise GoneError(f"the Dask scheduler is gone: its client is {self.client.status}")

    def _submit(self, method: str, *arguments: Any) -> Any:
        self._check()
        return self.client.submit(
            serve,
            self.settings,
            self.device,
            method,
            *arguments,
            pure=False,
            resources=self.resources or None,
            workers=self._able(),
        )

    def _able(self) -> list[str] | None:
        """Who may be asked; None: anybody."""
        if not self.idle:
            return None
        able = [address for address in self.users.tasks_by(self.resources) if address not in self.idle]
        if not able:
            raise UnfitError(next(iter(self.unfit.values())))
        return able

    def _cannot(self, error: UnfitError) -> None:
        """Another worker is asked for the like, of this shape."""
        if not error.worker:
            raise error
        self.idle.add(error.worker)
        self.unfit[error.worker] = f"{error.worker}: {error.message}"

    def _measured(self, task: Task, known: Sequence[Known]) -> Any:
        """The future of a task; it waits for that of its artefact, whose bytes go from worker to worker."""
        if self.compilers and task.shape not in self.wanted:
            self.wanted[task.shape] = self.ask("wanted", task.shape)
        wanted = self.wanted.get(task.shape)
        if wanted is None:
            return self._submit("measure", [task], known)
        self._check()
        secret, place, choice = self.settings.secret, self.settings.place, dict(task.choice)
        made = self.client.submit(
            artefacts.compiled, secret, place, wanted, choice, pure=False, resources=self.compilers
        )
        return self._submit("measure", [task], known, made)

    def describe(self, shape: Shape) -> Record:
        self.idle.clear()
        found: Record = self.ask("describe", shape)
        return found

    def ask(self, method: str, *arguments: Any) -> Any:
        return self._answer(self._submit(method, *arguments), method, *arguments)

    def ask_all(self, method: str, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        futures = [self._submit(method, *arguments) for arguments in calls]
        return [self._answer(future, method, *arguments) for future, arguments in zip(futures, calls, strict=True)]

    def _answer(self, future: Any, method: str, *arguments: Any) -> Any:
        while True:
            try:
                return self._result(future)
            except UnfitError as error:
                self._cannot(error)
                future = self._submit(method, *arguments)
            except LostError as error:
                raise TileError(f"the workers of the cluster that were asked to {method} {error}") from None

    def _result(self, future: Any) -> Any:
        import distributed

        try:
            return future.result(timeout=3600)
        except TileError:
            raise
        except distributed.KilledWorker as error:
            raise LostError(f"died: {error}") from None
        except (OSError, TimeoutError, distributed.CancelledError) as error:
            raise GoneError(f"the Dask scheduler is gone: {error or type(error).__name__}") from None
        except Exception as error:  # of a worker that has no or another Tilewright
            raise GoneError(
                f"a worker of the cluster fails: {type(error).__name__}: {error}; all need this Tilewright, and what "
                "the kernel's file imports"
            ) from None

    def run(
        self,
        source: Callable[[], Task | None],
        found: Callable[[Task, Record | str], None],
        begins: Callable[[Task], bool],
        ahead: int | None = None,
        known: Sequence[Known] = (),
    ) -> None:
        from distributed import as_completed

        most = self.ahead if ahead is None else min(self.ahead, (1 + ahead) * self.count)
        waiting: dict[Any, Task] = {}
        pool = as_completed()

        def measure(task: Task) -> None:
            future = self._measured(task, list(known))
            waiting[future] = task
            pool.add(future)

        def feed() -> None:
            while len(waiting) < most and (task := source()) is not None:
                measure(task)

        feed()
        while waiting:
            future = next(pool)
            task = waiting.pop(future)
            try:
                ((_, record),) = self._result(future)
                found(task, record)
            except GoneError:
                raise
            except UnfitError as error:  # which this candidate is not to blame for
                self._cannot(error)
                measure(task)
            except (TileError, LostError) as error:
                found(task, f"its worker {error}" if isinstance(error, LostError) else str(error).splitlines()[0])
            feed()
            if waiting and not begins(next(iter(waiting.values()))):  # the time is over
                self.client.cancel(list(waiting))
                return

    def stop(self) -> None:
        self.client.close(timeout=5)  # whoever waits for a result has an error

    def close(self) -> None:
        if self.client.status == "running":
            thread = threading.Thread(target=self._leave, daemon=True)
            thread.start()
            thread.join(Worker.STOP_SECONDS)  # some worker may hang
        self.users.leave()

    def _leave(self) -> None:
        with contextlib.suppress(Exception):  # the cluster may be gone by now
            self.client.run(leave, self.settings, self.device, on_error="ignore")
