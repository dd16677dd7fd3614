"""Kernels bound by memory on a GPU, as plain tile programs, beside a copy of the same bytes in the same run.

    python bench/memory.py [--only NAME] [--rounds N] [--out FILE]

The yardstick `copy` is torch's copy between two buffers that together have the bytes that the kernel reads and writes.
Peers are torch's own op and, where triton is installed, a Triton kernel (bench/memory_triton.py). How it is measured is
in bench/gpu.py: turns, an empty L2 cache, the median.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.nn import functional

from admission import checked, relative_error
from gpu import Timer, Work
from record import ROOT, Results, clocks, interleave, versions

sys.path.insert(0, str(ROOT / "python" / "examples"))
import softmax
import vector_add
from kernels import gates
from tilewright import tile as ct

if importlib.util.find_spec("triton"):
    import memory_triton
else:
    memory_triton = None  # type: ignore[assignment]

BF16, F32 = torch.bfloat16, torch.float32
ROWS = 16384
ELEMENTS = 1 << 28  # of the arrays with fewer rows
MOST_OF_TRITON = 1 << 15  # columns of a row that its kernel takes whole

# --- The programs --------------------------------------------------------------------------------------


@ct.kernel
def rms_norm(X, W, Y, EPS: ct.Constant[float], N: ct.Constant[int], TN: ct.Constant[int]):
    row = ct.bid(0)
    x = ct.load(X, index=(row, 0), shape=(1, TN)).astype(ct.float32)
    w = ct.load(W, index=(0,), shape=(TN,)).astype(ct.float32)
    scale = ct.rsqrt(ct.sum(x * x, axis=1, keepdims=True) / N + EPS)
    ct.store(Y, index=(row, 0), tile=(x * scale * w).astype(Y.dtype))


@ct.kernel
def layer_norm(X, W, B, Y, EPS: ct.Constant[float], N: ct.Constant[int], TN: ct.Constant[int]):
    row = ct.bid(0)
    x = ct.load(X, index=(row, 0), shape=(1, TN)).astype(ct.float32)
    w = ct.load(W, index=(0,), shape=(TN,)).astype(ct.float32)
    b = ct.load(B, index=(0,), shape=(TN,)).astype(ct.float32)
    mean = ct.sum(x, axis=1, keepdims=True) / N
    centred = ct.where(ct.arange(TN, dtype=ct.int32) < N, x - mean, 0.0)
    scale = ct.rsqrt(ct.sum(centred * centred, axis=1, keepdims=True) / N + EPS)
    ct.store(Y, index=(row, 0), tile=(centred * scale * w + b).astype(Y.dtype))


@ct.kernel
def transpose(X, Y, TM: ct.Constant[int], TN: ct.Constant[int]):
    i, j = ct.bid(1), ct.bid(0)
    ct.store(Y, index=(j, i), tile=ct.load(X, index=(i, j), shape=(TM, TN)).T)


@ct.kernel
def row_sum(X, Y, TN: ct.Constant[int]):
    row = ct.bid(0)
    ct.store(Y, index=(row,), tile=ct.sum(ct.load(X, index=(row, 0), shape=(1, TN)).astype(ct.float32), axis=1))


@ct.kernel
def row_cumsum(X, Y, TN: ct.Constant[int]):
    row = ct.bid(0)
    ct.store(Y, index=(row, 0), tile=ct.cumsum(ct.load(X, index=(row, 0), shape=(1, TN)), axis=1))


@ct.kernel
def embedding(Table, Index, Y, TM: ct.Constant[int], D: ct.Constant[int]):
    i = ct.bid(0)
    rows = ct.load(Index, index=(i,), shape=(TM,))
    columns = ct.arange(D, dtype=ct.int32)
    ct.store(Y, index=(i, 0), tile=ct.gather(Table, (ct.expand_dims(rows, 1), columns)))


# --- The cases -------------------------------------------------------------------------------------------


class Case(NamedTuple):
    name: str
    shape: str
    moved: float  # bytes read and written once
    contenders: dict[str, Work]  # ours: "tilewright ..."
    error: Callable[[], float]
    outputs: tuple[torch.Tensor, ...]  # that it is the error of


def padded(columns: int) -> int:
    return 1 << (columns - 1).bit_length()


def with_triton(contenders: dict[str, Work], name: str, *arguments: Any) -> dict[str, Work]:
    if memory_triton is not None and hasattr(memory_triton, name):

        def work() -> torch.Tensor:
            getattr(memory_triton, name)(*arguments)
            return arguments[-1]

        contenders["triton"] = work
    return contenders


def vector_add_cases() -> Iterator[Case]:
    for n in (1 << 27, (1 << 27) + 3):
        a, b, c, d = (torch.randn(n, device="cuda") for _ in range(4))
        contenders: dict[str, Work] = {"torch": lambda a=a, b=b, d=d: torch.add(a, b, out=d)}
        for tile in (1024, 2048, 4096):
            contenders[f"tilewright {tile}"] = lambda a=a, b=b, c=c, t=tile: vector_add.run(a, b, c, tile=t)
        with_triton(contenders, "vector_add", a, b, d)
        error = lambda a=a, b=b, c=c: relative_error(c, a + b)  # noqa: E731
        yield Case("vector add f32", f"{n}", 12.0 * n, contenders, error, (c,))


def chain_cases() -> Iterator[Case]:
    x, g, y = (torch.randn(1 << 27, device="cuda", dtype=BF16) for _ in range(3))
    meaning: dict[Any, Callable[..., torch.Tensor]] = {
        gates.swiglu: lambda x, g: functional.silu(x) * g,
        gates.gelu_and_residual: lambda x, g: functional.gelu(x, approximate="tanh") + g,
    }
    for kernel, reference in meaning.items():
        contenders: dict[str, Work] = {}
        for tile in (2048, 4096):
            grid, given = (ct.cdiv(x.numel(), tile),), (x, g, y, tile)
            contenders[f"tilewright {tile}"] = lambda k=kernel, a=given, grid=grid: ct.launch(None, grid, k, a)

        def error(reference: Callable[..., torch.Tensor] = reference) -> float:
            n = 1 << 22
            return relative_error(y[:n], reference(x[:n].float(), g[:n].float()))

        name = "SwiGLU bf16" if kernel is gates.swiglu else "GELU and residual bf16"
        yield Case(name, f"{x.numel()}", 6.0 * x.numel(), contenders, error, (y,))


def softmax_cases(sizes: tuple[int, ...] = (1024, 4096, 16384, 4000)) -> Iterator[Case]:
    for columns in sizes:
        rows = min(ROWS, ELEMENTS // columns)
        x = torch.randn(rows, columns, device="cuda", dtype=BF16)
        y = torch.empty_like(x)
        contenders: dict[str, Work] = {
            "torch": lambda x=x: torch.softmax(x, dim=1),
            "tilewright": lambda x=x, y=y: softmax.run(x, y),
        }
        if columns <= MOST_OF_TRITON:
            with_triton(contenders, "softmax", x, torch.empty_like(x))
        error = lambda x=x, y=y: relative_error(y, torch.softmax(x.float(), dim=1))  # noqa: E731
        yield Case("softmax bf16", f"{rows}x{columns}", 4.0 * x.numel(), contenders, error, (y,))


def norm_cases(layer: bool, sizes: tuple[int, ...] = (1024, 4096, 16384)) -> Iterator[Case]:
    for columns in sizes:
        rows = min(ROWS, ELEMENTS // columns)
        x = torch.randn(rows, columns, device="cuda", dtype=BF16)
        w, b = torch.randn(2, columns, device="cuda", dtype=BF16).unbind()
        w, b, y = w.clone(), b.clone(), torch.empty_like(x)
        given = (x, w, b, y) if layer else (x, w, y)
        arguments = (*given, 1e-5, columns, padded(columns))
        kernel = layer_norm if layer else rms_norm
        peer: Callable[..., torch.Tensor] = (
            (lambda x, w, b: functional.layer_norm(x, (x.shape[1],), w, b))
            if layer
            else (lambda x, w, b: functional.rms_norm(x, (x.shape[1],), w, eps=1e-5))
        )
        contenders: dict[str, Work] = {
            "torch": lambda x=x, w=w, b=b, peer=peer: peer(x, w, b),
            "tilewright": lambda a=arguments, kernel=kernel: ct.launch(None, (a[0].shape[0],), kernel, a),
        }
        error = lambda x=x, w=w, b=b, y=y, peer=peer: relative_error(y, peer(x.float(), w.float(), b.float()))  # noqa: E731
        name = "layer norm bf16" if layer else "RMS norm bf16"
        yield Case(name, f"{rows}x{columns}", 4.0 * x.numel(), contenders, error, (y,))


def wide_cases() -> Iterator[Case]:
    """Rows that no thread's registers hold."""
    sizes = (32768, 65536, 131072)
    yield from softmax_cases((*sizes, 128256))
    yield from norm_cases(False, sizes)
    yield from norm_cases(True, sizes)


