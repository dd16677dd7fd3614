"""c = a + b for vectors of any length: one block adds one tile.

python python/examples/vector_add.py
"""

import numpy as np

from tilewright import tile as ct


@ct.kernel
def vector_add(A, B, C, T: ct.Constant[int]):
    i = ct.bid(0)
    a = ct.load(A, index=(i,), shape=(T,))
    b = ct.load(B, index=(i,), shape=(T,))
    ct.store(C, index=(i,), tile=a + b)


def run(a, b, c, stream=None, tile=1024):
    """Launch on the device that the arrays live on: NumPy arrays on the CPU, torch or CuPy arrays on their GPU."""
    ct.launch(stream, (ct.cdiv(a.shape[0], tile),), vector_add, (a, b, c, tile))


if __name__ == "__main__":
    random = np.random.default_rng(0)
    a, b = random.random((2, 1_000_003), dtype=np.float32)
    c = np.empty_like(a)
    run(a, b, c)
    print("largest error:", np.abs(c - (a + b)).max())
