"""The worker processes of a search, which are forks (forkserver.py).

One has a `Bench` and runs candidates. A candidate that hangs or crashes takes this process with it and nothing else:
the user's arrays are copies here, and so is the CUDA context. Others have an `Assembler` each, which what the driver
hangs in or crashes at ends. The parent sends (method, arguments) and gets ("ok", result), ("failed", text), ("unfit",
text) or nothing any more; the first method says which of the two it shall be, or "open" that it shall have a context
by then.
"""

from __future__ import annotations

import contextlib
import os
import queue
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from .. import _core, compile
from ..errors import TileCompilationError, TileError, TileValueError
from . import forkserver
from .alone import name_of
from .memory import Layout
from .trial import Bench, Program, WrongError

# A context is open in half the time if nothing shall run beside anything in it.
NARROW = {"CUDA_DEVICE_MAX_CONNECTIONS": "1"}
MAX_ASSEMBLERS = 8  # each has a context on the GPU: half a second, half a gigabyte


class FailedError(Exception):
    """A candidate that failed; the worker lives."""


class LostError(Exception):
    """A candidate that took the worker with it."""


class UnfitError(TileValueError):
    """What no candidate is to blame for: this worker can measure none of them, another one may. `worker`: its address
    in a cluster."""

    worker = ""


class Worker:
    """The parent's end."""

    START_SECONDS = 60.0
    END_SECONDS = 0.5  # that a process has to end by itself
    STOP_SECONDS = 5.0  # the same in the middle of a trial

    def __init__(self, kind: str | None = None, *arguments: Any, environment: Mapping[str, str] | None = None) -> None:
        """`kind`: "bench" with the arguments of a `Bench`, "station" with those of a `Station`, or "assembler"; None:
        the first call says it. `environment`: variables that differ from those of this process."""
        ours, theirs = socket.socketpair()
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed in kill()
        self.last_words = ""
        self.patience, self.lock = self.END_SECONDS, threading.Lock()
        with theirs:
            handles = theirs.fileno(), self.errors.fileno()
            self.process = forkserver.server().fork(*handles, NARROW | dict(environment or {}))
        self.connection = Connection(ours.detach())
        if kind is not None:
            self.call(kind, *arguments, timeout=self.START_SECONDS)

    def call(self, method: str, *arguments: Any, timeout: float) -> Any:
        """FailedError: this did not work. LostError: neither does anything else, start another worker. UnfitError: that
        one would not, either."""
        try:
            self.connection.send((method, arguments))
            if not self.connection.poll(timeout):
                self.close()
                raise LostError(self._with_last_words(f"did not end within {timeout:.0f} s"))
            state, result = self.connection.recv()
        except (EOFError, OSError) as error:
            self.close()
            raise LostError(self._epitaph()) from error
        if state == "lost":
            self.close()
            raise LostError(result)
        if state == "unfit":
            raise UnfitError(result)
        if state == "failed":
            raise FailedError(result)
        return result

    def _epitaph(self) -> str:
        code = self.process.returncode
        how = (
            f"crashed with signal {-code}"
            if code is not None and code < 0
            else f"ended its process (exit status {code})"
        )
        return self._with_last_words(how)

    def _with_last_words(self, how: str) -> str:
        return f"{how}: {self.last_words}" if self.last_words else how

    def stop(self) -> None:
        """Has it end when its trial does. The thread that waits for an answer, which is not this one, closes it."""
        self.patience = self.STOP_SECONDS
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(self.connection.fileno())) as ours:
            ours.shutdown(socket.SHUT_RDWR)

    def hang_up(self) -> None:
        """Has it end, which `close` waits for."""
        self.connection.close()

    def close(self) -> None:
        """Lets it end; a process that hangs in a kernel is killed, and the driver then ends the kernel."""
        self.hang_up()
        if self.process.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(self.patience)
        self.kill()

    def kill(self) -> None:
        self.connection.close()
        self.process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(30)
        with self.lock:  # who waits for an answer closes it, and so does who has it stop
            if not self.errors.closed:
                self.last_words = forkserver.last_line(self.errors) or self.process.last_words
                self.errors.close()


