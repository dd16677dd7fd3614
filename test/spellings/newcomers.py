"""Kernels as those write them first who come from Triton: flat arrays with strides as arguments, a mask on every
access, a program for each row. All of them move memory; numbers of a launch are multiples of 16, as they mostly are.

`python test/spellings/newcomers.py [NAME…]` prints how many bytes their accesses take at a time."""

from __future__ import annotations

import functools
import math
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import foreign
from foreign import arrays

from tilewright import cli, plans
from tilewright import compile as compiler
from tilewright import tile as ct

PROGRAMS: dict[str, foreign.Program] = {}
program = functools.partial(foreign.program, into=PROGRAMS)


def ar(n):
    return ct.arange(n, dtype=ct.int32)


@program(
    "softmax, flat rows with a stride",
    "3: 6000 6000 2000 2000 1936",
    arrays("X Y", "bf16", 1),
    "XS=i32|16",
    "YS=i32|16",
    "N=i32|16",
)
@ct.kernel
def softmax_of_rows(X, Y, XS, YS, N):
    row = ct.bid(0)
    c = ar(4096)
    x = ct.gather(X, row * XS + c, mask=c < N, padding_value=-math.inf).astype(ct.float32)
    e = ct.exp(x - ct.max(x, axis=0))
    ct.scatter(Y, row * YS + c, (e / ct.sum(e, axis=0)).astype(Y.dtype), mask=c < N)


@program(
    "softmax, persistent flat rows",
    "2: 6000 6000 2000 2000 3 1936",
    arrays("X Y", "bf16", 1),
    "XS=i32|16",
    "YS=i32|16",
    "ROWS=i32",
    "N=i32|16",
)
@ct.kernel
def softmax_in_turn(X, Y, XS, YS, ROWS, N):
    for row in range(ct.bid(0), ROWS, ct.num_blocks(0)):
        c = ar(4096)
        x = ct.gather(X, row * XS + c, mask=c < N, padding_value=-math.inf).astype(ct.float32)
        e = ct.exp(x - ct.max(x, axis=0))
        ct.scatter(Y, row * YS + c, (e / ct.sum(e, axis=0)).astype(Y.dtype), mask=c < N)


@program(
    "layer norm, flat, loops of chunks",
    "2: 4000 4000 2000 2000 2000 1936",
    arrays("X Y W B", "bf16", 1),
    "XS=i32|16",
    "N=i32|16",
)
@ct.kernel
def norm_in_chunks(X, Y, W, B, XS, N):
    row = ct.bid(0)
    base = row * XS
    m = ct.zeros((1024,), ct.float32)
    for off in range(0, N, 1024):
        c = off + ar(1024)
        m += ct.gather(X, base + c, mask=c < N, padding_value=0).astype(ct.float32)
    mean = ct.sum(m, axis=0) / N
    v = ct.zeros((1024,), ct.float32)
    for off in range(0, N, 1024):
        c = off + ar(1024)
        x = ct.gather(X, base + c, mask=c < N, padding_value=0).astype(ct.float32)
        x = ct.where(c < N, x - mean, 0.0)
        v += x * x
    rstd = 1 / ct.sqrt(ct.sum(v, axis=0) / N + 1e-5)
    for off in range(0, N, 1024):
        c = off + ar(1024)
        mask = c < N
        w = ct.gather(W, c, mask=mask)
        b = ct.gather(B, c, mask=mask)
        x = ct.gather(X, base + c, mask=mask, padding_value=0).astype(ct.float32)
        ct.scatter(Y, base + c, ((x - mean) * rstd * w + b).astype(Y.dtype), mask=mask)


@program(
    "layer norm backward, flat",
    "2: 4000 4000 4000 2000 2 2 2000 1936",
    arrays("DX DY X W", "bf16", 1),
    arrays("MEAN RSTD", "f32", 1),
    "S=i32|16",
    "N=i32|16",
)
@ct.kernel
def norm_backward(DX, DY, X, W, MEAN, RSTD, S, N):
    row = ct.bid(0)
    c = ar(4096)
    mask = c < N
    base = row * S
    x = ct.gather(X, base + c, mask=mask, padding_value=0).astype(ct.float32)
    dy = ct.gather(DY, base + c, mask=mask, padding_value=0).astype(ct.float32)
    w = ct.gather(W, c, mask=mask).astype(ct.float32)
    mean = ct.gather(MEAN, row)
    rstd = ct.gather(RSTD, row)
    xhat = ct.where(mask, (x - mean) * rstd, 0.0)
    wdy = ct.where(mask, w * dy, 0.0)
    c1 = ct.sum(xhat * wdy, axis=0) / N
    c2 = ct.sum(wdy, axis=0) / N
    ct.scatter(DX, base + c, ((wdy - (xhat * c1 + c2)) * rstd).astype(DX.dtype), mask=mask)