def transpose_cases() -> Iterator[Case]:
    for n in (16384, 16380):
        x = torch.randn(n, n, device="cuda", dtype=BF16)
        y = torch.empty_like(x)
        contenders: dict[str, Work] = {"torch": lambda x=x: x.t().contiguous()}
        for tiles in ((64, 64), (128, 64), (128, 128)):
            grid = (ct.cdiv(n, tiles[1]), ct.cdiv(n, tiles[0]))
            run = lambda x=x, y=y, t=tiles, grid=grid: ct.launch(None, grid, transpose, (x, y, *t))  # noqa: E731
            contenders[f"tilewright {tiles[0]}x{tiles[1]}"] = run
        error = lambda x=x, y=y: relative_error(y, x.t())  # noqa: E731
        yield Case("transpose bf16", f"{n}x{n}", 4.0 * x.numel(), contenders, error, (y,))


def row_sum_cases() -> Iterator[Case]:
    for dtype in (BF16, F32):
        x = torch.randn(ROWS, 8192, device="cuda", dtype=dtype)
        y = torch.empty(ROWS, device="cuda", dtype=F32)
        contenders: dict[str, Work] = {
            "torch": lambda x=x: torch.sum(x, dim=1, dtype=F32),
            "tilewright": lambda x=x, y=y: ct.launch(None, (ROWS,), row_sum, (x, y, padded(x.shape[1]))),
        }
        error = lambda x=x, y=y: relative_error(y, x.float().sum(1))  # noqa: E731
        name = "row sum bf16" if dtype == BF16 else "row sum f32"
        yield Case(name, f"{ROWS}x8192", float(x.numel() * x.element_size()), contenders, error, (y,))


