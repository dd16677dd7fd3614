"""Products in tf32 whose operands are rounded as they are loaded: by the copy engine, or by threads."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Backends, Tolerance

from tilewright import tile as ct

ZERO = ct.PaddingMode.ZERO
SIDE = 128


@ct.kernel
def matmul(A, B, C, TM: ct.Constant, TN: ct.Constant, TK: ct.Constant):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((TM, TN), ct.float32)
    for k in range(ct.num_tiles(A, axis=1, shape=(TM, TK))):
        a = ct.load(A, (i, k), (TM, TK), padding_mode=ZERO).astype(ct.tfloat32)
        b = ct.load(B, (k, j), (TK, TN), padding_mode=ZERO).astype(ct.tfloat32)
        acc = ct.mma(a, b, acc)
    ct.store(C, (i, j), acc)


def near_ties() -> np.ndarray:
    """float32 of every exponent whose last 13 bits are a tie, or nearly."""
    exponents = np.arange(1, 255, dtype=np.uint32)[:, None, None] << 23
    kept = np.array([0, 1, 1022, 1023], np.uint32)[:, None] << 13
    dropped = np.array([0, 1, 0xFFF, 0x1000, 0x1001, 0x1FFF], np.uint32)
    x = (exponents | kept | dropped).reshape(-1).view(np.float32)
    signs = np.where(np.arange(x.size) % 3 == 1, -1, 1).astype(np.float32)
    return (x[x < 2.0**127] * signs[: (x < 2.0**127).sum()])[: x.size // 8 * 8]


def rounded(x: np.ndarray) -> np.ndarray:
    bits = x.view(np.uint32).astype(np.uint64)
    return ((bits + 0xFFF + (bits >> 13 & 1)) & 0xFFFFE000).astype(np.uint32).view(np.float32)


def arranged(x: np.ndarray, order: str) -> np.ndarray:
    return x.copy() if order == "row" else np.ascontiguousarray(x.T).T


@pytest.mark.parametrize("tiles", [(64, 64, 32), (128, 128, 32), (256, 128, 32)], ids=str)
@pytest.mark.parametrize("order", ["row", "column"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_ties_round_to_even(backends: Backends, side: str, order: str, tiles: tuple[int, int, int]) -> None:
    """One operand has ones on its diagonal, so that the product is the other one, rounded once."""
    x = near_ties()
    x = np.resize(x, (-(-x.size // SIDE), SIDE))
    x = x if side == "left" else np.ascontiguousarray(x.T)
    one, want = np.eye(SIDE, dtype=np.float32), rounded(x)
    grid = (-(-x.shape[0] // tiles[0]), -(-x.shape[1] // tiles[1]))

    def arguments() -> list[object]:
        a, b = (x, one) if side == "left" else (one, x)
        return [arranged(a, order), arranged(b, order), np.zeros_like(x), *tiles]

    assert np.array_equal(backends.run_all(matmul, grid, arguments)[2], want)


@pytest.mark.parametrize("extents", [(140, 268, 100), (140, 267, 100), (139, 268, 99), (141, 265, 97)], ids=str)
@pytest.mark.parametrize("orders", ["row row", "row column", "column row", "column column"])
@pytest.mark.parametrize("tiles", [(128, 128, 32), (128, 256, 32), (256, 128, 32), (128, 128, 64)], ids=str)
def test_ragged(backends: Backends, tiles: tuple[int, int, int], orders: str, extents: tuple[int, int, int]) -> None:
    """Extents that no tile divides; rows that begin at 16 bytes, and of one operand or both such that do not."""
    draws, (m, n, k), how = np.random.default_rng(7), extents, orders.split()
    a, b = (draws.standard_normal(shape).astype(np.float32) for shape in ((m, k), (k, n)))
    args = backends.run_all(
        matmul,
        (-(-m // tiles[0]), -(-n // tiles[1])),
        lambda: [arranged(a, how[0]), arranged(b, how[1]), np.zeros((m, n), np.float32), *tiles],
        tolerance=Tolerance(absolute=1e-4),
    )
    want = rounded(a).astype(np.float64) @ rounded(b).astype(np.float64)
    assert np.abs(args[2] - want).max() < 1e-4
