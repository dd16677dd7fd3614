"""The workers of a Dask cluster.

dask://host:8786      a cluster that runs; dask://host:8786?GPU=1 where its workers have such a resource
dask://host:8786?kinds=H200,L40S&compile=CPU      candidates are measured on workers with the resource H200 and on
                      those with L40S, each on both, and compiled on those with the resource CPU
dask://local*2        a cluster of two processes of this host, which ends with the sweep
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
import secrets
import threading
import urllib.parse
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import TileError, TileValueError
from ..tune.worker import LostError, UnfitError, Worker
from . import artefacts
from .pool import GoneError, Pool
from .records import Record
from .shapes import Shape
from .station import COMPILING, Known, Settings, Task, leave, serve

CONNECT_SECONDS = 10


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


def open_cluster(text: str, settings: Settings) -> list[Pool]:
    """A pool for each kind of device that `dask://…` asks for."""
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
