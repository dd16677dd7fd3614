"""Calls that are wrong: an error of a type, which names the argument, before anything is written."""

import copy
from pathlib import Path

import numpy as np
import pytest
import standin
from every import EVERY, calls

from tilewright import compute
from tilewright.compute import OpKind, SortOrder
from tilewright.errors import TileTypeError, TileValueError

OPERATORS = ("op", "cond", "comp", "select_first_part_op", "select_second_part_op")


@pytest.fixture(params=[(name, later) for name in EVERY for later in (False, True)], ids=str)
def case(request):
    """An object, what it is called with, and arrays that nothing may be written to; `later`: there is a plan."""
    name, later = request.param
    call = calls()[name]
    compute.clear_all_caches()
    made, values = call.make(**call.made_of), call.values()
    if later:
        call.check(made)
    assert made.plans == later
    before = copy.deepcopy({n: v for n, v in values.items() if isinstance(v, np.ndarray)})
    storage = np.zeros(made(None, **values), np.uint8) if made.has_storage else None
    yield made, values, storage
    for name, array in before.items():
        np.testing.assert_array_equal(values[name], array, err_msg=f"{name} was written to")


def refused(made, storage, values, error, *words):
    with pytest.raises(error) as caught:
        made(*([storage] if made.has_storage else []), **values)
    for word in (made.name, *words):
        assert word in str(caught.value), (word, str(caught.value))


ON_THE_STAND_IN = """
def refused(made, storage, values, error, *words):
    launches = fake.fake_calls(b"cuLaunchKernelEx")
    try:
        made(*storage, **values)
    except error as found:
        for word in (made.name, *words):
            assert word in str(found), (word, str(found))
    else:
        raise AssertionError((made.name, words))
    assert fake.fake_calls(b"cuLaunchKernelEx") == launches

for name, call in calls().items():
    made = call.make(**moved(call.made_of))
    host = {n: v for n, v in call.made_of.items() if n != "order"}
    values = moved(host) | call.more
    bytes_of = made(None, **values) if made.has_storage else 0
    storage = [OnGpu(np.zeros(bytes_of, np.uint8))] if made.has_storage else []
    for _ in range(2):  # without a plan, and with one
        for count in values.keys() & {"num_items", "num_segments", "num_values", "num_samples"}:
            refused(made, storage, values | {count: -1}, ValueError, count)
            refused(made, storage, values | {count: 1000}, ValueError, "1000 were asked for")
        if storage:
            refused(made, [np.zeros(bytes_of, np.uint8)], values, TypeError, "'temp_storage' is on cpu")
            refused(made, [OnGpu(np.zeros(bytes_of - 1, np.uint8))], values, ValueError, "'temp_storage'")
        for array in (n for n, v in host.items() if isinstance(v, np.ndarray)):
            refused(made, storage, values | {array: host[array]}, TypeError, array)
            refused(made, storage, values | moved({array: host[array].astype(np.float16)}), TypeError, array)
        made(*storage, **values)
    assert made.plans, name
"""


def test_on_a_gpu(tmp_path):
    """Storage and arrays on the host, storage too small, counts: nothing is launched."""
    standin.run(ON_THE_STAND_IN, tmp_path)


def arrays_of(values):
    return {n: v for n, v in values.items() if n.startswith(("d_", "start_", "end_")) and isinstance(v, np.ndarray)}


def test_arrays_of_other_types(case):
    made, values, storage = case
    for name, array in arrays_of(values).items():
        other = array.astype(np.float32)
        refused(made, storage, values | {name: other}, TileTypeError, f"'{name}'")
        refused(
            made, storage, values | {name: np.zeros((8, 2), array.dtype)[:, 0]}, TileValueError, f"'{name}'", "contig"
        )
        refused(made, storage, values | {name: np.array(["text"])}, TileTypeError, f"'{name}'")
        refused(made, storage, values | {name: 3}, TileTypeError, f"'{name}'")


