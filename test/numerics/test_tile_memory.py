"""load and store, gather and scatter: ranks, ragged edges, strides, orders, padding, bounds."""

from __future__ import annotations

import ctypes
import itertools
import math
import mmap
from typing import Any

import numpy as np
import pytest
from harness import ARRAY_DTYPES, Backends, random_values

from tilewright import dtype as dt
from tilewright import tile as ct
from tilewright.errors import TileError, TileTypeError
from tilewright.tile import PaddingMode

ZERO = PaddingMode.ZERO


def by_name(value: Any) -> str:
    return getattr(value, "name", str(value))


def guarded(shape: tuple[int, ...], dtype: Any, fill: Any = 0) -> np.ndarray:
    """An array inside a larger one whose other elements must not change: see intact()."""
    margin = 8
    whole = np.full(math.prod(shape) + 2 * margin, 1, dtype)
    view = whole[margin : margin + math.prod(shape)].reshape(shape)
    view[...] = fill
    return view


def intact(view: np.ndarray) -> bool:
    whole = view
    while isinstance(whole.base, np.ndarray):
        whole = whole.base
    return bool((whole[:8] == 1).all() and (whole[-8:] == 1).all())


@ct.kernel
def copy(X, Z, shape: ct.Constant):
    index = (ct.bid(0), ct.bid(1), ct.bid(2))[: X.ndim]
    ct.store(Z, index, ct.load(X, index, shape))


