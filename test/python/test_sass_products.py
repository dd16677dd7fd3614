"""Products that some version of ptxas has compiled to wrong code, in the spellings in which it did: tools/sasscheck
finds nothing in them, with any version, and nothing runs one product after the other.

docs/design/tensor-cores.md, "What ptxas gets wrong", has the reasons.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright import compile
from tilewright import tile as ct

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
from sasscheck import check

VERSIONS = check.assemblers()
pytestmark = pytest.mark.skipif(not VERSIONS, reason="needs the assemblers of tools/ptxas.txt: make build/stamp/ptxas")

ROWS = ct.Constant[int]


def softmax_step(q, K, V, m, total, o, h, n, TN: ROWS, D: ROWS):
    """One block of keys: both products are waited for, the first reads q from registers."""
    keys = ct.load(K, (h, n, 0), (1, TN, D)).reshape((TN, D)).T
    s = ct.mma(q, keys, ct.zeros((q.shape[0], TN), ct.float32))
    new = ct.maximum(m, ct.max(s, axis=1, keepdims=True))
    p, c = ct.exp2(s - new), ct.exp2(m - new)
    values = ct.load(V, (h, n, 0), (1, TN, D)).reshape((TN, D))
    part = ct.mma(p.astype(V.dtype), values, ct.zeros((q.shape[0], D), ct.float32))
    return new, total * c + ct.sum(p, axis=1, keepdims=True), o * c + part


@ct.kernel
def attention_while(Q, K, V, Y, TM: ROWS, TN: ROWS, D: ROWS):
    i, h, n = ct.bid(0), ct.bid(1), 0
    q = ct.load(Q, (h, i, 0), (1, TM, D)).reshape((TM, D))
    q = (q.astype(ct.float32) * 0.18).astype(Q.dtype)
    m, total = ct.full((TM, 1), -1e30, ct.float32), ct.zeros((TM, 1), ct.float32)
    o = ct.zeros((TM, D), ct.float32)
    while n < ct.num_tiles(K, axis=1, shape=(1, TN, D)):
        m, total, o = softmax_step(q, K, V, m, total, o, h, n, TN, D)
        n += 1
    ct.store(Y, (h, i, 0), (o / total).astype(Y.dtype).reshape((1, TM, D)))


@ct.kernel
def attention_heads(Q, K, V, Y, TM: ROWS, TN: ROWS, D: ROWS):
    """The same in two loops, one in the other: the queries are scaled in the outer one."""
    i = ct.bid(0)
    for h in range(ct.num_tiles(Q, axis=0, shape=(1, TM, D))):
        q = ct.load(Q, (h, i, 0), (1, TM, D)).reshape((TM, D))
        q = (q.astype(ct.float32) * 0.18).astype(Q.dtype)
        m, total = ct.full((TM, 1), -1e30, ct.float32), ct.zeros((TM, 1), ct.float32)
        o = ct.zeros((TM, D), ct.float32)
        for n in range(0, ct.num_tiles(K, axis=1, shape=(1, TN, D)), 2):
            m, total, o = softmax_step(q, K, V, m, total, o, h, n, TN, D)
        ct.store(Y, (h, i, 0), (o / total).astype(Y.dtype).reshape((1, TM, D)))


@ct.kernel
def half_sums(A, B, C, TM: ROWS, TN: ROWS, TK: ROWS):
    """Sums of f16 that are added up in f16, outside of the product."""
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((TM, TN), ct.float16)
    for k in range(ct.num_tiles(A, axis=1, shape=(TM, TK))):
        a, b = ct.load(A, (i, k), (TM, TK)), ct.load(B, (k, j), (TK, TN))
        acc = acc + ct.mma(a, b, ct.zeros((TM, TN), ct.float16))
    ct.store(C, (i, j), acc)


@ct.kernel
def half_largest(A, B, C, TM: ROWS, TN: ROWS, TK: ROWS):
    """Sums of f16 whose numbers are compared one by one."""
    i, j, k = ct.bid(0), ct.bid(1), 0
    best = ct.full((TM, TN), -6e4, ct.float16)
    while k < ct.num_tiles(A, axis=1, shape=(TM, TK)):
        a, b = ct.load(A, (i, k), (TM, TK)), ct.load(B, (k, j), (TK, TN))
        s = ct.mma(a, b, ct.zeros((TM, TN), ct.float16))
        best = ct.where(s > best, s, best * 0.5)
        k += 1
    ct.store(C, (i, j), best)


@ct.kernel
def half_carried(A, B, C, TM: ROWS, TN: ROWS, TK: ROWS):
    """Sums of f16 in place, in a loop that waits in each step; apart behind it."""
    i, j, k = ct.bid(0), ct.bid(1), 0
    acc = ct.zeros((TM, TN), ct.float16)
    while k < ct.num_tiles(A, axis=1, shape=(TM, TK)):
        a, b = ct.load(A, (i, k), (TM, TK)), ct.load(B, (k, j), (TK, TN))
        acc = ct.mma(a, b, acc)
        k += 1
    ct.store(C, (i, j), ct.where(acc > 0, acc, acc * 0.5))


HEADS = [np.empty((4, 1024, 64), np.float16) for _ in range(4)]
MATRICES = [np.empty((1024, 1024), np.float16) for _ in range(3)]
PROGRAMS = {
    "queries in registers, while": (attention_while, (*HEADS, 64, 64, 64)),
    "queries in registers, 128 rows": (attention_while, (*HEADS, 128, 64, 64)),
    "queries in registers, loops": (attention_heads, (*HEADS, 64, 64, 64)),
    "sums of f16, two blocks of rows": (half_sums, (*MATRICES, 128, 32, 32)),
    "sums of f16, one block of rows": (half_sums, (*MATRICES, 64, 128, 64)),
    "largest of f16": (half_largest, (*MATRICES, 128, 64, 64)),
    "sums of f16 in place": (half_carried, (*MATRICES, 128, 128, 64)),
}


def text_of(kernel: Any, arguments: tuple[Any, ...]) -> str:
    module = kernel.capture("sm_90a", kernel.specialization(arguments)[1])
    module.lower("llvm")
    return module.emit(compile.EMIT_ASSEMBLY).rstrip(b"\0").decode()


@pytest.mark.parametrize("name", PROGRAMS)
def test_code_is_right(name: str) -> None:
    text = text_of(*PROGRAMS[name])
    assert "wgmma.mma_async" in text
    for ptxas in VERSIONS.values():
        assert check.check_ptx(text, ptxas, check.tool("nvdisasm")).findings == []