def test_counts(case):
    made, values, storage = case
    for name in values.keys() & {"num_items", "num_segments", "num_values", "num_samples"}:
        refused(made, storage, values | {name: -1}, TileValueError, f"'{name}'", "not negative")
        refused(made, storage, values | {name: 2.0}, TileTypeError, f"'{name}'", "integer")
        refused(made, storage, values | {name: 1000}, TileValueError, "items, 1000 were asked for")


def test_operators(case):
    made, values, storage = case
    for name in values.keys() & set(OPERATORS):
        refused(made, storage, values | {name: lambda: 1}, TileTypeError, f"'{name}'", "takes")
        refused(made, storage, values | {name: lambda a, b=0: b}, TileTypeError, f"'{name}'", "another operator")
        refused(made, storage, values | {name: 7}, TileTypeError, f"'{name}'")


def test_temporary_storage(case):
    made, values, storage = case
    if not made.has_storage:
        return
    refused(made, storage[:-1], values, TileValueError, "'temp_storage'", "are needed")
    frozen = storage.copy()
    frozen.flags.writeable = False
    refused(made, frozen, values, TileValueError, "'temp_storage'", "read-only")
    refused(made, 5, values, TileTypeError, "'temp_storage'")
    name, array = next((n, a) for n, a in arrays_of(values).items() if n in made.outs)
    whole = np.zeros(len(storage) + array.nbytes, np.uint8)
    inside = {name: whole[: array.nbytes].view(array.dtype)}
    refused(made, whole, values | inside, TileValueError, "'temp_storage'", f"'{name}'", "share memory")


def test_memory_that_is_shared(case):
    """Each output with each input, one item apart, and with each other output."""
    made, values, storage = case
    arrays = arrays_of(values)
    for out in arrays.keys() & set(made.outs):
        for other in arrays.keys() - {out}:
            if other in made.ins and made.reads_first:
                continue
            a, b = arrays[other], arrays[out]
            memory = np.zeros(a.nbytes + b.nbytes + 64, np.uint8)
            first = memory[: a.nbytes].view(a.dtype)
            first[:] = a
            shifted = memory[b.itemsize : b.itemsize + b.nbytes].view(b.dtype)
            words = (f"'{out}'", f"'{other}'", "shares memory with")
            refused(made, storage, values | {other: first, out: shifted}, TileValueError, *words)


def test_memory_that_may_be_shared():
    x = np.array([3, 1, 2, 5])
    compute.inclusive_scan(x, x, OpKind.PLUS, None, 4)
    assert list(x) == [3, 4, 6, 11]
    compute.unary_transform(x, x, OpKind.NEGATE, 4)
    compute.merge_sort(x, None, x, None, OpKind.LESS, 4)
    assert list(x) == [-11, -6, -4, -3]
    compute.reduce_into(x, x[:1], OpKind.PLUS, 4, np.int64(0))
    assert x[0] == -24
    compute.unary_transform(x[:2], x[2:], OpKind.IDENTITY, 2)  # halves of one array
    assert list(x) == [-24, -6, -24, -6]
    with pytest.raises(TileValueError, match="'d_out_keys' shares memory with 'd_in_keys'; pass another"):
        compute.radix_sort(x, x, None, None, SortOrder.ASCENDING, 4)


