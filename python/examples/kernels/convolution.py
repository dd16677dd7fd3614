"""Convolution as a matrix product that is never written out: X [N, H, W, C], filters F [O, R, S, C], Y [N, P, Q, O].

A row of the product is a pixel of Y, a column an output channel; k runs over the R * S places of the filter and the
channels. Indices outside of the picture give zeros.
"""

import numpy as np

from tilewright import tile as ct


@ct.kernel
def convolution(X, F, Y, STRIDE: ct.Constant, PAD: ct.Constant, TM: ct.Constant, TN: ct.Constant, TK: ct.Constant):
    i, j = ct.bid(0), ct.bid(1)
    width, area, taps = Y.shape[2], Y.shape[1] * Y.shape[2], F.shape[2]
    pixel = i * TM + ct.arange(TM, dtype=ct.int32)
    n, p, q = pixel // area, pixel % area // width, pixel % width
    chunks = ct.num_tiles(X, axis=3, shape=(1, 1, 1, TK))
    acc = ct.zeros((TM, TN), dtype=ct.float32)
    for k in range(F.shape[1] * taps * chunks):
        r, s, c = k // chunks // taps, k // chunks % taps, k % chunks
        y, x = p * STRIDE - PAD + r, q * STRIDE - PAD + s
        channels = c * TK + ct.arange(TK, dtype=ct.int32)
        a = ct.gather(X, (n[:, None], y[:, None], x[:, None], channels[None, :]))
        f = ct.load(F, index=(j, r, s, c), shape=(TN, 1, 1, TK), padding_mode=ct.PaddingMode.ZERO)
        acc = ct.mma(a, f.reshape((TN, TK)).T, acc)
    outputs = j * TN + ct.arange(TN, dtype=ct.int32)
    ct.scatter(Y, (n[:, None], p[:, None], q[:, None], outputs[None, :]), acc.astype(Y.dtype))


def launches(x, f, y, stride=1, pad=1, tiles=(128, 128, 64)):
    n, p, q, o = y.shape
    grid = (ct.cdiv(n * p * q, tiles[0]), ct.cdiv(o, tiles[1]))
    yield grid, convolution, (x, f, y, stride, pad, *tiles)


def reference(x, f, stride=1, pad=1):
    taps = f.shape[1:3]
    padded = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, taps, axis=(1, 2))[:, ::stride, ::stride]
    return np.einsum("npqcrs,orsc->npqo", windows, f)
