"""reduce_into, and the three stages that all algorithms have."""

import functools
import importlib

import ml_dtypes
import numpy as np
import pytest

from tilewright import compute
from tilewright.compute import OpKind
from tilewright.compute.launching import counts
from tilewright.errors import TileError

SIZES = [0, 1, 2, 3, 127, 129, 2048, 2049, 5000, 40001]
DTYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"]


def add(a, b):
    return a + b


def reduced(device, x, op, init, out_dtype=None):
    out = device.array(np.zeros(1, out_dtype or np.asarray(init).dtype))
    compute.reduce_into(device.array(x), out, op, len(x), init)
    return device.host(out)[0]


@pytest.mark.spec("C-001", "C-044", "C-055", "C-057", "C-058")
@pytest.mark.parametrize("n", SIZES)
def test_sum(device, n):
    x = np.random.default_rng(n).integers(-1000, 1000, n)
    assert reduced(device, x, add, np.int64(7)) == x.sum() + 7
    assert reduced(device, x, OpKind.PLUS, np.int64(7)) == x.sum() + 7


@pytest.mark.spec("C-006", "C-007")
@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(device, dtype):
    x = np.random.default_rng(1).integers(0, 100, 3000).astype(dtype)
    expected = np.add.reduce(x, dtype=dtype)
    assert reduced(device, x, add, np.zeros((), dtype)) == expected
    assert reduced(device, x, lambda a, b: a if a > b else b, np.zeros((), dtype)) == x.max()
    assert reduced(device, x, OpKind.MINIMUM, np.array([99], dtype)) == x.min()


@pytest.mark.spec("C-007")
def test_floats_of_16_bits(device):
    for dtype in (np.float16, ml_dtypes.bfloat16):
        x = np.random.default_rng(1).integers(0, 2, 200).astype(dtype)
        assert reduced(device, x, add, dtype(1)) == x.astype(np.float32).sum() + 1
        assert reduced(device, x, OpKind.MAXIMUM, dtype(0.5)) == 1


@pytest.mark.spec("C-007")
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex(device, dtype):
    x = (np.arange(5000) % 7 + 1j * (np.arange(5000) % 3)).astype(dtype)
    assert reduced(device, x, add, np.array([2 + 1j], dtype)) == x.sum() + 2 + 1j


def affine(p, q):
    """x -> a x + b, one behind the other, modulo 65537: the order matters."""
    return (p[0] * q[0]) % 65537, (p[1] * q[0] + q[1]) % 65537


@pytest.mark.spec("C-045", "C-007")
@pytest.mark.parametrize("n", [1, 2, 100, 2049, 9000])
def test_order_is_kept(device, n):
    pair = np.dtype([("f0", np.int64), ("f1", np.int64)])
    x = np.zeros(n, pair)
    x["f0"], x["f1"] = np.random.default_rng(n).integers(1, 65537, (2, n))
    expected = functools.reduce(affine, [(int(a), int(b)) for a, b in x], (3, 4))
    found = reduced(device, x, affine, np.array([(3, 4)], pair))
    assert tuple(found) == expected


@compute.gpu_struct
class Pixel:
    r: np.uint8
    g: np.float64
    b: np.int16


@pytest.mark.spec("C-007", "C-030", "C-046")
def test_structs(device):
    x = np.zeros(3000, Pixel.dtype)
    x["r"], x["g"], x["b"] = np.arange(3000) % 250, np.arange(3000), -np.arange(3000)

    def most(a, b):
        return Pixel(max(a.r, b.r), a.g + b.g, min(a.b, b.b))

    found = reduced(device, x, most, Pixel(1, 0.5, 3), Pixel.dtype)
    assert tuple(found) == (249, x["g"].sum() + 0.5, -2999)
    assert Pixel(1, 0.5, 3) == Pixel(b=3, r=1, g=0.5) and Pixel(1, 2, 3)[1] == 2.0 and Pixel.dtype.itemsize == 24


def test_input_of_another_dtype_converts(device):
    assert reduced(device, np.full(300, 100, np.int8), add, np.int32(0)) == 30000
    assert reduced(device, np.full(4, 0.75), add, np.int64(0)) == 0
    assert reduced(device, np.full(3, 2.5, np.float32), add, np.float64(1), np.float32) == 8.5


def test_captured_values(device):
    weights, factor = device.array(np.array([10, 20])), 3

    def weighted(a, b):
        return a + factor * b * weights[0]

    assert reduced(device, np.array([1]), weighted, np.int64(1)) == 31
    factor = 5
    assert reduced(device, np.array([1]), weighted, np.int64(1)) == 51
    first, second = lambda a, b: a + b, lambda a, b: a * b
    assert [reduced(device, np.array([3]), op, np.int64(4)) for op in (first, second)] == [7, 12]