def test_types_that_an_argument_cannot_have():
    x, out, zero = np.arange(4), np.zeros(4, np.int64), np.int64(0)
    halves, one = np.array([0.0, 2.0]), np.zeros(1)
    wrong = [
        (
            lambda: compute.segmented_reduce(x, out, halves, halves, OpKind.PLUS, zero, 2),
            "'start_offsets_in' has integers",
        ),
        (lambda: compute.select(x, out, one, lambda v: v > 1, 4), "'d_num_selected_out' has integers"),
        (lambda: compute.lower_bound(x, x, one, 4, 1), "'d_out' has integers"),
        (
            lambda: compute.select(x, out, np.zeros(1, np.int64), lambda v: (v, v), 4),
            "the result of select: 'cond': expected bool_, found a tuple",
        ),
        (
            lambda: compute.merge_sort(x, None, out, None, lambda a, b: (a, b), 4),
            "the result of merge_sort: 'op': expected bool_, found a tuple",
        ),
        (lambda: compute.unary_transform(x, out, lambda v: (v, v), 4), "an item that is stored: expected int64"),
        (lambda: compute.reduce_into(x, out, OpKind.PLUS, 4, "0"), "'h_init'"),
        (lambda: compute.histogram_even(x, out, 3, np.int32(0), np.float32(8), 4), "must have the same dtype"),
        (lambda: compute.reduce_into(np.array([None]), out, OpKind.PLUS, 1, zero), "'d_in'"),
        (lambda: compute.reduce_into(x.astype(">i8"), out, OpKind.PLUS, 1, zero), "'d_in': .* its byte order"),
        (lambda: compute.reduce_into(x.astype("M8[s]"), out, OpKind.PLUS, 1, zero), "'d_in': .* pass its numbers"),
        (lambda: compute.reduce_into(np.ma.masked_less(x, 2), out, OpKind.PLUS, 4, zero), "'d_in': a masked array"),
        (
            lambda: compute.reduce_into(x, out, max, 4, zero),
            "a RawOp, found <built-in function max>; a lambda may call",
        ),
        (lambda: compute.reduce_into(np.array([(1, None)], "i4,O"), out, OpKind.PLUS, 1, zero), "'d_in'"),
    ]
    for call, words in wrong:
        with pytest.raises(TileTypeError, match=words):
            call()
    assert not out.any()


def test_more_items_than_an_iterator_has():
    x, out = np.arange(4), np.zeros(9, np.int64)
    its = [
        compute.TransformIterator(x, OpKind.NEGATE),
        compute.ReverseIterator(x),
        compute.PermutationIterator(compute.CountingIterator(np.int64(0)), x),
        compute.ZipIterator(compute.CountingIterator(np.int64(0)), x),
        compute.CacheModifiedInputIterator(x),
        compute.TransformIterator(x, OpKind.NEGATE) + 1,
        compute.ShuffleIterator(4),
    ]
    for it in its:
        with pytest.raises(TileValueError, match=r"'d_in' has [34] items, 5 were asked for"):
            compute.unary_transform(it, compute.DiscardIterator(it if it.value_type == x.dtype else x), lambda v: 0, 5)
    with pytest.raises(TileValueError, match="'d_out' has 9 items, 10 were asked for"):
        counts = compute.CountingIterator(np.int64(0))
        compute.unary_transform(counts, compute.TransformOutputIterator(out, OpKind.NEGATE), OpKind.IDENTITY, 10)
    assert not out.any()


@pytest.mark.parametrize(
    "make",
    [
        lambda: compute.CountingIterator("a"),
        lambda: compute.ConstantIterator(None),
        lambda: compute.TransformIterator(np.arange(4), 3),
        lambda: compute.ReverseIterator([1, 2]),
        lambda: compute.ShuffleIterator(0),
        lambda: compute.PermutationIterator(np.arange(4), np.arange(4.0)),
        lambda: compute.CacheModifiedInputIterator(np.arange(4), "none such"),
    ],
)
def test_an_iterator_of_what_is_wrong(make):
    with pytest.raises((TileTypeError, TileValueError)) as found:
        make()
    assert [frame.path.name for frame in found.traceback] == [Path(__file__).name] * 2


