"""Blocks that compute the tiles of several neighbours: the numbers of larger tiles, and only what the grid asks for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import Backends
from one_product import check, check_bits, integers

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
    check(backends, {"coarsen_tiles": blocks}, shape, tiles)


def test_is_the_larger_tile(backends: Backends) -> None:
    four, whole = ({"coarsen_tiles": n, "slice_tiles": 1} for n in (4, 1))
    check_bits(backends, (four, (64, 64, 64)), (whole, (128, 128, 64)))


def test_two_sums(backends: Backends) -> None:
    a, b, d = integers(1, 2, 72, 96), integers(2, 96, 72), integers(3, 96, 72)
    kernel = gated.replace_hints(coarsen_tiles=4)
    y = backends.run_all(kernel, (3, 3, 2), lambda: [a, b, d, np.zeros((2, 72, 72), "f4"), 32, 32, 32])[3]
    assert np.array_equal(y, (a.astype("f4") @ b) * np.maximum(a.astype("f4") @ d, 0))
