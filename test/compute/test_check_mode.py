"""Check mode: what data says of arrays, which a call does not compare with them otherwise."""

import numpy as np
import pytest

from tilewright import compute
from tilewright.compute import CountingIterator, OpKind, PermutationIterator, SortOrder, TransformIterator
from tilewright.errors import TileCheckError


@pytest.fixture(autouse=True)
def checked(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CHECK", "1")


def test_places_outside_of_an_array(device):
    x, out = device.array(np.arange(10)), device.array(np.zeros(1, np.int64))
    for places, told in [([3, 100, 2], r"\[100\]"), ([3, 1, -1], r"\[-1\]"), ([10**12, 1, 1], r"\[1000000000000\]")]:
        it = PermutationIterator(x, device.array(np.array(places)))
        with pytest.raises(
            TileCheckError, match=rf"^reduce_into: thread .* reads .*{told}, .* of its shape \(10,\)"
        ) as found:
            compute.reduce_into(it, out, OpKind.PLUS, 3, np.int64(0))
        assert not found.value.places and not any(finding.places for finding in found.value.findings)
    compute.reduce_into(PermutationIterator(x, device.array(np.array([9, 0, 9]))), out, OpKind.PLUS, 3, np.int64(0))
    assert device.host(out)[0] == 18


def test_what_an_operator_reads(device):
    table, out = device.array(np.arange(10)), device.array(np.zeros(5, np.int64))

    def looked_up(i):
        return table[2 * i]

    compute.unary_transform(CountingIterator(np.int64(0)), out, looked_up, 5)
    assert list(device.host(out)) == [0, 2, 4, 6, 8]
    with pytest.raises(
        TileCheckError, match=r"unary_transform: .*\[10\].*\n(.*\n)?  File .*, line \d+\n    return table"
    ):
        compute.unary_transform(CountingIterator(np.int64(1)), out, looked_up, 5)


def test_segments_outside_of_an_array(device):
    x, before = np.arange(10), np.full(12, -7)
    given, out = device.array(x), device.array(before)
    for start, end in [(0, 50), (-5, 5), (8, 11)]:
        segments = device.array(np.array([start])), device.array(np.array([end]))
        with pytest.raises(TileCheckError, match="segmented_sort: "):
            compute.segmented_sort(given, out[:10], None, None, 10, 1, *segments, SortOrder.ASCENDING)
        with pytest.raises(TileCheckError, match="segmented_reduce: "):
            compute.segmented_reduce(given, out[:1], *segments, OpKind.PLUS, np.int64(0), 1)
        with pytest.raises(TileCheckError, match="segmented_inclusive_scan: "):
            compute.segmented_inclusive_scan(given, out[:10], *segments, OpKind.PLUS, None, 1)
        assert list(device.host(out)[10:]) == [-7, -7]
    assert (device.host(given) == x).all()


def test_objects_are_checked_each_time(device):
    x, out = device.array(np.arange(10)), device.array(np.zeros(1, np.int64))
    right, wrong = (PermutationIterator(x, device.array(np.array(places))) for places in ([1, 2], [1, 10]))
    reducer = compute.make_reduce_into(right, out, OpKind.PLUS, np.int64(0))
    storage = device.array(np.zeros(reducer(None, right, out, OpKind.PLUS, 2, np.int64(0)), np.uint8))
    for _ in range(2):
        reducer(storage, right, out, OpKind.PLUS, 2, np.int64(0))
        assert device.host(out)[0] == 3
        with pytest.raises(TileCheckError, match="reduce_into: "):
            reducer(storage, wrong, out, OpKind.PLUS, 2, np.int64(0))


def test_right_calls_say_nothing(device):
    """Blocks that look back, sort and merge meet in memory, which is theirs."""
    n = 9001
    x = np.random.default_rng(0).integers(0, 1000, n)
    given, out, count = device.array(x), device.array(np.zeros(n, np.int64)), device.array(np.zeros(1, np.int64))
    compute.inclusive_scan(TransformIterator(given, lambda v: v + 1), out, OpKind.PLUS, None, n)
    assert (device.host(out) == np.cumsum(x + 1)).all()
    compute.select(given, out, count, lambda v: v % 2 == 0, n)
    assert device.host(count)[0] == (x % 2 == 0).sum()
    compute.merge_sort(given, None, out, None, lambda a, b: a < b, n)
    assert (device.host(out) == np.sort(x)).all()
    compute.radix_sort(given, out, None, None, SortOrder.ASCENDING, n)
    assert (device.host(out) == np.sort(x)).all()
