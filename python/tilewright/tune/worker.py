"""The worker processes of a search: `python -m tilewright.tune.worker FD`.

One has a `Bench` and runs candidates. A candidate that hangs or crashes takes this process with it and nothing else:
the user's arrays are copies here, and so is the CUDA context. Others have an `Assembler` each, because the driver
assembles one kernel at a time in a process. The parent sends (method, arguments) and gets ("ok", result), ("failed",
text) or nothing any more; the first method says which of the two it shall be.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from .. import compile, knobs
from ..errors import TileCompilationError, TileError
from .memory import Layout
from .trial import Bench, Program, WrongError


class FailedError(Exception):
    """A candidate that failed; the worker lives."""


class LostError(Exception):
    """A candidate that took the worker with it."""


class Worker:
    """The parent's end."""

    START_SECONDS = 60.0

    def __init__(self, kind: str, *arguments: Any) -> None:
        """`kind`: "bench" with the arguments of a `Bench`, "station" with those of a `Station`, or "assembler"."""
        ours, theirs = socket.socketpair()
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed in kill()
        self.last_words = ""
        # -P: files of the current directory are no modules, unless the user's program says so.
        command = [sys.executable, "-P", "-m", "tilewright.tune.worker", str(theirs.fileno())]
        self.process = subprocess.Popen(
            command,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self.errors,
            env=knobs.environment_of_children(),
        )
        theirs.close()
        self.connection = Connection(ours.detach())
        self.call(kind, *arguments, timeout=self.START_SECONDS)

    def call(self, method: str, *arguments: Any, timeout: float) -> Any:
        """FailedError: this did not work. LostError: neither does anything else, start another worker."""
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

    def close(self) -> None:
        """Lets it end; a process that hangs in a kernel is killed, and the driver then ends the kernel."""
        self.connection.close()
        if self.process.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(0.5)
        self.kill()

    def kill(self) -> None:
        self.connection.close()
        self.process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(30)
        if not self.errors.closed:
            self.last_words = self._last_line()
            self.errors.close()

    def _last_line(self) -> str:
        """What the process has said last, of which a Python error is the most telling."""
        most = 2000
        self.errors.seek(max(0, self.errors.seek(0, os.SEEK_END) - most))
        lines = [line for line in self.errors.read().decode(errors="replace").splitlines() if line.strip()]
        return lines[-1].strip() if lines else ""


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


class SafeBench:
    """A worker that is replaced when a candidate takes it along."""

    def __init__(self, layout: Layout, path: Path | None) -> None:
        self.layout, self.path = layout, path
        self.worker: Worker | Local | None = None
        self.reference: tuple[int, Program] | None = None
        self.known: dict[int, Program] = {}  # to be loaded again by a new worker

    def adopt(self, number: int, program: Program) -> None:
        self.call("keep", number, timeout=60.0)
        self.reference = number, program

    def forget(self, number: int) -> None:
        self.known.pop(number, None)

    def call(self, method: str, *arguments: Any, timeout: float) -> Any:
        if self.worker is None:
            self._start()
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
        self.worker = Local(self.layout) if self.path is None else Worker("bench", self.layout, self.path)
        if self.reference is not None:
            number, program = self.reference
            self.worker.call("first", number, program, timeout=60.0)
            self.worker.call("keep", number, timeout=60.0)
        for number, program in self.known.items():
            self.worker.call("add", number, program, timeout=60.0)

    def close(self) -> None:
        if self.worker is not None:
            self.worker.close()


class Assembler:
    """What the driver makes of PTX."""

    def assemble(self, ptx: bytes, target: str) -> bytes:
        return compile.assemble(ptx, target)

    def load(self, image: bytes, name: str, target: str, device: int) -> None:
        """Has the driver assemble PTX that it loads as a whole: it keeps the result on disk, for every process."""
        unpacked = compile.Image.unpack(image)
        assert unpacked is not None, "the parent packed it"
        compile.load(unpacked, name, 0, target).usage(device)


class Assemblers:
    """As many processes that assemble as are needed at a time; safe in several threads."""

    SMALL = 16_000  # bytes of PTX, which take some hundredths of a second

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        self.idle: list[Worker] = []
        self.all: list[Worker] = []

    def call(self, method: str, *arguments: Any) -> Any:
        try:
            worker = self.idle.pop()
        except IndexError:
            worker = self._start()
        try:
            result = worker.call(method, *arguments, timeout=self.timeout)
        except LostError as error:
            raise TileCompilationError(f"the driver's assembler {error}") from error
        except FailedError as error:
            self.idle.append(worker)
            raise TileCompilationError(str(error)) from error
        self.idle.append(worker)
        return result

    def _start(self) -> Worker:
        try:
            worker = Worker("assembler")
        except LostError as error:
            raise TileCompilationError(f"the driver's assembler {error}") from error
        self.all.append(worker)
        return worker

    def assemble(self, ptx: bytes, target: str) -> bytes:
        """As `compile.assemble`. What is small is done at once, before another process could have started."""
        if len(ptx) < self.SMALL:
            return compile.assemble(ptx, target)
        code: bytes = self.call("assemble", ptx, target)
        return code

    def close(self) -> None:
        for worker in self.all:
            worker.kill()


def _run(served: Any, method: str, arguments: tuple[Any, ...]) -> tuple[str, Any]:
    try:
        return "ok", getattr(served, method)(*arguments)
    except WrongError as error:
        return "failed", str(error)
    except (TileError, MemoryError) as error:
        return "lost" if "context is lost" in str(error) else "failed", _first_line(error)


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


def _station(*arguments: Any) -> Any:
    from ..sweep.station import Station

    return Station(*arguments)


def main() -> None:
    connection = Connection(int(sys.argv[1]))
    served: Any = None
    while True:
        try:
            method, arguments = connection.recv()
        except EOFError:  # the parent has what it wanted
            return
        if served is not None:
            connection.send(_run(served, method, arguments))
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


if __name__ == "__main__":
    main()
    os._exit(0)  # no clean-up of a context that may be lost
