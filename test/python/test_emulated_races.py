"""Accesses that nothing orders are an error of the emulator, whatever order its threads run in."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "emulator"))
import emulate

pytestmark = pytest.mark.skipif(emulate.MISSING is not None, reason="the emulator compiles with clang")

HEAD = "import numpy as np\nfrom cuda import device\nfrom tilewright import tile as ct\n\n"
SUMS = f"""{HEAD}
@ct.kernel
def kernel(X, Y):
    ct.store(Y, (0,), ct.sum(ct.load(X, (0, 0), (4, 1024)), axis=1))

def launch():
    ct.launch(None, (1,), kernel, (np.ones((4, 1024), np.float32), np.ones(4, np.float32)))
"""
WRITTEN = f"""{HEAD}
@ct.kernel
def kernel(X, Y):
    ct.store(X, (0, 0), ct.load(X, (0, 0), (32, 16)) + 1)
    ct.store(Y, (0, 0), ct.load(X, (0, 0), (16, 32)))

def launch():
    ct.launch(None, (1,), kernel, (np.ones((32, 32), np.float32), np.ones((16, 32), np.float32)))
"""
PRODUCT = f"""{HEAD}
@ct.kernel
def kernel(A, B, C):
    acc = ct.zeros((64, 64), ct.float32)
    for k in range(ct.num_tiles(A, 1, (64, 64))):
        acc = ct.mma(ct.load(A, (ct.bid(0), k), (64, 64)), ct.load(B, (k, 0), (64, 64)), acc)
    ct.store(C, (ct.bid(0), 0), acc)

def launch():
    a, b = np.ones((512, 128), np.float16), np.ones((128, 64), np.float16)
    ct.launch(None, (8,), kernel, (a, b, np.ones((512, 64), np.float32)))
"""
NEIGHBOURS = f"""{HEAD}
@device.kernel
def kernel(x, meet: device.ConstExpr):
    row = device.shared_array(32, device.int32)
    i = device.int32(device.thread_idx.x)
    row[i] = i
    if meet:
        device.syncwarp()
    device.shfl_xor_sync(0xFFFFFFFF, i, 1)  # orders nothing
    x[i] = row[i ^ 1]

def launch():
    device.launch(kernel, np.zeros(32, np.int32), MEET, grid=1, block=32)
"""
PACKED = f"""{HEAD}
@ct.kernel
def kernel(X):
    X.tiled_view(4, traversal_steps=2).store(ct.bid(0), ct.full(4, ct.bid(0) + 1, X.dtype))

def launch():
    x = np.zeros(8, np.int32)
    ct.launch(None, 3, kernel, (x,))
    assert x[:2].tolist() == [1, 1] and x[6:].tolist() == [3, 3], x
"""
GRID = f"""{HEAD}
@device.kernel
def kernel(x, y, meet: device.ConstExpr):
    i = device.tid(1)
    device.syncgrid()
    x[i] = i
    if meet:
        device.syncgrid()
    y[i] = x[x.size - 1 - i]

def launch():
    x, y = np.zeros(160, np.int32), np.zeros(160, np.int32)
    device.launch(kernel, x, y, MEET, grid=4, block=40)
    assert (y == np.arange(160)[::-1]).all(), y
"""
BARRIER, COPIED, WARP = "@llvm.nvvm.barrier.", "@llvm.nvvm.cp.async.wait", "@llvm.nvvm.bar.warp"
# (program, target, the calls that are taken from its code, what is said)
FAULTS = {
    "shared memory": (SUMS, "sm_80", BARRIER, "shared memory"),
    "an array": (WRITTEN, "sm_80", BARRIER, "a load from an array"),
    "a ring": (PRODUCT, "sm_80", BARRIER, "shared memory"),
    "copies": (PRODUCT, "sm_80", COPIED, "has not waited for"),
    "lanes": (NEIGHBOURS.replace("MEET", "True"), "sm_80", WARP, "a load from shared memory"),
}
RUN = """
import re, runpy, sys
folder, target, old, new, program = sys.argv[1:]
sys.path.insert(0, folder)
import emulate
emulate.TARGET = target
emulate.install()
build = emulate.shared_object
def broken(text, *rest):
    changed = re.sub(old, new, text, flags=re.M) if old else text
    assert changed != text or not old, "there is nothing to break"
    return build(changed, *rest)
emulate.shared_object = broken
runpy.run_path(program)["launch"]()
"""


def said(program: str, target: str, old: str, new: str, folder: Path) -> str:
    """By the emulator, in a process of its own, of a launch in whose code a pattern is replaced."""
    path = folder / "program.py"
    path.write_text(program)
    command = [sys.executable, "-c", RUN, str(Path(emulate.__file__).parent), target, old, new, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (done.returncode != 0) == ("emulator:" in done.stderr), done.stderr
    return done.stderr if done.returncode else ""


def without(call: str) -> str:
    """The lines with a call, as a pattern."""
    return rf"^(?=.*call).*{re.escape(call)}.*\n"


@pytest.mark.parametrize("fault", FAULTS)
def test_races_are_said(fault: str, tmp_path: Path) -> None:
    program, target, taken, message = FAULTS[fault]
    assert said(program, target, "", "", tmp_path) == ""
    assert message in said(program, target, without(taken), "", tmp_path)


def test_a_shuffle_orders_nothing(tmp_path: Path) -> None:
    assert "which thread 1 writes" in said(NEIGHBOURS.replace("MEET", "False"), "sm_80", "", "", tmp_path)


def test_blocks_of_a_grid_are_not_compared_where_they_start_as_one(tmp_path: Path) -> None:
    assert said(PACKED, "sm_90a", "", "", tmp_path) == ""


def test_blocks_that_wait_for_each_other_are_compared(tmp_path: Path) -> None:
    assert said(GRID.replace("MEET", "True"), "sm_90a", "", "", tmp_path) == ""
    assert "nothing orders the two" in said(GRID.replace("MEET", "False"), "sm_90a", "", "", tmp_path)
