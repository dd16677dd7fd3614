"""Products on the CPU: right operands whose panels a thread keeps from block to block (lowering/cpu/keep.c)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright import tile as ct

ZERO = ct.PaddingMode.ZERO
T = 64  # from so many rows on operands are packed
PLACES = 64  # for tiles of T x T floats


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes all blocks, one after the other."""
    monkeypatch.setenv("TILEWRIGHT_NUM_THREADS", "1")


@ct.kernel
def product(A, B, C, TM: ct.Constant[int], TK: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((TM, T), dtype=ct.float32)
    for k in range(ct.num_tiles(A, axis=1, shape=(TM, TK))):
        a = ct.load(A, index=(i, k), shape=(TM, TK), padding_mode=ZERO)
        acc = ct.mma(a, ct.load(B, index=(k, j), shape=(TK, T), padding_mode=ZERO), acc)
    ct.store(C, index=(i, j), tile=acc.astype(C.dtype))


def whole(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    """Whole numbers, whose sums are exact."""
    return np.random.default_rng(len(shape)).integers(-4, 5, shape).astype(dtype)


def run(a: np.ndarray, b: np.ndarray, tk: int = T) -> np.ndarray:
    c = np.empty((a.shape[0], b.shape[1]), np.float32)
    ct.launch(None, (ct.cdiv(c.shape[0], T), ct.cdiv(c.shape[1], T)), product, (a, b, c, T, tk))
    return c


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8])
@pytest.mark.parametrize("k", [T, 5 * T - 3, (PLACES + 3) * T + 1])
def test_blocks_of_a_column(k: int, dtype: Any) -> None:
    """Of the last, tiles behind the last place take it in turns."""
    a, b = whole(3 * T - 1, k, dtype=dtype), whole(k, 2 * T + 5, dtype=dtype)
    if dtype == np.int8:
        c = np.empty((a.shape[0], b.shape[1]), np.int32)
        ct.launch(None, (3, 3), bytes_product, (a, b, c))
        np.testing.assert_array_equal(c, a.astype(np.int32) @ b.astype(np.int32))
    else:
        np.testing.assert_array_equal(run(a, b), a.astype(np.float32) @ b.astype(np.float32))


@ct.kernel
def bytes_product(A, B, C):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((T, T), dtype=ct.int32)
    for k in range(ct.num_tiles(A, axis=1, shape=(T, T))):
        a = ct.load(A, index=(i, k), shape=(T, T), padding_mode=ZERO)
        acc = ct.mma(a, ct.load(B, index=(k, j), shape=(T, T), padding_mode=ZERO), acc)
    ct.store(C, index=(i, j), tile=acc)


@pytest.mark.parametrize("tk", [1, 2, 8, 32])
def test_steps_of_k(tk: int) -> None:
    """An iteration takes several steps, and there are odd numbers of them."""
    for k in (1, 7, 37):
        a, b = whole(T + 3, k), whole(k, T)
        np.testing.assert_array_equal(run(a, b, tk), a @ b)


def test_other_numbers_in_the_next_launch() -> None:
    a, b = whole(2 * T, 2 * T), whole(2 * T, T)
    for _ in range(3):
        np.testing.assert_array_equal(run(a, b), a @ b)
        b += 1


@ct.kernel
def powers(A, B, R):
    """A product is stored where the next step finds its right operand."""
    a = ct.load(A, index=(0, 0), shape=(T, T))
    for k in range(ct.num_tiles(B, axis=0, shape=(T, T)) - 1):
        b = ct.load(R, index=(k, 0), shape=(T, T))
        ct.store(B, index=(k + 1, 0), tile=ct.mma(a, b, ct.zeros((T, T), dtype=ct.float32)))


@ct.kernel
def same_powers(A, B):
    a = ct.load(A, index=(0, 0), shape=(T, T))
    for _ in range(3):
        b = ct.load(B, index=(0, 0), shape=(T, T))
        ct.store(B, index=(0, 0), tile=ct.mma(a, b, ct.zeros((T, T), dtype=ct.float32)))


def test_operand_that_the_kernel_writes() -> None:
    a, b = np.roll(np.eye(T, dtype=np.float32), 1, axis=0), whole(T, T)
    want = np.roll(b, 3, axis=0)
    ct.launch(None, (1,), same_powers, (a, b))
    np.testing.assert_array_equal(b, want)


def test_operand_in_the_memory_of_the_result() -> None:
    """The code that keeps panels takes arrays for separate; the launch passes one twice."""
    a, b = np.roll(np.eye(T, dtype=np.float32), 1, axis=0), whole(4 * T, T)
    want = np.concatenate([np.roll(b[:T], k, axis=0) for k in range(4)])
    other = np.zeros_like(b)
    ct.launch(None, (1,), powers, (a, other, b))
    np.testing.assert_array_equal(other[T:], np.roll(b.reshape(4, T, T)[:3], 1, axis=1).reshape(3 * T, T))
    ct.launch(None, (2,), powers, (a, b, b))
    np.testing.assert_array_equal(b, want)


