"""Functions of arrays that return their results."""

import numpy as np
import pytest

from tilewright import compute
from tilewright.compute import OpKind


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
