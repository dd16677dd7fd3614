"""Kernels as people write them who know other languages: habits of samples, tutorials and papers, one kernel a habit.

    compiled(PROGRAMS["sums of f16"]) -> plan.Plan, remarks

`python test/spellings/foreign.py [NAME…]` prints the plan of each, and what the compiler remarks of it; `--write`
writes down what they are told of plans that they lose (remarks.txt), for review with `git diff`.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import sys
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import ml_dtypes
import numpy as np
import plan

from tilewright import cli, remarks
from tilewright import tile as ct
from tilewright.errors import places_of

DTYPES = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32, "f8e4m3": ml_dtypes.float8_e4m3fn}
ZERO = ct.PaddingMode.ZERO


@dataclasses.dataclass(frozen=True)
class Program:
    name: str
    kernel: Any
    small: str  # a grid, and an extent of each array or each number, for an emulator
    arguments: tuple[str, ...]  # as the command line takes them


PROGRAMS: dict[str, Program] = {}


def arrays(names: str, dtype: str = "bf16", rank: int = 2) -> list[str]:
    return [f"{name}={dtype}[{','.join('?' * rank)}]" for name in names.split()]


def program(name: str, small: str, *arguments: Any, into: dict[str, Program] = PROGRAMS, **hints: Any) -> Any:
    """Registers a kernel with arguments, each a text or a list of texts."""
    flat = tuple(x for given in arguments for x in ([given] if isinstance(given, str) else given))

    def register(kernel: Any) -> Any:
        into[name] = Program(name, kernel.replace_hints(**hints) if hints else kernel, small, flat)
        return kernel

    return register


def pair(x):
    return x[:, None], x[None, :]


# ---- products: accumulators, operands that come another way ---------------------------------------------------------


@program("gemm", "2,1: 200x200 200x264 200x264", arrays("A B C"))
@ct.kernel
def gemm(A, B, C):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((128, 256), ct.float32)
    for k in range(ct.num_tiles(A, 1, (128, 64))):
        a = ct.load(A, (i, k), (128, 64), padding_mode=ZERO)
        b = ct.load(B, (k, j), (64, 256), padding_mode=ZERO)
        acc = ct.mma(a, b, acc)
    ct.store(C, (i, j), acc.astype(C.dtype))


@program("batches", "2,1,2: 2x200x200 2x200x264 2x200x264", arrays("A B C", rank=3))
@ct.kernel
def batches(A, B, C):
    """All tiles have the axis of the batch."""
    i, j, z = ct.bid(0), ct.bid(1), ct.bid(2)
    acc = ct.zeros((1, 128, 256), ct.float32)
    for k in range(ct.num_tiles(A, 2, (1, 128, 64))):
        a = ct.load(A, (z, i, k), (1, 128, 64), padding_mode=ZERO)
        b = ct.load(B, (z, k, j), (1, 64, 256), padding_mode=ZERO)
        acc = ct.mma(a, b, acc)
    ct.store(C, (z, i, j), acc.astype(C.dtype))


@program("batches of rows", "2,1,2: 2x200x200 2x264x200 2x200x264", arrays("A B C", rank=3))
@ct.kernel
def batches_of_rows(A, B, C):
    i, j, z = ct.bid(0), ct.bid(1), ct.bid(2)
    acc = ct.zeros((1, 128, 256), ct.float32)
    for k in range(ct.cdiv(A.shape[2], 64)):
        a = ct.load(A, (z, i, k), (1, 128, 64), padding_mode=ZERO)
        b = ct.load(B, (z, j, k), (1, 256, 64), padding_mode=ZERO)
        acc += a @ ct.transpose(b, 1, 2)
    ct.store(C, (z, i, j), ct.maximum(acc, 0.0).astype(C.dtype))


@program("two products of one sum", "2,1: 200x200 200x264 200x200 200x264 200x264", arrays("A B D E C"))
@ct.kernel
def two_of_one_sum(A, B, D, E, C):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((128, 128), ct.float32)
    for k in range(ct.num_tiles(A, 1, (128, 64))):
        a = ct.load(A, (i, k), (128, 64), padding_mode=ZERO)
        b = ct.load(B, (k, j), (64, 128), padding_mode=ZERO)
        acc = ct.mma(a, b, acc)
        d = ct.load(D, (i, k), (128, 64), padding_mode=ZERO)
        e = ct.load(E, (k, j), (64, 128), padding_mode=ZERO)
        acc = ct.mma(d, e, acc)
    ct.store(C, (i, j), acc.astype(C.dtype))


@program("sums of f16", "2,1: 200x200 200x264 200x264", arrays("A B C", "f16"))
@ct.kernel
def sums_of_f16(A, B, C):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((128, 256), ct.float16)
    for k in range(ct.num_tiles(A, 1, (128, 64))):
        a = ct.load(A, (i, k), (128, 64), padding_mode=ZERO)
        b = ct.load(B, (k, j), (64, 256), padding_mode=ZERO)
        acc = ct.mma(a, b, acc)
    ct.store(C, (i, j), acc)


@program("tf32", "2,1: 200x72 72x264 200x264", arrays("A B C", "f32"))
@ct.kernel
def tf32(A, B, C):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((128, 256), ct.float32)
    for k in range(ct.num_tiles(A, 1, (128, 32))):
        a = ct.load(A, (i, k), (128, 32), padding_mode=ZERO).astype(ct.tfloat32)
        b = ct.load(B, (k, j), (32, 256), padding_mode=ZERO).astype(ct.tfloat32)
        acc = ct.mma(a, b, acc)
    ct.store(C, (i, j), acc)


@program("operands that fit once", "2,1: 200x520 520x264 200x264", arrays("A B C"))
@ct.kernel
def operands_that_fit_once(A, B, C):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((128, 256), ct.float32)
    for k in range(ct.num_tiles(A, 1, (128, 256))):
        a = ct.load(A, (i, k), (128, 256), padding_mode=ZERO)
        b = ct.load(B, (k, j), (256, 256), padding_mode=ZERO)
        acc = ct.mma(a, b, acc)
    ct.store(C, (i, j), acc.astype(C.dtype))


@program("one step of k", "1,1: 120x256 256x264 120x264", arrays("A B C"))
@ct.kernel
def one_step_of_k(A, B, C):
    i, j = ct.bid(0), ct.bid(1)
    a = ct.load(A, (i, 0), (128, 256), padding_mode=ZERO)
    b = ct.load(B, (0, j), (256, 256), padding_mode=ZERO)
    ct.store(C, (i, j), ct.matmul(a, b).astype(C.dtype))


@program(
    "weights of 8 bits", "2,1: 200x200 200x128 200x128 128", arrays("X Y"), arrays("W", "i8"), arrays("S", "f32", 1)
)
@ct.kernel
def weights_of_8_bits(X, Y, W, S):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((128, 128), ct.float32)
    for k in range(ct.num_tiles(X, 1, (128, 64))):
        x = ct.load(X, (i, k), (128, 64), padding_mode=ZERO)
        w = ct.load(W, (k, j), (64, 128), padding_mode=ZERO).astype(X.dtype)
        acc = ct.mma(x, w, acc)
    ct.store(Y, (i, j), (acc * ct.load(S, (j,), (128,))).astype(Y.dtype))


def group_scaled(X, Y, W, S, TM, wide):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((TM, 128), ct.float32)
    for k in range(ct.num_tiles(X, 1, (TM, 64))):
        x = ct.load(X, (i, k), (TM, 64), padding_mode=ZERO)
        w = ct.load(W, (j, k), (128, 64), padding_mode=ZERO)
        s = ct.load(S, (j, k), (128, 1))
        if wide:
            b = (w.astype(ct.float32) * s.astype(ct.float32)).astype(X.dtype)
        else:
            b = w.astype(X.dtype) * s.astype(X.dtype)
        acc = ct.mma(x, b.T, acc)
    ct.store(Y, (i, j), acc.astype(Y.dtype))


@program(
    "weights of 8 bits by groups through f32",
    "2,1: 200x192 200x128 128x192 128x3",
    arrays("X Y"),
    arrays("W", "i8"),
    arrays("S"),
)
@ct.kernel
def w8_wide(X, Y, W, S):
    group_scaled(X, Y, W, S, 128, True)


@program(
    "weights of 8 bits by groups", "2,1: 200x192 200x128 128x192 128x3", arrays("X Y"), arrays("W", "i8"), arrays("S")
)
@ct.kernel
def w8_low(X, Y, W, S):
    group_scaled(X, Y, W, S, 128, False)


@program(
    "weights of 8 bits by groups, 16 rows",
    "1,1: 16x192 16x128 128x192 128x3",
    arrays("X Y"),
    arrays("W", "i8"),
    arrays("S"),
)
@ct.kernel
def w8_decode(X, Y, W, S):
    group_scaled(X, Y, W, S, 16, True)


def gptq(X, Y, W, S, Z, TM):
    """A word has eight weights along k; a scale and a zero for each 128."""
    i, j = ct.bid(0), ct.bid(1)
    columns = j * 128 + ct.arange(128, dtype=ct.int32)
    rows = ct.arange(64, dtype=ct.int32)
    acc = ct.zeros((TM, 128), ct.float32)
    for k in range(ct.num_tiles(X, 1, (TM, 64))):
        x = ct.load(X, (i, k), (TM, 64), padding_mode=ZERO)
        r = k * 64 + rows
        words = ct.gather(W, (r[:, None] // 8, columns[None, :]))
        q = (words >> ((r[:, None] % 8) * 4)) & 15
        g = k // 2
        s = ct.load(S, (g, j), (1, 128))
        z = ct.load(Z, (g, j), (1, 128))
        b = (q.astype(ct.float32) - z.astype(ct.float32)) * s.astype(ct.float32)
        acc = ct.mma(x, b.astype(X.dtype), acc)
    ct.store(Y, (i, j), acc.astype(Y.dtype))


@program(
    "weights of 4 bits in words",
    "2,1: 200x192 200x128 24x128 2x128 2x128",
    arrays("X Y"),
    arrays("W", "i32"),
    arrays("S Z"),
)
@ct.kernel
def w4_words(X, Y, W, S, Z):
    gptq(X, Y, W, S, Z, 128)


@program(
    "weights of 4 bits in words, 16 rows",
    "1,1: 16x192 16x128 24x128 2x128 2x128",
    arrays("X Y"),
    arrays("W", "i32"),
    arrays("S Z"),
)
@ct.kernel
def w4_words_decode(X, Y, W, S, Z):
    gptq(X, Y, W, S, Z, 16)


@program(
    "weights of 4 bits in bytes", "2,1: 200x192 200x128 128x96 128x3", arrays("X Y"), arrays("W", "i8"), arrays("S")
)
@ct.kernel
def w4_bytes(X, Y, W, S):
    """A byte has the weights of columns 2k and 2k + 1."""
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((128, 128), ct.float32)
    for k in range(ct.num_tiles(X, 1, (128, 64))):
        x = ct.load(X, (i, k), (128, 64), padding_mode=ZERO)
        w = ct.load(W, (j, k), (128, 32), padding_mode=ZERO)
        s = ct.load(S, (j, k), (128, 1)).astype(ct.float32)
        low, high = ((w << 4) >> 4)[:, :, None], (w >> 4)[:, :, None]
        b = ct.cat((low, high), 2).reshape((128, 64)).astype(ct.float32) * s
        acc = ct.mma(x, b.astype(X.dtype).T, acc)
    ct.store(Y, (i, j), acc.astype(Y.dtype))


@program(
    "fp8 in blocks by gathers",
    "2,1: 200x256 128x256 200x2 1x2 200x128",
    arrays("A B", "f8e4m3"),
    arrays("SA SB", "f32"),
    arrays("C"),
)
@ct.kernel
def fp8_blocks(A, B, SA, SB, C):
    i, j = ct.bid(0), ct.bid(1)
    r, c, d = (x * t + ct.arange(t, dtype=ct.int32) for x, t in ((i, 128), (j, 128), (0, 128)))
    acc = ct.zeros((128, 128), ct.float32)
    for k in range(ct.cdiv(A.shape[1], 128)):
        a = ct.gather(A, (r[:, None], (k * 128 + d)[None, :]))
        b = ct.gather(B, (c[:, None], (k * 128 + d)[None, :]))
        sa, sb = ct.gather(SA, (r, k)), ct.gather(SB, (j, k))
        acc += ct.mma(a, b.T, ct.zeros((128, 128), ct.float32)) * sa[:, None] * sb
    ct.scatter(C, (r[:, None], c[None, :]), acc.astype(C.dtype))


# ---- what stands beside a product -----------------------------------------------------------------------------------


@program("rms norm beside a product", "2,1: 200x192 192x128 200x128 192", arrays("X W Y"), arrays("G", "bf16", 1))
@ct.kernel
def rms_beside(X, W, Y, G):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((128, 128), ct.float32)
    squares = ct.zeros((128,), ct.float32)
    for k in range(ct.num_tiles(X, 1, (128, 64))):
        x = ct.load(X, (i, k), (128, 64), padding_mode=ZERO)
        g = ct.load(G, (k,), (64,), padding_mode=ZERO)
        w = ct.load(W, (k, j), (64, 128), padding_mode=ZERO)
        f = x.astype(ct.float32)
        squares += ct.sum(f * f, axis=1)
        acc = ct.mma((f * g.astype(ct.float32)).astype(X.dtype), w, acc)
    y = acc * ct.rsqrt(squares / X.shape[1] + 1e-6)[:, None]
    ct.store(Y, (i, j), y.astype(Y.dtype))


@program("rms norm beside a product, no weights", "2,1: 200x192 192x128 200x128", arrays("X W Y"))
@ct.kernel
def rms_beside_plain(X, W, Y):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((128, 128), ct.float32)
    squares = ct.zeros((128,), ct.float32)
    for k in range(ct.num_tiles(X, 1, (128, 64))):
        x = ct.load(X, (i, k), (128, 64), padding_mode=ZERO)
        w = ct.load(W, (k, j), (64, 128), padding_mode=ZERO)
        f = x.astype(ct.float32)
        squares += ct.sum(f * f, axis=1)
        acc = ct.mma(x, w, acc)
    y = acc * ct.rsqrt(squares / X.shape[1] + 1e-6)[:, None]
    ct.store(Y, (i, j), y.astype(Y.dtype))


@program("k-means", "2: 200x128 384x128 384 200", arrays("X C"), arrays("NORM", "f32", 1), arrays("NEAREST", "i32", 1))
@ct.kernel
def kmeans(X, C, NORM, NEAREST):
    i = ct.bid(0)
    x = ct.load(X, (i, 0), (128, 128), padding_mode=ZERO)
    best = ct.full((128,), float("inf"), ct.float32)
    where = ct.zeros((128,), ct.int32)
    for j in range(ct.num_tiles(C, 0, (128, 128))):
        c = ct.load(C, (j, 0), (128, 128), padding_mode=ZERO)
        distance = ct.load(NORM, (j,), (128,))[None, :] - 2.0 * ct.mma(x, c.T, ct.zeros((128, 128), ct.float32))
        near = ct.min(distance, axis=1)
        at = ct.argmin(distance, axis=1).astype(ct.int32) + j * 128
        where = ct.where(near < best, at, where)
        best = ct.minimum(near, best)
    ct.store(NEAREST, (i,), where)


@program(
    "convolution by computed taps",
    "2,1: 2x9x7x64 576x128 126x128 9 7",
    arrays("X", "bf16", 4),
    arrays("W Y"),
    "H=i32",
    "WIDTH=i32",
)
@ct.kernel
def im2col(X, W, Y, H, WIDTH):
    i, j = ct.bid(0), ct.bid(1)
    m = i * 128 + ct.arange(128, dtype=ct.int32)
    n, p, q = m // (H * WIDTH), m % (H * WIDTH) // WIDTH, m % WIDTH
    channels = X.shape[3]
    steps = ct.cdiv(channels, 64)
    acc = ct.zeros((128, 128), ct.float32)
    for k in range(9 * steps):
        tap, c = k // steps, (k % steps) * 64 + ct.arange(64, dtype=ct.int32)
        r, s = tap // 3, tap % 3
        x = ct.gather(X, (n[:, None], (p + r - 1)[:, None], (q + s - 1)[:, None], c[None, :]))
        w = ct.load(W, (k, j), (64, 128), padding_mode=ZERO)
        acc = ct.mma(x, w, acc)
    ct.store(Y, (i, j), acc.astype(Y.dtype))


# ---- attention and scans -------------------------------------------------------------------------------------------


@program(
    "MLA decode",
    "1,2: 1x64x576 1x250x512 1x250x64 2x1x64x512 2x1x64",
    arrays("Q", "bf16", 3),
    arrays("C K", "bf16", 3),
    arrays("OUT", "f32", 4),
    arrays("L", "f32", 3),
    "S=0.1",
)
@ct.kernel
def mla_decode(Q, C, K, OUT, L, S: ct.Constant[float]):
    """Q[batch, head, 576], a cache of 512 for values and keys, and of 64 for keys alone."""
    b, split = ct.bid(0), ct.bid(1)
    q = ct.load(Q, (b, 0, 0), (1, 64, 512)).reshape((64, 512))
    r = ct.load(Q, (b, 0, 8), (1, 64, 64)).reshape((64, 64))
    m = ct.full((64, 1), -float("inf"), ct.float32)
    d = ct.zeros((64, 1), ct.float32)
    acc = ct.zeros((64, 512), ct.float32)
    for j in range(split * 2, split * 2 + 2):
        c = ct.load(C, (b, j, 0), (1, 64, 512), padding_mode=ZERO).reshape((64, 512))
        k = ct.load(K, (b, j, 0), (1, 64, 64), padding_mode=ZERO).reshape((64, 64))
        s = ct.mma(q, c.T, ct.zeros((64, 64), ct.float32))
        s = ct.mma(r, k.T, s) * (S * 1.4426950408889634)
        new = ct.maximum(m, ct.max(s, axis=1, keepdims=True))
        p = ct.exp2(s - new)
        alpha = ct.exp2(m - new)
        d = d * alpha + ct.sum(p, axis=1, keepdims=True)
        acc = ct.mma(p.astype(C.dtype), c, acc * alpha)
        m = new
    ct.store(OUT, (split, b, 0, 0), (acc / d).reshape((1, 1, 64, 512)))
    ct.store(L, (split, b, 0), (m + ct.log2(d)).reshape((1, 1, 64)))


@program(
    "Mamba-2 chunks", "2: 2x192x64 2x192x128 2x192x128 2x192x64 2x192", arrays("X B C Y", "bf16", 3), arrays("A", "f32")
)
@ct.kernel
def mamba_chunks(X, B, C, Y, A):
    h = ct.bid(0)
    state = ct.zeros((128, 64), ct.float32)
    low = ct.arange(64, dtype=ct.int32)[:, None] >= ct.arange(64, dtype=ct.int32)[None, :]
    for t in range(ct.num_tiles(X, 1, (1, 64, 64))):
        x = ct.load(X, (h, t, 0), (1, 64, 64)).reshape((64, 64))
        b = ct.load(B, (h, t, 0), (1, 64, 128)).reshape((64, 128))
        c = ct.load(C, (h, t, 0), (1, 64, 128)).reshape((64, 128))
        a = ct.cumsum(ct.load(A, (h, t), (1, 64)).reshape((64,)), axis=0)
        last = ct.sum(ct.where(ct.arange(64, dtype=ct.int32) == 63, a, 0.0))
        decay = ct.where(low, ct.exp(a[:, None] - a[None, :]), 0.0)
        inside = ct.mma(c, b.T, ct.zeros((64, 64), ct.float32)) * decay
        y = ct.mma(inside.astype(X.dtype), x, ct.zeros((64, 64), ct.float32))
        y += ct.mma(c, state.astype(X.dtype), ct.zeros((64, 64), ct.float32)) * ct.exp(a)[:, None]
        ct.store(Y, (h, t, 0), y.astype(Y.dtype).reshape((1, 64, 64)))
        weighted = (b.astype(ct.float32) * ct.exp(last - a)[:, None]).astype(X.dtype)
        state = ct.mma(weighted.T, x, state * ct.exp(last))


@program(
    "gated delta rule",
    "2: 2x192x128 2x192x128 2x192x128 2x192x128 2x192x128 2x192x128 2x192",
    arrays("Q K V W U Y", "bf16", 3),
    arrays("G", "f32"),
)
@ct.kernel
def delta_rule(Q, K, V, W, U, Y, G):
    """W and U: the chunk's keys and values after the inverse."""
    h = ct.bid(0)
    state = ct.zeros((128, 128), ct.float32)
    low = ct.arange(64, dtype=ct.int32)[:, None] >= ct.arange(64, dtype=ct.int32)[None, :]
    for t in range(ct.num_tiles(Q, 1, (1, 64, 128))):
        q = ct.load(Q, (h, t, 0), (1, 64, 128)).reshape((64, 128))
        k = ct.load(K, (h, t, 0), (1, 64, 128)).reshape((64, 128))
        w = ct.load(W, (h, t, 0), (1, 64, 128)).reshape((64, 128))
        u = ct.load(U, (h, t, 0), (1, 64, 128)).reshape((64, 128))
        g = ct.load(G, (h, t), (1, 64)).reshape((64,))
        last = ct.sum(ct.where(ct.arange(64, dtype=ct.int32) == 63, g, 0.0))
        v = u.astype(ct.float32) - ct.mma(w, state.astype(Q.dtype), ct.zeros((64, 128), ct.float32))
        y = ct.mma(q, state.astype(Q.dtype), ct.zeros((64, 128), ct.float32)) * ct.exp(g)[:, None]
        inside = ct.mma(q, k.T, ct.zeros((64, 64), ct.float32)) * ct.exp(g[:, None] - g[None, :])
        inside = ct.where(low, inside, 0.0)
        y = ct.mma(inside.astype(Q.dtype), v.astype(Q.dtype), y)
        ct.store(Y, (h, t, 0), y.astype(Y.dtype).reshape((1, 64, 128)))
        left = (v * ct.exp(last - g)[:, None]).astype(Q.dtype)
        state = ct.mma(k.T, left, state * ct.exp(last))


