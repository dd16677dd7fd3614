"""One of several arrays or views, where the running kernel says which: variables that change, and lists of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import Backends

from tilewright import device
from tilewright import tile as ct
from tilewright.errors import TileTypeError


def filled(*values: float) -> Any:
    return [np.full(8, value, np.float32) for value in values]


@ct.kernel
def branches(X, Y, out, c):
    a = X
    if c > 0:
        a, length = Y, Y.shape[0]
    elif c < 0:
        a, length = out, X.shape[0]
    else:
        length = 1
    ct.static_assert(a.dtype == ct.float32 and a.ndim == 1)
    t = ct.load(a, 0, 8) + a.shape[0] + length
    b = X if c > 1 else Y
    ct.scatter(b, 2, ct.gather(b, 1) + 1)
    ct.atomic_add(b, 3, 10.0)
    ct.store(out, 0, t + ct.num_tiles(a, 0, 2))


@pytest.mark.parametrize("c", [-1, 0, 1, 2])
def test_branches(backends: Backends, c: int) -> None:
    backends.run_all(branches, (1,), lambda: [*filled(1, 2, 3), c])


@ct.kernel
def loops(X, Y, out, n):
    pair, last = (X, Y), out
    for i in range(n):
        pair = (pair[1], pair[0])
        ct.store(pair[0], 0, ct.load(pair[0], 0, 8) + 1)
        if i % 3 == 2:
            last = pair[0]
    k = n
    while k > 0:
        ct.store(last, 0, ct.load(last, 0, 8) * 2)
        last = X
        if k == 2:
            break
        k = k - 1
    ct.store(out, 0, ct.load(out, 0, 8) + ct.load(pair[0], 0, 8) * 100 + ct.load(pair[1], 0, 8) + k)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7])
def test_loops(backends: Backends, n: int) -> None:
    backends.run_all(loops, (1,), lambda: [*filled(1, 2, 3), n])


@ct.kernel
def views(X, Y, n):
    v, m = X.tiled_view(4), X.get_raw_memory()
    if n > 1:
        v = Y.tiled_view(4)
    for i in range(n):
        v.store(i % 2, v.load(1) + v.num_tiles(0) + i)
        v = X.tiled_view(4)
        m.store_offset(i, m.load_offset(7))
        m = Y.get_raw_memory()


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_views(backends: Backends, n: int) -> None:
    backends.run_all(views, (1,), lambda: [*filled(1, 2), n])


@ct.kernel
def entries(xs, out, i):
    chosen = xs[i]
    ct.store(chosen, 0, ct.load(xs[-1 - i], 0, 8) + 1)
    ct.store(out, 0, ct.load(xs[(i + 1) % len(xs)], 0, 8) * chosen.shape[0])


@pytest.mark.parametrize("i", [0, 1, 2])
def test_entries_of_a_list(backends: Backends, i: int) -> None:
    backends.run_all(entries, (1,), lambda: [filled(1, 2, 3), *filled(0), i])


@ct.kernel
def walks(groups, out, most):
    total = ct.zeros(8, ct.float32)
    for g in range(len(groups["xs"])):
        x = groups["xs"][g]
        for k in range(ct.num_tiles(x, 0, 8)):
            total = total + ct.load(x, k, 8) * ct.full(8, g + 1, ct.int8).astype(ct.float32)
        if g >= most:
            break
    else:
        total = -total
    ct.store(out, 0, total)


@pytest.mark.parametrize("most", [0, 1, 5])
def test_a_loop_over_arrays(backends: Backends, most: int) -> None:
    arrays = [np.arange(8 * n, dtype=np.float32) for n in (1, 3, 2)]
    backends.run_all(walks, (1,), lambda: [{"xs": arrays}, *filled(0), most])


def test_a_loop_over_arrays_is_unrolled() -> None:
    args = ({"xs": [np.zeros(8, np.float32) for _ in range(3)]}, np.zeros(8, np.float32), 1)
    text = walks.capture("cpu", walks.specialization(args)[1]).text()
    assert text.count("tile.load") == 3


def refused(kernel: Any, *args: Any) -> str:
    with pytest.raises(TileTypeError) as caught:
        ct.launch(None, 1, kernel, args)
    return str(caught.value)


def test_what_cannot_be_chosen() -> None:
    @ct.kernel
    def types(X, Y, c):
        a = X if c else Y
        ct.store(a, 0, 1)

    @ct.kernel
    def slices(X, Y, c):
        a = X.slice(0, 0, c) if c else X
        ct.store(a, 0, 1)

    @ct.kernel
    def changes(X, Y, c):
        a = X
        for _ in range(c):
            ct.store(a, 0, 1)
            a = Y

    @ct.kernel
    def numbers(X, pair, c):
        ct.store(X, 0, pair[c])

    x, y = filled(1, 2)
    wide = np.zeros((8, 8), np.float32)
    assert "is the 1-D float32 array 'X' where the condition in line" in refused(types, x, wide, 1)
    assert "none is a slice: slice, or use, each in its branch" in refused(slices, x, y, 1)
    assert "arrays of one dtype and as many dimensions (no slices)" in refused(changes, x, wide, 1)
    assert "a run-time index chooses between arrays, or views, of one dtype" in refused(numbers, x, (1, 2), 1)
    assert "must be a constant" in refused(numbers, x, (x, wide), 1)


@device.kernel
def threads(X, Y, c):
    i = device.thread_idx.x
    a = X
    if c > 0:
        a = Y
    a[i] = a[i] + 1.0
    a[i] += 2.0


@pytest.mark.parametrize("c", [0, 1])
def test_arrays_of_threads(c: int) -> None:
    x, y = filled(1, 2)
    device.launch(threads, x, y, c, grid=1, block=8)
    assert (x[0], y[0]) == ((4, 2) if c == 0 else (1, 5))
