"""NVTX ranges: what is pushed and popped, by which library, and that nothing is where nobody asked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tilewright import knobs

PROGRAM = """
import numpy as np
from tilewright import tile as ct

@ct.kernel
def twice(X):
    ct.store(X, (0,), ct.load(X, (0,), (4,)) * 2)

x = np.ones(4, np.float32)
ct.launch(None, 1, twice, (x,))
ct.launch(None, 1, twice, (x,))
try:
    ct.launch(None, 1, twice, (7,))
except Exception as error:
    print(type(error).__name__)
assert x[0] == 4
"""
LIBRARY = "def push_range(name):\n    print('push', name)\ndef pop_range():\n    print('pop')\n"


def run(folder: Path, asked: str, **more: str) -> subprocess.CompletedProcess[str]:
    program = folder / "program.py"
    program.write_text(PROGRAM)
    environment = knobs.environment_of_children()
    environment |= {"PYTHONPATH": f"{folder}:{environment['PYTHONPATH']}", "TILEWRIGHT_NVTX": asked, **more}
    return subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True, check=True)


def test_launches_and_compilations_are_ranges(tmp_path: Path) -> None:
    """Nested as they are, and ended after an error, too."""
    (tmp_path / "nvtx.py").write_text(LIBRARY)
    lines = run(tmp_path, "1").stdout.splitlines()
    first = ["push twice", "push compile twice for cpu", "pop", "pop"]
    assert lines[:6] == [*first, "push twice", "pop"]
    assert lines[6] == "push twice" and lines[-2:] == ["pop", "TileTypeError"]
    assert sum(line.startswith("push") for line in lines) == lines.count("pop")


@pytest.mark.parametrize("asked", ["0", ""])
def test_without_being_asked_there_are_none(asked: str, tmp_path: Path) -> None:
    (tmp_path / "nvtx.py").write_text(LIBRARY)
    assert run(tmp_path, asked).stdout == "TileTypeError\n"


def test_without_a_library_one_warning(tmp_path: Path) -> None:
    (tmp_path / "nvtx.py").write_text("raise ImportError")
    done = run(tmp_path, "1", LD_LIBRARY_PATH="")
    assert done.stdout == "TileTypeError\n"
    assert done.stderr.count("pip install nvtx") <= 1
