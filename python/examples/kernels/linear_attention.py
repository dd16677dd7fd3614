"""Causal attention without softmax, in time linear in the length: y[t] = q[t] @ sum over s <= t of outer(k[s], v[s]).

A block carries that sum over chunks of T positions: what the chunk sees of earlier ones is a product with the sum, what
it sees of itself a product with a triangle of scores. All arrays are [batch, heads, length, D].
"""

import numpy as np

from attention import load_rows
from tilewright import tile as ct


@ct.kernel
def linear_attention(Q, K, V, Y, T: ct.Constant, D: ct.Constant):
    h, b = ct.bid(0), ct.bid(1)
    state = ct.zeros((D, D), dtype=ct.float32)
    past = ct.arange(T, dtype=ct.int32)[None, :] <= ct.arange(T, dtype=ct.int32)[:, None]
    for i in range(ct.num_tiles(Q, axis=2, shape=(1, 1, T, D))):
        q, k, v = load_rows(Q, b, h, i, T, D), load_rows(K, b, h, i, T, D), load_rows(V, b, h, i, T, D)
        s = ct.where(past, ct.mma(q, k.T, ct.zeros((T, T), dtype=ct.float32)), 0.0)
        y = ct.mma(q, state.astype(q.dtype), ct.zeros((T, D), dtype=ct.float32))
        y = ct.mma(s.astype(v.dtype), v, y)
        state = ct.mma(k.T, v, state)
        ct.store(Y, index=(b, h, i, 0), tile=y.astype(Y.dtype).reshape((1, 1, T, D)))


def launches(q, k, v, y, tile=64):
    batch, heads, _, d = q.shape
    yield (heads, batch), linear_attention, (q, k, v, y, tile, d)


def reference(q, k, v):
    return np.tril(q @ k.swapaxes(-1, -2)) @ v
