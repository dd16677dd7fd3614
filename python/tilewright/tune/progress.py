"""A progress bar on a terminal, by rich where it is installed; silence elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


class Progress:
    """Shows how far the steps of a search are: `step = progress.step("compile", 12)`, then `step()` twelve times."""

    def __init__(self, wanted: bool | None) -> None:
        self.bar: Any = None
        if wanted or (wanted is None and sys.stderr.isatty()):
            self.bar = _make_bar()

    def __enter__(self) -> Progress:
        if self.bar is not None:
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def step(self, what: str, total: int) -> Callable[[], None]:
        if self.bar is None:
            return lambda: None
        task = self.bar.add_task(what, total=total)
        return lambda: self.bar.advance(task)


def _make_bar() -> Any:
    try:
        from rich import progress
        from rich.console import Console
    except ImportError:
        return None
    columns = (
        progress.TextColumn("{task.description:8}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
    )
    return progress.Progress(*columns, console=Console(stderr=True), transient=True)