# ---- memory ---------------------------------------------------------------------------------------------------------


@program(
    "DFT in three parts",
    "2: 2x1024x2 2x1024x2 2x32x32 2x32x32 2x32x32 2x32x32 2x32x32",
    *[arrays(x, "f32", 3) for x in ("X Y",)],
    arrays("F G H T U", "f32", 3),
)
@ct.kernel
def fft_parts(X, Y, F, G, H, T, U):
    """As in NVIDIA's sample: 2048 = 64 * 32 by matrices of 2 x n x n, real and imaginary."""
    b = ct.bid(0)
    x = ct.load(X, (b, 0, 0), (1, 1024, 2)).reshape((32, 32, 2))
    re = ct.extract(x, (0, 0, 0), (32, 32, 1)).reshape((32, 32))
    im = ct.extract(x, (0, 0, 1), (32, 32, 1)).reshape((32, 32))
    fr, fi = (ct.load(F, (k, 0, 0), (1, 32, 32)).reshape((32, 32)) for k in (0, 1))
    gr, gi = (ct.load(G, (k, 0, 0), (1, 32, 32)).reshape((32, 32)) for k in (0, 1))
    tr, ti = (ct.load(T, (k, 0, 0), (1, 32, 32)).reshape((32, 32)) for k in (0, 1))
    ar = ct.matmul(fr, re) - ct.matmul(fi, im)
    ai = ct.matmul(fi, re) + ct.matmul(fr, im)
    br, bi = ar * tr - ai * ti, ar * ti + ai * tr
    cr = ct.matmul(br, gr) - ct.matmul(bi, gi)
    ci = ct.matmul(br, gi) + ct.matmul(bi, gr)
    y = ct.cat((cr.reshape((32, 32, 1)), ci.reshape((32, 32, 1))), 2)
    ct.store(Y, (b, 0, 0), y.reshape((1, 1024, 2)))


