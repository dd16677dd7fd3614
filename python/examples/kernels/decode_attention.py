"""Attention of one new query a sequence to its whole cache: Q and Y are [batch, key heads, group, D], K and V [batch,
key heads, length, D], LENGTHS [batch].

One block would leave the GPU idle: the keys are split among blocks, each of which writes its part of the sum and the
largest score and the total of its rows; a second kernel puts the parts together. The rows of a tile are the queries of
the heads that share their keys.
"""

import math

import numpy as np

from attention import load_rows, online_softmax
from tilewright import tile as ct

from .grouped_attention import LOWEST


@ct.kernel
def decode_part(
    Q, K, V, LENGTHS, PART, MOST, TOTAL, SCALE: ct.Constant, TM: ct.Constant, TN: ct.Constant, D: ct.Constant
):
    split, h, b = ct.bid(0), ct.bid(1), ct.bid(2)
    length = ct.gather(LENGTHS, b)
    steps = ct.cdiv(ct.cdiv(length, TN), ct.num_blocks(0))
    q = load_rows(Q, b, h, 0, TM, D)
    m = ct.full((TM, 1), LOWEST, dtype=ct.float32)
    total = ct.zeros((TM, 1), dtype=ct.float32)
    acc = ct.zeros((TM, D), dtype=ct.float32)
    for j in range(split * steps, ct.minimum((split + 1) * steps, ct.cdiv(length, TN))):
        s = ct.mma(q, load_rows(K, b, h, j, TN, D).T, ct.zeros((TM, TN), dtype=ct.float32)) * SCALE
        s = ct.where(j * TN + ct.arange(TN, dtype=ct.int32)[None, :] < length, s, -math.inf)
        m, total, acc = online_softmax(s, load_rows(V, b, h, j, TN, D), m, total, acc)
    ct.store(PART, index=(b, h, split, 0, 0), tile=acc.reshape((1, 1, 1, TM, D)))
    ct.store(MOST, index=(b, h, split, 0), tile=m.reshape((1, 1, 1, TM)))
    ct.store(TOTAL, index=(b, h, split, 0), tile=total.reshape((1, 1, 1, TM)))


@ct.kernel
def decode_combine(PART, MOST, TOTAL, Y, SPLITS: ct.Constant, D: ct.Constant):
    row, h, b = ct.bid(0), ct.bid(1), ct.bid(2)
    m = ct.load(MOST, index=(b, h, 0, row), shape=(1, 1, SPLITS, 1)).reshape((SPLITS, 1))
    total = ct.load(TOTAL, index=(b, h, 0, row), shape=(1, 1, SPLITS, 1)).reshape((SPLITS, 1))
    part = ct.load(PART, index=(b, h, 0, row, 0), shape=(1, 1, SPLITS, 1, D)).reshape((SPLITS, D))
    weight = ct.exp2(m - ct.max(m, axis=0, keepdims=True))
    y = ct.sum(part * weight, axis=0) / ct.sum(total * weight)
    ct.store(Y, index=(b, h, row, 0), tile=y.astype(Y.dtype).reshape((1, 1, 1, D)))


def launches(q, k, v, lengths, part, most, total, y, tiles=(16, 64)):
    """part [batch, key heads, splits, group, D], most and total [batch, key heads, splits, group]: float32, scratch."""
    batch, heads, group, d = q.shape
    splits = part.shape[2]
    scale = math.log2(math.e) / math.sqrt(d)
    yield (splits, heads, batch), decode_part, (q, k, v, lengths, part, most, total, scale, *tiles, d)
    yield (group, heads, batch), decode_combine, (part, most, total, y, splits, d)


def reference(q, k, v, lengths):
    y = np.empty_like(q)
    for b, n in enumerate(lengths):
        s = q[b] @ k[b, :, :n].swapaxes(-1, -2) / math.sqrt(q.shape[-1])
        p = np.exp(s - s.max(axis=-1, keepdims=True))
        y[b] = p / p.sum(axis=-1, keepdims=True) @ v[b, :, :n]
    return y
