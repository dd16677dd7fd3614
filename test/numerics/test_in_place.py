"""Kernels that write where they read: to the same array, or to one that the launch passes twice, or that overlaps in
part. What is loaded early, or stored late, must not show; where each tile is read before it is written the fast code
serves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from harness import Backends, ulp
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from tilewright import _core, compile
from tilewright import tile as ct

ZERO = ct.PaddingMode.ZERO
Pairs = list[dict[str, Any]]


def pairs_of(kernel: Any, args: Sequence[Any], target: str) -> Pairs:
    """What the kernel's code takes for separate: `no_alias` of its launch record."""
    _, key = kernel.specialization(tuple(args))
    module = compile.capture_kernel(kernel, target, key).module
    module.lower("llvm")
    return _core.launch_facts(compile.record_of(module))["no_alias"]


def overlapping(pairs: Pairs, args: Sequence[Any]) -> bool:
    """What a launch on a GPU finds: whether it takes the code that assumes nothing."""
    arrays, word = {}, 0
    for a in args:
        if isinstance(a, np.ndarray):
            arrays[word] = a
        word += 1 + 2 * a.ndim if isinstance(a, np.ndarray) else 1
    for row in pairs:
        a, b = (arrays[row[name]["word"]] for name in ("array", "other"))
        same = (a.ctypes.data, a.shape, a.strides) == (b.ctypes.data, b.shape, b.strides)
        if np.may_share_memory(a, b) and not (row["or_same"] and same):
            return True
    return False


@pytest.fixture
def run(backends: Backends) -> Callable[..., Sequence[Any]]:
    return backends.run_all


# ---- kernels as people write them ----------------------------------------------------------------------


