"""Attention over keys and values that lie in pages all over memory.

Q and Y are [batch, heads, queries, D], the last queries of each sequence; K and V [pages, PAGE, key heads, D].
TABLE[b, n] is where the n-th page of a sequence is, LENGTHS[b] how many keys it has.
"""

import math

import numpy as np

from attention import load_rows, online_softmax
from tilewright import tile as ct

from .grouped_attention import LOWEST


@ct.kernel
def paged_attention(
    Q, K, V, TABLE, LENGTHS, Y, SCALE: ct.Constant, PAGE: ct.Constant, TM: ct.Constant, TN: ct.Constant, D: ct.Constant
):
    i, h, b = ct.bid(0), ct.bid(1), ct.bid(2)
    group, length = h * K.shape[2] // Q.shape[1], ct.gather(LENGTHS, b)
    q = load_rows(Q, b, h, i, TM, D)
    rows = length - Q.shape[2] + i * TM + ct.arange(TM, dtype=ct.int32)[:, None]
    d = ct.arange(D, dtype=ct.int32)[None, :]
    m = ct.full((TM, 1), LOWEST, dtype=ct.float32)
    total = ct.zeros((TM, 1), dtype=ct.float32)
    acc = ct.zeros((TM, D), dtype=ct.float32)
    for j in range(ct.cdiv(length, TN)):
        columns = j * TN + ct.arange(TN, dtype=ct.int32)
        page = ct.gather(TABLE, (b, columns // PAGE), mask=columns < length, padding_value=-1)
        place = (page[:, None], (columns % PAGE)[:, None], group, d)
        s = ct.mma(q, ct.gather(K, place).T, ct.zeros((TM, TN), dtype=ct.float32)) * SCALE
        s = ct.where(columns[None, :] <= rows, s, -math.inf)
        m, total, acc = online_softmax(s, ct.gather(V, place), m, total, acc)
    ct.store(Y, index=(b, h, i, 0), tile=(acc / total).astype(Y.dtype).reshape((1, 1, TM, D)))


def launches(q, k, v, table, lengths, y, tiles=(64, 64)):
    batch, heads, queries, d = q.shape
    scale = math.log2(math.e) / math.sqrt(d)
    grid = (ct.cdiv(queries, tiles[0]), heads, batch)
    yield grid, paged_attention, (q, k, v, table, lengths, y, scale, k.shape[1], *tiles, d)


def reference(q, k, v, table, lengths):
    y = np.empty_like(q)
    for b, n in enumerate(lengths):
        keys, values = (x[table[b]].reshape(-1, *x.shape[2:])[:n].swapaxes(0, 1) for x in (k, v))
        keys, values = (np.repeat(x, q.shape[1] // x.shape[0], axis=0) for x in (keys, values))
        s = q[b] @ keys.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
        s = np.where(np.tri(q.shape[2], n, n - q.shape[2], dtype=bool), s, -np.inf)
        p = np.exp(s - s.max(axis=-1, keepdims=True))
        y[b] = p / p.sum(axis=-1, keepdims=True) @ values
    return y
