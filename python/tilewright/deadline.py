"""How long a compilation may take: `ct.compiler_timeout`, or TILEWRIGHT_COMPILER_TIMEOUT for a whole program.

A capture looks at the clock at each statement. The stages after it run in a process of their own, which can be ended;
without a limit they run here. `python -m tilewright.deadline TARGET NAME PLAN` is that process: it reads a module and
writes an image.
"""

from __future__ import annotations

import contextlib
import math
import subprocess
import sys
import time
from collections.abc import Iterator
from contextvars import ContextVar

from . import knobs
from .errors import TileCompilationError, TileCompilerTimeoutError, TileTypeError, TileValueError

_limit: ContextVar[float | None] = ContextVar("tilewright_compiler_timeout", default=None)  # seconds
_end: ContextVar[tuple[float, float, str] | None] = ContextVar("tilewright_deadline", default=None)

_MODULE = ["-P", "-m", "tilewright.deadline"]
REFUSED = 3  # exit status of the process where the compiler refuses the module


@contextlib.contextmanager
def compiler_timeout(timeout_sec: float) -> Iterator[None]:
    """`with ct.compiler_timeout(10): ct.launch(…)` ends compilations in this thread that take longer than so many
    seconds, with TileCompilerTimeoutError. What the disk cache has takes no time."""
    if isinstance(timeout_sec, bool) or not isinstance(timeout_sec, int | float):
        raise TileTypeError(f"ct.compiler_timeout takes seconds, found {timeout_sec!r}")
    if not 0 < timeout_sec < math.inf:
        raise TileValueError(f"ct.compiler_timeout takes a positive number of seconds, found {timeout_sec}")
    token = _limit.set(float(timeout_sec))
    try:
        yield
    finally:
        _limit.reset(token)


@contextlib.contextmanager
def running(kernel: str) -> Iterator[None]:
    """Around the compilation of a kernel; one that another asks for is part of it."""
    limit = _limit.get() or knobs.compiler_timeout()
    if limit is None or _end.get() is not None:
        yield
        return
    token = _end.set((time.monotonic() + limit, limit, kernel))
    try:
        yield
    finally:
        _end.reset(token)


def is_set() -> bool:
    return _end.get() is not None


def check() -> None:
    end = _end.get()
    if end is not None and time.monotonic() > end[0]:
        raise _error(end)


def _error(end: tuple[float, float, str]) -> TileCompilerTimeoutError:
    _, limit, kernel = end
    return TileCompilerTimeoutError(
        f"kernel {kernel} takes longer than {limit:g} s to compile; allow more, or write it with smaller tiles and "
        "fewer unrolled loops"
    )


def build(text: str, target: str, name: str, plan: int) -> bytes | None:
    """The packed image of a module, made by another process; None where the compiler refuses the module."""
    end = _end.get()
    assert end is not None, "asked by who has looked"
    try:
        done = subprocess.run(
            [sys.executable, *_MODULE, target, name, str(plan)],
            input=text.encode(),
            capture_output=True,
            timeout=max(0.0, end[0] - time.monotonic()),
            env=knobs.environment_of_children(),
        )
    except subprocess.TimeoutExpired:
        raise _error(end) from None
    if done.returncode in (0, REFUSED):
        return done.stdout if done.returncode == 0 else None
    last = (done.stderr.decode(errors="replace").strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    raise TileCompilationError(f"kernel {name}: the compiler's process failed: {last}")


def _main() -> int:
    from . import _core, compile
    from .errors import TileError
    from .times import Times

    target, name, plan = sys.argv[1:]
    try:
        module = _core.parse(sys.stdin.read())
        image = compile.build(module, target, name, Times(name, target), plan=int(plan))
    except TileError:
        return REFUSED
    sys.stdout.buffer.write(image.pack())
    return 0


if __name__ == "__main__":
    sys.exit(_main())
