"""C = (A * scales) @ (B * scales).T in 8-bit floats: A [M, K] has a scale for each 128 columns of a row, B [N, K] one
for each block of 128 x 128.

Each product of 128 of k is scaled in float32, so that neither a large block nor the sums lose the bits of small ones.
"""

import numpy as np

from tilewright import tile as ct

BLOCK = 128


@ct.kernel
def scaled_gemm(A, B, A_SCALE, B_SCALE, C, TM: ct.Constant, TN: ct.Constant):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((TM, TN), dtype=ct.float32)
    for k in range(ct.num_tiles(A, axis=1, shape=(TM, BLOCK))):
        a = ct.load(A, index=(i, k), shape=(TM, BLOCK), padding_mode=ct.PaddingMode.ZERO)
        b = ct.load(B, index=(j, k), shape=(TN, BLOCK), padding_mode=ct.PaddingMode.ZERO)
        scale = ct.load(A_SCALE, index=(i, k), shape=(TM, 1)) * ct.gather(B_SCALE, (j * TN // BLOCK, k))
        acc = acc + ct.mma(a, b.T, ct.zeros((TM, TN), dtype=ct.float32)) * scale
    ct.store(C, index=(i, j), tile=acc.astype(C.dtype))


def launches(a, b, a_scale, b_scale, c, tiles=(128, 128)):
    grid = (ct.cdiv(c.shape[0], tiles[0]), ct.cdiv(c.shape[1], tiles[1]))
    yield grid, scaled_gemm, (a, b, a_scale, b_scale, c, *tiles)


def reference(a, b, a_scale, b_scale):
    k = a.shape[1]
    rows = np.repeat(a_scale, BLOCK, axis=1)[:, :k]
    blocks = np.repeat(np.repeat(b_scale, BLOCK, axis=0), BLOCK, axis=1)[: b.shape[0], :k]
    return (a * rows) @ (b * blocks).T
