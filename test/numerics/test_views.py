"""Parts of arrays, tiles at steps, offsets from the first element, and rows by a tile of indices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import Backends

from tilewright import tile as ct
from tilewright.errors import TileCheckError, TileError, TileTypeError, TileUnsupportedFeatureError, TileValueError


@ct.kernel
def stepped(X, Y, shape: ct.Constant, steps: ct.Constant):
    """Tiles that overlap, with gaps between them, or side by side."""
    read = X.tiled_view(shape, padding_mode=ct.PaddingMode.ZERO, traversal_steps=steps)
    written = Y.tiled_view(shape, traversal_steps=steps)
    ct.static_assert(read.dtype == X.dtype)
    for i in range(read.num_tiles(0)):
        for j in range(read.num_tiles(1)):
            written.store((i, j), read.load((i, j)) * 2 + read.num_tiles(1))


@pytest.mark.parametrize(
    ("shape", "steps"), [((4, 8), None), ((4, 8), (2, 8)), ((4, 4), (6, 5)), ((), None), ((), (2, 3))], ids=str
)
def test_tiles_at_steps(backends: Backends, shape: Any, steps: Any) -> None:
    x = np.arange(13 * 21, dtype="f4").reshape(13, 21)
    backends.run_all(stepped, (1,), lambda: [x, np.zeros((13, 21), "f4"), shape, steps])


@ct.kernel
def added(X, U, kind: ct.Constant):
    view = X.tiled_view((4, 8), traversal_steps=(2, 8))
    update = U.tiled_view((4, 8)).load((0, 0))
    if kind == "add":
        view.atomic_store_add((ct.bid(0), 0), update)
    elif kind == "max":
        view.atomic_store_max((ct.bid(0), 0), update)
    elif kind == "min":
        view.atomic_store_min((ct.bid(0), 0), 3)
    elif kind == "and":
        view.atomic_store_and((ct.bid(0), 0), update)
    elif kind == "or":
        view.atomic_store_or((ct.bid(0), 0), update)
    else:
        view.atomic_store_xor((ct.bid(0), 0), update)


@pytest.mark.parametrize("kind", ["add", "max", "min", "and", "or", "xor"])
def test_atomic_tiles(backends: Backends, kind: str) -> None:
    u = np.arange(32, dtype="i4").reshape(4, 8)
    backends.run_all(added, (3,), lambda: [np.full((7, 6), 5, "i4"), u, kind])


@ct.kernel
def parts(X, Y, start, stop):
    """A part is an array of its own: its extents, its bounds, and parts of it."""
    p = X.slice(axis=0, start=start, stop=stop)
    q = Y.slice(0, 1, 5).slice(-1, 2, 6)
    ct.static_assert(q.shape[0] == 4)
    tile = ct.load(p, (0, 0), (4, 8), padding_mode=ct.PaddingMode.ZERO)
    ct.store(q, (0, 0), tile + p.shape[0] + ct.num_tiles(p, 0, (2, 8)))
    ct.scatter(q, (0, 0), ct.gather(p, (ct.bid(0), 1)))
    ct.atomic_add(q, (3, ct.arange(8, dtype=ct.int32)), 100)
    ct.store(q.slice(0, 0, 2), (1, 0), ct.full((1, 4), 7, ct.int32))
    ct.store(q.slice(0, 0, 2), (2, 0), ct.full((1, 4), 9, ct.int32))  # outside of the part


@pytest.mark.parametrize("bounds", [(3, 6), (0, 10), (9, 10), (4, 4)], ids=str)
def test_parts(backends: Backends, bounds: tuple[int, int]) -> None:
    x = np.arange(60, dtype="i4").reshape(10, 6)
    backends.run_all(parts, (1,), lambda: [x, np.zeros((8, 8), "i4"), *bounds])


@ct.kernel
def offsets(X, Y):
    read, written = X.get_raw_memory(), Y.get_raw_memory()
    i = ct.arange(16, dtype=ct.int32)
    found = read.load_offset(i * 3, mask=i < 12, padding_value=-1)
    written.store_offset(i + 5, found, mask=i != 3)
    old = written.atomic_add_offset(i, i, mask=i > 2)
    written.store_offset(i + 40, old)
    written.store_offset(70, read.load_offset(7))
    written.atomic_cas_offset(71, 0, 5)
    written.atomic_xchg_offset(i + 72, i)


@pytest.mark.parametrize("transposed", [False, True])
def test_offsets(backends: Backends, transposed: bool) -> None:
    """Whatever the extents are: rows of 8 elements are gone through as if there were none."""
    turn = (lambda a: a.T) if transposed else (lambda a: a)
    x = np.arange(48, dtype="i4").reshape(6, 8)
    backends.run_all(offsets, (1,), lambda: [turn(x), turn(np.zeros((12, 8), "i4"))])


@pytest.mark.parametrize("checked", [False, True])
def test_offsets_where_an_axis_goes_backwards(checked: bool) -> None:
    """They reach from the first element to the end of its row."""

    @ct.kernel
    def kernel(X, Y):
        ct.store(Y, 0, X.get_raw_memory().load_offset(ct.arange(8, dtype=ct.int32)))

    x = np.arange(48, dtype="i4").reshape(6, 8)[::-1]
    for run in (lambda a: kernel.interpret(1, a), lambda a: ct.launch(None, 1, kernel, a, check=checked)):
        y = np.zeros(8, "i4")
        run((x, y))
        assert y.tolist() == list(range(40, 48))


@ct.kernel
def rows(X, Y, column):
    at = ct.arange(4, dtype=ct.int32) * 2
    tile = ct.load_advanced_indexing(X, (at, ct.Slice(column, 4)), padding_mode=ct.PaddingMode.ZERO)
    ct.store_advanced_indexing(Y, (ct.Slice(1, 4), at), tile)


def test_rows_by_indices(backends: Backends) -> None:
    x = np.arange(42, dtype="i4").reshape(7, 6)
    backends.run_all(rows, (1,), lambda: [x, np.zeros((7, 6), "i4"), 3])


CASES: list[tuple[Any, type[TileError], str]] = [
    (lambda X, n: X.tiled_view((4, 3)), TileTypeError, "3 of (4, 3) is no power of two"),
    (lambda X, n: X.tiled_view(4), TileTypeError, "expected a length of 2, as many as the array has dimensions"),
    (lambda X, n: X.tiled_view((4, 4), traversal_steps=(0, 1)), TileTypeError, "0 of (0, 1) is not positive"),
    (lambda X, n: X.tiled_view((4, 4), traversal_steps=2), TileTypeError, "expected a length of 2, found (2,)"),
    (lambda X, n: X.tiled_view((4, 4)).num_tiles(2), TileTypeError, "axis 2 is outside of an array of 2 dimensions"),
    (lambda X, n: X.tiled_view((4, 4)).load(0), TileTypeError, "2 dimensions, the index 1"),
    (lambda X, n: X.tiled_view((4, 4)).atomic_store_or((0, 0), 1), TileTypeError, "float32 has no such access"),
    (lambda X, n: X.slice(0, 5, 3), TileTypeError, "stop 3 is less than start 5"),
    (lambda X, n: X.slice(0, -1, 3), TileTypeError, "start is -1; expected 0 or more"),
    (lambda X, n: X.slice(2, 0, 3), TileTypeError, "axis 2 is outside of an array of 2 dimensions"),
    (lambda X, n: X.get_raw_memory().load_offset(1.5), TileTypeError, "integer"),
    (lambda X, n: ct.load_advanced_indexing(X, (0, 1)), TileTypeError, "exactly one entry is a tile of indices"),
]


@pytest.mark.parametrize(("body", "kind", "message"), CASES, ids=[message for *_, message in CASES])
def test_refused(body: Any, kind: type[TileError], message: str) -> None:
    @ct.kernel
    def kernel(X, n):
        body(X, n)

    for run in (lambda a: kernel.interpret((1,), a), lambda a: ct.launch(None, (1,), kernel, a)):
        with pytest.raises(kind) as caught:
            run((np.zeros((8, 8), "f4"), 3))
        assert message in str(caught.value)


def test_memory_that_is_nowhere_contiguous() -> None:
    @ct.kernel
    def kernel(X):
        X.get_raw_memory().load_offset(0)

    x = np.zeros((8, 8), "f4")[:, ::2]
    with pytest.raises(TileUnsupportedFeatureError, match="is not contiguous along any axis"):
        ct.launch(None, (1,), kernel, (x,))


@ct.kernel
def laid(X, Y, Z, n):
    """Arrays over X's memory: as it is, in one row, turned, a part of one, with elements that are shared."""
    pointer = X.foreign_pointer
    ct.static_assert(pointer.dtype == ct.foreign_pointer_dtype(X.dtype) and pointer.shape == ())
    same = ct.Array.from_foreign(pointer, X.shape, X.strides)
    row = ct.Array.from_foreign(pointer=pointer, shape=(X.shape[0] * X.shape[1],), strides=(1,))
    turned = ct.Array.from_foreign(pointer, (X.shape[1], X.shape[0]), (1, X.strides[0]))
    shared = ct.Array.from_foreign(row.slice(0, n, 12).foreign_pointer, (4, 5), (1, 1))
    ct.static_assert(shared.shape == (4, 5) and shared.strides == (1, 1) and row.ndim == 1)
    ct.store(Y, (0, 0), ct.load(same, (0, 0), (4, 8), padding_mode=ct.PaddingMode.ZERO))
    ct.store(Y, (1, 0), ct.load(row, 0, 32, padding_mode=ct.PaddingMode.ZERO).reshape((4, 8)))
    ct.store(Y, (2, 0), ct.load(turned, (0, 0), (8, 4), padding_mode=ct.PaddingMode.ZERO).T)
    ct.store(Y, (3, 0), ct.load(shared, (0, 0), (4, 8), padding_mode=ct.PaddingMode.ZERO))
    i = ct.arange(32, dtype=ct.int32)
    ct.store(Y, (4, 0), (ct.gather(row.slice(0, n, 9), i) + row.shape[0] + ct.num_tiles(row, 0, 4)).reshape((4, 8)))
    over_edge = turned.tiled_view((4, 4), traversal_steps=(1, 1), padding_mode=ct.PaddingMode.ZERO)
    ct.store(Y, (10, 0), over_edge.load((n, 1)).reshape((2, 8)))
    over = ct.Array.from_foreign(Z.foreign_pointer, (3, n), (4, 2))
    ct.store(over, (0, 0), ct.full((4, 4), 7, ct.int32))
    ct.scatter(over, (1, i), i)
    ct.atomic_add(over, (2, i), 100)