@ct.kernel
def relu(X, Y, T: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(Y, index=(i,), tile=ct.maximum(ct.load(X, index=(i,), shape=(T,), padding_mode=ZERO), 0))


@ct.kernel
def scaled_rows(X, Y, T: ct.Constant[int]):
    """Rows that registers cannot hold, or a part at a time by the program's own loops."""
    row = ct.bid(0)
    total = ct.zeros((1, 1), dtype=X.dtype)
    for k in range(ct.num_tiles(X, axis=1, shape=(1, T))):
        x = ct.load(X, index=(row, k), shape=(1, T), padding_mode=ZERO)
        total += ct.sum(x, axis=1, keepdims=True)
    for k in range(ct.num_tiles(X, axis=1, shape=(1, T))):
        x = ct.load(X, index=(row, k), shape=(1, T), padding_mode=ZERO)
        ct.store(Y, index=(row, k), tile=x + total)


@ct.kernel
def wide_rows(X, W, Y, T: ct.Constant[int]):
    row = ct.bid(0)
    x = ct.load(X, index=(row, 0), shape=(1, T), padding_mode=ZERO)
    y = x - ct.max(x, axis=1, keepdims=True)
    w = ct.load(W, index=(0,), shape=(T,), padding_mode=ZERO)
    ct.store(Y, index=(row, 0), tile=y + ct.sum(x, axis=1, keepdims=True) * w)


@ct.kernel
def sums_so_far(X, Y, T: ct.Constant[int]):
    row = ct.bid(0)
    before = ct.zeros((1, 1), dtype=X.dtype)
    for k in range(ct.num_tiles(X, axis=1, shape=(1, T))):
        x = ct.load(X, index=(row, k), shape=(1, T), padding_mode=ZERO)
        ct.store(Y, index=(row, k), tile=ct.cumsum(x, axis=1) + before)
        before += ct.sum(x, axis=1, keepdims=True)


@ct.kernel
def add_product(A, B, R, C, T: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((T, T), dtype=ct.float32)
    for k in range(ct.num_tiles(A, axis=1, shape=(T, T))):
        a = ct.load(A, index=(i, k), shape=(T, T), padding_mode=ZERO)
        acc = ct.mma(a, ct.load(B, index=(k, j), shape=(T, T), padding_mode=ZERO), acc)
    r = ct.load(R, index=(i, j), shape=(T, T), padding_mode=ZERO)
    ct.store(C, index=(i, j), tile=acc.astype(C.dtype) + r)


@ct.kernel
def turned_rows(X, W, Y, T: ct.Constant[int]):
    """A tile of rows after the other goes through a product."""
    w = ct.load(W, index=(0, 0), shape=(T, T), padding_mode=ZERO)
    for i in range(ct.num_tiles(X, axis=0, shape=(T, T))):
        x = ct.load(X, index=(i, 0), shape=(T, T), padding_mode=ZERO)
        ct.store(Y, index=(i, 0), tile=ct.mma(x, w, ct.zeros((T, T), dtype=ct.float32)).astype(Y.dtype))


@ct.kernel
def reversed_row(X, Y, T: ct.Constant[int]):
    """Elements at indices, which the store overwrites."""
    ct.store(Y, index=(0,), tile=ct.gather(X, T - 1 - ct.arange(T, dtype=ct.int32)))


@ct.kernel
def moved_row(X, Y, T: ct.Constant[int]):
    """Elements that the scatter overwrites before others, if it goes from first to last."""
    ct.scatter(Y, ct.arange(T, dtype=ct.int32) + 1, ct.load(X, index=(0,), shape=(T,)))


@ct.kernel
def turned_again(X, W, Y, T: ct.Constant[int]):
    """A product is stored where the next step finds its operand."""
    for i in range(ct.num_tiles(X, axis=0, shape=(T, T)) - 1):
        x = ct.load(X, index=(i, 0), shape=(T, T), padding_mode=ZERO)
        w = ct.load(W, index=(0, 0), shape=(T, T), padding_mode=ZERO)
        ct.store(Y, index=(i + 1, 0), tile=ct.mma(x, w, ct.zeros((T, T), dtype=ct.float32)).astype(Y.dtype))


@ct.kernel
def stored_over(X, W, Y, T: ct.Constant[int]):
    """A product is stored, and something else over it: by the accelerator and by threads."""
    x = ct.load(X, index=(0, 0), shape=(T, T))
    w = ct.load(W, index=(0, 0), shape=(T, T))
    ct.store(Y, index=(1, 0), tile=ct.mma(x, w, ct.zeros((T, T), dtype=ct.float32)).astype(Y.dtype))
    ct.store(X, index=(1, 0), tile=x + 1)


@ct.kernel
def turned_tile(X, Y, T: ct.Constant[int]):
    """A tile that lies on the diagonal, the other way round."""
    i = ct.bid(0)
    ct.store(Y, index=(i, i), tile=ct.load(X, index=(i, i), shape=(T, T), padding_mode=ZERO).T)


@ct.kernel
def turned_row(X, Y, T: ct.Constant[int]):
    ct.store(Y, index=(0, 40), tile=ct.load(X, index=(5, 0), shape=(1, T)).reshape((T, 1)) + 1)


@ct.kernel
def filled(X, Y, Z, T: ct.Constant[int]):
    """What is loaded goes elsewhere; its place is filled with something that no load has anything to do with."""
    i = ct.bid(0)
    x = ct.load(X, index=(i, 0), shape=(T, T), padding_mode=ZERO)
    ct.store(Y, index=(i, 0), tile=ct.reshape(ct.arange(T * T, dtype=ct.int32), (T, T)).astype(Y.dtype))
    ct.store(Z, index=(i, 0), tile=x.T)


def integers(seed: int, *shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


def twice(x: np.ndarray, *between: np.ndarray) -> list[Any]:
    return [x, *between, x]


CASES: dict[str, tuple[Any, tuple[int, ...], Callable[[], list[Any]]]] = {
    "relu": (relu, (3,), lambda: [*twice(integers(1, 700)), 256]),
    "scaled rows": (scaled_rows, (3,), lambda: [*twice(integers(2, 3, 1000, dtype=np.int32)), 128]),
    "wide rows": (wide_rows, (2,), lambda: [*twice(integers(3, 2, 30000), integers(4, 30000)), 32768]),
    "sums so far": (sums_so_far, (3,), lambda: [*twice(integers(5, 3, 1000, dtype=np.int32)), 128]),
    "residual": (
        add_product,
        (2, 2),
        lambda: [integers(6, 100, 200, dtype="f2"), integers(7, 200, 128, dtype="f2"),
                 *twice(integers(8, 100, 128, dtype="f2")), 64],
    ),
    "large residual": (
        add_product,
        (2, 1),
        lambda: [integers(6, 200, 72, dtype="f2"), integers(7, 72, 128, dtype="f2"),
                 *twice(integers(8, 200, 128, dtype="f2")), 128],
    ),
    "turned rows": (
        turned_rows,
        (1,),
        lambda: [*twice(integers(9, 300, 64, dtype="f2"), np.roll(np.eye(64, dtype="f2"), 1, axis=1)), 64],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("target", ["sm_90a", "sm_80"])
def test_the_fast_code_serves(name: str, target: str) -> None:
    kernel, _, fresh = CASES[name]
    args = fresh()
    assert not overlapping(pairs_of(kernel, args, target), args)


# One that reads elements which another one of the same tile overwrites.
ELSEWHERE: dict[str, tuple[Any, tuple[int, ...], Callable[[], list[Any]]]] = {
    "reversed row": (reversed_row, (1,), lambda: [*twice(integers(9, 300, dtype=np.int32)), 256]),
    "moved row": (moved_row, (1,), lambda: [*twice(integers(9, 300, dtype=np.int32)), 256]),
    "stored over": (
        stored_over,
        (1,),
        lambda: [*twice(integers(9, 128, 64, dtype="f2"), np.roll(np.eye(64, dtype="f2"), 1, axis=1)), 64],
    ),
    "turned again": (
        turned_again,
        (1,),
        lambda: [*twice(integers(9, 80, 16, dtype="f2"), np.roll(np.eye(16, dtype="f2"), 1, axis=1)), 16],
    ),
}


@pytest.mark.parametrize("name", [*CASES, *ELSEWHERE])
@pytest.mark.parametrize("warps", [None, 8])
def test_one_array_twice(run: Callable[..., Sequence[Any]], name: str, warps: int | None) -> None:
    kernel, grid, fresh = (CASES | ELSEWHERE)[name]
    if warps:
        kernel = kernel.replace_hints(num_warps=warps)
    run(kernel, grid, fresh)


@pytest.mark.spec("T-024")
@pytest.mark.parametrize("name", ["scaled rows", "sums so far", "turned rows"])
@pytest.mark.parametrize("shift", [1, 64, 128])
def test_arrays_that_overlap_in_part(run: Callable[..., Sequence[Any]], name: str, shift: int) -> None:
    """Rows, or columns, that begin a little later."""
    kernel, _, fresh = CASES[name]

    def shifted() -> list[Any]:
        x, *others = fresh()
        axis = 0 if kernel is turned_rows else 1
        memory = np.concatenate([x, x], axis=axis)
        views = np.moveaxis(memory, axis, 0)
        first, second = (np.moveaxis(views[start : start + x.shape[axis]], 0, axis) for start in (0, shift))
        return [first, *others[:-2], second, others[-1]]

    args = shifted()
    assert overlapping(pairs_of(kernel, args, "sm_90a"), args)
    run(kernel, (1,), shifted)


@pytest.mark.spec("T-024")
@pytest.mark.parametrize("shift", [1, 16, 200])
def test_a_tile_stored_a_little_later(run: Callable[..., Sequence[Any]], shift: int) -> None:
    """All of the tile is read before any of it is written, if strips or threads follow each other, too. Threads that
    store a row which begins anywhere have met by then: nothing is taken for separate."""

    def shifted() -> list[Any]:
        memory = integers(13, 1024 + shift)
        return [memory[:1024], memory[shift:], 1024]

    for target in ("cpu", "sm_90a"):
        pairs = pairs_of(relu, shifted(), target)
        meets = target == "sm_90a" and shift % 4 != 0
        assert pairs == [] if meets else overlapping(pairs, shifted())
    run(relu, (1,), shifted)


@pytest.mark.spec("T-024")
def test_a_row_stored_over_a_column(run: Callable[..., Sequence[Any]]) -> None:
    """Of one array passed twice: the tiles have one element in common, in another place of each."""
    run(turned_row, (1,), lambda: [*twice(integers(14, 64, 64)), 64])


@pytest.mark.parametrize("side", [16, 64])
def test_threads_that_own_other_elements(run: Callable[..., Sequence[Any]], side: int) -> None:
    """Without a loop, too: one thread may not store what another one has yet to load."""
    for warps in (1, 4, 8):
        kernel = turned_tile.replace_hints(num_warps=warps)
        run(kernel, (2,), lambda: [*twice(integers(10, 2 * side, 2 * side)), side])
        kernel = filled.replace_hints(num_warps=warps)
        run(kernel, (2,), lambda: [*twice(integers(11, 2 * side, side)), integers(12, 2 * side, side), side])


# ---- random programs ---------------------------------------------------------------------------------------

PLACES = ["k", "k", "k", "k", "k + 1", "k // 2", "n - 1 - k", "2 * k", "k * k", "k * 0"]
BODIES = {
    "walk": "y = x + ct.sum(x, axis=1, keepdims=True)",
    "scan": "y = ct.cumsum(x, axis=1)",
    "product": "y = ct.mma(x, w, ct.zeros((T, T), dtype=ct.float32)).astype(Y.dtype)",
    "plain": "y = x + 1",
}


@settings(suppress_health_check=list(HealthCheck), deadline=None, max_examples=40)
@given(st.data())
def test_random_loops(run: Callable[..., Sequence[Any]], kernel_of: Callable[[str], Any], data: st.DataObject) -> None:
    def pick(values: Any) -> Any:
        return data.draw(st.sampled_from(values))

    body, nested = pick(list(BODIES)), pick([False, False, True])
    tile = pick([16, 64]) if body == "product" else pick([16, 32])
    rows = pick([tile, 8, 1]) if body != "product" else tile
    before, after = pick([0, 0, 1]), pick([0, 0, 1])
    source, target = pick(["X", "X", "Y"]), pick(["Y", "Y", "X"])
    load = f"ct.load({source}, ({{}}, 0), (R, T), padding_mode=ZERO)"
    place = pick(PLACES)
    stored = place if pick([True, True, False]) else pick(PLACES)
    lines = [f"x = {load.format(place)}", BODIES[body], f"ct.store({target}, ({stored}, 0), y)"]
    if before:  # a sum over all rows first
        lines = [f"x = {load.format(place)} + total", *lines[1:]]
    if after:
        lines += [f"ct.store(Z, ({pick(['k', place])}, 0), {load.format(pick(PLACES))})"]
    loop = ["for m in range(2):", "    for k in range(n):"] if nested else ["for k in range(n):"]
    head = ["total = ct.zeros((R, T), dtype=X.dtype)", "n = ct.num_tiles(X, axis=0, shape=(R, T))"]
    if before:
        head += ["for k in range(n):", f"    total += {load.format('k')}"]
    if body == "product":
        (head if pick([True, False]) else lines).insert(0, "w = ct.load(W, (0, 0), (T, T), padding_mode=ZERO)")
    indent = "    " * len(loop)
    program = "\n    ".join([*head, *loop, *(indent + line for line in lines)])
    text = f"""from tilewright import tile as ct

ZERO = ct.PaddingMode.ZERO


@ct.kernel
def kernel(X, W, Y, Z, R: ct.Constant[int], T: ct.Constant[int]):
    {program}
"""
    how, warps = pick(["same", "same", "apart", "shifted"]), pick([None, 4, 8])
    length = pick([3, 4, 5]) * rows - pick([0, 0, 3]) % rows
    shift = pick([1, rows])
    note(f"{text}\n{how} {length} x {tile}, shift {shift}, warps {warps}")
    dtype = np.float16 if body == "product" else np.int32

    def fresh() -> list[Any]:
        memory, other = (integers(s, length + shift, tile, dtype=dtype) for s in (1, 2))
        y = {"same": memory[:length], "apart": other[:length], "shifted": memory[shift:]}[how]
        w = np.roll(np.eye(tile, dtype=dtype), 1, axis=1)
        return [memory[:length], w, y, integers(3, length, tile, dtype=dtype), rows, tile]

    kernel = kernel_of(text)
    if warps:
        kernel = kernel.replace_hints(num_warps=warps)
    run(kernel, (1,), fresh, tolerance=ulp(0))
