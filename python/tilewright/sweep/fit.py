"""Learning: constants of the cost model from records, by least squares on the logarithm of times.

The model is tune's (`cost.predict`), on the work and the machine that a record tells of. Each constant is scaled by a
factor; a small weight keeps those where they are of which the records say nothing. Errors and regrets are
cross-validated: a problem is judged by constants that other problems gave. The regret of a problem is how much longer
the candidate takes that the model thinks best than the best that was measured.
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
from .page import machine_of
from .records import Record

GPU_CONSTANTS = (
    "bandwidth",
    "memory_ns",
    "wave_ns",
    "iteration_ns",
    "l2_bytes",
    "shared_rate",
    "fma_flop",
    "tensor_flop",
)
CPU_CONSTANTS = ("bandwidth", "cpu_flop", "cpu_block_ns")
STAY = 0.02  # weight of a factor's logarithm beside a measurement's
LEAST_RECORDS = 8
_WORK = {field.name for field in dataclasses.fields(cost.Work)}


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


def samples_of(records: Sequence[Record]) -> list[Sample]:
    found = []
    for r in records:
        if r.measured and set(r.work) == _WORK and r.machine:
            whole = {"blocks": int(r.work["blocks"]), "bits": int(r.work["bits"]), "known": bool(r.work["known"])}
            work = cost.Work(**{**r.work, **whole})  # type: ignore[arg-type]
            chosen = {n: v for n, v in r.choice.items() if type(v) is int}
            found.append(Sample(r.problem, r.kernel, work, machine_of(r), chosen, r.us, len(r.choice)))
    return found


def scaled(machine: cost.Machine, factors: Mapping[str, float]) -> cost.Machine:
    chip = {name: value * factors.get(name, 1.0) for name, value in machine.chip.items()}
    return dataclasses.replace(machine, bandwidth=machine.bandwidth * factors.get("bandwidth", 1.0), chip=chip)  # type: ignore[arg-type]


def expected_us(sample: Sample, factors: Mapping[str, float]) -> float:
    return max(1e-3, 1e6 * cost.predict(sample.work, scaled(sample.machine, factors), sample.hints))


def solve(samples: Sequence[Sample]) -> dict[str, float]:
    """The factor of each constant."""
    try:
        from scipy.optimize import least_squares
    except ImportError:
        raise TileError("fit needs SciPy: pip install tilewright[sweep]") from None
    every: tuple[str, ...] = GPU_CONSTANTS if samples[0].machine.is_gpu else CPU_CONSTANTS
    names = tuple(n for n in every if n == "bandwidth" or n in samples[0].machine.chip)

    def residuals(logs: Any) -> Any:
        factors = dict(zip(names, np.exp(logs), strict=True))
        apart = [math.log(expected_us(s, factors) / s.us) for s in samples]
        return np.array([*apart, *(STAY * math.sqrt(len(samples)) * logs)])

    # Constants that are no bottleneck anywhere near have no slope: a wide difference finds what a narrow one does not.
    found = least_squares(residuals, np.zeros(len(names)), bounds=(-2.5, 2.5), diff_step=0.05, max_nfev=200)
    return {name: float(math.exp(x)) for name, x in zip(names, found.x, strict=True)}


def error_of(samples: Sequence[Sample], factors: Mapping[str, float]) -> float:
    """The root of the mean square of logarithms, as a ratio less one."""
    squares = [math.log(expected_us(s, factors) / s.us) ** 2 for s in samples]
    return math.exp(math.sqrt(sum(squares) / len(squares))) - 1


def regret_of(samples: Sequence[Sample], factors: Mapping[str, float]) -> float:
    """Of one problem. Of candidates that are equal to the model the one counts that changes least."""
    chosen = min(samples, key=lambda s: (round(math.log(expected_us(s, factors)), 6), s.changes))
    return chosen.us / min(s.us for s in samples) - 1


@dataclasses.dataclass
class Row:
    """Of a kernel on a device: means over its problems, before and after."""

    kernel: str
    problems: int
    error: tuple[float, float]
    regret: tuple[float, float]


@dataclasses.dataclass
class Fit:
    """Of each device: the constants before and after, and what they are worth."""

    devices: dict[str, tuple[dict[str, tuple[float, float]], list[Row]]]

    def __str__(self) -> str:
        lines = []
        for device, (constants, rows) in self.devices.items():
            lines += [device, f"  {'constant':14} {'before':>12} {'after':>12}"]
            lines += [f"  {name:14} {old:12.4g} {new:12.4g}" for name, (old, new) in constants.items()]
            lines.append(
                f"  {'kernel':20} {'problems':>8}  {'error before':>12} {'after':>8}  "
                f"{'regret before':>13} {'after':>8}"
            )
            for r in rows:
                lines.append(
                    f"  {r.kernel:20} {r.problems:8}  {r.error[0]:12.1%} {r.error[1]:8.1%}  "
                    f"{r.regret[0]:13.2%} {r.regret[1]:8.2%}"
                )
        return "\n".join(lines)

    def text(self) -> str:
        """The constants as JSON."""
        return json.dumps(
            {d: {n: new for n, (_, new) in found.items()} for d, (found, _) in self.devices.items()}, indent=1
        )


def fit(records: Sequence[Record], folds: int = 5) -> Fit:
    samples = samples_of(records)
    if folds < 2:
        raise TileValueError(f"--folds {folds}: a cross-validation has 2 or more")
    by_device: dict[str, list[Sample]] = {}
    for sample in samples:
        by_device.setdefault(sample.machine.name, []).append(sample)
    few = [name for name, found in by_device.items() if len(found) < LEAST_RECORDS]
    if few or not samples:
        count = len(by_device[few[0]]) if few else 0
        where = f" on {few[0]}" if few else ""
        raise TileValueError(f"a fit needs {LEAST_RECORDS} measurements of a device or more, found {count}{where}")
    return Fit({name: _fit_device(found, folds) for name, found in by_device.items()})


def _fit_device(samples: list[Sample], folds: int) -> tuple[dict[str, tuple[float, float]], list[Row]]:
    factors = solve(samples)
    machine = samples[0].machine
    before = {name: machine.bandwidth if name == "bandwidth" else float(machine.chip[name]) for name in factors}
    constants = {name: (before[name], before[name] * factor) for name, factor in factors.items()}
    return constants, _judge(samples, folds)


def _judge(samples: list[Sample], folds: int) -> list[Row]:
    """Each problem by the constants that the problems of other folds give; of a single problem there are no others."""
    problems = list(dict.fromkeys(s.problem for s in samples))
    parts = min(folds, len(problems))
    judged: dict[str, list[tuple[float, float, float, float]]] = {}
    for part in range(parts):
        inside = set(problems[part::parts])
        others = [s for s in samples if s.problem not in inside]
        factors = solve(others or samples)
        for problem in problems[part::parts]:
            own = [s for s in samples if s.problem == problem]
            found = (error_of(own, {}), error_of(own, factors), regret_of(own, {}), regret_of(own, factors))
            judged.setdefault(own[0].kernel, []).append(found)
    rows = []
    for kernel, all_of in sorted(judged.items()):
        mean = [sum(values) / len(all_of) for values in zip(*all_of, strict=True)]
        rows.append(Row(kernel, len(all_of), (mean[0], mean[1]), (mean[2], mean[3])))
    return rows