def tiles(shape: tuple[int, ...], tile: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(max(1, -(-n // t)) for n, t in zip(shape, tile, strict=True))


@pytest.mark.spec("T-006", "T-014", "T-046", "T-050")
@pytest.mark.parametrize("dtype", ARRAY_DTYPES, ids=by_name)
@pytest.mark.parametrize(
    ("shape", "tile"),
    [((37,), (16,)), ((64,), (32,)), ((13, 21), (4, 8)), ((5, 7, 9), (2, 4, 4)), ((3, 1), (1, 2))],
    ids=str,
)
def test_copy(backends: Backends, dtype: dt.DType, shape: Any, tile: Any) -> None:
    x = random_values(dtype, math.prod(shape)).reshape(shape)
    args = backends.run_all(copy, tiles(shape, tile), lambda: [x.copy(), guarded(shape, dtype.numpy), tile])
    assert np.array_equal(args[1].view(np.uint8), x.view(np.uint8))
    assert intact(args[1])


def test_memory_around_the_output_stays(backends: Backends) -> None:
    """Of ragged tiles, and of tiles that are outside."""
    make = lambda: [np.full((5, 7), 2, "f4"), guarded((5, 7), "f4"), (4, 8)]  # noqa: E731
    args = backends.run_all(copy, (4, 3), make)
    assert intact(args[1]) and (args[1] == 2).all()


def between_guards(values: np.ndarray, at_end: bool) -> np.ndarray:
    """A copy that ends (or begins) where a page does, beside one that no one can read or write."""
    page = mmap.PAGESIZE
    size = -(-values.nbytes // page) * page
    room = mmap.mmap(-1, size + 2 * page)
    address = ctypes.addressof(ctypes.c_char.from_buffer(room))
    for guard in (0, page + size):
        assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(address + guard), ctypes.c_size_t(page), 0) == 0
    first = page + (size - values.nbytes if at_end else 0)
    array = np.frombuffer(room, values.dtype, values.size, first).reshape(values.shape)
    array[...] = values
    return array


@pytest.mark.spec("T-003")
@pytest.mark.parametrize("at_end", [True, False])
@pytest.mark.parametrize("dtype", [ct.float32, ct.uint8, ct.bfloat16], ids=by_name)
def test_memory_outside_is_never_touched(backends: Backends, dtype: dt.DType, at_end: bool) -> None:
    """Where it were, the process would end: by ragged tiles, tiles outside, and gathers outside."""

    @ct.kernel
    def gathered(X, Z):
        i = ct.arange(64, dtype=ct.int32) - 8 + 64 * ct.bid(0)
        ct.scatter(Z, i, ct.gather(X, i))

    for kernel, shape, tile in (
        (copy, (37,), (16,)),
        (copy, (13, 21), (4, 8)),
        (copy, (5, 7, 9), (2, 4, 4)),
        (copy, (129, 257), (64, 128)),
        (gathered, (3001,), ()),
    ):
        x = random_values(dtype, math.prod(shape)).reshape(shape)
        grid = tuple(n + 1 for n in tiles(shape, tile)) if tile else 50
        make = lambda x=x, tile=tile: [  # noqa: E731
            between_guards(x, at_end), between_guards(np.zeros_like(x), at_end), *([tile] if tile else [])
        ]  # fmt: skip
        args = backends.run_all(kernel, grid, make)
        assert np.array_equal(args[1].view(np.uint8), x.view(np.uint8))


@pytest.mark.spec("T-056", "T-057")
def test_index_of_a_tile(backends: Backends) -> None:
    """Tile (i, j) has the elements from i * 4 and j * 8 on, for loads and for stores."""

    @ct.kernel
    def kernel(X, Y, Z, i, j):
        ct.store(Y, (0, 0), ct.load(X, (i, j), (4, 8)))
        ct.store(Z, (i, j), ct.load(X, (0, 0), (4, 8)))

    x = np.arange(12 * 24, dtype=np.int32).reshape(12, 24)
    for i, j in itertools.product(range(3), range(3)):
        make = lambda i=i, j=j: [x.copy(), np.zeros((4, 8), np.int32), np.zeros_like(x), i, j]  # noqa: E731
        _, y, z, *_ = backends.run_all(kernel, 1, make)
        assert np.array_equal(y, x[4 * i : 4 * i + 4, 8 * j : 8 * j + 8])
        expected = np.zeros_like(x)
        expected[4 * i : 4 * i + 4, 8 * j : 8 * j + 8] = x[:4, :8]
        assert np.array_equal(z, expected)


class OnlyDlpack:
    """An array of a library that has nothing but DLPack."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


@pytest.mark.spec("T-019")
def test_any_library_with_dlpack() -> None:
    x = random_values(ct.float32, 13 * 21).reshape(13, 21)
    for run in (copy.interpret, lambda grid, args: ct.launch(None, grid, copy, args)):
        z = np.zeros_like(x)
        run((4, 3), (OnlyDlpack(x), OnlyDlpack(z), (4, 8)))
        assert np.array_equal(x, z)


@pytest.mark.spec("T-018")
def test_another_name_for_an_array(backends: Backends) -> None:
    @ct.kernel
    def kernel(X, Z):
        y = X
        ct.store(y, 0, ct.load(X, 0, 4) + 1)
        ct.store(Z, 0, ct.load(X, 0, 4))

    x = np.arange(4, dtype=np.int32)
    y, z = backends.run_all(kernel, 1, lambda: [x.copy(), np.zeros(4, np.int32)])
    assert np.array_equal(y, x + 1) and np.array_equal(z, x + 1)


VIEWS = {
    "transposed": lambda a: a.T,
    "reversed": lambda a: a[::-1, ::-1],
    "every second": lambda a: a[::2, ::3],
    "inner": lambda a: a[3:-2, 1:-4],
    "row reversed": lambda a: a[:, ::-1],
}


@pytest.mark.spec("T-010", "T-011", "T-012", "T-054", "T-058")
@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS.keys())
@pytest.mark.parametrize("dtype", [ct.float32, ct.int8, ct.bfloat16], ids=by_name)
def test_strides(backends: Backends, view: Any, dtype: dt.DType) -> None:
    """Any strides, for reading and for writing; run_all sees that elements between them stay."""
    base = random_values(dtype, 40 * 48).reshape(40, 48)
    shape = view(base).shape
    for read, write in (("in", "dense"), ("dense", "out")):

        def make(read: str = read, write: str = write) -> list[Any]:
            x = view(base.copy()) if read == "in" else np.ascontiguousarray(view(base))
            z = view(np.zeros_like(base)) if write == "out" else np.zeros_like(x)
            return [x, z, (8, 16)]

        args = backends.run_all(copy, tiles(shape, (8, 16)), make)
        assert np.array_equal(args[1], view(base))


@pytest.mark.spec("T-012")
def test_zero_strides(backends: Backends) -> None:
    row = random_values(ct.float32, 20)
    make = lambda: [np.broadcast_to(row.copy(), (9, 20)), np.zeros((9, 20), np.float32), (4, 8)]  # noqa: E731
    _, z, _ = backends.run_all(copy, (3, 3), make)
    assert np.array_equal(z, np.broadcast_to(row, (9, 20)))


@pytest.mark.parametrize("shape", [(0,), (0, 5), (5, 0)], ids=str)
def test_zero_size(backends: Backends, shape: Any) -> None:
    tile = (4, 8)[: len(shape)]
    backends.run_all(copy, (1,) * len(shape), lambda: [np.zeros(shape, "f4"), np.zeros(shape, "f4"), tile])


@pytest.mark.spec("T-039")
def test_rank_zero(backends: Backends) -> None:
    @ct.kernel
    def kernel(X, Z):
        x = ct.load(X, (), ())
        ct.static_assert(x.shape == () and x.ndim == 0)
        ct.store(Z, (), x + 1)

    _, z = backends.run_all(kernel, 1, lambda: [np.array(41.0, "f4"), np.array(0.0, "f4")])
    assert z == 42


def test_plain_numbers_for_one_dimension(backends: Backends) -> None:
    @ct.kernel
    def kernel(X, Z):
        ct.store(Z, ct.bid(0), ct.load(X, ct.bid(0), 8) * 2)

    x = np.arange(20, dtype=np.int32)
    _, z = backends.run_all(kernel, 3, lambda: [x.copy(), np.zeros_like(x)])
    assert np.array_equal(z, 2 * x)


@pytest.mark.spec("T-059")
@pytest.mark.parametrize("order", ["C", "F", *itertools.permutations(range(3))], ids=str)
def test_order(backends: Backends, order: Any) -> None:
    @ct.kernel
    def read(X, Z):
        index = (ct.bid(0), ct.bid(1), ct.bid(2))
        ct.store(Z, index, ct.load(X, index, (2, 4, 8), order=order))

    @ct.kernel
    def write(X, Z):
        index = (ct.bid(0), ct.bid(1), ct.bid(2))
        ct.store(Z, index, ct.load(X, index, (2, 4, 8)), order=order)

    axes = {"C": (0, 1, 2), "F": (2, 1, 0)}.get(order, order)
    x = np.arange(5 * 7 * 9, dtype=np.int32).reshape(5, 7, 9)
    turned = x.transpose(axes)
    grid = tiles(turned.shape, (2, 4, 8))
    _, z = backends.run_all(read, grid, lambda: [x.copy(), np.zeros(turned.shape, np.int32)])
    assert np.array_equal(z, turned)
    _, z = backends.run_all(write, grid, lambda: [np.ascontiguousarray(turned), np.zeros(x.shape, np.int32)])
    assert np.array_equal(z, x)


PADDINGS = {
    PaddingMode.ZERO: 0.0,
    PaddingMode.NEG_ZERO: -0.0,
    PaddingMode.NAN: math.nan,
    PaddingMode.POS_INF: math.inf,
    PaddingMode.NEG_INF: -math.inf,
}
HAVE = {
    "float16": 5, "float32": 5, "float64": 5, "bfloat16": 5, "float8_e5m2": 5, "float8_e4m3fn": 3,
}  # fmt: skip


def has_value(dtype: dt.DType, mode: PaddingMode) -> bool:
    if dtype is ct.float8_e8m0fnu:
        return mode is PaddingMode.NAN
    return list(PADDINGS).index(mode) < HAVE.get(dtype.name, 1)


@pytest.mark.spec("T-161", "T-163", "T-164", "T-165", "T-166", "T-167", "T-169")
@pytest.mark.parametrize("dtype", ARRAY_DTYPES, ids=by_name)
@pytest.mark.parametrize("mode", PADDINGS, ids=by_name)
def test_padding(backends: Backends, mode: PaddingMode, dtype: dt.DType) -> None:
    @ct.kernel
    def kernel(X, Z):
        ct.store(Z, (0, 0), ct.load(X, (0, ct.bid(1)), (4, 8), padding_mode=mode))
        ct.store(Z, (1, 0), ct.load(X, (-1, 5), (4, 8), padding_mode=mode))

    x = random_values(dtype, 15).reshape(3, 5)
    make = lambda: [x.copy(), np.zeros((8, 8), dtype.numpy)]  # noqa: E731
    if not has_value(dtype, mode):
        backends.rejects(kernel, 1, make, TileTypeError, f"{dtype} has no such value")
        return
    _, z = backends.run_all(kernel, 1, make)
    assert np.array_equal(z[:3, :5].view(np.uint8), x.view(np.uint8))
    outside = np.concatenate([z[3], z[0, 5:], z[5]]).astype(np.float64)
    value = PADDINGS[mode]
    assert np.isnan(outside).all() if math.isnan(value) else (outside == value).all()
    assert math.isnan(value) or (np.signbit(outside) == (math.copysign(1, value) < 0)).all()


@pytest.mark.spec("T-162")
def test_undetermined_padding(backends: Backends) -> None:
    @ct.kernel
    def kernel(X, Z):
        ct.store(Z, (0,), ct.load(X, (0,), (16,), padding_mode=ct.PaddingMode.UNDETERMINED))

    x = random_values(ct.float32, 11)
    outside = np.arange(16) >= 11
    backends.run_all(kernel, 1, lambda: [x, np.zeros(16, "f4")], ignore={1: outside})


@pytest.mark.spec("T-151", "T-159", "T-168")
def test_enumerations() -> None:
    values = ["undetermined", "zero", "neg_zero", "nan", "pos_inf", "neg_inf"]
    assert [PaddingMode(v).name for v in values] == [v.upper() for v in values]
    modes = {"RN": "nearest_even", "RZ": "zero", "RM": "negative_inf", "RP": "positive_inf"}
    modes |= {"RA": "nearest_away", "FULL": "full", "APPROX": "approx", "RZI": "nearest_int_to_zero"}
    assert {m.name: m.value for m in ct.RoundingMode} == modes
    assert ct.RoundingMode("zero") is ct.RoundingMode.RZ


def test_check_bounds_off(backends: Backends) -> None:
    @ct.kernel
    def kernel(X, Z):
        i = (ct.bid(0),)
        ct.store(Z, i, ct.load(X, i, (8,), check_bounds=False), check_bounds=False)

    x = random_values(ct.float32, 32)
    backends.run_all(kernel, 4, lambda: [x.copy(), np.zeros_like(x)])


def test_store_converts_what_promotes(backends: Backends) -> None:
    @ct.kernel
    def kernel(X, Z):
        x = ct.load(X, (0,), (8,))
        ct.store(Z, (0,), x)
        ct.store(Z, (1,), x > 0)

    x = np.arange(-4, 4, dtype=np.int16)
    _, z = backends.run_all(kernel, 1, lambda: [x.copy(), np.zeros(16, "f4")])
    assert np.array_equal(z, np.concatenate([x, x > 0]))
    backends.rejects(kernel, 1, lambda: [x.copy(), np.zeros(16, "i1")], TileTypeError, r"int16.*int8")


# ---------------------------------------------------------------------------------------------
# What is refused


def refused(body: str) -> Any:
    kernels: dict[str, Any] = {}

    @ct.kernel
    def index_length(X):
        ct.load(X, (0,), (4, 4))

    @ct.kernel
    def shape_length(X):
        ct.load(X, (0, 0), (4,))

    @ct.kernel
    def no_power_of_two(X):
        ct.load(X, (0, 0), (4, 3))

    @ct.kernel
    def zero_extent(X):
        ct.load(X, (0, 0), (0, 4))

    @ct.kernel
    def run_time_shape(X):
        ct.load(X, (0, 0), (4, X.shape[0]))

    @ct.kernel
    def float_index(X):
        ct.load(X, (0.5, 0), (4, 4))

    @ct.kernel
    def not_an_array(X):
        ct.load(ct.zeros((4, 4), ct.int32), (0, 0), (4, 4))

    @ct.kernel
    def bad_order(X):
        ct.load(X, (0, 0), (4, 4), order=(0, 0))

    @ct.kernel
    def tile_length(X):
        ct.store(X, (0, 0), ct.zeros((4,), ct.float32))

    @ct.kernel
    def stored_to_a_tile(X):
        ct.store(ct.zeros((8, 8), ct.float32), (0, 0), ct.zeros((8, 8), ct.float32))

    @ct.kernel
    def new_array(X):
        ct.store(np.zeros((8, 8), np.float32), (0, 0), ct.zeros((8, 8), ct.float32))

    @ct.kernel
    def address(X):
        ct.load(140737488355328, (0, 0), (8, 8))

    @ct.kernel
    def pointer(X):
        ct.store(X, (0, 0), ct.full((8, 8), X.ptr, ct.float32))

    @ct.kernel
    def data(X):
        ct.store(X, (0, 0), ct.full((8, 8), X.data, ct.float32))

    kernels.update({k: v for k, v in locals().items() if k not in ("kernels", "body")})
    return kernels[body]


def proves(*values: Any, of: str | tuple[str, ...]) -> Any:
    return pytest.param(*values, id=str(values[0]), marks=pytest.mark.spec(*([of] if isinstance(of, str) else of)))


@pytest.mark.parametrize(
    ("name", "error", "match"),
    [
        ("index_length", TileTypeError, r"2( |-)[dD].* (1|shape)"),
        ("shape_length", TileTypeError, r"2( |-)[dD].* (1|shape)"),
        proves("no_power_of_two", TileTypeError, "dimension 1.*3.*power of two", of="T-033"),
        proves("zero_extent", TileTypeError, "dimension 0.*0.*power of two", of="T-033"),
        proves("run_time_shape", TileTypeError, "constant", of=("T-026", "T-032")),
        ("float_index", TileTypeError, "integer"),
        ("not_an_array", TileTypeError, "array"),
        ("bad_order", TileTypeError, "permutation"),
        ("tile_length", TileTypeError, "2( |-)[dD]"),
        proves("stored_to_a_tile", TileTypeError, "array", of="T-013"),
        proves("new_array", TileError, "array", of="T-013"),
        proves("address", TileTypeError, "array", of="T-002"),
        proves("pointer", (AttributeError, TileError), "ptr", of="T-002"),
        proves("data", (AttributeError, TileError), "data", of="T-002"),
    ],
)
def test_refused(backends: Backends, name: str, error: Any, match: str) -> None:
    backends.rejects(refused(name), 1, lambda: [np.zeros((8, 8), "f4")], error, match)


@pytest.mark.spec("T-023")
@pytest.mark.parametrize("value", ["text", None, object(), [1.0], (1, 2)])
def test_refused_arguments(backends: Backends, value: Any) -> None:
    """What no kernel takes is refused as an argument, a constant or a structure where an array is wanted."""

    @ct.kernel
    def kernel(X):
        ct.load(X, 0, 4)

    wanted = r"ct\.load needs an array \(an argument of the kernel\), found"
    match = "argument 'X'.*object" if type(value) is object else wanted
    backends.rejects(kernel, 1, lambda: [value], TileTypeError, match)


# ---------------------------------------------------------------------------------------------
# gather and scatter


@pytest.mark.spec("T-047", "T-051")
@pytest.mark.parametrize("dtype", ARRAY_DTYPES, ids=by_name)
def test_gather_and_scatter(backends: Backends, dtype: dt.DType) -> None:
    """A permutation, with indices outside on both sides."""

    @ct.kernel
    def kernel(X, N, Z, W):
        i = ct.load(N, (0,), (64,))
        ct.store(Z, (0,), ct.gather(X, i, padding_value=ct.full((), 1, dtype)))
        ct.scatter(W, i, ct.load(X, (0,), (64,)))

    x = random_values(dtype, 64)
    i = np.random.default_rng(0).permutation(80).astype(np.int32)[:64] - 8
    one = np.float32(1).astype(dtype.numpy)
    make = lambda: [x.copy(), i.copy(), np.zeros(64, x.dtype), np.full(64, one)]  # noqa: E731
    _, _, z, w = backends.run_all(kernel, 1, make)
    inside = (i >= 0) & (i < 64)
    assert np.array_equal(z.view("u1"), np.where(inside, x[i % 64], one).view("u1"))
    expected = np.full(64, one)
    expected[i[inside]] = x[inside]
    assert np.array_equal(w.view("u1"), expected.view("u1"))


@pytest.mark.parametrize("index", [ct.int8, ct.uint8, ct.int64, ct.uint32], ids=by_name)
def test_gather_in_two_dimensions(backends: Backends, index: dt.DType) -> None:
    @ct.kernel
    def kernel(X, Z, W, limit):
        r = ct.arange(8, dtype=index)[:, None]
        c = ct.arange(16, dtype=index) * 2
        t = ct.gather(X, (r, c), padding_value=-1)
        ct.store(Z, (0, 0), t)
        kept = ct.gather(X, (r, c), mask=c < limit.astype(index))
        ct.store(Z, (1, 0), kept)
        ct.scatter(W, (r, c), t * 2, mask=(r > 1) & (c < limit.astype(index)))

    x = random_values(ct.float32, 6 * 21).reshape(6, 21)
    _, z, w, _ = backends.run_all(kernel, 1, lambda: [x.copy(), np.zeros((16, 16), "f4"), np.zeros((6, 21), "f4"), 9])
    assert np.array_equal(z[:6, :11], x[:, ::2]) and (z[6:8] == -1).all()
    assert (z[8:, 5:] == 0).all() and np.array_equal(z[8:14, :5], x[:, :10:2])
    assert (w[:2] == 0).all() and np.array_equal(w[2:, :9:2], 2 * x[2:, :9:2])


def test_gather_of_one_element_for_all(backends: Backends) -> None:
    """What counts up to one counts nothing: its broadcast is the same everywhere."""

    @ct.kernel
    def kernel(X, Z, W):
        r = ct.arange(1, dtype=ct.int32)[:, None]
        ct.store(Z, (0, 0), ct.gather(X, (r, ct.zeros((1, 64), ct.int32))))
        c = ct.arange(64, dtype=ct.int32)[None, :]
        ct.scatter(W, (r + 1, c), ct.gather(X, (r, c)))

    x = random_values(ct.float32, 64 * 64).reshape(64, 64)
    _, z, w = backends.run_all(kernel, 1, lambda: [x.copy(), np.zeros((1, 64), "f4"), np.zeros((4, 64), "f4")])
    assert (z == x[0, 0]).all() and np.array_equal(w[1], x[0]) and not w[[0, 2, 3]].any()


ROWS = [(256, 256, 0), (256, 256, 64), (256, 256, 3), (200, 240, 0), (201, 240, 0), (256, 257, 0)]


@pytest.mark.parametrize("dtype", [ct.uint8, ct.bfloat16, ct.float32, ct.float64], ids=by_name)
@pytest.mark.parametrize(("width", "stride", "first"), ROWS)
def test_gather_of_rows(backends: Backends, dtype: dt.DType, width: int, stride: int, first: int) -> None:
    """Whole rows by an index tile: widths, strides and first columns that vectors divide, and others."""

    @ct.kernel
    def kernel(X, N, Z, W, first: ct.Constant):
        rows = ct.load(N, (ct.bid(0),), (4,))[:, None]
        columns = ct.arange(256, dtype=ct.int32) + first
        t = ct.gather(X, (rows, columns), padding_value=1)
        ct.store(Z, (ct.bid(0), 0), t)
        ct.scatter(W, (rows, columns), t)
        ct.scatter(W, (rows, columns), ct.gather(X, (rows, columns), mask=rows != 7), mask=rows != 5)

    base = random_values(dtype, 20 * stride).reshape(20, stride)
    x = base[:, :width]
    n = np.random.default_rng(1).permutation(22).astype(np.int32)[:16] - 1

    def make() -> list[Any]:
        into = np.zeros((20, stride), base.dtype)
        return [base.copy()[:, :width], n.copy(), np.zeros((16, 256), base.dtype), into[:, :width], first]

    _, _, z, w, _ = backends.run_all(kernel, 4, make)
    kept, inside = width - first, (n >= 0) & (n < 20)
    assert np.array_equal(z[inside, :kept].view("u1"), np.ascontiguousarray(x[n[inside], first:]).view("u1"))
    assert (z[~inside] == 1).all() and (z[:, kept:] == 1).all()
    expected = np.zeros_like(x)
    expected[n[inside], first:] = x[n[inside], first:]
    expected[7 if 7 in n else []] = 0
    assert np.array_equal(np.ascontiguousarray(w).view("u1"), np.ascontiguousarray(expected).view("u1"))


@pytest.mark.parametrize("dtype", [ct.uint8, ct.bfloat16, ct.float32, ct.float64], ids=by_name)
@pytest.mark.parametrize(("rows", "columns"), [(64, 128), (100, 120), (99, 121)])
def test_transpose(backends: Backends, dtype: dt.DType, rows: int, columns: int) -> None:
    @ct.kernel
    def kernel(X, Z):
        i, j = ct.bid(0), ct.bid(1)
        ct.store(Z, (j, i), ct.load(X, (i, j), (64, 64)).T)

    x = random_values(dtype, rows * columns).reshape(rows, columns)
    _, z = backends.run_all(kernel, (2, 2), lambda: [x.copy(), np.zeros((columns, rows), x.dtype)])
    assert np.array_equal(z.view("u1"), np.ascontiguousarray(x.T).view("u1"))


def test_weights_behind_a_reduction(backends: Backends) -> None:
    """What is loaded early and used late, also where a store lies between."""

    @ct.kernel
    def kernel(X, W, Y):
        row = ct.bid(0)
        x = ct.load(X, (row, 0), (1, 512)).astype(ct.float32)
        w = ct.load(W, (0,), (512,)).astype(ct.float32)
        total = ct.sum(x, axis=1, keepdims=True)
        ct.store(Y, (row, 0), x * w)
        late = ct.load(W, (0,), (512,)).astype(ct.float32)
        ct.store(Y, (row, 1), total * w + late)

    x = np.random.default_rng(2).integers(-3, 4, (5, 512)).astype(np.float16)
    w = np.random.default_rng(3).integers(-3, 4, 512).astype(np.float16)
    _, _, y = backends.run_all(kernel, 5, lambda: [x.copy(), w.copy(), np.zeros((5, 1024), "f4")])
    wide = w.astype("f4")
    expected = np.concatenate([x * wide, x.sum(1, keepdims=True, dtype="f4") * wide + wide], axis=1)
    assert np.array_equal(y, expected)


def test_gather_with_strides_and_scalars(backends: Backends) -> None:
    @ct.kernel
    def kernel(X, Z):
        row = ct.bid(0)
        t = ct.gather(X, (row, ct.arange(8, dtype=ct.int32)), check_bounds=False)
        ct.scatter(Z, (row, 7 - ct.arange(8, dtype=ct.int32)), t + ct.gather(X, (row, 0)))
        ct.scatter(Z, (row, 8), 5)

    base = random_values(ct.float32, 20 * 30).reshape(20, 30)
    make = lambda: [base.copy()[::-2, ::3], np.zeros((9, 10), "f4").T]  # noqa: E731
    _, z = backends.run_all(kernel, 10, make)
    x = base[::-2, ::3]
    assert np.array_equal(z[:, :8], (x[:, :8] + x[:, :1])[:, ::-1])
    assert (z[:, 8] == 5).all()


def test_gather_refusals(backends: Backends) -> None:
    @ct.kernel
    def too_few(X):
        ct.gather(X, (0,))

    @ct.kernel
    def floats(X):
        ct.gather(X, (0, ct.zeros((4,), ct.float32)))

    @ct.kernel
    def shapes(X):
        ct.gather(X, (ct.arange(4, dtype=ct.int32), ct.arange(8, dtype=ct.int32)))

    @ct.kernel
    def wide_mask(X):
        ct.gather(X, (0, ct.arange(4, dtype=ct.int32)), mask=ct.zeros((2, 4), ct.bool_))

    for kernel, error, match in (
        (too_few, TileTypeError, "2( |-)[dD].* 1"),
        (floats, TileTypeError, "integers"),
        (shapes, TileTypeError, r"\(4,\) and \(8,\)"),
        (wide_mask, TileTypeError, "mask"),
    ):
        backends.rejects(kernel, 1, lambda: [np.zeros((8, 8), "f4")], error, match)


@ct.kernel
def read_written(X, S, Z, how: ct.Constant):
    x = ct.load(X, (0, 0), (16, 32))
    if how == "other form":
        ct.store(S, (0, 0), x)
        ct.store(Z, (0, 0), ct.load(S, (0, 0), (32, 16)).reshape((16, 32)))
    elif how == "a row":
        ct.store(S, (0, 0), x)
        ct.store(Z, (3, 0), ct.load(S, (5, 0), (1, 32)))
    elif how == "steps":
        row = ct.load(X, (0, 0), (1, 32))
        for i in range(8):
            ct.store(S, (i, 0), row + i)
            row = ct.load(S, (0, i), (32, 1)).reshape((1, 32)) + row
        ct.store(Z, (0, 0), row)
    elif how == "scattered":
        at = ct.arange(512, dtype=ct.int32)
        ct.scatter(S, (at // 32, at % 32), x.reshape((512,)))
        back = 511 - at
        ct.store(Z, (0, 0), ct.gather(S, (back // 32, back % 32)).reshape((16, 32)))
    elif how == "numbers":
        for i in range(4):
            ct.scatter(S, (0, i), ct.gather(S, (0, i)) + i)
            ct.store(Z, (i, 0), ct.load(S, (0, 0), (1, 32)))
    elif how == "read before":
        y = ct.load(S, (0, 0), (32, 16))
        ct.store(S, (0, 0), x)
        ct.store(Z, (0, 0), y.reshape((16, 32)))
    elif how == "written twice":
        ct.store(S, (0, 0), x)
        ct.store(S, (0, 0), x.reshape((32, 16)) + 7)
    elif how == "in a branch":
        if ct.load(X, (0, 0), (1, 1)).item() != 12345:
            ct.store(S, (0, 0), x)
        else:
            ct.store(S, (0, 0), x + 1)
        ct.store(Z, (0, 0), ct.load(S, (0, 0), (32, 16)).reshape((16, 32)))


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize(
    "how",
    ["other form", "a row", "steps", "scattered", "numbers", "read before", "written twice", "in a branch"],
)
def test_a_block_reads_what_it_wrote(backends: Backends, how: str, num_warps: int) -> None:
    x, s = (random_values(ct.int32, 1024, seed).reshape(32, 32) for seed in (1, 2))
    kernel = read_written.replace_hints(num_warps=num_warps)
    backends.run_all(kernel, 1, lambda: [x.copy(), s.copy(), np.zeros((32, 32), np.int32), how])


@ct.kernel
def products_of_written(X, S, Z, n, apart: ct.Constant):
    acc = ct.zeros((64, 64), dtype=ct.float32)
    if apart:
        for i in range(n):
            ct.store(S, (i, 0), ct.load(X, (i, 0), (64, 64)) + ct.load(S, (i, 0), (64, 64)))
        for i in range(n):
            acc = ct.mma(ct.load(S, (i, 0), (64, 64)), ct.load(X, (i, 0), (64, 64)), acc)
    else:
        for i in range(n):
            acc = ct.mma(ct.load(S, (i, 0), (64, 64)), ct.load(X, (i, 0), (64, 64)), acc)
            ct.store(S, (i + 1, 0), ct.load(X, (i, 0), (64, 64)))
    ct.store(Z, (0, 0), acc)


@pytest.mark.parametrize("num_warps", [4, 8])
@pytest.mark.parametrize("apart", [True, False])
def test_products_of_what_the_block_wrote(backends: Backends, apart: bool, num_warps: int) -> None:
    draw = np.random.default_rng(3)
    x, s = (draw.integers(-3, 4, (320, 64)).astype(np.float16) for _ in range(2))
    kernel = products_of_written.replace_hints(num_warps=num_warps)
    backends.run_all(kernel, 1, lambda: [x.copy(), s.copy(), np.zeros((64, 64), np.float32), 4, apart])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_what_is_gathered_outside_keeps_its_sign(backends: Backends, dtype: Any) -> None:
    """Padding of -0.0 is not 0.0."""

    @ct.kernel
    def kernel(X, Y, Z):
        i = ct.arange(16, dtype=ct.int32) - 1
        ct.store(Y, 0, ct.gather(X, i, padding_value=-0.0))
        ct.store(Z, 0, ct.load_advanced_indexing(X, (i,), padding_mode=ct.PaddingMode.NEG_ZERO))

    arrays = backends.run_all(kernel, 1, lambda: [np.ones(9, dtype), np.zeros(16, dtype), np.zeros(16, dtype)])
    for found in arrays[1:]:
        assert np.array_equal(np.signbit(found), [True] + 9 * [False] + 6 * [True])
