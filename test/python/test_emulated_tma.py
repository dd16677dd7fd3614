"""TMA copies, barriers that count and roles of warps, on machines without a GPU (see test/emulator)."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "emulator"))
import emulate
from tma_kernels import COPIES, PRODUCTS, check_copy, check_product, copy_kernel

FOLDERS = [str(Path(__file__).resolve().parent.parent / name) for name in ("emulator", "numerics")]

pytestmark = pytest.mark.skipif(shutil.which(emulate.CLANG) is None, reason="the emulator needs clang")


@pytest.mark.parametrize("name", COPIES)
def test_copy(name: str) -> None:
    check_copy(name, "cpu")


@pytest.mark.parametrize("name", PRODUCTS)
def test_product(name: str) -> None:
    check_product(name, "cpu")


# What is wrong with a kernel is said, not waited for: (text of the kernel, another in its place, the message).
FAULTS = {
    "too many bytes": ("], 8192 :", "], 8200 :", "8 bytes are missing"),
    "no arrival": ("arrivals 1", "arrivals 2", "1 of 2 arrivals and 0 bytes are missing"),
    "other parity": ("%full[%c0], %c0", "%full[%c0], %one", "the block ends while 1 copies to it are under way"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_said(fault: str) -> None:
    old, new, message = FAULTS[fault]
    ir = copy_kernel((64, 64), "bf16", 2, None, 1)
    assert old in ir
    ir = ir.replace(old, new).replace("%c0 = arith", "%one = arith.constant 1 : i32\n    %c0 = arith", 1)
    code = f"""
import sys
sys.path[:0] = {FOLDERS!r}
import ml_dtypes, numpy as np
from tma_kernels import launch
x = np.zeros((64, 64), ml_dtypes.bfloat16)
launch({ir!r}, "copy", (1, 1, 1), [x, x.copy()], "cpu", 2)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and message in done.stderr, done.stderr
