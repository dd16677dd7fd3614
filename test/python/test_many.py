"""Kernels with more of something than anybody writes by hand: nothing is left as it was because a list was full."""

from __future__ import annotations

import importlib.util
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright import compile
from tilewright.kernel import kernel as tile_kernel


def make(folder: Path, parameters: str, first: str, repeated: str, count: int, last: str) -> tile_kernel:
    """A kernel that says a line `count` times, each with its own number for N."""
    lines = [repeated.replace("N", str(i)) for i in range(count)]
    body = textwrap.indent("\n".join([first, *lines, last]), "    ")
    path = folder / "many.py"
    path.write_text(f"from tilewright import tile as ct\n@ct.kernel\ndef many({parameters}):\n{body}\n")
    spec = importlib.util.spec_from_file_location("many", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.many  # type: ignore[no-any-return]


def lowered(kernel: Any, args: tuple[Any, ...], target: str, stage: str) -> tuple[str, list[str]]:
    """The IR at a stage, and what was told on the way."""
    module = kernel.capture(target, kernel.specialization(args)[1])
    stages = compile.CPU_STAGES if target == "cpu" else compile.GPU_STAGES
    told = [message for one in stages[: stages.index(stage) + 1] for _, _, message in module.lower(one)]
    return module.text(), told


def half(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float16)


@pytest.mark.parametrize(("target", "op"), [("sm_90a", "tile.async_mma "), ("sm_80", "tile.async_copy")])
def test_products(tmp_path: Path, target: str, op: str) -> None:
    """Each has its operands in shared memory."""
    first = "a = ct.load(A, (0, 0), (64, 16))\nacc = ct.zeros((64, 64), dtype=ct.float32)"
    product = "acc = ct.mma(a, ct.load(B, (N, 0), (16, 64)), acc)"
    kernel = make(tmp_path, "A, B, C", first, product, 70, "ct.store(C, (0, 0), acc)")
    text, _ = lowered(kernel, (half(64, 16), half(1120, 64), np.zeros((64, 64), np.float32)), target, "pipelined")
    assert text.count(op) == (70 if target == "sm_90a" else 71)
    assert "tile.mma " not in text or target == "sm_80"


def test_copies_of_a_loop(tmp_path: Path) -> None:
    """All run ahead of their products."""
    first = "acc = ct.zeros((32, 32), dtype=ct.float32)\nfor k in range(ct.num_tiles(A, 1, (32, 16))):"
    product = "    acc = ct.mma(ct.load(A, (N, k), (32, 16)), ct.load(B, (k, N), (16, 32)), acc)"
    kernel = make(tmp_path, "A, B, C", first, product, 20, "ct.store(C, (0, 0), acc)")
    args = half(640, 4096), half(4096, 640), np.zeros((32, 32), np.float32)
    text, _ = lowered(kernel, args, "sm_80", "pipelined")
    before, _, loop = text.partition("scf.for")
    assert before.count("tile.async_copy") == 3 * loop.count("tile.async_copy") == 3 * 40


def test_gathers_of_a_loop(tmp_path: Path) -> None:
    """What does not change of their indices is computed before the loop."""
    first = "at, acc = ct.arange(128, dtype=ct.int32), ct.zeros((128,), dtype=ct.float32)\nfor k in range(n):"
    gather = "    acc += ct.gather(X, (at * 3 + N) + k)"
    kernel = make(tmp_path, "X, Y, n", first, gather, 50, "ct.store(Y, (0,), acc)")
    text, _ = lowered(kernel, (np.zeros(9999, np.float32), np.zeros(128, np.float32), 7), "sm_90a", "layout")
    loop = text[text.index("scf.for") :]
    assert loop.count("tile.gather") == loop.count("tile.hoisted") == 50


def test_stores(tmp_path: Path) -> None:
    """As many by TMA as there are tensor maps; the others say why not."""
    names = [f"C{i}" for i in range(36)]
    first = "acc = ct.zeros((64, 32), dtype=ct.float32)\nfor k in range(ct.num_tiles(A, 1, (64, 64))):"
    first += "\n    acc = ct.mma(ct.load(A, (0, k), (64, 64)), ct.load(B, (k, 0), (64, 32)), acc)"
    first += "\nc = acc.astype(ct.float16)"
    kernel = make(tmp_path, ", ".join(["A", "B", *names]), first, "ct.store(CN, (0, 0), c)", 36, "pass")
    args = (half(64, 4096), half(4096, 32), *(half(64, 32) for _ in names))
    text, told = lowered(kernel, args, "sm_90a", "pipelined")
    assert text.count("tile.tma_store %") == 32
    assert sum("is done by the threads: a kernel has no more tensor maps" in one for one in told) == 4


def test_pairs_of_arrays(tmp_path: Path) -> None:
    """Those that a launch does not look at are not taken for separate."""
    names = [f"{name}{i}" for i in range(32) for name in "XY"]
    last = "\n".join(f"ct.store(Y{i}, (0, b), ct.transpose(x{i}))" for i in range(32))
    kernel = make(tmp_path, ", ".join(names), "b = ct.bid(0)", "xN = ct.load(XN, (b, 0), (64, 32))", 32, last)
    _, told = lowered(kernel, tuple(np.zeros((64, 64), np.float32) for _ in names), "sm_90a", "nvvm")
    assert any("cannot rely on all of its arrays being apart: a launch looks at 1024 pairs" in one for one in told)


@pytest.mark.parametrize(("width", "early"), [(1, 41), (1024, 32)])
def test_loads_beside_a_reduction(tmp_path: Path, width: int, early: int) -> None:
    """They come an iteration early, as far as registers go; the others say so."""
    first = "b, acc = ct.bid(0), ct.zeros((1, 1024), dtype=ct.float32)\nfor k in range(ct.num_tiles(A, 1, (1, 1024))):"
    first += "\n    x = ct.load(A, (b, k), (1, 1024))\n    acc += x - ct.sum(x, axis=1, keepdims=True)"
    load = f"    acc += ct.sum(ct.load(B, (b * 40 + N, k), (1, {width})), axis=1, keepdims=True)"
    kernel = make(tmp_path, "A, B, C", first, load, 40, "ct.store(C, (0, 0), acc)")
    args = np.zeros((1, 1 << 16), np.float32), np.zeros((40, 4096), np.float32), np.zeros((1, 1024), np.float32)
    text, told = lowered(kernel, args, "sm_90a", "pipelined")
    before, _, loop = text.partition("scf.for")
    assert (before.count("tile.load"), loop.count("tile.load")) == (early, 41)
    late = [one for one in told if "is waited for: registers have no room for more tiles" in one]
    assert len(late) == 41 - early
