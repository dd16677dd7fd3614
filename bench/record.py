"""One run of a benchmark as a file of JSON lines: what was measured on, then one line a figure.

bench/results/2026-01-31-nvidia-h200-gpu.jsonl
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"


def cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def versions(*packages: str) -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def commit() -> str:
    """The commit that was measured, with + where the tree had changes; TILEWRIGHT_COMMIT names that of a bare copy."""
    quiet = {"cwd": ROOT, "text": True, "stderr": subprocess.DEVNULL}
    try:
        name = subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], **quiet).strip()
        changed = subprocess.check_output(["git", "status", "--porcelain", "-uno"], **quiet).strip()
    except (OSError, subprocess.CalledProcessError):
        return os.environ.get("TILEWRIGHT_COMMIT", "unknown")
    return name + ("+" if changed else "")


def clocks() -> dict[str, Any]:
    """Clocks, power and temperature of GPU 0 as nvidia-smi tells them; empty where there is none."""
    if shutil.which("nvidia-smi") is None:
        return {}
    names = ["clocks.sm", "clocks.mem", "power.draw", "temperature.gpu"]
    command = ["nvidia-smi", "-i", "0", f"--query-gpu={','.join(names)}", "--format=csv,noheader,nounits"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return {}
    keys = ["sm_mhz", "mem_mhz", "watt", "celsius"]
    return {
        key: float(text) for key, text in zip(keys, done.stdout.split(","), strict=True) if text.strip()[0].isdigit()
    }


class Median(float):
    """The median of times; `spread` is how far their quartiles lie apart, as a part of it."""

    spread: float

    def __new__(cls, times: list[float]) -> Median:
        made = super().__new__(cls, statistics.median(times))
        low, _, high = statistics.quantiles(times, n=4) if len(times) > 1 else (made, made, made)
        made.spread = (high - low) / made if made else 0.0
        return made


class Results:
    """Prints each figure as it comes and keeps it in a file."""

    def __init__(self, what: str, device: str, path: Path | None = None, **about: Any) -> None:
        date = datetime.date.today().isoformat()
        slug = re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-")
        self.path = path or RESULTS / f"{date}-{slug}-{what}.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text("")
        self.add(what=what, date=date, device=device, commit=commit(), **about)

    def add(self, **row: Any) -> None:
        """A figure; beside a median of times stands their spread."""
        for value in [value for value in row.values() if isinstance(value, Median)]:
            row["spread"] = value.spread
        rounded = {key: float(f"{value:.5g}") if isinstance(value, float) else value for key, value in row.items()}
        with self.path.open("a") as file:
            file.write(json.dumps(rounded) + "\n")
        print(json.dumps(rounded), flush=True)


def interleave(contenders: dict[str, Callable[[], float]], rounds: int) -> dict[str, Median]:
    """Median of each contender's own measure, taken in turns so that drifts of the machine hit all alike."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, measure in contenders.items():
            times[name].append(measure())
    return {name: Median(values) for name, values in times.items()}
