"""Products of groups of rows with a matrix each, as experts have: rows OFFSETS[g] to OFFSETS[g+1] of C are those of A
times B[g].

No table of tiles is made on the host: a block counts through the groups until it finds its own.
"""

import numpy as np

from tilewright import tile as ct


@ct.kernel
def grouped_gemm(A, B, OFFSETS, C, TM: ct.Constant, TN: ct.Constant, TK: ct.Constant):
    tile, j = ct.bid(0), ct.bid(1)
    group, begin, end, before = 0, 0, 0, 0
    for g in range(B.shape[0]):
        first, last = ct.gather(OFFSETS, g), ct.gather(OFFSETS, g + 1)
        tiles = ct.cdiv(last - first, TM)
        if before <= tile and tile < before + tiles:
            group, begin, end = g, first + (tile - before) * TM, last
        before = before + tiles
    if begin < end:
        rows = (begin + ct.arange(TM, dtype=ct.int32))[:, None]
        acc = ct.zeros((TM, TN), dtype=ct.float32)
        for k in range(ct.num_tiles(A, axis=1, shape=(TM, TK))):
            columns = (k * TK + ct.arange(TK, dtype=ct.int32))[None, :]
            a = ct.gather(A, (rows, columns), mask=rows < end)
            b = ct.load(B, index=(group, k, j), shape=(1, TK, TN), padding_mode=ct.PaddingMode.ZERO)
            acc = ct.mma(a, b.reshape((TK, TN)), acc)
        columns = (j * TN + ct.arange(TN, dtype=ct.int32))[None, :]
        ct.scatter(C, (rows, columns), acc.astype(C.dtype), mask=rows < end)


def launches(a, b, offsets, c, tiles=(128, 128, 64)):
    groups, most = b.shape[0], a.shape[0]
    grid = (most // tiles[0] + groups, ct.cdiv(b.shape[2], tiles[1]))  # each group may have one partial tile
    yield grid, grouped_gemm, (a, b, offsets, c, *tiles)


def reference(a, b, offsets):
    parts = [a[first:last] @ m for m, first, last in zip(b, offsets[:-1], offsets[1:], strict=True)]
    return np.concatenate(parts)
