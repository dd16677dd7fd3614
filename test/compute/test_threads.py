"""Many threads at once: objects that they share, first calls of one operator, operators with arrays of their own."""

import random
import sys

import numpy as np
import pytest
from random_calls import ALGORITHMS, Draw

from threads import at_once
from tilewright import compute
from tilewright.compute import OpKind


@pytest.fixture(autouse=True)
def often():
    """A thread gives way after a few instructions: what two threads do is interleaved."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    compute.clear_all_caches()
    yield
    sys.setswitchinterval(before)


def test_an_object_that_is_shared():
    """Each thread has arrays, sizes, initial values and storage of its own."""

    def add(a, b):
        return a + b

    x, out, zero = np.arange(4), np.zeros(1, np.int64), np.int64(0)
    reducer = compute.make_reduce_into(x, out, add, zero)
    scanner = compute.make_inclusive_scan(x, np.zeros(4, np.int64), add, zero)
    sorter = compute.make_merge_sort(x, None, np.zeros(4, np.int64), None, OpKind.GREATER)

    def work(i):
        for n in (1, 7, 300, 20000):
            mine = np.arange(n) + i
            total, sums, ordered = np.zeros(1, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
            for made, values in (
                (reducer, (mine, total, add, n, np.int64(i))),
                (scanner, (mine, sums, add, n, np.int64(i))),
                (sorter, (mine, None, ordered, None, OpKind.GREATER, n)),
            ):
                made(np.zeros(made(None, *values), np.uint8), *values)
            assert total[0] == mine.sum() + i
            np.testing.assert_array_equal(sums, np.cumsum(mine) + i)
            np.testing.assert_array_equal(ordered, mine[::-1])

    at_once(work)


def test_first_calls_of_one_operator():
    """All threads get the one object that one of them makes; of other constants each its own."""

    def smaller(a, b):
        return min(a, b)

    def clamped(least):
        return lambda a, b: max(max(a, b), least)

    def work(i):
        x, out = np.arange(50) + i, np.zeros(1, np.int64)
        shared = compute.make_reduce_into(x, out, smaller, np.int64(10**6))
        compute.reduce_into(x, out, smaller, 50, np.int64(10**6))
        assert out[0] == i
        compute.reduce_into(x, out, clamped(1000 + i), 50, np.int64(0))
        assert out[0] == 1000 + i
        return shared

    assert len({id(made) for made in at_once(work)}) == 1


def test_operators_with_arrays_of_their_own():
    """One kernel, and arrays from outside that differ from thread to thread."""

    def shifted_by(array):
        return lambda v: v + array[0]

    def work(i):
        op, x, out = shifted_by(np.array([100 * i])), np.arange(40), np.zeros(40, np.int64)
        made = compute.make_unary_transform(x, out, op)
        for _ in range(3):
            made(x, out, op, 40)
            np.testing.assert_array_equal(out, x + 100 * i)
        return made

    assert len({id(made) for made in at_once(work)}) == 1


def test_caches_that_are_cleared_meanwhile():
    def work(i):
        x, out = np.arange(40), np.zeros(1, np.int64)
        for k in range(3):
            if i == 0:
                compute.clear_all_caches()
            blob = compute.make_reduce_into(x, out, OpKind.PLUS, np.int64(0)).serialize()
            made = compute.deserialize(blob)
            values = (x, out, OpKind.PLUS, 40, np.int64(i + k))
            made(np.zeros(made(None, *values), np.uint8), *values)
            assert out[0] == 780 + i + k

    at_once(work)


def test_random_calls():
    """Half of the threads make the same calls, the others other ones."""

    class Host:
        array, host = staticmethod(lambda x: np.ascontiguousarray(x).copy()), staticmethod(np.asarray)

    def work(i):
        for k, name in enumerate(ALGORITHMS):
            Draw(random.Random(f"{name} {k if i % 2 else i}"), Host, most=600).run(name)

    at_once(work)
