"""Rows that the blocks of a cluster share: reductions go across the cluster."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from harness import Backends, ulp

from tilewright import _core, compile
from tilewright import tile as ct

BF16 = ml_dtypes.bfloat16
ZERO, LEAST = ct.PaddingMode.ZERO, ct.PaddingMode.NEG_INF


@ct.kernel
def normalized(X, W, Y, MEAN, N: ct.Constant[int], R: ct.Constant[int], T: ct.Constant[int]):
    """Rows less a whole number near their mean, their numbers where they end, times weights; and that number."""
    i, j = ct.bid(1), ct.bid(0)
    row = i * ct.num_blocks(0) + j
    x = ct.load(X, index=(row, 0), shape=(R, T), padding_mode=ZERO).astype(ct.float32)
    w = ct.load(W, index=(0,), shape=(T,), padding_mode=ZERO).astype(ct.float32)
    mean = ct.floor(ct.sum(x, axis=1, keepdims=True) / N)
    x = ct.where(ct.arange(T, dtype=ct.int32)[None, :] < N, x - mean, 0.0)
    most = ct.max(ct.abs(x), axis=1, keepdims=True)
    ct.store(Y, index=(row, 0), tile=(x * w + most).astype(Y.dtype))
    ct.store(MEAN, index=(row,), tile=mean.reshape((R,)))


@ct.kernel
def softmax(X, Y, T: ct.Constant[int]):
    row = ct.bid(0)
    x = ct.load(X, index=(row, 0), shape=(1, T), padding_mode=LEAST).astype(ct.float32)
    e = ct.exp(x - ct.max(x, axis=1, keepdims=True))
    ct.store(Y, index=(row, 0), tile=(e / ct.sum(e, axis=1, keepdims=True)).astype(Y.dtype))


@ct.kernel
def shares(X, Y, R: ct.Constant[int], T: ct.Constant[int]):
    """One reduction only, of several rows."""
    x = ct.load(X, index=(ct.bid(0), 0), shape=(R, T), padding_mode=ZERO)
    ct.store(Y, index=(ct.bid(0), 0), tile=x - ct.sum(x, axis=1, keepdims=True))


@ct.kernel
def cross_entropy(X, TARGET, LOSS, T: ct.Constant[int]):
    row = ct.bid(0)
    x = ct.load(X, index=(row, 0), shape=(1, T), padding_mode=LEAST).astype(ct.float32)
    most = ct.max(x, axis=1)
    total = ct.sum(ct.exp(x - most[:, None]), axis=1)
    hit = ct.gather(X, (row, ct.load(TARGET, index=(row,), shape=(1,)))).astype(ct.float32)
    ct.store(LOSS, index=(row,), tile=ct.log(total) + most - hit)


@ct.kernel
def integers(X, LOW, BITS, T: ct.Constant[int]):
    """Numbers without a float, down columns: the row that is shared is the first axis."""
    column = ct.bid(0)
    x = ct.load(X, index=(0, column), shape=(T, 2), padding_mode=ZERO)
    low = ct.min(x, axis=0, keepdims=True)
    ct.store(BITS, index=(0, column), tile=ct.sum(x - low, axis=0, keepdims=True))
    ct.store(LOW, index=(0, column), tile=low)


@ct.kernel
def in_chunks(X, Y, n: int, T: ct.Constant[int]):
    """Elements of a row less its sum, with one for each, and less the greatest of these: three walks with masks."""
    row, offsets = ct.bid(0), ct.arange(T, dtype=ct.int32)
    total, most = ct.zeros((T,), ct.float32), ct.full((T,), -1e30, ct.float32)
    for j in range(ct.cdiv(n, T)):
        columns = j * T + offsets
        x = ct.gather(X, (row, columns), mask=columns < n, padding_value=0).astype(ct.float32)
        total = total + ct.where(columns < n, x + 1, 0.0)
    whole = ct.sum(total)
    for j in range(ct.cdiv(n, T)):
        columns = j * T + offsets
        x = ct.gather(X, (row, columns), mask=columns < n, padding_value=0).astype(ct.float32)
        most = ct.maximum(most, x - whole)
    greatest = ct.max(most)
    for j in range(ct.cdiv(n, T)):
        columns = j * T + offsets
        x = ct.gather(X, (row, columns), mask=columns < n, padding_value=0).astype(ct.float32)
        ct.scatter(Y, (row, columns), x - whole - greatest, mask=columns < n)


@ct.kernel
def channels_in_chunks(X, Y, channels: ct.Constant[int], T: ct.Constant[int]):
    """Channels of a group less their sum: walks in walks."""
    group = ct.bid(0)
    total = ct.zeros((T,), ct.float32)
    for c in range(channels):
        for j in range(ct.num_tiles(X, axis=1, shape=(1, T))):
            x = ct.load(X, (group * channels + c, j), (1, T), padding_mode=ZERO).reshape((T,))
            total = total + x.astype(ct.float32)
    whole = ct.sum(total)
    for c in range(channels):
        for j in range(ct.num_tiles(X, axis=1, shape=(1, T))):
            x = ct.load(X, (group * channels + c, j), (1, T), padding_mode=ZERO)
            ct.store(Y, (group * channels + c, j), (x.astype(ct.float32) - whole).astype(Y.dtype))


def whole_numbers(dtype: Any, *shape: int) -> np.ndarray:
    return np.random.default_rng(shape[-1]).integers(-3, 5, shape).astype(dtype)


def blocks_of(kernel: Any, arguments: tuple[Any, ...], **hints: int) -> int:
    """Of a cluster."""
    kernel = kernel.replace_hints(**hints) if hints else kernel
    captured = compile.capture_kernel(kernel, "sm_90a", kernel.specialization(arguments)[1])
    captured.module.lower("pipelined")
    return _core.launch_facts(compile.record_of(captured.module))["cluster_blocks"]


@pytest.mark.parametrize(
    "dtype, rows, columns, tile, blocks",
    [
        (BF16, 1, 65536, 65536, 2),
        (BF16, 1, 50001, 65536, 2),
        (np.float32, 1, 40001, 65536, 4),
        (np.float32, 1, 16385, 32768, 2),
        (BF16, 2, 33000, 65536, 4),
        (BF16, 4, 20000, 32768, 4),
        (np.float32, 1, 131072, 131072, 8),
        (BF16, 1, 300001, 524288, 8),  # slices that are walked along, and kept in part
        (np.float64, 1, 20000, 32768, 4),
    ],
)
def test_norm(backends: Backends, dtype: Any, rows: int, columns: int, tile: int, blocks: int) -> None:
    """In a grid of 2x2 blocks; all numbers are whole, and all sums exact."""
    x, w = whole_numbers(dtype, 4 * rows, columns), whole_numbers(dtype, columns)

    def fresh() -> list[Any]:
        return [x, w, np.zeros(x.shape, np.float32), np.zeros(len(x), np.float32), columns, rows, tile]

    assert blocks_of(normalized, tuple(fresh())) == blocks
    backends.run_all(normalized, (2, 2), fresh)


@pytest.mark.parametrize("columns, blocks", [(65536, 2), (50001, 2), (66000, 4)])
def test_softmax(backends: Backends, columns: int, blocks: int) -> None:
    """A row with a NaN, one with an infinity, one all of which but an end lies far below, and one of equals."""
    x = np.random.default_rng(0).standard_normal((5, columns)).astype(BF16)
    x[0, columns - 1] = np.nan
    x[1, 3] = np.inf
    x[2, : columns - 5] = -1e30
    x[3] = 7

    def fresh() -> list[Any]:
        return [x, np.zeros_like(x), 1 << (columns - 1).bit_length()]

    assert blocks_of(softmax, tuple(fresh())) == blocks
    with np.errstate(all="ignore"):
        backends.run_all(softmax, (5,), fresh, tolerance=ulp(2, 1e-9))


def test_one_reduction_of_several_rows(backends: Backends) -> None:
    x = whole_numbers(np.float32, 8, 33000)

    def fresh() -> list[Any]:
        return [x, np.zeros_like(x), 4, 65536]

    assert blocks_of(shares, tuple(fresh())) == 8
    backends.run_all(shares, (2,), fresh)


def test_each_block_stores_what_the_row_gives(backends: Backends) -> None:
    x = np.random.default_rng(1).standard_normal((3, 64128)).astype(BF16)
    target = np.array([5, 40000, 64127], np.int32)

    def fresh() -> list[Any]:
        return [x, target, np.zeros(3, np.float32), 65536]

    assert blocks_of(cross_entropy, tuple(fresh())) == 2
    backends.run_all(cross_entropy, (3,), fresh, tolerance=ulp(64))


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64])
def test_integers(backends: Backends, dtype: Any) -> None:
    x = whole_numbers(np.int64, 20001, 4).astype(dtype)

    def fresh() -> list[Any]:
        return [x, np.zeros((1, 4), dtype), np.zeros((1, 4), dtype), 32768]

    assert blocks_of(integers, tuple(fresh())) == {4: 4, 8: 8}[np.dtype(dtype).itemsize]
    backends.run_all(integers, (2,), fresh)


def test_in_place(backends: Backends) -> None:
    def fresh() -> list[Any]:
        x = np.random.default_rng(2).standard_normal((2, 65536)).astype(BF16)
        return [x, x, 65536]

    backends.run_all(softmax, (2,), fresh, tolerance=ulp(2, 1e-9))


def test_hints() -> None:
    x = np.zeros((1, 131072), BF16)
    assert [blocks_of(softmax, (x, x.copy(), 131072), num_ctas=n) for n in (1, 2, 8)] == [0, 2, 4]


@pytest.mark.parametrize("dtype, blocks", [(BF16, 2), (BF16, 4), (np.float32, 8)], ids=str)
@pytest.mark.parametrize("columns", [5, 1000, 1024, 5000, 70000])
def test_walks(backends: Backends, dtype: Any, columns: int, blocks: int) -> None:
    """As a launch with long rows asks for it."""
    x = whole_numbers(dtype, 3, columns)

    def fresh() -> list[Any]:
        return [x, np.zeros(x.shape, np.float32), columns, 1024]

    assert blocks_of(in_chunks, tuple(fresh())) == 0
    backends.run_all(in_chunks, (3,), fresh)  # a launch on a GPU shares the long ones
    assert blocks_of(in_chunks, tuple(fresh()), num_ctas=blocks) == blocks
    backends.run_all(in_chunks.replace_hints(num_ctas=blocks), (3,), fresh)


@pytest.mark.parametrize("channels, columns, blocks", [(2, 1000, 2), (3, 5000, 2), (40, 2048, 4), (7, 10, 4)])
def test_walks_in_walks(backends: Backends, channels: int, columns: int, blocks: int) -> None:
    x = whole_numbers(BF16, 2 * channels, columns)

    def fresh() -> list[Any]:
        return [x, np.zeros(x.shape, np.float32), channels, 1024]

    assert blocks_of(channels_in_chunks, tuple(fresh()), num_ctas=blocks) == blocks
    backends.run_all(channels_in_chunks.replace_hints(num_ctas=blocks), (2,), fresh)