def test_items_before_the_first_of_an_iterator():
    x, out = np.arange(4), np.zeros(4, np.int64)
    behind = compute.TransformIterator(x, OpKind.NEGATE)
    its = [
        (compute.ReverseIterator(behind), r"1 items, 2 were asked for; its items are -3 to 0, it \+ \(-3\) begins"),
        (compute.ReverseIterator(compute.ReverseIterator(x)), "1 items, 2 "),
        (behind + (-1), "0 items, 2 were asked for; its items are 1 to 4, it "),
        (compute.ReverseIterator(compute.ShuffleIterator(4)), "1 items, 2 "),
        (compute.ZipIterator(compute.CountingIterator(np.int64(0)), compute.ReverseIterator(behind)), "1 items"),
    ]
    for it, told in its:
        with pytest.raises(TileValueError, match=f"'d_in' has {told}"):
            compute.unary_transform(it, compute.DiscardIterator(x), lambda v: 0, 2)
    compute.unary_transform(compute.ReverseIterator(behind) + (-3), out, OpKind.IDENTITY, 4)
    assert list(out) == [-3, -2, -1, 0]
    compute.unary_transform(compute.ReverseIterator(x) + 1, out, OpKind.IDENTITY, 3)
    assert list(out) == [2, 1, 0, 0]


@pytest.mark.parametrize("planned", [False, True])
def test_iterators_over_the_output(planned):
    """An item that is written is read at the same place, or not at all; of places that data says the user knows."""
    x, other = np.arange(10), np.zeros(10, np.int64)
    less, back, counts = compute.TransformIterator(x, OpKind.NEGATE), compute.ReverseIterator(x), np.arange(10)
    zipped = compute.ZipIterator(compute.CountingIterator(np.int64(0)), back)
    cases = [
        (less, x, 10, 1 - counts),
        (less, x[1:], 9, None),
        (less + 5, x, 5, [-4, -5, -6, -7, -8, 5, 6, 7, 8, 9]),
        (less + 4, x, 5, None),
        (back, x, 10, None),
        (back, x, 5, [10, 9, 8, 7, 6, 5, 6, 7, 8, 9]),
        (back, x, 6, None),
        (back, back, 10, counts + 1),
        (x, compute.TransformOutputIterator(back, OpKind.NEGATE), 10, None),
        (compute.TransformIterator(zipped, lambda v: v[0]), x, 10, None),
        (compute.PermutationIterator(x, counts), x, 10, counts + 1),
        (compute.PermutationIterator(counts, x), x[1:], 9, None),
    ]
    for given, out, n, wanted in cases:
        x[:] = counts
        transform = compute.make_unary_transform(given, out, lambda v: v + 1)
        if planned and isinstance(out, np.ndarray):
            for _ in range(3):  # of arrays that are apart there are plans
                transform(given, other, lambda v: v + 1, n)
        if wanted is None:
            with pytest.raises(TileValueError, match="'d_out' shares memory with 'd_in'"):
                transform(given, out, lambda v: v + 1, n)
            assert (x == counts).all()
        else:
            transform(given, out, lambda v: v + 1, n)
            assert list(x) == list(wanted)


@pytest.mark.parametrize("order", [None, 7, "up"])
def test_an_order_that_does_not_exist(order):
    x, y = np.arange(4), np.zeros(4, np.int64)
    with pytest.raises(TileValueError, match="radix_sort: 'order' is one of SortOrder.ASCENDING, .* found"):
        compute.radix_sort(x, y, None, None, order, 4)
    with pytest.raises(TileValueError, match="segmented_sort: 'order' is one of SortOrder.ASCENDING, Sort"):
        compute.segmented_sort(x, y, None, None, 4, 1, np.array([0]), np.array([4]), order)
    assert not y.any()


def test_a_determinism_that_does_not_exist():
    x, y = np.arange(4), np.zeros(4, np.int64)
    with pytest.raises(TileValueError, match="reduce_into: 'determinism' is one of Determinism.NOT_GUAR.* 'no'"):
        compute.reduce_into(x, y, OpKind.PLUS, 4, np.int64(0), determinism="no")
    with pytest.raises(TileValueError, match="exclusive_scan: 'determinism' is one of"):
        compute.exclusive_scan(x, y, OpKind.PLUS, np.int64(0), 4, determinism=None)
    assert not y.any()


