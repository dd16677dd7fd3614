"""The kernels of python/examples/kernels on a GPU beside what torch offers for the same work, in the same run.

    python bench/kernels.py [--only NAME ...] [--rounds N] [--sweep] [--out FILE]

Measured as in gpu.py. `ratio` is the peer's time / ours. Where torch has no such function the peer is the nearest one,
and its name says so: attention without the window or the cap, keys that lie together.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from admission import checked, relative_error
from gpu import Timer
from record import ROOT, Results, clocks, interleave, versions

sys.path.insert(0, str(ROOT / "python" / "examples"))
from kernels import (
    attention_backward,
    convolution,
    cross_entropy,
    decode_attention,
    grouped_attention,
    grouped_gemm,
    layer_norm_linear,
    linear,
    linear_attention,
    moe,
    paged_attention,
    quantized_linear,
    rope,
    scaled_gemm,
    swiglu,
)
from tilewright import tile as ct

BF16, FP8, F32 = torch.bfloat16, torch.float8_e4m3fn, torch.float32
Work = Callable[[], Any]


class Line:
    """One benchmark: our plans, the peers, and the result that all must give."""

    def __init__(self, name: str, shape: str, flop: float = 0, traffic: float = 0) -> None:
        self.name, self.shape, self.flop, self.traffic = name, shape, flop, traffic
        self.ours: dict[str, Work] = {}
        self.peers: dict[str, Work] = {}
        self.error: Callable[[], float] = lambda: math.nan
        self.outputs: tuple[torch.Tensor, ...] = ()  # that it is the error of

    def plan(self, module: Any, *arrays: Any, about: str = "", **options: Any) -> None:
        tiles = options.get("tiles", options.get("tile", ""))
        label = "x".join(map(str, tiles)) if isinstance(tiles, tuple) else str(tiles)
        launches = list(module.launches(*arrays, **options))

        def work() -> None:
            stream = torch.cuda.current_stream()
            for launch_grid, kernel, args in launches:
                ct.launch(stream, launch_grid, kernel, args)

        self.ours[" ".join(filter(None, ("tilewright", label, about)))] = work


def normal(*shape: int, dtype: Any = BF16, scale: float = 1.0) -> torch.Tensor:
    x = torch.randn(*shape, device="cuda", dtype=BF16 if dtype == FP8 else dtype)
    return (x * scale).to(dtype)


def choose(sweep: bool, first: Any, *others: Any) -> list[Any]:
    return [first, *others] if sweep else [first]


def sdpa(backend: SDPBackend, *args: Any, **options: Any) -> Work:
    def work() -> Any:
        with sdpa_kernel(backend):
            return nn.scaled_dot_product_attention(*args, **options)

    return work


def with_search(work: Work) -> Any:
    """With the fastest of cuDNN's convolutions, for which the first call of a shape looks."""
    with torch.backends.cudnn.flags(enabled=True, benchmark=True):
        return work()


GEMM_TILES = ((128, 128, 64), (128, 256, 64), (256, 128, 64))


def linear_line(sweep: bool) -> Iterator[Line]:
    m = n = k = 4096
    x, w, bias, residual = normal(m, k), normal(n, k, scale=k**-0.5), normal(n), normal(m, n)
    for activation in ("none", "silu", "gelu"):
        y = torch.empty(m, n, device="cuda", dtype=BF16)
        function = {"none": lambda t: t, "silu": nn.silu, "gelu": lambda t: nn.gelu(t, approximate="tanh")}[activation]
        line = Line(f"linear {activation}", f"{m}x{n}x{k}", 2.0 * m * n * k)
        for tiles in choose(sweep, *GEMM_TILES):
            line.plan(linear, x, w, bias, residual, y, activation=activation, tiles=tiles)
        line.peers["F.linear and the rest"] = lambda f=function: f(nn.linear(x, w, bias)) + residual
        line.peers["F.linear alone"] = lambda: nn.linear(x, w, bias)
        line.outputs = (y,)
        line.error = lambda y=y, f=function: relative_error(
            y, f(nn.linear(x.float(), w.float(), bias.float())) + residual
        )
        yield line


