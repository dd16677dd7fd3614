"""A few rows times a large weight, Y = X @ W.T, as a decoder needs it: X [M, K], W [N, K], Y [M, N], PARTS [S, M, N].

The weight has to be read once, so all multiprocessors should read at once. Where N has fewer tiles than there are
multiprocessors, S blocks share each tile, a part of k each; a second kernel adds up the parts, always in one order.
"""

from tilewright import tile as ct


@ct.kernel
def part_of_k(X, W, PARTS, STEPS: ct.Constant, TM: ct.Constant, TN: ct.Constant, TK: ct.Constant):
    j, s = ct.bid(0), ct.bid(1)
    acc = ct.zeros((TM, TN), dtype=ct.float32)
    for k in range(s * STEPS, ct.minimum((s + 1) * STEPS, ct.num_tiles(X, axis=1, shape=(TM, TK)))):
        x = ct.load(X, index=(0, k), shape=(TM, TK), padding_mode=ct.PaddingMode.ZERO)
        w = ct.load(W, index=(j, k), shape=(TN, TK), padding_mode=ct.PaddingMode.ZERO)
        acc = ct.mma(x, w.T, acc)
    ct.store(PARTS, index=(s, 0, j), tile=acc.reshape((1, TM, TN)).astype(PARTS.dtype))


@ct.kernel
def add_parts(PARTS, Y, S: ct.Constant, TM: ct.Constant, TN: ct.Constant):
    j = ct.bid(0)
    acc = ct.zeros((TM, TN), dtype=ct.float32)
    for s in range(S):
        acc = acc + ct.load(PARTS, index=(s, 0, j), shape=(1, TM, TN)).reshape((TM, TN))
    ct.store(Y, index=(0, j), tile=acc.astype(Y.dtype))


def launches(x, w, parts, y, tiles=(16, 64, 128)):
    """One row of tiles. The number of parts is that of the workspace; of one part Y itself is the workspace."""
    tm, tn, tk = tiles
    splits, columns, steps = parts.shape[0], ct.cdiv(w.shape[0], tn), ct.cdiv(w.shape[1], tk)
    if splits == 1:
        yield columns, part_of_k, (x, w, y.reshape((1, *y.shape)), steps, *tiles)
        return
    yield (columns, splits), part_of_k, (x, w, parts, ct.cdiv(steps, splits), *tiles)
    yield columns, add_parts, (parts, y, splits, tm, tn)


def reference(x, w):
    return x @ w.T
