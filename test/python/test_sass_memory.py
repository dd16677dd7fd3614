"""The structure of the machine code of kernels that memory bounds, on Hopper: nothing runs, no GPU is needed.

Every byte in accesses of 16, loads before the first wait, no barrier more than the reductions take, and registers for
as many rows as keep memory busy.
"""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import sass

from tilewright import tile as ct

sys.path.insert(0, str(Path(__file__).parents[2] / "python" / "examples"))
import softmax
from kernels import cross_entropy, gates

pytestmark = pytest.mark.skipif(sass.MISSING is not None, reason=str(sass.MISSING))

BF16 = ml_dtypes.bfloat16


@ct.kernel
def layer_norm(X, W, B, Y, N: ct.Constant[int]):
    row = ct.bid(0)
    x = ct.load(X, index=(row, 0), shape=(1, N)).astype(ct.float32)
    w = ct.load(W, index=(0,), shape=(N,)).astype(ct.float32)
    b = ct.load(B, index=(0,), shape=(N,)).astype(ct.float32)
    centred = x - ct.sum(x, axis=1, keepdims=True) / N
    scale = ct.rsqrt(ct.sum(centred * centred, axis=1, keepdims=True) / N + 1e-5)
    ct.store(Y, index=(row, 0), tile=(centred * scale * w + b).astype(Y.dtype))


@ct.kernel
def cumulative_sum(X, Y, N: ct.Constant[int]):
    row = ct.bid(0)
    ct.store(Y, index=(row, 0), tile=ct.cumsum(ct.load(X, index=(row, 0), shape=(1, N)), axis=1))


@ct.kernel
def transpose(X, Y, T: ct.Constant[int]):
    i, j = ct.bid(1), ct.bid(0)
    ct.store(Y, index=(j, i), tile=ct.load(X, index=(i, j), shape=(T, T)).T)


@ct.kernel
def embedding(Table, Index, Y, R: ct.Constant[int], N: ct.Constant[int]):
    i = ct.bid(0)
    rows = ct.load(Index, index=(i,), shape=(R,))
    ct.store(Y, index=(i, 0), tile=ct.gather(Table, (rows[:, None], ct.arange(N, dtype=ct.int32))))


def empty(*shape: int, dtype: Any = BF16) -> np.ndarray:
    return np.empty(shape, dtype)


@dataclasses.dataclass(frozen=True)
class Plan:
    kernel: Any
    args: tuple[Any, ...]
    loads: int  # accesses of 16 bytes, of one thread
    stores: int
    barriers: int
    registers: int  # at most
    narrow: int = 0  # other loads: indices
    stored: int = 0  # other stores: one element a row
    exchanged: int = 0  # accesses of 16 bytes to shared memory, each way
    copied: int = 0  # asynchronous copies of 16 bytes
    met: int = 0  # waits for the other blocks of a cluster


def rows(kernel: Any, columns: int, weights: int = 0, dtype: Any = BF16) -> tuple[Any, ...]:
    square = empty(64, columns, dtype=dtype)
    return (kernel, (square, *(empty(columns) for _ in range(weights)), square.copy(), columns))


