"""Samplers: which candidates of a space are measured, and in which order.

model       all, or the best of them, in the order in which the cost model expects them
exhaustive  all, in the order in which they are written
random      as many as --trials says, each axis drawn by itself
optuna      a tree-structured Parzen estimator (Optuna), which learns from each trial
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Protocol

from ..errors import TileError
from .axes import Axis, Row, Space, key_of

NAMES = ("model", "exhaustive", "random", "optuna")
MOST_RANKED = 2000  # of a larger space so many are drawn
RANDOM_TRIALS = 100

Rank = Callable[[list[Row]], list[float | None]]


class Sampler(Protocol):
    ahead: int | None  # how many a worker may take before one's outcome is told; None: any

    def next(self) -> tuple[Row, int] | None:
        """A candidate and its rank by the model, 0 without one; None when there are no more."""

    def told(self, row: Row, seconds: float | None) -> None:
        """What came of it; None: it failed."""


class Listed:
    """Candidates in an order that is known before."""

    ahead: int | None = None

    def __init__(self, rows: list[tuple[Row, int]]) -> None:
        self.rows = iter(rows)
        self.count = len(rows)

    def next(self) -> tuple[Row, int] | None:
        return next(self.rows, None)

    def told(self, row: Row, seconds: float | None) -> None:
        return


class Optuna:
    """Rows by a study of Optuna; those that have been are not given again."""

    ahead: int | None = 3  # it learns from outcomes
    TRIES = 8  # for one that the constraints leave and that is new

    def __init__(self, space: Space, trials: int, seed: int) -> None:
        try:
            import optuna
        except ImportError:
            raise TileError("--sampler optuna needs Optuna: pip install tilewright[sweep]") from None
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.pruned = optuna.trial.TrialState.PRUNED
        self.study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed, constant_liar=True))
        self.space, self.left = space, trials
        self.open: dict[Any, Any] = {}
        self.seen: set[Any] = set()

    def next(self) -> tuple[Row, int] | None:
        if self.left <= 0:
            return None
        for _ in range(self.TRIES):
            trial = self.study.ask()

            def pick(axis: Axis, values: tuple[Any, ...], trial: Any = trial) -> Any:
                # Values that depend on others make an axis of their own.
                return values[trial.suggest_categorical(f"{axis.name} of {values}", list(range(len(values))))]

            row = self.space.drawn(pick)
            if row is not None and key_of(row) not in self.seen:
                self.left -= 1
                self.seen.add(key_of(row))
                self.open[key_of(row)] = trial
                return row, 0
            self.study.tell(trial, state=self.pruned)
        return self._any()

    def _any(self) -> tuple[Row, int] | None:
        """One that has not been, whatever the study thinks; None: there is none, as far as drawing tells."""
        try:
            rows = self.space.random(len(self.seen) + 1, len(self.seen))
        except TileError:
            if not self.seen:
                raise
            return None
        for row in rows:
            if key_of(row) not in self.seen:
                self.left -= 1
                self.seen.add(key_of(row))
                return row, 0
        return None

    def told(self, row: Row, seconds: float | None) -> None:
        trial = self.open.pop(key_of(row), None)
        if trial is not None and seconds is not None:
            self.study.tell(trial, seconds)
        elif trial is not None:
            self.study.tell(trial, state=self.pruned)


def make(name: str, space: Space, trials: int | None, seed: int, rank: Rank) -> Sampler:
    if name == "optuna":
        return Optuna(space, trials or RANDOM_TRIALS, seed)
    if name == "random":
        return Listed([(row, 0) for row in space.random(trials or RANDOM_TRIALS, seed)])
    if name == "exhaustive":
        return Listed([(row, 0) for row in space.listed()[:trials]])
    return Listed(_ranked(space, trials, seed, rank))


def _ranked(space: Space, trials: int | None, seed: int, rank: Rank) -> list[tuple[Row, int]]:
    rows = space.listed()
    if len(rows) > MOST_RANKED:
        chosen = random.Random(seed).sample(range(len(rows)), MOST_RANKED)
        rows = [rows[i] for i in sorted(chosen)]
    expected = rank(rows)
    order = sorted(range(len(rows)), key=lambda i: (expected[i] is None, expected[i] or 0.0, i))
    return [(rows[i], number) for number, i in enumerate(order[:trials], 1)]
