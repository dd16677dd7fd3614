"""Each dtype through each algorithm: integers, floats of 16 bits and more, complex numbers, structs in structs."""

import dataclasses
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilewright import compute
from tilewright.compute import SortOrder

REAL = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16")
REAL += ("float32", "float64")
N = 70


@compute.gpu_struct
class Inner:
    x: np.float64
    z: np.complex64


@compute.gpu_struct
class Outer:
    a: np.int8
    inner: Inner
    b: np.float16


ALIGNED = np.dtype([("a", "i1"), ("b", "f8"), ("c", "u2")], align=True)


def sum_of_numbers(a, b):
    return a + b


def itself(v):
    return v


def sum_of_outer(p, q):
    z = p.inner.z + q.inner.z
    return Outer(p.a + q.a, Inner(p.inner.x + q.inner.x, z), p.b + q.b)


def sum_of_aligned(p, q):
    return (p.a + q.a, p.b + q.b, p.c + q.c)


@dataclasses.dataclass
class Kind:
    """Items that stand for small integers."""

    name: str
    dtype: Any
    item: Any  # of an integer
    number: Any  # an array of it back as integers
    add: Any = sum_of_numbers
    key: Any = itself

    def array(self, numbers):
        return np.array([self.item(int(n)) for n in numbers], self.dtype)


def _kinds():
    for name in REAL:
        dtype = ml_dtypes.bfloat16 if name == "bfloat16" else np.dtype(name)
        yield Kind(name, dtype, lambda n: n, lambda x: x.astype(np.int64))
    for name in ("complex64", "complex128"):
        yield Kind(name, np.dtype(name), lambda n: n - 1j * n, lambda x: x.real.astype(np.int64), key=lambda v: v.real)
    yield Kind(
        "nested",
        Outer.dtype,
        lambda n: (n, (n, 1j * n), n),
        lambda x: x["a"].astype(int),
        sum_of_outer,
        lambda v: v.inner.x,
    )
    yield Kind("aligned", ALIGNED, lambda n: (n, n, n), lambda x: x["a"].astype(int), sum_of_aligned, lambda v: v.c)


KINDS = {kind.name: kind for kind in _kinds()}
NUMBERS = np.random.default_rng(0).integers(0, 3, N)


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


def sampled(device, kind):
    """The emulator takes its time: a dtype of each sort there."""
    if device.name == "emulator" and kind.name not in ("bfloat16", "nested"):
        pytest.skip("the emulator is slow; it runs a sample of the dtypes")


def test_folds(device, kind):
    sampled(device, kind)
    few = NUMBERS[:30]  # a sum that int8 and bfloat16 hold
    x, out, add = device.array(kind.array(few)), device.array(kind.array(0 * few)), kind.add
    first = kind.array([1])
    compute.reduce_into(x, out, add, 30, first)
    assert kind.number(device.host(out))[0] == few.sum() + 1
    compute.inclusive_scan(x, out, add, None, 30)
    np.testing.assert_array_equal(kind.number(device.host(out)), np.cumsum(few))
    compute.exclusive_scan(x, out, add, first, 30)
    np.testing.assert_array_equal(kind.number(device.host(out)), 1 + np.cumsum(few) - few)
    starts, ends = device.array(np.array([0, 7, 7])), device.array(np.array([7, 7, 30]))
    compute.segmented_reduce(x, out, starts, ends, add, first, 3)
    np.testing.assert_array_equal(kind.number(device.host(out))[:3], [few[:7].sum() + 1, 1, few[7:].sum() + 1])


def test_transforms_and_selections(device, kind):
    sampled(device, kind)
    x, count = device.array(kind.array(NUMBERS)), device.array(np.zeros(2, np.int64))
    outs, add, key = [device.array(kind.array(0 * NUMBERS)) for _ in range(3)], kind.add, kind.key
    compute.binary_transform(x, x, outs[0], add, N)
    np.testing.assert_array_equal(kind.number(device.host(outs[0])), 2 * NUMBERS)
    compute.unary_transform(x, outs[0], lambda v: add(v, v), N)
    np.testing.assert_array_equal(kind.number(device.host(outs[0])), 2 * NUMBERS)
    compute.select(x, outs[0], count, lambda v: key(v) > 0, N)
    kept = NUMBERS[NUMBERS > 0]
    np.testing.assert_array_equal(kind.number(device.host(outs[0]))[: len(kept)], kept)
    compute.three_way_partition(x, *outs, count, lambda v: key(v) < 1, lambda v: key(v) > 1, N)
    for out, part in zip(outs, (0, 2, 1), strict=True):
        some = NUMBERS[part == NUMBERS]
        np.testing.assert_array_equal(kind.number(device.host(out))[: len(some)], some)
    compute.unique_by_key(x, x, outs[0], outs[1], count, lambda a, b: key(a) == key(b), N)
    firsts = NUMBERS[np.diff(NUMBERS, prepend=-1) != 0]
    assert device.host(count)[0] == len(firsts)
    for out in outs[:2]:
        np.testing.assert_array_equal(kind.number(device.host(out))[: len(firsts)], firsts)


def test_sorts_and_searches(device, kind):
    sampled(device, kind)
    x, out, key = device.array(kind.array(NUMBERS)), device.array(kind.array(0 * NUMBERS)), kind.key
    values, places = device.array(np.arange(N)), device.array(np.zeros(N, np.uint64))
    order = np.argsort(NUMBERS, kind="stable")
    compute.merge_sort(x, values, out, places.view(np.int64), lambda a, b: key(a) < key(b), N)
    np.testing.assert_array_equal(kind.number(device.host(out)), NUMBERS[order])
    np.testing.assert_array_equal(device.host(places), order)
    for search, side in ((compute.lower_bound, "left"), (compute.upper_bound, "right")):
        search(out, x, places, N, N, lambda a, b: key(a) < key(b))
        np.testing.assert_array_equal(device.host(places), np.searchsorted(NUMBERS[order], NUMBERS, side))
    keys, sorted_keys = device.array(NUMBERS.astype(np.int8)), device.array(np.zeros(N, np.int8))
    compute.radix_sort(keys, sorted_keys, x, out, SortOrder.ASCENDING, N)  # as values
    np.testing.assert_array_equal(kind.number(device.host(out)), NUMBERS[order])


@pytest.mark.parametrize("name", REAL)
def test_keys_and_samples(device, name):
    kind = KINDS[name]
    sampled(device, kind)
    numbers = NUMBERS if name.startswith("uint") else NUMBERS - 1
    x, out = device.array(kind.array(numbers)), device.array(kind.array(0 * numbers))
    for order, step in ((SortOrder.ASCENDING, 1), (SortOrder.DESCENDING, -1)):
        compute.radix_sort(x, out, None, None, order, N)
        np.testing.assert_array_equal(kind.number(device.host(out)), np.sort(numbers)[::step])
        bounds = device.array(np.array([0, 40])), device.array(np.array([40, N]))
        compute.segmented_sort(x, out, None, None, N, 2, *bounds, order)
        expected = [np.sort(part)[::step] for part in (numbers[:40], numbers[40:])]
        np.testing.assert_array_equal(kind.number(device.host(out)), np.concatenate(expected))
    bins = device.array(np.zeros(2, np.int32))
    level = np.float32 if name in ("float16", "bfloat16") else np.dtype(name).type
    compute.histogram_even(x, bins, 3, level(0), level(2), N)
    np.testing.assert_array_equal(device.host(bins), [(numbers == 0).sum(), (numbers == 1).sum()])
