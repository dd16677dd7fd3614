"""A page of HTML for a sweep: one file that opens without a network.

For each problem (device, kernel, arguments) by a driver and a compiler: the best beside the kernel as given, a table
that a click on a column sorts, parallel coordinates of the axes, what the model expected against what was measured, and
the roofline. Pictures are SVG by matplotlib, within the page; texts of records are escaped, for these may come from
anybody.
"""

from __future__ import annotations

import html
import io
import itertools
import math
import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import TileError
from ..tune.cost import Machine, machine_from
from ..tune.plot import BEST, GIVEN, OTHER, Point, draw_roofline, pyplot
from .records import Record, choice_text

MOST_LINES = 400  # of parallel coordinates
MOST_ROWS = 2000  # of a table
MOST_DRAWN = 200  # problems; three pictures take half a second

STYLE = """
body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem;color:#222}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2.5rem;border-top:1px solid #ddd;padding-top:1rem}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:13px}
th,td{padding:.2rem .6rem;text-align:right;border-bottom:1px solid #eee}
th{cursor:pointer;background:#f6f6f6;position:sticky;top:0}
td.t,th.t{text-align:left;max-width:30rem;overflow-wrap:break-word}
tr.best td{font-weight:600;color:#c23b22}tr.failed td{color:#888}
figure{margin:1rem 0}figure svg{max-width:100%;height:auto}figcaption{color:#555;font-size:13px}
.scroll{max-height:32rem;overflow:auto;border:1px solid #ddd}summary{cursor:pointer}
"""

SCRIPT = """
for (const table of document.querySelectorAll("table.sorts")) {
  table.tHead.addEventListener("click", event => {
    const head = event.target.closest("th");
    if (!head) return;
    const column = head.cellIndex, down = head.dataset.down !== "1";
    head.dataset.down = down ? "1" : "0";
    const key = row => row.cells[column].dataset.v ?? row.cells[column].textContent;
    const number = x => x === "" || isNaN(x) ? null : Number(x);
    const compare = (a, b) => {
      const x = key(a), y = key(b), n = number(x), m = number(y);
      return n !== null && m !== null ? n - m : n !== null ? -1 : m !== null ? 1 : x.localeCompare(y);
    };
    const body = table.tBodies[0];
    [...body.rows].sort((a, b) => down ? compare(a, b) : compare(b, a)).forEach(row => body.appendChild(row));
  });
}
document.body.dataset.ready = "1";
"""


def write(path: Path, title: str, records: Sequence[Record]) -> None:
    text = page(title, records)
    try:
        if path.is_symlink() or (path.exists() and not path.is_file()):  # as /dev/stdout
            path.write_text(text)
        else:
            _replace(path, text)
    except OSError as error:
        raise TileError(f"the page {str(path)!r} cannot be written: {error.strerror}") from None


def _replace(path: Path, text: str) -> None:
    """One that is there stays until this one is whole."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            os.fchmod(file.fileno(), 0o644)
        os.replace(name, path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


def page(title: str, records: Sequence[Record]) -> str:
    problems: dict[tuple[str, ...], list[Record]] = {}
    for record in records:  # what another driver or compiler made is not compared with
        problems.setdefault((*record.problem, record.driver, record.compiler), []).append(record)
    parts = [_summary(problems), *(_problem(rows, number) for number, rows in enumerate(problems.values(), 1))]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_text(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{_text(title)}</h1>\n"
        + "\n".join(parts)
        + f"\n<script>{SCRIPT}</script>\n</body>\n</html>\n"
    )


def _text(value: Any) -> str:
    return html.escape(str(value))


def ordered(rows: Sequence[Record]) -> list[Record]:
    """Measured ones first, the quickest before."""
    return sorted(rows, key=lambda r: (not r.measured, r.us))


def where(record: Record) -> str:
    made = [record.driver and f"driver {record.driver}", record.compiler and f"compiler {record.compiler}"]
    return ", ".join(filter(None, (record.device, *made)))


def _given(rows: Sequence[Record]) -> Record | None:
    return next((r for r in rows if r.measured and not r.choice), None)


def _speed(rows: Sequence[Record]) -> str:
    best, given = ordered(rows)[0], _given(rows)
    return f"{given.us / best.us:.3f}" if given is not None and best.measured else ""


# --- tables -----------------------------------------------------------------------------------------------------------


def _table(heads: Sequence[tuple[str, bool]], rows: Sequence[tuple[str, Sequence[tuple[str, Any]]]]) -> str:
    """`heads`: (name, whether it is text); rows of (class, [(text, number to sort by)])."""
    top = "".join(f"<th{' class=t' if is_text else ''}>{_text(name)}</th>" for name, is_text in heads)
    body = []
    for kind, cells in rows:
        texts = (
            f'<td{" class=t" if is_text else ""} data-v="{_text(number)}">{_text(text)}</td>'
            for (text, number), (_, is_text) in zip(cells, heads, strict=True)
        )
        body.append(f'<tr class="{kind}">{"".join(texts)}</tr>')
    return f'<table class="sorts"><thead><tr>{top}</tr></thead><tbody>{"".join(body)}</tbody></table>'


def _summary(problems: dict[tuple[str, ...], list[Record]]) -> str:
    heads = [("kernel", True), ("arguments", True), ("device", True), ("the best", True), ("µs", False)]
    heads += [("times as given", False), ("measured", False), ("failed", False)]
    rows = []
    for found in problems.values():
        best = ordered(found)[0]
        measured = sum(r.measured for r in found)
        texts = [best.kernel, best.launch, where(best), choice_text(best.choice) if best.measured else "none works"]
        numbers = [f"{best.us:.2f}" if best.measured else "", _speed(found), measured, len(found) - measured]
        rows.append(("", [*((t, t) for t in texts), *((str(n), n) for n in numbers)]))
    return _table(heads, rows)


def axes_of(rows: Sequence[Record]) -> list[str]:
    return list(dict.fromkeys(name for record in rows for name in record.choice))


def value_text(record: Record, name: str) -> str:
    """What an axis was: where the choice says nothing, as given, which of a hint is the compiler's own choice."""
    value = record.choice[name] if name in record.choice else record.given.get(name)
    return "as given" if value is None else str(value)


