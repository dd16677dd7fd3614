"""Learning: constants of the cost model from records, by least squares on the logarithm of times.

The model is tune's (`cost.predict`), on the work and the machine that a record tells of. Each constant is scaled by a
factor within what is physically possible (RANGES), and a prior holds it where it is: the figures of
include/tilewright/targets.def are datasheets' and measurements. A constant of which the records say less than the prior
is left as it is, and told. Every problem counts alike, however many candidates it has, and what a launch turned into
another program (`launched`) is no evidence for the program that the model has counted.

Errors and regrets are cross-validated: a problem is judged by constants that other problems gave. The regret of a
problem is how much longer the candidate takes that the model thinks best than the best that was measured.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import TileError, TileValueError
from ..tune import cost
from .records import Record


@dataclasses.dataclass(frozen=True)
class Range:
    """What a constant can be: bounds, as they are or of its figure; and the standard deviation of its logarithm, by
    which the prior holds it."""

    low: float
    high: float
    sd: float
    of_figure: bool = False

    def logs(self, figure: float) -> tuple[float, float]:
        """The bounds of its factor's logarithm."""
        scale = 1.0 if self.of_figure else figure
        return min(-1e-6, math.log(self.low / scale)), max(1e-6, math.log(self.high / scale))


# A peak is not exceeded, and long kernels reach half of it at least. A latency is between that of one access to an idle
# memory and that of a full queue; filling and draining the machine, from a launch that does nothing to one that finds
# all caches empty.
GPU_RANGES = {
    "bandwidth": Range(0.5, 1.0, 0.3, True),
    "memory_ns": Range(300, 2500, 0.4),
    "wave_ns": Range(500, 20_000, 0.5),
    "iteration_ns": Range(5, 2500, 0.5),
    "l2_bytes": Range(16, 128, 0.2),
    "shared_rate": Range(0.5, 1.0, 0.15, True),
    "fma_flop": Range(0.5, 1.0, 0.15, True),
    "tensor_flop": Range(0.5, 1.0, 0.15, True),
}
# Of CPUs the model has one guess for all.
CPU_RANGES = {
    "bandwidth": Range(2e9, 2e12, 1.0),
    "cpu_flop": Range(1, 256, 1.0),
    "cpu_block_ns": Range(10, 20_000, 1.0),
}
# Of a time's logarithm: by how much the model is wrong where its constants are right. The first is a guess, with which
# the records are asked for their own.
MISFIT, LEAST_MISFIT, MOST_MISFIT = 0.3, 0.03, 0.5
TOLD = 0.6  # of the prior's standard deviation: what the records leave of it where they determine a constant
LEAST_RECORDS = 8


@dataclasses.dataclass(frozen=True)
class Sample:
    """A measurement that the model can be asked about."""

    problem: tuple[str, ...]
    kernel: str
    work: cost.Work
    machine: cost.Machine
    hints: dict[str, Any]
    us: float
    changes: int = 0  # of the kernel as given
    is_as_written: bool = True  # the launch made no other program of it


def samples_of(records: Sequence[Record]) -> list[Sample]:
    """Of a device all have the machine that its last record tells of: earlier ones may know of other constants."""
    found, machines = [], dict[str, cost.Machine]()
    for r in records:
        work, machine = cost.Work.read(r.work), cost.machine_from(r.device, r.machine)
        if r.measured and work is not None and machine is not None:
            chosen = {n: v for n, v in r.choice.items() if type(v) is int and v > 0}
            if not _is_time(work, machine, chosen):
                continue
            machines[r.device] = machine
            found.append(Sample(r.problem, r.kernel, work, machine, chosen, r.us, len(r.choice), not r.launched))
    return [dataclasses.replace(s, machine=machines[s.machine.name]) for s in found]


def _is_time(work: cost.Work, machine: cost.Machine, hints: dict[str, Any]) -> bool:
    """Whether the model has a time for it: figures of anybody may give none."""
    try:
        return math.isfinite(cost.predict(work, machine, hints))
    except ArithmeticError:
        return False


def scaled(machine: cost.Machine, factors: Mapping[str, float]) -> cost.Machine:
    chip = {name: value * factors.get(name, 1.0) for name, value in machine.chip.items()}
    return dataclasses.replace(machine, bandwidth=machine.bandwidth * factors.get("bandwidth", 1.0), chip=chip)  # type: ignore[arg-type]


def expected_us(samples: Sequence[Sample], factors: Mapping[str, float]) -> list[float]:
    machines: dict[int, cost.Machine] = {}
    for s in samples:
        if id(s.machine) not in machines:
            machines[id(s.machine)] = scaled(s.machine, factors)
    return [max(1e-3, 1e6 * cost.predict(s.work, machines[id(s.machine)], s.hints)) for s in samples]


def apart(samples: Sequence[Sample], factors: Mapping[str, float]) -> Any:
    """Logarithms of what the model expects over what was measured."""
    return np.log(expected_us(samples, factors)) - np.log([s.us for s in samples])


