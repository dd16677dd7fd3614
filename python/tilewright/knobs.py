"""Environment variables, each read in one place.

    TILEWRIGHT_INTERPRET=1     ct.launch runs the reference execution
    TILEWRIGHT_DUMP=DIR        write each stage of each compilation to a file
    TILEWRIGHT_DUMP_AFTER=PASS,…  and after these passes, or after `all` of them
    TILEWRIGHT_VERIFY=1        MLIR's verifier looks at what each pass leaves: slow, for those who change passes
    TILEWRIGHT_LOG_IR=1        print the tile IR of each kernel that is compiled to stderr
    TILEWRIGHT_NO_CACHE=1      neither read nor write the disk cache
    TILEWRIGHT_RACE_CHECK=1    GPU code in which nothing overlaps: slow; another result is a race in the usual code
    TILEWRIGHT_CHECK=1         launches check every access, as with check=True (docs/checking.md)
    TILEWRIGHT_LINE_INFO=1     PTX with the lines of Python that instructions come from, for profilers and debuggers
    TILEWRIGHT_NVTX=1          launches and compilations are NVTX ranges in a profiler's timeline (ranges.py)
    TILEWRIGHT_TIMES=1         tell on stderr how long each step of each compilation took (the cache is not read)
    TILEWRIGHT_COMPILER_TIMEOUT=S  end a compilation after so many seconds (deadline.py)
    TILEWRIGHT_VARIANTS=N      how many compiled variants of a kernel are kept (default: 512; 0: all)
    TILEWRIGHT_TUNED=FILE      where tilewright.tune keeps what it found (default: tuned.jsonl in the cache's folder)

The runtime in C reads its own: TILEWRIGHT_CACHE_DIR, TILEWRIGHT_CACHE_SIZE, TILEWRIGHT_NUM_THREADS,
TILEWRIGHT_CUDA_DRIVER.
"""

from __future__ import annotations

import os
import sys

from .errors import TileValueError


def _flag(name: str) -> bool:
    return os.environ.get(name, "0") not in ("", "0")


def interpret() -> bool:
    return _flag("TILEWRIGHT_INTERPRET")


def dump_folder() -> str | None:
    return os.environ.get("TILEWRIGHT_DUMP") or None


def dump_after() -> list[str]:
    return [name for name in os.environ.get("TILEWRIGHT_DUMP_AFTER", "").split(",") if name]


def verify() -> bool:
    return _flag("TILEWRIGHT_VERIFY")


def log_ir() -> bool:
    return _flag("TILEWRIGHT_LOG_IR")


def cache() -> bool:
    return not _flag("TILEWRIGHT_NO_CACHE")


def race_check() -> bool:
    return _flag("TILEWRIGHT_RACE_CHECK")


def check() -> bool:
    return _flag("TILEWRIGHT_CHECK")


def line_info() -> bool:
    return _flag("TILEWRIGHT_LINE_INFO")


def nvtx() -> bool:
    return _flag("TILEWRIGHT_NVTX")


def times() -> bool:
    return _flag("TILEWRIGHT_TIMES")


def compiler_timeout() -> float | None:
    text = os.environ.get("TILEWRIGHT_COMPILER_TIMEOUT")
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise TileValueError(f"TILEWRIGHT_COMPILER_TIMEOUT is a positive number of seconds, found {text!r}")
    return seconds


def environment_of_children() -> dict[str, str]:
    """For a Python that imports what this one does."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}


def most_variants() -> int:
    text = os.environ.get("TILEWRIGHT_VARIANTS") or "512"
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise TileValueError(f"TILEWRIGHT_VARIANTS is how many variants a kernel keeps, 0 for all, found {text!r}")
    return int(text)


def tuned_file() -> str | None:
    return os.environ.get("TILEWRIGHT_TUNED") or None
