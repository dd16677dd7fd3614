"""Blocks that share a tile, a part of k each: the sum is that of one block but for its order, the same each time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import Backends
from one_product import check, integers, product

from tilewright import tile as ct

ZERO = ct.PaddingMode.ZERO


@ct.kernel
def two_products(A, B, D, C, TM: ct.Constant[int], TN: ct.Constant[int], TK: ct.Constant[int]):
    """Two sums, and what both of them are needed for."""
    i, j = ct.bid(0), ct.bid(1)
    x = ct.zeros((TM, TN), dtype=ct.float32)
    y = ct.zeros((TM, TN), dtype=ct.float32)
    for k in range(ct.num_tiles(A, axis=1, shape=(TM, TK))):
        a = ct.load(A, index=(i, k), shape=(TM, TK), padding_mode=ZERO)
        x = ct.mma(a, ct.load(B, index=(k, j), shape=(TK, TN), padding_mode=ZERO), x)
        y = ct.mma(a, ct.load(D, index=(k, j), shape=(TK, TN), padding_mode=ZERO), y)
    ct.store(C, index=(i, j), tile=(x * y).astype(C.dtype))


# Products by warpgroups in a persistent kernel and by single warps in another; one tile, and more than are in flight;
# more parts than steps, and no steps at all. With integers every order of a sum gives the same.
@pytest.mark.parametrize("tiles", [(64, 64, 64), (16, 32, 64)])
@pytest.mark.parametrize("shape", [(64, 64, 448), (136, 72, 328), (72, 72, 64), (40, 72, 0)])
@pytest.mark.parametrize("parts", [0, 2, 4])
def test_sums(backends: Backends, tiles: Any, shape: Any, parts: int | None) -> None:
    check(backends, {"split_k": parts}, shape, tiles)


@pytest.mark.parametrize(
    ("dtype", "acc"),
    [(np.float32, ct.float32), (np.float64, ct.float64), (np.int8, ct.int32), (np.float16, ct.float16)],
)
def test_dtypes(backends: Backends, dtype: Any, acc: Any) -> None:
    check(backends, {"split_k": 3}, (40, 40, 168), (32, 32, 32), dtype, acc)


def test_two_warpgroups(backends: Backends) -> None:
    check(backends, {"split_k": 2}, (300, 100, 200), (128, 128, 64))


def test_two_sums(backends: Backends) -> None:
    m, n, k = 136, 72, 328
    a, b, d = integers(1, m, k), integers(2, k, n), integers(3, k, n)
    kernel = two_products.replace_hints(split_k=3)
    c = backends.run_all(kernel, (3, 2), lambda: [a, b, d, np.zeros((m, n), np.float32), 64, 64, 64])[3]
    assert np.array_equal(c, (a.astype("f4") @ b.astype("f4")) * (a.astype("f4") @ d.astype("f4")))


@ct.kernel
def downwards(A, B, C, TM: ct.Constant[int], TN: ct.Constant[int], TK: ct.Constant[int]):
    acc = ct.zeros((TM, TN), dtype=ct.float32)
    for k in range(ct.num_tiles(A, axis=1, shape=(TM, TK)) - 1, -1, -1):
        a = ct.load(A, index=(ct.bid(0), k), shape=(TM, TK), padding_mode=ZERO)
        acc = ct.mma(a, ct.load(B, index=(k, ct.bid(1)), shape=(TK, TN), padding_mode=ZERO), acc)
    ct.store(C, index=(ct.bid(0), ct.bid(1)), tile=acc.astype(C.dtype))


def test_a_sum_from_the_end_of_k(backends: Backends) -> None:
    a, b = integers(1, 136, 328), integers(2, 328, 72)
    kernel = downwards.replace_hints(split_k=3)
    c = backends.run_all(kernel, (3, 2), lambda: [a, b, np.zeros((136, 72), np.float32), 64, 64, 64])[2]
    assert np.array_equal(c, a.astype("f4") @ b.astype("f4"))


@pytest.mark.parametrize("count", [2, 11])
def test_a_few_tiles_of_a_long_sum_on_a_gpu(backends: Backends, count: int) -> None:
    """So few that the launch decides to split them; the same bits each time: on two streams, and on more than there are
    workspaces for; and in graphs, whose launches are split too, captured on two streams, each replayed beside another
    and beside plain launches."""
    if "cuda" not in backends.names:
        pytest.skip("needs a GPU")
    import torch

    torch.manual_seed(0)
    a, b = (torch.randn(s, device="cuda").half() for s in ((500, 8200), (8200, 700)))
    bias = torch.randn(700, device="cuda")
    expected = (a.double() @ b.double() + bias.double()).float()
    streams = [torch.cuda.Stream() for _ in range(count)]
    results = [torch.full((500, 700), 7.0, device="cuda") for _ in range(20 * count)]

    def launch(stream: Any, c: Any) -> None:
        ct.launch(stream, (4, 3), product, (a, b, bias, c, ct.float32, 128, 256, 64))

    torch.cuda.synchronize()
    for n, c in enumerate(results):
        launch(streams[n % count], c)
    torch.cuda.synchronize()
    assert (results[0] - expected).abs().max() < 1e-4 * expected.abs().max()
    assert all(torch.equal(c, results[0]) for c in results)

    graphs, captured = [torch.cuda.CUDAGraph() for _ in range(2)], [torch.zeros_like(c) for _ in range(8)]
    for number, graph in enumerate(graphs):
        with torch.cuda.graph(graph, stream=streams[0]):
            streams[1].wait_stream(streams[0])
            for n, stream in enumerate((streams[0], streams[1], streams[0], streams[1])):
                launch(stream, captured[4 * number + n])
            streams[0].wait_stream(streams[1])
    for _ in range(2):
        for c in (*captured, *results):
            c.fill_(7.0)
        torch.cuda.synchronize()
        for n, c in enumerate(results):
            launch(streams[n % count], c)
            if n % 5 == 0:
                with torch.cuda.stream(streams[n % 2]):
                    graphs[n % 2].replay()
        torch.cuda.synchronize()
        assert all(torch.equal(c, results[0]) for c in (*captured, *results))