PLANS = {
    "softmax 1024": Plan(*rows(softmax.softmax, 1024), loads=4, stores=4, barriers=0, registers=64),
    "softmax 4096": Plan(*rows(softmax.softmax, 4096), loads=4, stores=4, barriers=2, registers=64),
    "softmax 16384": Plan(*rows(softmax.softmax, 16384), loads=8, stores=8, barriers=2, registers=128),
    "layer norm 1024": Plan(*rows(layer_norm, 1024, 2), loads=12, stores=4, barriers=0, registers=64),
    "layer norm 4096": Plan(*rows(layer_norm, 4096, 2), loads=12, stores=4, barriers=2, registers=64),
    "layer norm 16384": Plan(*rows(layer_norm, 16384, 2), loads=24, stores=8, barriers=2, registers=128),
    "cumulative sum": Plan(*rows(cumulative_sum, 4096, dtype=np.float32), loads=8, stores=8, barriers=1, registers=80),
    "transpose": Plan(
        transpose, (empty(256, 256), empty(256, 256), 128), loads=4, stores=4, barriers=1, registers=64, exchanged=4
    ),
    "cross entropy": Plan(  # what a walk writes lies as what it reads, whatever an earlier walk left
        cross_entropy.cross_entropy,
        (empty(64, 32768), empty(64, dtype=np.int64), empty(64, dtype=np.float32), empty(64, 32768), 4096),
        loads=4,  # of tiles beyond those that are kept, in either walk
        stores=4,
        barriers=4,
        registers=128,
        narrow=2,
        stored=1,
        copied=18,  # of nine tiles that are kept
    ),
    # Slices of 64 KB, three blocks on a multiprocessor: those of a cluster meet when all have started, and send each
    # other what they reduce; threads read what they have copied themselves.
    "softmax 65536": Plan(*rows(softmax.softmax, 65536), loads=0, stores=4, barriers=0, registers=80, copied=16, met=1),
    "layer norm 131072": Plan(
        *rows(layer_norm, 131072, 2), loads=8, stores=4, barriers=0, registers=80, copied=16, met=1
    ),
    "layer norm 1048576": Plan(  # a part of it in the L2 cache
        *rows(layer_norm, 1048576, 2), loads=24, stores=8, barriers=0, registers=128, copied=28, met=1
    ),
    "embedding": Plan(
        embedding,
        (empty(64, 4096), empty(64, dtype=np.int32), empty(64, 4096), 4, 4096),
        loads=8,
        stores=8,
        barriers=0,
        registers=64,
        narrow=1,
    ),
}


@pytest.mark.parametrize("name", PLANS)
def test_plan(name: str) -> None:
    plan = PLANS[name]
    code = sass.assemble(plan.kernel, plan.kernel.specialization(plan.args)[1])
    assert code.spills == 0
    assert code.registers <= plan.registers
    assert code.count("LDG.E.128") == plan.loads and code.count("LDG") == plan.loads + plan.narrow
    assert code.count("STG.E.128") == plan.stores and code.count("STG") == plan.stores + plan.stored
    assert code.count("BAR.SYNC") == plan.barriers
    assert code.count("LDGSTS.E.BYPASS.128") == code.count("LDGSTS") == plan.copied
    assert code.count("UCGABAR_WAIT") == plan.met and code.count("MEMBAR") == 0
    if plan.exchanged:
        assert (
            code.count("STS.128") == code.count("STS") == code.count("LDS.128") == code.count("LDS") == plan.exchanged
        )


@pytest.mark.parametrize("kernel, most", [(gates.swiglu, 16), (gates.gelu_and_residual, 25)], ids=["swiglu", "gelu"])
def test_elementwise_work_fits_beside_the_bytes(kernel: Any, most: int) -> None:
    """At the speed of a copy of 6 bytes an element, a multiprocessor of an H200 issues 48 instructions for each."""
    args = (empty(1 << 16), empty(1 << 16), empty(1 << 16), 2048)
    code = sass.assemble(kernel, kernel.specialization(args)[1])
    elements = 8 * code.count("LDG.E.128") / 2
    assert len(code.instructions) <= most * elements


def test_the_rows_of_a_block_are_in_flight_together() -> None:
    """All loads of a row stand before what waits for the first of them."""
    plan = PLANS["softmax 4096"]
    code = sass.assemble(plan.kernel, plan.kernel.specialization(plan.args)[1])
    opcodes = [i.opcode for i in code.instructions]
    last = max(i for i, x in enumerate(opcodes) if x.startswith("LDG"))
    assert not any(x.startswith(("FMNMX", "PRMT", "SHFL")) for x in opcodes[:last])
