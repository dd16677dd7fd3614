"""Tiles that a program counts in one number, in rows or in groups of rows, with a block each or in turn."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from harness import Backends
from one_product import integers

from tilewright import tile as ct

ZERO = ct.PaddingMode.ZERO
T = 64


def product(A, B, C, h, i, j):
    acc = ct.zeros((T, T), ct.float32)
    for k in range(ct.cdiv(A.shape[2], T)):
        a = ct.load(A, (h, i, k), (1, T, T), padding_mode=ZERO).reshape((T, T))
        acc = ct.mma(a, ct.load(B, (k, j), (T, T), padding_mode=ZERO), acc)
    ct.store(C, (h, i, j), acc.reshape((1, T, T)))


def grouped(rows, columns, t):
    group = t // (2 * columns)
    height = min(rows - group * 2, 2)
    return group * 2 + t % height, t % (2 * columns) // height


@ct.kernel
def in_groups(A, B, C):
    i, j = grouped(ct.cdiv(A.shape[1], T), ct.cdiv(B.shape[1], T), ct.bid(0))
    product(A, B, C, ct.bid(1), i, j)


@ct.kernel
def in_rows(A, B, C):
    t, columns = ct.bid(0), ct.cdiv(C.shape[2], T)
    product(A, B, C, ct.bid(1), t // columns, t % columns)


@ct.kernel
def in_turn(A, B, C):
    rows, columns = ct.cdiv(A.shape[1], T), ct.cdiv(B.shape[1], T)
    for t in range(ct.bid(0), rows * columns * 2, ct.num_blocks(0)):
        h, within = t // (rows * columns), t % (rows * columns)
        product(A, B, C, h, within // columns, within % columns)


@ct.kernel
def groups_in_turn(A, B, C):
    rows, columns = ct.cdiv(A.shape[1], T), ct.cdiv(B.shape[1], T)
    for t in range(ct.bid(0), rows * columns, ct.num_blocks(0)):
        i, j = grouped(rows, columns, t)
        product(A, B, C, 0, i, j)


@ct.kernel
def batches_of_groups(A, B, C, batches, ROWS: ct.Constant[int], COLUMNS: ct.Constant[int], GROUP: ct.Constant[int]):
    for t in range(ct.bid(0), ROWS * COLUMNS * batches, ct.num_blocks(0)):
        h, within = t // (ROWS * COLUMNS), t % (ROWS * COLUMNS)
        group = within // (GROUP * COLUMNS)
        height = ct.minimum(ROWS - group * GROUP, GROUP)
        i, j = group * GROUP + within % height, within % (GROUP * COLUMNS) // height
        acc = ct.zeros((T, T), ct.float32)
        for k in range(ct.cdiv(A.shape[2], T)):
            a = ct.load(A, (h, i, k), (1, T, T), padding_mode=ZERO).reshape((T, T))
            b = ct.permute(ct.load(B, (h, j, k), (1, T, T), padding_mode=ZERO), (0, 2, 1)).reshape((T, T))
            acc = ct.mma(a, b, acc)
        ct.store(C, (h, i, j), acc.reshape((1, T, T)))


@pytest.mark.parametrize(
    ("kernel", "batches", "grid"),
    [(in_groups, 2, (15, 2)), (in_rows, 2, (15, 2)), (in_turn, 2, 4), (groups_in_turn, 1, (4, 1, 2))],
)
def test_every_tile_is_computed_once(backends: Backends, kernel: Any, batches: int, grid: Any) -> None:
    a, b = integers(1, batches, 5 * T - 8, 72), integers(2, 72, 3 * T - 24)
    c = backends.run_all(kernel, grid, lambda: [a, b, np.full((len(a), len(a[0]), len(b[0])), math.pi, "f4")])[2]
    assert np.array_equal(c, a.astype("f4") @ b.astype("f4"))


@pytest.mark.parametrize("group", [2, 4, 8], ids="groups of {}".format)
@pytest.mark.parametrize("blocks", [1, 4, 64], ids="{} blocks".format)
def test_batches_that_a_program_walks(backends: Backends, group: int, blocks: int) -> None:
    """Which product of a batch, and the row and column in it, in one number; an operand is transposed as a batch."""
    a, b = integers(1, 3, 5 * T - 8, 72), integers(2, 3, 3 * T - 24, 72)
    c = np.full((3, len(a[0]), len(b[0])), math.pi, "f4")
    c = backends.run_all(batches_of_groups, blocks, lambda: [a, b, c.copy(), 3, 5, 3, group])[2]
    assert np.array_equal(c, a.astype("f4") @ b.astype("f4").swapaxes(1, 2))


@pytest.mark.parametrize("group", [2, 8], ids="groups of {}".format)
def test_batches_have_the_plan_of_a_product(group: int) -> None:
    """The loop is ours, and both operands are read where the engine brings them."""
    a, b = integers(1, 3, 320, 128), integers(2, 3, 192, 128)
    key = batches_of_groups.specialization((a, b, np.zeros((3, 320, 192), "f4"), 3, 5, 3, group))[1]
    module = batches_of_groups.capture("sm_90a", key)
    told = "".join(message for stage in ("legal", "layout", "pipelined") for *_, message in module.lower(stage))
    assert "counts its tiles in one number" in told and "loops over the tiles of the grid" in told
    assert "wgmma" in told and "its left operand in registers" not in told
