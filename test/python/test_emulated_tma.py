"""TMA copies, barriers that count and roles of warps, on machines without a GPU (see test/emulator)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilewright import compile as compiler
from tilewright import tile as ct

sys.path.insert(0, str(Path(__file__).parent.parent / "emulator"))
import emulate
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
    hints,
    product_kernel,
)

FOLDERS = [str(Path(__file__).resolve().parent.parent / name) for name in ("emulator", "numerics")]

pytestmark = pytest.mark.skipif(emulate.MISSING is not None, reason="the emulator compiles with clang")


@pytest.mark.parametrize("name", COPIES)
def test_copy(name: str) -> None:
    check_copy(name, "cpu")


@pytest.mark.parametrize("rank", ANY_TILES)
def test_copy_of_any_strides(rank: int) -> None:
    for seed in range(4):
        check_any_strides(rank, seed, "cpu")


@pytest.mark.parametrize("index", FAR_INDICES)
def test_far_index(index: int) -> None:
    check_far_index(index, "cpu")


@pytest.mark.parametrize("name", PRODUCTS)
def test_product(name: str) -> None:
    check_product(name, "cpu")


@ct.kernel
def matmul(A, B, C, TMA: ct.Constant[bool]):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((64, 64), dtype=ct.float32)
    for k in range(ct.num_tiles(A, axis=1, shape=(64, 64))):
        a = ct.load(A, index=(i, k), shape=(64, 64), padding_mode=ct.PaddingMode.ZERO, allow_tma=TMA)
        b = ct.load(B, index=(k, j), shape=(64, 64), padding_mode=ct.PaddingMode.ZERO)
        acc = ct.mma(a, b, acc)
    ct.store(C, index=(i, j), tile=acc)


def test_an_array_that_no_map_describes_is_copied_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which means a kernel uses follows from the arrays of the launch, and from allow_tma."""
    monkeypatch.setattr(emulate, "TARGET", "sm_90a")
    means = []

    def compile_kernel(kernel: Any, target: str, key: Any, made: Any = None) -> Any:
        captured = compiler.capture_kernel(kernel, "sm_90a", key)
        captured.module.lower("pipelined")
        text = captured.module.text()
        means.append(("tile.tma_load" in text, "tile.async_copy" in text))
        return emulate.compile_kernel(kernel, target, key, made)

    monkeypatch.setattr(compiler, "compile_kernel", compile_kernel)
    memory = np.random.default_rng(0).standard_normal((80, 128 + 8)).astype(ml_dtypes.bfloat16)
    whole = memory[:, : 128 - 8]
    b = np.ascontiguousarray(memory[:, :128].T[:120, :72])
    forms = [
        (whole, True, True),
        (memory[:, 1:121], True, False),  # the address is odd
        (np.ascontiguousarray(memory[:, :121])[:, :120], True, False),  # lines are not multiples of 16 bytes
        (np.asfortranarray(whole), True, True),
        (whole[::-1], True, False),
        (whole[:1], True, True),
        (whole[:0], True, False),
        (whole, False, False),
    ]
    for a, allow, tma in forms:
        c = np.zeros((max(len(a), 1), 72), np.float32)
        means.clear()
        matmul.clear_variants()
        ct.launch(None, (2, 2), matmul, (a, b, c, allow))
        assert means == [(tma, not tma)]
        want = a.astype(np.float32) @ b.astype(np.float32)
        assert np.allclose(c[: len(a)], want, atol=1e-3)


