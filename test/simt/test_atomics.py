"""Atomics and fences: every operation on every dtype, in every order and scope."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from cuda import device
from tilewright import compile as compiler
from tilewright import plans
from tilewright.capture import ArrayArgument, capture
from tilewright.dtype import as_dtype
from tilewright.errors import TileError, TileTypeError, TileValueError

ORDERS = ("relaxed", "consume", "acquire", "release", "acq_rel", "seq_cst")
SCOPES = ("thread", "block", "device", "system")
NUMBERS = (np.int32, np.uint32, np.int64, np.uint64, np.float32, np.float64)
INTEGERS = NUMBERS[:4]
FIRST_LINES = {"add": 417, "sub": 426, "and_": 435, "or_": 442, "xor": 449, "max": 456, "nanmax": 465, "min": 477}
FIRST_LINES["nanmin"] = 486  # of checklist.tsv: the operation, what it gives, the dtypes, the error


def spec(name: str, count: int) -> Any:
    return pytest.mark.spec(*(f"D-{FIRST_LINES[name] + i}" for i in range(count)))


@device.kernel
def arithmetic(x, y, out):
    """Each method once, on an element of its own, from a global and from a shared array."""
    s = device.shared_array(6, x.dtype)
    i = device.thread_idx.x
    if i < 6:
        s[i] = x[i]
    device.syncthreads()
    if i == 0:
        for k in device_range(6):
            out[0, k] = change(device.atomic_ref(x, k), k, y[k])
            out[1, k] = change(device.atomic_ref(s, k), k, y[k])
            out[2, k] = s[k]


def device_range(n):
    return range(n)


@device.func
def change(ref, k, y):
    if k == 0:
        return ref.add(y)
    if k == 1:
        return ref.sub(y, "relaxed")
    if k == 2:
        return ref.max(y, "acquire", "device")
    if k == 3:
        return ref.nanmax(y, memory="release", scope="block")
    if k == 4:
        return ref.min(y, scope="thread")
    return ref.nanmin(y, "acq_rel")


@spec("add", 8)
@spec("sub", 8)
@spec("max", 8)
@spec("nanmax", 8)
@spec("min", 8)
@spec("nanmin", 8)
@pytest.mark.spec("D-476", "D-497", "D-499", "D-501", "D-393", "D-394", "D-400")
@pytest.mark.parametrize("dtype", NUMBERS)
def test_arithmetic(run: Any, dtype: Any) -> None:
    start = np.array([5, 5, 5, 9, 5, 5]).astype(dtype)
    y = np.array([7, 9, 6, 4, 6, -3]).astype(dtype)
    x, out = start.copy(), np.zeros((3, 6), dtype)
    run(arithmetic, x, y, out, grid=1, block=8)
    with np.errstate(all="ignore"):
        sums = [start[0] + y[0], start[1] - y[1]]
    expected = np.array([*sums, 6, 9, 5, min(start[5], y[5])], dtype)
    np.testing.assert_array_equal(x, expected)
    np.testing.assert_array_equal(out, [start, start, expected])


@device.kernel
def of_bits(x, y, out):
    out[0] = device.atomic_ref(x, 0).and_(y[0])
    out[1] = device.atomic_ref(x, 1).or_(y[1], "relaxed", "device")
    out[2] = device.atomic_ref(x, 2).xor(y[2], scope="block")


@spec("and_", 6)
@spec("or_", 6)
@spec("xor", 6)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_bits(run: Any, dtype: Any) -> None:
    start, y = np.array([0b1100, 0b1100, 0b1100], dtype), np.array([0b1010, 0b1010, 0b1010], dtype)
    x, out = start.copy(), np.zeros(3, dtype)
    run(of_bits, x, y, out, grid=1, block=1)
    assert x.tolist() == [0b1000, 0b1110, 0b0110] and out.tolist() == start.tolist()


@device.kernel
def exchanges(x, y, out):
    """The neighbours of bytes stay."""
    out[0] = device.atomic_ref(x, 1).exch(y[0])
    out[1] = device.atomic_ref(x, 2).cas(y[1], y[2])
    out[2] = device.atomic_ref(x, 3).cas(y[1], y[2])
    out[3] = device.atomic_ref(x, 1).load()
    device.atomic_ref(x, 4).store(y[3])


EXCHANGED = (*NUMBERS, np.int8, np.uint8, np.int16, np.uint16, np.float16)


@pytest.mark.spec("D-403", "D-406", "D-409", "D-410", "D-412", "D-413", "D-415")
@pytest.mark.parametrize("dtype", EXCHANGED)
def test_exchanges(run: Any, dtype: Any) -> None:
    x, y = np.arange(1, 9).astype(dtype), np.array([100, 3, 90, 80], dtype)
    out = np.zeros(4, dtype)
    run(exchanges, x, y, out, grid=1, block=1)
    assert x.tolist() == [1, 100, 90, 4, 80, 6, 7, 8]
    assert out.tolist() == [2, 3, 4, 100]


@device.kernel
def with_nan(x, y):
    device.atomic_ref(x, 0).max(y[0])
    device.atomic_ref(x, 1).nanmax(y[1])
    device.atomic_ref(x, 2).nanmax(y[2])
    device.atomic_ref(x, 3).min(y[3])
    device.atomic_ref(x, 4).nanmin(y[4])
    device.atomic_ref(x, 5).nanmin(y[5])
    device.atomic_ref(x, 6).cas(y[6], 5.0)
    device.atomic_ref(x, 7).cas(0.0, 5.0)


@pytest.mark.spec("D-414", "D-456", "D-474", "D-475", "D-477", "D-495", "D-496")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nan_and_zeros(run: Any, dtype: Any) -> None:
    nan = math.nan
    x = np.array([1, 1, nan, 1, 1, nan, nan, -0.0], dtype)
    y = np.array([nan, nan, 2, nan, nan, 2, nan, 0], dtype)
    run(with_nan, x, y, grid=1, block=1)
    np.testing.assert_array_equal(x, np.array([nan, 1, 2, nan, 1, 2, 5, -0.0], dtype))
    assert np.signbit(x[7])


@device.kernel
def histogram(values, bins, tickets):
    i = device.tid(1)
    if i < values.size:
        device.atomic_ref(bins, values[i] & 15).add(1)
        tickets[device.atomic_ref(bins, 16).add(1, "relaxed", "device")] = i


@pytest.mark.spec("D-418", "D-498", "D-502", "D-382", "D-391")
def test_every_thread_counts_once(run: Any) -> None:
    values = (np.arange(300) * 7 % 23).astype(np.int32)
    bins, tickets = np.zeros(17, np.int32), np.full(300, -1, np.int32)
    run(histogram, values, bins, tickets, grid=3, block=128)
    np.testing.assert_array_equal(bins[:16], np.bincount(values & 15, minlength=16))
    np.testing.assert_array_equal(np.sort(tickets), np.arange(300))


@device.kernel
def of_all(values, own, out):
    """All threads change one element, of the launch and of the block, and none asks what it was."""
    shared = device.shared_array(8, values.dtype)
    i = device.thread_idx.x
    if i < 8:
        shared[i] = own[i]
    device.syncthreads()
    for k in device_range(8):
        change_quietly(device.atomic_ref(out, k), k, values[i])
        change_quietly(device.atomic_ref(shared, k), k, values[i])
    device.syncthreads()
    if i < 8:
        own[i] = shared[i]


@device.func
def change_quietly(ref, k, y):
    if k == 0:
        ref.add(y, "relaxed", "device")
    if k == 1:
        ref.sub(y, "relaxed", "device")
    if k == 2:
        ref.max(y, "relaxed", "device")
    if k == 3:
        ref.min(y, "relaxed", "device")
    if k == 4:
        ref.nanmax(y, "relaxed", "device")
    if k == 5:
        ref.nanmin(y, "relaxed", "device")
    if k == 6:
        ref.add(y.dtype(3), "relaxed", "device")
    if k == 7:
        ref.max(y.dtype(3), "relaxed", "device")


@pytest.mark.parametrize("threads", [8, 64, 83])
@pytest.mark.parametrize("dtype", NUMBERS)
def test_all_threads_change_one_element(run: Any, dtype: Any, threads: int) -> None:
    values = np.random.default_rng(threads).integers(1, 9, threads).astype(dtype)
    own, out = np.full(8, 5, dtype), np.full(8, 5, dtype)
    run(of_all, values, own, out, grid=1, block=threads)
    low, high = min(values.min(), 5), max(values.max(), 5)
    with np.errstate(all="ignore"):
        expected = np.array([5 + values.sum(), 0, high, low, high, low, 5 + 3 * threads, 5]).astype(dtype)
        expected[1] = dtype(5) - values.sum(dtype=dtype)
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(own, expected)


@device.kernel
def relay(x, out):
    """The threads take turns; the last lane of a warp is first."""
    t = device.thread_idx.x
    turn = device.atomic_ref(x, 0)
    mine = device.block_dim.x - 1 - t
    while turn.load("acquire", "block") != mine:
        pass
    out[mine] = t
    turn.store(mine + 1, "release", "block")
    turn.notify_all()


@device.kernel
def waiting(x, out):
    t = device.thread_idx.x
    if t == 0:
        device.atomic_ref(x, 0).wait(0)
        out[0] = x[1]
    if t == 40:
        x[1] = 9
        device.threadfence("release", "device")
        device.atomic_ref(x, 0).store(1)
        device.atomic_ref(x, 0).notify_one()


@pytest.mark.spec("D-500", "D-385", "D-376", "D-378", "D-379")
def test_threads_that_wait_for_each_other(run: Any) -> None:
    x, out = np.zeros(2, np.int32), np.zeros(48, np.int32)
    run(relay, x, out, grid=1, block=48)
    np.testing.assert_array_equal(out, np.arange(48)[::-1])
    x[:] = 0
    run(waiting, x, out, grid=1, block=48)
    assert out[0] == 9


@pytest.mark.spec(
    "D-375", "D-376", "D-377", "D-378", "D-379", "D-380", "D-381", "D-386", "D-387", "D-388", "D-389", "D-390",
    "D-503", "D-504", "D-505",
)  # a table of several in a line  # fmt: skip
def test_orders_and_scopes(run: Any) -> None:
    @device.kernel
    def k(x, memory: device.ConstExpr, scope: device.ConstExpr):
        device.threadfence(memory, scope)
        device.atomic_ref(x, 0).add(1, memory, scope)

    x = np.zeros(1, np.int32)
    for memory in ORDERS:
        run(k, x, memory, "device", grid=1, block=2)
    for scope in SCOPES:
        run(k, x, "acq_rel", scope, grid=1, block=2)
    assert x[0] == 2 * (len(ORDERS) + len(SCOPES))


@device.struct
class Pair:
    low: device.float32
    high: device.uint32


@device.struct
class Wide:
    a: device.float64
    b: device.float64
    c: device.int32


@device.kernel
def of_structs(x, out):
    out[0] = device.atomic_ref(x, 0).exch(Pair(2.5, 7))
    out[1] = device.atomic_ref(x, 1).cas(Pair(1.0, 1), Pair(9.0, 9))
    out[2] = device.atomic_ref(x, 2).cas(Pair(1.0, 1), Pair(9.0, 9), "acq_rel", "device")
    out[3] = device.atomic_ref(x, 1).load("acquire")
    device.atomic_ref(x, 3).store(Pair(-1.0, 3))


@pytest.mark.spec("D-403", "D-406", "D-410", "D-412", "D-415")
def test_structs_of_8_bytes(run: Any) -> None:
    x, out = np.zeros(4, Pair.dtype), np.zeros(4, Pair.dtype)
    x["low"], x["high"] = 1, [0, 1, 2, 3]
    start = x.copy()
    run(of_structs, x, out, grid=1, block=1)
    assert x.tolist() == [(2.5, 7), (9.0, 9), (1.0, 2), (-1.0, 3)]
    assert out.tolist() == [*start.tolist()[:3], (9.0, 9)]


@device.struct
class Mixed:
    a: device.int32
    b: device.int16
    c: device.bool_
    d: device.float64


@device.struct
class Quad:
    v: device.float32x4


@device.kernel
def of_16_bytes(x, out):
    out[0] = device.atomic_ref(x, 0).load("acquire")
    device.atomic_ref(x, 1).store(out[0], "release", "device")
    device.atomic_ref(out, 1).store(x[2])
    out[2] = device.atomic_ref(out, 1).load("relaxed", "block")


PAIRS = {
    "complex": (np.complex128, [1 + 2j, -3.5j, 7, 0]),
    "vectors": (Quad.dtype, [((1, 2, 3, 4),), ((5, 6, 7, 8),), ((9, 10, 11, -0.0),), ((0, 0, 0, 0),)]),
    "structs": (Mixed.dtype, [(-1, -2, True, 0.5), (0, 0, False, 0), (7, 3, True, math.inf), (0, 0, False, 0)]),
}


@pytest.mark.spec("D-404", "D-407")
@pytest.mark.parametrize("name", PAIRS)
def test_loads_and_stores_of_16_bytes(run: Any, name: str) -> None:
    x = np.array(PAIRS[name][1], PAIRS[name][0])
    start, out = x.copy(), np.zeros(3, x.dtype)
    run(of_16_bytes, x, out, grid=1, block=1)
    assert out.tolist() == [start.tolist()[i] for i in (0, 2, 2)]
    assert x.tolist() == [start.tolist()[i] for i in (0, 0, 2, 3)]


@device.kernel
def torn(x, bad):
    """Half of the threads store pairs of equal numbers, and the others look for one that is not."""
    ref = device.atomic_ref(x, 0)
    i = device.tid(1)
    for _ in range(50):
        if i % 2 == 0:
            ref.store(device.complex128(i, i), "relaxed", "device")
        else:
            seen = ref.load("relaxed", "device")
            if seen.real != seen.imag:
                bad[0] = 1


@pytest.mark.spec("D-404", "D-407")
def test_16_bytes_are_never_seen_in_part(run: Any) -> None:
    bad = np.zeros(1, np.int32)
    run(torn, np.zeros(1, np.complex128), bad, grid=4, block=8)
    assert bad[0] == 0


# --- errors -----------------------------------------------------------------------------------------


def refused(body: Any, array: Any, match: str) -> None:
    @device.kernel
    def k(x):
        body(x)

    with pytest.raises((TileTypeError, TileValueError), match=match):
        device.launch(k, array, grid=1, block=1)


@pytest.mark.spec("D-383", "D-384", "D-392")
@pytest.mark.parametrize(
    ("body", "match"),
    [
        (
            lambda x: device.atomic_ref(x, 0).add(1, "weak"),
            "add: memory: expected one of 'relaxed', .*'seq_cst', found 'weak'",
        ),
        (lambda x: device.atomic_ref(x, 0).add(1, None), "add: memory: expected one of"),
        (lambda x: device.atomic_ref(x, 0).add(1, 3), "add: memory: expected one of .* found the constant 3"),
        (
            lambda x: device.atomic_ref(x, 0).add(1, scope="cluster"),
            "add: scope: expected one of 'block', .* found 'cluster'",
        ),
        (lambda x: device.threadfence("sequential"), "device.threadfence: memory: expected one of"),
        (lambda x: device.threadfence(scope="gpu"), "device.threadfence: scope: expected one of"),
        (lambda x: device.atomic_ref(x, 0).load("release"), "load has no memory order 'release'"),
        (lambda x: device.atomic_ref(x, 0).load("acq_rel"), "load has no memory order 'acq_rel'"),
        (lambda x: device.atomic_ref(x, 0).store(1, "acquire"), "store has no memory order 'acquire'; it has relaxed"),
        (lambda x: device.atomic_ref(x, 0).store(1, "consume"), "store has no memory order 'consume'"),
        (lambda x: device.atomic_ref(x, 0).store(1, "acq_rel"), "store has no memory order 'acq_rel'"),
        (lambda x: device.atomic_ref(x, 0).increment(), "an atomic has no attribute 'increment'; it has dtype, load"),
        (lambda x: device.atomic_ref(x, (0, 0)).add(1), "indexed by 1 integers"),
        (lambda x: device.atomic_ref(x[0], 0).add(1), "device.atomic_ref takes an array and an index, found"),
        (lambda x: device.atomic_ref(device.local_array(4, device.int32), 0).add(1), "found a local array"),
    ],
)
def test_wrong_orders_scopes_and_objects(body: Any, match: str) -> None:
    refused(body, np.zeros(2, np.int32), match)


@pytest.mark.spec("D-405", "D-408", "D-411", "D-416")
@pytest.mark.parametrize(
    ("body", "match"),
    [
        (lambda x: device.atomic_ref(x, 0).load(), "load of an atomic Wide: it has 24 bytes; the most is 16"),
        (lambda x: device.atomic_ref(x, 0).store(x[1]), "store of an atomic Wide: it has 24 bytes; the most is 16"),
        (lambda x: device.atomic_ref(x, 0).exch(x[1]), "exch of an atomic Wide: it has 24 bytes; the most is 8"),
        (lambda x: device.atomic_ref(x, 0).cas(x[1], x[1]), "cas of an atomic Wide: it has 24 bytes; the most is 8"),
        (lambda x: device.atomic_ref(x, 0).add(1), "an atomic Wide has no attribute 'add'; it has dtype, load, store"),
    ],
)
def test_structs_that_are_too_large(body: Any, match: str) -> None:
    refused(body, np.zeros(2, Wide.dtype), match)


@pytest.mark.host_execution
def test_structs_have_no_sums(run: Any) -> None:
    @device.kernel
    def k(x):
        device.atomic_ref(x, 0).add(1)

    with pytest.raises(TileTypeError, match="an atomic Pair has no attribute 'add'; it has dtype, load, store, exch"):
        run(k, np.zeros(2, Pair.dtype))


OF_NUMBERS = ("add", "sub", "max", "nanmax", "min", "nanmin")


@pytest.mark.spec("D-425", "D-434", "D-441", "D-448", "D-455", "D-464", "D-473", "D-485", "D-494")
@pytest.mark.parametrize(
    "body",
    [
        lambda x: device.atomic_ref(x, 0).add(1),
        lambda x: device.atomic_ref(x, 0).sub(1),
        lambda x: device.atomic_ref(x, 0).max(1),
        lambda x: device.atomic_ref(x, 0).nanmax(1),
        lambda x: device.atomic_ref(x, 0).min(1),
        lambda x: device.atomic_ref(x, 0).nanmin(1),
        lambda x: device.atomic_ref(x, 0).and_(1),
        lambda x: device.atomic_ref(x, 0).or_(1),
        lambda x: device.atomic_ref(x, 0).xor(1),
    ],
)
def test_dtypes_without_an_operation(body: Any) -> None:
    name = body.__code__.co_names[-1]
    dtypes = [np.int8, np.float16] if name in OF_NUMBERS else [np.int8, np.float16, np.float32]
    for dtype in dtypes:
        refused(body, np.zeros(2, dtype), rf"{name} of an atomic {np.dtype(dtype)}: expected one of int32, int64")


@pytest.mark.spec("D-402", "D-399")
def test_dtype_of_the_object(run: Any) -> None:
    @device.kernel
    def k(x, out):
        out[0] = 1 if device.atomic_ref(x, 0).dtype == device.int32 else 0

    out = np.zeros(1, np.int32)
    run(k, np.zeros(1, np.int32), out)
    assert out[0] == 1


@pytest.mark.spec("D-396", "D-397", "D-398", "D-399")
def test_objects_of_the_host() -> None:
    x = device.Atomic(device.int32)
    assert x.dtype == device.int32 and x.load() == 0 and isinstance(x, device.AtomicInterface)
    assert x.add(5) == 0 and x.max(3) == 5 and x.cas(5, 7, "acq_rel", "device") == 5 and x.exch(-1) == 7
    assert device.Atomic(float, 0.5).sub(0.25) == 0.5
    with pytest.raises(TileTypeError, match="device.Atomic: an object of 24 bytes; the most is 16"):
        device.Atomic(Wide)
    with pytest.raises(TileTypeError, match="and_ of an atomic float64: expected one of int32"):
        device.Atomic(device.float64).and_(1)


@pytest.mark.spec("D-393", "D-395")
def test_the_host_has_no_references() -> None:
    assert {"load", "store", "exch", "cas", "wait"} <= set(vars(device.AtomicInterface))
    with pytest.raises(TileError, match="can only be called in a kernel"):
        device.atomic_ref(np.zeros(1), 0)


@device.kernel
def counted(values, bins):
    i = device.tid(1)
    device.atomic_ref(bins, values[i] & 7).add(1)


def ptx_of(kernel: Any) -> str:
    arrays = [ArrayArgument(as_dtype(np.int32), 1, 16, (1,), ((1, 1),))] * 2
    captured = capture(kernel.function, arrays, "sm_90", kernel.hints_for("sm_90"), kernel.rules)
    plans.lower(captured.module, compiler.GPU_STAGES, captured.module.lower)
    return str(captured.module.emit(compiler.EMIT_ASSEMBLY).decode())


def test_sums_that_nobody_looks_at_are_relaxed() -> None:
    """A histogram has no fence, unless it asks for what it says."""
    assert "red.relaxed.sys.global.add.u32" in ptx_of(counted) and "fence.sc" not in ptx_of(counted)
    as_it_says = device.kernel(relax_atomics=False)(counted.underlying)
    assert "fence.sc.sys" in ptx_of(as_it_says)
