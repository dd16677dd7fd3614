"""C = A @ B for matrices of any size: no size needs to be a multiple of the tile's.

python python/examples/matmul.py
"""

import numpy as np

from tilewright import tile as ct


@ct.kernel
def matmul(A, B, C, TM: ct.Constant[int], TN: ct.Constant[int], TK: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((TM, TN), dtype=ct.float32)
    for k in range(ct.num_tiles(A, axis=1, shape=(TM, TK))):
        a = ct.load(A, index=(i, k), shape=(TM, TK), padding_mode=ct.PaddingMode.ZERO)
        b = ct.load(B, index=(k, j), shape=(TK, TN), padding_mode=ct.PaddingMode.ZERO)
        acc = ct.mma(a, b, acc)
    ct.store(C, index=(i, j), tile=acc.astype(C.dtype))


def run(a, b, c, stream=None, tiles=(64, 64, 64)):
    tm, tn, _ = tiles
    grid = (ct.cdiv(c.shape[0], tm), ct.cdiv(c.shape[1], tn))
    ct.launch(stream, grid, matmul, (a, b, c, *tiles))


if __name__ == "__main__":
    random = np.random.default_rng(0)
    a = random.standard_normal((1000, 777), dtype=np.float32)
    b = random.standard_normal((777, 555), dtype=np.float32)
    c = np.empty((1000, 555), np.float32)
    run(a, b, c)
    print("largest error:", np.abs(c - a @ b).max())
