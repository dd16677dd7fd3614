"""The example programs on a GPU beside torch (cuBLAS, cuDNN) in the same run.

    python bench/gpu.py [--only NAME] [--rounds N] [--sweep] [--out FILE]

Contenders take turns; each turn empties the L2 cache and is timed by CUDA events; the figure is the median. `ratio` is
ours / the peer's rate: above 1 is faster than the peer. Bandwidth is bytes read and written once.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from admission import checked, relative_error
from record import ROOT, Results, clocks, interleave, versions

sys.path.insert(0, str(ROOT / "python" / "examples"))
import attention
import cublaslt
import matmul
import products
import softmax
import vector_add
from tilewright import tile as ct

Work = Callable[[], Any]


@ct.kernel
def full_attention(
    Q, K, V, Y, SCALE: ct.Constant[float], TM: ct.Constant[int], TN: ct.Constant[int], D: ct.Constant[int]
):
    """Attention without a mask, for a number of keys that TN divides."""
    i, h, b = ct.bid(0), ct.bid(1), ct.bid(2)
    q = attention.load_rows(Q, b, h, i, TM, D)
    m = ct.full((TM, 1), -math.inf, dtype=ct.float32)
    total = ct.zeros((TM, 1), dtype=ct.float32)
    acc = ct.zeros((TM, D), dtype=ct.float32)
    for j in range(ct.num_tiles(K, axis=2, shape=(1, 1, TN, D))):
        k = attention.load_rows(K, b, h, j, TN, D)
        s = ct.mma(q, k.T, ct.zeros((TM, TN), dtype=ct.float32)) * SCALE
        m, total, acc = attention.online_softmax(s, attention.load_rows(V, b, h, j, TN, D), m, total, acc)
    ct.store(Y, index=(b, h, i, 0), tile=(acc / total).astype(Y.dtype).reshape((1, 1, TM, D)))


def run_full_attention(q: Any, k: Any, v: Any, y: Any, tiles: tuple[int, int]) -> None:
    batch, heads, length, d = q.shape
    scale = math.log2(math.e) / math.sqrt(d)
    ct.launch(None, (ct.cdiv(length, tiles[0]), heads, batch), full_attention, (q, k, v, y, scale, *tiles, d))


class Timer:
    """Times work on the GPU alone. What Python and a library do before their kernel starts is not in it: the GPU is
    kept busy until everything is queued, and is kept so longer where a turn shows that it was not long enough."""

    LEAST, MOST = 1 << 17, 1 << 22  # cycles: 66 us and 2 ms

    def __init__(self) -> None:
        self.l2 = torch.zeros(64 << 20, dtype=torch.int32, device="cuda")

    def __call__(self, work: Work) -> Callable[[], float]:
        """A measure of `work` in milliseconds. Reading the buffer fills the L2 cache with what need not be written back
        at the expense of `work`."""
        cycles = self.LEAST

        def measure() -> float:
            nonlocal cycles
            while True:
                begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                self.l2.max()
                torch.cuda._sleep(cycles)
                begin.record()
                work()
                end.record()
                late = begin.query()  # the GPU was there before the launch was queued
                end.synchronize()
                if not late or cycles >= self.MOST:
                    return begin.elapsed_time(end)
                cycles *= 2

        return measure


# Program, shape, work, contenders, peers, error, and the outputs that it is the error of.
Case = tuple[str, str, float, dict[str, Work], list[str], Callable[[], float], tuple[torch.Tensor, ...]]


def copy_bandwidth() -> tuple[float, Work]:
    source = torch.randn(1 << 28, device="cuda")
    target = torch.empty_like(source)
    return 8.0 * source.numel(), lambda: target.copy_(source)


def vector_add_case(sweep: bool) -> Iterator[Case]:
    for n in (1 << 27, (1 << 27) + 3):
        a, b = torch.randn(2, n, device="cuda").unbind()
        a, b, c = a.clone(), b.clone(), torch.empty(n, device="cuda")
        d = torch.empty(n, device="cuda")
        contenders: dict[str, Work] = {"torch": lambda a=a, b=b, d=d: torch.add(a, b, out=d)}
        for tile in (1024, 2048, 4096, 8192) if sweep else (2048,):
            contenders[f"tilewright {tile}"] = lambda a=a, b=b, c=c, t=tile: vector_add.run(a, b, c, tile=t)
        error = lambda a=a, b=b, c=c: relative_error(c, a + b)  # noqa: E731
        yield "vector add f32", f"{n}", 12.0 * n, contenders, ["torch"], error, (c,)


def softmax_case(sweep: bool) -> Iterator[Case]:
    for rows, columns in ((16384, 1024), (16384, 4096), (16384, 4000), (16384, 16384)):
        x = torch.randn(rows, columns, device="cuda", dtype=torch.bfloat16)
        y = torch.empty_like(x)
        contenders: dict[str, Work] = {
            "torch": lambda x=x: torch.softmax(x, dim=1),
            "tilewright": lambda x=x, y=y: softmax.run(x, y),
        }
        error = lambda x=x, y=y: relative_error(y, torch.softmax(x.float(), dim=1))  # noqa: E731
        yield "softmax bf16", f"{rows}x{columns}", 4.0 * x.numel(), contenders, ["torch"], error, (y,)


GEMM_SHAPES = (
    (1024, 1024, 1024),
    (2048, 2048, 2048),
    (4096, 4096, 4096),
    (8192, 8192, 8192),
    (16384, 8192, 1280),
    (8192, 28672, 4096),
)
GEMM_TILES = ((128, 256, 64), (256, 128, 64), (128, 128, 64), (64, 128, 64))
MORE_GEMM_TILES = ((128, 64, 64), (64, 256, 64), (64, 64, 64), (128, 128, 128), (128, 128, 32))


def matrix(rows: int, columns: int, dtype: torch.dtype, column_major: bool = False) -> torch.Tensor:
    if column_major:
        return matrix(columns, rows, dtype).T
    return torch.randn(rows, columns, device="cuda").to(dtype)


def gemm_line(name: str, shape: tuple[int, int, int], dtype: torch.dtype, column_major: bool, sweep: bool) -> Case:
    m, n, k = shape
    a, b = matrix(m, k, dtype), matrix(k, n, dtype, column_major)
    c, d = torch.empty(m, n, device="cuda", dtype=dtype), torch.empty(m, n, device="cuda", dtype=dtype)
    contenders: dict[str, Work] = {"cuBLAS": lambda: torch.matmul(a, b, out=d)}
    contenders["cuBLASLt, best of"] = cublaslt.best_of(a, b, d)
    for tiles in GEMM_TILES + (MORE_GEMM_TILES if sweep else ()):
        label = "tilewright " + "x".join(map(str, tiles))
        contenders[label] = lambda t=tiles: matmul.run(a, b, c, tiles=t)
    # Of a product that would not fit beside its check in f32, the first rows stand for all.
    error = lambda: relative_error(c[:2048], a[:2048].float() @ b.float())  # noqa: E731
    return name, f"{m}x{n}x{k}", 2.0 * m * n * k, contenders, ["cuBLAS", "cuBLASLt, best of"], error, (c,)


def matmul_case(sweep: bool) -> Iterator[Case]:
    """B as a linear layer keeps its weight, [N, K], then as [K, N]; then f16, and sizes that no tile divides."""
    for shape in GEMM_SHAPES:
        yield gemm_line("matmul bf16", shape, torch.bfloat16, True, sweep)
    for shape in GEMM_SHAPES:
        yield gemm_line("matmul bf16 row-major B", shape, torch.bfloat16, False, sweep)
    for shape in GEMM_SHAPES[1:4]:
        yield gemm_line("matmul f16", shape, torch.float16, True, sweep)
    yield gemm_line("matmul bf16 row-major B", (4001, 4104, 4008), torch.bfloat16, False, sweep)
    yield batched_line(64, 1024, sweep)


@ct.kernel
def batched_matmul(A, B, C, TM: ct.Constant[int], TN: ct.Constant[int], TK: ct.Constant[int]):
    i, j, batch = ct.bid(0), ct.bid(1), ct.bid(2)
    acc = ct.zeros((TM, TN), dtype=ct.float32)
    for k in range(ct.num_tiles(A, axis=2, shape=(1, TM, TK))):
        a = ct.load(A, index=(batch, i, k), shape=(1, TM, TK), padding_mode=ct.PaddingMode.ZERO).reshape((TM, TK))
        b = ct.load(B, index=(batch, k, j), shape=(1, TK, TN), padding_mode=ct.PaddingMode.ZERO).reshape((TK, TN))
        acc = ct.mma(a, b, acc)
    ct.store(C, index=(batch, i, j), tile=acc.astype(C.dtype).reshape((1, TM, TN)))


def batched_line(batch: int, size: int, sweep: bool) -> Case:
    a, b = (torch.randn(batch, size, size, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    c, d = torch.empty_like(a), torch.empty_like(a)
    contenders: dict[str, Work] = {"cuBLAS": lambda: torch.bmm(a, b, out=d)}
    for tiles in GEMM_TILES + (MORE_GEMM_TILES if sweep else ()):
        grid = (ct.cdiv(size, tiles[0]), ct.cdiv(size, tiles[1]), batch)
        label = "tilewright " + "x".join(map(str, tiles))
        contenders[label] = lambda t=tiles, g=grid: ct.launch(None, g, batched_matmul, (a, b, c, *t))
    error = lambda: relative_error(c, torch.bmm(a.float(), b.float()))  # noqa: E731
    return (
        "matmul bf16 batched",
        f"{batch}x{size}x{size}x{size}",
        2.0 * batch * size**3,
        contenders,
        ["cuBLAS"],
        error,
        (c,),
    )


def cudnn_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> Work:
    def work() -> Any:
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return scaled_dot_product_attention(q, k, v, is_causal=causal)

    return work


def attention_case(sweep: bool) -> Iterator[Case]:
    for shape in ((4, 16, 4096, 128), (4, 16, 8192, 128), (4, 32, 4096, 64)):
        for causal in (False, True):
            yield attention_line(shape, causal, sweep)


def attention_line(shape: tuple[int, int, int, int], causal: bool, sweep: bool) -> Case:
    batch, heads, length, d = shape
    q, k, v = (torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    y = torch.empty_like(q)
    contenders: dict[str, Work] = {"cuDNN": cudnn_attention(q, k, v, causal)}
    run = attention.run if causal else run_full_attention
    for tiles in ((128, 128), (128, 64), (64, 64), *(((64, 128),) if sweep else ())):
        contenders["tilewright " + "x".join(map(str, tiles))] = lambda t=tiles: run(q, k, v, y, tiles=t)
    flop = 4.0 * batch * heads * length * length * d / (2 if causal else 1)

    def error() -> float:
        part = scaled_dot_product_attention(*(x[:1, :2].float() for x in (q, k, v)), is_causal=causal)
        return relative_error(y[:1, :2], part)

    return (
        "attention bf16" + (" causal" if causal else ""),
        "x".join(map(str, shape)),
        flop,
        contenders,
        ["cuDNN"],
        error,
        (y,),
    )


CASES = {
    "vector_add": vector_add_case,
    "softmax": softmax_case,
    "matmul": matmul_case,
    "attention": attention_case,
    "fp8": products.fp8_case,
    "decode": products.decode_case,
}


def measure(results: Results, timer: Timer, case: Case, rounds: int, copy: tuple[float, Work]) -> None:
    name, shape, work, contenders, peers, error, outputs = case
    bandwidth = not name.startswith(("matmul", "attention"))
    working: dict[str, Work] = {}
    for contender, run in contenders.items():
        try:
            if contender != "copy":  # which is a yardstick
                found = checked(run, outputs, error, torch.cuda.synchronize)
                results.add(bench=name, shape=shape, who=contender, error=found)
            working[contender] = run
        except Exception as problem:  # one variant that fails must not hide the others' figures
            results.add(bench=name, shape=shape, who=contender, failed=f"{type(problem).__name__}: {problem}"[:400])
    measures = {contender: timer(run) for contender, run in working.items()}
    if bandwidth:
        measures["torch copy"] = timer(copy[1])
    for contender_measure in measures.values():  # warm up
        for _ in range(3):
            contender_measure()
    before = clocks()
    medians = interleave(measures, rounds)
    scale, unit = (1e6, "gbs") if bandwidth else (1e9, "tflops")
    amounts = {contender: copy[0] if contender == "torch copy" else work for contender in medians}
    rates = {contender: amounts[contender] / ms / scale for contender, ms in medians.items()}
    for contender, ms in medians.items():
        ratios = {
            f"of_{peer.replace(' ', '_')}": rates[contender] / rates[peer]
            for peer in (*peers, "torch copy")
            if peer in rates and contender.startswith("tilewright")
        }
        results.add(bench=name, shape=shape, who=contender, ms=ms, **{unit: rates[contender]}, **ratios)
    results.add(bench=name, shape=shape, clocks_before=before, clocks_after=clocks())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=sorted(CASES), action="append", help="repeat it for several (default: all)")
    parser.add_argument("--lines", default="", help="only lines whose name and shape contain this")
    parser.add_argument("--rounds", type=int, default=50, help="of each contender, in turns (default: 50)")
    parser.add_argument("--sweep", action="store_true", help="several tile sizes each")
    parser.add_argument("--out", type=Path, help="the results, a JSON object a line")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("bench/gpu.py: torch sees no GPU")
    torch.manual_seed(0)
    about = {"torch": torch.__version__, "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version()}
    device = torch.cuda.get_device_name()
    results = Results(
        "gpu", device, options.out, **about, versions=versions("numpy", "tilewright"), rounds=options.rounds
    )
    timer, copy = Timer(), copy_bandwidth()
    for name in options.only or CASES:
        for case in CASES[name](options.sweep):
            if options.lines not in f"{case[0]} {case[1]}":
                continue
            measure(results, timer, case, options.rounds, copy)
    print(f"written to {results.path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
