"""Processes that begin at once: a server that has imported what they need, and forks.

    python -m tilewright.tune.forkserver FD

is the server. It has one thread and opens no device, so that a fork of it is as good as a new process, in milliseconds
where the imports take half a second of a processor. A request on FD has variables of the environment, and brings files:
the connection that the fork shall serve, where its errors go, a pipe, and this very socket for requests of its own. On
the pipe the server says the fork's number, and later how it ended. It keeps the number until whoever asked has read
that, so that a signal reaches no stranger.

A fork begins as its server began. So a process whose environment, modules' path or folder has changed starts another
server; a fork does not, which asks the one that it comes from. What its request had, its own requests have too: it
sees the GPUs that whoever began it sees.

Not Python's own (multiprocessing.forkserver): its processes run the program's main module again, which here is the
user's script, and none has variables of the environment of its own.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from typing import IO

from .. import knobs

# runpy warns of a module that its package has imported; it would be the last word of a process that crashes.
QUIET = ("-W", "ignore::RuntimeWarning:runpy")
MOST_BYTES = 1 << 16  # of a request
WORD = struct.Struct("q")
# Threads of a library would not be in a fork. Nothing here multiplies matrices by it.
ALONE = {"OPENBLAS_NUM_THREADS": "1"}


class Server:
    """The end of a process that asks. In a fork, `handle` is the socket of the server that it is a fork of, and `given`
    the variables that it has beside the server's."""

    def __init__(self, handle: int | None = None, given: Mapping[str, str] | None = None) -> None:
        self.given = dict(given or {})
        self.process: subprocess.Popen[bytes] | None = None
        self.errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as this
        if handle is not None:
            self.socket, self.began = socket.socket(fileno=handle), None
            return
        self.began = _surroundings()
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            # -P: files of the current directory are no modules, unless the user's program says so.
            self.process = subprocess.Popen(
                [sys.executable, "-P", *QUIET, "-m", "tilewright.tune.forkserver", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self.errors,
                env=knobs.environment_of_children() | ALONE,
            )

    def is_of_now(self) -> bool:
        """Whether it is there, and a fork of it is what a new process would be."""
        gone = select.poll()
        gone.register(self.socket, 0)  # of a hang-up one hears always
        return not gone.poll(0) and (self.began is None or self.began == _surroundings())

    def fork(self, connection: int, errors: int, environment: Mapping[str, str]) -> Process:
        ours, theirs = os.pipe()
        try:
            ours_of_them = {name: os.environ[name] for name in ALONE if name in os.environ}
            request = json.dumps(self.given | ours_of_them | dict(environment)).encode()
            socket.send_fds(self.socket, [request], [connection, errors, theirs, self.socket.fileno()])
        except OSError:  # it has ended, which the pipe's end tells
            pass
        finally:
            os.close(theirs)
        return Process(self, ours)

    def failure(self) -> tuple[int | None, str]:
        """The exit status of a server that is gone, and its last words."""
        if self.process is None:
            return None, ""
        try:
            self.process.wait(1.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        return self.process.returncode, last_line(self.errors)

    def close(self) -> None:
        """It ends when its forks have."""
        self.socket.close()


class Process:
    """A fork, as `subprocess.Popen` has processes."""

    def __init__(self, server: Server, pipe: int) -> None:
        self.server, self.pipe = server, pipe
        self.returncode: int | None = None
        self.last_words = ""  # of a server that did not come to fork
        self.lock = threading.Lock()
        self._pid: int | None = None

    @property
    def pid(self) -> int:
        """Waits for a server that still imports; 0: it never forked."""
        with self.lock:
            return self._number()

    def _number(self) -> int:
        if self._pid is None:
            word = os.read(self.pipe, WORD.size)
            if len(word) == WORD.size:
                (self._pid,) = WORD.unpack(word)
            else:
                self._pid = 0
                self.returncode, self.last_words = self.server.failure()
                self._end(self.returncode if self.returncode is not None else 1)
        return self._pid

    def _end(self, code: int) -> None:
        self.returncode = code
        os.close(self.pipe)  # the server may forget it

    def _heard(self, seconds: float) -> bool:
        watched = select.poll()
        watched.register(self.pipe, select.POLLIN)
        return bool(watched.poll(1000 * seconds))

    def poll(self) -> int | None:
        with self.lock:
            return self._polled(0.0)

    def _polled(self, seconds: float) -> int | None:
        if self.returncode is not None or not self._heard(seconds):
            return self.returncode
        if self._number() and self._heard(seconds):
            word = os.read(self.pipe, WORD.size)
            if len(word) == WORD.size:
                self._end(os.waitstatus_to_exitcode(*WORD.unpack(word)))
            else:  # the server was killed, and nobody hears how this one ends
                self._kill()
                self._end(-signal.SIGKILL)
        return self.returncode

    def wait(self, timeout: float) -> int:
        end = time.monotonic() + timeout
        while True:
            with self.lock:
                code = self._polled(min(0.05, max(0.0, end - time.monotonic())))
            if code is not None:
                return code
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired("a fork", timeout)

    def kill(self) -> None:
        with self.lock:
            if self._polled(0.0) is None and self._number() and self.returncode is None:
                self._kill()

    def _kill(self) -> None:
        try:
            os.kill(self._number(), signal.SIGKILL)
        except ProcessLookupError:
            return


def _surroundings() -> tuple[dict[str, str], str]:
    """What a new process has from this one."""
    try:
        folder = os.getcwd()
    except OSError:  # it was removed
        folder = ""
    return knobs.environment_of_children(), folder


_server: Server | None = None
_lock = threading.Lock()


def server() -> Server:
    """That of this process, which the first call starts: in the background, for who shall need it soon."""
    global _server
    with _lock:
        if _server is None or not _server.is_of_now():
            if _server is not None:
                _server.close()
            _server = Server()
        return _server


def last_line(file: IO[bytes]) -> str:
    """What a process has said last, of which a Python error is the most telling."""
    most = 2000
    file.seek(max(0, file.seek(0, os.SEEK_END) - most))
    lines = [line for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    return lines[-1].strip() if lines else ""


# --- the server -------------------------------------------------------------------------------------------------------


class _Forks:
    """What the server knows: the pipe of each fork, until it is told to forget it."""

    def __init__(self, requests: socket.socket) -> None:
        self.requests = requests
        self.pipes: dict[int, int | None] = {}  # by number; None: nobody wants to hear
        self.told: set[int] = set()
        self.woken, wake = os.pipe()
        os.set_blocking(self.woken, False)
        os.set_blocking(wake, False)
        self.wake = wake
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake)
        self.watched = select.poll()
        self.watched.register(requests, select.POLLIN)
        self.watched.register(self.woken, select.POLLIN)

    def serve(self) -> tuple[list[int], dict[str, str]] | None:
        """In the server: None, when nobody is left who could ask. In a fork: its files, and the variables that it was
        given."""
        while True:
            for handle, _ in self.watched.poll():
                if handle == self.woken:
                    os.read(self.woken, 4096)
                    self._tell()
                elif handle != self.requests.fileno():
                    self._forget(handle)
                else:
                    request, files, *_ = socket.recv_fds(self.requests, MOST_BYTES, 4)
                    if not request:
                        return None
                    if (pid := os.fork()) == 0:
                        self._leave()
                        given = json.loads(request)
                        os.environ.update(given)
                        return files, given
                    self._keep(pid, files)

    def _keep(self, pid: int, files: list[int]) -> None:
        connection, errors, pipe, socket_of_fork = files
        for handle in (connection, errors, socket_of_fork):
            os.close(handle)
        self.pipes[pid] = pipe
        self.watched.register(pipe, 0)  # of its other end's closing one hears always
        _say(pipe, pid)

    def _tell(self) -> None:
        """How forks have ended, to those who asked for them; their numbers are kept until those have heard."""
        for pid, pipe in list(self.pipes.items()):
            if pipe is None:
                if os.waitpid(pid, os.WNOHANG)[0]:
                    del self.pipes[pid]
                    self.told.discard(pid)
                continue
            ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is not None and pid not in self.told:
                self.told.add(pid)
                _say(pipe, ended.si_status << 8 if ended.si_code == os.CLD_EXITED else ended.si_status)

    def _forget(self, pipe: int) -> None:
        (pid,) = [pid for pid, its in self.pipes.items() if its == pipe]
        self.watched.unregister(pipe)
        os.close(pipe)
        self.pipes[pid] = None
        self._tell()

    def _leave(self) -> None:
        """A fork has none of the server's files."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self.requests.close()
        for handle in (self.woken, self.wake, *(pipe for pipe in self.pipes.values() if pipe is not None)):
            os.close(handle)


def _say(pipe: int, word: int) -> None:
    try:
        os.write(pipe, WORD.pack(word))
    except BrokenPipeError:
        return


def _main(handle: int) -> None:
    global _server
    # A terminal's comes to all of its processes; the parent says what ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    from ..sweep import station  # noqa: F401 - what forks need
    from . import worker

    for name in ALONE:
        os.environ.pop(name, None)
    fork = _Forks(socket.socket(fileno=handle)).serve()
    if fork is not None:
        (connection, errors, pipe, requests), given = fork
        os.dup2(errors, sys.stderr.fileno())
        for used in (errors, pipe):
            os.close(used)
        _server = Server(requests, given)
        worker.main(connection)
    os._exit(0)  # no clean-up of a context that may be lost


if __name__ == "__main__":
    from tilewright.tune.forkserver import _main as main  # the module that others import

    main(int(sys.argv[1]))
