"""What a kernel has many of is treated like what it has few of."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright import tile as ct

HERE = Path(__file__)


@ct.kernel
def many_loops(A: Any, B: Any, C: Any, N: ct.Constant[int]) -> None:
    for n in ct.static_iter(range(N)):
        acc = ct.zeros((64, 64), ct.float32)
        for k in range(ct.num_tiles(A, axis=1, shape=(64, 64))):
            acc = ct.mma(ct.load(A, (ct.bid(0), k), (64, 64)), ct.load(B, (k, n), (64, 64)), acc)
        ct.store(C, (ct.bid(0), n), acc)


@ct.function
def sum_of(arrays: Any, index: Any) -> Any:
    total: Any = ct.zeros((1, 1024), ct.float32)
    for array in arrays:
        total = total + ct.load(array, index, (1, 1024))
    return total


@ct.kernel
def many_rows(A: Any, B: Any, C: Any, D: Any, E: Any, F: Any, Y: Any) -> None:
    arrays = (A, B, C, D, E, F)
    most = ct.zeros((1, 1), ct.float32)
    for k in range(ct.num_tiles(A, axis=1, shape=(1, 1024))):
        most = ct.maximum(most, ct.max(sum_of(arrays, (ct.bid(0), k)), axis=1, keepdims=True))
    for k in range(ct.num_tiles(A, axis=1, shape=(1, 1024))):
        ct.store(Y, (ct.bid(0), k), (sum_of(arrays, (ct.bid(0), k)) - most).astype(Y.dtype))


def compiled(kernel: str, arguments: list[str], *more: str) -> str:
    words = [word for argument in arguments for word in ("--arg", argument)]
    command = [sys.executable, "-m", "tilewright", "compile", f"{HERE}:{kernel}", *words, "--target", "sm_90a", *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_products_of_all_loops_run_on() -> None:
    arguments = ["A=bf16[?,?]", "B=bf16[?,?]", "C=f32[?,?]", "N=18"]
    text = compiled("many_loops", arguments, "--emit", "tile-specialize-warps")
    assert len(re.findall(r"tile\.mma_wait [^:]*, 1 ", text)) == 18


def test_all_rows_that_are_read_again_are_kept() -> None:
    text = compiled("many_rows", [f"{name}=bf16[?,?]" for name in "ABCDEFY"], "--emit", "tile-cache-tiles")
    assert text.count("tile.alloc_shared") == 6


def kernel_of(folder: Path, body: list[str]) -> Any:
    source = folder / "many.py"
    lines = "\n    ".join(body)
    source.write_text(f"from tilewright import tile as ct\n\n@ct.kernel\ndef kernel(X, Y):\n    {lines}\n")
    spec = importlib.util.spec_from_file_location("many", source)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


@pytest.mark.parametrize("loop", ["for _ in range(ct.num_tiles(X, 0, (1,)) // 65 + 1):", "while last < 400:"])
def test_loops_on_the_cpu_carry_any_number_of_values(loop: str, tmp_path: Path) -> None:
    count = 65
    body = [f"v{i} = ct.load(X, {i}, ())" for i in range(count)]
    body += ["last = v0", loop]
    body += [f"    v{i} = v{i} + v{(i + 1) % count}" for i in range(count)]
    body += [f"    if v{i} > 100:\n            v{i} = v{i} - 100" for i in (3, 7)]
    body += ["    last = last + v1"]
    body += [f"ct.store(Y, {i}, v{i})" for i in range(count)]
    kernel = kernel_of(tmp_path, body)
    x, found, expected = np.arange(count, dtype=np.int32), *np.zeros((2, count), np.int32)
    kernel.interpret(1, (x, expected))
    ct.launch(None, 1, kernel, (x, found))
    assert np.array_equal(found, expected)
