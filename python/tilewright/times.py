"""How long each step of a compilation takes: `TILEWRIGHT_TIMES=1`, `tilewright compile --times`, bench/compile.py."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator


class Times:
    """Milliseconds of each step of one compilation."""

    def __init__(self, name: str, target: str) -> None:
        self.title = f"{name} for {target}"
        self.milliseconds: dict[str, float] = {}

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[None]:
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.milliseconds[name] = self.milliseconds.get(name, 0.0) + 1e3 * (time.perf_counter() - begin)

    def __str__(self) -> str:
        steps = ", ".join(f"{step} {ms:.1f}" for step, ms in self.milliseconds.items())
        return f"{self.title}: {sum(self.milliseconds.values()):.1f} ms ({steps})"
