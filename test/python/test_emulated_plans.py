"""Every plan of lowering/gpu/replan.c computes the same, on the emulator, whether or not the first one fits."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright import _core, plans
from tilewright import compile as compiler
from tilewright import tile as ct
from tilewright.errors import TileError

sys.path.insert(0, str(Path(__file__).parent.parent / "emulator"))
import emulate

pytestmark = pytest.mark.skipif(emulate.MISSING is not None, reason="the emulator compiles with clang")


def all_plans() -> list[int]:
    found = [0]
    while number := _core.next_plan(found[-1], ""):
        found.append(number)
    return found


def integers(seed: int, *shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(dtype)


@ct.kernel
def matmul(A, B, C, TM: ct.Constant[int], TN: ct.Constant[int], TK: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((TM, TN), dtype=C.dtype)
    for k in range(ct.num_tiles(A, axis=1, shape=(TM, TK))):
        a = ct.load(A, index=(i, k), shape=(TM, TK), padding_mode=ct.PaddingMode.ZERO)
        b = ct.load(B, index=(k, j), shape=(TK, TN), padding_mode=ct.PaddingMode.ZERO)
        acc = ct.mma(a, b, acc)
    ct.store(C, index=(i, j), tile=acc)


@ct.kernel
def scaled(A, B, S, C, T: ct.Constant[int]):
    """Transposed, gathered, scaled and two at a time."""
    acc, other = ct.zeros((T, T), ct.float32), ct.zeros((T, T), ct.float32)
    rows, steps = ct.arange(T, dtype=ct.int32) + ct.bid(0) * T, ct.arange(128, dtype=ct.int32)
    for k in range(ct.num_tiles(A, axis=1, shape=(T, 128))):
        a = ct.load(A, (ct.bid(0), k), (T, 128), padding_mode=ct.PaddingMode.ZERO)
        scale = ct.load(S, (ct.bid(0),), (T,), padding_mode=ct.PaddingMode.ZERO)
        b = ct.load(B, (ct.bid(1), k), (T, 128), padding_mode=ct.PaddingMode.ZERO)
        g = ct.gather(A, (rows[:, None], (k * 128 + steps)[None, :]), mask=(rows < 70)[:, None])
        acc = ct.mma((a * scale[:, None]).astype(B.dtype), b.T, acc)
        other = ct.mma(g, b.T, other)
    ct.store(C, (ct.bid(0), ct.bid(1)), acc - other)


def forced(plan: int, run: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether there is such a plan for what is launched."""
    with monkeypatch.context() as patch:
        patch.setattr(plans, "lower", functools.partial(plans.lower, plan=plan))
        patch.setattr(_core, "next_plan", lambda plan, reason: 0)
        patch.setattr(compiler, "compile_kernel", emulate.compile_kernel)
        try:
            run()
        except TileError as error:
            assert "nothing to change" in str(error) or "registers" in str(error), error
            return False
    return True


@pytest.mark.parametrize("dtype, target", [(np.float32, "sm_80"), (np.float16, "sm_90a")], ids=["float32", "float16"])
def test_products(dtype: Any, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emulate, "TARGET", target)
    a, b = integers(1, 70, 300, dtype=dtype), integers(2, 300, 64, dtype=dtype)
    expected = a.astype(np.float32) @ b.astype(np.float32)
    ran = []
    for plan in all_plans():
        c = np.zeros((70, 64), np.float32)
        kernel = matmul.replace_hints(dynamic_schedule=0)
        if forced(plan, lambda c=c, k=kernel: ct.launch(None, (2, 1), k, (a, b, c, 64, 64, 128)), monkeypatch):
            assert np.array_equal(c, expected), plan
            ran.append(plan)
    assert len(ran) >= 8, ran


def test_operands_that_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emulate, "TARGET", "sm_90a")
    a, b, s = integers(1, 70, 200, dtype=np.float16), integers(2, 64, 200, dtype=np.float16), integers(3, 70)
    full, wide = np.float32(a) * s[:, None], np.float32(a)
    expected = (full - wide) @ np.float32(b).T
    for plan in all_plans()[::2]:
        c = np.zeros((70, 64), np.float32)
        if forced(plan, lambda c=c: ct.launch(None, (2, 1), scaled, (a, b, s, c, 64)), monkeypatch):
            assert np.array_equal(c, expected), plan


@pytest.mark.parametrize("tiles, target", [((32, 128, 128), "sm_80"), ((256, 16, 64), "sm_90a")], ids=["wide", "tall"])
def test_tiles_that_do_not_fit_at_first(tiles: tuple[int, int, int], target: str, monkeypatch: Any) -> None:
    emulate.stand_in(monkeypatch, target)
    m, n, k = 40, 80, 150
    a, b, c = integers(1, m, k), integers(2, k, n), np.zeros((m, n), np.float32)
    ct.launch(None, (-(-m // tiles[0]), -(-n // tiles[1])), matmul, (a, b, c, *tiles))
    assert np.array_equal(c, a @ b)
