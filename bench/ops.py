"""Single operations on a GPU beside Triton's in the same run, each at three sizes.

    python bench/ops.py [--only TEXT] [--rounds N] [--out FILE]

A kernel does one operation of the language, and loads and stores what it takes. Ours and Triton's have tiles of the
same size, of products the best of three, and are checked against torch. `to_triton` is Triton's time over ours: above 1
is faster. `compile_ms` is Python to PTX in this process, the median of three, nothing cached. How it is measured is in
bench/gpu.py: turns, an empty L2 cache, the median. At the end: the geometric mean, and what is slower.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch

import ops_kernels as kernels
import ops_triton as peers
from admission import WrongResultError
from gpu import Timer, Work
from record import Results, clocks, interleave, versions
from tilewright import cli
from tilewright import tile as ct

ELEMENTS = (1 << 16, 1 << 22, 1 << 27)
SIDES = (512, 2048, 8192)  # of squares
ROW, TILE, SQUARE = 1024, 1024, 64
TARGET = "sm_90a"
PRODUCTS = ((64, 64, 64), (128, 128, 64), (128, 256, 64))  # tiles that both try
F32, BF16, F16, FP8 = torch.float32, torch.bfloat16, torch.float16, torch.float8_e4m3fn


class Case(NamedTuple):
    op: str
    shape: str
    ours: dict[str, Work]
    peers: dict[str, Work]
    output: torch.Tensor
    error: Callable[[], float]
    limit: float
    kernel: Any
    arguments: tuple[Any, ...]


def of_largest(found: torch.Tensor, want: torch.Tensor) -> float:
    difference = (found.double() - want.double()).abs().max()
    return float(difference / want.double().abs().max().clamp_min(1e-30))


def launched(kernel: Any, grid: tuple[int, ...], arguments: tuple[Any, ...]) -> Work:
    return lambda: ct.launch(None, grid, kernel, arguments)


def case(
    op: str, shape: str, kernel: Any, grid: tuple[int, ...], arguments: tuple[Any, ...], peer: Work, want: Any,
    output: torch.Tensor, limit: float = 1e-5,
) -> Case:  # fmt: skip
    def error() -> float:
        return of_largest(output, want())

    ours = {"tilewright": launched(kernel, grid, arguments)}
    return Case(op, shape, ours, {"triton": peer}, output, error, limit, kernel, arguments)


def positive(n: int) -> torch.Tensor:
    return torch.rand(n, device="cuda") + 0.5


WANTED: dict[str, Callable[..., torch.Tensor]] = {
    "copy": lambda x: x,
    "pow": torch.pow,
    "where": lambda x, y: torch.where(x > y, x, y * 0.5),
    "truediv": torch.div,
}


def elementwise_cases() -> Iterator[Case]:
    for inputs, ops in ((1, kernels.UNARY), (2, kernels.BINARY)):
        for op, function in ops.items():
            kernel = kernels.elementwise(function, inputs)
            want = WANTED.get(op) or getattr(torch, op)
            for n in ELEMENTS:
                operands, z = [positive(n) for _ in range(inputs)], torch.empty(n, device="cuda")
                peer = lambda op=op, z=z, operands=operands: peers.elementwise(op, z, TILE, *operands)  # noqa: E731
                wanted = lambda want=want, operands=operands: want(*operands)  # noqa: E731
                yield case(op, f"{n}", kernel, (n // TILE,), (*operands, z, TILE), peer, wanted, z)


def cast_cases() -> Iterator[Case]:
    kernel = kernels.elementwise(kernels.UNARY["copy"], 1)
    for source, target in ((F32, BF16), (BF16, F32), (F32, FP8), (F32, torch.int32), (torch.int32, F32)):
        for n in ELEMENTS:
            x, z = (positive(n) * 8).to(source), torch.empty(n, device="cuda", dtype=target)
            peer = lambda x=x, z=z: peers.elementwise("cast", z, TILE, x)  # noqa: E731
            op = f"{str(source)[6:]} to {str(target)[6:]}"
            yield case(op, f"{n}", kernel, (n // TILE,), (x, z, TILE), peer, lambda x=x, t=target: x.to(t), z, 0.0)


def row_cases() -> Iterator[Case]:
    reductions: dict[str, Callable[..., Any]] = {
        "sum": lambda x: x.sum(1),
        "max": lambda x: x.amax(1),
        "prod": lambda x: x.prod(1),
        "argmax": lambda x: torch.where(x == x.amax(1, keepdim=True), torch.arange(ROW, device="cuda"), ROW).amin(1),
        "cumsum": lambda x: x.cumsum(1),
        "cumprod": lambda x: x.cumprod(1),
        "sort": lambda x: x.sort(1).values,
        "flip": lambda x: x.flip(1),
    }
    for keeps, ops in ((False, kernels.REDUCTIONS), (True, kernels.SCANS)):
        for op, function in ops.items():
            kernel = kernels.rows(function, keeps)
            for n in ELEMENTS:
                x = positive(n).reshape(-1, ROW)
                x = x * 1.0462 if "prod" in op else x  # so that products stay near 1
                z = torch.empty_like(x) if keeps else torch.empty(len(x), device="cuda")
                z = z.to(torch.int32) if op == "argmax" else z
                wanted = lambda x=x, op=op: reductions[op](x.double() if op in ("sum", "prod") else x)  # noqa: E731
                peer = lambda op=op, x=x, z=z: peers.rows(op, x, z)  # noqa: E731
                limit = 1e-4 if "prod" in op else 1e-5
                yield case(op, f"{len(x)}x{ROW}", kernel, (len(x),), (x, z, ROW), peer, wanted, z, limit)


def square_cases() -> Iterator[Case]:
    for n in SIDES:
        x, z = positive(n * n).reshape(n, n), torch.empty(n, n, device="cuda")
        grid = (n // SQUARE, n // SQUARE)
        peer: Work = lambda x=x, z=z: peers.transpose(x, z, SQUARE)  # noqa: E731
        yield case("transpose", f"{n}x{n}", kernels.transpose, grid, (x, z, SQUARE), peer, lambda x=x: x.T, z)
        a, b = positive(n), positive(n)
        peer = lambda a=a, b=b, z=z: peers.outer(a, b, z, SQUARE)  # noqa: E731
        wanted = lambda a=a, b=b: a[:, None] + b[None, :]  # noqa: E731
        yield case("outer sum", f"{n}x{n}", kernels.outer, grid, (a, b, z, SQUARE), peer, wanted, z)


def indexed_cases() -> Iterator[Case]:
    for n in ELEMENTS:
        x, z = positive(n), torch.zeros(n, device="cuda")
        places = torch.randperm(n, device="cuda", dtype=torch.int32)
        for op in ("gather", "scatter"):
            peer = lambda op=op, x=x, p=places, z=z: peers.indexed(op, x, p, z, TILE)  # noqa: E731
            scattered = lambda x=x, p=places: torch.empty_like(x).index_copy_(0, p.long(), x)  # noqa: E731
            wanted = scattered if op == "scatter" else lambda x=x, p=places: x[p.long()]
            arguments = (x, places, z, TILE)
            yield case(op, f"{n}", getattr(kernels, op), (n // TILE,), arguments, peer, wanted, z, 0.0)


def atomic_cases() -> Iterator[Case]:
    """Into 2^16 places at random; what was there before is added to, so the error is of one launch over zeros."""
    for n in ELEMENTS:
        x, z = torch.ones(n, device="cuda"), torch.zeros(1 << 16, device="cuda")
        places = torch.randint(0, 1 << 16, (n,), device="cuda", dtype=torch.int32)
        peer = lambda x=x, p=places, z=z: peers.indexed("atomic_add", x, p, z, TILE)  # noqa: E731
        wanted = lambda p=places: torch.bincount(p, minlength=1 << 16)  # noqa: E731
        yield case("atomic_add", f"{n}", kernels.atomic_add, (n // TILE,), (x, places, z, TILE), peer, wanted, z, 0.0)


def rand_cases() -> Iterator[Case]:
    for n in ELEMENTS:
        z = torch.empty(n, device="cuda")
        ours = {"tilewright": launched(kernels.rand, (n // TILE,), (z, TILE))}
        error = lambda z=z: max(abs(float(z.min())), abs(float(z.max()) - 1), abs(float(z.mean()) - 0.5))  # noqa: E731
        peer = {"triton": lambda z=z: peers.rand(z, TILE)}
        yield Case("rand", f"{n}", ours, peer, z, error, 1e-2, kernels.rand, (z, TILE))


def mma_cases() -> Iterator[Case]:
    for dtype, target, limit in (
        (BF16, BF16, 1e-2), (F16, F16, 2e-3), (F32, F32, 2e-3), (FP8, BF16, 2e-2), (torch.int8, torch.int32, 0.0)
    ):  # fmt: skip
        for n in SIDES:
            if dtype == torch.int8:
                a, b = (torch.randint(-8, 8, (n, n), device="cuda", dtype=dtype) for _ in range(2))
            else:
                a, b = (torch.randn(n, n, device="cuda").to(dtype) for _ in range(2))
            c = torch.empty(n, n, device="cuda", dtype=target)
            error = lambda a=a, b=b, c=c: of_largest(c, product(a, b))  # noqa: E731
            ours, theirs = {}, {}
            for tiles in PRODUCTS:
                name, grid = "x".join(map(str, tiles[:2])), (n // tiles[0], n // tiles[1])
                ours[f"tilewright {name}"] = launched(kernels.mma, grid, (a, b, c, *tiles))
                theirs[f"triton {name}"] = lambda a=a, b=b, c=c, t=tiles: peers.mma(a, b, c, t)
            arguments = (a, b, c, *PRODUCTS[1])
            yield Case(f"mma {str(dtype)[6:]}", f"{n}^3", ours, theirs, c, error, limit, kernels.mma, arguments)


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    exact = torch.float64 if a.dtype in (F32, torch.int8) else F32
    return a.to(exact) @ b.to(exact).T


FAMILIES = (elementwise_cases, cast_cases, row_cases, square_cases, indexed_cases, atomic_cases, rand_cases, mma_cases)


def checked(one: Case, work: Work) -> float:
    if one.op == "atomic_add":
        one.output.zero_()
    else:
        one.output.view(torch.uint8).fill_(0x7F)
    work()
    torch.cuda.synchronize()
    found = one.error()
    if not found <= one.limit:
        raise WrongResultError(f"its error is {found:.1e}, expected {one.limit:.0e} at most")
    return found


NAMES = {
    F32: "f32", BF16: "bf16", F16: "f16", FP8: "f8e4m3", torch.int32: "i32", torch.int8: "i8",
}  # fmt: skip


def described(name: str, value: Any) -> str:
    """An argument as the command line has it; extents that are not told."""
    return f"{name}={NAMES[value.dtype]}[{','.join('?' * value.ndim)}]" if torch.is_tensor(value) else f"{name}={value}"


def compile_ms(one: Case) -> float:
    key = cli.specialization(one.kernel, list(map(described, one.kernel.parameters, one.arguments)))
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        cli.lower(one.kernel, key, TARGET, "ptx")
        times.append(1e3 * (time.perf_counter() - begin))
    return statistics.median(times)


def measure(results: Results, timer: Timer, one: Case, rounds: int) -> float | None:
    """Triton's time over ours; None where one of them has none."""
    working: dict[str, Work] = {}
    about = {"bench": one.op, "shape": one.shape}
    for who, work in {**one.ours, **one.peers}.items():
        try:
            results.add(**about, who=who, error=checked(one, work))
            working[who] = work
        except Exception as problem:  # one that fails must not hide the others' figures
            results.add(**about, who=who, failed=f"{type(problem).__name__}: {problem}"[:300])
    measures = {who: timer(work) for who, work in working.items()}
    for once in measures.values():
        for _ in range(3):
            once()
    medians = interleave(measures, rounds)
    for who, ms in medians.items():
        results.add(**about, who=who, ms=ms)
    best = [min((medians[who] for who in names if who in medians), default=None) for names in (one.ours, one.peers)]
    if best[0] is None or best[1] is None:
        return None
    results.add(**about, to_triton=best[1] / best[0], compile_ms=compile_ms(one))
    return float(best[1] / best[0])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="only operations whose name contains this")
    parser.add_argument("--rounds", type=int, default=25, help="of each contender, in turns (default: 25)")
    parser.add_argument("--out", type=Path, help="the results, a JSON object a line")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("bench/ops.py: torch sees no GPU")
    torch.manual_seed(0)
    about = {"torch": torch.__version__, "versions": versions("numpy", "tilewright", "triton")}
    results = Results("ops", torch.cuda.get_device_name(), options.out, **about, rounds=options.rounds)
    timer, found = Timer(), {}
    for family in FAMILIES:
        for one in family():
            if options.only in one.op:
                found[f"{one.op} {one.shape}"] = measure(results, timer, one, options.rounds)
                torch.cuda.empty_cache()
    results.add(clocks=clocks())
    ratios = {name: ratio for name, ratio in found.items() if ratio is not None}
    if ratios:
        print(f"geometric mean to Triton: {statistics.geometric_mean(ratios.values()):.2f} of {len(ratios)}")
    for name, ratio in sorted(ratios.items(), key=lambda row: row[1]):
        if ratio < 0.97:
            print(f"slower: {name}: {ratio:.2f}")
    print(f"written to {results.path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
