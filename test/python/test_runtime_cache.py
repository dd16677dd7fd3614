"""The disk cache as a user meets it: a second process compiles nothing, and a bad folder only costs time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tilewright import _core

PROGRAM = """
import json, sys
import numpy as np
from tilewright import _core, compile as compiler, tile as ct

built = []
build = compiler.build
compiler.build = lambda *args: (built.append(1), build(*args))[1]

@ct.kernel
def double(A, B, T: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(B, index=(i,), tile=ct.load(A, index=(i,), shape=(T,)) * 2)

a = np.arange(100, dtype=np.float32)
b = np.zeros_like(a)
ct.launch(None, (ct.cdiv(100, 32),), double, (a, b, 32))
assert np.array_equal(b, 2 * a)
print(json.dumps({"built": len(built), **_core.cache_info()}))
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("program") / "double.py"
    path.write_text(PROGRAM)
    return path


def run(program: Path, folder: Path | str, **more: str) -> dict[str, Any]:
    environment = os.environ | {"TILEWRIGHT_CACHE_DIR": str(folder)} | more
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    environment.pop("TILEWRIGHT_NO_CACHE", None)
    done = subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout.splitlines()[-1])


def test_a_second_process_compiles_nothing(program: Path, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "cache"
    first, second = run(program, folder), run(program, folder)
    assert (first["built"], second["built"]) == (1, 0)
    assert second["path"] == str(folder) and second["entries"] == 1 and second["problem"] == ""
    assert (folder.stat().st_mode & 0o777) == 0o700


def test_damaged_entries_are_made_again(program: Path, tmp_path: Path) -> None:
    run(program, tmp_path)
    (entry,) = tmp_path.glob("*.twc")
    good = entry.read_bytes()
    for bad in (b"", good[:50], good[:-1], good[:100] + b"x" + good[101:], b"\0" * len(good)):
        entry.write_bytes(bad)
        assert run(program, tmp_path)["built"] == 1
        assert entry.read_bytes() == good


@pytest.mark.parametrize(
    ("folder", "problem"),
    [("/proc/no/such/folder", ""), ("/dev/null", "the folder cannot be opened")],
)
def test_a_folder_that_cannot_be(program: Path, folder: str, problem: str) -> None:
    for _ in range(2):
        state = run(program, folder)
        assert state["built"] == 1 and state["problem"] == problem


def test_a_folder_that_others_may_write_to(program: Path, tmp_path: Path) -> None:
    run(program, tmp_path)
    tmp_path.chmod(0o777)
    state = run(program, tmp_path)
    assert state["built"] == 1
    assert state["problem"] == "the folder belongs to another user or is writable by others: chmod go-w it"


def test_switched_off(program: Path, tmp_path: Path) -> None:
    state = run(program, tmp_path, TILEWRIGHT_CACHE_SIZE="0")
    assert state["built"] == 1 and not list(tmp_path.iterdir())
    assert state["problem"] == "switched off by TILEWRIGHT_CACHE_SIZE=0"
    assert run(program, tmp_path, TILEWRIGHT_NO_CACHE="1")["built"] == 1


def test_a_full_disk(program: Path, tmp_path: Path) -> None:
    """No file may grow past 100 bytes: entries cannot be written, kernels still run."""
    script = (
        "import resource, runpy, signal, sys\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))\n"
        f"runpy.run_path({str(program)!r})\n"
    )
    limited = tmp_path / "limited.py"
    limited.write_text(script)
    cache = tmp_path / "cache"
    assert run(limited, cache)["built"] == 1
    assert not list(cache.iterdir())
    assert run(limited, cache)["built"] == 1


def test_many_processes_at_once(program: Path, tmp_path: Path) -> None:
    environment = os.environ | {"TILEWRIGHT_CACHE_DIR": str(tmp_path)}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    processes = [
        subprocess.Popen([sys.executable, program], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    for process in processes:
        process.communicate(timeout=120)
        assert process.returncode == 0
    assert [path.suffix for path in tmp_path.iterdir()] == [".twc"]


def test_keys_and_blobs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    key = _core.hash128("text")
    assert key == _core.hash128(b"text") and len(key) == 16 and key != _core.hash128("texu")
    assert _core.cache_get(key) is None
    assert _core.cache_put(key, b"blob\0") and _core.cache_get(key) == b"blob\0"
    assert _core.cache_put(key, b"other") and _core.cache_get(key) == b"other"
    _core.cache_clear()
    assert _core.cache_get(key) is None
    with pytest.raises(ValueError, match="a key has 16 bytes"):
        _core.cache_get(b"short")


def test_tests_have_a_folder_of_their_own() -> None:
    """What the stand-in driver's kernels leave is not among what the user's programs find."""
    usual = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tilewright"
    assert Path(_core.cache_info()["path"]) == Path(os.environ["TILEWRIGHT_CACHE_DIR"]) != usual
