"""What sweeps find and what they cost: the gap between the best of a sweep and the compiler's own choice, the regret of
untuned choices at odd shapes, how several GPUs share a sweep, what a Dask worker adds to a trial, and a warm lookup.

    python bench/sweeps.py [--on cuda] [--records FOLDER] [--only TEXTS] [--trials N] [--scaling [COUNTS] [--size N]]
        [--out FILE]

Run on several GPUs with --scaling: the same 500 candidates on one, two … and all of them; --scaling=1,2 on so many.
Each run begins with an empty cache of ours and of the driver: the later ones do not find what the first compiled.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import record as results
import tilewright
from regress import CASES, EXAMPLES, heads, rows, square, vectors
from tilewright import _core, tune
from tilewright import tile as ct
from tilewright.sweep import records
from tilewright.sweep.run import Event, Outcome, Plan, Sweep
from tilewright.sweep.shapes import Shape
from tilewright.sweep.station import gpu_count
from tilewright.tune.cost import machine_of


def linear(m: int, n: int, k: int) -> Shape:
    arrays = (f"X=bf16[{m},{k}]", f"W=bf16[{n},{k}]", f"BIAS=f32[{n}]", f"RESIDUAL=bf16[{m},{n}]", f"Y=bf16[{m},{n}]")
    constants = ("ACTIVATION='gelu'", "TM=128", "TN=128", "TK=64")
    return Shape((*arrays, *constants), (), "cdiv(Y.shape[0], TM), cdiv(Y.shape[1], TN)")


def turned(length: int, d: int) -> Shape:
    arrays = (f"X=bf16[4,16,{length},{d}]", f"COS=f32[{length},{d // 2}]", f"SIN=f32[{length},{d // 2}]")
    constants = (f"Y=bf16[4,16,{length},{d}]", "T=32", f"HALF={d // 2}")
    return Shape((*arrays, *constants), (), "cdiv(X.shape[2], T), X.shape[1], X.shape[0]")


# Beside those of regress.py; odd sizes.
ODD: dict[str, list[Shape]] = {
    "vector_add.py:vector_add": [vectors(12_345_678), vectors(3_000_001)],
    "softmax.py:softmax": [rows(1001, 4096), rows(8191, 1024)],
    "matmul.py:matmul": [square(1234, (128, 128, 64)), square(3000, (128, 128, 64)), square(777, (128, 128, 64))],
    "attention.py:attention": [heads(1234), heads(3000)],
    "kernels/linear.py:linear": [linear(1000, 3000, 1096), linear(333, 4099, 1024)],
    "kernels/rope.py:rope": [turned(1001, 128), turned(4095, 64)],
}
# Choices of the compiler alone: the program stays as it is written.
LAYOUTS: dict[str, tuple[str, ...]] = {
    "vector_add.py:vector_add": ("warps=auto,2..16", "vector=auto,4,8"),
    "softmax.py:softmax": ("layout(x)", "warps=auto,2..16"),
    "matmul.py:matmul": (
        "family=auto,wgmma,mma.sync",
        "roles=auto,one,pingpong",
        "stages=auto,2..5",
        "raster=auto,0,1",
        "group=auto,4,8,16",
        "warps=auto,4,8",
    ),
    "attention.py:attention": ("roles=auto,one,pingpong", "stages=auto,2..4", "warps=auto,4,8", "family=auto,mma.sync"),
    "kernels/linear.py:linear": ("roles=auto,one,pingpong", "stages=auto,2..5", "warps=auto,4,8", "raster=auto,0,1"),
    "kernels/rope.py:rope": ("layout(x1)", "warps=auto,2..8", "vector=auto,2,4,8"),
}


def swept(
    place: str,
    shapes: list[Shape],
    axes: tuple[str, ...],
    folder: Path,
    tell: Callable[[Event], None] | None = None,
    **settings: Any,
) -> list[Outcome]:
    file, _, name = place.partition(":")
    return Sweep(Plan(f"{EXAMPLES / file}:{name}", tuple(shapes), axes, **settings), folder, tell).run()


@contextlib.contextmanager
def environment(**values: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def gaps(folder: Path, on: str, only: str, parts: list[str], **settings: Any) -> list[dict[str, Any]]:
    """Of each shape: how much longer the compiler's own choice takes than the best, both measured in turns."""
    found = []
    for place, axes in LAYOUTS.items():
        even = CASES.get(place, ([], []))[0] if "gaps" in parts else []
        shapes = [*even, *ODD[place]] if any(text in place for text in only.split(",")) else []
        with environment(TILEWRIGHT_TUNED=str(folder / "tuned.jsonl")):
            outcomes = swept(place, shapes, axes, folder, on=on, **settings) if shapes else []
        for outcome in outcomes:
            turns, given, best = outcome.decided, outcome.given, outcome.measured[0]
            times = (turns.given_us, turns.us) if turns else (given and given.us, best.us)
            gap = times[0] / times[1] - 1 if times[0] and times[1] else float("nan")
            choice = records.choice_text(turns.choice if turns else best.choice)
            row = {"kernel": place, "shape": str(outcome.shape), "odd": outcome.shape in ODD[place], "gap": gap}
            found.append({"bench": "gap", **row, "us": times[1], "choice": choice, "measured": len(outcome.measured)})
            print(
                f"{place} {outcome.shape}: {gap:.2%} behind {choice}, of {len(outcome.measured)} measured", flush=True
            )
    return found


