"""Blocks that compute the tiles of several neighbours: the numbers of larger tiles, and only what the grid asks for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import Backends, run
from test_cut_blocks import integers, product

from tilewright import tile as ct

ZERO = ct.PaddingMode.ZERO


@ct.kernel
def gated(A, B, D, Y, TM: ct.Constant[int], TN: ct.Constant[int], TK: ct.Constant[int]):
    """Two sums that are stored as one, of one matrix of several."""
    h, i, j = ct.bid(2), ct.bid(0), ct.bid(1)
    x, y = ct.zeros((TM, TN), dtype=ct.float32), ct.zeros((TM, TN), dtype=ct.float32)
    for k in range(ct.num_tiles(A, axis=2, shape=(1, TM, TK))):
        a = ct.reshape(ct.load(A, index=(h, i, k), shape=(1, TM, TK), padding_mode=ZERO), (TM, TK))
        x = ct.mma(a, ct.load(B, index=(k, j), shape=(TK, TN), padding_mode=ZERO), x)
        y = ct.mma(a, ct.load(D, index=(k, j), shape=(TK, TN), padding_mode=ZERO), y)
    ct.store(Y, index=(h, i, j), tile=ct.reshape(x * ct.maximum(y, 0), (1, TM, TN)).astype(Y.dtype))


@pytest.mark.parametrize(
    ("shape", "tiles", "blocks"),
    [((256, 256, 128), (64, 64, 64), 4), ((200, 136, 104), (32, 32, 32), 16), ((8, 72, 64), (16, 16, 32), 8)],
)
def test_product(backends: Backends, shape: Any, tiles: Any, blocks: int) -> None:
    m, n, k = shape
    a, b, bias = integers(1, m, k), integers(2, k, n), integers(3, n)
    grid = (-(-m // tiles[0]), -(-n // tiles[1]))
    kernel = product.replace_hints(fuse_tiles=blocks)
    c = backends.run_all(kernel, grid, lambda: [a, b, bias, np.full((m, n), 7, np.float32), *tiles])[3]
    assert np.array_equal(c, a.astype("f4") @ b.astype("f4") + bias)


def test_is_the_larger_tile(backends: Backends) -> None:
    random = np.random.default_rng(5)
    m, n, k = 136, 200, 192
    a, b, bias = (random.standard_normal(s).astype(np.float16) for s in ((m, k), (k, n), (n,)))
    for name in backends.names:
        results = []
        for blocks, tiles in ((4, (64, 64, 64)), (1, (128, 128, 64))):
            c = np.zeros((m, n), "f4")
            grid = (-(-m // tiles[0]), -(-n // tiles[1]))
            run(name, product.replace_hints(fuse_tiles=blocks, cut_tiles=1), grid, [a, b, bias, c, *tiles])
            results.append(c)
        assert np.array_equal(*results)


def test_two_sums(backends: Backends) -> None:
    a, b, d = integers(1, 2, 72, 96), integers(2, 96, 72), integers(3, 96, 72)
    kernel = gated.replace_hints(fuse_tiles=4)
    y = backends.run_all(kernel, (3, 3, 2), lambda: [a, b, d, np.zeros((2, 72, 72), "f4"), 32, 32, 32])[3]
    assert np.array_equal(y, (a.astype("f4") @ b) * np.maximum(a.astype("f4") @ d, 0))
