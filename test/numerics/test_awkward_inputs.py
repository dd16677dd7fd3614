"""Arrays that the fast ways into shared memory cannot take: odd strides, bases and extents, nothing at all, rows far
apart. Tiles are of the size that warpgroups multiply, and the results are exact."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from harness import Backends, run

sys.path.insert(0, str(Path(__file__).parents[2] / "python" / "examples"))
import attention
import matmul
from tilewright import tile as ct

F16 = np.float16
View = Callable[[np.ndarray], np.ndarray]


def fill(view: np.ndarray, values: np.ndarray) -> np.ndarray:
    view[...] = values
    return view


def wider(extra: int) -> View:
    """Rows of a matrix with so many columns more."""
    return lambda x: fill(np.zeros((x.shape[0], x.shape[1] + extra), x.dtype)[:, : x.shape[1]], x)


def shifted(elements: int) -> View:
    """At so many elements from an aligned base, in rows whose distance is a multiple of 16 bytes."""
    return lambda x: fill(
        np.zeros((x.shape[0], -(-x.shape[1] // 8) * 8 + 16), x.dtype)[:, elements:][:, : x.shape[1]], x
    )


VIEWS: dict[str, View] = {
    "plain": lambda x: x,
    "rows of an odd length": wider(1),
    "rows of an even length": wider(6),
    "base 2 bytes off": shifted(1),
    "base 4 bytes off": shifted(2),
    "base 16 bytes off": shifted(8),
    "column-major": lambda x: np.asfortranarray(x),
    "every second column": lambda x: fill(np.zeros((x.shape[0], 2 * x.shape[1]), x.dtype)[:, ::2], x),
    "every third row": lambda x: fill(np.zeros((3 * x.shape[0], x.shape[1]), x.dtype)[::3], x),
    "rows backwards": lambda x: fill(np.zeros_like(x)[::-1], x),
    "columns backwards": lambda x: fill(np.zeros_like(x)[:, ::-1], x),
}


def integers(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(F16)


def check(
    backends: Backends, a: np.ndarray, b: np.ndarray, make: View = lambda x: x, tiles: Any = (128, 128, 64)
) -> None:
    expected = a.astype(np.float32) @ b.astype(np.float32)
    for back_end in backends.names:
        c = make(np.zeros(expected.shape, F16))
        grid = (max(1, -(-c.shape[0] // tiles[0])), max(1, -(-c.shape[1] // tiles[1])))
        run(back_end, matmul.matmul, grid, (a, b, c, *tiles))
        if not back_end.startswith("sm_"):
            assert np.array_equal(c.astype(np.float32), expected.astype(F16).astype(np.float32)), back_end


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("which", ["lhs", "rhs", "result", "all"])
def test_views(backends: Backends, which: str, name: str) -> None:
    a, b, view = integers(1, 200, 136), integers(2, 136, 144), VIEWS[name]
    same: View = lambda x: x  # noqa: E731
    lhs, rhs, result = ((view if which in (part, "all") else same) for part in ("lhs", "rhs", "result"))
    check(backends, lhs(a), rhs(b), result)


@pytest.mark.parametrize("m, n, k", [(1, 1, 1), (1, 136, 200), (136, 1, 200), (136, 200, 1), (129, 131, 67), (3, 5, 7)])
def test_ragged(backends: Backends, m: int, n: int, k: int) -> None:
    check(backends, integers(1, m, k), integers(2, k, n))


@pytest.mark.parametrize("dtype", [F16, ml_dtypes.float8_e4m3fn], ids=["f16", "f8"])
@pytest.mark.parametrize("tiles", [(64, 64, 64), (128, 256, 64), (128, 128, 256), (256, 256, 64)], ids=str)
def test_tiles_of_odd_rows(backends: Backends, tiles: tuple[int, int, int], dtype: Any) -> None:
    """Elements go through registers one by one, in steps of k and slices of tiles where those are too few."""
    a, b = integers(1, 200, 331).astype(dtype), integers(2, 331, 269).astype(dtype)
    check(backends, a, b, tiles=tiles)


@pytest.mark.parametrize("m, n, k", [(0, 8, 8), (8, 0, 8), (8, 8, 0), (0, 0, 0)])
def test_nothing(backends: Backends, m: int, n: int, k: int) -> None:
    check(backends, integers(1, m, k), integers(2, k, n))


@pytest.mark.parametrize("axis", [0, 1])
def test_one_row_or_column_again_and_again(backends: Backends, axis: int) -> None:
    a = np.broadcast_to(integers(1, *((1, 136) if axis == 0 else (136, 1))), (136, 136))
    check(backends, a, integers(2, 136, 136))


@pytest.mark.parametrize("length", [1, 63, 64, 65, 130])
def test_attention_over_an_odd_number_of_keys(backends: Backends, length: int) -> None:
    q, k, v = (np.random.default_rng(i).standard_normal((1, 2, length, 64)).astype(F16) for i in range(3))
    expected = attention.reference(*(x.astype(np.float32) for x in (q, k, v)))
    for back_end in backends.names:
        y = np.zeros_like(q)
        args = (q, k, v, y, attention.math.log2(attention.math.e) / 8, 64, 64, 64)
        run(back_end, attention.attention, (-(-length // 64), 2, 1), args)
        if not back_end.startswith("sm_"):
            assert np.abs(y - expected).max() < 5e-3, back_end


@pytest.mark.parametrize("distance", [2**30 + 8, 2**31 + 8, 2**31 + 1], ids=["2 GiB", "4 GiB", "4 GiB odd"])
@pytest.mark.parametrize("which", ["lhs", "rhs", "result"])
def test_rows_far_apart(backends: Backends, which: str, distance: int) -> None:
    """Rows that lie gigabytes from each other, on a GPU that has the memory."""
    if "cuda" not in backends.names:
        pytest.skip("needs a GPU and 20 GiB of its memory")
    import torch

    rows, columns = 5, 72
    if torch.cuda.mem_get_info()[0] < 2 * (rows * distance + columns):
        pytest.skip("needs 20 GiB of GPU memory")
    memory = torch.empty((rows - 1) * distance + columns, dtype=torch.float16, device="cuda")
    far = torch.as_strided(memory, (rows, columns), (distance, 1))
    shapes = {"lhs": (rows, columns), "rhs": (rows, columns), "result": (rows, columns)}
    if which == "lhs":
        a, b = far, torch.from_numpy(integers(2, columns, columns)).cuda()
        a.copy_(torch.from_numpy(integers(1, *shapes["lhs"])))
    elif which == "rhs":
        a, b = torch.from_numpy(integers(1, 40, rows)).cuda(), far
        b.copy_(torch.from_numpy(integers(2, *shapes["rhs"])))
    else:
        a, b = torch.from_numpy(integers(1, rows, 40)).cuda(), torch.from_numpy(integers(2, 40, columns)).cuda()
    c = far if which == "result" else torch.zeros(a.shape[0], b.shape[1], dtype=torch.float16, device="cuda")
    ct.launch(torch.cuda.current_stream(), (1, 1), matmul.matmul, (a, b, c, 128, 128, 64))
    assert torch.equal(c.float(), (a.float().cpu() @ b.float().cpu()).half().float().cuda())


@ct.kernel
def at_the_end(X, Y):
    i, j = X.shape[0] - 1, X.shape[1] - 8
    column = ct.arange(8, dtype=ct.int32)
    ct.store(Y, (0, 0), ct.load(X, (i, j // 8), (1, 8)))
    ct.store(Y, (1, 0), ct.gather(X, (i, j + column))[None, :])
    ct.store(Y, (2, 0), X.slice(1, j, j + 8).tiled_view((1, 8)).load((i, 0)))
    ct.atomic_add(X, (i, j + column), 3)
    ct.scatter(X, (0, j + column), ct.gather(X, (i, j + column)) + 1)
    ct.store(X, (1, j // 8), ct.gather(X, (0, j + column))[None, :] * 2)


@pytest.mark.parametrize("execution", ["launch", "interpret"])
def test_more_elements_than_int32_counts(execution: str, tmp_path: Path) -> None:
    """Three rows of 2**30 elements, in a file of which a few pages are written."""
    x = np.asarray(np.memmap(tmp_path / "x", np.int32, "w+", shape=(3, 1 << 30)))
    x[2, -8:] = np.arange(8)
    y = np.zeros((3, 8), np.int32)

    def execute(*args: np.ndarray) -> None:
        if execution == "launch":
            ct.launch(None, 1, at_the_end, args)
        else:
            at_the_end.interpret(1, args)

    execute(x, y)
    assert (y == np.arange(8)).all()
    assert (x[2, -8:] == np.arange(8) + 3).all()
    assert (x[0, -8:] == np.arange(8) + 4).all() and (x[1, -8:] == 2 * np.arange(8) + 8).all()
    with pytest.raises(ct.TileValueError, match="extent in dimension 0 is 3221225472, the most is 2147483647"):
        execute(x.reshape(-1, 1), y)


def test_f8_rows_of_an_odd_length(backends: Backends) -> None:
    a, b = (integers(i, 200, 136).astype(ml_dtypes.float8_e4m3fn) for i in (1, 2))
    check(backends, wider(3)(a), wider(1)(b.T.copy()), tiles=(128, 128, 128))
