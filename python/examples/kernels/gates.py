"""What stands between two linear layers, of vectors in memory: Y = silu(X) * G, and Y = gelu(X) + G."""

import numpy as np

from tilewright import tile as ct

from .linear import gelu, silu


@ct.kernel
def swiglu(X, G, Y, T: ct.Constant[int]):
    i = ct.bid(0)
    x = ct.load(X, index=(i,), shape=(T,)).astype(ct.float32)
    g = ct.load(G, index=(i,), shape=(T,)).astype(ct.float32)
    ct.store(Y, index=(i,), tile=(silu(x) * g).astype(Y.dtype))


@ct.kernel
def gelu_and_residual(X, G, Y, T: ct.Constant[int]):
    i = ct.bid(0)
    x = ct.load(X, index=(i,), shape=(T,)).astype(ct.float32)
    ct.store(Y, index=(i,), tile=(gelu(x) + ct.load(G, index=(i,), shape=(T,))).astype(Y.dtype))


def launches(x, g, y, activation="silu", tile=1024):
    kernel = swiglu if activation == "silu" else gelu_and_residual
    yield (ct.cdiv(x.shape[0], tile),), kernel, (x, g, y, tile)


def reference(x, g, activation="silu"):
    if activation == "silu":
        return x / (1 + np.exp(-x)) * g
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3))) + g
