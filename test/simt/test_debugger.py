"""Kernels of threads under a debugger: `kernel.interpret` in pdb."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """\
import numpy as np
from cuda import device

@device.func
def square(v):
    return v * v

@device.kernel
def k(x):
    i = device.tid(1)
    if i < x.size:
        v = device.float32x2(x[i], i)
        v.y += 1
        x[i] = square(v.x) + v.y

x = np.arange(3, dtype=np.float32)
k.interpret((x,), 2, 2)
print(x)
"""


def test_breakpoints_hold(tmp_path: Path) -> None:
    """A thread stops at its line, in the kernel and in what it calls, and shows its values."""
    (tmp_path / "program.py").write_text(PROGRAM)
    commands = [
        "b program.py:13",
        "b program.py:6",
        "c",
        "p i, v",
        "c",
        "p v",
        "up",
        "p v.y",
        "c",
        "p int(i)",
        "cl 1",
        "cl 2",
        "c",
        "q",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pdb", "program.py"],
        input="\n".join(commands) + "\n",
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
    )
    told = done.stdout
    assert "(int32(0), float32x2(x=float32(0.0), y=float32(0.0)))" in told, told
    assert "return v * v" in told and "float32(1.0)" in told and "\n(Pdb) 1\n" in told.replace("-> ", ""), told
    assert "[1. 3. 7.]" in told, told