@program("n-body", "2: 4x256 3x64", arrays("P A", "f32"))
@ct.kernel
def nbody(P, A):
    i = ct.bid(0)
    x, y, z = (ct.load(P, (c, i), (1, 32)).reshape((32, 1)) for c in range(3))
    ax, ay, az = (ct.zeros((32,), ct.float32) for _ in range(3))
    for j in range(ct.num_tiles(P, 1, (1, 128))):
        u, v, w, m = (ct.load(P, (c, j), (1, 128)) for c in range(4))
        dx, dy, dz = u - x, v - y, w - z
        r = ct.rsqrt(dx * dx + dy * dy + dz * dz + 1e-6)
        f = m * r * r * r
        ax += ct.sum(f * dx, axis=1)
        ay += ct.sum(f * dy, axis=1)
        az += ct.sum(f * dz, axis=1)
    for c, a in ((0, ax), (1, ay), (2, az)):
        ct.store(A, (c, i), a.reshape((1, 32)))


@program("flat copy of odd pitch", "5,2: 9999 9999 1999 1500", arrays("X Y", "f32", 1), "PITCH=i32", "N=i32")
@ct.kernel
def odd_pitch(X, Y, PITCH, N):
    row, at = ct.bid(0), ct.bid(1) * 1024 + ct.arange(1024, dtype=ct.int32)
    x = ct.gather(X, row * PITCH + at, mask=at < N)
    ct.scatter(Y, row * PITCH + at, x * 2.0, mask=at < N)


