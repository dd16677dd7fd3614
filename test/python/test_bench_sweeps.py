"""bench/sweeps.py where there is no GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def test_what_needs_no_gpu_is_measured_without_one(tmp_path: Path) -> None:
    out, driver = tmp_path / "out.jsonl", str(tmp_path / "no-driver.so")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "TILEWRIGHT_CUDA_DRIVER": driver}
    command = [
        sys.executable,
        str(ROOT / "bench/sweeps.py"),
        "--parts",
        "lookup",
        "--records",
        str(tmp_path / "records"),
    ]
    done = subprocess.run([*command, "--out", str(out)], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    first, row = (json.loads(line) for line in out.read_text().splitlines())
    assert first["what"] == "sweeps" and row["bench"] == "lookup" and row["plain ns"] > 0 and row["tuned ns"] > 0
