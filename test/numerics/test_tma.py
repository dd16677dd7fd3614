"""TMA copies, barriers that count and roles of warps, on the GPU (test/python/test_emulated_tma.py plays them)."""

from __future__ import annotations

import pytest
from harness import Backends
from tma_kernels import (
    ANY_TILES,
    COPIES,
    FAR_INDICES,
    PRODUCTS,
    check_any_strides,
    check_copy,
    check_far_index,
    check_product,
    copy_kernel,
    launch,
)


@pytest.fixture(autouse=True)
def on_hopper(backends: Backends) -> None:
    from tilewright import _core

    if "cuda" not in backends.names or _core.device_info(0)["capability"] != (9, 0):
        pytest.skip("needs --backend=cuda and a GPU of compute capability 9.0")


@pytest.mark.parametrize("name", COPIES)
def test_copy(name: str) -> None:
    check_copy(name, "cuda")


@pytest.mark.parametrize("rank", ANY_TILES)
def test_copy_of_any_strides(rank: int) -> None:
    for seed in range(25):
        check_any_strides(rank, seed, "cuda")


@pytest.mark.parametrize("index", FAR_INDICES)
def test_far_index(index: int) -> None:
    check_far_index(index, "cuda")


def test_lines_that_are_far_apart() -> None:
    """More than 2**31 bytes between lines, and a start beyond 2**32 bytes."""
    import torch

    shape, step = (5, 96), (1 << 30) + 8
    try:
        memory = torch.zeros(4 * step + 96, dtype=torch.bfloat16, device="cuda")
    except torch.OutOfMemoryError:
        pytest.skip("needs 9 GB of GPU memory")
    x = torch.as_strided(memory, shape, (step, 1))
    x.copy_(torch.arange(480, device="cuda").view(shape) % 251 - 100)
    got = torch.full((8, 128), 77, dtype=torch.bfloat16, device="cuda")
    launch(copy_kernel((8, 64), "bf16", 2, None, 1), "copy", (1, 2, 1), [x, got], "cuda", 2)
    want = torch.zeros_like(got)
    want[:5, :96] = x
    assert torch.equal(got, want)


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("m, n, k", [(200, 136, 328), (1024, 512, 2048), (64, 8, 8)])
def test_product(name: str, m: int, n: int, k: int) -> None:
    check_product(name, "cuda", m, n, k)
