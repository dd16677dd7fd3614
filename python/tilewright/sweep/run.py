"""A sweep: shapes -> candidates by a sampler -> workers -> records, and at the end the best few in turns.

What has a record of the same device, compiler, kernel and arguments is not measured again: a sweep that was stopped
goes on where it was, and sweeps that keep records at one place share what they have in common: what another one is
measuring is left to it, and waited for at the end.
"""

from __future__ import annotations

import dataclasses
import datetime
import itertools
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .. import cli, hints
from ..errors import TileError, TileTypeError, TileValueError
from ..kernel import kernel as tile_kernel
from ..structure import constant_parameters
from ..tune import forkserver
from ..tune.record import source_hash
from ..tune.samples import extents
from ..tune.search import SAME
from ..tune.worker import UnfitError
from . import records, samplers
from .axes import Row, Space, key_of, read_axis
from .claims import Claims
from .expressions import Expression
from .pool import GoneError, Pool, side_by_side
from .records import Followed, Record, Writer
from .shapes import Shape
from .station import Decided, Known, Settings, Task, figures_of, made_of
from .workers import open_pools

FINALISTS, MOST_DECISIONS = 4, 3
DECIDING_SECONDS = 10.0  # at most; by then a winner is clear, or there is none
RANKED_AT_ONCE = 32  # by one worker
LOOK_SECONDS = 0.05  # between looks at what another sweep measures


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is asked for. `trials` is of each shape, `budget` of them all, in seconds."""

    place: str
    shapes: tuple[Shape, ...]
    axes: tuple[str, ...]
    where: tuple[str, ...] = ()
    on: str = "auto"
    sampler: str = "model"
    trials: int | None = None
    budget: float | None = None
    seed: int = 0
    timeout: float = 10.0
    compile_timeout: float = 60.0
    tolerance: float | None = None
    scratch: tuple[str, ...] = ()  # arrays whose contents nobody wants
    turns: bool = True  # the best few are measured in turns at the end
    keep: bool = True  # and the winner is kept in tune's record

    def check(self) -> None:
        if self.sampler not in samplers.NAMES:
            raise TileValueError(f"--sampler {self.sampler!r}: expected one of {', '.join(samplers.NAMES)}")
        if self.trials is not None and self.trials < 1:
            raise TileValueError(f"--trials {self.trials}: expected 1 or more")
        if not 0 <= self.seed < 1 << 32:
            raise TileValueError(f"--seed {self.seed}: expected 0 to {(1 << 32) - 1}")
        if self.budget is not None and not 0 < self.budget < float("inf"):
            raise TileValueError(f"--budget {self.budget}: expected a positive number of seconds")


@dataclasses.dataclass
class Event:
    """What progress tells: a trial that ended, or the state before it."""

    shape: Shape
    record: Record
    done: int
    total: int | None
    best: Record | None
    reused: bool = False


@dataclasses.dataclass
class Outcome:
    """Of a shape: the records of its candidates, and the one that won."""

    shape: Shape
    records: list[Record]
    decided: Decided | None = None  # which of the best few in turns
    reused: int = 0  # records that were there before
    note: str = ""
    device: str = ""
    quickest: Record | None = None

    def add(self, record: Record) -> None:
        self.records.append(record)
        self._note(record)

    def change(self, choice: dict[str, Any], **figures: Any) -> list[Record]:
        """A new measurement of a candidate, which is that of others with the same program, too; the changed records."""
        key, same = records.choice_key(choice), f"{SAME}: {records.choice_text(choice)}"
        changed = []
        for i, r in enumerate(self.records):
            if r.measured and (records.choice_key(r.choice) == key or r.why == same):
                self.records[i] = dataclasses.replace(r, **figures)
                changed.append(self.records[i])
        self.quickest = None
        for r in self.records:
            self._note(r)
        return changed

    def _note(self, record: Record) -> None:
        if record.measured and (self.quickest is None or record.us < self.quickest.us):
            self.quickest = record

    @property
    def measured(self) -> list[Record]:
        return sorted((r for r in self.records if r.measured), key=lambda r: r.us)

    @property
    def given(self) -> Record | None:
        return next((r for r in self.records if r.measured and not r.choice), None)

    @property
    def best(self) -> Record | None:
        found = self.measured
        won = None if self.decided is None else records.choice_key(self.decided.choice)
        return next((r for r in found if records.choice_key(r.choice) == won), found[0] if found else None)


class ShapeError(TileValueError):
    """A shape of which nothing can be measured; others may do."""


class Sweep:
    """A plan on its way. `tell` hears of each trial, `tries` of the choice of one that begins, `waits` of how many are
    other sweeps' and waited for."""

    def __init__(
        self,
        plan: Plan,
        place: Path,
        tell: Callable[[Event], None] | None = None,
        waits: Callable[[int], None] | None = None,
        tries: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        plan.check()
        if not plan.on.startswith("dask://"):
            forkserver.server()  # which imports what workers need while this process reads the kernel and its devices
        self.plan, self.tell, self.waits = plan, tell or (lambda event: None), waits or (lambda count: None)
        self.tries = tries or (lambda choice: None)
        self.kernel = cli.load_kernel(plan.place)
        if not isinstance(self.kernel, tile_kernel) or self.kernel.rules.simt:
            raise TileTypeError(f"a sweep works on a @ct.kernel, found {self.kernel!r}")
        self.settings = Settings(
            _anywhere(plan.place), plan.timeout, plan.compile_timeout, plan.tolerance, plan.scratch
        )
        for shape in plan.shapes:
            shape.grid_of(self.kernel).of(self._given(shape))
        self.path = records.file_of(place)
        self.writer = Writer(place)
        self.claims, self.found = Claims(self.path), Followed(self.path)
        self.outcomes: list[Outcome] = []
        self.unfit: dict[str, str] = {}  # workers that took no part, or no more, and why
        self.stale = ""  # what was measured is not what this process has
        self.lock = threading.RLock()  # of the file, and of who hears of trials: kinds of devices have a thread each
        self.end = None if plan.budget is None else time.monotonic() + plan.budget

    def _given(self, shape: Shape) -> dict[str, Any]:
        """What constants are without a choice, hints, and the shapes of arrays."""
        entries = dict(cli.parse_argument(text) for text in shape.arguments)
        constants = {name: facts[0] for name, (kind, *facts) in entries.items() if kind == "const"}
        plain = dict.fromkeys(self.kernel.hint_names) | self.kernel.hints
        return plain | dict(shape.variables) | constants | extents(shape.arguments)

    def run(self) -> list[Outcome]:
        pools = open_pools(self.plan.on, self.settings)
        try:
            if len(pools) == 1:
                self._shapes(pools[0])
            else:
                self._on_each(pools)
        finally:
            for pool in pools:
                pool.close()
            self.writer.close()
            self.claims.close()
        return self.outcomes

    def _shapes(self, pool: Pool) -> None:
        """One after the other. What is wrong with one is told when the others are done."""
        problems = []
        for shape in self.plan.shapes:
            if self._is_over():
                break
            try:
                self._shape(pool, shape)
            except ShapeError as error:
                problems.append(error)
        if problems:
            more = f" (and {len(problems) - 1} more shapes are without a measurement)" if problems[1:] else ""
            raise TileValueError(f"{problems[0].message}{more}")

    def _on_each(self, pools: Sequence[Pool]) -> None:
        """Devices of several kinds, each with all candidates. One that gives up leaves the others to go on."""

        def stop() -> None:
            for pool in pools:
                pool.stop()

        if problems := side_by_side(self._shapes, pools, stop):
            raise problems[0]

    def _is_over(self) -> bool:
        return self.end is not None and time.monotonic() > self.end

    def _shape(self, pool: Pool, shape: Shape) -> None:
        try:
            base = pool.describe(shape)
        except GoneError:
            raise
        except TileError as error:
            raise ShapeError(f"{shape}: {error}") from None
        if base.source != source_hash(self.kernel.function):
            self.stale = (
                f"the workers have another source of kernel {self.kernel.name} than this process has: what its file "
                "imports was edited since they began, or their Python is another one; restart them to measure this one"
            )
        given = self._given(shape)
        constants = [n for n in self.kernel.parameters if n in constant_parameters(self.kernel.function)]
        axes = [
            read_axis(text, self.kernel, constants, lambda name: self._listed(pool, shape, name))
            for text in self.plan.axes
        ]
        space = Space(axes, [Expression(text, "a constraint") for text in self.plan.where], given)

        def rank(rows: list[Row]) -> list[float | None]:
            choices = [self._choice(row, given) for row in rows]
            parts = [choices[at : at + RANKED_AT_ONCE] for at in range(0, len(choices), RANKED_AT_ONCE)]
            return [found for part in pool.ask_all("rank", [(shape, part) for part in parts]) for found in part]

        sampler = samplers.make(self.plan.sampler, space, self.plan.trials, self.plan.seed, rank)
        outcome = Outcome(shape, [], device=base.device)
        self.outcomes.append(outcome)
        trials = _Trials(self, outcome, base, sampler, given)
        try:
            pool.run(trials.next, trials.found, trials.begins, sampler.ahead, trials.known)
            while trials.wait():
                pool.run(trials.next, trials.found, trials.begins, sampler.ahead, trials.known)
        except UnfitError as error:
            raise ShapeError(f"{shape}: {error}") from None
        finally:
            trials.give_up()
            self.unfit |= pool.unfit
        if not outcome.measured and outcome.records:
            reasons = "; ".join(dict.fromkeys(r.why for r in outcome.records if r.why))[:500]
            raise ShapeError(f"no candidate of kernel {self.kernel.name} works for {shape}: {reasons}")
        if self.plan.turns and outcome.measured and not self._is_over():
            self._decide(pool, outcome)

    def _listed(self, pool: Pool, shape: Shape, name: str) -> Sequence[str]:
        kind, tile = hints.tile_of(name) or (name, "")
        if kind != "layout":
            examples = {"swizzle": "32,64,128", "warps": "4x2,8x1"}[kind]
            raise TileValueError(f"axis {name}: say which values, as in {name}={examples}")
        found: list[str] = pool.ask("layouts", shape, tile)
        return found

    def _choice(self, row: Row, given: dict[str, Any]) -> dict[str, Any]:
        """Without what is as given."""
        return {name: value for name, value in row.items() if value != given.get(name)}

    def _decide(self, pool: Pool, outcome: Outcome) -> None:
        """The best few measured in turns; those times count from then on, so that the next best may come to the fore: a
        few times over. What goes wrong there leaves the first measurements to count."""
        done: set[str] = set()
        for _ in range(MOST_DECISIONS):
            won = [outcome.decided.choice] if outcome.decided is not None and outcome.decided.choice else []
            ahead = self._ahead(outcome, done)[: FINALISTS - len(won)]
            if not ahead or self._is_over():
                break
            try:
                budget = DECIDING_SECONDS if self.end is None else min(DECIDING_SECONDS, self.end - time.monotonic())
                outcome.decided = pool.ask("decide", outcome.shape, [*won, *ahead], budget, self.plan.keep)
            except TileError as error:
                outcome.note = f"the best few were not measured in turns: {error}"
                break
            outcome.note = outcome.decided.note
            for choice, found in outcome.decided.times:
                done.add(records.choice_key(choice))
                for record in outcome.change(choice, **figures_of(found)):
                    with self.lock:
                        self.writer.add(record)
        outcome.decided = outcome.decided or Decided({})

    def _ahead(self, outcome: Outcome, done: set[str]) -> list[dict[str, Any]]:
        """Those that seem quicker than the best of the ones that are `done`."""
        own = [r.choice for r in outcome.measured if not r.is_twin]
        ahead = itertools.takewhile(lambda choice: records.choice_key(choice) not in done, own)
        return [choice for choice in ahead if choice]


def _anywhere(place: str) -> str:
    """FILE:KERNEL by a path that is the same in whatever folder a worker runs."""
    file, _, name = place.rpartition(":")
    return f"{Path(file).absolute()}:{name}" if file.endswith(".py") else place


class _Trials:
    """Candidates of a shape one after the other, and what comes of them."""

    def __init__(self, sweep: Sweep, outcome: Outcome, base: Record, sampler: Any, given: dict[str, Any]) -> None:
        self.sweep, self.outcome, self.base, self.sampler, self.given = sweep, outcome, base, sampler, given
        self.rows: dict[str, Row] = {}
        self.seen: set[Any] = set()
        self.first = True
        self.elsewhere: list[Task] = []  # other sweeps measure them
        self.left: list[Task] = []  # by sweeps that have ended: ours now
        self.claimed: set[Any] = set()  # keys of what is ours and has no record yet
        self.known: list[Known] = []  # programs of this sweep that have been measured, by whomever

    def next(self) -> Task | None:
        while not self.sweep._is_over():
            if self.left:
                return self.left.pop()
            row, rank = ({}, 0) if self.first else self.sampler.next() or (None, 0)
            self.first = False
            if row is None:
                return None
            task = self._task(row, rank)
            if task is not None:
                return task
        return None

    def _task(self, row: Row, rank: int) -> Task | None:
        """None where it is one that has been, in this sweep or another one, or that another one measures."""
        choice = self.sweep._choice(row, self.given)
        key = key_of(choice)
        if key in self.seen:
            self.sampler.told(row, None)
            return None
        self.seen.add(key)
        self.rows[records.choice_key(choice)] = row
        task = Task(self.outcome.shape, tuple(choice.items()), rank, self.base.device, made_of(self.base))
        ours = self._claim(task)
        if ours is None:
            self.elsewhere.append(task)
        return task if ours else None

    def _key(self, task: Task) -> tuple[Any, ...]:
        return dataclasses.replace(self.base, choice=dict(task.choice)).key

    def _claim(self, task: Task) -> bool | None:
        """Whether it is ours to measure; not where there is a record of it; None: another sweep measures it."""
        key = self._key(task)
        with self.sweep.lock:
            claimed = key not in self.sweep.found.records and self.sweep.claims.take(key)
            self.sweep.found.look()  # behind the claim: whoever had it before has written its record
            known = self.sweep.found.records.get(key)
            if known is not None and claimed:
                self.sweep.claims.free(key)
            elif claimed:
                self.claimed.add(key)
        if known is None:
            return True if claimed else None
        self._add(dataclasses.replace(known, choice=dict(task.choice)), True)
        return False

    def _free(self, key: Any) -> None:
        self.claimed.discard(key)
        self.sweep.claims.free(key)

    def give_up(self) -> None:
        """What has no record is anybody's again: also another thread's of this sweep."""
        with self.sweep.lock:
            for key in list(self.claimed):
                self._free(key)

    def wait(self) -> bool:
        """Until another sweep leaves us one of those that it took to measure. False: all have their records."""
        told = 0
        while self.elsewhere and not self.sweep._is_over():
            claims = [(task, self._claim(task)) for task in self.elsewhere]
            self.elsewhere = [task for task, ours in claims if ours is None]
            self.left += [task for task, ours in claims if ours]
            if self.left:
                return True
            if self.elsewhere and len(self.elsewhere) != told:
                told = len(self.elsewhere)
                self.sweep.waits(told)
            if self.elsewhere:
                time.sleep(LOOK_SECONDS)
        return False

    def begins(self, task: Task) -> bool:
        """What was taken in advance is left when the time is over."""
        if self.sweep._is_over():
            return False
        with self.sweep.lock:
            self.sweep.tries(dict(task.choice))
        return True

    def found(self, task: Task, outcome: Record | str) -> None:
        if isinstance(outcome, str):
            outcome = dataclasses.replace(
                self.base,
                choice=dict(task.choice),
                rank=task.rank,
                why="".join(c if c.isprintable() else " " for c in outcome)[:1000],
                date=datetime.date.today().isoformat(),
            )
        with self.sweep.lock:
            self.sweep.writer.add(outcome)
            self._free(self._key(task))
        self._add(outcome, False)

    def _add(self, record: Record, reused: bool) -> None:
        self.outcome.add(record)
        self.outcome.reused += reused
        if (measured := Known.of(record)) is not None:
            self.known.append(measured)
        self.sampler.told(self.rows[records.choice_key(record.choice)], 1e-6 * record.us if record.measured else None)
        total = 1 + self.sampler.count if hasattr(self.sampler, "count") else None
        event = Event(self.outcome.shape, record, len(self.outcome.records), total, self.outcome.quickest, reused)
        with self.sweep.lock:
            self.sweep.tell(event)
