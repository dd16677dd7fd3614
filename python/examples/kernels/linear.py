"""A linear layer in one kernel: Y = activation(X @ W.T + bias) + residual; X is [M, K], W [N, K], Y [M, N]."""

import numpy as np

from tilewright import tile as ct


@ct.function
def silu(x):
    return x / (1.0 + ct.exp(-x))


@ct.function
def gelu(x):
    """The form with tanh."""
    return 0.5 * x * (1.0 + ct.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


@ct.kernel
def linear(X, W, BIAS, RESIDUAL, Y, ACTIVATION: ct.Constant[str], TM: ct.Constant, TN: ct.Constant, TK: ct.Constant):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((TM, TN), dtype=ct.float32)
    for k in range(ct.num_tiles(X, axis=1, shape=(TM, TK))):
        x = ct.load(X, index=(i, k), shape=(TM, TK), padding_mode=ct.PaddingMode.ZERO)
        w = ct.load(W, index=(j, k), shape=(TN, TK), padding_mode=ct.PaddingMode.ZERO)
        acc = ct.mma(x, w.T, acc)
    y = acc + ct.load(BIAS, index=j, shape=TN)
    if ACTIVATION == "silu":
        y = silu(y)
    elif ACTIVATION == "gelu":
        y = gelu(y)
    y = y + ct.load(RESIDUAL, index=(i, j), shape=(TM, TN))
    ct.store(Y, index=(i, j), tile=y.astype(Y.dtype))


def launches(x, w, bias, residual, y, activation="gelu", tiles=(128, 128, 64)):
    grid = (ct.cdiv(y.shape[0], tiles[0]), ct.cdiv(y.shape[1], tiles[1]))
    yield grid, linear, (x, w, bias, residual, y, activation, *tiles)


def reference(x, w, bias, residual, activation="gelu"):
    y = x @ w.T + bias
    if activation == "silu":
        y = y / (1 + np.exp(-y))
    elif activation == "gelu":
        y = 0.5 * y * (1 + np.tanh(0.7978845608 * (y + 0.044715 * y**3)))
    return y + residual