@pytest.mark.spec("C-042", "C-043", "C-047", "C-048", "C-049", "C-051", "C-052", "C-053", "C-054", "C-056", "C-060")
def test_three_stages(device):
    x, out = device.array(np.arange(5000)), device.array(np.zeros(1, np.int64))
    compute.clear_all_caches()
    reducer = compute.make_reduce_into(x, out, add, np.int64(0))
    before = dict(counts)
    needed = reducer(None, x, out, add, 5000, np.int64(0))
    assert type(needed) is int and needed > 0 and counts == before and device.host(out)[0] == 0
    storage = device.array(np.full(needed, 0xAB, np.uint8))
    for first, n, init in ((0, 5000, 0), (1, 4999, 3), (7, 10, -1), (0, 0, 4), (0, 5000, 0)):
        assert reducer(storage, x[first:], out, add, n, np.int64(init)) == reducer(None, x, out, add, n, np.int64(0))
        assert device.host(out)[0] == np.arange(5000)[first : first + n].sum() + init
    assert counts["compilations"] == before["compilations"] and counts["launches"] > before["launches"]
    again = compute.make_reduce_into(x[:3], out, lambda a, b: a + b, np.int64(9))
    assert again is reducer
    reducer(temp_storage=storage, d_in=x, d_out=out, num_items=3, op=add, h_init=np.array([1]))
    assert device.host(out)[0] == 4


@pytest.mark.spec("C-041", "C-060")
def test_the_key_of_the_cache():
    x, out = np.zeros(3, np.int32), np.zeros(1, np.int64)
    made = compute.make_reduce_into(x, out, add, np.int64(0))
    others = [
        compute.make_reduce_into(x.astype(np.int64), out, add, np.int64(0)),
        compute.make_reduce_into(x, out.astype(np.int32), add, np.int64(0)),
        compute.make_reduce_into(x, out, add, np.int32(0)),
        compute.make_reduce_into(x, out, lambda a, b: a - b, np.int64(0)),
        compute.make_reduce_into(x, out, OpKind.PLUS, np.int64(0)),
        compute.make_reduce_into(compute.ConstantIterator(np.int32(1)), out, add, np.int64(0)),
    ]
    assert made not in others and len({id(o) for o in others}) == len(others)
    scaled = [compute.make_reduce_into(x, out, _scaled(k), np.int64(0)) for k in (1, 1.0, True, 1)]
    assert scaled[0] is scaled[3] and len({id(s) for s in scaled}) == 3


def _scaled(k):
    return lambda a, b: a + k * b


@pytest.mark.spec("C-050", "C-054", "C-059")
def test_wrong_calls_write_nothing():
    x, out = np.arange(100), np.full(1, -1)
    reducer = compute.make_reduce_into(x, out, add, np.int64(0))
    storage = np.zeros(reducer(None, x, out, add, 100, np.int64(0)), np.uint8)
    right = (storage, x, out, add, 100, np.int64(0))
    wrong = [
        (0, storage[:-1], ValueError, "'temp_storage' has"),
        (1, x.astype(np.int32), TypeError, "'d_in'"),
        (1, compute.CountingIterator(np.int64(0)), TypeError, "'d_in'"),
        (1, x[::2], ValueError, "'d_in': Non-contiguous arrays are not supported"),
        (1, 3, TypeError, "'d_in': expected an array or an iterator"),
        (2, out.astype(np.float32), TypeError, "'d_out'"),
        (2, compute.ConstantIterator(np.int64(0)), TypeError, "'d_out'.* is read, not written"),
        (3, lambda a, b: a * b, TypeError, "'op' is another operator"),
        (3, lambda a: a, TypeError, "'op' takes 2 values, found a function of 1"),
        (4, 101, ValueError, "'d_in' has 100 items, 101 were asked for"),
        (4, -1, ValueError, "'num_items' is not negative"),
        (4, 1.5, TypeError, "'num_items' is an integer"),
        (5, np.float64(0), TypeError, "'h_init'"),
    ]
    for position, value, error, words in wrong:
        given = [value if i == position else v for i, v in enumerate(right)]
        with pytest.raises(error, match=words):
            reducer(*given)
    frozen = out.copy()
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="'d_out': the array is read-only"):
        reducer(storage, x, frozen, add, 100, np.int64(0))
    with pytest.raises(TypeError, match="needs the argument 'h_init'"):
        reducer(storage, x, out, add, 100)
    with pytest.raises(TypeError, match="it takes d_in"):
        reducer(*right[:-1], init=3)
    assert out[0] == -1


