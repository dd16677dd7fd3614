"""Tiles that a GPU's registers cannot hold: they are walked along, a part at a time."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from harness import Backends

from tilewright import compile as compiler
from tilewright import tile as ct

BF16 = ml_dtypes.bfloat16


@ct.kernel
def centred(X, W, Y, N: ct.Constant[int], R: ct.Constant[int], T: ct.Constant[int]):
    """Rows less their greatest and their sum, times weights, and their numbers where they end."""
    i = ct.bid(0)
    x = ct.load(X, index=(i, 0), shape=(R, T), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
    w = ct.load(W, index=(0,), shape=(T,), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
    inside = ct.arange(T, dtype=ct.int32)[None, :] < N
    x = x - ct.max(x, axis=1, keepdims=True)
    x = ct.where(inside, x, 0.0)
    x = x + ct.sum(x, axis=1, keepdims=True)
    ct.store(Y, index=(i, 0), tile=(x * w).astype(Y.dtype))


@ct.kernel
def extremes(X, LOW, HIGH, SUM, R: ct.Constant[int], T: ct.Constant[int]):
    """Results of one walk, of each row and of each column."""
    i = ct.bid(0)
    x = ct.load(X, index=(i, 0), shape=(R, T), padding_mode=ct.PaddingMode.ZERO)
    ct.store(LOW, index=(i,), tile=ct.min(x, axis=1))
    ct.store(HIGH, index=(i,), tile=ct.max(x, axis=1))
    ct.store(SUM, index=(0, 0), tile=ct.sum(x, axis=0, keepdims=True))


def whole_numbers(dtype: Any, *shape: int) -> np.ndarray:
    return np.random.default_rng(shape[-1]).integers(-3, 4, shape).astype(dtype)


@pytest.mark.parametrize("dtype", [BF16, np.float32], ids=["bf16", "f32"])
@pytest.mark.parametrize(
    "rows, columns, tile",
    [(1, 32768, 32768), (1, 40000, 65536), (1, 20001, 32768), (64, 1000, 1024), (2, 32000, 32768)],
)
def test_rows(backends: Backends, rows: int, columns: int, tile: int, dtype: Any) -> None:
    x, w = whole_numbers(dtype, 2 * rows, columns), whole_numbers(dtype, columns)
    backends.run_all(centred, (2,), lambda: [x, w, np.zeros(x.shape, np.float32), columns, rows, tile])


def test_rows_wider_than_shared_memory(backends: Backends) -> None:
    x, w = whole_numbers(BF16, 1, 131072), whole_numbers(BF16, 131072)
    backends.run_all(centred, (1,), lambda: [x, w, np.zeros(x.shape, np.float32), 131072, 1, 131072])


def test_rows_in_place(backends: Backends) -> None:
    def arguments() -> list[Any]:
        x = whole_numbers(np.float32, 1, 131072)
        return [x, np.ones(131072, np.float32), x, 131072, 1, 131072]

    backends.run_all(centred, (1,), arguments)


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.float32], ids=["i32", "u32", "f32"])
def test_reductions(backends: Backends, dtype: Any) -> None:
    for rows, tile in ((1, 32768), (32, 1024)):
        x = whole_numbers(np.int32, rows, tile).astype(dtype)
        results = [np.zeros(rows, dtype), np.zeros(rows, dtype), np.zeros((1, tile), dtype)]
        backends.run_all(extremes, (1,), lambda x=x, r=results: [x, *(y.copy() for y in r), *x.shape])


@ct.kernel
def stored(X, Y, Z, R: ct.Constant[int], T: ct.Constant[int]):
    """Nothing is reduced, and one tile is a constant."""
    x = ct.load(X, index=(0, 0), shape=(R, T), padding_mode=ct.PaddingMode.ZERO)
    ct.store(Y, index=(0, 0), tile=x + ct.arange(T, dtype=ct.int32)[None, :])
    ct.store(Z, index=(0, 0), tile=ct.full((R, T), 3, Z.dtype))


@pytest.mark.parametrize("shape, tile", [((1, 100003), (1, 131072)), ((300, 257), (512, 512)), ((9, 3), (2**19, 1))])
def test_stores(backends: Backends, shape: tuple[int, int], tile: tuple[int, int]) -> None:
    x = whole_numbers(np.int32, *shape)
    backends.run_all(stored, (1,), lambda: [x, np.zeros_like(x), np.ones(shape, np.float32), *tile])


@pytest.mark.parametrize("target", ["sm_90a", "sm_80", "cpu"])
def test_a_tile_of_any_size_is_little_code(target: str) -> None:
    """Of the largest that Python makes, and of one that a block just does not hold."""
    arrays = [np.zeros((8, 8), np.int32)] * 3
    for rows in (2**20, 2**7):
        _, key = stored.specialization((*arrays, rows, 2**10))
        module = compiler.capture_kernel(stored, target, key).module
        module.lower("llvm")
        assert len(module.emit(compiler.EMIT_LLVM)) < 200_000