@contextlib.contextmanager
def empty_caches() -> Iterator[None]:
    """What is compiled within is compiled anew: our cache and the driver's are folders without anything."""
    with (
        tempfile.TemporaryDirectory(prefix="sweeps-cache-") as folder,
        environment(TILEWRIGHT_CACHE_DIR=f"{folder}/ours", CUDA_CACHE_PATH=f"{folder}/driver"),
    ):
        Path(folder, "driver").mkdir()
        yield


def scaling(folder: Path, counts: str, size: int, trials: int, budget: float | None) -> list[dict[str, Any]]:
    """Trials a second of the same candidates on one GPU, and on more; each run begins with nothing compiled."""
    found, base, there = [], 0.0, gpu_count()
    for count in [int(n) for n in counts.split(",")] if counts else sorted({1, 2, 4, there} & {*range(1, there + 1)}):
        on = ",".join(f"cuda:{i}" for i in range(count))
        axes = ("TM=32..256*2", "TN=32..256*2", "TK=32,64", "stages=2..5", "warps=4,8", "group=4,8,16")
        shapes = [square(size, (128, 128, 64))]
        ends: list[float] = []
        settings: dict[str, Any] = {"on": on, "trials": trials, "budget": budget, "turns": False}
        with empty_caches():
            start = time.monotonic()
            tell = lambda event, ends=ends: ends.append(time.monotonic())  # noqa: E731
            (outcome,) = swept("matmul.py:matmul", shapes, axes, folder / str(count), tell, **settings)
            seconds = time.monotonic() - start
        row = {
            "gpus": count,
            "size": size,
            "processors": len(os.sched_getaffinity(0)),
            "trials": len(outcome.records),
            "measured": len(outcome.measured),
            "seconds": seconds,
            "to_the_first": ends[0] - start,
            "of_trials": sum(r.seconds for r in outcome.records) / count,
            "cache": "empty",
        }
        base = base or seconds / len(outcome.records)
        times = base / (seconds / len(outcome.records))
        found.append({"bench": "scaling", **row})
        print(
            f"{count} GPUs, nothing compiled before: {row['trials']} trials in {seconds:.1f} s, the first after "
            f"{row['to_the_first']:.1f} s; {times:.2f} times as fast as one",
            flush=True,
        )
    return found


