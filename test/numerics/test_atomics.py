"""Atomic accesses: each operation and dtype, what they give, what they order, and that nothing is lost."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from harness import ARRAY_DTYPES, Backends, random_values

from tilewright import dtype as dt
from tilewright import tile as ct
from tilewright.errors import TileTypeError
from tilewright.tile import MemoryOrder, MemoryScope

WORDS = ("i4", "i8", "u4", "u8")
FLOATS = ("f4", "f8")
HALVES = ("f2", ml_dtypes.bfloat16)
KINDS: dict[str, tuple[Any, ...]] = {
    "xchg": WORDS + FLOATS,
    "add": WORDS + FLOATS + HALVES,
    **dict.fromkeys(("min", "max", "and", "or", "xor"), WORDS),
}
CASES = [(kind, np.dtype(d)) for kind, dtypes in KINDS.items() for d in dtypes]
OPS = {kind: getattr(ct, f"atomic_{kind}") for kind in KINDS}
RELAXED, DEVICE = MemoryOrder.RELAXED, MemoryScope.DEVICE


def numbers(count: int, dtype: np.dtype, seed: int = 0) -> np.ndarray:
    """Small enough for exact sums; of words also ones with the sign bit."""
    values = np.random.default_rng(seed).integers(0, 64, count)
    if dtype.kind in "iu":
        values = values | (values & 1) << (8 * dtype.itemsize - 1)
    return values.astype(dtype)


@ct.kernel
def at_indices(X, At, U, Z, op: ct.Constant, n: ct.Constant):
    place = (ct.bid(0),)
    ct.store(Z, place, op(X, ct.load(At, place, n), ct.load(U, place, n)))


@pytest.mark.parametrize(("kind", "dtype"), CASES, ids=lambda v: getattr(v, "name", v))
@pytest.mark.parametrize("n", [1, 64], ids=str)
def test_operations(backends: Backends, kind: str, dtype: np.dtype, n: int) -> None:
    """At places of their own, some of them outside of the array."""
    count = 2 * n
    places = (np.random.default_rng(1).permutation(count + 8)[:count] - 4).astype("i4")
    x, u = numbers(count, dtype), numbers(count, dtype, 2)
    backends.run_all(at_indices, (2,), lambda: [x.copy(), places, u, np.zeros(count, dtype), OPS[kind], n])


@ct.kernel
def swaps(X, At, E, U, Z):
    place = (ct.bid(0),)
    parts = (ct.load(A, place, 32) for A in (At, E, U))
    i, expected, update = parts
    ct.store(Z, place, ct.atomic_cas(X, i, expected, update))


@pytest.mark.parametrize("dtype", WORDS + FLOATS)
def test_compare_and_swap(backends: Backends, dtype: str) -> None:
    """Some elements are as expected, some are not, some are outside; a NaN is itself, and -0 is not 0."""
    rng = np.random.default_rng(0)
    x, e, u = (rng.integers(0, 2, 64).astype(dtype) for _ in range(3))
    if dtype in FLOATS:
        x[:8], e[:8] = np.nan, np.nan
        x[8:16], e[8:16] = 0.0, -0.0
    places = np.arange(64, dtype="i4")
    places[::7] += 64
    args = backends.run_all(swaps, (2,), lambda: [x.copy(), places, e, u, np.zeros(64, dtype)])
    inside = places < 64
    same = x.view("u1").reshape(64, -1) == e.view("u1").reshape(64, -1)
    assert np.array_equal(args[0][inside], np.where(same.all(1), u, x)[inside], equal_nan=dtype in FLOATS)


@ct.kernel
def histogram(X, H, n: ct.Constant):
    ct.atomic_add(H, ct.load(X, (ct.bid(0),), n), 1)


@pytest.mark.parametrize("n", [4, 512], ids=str)
def test_nothing_is_lost(backends: Backends, n: int) -> None:
    x = np.random.default_rng(0).integers(0, 5, 2048).astype("i4")
    args = backends.run_all(histogram, (2048 // n,), lambda: [x, np.zeros(5, "i4"), n])
    assert args[1].tolist() == np.bincount(x, minlength=5).tolist()


@ct.kernel
def tickets(Counter, Z):
    mine = ct.atomic_add(Counter, 0, 2)
    ct.store(Z, (mine // 2,), ct.full(4, mine, ct.int32))


def test_a_scalar_is_taken_once_a_block(backends: Backends) -> None:
    """All threads have what one found."""
    args = backends.run_all(tickets, (32,), lambda: [np.zeros(1, "i4"), np.zeros(128, "i4")])
    assert args[0][0] == 64
    assert np.array_equal(args[1].reshape(32, 4), np.arange(0, 64, 2)[:, None] + np.zeros(4, "i4"))


@ct.kernel
def rows(X, Z):
    """Fewer elements than a block has threads, and a value that broadcasts."""
    r, c = ct.arange(4, dtype=ct.int64), ct.arange(8, dtype=ct.int32)
    old = ct.atomic_add(X, (r[:, None], c), ct.astype(c, ct.float32))
    ct.store(Z, (0, 0), old + ct.sum(old, 1, keepdims=True))


def test_a_tile_that_threads_share(backends: Backends) -> None:
    x = np.arange(40, dtype="f4").reshape(5, 8)
    backends.run_all(rows, (1,), lambda: [x.copy(), np.zeros((4, 8), "f4")])


@ct.kernel
def in_a_row(X, Z, order: ct.Constant, scope: ct.Constant):
    """Each access of the block finds what the one before it did, of whichever kind."""
    i = ct.arange(256, dtype=ct.int32)
    back = 255 - i
    ct.scatter(X, i, i)
    ct.atomic_add(X, back, 1, memory_order=order, memory_scope=scope)
    doubled = ct.gather(X, i) * 2
    ct.store(X, (0,), doubled)
    old = ct.atomic_xchg(X, back, i, memory_order=order, memory_scope=scope)
    ct.store(Z, (0,), old + ct.load(X, (0,), 256))


@pytest.mark.parametrize("scope", ["BLOCK", "DEVICE", "SYS"])
@pytest.mark.parametrize("order", ["RELAXED", "ACQUIRE", "RELEASE", "ACQ_REL"])
def test_a_block_sees_what_it_did(backends: Backends, order: str, scope: str) -> None:
    modes = [MemoryOrder[order], MemoryScope[scope]]
    backends.run_all(in_a_row, (1,), lambda: [np.zeros(256, "i4"), np.zeros(256, "i4"), *modes])


@ct.kernel
def neighbours(X, Z, n: ct.Constant):
    """Relaxed sums that nothing reads, side by side."""
    i = ct.bid(0) * n + ct.arange(n, dtype=ct.int32)
    ct.atomic_add(Z, i, ct.load(X, (ct.bid(0),), n), memory_order=ct.MemoryOrder.RELAXED)


@pytest.mark.parametrize("size", [1024, 1017], ids=str)
@pytest.mark.parametrize("dtype", FLOATS + HALVES, ids=lambda d: np.dtype(d).name)
def test_neighbours(backends: Backends, dtype: Any, size: int) -> None:
    x = numbers(size, np.dtype(dtype))
    backends.run_all(neighbours, (2,), lambda: [x, np.ones(size, dtype), 512])


@ct.kernel
def guarded_sum(Lock, Sum, X):
    """A lock, which one block has at a time."""
    while ct.atomic_cas(Lock, 0, 0, 1, memory_order=ct.MemoryOrder.ACQUIRE) != 0:
        pass
    ct.store(Sum, (0,), ct.load(Sum, (0,), 64) + ct.load(X, (ct.bid(0),), 64))
    ct.atomic_xchg(Lock, 0, 0, memory_order=ct.MemoryOrder.RELEASE)


def test_a_lock(backends: Backends) -> None:
    x = np.arange(64 * 40, dtype="i4")
    backends.run_all(guarded_sum, (40,), lambda: [np.zeros(1, "i4"), np.zeros(64, "i4"), x])


@ct.kernel
def passed_on(Flags, X):
    """Each block waits for the one before it, and goes on with what that one wrote."""
    b = ct.bid(0)
    while ct.load(Flags, (b,), (), memory_order=ct.MemoryOrder.ACQUIRE, memory_scope=ct.MemoryScope.DEVICE) == 0:
        pass
    ct.store(X, (b + 1,), ct.load(X, (b,), 64) + 1)
    ct.store(Flags, (b + 1,), 1, memory_order=ct.MemoryOrder.RELEASE, memory_scope=ct.MemoryScope.DEVICE)


def test_blocks_that_wait_for_each_other(backends: Backends) -> None:
    flags = np.zeros(33, "i4")
    flags[0] = 1
    args = backends.run_all(passed_on, (32,), lambda: [flags.copy(), np.zeros(33 * 64, "i4")])
    assert np.array_equal(args[1].reshape(33, 64)[:, 0], np.arange(33))


@ct.kernel
def litmus(Rows, Done, Count, Steps, Wrong):
    """Even blocks write, odd ones read as often as they like: what no order of memory allows is counted.

    A flag that is seen: all of the row that was stored before it. A count: as many rows. One number: it never falls.
    """
    b, blocks = ct.bid(0) // 2, ct.num_blocks(0) // 2
    acquire, release, scope = ct.MemoryOrder.ACQUIRE, ct.MemoryOrder.RELEASE, ct.MemoryScope.DEVICE
    if ct.bid(0) % 2 == 0:
        for step in range(1, 9):
            ct.store(Steps, (b,), step, memory_order=ct.MemoryOrder.RELAXED, memory_scope=scope)
        ct.store(Rows, (b, 0), ct.ones((1, 256), ct.int32))
        ct.store(Done, (b,), 1, memory_order=release, memory_scope=scope)
        ct.atomic_add(Count, 0, 1, memory_order=release, memory_scope=scope)
        return
    wrong, before = 0, 0
    for turn in range(8):
        row = (b + turn) % blocks
        done = ct.load(Done, (row,), (), memory_order=acquire, memory_scope=scope)
        wrong += 1 if done == 1 and ct.min(ct.load(Rows, (row, 0), (1, 256))) == 0 else 0
        step = ct.load(Steps, (b,), (), memory_order=ct.MemoryOrder.RELAXED, memory_scope=scope)
        wrong += 1 if step < before else 0
        before = step
    count = ct.load(Count, (0,), (), memory_order=acquire, memory_scope=scope)
    rows = ct.load(Rows, (0, 0), (32, 256))
    wrong += 1 if ct.sum(ct.min(rows, 1)) < count else 0
    ct.store(Wrong, (b,), wrong)


def test_results_that_no_order_allows(backends: Backends) -> None:
    sizes = ((32, 256), (32,), (1,), (32,), (32,))
    for _ in range(2):
        args = backends.run_all(litmus, (64,), lambda: [np.zeros(n, "i4") for n in sizes])
        assert not args[4].any()


@ct.kernel
def ordered_copy(X, Z, shape: ct.Constant, order: ct.Constant, scope: ct.Constant):
    acquire, release = order
    index = (ct.bid(0), ct.bid(1))
    tile = ct.load(
        X, index, shape, order="F", padding_mode=ct.PaddingMode.ZERO, memory_order=acquire, memory_scope=scope
    )
    ct.store(Z, index, tile, memory_order=release, memory_scope=scope)


@pytest.mark.parametrize("order", [("RELAXED", "RELAXED"), ("ACQUIRE", "RELEASE")], ids=lambda o: o[0])
@pytest.mark.parametrize("dtype", [d for d in ARRAY_DTYPES if d.bits >= 8 and d is not dt.float8_e8m0fnu], ids=str)
def test_loads_and_stores_with_an_order(backends: Backends, dtype: dt.DType, order: Any) -> None:
    """The same elements as weak ones, at ragged edges too."""
    x = random_values(dtype, 13 * 21).reshape(21, 13)
    modes = tuple(MemoryOrder[o] for o in order)
    make = lambda: [x, np.zeros((13, 21), dtype.numpy), (4, 8), modes, DEVICE]  # noqa: E731
    args = backends.run_all(ordered_copy, (4, 3), make)
    assert np.array_equal(args[1].view(np.uint8), np.ascontiguousarray(x.T).view(np.uint8))


@ct.kernel
def one(X, op: ct.Constant, value: ct.Constant, order: ct.Constant, scope: ct.Constant):
    op(X, 0, value, memory_order=order, memory_scope=scope)


@pytest.mark.parametrize(
    ("op", "dtype", "value", "order", "scope", "message"),
    [
        (ct.atomic_max, "f4", 1, RELAXED, DEVICE, "ct.atomic_max: an array of float32 has no such access"),
        (ct.atomic_add, "i2", 1, RELAXED, DEVICE, "ct.atomic_add: an array of int16 has no such access"),
        (ct.atomic_xchg, "i4", 1.5, RELAXED, DEVICE, "ct.atomic_xchg: float32 does not convert to int32"),
        (ct.atomic_or, "i4", 1, MemoryOrder.WEAK, DEVICE, "ct.atomic_or has no memory_order WEAK; it has RELAXED"),
        (ct.atomic_or, "i4", 1, RELAXED, MemoryScope.NONE, "needs a memory_scope of BLOCK, DEVICE or SYS, found NONE"),
        (ct.atomic_or, "i4", 1, RELAXED, MemoryScope.CLUSTER, "a memory_scope of BLOCK, DEVICE or SYS, found CLUSTER"),
        (ct.atomic_or, "i4", 1, "relaxed", DEVICE, "memory_order must be a ct.MemoryOrder, found 'relaxed'"),
    ],
)
def test_refused(op: Any, dtype: str, value: Any, order: Any, scope: Any, message: str) -> None:
    for run in (lambda a: one.interpret((1,), a), lambda a: ct.launch(None, (1,), one, a)):
        with pytest.raises(TileTypeError, match=message.replace("(", "\\(")):
            run((np.zeros(4, dtype), op, value, order, scope))
