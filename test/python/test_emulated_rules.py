"""Rules of the PTX ISA that no result shows: the emulator says which one the code of a plan breaks."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "emulator"))
import emulate
from test_emulated_races import HEAD, PRODUCT, said

pytestmark = pytest.mark.skipif(emulate.MISSING is not None, reason="the emulator compiles with clang")

RING = PRODUCT.replace("(512, 128)", "(512, 640)").replace("(128, 64)", "(640, 64)")
WIDE = f"""{HEAD}
@ct.kernel
def kernel(A, B, C):
    acc = ct.zeros((128, 256), ct.float32)
    for k in range(ct.num_tiles(A, 1, (128, 64))):
        acc = ct.mma(ct.load(A, (ct.bid(0), k), (128, 64)), ct.load(B, (k, 0), (64, 256)), acc)
    ct.store(C, (ct.bid(0), 0), acc)

def launch():
    a, b = np.ones((256, 640), np.float16), np.ones((640, 256), np.float16)
    ct.launch(None, (2,), kernel, (a, b, np.ones((256, 256), np.float32)))
"""
GATHERED = f"""{HEAD}
@ct.kernel
def kernel(A, B, W, ROWS, C):
    rows = ct.gather(ROWS, ct.arange(128, dtype=ct.int32))
    acc, acc2 = ct.zeros((128, 128), ct.float32), ct.zeros((128, 128), ct.float32)
    for k in range(ct.num_tiles(A, 1, (128, 64))):
        a = ct.gather(A, (rows[:, None], (k * 64 + ct.arange(64, dtype=ct.int32))[None, :]))
        acc = ct.mma(a, ct.load(B, (k, 0), (64, 128)), acc)
        acc2 = ct.mma(a, ct.load(W, (k, 0), (64, 128)), acc2)
    ct.store(C, (0, 0), acc + acc2)

def launch():
    a, b = np.ones((128, 640), np.float16), np.ones((640, 128), np.float16)
    ct.launch(None, (1,), kernel, (a, b, b + 1, np.arange(128)[::-1], np.ones((128, 128), np.float32)))
"""  # of four warps that gather, one has the accelerator fill W, too: a phase does not end behind the others' waits
WARPS = f"""{HEAD}
@device.kernel
def kernel(x):
    if device.thread_idx.x > 3:
        device.syncthreads()
    else:
        device.syncthreads()
    x[device.thread_idx.x] = 1

def launch():
    device.launch(kernel, np.zeros(32, np.int32), grid=1, block=32)
"""
# (program, what is replaced in its code, by what, what is said)
FAULTS = {
    "barriers are not shown": (RING, r"fence\.mbarrier_init\.release\.cluster", "fence.acq_rel.cta", "without a fence"),
    "barriers are not ordered": (
        RING,
        r"(fence\.mbarrier_init[^\n]*\n) *(tail )?call void @llvm\.nvvm\.barrier[^\n]*",
        r"\1",
        "a barrier is used that thread 0 sets up",
    ),
    "a slot is filled early": (
        RING,
        r"\{ \.reg \.pred p;\\0AAGAIN: mbarrier\.try_wait.*?DONE: \}",
        "fence.acq_rel.cta;",
        "emulator:",
    ),
    "a pattern that begins inside": (
        RING,
        r"add\.s64 b, (\$\d+), 0;",
        r"add.s64 b, \1, 8;",
        "from line 1 of a pattern",
    ),
    "no swizzle": (RING, r"(or disjoint i64 %\S+,) 46\d+", r"\1 46", "has the descriptor"),
    "more registers than there are": (
        WIDE,
        r"setmaxnreg\.inc\.sync\.aligned\.u32 \d+",
        "setmaxnreg.inc.sync.aligned.u32 256",
        "ask for",
    ),
    "a count of registers": (
        WIDE,
        r"setmaxnreg\.dec\.sync\.aligned\.u32 \d+",
        "setmaxnreg.dec.sync.aligned.u32 28",
        "asks for 28",
    ),
    "the kernel before may run": (
        RING,
        r"call void @llvm\.nvvm\.griddepcontrol\.wait\(\)",
        "call void @llvm.nvvm.griddepcontrol.launch.dependents()",
        "the kernel before this one",
    ),
    "lanes that part": (
        WARPS,
        r"@llvm\.nvvm\.barrier\.cta\.sync\.all",
        "@llvm.nvvm.barrier.cta.sync.aligned.all",
        "by different ways",
    ),
    "a named barrier of number 16": (
        WIDE,
        r"(barrier\.cta\.sync\.aligned\.count\(i32 )[^,)]+",
        r"\g<1>16",
        "the barrier of number 16",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_broken_rules_are_said(fault: str, tmp_path: Path) -> None:
    program, old, new, message = FAULTS[fault]
    assert message in said(program, "sm_90a", old, new, tmp_path)


@pytest.mark.parametrize("program", [RING, WIDE, GATHERED, WARPS])
def test_plans_keep_the_rules(program: str, tmp_path: Path) -> None:
    assert said(program, "sm_90a", "", "", tmp_path) == ""