@program(
    "two axes, flat, with masks", "2,2: 4800 4800 4800 48 96", arrays("X Y OUT", "bf16", 1), "M=i32|16", "N=i32|16"
)
@ct.kernel
def add_with_masks(X, Y, OUT, M, N):
    r = ct.bid(0) * 32 + ar(32)
    c = ct.bid(1) * 64 + ar(64)
    mask = (r[:, None] < M) & (c[None, :] < N)
    at = r[:, None] * N + c[None, :]
    ct.scatter(OUT, at, ct.gather(X, at, mask=mask) + ct.gather(Y, at, mask=mask), mask=mask)


@program("transpose, flat", "1,2: 4608 4608 48 96", arrays("X Y", "bf16", 1), "M=i32|16", "N=i32|16")
@ct.kernel
def transposed(X, Y, M, N):
    r = ct.bid(0) * 64 + ar(64)
    c = ct.bid(1) * 64 + ar(64)
    x = ct.gather(X, r[:, None] * N + c[None, :], mask=(r[:, None] < M) & (c[None, :] < N))
    ct.scatter(Y, c[:, None] * M + r[None, :], ct.transpose(x), mask=(c[:, None] < N) & (r[None, :] < M))


@program(
    "argmax over chunks", "2: 4000 2 2000 1936", arrays("X", "f32", 1), arrays("OUT", "i32", 1), "S=i32|16", "N=i32|16"
)
@ct.kernel
def argmax_in_chunks(X, OUT, S, N):
    row = ct.bid(0)
    best = ct.full((1024,), -math.inf, ct.float32)
    at = ct.zeros((1024,), ct.int32)
    for off in range(0, N, 1024):
        c = off + ar(1024)
        x = ct.gather(X, row * S + c, mask=c < N, padding_value=-math.inf)
        at = ct.where(x > best, c, at)
        best = ct.maximum(best, x)
    top = ct.max(best, axis=0)
    ct.scatter(OUT, row, ct.min(ct.where(best == top, at, 2147483647), axis=0))


@program(
    "top-k by maxima, gathers",
    "2: 8x256 8x8 8x8 240",
    arrays("X", "f32"),
    arrays("V", "f32"),
    arrays("INDEX", "i32"),
    "N=i32|16",
)
@ct.kernel
def top_of_rows(X, V, INDEX, N):
    r = ct.bid(0) * 4 + ar(4)
    c = ar(256)
    x = ct.gather(X, (r[:, None], c[None, :]), mask=c[None, :] < N, padding_value=-math.inf)
    for k in range(8):
        top = ct.max(x, axis=1)
        where = ct.argmax(x, axis=1).astype(ct.int32)
        ct.scatter(V, (r, k), top)
        ct.scatter(INDEX, (r, k), where)
        x = ct.where(c[None, :] == where[:, None], -math.inf, x)


@program("prefix sum with a carry", "2: 6000 6000 3000 2928", arrays("X Y", "f32", 1), "S=i32|16", "N=i32|16")
@ct.kernel
def sums_so_far(X, Y, S, N):
    row = ct.bid(0)
    carry = ct.zeros((), ct.float32)
    for off in range(0, N, 2048):
        c = off + ar(2048)
        x = ct.gather(X, row * S + c, mask=c < N, padding_value=0)
        ct.scatter(Y, row * S + c, ct.cumsum(x, axis=0) + carry, mask=c < N)
        carry += ct.sum(x, axis=0)


@program("group norm, tiles of 3", "2,2: 2x16x1024 2x16x1024 16 16", arrays("X Y", "bf16", 3), arrays("W B", "bf16", 1))
@ct.kernel
def norm_of_groups(X, Y, W, B):
    n, g = ct.bid(0), ct.bid(1)
    x = ct.load(X, (n, g, 0), (1, 8, 1024)).astype(ct.float32)
    mean = ct.sum(x) / 8192
    d = x - mean
    r = ct.rsqrt(ct.sum(d * d) / 8192 + 1e-5)
    w = ct.load(W, (g,), (8,)).reshape((1, 8, 1))
    b = ct.load(B, (g,), (8,)).reshape((1, 8, 1))
    ct.store(Y, (n, g, 0), (d * r * w + b).astype(Y.dtype))