def test_arrays_that_are_missing(case):
    made, values, storage = case
    for name in {*made.ins, *made.outs} & values.keys() - made.optional:
        refused(made, storage, values | {name: None}, TileTypeError, f"needs the argument '{name}'")
    for name in made.order:
        rest = {key: value for key, value in values.items() if key != name}
        if name in values and name not in made.optional:
            refused(made, storage, rest, TileTypeError, f"needs the argument '{name}'")


@pytest.mark.parametrize("name", EVERY)
def test_objects_without_an_array(name):
    call = calls()[name]
    algorithm = type(call.make(**call.made_of))
    for array in {*algorithm.ins, *algorithm.outs} & call.made_of.keys() - algorithm.optional:
        with pytest.raises(TileTypeError, match=f"{name} needs the argument '{array}', found None"):
            call.make(**call.made_of | {array: None})


def test_arguments_that_may_be_left_out():
    """Those that `cuda.compute` has values for: what goes along with keys, and the value before the first item."""
    x, out, ends = np.array([3, 1, 2]), np.zeros(3, np.int64), [np.array([0]), np.array([3])]
    compute.merge_sort(d_in_keys=x, d_out_keys=out, op=OpKind.GREATER, num_items=3)
    assert list(out) == [3, 2, 1]
    compute.radix_sort(d_in_keys=x, d_out_keys=out, order=SortOrder.ASCENDING, num_items=3)
    assert list(out) == [1, 2, 3]
    bounds = {"start_offsets_in": ends[0], "end_offsets_in": ends[1]}
    compute.segmented_sort(
        d_in_keys=x, d_out_keys=out, num_items=3, num_segments=1, order=SortOrder.DESCENDING, **bounds
    )
    assert list(out) == [3, 2, 1]
    buffer = compute.DoubleBuffer(x.copy(), out)
    compute.segmented_sort(d_in_keys=buffer, num_items=3, num_segments=1, order=SortOrder.ASCENDING, **bounds)
    assert list(buffer.current()) == [1, 2, 3]
    compute.inclusive_scan(d_in=x, d_out=out, op=OpKind.PLUS, num_items=3)
    assert list(out) == [3, 4, 6]
    compute.segmented_inclusive_scan(x, out, *ends, OpKind.MAXIMUM, num_segments=1)
    assert list(out) == [3, 3, 3]
    keys = {"d_in_keys": x, "d_out_keys": out}
    for call, words in [
        (lambda: compute.merge_sort(**keys, num_items=3), "'op' is a function"),
        (lambda: compute.merge_sort(**keys, op=OpKind.LESS), "'num_items' is an integer"),
        (lambda: compute.radix_sort(**keys, num_items=3), "'order' is one of"),
        (lambda: compute.radix_sort(d_in_keys=x, d_out_keys=None, order=SortOrder.ASCENDING, num_items=3), "'d_out_k"),
        (lambda: compute.radix_sort(x, out, x, None, SortOrder.ASCENDING, 3), "'d_out_values', for 'd_in_values' is"),
        (lambda: compute.inclusive_scan(x, out, OpKind.PLUS), "'num_items' is an integer"),
    ]:
        with pytest.raises((TileTypeError, TileValueError), match=words):
            call()


class StreamOf:
    def __init__(self, told):
        self.told = told

    def __cuda_stream__(self):
        return self.told


@pytest.mark.parametrize(
    ("stream", "words"),
    [
        (object(), "does not implement the '__cuda_stream__' protocol"),
        (StreamOf(None), "could not obtain __cuda_stream__ protocol version and handle"),
        (StreamOf((0, None)), "invalid stream handle None"),
        (StreamOf((7, 0)), "unsupported __cuda_stream__ version 7"),
        (StreamOf((0, -5)), "invalid stream handle -5"),
    ],
)
def test_streams(stream, words):
    """In all stages, and before anything is written."""
    x, out = np.arange(4), np.zeros(1, np.int64)
    made = compute.make_reduce_into(x, out, OpKind.PLUS, np.int64(0))
    values = {"d_in": x, "d_out": out, "op": OpKind.PLUS, "num_items": 4, "h_init": np.int64(0)}
    storage = np.zeros(made(None, **values), np.uint8)
    for temporary in (None, storage):
        with pytest.raises((TileTypeError, TileValueError), match=words):
            made(temporary, **values, stream=stream)
    with pytest.raises((TileTypeError, TileValueError), match=words):
        compute.reduce_into(**values, stream=stream)
    assert not out.any()
    made(storage, **values, stream=StreamOf((0, 0)))
    assert out[0] == 6


