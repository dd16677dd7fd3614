"""Plans of calls: later calls of an object launch without Python, and mean what the first one did."""

import gc
import weakref

import numpy as np
import pytest
from every import EVERY, calls

from tilewright import compute
from tilewright.compute import DoubleBuffer, OpKind, call_plan, objects, plans
from tilewright.errors import TileTypeError, TileValueError


def add(a, b):
    return a + b


class UnplannedCallError(Exception):
    pass


@pytest.fixture
def by_plans(monkeypatch):
    """From when it is called on, a call that no plan fits fails."""

    def start():
        def refuse(self, *values, **named):
            raise UnplannedCallError

        for kind in (objects.Algorithm, objects.InPlace):
            monkeypatch.setattr(kind, "call_unplanned", refuse)

    return start


@pytest.mark.parametrize("name", EVERY)
def test_each_algorithm_has_one(name, by_plans):
    compute.clear_all_caches()
    call = calls()[name]
    made = call.make(**call.made_of)
    call.check(made)
    assert made.plans >= 1
    by_plans()
    call.check(made)  # other arrays


def sorts_of(x, out):
    return {
        "radix_sort": (compute.make_radix_sort(x, out, None, None), lambda n: (x, out, None, None, n, None, None)),
        "merge_sort": (
            compute.make_merge_sort(x, None, out, None, OpKind.LESS),
            lambda n: (x, None, out, None, OpKind.LESS, n),
        ),
    }


def objects_of(x, out, count):
    keep = lambda v: v % 3 != 0  # noqa: E731
    one = {
        "reduce": (compute.make_reduce_into(x, out, add, np.int64(3)), lambda n: (x, out, add, n, np.int64(3))),
        "scan": (compute.make_inclusive_scan(x, out, add, None), lambda n: (x, out, add, n, None)),
        "transform": (compute.make_binary_transform(x, x, out, add), lambda n: (x, x, out, add, n)),
        "select": (compute.make_select(x, out, count, keep), lambda n: (x, out, count, keep, n)),
    }
    return one | sorts_of(x, out)


SIZES = (5, 1, 6000, 300, 0, 2048, 2049, 70000, 4096, 69999, 8192, 16385, 33000, 1 << 16, 301, 70000)


@pytest.mark.parametrize("shape", ["cpu", "gpu"])
@pytest.mark.parametrize("name", ["reduce", "scan", "transform", "select", "radix_sort", "merge_sort"])
def test_any_size(name, shape, monkeypatch):
    """The same words, grids and storage as without a plan; blocks as a GPU has them, too, which are not run here."""
    started, planned = [], []
    if shape == "gpu":
        monkeypatch.setattr(objects, "shape_for", lambda place: plans.GPU)
        monkeypatch.setattr(call_plan._Planning, "_launch", told_launch(planned))
        monkeypatch.setattr(objects.Launch, "run", lambda self, stream: None)
        monkeypatch.setattr(objects.Launch, "compile", lambda self, targets: None)
        monkeypatch.setattr(call_plan._core, "CallPlan", lambda *values: None)
        monkeypatch.setattr(objects.Algorithm, "add_plan", lambda self, plan: None)
    compute.clear_all_caches()
    x = np.random.default_rng(3).integers(-1000, 1000, SIZES[-1])
    out, count = np.zeros(len(x), np.int64), np.zeros(1, np.int64)
    made, arguments = objects_of(x, out, count)[name]
    for n in SIZES:
        storage = [np.full(made(None, *arguments(n)), 0xA5, np.uint8)] if made.has_storage else []
        out[:], count[0] = -7, -7
        made(*storage, *arguments(n))
        started.append((out.copy(), int(count[0])))
    compute.clear_all_caches()
    if shape == "gpu":
        assert made.refusals == 0 and len(planned) > len(SIZES) // 2
        return
    assert made.plans >= 2
    monkeypatch.setattr(call_plan, "note", lambda *values: None)
    again, arguments = objects_of(x, out, count)[name]
    assert again is not made
    for n, (expected, expected_count) in zip(SIZES, started, strict=True):
        storage = [np.zeros(again(None, *arguments(n)), np.uint8)] if made.has_storage else []
        out[:], count[0] = -7, -7
        again(*storage, *arguments(n))
        np.testing.assert_array_equal(out, expected)
        assert count[0] == expected_count
    compute.clear_all_caches()


def told_launch(planned):
    """Of a launch, that what the plan computes is what the algorithm says; its kernel has no code."""

    def launch(self, mine, real):
        assert mine.kernel is real.kernel and mine.block == real.block
        assert call_plan.value_of(mine.grid) == real.grid
        for ours, theirs in zip(call_plan._leaves(mine.arguments), call_plan._leaves(real.arguments), strict=True):
            if isinstance(ours, call_plan.Number):
                assert ours.value == theirs
        planned.append(mine)
        return None

    return launch


