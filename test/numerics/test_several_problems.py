"""Blocks that take tiles of several products in turn: loops that follow one another share stages and buffers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import Backends, run
from one_product import integers

from tilewright import tile as ct

ZERO = ct.PaddingMode.ZERO


@ct.kernel
def products(As, Bs, Cs, TM: ct.Constant, TN: ct.Constant, TK: ct.Constant, BLOCKS: ct.Constant, TURNED: ct.Constant):
    """Tile numbers go on from one product to the next."""
    tile = ct.bid(0)
    end = 0
    for g in range(len(As)):
        a, b, c = As[g], Bs[g], Cs[g]
        columns = ct.num_tiles(b, 0, (TN, TK)) if TURNED else ct.num_tiles(b, 1, (TK, TN))
        tiles = ct.num_tiles(a, 0, (TM, TK)) * columns
        while tile >= end and tile < end + tiles:
            i, j = (tile - end) // columns, (tile - end) % columns
            acc = ct.zeros((TM, TN), dtype=ct.float32)
            for k in range(ct.num_tiles(a, 1, (TM, TK))):
                x = ct.load(a, (i, k), shape=(TM, TK), padding_mode=ZERO)
                if TURNED:
                    y = ct.transpose(ct.load(b, (j, k), shape=(TN, TK), padding_mode=ZERO))
                else:
                    y = ct.load(b, (k, j), shape=(TK, TN), padding_mode=ZERO)
                acc = ct.mma(x, y, acc)
            ct.store(c, (i, j), tile=acc.astype(c.dtype))
            tile += BLOCKS
        end = end + tiles


SHAPES = [(200, 136, 104), (64, 264, 200), (8, 8, 8), (136, 72, 64), (72, 200, 0)]


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("blocks", [2, 9])
def test_products(backends: Backends, blocks: int, turned: bool) -> None:
    a = [integers(i, m, k) for i, (m, n, k) in enumerate(SHAPES)]
    b = [integers(9 + i, *((n, k) if turned else (k, n))) for i, (m, n, k) in enumerate(SHAPES)]
    for name in backends.names:
        c: list[Any] = [np.full((m, n), 7, a[0].dtype) for m, n, _ in SHAPES]
        run(name, products, blocks, (a, b, c, 64, 64, 64, blocks, turned))
        if name.startswith("sm_"):
            continue
        for x, y, z in zip(a, b, c, strict=True):
            want = x.astype("f4") @ (y.astype("f4").T if turned else y.astype("f4"))
            assert np.array_equal(z.astype("f4"), want.astype(z.dtype).astype("f4")), name