def swiglu_line(sweep: bool) -> Iterator[Line]:
    m = n = k = 4096
    x, w, u = normal(m, k), normal(k, n, scale=k**-0.5), normal(k, n, scale=k**-0.5)
    y = torch.empty(m, n, device="cuda", dtype=BF16)
    line = Line("swiglu", f"{m}x{n}x{k}", 4.0 * m * n * k)
    for tiles in choose(sweep, (128, 128, 64), (128, 64, 64), (256, 64, 64)):
        line.plan(swiglu, x, w, u, y, tiles=tiles)
    line.peers["cuBLAS twice and the rest"] = lambda: nn.silu(x @ w) * (x @ u)
    line.outputs = (y,)
    line.error = lambda: relative_error(y, nn.silu(x.float() @ w.float()) * (x.float() @ u.float()))
    yield line


def grouped_gemm_line(sweep: bool) -> Iterator[Line]:
    n, k, sizes = 4096, 2048, [2048, 0, 520, 1000, 1336, 3000, 8, 280]
    a, b = normal(sum(sizes), k), normal(len(sizes), k, n, scale=k**-0.5)
    c = torch.empty(sum(sizes), n, device="cuda", dtype=BF16)
    offsets = torch.tensor([0, *sizes], device="cuda").cumsum(0).int()
    line = Line("grouped gemm", f"8 groups, {sum(sizes)}x{n}x{k}", 2.0 * sum(sizes) * n * k)
    for tiles in choose(sweep, (128, 256, 64), (128, 128, 64), (64, 128, 64)):
        line.plan(grouped_gemm, a, b, offsets, c, tiles=tiles)
    line.peers["torch._grouped_mm"] = lambda: torch._grouped_mm(a, b, offs=offsets[1:])
    line.peers["cuBLAS, a call each"] = lambda: [x @ y for x, y in zip(a.split(sizes), b, strict=True)]
    exact = torch.cat([x.float() @ y.float() for x, y in zip(a.split(sizes), b, strict=True)])
    line.outputs = (c,)
    line.error = lambda: relative_error(c, exact)
    yield line