def test_operators_that_do_not_fit():
    x, out = np.arange(10), np.zeros(1, np.int64)
    with pytest.raises(TypeError, match="the result of reduce_into: 'op': expected int64, found a tuple of 2"):
        compute.reduce_into(x, out, lambda a, b: (a, b), 10, np.int64(0))
    with pytest.raises(TypeError, match="is a function, a lambda, an OpKind or a RawOp, found 'max'"):
        compute.reduce_into(x, out, "max", 10, np.int64(0))
    with pytest.raises(TypeError, match="the field 'a'"):
        compute.gpu_struct({"a": "no type"})
    assert out[0] == 0


def test_several_lambdas_on_a_line(device):
    x, init = np.array([5, 6, 7]), np.int64(2)
    found = [reduced(device, x, op, init) for op in (lambda a, b: a + b, lambda a, b: a * b, lambda a, b: max(a, b))]
    assert found == [20, 420, 7]


@pytest.mark.spec("C-058")
def test_floats_are_the_same_in_each_run(device):
    x = np.random.default_rng(0).standard_normal(30000).astype(np.float32)
    found = {float(reduced(device, x, add, np.float32(0))) for _ in range(3)}
    assert len(found) == 1
    np.testing.assert_allclose(found.pop(), x.sum(dtype=np.float64), atol=1e-2)


def test_mistakes_in_an_operator_show_its_line_and_none_of_ours() -> None:
    def attribute(a, b):
        return (a + b).foo

    def text(a, b):
        return "x"

    x, out = np.zeros(4, np.int32), np.zeros(1, np.int32)
    for op, line in ((attribute, "return (a + b).foo"), (text, 'return "x"'), (lambda a, b: nothing(a), "nothing(a)")):  # noqa: F821
        with pytest.raises(TileError) as caught:
            compute.reduce_into(x, out, op, 4, np.int32(0))
        shown = str(caught.value)
        assert line in shown and shown.count("File") == 1 and __file__ in shown, shown
        assert len(caught.traceback) == 1, caught.traceback
    reducer = compute.make_reduce_into(x, out, lambda a, b: a + b, np.int32(0))
    with pytest.raises(TileError) as caught:
        reducer(None, x, out, lambda a, b: a * b, 4, np.int32(0))
    assert len(caught.traceback) == 1, caught.traceback


@pytest.mark.parametrize("count", [4095, 4096, 4097, 12289])
def test_tiles_and_what_is_left(device, count):
    """Whole tiles are read by wide accesses, what is left of them or lies at odd addresses one by one."""
    x = np.random.default_rng(count).integers(-100, 100, count + 1).astype(np.int32)
    given, out = device.array(x), device.array(np.zeros(count + 1, np.int32))
    for first in (0, 1):
        for op in (OpKind.PLUS, lambda a, b: a + b):
            compute.reduce_into(given[first:], out, op, count, np.int32(5))
            assert device.host(out)[0] == x[first : first + count].sum() + 5
        compute.unary_transform(given[first:], out[:count], lambda v: v + 1, count)
        assert (device.host(out)[:count] == x[first : first + count] + 1).all()


def test_structs_keep_their_order(device):
    """Maps x -> a x + b modulo 2^32, whose composition does not commute."""
    maps = np.random.default_rng(0).integers(0, 1 << 30, (9000, 2), np.uint32)
    dtype = np.dtype([("a", "u4"), ("b", "u4")])
    out = device.array(np.zeros(1, dtype))
    compute.reduce_into(
        device.array(maps.view(dtype).reshape(-1)),
        out,
        lambda f, g: (f.a * g.a, f.b * g.a + g.b),
        len(maps),
        np.array([(1, 7)], dtype),
    )
    a, b = 1, 7
    for f, g in maps.tolist():
        a, b = a * f % (1 << 32), (b * f + g) % (1 << 32)
    assert tuple(device.host(out)[0].item()) == (a, b)


def test_many_blocks_in_order(device, monkeypatch):
    """More of them than threads fold what they found; of large items half as many."""
    module = importlib.import_module("tilewright.compute.reduce")
    few = functools.partial(module.Tiling, rounds=1, threads=32)
    monkeypatch.setattr(module, "Tiling", few)
    compute.clear_all_caches()
    x, zero = np.random.default_rng(3).integers(-9, 9, 32 * 4 * 1300 + 5), np.int64(0)
    last = lambda a, b: b if b != 0 else a  # noqa: E731
    assert reduced(device, x, last, zero) == x[x != 0][-1]
    made = compute.make_reduce_into(device.array(x), device.array(np.zeros(1, np.int64)), last, zero)
    if not made.alone:
        assert made.tiling.blocks(len(x)) == 1301 and made.tiling.blocks(1 << 30) == 4096
        pairs = np.zeros(2, [("f0", np.int64), ("f1", np.int64)])
        large = compute.make_reduce_into(device.array(pairs), device.array(pairs[:1]), lambda a, b: b, pairs[:1])
        assert large.tiling.blocks(1 << 30) == 2048
    compute.clear_all_caches()
