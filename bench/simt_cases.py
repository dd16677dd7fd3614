"""The ten SIMT kernels on inputs of a size, and what their results must be by NumPy."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import simt_kernels as k
from tilewright import device

Arrays = dict[str, Any]


@dataclasses.dataclass
class Case:
    """`run` launches on the arrays, wherever they are; `wrong` is the largest error of the outputs on the host over
    what is allowed. `work` is bytes, or FLOP where `flop`; with `zero` the outputs add up."""

    name: str
    n: int
    work: float
    inputs: Arrays
    outputs: Arrays
    run: Callable[[Arrays], None]
    wrong: Callable[[Arrays], float]
    flop: bool = False
    zero: bool = False


def divide_up(a: int, b: int) -> int:
    return -(-a // b)


def uniform(rng: np.random.Generator, *shape: int, low: float = 0, high: float = 1) -> np.ndarray:
    return (rng.random(shape, np.float32) * np.float32(high - low) + np.float32(low)).astype(np.float32)


def largest(found: Any, expected: Any, allowed: float) -> float:
    """Infinite where a result is no number."""
    error = float(np.max(np.abs(np.asarray(found, np.float64) - expected)))
    return error / allowed if error == error else math.inf


def saxpy(rng: np.random.Generator, shrink: int) -> Case:
    n = (1 << 28) >> shrink
    x, y = uniform(rng, n), uniform(rng, n)
    expected = np.float32(0.37) * x + y
    run = lambda a: device.launch(k.saxpy, 0.37, a["x"], a["y"], grid=divide_up(n, 256), block=256)  # noqa: E731
    return Case("saxpy", n, 12.0 * n, {"x": x}, {"y": y}, run, lambda o: largest(o["y"], expected, 1e-6))


def transpose(rng: np.random.Generator, shrink: int) -> Case:
    n = 16384 >> shrink // 2
    src = uniform(rng, n, n)
    tiles = divide_up(n, 32)

    def run(a: Arrays) -> None:
        device.launch(k.transpose, a["src"], a["dst"], grid=(tiles, tiles), block=(32, 8))

    wrong = lambda o: largest(o["dst"], src.T, 1e-9)  # noqa: E731
    return Case("transpose", n * n, 8.0 * n * n, {"src": src}, {"dst": np.empty_like(src)}, run, wrong)


def reduce_sum(rng: np.random.Generator, shrink: int, blocks: int = 1056) -> Case:
    n = (1 << 28) >> shrink
    x = uniform(rng, n)
    total = float(x.sum(dtype=np.float64))
    run = lambda a: device.launch(k.reduce_sum, a["x"], a["sum"], grid=blocks, block=256)  # noqa: E731
    wrong = lambda o: largest(o["sum"], total, 1e-5 * total)  # noqa: E731
    return Case("reduce_sum", n, 4.0 * n, {"x": x}, {"sum": np.zeros(1, np.float32)}, run, wrong, zero=True)


def histogram(rng: np.random.Generator, shrink: int, blocks: int = 1056) -> Case:
    n = (1 << 28) >> shrink
    values = rng.integers(0, 256, n, np.uint8)
    expected = np.bincount(values, minlength=256)
    run = lambda a: device.launch(k.histogram, a["values"], a["bins"], grid=blocks, block=256)  # noqa: E731
    wrong = lambda o: largest(o["bins"], expected, 0.5)  # noqa: E731
    return Case("histogram", n, 1.0 * n, {"values": values}, {"bins": np.zeros(256, np.uint32)}, run, wrong, zero=True)


def nbody(rng: np.random.Generator, shrink: int) -> Case:
    n = 32768 >> shrink // 2
    bodies = uniform(rng, n, 4)
    some = rng.integers(0, n, 64)
    d = bodies[None, :, :3].astype(np.float64) - bodies[some, None, :3]
    pull = bodies[None, :, 3] / ((d * d).sum(axis=2) + 1e-3) ** 1.5
    parts = d * pull[:, :, None]
    expected, size = parts.sum(axis=1), np.abs(parts).sum()

    def run(a: Arrays) -> None:
        grid = divide_up(n, k.NBODY_THREADS)
        device.launch(k.nbody, a["bodies"], a["acceleration"], grid=grid, block=k.NBODY_THREADS)

    wrong = lambda o: largest(o["acceleration"][some], expected, 1e-5 * size / len(some))  # noqa: E731
    outputs = {"acceleration": np.empty((n, 3), np.float32)}
    return Case("nbody", n, 20.0 * n * n, {"bodies": bodies}, outputs, run, wrong, flop=True)


def mandelbrot(rng: np.random.Generator, shrink: int, limit: int = 1024) -> Case:
    n = 4096 >> shrink // 2
    step = np.float32(3.0 / n)
    some = rng.integers(0, n * n, 4096)
    cx = np.float32(-2) + (some % n).astype(np.float32) * step
    cy = np.float32(-1.5) + (some // n).astype(np.float32) * step
    x, y, count = np.zeros_like(cx), np.zeros_like(cx), np.zeros(len(some), np.int32)
    for _ in range(limit):
        inside = x * x + y * y <= 4
        count += inside
        x, y = (np.where(inside, new, old) for new, old in ((x * x - y * y + cx, x), (2 * x * y + cy, y)))

    def run(a: Arrays) -> None:
        grid = (divide_up(n, 32), divide_up(n, 8))
        device.launch(k.mandelbrot, a["counts"], float(step), limit, grid=grid, block=(32, 8))

    def wrong(o: Arrays) -> float:
        """Roundings move single points of the border."""
        found = np.asarray(o["counts"]).reshape(-1)[some]
        return float(np.mean(found != count)) / 0.05

    outputs = {"counts": np.empty((n, n), np.int32)}
    work = 8.0 * float(count.mean()) * n * n
    return Case("mandelbrot", n * n, work, {}, outputs, run, wrong, flop=True)


def stencil2d(rng: np.random.Generator, shrink: int) -> Case:
    n = 16384 >> shrink // 2
    src = uniform(rng, n, n)
    expected = src.copy()
    around = src[1:-1, :-2] + src[1:-1, 2:] + src[:-2, 1:-1] + src[2:, 1:-1]
    expected[1:-1, 1:-1] = np.float32(0.5) * src[1:-1, 1:-1] + np.float32(0.125) * around

    def run(a: Arrays) -> None:
        device.launch(k.stencil2d, a["src"], a["dst"], grid=(divide_up(n, 32), divide_up(n, 8)), block=(32, 8))

    wrong = lambda o: largest(o["dst"], expected, 1e-6)  # noqa: E731
    return Case("stencil2d", n * n, 8.0 * n * n, {"src": src}, {"dst": np.empty_like(src)}, run, wrong)


def stencil3d(rng: np.random.Generator, shrink: int) -> Case:
    n = 512 >> shrink // 3
    src = uniform(rng, n, n, n)
    expected, inner = src.copy(), (slice(1, -1),) * 3
    around = sum(np.roll(src, step, axis)[inner] for axis in range(3) for step in (1, -1))
    expected[inner] = np.float32(0.4) * src[inner] + np.float32(0.1) * around

    def run(a: Arrays) -> None:
        grid = (divide_up(n, 32), divide_up(n, 8), n)
        device.launch(k.stencil3d, a["src"], a["dst"], grid=grid, block=(32, 8))

    wrong = lambda o: largest(o["dst"], expected, 1e-6)  # noqa: E731
    return Case("stencil3d", n**3, 8.0 * n**3, {"src": src}, {"dst": np.empty_like(src)}, run, wrong)


def radix_pass(rng: np.random.Generator, shrink: int) -> Case:
    n = (1 << 26) >> shrink
    keys = rng.integers(0, 1 << 32, n, np.uint32)
    expected = keys[np.argsort(keys & 255, kind="stable")]
    blocks = divide_up(n, k.RADIX_TILE)

    def run(a: Arrays) -> None:
        device.launch(k.radix_count, a["keys"], 0, a["counts"], grid=blocks, block=k.RADIX_THREADS)
        device.launch(k.radix_scan, a["counts"], a["totals"], grid=256, block=k.SCAN_THREADS)
        operands = (a["keys"], a["out"], 0, a["counts"], a["totals"])
        device.launch(k.radix_scatter, *operands, grid=blocks, block=k.RADIX_THREADS)

    inputs = {"keys": keys, "counts": np.zeros((256, blocks), np.uint32), "totals": np.zeros(256, np.uint32)}
    wrong = lambda o: largest(o["out"], expected.astype(np.float64), 0.5)  # noqa: E731
    return Case("radix_pass", n, 12.0 * n, inputs, {"out": np.zeros_like(keys)}, run, wrong)


def black_scholes(rng: np.random.Generator, shrink: int) -> Case:
    n = (1 << 26) >> shrink
    price, strike = uniform(rng, n, low=5, high=30), uniform(rng, n, low=1, high=100)
    years = uniform(rng, n, low=0.25, high=10)
    s, x, t = (a[:4096].astype(np.float64) for a in (price, strike, years))
    spread = 0.3 * np.sqrt(t)
    d1 = (np.log(s / x) + (0.02 + 0.045) * t) / spread
    cdf = np.vectorize(lambda d: 0.5 * math.erfc(-d * math.sqrt(0.5)))
    discounted = x * np.exp(-0.02 * t)
    call = s * cdf(d1) - discounted * cdf(d1 - spread)
    put = call - s + discounted

    def run(a: Arrays) -> None:
        operands = (a["price"], a["strike"], a["years"], a["call"], a["put"], 0.02, 0.3)
        device.launch(k.black_scholes, *operands, grid=divide_up(n, 256), block=256)

    def wrong(o: Arrays) -> float:
        return max(largest(o[name][:4096], e, 5e-6 * 130) for name, e in (("call", call), ("put", put)))

    outputs = {name: np.empty(n, np.float32) for name in ("call", "put")}
    inputs = {"price": price, "strike": strike, "years": years}
    return Case("black_scholes", n, 20.0 * n, inputs, outputs, run, wrong)


def spmv(rng: np.random.Generator, shrink: int) -> Case:
    rows = (1 << 22) >> shrink
    lengths = rng.integers(0, 65, rows)
    row_start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    total = int(row_start[-1])
    columns, values = rng.integers(0, rows, total, np.int32), uniform(rng, total, low=-1)
    x = uniform(rng, rows, low=-1)
    some = min(rows, 4096)
    last = int(row_start[some])
    products = values[:last].astype(np.float64) * x[columns[:last]]
    sums = np.concatenate([[0], np.cumsum(products)])
    expected = sums[row_start[1 : some + 1]] - sums[row_start[:some]]

    def run(a: Arrays) -> None:
        operands = (a["row_start"], a["columns"], a["values"], a["x"], a["y"])
        device.launch(k.spmv, *operands, grid=divide_up(rows, 8), block=256)

    inputs = {"row_start": row_start, "columns": columns, "values": values, "x": x}
    wrong = lambda o: largest(o["y"][:some], expected, 1e-5)  # noqa: E731
    work = 8.0 * total + 12.0 * rows
    return Case("spmv", rows, work, inputs, {"y": np.empty(rows, np.float32)}, run, wrong)


CASES = (
    saxpy,
    transpose,
    reduce_sum,
    histogram,
    nbody,
    mandelbrot,
    stencil2d,
    stencil3d,
    radix_pass,
    black_scholes,
    spmv,
)


def cases(shrink: int, only: str = "", blocks: int = 1056) -> Iterator[Case]:
    """`blocks` is the grid of kernels whose threads stride over their input."""
    for make in CASES:
        if only in make.__name__:
            grid = {"blocks": blocks} if "blocks" in inspect.signature(make).parameters else {}
            yield make(np.random.default_rng(0), shrink, **grid)
