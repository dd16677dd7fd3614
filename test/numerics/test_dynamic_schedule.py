"""The dynamic tile scheduler: whichever block runs what, the results are the same, bit by bit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from harness import Backends, ulp

from tilewright import _core, compile
from tilewright import tile as ct

ZERO = ct.PaddingMode.ZERO


@ct.kernel
def triangle(A, B, C, TM: ct.Constant[int], TN: ct.Constant[int], TK: ct.Constant[int]):
    """A times B as if A were zero right of its diagonal: how long the loop is depends on the position."""
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((TM, TN), dtype=ct.float32)
    rows = (i * TM + ct.arange(TM, dtype=ct.int32))[:, None]
    for k in range(ct.cdiv(ct.minimum((i + 1) * TM, A.shape[1]), TK)):
        a = ct.load(A, index=(i, k), shape=(TM, TK), padding_mode=ZERO)
        columns = (k * TK + ct.arange(TK, dtype=ct.int32))[None, :]
        a = ct.where(columns <= rows, a, ct.zeros((TM, TK), dtype=A.dtype))
        acc = ct.mma(a, ct.load(B, index=(k, j), shape=(TK, TN), padding_mode=ZERO), acc)
    ct.store(C, index=(i, j), tile=acc.astype(C.dtype))


@ct.kernel
def lengths(A, B, N, C, TM: ct.Constant[int], TN: ct.Constant[int], TK: ct.Constant[int]):
    """... on what is in memory."""
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((TM, TN), dtype=ct.float32)
    for k in range(ct.gather(N, i)):
        a = ct.load(A, index=(i, k), shape=(TM, TK), padding_mode=ZERO)
        acc = ct.mma(a, ct.load(B, index=(k, j), shape=(TK, TN), padding_mode=ZERO), acc)
    ct.store(C, index=(i, j), tile=acc.astype(C.dtype))


@ct.kernel
def rows_at(A, ROWS, B, C, TM: ct.Constant[int], TN: ct.Constant[int], TK: ct.Constant[int]):
    """Rows at indices, which four warps of the producer gather."""
    i, j = ct.bid(0), ct.bid(1)
    rows = ct.load(ROWS, index=(i,), shape=(TM,), padding_mode=ZERO)[:, None]
    acc = ct.zeros((TM, TN), dtype=ct.float32)
    for k in range(ct.num_tiles(A, axis=1, shape=(TM, TK))):
        a = ct.gather(A, (rows, (k * TK + ct.arange(TK, dtype=ct.int32))[None, :]))
        acc = ct.mma(a, ct.load(B, index=(k, j), shape=(TK, TN), padding_mode=ZERO), acc)
    ct.store(C, index=(i, j), tile=acc.astype(C.dtype))


@ct.kernel
def visible(Q, K, V, N, Y, TM: ct.Constant[int], TN: ct.Constant[int], D: ct.Constant[int]):
    """Attention over the first N[i] keys: a product stands in front of the loop, too, and behind it."""
    i = ct.bid(0)
    n = ct.gather(N, i)
    q = ct.load(Q, index=(i, 0), shape=(TM, D), padding_mode=ZERO)
    m = ct.full((TM, 1), -1e30, dtype=ct.float32)
    total = ct.zeros((TM, 1), dtype=ct.float32)
    acc = ct.zeros((TM, D), dtype=ct.float32)
    for j in range(ct.cdiv(n, TN)):
        k = ct.load(K, index=(j, 0), shape=(TN, D), padding_mode=ZERO)
        v = ct.load(V, index=(j, 0), shape=(TN, D), padding_mode=ZERO)
        s = ct.mma(q, k.T, ct.zeros((TM, TN), dtype=ct.float32))
        s = ct.where((j * TN + ct.arange(TN, dtype=ct.int32))[None, :] < n, s, -math.inf)
        higher = ct.maximum(m, ct.max(s, axis=1, keepdims=True))
        p, fade = ct.exp2(s - higher), ct.exp2(m - higher)
        total = total * fade + ct.sum(p, axis=1, keepdims=True)
        acc = ct.mma(p.astype(V.dtype), v, acc * fade)
        m = higher
    ct.store(Y, index=(i, 0), tile=(acc / ct.maximum(total, 1e-20)).astype(Y.dtype))


def integers(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(np.float16)


def grid(m: int, n: int, tiles: Any) -> tuple[int, int]:
    return -(-m // tiles[0]), -(-n // tiles[1])


# More blocks than run at a time, as many, and one.
@pytest.mark.parametrize("m, n", [(600, 200), (130, 60), (60, 50)])
@pytest.mark.parametrize("dynamic", [0, 1])
def test_longest_first(backends: Backends, m: int, n: int, dynamic: int) -> None:
    a, b, tiles = integers(1, m, m), integers(2, m, n), (64, 64, 64)
    kernel = triangle.replace_hints(dynamic_schedule=dynamic)
    c = backends.run_all(kernel, grid(m, n, tiles), lambda: [a, b, np.full((m, n), 7, np.float32), *tiles])[2]
    assert np.array_equal(c, np.tril(a.astype("f4")) @ b.astype("f4"))


def test_lengths_in_memory(backends: Backends) -> None:
    m, n, k, tiles = 500, 100, 320, (128, 64, 64)
    a, b, steps = integers(1, m, k), integers(2, k, n), np.array([5, 0, 1, 4], np.int32)
    kernel = lengths.replace_hints(dynamic_schedule=1, num_warps=8)
    c = backends.run_all(kernel, grid(m, n, tiles), lambda: [a, b, steps, np.full((m, n), 7, np.float32), *tiles])[3]
    for i, length in enumerate(steps):
        part, some = slice(128 * i, 128 * i + 128), slice(64 * length)
        assert np.array_equal(c[part], a[part, some].astype("f4") @ b[some].astype("f4"))


def test_a_producer_that_gathers(backends: Backends) -> None:
    m, n, k, tiles = 500, 200, 192, (128, 64, 64)
    a, b = integers(1, 300, k), integers(2, k, n)
    rows = np.random.default_rng(3).integers(0, 300, m).astype(np.int32)
    kernel = rows_at.replace_hints(dynamic_schedule=1, num_warps=8)
    c = backends.run_all(kernel, grid(m, n, tiles), lambda: [a, rows, b, np.full((m, n), 7, np.float32), *tiles])[3]
    assert np.array_equal(c, a[rows].astype("f4") @ b.astype("f4"))


def test_hopper_takes_them() -> None:
    """All of the above do where there is a producer."""
    a, n, tiles = integers(1, 600, 600), np.zeros(10, np.int32), (128, 64, 64)
    c = np.zeros((600, 600), np.float32)
    for kernel, args in {
        triangle: (a, a, c),
        lengths: (a, a, n, c),
        rows_at: (a, np.zeros(600, np.int32), a, c),
    }.items():
        taken = kernel.replace_hints(dynamic_schedule=1, num_warps=8)
        module = taken.capture("sm_90a", taken.specialization((*args, *tiles))[1])
        module.lower("pipelined")
        assert _core.launch_facts(compile.record_of(module))["dynamic"] and "tile.next_tile" in module.text()


@pytest.mark.parametrize("count", [2, 11])
def test_streams_and_graphs(backends: Backends, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """The same bits as in a build without overlap: on two streams, on more than there are workspaces for, one launch
    right behind the other, and in a graph beside them."""
    if "cuda" not in backends.names:
        pytest.skip("needs a GPU")
    import torch

    m, n, tiles = 3000, 700, (128, 128, 64)
    a, b = (torch.randn(shape, device="cuda").half() for shape in ((m, m), (m, n)))

    def launch(kernel: Any, stream: Any, c: Any) -> None:
        ct.launch(stream, grid(m, n, tiles), kernel, (a, b, c, *tiles))

    expected = torch.zeros(m, n, device="cuda")
    monkeypatch.setenv("TILEWRIGHT_RACE_CHECK", "1")
    launch(ct.kernel(triangle.function).replace_hints(dynamic_schedule=1, num_warps=8), None, expected)
    monkeypatch.delenv("TILEWRIGHT_RACE_CHECK")
    kernel = triangle.replace_hints(dynamic_schedule=1, num_warps=8)
    streams = [torch.cuda.Stream() for _ in range(count)]
    results = [torch.zeros(m, n, device="cuda") for _ in range(10 * count)]
    torch.cuda.synchronize()
    for number, c in enumerate(results):
        launch(kernel, streams[number % count], c)
    torch.cuda.synchronize()
    assert all(torch.equal(c, expected) for c in results)
    graph, captured = torch.cuda.CUDAGraph(), [torch.zeros(m, n, device="cuda") for _ in range(3)]
    with torch.cuda.graph(graph, stream=streams[0]):
        for c in captured:
            launch(kernel, streams[0], c)
    for _ in range(3):
        for c in (*captured, *results):
            c.zero_()
        torch.cuda.synchronize()
        graph.replay()
        for number, c in enumerate(results):
            launch(kernel, streams[number % count], c)
        torch.cuda.synchronize()
        assert all(torch.equal(c, expected) for c in (*captured, *results))


@pytest.mark.parametrize("hints", [{}, {"dynamic_schedule": 0}, {"dynamic_schedule": 1}], ids=str)
def test_what_a_block_loads_first(backends: Backends, hints: dict[str, int]) -> None:
    """A length that each block loads is that of the block, not of the one that would be next in turn."""
    blocks, d, tiles = 10, 64, (128, 64, 64)
    q, k, v = (np.random.default_rng(i).standard_normal((128 * blocks, d)).astype(np.float16) / 2 for i in range(3))
    lengths = np.array([200, 0, 64, 1, 0, 130, 200, 63, 65, 7], np.int32)
    kernel = visible.replace_hints(**hints) if hints else visible
    y = backends.run_all(
        kernel,
        (blocks,),
        lambda: [q, k[:200], v[:200], lengths, np.full_like(q, 7), *tiles],
        tolerance=ulp(4, 2e-3),
    )[4]
    for i, n in enumerate(lengths):
        assert (y[128 * i : 128 * (i + 1)] == 0).all() == (n == 0)
