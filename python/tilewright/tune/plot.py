"""Pictures of a search: every candidate's time, a heat map over two names, and the roofline. Needs matplotlib."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Sequence
from typing import Any, BinaryIO

from ..errors import TileError
from .cost import Machine
from .search import Result, Trial

BEST, OTHER, GIVEN, PEAK = "#c23b22", "#4878a8", "#777777", "#222222"
MOST_BARS = 40


@dataclasses.dataclass(frozen=True)
class Point:
    """Something measured, in a roofline: operations a byte, operations a second."""

    label: str
    intensity: float
    rate: float
    color: str = OTHER


def pyplot() -> Any:
    """matplotlib without a window, loaded when a picture is wanted."""
    try:
        import matplotlib
    except ImportError:
        raise TileError("a picture needs matplotlib: pip install matplotlib") from None
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "tilewright"  # the same picture gives the same file
    import matplotlib.pyplot as plt

    return plt


def draw(result: Result, path: str | os.PathLike[str] | BinaryIO) -> None:
    """The sweep of a search, in as many panels as there is something to show; to an open file as SVG."""
    plt = pyplot()
    names = _map_names(result)
    panels = 2 + (names is not None)
    figure, axes = plt.subplots(1, panels, figsize=(5.5 * panels, 0.24 * min(MOST_BARS, len(result.measured())) + 3))
    draw_times(axes[0], result)
    if names is not None:
        draw_map(figure, axes[1], result, *names)
    draw_roofline(axes[-1], result.machine, _points(result), _bits(result.trials))
    figure.suptitle(f"{result.problem.kernel.name} on {result.machine.name}")
    figure.tight_layout()
    _save(plt, figure, path)


def roofline(machine: Machine, points: Sequence[Point], bits: Sequence[int], title: str, path: Any) -> None:
    """A roofline alone; `bits` of the operands whose peaks are drawn, 0 for elementwise operations on 32 bits."""
    plt = pyplot()
    figure, axis = plt.subplots(figsize=(9, 5.5))
    draw_roofline(axis, machine, points, bits)
    axis.set_title(title)
    figure.tight_layout()
    _save(plt, figure, path)


def _save(plt: Any, figure: Any, path: Any) -> None:
    svg = not isinstance(path, str | os.PathLike) or str(path).endswith(".svg")
    try:
        figure.savefig(path, format="svg" if svg else None, metadata={"Date": None} if svg else None)
    except (OSError, ValueError) as error:
        raise TileError(f"the picture cannot be written to {path}: {error}") from None
    finally:
        plt.close(figure)


# --- panels -----------------------------------------------------------------------------------------------------------


def draw_times(axis: Any, result: Result) -> None:
    """One bar a candidate, with its interval, and what the cost model expected."""
    trials = result.measured()[:MOST_BARS]
    for row, trial in enumerate(trials):
        measured = trial.measurement
        assert measured is not None
        reach = [[1e6 * (measured.median - measured.low)], [1e6 * (measured.high - measured.median)]]
        axis.barh(row, 1e6 * measured.median, color=_color(result, trial), xerr=reach, error_kw={"lw": 1, "capsize": 2})
        if trial.predicted is not None:
            axis.plot(1e6 * trial.predicted, row, "|", color="black", markersize=9)
    axis.set_yticks(range(len(trials)), [trial.title for trial in trials], fontsize=7)
    axis.invert_yaxis()
    axis.set_xlabel("µs, with the interval of 95 %   (| what the cost model expects)")
    dropped = sum(trial.dropped is not None for trial in result.trials)
    axis.set_title(f"{len(result.measured())} measured, {dropped} dropped", fontsize=9)


def _color(result: Result, trial: Trial) -> str:
    return BEST if trial is result.best else GIVEN if trial is result.untuned else OTHER


def _values(result: Result, name: str) -> list[Any]:
    """What a name was in the measured candidates."""
    return sorted(
        {_value(result, trial, name) for trial in result.measured()},
        key=lambda v: (v is not None, isinstance(v, str), v if v is not None else 0),
    )


def _value(result: Result, trial: Trial, name: str) -> Any:
    chosen = dict(trial.candidate.constants) | dict(trial.candidate.hints)
    if name in chosen:
        return chosen[name]
    given = dict(zip(result.problem.kernel.parameters, result.problem.args, strict=True))
    return given[name] if name in given else result.problem.kernel.hints.get(name)


def _told(value: Any) -> str:
    return "as given" if value is None else str(value)


def _map_names(result: Result) -> tuple[str, str] | None:
    """The two constants, else hints, with the most values."""
    varied = dict.fromkeys(
        name for trial in result.trials for name, _ in (*trial.candidate.constants, *trial.candidate.hints)
    )
    counted = [(len(_values(result, name)), name) for name in varied]
    chosen = [name for count, name in sorted(counted, key=lambda row: -row[0]) if count > 1][:2]
    return (chosen[0], chosen[1]) if len(chosen) == 2 else None


def draw_map(figure: Any, axis: Any, result: Result, down: str, across: str) -> None:
    """The best time at each pair of values of two names."""
    rows, columns = _values(result, down), _values(result, across)
    times: dict[tuple[int, int], float] = {}
    for trial in reversed(result.measured()):
        assert trial.measurement is not None
        place = rows.index(_value(result, trial, down)), columns.index(_value(result, trial, across))
        times[place] = 1e6 * trial.measurement.median
    grid = [[times.get((i, j), float("nan")) for j in range(len(columns))] for i in range(len(rows))]
    image = axis.imshow(grid, cmap="viridis_r", aspect="auto")
    dark = (min(times.values()) + max(times.values())) / 2  # slow is dark
    for (i, j), value in times.items():
        color = "white" if value > dark else "black"
        axis.text(j, i, f"{value:.4g}", ha="center", va="center", fontsize=8, color=color)
    axis.set_xticks(range(len(columns)), [_told(c) for c in columns])
    axis.set_yticks(range(len(rows)), [_told(r) for r in rows])
    axis.set_xlabel(across)
    axis.set_ylabel(down)
    axis.set_title("the best time, µs", fontsize=9)
    figure.colorbar(image, ax=axis, fraction=0.05)


def _bits(trials: Sequence[Trial]) -> list[int]:
    return sorted({trial.work.bits for trial in trials if trial.work is not None})


def _points(result: Result) -> list[Point]:
    found = []
    for trial in reversed(result.measured()):
        if trial.work is None or trial.measurement is None:
            continue
        operations = trial.work.flop or trial.work.elements
        label = str(trial.candidate) if trial is result.best or trial is result.untuned else ""
        rate = operations / trial.measurement.median
        found.append(Point(label, trial.work.intensity, rate, _color(result, trial)))
    return found


def draw_roofline(axis: Any, machine: Machine, points: Sequence[Point], bits: Sequence[int]) -> None:
    """What the memory and the units allow, and what was reached."""
    points = [point for point in points if point.intensity > 0 and point.rate > 0]
    peaks = {b: machine.flop_rate(b) for b in bits}
    knees = [rate / machine.bandwidth for rate in peaks.values()]
    low = min([point.intensity for point in points] + knees) / 8
    high = max([point.intensity for point in points] + knees) * 8
    for b, peak in peaks.items():
        knee = peak / machine.bandwidth
        axis.plot([low, knee, high], [low * machine.bandwidth, peak, peak], color=PEAK, lw=1)
        what = f"{b}-bit products" if b else "elementwise"
        axis.text(high, peak, f"{what}: {peak / 1e12:.4g} TFLOP/s", ha="right", va="bottom", fontsize=8)
    at = math.sqrt(low * min(knees, default=high))  # its corner is at the line, which rises
    axis.text(at, at * machine.bandwidth, f"{machine.bandwidth / 1e9:,.0f} GB/s ", ha="right", va="bottom", fontsize=8)
    for point in points:
        label = None
        if point.label:
            roof = min(max(peaks.values(), default=point.rate), point.intensity * machine.bandwidth)
            label = f"{point.label}: {point.rate / roof:.0%}"
        axis.plot(point.intensity, point.rate, "o", color=point.color, markersize=5, label=label)
    if any(point.label for point in points):  # beside the picture no label lies on another
        axis.legend(fontsize=7, loc="upper left")
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("operations a byte of memory")
    axis.set_ylabel("operations a second")
    axis.grid(True, which="major", alpha=0.3)
