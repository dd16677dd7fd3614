"""Iterators, alone and in each other, held against NumPy."""

import numpy as np
import pytest

from tilewright import compute, dtype
from tilewright.compute import (
    CacheModifiedInputIterator,
    ConstantIterator,
    CountingIterator,
    DiscardIterator,
    OpKind,
    PermutationIterator,
    ReverseIterator,
    ShuffleIterator,
    TransformIterator,
    TransformOutputIterator,
    ZipIterator,
)

N = 300


def items(device, it, dtype=np.int64, n=N):
    """The items of an iterator, by a transform."""
    out = device.array(np.zeros(n, dtype))
    compute.unary_transform(it, out, lambda x: x, n)
    return device.host(out)


def test_inputs(device):
    x = np.random.default_rng(0).integers(-50, 50, N)
    d, places = device.array(x), device.array(np.arange(N)[::-1].astype(np.int32))
    factor = 3
    cases = [
        (CountingIterator(np.int32(5)), np.arange(5, 5 + N)),
        (CountingIterator(np.uint8(250)), np.arange(250, 250 + N).astype(np.uint8)),
        (CountingIterator(np.int64(2**40)) + 7, np.arange(2**40 + 7, 2**40 + 7 + N)),
        (ConstantIterator(np.int16(-4)), np.full(N, -4)),
        (TransformIterator(d, lambda v: factor * v + 1), 3 * x + 1),
        (PermutationIterator(d, places), x[::-1]),
        (ReverseIterator(d), x[::-1]),
        (ReverseIterator(CountingIterator(np.int64(0))), -np.arange(N)),
        (CacheModifiedInputIterator(d, "stream"), x),
        (DiscardIterator(d), np.zeros(N)),
        (TransformIterator(d, lambda v: 10 * np.sin(v)), (10 * np.sin(x)).astype(np.int64)),
        (TransformIterator(ZipIterator(d, CountingIterator(np.int64(0))), lambda p: p[0] * p[1]), x * np.arange(N)),
        (PermutationIterator(TransformIterator(d, OpKind.NEGATE), ReverseIterator(places)), -x),
        (ReverseIterator(PermutationIterator(d, places)) + (1 - N), x),
    ]
    for it, expected in cases:
        np.testing.assert_array_equal(items(device, it), expected)


def test_outputs(device):
    x = np.random.default_rng(1).integers(-50, 50, N)
    d, places = device.array(x), device.array(np.roll(np.arange(N), 7))

    def stored(make):
        a, b = device.array(np.zeros(N, np.int64)), device.array(np.zeros(N, np.float32))
        compute.unary_transform(d, make(a, b), lambda v: v, N)
        return device.host(a), device.host(b)

    np.testing.assert_array_equal(stored(lambda a, b: ReverseIterator(a))[0], x[::-1])
    np.testing.assert_array_equal(stored(lambda a, b: PermutationIterator(a, places))[0][np.roll(np.arange(N), 7)], x)
    np.testing.assert_array_equal(stored(lambda a, b: TransformOutputIterator(a, lambda v: v * v))[0], x * x)
    assert not stored(lambda a, b: DiscardIterator(a))[0].any()
    both, halves = device.array(np.zeros(N, np.int64)), device.array(np.zeros(N, np.float32))
    compute.unary_transform(d, ZipIterator(both, halves), lambda v: (v + 1, v / 2), N)
    np.testing.assert_array_equal(device.host(both), x + 1)
    np.testing.assert_array_equal(device.host(halves), (x / 2).astype(np.float32))


@pytest.mark.parametrize("n", [1, 2, 5, 64, 1000])
def test_shuffles(device, n):
    found = [tuple(items(device, ShuffleIterator(n, seed), n=n)) for seed in (0, 0, 1, 2)]
    assert found[0] == found[1] and all(sorted(f) == list(range(n)) for f in found)
    assert n < 64 or len(set(found)) == 3


@compute.gpu_struct
class Point:
    x: np.int32
    y: np.float32


@compute.gpu_struct
class Place:
    at: Point
    n: np.int8