@program("flat copy", "3: 3000 3000 2900", arrays("X Y", "f32", 1), "N=i32")
@ct.kernel
def flat_copy(X, Y, N):
    at = ct.bid(0) * 1024 + ct.arange(1024, dtype=ct.int32)
    ct.scatter(Y, at, ct.gather(X, at, mask=at < N) * 2.0, mask=at < N)


@program("flat GEGLU", "3: 6000 3000 600 3000", arrays("X Y", "bf16", 1), "HALF=i32", "N=i32")
@ct.kernel
def flat_geglu(X, Y, HALF, N):
    at = ct.bid(0) * 1024 + ct.arange(1024, dtype=ct.int32)
    row, column = at // HALF, at % HALF
    g = ct.gather(X, row * (2 * HALF) + column, mask=at < N).astype(ct.float32)
    u = ct.gather(X, row * (2 * HALF) + HALF + column, mask=at < N).astype(ct.float32)
    y = ct.gelu(g) * u
    ct.scatter(Y, at, y.astype(Y.dtype), mask=at < N)


@program("bias of columns, flat", "2: 2000 2000 64 1984 64", arrays("X Y B", "bf16", 1), "N=i32", "WIDTH=i32")
@ct.kernel
def flat_bias(X, Y, B, N, WIDTH):
    at = ct.bid(0) * 1024 + ct.arange(1024, dtype=ct.int32)
    x = ct.gather(X, at, mask=at < N).astype(ct.float32)
    ct.scatter(Y, at, (x + ct.gather(B, at % WIDTH, mask=at < N).astype(ct.float32)).astype(Y.dtype), mask=at < N)


