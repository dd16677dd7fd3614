"""TMA copies, barriers that count and roles of warps, on the GPU (test/python/test_emulated_tma.py plays them)."""

from __future__ import annotations

import pytest
from harness import Backends
from tma_kernels import COPIES, PRODUCTS, check_copy, check_product


@pytest.fixture(autouse=True)
def on_hopper(backends: Backends) -> None:
    from tilewright import _core

    if "cuda" not in backends.names or _core.device_info(0)["capability"] != (9, 0):
        pytest.skip("needs --backend=cuda and a GPU of compute capability 9.0")


@pytest.mark.parametrize("name", COPIES)
def test_copy(name: str) -> None:
    check_copy(name, "cuda")


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("m, n, k", [(200, 136, 328), (1024, 512, 2048), (64, 8, 8)])
def test_product(name: str, m: int, n: int, k: int) -> None:
    check_product(name, "cuda", m, n, k)