@program("NCHW to NHWC, tiles of 4", "1,2,2: 1x64x4x32 1x4x32x64", arrays("X Y", "bf16", 4))
@ct.kernel
def channels_last(X, Y):
    n, c, h = ct.bid(0), ct.bid(1), ct.bid(2)
    x = ct.load(X, (n, c, h, 0), (1, 32, 2, 32))
    ct.store(Y, (n, h, 0, c), ct.permute(x, (0, 2, 3, 1)))


@program(
    "causal convolution, taps as an axis",
    "2,2: 2x1000 2x1000 2x4 1000",
    arrays("X Y", "bf16", 2),
    arrays("W", "f32", 2),
    "L=i32|16",
)
@ct.kernel
def taps_as_an_axis(X, Y, W, L):
    d = ct.bid(0)
    t = ct.bid(1) * 512 + ar(512)
    k = ar(4)
    at = t[:, None] + k[None, :] - 3
    x = ct.gather(X, (d, at), mask=(at >= 0) & (at < L), padding_value=0).astype(ct.float32)
    w = ct.gather(W, (d, k))
    ct.scatter(Y, (d, t), ct.sum(x * w[None, :], axis=1).astype(Y.dtype), mask=t < L)


@program(
    "rope of halves, flat",
    "2,2: 320 64 64 160 32",
    arrays("X", "bf16", 1),
    arrays("C S", "f32", 1),
    "XS=i32|16",
    "HALF=i32|16",
)
@ct.kernel
def rope(X, C, S, XS, HALF):
    row, h = ct.bid(0), ct.bid(1)
    c = ar(64)
    m = c < HALF
    base = row * XS + h * 2 * HALF
    a = ct.gather(X, base + c, mask=m).astype(ct.float32)
    b = ct.gather(X, base + HALF + c, mask=m).astype(ct.float32)
    co = ct.gather(C, row * HALF + c, mask=m)
    si = ct.gather(S, row * HALF + c, mask=m)
    ct.scatter(X, base + c, (a * co - b * si).astype(X.dtype), mask=m)
    ct.scatter(X, base + HALF + c, (b * co + a * si).astype(X.dtype), mask=m)


@program(
    "rope of halves, heads as rows",
    "2: 8192 128 128 4096 128",
    arrays("X", "bf16", 1),
    arrays("C S", "f32", 1),
    "XS=i32|16",
    "HS=i32|16",
)
@ct.kernel
def rope_of_heads(X, C, S, XS, HS):
    row = ct.bid(0)
    h = ar(32)[:, None]
    c = ar(64)[None, :]
    at = row * XS + h * HS + c
    a = ct.gather(X, at).astype(ct.float32)
    b = ct.gather(X, at + 64).astype(ct.float32)
    co = ct.gather(C, row * 64 + c)
    si = ct.gather(S, row * 64 + c)
    ct.scatter(X, at, (a * co - b * si).astype(X.dtype))
    ct.scatter(X, at + 64, (b * co + a * si).astype(X.dtype))


@program("embedding, flat", "3,2: 40000 3600 3 1200", arrays("T OUT", "bf16", 1), arrays("INDEX", "i32", 1), "D=i32|16")
@ct.kernel
def embedding(T, OUT, INDEX, D):
    i = ct.bid(0)
    c = ct.bid(1) * 1024 + ar(1024)
    m = c < D
    idx = ct.gather(INDEX, i)
    ct.scatter(OUT, i * D + c, ct.gather(T, idx * D + c, mask=m), mask=m)


@program(
    "embedding, several tokens",
    "2,2: 16000 6400 16 400",
    arrays("T OUT", "bf16", 1),
    arrays("INDEX", "i32", 1),
    "D=i32|16",
)
@ct.kernel
def embedding_of_tokens(T, OUT, INDEX, D):
    t = ct.bid(0) * 8 + ar(8)
    c = ct.bid(1) * 256 + ar(256)
    m = (c < D)[None, :]
    idx = ct.gather(INDEX, t)
    ct.scatter(OUT, t[:, None] * D + c[None, :], ct.gather(T, idx[:, None] * D + c[None, :], mask=m), mask=m)