# What is wrong with a kernel is said, not waited for: (text of the kernel, another in its place, the message).
FAULTS = {
    "too many bytes": ("], 8192 :", "], 8200 :", "8 bytes are missing"),
    "no arrival": ("arrivals 1", "arrivals 2", "1 of 2 arrivals and 0 bytes are missing"),
    "other parity": ("%full[%c0], %c0", "%full[%c0], %one", "which thread 0 has loaded without a fence since"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_said(fault: str) -> None:
    old, new, message = FAULTS[fault]
    ir = copy_kernel((64, 64), "bf16", 2, None, 1)
    assert old in ir
    ir = ir.replace(old, new).replace("%c0 = arith", "%one = arith.constant 1 : i32\n    %c0 = arith", 1)
    x = "np.zeros((64, 64), ml_dtypes.bfloat16)"
    assert message in complaint_of(ir, "copy", f"{x}, {x}", written=2)


def test_a_copy_over_what_a_product_reads_is_said() -> None:
    """The slot is given back while the product that reads it may be under way."""
    ir = product_kernel(2, 4, m=64)
    arrays = ", ".join(f"np.zeros({shape}, ml_dtypes.bfloat16)" for shape in ((64, 512), (512, 128)))
    arrays += ", np.zeros((64, 128), np.float32)"
    assert complaint_of(ir, "product", arrays, written=4) == ""
    early = ir.replace("tile.mma_wait %p, 0", "tile.mma_wait %p, 1")
    assert "where a product that thread" in complaint_of(early, "product", arrays, written=4)


def test_slot_given_back_without_a_fence() -> None:
    """Threads have loaded from the slot, which the accelerator fills next; without a fence it may overtake them."""
    x = np.zeros((64, 1024), ml_dtypes.bfloat16)
    kernel = matmul.replace_hints(num_warps=8)
    module = kernel.capture("sm_90a", kernel.specialization((x, x.T.copy(), np.zeros((64, 64), np.float32), True))[1])
    module.lower("pipelined")
    ir = module.text()
    assert "tile.roles" in ir and " together" in ir
    arrays = ", ".join(f"np.zeros({shape}, ml_dtypes.bfloat16)" for shape in ((64, 1024), (1024, 64)))
    arrays += ", np.zeros((64, 64), np.float32), 1"
    assert complaint_of(ir, "matmul", arrays, written=4) == ""
    assert "loaded without a fence" in complaint_of(ir.replace(" together", ""), "matmul", arrays, written=4)


OVERTAKEN = """
module attributes {tile.target = "sm_90a"} {
  func.func @count(%x: memref<?xf32, strided<[1]>>) attributes HINTS {
    %c0 = arith.constant 0 : i32
    %phases = tile.alloc_barriers arrivals 1 : !tile.barriers<1>
    %others = tile.alloc_barriers arrivals 99 : !tile.barriers<1>
    tile.roles producer_warps 1 producer {
      ARRIVE %phases
      ARRIVE %phases
    } consumer {
      HELD UP
      tile.barrier_wait %phases[%c0], %c0 : !tile.barriers<1>
    }
    return
  }
}
""".replace("HINTS", hints(4)).replace("ARRIVE %phases", "tile.barrier_arrive %phases[%c0] : !tile.barriers<1>")


@pytest.mark.parametrize(
    ("arrivals", "message"),
    [(1, "which waits for the one before"), (9, "waits for phase 0 of a barrier when phase 1 has ended")],
)
def test_a_wait_that_two_phases_overtake_is_said(arrivals: int, message: str) -> None:
    """Whether the thread that waits comes before the second one or, held up elsewhere, behind it."""
    ir = OVERTAKEN.replace("HELD UP", arrivals * "tile.barrier_arrive %others[%c0] together : !tile.barriers<1>\n")
    assert message in complaint_of(ir, "count", "np.zeros(8, np.float32)", written=1)


def complaint_of(ir: str, name: str, arrays: str, written: int) -> str:
    """What the emulator says in the end, in a process of its own; nothing when all is well."""
    code = f"""
import sys
sys.path[:0] = {FOLDERS!r}
import ml_dtypes, numpy as np
from tma_kernels import launch
launch({ir!r}, {name!r}, (1, 1, 1), [{arrays}], "cpu", {written})
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode != 0) == ("emulator:" in done.stderr), done.stderr
    return done.stderr if done.returncode else ""