@pytest.mark.spec("C-007")
def test_nested_structs(device):
    points = np.zeros(N, Point.dtype)
    points["x"], points["y"] = np.arange(N), 0.5
    both = ZipIterator(device.array(points), ConstantIterator(np.int8(1)))
    out = device.array(np.zeros(1, Place.dtype))

    def add(a, b):
        return Place(Point(a.at.x + b.at.x, a.at.y + b.at.y), (a[1] + b.n) % 100)

    compute.reduce_into(both, out, add, N, Place(Point(0, 0), 0))
    found = device.host(out)[0]
    assert (found["at"]["x"], found["at"]["y"], found["n"]) == (N * (N - 1) // 2, N / 2, N % 100)
    assert Place({"at": (1, 2.5), "n": 3}) == Place((Point(1, 2.5), 3)) == Place(Point(1, 2.5), 3)
    anything = np.zeros(N, np.dtype([("a", "i1"), ("b", "f8")]))  # packed
    anything["b"] = np.arange(N)
    packed = device.array(anything)
    compute.unary_transform(packed, packed, lambda p: (p.a + 1, p["b"] * 2), N)
    np.testing.assert_array_equal(device.host(packed)["b"], 2 * np.arange(N))


def test_what_is_refused():
    x = np.zeros(3)
    with pytest.raises(TypeError, match="'d_in' is a TransformOutputIterator, which is only written"):
        compute.unary_transform(TransformOutputIterator(x, OpKind.NEGATE), x, lambda v: v, 3)
    with pytest.raises(TypeError, match="'d_out': a CountingIterator is read, not written"):
        compute.unary_transform(x, CountingIterator(np.int32(0)), lambda v: v, 3)
    with pytest.raises(TypeError, match="indices of a PermutationIterator are integers"):
        PermutationIterator(x, x)
    with pytest.raises(ValueError, match="num_items must be > 0"):
        ShuffleIterator(0)
    with pytest.raises(ValueError, match="the modifier is"):
        CacheModifiedInputIterator(x, "none")
    with pytest.raises(TypeError, match="starts at a number"):
        CountingIterator(np.bool_(True))


@pytest.mark.parametrize("n", [0, 1, 129, 5000])
def test_binary_transform(device, n):
    x, y = np.random.default_rng(n).integers(1, 100, (2, n)).astype(np.float32)
    out = device.array(np.zeros(n, np.float64))
    made = compute.make_binary_transform(device.array(x), device.array(y), out, OpKind.DIVIDES)
    made(device.array(x), device.array(y), out, OpKind.DIVIDES, n)
    np.testing.assert_array_equal(device.host(out), (x / y).astype(np.float64))


def test_arrays_of_other_libraries():
    torch = pytest.importorskip("torch", reason="torch is too large for what every test run installs")
    x, out = torch.arange(100), torch.zeros(1, dtype=torch.int64)
    compute.reduce_into(x, out, OpKind.PLUS, 100, np.int64(0))
    assert out.item() == 4950
    halves, total = torch.full((64,), 0.5, dtype=torch.bfloat16), torch.zeros(1)
    compute.reduce_into(halves, total, OpKind.PLUS, 64, np.float32(0))
    assert total.item() == 32


def items_of(it, kind, n=3):
    out = np.zeros(n, kind)
    compute.unary_transform(it, out, OpKind.IDENTITY, n)
    return out.tolist()


def test_types_that_are_said():
    """By value_type=, or by the function's annotations, also as text; kernels for another type are other ones."""
    x = np.array([300, -1, 2], np.int32)

    def plain(v):
        return v * 2

    def narrow(v) -> np.int8:
        return v * 2

    def deferred(v: "np.int32") -> "np.float64":
        return v * 2

    def unknown(v: "Nothing") -> "Nothing":  # noqa: F821
        return v * 2

    it = TransformIterator
    assert items_of(it(x, plain), np.int64) == items_of(it(x, unknown), np.int64) == [600, -2, 4]
    assert (
        items_of(it(x, plain, np.uint8), np.int64) == items_of(it(x, plain, value_type=np.uint8), int) == [88, 254, 4]
    )
    assert items_of(it(x, narrow), np.int64) == [88, -2, 4] and it(x, deferred).value_type == dtype.float64
    assert it(x, plain).kind != it(x, plain, np.uint8).kind != it(x, plain, np.int8).kind


def test_types_that_are_written():
    """What is written is converted to the type that the function says it takes, before it is called."""

    def halved(v):
        return v / 2

    def of_bytes(v: np.uint8) -> np.float64:
        return v / 2

    x = np.array([3.9, 200.5, 2.5])

    def written(op, *declared):
        out = np.zeros(3)
        compute.unary_transform(x, TransformOutputIterator(out, op, *declared), OpKind.IDENTITY, 3)
        return out.tolist()

    assert written(halved) == [1.95, 100.25, 1.25]
    assert written(of_bytes) == written(halved, np.uint8) == [1.5, 100.0, 1.0]
    assert written(halved, np.int32) == [1.5, 100.0, 1.0]


def test_forms_of_cuda_compute():
    """Names of arguments, a list for a ZipIterator, n + it and it.advance(n)."""
    x = np.arange(5, dtype=np.int32)
    it = TransformIterator(underlying=x, transform_op=lambda v: v + 1)
    assert (
        items_of(2 + it, np.int64) == items_of(it.advance(2), np.int64) == items_of(1 + (it + 1), np.int64) == [3, 4, 5]
    )
    pairs = ZipIterator([x, it])
    assert items_of(TransformIterator(pairs, lambda p: p[0] * p[1]), np.int64) == [0, 2, 6]
    assert items_of(ReverseIterator(underlying=x), np.int64) == [4, 3, 2]
    assert DiscardIterator(reference_iterator=it).value_type == dtype.int64
    for wrong in (1.5, True, "1"):
        with pytest.raises(TypeError):
            it + 1 + wrong


@pytest.mark.parametrize("kind", ["int8", "int32", "int64", "uint8", "uint64", "float32"])
def test_division_is_that_of_cpp(device, kind):
    """Toward zero, with a remainder of the dividend's sign, and with all bits of 64."""
    large = 2**62 + 1 if kind.endswith("64") else 101
    a = np.array([7, 7, 100, large] if kind[0] == "u" else [-7, 7, -7, large], kind)
    b = np.array([2, 9, 7, 3] if kind[0] == "u" else [2, -2, -2, 3], kind)
    x, y = (device.array(v) for v in (a, b))
    for op, python in ((OpKind.DIVIDES, lambda p, q: abs(p) // abs(q)), (OpKind.MODULUS, lambda p, q: abs(p) % abs(q))):
        out = device.array(np.zeros(4, kind))
        compute.binary_transform(x, y, out, op, 4)
        if kind == "float32":
            expected = a / b if op is OpKind.DIVIDES else a % b
        else:
            signs = np.sign(a.astype(object)) * (np.sign(b.astype(object)) if op is OpKind.DIVIDES else 1)
            expected = [int(s * python(int(p), int(q))) for s, p, q in zip(signs, a, b, strict=True)]
        np.testing.assert_array_equal(device.host(out), np.array(expected, kind))
