"""The worker process of a search: `python -m tilewright.tune.worker FD`, with a `Bench` of its own.

A candidate that hangs or crashes takes this process with it and nothing else: the user's arrays are copies here, and so
is the CUDA context. The parent sends (method, arguments) and gets ("ok", result), ("failed", text) or nothing any more.
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

from ..errors import TileError
from .memory import Layout
from .trial import Bench, WrongError


class FailedError(Exception):
    """A candidate that failed; the worker lives."""


class LostError(Exception):
    """A candidate that took the worker with it."""


class Worker:
    """The parent's end."""

    START_SECONDS = 60.0

    def __init__(self, layout: Layout, path: Path) -> None:
        ours, theirs = socket.socketpair()
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed in close()
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
        command = [sys.executable, "-m", "tilewright.tune.worker", str(theirs.fileno())]
        self.process = subprocess.Popen(
            command,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self.errors,
            env=environment,
        )
        theirs.close()
        self.connection = Connection(ours.detach())
        self.call("open", layout, path, timeout=self.START_SECONDS)

    def call(self, method: str, *arguments: Any, timeout: float) -> Any:
        """FailedError: this did not work. LostError: neither does anything else, start another worker."""
        try:
            self.connection.send((method, arguments))
            if not self.connection.poll(timeout):
                self.close()
                raise LostError(f"did not end within {timeout:.0f} s")
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
        if code is not None and code < 0:
            return f"crashed with signal {-code}"
        return f"ended its process (exit status {code})"

    def close(self) -> None:
        """A process that hangs in a kernel is killed; the driver then ends the kernel."""
        self.connection.close()
        if self.process.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(0.5)
        self.process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(30)
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


def _run(bench: Bench, method: str, arguments: tuple[Any, ...]) -> tuple[str, Any]:
    try:
        return "ok", getattr(bench, method)(*arguments)
    except WrongError as error:
        return "failed", str(error)
    except (TileError, MemoryError) as error:
        return "lost" if "context is lost" in str(error) else "failed", _first_line(error)


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


def main() -> None:
    connection = Connection(int(sys.argv[1]))
    bench: Bench | None = None
    while True:
        try:
            method, arguments = connection.recv()
        except EOFError:  # the parent has what it wanted
            return
        if method == "open":
            try:
                bench = Bench(*arguments)
                connection.send(("ok", None))
            except (TileError, MemoryError, OSError) as error:
                connection.send(("lost", f"copying the arguments: {_first_line(error)}"))
        else:
            assert bench is not None
            connection.send(_run(bench, method, arguments))


if __name__ == "__main__":
    main()
    os._exit(0)  # no clean-up of a context that may be lost