def test_arrays_over_the_memory_of_an_array(backends: Backends) -> None:
    x = np.arange(15, dtype="i4").reshape(3, 5)
    y, z = backends.run_all(laid, (1,), lambda: [x, np.zeros((24, 8), "i4"), np.zeros(16, "i4"), 2])[1:3]
    assert np.array_equal(y[8:11, :5], x) and np.array_equal(y[12:16, 0], x.ravel()[2:6]) and y[13, 4] == 7
    assert z.tolist() == [7, 0, 7, 0, 0, 0, 1, 0, 107, 0, 107, 0, 0, 0, 0, 0]


POINTERS: list[tuple[Any, type[TileError], str]] = [
    (lambda p, X: ct.Array.from_foreign(X, (4,), (1,)), TileTypeError, "pointer is x.foreign_pointer of an array x"),
    (lambda p, X: ct.Array.from_foreign(p, 4, (1,)), TileTypeError, "shape is a tuple of integers"),
    (lambda p, X: ct.Array.from_foreign(p, (4, 4), (1,)), TileTypeError, "shape has 2 entries and strides 1"),
    (lambda p, X: ct.Array.from_foreign(p, (-4,), (1,)), TileTypeError, "shape[0] is -4; expected 0 or more"),
    (lambda p, X: ct.Array.from_foreign(p, (4,), (1.0,)), TileTypeError, "strides[0] must be a signed integer scalar"),
    (lambda p, X: p + 1, TileTypeError, "ForeignPointer"),
    (lambda p, X: ct.zeros(4, dtype=p.dtype), TileTypeError, "is the dtype of x.foreign_pointer alone, not of a tile"),
    (lambda p, X: p.dtype(0), TileTypeError, "which no number becomes"),
    (lambda p, X: ct.foreign_pointer_dtype(p.dtype), TileTypeError, "is the dtype of x.foreign_pointer alone"),
    (lambda p, X: ct.where(True, p, p), TileTypeError, "ForeignPointer"),
]


