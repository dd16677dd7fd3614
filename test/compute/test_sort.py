"""Sorts, searches and histograms, held against NumPy."""

import importlib

import numpy as np
import pytest

from tilewright import compute
from tilewright.compute import DoubleBuffer, OpKind, SortOrder, count_bins, histogram, onesweep
from tilewright.compute.types import item_type

SIZES = [0, 1, 2, 33, 129, 2049, 5000]
DTYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64"]


def stably(keys, order):
    """Places of the keys in order; descending ones, too, keep the order of what is equal."""
    ascending = np.argsort(keys, kind="stable")
    if order is SortOrder.ASCENDING:
        return ascending
    return len(keys) - 1 - np.argsort(keys[::-1], kind="stable")[::-1]


def random_keys(n, dtype, seed=0):
    rng = np.random.default_rng(seed + n)
    if np.dtype(dtype).kind == "f":
        x = (rng.standard_normal(n) * 100).astype(dtype)
        x[: n // 4] = np.round(x[: n // 4])  # equal ones, and both zeros
        return x
    info = np.iinfo(dtype)
    return rng.integers(max(info.min, -300) if n > 1000 else info.min, info.max, n, dtype=dtype, endpoint=True)


@pytest.mark.parametrize(
    ("dtype", "order"),
    [*zip(DTYPES, [*SortOrder] * 6, strict=False), ("int32", SortOrder.DESCENDING), ("float32", SortOrder.ASCENDING)],
)
def test_radix_sort(device, dtype, order):
    n = 3000
    keys, values = random_keys(n, dtype), np.arange(n, dtype=np.int32)
    outs = device.array(np.zeros(n, dtype)), device.array(np.zeros(n, np.int32))
    compute.radix_sort(device.array(keys), outs[0], device.array(values), outs[1], order, n)
    places = stably(keys, order)
    np.testing.assert_array_equal(device.host(outs[0]), keys[places])
    np.testing.assert_array_equal(device.host(outs[1]), places)


@pytest.mark.parametrize("order", SortOrder)
@pytest.mark.parametrize("dtype", DTYPES)
def test_keys_behind_which_none_comes(device, dtype, order):
    """They are what a tile that ends early is filled with: still each value goes with its key. Some passes have fewer
    bits than others."""
    word = np.dtype(f"u{np.dtype(dtype).itemsize}")
    last = np.array([onesweep.last_bits(item_type(np.dtype(dtype)), order)], word)
    keys = random_keys(1001, dtype)
    keys[::2] = last.view(dtype)
    values, n, bits = np.arange(len(keys), dtype=np.int32), len(keys), keys.view(word)
    if keys.dtype.kind == "f":  # by bits: NumPy has one place for all NaNs
        sign = word.type(1 << (8 * word.itemsize - 1))
        bits = np.where(keys == 0, word.type(0), bits)
        bits = np.where(bits & sign, ~bits, bits ^ sign)
        places = stably(bits, order)
    else:
        places = stably(keys, order)
    assert keys.view(word)[places[-1]] == last[0] != keys.view(word)[places[0]]
    for end in (None, 8 * word.itemsize - 3):
        outs = device.array(np.zeros(n, dtype)), device.array(np.full(n, -1, np.int32))
        compute.radix_sort(device.array(keys), outs[0], device.array(values), outs[1], order, n, None, end)
        assert sorted(device.host(outs[1])) == list(values)
        np.testing.assert_array_equal(device.host(outs[0]).view(word), keys[device.host(outs[1])].view(word))
        if end is None:
            np.testing.assert_array_equal(device.host(outs[1]), places)


@pytest.mark.parametrize("n", SIZES)
def test_sizes_and_bits(device, n):
    keys = random_keys(n, "uint32")
    given, out = device.array(keys), device.array(np.zeros(n, np.uint32))
    for begin, end in ((None, None), (4, 21), (0, 0), (8, 16)):
        compute.radix_sort(given, out, None, None, SortOrder.ASCENDING, n, begin, end)
        low, high = begin or 0, 32 if end is None else end
        part = (keys >> low) & np.uint32((1 << (high - low)) - 1)
        np.testing.assert_array_equal(device.host(out), keys[np.argsort(part, kind="stable")])
    np.testing.assert_array_equal(device.host(given), keys)


@pytest.mark.parametrize("bits", [(0, 32), (0, 24)])
def test_double_buffers(device, bits):
    keys, values = random_keys(3000, "int32") & 0xFFFFFF, np.arange(3000) + 0.5
    buffers = [DoubleBuffer(device.array(x), device.array(np.zeros_like(x))) for x in (keys, values)]
    compute.radix_sort(buffers[0], None, buffers[1], None, SortOrder.ASCENDING, 3000, *bits)
    np.testing.assert_array_equal(device.host(buffers[0].current()), np.sort(keys))
    np.testing.assert_array_equal(device.host(buffers[1].current()), np.argsort(keys, kind="stable") + 0.5)
    assert buffers[0].selector == buffers[1].selector == bits[1] // 8 % 2


@pytest.mark.parametrize(
    ("dtype", "order"), [*zip(["uint8", "int16", "float32", "uint32", "int64"], [*SortOrder] * 3, strict=False)]
)
def test_long_digits_on_the_cpu(monkeypatch, dtype, order):
    """Of up to 11 bits, as blocks with many items have them: fewer passes, which end in the other buffer or not."""
    monkeypatch.setattr(importlib.import_module("tilewright.compute.radix_sort"), "_MANY", 0)
    keys, values = random_keys(70_000, dtype), np.arange(70_000, dtype=np.int32)
    bits = 8 * keys.itemsize
    for begin, end in ((None, None), (3, bits), (0, bits - 5)):
        low, high = begin or 0, end or bits
        if keys.dtype.kind != "f":
            word = np.dtype(f"u{keys.itemsize}")
            turned = keys.view(word) ^ word.type((keys.dtype.kind == "i") << (bits - 1))
            part = turned >> word.type(low) & word.type((1 << (high - low)) - 1)
        elif (low, high) == (0, bits):
            part = keys
        else:
            continue
        places = stably(part, order)
        outs = np.zeros_like(keys), np.zeros_like(values)
        compute.radix_sort(keys, outs[0], values, outs[1], order, len(keys), begin, end)
        np.testing.assert_array_equal(outs[0], keys[places])
        np.testing.assert_array_equal(outs[1], places)
        buffers = [DoubleBuffer(x.copy(), np.zeros_like(x)) for x in (keys, values)]
        compute.radix_sort(buffers[0], None, buffers[1], None, order, len(keys), begin, end)
        np.testing.assert_array_equal(buffers[0].current(), keys[places])
        np.testing.assert_array_equal(buffers[1].current(), places)
        assert buffers[0].selector == -(-(high - low) // 11) % 2


def test_digits_are_long_where_blocks_have_many_items():
    keys = np.arange(1 << 17, dtype=np.uint32)[::-1].copy()
    sorter = compute.make_radix_sort(keys, keys.copy(), None, None, SortOrder.ASCENDING)
    given = {"begin_bit": None, "end_bit": None}
    assert [mask for _, mask in sorter._digits(given, 1 << 17)] == [255] * 4
    assert [mask for _, mask in sorter._digits(given, 1 << 23)] == [2047, 2047, 1023]
    assert [mask for _, mask in sorter._digits({"begin_bit": 0, "end_bit": 16}, 1 << 23)] == [255] * 2


def test_stages_of_radix_sort(device):
    keys = random_keys(3000, "int16")
    given, out = device.array(keys), device.array(np.zeros_like(keys))
    sorter = compute.make_radix_sort(given, out, None, None, SortOrder.DESCENDING)
    storage = device.array(np.zeros(sorter(None, given, out, None, None, 3000), np.uint8))
    sorter(storage, given, out, None, None, 3000)
    np.testing.assert_array_equal(device.host(out), np.sort(keys)[::-1])
    with pytest.raises(TypeError, match="bits are 0 <= begin_bit <= end_bit <= 16, found 3 and 17"):
        sorter(storage, given, out, None, None, 3000, 3, 17)
    with pytest.raises(TypeError, match="the object was made for arrays"):
        sorter(storage, DoubleBuffer(given, out), None, None, None, 3000)


@pytest.mark.parametrize("n", SIZES)
def test_merge_sort(device, n):
    keys, values = random_keys(n, "int32") % 100, np.arange(n) + 0.25
    outs = device.array(np.zeros(n, np.int32)), device.array(np.zeros(n))
    compute.merge_sort(device.array(keys), device.array(values), *outs, lambda a, b: a < b, n)
    places = np.argsort(keys, kind="stable")
    np.testing.assert_array_equal(device.host(outs[0]), keys[places])
    np.testing.assert_array_equal(device.host(outs[1]), values[places])
    compute.merge_sort(outs[0], None, outs[0], None, OpKind.GREATER, n)  # in place
    np.testing.assert_array_equal(device.host(outs[0]), np.sort(keys)[::-1])


@compute.gpu_struct
class Person:
    age: np.int16
    height: np.float64


def test_merge_sort_of_structs(device):
    people = np.zeros(700, Person.dtype)
    people["age"], people["height"] = np.random.default_rng(0).integers(0, 50, 700), np.arange(700)
    given, out = device.array(people), device.array(np.zeros(700, Person.dtype))
    compute.merge_sort(given, None, out, None, lambda a, b: a.age > b.age, 700)
    np.testing.assert_array_equal(device.host(out), people[stably(people["age"], SortOrder.DESCENDING)])


@compute.gpu_struct
class Wide:
    key: np.int32
    place: np.int64
    rest: np.float64


@pytest.mark.parametrize("n", [1536, 1537, 2047, 2561])
def test_merge_sort_of_structs_of_which_a_block_sorts_few(device, n):
    rows = np.zeros(n, Wide.dtype)
    rows["key"], rows["place"] = np.random.default_rng(n).integers(0, 50, n), np.arange(n)
    out = device.array(np.zeros(n, Wide.dtype))
    compute.merge_sort(device.array(rows), None, out, None, lambda a, b: a.key < b.key, n)
    np.testing.assert_array_equal(device.host(out), rows[np.argsort(rows["key"], kind="stable")])


def test_values_of_a_packed_dtype(device):
    packed = np.dtype([("a", "i1"), ("b", "f8")])
    keys, values = random_keys(700, "int16"), np.zeros(700, packed)
    values["a"], values["b"] = np.arange(700) % 100, np.arange(700)
    outs = device.array(np.zeros(700, np.int16)), device.array(np.zeros(700, packed))
    given = device.array(keys), device.array(values)
    expected = values[np.argsort(keys, kind="stable")]
    compute.merge_sort(*given, *outs, OpKind.LESS, 700)
    np.testing.assert_array_equal(device.host(outs[1]), expected)
    compute.radix_sort(given[0], outs[0], given[1], outs[1], SortOrder.ASCENDING, 700)
    np.testing.assert_array_equal(device.host(outs[1]), expected)


def segments(seed=0):
    """Starts and ends with gaps, of segments of all lengths."""
    lengths = np.array([0, 1, 5, 32, 33, 64, 65, 300, 2100, 0, 7, 129])
    starts = np.cumsum(lengths + 3) - lengths
    return starts, starts + lengths, int((lengths + 3).sum())


@pytest.mark.parametrize(
    ("dtype", "order"),
    [("uint8", SortOrder.DESCENDING), ("int32", SortOrder.ASCENDING), ("float64", SortOrder.DESCENDING)],
)
def test_segmented_sort(device, dtype, order):
    starts, ends, n = segments()
    keys, values = random_keys(n, dtype), np.arange(n, dtype=np.int32)
    outs = device.array(np.zeros(n, dtype)), device.array(np.zeros(n, np.int32))
    bounds = device.array(starts), device.array(ends.astype(np.int32))
    compute.segmented_sort(
        device.array(keys), outs[0], device.array(values), outs[1], n, len(starts), *bounds, order=order
    )
    for first, last in zip(starts, ends, strict=True):
        places = stably(keys[first:last], order)
        np.testing.assert_array_equal(device.host(outs[0])[first:last], keys[first:last][places])
        np.testing.assert_array_equal(device.host(outs[1])[first:last], values[first:last][places])


def affine(p, q):
    return (p[0] * q[0]) % 65537, (p[1] * q[0] + q[1]) % 65537


def test_segmented_reduce(device):
    import functools

    starts, ends, n = segments()
    x = np.random.default_rng(1).integers(0, 100, n)
    bounds = device.array(starts), device.array(ends)
    out = device.array(np.zeros(len(starts), np.int64))
    compute.segmented_reduce(device.array(x), out, *bounds, OpKind.PLUS, np.int64(3), len(starts))
    pairs = list(zip(starts, ends, strict=True))
    np.testing.assert_array_equal(device.host(out), [x[a:b].sum() + 3 for a, b in pairs])
    struct = np.dtype([("f0", "i8"), ("f1", "i8")])
    y, out = np.zeros(n, struct), device.array(np.zeros(len(starts), struct))
    y["f0"], y["f1"] = x + 1, x
    compute.segmented_reduce(device.array(y), out, *bounds, affine, np.array((2, 5), struct), len(starts))
    rows = [tuple(map(int, row)) for row in y]
    assert device.host(out).tolist() == [functools.reduce(affine, rows[a:b], (2, 5)) for a, b in pairs]


@pytest.mark.parametrize("n", [0, 1, 1000])
def test_bounds(device, n):
    data, values = np.sort(random_keys(n, "int32") % 50), np.arange(-60, 60, dtype=np.int64)
    out = device.array(np.zeros(120, np.uint64))
    for side, search in (("left", compute.lower_bound), ("right", compute.upper_bound)):
        search(device.array(data), device.array(values), out, n, 120)
        np.testing.assert_array_equal(device.host(out), np.searchsorted(data, values, side))
    down = data[::-1].copy()
    compute.lower_bound(device.array(down), device.array(values), out, n, 120, OpKind.GREATER)
    np.testing.assert_array_equal(device.host(out), n - np.searchsorted(data, values, "right"))
    made = compute.make_lower_bound(device.array(data), device.array(values), out)
    made(device.array(data), device.array(values), out, None, n, 120)
    np.testing.assert_array_equal(device.host(out), np.searchsorted(data, values))


@pytest.mark.parametrize(
    ("dtype", "bins"), [("uint8", 256), ("int32", 7), ("int32", 5000), ("float32", 7), ("float64", 1)]
)
def test_histogram(device, dtype, bins):
    x = np.random.default_rng(bins).integers(0, 250, 4000).astype(dtype)
    out = device.array(np.full(bins, 9, np.int32))
    level = np.float64 if bins == 7 else np.dtype(dtype).type
    compute.histogram_even(device.array(x), out, bins + 1, level(10), level(210), 4000)
    if np.dtype(level).kind == "f":
        expected = np.histogram(x[x < 210], bins, (10, 210))[0]
    else:
        inside = x[(x >= 10) & (x < 210)].astype(np.int64)
        expected = np.bincount((inside - 10) * bins // 200, minlength=bins)
    np.testing.assert_array_equal(device.host(out), expected)


def test_histogram_object(device):
    x, out = device.array(np.arange(10.0)), device.array(np.zeros(5, np.int32))
    levels = [np.array([6], np.int32), np.array([0.0]), np.array([10.0])]
    made = compute.make_histogram_even(x, out, *levels, 10)
    storage = device.array(np.zeros(made(None, x, out, *levels, 10), np.uint8))
    made(storage, x, out, *levels, 10)
    assert device.host(out).tolist() == [2] * 5
    with pytest.raises(ValueError, match="'d_histogram' has 4 items, 5 were asked for"):
        made(storage, x, out[:4], *levels, 10)
    with pytest.raises(ValueError, match="the lower level is below the upper one"):
        made(storage, x, out, levels[0], levels[2], levels[1], 10)


@pytest.mark.parametrize(
    "bins, low, high",
    [(7, -0.3, 0.4), (1000, 1e-3, 1.1e-3), (3, 0.0, 5e-324), (5, -1e300, 1e300), (256, 0.0, 1.0), (7, -0.6, 3.4)],
)
def test_histogram_at_the_edges(device, bins, low, high):
    """Samples at the levels between bins, and beside them, are in the bin that the division of float64 says."""
    steps = low + np.arange(bins + 1) * (high / bins - low / bins)
    x = np.concatenate([steps, np.nextafter(steps, np.inf), np.nextafter(steps, -np.inf), [np.nan, np.inf, -np.inf]])
    out = device.array(np.zeros(bins, np.int32))
    compute.histogram_even(device.array(x), out, bins + 1, np.float64(low), np.float64(high), len(x))
    inside = x[(x >= low) & (x < high)]
    places = np.minimum(((inside - low) * bins / (np.float64(high) - low)).astype(np.int64), bins - 1)
    np.testing.assert_array_equal(device.host(out), np.bincount(places, minlength=bins))


def test_what_is_near_to_another_bin():
    """Nothing, where the place of a sample is exact, as with quotients of few bits."""
    assert count_bins.inverse(256, np.float64(1)) == (1, 0) and count_bins.inverse(7, np.float64(3))[1] > 0
    assert count_bins.scale(256, 0.0, 1.0) == (256, 0) and count_bins.scale(48, 0.0, 3.0) == (16, 0)
    assert count_bins.scale(7, 0.0, 1.0) == (7, 0) and count_bins.scale(240, 0.0, 96.0) == (2.5, 0)
    assert 0 < count_bins.scale(7, 0.0, 3.0)[1] < 1e-4 and 0 < count_bins.scale(256, 0.25, 1.25)[1] < 1e-3
    assert count_bins.scale(5, -3e38, 3e38) == (0, 1) and count_bins.scale(1 << 19, 0.0, 1.0) == (0, 1)


def test_quotients_without_a_division(device):
    """Of float32, times a number of bins: the float64 nearest to the quotient, whatever the size of either."""
    rng, n = np.random.default_rng(3), 4000
    b = (rng.uniform(1, 2, n) * 2.0 ** rng.integers(-149, 127, n)).astype(np.float32).astype(np.float64)
    a = (rng.uniform(-2, 2, n) * 2.0 ** rng.integers(-149, 127, n)).astype(np.float32).astype(np.float64)
    a[: n // 2] = b[: n // 2] * rng.integers(0, 99, n // 2) / 99  # some are near to a bin
    a *= rng.integers(1, 1 << 18, n)
    b[-3:], a[-3:] = [2.0**-149, np.float32(3.4e38), np.inf], [2.0**127, 2.0**-149, 3.0]
    out = device.array(np.zeros(n))
    compute.binary_transform(device.array(a), device.array(b), out, lambda a, b: histogram._quotient(a, b, 1 / b), n)
    np.testing.assert_array_equal(device.host(out), a / b)


def test_quotients_of_integers_without_a_division(device):
    rng, n = np.random.default_rng(4), 3000
    b = rng.integers(1, 2.0 ** rng.integers(1, 62, n))
    most = np.minimum(np.iinfo(np.int64).max // b, 1 << 31)
    a = rng.integers(0, most, n) * b  # and what is one less, one more, and anything
    a[::4], a[1::4] = np.maximum(a[::4] - 1, 0), a[1::4] + 1
    a[2::4] += rng.integers(0, b[2::4])
    out = device.array(np.zeros(n, np.int64))
    compute.binary_transform(device.array(a), device.array(b), out, lambda a, b: histogram._floored(a, b, 1 / b), n)
    np.testing.assert_array_equal(device.host(out), a // b)


def test_histogram_up_to_infinity(device):
    x, out = np.array([0, 1, 3e38, np.inf, np.nan, -1], np.float32), device.array(np.zeros(3, np.int32))
    compute.histogram_even(device.array(x), out, 4, np.float32(0), np.float32(np.inf), 6)
    assert device.host(out).tolist() == [3, 0, 0]


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize(
    "bins, low, high",
    [
        *((7, -0.3, 0.4), (1000, 1e-3, 1.1e-3), (3, 0.0, 1e-45), (5, -3e38, 3e38), (256, 0.0, 1.0), (7, 0.0, 1.0)),
        *((16, 0.0, 256.0), (240, 0.0, 96.0), (100, 0.0, 3.0), (8000, 0.0, 7.0), (300000, -1.0, 2.5)),
    ],
)
def test_histogram_of_singles_at_the_edges(device, dtype, bins, low, high):
    """Levels of float32: without float64 but for the samples that are near to another bin; in whole tiles, too."""
    low, high = np.float32(low), np.float32(high)
    some = np.arange(0, bins + 1, max(1, bins // 999)) / np.float64(bins)
    with np.errstate(over="ignore"):
        steps = (low + some * (np.float64(high) - low)).astype(dtype)
    x = np.concatenate([steps, np.nextafter(steps, np.inf), np.nextafter(steps, -np.inf), [np.nan, np.inf, -np.inf]])
    rng, most, least = np.random.default_rng(1), np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal
    x = np.concatenate([x, rng.uniform(max(low, -6e4), min(high, 6e4), 5000), [most, -most, least, -least, -0.0]])
    x = rng.permutation(np.resize(x.astype(dtype), 35000))
    out = device.array(np.zeros(bins, np.int32))
    compute.histogram_even(device.array(x), out, bins + 1, low, high, len(x))
    inside = x[(x >= low) & (x < high)].astype(np.float64)
    places = np.minimum(((inside - low) * bins / (np.float64(high) - low)).astype(np.int64), bins - 1)
    np.testing.assert_array_equal(device.host(out), np.bincount(places, minlength=bins))


@pytest.mark.parametrize("span", [(1 << 60) + 3, 3000])
def test_histogram_of_whole_tiles_of_integers(device, span):
    """Where no multiplication takes the place of the division, whole tiles are divided, too."""
    assert (count_bins.scaled(5, span) == (0, 0)) == (span > 3000)
    x = np.random.default_rng(2).integers(-span // 10, span * 11 // 10, 9001)
    out = device.array(np.zeros(5, np.int32))
    compute.histogram_even(device.array(x), out, 6, np.int64(0), np.int64(span), len(x))
    inside = x[(x >= 0) & (x < span)]
    np.testing.assert_array_equal(device.host(out), np.bincount(inside * 5 // span, minlength=5))


@pytest.mark.parametrize("kind", ["any", "equal", "sorted", "few"])
def test_radix_sorts_of_many_tiles(device, kind):
    """Tiles of a GPU's blocks, whole ones and the last one; values show that equal keys keep their order."""
    rng, n = np.random.default_rng(5), 20011
    given = {
        "any": rng.integers(0, 1 << 32, n),
        "equal": np.full(n, 0xFFFFFFFF),
        "sorted": np.arange(n),
        "few": rng.integers(0, 3, n) << 15,
    }[kind].astype(np.uint32)
    keys, values = device.array(given), device.array(np.arange(n, dtype=np.int32))
    outs = device.array(np.zeros(n, np.uint32)), device.array(np.zeros(n, np.int32))
    for order in SortOrder:
        compute.radix_sort(keys, outs[0], values, outs[1], order, n)
        expected = np.argsort(given if order is SortOrder.ASCENDING else ~given, kind="stable")
        np.testing.assert_array_equal(device.host(outs[1]), expected)
        np.testing.assert_array_equal(device.host(outs[0]), given[expected])


@pytest.mark.parametrize("count", [3, 400])
def test_folds_of_short_and_long_segments(device, count):
    """A few lanes fold a short one, a block a long one, in the order of the items: maps x -> a x + b do not commute."""
    rng = np.random.default_rng(count)
    lengths = rng.integers(0, 9, count)
    lengths[:3] = (9001, 0, 3000)
    ends = np.cumsum(lengths)
    dtype = np.dtype([("a", "u4"), ("b", "u4")])
    maps = rng.integers(0, 1 << 30, (int(ends[-1]), 2), np.uint32)
    out = device.array(np.zeros(count, dtype))
    compute.segmented_reduce(
        device.array(maps.view(dtype).reshape(-1)),
        out,
        device.array(ends - lengths),
        device.array(ends),
        lambda f, g: (f.a * g.a, f.b * g.a + g.b),
        np.array([(1, 7)], dtype),
        count,
    )
    for last, length, found in zip(ends.tolist(), lengths.tolist(), device.host(out).tolist(), strict=True):
        a, b = 1, 7
        for f, g in maps[last - length : last].tolist():
            a, b = a * f % (1 << 32), (b * f + g) % (1 << 32)
        assert found == (a, b)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "float32"])
@pytest.mark.parametrize("bins", [7, 250, 3000, 60000, 70000])
def test_histograms_of_many_bins(device, dtype, bins):
    """Counters of lanes, of bins, of 16 bits that fill up, and none; samples lie outside of the levels, too."""
    n = 70001 if (bins, dtype) == (60000, "int32") else 3001
    low, high = {"uint8": (3, 200), "int8": (-100, 90), "float32": (-0.5, 0.75)}.get(dtype, (-20000, 30000))
    samples = np.random.default_rng(bins).uniform(low * 1.1, high * 1.1, n).astype(dtype)
    samples[: n - 800] = samples[n - 800]  # most of them are one value
    level = np.float64 if dtype == "float32" else np.int32
    counts = device.array(np.zeros(bins, np.int32))
    compute.histogram_even(device.array(samples), counts, bins + 1, level(low), level(high), n)
    inside = samples[(samples >= low) & (samples < high)].astype(level)
    places = (inside - level(low)) * bins / (high - low) if dtype == "float32" else None
    found = [(int(x) - low) * bins // (high - low) for x in inside] if places is None else places.astype(np.int64)
    np.testing.assert_array_equal(device.host(counts), np.bincount(found, minlength=bins))


@pytest.mark.parametrize("dtype", ["int8", "int32", "float64"])
@pytest.mark.parametrize("n", [4352, 30011])
def test_merges_of_many_tiles(device, dtype, n):
    """Tiles of a GPU's blocks, by twos and alone; values show that equal keys keep their order."""
    given = np.random.default_rng(n).integers(-90, 90, n).astype(dtype)
    keys, values = device.array(given), device.array(np.arange(n, dtype=np.int32))
    expected = np.argsort(given, kind="stable")
    compute.merge_sort(keys, values, keys, values, lambda a, b: a < b, n)
    np.testing.assert_array_equal(device.host(values), expected)
    np.testing.assert_array_equal(device.host(keys), given[expected])


@pytest.mark.parametrize("has_values", [False, True])
def test_sorts_of_short_and_long_segments(device, has_values):
    """A warp sorts a short one, a block a longer one, and the longest go by digits; also where they lie in place."""
    lengths = np.array([3, 17000, 256, 257, 0, 4000, 1, 12500])
    ends, n = np.cumsum(lengths), int(lengths.sum())
    keys = random_keys(n, "float32")
    keys[::7], keys[3::7] = 0.0, -0.0
    buffers = [DoubleBuffer(device.array(keys), device.array(np.zeros_like(keys))), None]
    if has_values:
        buffers[1] = DoubleBuffer(device.array(np.arange(n)), device.array(np.zeros(n, np.int64)))
    bounds = device.array(ends - lengths), device.array(ends)
    compute.segmented_sort(buffers[0], None, buffers[1], None, n, len(ends), *bounds, order=SortOrder.ASCENDING)
    for first, last in zip(ends - lengths, ends, strict=True):
        places = first + np.argsort(keys[first:last], kind="stable")
        found = device.host(buffers[0].current())[first:last]
        np.testing.assert_array_equal(found.view(np.int32), keys[places].view(np.int32))
        if has_values:
            np.testing.assert_array_equal(device.host(buffers[1].current())[first:last], places)


def test_radix_sorts_in_several_launches(device, monkeypatch):
    """Counts of 30 bits are of so many items; more take several launches a pass."""
    from tilewright.compute import onesweep

    monkeypatch.setattr(onesweep, "_MOST", 17000)
    compute.clear_all_caches()
    given, n = random_keys(40001, "int16"), 40001
    keys, values = device.array(given), device.array(np.arange(n, dtype=np.int32))
    outs = device.array(np.zeros(n, np.int16)), device.array(np.zeros(n, np.int32))
    compute.radix_sort(keys, outs[0], values, outs[1], SortOrder.ASCENDING, n)
    np.testing.assert_array_equal(device.host(outs[1]), np.argsort(given, kind="stable"))
