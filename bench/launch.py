"""What a launch from Python adds to the driver's own time, with three torch arrays, beside the bare call from C.

    python bench/launch.py [--rounds N] [--calls N] [--out FILE]

The kernel does nothing. Every contender queues `calls` launches and waits for the device outside of the clock; they
take turns, and the figure is the median of the rounds in nanoseconds a call. The driver's time moves by 20 % within
minutes: only `over_driver_ns`, taken within this run, means something. `torch.add` into a given output stands for what
PyTorch's own dispatch costs.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from record import Results, clocks, interleave, versions
from tilewright import _core

WORDS = 15  # three arrays of rank 2: pointer, extents, strides each


def nothing(words: int) -> _core.CudaKernel:
    """A kernel of so many 64-bit parameters that returns at once."""
    parameters = ", ".join(f".param .b64 p{i}" for i in range(words))
    ptx = f".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry nothing({parameters}) {{ ret; }}\n"
    return _core.CudaKernel(ptx, "nothing", 32)


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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=2000, help="launches between two waits")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    try:
        import torch
    except ImportError:
        print("bench/launch.py needs torch: the figure is for torch arrays", file=sys.stderr)
        return 1

    x, y, z = (torch.zeros((64, 64), device="cuda") for _ in range(3))
    kernel = nothing(WORDS)
    three = _core.Dispatcher("nothing", ["x", "y", "z"], [], lambda *_: nothing(WORDS))
    # Arguments of a kernel as it is usually called: arrays, a number, constants.
    more = _core.Dispatcher("nothing", ["x", "y", "z", "n", "TM", "TN"], [4, 5], lambda *_: nothing(WORDS + 1))
    empty = _core.Dispatcher("nothing", [], [], lambda *_: nothing(0))
    side = torch.cuda.Stream()
    grid = (4, 1, 1)
    n = options.calls

    def bare() -> float:
        _core.synchronize(0)
        nanoseconds = _core._bench_driver_launch(kernel, 0, side, bytes(8 * WORDS), n)
        _core.synchronize(0)
        return nanoseconds

    handle = side.cuda_stream
    contenders = {
        "driver call from C": bare,
        "launch, 3 arrays, stream handle": calls_of(_core.launch, (handle, grid, three, (x, y, z)), n),
        "launch, 3 arrays, stream object": calls_of(_core.launch, (side, grid, three, (x, y, z)), n),
        "launch, 3 arrays, stream None": calls_of(_core.launch, (None, grid, three, (x, y, z)), n),
        "launch, 3 arrays, int, 2 constants": calls_of(_core.launch, (handle, grid, more, (x, y, z, 64, 128, 64)), n),
        "launch, no arguments": calls_of(_core.launch, (handle, grid, empty, ()), n),
        "torch.add(x, y, out=z)": calls_of(lambda: torch.add(x, y, out=z), (), n),
    }
    for measure in contenders.values():
        measure()  # loads modules and fills caches
    times = interleave(contenders, options.rounds)

    device = torch.cuda.get_device_name(0)
    results = Results("launch", device, options.out, versions=versions("torch"), rounds=options.rounds, calls=n)
    results.add(driver=_core.driver_version(), **clocks())
    driver = times["driver call from C"]
    for name, nanoseconds in times.items():
        results.add(bench="launch", what=name, ns=nanoseconds, over_driver_ns=nanoseconds - driver)
    over = times["launch, 3 arrays, stream handle"] - driver
    print(f"a launch with three torch arrays adds {over:.0f} ns to the driver's {driver:.0f} ns (goal: at most 1000)")
    return 0 if over <= 1000 else 1


if __name__ == "__main__":
    sys.exit(main())