def cumsum_cases() -> Iterator[Case]:
    for columns, dtype in ((1024, F32), (4096, F32), (8192, BF16)):
        x = torch.rand(ROWS, columns, device="cuda").to(dtype)
        y = torch.empty_like(x)
        contenders: dict[str, Work] = {
            "torch": lambda x=x, y=y: torch.cumsum(x, dim=1, out=y),
            "tilewright": lambda x=x, y=y: ct.launch(None, (ROWS,), row_cumsum, (x, y, padded(x.shape[1]))),
        }
        error = lambda x=x, y=y: relative_error(y, torch.cumsum(x.double(), dim=1))  # noqa: E731
        moved = 2.0 * x.numel() * x.element_size()
        yield Case(
            f"cumulative sum {'bf16' if dtype == BF16 else 'f32'}", f"{ROWS}x{columns}", moved, contenders, error, (y,)
        )


def embedding_cases() -> Iterator[Case]:
    d = 4096
    table = torch.randn(65536, d, device="cuda", dtype=BF16)
    index = torch.randperm(65536, device="cuda", dtype=torch.int32)[:ROWS].contiguous()
    y = torch.empty(ROWS, d, device="cuda", dtype=BF16)
    contenders: dict[str, Work] = {"torch": lambda: torch.nn.functional.embedding(index, table)}
    for rows in (1, 2, 4):
        arguments = (table, index, y, rows, d)
        contenders[f"tilewright {rows}"] = lambda a=arguments: ct.launch(None, (ROWS // a[3],), embedding, a)
    error = lambda: relative_error(y, table[index.long()])  # noqa: E731
    yield Case("embedding gather bf16", f"{ROWS}x{d} of 65536", 4.0 * y.numel(), contenders, error, (y,))


CASES: dict[str, Callable[[], Iterator[Case]]] = {
    "vector_add": vector_add_cases,
    "chain": chain_cases,
    "softmax": softmax_cases,
    "rms_norm": lambda: norm_cases(layer=False),
    "layer_norm": lambda: norm_cases(layer=True),
    "wide": wide_cases,
    "transpose": transpose_cases,
    "row_sum": row_sum_cases,
    "cumsum": cumsum_cases,
    "embedding": embedding_cases,
}


def copy_of(moved: float) -> Work:
    source = torch.zeros(int(moved) // 2, device="cuda", dtype=torch.int8)
    target = torch.empty_like(source)
    return lambda: target.copy_(source)


def measure(results: Results, timer: Timer, case: Case, rounds: int) -> None:
    working: dict[str, Work] = {"copy": copy_of(case.moved)}
    for who, run in case.contenders.items():
        try:
            found = checked(run, case.outputs, case.error, torch.cuda.synchronize)
            results.add(bench=case.name, shape=case.shape, who=who, error=found)
            working[who] = run
        except Exception as problem:  # one variant that fails must not hide the others' figures
            results.add(bench=case.name, shape=case.shape, who=who, failed=f"{type(problem).__name__}: {problem}"[:400])
    measures = {who: timer(run) for who, run in working.items()}
    for take in measures.values():  # warm up
        for _ in range(3):
            take()
    before = clocks()
    medians = interleave(measures, rounds)
    for who, ms in medians.items():
        ratio = {"of_copy": medians["copy"] / ms} if who != "copy" else {}
        results.add(bench=case.name, shape=case.shape, who=who, ms=ms, gbs=case.moved / ms / 1e6, **ratio)
    results.add(bench=case.name, shape=case.shape, clocks_before=before, clocks_after=clocks())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=sorted(CASES), action="append", help="repeat it for several (default: all)")
    parser.add_argument("--rounds", type=int, default=50, help="of each contender, in turns (default: 50)")
    parser.add_argument("--out", type=Path, help="the results, a JSON object a line")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("bench/memory.py: torch sees no GPU")
    torch.manual_seed(0)
    about = {
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "versions": versions("numpy", "tilewright", "triton"),
    }
    results = Results("memory", torch.cuda.get_device_name(), options.out, **about, rounds=options.rounds)
    timer = Timer()
    for name in options.only or CASES:
        for case in CASES[name]():
            measure(results, timer, case, options.rounds)
    print(f"written to {results.path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
