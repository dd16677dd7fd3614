"""A pool: workers that take tasks from a common source, wherever they are (workers.py, cluster.py)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from ..errors import TileError
from ..tune.worker import Worker
from .records import Record
from .shapes import Shape
from .station import Known, Task


class GoneError(TileError):
    """No worker is left, or the scheduler is gone."""


class Pool(Protocol):
    """Workers that take tasks from a common source. `unfit`: those that take no more of them, and why."""

    count: int
    unfit: dict[str, str]

    def describe(self, shape: Shape) -> Record:
        """What records of the shape have in common, by the first worker that has opened its device for it; the others
        do so meanwhile."""

    def ask(self, method: str, *arguments: Any) -> Any:
        """A call to any one worker."""

    def ask_all(self, method: str, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Calls that the workers share."""

    def run(
        self,
        source: Callable[[], Task | None],
        found: Callable[[Task, Record | str], None],
        begins: Callable[[Task], bool],
        ahead: int | None = None,
        known: Sequence[Known] = (),
    ) -> None:
        """Measures what `source` gives until that is None. `begins` hears of the next one when a worker is asked for
        more (of a cluster, the first that has not ended), and says whether there is time for it; `found` hears what
        came of each: a record, or why none. A worker takes at most `ahead` tasks beside the one that it measures; None:
        as many as it compiles at a time. What is `known`, which grows meanwhile, is not measured again."""

    def stop(self) -> None:
        """Nothing is told any more, and `run` ends soon, in whatever thread it is."""

    def close(self) -> None: ...


def side_by_side(work: Callable[[Any], None], items: Iterable[Any], stop: Callable[[], None]) -> list[BaseException]:
    """Does the work on each of the items, in a thread of its own; what went wrong, in order of time. `stop` has all of
    them end when this thread is interrupted."""
    problems: list[BaseException] = []

    def one(item: Any) -> None:
        try:
            work(item)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=one, args=(item,), daemon=True) for item in items]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            while thread.is_alive():
                thread.join(0.2)  # Ctrl-C comes through
    except BaseException:
        stop()
        for thread in threads:
            thread.join(2 * Worker.STOP_SECONDS)
        raise
    return problems
