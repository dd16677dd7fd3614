"""A linear layer whose weights are integers of 8 or 4 bits: Y = X @ W.T * SCALE, a scale for each row of W.

Of 4 bits, a byte of W has two weights: its lower half is that of column k, its upper half that of column K/2 + k,
where K/2 is a multiple of TK.
"""

import numpy as np

from tilewright import tile as ct


@ct.kernel
def quantized_linear(X, W, SCALE, Y, BITS: ct.Constant, TM: ct.Constant, TN: ct.Constant, TK: ct.Constant):
    i, j = ct.bid(0), ct.bid(1)
    steps = ct.cdiv(W.shape[1], TK)
    acc = ct.zeros((TM, TN), dtype=ct.float32)
    for k in range(steps):
        x = ct.load(X, index=(i, k), shape=(TM, TK), padding_mode=ct.PaddingMode.ZERO)
        w = ct.load(W, index=(j, k), shape=(TN, TK), padding_mode=ct.PaddingMode.ZERO)
        if BITS == 8:
            acc = ct.mma(x, w.astype(X.dtype).T, acc)
        else:
            acc = ct.mma(x, ((w << 4) >> 4).astype(X.dtype).T, acc)
            x = ct.load(X, index=(i, steps + k), shape=(TM, TK), padding_mode=ct.PaddingMode.ZERO)
            acc = ct.mma(x, (w >> 4).astype(X.dtype).T, acc)
    scale = ct.load(SCALE, index=(j,), shape=(TN,), padding_mode=ct.PaddingMode.ZERO)
    ct.store(Y, index=(i, j), tile=(acc * scale).astype(Y.dtype))


def launches(x, w, scale, y, bits=8, tiles=(128, 128, 64)):
    grid = (ct.cdiv(y.shape[0], tiles[0]), ct.cdiv(y.shape[1], tiles[1]))
    yield grid, quantized_linear, (x, w, scale, y, bits, *tiles)


def reference(x, w, scale, bits=8):
    if bits == 4:
        w = np.concatenate([(w << 4).astype(np.int8) >> 4, w >> 4], axis=1)
    return x @ w.astype(np.float32).T * scale
