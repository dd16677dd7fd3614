"""The products of a mixture of experts, from where the tokens lie: no row is moved before or after.

A token has TOP experts. A slot is one of its choices, token * TOP + choice, and ORDER lists the slots by expert: those
of expert e stand at OFFSETS[e] to OFFSETS[e+1]. Row `slot` of Y is row `slot // TOP` of X times W[e].
"""

import numpy as np

from tilewright import tile as ct


@ct.kernel
def moe(X, W, ORDER, OFFSETS, Y, TOP: ct.Constant, TM: ct.Constant, TN: ct.Constant, TK: ct.Constant):
    tile, j = ct.bid(0), ct.bid(1)
    expert, begin, end, before = 0, 0, 0, 0
    for e in range(W.shape[0]):
        first, last = ct.gather(OFFSETS, e), ct.gather(OFFSETS, e + 1)
        tiles = ct.cdiv(last - first, TM)
        if before <= tile and tile < before + tiles:
            expert, begin, end = e, first + (tile - before) * TM, last
        before = before + tiles
    if begin < end:
        places = begin + ct.arange(TM, dtype=ct.int32)
        slots = ct.gather(ORDER, places, mask=places < end)[:, None]
        known = (places < end)[:, None]
        acc = ct.zeros((TM, TN), dtype=ct.float32)
        for k in range(ct.cdiv(X.shape[1], TK)):
            columns = (k * TK + ct.arange(TK, dtype=ct.int32))[None, :]
            x = ct.gather(X, (slots // TOP, columns), mask=known)
            w = ct.load(W, index=(expert, k, j), shape=(1, TK, TN), padding_mode=ct.PaddingMode.ZERO)
            acc = ct.mma(x, w.reshape((TK, TN)), acc)
        columns = (j * TN + ct.arange(TN, dtype=ct.int32))[None, :]
        ct.scatter(Y, (slots, columns), acc.astype(Y.dtype), mask=known)


def launches(x, w, order, offsets, y, top=2, tiles=(128, 128, 64)):
    experts = w.shape[0]
    grid = (order.shape[0] // tiles[0] + experts, ct.cdiv(w.shape[2], tiles[1]))  # each may have one partial tile
    yield grid, moe, (x, w, order, offsets, y, top, *tiles)


def reference(x, w, order, offsets, top=2):
    y = np.zeros((order.shape[0], w.shape[2]), np.float32)
    for matrix, first, last in zip(w, offsets[:-1], offsets[1:], strict=True):
        slots = order[first:last]
        y[slots] = x[slots // top] @ matrix
    return y