@program(
    "cross entropy in chunks",
    "2: 12000 2 2 6000 5920",
    arrays("X", "bf16", 1),
    arrays("T", "i32", 1),
    arrays("L", "f32", 1),
    "S=i32|16",
    "V=i32|16",
)
@ct.kernel
def cross_entropy(X, T, L, S, V):
    row = ct.bid(0)
    m = ct.full((), -math.inf, ct.float32)
    d = ct.zeros((), ct.float32)
    for off in range(0, V, 4096):
        c = off + ar(4096)
        x = ct.gather(X, row * S + c, mask=c < V, padding_value=-math.inf).astype(ct.float32)
        new = ct.maximum(m, ct.max(x))
        d = d * ct.exp(m - new) + ct.sum(ct.exp(x - new))
        m = new
    t = ct.gather(T, row)
    xt = ct.gather(X, row * S + t).astype(ct.float32)
    ct.scatter(L, row, m + ct.log(d) - xt)


@program(
    "rows quantized, flat",
    "2: 4000 4000 2 2000 1936",
    arrays("X", "bf16", 1),
    arrays("Q", "i8", 1),
    arrays("SC", "f32", 1),
    "S=i32|16",
    "N=i32|16",
)
@ct.kernel
def quantized(X, Q, SC, S, N):
    row = ct.bid(0)
    c = ar(4096)
    m = c < N
    x = ct.gather(X, row * S + c, mask=m, padding_value=0).astype(ct.float32)
    s = ct.max(ct.abs(x)) / 127.0
    ct.scatter(Q, row * N + c, ct.floor(x / s + 0.5).astype(ct.int8), mask=m)
    ct.scatter(SC, row, s)


@program(
    "stencil of 7 points, flat", "3,4,1: 6400 6400 5 6 208", arrays("X Y", "f32", 1), "D=i32|16", "H=i32|16", "W=i32|16"
)
@ct.kernel
def stencil(X, Y, D, H, W):
    z, y = ct.bid(0), ct.bid(1)
    c = ct.bid(2) * 512 + ar(512)
    at = (z * H + y) * W + c
    m = (c > 0) & (c < W - 1)
    s = (
        ct.gather(X, at - 1, mask=m)
        + ct.gather(X, at + 1, mask=m)
        + ct.gather(X, at - W, mask=m)
        + ct.gather(X, at + W, mask=m)
    )
    s += ct.gather(X, at - H * W, mask=m) + ct.gather(X, at + H * W, mask=m) - 6.0 * ct.gather(X, at, mask=m)
    ct.scatter(Y, at, s, mask=m)


@program(
    "RMS norm, several rows a block",
    "2: 7x1000 7x1000 1000 7 992",
    arrays("X Y", "bf16"),
    arrays("W", "bf16", 1),
    "M=i32",
    "N=i32|16",
)
@ct.kernel
def rms_of_rows(X, Y, W, M, N):
    r = ct.bid(0) * 4 + ar(4)
    c = ar(1024)
    m = (r < M)[:, None] & (c < N)[None, :]
    x = ct.gather(X, (r[:, None], c[None, :]), mask=m, padding_value=0).astype(ct.float32)
    w = ct.gather(W, c, mask=c < N).astype(ct.float32)
    y = x * ct.rsqrt(ct.sum(x * x, axis=1) / N + 1e-6)[:, None] * w[None, :]
    ct.scatter(Y, (r[:, None], c[None, :]), y.astype(Y.dtype), mask=m)


