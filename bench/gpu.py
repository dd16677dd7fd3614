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

from record import ROOT, Results, clocks, interleave, versions

sys.path.insert(0, str(ROOT / "python" / "examples"))
import attention
import matmul
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
    def __init__(self) -> None:
        self.l2 = torch.empty(256 << 20, dtype=torch.int8, device="cuda")

    def __call__(self, work: Work) -> Callable[[], float]:
        """A measure of `work` in milliseconds; filling the buffer also hides the time of the launch."""

        def measure() -> float:
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            self.l2.zero_()
            begin.record()
            work()
            end.record()
            end.synchronize()
            return begin.elapsed_time(end)

        return measure


def relative_error(found: torch.Tensor, expected: torch.Tensor) -> float:
    difference = (found.float() - expected.float()).abs().max()
    return (difference / expected.float().abs().max()).item()


Case = tuple[str, str, float, dict[str, Work], list[str], Callable[[], float]]


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
        yield "vector add f32", f"{n}", 12.0 * n, contenders, ["torch"], lambda a=a, b=b, c=c: relative_error(c, a + b)


def softmax_case(sweep: bool) -> Iterator[Case]:
    for rows, columns in ((16384, 4096), (16384, 4000)):
        x = torch.randn(rows, columns, device="cuda", dtype=torch.bfloat16)
        y = torch.empty_like(x)
        contenders: dict[str, Work] = {
            "torch": lambda x=x: torch.softmax(x, dim=1),
            "tilewright": lambda x=x, y=y: softmax.run(x, y),
        }
        error = lambda x=x, y=y: relative_error(y, torch.softmax(x.float(), dim=1))  # noqa: E731
        yield "softmax bf16", f"{rows}x{columns}", 4.0 * x.numel(), contenders, ["torch"], error


def matmul_case(sweep: bool) -> Iterator[Case]:
    for m, n, k in ((2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192), (4001, 4104, 4008)):
        a = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
        b = torch.randn(k, n, device="cuda", dtype=torch.bfloat16)
        c = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
        d = torch.empty_like(c)
        contenders: dict[str, Work] = {"cuBLAS": lambda a=a, b=b, d=d: torch.matmul(a, b, out=d)}
        chosen = [(128, 128, 64), (256, 128, 64), (128, 256, 64), (128, 128, 32), (128, 64, 64), (64, 128, 64)]
        for tiles in chosen if sweep else chosen[:2]:
            name = "tilewright " + "x".join(map(str, tiles))
            contenders[name] = lambda a=a, b=b, c=c, t=tiles: matmul.run(a, b, c, tiles=t)
        error = lambda a=a, b=b, c=c: relative_error(c, a.float() @ b.float())  # noqa: E731
        yield "matmul bf16", f"{m}x{n}x{k}", 2.0 * m * n * k, contenders, ["cuBLAS"], error


def attention_case(sweep: bool) -> Iterator[Case]:
    q, k, v = (torch.randn(4, 16, 4096, 128, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    batch, heads, length, d = q.shape

    def cudnn(causal: bool) -> Work:
        def work() -> Any:
            with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                return scaled_dot_product_attention(q, k, v, is_causal=causal)

        return work

    for causal in (False, True):
        y = torch.empty_like(q)
        contenders: dict[str, Work] = {"cuDNN": cudnn(causal)}
        for tiles in ((64, 64), (128, 64), (128, 128), (64, 128)) if sweep else ((64, 64),):
            name = "tilewright " + "x".join(map(str, tiles))
            run = attention.run if causal else run_full_attention
            contenders[name] = lambda y=y, t=tiles, run=run: run(q, k, v, y, tiles=t)
        flop = 4.0 * batch * heads * length * length * d / (2 if causal else 1)

        def error(y: torch.Tensor = y, causal: bool = causal) -> float:
            part = scaled_dot_product_attention(*(x[:1, :4].float() for x in (q, k, v)), is_causal=causal)
            return relative_error(y[:1, :4], part)

        name = "attention bf16" + (" causal" if causal else "")
        yield name, "x".join(map(str, q.shape)), flop, contenders, ["cuDNN"], error


CASES = {"vector_add": vector_add_case, "softmax": softmax_case, "matmul": matmul_case, "attention": attention_case}


def measure(results: Results, timer: Timer, case: Case, rounds: int, copy: tuple[float, Work]) -> None:
    name, shape, work, contenders, peers, error = case
    bandwidth = work < 1e11 and "matmul" not in name
    working: dict[str, Work] = {}
    for contender, run in contenders.items():
        try:
            run()
            torch.cuda.synchronize()
            working[contender] = run
            if contender not in peers:
                results.add(bench=name, shape=shape, who=contender, error=error())
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
    parser.add_argument("--only", choices=sorted(CASES), action="append")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--sweep", action="store_true", help="several tile sizes each")
    parser.add_argument("--out", type=Path)
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
            measure(results, timer, case, options.rounds, copy)
    print(f"written to {results.path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
