"""The gradients of attention, causal or not, in two kernels without atomics: a block of keys walks over the queries
that see it for dK and dV, a block of queries over its keys for dQ. All arrays are [batch, heads, length, D], but
LSE and DELTA [batch, heads, length], float32: the logarithm (to base 2) of the sum of exp2 of a row's scores, which the
forward pass knows, and the sum of dY * Y, which a small kernel makes first.

What lies beyond the end counts nowhere: rows of DY and K there are zeros.
"""

import math

import numpy as np

from attention import load_rows
from tilewright import tile as ct


@ct.kernel
def row_products(Y, DY, DELTA, T: ct.Constant, D: ct.Constant):
    i, h, b = ct.bid(0), ct.bid(1), ct.bid(2)
    y, dy = load_rows(Y, b, h, i, T, D).astype(ct.float32), load_rows(DY, b, h, i, T, D)
    ct.store(DELTA, index=(b, h, i), tile=ct.sum(y * dy, axis=1).reshape((1, 1, T)))


@ct.function
def load_vector(X, b, h, i, T):
    return ct.load(X, index=(b, h, i), shape=(1, 1, T), padding_mode=ct.PaddingMode.ZERO).reshape((T,))


@ct.kernel
def gradient_kv(
    Q, K, V, DY, LSE, DELTA, DK, DV, SCALE: ct.Constant, CAUSAL: ct.Constant, TM: ct.Constant, TN: ct.Constant,
    D: ct.Constant,
):  # fmt: skip
    """Scores are transposed here: a row is a key, a column a query."""
    j, h, b = ct.bid(0), ct.bid(1), ct.bid(2)
    k, v = load_rows(K, b, h, j, TN, D), load_rows(V, b, h, j, TN, D)
    keys = j * TN + ct.arange(TN, dtype=ct.int32)[:, None]
    dk = ct.zeros((TN, D), dtype=ct.float32)
    dv = ct.zeros((TN, D), dtype=ct.float32)
    for i in range(j * TN // TM if CAUSAL else 0, ct.num_tiles(Q, axis=2, shape=(1, 1, TM, D))):
        q, dy = load_rows(Q, b, h, i, TM, D), load_rows(DY, b, h, i, TM, D)
        queries = i * TM + ct.arange(TM, dtype=ct.int32)[None, :]
        s = ct.mma(k, q.T, ct.zeros((TN, TM), dtype=ct.float32)) * (SCALE * math.log2(math.e))
        p = ct.exp2(s - load_vector(LSE, b, h, i, TM)[None, :])
        if CAUSAL:
            p = ct.where(keys <= queries, p, 0.0)
        dv = ct.mma(p.astype(dy.dtype), dy, dv)
        dp = ct.mma(v, dy.T, ct.zeros((TN, TM), dtype=ct.float32))
        ds = p * (dp - load_vector(DELTA, b, h, i, TM)[None, :])
        dk = ct.mma(ds.astype(q.dtype), q, dk)
    ct.store(DK, index=(b, h, j, 0), tile=(dk * SCALE).astype(DK.dtype).reshape((1, 1, TN, D)))
    ct.store(DV, index=(b, h, j, 0), tile=dv.astype(DV.dtype).reshape((1, 1, TN, D)))


@ct.kernel
def gradient_q(
    Q, K, V, DY, LSE, DELTA, DQ, SCALE: ct.Constant, CAUSAL: ct.Constant, TM: ct.Constant, TN: ct.Constant,
    D: ct.Constant,
):  # fmt: skip
    i, h, b = ct.num_blocks(0) - 1 - ct.bid(0), ct.bid(1), ct.bid(2)
    q, dy = load_rows(Q, b, h, i, TM, D), load_rows(DY, b, h, i, TM, D)
    lse, delta = load_vector(LSE, b, h, i, TM)[:, None], load_vector(DELTA, b, h, i, TM)[:, None]
    queries = i * TM + ct.arange(TM, dtype=ct.int32)[:, None]
    dq = ct.zeros((TM, D), dtype=ct.float32)
    for j in range(ct.cdiv(ct.minimum((i + 1) * TM, K.shape[2]) if CAUSAL else K.shape[2], TN)):
        k, v = load_rows(K, b, h, j, TN, D), load_rows(V, b, h, j, TN, D)
        keys = j * TN + ct.arange(TN, dtype=ct.int32)[None, :]
        s = ct.mma(q, k.T, ct.zeros((TM, TN), dtype=ct.float32)) * (SCALE * math.log2(math.e))
        p = ct.exp2(s - lse)
        if CAUSAL:
            p = ct.where(keys <= queries, p, 0.0)
        ds = p * (ct.mma(dy, v.T, ct.zeros((TM, TN), dtype=ct.float32)) - delta)
        dq = ct.mma(ds.astype(k.dtype), k, dq)
    ct.store(DQ, index=(b, h, i, 0), tile=(dq * SCALE).astype(DQ.dtype).reshape((1, 1, TM, D)))


def launches(q, k, v, y, dy, lse, delta, dq, dk, dv, causal=True, tiles=(64, 64), query_tiles=None):
    """tiles: the rows that a block has the gradients of, and those that it walks over at a time; query_tiles: the same
    where blocks have queries, if others are better there."""
    batch, heads, length, d = q.shape
    scale = 1 / math.sqrt(d)
    keys, walked = tiles
    yield (ct.cdiv(length, keys), heads, batch), row_products, (y, dy, delta, keys, d)
    args = (q, k, v, dy, lse, delta, dk, dv, scale, causal, walked, keys, d)
    yield (ct.cdiv(length, keys), heads, batch), gradient_kv, args
    queries, walked = query_tiles or tiles
    args = (q, k, v, dy, lse, delta, dq, scale, causal, queries, walked, d)
    yield (ct.cdiv(length, queries), heads, batch), gradient_q, args


def forward(q, k, v, causal=True):
    """The result, and the logarithms."""
    s = q @ k.swapaxes(-1, -2) * (math.log2(math.e) / math.sqrt(q.shape[-1]))
    s = np.where(np.tri(s.shape[-1], dtype=bool) | (not causal), s, -np.inf)
    lse = np.log2(np.exp2(s - s.max(axis=-1, keepdims=True)).sum(axis=-1)) + s.max(axis=-1)
    return np.exp2(s - lse[..., None]) @ v, lse


def reference(q, k, v, y, dy, lse, causal=True):
    scale = 1 / math.sqrt(q.shape[-1])
    s = q @ k.swapaxes(-1, -2) * (scale * math.log2(math.e)) - lse[..., None]
    p = np.where(np.tri(s.shape[-1], dtype=bool) | (not causal), np.exp2(np.minimum(s, 1)), 0)
    ds = p * (dy @ v.swapaxes(-1, -2) - (dy * y).sum(axis=-1, keepdims=True)) * scale
    return ds @ k, ds.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ dy