@program(
    "quantize by groups",
    "5: 500 500 5 100",
    arrays("X", "bf16", 1),
    arrays("Q", "i8", 1),
    arrays("S", "f32", 1),
    "GROUP=i32",
)
@ct.kernel
def quantize_groups(X, Q, S, GROUP):
    g = ct.bid(0)
    at = ct.arange(128, dtype=ct.int32)
    x = ct.gather(X, g * GROUP + at, mask=at < GROUP).astype(ct.float32)
    s = ct.maximum(ct.max(ct.abs(x)), 1e-10) / 127.0
    ct.scatter(Q, g * GROUP + at, ct.clip(x / s, -127.0, 127.0).astype(ct.int8), mask=at < GROUP)
    ct.scatter(S, g, s)


def grid_stride_steps(X, Y, Z, N):
    for start in range(ct.bid(0) * 1024, N, ct.num_blocks(0) * 1024):
        at = start + ct.arange(1024, dtype=ct.int32)
        s = ct.gather(X, at, mask=at < N) + ct.gather(Y, at, mask=at < N)
        ct.scatter(Z, at, s, mask=at < N)


@program("grid-stride add", "2: 5000 5000 5000 4900", arrays("X Y Z", "f32", 1), "N=i32")
@ct.kernel
def grid_stride(X, Y, Z, N):
    grid_stride_steps(X, Y, Z, N)


