"""Rotary positions: each pair (x[d], x[d + D/2]) of a row turned by the row's angle. X and Y are [batch, heads, length,
D], COS and SIN [length, D/2]."""

import numpy as np

from tilewright import tile as ct


@ct.kernel
def rope(X, COS, SIN, Y, T: ct.Constant, HALF: ct.Constant):
    i, h, b = ct.bid(0), ct.bid(1), ct.bid(2)
    shape = (1, 1, T, HALF)
    x1 = ct.load(X, index=(b, h, i, 0), shape=shape).astype(ct.float32)
    x2 = ct.load(X, index=(b, h, i, 1), shape=shape).astype(ct.float32)
    cos = ct.load(COS, index=(i, 0), shape=(T, HALF)).reshape(shape)
    sin = ct.load(SIN, index=(i, 0), shape=(T, HALF)).reshape(shape)
    ct.store(Y, index=(b, h, i, 0), tile=(x1 * cos - x2 * sin).astype(Y.dtype))
    ct.store(Y, index=(b, h, i, 1), tile=(x2 * cos + x1 * sin).astype(Y.dtype))


def launches(x, cos, sin, y, tile=32):
    batch, heads, length, d = x.shape
    yield (ct.cdiv(length, tile), heads, batch), rope, (x, cos, sin, y, tile, d // 2)


def reference(x, cos, sin):
    x1, x2 = np.split(x, 2, axis=-1)
    return np.concatenate([x1 * cos - x2 * sin, x2 * cos + x1 * sin], axis=-1)
