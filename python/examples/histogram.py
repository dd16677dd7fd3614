"""A histogram: a tile of values at a time, counted by the block's threads in shared memory.

python python/examples/histogram.py

Tiles alone add each element to global memory (`by_tiles`), or compare all values with all bins. `count` is code of
threads, which a tile kernel runs between loading a tile and adding the block's sums: only these go to global memory.
"""

import numpy as np

from cuda import device
from tilewright import tile as ct

BINS = 256


@device.func
def count(bins, values):
    """Each thread counts every so many-th value."""
    for i in range(device.int32(device.thread_idx.x), values.size, device.int32(device.block_dim.x)):
        device.atomic_ref(bins, values[i]).add(1, "relaxed", "block")


@ct.kernel
def histogram(values, bins, T: ct.Constant[int], TIMES: ct.Constant[int]):
    own = ct.zeros((BINS,), dtype=ct.int32)
    for k in range(TIMES):
        tile = ct.load(values, index=(ct.bid(0) * TIMES + k,), shape=(T,))
        own, _ = ct.threads(count, own, tile)
    ct.atomic_add(bins, ct.arange(BINS, dtype=ct.int32), own, memory_order=ct.MemoryOrder.RELAXED)


@ct.kernel
def by_tiles(values, bins, T: ct.Constant[int], TIMES: ct.Constant[int]):
    for k in range(TIMES):
        tile = ct.load(values, index=(ct.bid(0) * TIMES + k,), shape=(T,))
        ct.atomic_add(bins, tile.astype(ct.int32), 1, memory_order=ct.MemoryOrder.RELAXED)


def run(values, bins, kernel=histogram, tile=4096, times=8, stream=None):
    """Adds to the bins; of a multiple of tile * times values."""
    ct.launch(stream, values.shape[0] // (tile * times), kernel, (values, bins, tile, times))


if __name__ == "__main__":
    values = np.random.default_rng(0).integers(0, BINS, 1 << 22).astype(np.uint8)
    bins, other = np.zeros(BINS, np.int32), np.zeros(BINS, np.int32)
    run(values, bins)
    run(values, other, by_tiles)
    expected = np.bincount(values, minlength=BINS)
    print(f"{np.count_nonzero(bins != expected)} and {np.count_nonzero(other != expected)} of {BINS} bins are wrong")
