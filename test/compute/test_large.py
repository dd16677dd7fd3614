"""More than 2^31 items: iterators have so many without memory."""

import numpy as np
import pytest
from every import EVERY, calls

from tilewright import compute
from tilewright.compute import OpKind, launching, objects, plans
from tilewright.compute.types import numpy_dtype
from tilewright.errors import TileValueError
from tilewright.numba import cuda

MANY = (1 << 31) + 3
FAR = 1 << 33


def counting(first=0):
    return compute.CountingIterator(np.int64(first))


def test_places_beyond(device):
    """Of searches, segments and moved iterators: few threads, far places."""
    values, places = device.array(np.array([5, FAR + 7, 1 << 41])), device.array(np.zeros(3, np.uint64))
    compute.lower_bound(counting(), values, places, 1 << 40, 3)
    assert device.host(places).tolist() == [5, FAR + 7, 1 << 40]
    starts, ends = device.array(np.array([FAR, FAR + 10])), device.array(np.array([FAR + 10, FAR + 210]))
    sums = device.array(np.zeros(2, np.int64))
    compute.segmented_reduce(counting(-FAR), sums, starts, ends, OpKind.PLUS, np.int64(0), 2)
    assert device.host(sums).tolist() == [sum(range(10)), sum(range(10, 210))]
    out = device.array(np.zeros(3, np.int64))
    compute.unary_transform(counting() + FAR + MANY, out, lambda v: v - MANY, 3)
    assert device.host(out).tolist() == [FAR, FAR + 1, FAR + 2]


def test_a_sum_of_many():
    out = np.zeros(1, np.int64)
    compute.reduce_into(compute.ConstantIterator(np.int8(3)), out, OpKind.PLUS, MANY, np.int64(1))
    assert out[0] == 3 * MANY + 1


@pytest.mark.parametrize("name", EVERY)
def test_launches_for_many(name, monkeypatch):
    """A grid has 2^31 - 1 blocks at most, a scan's tiles are counted in 64 bits: nothing is run."""
    monkeypatch.setattr(objects, "shape_for", lambda place: plans.GPU)
    monkeypatch.setattr(launching.ComputeKernel, "prepare", lambda self, values, targets: None)
    compute.clear_all_caches()
    call = calls()[name]
    made = call.make(**call.made_of)
    compute.clear_all_caches()
    values = call.values()
    given = objects.Algorithm._read(made, {n: values.get(n) for n in made.order})
    given |= {n: FAR for n in ("num_items", "num_segments", "num_values", "num_samples") if n in given}
    parts = made.parts(FAR)
    assert launching.bytes_of(parts) >= sum(part.bytes for part in parts)
    launches = made.launches(given, FAR, [np.zeros(1, numpy_dtype(part.type)) for part in parts])
    assert launches and all(0 < launch.grid < 1 << 31 for launch in launches)
    sizes = [n for launch in launches for n in launch.arguments if isinstance(n, np.integer)]
    assert all(n.dtype.itemsize == 8 for n in sizes)


def test_arrays_of_many():
    """NumPy's zeros take no memory before they are touched: few items are, all of them far behind."""
    data, n = np.zeros(MANY, np.int8), MANY
    data[-2:] = 5, 7
    values, places = np.array([3, 6], np.int8), np.zeros(2, np.uint64)
    compute.lower_bound(data, values, places, n, 2)
    assert places.tolist() == [n - 2, n - 1]
    starts, ends, sums = np.array([n - 3]), np.array([n]), np.zeros(1, np.int64)
    compute.segmented_reduce(data, sums, starts, ends, OpKind.PLUS, np.int64(1), 1)
    assert sums[0] == 13
    reducer = compute.make_reduce_into(values, sums, OpKind.PLUS, np.int64(0))
    storage = np.zeros(MANY, np.uint8)
    for _ in range(2):
        reducer(storage, data[-2:], sums, OpKind.PLUS, 2, np.int64(0))
        assert sums[0] == 12


def test_operators_read_arrays_of_fewer():
    table, out = np.zeros(MANY, np.int8), np.zeros(1, np.int64)
    with pytest.raises(TileValueError, match="2147483647 items at most"):
        compute.unary_transform(np.zeros(1, np.int64), out, lambda v: table[v] + len(table), 1)


def test_kernels_of_users_take_fewer():
    """They may ask for extents, which have 31 bits."""

    @cuda.jit
    def kernel(x):
        x[0] = len(x)

    with pytest.raises(TileValueError, match="argument 'x': its extent in dimension 0 is 2147483651, the most is"):
        kernel[1, 1](np.zeros(MANY, np.int8))