def ranges_of(machine: cost.Machine, only: Sequence[str] = ()) -> dict[str, Range]:
    every = GPU_RANGES if machine.is_gpu else CPU_RANGES
    there = {name: r for name, r in every.items() if name == "bandwidth" or name in machine.chip}
    unknown = [name for name in only if name not in there]
    if unknown:
        raise TileValueError(f"the model of {machine.name} has no constant {unknown[0]!r}; it has {', '.join(there)}")
    return {name: r for name, r in there.items() if not only or name in only}


def figure_of(machine: cost.Machine, name: str) -> float:
    return machine.bandwidth if name == "bandwidth" else float(machine.chip[name])


def _weights(samples: Sequence[Sample]) -> Any:
    """Of each sample: its problem's, shared with the others of it."""
    counts: dict[Any, int] = {}
    for s in samples:
        counts[s.problem] = counts.get(s.problem, 0) + 1
    most = max(counts.values())
    return np.array([math.sqrt(min(most, LEAST_RECORDS) / counts[s.problem]) for s in samples])


@dataclasses.dataclass(frozen=True)
class Solution:
    """The factor of each constant, 1 of those that the records do not determine."""

    factors: dict[str, float]
    left: tuple[str, ...] = ()
    at_bounds: tuple[str, ...] = ()


def solve(samples: Sequence[Sample], only: Sequence[str] = ()) -> Solution:
    """All constants at first, or these; then those alone that the records determine."""
    machine = samples[0].machine
    evidence = [s for s in samples if s.is_as_written] or list(samples)
    ranges = ranges_of(machine, only)
    logs, _ = _least_squares(evidence, machine, ranges, MISFIT)
    factors = {name: math.exp(log) for name, log in logs.items()}
    typical = 1.48 * float(np.median(np.abs(apart(evidence, factors))))
    misfit = min(MOST_MISFIT, max(LEAST_MISFIT, typical))
    logs, sds = _least_squares(evidence, machine, ranges, misfit)
    told = [name for name in ranges if sds[name] < TOLD * ranges[name].sd]
    if len(told) < len(ranges):
        logs, _ = _least_squares(evidence, machine, {name: ranges[name] for name in told}, misfit)
    bounds = {name: ranges[name].logs(figure_of(machine, name)) for name in told}
    at = tuple(name for name in told if min(abs(logs[name] - end) for end in bounds[name]) < 1e-3)
    factors = {name: math.exp(logs.get(name, 0.0)) for name in ranges}
    return Solution(factors, tuple(name for name in ranges if name not in told), at)


def _least_squares(
    samples: Sequence[Sample], machine: cost.Machine, ranges: Mapping[str, Range], misfit: float
) -> tuple[dict[str, float], dict[str, float]]:
    """Logarithms of factors, and the standard deviation of each by the records and the prior together."""
    try:
        from scipy.optimize import least_squares
    except ImportError:
        raise TileError("fit needs SciPy: pip install tilewright[sweep]") from None
    if not ranges:
        return {}, {}
    weights, sd = _weights(samples), np.array([r.sd for r in ranges.values()])

    def residuals(logs: Any) -> Any:
        factors = dict(zip(ranges, np.exp(logs), strict=True))
        return np.concatenate([weights * _tamed(apart(samples, factors) / misfit), logs / sd])

    low, high = zip(*(r.logs(figure_of(machine, name)) for name, r in ranges.items()), strict=True)
    # Constants that are no bottleneck anywhere near have no slope: a wide difference finds what a narrow one does not.
    found = least_squares(residuals, np.zeros(len(sd)), bounds=(low, high), diff_step=0.05, max_nfev=100)
    spread = np.sqrt(np.diag(np.linalg.inv(found.jac.T @ found.jac)))
    return dict(zip(ranges, map(float, found.x), strict=True)), dict(zip(ranges, map(float, spread), strict=True))


def _tamed(wrong: Any) -> Any:
    """Programs that the model is far off about (which spill, or serialize) do not pull constants with them."""
    return np.sign(wrong) * np.sqrt(2 * (np.sqrt(1 + wrong**2) - 1))


def error_of(samples: Sequence[Sample], factors: Mapping[str, float]) -> float:
    """The root of the mean square of logarithms, as a ratio less one."""
    return math.exp(math.sqrt(float(np.mean(apart(samples, factors) ** 2)))) - 1


def regret_of(samples: Sequence[Sample], factors: Mapping[str, float]) -> float:
    """Of one problem. Of candidates that are equal to the model the one counts that changes least."""
    order = zip(expected_us(samples, factors), samples, strict=True)
    _, chosen = min(order, key=lambda pair: (round(math.log(pair[0]), 6), pair[1].changes))
    return chosen.us / min(s.us for s in samples) - 1


