"""What a call of an object of `tilewright.compute` takes on the host: at stage 3, and the first one.

    python bench/compute_calls.py [--cpu] [--only NAME] [--first] [--out FILE]

A line has `bench`, `us` (a call of 1,024 items at stage 3, the fastest of ten runs of 200), `launches` and, on a GPU,
`launches_us`: as many launches of an empty kernel. With the stand-in driver of the tests (TILEWRIGHT_CUDA_DRIVER) a
launch takes no time. With --first it has `first_ms` and `cpu_ms` (of all threads) instead: stage 1 in a process of its
own that has compiled nothing but an empty kernel, with nothing cached on disk, neither by us nor by the driver; and
`function_ms` and `function_cpu_ms`, in another process: a function's call, which compiles only what it starts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import compute_data
from compute_cases import Case, cases
from record import Results, cpu_name, versions
from tilewright import _core, arrays, compute
from tilewright.compute import launching, objects

N, CALLS, RUNS = 1024, 200, 10


def fastest(work: Callable[[], Any]) -> float:
    """Microseconds of a call."""
    times = []
    for _ in range(RUNS):
        begin = time.perf_counter()
        for _ in range(CALLS):
            work()
        times.append((time.perf_counter() - begin) / CALLS * 1e6)
        time.sleep(0.01)  # the queue of a GPU empties
    return min(times)


def empty(n):  # type: ignore[no-untyped-def]
    pass


class Calls:
    """An object and what it is called with, where the algorithms take it."""

    def __init__(self, case: Case, on_cpu: bool) -> None:
        data = compute_data.OnCpu()
        held = {name: data.shown(x, case.shown.get(name, x.dtype)) for name, x in case.arrays(data).items()}
        self.place = (lambda x: x) if on_cpu else (lambda x: arrays.to_device(x, device="cuda:0"))
        self.shown = {name: self.place(x) for name, x in held.items()}
        self.case, self.on_cpu = case, on_cpu
        self.kernel = launching.ComputeKernel(empty)
        self.launch_empty()

    def launch_empty(self) -> None:
        _core.launch_threads(None if self.on_cpu else 1, 1, 1 if self.on_cpu else 32, self.kernel, (N,))

    def first(self) -> dict[str, Any]:
        begin, cpu = time.perf_counter(), time.process_time()
        self.case.make(self.shown)
        return {"first_ms": (time.perf_counter() - begin) * 1e3, "cpu_ms": (time.process_time() - cpu) * 1e3}

    def function(self) -> dict[str, Any]:
        begin, cpu = time.perf_counter(), time.process_time()
        with mock.patch.object(objects.Algorithm, "complete"):  # as functions make objects
            made, values = self.case.make(self.shown), self.case.arguments(self.shown)
        made.run(made._read(dict(zip(made.order, values, strict=False))), None)
        ms, cpu_ms = (time.perf_counter() - begin) * 1e3, (time.process_time() - cpu) * 1e3
        return {"function_ms": ms, "function_cpu_ms": cpu_ms}

    def later(self) -> dict[str, Any]:
        compute.clear_all_caches()
        made, values = self.case.make(self.shown), self.case.arguments(self.shown)
        storage = [self.place(compute_data.OnCpu().zeros(made(None, *values), "u8"))] if made.has_storage else []
        before = launching.counts["launches"]
        made(*storage, *values)
        launches = launching.counts["launches"] - before
        row: dict[str, Any] = {"us": fastest(lambda: made(*storage, *values)), "launches": launches}
        if not self.on_cpu:
            row["launches_us"] = launches * fastest(self.launch_empty)
        return row


def first_alone(case: Case, on_cpu: bool) -> dict[str, Any]:
    """`Calls.first` and `Calls.function`, in a process of its own each."""
    found: dict[str, Any] = {}
    for how in ("--alone", "--alone-function"):
        told = [sys.executable, __file__, how, f"{case.bench} {case.dtype}", *(["--cpu"] if on_cpu else [])]
        with tempfile.TemporaryDirectory() as folder:
            environment = os.environ | {"TILEWRIGHT_CACHE_DIR": folder, "CUDA_CACHE_DISABLE": "1"}
            done = subprocess.run(told, env=environment, check=True, stdout=subprocess.PIPE, text=True)
        found |= json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cpu", action="store_true", help="on the CPU")
    parser.add_argument("--only", default="", help="the cases whose name and dtype contain this")
    parser.add_argument("--first", action="store_true", help="first calls")
    parser.add_argument("--alone", help="the first call of this case, in this process")
    parser.add_argument("--alone-function", help="a function's first call of this case, in this process")
    parser.add_argument("--out", type=Path, help="the results, a JSON object a line")
    options = parser.parse_args()
    every = {f"{case.bench} {case.dtype}": case for case in cases(N)}
    if options.alone:
        print(json.dumps(Calls(every[options.alone], options.cpu).first()))
        return
    if options.alone_function:
        print(json.dumps(Calls(every[options.alone_function], options.cpu).function()))
        return
    results = Results("compute-calls", cpu_name(), options.out, **versions("numpy"))
    for name, case in every.items():
        if options.only in name:
            row = first_alone(case, options.cpu) if options.first else Calls(case, options.cpu).later()
            results.add(who="tilewright", bench=case.bench, dtype=case.dtype, **row)


if __name__ == "__main__":
    main()