def _candidates(rows: Sequence[Record]) -> str:
    names = axes_of(rows)
    best = ordered(rows)[0]
    heads = [("#", False), *((name, True) for name in names), ("µs", False), ("95 % from", False), ("to", False)]
    heads += [("model µs", False), ("model's rank", False), ("", True)]
    found = []
    for number, r in enumerate(ordered(rows)[:MOST_ROWS], 1):
        times = [f"{t:.2f}" if r.measured else "" for t in (r.us, r.low_us, r.high_us)]
        told = r.why or (f"launched with {choice_text(r.launched)}" if r.launched else "")
        cells = [(str(number), number), *((value_text(r, n), value_text(r, n)) for n in names)]
        cells += [(t, t) for t in times]
        cells += [
            (f"{r.predicted_us:.1f}" if r.predicted_us else "",) * 2,
            (str(r.rank or ""), r.rank or ""),
            (told, told),
        ]
        found.append(("best" if r is best and r.measured else "" if r.measured else "failed", cells))
    return f'<div class="scroll">{_table(heads, found)}</div>'


# --- pictures ---------------------------------------------------------------------------------------------------------


def _problem(rows: Sequence[Record], number: int) -> str:
    first = rows[0]
    drawn = number <= MOST_DRAWN
    title = f"<h2>{_text(first.kernel)}: {_text(first.launch)} on {_text(where(first))}</h2>"
    measured = [r for r in ordered(rows) if r.measured]
    figures = [] if drawn else [f"<p>The first {MOST_DRAWN} problems have pictures.</p>"]
    if drawn and len(measured) > 1 and axes_of(measured):
        figures.append(
            _figure(_parallel, measured, f"p{number}a", "Each line is a candidate; red is the best, grey as given.")
        )
    if drawn and sum(r.predicted_us > 0 for r in measured) > 1:
        figures.append(
            _figure(_against_model, measured, f"p{number}b", "What the cost model expected, and what was measured.")
        )
    if drawn and any(_point(r) for r in measured) and _machine(measured) is not None:
        figures.append(
            _figure(_roofline, measured, f"p{number}c", "What memory and units allow, and what was reached.")
        )
    return "\n".join(
        [title, *figures, f"<details open><summary>{len(rows)} candidates</summary>{_candidates(rows)}</details>"]
    )


def _figure(draw: Any, rows: Sequence[Record], name: str, caption: str) -> str:
    plt = pyplot()
    plt.rcParams["svg.hashsalt"] = name  # ids differ between the pictures of a page
    figure, axis = plt.subplots(figsize=(10, 4.2))
    draw(axis, rows)
    figure.tight_layout()
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    plt.close(figure)
    plt.rcParams["svg.hashsalt"] = "tilewright"
    return f"<figure>{inlined(out.getvalue())}<figcaption>{_text(caption)}</figcaption></figure>"


def inlined(svg: str) -> str:
    """An SVG without what stands before it, and without metadata, which has addresses of others."""
    return re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)


