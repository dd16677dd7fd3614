"""Draw what the newest GPU results reach under the peaks of their device: bench/roofline.svg (`make figures`).

Left, the roofline: products and attention, ours (the best of the variants that the benchmark tries) and the peer of the
same run. Right, kernels bound by memory: bytes a second, and what a copy reaches. Without matplotlib nothing is drawn.
"""

from __future__ import annotations

import importlib.util
import math
import re
import sys
from typing import Any

from readme import ROOT, Row, newest

sys.path.insert(0, str(ROOT / "python"))
from tilewright import _core
from tilewright.tune.cost import Machine
from tilewright.tune.plot import OTHER, PEAK, Point, draw_roofline, pyplot

OUT = ROOT / "bench" / "roofline.svg"
OURS, PEER = "#c23b22", "#4878a8"
# What `_core.device_info` says: multiprocessors, Hz, bytes a second, shared bytes, generation.
PEAKS = {"NVIDIA H200": Machine("NVIDIA H200", True, 132, 1.98e9, 4.814e12, 233472, _core.chip(90))}


def element_bytes(bench: str) -> int:
    """Of an operand; the name of a benchmark tells its dtype."""
    return 1 if any(dtype in bench for dtype in ("e4m3", "e5m2", "int8")) else 2


def intensity(bench: str, shape: str) -> float | None:
    """Operations a byte of a bench with products: inputs read once, outputs written once."""
    extents = [int(n) for n in re.findall(r"\d+", shape)]
    size = element_bytes(bench)
    if bench.startswith("matmul") and len(extents) in (3, 4):
        m, n, k = extents[-3:]
        return 2 * m * n * k / (size * (m * k + k * n) + 2 * m * n)
    if bench.startswith("attention") and len(extents) == 4:
        length = extents[2]
        return length / 2 / (2 if "causal" in bench else 1)
    return None


def groups(rows: list[Row], unit: str) -> list[tuple[str, Row, list[Row]]]:
    """(label, the best of ours, the peers) of each bench and shape that is measured in a unit."""
    timed = [row for row in rows if "ms" in row and unit in row]
    found = []
    for bench, shape in dict.fromkeys((row["bench"], row["shape"]) for row in timed):
        group = [row for row in timed if (row["bench"], row["shape"]) == (bench, shape)]
        ours = [row for row in group if row["who"].startswith("tilewright")]
        if ours:
            best = min(ours, key=lambda row: row["ms"])
            found.append((f"{bench} {shape}", best, [row for row in group if row not in ours]))
    return found


def products(axis: Any, machine: Machine, rows: list[Row]) -> None:
    points, bits = [], {16}
    for label, best, peers in groups(rows, "tflops"):
        at = intensity(best["bench"], best["shape"])
        if at is None:
            continue
        bits.add(8 * element_bytes(label))
        points += [Point("", at * 1.04, 1e12 * row["tflops"], PEER) for row in peers]
        points.append(Point("", at, 1e12 * best["tflops"], OURS))
    draw_roofline(axis, machine, points, sorted(bits))
    axis.set_title("products: ours (red) and cuBLAS, cuDNN (blue)", fontsize=10)


def bandwidths(axis: Any, machine: Machine, rows: list[Row]) -> None:
    found = [group for group in groups(rows, "gbs") if not group[0].startswith("copy")]
    for place, (_, best, peers) in enumerate(found):
        axis.barh(place, best["gbs"], color=OURS)
        for row in peers:
            axis.plot(row["gbs"], place, "|", color=PEAK if "copy" in row["who"] else OTHER, markersize=12, mew=2)
    axis.axvline(machine.bandwidth / 1e9, color=PEAK, lw=1)
    axis.set_yticks(range(len(found)), [label for label, _, _ in found], fontsize=7)
    axis.invert_yaxis()
    axis.set_xlabel("GB/s\nblack marks: a copy; blue: other libraries; line: the memory's peak", fontsize=9)
    axis.set_title("bound by memory", fontsize=10)


def main() -> int:
    runs = [run for run in (newest("gpu"), newest("memory")) if run is not None]
    if not runs or runs[0][0]["device"] not in PEAKS:
        print("bench/roofline.py: no results of a device whose peaks are known", file=sys.stderr)
        return 0
    if importlib.util.find_spec("matplotlib") is None:
        print("bench/roofline.py: nothing is drawn without matplotlib", file=sys.stderr)
        return 0
    about, rows = runs[0][0], [row for _, found, _ in runs for row in found]
    machine = PEAKS[about["device"]]
    plt = pyplot()
    height = max(4.5, 1 + 0.22 * len(groups(rows, "gbs")))
    figure, (left, right) = plt.subplots(1, 2, figsize=(13, math.ceil(height)))
    products(left, machine, rows)
    bandwidths(right, machine, rows)
    figure.suptitle(f"{about['device']}, {about['date']}, commit {about['commit']}", fontsize=10)
    figure.tight_layout()
    figure.savefig(OUT, metadata={"Date": None})
    print(OUT)
    return 0


if __name__ == "__main__":
    sys.exit(main())