@program("rows by gathers with masks", "3: 3x3000 3x3000 3000", arrays("X Y"), "N=i32")
@ct.kernel
def softmax_rows(X, Y, N):
    row, at = ct.bid(0), ct.arange(4096, dtype=ct.int32)
    x = ct.gather(X, (row, at), mask=at < N, padding_value=-float("inf")).astype(ct.float32)
    e = ct.exp(x - ct.max(x))
    ct.scatter(Y, (row, at), (e / ct.sum(e)).astype(Y.dtype), mask=at < N)


@program("rows listed in memory", "2: 40x512 32x512 32 500", arrays("X Y"), arrays("INDEX", "i32", 1), "N=i32")
@ct.kernel
def rows_listed(X, Y, INDEX, N):
    """Rows of an array, some of which a mask leaves out."""
    i = ct.bid(0)
    rows = ct.gather(INDEX, i * 16 + ct.arange(16, dtype=ct.int32))
    columns = ct.arange(512, dtype=ct.int32)
    x = ct.gather(X, (rows[:, None], columns[None, :]), mask=((rows >= 0)[:, None]) & ((columns < N)[None, :]))
    ct.store(Y, (i, 0), x)


@program("stencil", "2,2: 32x256 32x256", arrays("X Y", "f32"))
@ct.kernel
def stencil(X, Y):
    r = ct.bid(0) * 16 + ct.arange(16, dtype=ct.int32)
    c = ct.bid(1) * 128 + ct.arange(128, dtype=ct.int32)
    rows, columns = r[:, None], c[None, :]
    s = ct.gather(X, (rows - 1, columns)) + ct.gather(X, (rows + 1, columns))
    s += ct.gather(X, (rows, columns - 1)) + ct.gather(X, (rows, columns + 1))
    ct.scatter(Y, (rows, columns), 0.25 * s)