def dask_overhead(folder: Path) -> dict[str, Any]:
    """Seconds that a trial takes longer by a Dask worker of this host than by a worker of our own: the second half of a
    sweep, behind the start of the workers and the first compilations."""
    shapes, axes = [vectors(1 << 16)], ("T=16..32768*2", "opt_level=0..3")  # each a program of its own
    each: dict[str, list[float]] = {"cpu": [], "dask://local*1": []}
    for turn in range(2):
        for where, times in each.items():
            ends: list[float] = []
            tell = lambda event, ends=ends: ends.append(time.monotonic())  # noqa: E731
            place = folder / f"{where.partition(':')[0]}{turn}"
            swept("vector_add.py:vector_add", shapes, axes, place, tell, on=where, turns=False)
            late = ends[len(ends) // 2 :]
            times.append((late[-1] - late[0]) / (len(late) - 1))
    ours, theirs = (1e3 * min(times) for times in each.values())
    print(f"a trial takes {ours:.1f} ms by a worker of ours, and {theirs:.1f} by one of Dask: {theirs - ours:.1f} more")
    return {"bench": "dask", "ms": theirs - ours, "ours": ours, "dask": theirs}


def lookup() -> dict[str, Any]:
    """Nanoseconds of tune.launch beside ct.launch, both warm and in turns: with a grid, with a function of it beside
    one that the caller calls, and of an autotuned kernel. On a GPU, whose launches do not wait; else on the CPU."""
    sys.path.insert(0, str(EXAMPLES))
    from vector_add import vector_add

    a, b, c = (tilewright.zeros((1024,), np.float32) for _ in range(3))
    args, stream = (a, b, c, 1024), 0 if gpu_count() else None
    tuned = tune.AutotunedKernel(vector_add, {}, {})
    tuned.seen.add(vector_add.shape_key(args))

    def grid(A: Any, T: int) -> int:
        return A.shape[0] // T  # type: ignore[no-any-return]

    def called() -> None:
        ct.launch(stream, grid(a, 1024), vector_add, args)

    def ns(launch: Any, *arguments: Any) -> Callable[[], float]:
        def measure(count: int = 2000) -> float:
            start = time.perf_counter_ns()
            for _ in range(count):
                launch(*arguments)
            spent = time.perf_counter_ns() - start
            if stream is not None:
                _core.synchronize(0)
            return spent / count

        return measure

    contenders = {
        "plain": ns(ct.launch, stream, 1, vector_add, args),
        "tuned": ns(tune.launch, stream, 1, vector_add, args),
        "autotuned": ns(tune.launch, stream, 1, tuned, args),
        "plain, grid called": ns(called),
        "tuned, grid called": ns(tune.launch, stream, grid, vector_add, args),
    }
    for measure in contenders.values():
        measure()
    rounds = [{name: measure() for name, measure in contenders.items()} for _ in range(40)]
    # The least of many rounds: what else runs on the machine only adds to it.
    found = {f"{name} ns": min(row[name] for row in rounds) for name in contenders}
    print(", ".join(f"{name} {value:.0f}" for name, value in found.items()))
    return {"bench": "lookup", **found}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--on", default="cuda")
    parser.add_argument("--records", type=Path, metavar="FOLDER")
    parser.add_argument("--only", default="", metavar="TEXTS", help="of the gaps: kernels with one of these, by commas")
    parser.add_argument("--sampler", default="model", help="of the gaps, as of tilewright sweep")
    parser.add_argument("--trials", type=int)
    parser.add_argument("--scaling", nargs="?", const="", metavar="COUNTS")
    parser.add_argument("--size", type=int, default=2048, help="of the products of --scaling (default: 2048)")
    parser.add_argument(
        "--budget", type=float, metavar="SECONDS", help="of each run of --scaling (default: to its end)"
    )
    parser.add_argument(
        "--parts",
        default="lookup,dask,gaps",
        help="what else is measured (default: %(default)s); odd: the gaps at odd shapes",
    )
    parser.add_argument("--out", type=Path, metavar="FILE")
    options = parser.parse_args()
    folder = options.records or Path(tempfile.mkdtemp(prefix="sweeps-"))
    parts = options.parts.split(",")
    lines = [lookup()] if "lookup" in parts else []
    lines += [dask_overhead(folder / "dask")] if "dask" in parts else []
    lines += (
        scaling(folder / "scaling", options.scaling, options.size, options.trials or 500, options.budget)
        if options.scaling is not None
        else []
    )
    found = (
        gaps(folder, options.on, options.only, parts, trials=options.trials, sampler=options.sampler)
        if {"gaps", "odd"} & set(parts)
        else []
    )
    odd = [row["gap"] for row in found if row["odd"]]
    if odd:
        print(
            f"mean regret at odd shapes {statistics.mean(odd):.2%}; the largest gap {max(r['gap'] for r in found):.2%}"
        )
    kept = results.Results("sweeps", machine_of(0 if gpu_count() else None).name, options.out)
    for line in [*lines, *found]:
        kept.add(**line)
    print(f"records are in {folder}; tilewright fit {folder} learns from them")
    return 0


if __name__ == "__main__":
    sys.exit(main())