def test_structs_of_other_fields():
    """A field that is cut off is no conversion that anybody asked for."""

    @compute.gpu_struct
    class Narrow:
        x: np.int32
        y: np.int32

    def add(a, b):
        return Narrow(a.x + b.x, a.y + b.y)

    wide = np.array([(1, 1 << 40)] * 4, np.dtype([("x", "i4"), ("y", "i8")], align=True))
    out, ends, init = np.zeros(4, Narrow.dtype), [np.array([0]), np.array([4])], Narrow(0, 0)
    for call in [
        lambda: compute.reduce_into(wide, out, add, 4, init),
        lambda: compute.inclusive_scan(wide, out, add, init, 4),
        lambda: compute.exclusive_scan(wide, out, add, init, 4),
        lambda: compute.segmented_reduce(wide, out, *ends, add, init, 1),
        lambda: compute.segmented_inclusive_scan(wide, out, *ends, add, init, 1),
    ]:
        with pytest.raises(TileTypeError, match="dtype mismatch: input dtype is .*int64, .* struct Narrow of int32, i"):
            call()
    assert not out["x"].any()
    narrowed = compute.TransformIterator(wide, lambda v: Narrow(v.x, v.y >> 38))
    compute.reduce_into(narrowed, out, add, 4, init)
    assert tuple(out[0]) == (4, 16)
    other_names = np.array([(1, 2)] * 4, np.dtype([("a", "i4"), ("b", "i4")]))
    compute.reduce_into(other_names, out, add, 4, init)
    assert tuple(out[0]) == (4, 8)


def test_a_proxy_has_no_memory():
    proxy = compute.ProxyArray(np.float32)
    assert proxy.__cuda_array_interface__["typestr"] == "<f4"
    for ask in (lambda found: found["data"], lambda found: found.get("data")):
        with pytest.raises(RuntimeError, match="build-time placeholder"):
            ask(proxy.__cuda_array_interface__)


@pytest.mark.parametrize("search", ["lower_bound", "upper_bound"])
def test_places_that_an_output_does_not_hold(search):
    data, values = np.arange(300, dtype=np.int32), np.array([5, 290], np.int32)
    for dtype, most in ((np.int8, 127), (np.uint8, 255), (np.int16, 300)):
        out = np.zeros(2, dtype)
        made = getattr(compute, f"make_{search}")(data, values, out)
        for _ in range(2):  # without a plan, and with one
            made(data, values, out, None, min(most, 300), 2)
            assert list(out) == [5 + (search == "upper_bound"), most if most < 290 else 290 + (search == "upper_bound")]
            if most < 300:
                out[:] = 0
                with pytest.raises(TileValueError, match=f"{search}: 'd_out' has items of u?int8.* up to {most + 1}"):
                    made(data, values, out, None, most + 1, 2)
                assert not out.any()
        assert made.plans


def test_counts_that_an_output_does_not_hold():
    x, out = np.zeros(300, np.int32), np.ones(300, np.int32)
    for dtype, most in ((np.int8, 127), (np.uint8, 255)):
        count = np.zeros(1, dtype)
        made = compute.make_select(x, out, count, lambda v: v == 0)
        storage = np.zeros(made(None, x, out, count, lambda v: v == 0, 300), np.uint8)
        for _ in range(2):  # without a plan, and with one
            made(storage, x, out, count, lambda v: v == 0, most)
            assert count[0] == most and not out[:most].any()
            count[0], out[:] = 0, 1
            with pytest.raises(TileValueError, match=f"'d_num_selected_out' has items of u?int8, .* up to {most + 1}"):
                made(storage, x, out, count, lambda v: v == 0, most + 1)
            assert count[0] == 0 and out.all()


