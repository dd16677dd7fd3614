"""SIMT kernels (cuda.device) on a GPU or, with --cpu, on the CPU; beside CUDA C++ where its program is given.

    python bench/simt.py [--only NAME] [--shrink N] [--rounds N] [--cpu] [--peer PROGRAM] [--turns N] [--out FILE]

A line has `bench`, `n`, `ms` (median), `gbs` or `gflops`, `compile_ms` (the first launch of its kernels in this
process, less a later one: from Python to what runs) and `error` (over what is allowed, at most 1: a wrong result is not
timed). --shrink makes problems about 2^N smaller. On a GPU, L2 is emptied before each run and outputs that add up are
zeroed, outside of the time; torch holds the arrays.

The peer is a program that prints such a line for each of its variants when called with a bench's name: it runs right
behind ours, on the same machine, or in --turns with it. `of_plain` is the time of its first variant over ours,
`of_best` that of its fastest, `of_plain_min` the first by the least times of both, where the peer tells it.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from record import Median, Results, cpu_name, versions
from simt_cases import Arrays, Case, cases


class OnCpu:
    name = cpu_name()
    blocks = 8 * (os.cpu_count() or 1)

    def place(self, arrays: Arrays) -> Arrays:
        return dict(arrays)

    def finish(self) -> None:
        """Nothing is under way when a call returns."""

    def back(self, arrays: Arrays) -> Arrays:
        return arrays

    def zero(self, arrays: Arrays) -> None:
        for array in arrays.values():
            array[...] = 0

    def measure(self, work: Callable[[], None]) -> float:
        begin = time.perf_counter()
        work()
        return (time.perf_counter() - begin) * 1e3


class OnGpu:
    blocks = 8 * 132

    def __init__(self) -> None:
        import torch

        from gpu import Timer

        self.torch, self.timer = torch, Timer()
        self.name = torch.cuda.get_device_name()

    def place(self, arrays: Arrays) -> Arrays:
        return {name: self._tensor(array) for name, array in arrays.items()}

    def _tensor(self, array: np.ndarray) -> Any:
        return self.torch.from_numpy(array).cuda()

    def finish(self) -> None:
        self.torch.cuda.synchronize()

    def back(self, arrays: Arrays) -> Arrays:
        return {name: tensor.cpu().numpy() for name, tensor in arrays.items()}

    def zero(self, arrays: Arrays) -> None:
        for tensor in arrays.values():
            tensor.zero_()

    def measure(self, work: Callable[[], None]) -> float:
        return self.timer(work)()


def run_case(case: Case, where: Any, rounds: int, peer: Peer | None) -> dict[str, Any]:
    inputs, outputs = where.place(case.inputs), where.place(case.outputs)
    arrays = {**inputs, **outputs}
    begin = time.perf_counter()
    case.run(arrays)
    where.finish()
    first = (time.perf_counter() - begin) * 1e3
    found = where.back(outputs)
    error = case.wrong(found)
    row: dict[str, Any] = {"bench": case.name, "who": "tilewright", "n": case.n, "error": error}
    if not error <= 1:
        return row | {"wrong": True}
    times: list[float] = []
    turns = peer.turns if peer else 1
    for _ in range(turns):
        measured = []
        for _ in range(2 + -(-rounds // turns)):
            if case.zero:
                where.zero(outputs)
            measured.append(where.measure(lambda: case.run(arrays)))
        times += measured[2:]
        if peer:
            peer.take_turn(case.name)
    ms = Median(times)
    rate = {"gflops" if case.flop else "gbs": case.work / ms * 1e-6}
    return row | {"ms": ms, "ms_min": min(times), **rate, "compile_ms": first - ms}


@dataclasses.dataclass
class Peer:
    """A program, and what it printed in its turns between ours."""

    program: Path
    shrink: int
    turns: int
    lines: list[list[dict[str, Any]]] = dataclasses.field(default_factory=list)

    def take_turn(self, bench: str) -> None:
        environment = {**os.environ, "SIMT_SHRINK": str(self.shrink)}
        done = subprocess.run([self.program.resolve(), bench], capture_output=True, text=True, env=environment)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        self.lines.append([row for row in rows if row.get("bench") == bench and row.get("ok")])

    def rows(self) -> list[dict[str, Any]]:
        """Of each variant the median of its turns, and the least of all."""
        found = []
        for turns in zip(*self.lines, strict=False):
            row = turns[0] | {"ms": statistics.median(turn["ms"] for turn in turns)}
            if "ms_min" in row:
                row["ms_min"] = min(turn["ms_min"] for turn in turns)
            found.append(row)
        return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="run the kernels whose name contains this")
    parser.add_argument("--shrink", type=int, default=0, help="problems about 2^N smaller")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--cpu", action="store_true", help="on the CPU")
    parser.add_argument("--peer", type=Path, help="a program with the same kernels")
    parser.add_argument("--turns", type=int, default=1, help="of the peer, between as many parts of our rounds")
    parser.add_argument("--out", type=Path, help="the results, a JSON object a line")
    options = parser.parse_args()
    where = OnCpu() if options.cpu else OnGpu()
    results = Results("simt", where.name, options.out, shrink=options.shrink, **versions("numpy", "torch"))
    failed = False
    for case in cases(options.shrink, options.only, where.blocks):
        peer = Peer(options.peer, options.shrink, options.turns) if options.peer else None
        row = run_case(case, where, options.rounds, peer)
        failed |= "wrong" in row
        peers = peer.rows() if peer else []
        if peers:
            row["of_plain"] = peers[0]["ms"] / row["ms"]
            row["of_best"] = min(p["ms"] for p in peers) / row["ms"]
            if "ms_min" in peers[0]:
                row["of_plain_min"] = peers[0]["ms_min"] / row["ms_min"]
        results.add(**row)
        for line in peers:
            results.add(**line)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
