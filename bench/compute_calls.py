"""What a call of an object of `tilewright.compute` takes at stage 3, on the host, beside its launches alone.

    python bench/compute_calls.py [--cpu] [--out FILE]

A line has `bench`, `us` (a call of 1,024 items, the fastest of ten runs of 200) and, on a GPU, `launches_us`: as many
launches of an empty kernel. With the stand-in driver of the tests (TILEWRIGHT_CUDA_DRIVER) a launch takes no time.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from record import Results, cpu_name, versions
from tilewright import _core, arrays, compute
from tilewright.compute import OpKind
from tilewright.compute.launching import ComputeKernel

N, CALLS, RUNS = 1024, 200, 10


def cases(made: Callable[[int, Any], Any]) -> Iterator[tuple[str, Any, tuple[Any, ...], int]]:
    """Names, objects, what they are called with, and how many kernels that launches."""
    x, y, out, count = (made(n, t) for n, t in ((N, "f4"), (N, "f4"), (N, "f4"), (2, "i4")))
    zero = np.float32(0)

    def add(a, b):  # type: ignore[no-untyped-def]
        return a + b

    def positive(a):  # type: ignore[no-untyped-def]
        return a > 0

    def below(a, b):  # type: ignore[no-untyped-def]
        return a < b

    yield "reduce_into", compute.make_reduce_into(x, out, add, zero), (x, out, add, N, zero), 2
    yield "inclusive_scan", compute.make_inclusive_scan(x, out, OpKind.PLUS, None), (x, out, OpKind.PLUS, N, None), 2
    yield "binary_transform", compute.make_binary_transform(x, y, out, add), (x, y, out, add, N), 1
    yield "select", compute.make_select(x, out, count, positive), (x, out, count, positive, N), 2
    yield "radix_sort", compute.make_radix_sort(x, out, None, None), (x, out, None, None, N, None, None), 7
    yield "merge_sort", compute.make_merge_sort(x, None, out, None, below), (x, None, out, None, below, N), 1


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cpu", action="store_true", help="on the CPU")
    parser.add_argument("--out", type=Path, help="the results, a JSON object a line")
    options = parser.parse_args()
    made: Callable[[int, Any], Any] = np.zeros if options.cpu else lambda n, t: arrays.empty(n, t, device="cuda:0")
    results = Results("compute-calls", cpu_name(), options.out, **versions("numpy"))
    kernel = ComputeKernel(empty)
    for name, algorithm, arguments, launches in cases(made):
        storage = [made(algorithm(None, *arguments), "u1")] if algorithm.has_storage else []
        row: dict[str, Any] = {"bench": name, "us": fastest(lambda a=algorithm, v=(*storage, *arguments): a(*v))}
        if not options.cpu:
            row["launches_us"] = launches * fastest(lambda: _core.launch_threads(1, 1, 32, kernel, (N,)))
        results.add(who="tilewright", **row)


if __name__ == "__main__":
    main()