class Local:
    """The same without a process: `search(..., isolate=False)`, on the user's own arrays."""

    def __init__(self, layout: Layout) -> None:
        self.bench = Bench(layout, None)

    def call(self, method: str, *arguments: Any, timeout: float) -> Any:
        state, result = _run(self.bench, method, arguments)
        if state != "ok":
            raise FailedError(result)
        return result

    def close(self) -> None:
        self.bench.close()


class Spare:
    """A process with a context on a GPU, for whoever needs a worker next: it starts while nobody waits for it."""

    def __init__(self, device: int) -> None:
        self.device = device
        self.threads = ThreadPoolExecutor(1)
        self.next: Future[Worker] | None = None
        self.renew()

    def renew(self) -> None:
        """Has the next one start, if there is none: when processes are not needed for something else."""
        if self.next is None:
            self.next = self.threads.submit(self._open)

    def _open(self) -> Worker:
        worker = Worker()
        try:
            worker.call("open", self.device, timeout=Worker.START_SECONDS)
        except (FailedError, LostError):
            worker.kill()
            raise
        return worker

    def take(self, kind: str, *arguments: Any) -> Worker:
        """As `Worker(kind, ...)`."""
        found, self.next = self.next, None
        worker = None
        with contextlib.suppress(FailedError, LostError):  # what is wrong, a fresh one tells
            worker = found.result() if found is not None else None
        worker = worker or Worker()
        worker.call(kind, *arguments, timeout=Worker.START_SECONDS)
        return worker

    def close(self) -> None:
        self.threads.shutdown()
        with contextlib.suppress(FailedError, LostError):
            if self.next is not None:
                self.next.result().kill()


class SafeBench:
    """A worker that is replaced when a candidate takes it along."""

    def __init__(self, layout: Layout, path: Path | None, start: Callable[..., Worker] | None = None) -> None:
        """`start` gives a worker, as `Worker` itself does."""
        self.layout, self.path, self.start = layout, path, start or Worker
        self.worker: Worker | Local | None = None
        self.reference: tuple[int, Program] | None = None
        self.known: dict[int, Program] = {}  # to be loaded again by a new worker

    def begin(self) -> None:
        """Has its process start now, if it is not there."""
        if self.worker is None:
            self._start()

    def adopt(self, number: int, program: Program) -> None:
        self.call("keep", number, timeout=60.0)
        self.reference = number, program

    def forget(self, number: int) -> None:
        self.known.pop(number, None)

    def call(self, method: str, *arguments: Any, timeout: float) -> Any:
        self.begin()
        assert self.worker is not None
        try:
            result = self.worker.call(method, *arguments, timeout=timeout)
        except LostError:
            self.worker = None
            raise
        if method == "first":
            self.known[arguments[0]] = arguments[1]
        return result

    def _start(self) -> None:
        if self.path is None:
            self.worker = Local(self.layout)
        else:
            self.worker = self.start("bench", self.layout, self.path, name_of(self.layout.device))
        if self.reference is not None:
            number, program = self.reference
            self.worker.call("first", number, program, timeout=60.0)
            self.worker.call("keep", number, timeout=60.0)
        for number, program in self.known.items():
            self.worker.call("add", number, program, timeout=60.0)

    def close(self) -> None:
        if self.worker is not None:
            self.worker.close()


class Opener:
    """What a process is before it is told what it shall be."""

    def open(self, device: int) -> None:
        """Makes its context on the device, which takes longer than what follows."""
        _core.synchronize(device)


@runtime_checkable
class Stops(Protocol):
    """What leaves files or processes behind unless it is told of the end."""

    def stop(self) -> None: ...


class Assembler(Opener):
    """What the driver makes of PTX."""

    def assemble(self, ptx: bytes, target: str) -> bytes:
        return compile.assemble(ptx, target)

    def load(self, image: bytes, name: str, target: str, device: int) -> None:
        """Has the driver assemble PTX that it loads as a whole: it keeps the result on disk, for every process."""
        unpacked = compile.Image.unpack(image)
        assert unpacked is not None, "the parent packed it"
        compile.load(unpacked, name, 0, target).load(device)