def reducer_of(n=100):
    x, out = np.arange(n), np.zeros(1, np.int64)
    compute.clear_all_caches()
    made = compute.make_reduce_into(x, out, add, np.int64(0))
    storage = np.zeros(made(None, x, out, add, n, np.int64(0)), np.uint8)
    made(storage, x, out, add, n, np.int64(0))
    assert made.plans == 1
    return made, storage, x, out


def test_wrong_calls_are_told_as_ever():
    made, storage, x, out = reducer_of()
    zero = np.int64(0)
    with pytest.raises(TileValueError, match="'d_in' has 100 items, 101 were asked for"):
        made(storage, x, out, add, 101, zero)
    with pytest.raises(TileValueError, match="'temp_storage' has 1 bytes"):
        made(storage[:1], x, out, add, 100, zero)
    with pytest.raises(TileTypeError, match="dtype mismatch: 'd_in'"):
        made(storage, x.astype(np.int32), out, add, 100, zero)
    with pytest.raises(TileValueError, match="is not negative"):
        made(storage, x, out, add, -1, zero)
    with pytest.raises(TileTypeError, match="another operator"):
        made(storage, x, out, lambda a, b: a * b, 100, zero)
    with pytest.raises(TileTypeError, match="'h_init' is a int32"):
        made(storage, x, out, add, 100, np.int32(0))
    with pytest.raises(TileValueError, match="'temp_storage' and 'd_in' share memory"):
        made(x.view(np.uint8), x, out, add, 100, zero)
    with pytest.raises(TileValueError, match="read-only"):
        fixed = out.copy()
        fixed.flags.writeable = False
        made(storage, x, fixed, add, 100, zero)
    with pytest.raises(TileTypeError, match="the argument 'more'"):
        made(storage, x, out, add, 100, zero, more=1)
    with pytest.raises(TileTypeError, match="needs the argument 'op'"):
        made(storage, x, out)
    assert out[0] == 4950


def test_arrays_that_share_memory():
    """A plan of arrays that are apart is none for one array, nor the other way round."""
    x, out = np.arange(1000), np.zeros(1000, np.int64)
    made = compute.make_inclusive_scan(x, out, add, None)
    storage = np.zeros(made(None, x, out, add, 1000, None), np.uint8)
    for _ in range(2):
        made(storage, x, out, add, 1000, None)
        both = x.copy()
        made(storage, both, both, add, 1000, None)
        np.testing.assert_array_equal(both, out)
    with pytest.raises(TileValueError, match="'d_out' shares memory with 'd_in'"):
        made(storage, x[:900], x[1:901], add, 900, None)
    made(storage, out[:100], out[500:600], add, 100, None)


factor = 2


def scaled(v):
    return v * factor


def test_what_an_operator_reads_is_looked_at(by_plans):
    global factor
    factor, x, out = 2, np.arange(10), np.zeros(10, np.int64)
    made = compute.make_unary_transform(x, out, scaled)
    made(x, out, scaled, 10)
    factor = 3
    with pytest.raises(TileTypeError, match="another operator"):
        made(x, out, scaled, 10)
    factor = 2
    by_plans()
    made(x, out, scaled, 10)
    assert list(out) == [2 * v for v in range(10)]


def test_an_operator_made_anew(by_plans):
    """A function of the same text and the same values outside is the same operator; it may bring other arrays."""
    x, out = np.arange(10), np.zeros(10, np.int64)

    def op_of(factor, table):
        return lambda v, more=1: table[v] * factor + more

    made = compute.make_unary_transform(x, out, op_of(3, np.arange(10)))
    made(x, out, op_of(3, np.arange(10)), 10)
    by_plans()
    made(x, out, op_of(3, np.arange(10) * 2), 10)
    assert list(out) == [6 * v + 1 for v in range(10)]
    other = op_of(3, np.arange(10))
    other.__defaults__ = (2,)
    for op in (op_of(4, np.arange(10)), other, lambda v: v):
        with pytest.raises(UnplannedCallError):
            made(x, out, op, 10)


weights = np.arange(10)


def weighed(v):
    return weights[v] + len(weights)