@pytest.mark.parametrize(("body", "kind", "message"), POINTERS, ids=[message for *_, message in POINTERS])
def test_pointers_refused(body: Any, kind: type[TileError], message: str) -> None:
    @ct.kernel
    def kernel(X):
        body(X.foreign_pointer, X)

    for run in (lambda a: kernel.interpret((1,), a), lambda a: ct.launch(None, (1,), kernel, a)):
        with pytest.raises(kind) as caught:
            run((np.zeros((8, 8), "f4"),))
        assert message in str(caught.value)


def test_an_array_past_the_memory_is_told() -> None:
    @ct.kernel
    def kernel(X, n):
        ct.store(X, (0, 0), ct.load(ct.Array.from_foreign(X.foreign_pointer, (n,), (9,)), 0, 16).reshape((2, 8)))

    x = np.zeros((8, 8), "f4")
    kernel.interpret((1,), (x, 8))
    with pytest.raises(TileValueError, match="reaches element 72, the memory of .* has 64"):
        kernel.interpret((1,), (x, 9))
    with pytest.raises(TileCheckError, match="reads X at offset 72, which is outside"):
        ct.launch(None, (1,), kernel, (x, 9), check=True)


def test_pointers_where_nothing_is_contiguous() -> None:
    @ct.kernel
    def kernel(X):
        ct.load(ct.Array.from_foreign(X.foreign_pointer, (4,), (1,)), 0, 4)

    for run in (lambda a: kernel.interpret((1,), a), lambda a: ct.launch(None, (1,), kernel, a)):
        with pytest.raises(TileUnsupportedFeatureError, match="is not contiguous along any axis"):
            run((np.zeros((8, 8), "f4")[:, ::2],))
