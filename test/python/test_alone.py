"""Searches and sweeps of one host time in turns: a lock on the device, which ends with its process."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright import tile as ct
from tilewright import tune
from tilewright.tune import alone as module
from tilewright.tune.alone import alone, path_of

HOLDS = """
import sys
from tilewright.tune.alone import alone
with alone(None):
    print("has it", flush=True)
    sys.stdin.readline()
print("left it", flush=True)
sys.stdin.readline()
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return tmp_path


@pytest.fixture
def holder() -> Iterator[Any]:
    """A process that times something, until it gets a line."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", HOLDS]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None and process.stdout.readline() == "has it\n"
    yield process
    process.kill()
    process.communicate()


def is_free() -> bool:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MOST_SECONDS", 0.0)
        handle = module._opened(path_of(None))
        assert handle is not None
        try:
            return module._has(handle, module.HELD, 0.0)
        finally:
            os.close(handle)


def test_a_device_is_held_until_its_process_ends(holder: Any) -> None:
    assert not is_free()
    holder.stdin.write("\n")
    holder.stdin.flush()
    assert holder.stdout.readline() == "left it\n" and is_free()


def test_nobody_waits_for_a_process_that_was_killed(holder: Any) -> None:
    holder.kill()
    holder.wait()
    with alone(None):
        assert not is_free()
    assert is_free()


def test_a_search_times_when_the_device_is_free(holder: Any) -> None:
    @ct.kernel
    def double(X: Any, T: ct.Constant[int]) -> None:
        ct.store(X, index=(ct.bid(0),), tile=ct.load(X, index=(ct.bid(0),), shape=(T,)) * 2)

    x, found = np.ones(1024, np.float32), list[Any]()

    def search() -> None:
        space = {"T": (64, 128)}
        found.append(tune.search(double, (x, 64), space=space, grid=lambda X, T: 1024 // T, record_file=None))

    thread = threading.Thread(target=search)
    thread.start()
    thread.join(1.0)
    assert not found
    holder.stdin.write("\n")
    holder.stdin.flush()
    thread.join()
    assert len(found[0].measured()) == 2


def test_who_comes_back_at_once_is_behind_who_waits(holder: Any) -> None:
    order: list[str] = []
    waits = threading.Event()

    def wait() -> None:
        waits.set()
        with alone(None):
            order.append("who waited")

    def come_later() -> None:
        with alone(None):
            order.append("who came later")

    thread = threading.Thread(target=wait)
    thread.start()
    waits.wait()
    handle = module._opened(path_of(None))
    assert handle is not None
    while module._has(handle, module.NEXT, 0.0):  # until the thread has the place behind the holder
        module.lock_bytes(handle, module.fcntl.F_UNLCK, module.NEXT)
        time.sleep(0.001)
    os.close(handle)
    second = threading.Thread(target=come_later)
    second.start()
    holder.stdin.write("\n")
    holder.stdin.flush()
    thread.join()
    second.join()
    assert order == ["who waited", "who came later"]


@pytest.mark.parametrize("kind", ["link", "folder", "pipe", "nowhere"])
def test_what_cannot_be_locked_is_not_waited_for(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(path_of(None))
    if kind == "link":
        path.symlink_to(folder / "elsewhere")
    elif kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        monkeypatch.setattr(module, "path_of", lambda device: str(folder / "none" / "lock"))
    with alone(None), alone(None):
        pass
    assert not (folder / "elsewhere").exists()


def test_one_who_holds_it_for_ever_is_not_waited_for(holder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_SECONDS", 0.01)
    with alone(None) as waited:
        assert waited >= 0.01


def test_a_gpu_has_one_name_whatever_a_process_sees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewright._core.device_info", lambda device: {"uuid": "f0e1" if device == 1 else ""})
    assert path_of(1).endswith(f"tilewright-{os.getuid()}-gpu-f0e1.lock") and path_of(0).endswith("-gpu-0.lock")