def _parallel(axis: Any, rows: Sequence[Record]) -> None:
    """The axes side by side, values of each from below, and the time at the right end, the quickest on top."""
    shown = rows[:MOST_LINES]
    names = [name for name in axes_of(rows) if len({value_text(r, name) for r in rows}) > 1]
    places = {name: {v: i for i, v in enumerate(_values(rows, name))} for name in names}
    low, high = math.log(rows[0].us), math.log(rows[-1].us)
    given = _given(rows)
    for r in reversed(shown):
        heights = [_height(places[name][value_text(r, name)], len(places[name])) for name in names]
        heights.append(1 - (math.log(r.us) - low) / ((high - low) or 1.0))
        kind = BEST if r is rows[0] else GIVEN if r is given else OTHER
        strong = r is rows[0] or r is given
        axis.plot(range(len(heights)), heights, color=kind, lw=2.2 if strong else 0.7, alpha=1 if strong else 0.35)
    for x, name in enumerate(names):
        axis.axvline(x, color="#999", lw=0.8)
        for value, place in _spread(places[name]):
            axis.text(x + 0.02, _height(place, len(places[name])), _short(value), fontsize=8, va="center", bbox=_PAPER)
    axis.axvline(len(names), color="#999", lw=0.8)
    for fraction in (0.0, 0.5, 1.0):
        text = f"{math.exp(high + (low - high) * fraction):.3g} µs"
        axis.text(len(names) + 0.02, fraction, text, fontsize=8, va="center", bbox=_PAPER)
    axis.set_xticks(range(len(names) + 1), [*map(_short, names), "time"], fontsize=9)
    axis.set_yticks([])
    axis.set_xlim(-0.1, len(names) + 0.35)
    for side in ("left", "right", "top", "bottom"):
        axis.spines[side].set_visible(False)


_PAPER = {"facecolor": "white", "edgecolor": "none", "pad": 1.0, "alpha": 0.85}
MOST_LABELS = 16  # of an axis, so that none lies on another


def _spread(places: dict[str, int]) -> list[tuple[str, int]]:
    step = -(-len(places) // MOST_LABELS)
    return list(itertools.islice(places.items(), 0, None, step))


def _height(place: int, count: int) -> float:
    return 0.5 if count == 1 else place / (count - 1)


def _short(text: str) -> str:
    """For a picture, where a dollar would begin a formula."""
    return (text if len(text) <= 22 else f"{text[:19]}…").replace("$", r"\$")


def _values(rows: Sequence[Record], name: str) -> list[str]:
    """Numbers in their order, then words; what is left to the compiler first."""

    def place(text: str) -> tuple[int, float, str]:
        try:
            return 1, float(text), ""
        except ValueError:
            return (0 if text == "as given" else 2), 0.0, text

    return sorted({value_text(r, name) for r in rows}, key=place)


def _against_model(axis: Any, rows: Sequence[Record]) -> None:
    from matplotlib.ticker import LogFormatter

    found = [r for r in rows if r.predicted_us > 0]
    given = _given(rows)
    for r in reversed(found):
        color = BEST if r is rows[0] else GIVEN if r is given else OTHER
        axis.plot(r.predicted_us, r.us, "o", color=color, markersize=7 if color == BEST else 4, alpha=0.8)
    ends = [min(min(r.us, r.predicted_us) for r in found), max(max(r.us, r.predicted_us) for r in found)]
    axis.plot(ends, ends, color="#999", lw=0.8)
    axis.set_xscale("log")
    axis.set_yscale("log")
    for side in (axis.xaxis, axis.yaxis):  # 160, not 1.6 × 10²
        side.set_major_formatter(LogFormatter())
        side.set_minor_formatter(LogFormatter())
    axis.set_xlabel("the model's µs")
    axis.set_ylabel("measured µs")
    axis.grid(True, which="major", alpha=0.3)


def _machine(rows: Sequence[Record]) -> Machine | None:
    """What the first that tells all of its machine tells."""
    found = (machine_from(r.device, r.machine) for r in rows)
    return next((machine for machine in found if machine is not None), None)


def _point(record: Record) -> Point | None:
    work = record.work
    operations = work.get("flop", 0.0) or work.get("elements", 0.0)
    unique = work.get("unique", 0.0)
    return Point("", operations / unique, operations / (1e-6 * record.us)) if operations > 0 and unique > 0 else None


def _roofline(axis: Any, rows: Sequence[Record]) -> None:
    given, points = _given(rows), []
    for r in reversed(rows):
        point = _point(r)
        if point is None:
            continue
        name = choice_text(r.choice) if r is rows[0] else "as given" if r is given else ""
        color = BEST if r is rows[0] else GIVEN if r is given else OTHER
        points.append(Point(_short(name), point.intensity, point.rate, color))
    bits = sorted({int(r.work.get("bits", 0)) for r in rows if r.work})
    machine = _machine(rows)
    assert machine is not None, "asked before"
    draw_roofline(axis, machine, points, bits)
