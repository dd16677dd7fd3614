"""The example programs on the CPU beside NumPy, on the same number of threads.

    python bench/cpu.py [--only NAME] [--threads N] [--rounds N] [--out FILE]

NumPy's matrix products are OpenBLAS on the same threads; its loops have one thread, whatever is asked. Contenders take
turns, each after a pause: OpenBLAS's threads wait for more work for tens of milliseconds by spinning, on the cores that
ours would run on. The figure is the median of the rounds (`best_ms`: of the best); `ratio` is NumPy's time / ours.
`compile_ms` is the whole way from Python to machine code, in a warm process, without the disk
cache: the best of five first launches, less a later one.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="run the programs whose name contains this")
    parser.add_argument(
        "--threads", type=int, default=len(os.sched_getaffinity(0)), help="of ours and of NumPy (default: all)"
    )
    parser.add_argument("--rounds", type=int, default=25, help="of each contender, in turns (default: 25)")
    parser.add_argument("--out", type=Path, help="the results, a JSON object a line")
    return parser.parse_args()


OPTIONS = parse()
# Both read these when they are loaded.
os.environ["TILEWRIGHT_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = str(OPTIONS.threads)
os.environ["TILEWRIGHT_NO_CACHE"] = "1"

import numpy as np

from record import ROOT, Results, cpu_name, interleave, versions

sys.path.insert(0, str(ROOT / "python" / "examples"))
import attention
import matmul
import softmax
import vector_add
from tilewright import tile as ct

Work = Callable[[], Any]


def chain_body(X, Y, Z, T: ct.Constant[int]):
    """Six elementwise operations, one pass over memory."""
    i = ct.bid(0)
    x = ct.load(X, index=(i,), shape=(T,))
    y = ct.load(Y, index=(i,), shape=(T,))
    low = ct.minimum(ct.maximum(x * 1.7 + y, -1.0), 1.0) * y
    ct.store(Z, index=(i,), tile=ct.where(x > 0.5, low, (x + y) * 0.3 - x))


KERNELS = {"chain": ct.kernel(chain_body)}


def forget_kernels() -> None:
    """The next launch of each program compiles it again."""
    KERNELS["chain"] = ct.kernel(chain_body)
    for module in (attention, matmul, softmax, vector_add):
        importlib.reload(module)


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape, np.float32)


def numpy_chain(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    f = np.float32
    low = np.clip(x * f(1.7) + y, f(-1), f(1)) * y
    return np.where(x > f(0.5), low, (x + y) * f(0.3) - x)


def numpy_softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def numpy_attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    s = q @ k.swapaxes(-1, -2) * np.float32(1 / np.sqrt(q.shape[-1]))
    s = np.where(np.tri(*s.shape[-2:], dtype=bool), s, np.float32(-np.inf))
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return (e / e.sum(axis=-1, keepdims=True)) @ v


class Program:
    """Ours fills `out`; NumPy's gives its result."""

    def __init__(self, name: str, ours: Work, numpy: Work, out: np.ndarray, work: float, unit: str) -> None:
        self.name, self.ours, self.numpy, self.out, self.work, self.unit = name, ours, numpy, out, work, unit
        out.fill(0)  # no page of it is new to the first launch


def programs() -> list[Program]:
    found = []

    def add(name: str, ours: Work, numpy: Work, out: np.ndarray, work: float, unit: str) -> None:
        found.append(Program(name, ours, numpy, out, work, unit))

    x, y = random(1 << 24), random(1 << 24)
    z = np.empty_like(x)
    add("vector_add 16M", lambda: vector_add.run(x, y, z), lambda: x + y, z, 12 * x.size, "GB/s")
    a, b = random(1 << 22), random(1 << 22)
    c = np.empty_like(a)
    blocks = (ct.cdiv(a.size, 1024),)
    add(
        "chain 4M",
        lambda: ct.launch(None, blocks, KERNELS["chain"], (a, b, c, 1024)),
        lambda: numpy_chain(a, b),
        c,
        12 * a.size,
        "GB/s",
    )
    for columns in (4096, 4000, 1025):
        rows = random(1024, columns)
        out = np.empty_like(rows)
        add(
            f"softmax 1024x{columns}",
            lambda rows=rows, out=out: softmax.run(rows, out),
            lambda rows=rows: numpy_softmax(rows),
            out,
            8 * rows.size,
            "GB/s",
        )
    for n in (1024, 1000):
        p, q = random(n, n), random(n, n)
        r = np.empty_like(p)
        add(
            f"matmul {n}",
            lambda p=p, q=q, r=r: matmul.run(p, q, r),
            lambda p=p, q=q: p @ q,
            r,
            2.0 * n**3,
            "GFLOP/s",
        )
    for m, k, n in ((128, 1000, 1000), (256, 1025, 1023), (512, 512, 512)):
        p, q = random(m, k), random(k, n)
        r = np.empty((m, n), np.float32)
        add(
            f"matmul {m}x{k}x{n}, tiles of 128x128x64",
            lambda p=p, q=q, r=r: matmul.run(p, q, r, tiles=(128, 128, 64)),
            lambda p=p, q=q: p @ q,
            r,
            2.0 * m * n * k,
            "GFLOP/s",
        )
    heads, length, d = 8, 1024, 64
    query, key, value = (random(1, heads, length, d) for _ in range(3))
    mixed = np.empty_like(query)
    add(
        f"causal attention {heads}x{length}x{d}",
        lambda: attention.run(query, key, value, mixed),
        lambda: numpy_attention(query, key, value),
        mixed,
        2.0 * heads * length**2 * d,
        "GFLOP/s",
    )
    return found


PAUSE = 0.1  # seconds


def seconds(work: Work) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def measure(results: Results, program: Program, rounds: int) -> None:
    first = float("inf")
    for _ in range(5):
        forget_kernels()
        first = min(first, seconds(program.ours))
    want = program.numpy()
    error = float(np.abs(program.out - want).max() / np.abs(want).max())
    if error > 1e-4:
        raise SystemExit(f"{program.name}: wrong by {error:.1e}")
    best = {"ours": float("inf"), "numpy": float("inf")}

    def turn(name: str, work: Work) -> Callable[[], float]:
        def once() -> float:
            time.sleep(PAUSE)
            time_taken = min(seconds(work), seconds(work))
            best[name] = min(best[name], time_taken)
            return time_taken

        return once

    medians = interleave({"ours": turn("ours", program.ours), "numpy": turn("numpy", program.numpy)}, rounds)
    results.add(
        program=program.name,
        ms=1e3 * medians["ours"],
        spread=medians["ours"].spread,
        best_ms=1e3 * best["ours"],
        rate=program.work / medians["ours"] / 1e9,
        unit=program.unit,
        numpy_ms=1e3 * medians["numpy"],
        ratio=medians["numpy"] / medians["ours"],
        best_ratio=best["numpy"] / best["ours"],
        compile_ms=1e3 * (first - best["ours"]),
        error=error,
    )


def main() -> int:
    threads = OPTIONS.threads
    results = Results("cpu", cpu_name(), OPTIONS.out, threads=threads, rounds=OPTIONS.rounds, **versions("numpy"))
    small = random(1024)
    vector_add.run(small, small, np.empty_like(small), tile=512)  # a warm process
    for program in programs():
        if OPTIONS.only is None or OPTIONS.only in program.name:
            measure(results, program, OPTIONS.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
