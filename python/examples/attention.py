"""Causal attention with online softmax: the scores never leave the block.

Q, K, V and Y are [batch, heads, length, D]. A block takes TM rows of Q and walks over the keys TN at a time; of the
rows it keeps the largest score so far, the sum of the exponentials, and the weighted sum of V.

    python python/examples/attention.py
"""

import math

import numpy as np

from tilewright import tile as ct


@ct.function
def load_rows(X, b, h, i, T, D):
    """Rows i*T .. i*T+T of one head, as a matrix."""
    return ct.load(X, index=(b, h, i, 0), shape=(1, 1, T, D), padding_mode=ct.PaddingMode.ZERO).reshape((T, D))


@ct.function
def online_softmax(s, v, m, total, acc):
    """Fold the scores s (to base 2) of some keys, and their values v, into the state of the rows."""
    m_new = ct.maximum(m, ct.max(s, axis=1, keepdims=True))
    p = ct.exp2(s - m_new)
    fade = ct.exp2(m - m_new)
    return m_new, total * fade + ct.sum(p, axis=1, keepdims=True), ct.mma(p.astype(v.dtype), v, acc * fade)


@ct.kernel
def attention(Q, K, V, Y, SCALE: ct.Constant[float], TM: ct.Constant[int], TN: ct.Constant[int], D: ct.Constant[int]):
    i, h, b = ct.num_blocks(0) - 1 - ct.bid(0), ct.bid(1), ct.bid(2)  # the rows with the most keys start first
    q = load_rows(Q, b, h, i, TM, D)
    m = ct.full((TM, 1), -math.inf, dtype=ct.float32)
    total = ct.zeros((TM, 1), dtype=ct.float32)
    acc = ct.zeros((TM, D), dtype=ct.float32)

    # Keys that every row of the tile may see, then those on the diagonal, where some lie in the future.
    for j in range(i * TM // TN):
        s = ct.mma(q, load_rows(K, b, h, j, TN, D).T, ct.zeros((TM, TN), dtype=ct.float32)) * SCALE
        m, total, acc = online_softmax(s, load_rows(V, b, h, j, TN, D), m, total, acc)
    rows = i * TM + ct.arange(TM, dtype=ct.int32)[:, None]
    for j in range(i * TM // TN, ct.cdiv((i + 1) * TM, TN)):
        s = ct.mma(q, load_rows(K, b, h, j, TN, D).T, ct.zeros((TM, TN), dtype=ct.float32)) * SCALE
        columns = j * TN + ct.arange(TN, dtype=ct.int32)[None, :]
        s = ct.where(columns <= rows, s, -math.inf)
        m, total, acc = online_softmax(s, load_rows(V, b, h, j, TN, D), m, total, acc)
    ct.store(Y, index=(b, h, i, 0), tile=(acc / total).astype(Y.dtype).reshape((1, 1, TM, D)))


def run(q, k, v, y, stream=None, tiles=(64, 64)):
    batch, heads, length, d = q.shape
    scale = math.log2(math.e) / math.sqrt(d)
    grid = (ct.cdiv(length, tiles[0]), heads, batch)
    ct.launch(stream, grid, attention, (q, k, v, y, scale, *tiles, d))


def reference(q, k, v):
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    s[..., ~np.tri(q.shape[2], dtype=bool)] = -np.inf
    p = np.exp(s - s.max(axis=-1, keepdims=True))
    return (p / p.sum(axis=-1, keepdims=True)) @ v


if __name__ == "__main__":
    q, k, v = np.random.default_rng(0).standard_normal((3, 2, 4, 500, 64), dtype=np.float32)
    y = np.empty_like(q)
    run(q, k, v, y)
    print("largest error:", np.abs(y - reference(q, k, v)).max())
