"""Matrix products beside those of bench/gpu.py: 8-bit floats, and few rows against a large weight."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from tilewright import tile as ct

Work = Callable[[], Any]
Case = tuple[str, str, float, dict[str, Work], list[str], Callable[[], float]]

SHAPES = [
    (1024, 1024, 1024),
    (2048, 2048, 2048),
    (4096, 4096, 4096),
    (8192, 8192, 8192),
    (16384, 8192, 1280),
    (8192, 28672, 4096),
]


def product(A, B, C, TM: ct.Constant[int], TN: ct.Constant[int], TK: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((TM, TN), dtype=ct.float32)
    for k in range(ct.num_tiles(A, axis=1, shape=(TM, TK))):
        a = ct.load(A, index=(i, k), shape=(TM, TK), padding_mode=ct.PaddingMode.ZERO)
        b = ct.load(B, index=(k, j), shape=(TK, TN), padding_mode=ct.PaddingMode.ZERO)
        acc = ct.mma(a, b, acc)
    ct.store(C, index=(i, j), tile=acc.astype(C.dtype))


promoted = ct.kernel(product)
fast = ct.kernel(fp8_fast_accum=True)(product)


def launch(kernel: Any, a: Any, b: Any, c: Any, tiles: tuple[int, int, int]) -> None:
    ct.launch(None, (ct.cdiv(c.shape[0], tiles[0]), ct.cdiv(c.shape[1], tiles[1])), kernel, (a, b, c, *tiles))


def fp8_case(sweep: bool) -> Iterator[Case]:
    """Weights as layers keep them, one row an output: B is the transpose of what lies in memory."""
    one = torch.ones((), device="cuda")
    for m, n, k in SHAPES:
        a = torch.randn(m, k, device="cuda").to(torch.float8_e4m3fn)
        b = torch.randn(n, k, device="cuda").to(torch.float8_e4m3fn).t()
        c = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)

        def error(a: Any = a, b: Any = b, c: Any = c) -> float:
            expected = a[:256].float() @ b.float()
            return ((c[:256].float() - expected).abs().max() / expected.abs().max()).item()

        for mode, kernel in (("fast", fast), ("promoted", promoted)):
            tiles = [(128, 256, 128), (128, 128, 128)] + ([(256, 128, 128), (64, 128, 128)] if sweep else [])
            contenders: dict[str, Work] = {
                "cuBLAS": lambda a=a, b=b, mode=mode: torch._scaled_mm(
                    a, b, one, one, out_dtype=torch.bfloat16, use_fast_accum=mode == "fast"
                )
            }
            for t in tiles:
                name = "tilewright " + "x".join(map(str, t))
                contenders[name] = lambda a=a, b=b, c=c, t=t, kernel=kernel: launch(kernel, a, b, c, t)
            yield f"matmul e4m3 {mode}", f"{m}x{n}x{k}", 2.0 * m * n * k, contenders, ["cuBLAS"], error, (c,)


def decode_case(sweep: bool) -> Iterator[Case]:
    """Few rows against a weight that has to be read once: the rate is that of the weight's bytes. Beside it a copy that
    moves as many, half of them in each direction."""
    for n, k in ((8192, 8192), (28672, 4096)):
        w = torch.randn(n, k, device="cuda", dtype=torch.bfloat16)
        half, spare = w[: n // 2], torch.empty_like(w[: n // 2])
        for m in (1, 16, 64):
            a = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
            c = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
            contenders: dict[str, Work] = {
                "cuBLAS": lambda a=a, w=w: torch.matmul(a, w.t()),
                "copy": lambda half=half, spare=spare: spare.copy_(half),
            }
            tm = max(16, m)
            tiles = [(tm, 64, 128), (tm, 64, 256), (tm, 128, 128)] + ([(tm, 32, 256), (tm, 128, 64)] if sweep else [])
            for t in tiles:
                name = "tilewright " + "x".join(map(str, t))
                contenders[name] = lambda a=a, w=w, c=c, t=t: launch(promoted, a, w.t(), c, t)

            def error(a: Any = a, w: Any = w, c: Any = c) -> float:
                expected = a.float() @ w.t().float()
                return ((c.float() - expected).abs().max() / expected.abs().max()).item()

            yield f"decode bf16 M={m}", f"{n}x{k}", 2.0 * n * k, contenders, ["cuBLAS", "copy"], error, (c,)
