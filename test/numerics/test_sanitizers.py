"""The kernels of the zoo under compute-sanitizer: no access out of bounds, no hazard, no bad barrier."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from harness import Backends

SANITIZER = shutil.which("compute-sanitizer")
TESTS = Path(__file__).with_name("test_kernels.py")


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["memcheck", "racecheck", "synccheck"])
def test_clean(backends: Backends, tool: str) -> None:
    if "cuda" not in backends.names or SANITIZER is None:
        pytest.skip("needs a GPU and compute-sanitizer")
    command = [SANITIZER, "--tool", tool, "--error-exitcode", "9", sys.executable, "-m", "pytest", "-q", "-n", "0"]
    done = subprocess.run([*command, str(TESTS), "--backend=cuda"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