@program("pooling 2x2, flat", "2,3,1: 1536 384 6 128", arrays("X Y", "bf16", 1), "H=i32|16", "W=i32|16")
@ct.kernel
def pooled(X, Y, H, W):
    n, y = ct.bid(0), ct.bid(1)
    c = ct.bid(2) * 256 + ar(256)
    m = c < W // 2
    at = (n * H + 2 * y) * W + 2 * c
    s = ct.maximum(
        ct.maximum(ct.gather(X, at, mask=m), ct.gather(X, at + 1, mask=m)),
        ct.maximum(ct.gather(X, at + W, mask=m), ct.gather(X, at + W + 1, mask=m)),
    )
    ct.scatter(Y, (n * (H // 2) + y) * (W // 2) + c, s, mask=m)


@program("SwiGLU of halves, flat", "2,2: 8000 4000 2000", arrays("X Y", "bf16", 1), "N=i32|16")
@ct.kernel
def swiglu(X, Y, N):
    row = ct.bid(0)
    c = ct.bid(1) * 1024 + ar(1024)
    m = c < N
    a = ct.gather(X, row * 2 * N + c, mask=m).astype(ct.float32)
    b = ct.gather(X, row * 2 * N + N + c, mask=m).astype(ct.float32)
    ct.scatter(Y, row * N + c, (ct.silu(a) * b).astype(Y.dtype), mask=m)


@program("AdamW, flat", "2: 2000 2000 2000 2000 1936 0.01", arrays("W G M V", "f32", 1), "N=i32|16", "LR=0.01")
@ct.kernel
def adamw(W, G, M, V, N, LR: ct.Constant[float]):
    at = ct.bid(0) * 1024 + ar(1024)
    k = at < N
    w, g = ct.gather(W, at, mask=k), ct.gather(G, at, mask=k)
    m = 0.9 * ct.gather(M, at, mask=k) + 0.1 * g
    v = 0.99 * ct.gather(V, at, mask=k) + 0.01 * g * g
    ct.scatter(M, at, m, mask=k)
    ct.scatter(V, at, v, mask=k)
    ct.scatter(W, at, w - LR * (m / (ct.sqrt(v) + 1e-8) + 0.01 * w), mask=k)


@program(
    "add with wrapped broadcast of a bias",
    "2: 2000 2000 64 1984 64",
    arrays("X Y B", "bf16", 1),
    "NUMEL=i32|16",
    "N=i32|16",
)
@ct.kernel
def biased(X, Y, B, NUMEL, N):
    at = ct.bid(0) * 1024 + ar(1024)
    m = at < NUMEL
    x = ct.gather(X, at, mask=m).astype(ct.float32) + ct.gather(B, at % N, mask=m).astype(ct.float32)
    ct.scatter(Y, at, x.astype(Y.dtype), mask=m)


@program(
    "column sums, flat", "2: 9600 240 40 240", arrays("X", "bf16", 1), arrays("Y", "f32", 1), "M=i32|16", "N=i32|16"
)
@ct.kernel
def column_sums(X, Y, M, N):
    c = ct.bid(0) * 128 + ar(128)
    acc = ct.zeros((32, 128), ct.float32)
    for i in range(0, M, 32):
        r = i + ar(32)
        acc += ct.gather(
            X, r[:, None] * N + c[None, :], mask=(r[:, None] < M) & (c[None, :] < N), padding_value=0
        ).astype(ct.float32)
    ct.scatter(Y, c, ct.sum(acc, axis=0), mask=c < N)


@program(
    "where by a mask from memory", "2: 2000 2000 2000 1984", arrays("X Y", "bf16", 1), arrays("K", "i8", 1), "N=i32|16"
)
@ct.kernel
def dropped(X, Y, K, N):
    at = ct.bid(0) * 1024 + ar(1024)
    m = at < N
    keep = ct.gather(K, at, mask=m) != 0
    x = ct.gather(X, at, mask=m)
    ct.scatter(Y, at, ct.where(keep, x / 0.9, 0.0).astype(Y.dtype), mask=m)


# ---- accesses -------------------------------------------------------------------------------------------------------

ACCESS = re.compile(r"\b(ld|st)\.global\S*?(?:\.v(\d))?\.[a-z]*(\d+)\s")
COPY = re.compile(r"cp\.async\.c[ag]\.shared\.global[^;]*?, (\d+)[,;]")


def widths_of(one: foreign.Program, target: str = "sm_90a") -> list[tuple[str, int]]:
    """Of each access to an array, loads and stores, the bytes."""
    module = one.kernel.capture(target, cli.specialization(one.kernel, list(one.arguments)))
    plans.lower(module, compiler.GPU_STAGES, module.lower)
    ptx = module.emit(compiler.EMIT_ASSEMBLY).decode()
    accesses = [(op, int(count or 1) * int(bits) // 8) for op, count, bits in ACCESS.findall(ptx)]
    return accesses + [("ld", int(size)) for size in COPY.findall(ptx)]


if __name__ == "__main__":
    for name in sys.argv[1:] or PROGRAMS:
        found = widths_of(PROGRAMS[name])
        print(f"{name}: {', '.join(f'{found.count(x)} {x[0]} of {x[1]}' for x in sorted(set(found)))}", flush=True)
