"""Running softmaxes in the forms in which people write them, on scores that try their references: against float64."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from harness import Backends, run
from zoo import grouped_attention

from tilewright import tile as ct

LOG2E = math.log2(math.e)
# How the softmax is written; how keys are masked.
BASE_2, BASE_E, SCALED_LATE, GUARDED, DIVIDED_LATE, CHOSEN, CHOSEN_LAST = FORMS = range(7)
NONE, CAUSAL, WINDOW, PREFIX = range(4)


@ct.function
def load(X, i, T, D):
    return ct.load(X, index=(i, 0), shape=(T, D), padding_mode=ct.PaddingMode.ZERO)


@ct.kernel
def attention(
    Q, K, V, Y, LSE, SCALE: ct.Constant, LIMIT: ct.Constant, FORM: ct.Constant, MASK: ct.Constant, TM: ct.Constant,
    TN: ct.Constant, D: ct.Constant,
):  # fmt: skip
    i = ct.bid(0)
    q = load(Q, i, TM, D)
    rows = i * TM + ct.arange(TM, dtype=ct.int32)[:, None]
    m = ct.full((TM, 1), -math.inf, dtype=ct.float32)
    total = ct.zeros((TM, 1), dtype=ct.float32)
    acc = ct.zeros((TM, D), dtype=ct.float32)
    for j in range(ct.cdiv(K.shape[0], TN)):
        s = ct.mma(q, load(K, j, TN, D).T, ct.zeros((TM, TN), dtype=ct.float32))
        if FORM != SCALED_LATE:
            s = s * SCALE
        columns = j * TN + ct.arange(TN, dtype=ct.int32)[None, :]
        visible = columns < K.shape[0]
        if MASK == CAUSAL:
            visible = visible & (columns <= rows)
        if MASK == WINDOW:
            visible = visible & (columns <= rows) & (columns > rows - LIMIT)
        if MASK == PREFIX:
            visible = visible & (rows >= LIMIT)
        s = ct.where(visible, s, -math.inf)
        most = ct.max(s, axis=1, keepdims=True)
        if FORM == CHOSEN:
            m_new = ct.where(most > m, most, m)
        elif FORM == CHOSEN_LAST:
            m_new = ct.where(m >= most, m, most)
        else:
            m_new = ct.maximum(m, most)
        if FORM == BASE_E:
            p, fade = ct.exp(s - m_new), ct.exp(m - m_new)
        elif FORM == SCALED_LATE:
            p, fade = ct.exp2((s - m_new) * (SCALE * LOG2E)), ct.exp2(m * (SCALE * LOG2E) - m_new * (SCALE * LOG2E))
        elif FORM == GUARDED:
            reference = ct.where(m_new == -math.inf, 0.0, m_new)
            p, fade = ct.exp2((s - reference) * LOG2E), ct.exp2((m - reference) * LOG2E)
        else:
            p, fade = ct.exp2((s - m_new) * LOG2E), ct.exp2((m - m_new) * LOG2E)
        total = total * fade + ct.sum(p, axis=1, keepdims=True)
        acc = ct.mma(p.astype(V.dtype), load(V, j, TN, D), acc * fade)
        m = m_new
    if FORM == GUARDED:
        total = ct.where(total == 0, 1.0, total)
    lse = m * SCALE + ct.log(total) if FORM == SCALED_LATE else m + ct.log(total)
    ct.store(LSE, index=(i, 0), tile=lse)
    y = acc * (1 / total) if FORM == DIVIDED_LATE else acc / total
    ct.store(Y, index=(i, 0), tile=y.astype(Y.dtype))


def expected(q: Any, k: Any, v: Any, scale: float, limit: int, mask: int) -> tuple[np.ndarray, np.ndarray]:
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    row, column = np.arange(len(q))[:, None], np.arange(len(k))
    visible = {
        NONE: column >= 0,
        CAUSAL: column <= row,
        WINDOW: (column <= row) & (column > row - limit),
        PREFIX: np.broadcast_to(row >= limit, (len(q), len(k))),
    }[mask]
    with np.errstate(all="ignore"):
        s = np.where(visible, q @ k.T * scale, -np.inf)
        m = s.max(axis=1, keepdims=True)
        p = np.exp(s - m)
        total = p.sum(axis=1, keepdims=True)
        return p / total @ v, m + np.log(total)


def scores(kind: str, rng: np.random.Generator, rows: int, keys: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    q, k = rng.standard_normal((rows, d)), rng.standard_normal((keys, d))
    if kind == "rising":  # every block of keys is far above the one before
        q[:, 0], k[:, 0] = 8, np.arange(keys) / 2
    elif kind == "falling":
        q[:, 0], k[:, 0] = 8, -np.arange(keys) / 2
    elif kind == "large":
        q, k = 16 * q, 16 * k
    elif kind == "peak":  # one key outdoes all others, late
        k[-3] = 12 * q[min(5, rows - 1)]
    elif kind == "low":
        q[:, 0], k[:, 0] = 30, -30
    elif kind == "step":  # one key is e**6.875 = 968 above all others, with d = 64
        q[:], k[:] = 0, 0
        q[:, :2], k[-3, :2] = 8, (6.5, 0.375)
    return q, k


def check(
    backends: Backends, kind: str = "normal", form: int = BASE_2, mask: int = NONE, rows: int = 72, keys: int = 264,
    d: int = 64, dtype: Any = np.float16, limit: int = 40, tiles: tuple[int, int] = (64, 64), special: Any = None,
) -> None:  # fmt: skip
    rng = np.random.default_rng(3)
    q, k = (x.astype(dtype) for x in scores(kind, rng, rows, keys, d))
    v = rng.standard_normal((keys, d)).astype(dtype)
    if special:
        special(q, k, v)
    scale = 1 / math.sqrt(d)
    want, want_lse = expected(q, k, v, scale, limit, mask)
    if form == GUARDED:  # rows without a key become 0
        want = np.where(np.isnan(want_lse), 0, want)
    for name in backends.names:
        y, lse = np.zeros((rows, d), dtype), np.zeros((rows, 1), np.float32)
        run(name, attention, math.ceil(rows / tiles[0]), (q, k, v, y, lse, scale, limit, form, mask, *tiles, d))
        if name.startswith("sm_"):
            continue
        found, eps = y.astype(np.float64), float(ml_dtypes.finfo(dtype).eps)
        assert np.array_equal(np.isnan(found), np.isnan(want)), name
        error = np.nanmax(np.abs(found - want), initial=0)
        assert error <= 2 * eps * np.nanmax(np.abs(v.astype(np.float64))), (name, error)
        with np.errstate(all="ignore"):
            off = np.abs(lse - want_lse)[np.isfinite(want_lse)]
            bound = 1e-3 + 1e-6 * np.abs(want_lse[np.isfinite(want_lse)])
        assert (off <= bound).all(), (name, off.max())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["normal", "rising", "falling", "large", "peak", "low"])
def test_forms(backends: Backends, kind: str, form: int) -> None:
    check(backends, kind, form)


@pytest.mark.parametrize("mask", [CAUSAL, WINDOW, PREFIX])
@pytest.mark.parametrize("kind", ["normal", "rising", "large"])
def test_masks(backends: Backends, kind: str, mask: int) -> None:
    check(backends, kind, GUARDED, mask, rows=264)


@pytest.mark.parametrize("form", [BASE_2, BASE_E, SCALED_LATE])
def test_rows_without_a_key_are_nan(backends: Backends, form: int) -> None:
    check(backends, "normal", form, PREFIX)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["f16", "bf16"])
@pytest.mark.parametrize("mask", [NONE, CAUSAL])
@pytest.mark.parametrize("d", [64, 128])
def test_large_tiles(backends: Backends, d: int, mask: int, dtype: Any) -> None:
    check(backends, "rising", BASE_2, mask, 136, 392, d, dtype, tiles=(128, 128))


@pytest.mark.parametrize("mask", [NONE, CAUSAL])
def test_tiles_of_more_than_the_registers(backends: Backends, mask: int) -> None:
    """Sums, scores and weights of 256 rows: two blocks compute the rows of a tile."""
    check(backends, "rising", BASE_2, mask, 264, 136, 128, tiles=(256, 128))


def test_weights_stay_in_the_range_of_their_type(backends: Backends) -> None:
    """968 is less than what makes a loop find a new maximum for 16 bits, and more than the largest float8_e4m3fn."""

    def special(q: Any, k: Any, v: Any) -> None:
        v[:] = 1  # too small a weight would show in every element

    check(backends, "step", BASE_E, keys=128, rows=64, dtype=ml_dtypes.float8_e4m3fn, special=special)


@pytest.mark.parametrize("keys", [1, 63, 64, 65, 129])
def test_few_keys(backends: Backends, keys: int) -> None:
    check(backends, keys=keys, rows=64)


@pytest.mark.parametrize("limit", [1, 7, 64, 65, 200, 1000])
def test_windows(backends: Backends, limit: int) -> None:
    check(backends, form=GUARDED, mask=WINDOW, rows=264, limit=limit)


@pytest.mark.parametrize("form", [BASE_2, CHOSEN, CHOSEN_LAST])
def test_nan_stays_in_its_rows(backends: Backends, form: int) -> None:
    def special(q: Any, k: Any, v: Any) -> None:
        q[5] = math.nan

    check(backends, form=form, special=special)


@pytest.mark.parametrize("form", [BASE_2, CHOSEN, CHOSEN_LAST])
def test_a_key_that_is_no_number_spoils_the_rows_that_see_it(backends: Backends, form: int) -> None:
    def special(q: Any, k: Any, v: Any) -> None:
        k[70] = math.nan

    check(backends, form=form, mask=CAUSAL, rows=136, special=special)


def test_infinite_values(backends: Backends) -> None:
    """The first value of the first key: nothing may meet it before its weight is known."""

    def special(q: Any, k: Any, v: Any) -> None:
        v[0, 0] = v[100, 3] = math.inf

    rng = np.random.default_rng(1)
    q, k, v = (rng.standard_normal(shape).astype(np.float16) for shape in ((64, 64), (192, 64), (192, 64)))
    special(q, k, v)
    for name in backends.names:
        y, lse = np.zeros((64, 64), np.float16), np.zeros((64, 1), np.float32)
        run(name, attention, 1, (q, k, v, y, lse, 0.125, 0, BASE_2, NONE, 64, 64, 64))
        if not name.startswith("sm_"):
            assert np.isposinf(y[:, [0, 3]].astype(np.float32)).all(), name
            assert np.isfinite(np.delete(y, [0, 3], axis=1).astype(np.float32)).all(), name


@pytest.mark.parametrize("size", [0.3, 4, 300])
def test_soft_cap(backends: Backends, size: float) -> None:
    """Scores far below the cap, around it, and far above; a key that is no number spoils the row that sees it."""
    rng = np.random.default_rng(4)
    q, k, v = (rng.standard_normal((1, 1, 136, 64)).astype(np.float16) for _ in range(3))
    q *= np.float16(size)
    wide = [x.astype(np.float64) for x in (q, k, v)]
    want = grouped_attention.reference(*wide, cap=4.0)
    k[0, 0, 135] = math.nan
    for name in backends.names:
        y = np.zeros_like(q)
        for grid, kernel, args in grouped_attention.launches(q, k, v, y, cap=4.0, tiles=(64, 64)):
            run(name, kernel, grid, args)
        if not name.startswith("sm_"):
            assert np.abs(y - want)[0, 0, :135].max() <= 2e-3 * np.abs(want).max(), name
            assert np.isnan(y[0, 0, 135]).all(), name
