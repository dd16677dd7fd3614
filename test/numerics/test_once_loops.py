"""Loops that run once at most, as in a block that takes one tile of keys: what they load needs no second stage."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from harness import Backends, run

from tilewright import tile as ct

ZERO = ct.PaddingMode.ZERO


@ct.kernel(occupancy=2)
def decode(
    Q, R, K, V, P, Y, LSE, SCALE: ct.Constant, KEYS: ct.Constant, TN: ct.Constant, TH: ct.Constant, D: ct.Constant,
    E: ct.Constant,
):  # fmt: skip
    """Few rows of queries on KEYS keys of a block, with keys as rows: the scores' left operand, and the values'."""
    part = ct.bid(0)
    first = part * KEYS
    end = ct.minimum(first + KEYS, K.shape[0])
    q = ct.load(Q, index=(0, 0), shape=(D, TH), order=(1, 0), padding_mode=ZERO, latency=2)
    r = ct.load(R, index=(0, 0), shape=(E, TH), order=(1, 0), padding_mode=ZERO, latency=2)
    m = ct.full((TH,), -math.inf, dtype=ct.float32)
    total = ct.zeros((TN, TH), dtype=ct.float32)
    acc = ct.zeros((D, TH), dtype=ct.float32)
    for at in range(first, end, TN):
        j = at // TN
        zero = ct.zeros((TN, TH), dtype=ct.float32)
        s = ct.mma(ct.load(K, index=(j, 0), shape=(TN, D), padding_mode=ZERO, latency=2), q, zero)
        s = ct.mma(ct.load(P, index=(j, 0), shape=(TN, E), padding_mode=ZERO, latency=2), r, s) * SCALE
        s = ct.where((at + ct.arange(TN, dtype=ct.int32)[:, None]) < K.shape[0], s, -1e6)
        larger = ct.maximum(m, ct.max(s, 0))
        p, fade = ct.exp2(s - larger[None, :]), ct.exp2(m - larger)
        total = total * fade[None, :] + p
        v = ct.load(V, index=(j, 0), shape=(TN, D), padding_mode=ZERO, latency=2)
        acc = ct.mma(ct.transpose(v), p.astype(V.dtype), acc * fade[None, :])
        m = larger
    sums = ct.sum(total, 0)
    ct.store(Y, index=(part, 0, 0), tile=ct.transpose(acc / sums[None, :]).astype(Y.dtype).reshape((1, TH, D)))
    ct.store(LSE, index=(part, 0), tile=(m + ct.log2(sums)).reshape((1, TH)))


def expected(q: Any, r: Any, k: Any, v: Any, p: Any, scale: float) -> tuple[Any, Any]:
    q, r, k, v, p = (x.astype(np.float64) for x in (q, r, k, v, p))
    s = (q @ k.T + r @ p.T) * scale
    weights = np.exp2(s - s.max(1, keepdims=True))
    return weights @ v / weights.sum(1, keepdims=True), s.max(1) + np.log2(weights.sum(1))


@pytest.mark.parametrize(
    ("d", "keys", "tile"), [(512, 128, 128), (128, 128, 128), (128, 256, 128)], ids=["wide", "once", "twice"]
)
def test_decode(backends: Backends, d: int, keys: int, tile: int) -> None:
    """Of 512 columns, keys come in pieces, of which a ring has room beside the values."""
    heads, e, length = 16, 64, 2 * keys + 72
    rng = np.random.default_rng(1)
    q, r, k, v, p = (
        rng.standard_normal(shape).astype(np.float16)
        for shape in ((heads, d), (heads, e), (length, d), (length, d), (length, e))
    )
    scale = math.log2(math.e) / math.sqrt(d + e)
    for name in backends.names:
        y, lse = np.zeros((3, heads, d), np.float16), np.zeros((3, heads), np.float32)
        run(name, decode, 3, (q, r, k, v, p, y, lse, scale, keys, tile, heads, d, e))
        if name.startswith("sm_"):
            continue
        for part in range(3):
            at = slice(part * keys, (part + 1) * keys)
            want, want_lse = expected(q, r, k[at], v[at], p[at], scale)
            assert np.abs(y[part] - want).max() < 4e-3 * np.abs(v[at]).max(), (name, part)
            assert np.abs(lse[part] - want_lse).max() < 1e-3, (name, part)
