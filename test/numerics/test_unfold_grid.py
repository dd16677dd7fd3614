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


@pytest.mark.parametrize(
    ("kernel", "batches", "grid"),
    [(in_groups, 2, (15, 2)), (in_rows, 2, (15, 2)), (in_turn, 2, 4), (groups_in_turn, 1, (4, 1, 2))],
)
def test_every_tile_is_computed_once(backends: Backends, kernel: Any, batches: int, grid: Any) -> None:
    a, b = integers(1, batches, 5 * T - 8, 72), integers(2, 72, 3 * T - 24)
    c = backends.run_all(kernel, grid, lambda: [a, b, np.full((len(a), len(a[0]), len(b[0])), math.pi, "f4")])[2]
    assert np.array_equal(c, a.astype("f4") @ b.astype("f4"))
