"""The processes of searches and sweeps as forks of one server: how they begin and end, and what of it who hears."""

from __future__ import annotations

import os
import signal
import socket
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tilewright.tune.forkserver import Process, Server, server
from tilewright.tune.worker import LostError, Worker

SECONDS = 120.0  # that something may take on a machine that is busy


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def is_there(pid: int) -> bool:
    """Also one that has ended, until its parent has heard of it."""
    return Path(f"/proc/{pid}").exists()


def comes(about: Callable[[], bool]) -> bool:
    end = time.monotonic() + SECONDS
    while not about():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def test_workers_are_forks_of_one_process_without_threads() -> None:
    first, second = Worker("assembler"), Worker("assembler")
    try:
        started = server().process
        assert started is not None and parent_of(first.process.pid) == parent_of(second.process.pid) == started.pid
        assert len(os.listdir(f"/proc/{started.pid}/task")) == 1
        assert first.process.poll() is None
    finally:
        for worker in (first, second):
            worker.close()
    assert first.process.returncode == second.process.returncode == 0


def test_a_fork_asks_the_server_that_it_comes_from() -> None:
    """Here this process stands for one: it has the socket and nothing else."""
    its = Server(os.dup(server().socket.fileno()))
    ours, theirs = socket.socketpair()
    with ours, theirs, tempfile.TemporaryFile() as errors:
        fork = its.fork(theirs.fileno(), errors.fileno(), {})
        started = server().process
        assert started is not None and parent_of(fork.pid) == started.pid and its.is_of_now()
        fork.kill()
        assert fork.wait(SECONDS) == -signal.SIGKILL
    its.close()


def test_what_a_new_process_would_find_changed_takes_a_new_server(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = server()
    assert server() is first
    monkeypatch.setenv("TILEWRIGHT_TUNED", "elsewhere")
    second = server()
    assert second is not first
    monkeypatch.chdir(tmp_path)
    third = server()
    assert third is not second
    monkeypatch.syspath_prepend(tmp_path)
    fourth = server()
    assert fourth is not third and fourth is server()
    for one in (first, second, third):  # they end, as nobody can ask them any more
        assert one.process is not None and one.process.wait(SECONDS) == 0


def test_the_number_of_a_fork_is_its_own_until_its_end_was_heard() -> None:
    """Else a signal could reach another process that has it by then."""
    worker = Worker("assembler")
    pid = worker.process.pid
    os.kill(pid, signal.SIGTERM)
    heard: list[int] = []
    assert comes(lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z")
    for other in (Worker("assembler"), Worker("assembler")):  # whose end has the server look at all of them again
        other.close()
        heard.append(other.process.wait(SECONDS))
    assert is_there(pid) and worker.process.wait(SECONDS) == -signal.SIGTERM and heard == [0, 0]
    assert comes(lambda: not is_there(pid))
    worker.kill()


def test_a_server_that_was_killed_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = Worker("assembler")
    started = server().process
    assert started is not None
    started.kill()
    started.wait(SECONDS)
    assert worker.call("assemble", b"ret;", "sm_12345", timeout=SECONDS) == b"ret;"  # forks live on
    worker.close()
    assert worker.process.returncode == -signal.SIGKILL and comes(lambda: not is_there(worker.process.pid))
    again = Worker("assembler")
    assert parent_of(again.process.pid) != started.pid
    again.close()


def test_a_server_that_does_not_come_to_fork_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise RuntimeError('no room')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(LostError, match=r"ended its process \(exit status 1\): RuntimeError: no room"):
        Worker("assembler")
    worker = Worker()
    assert worker.process.pid == 0 and worker.process.poll() == 1
    worker.kill()


def test_many_forks_at_once() -> None:
    files = [socket.socketpair() for _ in range(24)]
    with tempfile.TemporaryFile() as errors:
        forks: list[Process] = [server().fork(theirs.fileno(), errors.fileno(), {}) for _, theirs in files]
        for ours, theirs in files:
            theirs.close()
            ours.close()
        assert [fork.wait(SECONDS) for fork in forks] == [0] * len(forks)
    assert len({fork.pid for fork in forks}) == len(forks)


def test_variables_are_of_one_fork_alone() -> None:
    worker = Worker(environment={"TILEWRIGHT_CUDA_DRIVER": "/nowhere/libcuda.so"})
    other = Worker(environment={"TILEWRIGHT_CUDA_DRIVER": "/elsewhere/libcuda.so"})
    for one, name in ((worker, "nowhere"), (other, "elsewhere")):
        with pytest.raises(Exception, match=f"/{name}/libcuda.so could not be opened"):
            one.call("open", 0, timeout=SECONDS)
        one.close()