def test_arrays_of_operators(by_plans):
    """Those that are there at a call are read, global ones and free variables, and none is kept."""
    global weights
    x, out, own = np.arange(10), np.zeros(10, np.int64), np.arange(10) * 3

    def op(v):
        return own[v] + weighed(v)

    def expected():
        return list(own[:10] + weights[:10] + len(weights))

    made = compute.make_unary_transform(x, out, op)
    made(x, out, op, 10)
    assert made.plans == 1 and list(out) == expected()
    by_plans()
    own[4] = 77
    made(x, out, op, 10)
    assert list(out) == expected()
    weights, own = np.arange(20) * 100, np.arange(12)
    gone = weakref.ref(own)
    made(x, out, op, 10)
    assert list(out) == expected()
    own = np.arange(12, dtype=np.int32)
    assert gone() is None
    with pytest.raises(UnplannedCallError):
        made(x, out, op, 10)
    own = weights
    with pytest.raises(UnplannedCallError):  # one array now, which would be one parameter
        made(x, out, op, 10)


def test_one_array_of_two_operators(by_plans):
    """Extents that an operator asks for are those of its own array."""
    x, out, table = np.arange(8), np.zeros(8, np.int64), np.arange(8)
    first = table

    def low(v):
        return v < first[len(first) - 1] - 5

    def high(v):
        return v > table[len(table) - 1] - 2

    outs = (out, out.copy(), out.copy(), np.zeros(2, np.int64))
    made = compute.make_three_way_partition(x, *outs, low, high)
    storage = np.zeros(made(None, x, *outs, low, high, 8), np.uint8)
    made(storage, x, *outs, low, high, 8)
    assert made.plans == 1 and list(outs[3]) == [2, 2]
    by_plans()
    made(storage, x, *outs, low, high, 8)
    first = table[:7]
    with pytest.raises(UnplannedCallError):
        made(storage, x, *outs, low, high, 8)


def test_an_iterator_whose_operator_has_an_array(by_plans):
    x, out, table = np.arange(8), np.zeros(1, np.int64), np.arange(8) * 2
    it = compute.TransformIterator(x, lambda v: table[v])
    made = compute.make_reduce_into(it, out, OpKind.PLUS, np.int64(0))
    storage = np.zeros(made(None, it, out, OpKind.PLUS, 8, np.int64(0)), np.uint8)
    made(storage, it, out, OpKind.PLUS, 8, np.int64(0))
    assert made.plans == 1 and out[0] == 56
    by_plans()
    table += 1
    made(storage, it, out, OpKind.PLUS, 8, np.int64(0))
    assert out[0] == 64


def test_structures(by_plans):
    """Arrays of NumPy's structured dtypes; another dtype of the same size is another one."""
    kind = np.dtype([("least", "f4"), ("count", "i4")])
    x, out = np.zeros(100, kind), np.zeros(1, kind)
    x["least"], x["count"] = np.arange(100)[::-1], 1
    Pair = compute.gpu_struct({"least": np.float32, "count": np.int32}, "Pair")

    def join(a, b):
        return Pair(a.least if a.least < b.least else b.least, a.count + b.count)

    none = Pair(np.float32(1000), np.int32(0))
    made = compute.make_reduce_into(x, out, join, none)
    storage = np.zeros(made(None, x, out, join, 100, none), np.uint8)
    made(storage, x, out, join, 100, none)
    assert made.plans == 1 and out[0].item() == (0, 100)
    by_plans()
    made(storage, x[:60].copy(), out, join, 60, none)
    assert out[0].item() == (40, 60)
    with pytest.raises(UnplannedCallError):
        other = np.dtype([("least", "i4"), ("count", "i4")])
        made(storage, x.view(other), out, join, 100, none)


def test_values_are_compared(by_plans):
    made, storage, x, out = reducer_of()
    made(storage, x, out, add, 100, np.int64(5))
    assert out[0] == 4955
    by_plans()
    for init in (0, 5):
        made(storage, d_in=x, d_out=out, op=add, num_items=np.int64(50), h_init=np.int64(init))
        assert out[0] == 1225 + init
    for init in (np.int32(5), 5, np.float64(5)):
        with pytest.raises(UnplannedCallError):
            made(storage, x, out, add, 100, init)
    with pytest.raises(UnplannedCallError):
        made(storage, x, out, add, 100, np.array([5]))


@pytest.mark.parametrize("of", [float, np.float32, np.float64, np.int8, np.uint64, int])
def test_values_are_read(of, by_plans):
    """A call may bring another value of the same type: its bits are taken."""
    x, out = np.zeros(3, of), np.zeros(3, of)
    made = compute.make_exclusive_scan(x, out, OpKind.PLUS, of(0))
    storage = np.zeros(made(None, x, out, OpKind.PLUS, 3, of(0)), np.uint8)
    made(storage, x, out, OpKind.PLUS, 3, of(0))
    by_plans()
    values = {"f": (-2.5, 1e30, np.inf), "i": (-7, 100), "u": (7, (1 << 64) - 1)}[out.dtype.kind]
    for value in map(of, values):
        made(storage, x, out, OpKind.PLUS, 3, value)
        assert list(out) == [value] * 3


