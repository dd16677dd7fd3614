"""cuTile's search: every configuration of a list, each with a grid, arguments and hints of its own.

Each is measured as `search` measures a kernel as given; `search` itself has a cost model, compiles in parallel,
compares results and stops early.
"""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from ..errors import TileError
from ..kernel import kernel as tile_kernel
from .progress import Progress
from .search import search
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
    successes: list[Measurement] = []
    failures: list[tuple[Any, type[BaseException], str]] = []
    with Progress(False if quiet else None) as progress:
        step = progress.step("measure", len(search_space))
        for config in search_space:
            made = kernel if isinstance(kernel, tile_kernel) else kernel(config)
            made = made.replace_hints(**(hints_fn(config) if hints_fn is not None else {}))
            try:
                measured = _measure(made, args_fn(config), grid_fn(config), single_run_timeout_sec, flush_l2)
                successes.append(dataclasses.replace(measured, config=config))
            except TileError as error:
                failures.append((config, type(error), str(error)))
            step()
    if not successes:
        config, kind, text = failures[0]
        raise ValueError(f"No valid config found in search space: {config}: {kind.__name__}: {text}")
    best = min(successes, key=lambda m: m.median)
    result: TuningResult[Any] = TuningResult(best=best, successes=tuple(successes), failures=tuple(failures))
    if not quiet:
        print(result)
    return result


def _measure(
    kernel: tile_kernel, args: tuple[Any, ...], grid: Any, timeout: float | None, flush_l2: bool
) -> Measurement:
    found = search(
        kernel,
        args,
        space=[],
        grid=grid,
        budget=BUDGET_SECONDS,
        timeout=timeout or 60.0,
        isolate=timeout is not None,
        flush_l2=flush_l2,
        record_file=False,
        progress=False,
    )
    assert found.best.measurement is not None, "else the search had raised"
    return found.best.measurement
