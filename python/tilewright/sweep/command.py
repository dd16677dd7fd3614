"""The commands `tilewright sweep`, `tilewright records` and `tilewright fit`."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .. import cli
from ..errors import TileError, TileValueError
from . import fit, page, records, shapes
from .records import Record, choice_text
from .run import Event, Outcome, Plan, Sweep

# --- sweep ------------------------------------------------------------------------------------------------------------


class Shown:
    """Progress: a line that is written anew on a terminal, of what is tried and what came of it; elsewhere one line in
    ten trials."""

    def __init__(self, out: Any) -> None:
        self.out, self.live = out, out.isatty()
        self.width = 0
        self.best = ""

    def _write(self, line: str) -> None:
        print(f"\r{line[:160]:{self.width}}", end="", file=self.out, flush=True)
        self.width = min(160, len(line))

    def tries(self, choice: dict[str, Any]) -> None:
        if self.live:
            self._write(f"tries {choice_text(choice)[:80]}{self.best}")

    def __call__(self, event: Event) -> None:
        record, best = event.record, event.best
        total = f"/{event.total}" if event.total is not None else ""
        found = f"{record.us:.1f} us" if record.measured else f"failed: {record.why[:60]}"
        known = " (recorded before)" if event.reused else ""
        told = f"best {best.us:.1f} us: {choice_text(best.choice)}" if best is not None else "none works yet"
        line = f"{event.done}{total} {choice_text(record.choice)[:60]}: {found}{known}; {told}"
        self.best = f"; {event.done}{total} done, {told}"
        if self.live:
            self._write(line)
        elif event.done % 10 == 1:
            print(line, file=self.out, flush=True)

    def waits(self, count: int) -> None:
        told = f"waits for {count} that another sweep into these records is measuring"
        if self.live:
            self._write(told)
        else:
            print(told, file=self.out, flush=True)

    def end(self) -> None:
        if self.live and self.width:
            print(file=self.out)


def command_sweep(options: argparse.Namespace) -> int:
    kernel = cli.load_kernel(options.kernel)
    if options.shapes and options.arg:
        raise TileValueError("--shapes and --arg both say what the arguments are; give one of them")
    found = (
        shapes.read(Path(options.shapes), kernel, options.grid)
        if options.shapes
        else shapes.of_command(options.arg, options.grid)
    )
    cli.check_output(options.html)
    if not options.axis:
        raise TileValueError("a sweep needs an axis, as in --axis TM=64,128 or --axis warps")
    plan = Plan(
        place=options.kernel,
        shapes=tuple(found),
        axes=tuple(options.axis),
        where=tuple(options.where),
        on=options.on,
        sampler=options.sampler,
        trials=options.trials,
        budget=options.budget,
        seed=options.seed,
        timeout=options.timeout,
        compile_timeout=options.compile_timeout,
        scratch=tuple(options.scratch),
        keep=not options.forget,
    )
    shown = Shown(sys.stderr)
    sweep = Sweep(plan, Path(options.output), shown, shown.waits, shown.tries)
    if told := sweep.found.read.told():
        print(told, file=sys.stderr)
    try:
        sweep.run()
    except BaseException:
        shown.end()
        try:
            _report(sweep, options.html)
        except TileError as error:  # a full disk takes neither
            print(error, file=sys.stderr)
        raise
    shown.end()
    _report(sweep, options.html)
    return 0


def _report(sweep: Sweep, wanted: str | None) -> None:
    """The tables and the page: also of a sweep that was stopped."""
    if sweep.stale:
        print(sweep.stale, file=sys.stderr)
    for why in sweep.unfit.values():
        print(f"without a worker: {why}", file=sys.stderr)
    done = [outcome for outcome in sweep.outcomes if outcome.records]
    for outcome in done:
        print(table(outcome))
    if not done:
        return
    print(f"records are in {sweep.path}")
    if not wanted and importlib.util.find_spec("matplotlib") is None:
        print("no page was drawn: pip install tilewright[sweep], then tilewright records page")
    else:
        path = Path(wanted) if wanted else sweep.path.with_name(f"{sweep.kernel.name}.html")
        page.write(path, f"Sweep of {sweep.kernel.name}", [r for outcome in done for r in outcome.records])
        print(f"the page is {path}")


def table(outcome: Outcome, most: int = 12) -> str:
    """The quickest candidates, the kernel as given, and why others failed."""
    rows, best, given = outcome.measured, outcome.best, outcome.given
    own = [r for r in rows if not r.is_twin]
    shown = own[:most] + ([given] if given is not None and given not in own[:most] else [])
    wide = max((len(choice_text(r.choice)) for r in shown), default=0)
    before = f" ({outcome.reused} found in the records)" if outcome.reused else ""
    counts = f"{len(rows)} measured, {len(outcome.records) - len(rows)} failed{before}"
    lines = [f"{outcome.shape} on {outcome.device}: {counts}"]
    for r in shown:
        rank = f"  model's rank {r.rank}" if r.rank else ""
        interval = f"[{r.low_us:.1f}, {r.high_us:.1f}]"
        lines.append(f"  {'*' if r is best else ' '} {choice_text(r.choice):{wide}}  {r.us:9.1f} us {interval}{rank}")
    if len(own) > most:
        lines.append(f"    and {len(own) - most} more")
    if len(rows) > len(own):
        lines.append(f"    {len(rows) - len(own)} more come to the same programs as these")
    reasons: dict[str, int] = {}
    for r in outcome.records:
        if not r.measured:
            reasons[r.why] = reasons.get(r.why, 0) + 1
    lines += [f"  - {count} failed: {why[:160]}" for why, count in sorted(reasons.items(), key=lambda x: -x[1])[:5]]
    if best is not None and given is not None:
        lines.append(f"  {_verdict(outcome, best, given)}")
    return "\n".join([*lines, *([f"  {outcome.note}"] if outcome.note else [])])


def _verdict(outcome: Outcome, best: Record, given: Record) -> str:
    """How much is won, by the times in turns where there are some: those of the table are of different moments."""
    turns = outcome.decided
    if turns is None or turns.us is None or turns.given_us is None:
        return f"{given.us / best.us:.3f} times as fast as given"
    if not turns.choice:
        return f"* in turns, none of the best was quicker than the kernel as given ({turns.given_us:.1f} us)"
    told = f"{choice_text(turns.choice)} took {turns.us:.1f} us, and the kernel as given {turns.given_us:.1f}"
    return f"* in turns, {told}: {turns.given_us / turns.us:.3f} times as fast as given"


# --- records ----------------------------------------------------------------------------------------------------------


def _read(places: Sequence[str]) -> list[Record]:
    found = records.read(places)
    if told := found.told():
        print(told, file=sys.stderr)
    if not found.records:
        print(f"there is no record in {', '.join(places)}", file=sys.stderr)
    return list(found.records.values())


def command_records(options: argparse.Namespace) -> int:
    return ACTIONS[options.action](options)


def _list(options: argparse.Namespace) -> int:
    for r in sorted(_read(options.places), key=lambda r: (*r.problem, not r.measured, r.us)):
        found = f"{r.us:9.1f} us" if r.measured else f"failed: {r.why[:80]}"
        print(f"{r.kernel}  {r.launch}  {r.device}  {choice_text(r.choice)}  {found}")
    return 0


def _best(options: argparse.Namespace) -> int:
    for rows in records.by_problem(_read(options.places)).values():
        best = rows[0]
        alike = [r for r in rows if (r.driver, r.compiler) == (best.driver, best.compiler)]  # to be compared with
        given = next((r for r in alike if not r.choice), None)
        gain = f", {given.us / best.us:.3f} times as fast as given" if given is not None else ""
        print(f"{best.kernel} {best.launch} on {best.device}: {choice_text(best.choice)}  {best.us:.1f} us{gain}")
        following = next((r for r in alike[1:] if not r.is_twin), None)
        if following is not None:
            print(f"    next: {choice_text(following.choice)}, {following.us / best.us - 1:+.1%}")
    return 0


def _merge(options: argparse.Namespace) -> int:
    if options.output is None:
        raise TileValueError("records merge needs -o FILE.jsonl or a folder, which gets the records")
    found = _read(options.places)
    writer = records.Writer(Path(options.output))
    for record in found:
        writer.add(record)
    writer.close()
    print(f"{len(found)} records in {writer.path}")
    return 0


def _diff(options: argparse.Namespace) -> int:
    if len(options.places) != 2:
        raise TileValueError(f"records diff compares two places, the earlier one first, found {len(options.places)}")
    before, after = (_read([place]) for place in options.places)
    found = records.moves(before, after, options.least / 100)
    for move in found:
        print(move)
    slower = sum(move.ratio > 1 for move in found)
    print(f"{slower} slower, {len(found) - slower} quicker beyond noise and {options.least:g} %")
    return 1 if slower else 0


def _prune(options: argparse.Namespace) -> int:
    """Keeps the newest of each key, without what other compilers or failures left."""
    if len(options.places) != 1 or "://" in options.places[0]:
        raise TileValueError("records prune takes one file or folder of this host")
    counts = [0, 0]

    def choose(every: list[Record]) -> list[Record]:
        newest = {r.problem: r.compiler for r in every}
        kept = [r for r in every if r.measured or not options.failures]
        if options.compilers:
            kept = [r for r in kept if r.compiler == newest[r.problem]]
        counts[:] = len(kept), len(every)
        return kept

    _read(options.places)  # tells what is wrong with them
    records.rewrite(Path(options.places[0]), choose)
    print(f"{counts[0]} records kept, {counts[1] - counts[0]} left out")
    return 0


def _page(options: argparse.Namespace) -> int:
    if options.output is None:
        raise TileValueError("records page needs -o FILE.html")
    page.write(Path(options.output), "Records", _read(options.places))
    print(options.output)
    return 0


ACTIONS: dict[str, Callable[[argparse.Namespace], int]] = {
    "list": _list,
    "best": _best,
    "merge": _merge,
    "diff": _diff,
    "prune": _prune,
    "page": _page,
}


# --- fit --------------------------------------------------------------------------------------------------------------


def command_fit(options: argparse.Namespace) -> int:
    found = fit.fit(
        _read(options.places), options.folds, [name.strip() for name in options.only.split(",") if name.strip()]
    )
    print(found)
    if options.output:
        Path(options.output).write_text(found.text())
        print(f"constants are in {options.output}")
    return 0
