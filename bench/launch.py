"""What a launch from Python adds to the driver's own time, with three and with twenty torch arrays, beside the bare
call from C; and what small kernels gain that start before their predecessor has ended.

    python bench/launch.py [--rounds N] [--calls N] [--out FILE]

The kernels of the first part do nothing. Every contender queues `calls` launches and waits for the device outside of
the clock; they take turns, and the figure is the median of the rounds in nanoseconds a call. The driver's time moves by
20 % within minutes: only `over_driver_ns`, taken within this run against the driver's call with as many words, means
something. `torch.add` into a given output stands for what PyTorch's own dispatch costs.

The second part is a chain of vector additions of 16384 elements, each of which reads what the one before wrote: the
time of one of them, launched one by one and as a CUDA graph, with and without overlap (`dependent_launch`). The chain's
result is checked.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from record import Results, clocks, interleave, versions
from tilewright import _core
from tilewright import tile as ct

WORDS = 5  # of an array of rank 2: pointer, extents, strides
GOALS = {3: 500, 20: 1800}  # nanoseconds over the driver's call


def nothing(words: int, dependent: bool = False) -> _core.CudaKernel:
    """A kernel of so many 64-bit parameters that returns at once."""
    parameters = ", ".join(f".param .b64 p{i}" for i in range(words))
    body = "griddepcontrol.wait; ret;" if dependent else "ret;"
    ptx = f".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry nothing({parameters}) {{ {body} }}\n"
    return _core.CudaKernel(ptx, "nothing", _core.launch_record(num_threads=32, dependent_launch=dependent))


def calls_of(work: Callable[..., Any], arguments: tuple[Any, ...], calls: int) -> Callable[[], float]:
    """A measure of one call in nanoseconds, the loop's own 10 ns included."""

    def measure() -> float:
        _core.synchronize(0)
        begin = time.perf_counter_ns()
        for _ in range(calls):
            work(*arguments)
        spent = time.perf_counter_ns() - begin
        _core.synchronize(0)
        return spent / calls

    return measure


Contenders = dict[str, Callable[[], float]]


def launches(n: int) -> tuple[Contenders, dict[str, str]]:
    """The measures of the first part, and against which call of the driver each is held."""
    side = torch.cuda.Stream()
    handle, grid = side.cuda_stream, (4, 1, 1)
    arrays = tuple(torch.zeros((64, 64), device="cuda") for _ in range(20))
    found: Contenders = {}
    peers: dict[str, str] = {}

    def bare(words: int, programmatic: bool) -> Callable[[], float]:
        kernel = nothing(words, programmatic)

        def measure() -> float:
            _core.synchronize(0)
            nanoseconds = _core._bench_driver_launch(kernel, 0, side, bytes(8 * words), n)
            _core.synchronize(0)
            return nanoseconds

        return measure

    def add(name: str, arguments: tuple[Any, ...], words: int, stream: Any = handle, overlap: bool = False) -> None:
        constants = [i for i, value in enumerate(arguments) if type(value) is int][1:]
        parameters = [f"p{i}" for i in range(len(arguments))]
        kernel = _core.Dispatcher("nothing", parameters, constants, lambda *_: nothing(words, overlap))
        found[name] = calls_of(_core.launch, (stream, grid, kernel, arguments), n)
        peers[name] = "driver call from C, " + (
            "overlapped" if overlap else "20 arrays" if words >= 100 else "3 arrays"
        )

    for count in GOALS:
        found[f"driver call from C, {count} arrays"] = bare(WORDS * count, False)
    found["driver call from C, overlapped"] = bare(WORDS * 3, True)
    three = arrays[:3]
    for count in GOALS:
        add(f"launch, {count} arrays, stream handle", arrays[:count], WORDS * count)
    add("launch, 3 arrays, overlapped", three, WORDS * 3, overlap=True)
    add("launch, 3 arrays, stream object", three, WORDS * 3, side)
    add("launch, 3 arrays, stream None", three, WORDS * 3, None)
    add("launch, 3 arrays, int, 2 constants", (*three, 64, 128, 64), WORDS * 3 + 1)
    add("launch, no arguments", (), 0)
    x, y, z = three
    found["torch.add(x, y, out=z)"] = calls_of(lambda: torch.add(x, y, out=z), (), n)
    return found, peers


def add_body(A, B, C, T: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(C, index=(i,), tile=ct.load(A, index=(i,), shape=(T,)) + ct.load(B, index=(i,), shape=(T,)))


def chains(length: int) -> tuple[Contenders, Callable[[], float]]:
    """The measures of the second part, and the largest error of the last chain that ran."""
    ones, buffers = torch.ones(16384, device="cuda"), torch.zeros((2, 16384), device="cuda")
    found: Contenders = {}

    def run(kernel: Any) -> None:
        buffers.zero_()
        for i in range(length):
            ct.launch(None, 16, kernel, (buffers[i & 1], ones, buffers[~i & 1], 1024))

    def timed(work: Callable[[], Any]) -> Callable[[], float]:
        def measure() -> float:
            torch.cuda.synchronize()
            begin = time.perf_counter_ns()
            work()
            torch.cuda.synchronize()
            return (time.perf_counter_ns() - begin) / length

        return measure

    for name, hints in (("overlapped", {}), ("one after the other", {"dependent_launch": 0})):
        kernel = ct.kernel(add_body, **hints)
        run(kernel)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            run(kernel)
        found[f"chain, {name}"] = timed(lambda kernel=kernel: run(kernel))
        found[f"chain as a graph, {name}"] = timed(graph.replay)
    return found, lambda: (buffers[length & 1] - length).abs().max().item()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=25, help="of each contender, in turns (default: 25)")
    parser.add_argument("--calls", type=int, default=2000, help="launches between two waits")
    parser.add_argument("--out", type=Path, help="the results, a JSON object a line")
    options = parser.parse_args()
    contenders, peers = launches(options.calls)
    for measure in contenders.values():
        measure()  # loads modules and fills caches
    times = interleave(contenders, options.rounds)

    device = torch.cuda.get_device_name(0)
    about = {"versions": versions("torch"), "rounds": options.rounds, "calls": options.calls}
    results = Results("launch", device, options.out, **about)
    results.add(driver=_core.driver_version(), **clocks())
    for name, nanoseconds in times.items():
        over = {"over_driver_ns": nanoseconds - times[peers[name]]} if name in peers else {}
        results.add(bench="launch", what=name, ns=nanoseconds, **over)

    chain, error = chains(options.calls)
    for name, nanoseconds in interleave(chain, options.rounds).items():
        results.add(bench="chain", what=name, ns=nanoseconds, error=error())

    failed = 0
    for count, goal in GOALS.items():
        over = times[f"launch, {count} arrays, stream handle"] - times[f"driver call from C, {count} arrays"]
        print(f"a launch with {count} torch arrays adds {over:.0f} ns to the driver's call (goal: at most {goal})")
        failed |= over > goal
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
