"""Causal attention as today's models have it: several heads of queries share one of keys, a query sees the last WINDOW
keys only, and scores are bent to stay within +-CAP.

Q and Y are [batch, heads, length, D], K and V [batch, key heads, length, D]. WINDOW or CAP of 0: without.
"""

import math

import numpy as np

from attention import load_rows, online_softmax
from tilewright import tile as ct

LOWEST = -1e30  # of a row that has seen no key yet; finite, so that differences are


@ct.kernel
def grouped_attention(
    Q, K, V, Y, SCALE: ct.Constant, WINDOW: ct.Constant, CAP: ct.Constant, TM: ct.Constant, TN: ct.Constant,
    D: ct.Constant,
):  # fmt: skip
    i, h, b = ct.num_blocks(0) - 1 - ct.bid(0), ct.bid(1), ct.bid(2)
    group = h * K.shape[1] // Q.shape[1]
    q = load_rows(Q, b, h, i, TM, D)
    rows = i * TM + ct.arange(TM, dtype=ct.int32)[:, None]
    m = ct.full((TM, 1), LOWEST, dtype=ct.float32)
    total = ct.zeros((TM, 1), dtype=ct.float32)
    acc = ct.zeros((TM, D), dtype=ct.float32)
    first = ct.maximum(i * TM - WINDOW + 1, 0) // TN if WINDOW else 0
    for j in range(first, ct.cdiv(ct.minimum((i + 1) * TM, K.shape[2]), TN)):
        s = ct.mma(q, load_rows(K, b, group, j, TN, D).T, ct.zeros((TM, TN), dtype=ct.float32)) * SCALE
        if CAP:
            s = CAP * ct.tanh(s / CAP)
        columns = j * TN + ct.arange(TN, dtype=ct.int32)[None, :]
        visible = columns <= rows
        if WINDOW:
            visible = visible & (columns > rows - WINDOW)
        s = ct.where(visible, s * math.log2(math.e), -math.inf)
        m, total, acc = online_softmax(s, load_rows(V, b, group, j, TN, D), m, total, acc)
    ct.store(Y, index=(b, h, i, 0), tile=(acc / total).astype(Y.dtype).reshape((1, 1, TM, D)))


def launches(q, k, v, y, window=0, cap=0.0, tiles=(64, 64)):
    batch, heads, length, d = q.shape
    grid = (ct.cdiv(length, tiles[0]), heads, batch)
    yield grid, grouped_attention, (q, k, v, y, 1 / math.sqrt(d), window, cap, *tiles, d)


def reference(q, k, v, window=0, cap=0.0):
    k, v = (np.repeat(x, q.shape[1] // k.shape[1], axis=1) for x in (k, v))
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    s = cap * np.tanh(s / cap) if cap else s
    distance = np.arange(s.shape[-2])[:, None] - np.arange(s.shape[-1])
    s = np.where((distance < 0) | (distance >= (window or math.inf)), -np.inf, s)
    p = np.exp(s - s.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True) @ v