class Assemblers:
    """Processes that assemble: as many as are needed at a time, at most `count`; safe in several threads. What the
    driver hangs in or crashes at ends one of them."""

    SMALL = 16_000  # bytes of PTX, which take some hundredths of a second

    def __init__(self, timeout: float, count: int = MAX_ASSEMBLERS) -> None:
        self.timeout = timeout
        self.lock = threading.Lock()
        self.all: list[Worker] = []
        self.is_closed = False
        # Who takes a place has the process in it, or None: one that is not there yet. The latest comes first.
        self.places: queue.LifoQueue[Worker | None] = queue.LifoQueue()
        for _ in range(count):
            self.places.put(None)

    def _call(self, method: str, *arguments: Any) -> Any:
        """A call to the process of a place, which is given back."""
        worker = self.places.get()
        try:
            worker = worker or self._start()
            return worker.call(method, *arguments, timeout=self.timeout)
        except LostError as error:
            worker = None
            raise TileCompilationError(f"the driver's assembler {error}") from error
        except FailedError as error:
            raise TileCompilationError(str(error)) from error
        finally:
            self.places.put(worker)

    def _start(self) -> Worker:
        try:
            worker = Worker("assembler")
        except OSError as error:
            raise LostError(f"does not start: {error}") from error
        with self.lock:
            self.all.append(worker)
            if not self.is_closed:
                return worker
        worker.kill()
        raise LostError("is closed")

    def assemble(self, ptx: bytes, target: str) -> bytes:
        """As `compile.assemble`. What is small is done here where no process waits for work: at once, before another
        one could have started."""
        if len(ptx) < self.SMALL and not any(self.places.queue):
            return compile.assemble(ptx, target)
        code: bytes = self._call("assemble", ptx, target)
        return code

    def load(self, image: bytes, name: str, target: str, device: int) -> None:
        """As that of an Assembler."""
        self._call("load", image, name, target, device)

    def close(self) -> None:
        with self.lock:
            self.is_closed = True
            every = list(self.all)
        for worker in every:
            worker.kill()


def _run(served: Any, method: str, arguments: tuple[Any, ...]) -> tuple[str, Any]:
    try:
        return "ok", getattr(served, method)(*arguments)
    except WrongError as error:
        return "failed", str(error)
    except UnfitError as error:
        return "unfit", _first_line(error)
    except (TileError, MemoryError) as error:
        return "lost" if "context is lost" in str(error) else "failed", _first_line(error)


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


def _station(*arguments: Any) -> Any:
    from ..sweep.station import Station

    # The thread that measures waits for the interpreter behind those that capture, at each answer of its process.
    sys.setswitchinterval(0.0005)

    return Station(*arguments)


def serve(connection: Connection) -> None:
    """Until the parent has what it wanted, or is gone."""
    served: Any = None
    try:
        while True:
            method, arguments = connection.recv()
            if served is not None or method == "open":
                connection.send(_run(served or Opener(), method, arguments))
            elif method == "assembler":
                served = Assembler()
                connection.send(("ok", None))
            else:
                try:
                    served = Bench(*arguments) if method == "bench" else _station(*arguments)
                    connection.send(("ok", None))
                except (TileError, MemoryError, OSError) as error:
                    doing = "copying the arguments: " if method == "bench" else ""
                    connection.send(("lost", f"{doing}{_first_line(error)}"))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return
    finally:
        if isinstance(served, Stops):
            served.stop()


def end_with_parent(handle: int) -> None:
    """Nobody wants a trial any more, however long it takes, when the other end of the connection is closed."""

    def watch() -> None:
        gone = select.poll()
        gone.register(handle, 0)  # of a hang-up one hears always
        gone.poll()
        time.sleep(Worker.STOP_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def main(handle: int) -> None:
    """What a fork does."""
    end_with_parent(handle)
    serve(Connection(handle))
