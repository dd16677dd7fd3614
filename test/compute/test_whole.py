"""Functions of arrays that return their results."""

import numpy as np
import pytest

from tilewright import compute
from tilewright.compute import OpKind
from tilewright.errors import TileTypeError, TileValueError


@pytest.mark.parametrize("n", [1, 100, 3000])
def test_numbers(device, n):
    x = np.random.default_rng(n).integers(-100, 100, n).astype(np.int16)
    given = device.array(x)

    def one(found):
        return np.asarray(device.host(found)).reshape(-1)[0]

    assert one(compute.reduce(given)) == x.sum()
    assert one(compute.reduce(given, lambda a, b: max(a, b))) == x.max()
    assert one(compute.reduce(given, OpKind.MINIMUM, np.int64(-1000))) == -1000
    np.testing.assert_array_equal(device.host(compute.scan(given)), np.cumsum(x))
    np.testing.assert_array_equal(device.host(compute.scan(given, OpKind.MAXIMUM)), np.maximum.accumulate(x))
    exclusive = compute.scan(given, init=np.int64(1), inclusive=False)
    np.testing.assert_array_equal(device.host(exclusive), np.cumsum(x) - x + 1)
    np.testing.assert_array_equal(device.host(compute.sort(given)), np.sort(x))
    np.testing.assert_array_equal(device.host(compute.sort(given, lambda a, b: a > b)), np.sort(x)[::-1])
    np.testing.assert_array_equal(device.host(compute.argsort(given)), np.argsort(x, kind="stable"))
    values, places = compute.topk(given, min(n, 5))
    np.testing.assert_array_equal(device.host(values), np.sort(x)[::-1][:5])
    np.testing.assert_array_equal(device.host(places), np.argsort(-x, kind="stable")[:5])


def test_what_is_refused():
    with pytest.raises(ValueError, match="of no items there is a result with an initial value only"):
        compute.reduce(np.zeros(0), OpKind.MAXIMUM)
    with pytest.raises(ValueError, match="k is from 0 to the number of items, 3, found 4"):
        compute.topk(np.zeros(3), 4)
    with pytest.raises(TypeError, match="turn its comparison round"):
        compute.sort(np.zeros(3), OpKind.LESS, descending=True)
    assert compute.reduce(np.zeros(0, np.int8)) == 0 and compute.sort(np.zeros(0)).size == 0


SHAPE = (3, 70, 4)  # segments of each length: shorter and longer than what one thread does alone


def arrays_of(device):
    """One array in several ways: by rows, by columns, and each second item of a larger one."""
    x = np.random.default_rng(0).permutation(840).reshape(SHAPE).astype(np.int32)
    yield x, device.array(x)
    if device.name == "cpu":
        spread = np.zeros((3, 140, 4), np.int32)
        spread[:, ::2] = x
        yield x, np.asfortranarray(x)
        yield x, spread[:, ::2]


@pytest.mark.parametrize("axis", (0, 1, 2, -1))
def test_along_an_axis(device, axis):
    if device.name == "emulator" and axis != 1:
        pytest.skip("the emulator is slow; it runs the axis in the middle")
    for x, given in arrays_of(device):

        def same(found, expected):
            np.testing.assert_array_equal(device.host(found), expected)

        same(compute.reduce(given, axis=axis), x.sum(axis))
        same(compute.reduce(given, OpKind.MAXIMUM, axis=axis), x.max(axis))
        same(compute.reduce(given, lambda a, b: min(a, b), np.int32(9), axis=axis), np.minimum(x.min(axis), 9))
        same(compute.scan(given, axis=axis), x.cumsum(axis))
        same(compute.scan(given, lambda a, b: max(a, b), axis=axis), np.maximum.accumulate(x, axis))
        exclusive = compute.scan(given, OpKind.PLUS, np.int64(1), inclusive=False, axis=axis)
        same(exclusive, x.cumsum(axis) - x + 1)
        same(compute.sort(given, axis=axis), np.sort(x, axis))
        same(compute.argsort(given, descending=True, axis=axis), np.argsort(-x, axis))
        values, places = compute.topk(given, 2, axis=axis)
        same(values, np.take(-np.sort(-x, axis), (0, 1), axis))
        same(places, np.take(np.argsort(-x, axis), (0, 1), axis))


def test_axes_that_are_not_there():
    x = np.zeros((2, 3))
    with pytest.raises(TileValueError, match="reduce: 'x' has 2 axes, found axis=2"):
        compute.reduce(x, axis=2)
    with pytest.raises(TileTypeError, match="sort: 'x': axis= is an integer or None, found 'rows'"):
        compute.sort(x, axis="rows")
    with pytest.raises(TileValueError, match="topk: k is from 0 to the number of items, 3, found 4"):
        compute.topk(x, 4, axis=1)
    with pytest.raises(TileTypeError, match="with a function the order is its own"):
        compute.sort(x, lambda a, b: a < b, axis=0)
    assert compute.reduce(np.zeros((2, 0)), axis=1).tolist() == [0, 0]
    with pytest.raises(TileValueError, match="of no items"):
        compute.reduce(np.zeros((2, 0)), OpKind.MAXIMUM, axis=1)


def test_over_all_items(device):
    """Without an axis one row is behind the other, whatever lies where."""
    for x, given in arrays_of(device):
        flat = x.ravel()

        def same(found, expected):
            np.testing.assert_array_equal(device.host(found), expected)

        same(compute.reduce(given, lambda a, b: b), flat[-1])
        same(compute.scan(given), flat.cumsum())
        same(compute.argsort(given), np.argsort(flat, kind="stable"))
        same(compute.topk(given, 3)[1], np.argsort(-flat, kind="stable")[:3])
        same(compute.sort(given, lambda a, b: a > b), -np.sort(-flat))
    for given in (np.arange(10)[::-1], np.arange(20)[::3], np.broadcast_to(np.array(3), (4,))):
        assert compute.reduce(given) == given.sum()
        assert compute.scan(given).tolist() == given.cumsum().tolist()
        assert compute.sort(given).tolist() == np.sort(given).tolist()


@pytest.mark.parametrize("axis", [None, 0])
def test_items_without_an_order(axis):
    x = np.array([1j, 2])
    for name, call in (
        ("sort", compute.sort),
        ("argsort", compute.argsort),
        ("topk", lambda x, axis: compute.topk(x, 1, axis=axis)),
    ):
        with pytest.raises(TileTypeError, match=f"{name}: 'x' is an array of numbers, found an array of complex128"):
            call(x, axis=axis)
