"""Loops over the steps of all tiles of a block, and over as many tiles as it has, as persistent programs have them."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Backends

from tilewright import tile as ct

ZERO = ct.PaddingMode.ZERO
BEGIN, END, REST, OTHER_START, TILES = range(5)


@ct.function
def product(A, B, i, k, j, T, acc):
    a = ct.load(A, (i, k), (T, 32), padding_mode=ZERO)
    return ct.mma(a, ct.load(B, (k, j), (32, T), padding_mode=ZERO), acc)


@ct.kernel
def flat(A, B, C, T: ct.Constant[int], FORM: ct.Constant[int]):
    rows, columns, steps = ct.cdiv(A.shape[0], T), ct.cdiv(B.shape[1], T), ct.cdiv(A.shape[1], 32)
    blocks, tile, i, j = ct.num_blocks(0), ct.bid(0), 0, 0
    mine = ct.cdiv(rows * columns - tile, blocks)
    acc = ct.zeros((T, T), ct.float32)
    if FORM == BEGIN:
        k = -1
        tile -= blocks
        for _ in range(steps * mine):
            k = ct.where(k == steps - 1, 0, k + 1)
            if k == 0:
                tile += blocks
                i, j = tile % rows, tile // rows
            acc = product(A, B, i, k, j, T, acc)
            if k == steps - 1:
                ct.store(C, (i, j), acc.astype(C.dtype))
                acc = ct.zeros((T, T), ct.float32)
    elif FORM == END:
        k = 0
        i, j = tile % rows, tile // rows
        for _ in range(mine * steps):
            if k == 0:
                i, j = tile % rows, tile // rows
                tile += blocks
            acc = product(A, B, i, k, j, T, acc)
            if k == steps - 1:
                ct.store(C, (i, j), acc.astype(C.dtype))
                acc = ct.zeros((T, T), ct.float32)
            k = ct.where(k == steps - 1, 0, k + 1)
    elif FORM in (REST, OTHER_START):
        for s in range(steps * mine):
            k = s % steps
            t = tile + s // steps * blocks
            acc = product(A, B, t % rows, k, t // rows, T, acc)
            if k == steps - 1:
                ct.store(C, (t % rows, t // rows), (acc + k).astype(C.dtype))
                acc = ct.full((T, T), FORM == OTHER_START, ct.float32)
    else:
        for m in range(mine):
            t = tile + m * blocks
            acc = ct.zeros((T, T), ct.float32)
            for k in range(steps):
                acc = product(A, B, t % rows, k, t // rows, T, acc)
            ct.store(C, (t % rows, t // rows), acc.astype(C.dtype))


@pytest.mark.parametrize("form", range(5))
@pytest.mark.parametrize("k", [0, 20, 32, 100])
@pytest.mark.parametrize(("blocks", "tile"), [(1, 64), (3, 64), (20, 64), (2, 128)])
def test_tiles_and_steps_in_one_loop(backends: Backends, form: int, k: int, blocks: int, tile: int) -> None:
    random = np.random.default_rng(1)
    m, n = 2 * tile + 24, 3 * tile - 8
    a, b = (random.integers(-2, 3, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    c = backends.run_all(flat, blocks, lambda: [a, b, np.full((m, n), 7, np.float16), tile, form])[2]
    wanted = a.astype("f4") @ b.astype("f4")
    if form in (REST, OTHER_START) and k > 0:
        tiles = np.arange(m)[:, None] // tile + np.arange(n) // tile * -(-m // tile)
        wanted += -(-k // 32) - 1 + (tiles >= blocks) * (form == OTHER_START)
    if k == 0 and form != TILES:
        wanted = np.full((m, n), 7)
    assert np.array_equal(c, wanted)