@dataclasses.dataclass
class Row:
    """Of a kernel on a device: means over its problems, before and after."""

    kernel: str
    problems: int
    error: tuple[float, float]
    regret: tuple[float, float]


@dataclasses.dataclass
class Device:
    """Constants before and after, what the records say nothing of, and what the rest is worth."""

    constants: dict[str, tuple[float, float]]
    rows: list[Row]
    left: tuple[str, ...] = ()
    at_bounds: tuple[str, ...] = ()

    @property
    def is_better(self) -> bool:
        """On problems that it was not fitted to: the errors are smaller, and no kernel's regret is larger."""
        before, after = (sum(row.error[side] * row.problems for row in self.rows) for side in (0, 1))
        return after < before and all(row.regret[1] <= row.regret[0] + 1e-9 for row in self.rows)

    def lines(self) -> list[str]:
        found = [f"  {'constant':14} {'before':>12} {'after':>12}"]
        for name, (old, new) in self.constants.items():
            note = "not determined by these records, left" if name in self.left else ""
            note = "at the end of what is possible" if name in self.at_bounds else note
            found.append(f"  {name:14} {old:12.4g} {new:12.4g}  {note}".rstrip())
        head = f"  {'kernel':20} {'problems':>8}  {'error before':>12} {'after':>8}  {'regret before':>13} {'after':>8}"
        found.append(head)
        for r in self.rows:
            errors, regrets = f"{r.error[0]:12.1%} {r.error[1]:8.1%}", f"{r.regret[0]:13.2%} {r.regret[1]:8.2%}"
            found.append(f"  {r.kernel:20} {r.problems:8}  {errors}  {regrets}")
        word = "better" if self.is_better else "not better"
        return [*found, f"  on problems that they were not fitted to these constants are {word}"]


@dataclasses.dataclass
class Fit:
    """Of each device: the constants before and after, and what they are worth."""

    devices: dict[str, Device]
    few: dict[str, int] = dataclasses.field(default_factory=dict)  # measurements of devices that have too few

    def __str__(self) -> str:
        lines = [line for name, device in self.devices.items() for line in (name, *device.lines())]
        told = f"measurements are left out; a fit needs {LEAST_RECORDS} or more"
        return "\n".join([*lines, *(f"{name}: {count} {told}" for name, count in self.few.items())])

    def text(self) -> str:
        """The constants as JSON."""
        return json.dumps(
            {d: {n: new for n, (_, new) in found.constants.items()} for d, found in self.devices.items()}, indent=1
        )


def fit(records: Sequence[Record], folds: int = 5, only: Sequence[str] = ()) -> Fit:
    samples = samples_of(records)
    if folds < 2:
        raise TileValueError(f"--folds {folds}: a cross-validation has 2 or more")
    by_device: dict[str, list[Sample]] = {}
    for sample in samples:
        by_device.setdefault(sample.machine.name, []).append(sample)
    few = {name: len(found) for name, found in by_device.items() if len(found) < LEAST_RECORDS}
    if len(few) == len(by_device):
        name, count = next(iter(few.items()), ("", 0))
        where = f" on {name}" if few else ""
        raise TileValueError(f"a fit needs {LEAST_RECORDS} measurements of a device or more, found {count}{where}")
    enough = {name: found for name, found in by_device.items() if name not in few}
    if only:  # of a CPU and a GPU in one sweep they are the constants of one
        have = {name: found for name, found in enough.items() if set(only) <= set(ranges_of(found[0].machine))}
        enough = have or enough
    return Fit({name: _fit_device(found, folds, only) for name, found in enough.items()}, few)


def _fit_device(samples: list[Sample], folds: int, only: Sequence[str]) -> Device:
    found, machine = solve(samples, only), samples[0].machine
    before = {name: figure_of(machine, name) for name in found.factors}
    constants = {name: (before[name], before[name] * factor) for name, factor in found.factors.items()}
    return Device(constants, _judge(samples, folds, only), found.left, found.at_bounds)


def _judge(samples: list[Sample], folds: int, only: Sequence[str]) -> list[Row]:
    """Each problem by the constants that the problems of other folds give; of a single problem there are no others."""
    problems = list(dict.fromkeys(s.problem for s in samples))
    parts = min(folds, len(problems))
    judged: dict[str, list[tuple[float, float, float, float]]] = {}
    for part in range(parts):
        inside = set(problems[part::parts])
        others = [s for s in samples if s.problem not in inside]
        factors = solve(others or samples, only).factors
        for problem in problems[part::parts]:
            own = [s for s in samples if s.problem == problem]
            found = (error_of(own, {}), error_of(own, factors), regret_of(own, {}), regret_of(own, factors))
            judged.setdefault(own[0].kernel, []).append(found)
    rows = []
    for kernel, all_of in sorted(judged.items()):
        mean = [sum(values) / len(all_of) for values in zip(*all_of, strict=True)]
        rows.append(Row(kernel, len(all_of), (mean[0], mean[1]), (mean[2], mean[3])))
    return rows
