"""The algorithms of `tilewright.compute`, on a GPU or, with --cpu, on the CPU; beside torch or NumPy, and CUB.

    python bench/compute.py [--only NAME] [--log2 N] [--rounds N] [--cpu] [--peer PROGRAM] [--out FILE]

A line has `bench`, `dtype`, `n`, `ms` (median of stage 3), `first_ms` (stage 1: from Python to what runs), and
`of_NAME`: a peer's time over ours, above 1 is faster. Peers take turns with us; results are compared before a time
counts. On a GPU L2 is emptied before each run. `--peer` is a program that prints lines of JSON with `bench`, `dtype`,
`n` and `ms`, as one written with CUB does; it runs behind ours, on the same machine.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from record import Results, versions
from simt import OnCpu, OnGpu
from tilewright import compute
from tilewright.compute import OpKind, SortOrder

Arrays = dict[str, Any]


@dataclasses.dataclass
class Case:
    """`make(arrays)` is stage 1; `arguments(arrays)` are those of the call behind the temporary storage."""

    bench: str
    dtype: str
    arrays: dict[str, np.ndarray]
    make: Callable[[Arrays], Any]
    arguments: Callable[[Arrays], tuple[Any, ...]]
    expected: Callable[[], np.ndarray]
    numpy: Callable[[Arrays], Any]
    torch: Callable[[Any, Arrays], Any] | None = None


def plus(a, b):  # type: ignore[no-untyped-def]
    return a + b


def larger(a, b):  # type: ignore[no-untyped-def]
    return a if a > b else b


def _reductions(n: int, rng: Any) -> Iterator[Case]:
    for dtype in ("float32", "int32", "float64"):
        x = (rng.random(n) * 100).astype(dtype)
        zero = np.zeros((), dtype)
        for name, op in (("reduce_sum", OpKind.PLUS), ("reduce_max", OpKind.MAXIMUM), ("reduce_custom", larger)):
            ufunc = np.add if name == "reduce_sum" else np.maximum
            yield Case(
                name,
                dtype,
                {"x": x, "out": np.zeros(1, dtype)},
                lambda a, op=op, zero=zero: compute.make_reduce_into(a["x"], a["out"], op, zero),
                lambda a, op=op, zero=zero: (a["x"], a["out"], op, n, zero),
                lambda x=x, ufunc=ufunc, dtype=dtype: ufunc.reduce(x, dtype=dtype),
                lambda a, ufunc=ufunc, dtype=dtype: ufunc.reduce(a["x"], dtype=dtype),
                lambda t, a, name=name: t.sum(a["x"]) if name == "reduce_sum" else t.max(a["x"]),
            )


def _scans(n: int, rng: Any) -> Iterator[Case]:
    for dtype in ("float32", "int32", "int64"):
        x = rng.integers(0, 3, n).astype(dtype)
        for name, op in (("inclusive_sum", OpKind.PLUS), ("scan_custom", larger)):
            ufunc = np.add if op is OpKind.PLUS else np.maximum
            yield Case(
                name,
                dtype,
                {"x": x, "out": np.zeros_like(x)},
                lambda a, op=op: compute.make_inclusive_scan(a["x"], a["out"], op, None),
                lambda a, op=op: (a["x"], a["out"], op, n, None),
                lambda x=x, ufunc=ufunc, dtype=dtype: ufunc.accumulate(x, dtype=dtype),
                lambda a, ufunc=ufunc, dtype=dtype: ufunc.accumulate(a["x"], dtype=dtype),
                lambda t, a, op=op: t.cumsum(a["x"], 0) if op is OpKind.PLUS else t.cummax(a["x"], 0),
            )


def _others(n: int, rng: Any) -> Iterator[Case]:
    x, count = rng.random(n, dtype=np.float32), np.zeros(1, np.int64)

    def half(v):  # type: ignore[no-untyped-def]
        return v < 0.5

    yield Case(
        "select",
        "float32",
        {"x": x, "out": np.zeros_like(x), "count": count},
        lambda a: compute.make_select(a["x"], a["out"], a["count"], half),
        lambda a: (a["x"], a["out"], a["count"], half, n),
        lambda: np.resize(x[x < 0.5], 1),
        lambda a: a["x"][a["x"] < 0.5],
        lambda t, a: a["x"][a["x"] < 0.5],
    )
    yield Case(
        "transform_binary",
        "float32",
        {"x": x, "out": np.zeros_like(x)},
        lambda a: compute.make_binary_transform(a["x"], a["x"], a["out"], OpKind.PLUS),
        lambda a: (a["x"], a["x"], a["out"], OpKind.PLUS, n),
        lambda: x + x,
        lambda a: a["x"] + a["x"],
        lambda t, a: a["x"] + a["x"],
    )
    samples = rng.integers(0, 256, n).astype(np.uint8)
    levels = (np.array([257], np.int32), np.array([0], np.int32), np.array([256], np.int32))
    yield Case(
        "histogram",
        "uint8",
        {"x": samples, "out": np.zeros(256, np.int32)},
        lambda a: compute.make_histogram_even(a["x"], a["out"], *levels, n),
        lambda a: (a["x"], a["out"], *levels, n),
        lambda: np.bincount(samples, minlength=256),
        lambda a: np.bincount(a["x"], minlength=256),
        lambda t, a: t.bincount(a["x"], minlength=256),
    )


def _sorts(n: int, rng: Any) -> Iterator[Case]:
    for dtype in ("uint32", "int64", "float32"):
        keys = (rng.random(n) * 2**31).astype(dtype)
        yield Case(
            "radix_sort",
            dtype,
            {"x": keys, "out": np.zeros_like(keys)},
            lambda a: compute.make_radix_sort(a["x"], a["out"], None, None, SortOrder.ASCENDING),
            lambda a: (a["x"], a["out"], None, None, n),
            lambda keys=keys: np.sort(keys),
            lambda a: np.sort(a["x"], kind="stable"),
            (lambda t, a: t.sort(a["x"])) if dtype != "uint32" else None,
        )
    keys = rng.integers(0, 2**31, n).astype(np.int32)

    def less(a, b):  # type: ignore[no-untyped-def]
        return a < b

    yield Case(
        "merge_sort",
        "int32",
        {"x": keys, "out": np.zeros_like(keys)},
        lambda a: compute.make_merge_sort(a["x"], None, a["out"], None, less),
        lambda a: (a["x"], None, a["out"], None, less, n),
        lambda: np.sort(keys),
        lambda a: np.sort(a["x"], kind="stable"),
        lambda t, a: t.sort(a["x"], stable=True),
    )
    ends = np.arange(1, n // 1000 + 1) * 1000
    x, out = rng.random(n, dtype=np.float32), np.zeros(len(ends), np.float32)
    zero = np.float32(0)
    yield Case(
        "segmented_reduce_1000",
        "float32",
        {"x": x, "out": out, "starts": ends - 1000, "ends": ends},
        lambda a: compute.make_segmented_reduce(a["x"], a["out"], a["starts"], a["ends"], OpKind.PLUS, zero),
        lambda a: (a["x"], a["out"], OpKind.PLUS, len(ends), a["starts"], a["ends"], zero),
        lambda: x[: len(ends) * 1000].reshape(-1, 1000).sum(1),
        lambda a: np.add.reduceat(a["x"], a["starts"]),
        lambda t, a: a["x"][: len(ends) * 1000].view(-1, 1000).sum(1),
    )


def cases(n: int) -> Iterator[Case]:
    for some in (_reductions, _scans, _others, _sorts):
        yield from some(n, np.random.default_rng(0))


def run_case(case: Case, where: Any, rounds: int) -> dict[str, Any]:
    arrays = where.place(case.arrays)
    begin = time.perf_counter()
    made = case.make(arrays)
    first = (time.perf_counter() - begin) * 1e3
    arguments = case.arguments(arrays)
    work = _stage_three(made, arguments, where)
    work()
    where.finish()
    expected = np.asarray(case.expected())
    found = where.back({"out": arrays["out"]})["out"].reshape(-1)[: expected.size].reshape(expected.shape)
    row = {"bench": case.bench, "dtype": case.dtype, "n": case.arrays["x"].size, "first_ms": first}
    if not np.allclose(found, expected, rtol=1e-3):
        return row | {"wrong": True}
    peers = {"numpy": lambda: case.numpy(arrays)} if isinstance(where, OnCpu) else {}
    if not peers and case.torch is not None:
        peers = {"torch": lambda: case.torch(where.torch, arrays)}  # type: ignore[misc]
    times: dict[str, list[float]] = {name: [] for name in ("ours", *peers)}
    for _ in range(2 + rounds):
        for name, run in {"ours": work, **peers}.items():
            times[name].append(where.measure(run))
    medians = {name: statistics.median(values[2:]) for name, values in times.items()}
    return row | {"ms": medians["ours"]} | {f"of_{name}": medians[name] / medians["ours"] for name in peers}


def _stage_three(made: Any, arguments: tuple[Any, ...], where: Any) -> Callable[[], Any]:
    if not made.has_storage:
        return lambda: made(*arguments)
    count = made(None, *arguments)
    storage = where.place({"storage": np.zeros(count, np.uint8)})["storage"]
    return lambda: made(storage, *arguments)


def peer_lines(program: Path, most_log2: int) -> list[dict[str, Any]]:
    done = subprocess.run([program.resolve(), "--max-log2", str(most_log2)], capture_output=True, text=True, check=True)
    return [row for row in map(json.loads, done.stdout.splitlines()) if "ms" in row]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="run the cases whose name contains this")
    parser.add_argument("--log2", type=int, default=28, help="2^N items")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--cpu", action="store_true", help="on the CPU")
    parser.add_argument("--peer", type=Path, help="a program with the same cases")
    parser.add_argument("--out", type=Path, help="the results, a JSON object a line")
    options = parser.parse_args()
    where: Any = OnCpu() if options.cpu else OnGpu()
    results = Results("compute", where.name, options.out, **versions("numpy", "torch"))
    failed = False
    for case in cases(1 << options.log2):
        if options.only in case.bench:
            row = run_case(case, where, options.rounds)
            failed |= "wrong" in row
            results.add(who="tilewright", **row)
    for row in peer_lines(options.peer, options.log2) if options.peer else []:
        results.add(who="peer", **row)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