def test_numbers_that_are_none():
    x, y, ends, zero = np.arange(4), np.zeros(4, np.int64), [np.array([0]), np.array([4])], np.int64(0)
    sort, histogram = compute.radix_sort, compute.histogram_even
    buffer, counting = compute.DoubleBuffer(x.copy(), y), compute.CountingIterator(np.int32(0))
    unaligned = np.zeros(33, np.uint8)[1:].view(np.int64)
    wrong = [
        (lambda: compute.reduce_into(counting, y, OpKind.MAXIMUM, 1 << 63, zero), "'num_items' is below 2\\*\\*63"),
        (lambda: sort(x, y, None, None, SortOrder.ASCENDING, 4, "a", 8), "'begin_bit' and 'end_bit' are integers"),
        (lambda: sort(x, y, None, None, SortOrder.ASCENDING, 4, 0, 1.5), "'begin_bit' and 'end_bit' are integers"),
        (lambda: sort(buffer, None, x, x.copy(), SortOrder.ASCENDING, 4), "both DoubleBuffers, or both arrays"),
        (lambda: sort(x, y, buffer, None, SortOrder.ASCENDING, 4), "both DoubleBuffers, or both arrays"),
        (lambda: histogram(x * 1.0, y, 5, np.nan, 1.0, 4), "the lower level is below the upper one"),
        (lambda: histogram(x * 1.0, y, 5, -np.inf, 0.0, 4), "and not infinite"),
        (
            lambda: compute.segmented_reduce(x, y, *ends, OpKind.PLUS, zero, 1, max_segment_size=-1),
            "'max_segment_size'",
        ),
        (lambda: compute.segmented_reduce(x, y, *ends, OpKind.PLUS, zero, 1, max_segment_size="1"), "'max_segment_s"),
        (lambda: compute.unary_transform(unaligned, y, OpKind.NEGATE, 4), "unary_transform: 'd_in': its address .*8 b"),
        (lambda: compute.unary_transform(x, unaligned, OpKind.NEGATE, 4), "unary_transform: 'd_out': its address"),
        (lambda: compute.topk(x, 1.5), "topk: k is an integer"),
        (lambda: compute.ShuffleIterator(2.5), "num_items is an integer"),
        (lambda: compute.ShuffleIterator(2, 0.5), "seed is an integer"),
        (lambda: compute.ShuffleIterator(1 << 62), "num_items must be > 0 and < 2\\*\\*62"),
    ]
    for call, words in wrong:
        with pytest.raises((TileTypeError, TileValueError), match=words):
            call()
    assert not y.any() and not unaligned.any()


def test_known_operators_of_structs():
    @compute.gpu_struct
    class Pair:
        a: np.int32
        b: np.float32

    x, out = np.array([(1, 2), (3, 4)], Pair.dtype), np.zeros(2, Pair.dtype)
    pairs = compute.ZipIterator(np.arange(2), np.arange(2))
    for op in (OpKind.PLUS, OpKind.DIVIDES, OpKind.MAXIMUM):
        with pytest.raises(
            TileTypeError, match=f"reduce_into: 'op': OpKind.{op.name} is for numbers, found struct Pai"
        ):
            compute.reduce_into(x, out, op, 2, Pair(0, 0))
    with pytest.raises(TileTypeError, match="'op': OpKind.DIVIDES is for numbers, found a tuple; write a function"):
        compute.inclusive_scan(pairs, compute.DiscardIterator(pairs), OpKind.DIVIDES, None, 2)
    compute.unary_transform(x, out, OpKind.IDENTITY, 2)
    assert out.tolist() == x.tolist()