@program("causal convolution", "3,2: 3x2048 3x2048 3x4", arrays("X Y"), arrays("W", "bf16", 2))
@ct.kernel
def causal_convolution(X, Y, W):
    d, t = ct.bid(0), ct.bid(1) * 1024 + ct.arange(1024, dtype=ct.int32)
    acc = ct.zeros((1024,), ct.float32)
    for k in ct.static_iter(range(4)):
        w = ct.gather(W, (d, k)).astype(ct.float32)
        acc += w * ct.gather(X, (d, t + (k - 3))).astype(ct.float32)
    ct.scatter(Y, (d, t), ct.silu(acc).astype(Y.dtype))


@program("rotary pairs", "3: 3x128 3x128 3x64 3x64", arrays("X Y"), arrays("COS SIN", "f32"))
@ct.kernel
def rotary_pairs(X, Y, COS, SIN):
    row, at = ct.bid(0), ct.arange(64, dtype=ct.int32)
    a = ct.gather(X, (row, 2 * at)).astype(ct.float32)
    b = ct.gather(X, (row, 2 * at + 1)).astype(ct.float32)
    c, s = ct.gather(COS, (row, at)), ct.gather(SIN, (row, at))
    ct.scatter(Y, (row, 2 * at), (a * c - b * s).astype(Y.dtype))
    ct.scatter(Y, (row, 2 * at + 1), (a * s + b * c).astype(Y.dtype))


@program("histogram by comparison", "3: 768 256", arrays("X", "i32", 1), arrays("H", "i32", 1))
@ct.kernel
def histogram(X, H):
    x = ct.load(X, (ct.bid(0),), (256,))
    bins = ct.arange(256, dtype=ct.int32)
    ct.atomic_add(H, bins, ct.sum((x[:, None] == bins[None, :]).astype(ct.int32), axis=0))


@program("layer norm by Welford", "2: 2x4096 2x4096 4096 4096", arrays("X Y"), arrays("W B", "bf16", 1))
@ct.kernel
def welford(X, Y, W, B):
    row = ct.bid(0)
    mean, spread = ct.zeros((1024,), ct.float32), ct.zeros((1024,), ct.float32)
    steps = ct.num_tiles(X, 1, (1, 1024))
    for k in range(steps):
        x = ct.load(X, (row, k), (1, 1024)).reshape((1024,)).astype(ct.float32)
        delta = x - mean
        mean += delta / (k + 1)
        spread += delta * (x - mean)
    middle = ct.sum(mean) / 1024
    variance = (ct.sum(spread) + steps * ct.sum((mean - middle) * (mean - middle))) / X.shape[1]
    rstd = ct.rsqrt(variance + 1e-5)
    for k in range(steps):
        x = ct.load(X, (row, k), (1, 1024)).reshape((1024,)).astype(ct.float32)
        w, b = ct.load(W, (k,), (1024,)).astype(ct.float32), ct.load(B, (k,), (1024,)).astype(ct.float32)
        ct.store(Y, (row, k), ((x - middle) * rstd * w + b).astype(Y.dtype).reshape((1, 1024)))