@ct.kernel
def shifted(A, B, C):
    """Tiles before the array, and behind it."""
    i = ct.bid(0)
    acc = ct.full((T, T), 7, dtype=ct.float32)
    for k in range(3):
        a = ct.load(A, index=(i, 0), shape=(T, T))
        acc = ct.mma(a, ct.load(B, index=(k - 1, -1 if k == 0 else 0), shape=(T, T), padding_mode=ZERO), acc)
    ct.store(C, index=(i, 0), tile=acc)


def test_tiles_outside_of_the_array() -> None:
    a, b, c = whole(2 * T, T), whole(T, T), np.empty((2 * T, T), np.float32)
    ct.launch(None, (2,), shifted, (a, b, c))
    np.testing.assert_array_equal(c, 7 + a @ b)


# ---- rows and columns that nobody stores are not computed ------------------------------------------------


@pytest.mark.parametrize("shape", [(T + 6, T), (2 * T, T - 9), (2 * T, 2 * T), (1, 1)])
def test_results_of_another_size(shape: tuple[int, int]) -> None:
    """Behind the left operand a row is zeros, and zero by infinity is no number."""
    a, b, c = whole(T + 5, 2 * T), whole(2 * T, T), np.empty(shape, np.float32)
    b[3, 5] = np.inf
    a[:, 3] = 1
    padded = np.concatenate([a, np.zeros((2 * T - len(a), 2 * T), np.float32)])
    with np.errstate(invalid="ignore"):
        want = np.concatenate([padded @ b, np.zeros((2 * T, T), np.float32)], axis=1)
    ct.launch(None, (ct.cdiv(shape[0], T), ct.cdiv(shape[1], T)), product, (a, b, c, T, T))
    np.testing.assert_array_equal(c, want[: shape[0], : shape[1]])


@ct.kernel
def seen_twice(A, B, C, S, D):
    i = ct.bid(0)
    a = ct.load(A, index=(i, 0), shape=(T, T), padding_mode=ZERO)
    b = ct.load(B, index=(0, 0), shape=(T, T), padding_mode=ZERO)
    acc = ct.mma(a, b, ct.full((T, T), 3, dtype=ct.float32))
    ct.store(C, index=(i, 0), tile=acc * 2)
    ct.store(S, index=(i, 0), tile=ct.sum(acc, axis=0, keepdims=True))
    ct.store(D, index=(0, i), tile=ct.transpose(ct.mma(a, b, ct.full((T, T), 4, dtype=ct.float32))))


def test_result_that_is_not_only_stored() -> None:
    a, b = whole(T + 5, T), whole(T, 9)
    c, s, d = np.empty((T + 5, 9), np.float32), np.empty((2, T), np.float32), np.empty((9, T + 5), np.float32)
    ct.launch(None, (2,), seen_twice, (a, b, c, s, d))
    padded, wide = np.zeros((2 * T, T), np.float32), np.zeros((T, T), np.float32)
    padded[: T + 5], wide[:, :9] = a, b
    want = padded @ wide + 3
    np.testing.assert_array_equal(c, 2 * want[: T + 5, :9])
    np.testing.assert_array_equal(s, want.reshape(2, T, T).sum(axis=1))
    np.testing.assert_array_equal(d, (a @ b + 4).T)


@ct.kernel
def elsewhere(A, B, C, D):
    """The second product adds to the first; its place is only known behind it."""
    a, b = ct.load(A, index=(0, 0), shape=(T, T)), ct.load(B, index=(0, 0), shape=(T, T))
    acc = ct.mma(a, b, ct.mma(a, b, ct.zeros((T, T), dtype=ct.float32)))
    ct.store(C, index=(1, 0), tile=acc)
    acc = ct.mma(a, b, ct.zeros((T, T), dtype=ct.float32))
    ct.store(D, index=(ct.load(D, index=(0, 0), shape=(1, 1)).item().astype(ct.int32), 0), tile=acc + 1)


def test_results_that_lie_elsewhere() -> None:
    a, b, c, d = whole(T, T), whole(T, T), np.zeros((T + 9, T - 7), np.float32), np.zeros((2 * T, T), np.float32)
    d[0, 0] = 1
    ct.launch(None, (1,), elsewhere, (a, b, c, d))
    np.testing.assert_array_equal(c[T:], (2 * (a @ b))[:9, : T - 7])
    np.testing.assert_array_equal(d[T:], a @ b + 1)
    assert not c[:T].any() and not d[1:T].any()


# ---- the order of blocks ---------------------------------------------------------------------------------


@ct.kernel
def columns_along_x(A, B, C):
    j, i, part = ct.bid(0), ct.bid(1), ct.bid(2)
    a = ct.load(A, index=(i, part), shape=(T, T), padding_mode=ZERO)
    b = ct.load(B, index=(part, j), shape=(T, T), padding_mode=ZERO)
    acc = ct.mma(a, b, ct.zeros((T, T), dtype=ct.float32))
    ct.store(C, index=(part, i, j), tile=ct.reshape(acc, (1, T, T)))


def test_blocks_along_y_first() -> None:
    a, b = whole(2 * T + 3, 2 * T), whole(2 * T, 5 * T - 1)
    c = np.full((2, *(len(a), b.shape[1])), np.nan, np.float32)
    ct.launch(None, (5, 3, 2), columns_along_x, (a, b, c))
    np.testing.assert_array_equal(c, [a[:, :T] @ b[:T], a[:, T:] @ b[T:]])
