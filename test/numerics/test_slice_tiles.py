"""Tiles that several blocks compute, a slice each: the numbers of smaller tiles, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import Backends, Tolerance
from one_product import check, check_bits, integers

from tilewright import tile as ct

ZERO = ct.PaddingMode.ZERO


@ct.kernel
def rows_first(A, B, C, TM: ct.Constant[int], TN: ct.Constant[int], TK: ct.Constant[int]):
    """One axis for all tiles; the columns in the other order, and stored across."""
    columns = ct.cdiv(C.shape[0], TN)
    i, j = ct.bid(0) // columns, ct.bid(0) % columns
    acc = ct.zeros((TM, TN), dtype=ct.float32)
    for k in range(ct.num_tiles(A, axis=1, shape=(TM, TK))):
        a = ct.load(A, index=(i, k), shape=(TM, TK), padding_mode=ZERO)
        acc = ct.mma(a, ct.load(B, index=(k, j), shape=(TK, TN), padding_mode=ZERO), acc)
    ct.store(C, index=(j, i), tile=ct.permute(acc, (1, 0)).astype(C.dtype))


@ct.kernel
def softmax(X, Y, TM: ct.Constant[int], TN: ct.Constant[int]):
    """Rows are apart, what is in one is not."""
    i = ct.bid(0)
    x = ct.load(X, index=(i, 0), shape=(TM, TN), padding_mode=ct.PaddingMode.NEG_INF)
    e = ct.exp(x - ct.max(x, axis=1, keepdims=True))
    ct.store(Y, index=(i, 0), tile=e / ct.sum(e, axis=1, keepdims=True))


@ct.kernel
def places(Y, T: ct.Constant[int]):
    """What a program asks for is that of its own grid."""
    i, j = ct.bid(0), ct.bid(1)
    at = i * T + ct.arange(T, dtype=ct.int32)
    value = at * 100 + ct.num_blocks(0) * 10 + j + ct.num_blocks(1)
    ct.scatter(Y, (at, ct.full((T,), j, dtype=ct.int32)), value)


@ct.kernel
def heads(X, Y, H: ct.Constant[int], T: ct.Constant[int]):
    """A reshape keeps the outermost dimension apart."""
    i = ct.bid(0)
    x = ct.load(X, index=(i, 0, 0), shape=(H, T, T), padding_mode=ZERO)
    flat = ct.reshape(x, (H * T, T))
    twice = ct.mma(flat, ct.load(Y, index=(0, 0, 0), shape=(1, T, T), padding_mode=ZERO).reshape((T, T)), flat * 2)
    ct.store(X, index=(i, 0, 0), tile=ct.reshape(twice, (H, T, T)))


@ct.kernel
def gated(X, Y, Z, TN: ct.Constant[int]):
    """More elements than threads compute well: blocks take parts of the row, without a hint."""
    i, columns = ct.bid(0), ct.arange(TN, dtype=ct.int32)
    x = ct.gather(X, (i, columns), padding_value=0).astype(ct.float32)
    y = ct.gather(Y, (i, columns), padding_value=0).astype(ct.float32)
    ct.scatter(Z, (i, columns), (x / (1 + ct.exp(-x)) * y).astype(Z.dtype))


@ct.kernel
def standardized(X, W, Y, ROWS: ct.Constant[int], TN: ct.Constant[int]):
    """A persistent loop over rows, each block in its part of a tile of them."""
    w = ct.load(W, index=(0,), shape=(TN,), padding_mode=ZERO).astype(ct.float32)
    for i in range(ct.bid(0), ct.cdiv(X.shape[0], ROWS), ct.num_blocks(0)):
        x = ct.load(X, index=(i, 0), shape=(ROWS, TN), padding_mode=ZERO).astype(ct.float32)
        mean = ct.sum(x, axis=1, keepdims=True) / TN
        y = (x - mean) * ct.rsqrt(ct.sum(x * x, axis=1, keepdims=True) / TN - mean * mean + 1e-5)
        ct.store(Y, index=(i, 0), tile=(y * w[None, :]).astype(Y.dtype))


@pytest.mark.parametrize("in_place", [False, True])
def test_many_elements(backends: Backends, in_place: bool) -> None:
    x, y = np.random.default_rng(1).standard_normal((2, 3, 11008)).astype("f4")

    def arguments() -> list[Any]:
        first = x.copy()
        return [first, y, first if in_place else np.zeros_like(x), 16384]

    z = backends.run_all(gated, 3, arguments, tolerance={0: Tolerance(ulp=16), 2: Tolerance(ulp=16)})[2]
    np.testing.assert_allclose(z, x / (1 + np.exp(-x)) * y, rtol=1e-5, atol=1e-6)


def test_rows_of_many_elements(backends: Backends) -> None:
    x, w = np.random.default_rng(1).standard_normal((21, 2048)).astype("f4"), np.linspace(-1, 1, 2048).astype("f4")
    y = backends.run_all(
        standardized, 2, lambda: [x, w, np.zeros_like(x), 8, 2048], tolerance={2: Tolerance(absolute=1e-4)}
    )[2]
    want = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * w
    np.testing.assert_allclose(y, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("shape", "tiles", "parts"),
    [
        ((200, 136, 104), (128, 128, 64), 4),
        ((200, 136, 104), (32, 64, 32), 2),
        ((72, 264, 64), (128, 256, 64), 8),
        ((72, 264, 0), (64, 128, 64), 2),
        ((1, 8, 64), (128, 128, 64), 4),
    ],
)
def test_product(backends: Backends, shape: Any, tiles: Any, parts: int) -> None:
    check(backends, {"slice_tiles": parts}, shape, tiles)


def test_is_the_smaller_tile(backends: Backends) -> None:
    """The sums are those of the program with that tile."""
    check_bits(backends, ({"slice_tiles": 4}, (128, 128, 64)), ({"slice_tiles": 1}, (64, 64, 64)))


@pytest.mark.parametrize("parts", [2, 4])
def test_one_axis(backends: Backends, parts: int) -> None:
    a, b = integers(1, 200, 96), integers(2, 96, 136)
    kernel = rows_first.replace_hints(slice_tiles=parts)
    c = backends.run_all(kernel, 2 * 2, lambda: [a, b, np.zeros((136, 200), "f4"), 128, 128, 32])[2]
    assert np.array_equal(c, (a.astype("f4") @ b.astype("f4")).T)


@pytest.mark.parametrize("parts", [4, 16])
def test_rows(backends: Backends, parts: int) -> None:
    x = np.random.default_rng(1).standard_normal((21, 200)).astype("f4")
    kernel, close = softmax.replace_hints(slice_tiles=parts), {1: Tolerance(ulp=16)}
    y = backends.run_all(kernel, 3, lambda: [x, np.zeros_like(x), 8, 256], tolerance=close)[1]
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("parts", [2, 4])
def test_positions(backends: Backends, parts: int) -> None:
    y = backends.run_all(places.replace_hints(slice_tiles=parts), (2, 3), lambda: [np.zeros((16, 3), "i4"), 8])[0]
    assert np.array_equal(y, np.arange(16)[:, None] * 100 + 20 + np.arange(3) + 3)


@pytest.mark.parametrize("parts", [2, 4])
def test_reshape(backends: Backends, parts: int) -> None:
    x, w = integers(1, 7, 32, 32, dtype="f4"), integers(2, 1, 32, 32, dtype="f4")
    y = backends.run_all(heads.replace_hints(slice_tiles=parts), 2, lambda: [x.copy(), w, 4, 32])[0]
    assert np.array_equal(y, x @ w[0] + 2 * x)