def moe_line(sweep: bool) -> Iterator[Line]:
    tokens, experts, top, k, n = 4096, 16, 2, 2048, 4096
    x, w = normal(tokens, k), normal(experts, k, n, scale=k**-0.5)
    chosen = torch.rand(tokens, experts, device="cuda").topk(top).indices.flatten()
    order = chosen.sort(stable=True).indices.int()
    offsets = nn.one_hot(chosen, experts).sum(0).cumsum(0).int()
    starts = torch.cat([offsets.new_zeros(1), offsets])
    y = torch.empty(tokens * top, n, device="cuda", dtype=BF16)
    line = Line("mixture of experts", f"{tokens} tokens, {top} of {experts}, {n}x{k}", 2.0 * tokens * top * n * k)
    for tiles in choose(sweep, (128, 256, 64), (128, 128, 64), (64, 256, 64)):
        line.plan(moe, x, w, order, starts, y, top=top, tiles=tiles)
    gathered = x[order.long() // top]

    def whole() -> torch.Tensor:
        out = torch.empty_like(y)
        out[order] = torch._grouped_mm(x[order // top], w, offs=offsets)
        return out

    line.peers["torch._grouped_mm and the moves"] = whole
    line.peers["torch._grouped_mm alone"] = lambda: torch._grouped_mm(gathered, w, offs=offsets)
    line.outputs = (y,)
    line.error = lambda: relative_error(
        y[:64], torch.stack([x[s // top].float() @ w[chosen[s]].float() for s in range(64)])
    )
    yield line


def quantized_linear_line(sweep: bool) -> Iterator[Line]:
    """Weights of 8 and 4 bits; what remains of the time for weights of 16 where few rows make it that of reading."""
    for m, n, k, tiles in (4096, 4096, 4096, (256, 128, 64)), (16, 8192, 8192, (16, 64, 256)):
        for bits in (8, 4):
            x, scale = normal(m, k), torch.rand(n, device="cuda") + 0.5
            w = torch.randint(-128, 128, (n, k * bits // 8), device="cuda", dtype=torch.int8)
            y = torch.empty(m, n, device="cuda", dtype=BF16)
            line = Line(f"quantized linear, {bits} bits", f"{m}x{n}x{k}", 2.0 * m * n * k)
            for its in choose(sweep, tiles, (tiles[0], 128, 128), (tiles[0], 64, 128)):
                line.plan(quantized_linear, x, w, scale, y, bits=bits, tiles=its)
            whole = (w if bits == 8 else torch.cat([(w << 4) >> 4, w >> 4], dim=1)).to(BF16)
            line.peers["cuBLAS, 16 bits"] = lambda x=x, whole=whole: x @ whole.T
            exact = (x.float() @ whole.float().T) * scale
            line.outputs = (y,)
            line.error = lambda y=y, exact=exact: relative_error(y, exact)
            yield line


def scaled_gemm_line(sweep: bool) -> Iterator[Line]:
    m = n = k = 4096
    a, b = normal(m, k, dtype=FP8), normal(n, k, dtype=FP8)
    a_scale = torch.rand(m, k // 128, device="cuda") + 0.5
    b_scale = torch.rand(n // 128, k // 128, device="cuda") + 0.5
    c = torch.empty(m, n, device="cuda", dtype=BF16)
    line = Line("scaled gemm", f"{m}x{n}x{k}", 2.0 * m * n * k)
    for tiles in choose(sweep, (128, 128), (64, 128), (128, 64), (64, 64)):
        line.plan(scaled_gemm, a, b, a_scale, b_scale, c, tiles=tiles)
    columns = a_scale.t().contiguous().t()  # as cuBLAS wants them

    def blockwise() -> Any:
        kinds = nn.ScalingType.BlockWise1x128, nn.ScalingType.BlockWise128x128
        return nn.scaled_mm(a, b.t(), columns, kinds[0], b_scale.t(), kinds[1], output_dtype=BF16)

    one = torch.ones((), device="cuda")
    line.peers["cuBLAS, blocks"] = blockwise
    line.peers["cuBLAS, one scale"] = lambda: torch._scaled_mm(a, b.t(), one, one, out_dtype=BF16)
    wide = a.float() * a_scale.repeat_interleave(128, 1)
    exact = wide @ (b.float() * b_scale.repeat_interleave(128, 0).repeat_interleave(128, 1)).t()
    line.outputs = (c,)
    line.error = lambda: relative_error(c, exact)
    yield line


def layer_norm_linear_line(sweep: bool) -> Iterator[Line]:
    m = n = k = 4096
    x, gamma, beta, w = normal(m, k), normal(k), normal(k), normal(n, k, scale=k**-0.5)
    y = torch.empty(m, n, device="cuda", dtype=BF16)
    line = Line("layer norm linear", f"{m}x{n}x{k}", 2.0 * m * n * k)
    for tiles in choose(sweep, (128, 256, 64), (128, 128, 64), (64, 128, 64)):
        line.plan(layer_norm_linear, x, gamma, beta, w, y, tiles=tiles)
    line.peers["F.layer_norm, F.linear"] = lambda: nn.linear(nn.layer_norm(x, (k,), gamma, beta), w)
    line.outputs = (y,)
    line.error = lambda: relative_error(y, nn.layer_norm(x.float(), (k,), gamma.float(), beta.float()) @ w.float().t())
    yield line


def convolution_line(sweep: bool) -> Iterator[Line]:
    n, size, channels, outputs = 16, 64, 256, 256
    x, f = normal(n, size, size, channels), normal(outputs, 3, 3, channels, scale=(9 * channels) ** -0.5)
    y = torch.empty(n, size, size, outputs, device="cuda", dtype=BF16)
    line = Line(
        "convolution 3x3", f"{n}x{size}x{size}x{channels} to {outputs}", 18.0 * n * size * size * channels * outputs
    )
    for tiles in choose(sweep, (128, 256, 64), (128, 128, 64), (64, 128, 64)):
        line.plan(convolution, x, f, y, tiles=tiles)
    pictures, filters = x.permute(0, 3, 1, 2), f.permute(0, 3, 1, 2)  # channels last in memory
    line.peers["cuDNN"] = lambda: nn.conv2d(pictures, filters, padding=1)
    line.peers["cuDNN, best of"] = lambda: with_search(lambda: nn.conv2d(pictures, filters, padding=1))
    exact = nn.conv2d(pictures.float(), filters.float(), padding=1).permute(0, 2, 3, 1)
    line.outputs = (y,)
    line.error = lambda: relative_error(y, exact)
    yield line


HEAD_TILES = ((128, 64), (128, 128), (64, 64), (64, 128))


def attention_line(sweep: bool) -> Iterator[Line]:
    batch, heads, groups, length, d = 4, 32, 8, 4096, 128
    q, k, v = normal(batch, heads, length, d), normal(batch, groups, length, d), normal(batch, groups, length, d)
    shape, flop = f"{batch}x{heads}({groups})x{length}x{d}", 2.0 * batch * heads * length * length * d
    i = torch.arange(length, device="cuda")

    def exact(window: int, cap: float) -> torch.Tensor:
        s = (q[0, :4].float() @ k[0, 0].float().t()) / math.sqrt(d)
        s = cap * torch.tanh(s / cap) if cap else s
        distance = i[:, None] - i
        s = s.masked_fill((distance < 0) | (distance >= (window or length)), -math.inf)
        return s.softmax(-1) @ v[0, 0].float()

    for name, options in {"gqa": {}, "window": {"window": 1024}, "cap": {"cap": 30.0}}.items():
        y = torch.empty_like(q)
        part = 1 - (1 - 1024 / length) ** 2 if name == "window" else 1
        line = Line(f"attention {name}", shape, flop * part)
        for tiles in HEAD_TILES if sweep else HEAD_TILES[:2]:
            line.plan(grouped_attention, q, k, v, y, tiles=tiles, **options)
        causal = {"is_causal": True, "enable_gqa": True}
        without = "" if name == "gqa" else f" without {name}"
        line.peers["cuDNN" + without] = sdpa(SDPBackend.CUDNN_ATTENTION, q, k, v, **causal)
        line.peers["flash" + without] = sdpa(SDPBackend.FLASH_ATTENTION, q, k, v, **causal)
        wanted = exact(options.get("window", 0), options.get("cap", 0.0))
        line.outputs = (y,)
        line.error = lambda y=y, wanted=wanted: relative_error(y[0, :4], wanted)
        yield line


def paged_attention_line(sweep: bool) -> Iterator[Line]:
    batch, heads, groups, queries, length, d, page = 4, 32, 8, 512, 8192, 128, 64
    q = normal(batch, heads, queries, d)
    k, v = (normal(batch * length // page, page, groups, d) for _ in range(2))
    table = torch.randperm(batch * length // page, device="cuda").int().view(batch, -1)
    lengths = torch.full((batch,), length, device="cuda", dtype=torch.int32)
    y = torch.empty_like(q)
    flop = 4.0 * batch * heads * queries * (length - queries / 2) * d
    line = Line("attention paged", f"{batch}x{heads}({groups})x{queries} of {length}x{d}, pages of {page}", flop)
    for tiles in choose(sweep, (128, 64), (64, 64), (64, 128)):
        line.plan(paged_attention, q, k, v, table, lengths, y, tiles=tiles)
    keys, values = (x[table.long()].view(batch, length, groups, d).transpose(1, 2) for x in (k, v))
    mask = torch.ones(queries, length, device="cuda", dtype=torch.bool).tril(length - queries)
    line.peers["cuDNN, keys together"] = sdpa(SDPBackend.CUDNN_ATTENTION, q, keys, values, mask, enable_gqa=True)
    line.peers["cuDNN, keys together, all visible"] = sdpa(SDPBackend.CUDNN_ATTENTION, q, keys, values, enable_gqa=True)
    exact = nn.scaled_dot_product_attention(
        *(x[:1, :4].float() for x in (q, keys[:, :1].expand(-1, 4, -1, -1), values[:, :1].expand(-1, 4, -1, -1))), mask
    )
    line.outputs = (y,)
    line.error = lambda: relative_error(y[:1, :4], exact)
    yield line


def decode_attention_line(sweep: bool) -> Iterator[Line]:
    batch, groups, group, length, d = 16, 8, 8, 8192, 128
    q, k, v = normal(batch, groups, group, d), normal(batch, groups, length, d), normal(batch, groups, length, d)
    lengths = torch.full((batch,), length, device="cuda", dtype=torch.int32)
    y = torch.empty_like(q)
    shape, traffic = f"{batch}x{groups * group}({groups})x1 of {length}x{d}", 4.0 * k.numel()
    line = Line("attention decode", shape, 4.0 * batch * groups * group * length * d, traffic)
    for splits, tiles in choose(sweep, (8, (16, 64)), (4, (16, 128)), (8, (16, 128)), (16, (16, 64))):
        part = torch.empty(batch, groups, splits, group, d, device="cuda")
        most, total = torch.empty(2, batch, groups, splits, group, device="cuda").unbind()
        line.plan(decode_attention, q, k, v, lengths, part, most, total, y, tiles=tiles, about=f"{splits} splits")
    one = q.view(batch, groups * group, 1, d)
    for backend in (SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION):
        line.peers[backend.name.split("_")[0].lower()] = sdpa(backend, one, k, v, enable_gqa=True)
    line.outputs = (y,)
    line.error = lambda: relative_error(y[:2], nn.scaled_dot_product_attention(*(x[:2].float() for x in (q, k, v))))
    yield line


def linear_attention_line(sweep: bool) -> Iterator[Line]:
    batch, heads, length, d, chunk = 8, 32, 4096, 128, 64
    q, k, v = (
        normal(batch, heads, length, d, scale=0.1),
        normal(batch, heads, length, d, scale=0.1),
        normal(batch, heads, length, d),
    )
    y = torch.empty_like(q)
    flop = batch * heads * length * (4.0 * chunk * d + 4.0 * d * d)
    line = Line("attention linear", f"{batch}x{heads}x{length}x{d}", flop, 8.0 * q.numel())
    for tile in choose(sweep, 64, 128):
        line.plan(linear_attention, q, k, v, y, tile=tile)

    def chunked() -> torch.Tensor:
        a, b, c = (x.view(batch, heads, -1, chunk, d) for x in (q, k, v))
        states = (b.transpose(-1, -2) @ c).cumsum(2)
        before = nn.pad(states, (0, 0, 0, 0, 1, 0))[:, :, :-1]
        return (a @ before + (a @ b.transpose(-1, -2)).tril() @ c).view_as(q)

    line.peers["torch, chunks"] = chunked
    line.outputs = (y,)
    line.error = lambda: relative_error(
        y[:1, :4], (q[:1, :4].float() @ k[:1, :4].float().transpose(-1, -2)).tril() @ v[:1, :4].float()
    )
    yield line


def attention_backward_line(sweep: bool) -> Iterator[Line]:
    for shape in ((4, 16, 4096, 128), (4, 16, 8192, 128), (4, 32, 4096, 64)):
        for causal in (False, True):
            yield backward_of(*shape, causal, sweep)


def logarithms(q: torch.Tensor, k: torch.Tensor, causal: bool) -> torch.Tensor:
    """Of the sums of exp2 of the scores, to base 2; a head at a time, which memory has room for."""
    batch, heads, length, d = q.shape
    lse = torch.empty(batch, heads, length, device="cuda")
    hidden = torch.ones(length, length, device="cuda", dtype=torch.bool).triu(1) if causal else None
    for b in range(batch):
        for h in range(heads):
            s = (q[b, h] @ k[b, h].t()).float() / math.sqrt(d)
            s = s if hidden is None else s.masked_fill_(hidden, -math.inf)
            lse[b, h] = s.logsumexp(-1) / math.log(2)
    return lse


def backward_of(batch: int, heads: int, length: int, d: int, causal: bool, sweep: bool) -> Line:
    q, k, v = (normal(batch, heads, length, d).requires_grad_() for _ in range(3))
    dy = normal(batch, heads, length, d)
    y = sdpa(SDPBackend.CUDNN_ATTENTION, q, k, v, is_causal=causal)()
    inputs = [x.detach() for x in (q, k, v, y)]
    lse = logarithms(*inputs[:2], causal)
    outputs = [torch.empty_like(lse), *(torch.empty_like(dy) for _ in range(3))]
    shape, flop = f"{batch}x{heads}x{length}x{d}", 10.0 * batch * heads * length * length * d
    line = Line("attention backward", shape + " causal" * causal, flop / (1 + causal))
    options: dict[str, Any] = {"causal": causal}
    for tiles in choose(sweep, (128, 64), (128, 128), (64, 64)):
        line.plan(attention_backward, *inputs, dy, lse, *outputs, tiles=tiles, **options)
    if d == 64:  # rows of queries have room for more keys
        options |= {"tiles": (128, 64), "query_tiles": (128, 128), "about": "queries 128x128"}
        line.plan(attention_backward, *inputs, dy, lse, *outputs, **options)
    line.peers["cuDNN"] = lambda: torch.autograd.grad(y, (q, k, v), dy, retain_graph=True)

    def error() -> float:
        few = [x.detach()[:1, :2].float().requires_grad_() for x in (q, k, v)]
        wanted = torch.autograd.grad(nn.scaled_dot_product_attention(*few, is_causal=causal), few, dy[:1, :2].float())
        return max(relative_error(x[:1, :2], w) for x, w in zip(outputs[1:], wanted, strict=True))

    line.error, line.outputs = error, tuple(outputs[1:])
    return line


def rope_line(sweep: bool) -> Iterator[Line]:
    batch, heads, length, d = 4, 32, 4096, 128
    x, angle = normal(batch, heads, length, d), normal(length, d // 2, dtype=F32)
    cos, sin, y = angle.cos(), angle.sin(), torch.empty_like(x)
    line = Line("rope", f"{batch}x{heads}x{length}x{d}", 0, 4.0 * x.numel())
    for tile in choose(sweep, 32, 16, 64, 128):
        line.plan(rope, x, cos, sin, y, tile=tile)

    def turned(x: torch.Tensor) -> torch.Tensor:
        x1, x2 = x.chunk(2, dim=-1)
        return torch.cat([x1 * cos - x2 * sin, x2 * cos + x1 * sin], dim=-1).to(x.dtype)

    line.peers["torch"] = lambda: turned(x)
    line.outputs = (y,)
    line.error = lambda: relative_error(y, turned(x.float()))
    yield line


def cross_entropy_line(sweep: bool) -> Iterator[Line]:
    rows, classes = 8192, 32768
    x = normal(rows, classes).requires_grad_()
    target = torch.randint(classes, (rows,), device="cuda")
    loss, dx = torch.empty(rows, device="cuda"), torch.empty(rows, classes, device="cuda", dtype=BF16)
    line = Line("cross entropy, loss and gradient", f"{rows}x{classes}", 0, 4.0 * x.numel())
    for tile in choose(sweep, 8192, 2048, 4096, 16384):
        line.plan(cross_entropy, x.detach(), target.int(), loss, dx, tile=tile)
    one = torch.ones(rows, device="cuda", dtype=BF16)

    def both() -> Any:
        found = nn.cross_entropy(x, target, reduction="none")
        return found, torch.autograd.grad(found, x, one)

    line.peers["torch"] = both

    def error() -> float:
        wanted = nn.cross_entropy(x.detach().float(), target, reduction="none")
        gradient = x.detach()[:64].float().softmax(-1) - nn.one_hot(target[:64], classes)
        return max(relative_error(loss, wanted), relative_error(dx[:64], gradient))

    line.error, line.outputs = error, (loss, dx)
    yield line


LINES = {name.removesuffix("_line"): make for name, make in list(globals().items()) if name.endswith("_line")}


def measure(results: Results, timer: Timer, line: Line, rounds: int, copy: tuple[float, Work]) -> None:
    about = {"bench": line.name, "shape": line.shape}
    working: dict[str, Work] = {}
    for who, work in {**line.ours, **line.peers}.items():
        try:
            if who in line.ours:
                found = checked(work, line.outputs, line.error, torch.cuda.synchronize)
                results.add(**about, who=who, error=found)
            else:  # some compute less, as yardsticks
                work()
                torch.cuda.synchronize()
            working[who] = work
        except Exception as problem:  # one that fails must not hide the others' figures
            results.add(**about, who=who, failed=f"{type(problem).__name__}: {problem}"[:300])
    measures = {who: timer(work) for who, work in working.items()}
    if line.traffic:
        measures["torch copy"] = timer(copy[1])
    for one in measures.values():
        for _ in range(3):
            one()
    medians = interleave(measures, rounds)
    for who, ms in medians.items():
        ratios = {f"of {peer}": medians[peer] / ms for peer in line.peers if peer in medians and who in line.ours}
        if "torch copy" in medians and who in line.ours:
            ratios["of torch copy"] = medians["torch copy"] / copy[0] * line.traffic / ms
        rate = {"tflops": line.flop / ms / 1e9} if line.flop else {}
        results.add(**about, who=who, ms=ms, **rate, **ratios)
    results.add(**about, clocks=clocks())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=sorted(LINES), action="append", help="repeat it for several (default: all)")
    parser.add_argument("--rounds", type=int, default=30, help="of each contender, in turns (default: 30)")
    parser.add_argument("--sweep", action="store_true", help="several tile sizes each")
    parser.add_argument("--out", type=Path, help="the results, a JSON object a line")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("bench/kernels.py: torch sees no GPU")
    torch.manual_seed(0)
    about = {"torch": torch.__version__, "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version()}
    device, found = torch.cuda.get_device_name(), versions("numpy", "tilewright")
    results = Results("kernels", device, options.out, **about, versions=found, rounds=options.rounds)
    source = torch.empty(1 << 28, device="cuda")
    target = torch.empty_like(source)
    copy = (8.0 * source.numel(), lambda: target.copy_(source))
    timer = Timer()
    for name in options.only or LINES:
        try:
            for line in LINES[name](options.sweep):
                measure(results, timer, line, options.rounds, copy)
        except torch.OutOfMemoryError as problem:
            results.add(bench=name, failed=str(problem)[:300])
    print(f"written to {results.path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
