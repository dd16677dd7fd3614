"""Streams of a GPU (--backend=cuda): launches come in their order, and return before the kernel has run."""

from __future__ import annotations

from typing import Any

import pytest

from cuda import device


@pytest.fixture
def torch(request: pytest.FixtureRequest) -> Any:
    if request.config.getoption("--backend") not in ("cuda", "all"):
        pytest.skip("needs a GPU: --backend=cuda")
    return pytest.importorskip("torch")


@device.kernel
def increase(x):
    for i in range(device.tid(1), x.size, device.grid_size(1)):
        x[i] += 1


@device.kernel
def wait(x, n):
    v = x[0]
    for _ in range(n):
        v = v * 0.5 + 1
    x[0] = v


@pytest.mark.spec("D-004", "D-316")
def test_kernels_of_two_frameworks_on_one_stream(torch: Any) -> None:
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        x = torch.zeros(1 << 20, device="cuda")
        device.launch(increase, x, grid=64, block=256, stream=stream)
        x.mul_(3)
        device.launch(increase, x, grid=64, block=256, stream=stream)
    stream.synchronize()
    assert bool((x == 4).all())


@pytest.mark.spec("D-313")
def test_a_launch_returns_before_the_kernel_ends(torch: Any) -> None:
    x, stream, event = torch.zeros(1, device="cuda"), torch.cuda.Stream(), torch.cuda.Event()
    device.launch(wait, x, 1, grid=1, block=1, stream=stream)
    stream.synchronize()
    device.launch(wait, x, 50_000_000, grid=1, block=1, stream=stream)
    event.record(stream)
    assert not event.query()
    stream.synchronize()
    assert abs(x.item() - 2) < 1e-6
