"""Softmax of each row: one block has one whole row in one tile, padded to the next power of two.

python python/examples/softmax.py
"""

import numpy as np

from tilewright import tile as ct


@ct.kernel
def softmax(X, Y, TN: ct.Constant[int]):
    row = ct.bid(0)
    x = ct.load(X, index=(row, 0), shape=(1, TN), padding_mode=ct.PaddingMode.NEG_INF).astype(ct.float32)
    e = ct.exp(x - ct.max(x, axis=1, keepdims=True))
    y = e / ct.sum(e, axis=1, keepdims=True)
    ct.store(Y, index=(row, 0), tile=y.astype(Y.dtype))


def run(x, y, stream=None):
    rows, columns = x.shape
    ct.launch(stream, (rows,), softmax, (x, y, 1 << (columns - 1).bit_length()))


def reference(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


if __name__ == "__main__":
    x = np.random.default_rng(0).standard_normal((500, 1000), dtype=np.float32)
    y = np.empty_like(x)
    run(x, y)
    print("largest error:", np.abs(y - reference(x)).max())