@program("top-k by maxima", "2: 32x64 32x8 32x8", arrays("X", "f32"), arrays("V", "f32"), arrays("INDEX", "i32"))
@ct.kernel
def topk_by_maxima(X, V, INDEX):
    i = ct.bid(0)
    x = ct.load(X, (i, 0), (16, 64))
    at = ct.arange(64, dtype=ct.int32)[None, :]
    for k in ct.static_iter(range(8)):
        best, where = ct.max(x, axis=1, keepdims=True), ct.argmax(x, axis=1, keepdims=True).astype(ct.int32)
        ct.store(V, (i, k), best)
        ct.store(INDEX, (i, k), where)
        x = ct.where(at == where, -float("inf"), x)


def launch_of(one: Program) -> tuple[tuple[int, ...], list[Any]]:
    """A small grid, and arguments of which the kernel changes some."""
    grid, _, extents = one.small.partition(": ")
    random = np.random.default_rng(0)
    return tuple(map(int, grid.split(","))), [
        argument(text, extent, random) for text, extent in zip(one.arguments, cycle(extents.split()), strict=False)
    ]


def results_of(one: Program, launch: Callable[..., Any]) -> list[tuple[Any, Any]]:
    """What `launch`(None, grid, kernel, arguments) leaves in each array, and what the reference does, in float64."""
    grid, given = launch_of(one)
    found, wanted = ([x.copy() if isinstance(x, np.ndarray) else x for x in given] for _ in range(2))
    one.kernel.interpret(grid, tuple(wanted))
    launch(None, grid, one.kernel, tuple(found))
    pairs = zip(found, wanted, strict=True)
    return [(x.astype(np.float64), y.astype(np.float64)) for x, y in pairs if isinstance(x, np.ndarray)]


def argument(text: str, extent: str, random: np.random.Generator) -> Any:
    given = text.partition("=")[2]
    dtype, bracket, _ = given.partition("[")
    if not bracket:
        return int(extent) if given.startswith("i32") else float(given)
    shape = tuple(map(int, extent.split("x")))
    if dtype[0] == "i":
        return (
            random.integers(-7, 8, shape).astype(f"int{dtype[1:]}")
            if dtype == "i8"
            else random.integers(0, 32, shape, np.int32)
        )
    return (0.5 * random.standard_normal(shape, np.float32)).astype(DTYPES[dtype])


@functools.cache
def compiled(one: Program, target: str = "sm_90a") -> tuple[plan.Plan, tuple[tuple[int, str, str], ...]]:
    """The plan, and what the compiler remarks."""
    told: list[Any] = []
    found = plan.of(one.kernel, cli.specialization(one.kernel, list(one.arguments)), target, told)
    return found, tuple(told)


# ---- what is lost ---------------------------------------------------------------------------------------------------

REMARKS = Path(__file__).with_name("remarks.txt")
# Words of remarks on something that another spelling, tile or dtype would win back.
LOSS = re.compile(
    r"is not a|element by element|prevents|waited for|transposes|stays whole|stays in registers|use smaller tiles|"
    r"stores what each thread|adds up in float32|copies no tiles|pieces of up to [1248] bytes|multiply-adds|mma\.sync|"
    r"keeps its .* operand|has no instruction|planned again"
)


def losses_of(one: Program) -> list[str]:
    """Each with the line of the program that it is about."""
    found = []
    for _, location, message in compiled(one)[1]:
        places = places_of(location)
        code = places[0].code() if places and LOSS.search(message) else None
        if code is not None:
            found.append(f"{code[0].strip()}\n    {remarks.sentence(message)}")
    return list(dict.fromkeys(found))


def corpus() -> str:
    parts = (f"== {one.name}\n" + "".join(f"{loss}\n" for loss in losses_of(one)) for one in PROGRAMS.values())
    return "\n".join(parts)


def show(names: list[str]) -> Iterator[str]:
    for name in names or PROGRAMS:
        try:
            found, told = compiled(PROGRAMS[name])
        except Exception as error:
            yield f"{name}: {type(error).__name__}: {error}"
            continue
        yield f"{name}: {found}"
        if names:
            yield "\n".join(map(str, told))


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        REMARKS.write_text(corpus())
    else:
        for line in show(sys.argv[1:]):
            print(line, flush=True)
