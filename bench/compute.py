"""The algorithms of `tilewright.compute`, on a GPU or, with --cpu, on the CPU; beside torch or NumPy, and CUB.

    python bench/compute.py [--only NAME] [--log2 N] [--rounds N] [--cpu] [--alone] [--peer PROGRAM] [--out FILE]

A line has `bench`, `dtype`, `n`, `ms` (median of stage 3), `first_ms` (stage 1: from Python to what runs), and
`of_NAME`: a peer's time over ours, above 1 is faster. torch or NumPy take turns with us, unless --alone is given;
results are checked before a time counts. On a GPU L2 is emptied before each run. `--peer` is a program that prints
lines of JSON with `bench`, `dtype`, `n` and `ms`, as one written with CUB does, which runs before us on the same
machine; or a file of such lines. What it has of a case is `of_peer` and `peer_ms`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import compute_data
import simt
from compute_cases import Case, Held, cases
from record import Median, Results, versions

Peers = dict[tuple[str, str, int], float]  # milliseconds by bench, dtype and items


def run_case(case: Case, where: Any, data: Any, rounds: int, alone: bool, peers: Peers) -> dict[str, Any]:
    held = case.arrays(data)
    shown = {k: data.shown(x, case.shown[k]) if k in case.shown else x for k, x in held.items()}
    begin = time.perf_counter()
    made = case.make(shown)
    first = (time.perf_counter() - begin) * 1e3
    work = _stage_three(made, case.arguments(shown), data)
    work()
    where.finish()
    row = {"bench": case.bench, "dtype": case.dtype, "n": case.n, "first_ms": first}
    if not case.check(data, held):
        return row | {"wrong": True}
    turns = {"ours": work}
    if case.other is not None and not alone:
        turns["numpy" if data.lib.__name__ == "numpy" else "torch"] = _other(case.other, data, held)
    times: dict[str, list[float]] = {name: [] for name in turns}
    for _ in range(2 + rounds):
        for name, run in turns.items():
            times[name].append(where.measure(run))
    medians = {name: Median(values[2:]) for name, values in times.items()}
    ours = medians.pop("ours")
    if (peer := peers.get((case.bench, case.dtype, case.n))) is not None:
        row |= {"peer_ms": peer, "of_peer": peer / ours}
    return row | {"ms": ours} | {f"of_{name}": ms / ours for name, ms in medians.items()}


def _other(work: Callable[[Any, Held], Any], data: Any, held: Held) -> Callable[[], Any]:
    return lambda: work(data.lib, held)


def _stage_three(made: Any, arguments: tuple[Any, ...], data: Any) -> Callable[[], Any]:
    if not made.has_storage:
        return lambda: made(*arguments)
    storage = data.zeros(-(-made(None, *arguments) // 8), "i64")
    return lambda: made(storage, *arguments)


def peer_lines(peer: Path, most_log2: int, only: str) -> list[dict[str, Any]]:
    """Those of a file, or of a program that is run."""
    text = peer.read_text() if peer.suffix == ".jsonl" else _said_by(peer, most_log2, only)
    return [row for row in map(json.loads, text.splitlines()) if "ms" in row]


def _said_by(program: Path, most_log2: int, only: str) -> str:
    command = [program.resolve(), "--max-log2", str(most_log2), *(["--only", only] if only else [])]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="run the cases whose name and dtype contain this")
    parser.add_argument("--log2", type=int, default=28, help="2^N items")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--cpu", action="store_true", help="on the CPU")
    parser.add_argument("--alone", action="store_true", help="without torch's or NumPy's times")
    parser.add_argument("--peer", type=Path, help="a program with the same cases, or what it said")
    parser.add_argument("--out", type=Path, help="the results, a JSON object a line")
    options = parser.parse_args()
    where: Any = simt.OnCpu() if options.cpu else simt.OnGpu()
    data = compute_data.OnCpu() if options.cpu else compute_data.OnGpu()
    results = Results("compute", where.name, options.out, **versions("numpy", "torch"))
    rows = peer_lines(options.peer, options.log2, options.only) if options.peer else []
    peers = {(row["bench"], row["dtype"], row["n"]): row["ms"] for row in rows}
    failed = False
    for case in cases(1 << options.log2):
        if options.only in f"{case.bench} {case.dtype}":
            row = run_case(case, where, data, options.rounds, options.alone, peers)
            failed |= "wrong" in row
            results.add(who="tilewright", **row)
    for row in rows:
        results.add(who="peer", **row)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
