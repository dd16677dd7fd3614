"""Two products over one operand: Y = silu(X @ W) * (X @ U), of X [M, K], W and U [K, N]."""

import numpy as np

from tilewright import tile as ct

from .linear import silu


@ct.kernel
def swiglu(X, W, U, Y, TM: ct.Constant, TN: ct.Constant, TK: ct.Constant):
    i, j = ct.bid(0), ct.bid(1)
    gate = ct.zeros((TM, TN), dtype=ct.float32)
    up = ct.zeros((TM, TN), dtype=ct.float32)
    for k in range(ct.num_tiles(X, axis=1, shape=(TM, TK))):
        x = ct.load(X, index=(i, k), shape=(TM, TK), padding_mode=ct.PaddingMode.ZERO)
        w = ct.load(W, index=(k, j), shape=(TK, TN), padding_mode=ct.PaddingMode.ZERO)
        u = ct.load(U, index=(k, j), shape=(TK, TN), padding_mode=ct.PaddingMode.ZERO)
        gate = ct.mma(x, w, gate)
        up = ct.mma(x, u, up)
    ct.store(Y, index=(i, j), tile=(silu(gate) * up).astype(Y.dtype))


def launches(x, w, u, y, tiles=(128, 128, 64)):
    grid = (ct.cdiv(y.shape[0], tiles[0]), ct.cdiv(y.shape[1], tiles[1]))
    yield grid, swiglu, (x, w, u, y, *tiles)


def reference(x, w, u):
    gate = x @ w
    return gate / (1 + np.exp(-gate)) * (x @ u)
