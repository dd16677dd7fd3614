"""Compiled kernels on the second of two GPUs, while the first is the current one.

Skipped where there are fewer: they prove that two devices of one process do not disturb each other. The launcher's
rules for several devices run everywhere, against a stand-in driver (test_runtime_cuda.py).
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "python" / "examples"))
import matmul
from tilewright.errors import TileError

torch = pytest.importorskip("torch")
if not torch.cuda.is_available() or torch.cuda.device_count() < 2:
    pytest.skip(f"needs two GPUs, there are {torch.cuda.device_count()}", allow_module_level=True)

# Blocks of whole tiles; blocks that share k, in a workspace; tiles that are cut; small tiles that are fused.
SHAPES = {
    "whole": (2048, 2048, 512, (128, 256, 64)),
    "shared": (64, 512, 16384, (64, 128, 64)),
    "cut": (512, 512, 512, (128, 256, 64)),
    "fused": (4096, 4096, 256, (64, 64, 64)),
}


def product(name: str, device: int) -> tuple[Any, Any, Any, Any]:
    m, n, k, tiles = SHAPES[name]
    make = {"device": f"cuda:{device}", "dtype": torch.bfloat16}
    return torch.randn(m, k, **make), torch.randn(k, n, **make), torch.empty(m, n, **make), tiles


def check(a: Any, b: Any, c: Any) -> None:
    torch.cuda.synchronize(c.device)
    wanted = a.float() @ b.float()
    assert (c.float() - wanted).abs().max() <= 0.01 * wanted.abs().max()


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("stream", ["default", "own"])
def test_devices_in_turn(name: str, stream: str) -> None:
    for device in (1, 0, 1):
        a, b, c, tiles = product(name, device)
        torch.cuda.synchronize(device)
        own = torch.cuda.Stream(device) if stream == "own" else None
        matmul.run(a, b, c, stream=own, tiles=tiles)
        check(a, b, c)
        assert torch.cuda.current_device() == 0


def test_devices_at_once() -> None:
    failures: list[BaseException] = []

    def work(device: int) -> None:
        try:
            for name in (*SHAPES, *SHAPES):
                a, b, c, tiles = product(name, device)
                torch.cuda.synchronize(device)
                matmul.run(a, b, c, tiles=tiles)
                check(a, b, c)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number % 2,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_graph_of_the_second() -> None:
    a, b, c, tiles = product("shared", 1)
    with torch.cuda.device(1):
        matmul.run(a, b, c, stream=torch.cuda.current_stream(), tiles=tiles)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            matmul.run(a, b, c, stream=torch.cuda.current_stream(), tiles=tiles)
        for _ in range(3):
            c.zero_()
            graph.replay()
            check(a, b, c)


def test_a_stream_of_another() -> None:
    """What users write: the current stream, which is the first GPU's, with arrays of the second."""
    a, b, c, tiles = product("whole", 1)
    with pytest.raises(TileError, match="stream"):
        matmul.run(a, b, c, stream=torch.cuda.Stream(0), tiles=tiles)
    matmul.run(a, b, c, tiles=tiles)  # and it goes on
    check(a, b, c)
