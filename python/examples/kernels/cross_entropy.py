"""Cross-entropy of logits X [rows, classes] with TARGET [rows]: LOSS [rows] float32, and DX, its gradient, in the same
pass over a row that fits no tile: two walks, of which a GPU keeps what the first one read in shared memory."""

import math

import numpy as np

from tilewright import tile as ct


@ct.kernel
def cross_entropy(X, TARGET, LOSS, DX, T: ct.Constant):
    row = ct.bid(0)
    target = ct.gather(TARGET, row).astype(ct.int32)
    m = ct.full((1, 1), -1e30, dtype=ct.float32)
    total = ct.zeros((1, 1), dtype=ct.float32)
    for j in range(ct.num_tiles(X, axis=1, shape=(1, T))):
        x = ct.load(X, index=(row, j), shape=(1, T), padding_mode=ct.PaddingMode.NEG_INF) * math.log2(math.e)
        m_new = ct.maximum(m, ct.max(x, axis=1, keepdims=True))
        total = total * ct.exp2(m - m_new) + ct.sum(ct.exp2(x - m_new), axis=1, keepdims=True)
        m = m_new
    lse = m + ct.log2(total)
    for j in range(ct.num_tiles(X, axis=1, shape=(1, T))):
        x = ct.load(X, index=(row, j), shape=(1, T), padding_mode=ct.PaddingMode.NEG_INF) * math.log2(math.e)
        hit = j * T + ct.arange(T, dtype=ct.int32)[None, :] == target
        ct.store(DX, index=(row, j), tile=(ct.exp2(x - lse) - ct.where(hit, 1.0, 0.0)).astype(DX.dtype))
    loss = lse * math.log(2) - ct.gather(X, (row, target)).astype(ct.float32)
    ct.store(LOSS, index=row, tile=loss.reshape((1,)))


def launches(x, target, loss, dx, tile=8192):
    yield (x.shape[0],), cross_entropy, (x, target, loss, dx, tile)


def reference(x, target):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    hit = np.arange(x.shape[1]) == target[:, None]
    return -np.log(p[hit]), p - hit