def test_a_value_that_is_converted(by_plans):
    """Zero has the same bits in all types, other values have not."""
    x, out = np.ones(4, np.float64), np.zeros(4, np.float64)
    for init in (np.float32(0), np.int32(0)):
        made = compute.make_inclusive_scan(x, out, OpKind.PLUS, init)
        storage = np.zeros(made(None, x, out, OpKind.PLUS, 4, init), np.uint8)
        for value in (0, 5):
            made(storage, x, out, OpKind.PLUS, 4, type(init)(value))
            assert list(out) == [value + 1 + i for i in range(4)]


def test_plans_come_to_an_end():
    """An object that is called with iterators of one call each does not look for plans for ever."""
    out = np.zeros(1, np.int64)
    it = compute.CountingIterator(np.int64(0))
    made = compute.make_reduce_into(it, out, OpKind.PLUS, np.int64(0))
    storage = np.zeros(made(None, it, out, OpKind.PLUS, 10, np.int64(0)), np.uint8)
    for start in range(100):
        made(storage, compute.CountingIterator(np.int64(start)), out, OpKind.PLUS, 10, np.int64(0))
        assert out[0] == 45 + 10 * start
    assert made.planned == call_plan._MOST_MADE


def test_arguments_are_not_kept():
    x, out = np.arange(10), np.zeros(10, np.int64)

    def work():
        op, it = lambda a, b: a + b, compute.CountingIterator(np.int64(3))
        made = compute.make_binary_transform(x, it, out, op)
        made(x, it, out, op, 10)
        assert made.plans == 1 and out[2] == 7
        return made, weakref.ref(op), weakref.ref(it)

    made, op, it = work()
    compute.clear_all_caches()
    gc.collect()
    assert op() is None and it() is None
    assert made.has_room() and made.plans == 0


def test_iterators(by_plans):
    """By a plan, an iterator is the very same one; memory in it is kept apart from what is written."""
    x, out, total = np.arange(10), np.zeros(10, np.int64), np.zeros(1, np.int64)
    it = compute.TransformIterator(x, lambda v: v + 1)
    made = compute.make_select(it, out, total, lambda v: v > 5)
    keep = lambda v: v > 5  # noqa: E731
    storage = np.zeros(made(None, it, out, total, keep, 10), np.uint8)
    made(storage, it, out, total, keep, 10)
    with pytest.raises(TileValueError, match="'d_out' shares memory"):
        made(storage, it, x, total, keep, 10)
    by_plans()
    x += 1
    made(storage, it, out, total, keep, 10)
    assert total[0] == 6 and list(out[:6]) == [6, 7, 8, 9, 10, 11]


@pytest.mark.parametrize("dtype", ["int8", "int32"])
def test_double_buffers(dtype, by_plans):
    """Of each, what is in it now is taken, and the one that the result is in is told."""

    def filled(n):
        return DoubleBuffer(np.random.default_rng(n).integers(-99, 99, n).astype(dtype), np.zeros(n, dtype))

    keys = filled(50)
    sorter = compute.make_radix_sort(keys, None, None, None)
    storage = np.zeros(sorter(None, keys, None, None, None, 50, None, None), np.uint8)
    sorter(storage, keys, None, None, None, 50, None, None)
    bounds = np.array([0, 20]), np.array([20, 50])
    segmented = compute.make_segmented_sort(keys, None, None, None, *bounds)
    room = np.zeros(segmented(None, keys, None, None, None, 50, 2, *bounds), np.uint8)
    segmented(room, keys, None, None, None, 50, 2, *bounds)
    by_plans()
    odd = np.dtype(dtype).itemsize % 2
    for selector in (0, 1):
        for n in (50, 30):
            keys = filled(n)
            keys.d_buffers, keys.selector = keys.d_buffers[:: -1 if selector else 1], selector
            given = keys.current().copy()
            sorter(storage, keys, None, None, None, n, None, None)
            assert keys.selector == selector ^ odd and list(keys.current()) == sorted(given)
        keys = filled(50)
        keys.d_buffers, keys.selector = keys.d_buffers[:: -1 if selector else 1], selector
        parts = np.split(keys.current().copy(), [20])
        segmented(room, keys, None, None, None, 50, 2, *bounds)
        assert keys.selector == selector ^ odd and list(keys.current()) == [v for part in parts for v in sorted(part)]
    with pytest.raises(TileTypeError, match="radix_sort: the object was made for DoubleBuffers"):
        sorter(storage, keys.current(), keys.alternate(), None, None, 50, None, None)
