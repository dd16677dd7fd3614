"""cuTile's search: every configuration of a list, each with a grid, arguments and hints of its own.

Each is measured as `search` measures a kernel as given; `search` itself has a cost model, compares results and stops
early. Configurations are compiled side by side and then measured one after the other, with nothing beside them. So
`args_fn` is asked for several ahead, as long as they have the arrays of the first: new ones might be more than fits.
"""

from __future__ import annotations

import dataclasses
import html
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, TypeVar

from ..errors import TileError
from ..kernel import kernel as tile_kernel
from .progress import Progress
from .search import WARM_UP_SECONDS, Search
from .space import Problem
from .statistics import Measurement

T = TypeVar("T")  # a configuration

BUDGET_SECONDS = 2.0  # for measuring a configuration


@dataclasses.dataclass(frozen=True, kw_only=True)
class TuningResult(Generic[T]):
    """What was measured of each configuration, in their order; `failures` has (configuration, exception, text)."""

    best: Measurement
    successes: Sequence[Measurement]
    failures: Sequence[tuple[Any, type[BaseException], str]]

    def summary(self, *, top_k: int = 10, bottom_k: int = 2) -> str:
        """A table: the quickest, the slowest, and the first that failed."""
        ranked = sorted(self.successes, key=lambda m: m.mean_us)
        wide = max(len(str(m.config)) for m in ranked)
        lines = [
            f"{'*' if m is self.best else ' '} {m.config!s:{wide}}: {m.mean_us:.1f}±{m.error_margin_us:.1f} us "
            f"({m.num_samples} samples)"
            for m in ranked
        ]
        left_out = len(lines) - top_k - bottom_k
        if left_out > 1:
            lines[top_k : top_k + left_out] = [f"    ... {left_out} more not shown"]
        failed = [f"    {c}: {kind.__name__}: {text.splitlines()[0]}" for c, kind, text in self.failures[:top_k]]
        head = f"{len(ranked)} succeeded, {len(self.failures)} failed"
        return "\n".join([head, *lines, *(["  failed:", *failed] if failed else [])])

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.summary())}</pre>"


def exhaustive_search(
    search_space: Sequence[Any],
    stream: Any,
    grid_fn: Callable[[Any], Any],
    kernel: Any,
    args_fn: Callable[[Any], tuple[Any, ...]],
    hints_fn: Callable[[Any], dict[str, Any]] | None = None,
    *,
    quiet: bool = False,
    single_run_timeout_sec: float | None = None,
    flush_l2: bool = True,
) -> TuningResult[Any]:
    """Measure every configuration of the space: `grid_fn`, `args_fn` and `hints_fn` make a launch of it.

    kernel: the kernel, or a function that makes one of a configuration.
    stream: the launches are on one of the search's own.
    quiet: print nothing; else a bar on a terminal, and the result.
    single_run_timeout_sec: run each in a process of its own, which ends where a launch takes longer.
    flush_l2: each launch finds the GPU's L2 cache empty; False: what the launch before has left there.

    What a configuration raises drops it; ValueError where none is left.
    """
    if len(search_space) == 0:
        raise ValueError("Search space is empty.")

    def launch_of(config: Any) -> _Launch:
        made = kernel if isinstance(kernel, tile_kernel) else kernel(config)
        made = made.replace_hints(**(hints_fn(config) if hints_fn is not None else {}))
        try:
            problem = Problem(made, args_fn(config), grid_fn(config))
            return _Launch(config, Search(problem, None, single_run_timeout_sec or 60.0, 60.0, Progress(False)))
        except TileError as error:
            return _Launch(config, error)

    successes: list[Measurement] = []
    failures: list[tuple[Any, type[BaseException], str]] = []
    isolate = single_run_timeout_sec is not None
    with Progress(False if quiet else None) as progress:
        compiled, measured = (progress.step(what, len(search_space)) for what in ("compile", "measure"))
        for launches in _together(map(launch_of, search_space)):
            _prepare(launches, compiled)
            is_cold = True
            for one in launches:
                try:
                    found = one.measured(isolate, flush_l2, WARM_UP_SECONDS if is_cold else 0.0)
                    successes.append(dataclasses.replace(found, config=one.config))
                    is_cold = isolate  # in a process of its own
                except TileError as error:
                    failures.append((one.config, type(error), str(error)))
                measured()
    if not successes:
        config, kind, text = failures[0]
        raise ValueError(f"No valid config found in search space: {config}: {kind.__name__}: {text}")
    best = min(successes, key=lambda m: m.median)
    result: TuningResult[Any] = TuningResult(best=best, successes=tuple(successes), failures=tuple(failures))
    if not quiet:
        print(result)
    return result


class _Launch:
    """Of a configuration; its search, or why there is none."""

    def __init__(self, config: Any, search: Search | TileError) -> None:
        self.config, self.search = config, search

    def prepare(self) -> None:
        if isinstance(self.search, Search):
            self.search.prepare([], None, None)

    def measured(self, isolate: bool, flush_l2: bool, warm_up_seconds: float) -> Measurement:
        search, self.search = self.search, TileError("was measured")  # whose arrays are of no use any more
        if not isinstance(search, Search):
            raise search
        search.flush_l2 = flush_l2
        found = search.measure(BUDGET_SECONDS, isolate, False, warm_up_seconds)
        assert found.best.measurement is not None, "else the search had raised"
        return found.best.measurement

    def arrays(self) -> set[tuple[int, int]]:
        return set(self.search.layout.segments) if isinstance(self.search, Search) else set()


def _together(launches: Iterable[_Launch]) -> Iterator[list[_Launch]]:
    """Those one behind the other whose arrays the first one has."""
    some: list[_Launch] = []
    for one in launches:
        if some and not one.arrays() <= some[0].arrays():
            yield some
            some = []
        some.append(one)
    yield some


def _prepare(launches: list[_Launch], done: Callable[[], None]) -> None:
    """Compiles them side by side, in threads: the driver links several kernels at a time."""
    threads = ThreadPoolExecutor(max(1, min(len(launches), len(os.sched_getaffinity(0)))))
    try:
        for _ in threads.map(_Launch.prepare, launches):
            done()
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
