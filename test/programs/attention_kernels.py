"""Attention in the ways of papers and samples."""

from __future__ import annotations

import math
from typing import Any

from program import LOG2E, Launch, program

from tilewright import tile as ct

Int = ct.Constant[int]
APPROX = ct.RoundingMode.APPROX
ZERO = ct.PaddingMode.ZERO


# --- A vendor's sample: hints, flushed subnormals, queries that share keys, causal by a mask of positions -----------


@ct.kernel(occupancy=2)
def fmha(Q, K, V, O, scale: float, group: Int, TM: Int, TN: Int, D: Int, causal: ct.Constant[bool]):  # noqa: E741
    heads = Q.shape[1]
    block, pair = ct.bid(0), ct.bid(1)
    batch, head = pair // heads, pair % heads
    keys = K.shape[2]
    qk_scale = scale * LOG2E
    m_i = ct.full((TM, 1), -math.inf, dtype=ct.float32)
    l_i = ct.full((TM, 1), 0.0, dtype=ct.float32)
    acc = ct.full((TM, D), 0.0, dtype=ct.float32)
    q = ct.load(Q, index=(batch, head, block, 0), shape=(1, 1, TM, D)).reshape((TM, D))
    offs_m = block * TM + ct.arange(TM, dtype=ct.int32)[:, None]
    offs_n = ct.arange(TN, dtype=ct.int32)[None, :]
    last = ct.cdiv(keys, TN)
    first_mask = keys // TN
    if causal:
        last = min(last, ct.cdiv((block + 1) * TM, TN))
        first_mask = min(first_mask, block * TM // TN)
    for j in range(last):
        at = (batch, head // group, 0, j)
        k = ct.load(K, index=at, shape=(1, 1, D, TN), order=(0, 1, 3, 2), padding_mode=ZERO, latency=2)
        qk = ct.mma(q, k.reshape((D, TN)), ct.full((TM, TN), 0.0, dtype=ct.float32))
        if j >= first_mask:
            offs = j * TN + offs_n
            mask = offs < keys
            if causal:
                mask = mask & (offs_m >= offs)
            qk = qk + ct.where(mask, 0.0, -math.inf)
        m_ij = max(m_i, ct.max(qk, axis=-1, keepdims=True) * qk_scale)
        qk = qk * qk_scale - m_ij
        p = ct.exp2(qk, flush_to_zero=True)
        l_ij = ct.sum(p, axis=-1, keepdims=True)
        alpha = ct.exp2(m_i - m_ij, flush_to_zero=True)
        l_i = l_i * alpha + l_ij
        acc = acc * alpha
        at = (batch, head // group, j, 0)
        v = ct.load(V, index=at, shape=(1, 1, TN, D), padding_mode=ZERO, latency=4).reshape((TN, D))
        acc = ct.mma(p.astype(Q.dtype), v, acc)
        m_i = m_ij
    acc = ct.truediv(acc, l_i, flush_to_zero=True, rounding_mode=APPROX)
    ct.store(O, index=(batch, head, block, 0), tile=acc.reshape((1, 1, TM, D)).astype(O.dtype))


def attended(numbers: Any, q: Any, k: Any, v: Any, group: int = 1, causal: bool = False, bias: Any = None) -> Any:
    """softmax(q k' / sqrt(d) + bias) v, in float64, a head at a time."""
    lib = numbers.lib
    out = numbers.wide(q) * 0
    length, keys, d = q.shape[-2], k.shape[-2], q.shape[-1]
    later = numbers.arange(length)[:, None] < numbers.arange(keys)[None, :]
    for b in range(q.shape[0]):
        for h in range(q.shape[1]):
            s = numbers.wide(q[b, h]) @ numbers.wide(k[b, h // group]).T / math.sqrt(d)
            s = s + bias[h] if bias is not None else s
            s = lib.where(later, -1e300, s) if causal else s
            p = lib.exp(s - lib.amax(s, axis=-1, keepdims=True))
            out[b, h] = p @ numbers.wide(v[b, h // group]) / p.sum(axis=-1)[:, None]
    return out


def tensors(numbers: Any, batch: int, heads: int, group: int, length: int, d: int) -> list[Any]:
    shapes = [(batch, heads // (group if i else 1), length, d) for i in range(3)]
    arrays = [numbers.of_dtype(numbers.normal(shape), "bfloat16") for shape in shapes]
    return [*arrays, numbers.poisoned(shapes[0], "bfloat16")]


def work_of(batch: int, heads: int, length: int, d: int, causal: bool) -> float:
    return 4.0 * batch * heads * length * length * d / (2 if causal else 1)


def sample(numbers: Any, length: int, heads: int, d: int, tiles: tuple[int, int], group: int, causal: bool) -> Launch:
    arrays = tensors(numbers, 1, heads, group, length, d)
    grid = (math.ceil(length / tiles[0]), heads, 1)
    arguments = [*arrays, 1 / math.sqrt(d), group, *tiles, d, causal]
    want = lambda: attended(numbers, *arrays[:3], group=group, causal=causal)  # noqa: E731
    return Launch(fmha, grid, arguments, 3, want, operations=work_of(1, heads, length, d, causal))


SMALL = {"length": 128, "heads": 2, "d": 64, "tiles": (64, 32), "group": 1, "causal": False}
FULL = {"length": 4096, "heads": 32, "d": 128, "tiles": (128, 128), "group": 1, "causal": False}
for name, other in {
    "fmha sample": {},
    "fmha sample, causal": {"causal": True},
    "fmha sample, queries that share keys, tiles of 64": {"group": 2, "causal": True, "tiles": (64, 64)},
    "fmha sample, ragged": {"length": "less"},
}.items():
    ragged = other.pop("length", None) is not None
    program(
        SMALL | other | ({"length": 100} if ragged else {}), FULL | other | ({"length": 4000} if ragged else {}), name
    )(sample)


# --- FlashAttention-2 as its paper has it: natural exponents, state as vectors, the log-sum stored ------------------


@ct.kernel
def flash2(Q, K, V, O, L, sm_scale: float, TM: Int, TN: Int, D: Int, causal: ct.Constant[bool]):  # noqa: E741
    start_m, head = ct.bid(0), ct.bid(1)
    q = ct.load(Q, (0, head, start_m, 0), (1, 1, TM, D)).reshape((TM, D))
    m = ct.full((TM,), -1e9, ct.float32)
    l = ct.zeros((TM,), ct.float32)  # noqa: E741
    o = ct.zeros((TM, D), ct.float32)
    hi = ct.cdiv(Q.shape[2], TN)
    if causal:
        hi = ct.cdiv((start_m + 1) * TM, TN)
    for start_n in range(hi):
        k = ct.load(K, (0, head, start_n, 0), (1, 1, TN, D)).reshape((TN, D))
        s = ct.mma(q, k.T, ct.zeros((TM, TN), ct.float32))
        s = s * sm_scale
        if causal:
            rows = start_m * TM + ct.arange(TM, dtype=ct.int32)[:, None]
            s = ct.where(rows >= start_n * TN + ct.arange(TN, dtype=ct.int32)[None, :], s, -1e9)
        m_new = ct.maximum(m, ct.max(s, 1))
        p = ct.exp(s - m_new[:, None])
        correction = ct.exp(m - m_new)
        l = correction * l + ct.sum(p, 1)  # noqa: E741
        v = ct.load(V, (0, head, start_n, 0), (1, 1, TN, D)).reshape((TN, D))
        o = o * correction[:, None]
        o = ct.mma(p.astype(v.dtype), v, o)
        m = m_new
    ct.store(O, (0, head, start_m, 0), (o / l[:, None]).astype(O.dtype).reshape((1, 1, TM, D)))
    ct.store(L, (head, start_m), (m + ct.log(l)).reshape((1, TM)))


def paper(numbers: Any, length: int, heads: int, d: int, tiles: tuple[int, int], causal: bool) -> Launch:
    arrays = tensors(numbers, 1, heads, 1, length, d)
    sums = numbers.poisoned((heads, length), "float32")
    arguments = [*arrays, sums, 1 / math.sqrt(d), *tiles, d, causal]
    want = lambda: attended(numbers, *arrays[:3], causal=causal)  # noqa: E731
    grid = (math.ceil(length / tiles[0]), heads, 1)
    return Launch(flash2, grid, arguments, 3, want, operations=work_of(1, heads, length, d, causal))


PAPER = [{name: value for name, value in size.items() if name != "group"} for size in (SMALL, FULL)]
program(PAPER[0], PAPER[1], "FlashAttention-2")(paper)
program(PAPER[0] | {"causal": True}, PAPER[1] | {"causal": True}, "FlashAttention-2, causal")(paper)


# --- Biases by position, scores by a sigmoid, two passes ------------------------------------------------------------


@ct.kernel
def alibi(Q, K, V, SLOPES, O, scale: float, TM: Int, TN: Int, D: Int):  # noqa: E741
    i, head = ct.bid(0), ct.bid(1)
    q = ct.load(Q, (0, head, i, 0), (1, 1, TM, D)).reshape((TM, D))
    slope = ct.load(SLOPES, (head,), (1,)).item() * LOG2E
    qs = (q.astype(ct.float32) * (scale * LOG2E)).astype(q.dtype)
    rows = i * TM + ct.arange(TM, dtype=ct.int32)
    m, total = ct.full((TM, 1), -math.inf, ct.float32), ct.zeros((TM, 1), ct.float32)
    acc = ct.zeros((TM, D), ct.float32)
    for j in range(ct.cdiv(K.shape[2], TN)):
        k = ct.load(K, (0, head, j, 0), (1, 1, TN, D)).reshape((TN, D))
        columns = j * TN + ct.arange(TN, dtype=ct.int32)
        distance = abs(rows[:, None] - columns[None, :])
        s = ct.mma(qs, k.T, ct.zeros((TM, TN), ct.float32)) - slope * distance.astype(ct.float32)
        top = ct.maximum(m, ct.max(s, 1, keepdims=True))
        p, back = ct.exp2(s - top), ct.exp2(m - top)
        total = total * back + ct.sum(p, 1, keepdims=True)
        v = ct.load(V, (0, head, j, 0), (1, 1, TN, D)).reshape((TN, D))
        acc = ct.mma(p.astype(v.dtype), v, acc * back)
        m = top
    ct.store(O, (0, head, i, 0), (acc / total).astype(O.dtype).reshape((1, 1, TM, D)))


PLAIN = [{name: value for name, value in size.items() if name != "causal"} for size in PAPER]


@program(*PLAIN, "ALiBi")
def biased(numbers: Any, length: int, heads: int, d: int, tiles: tuple[int, int]) -> Launch:
    q, k, v, o = tensors(numbers, 1, heads, 1, length, d)
    slopes = numbers.of_dtype(2.0 ** (-8 * (numbers.arange(heads) + 1) / heads), "float32")
    distance = abs(numbers.arange(length)[:, None] - numbers.arange(length)[None, :])
    want = lambda: attended(numbers, q, k, v, bias=[-distance * float(s) for s in slopes])  # noqa: E731
    arguments = [q, k, v, slopes, o, 1 / math.sqrt(d), *tiles, d]
    grid = (math.ceil(length / tiles[0]), heads)
    return Launch(alibi, grid, arguments, 4, want, operations=work_of(1, heads, length, d, False))


@ct.kernel
def sigmoid_attention(Q, K, V, O, scale: float, bias: float, TM: Int, TN: Int, D: Int):  # noqa: E741
    i, head = ct.bid(0), ct.bid(1)
    q = ct.load(Q, (0, head, i, 0), (1, 1, TM, D)).reshape((TM, D))
    acc = ct.zeros((TM, D), ct.float32)
    for j in range(ct.num_tiles(K, axis=2, shape=(1, 1, TN, D))):
        k = ct.load(K, (0, head, j, 0), (1, 1, TN, D)).reshape((TN, D))
        s = ct.mma(q, k.T, ct.zeros((TM, TN), ct.float32)) * scale + bias
        p = 1.0 / (1.0 + ct.exp(-s))
        v = ct.load(V, (0, head, j, 0), (1, 1, TN, D)).reshape((TN, D))
        acc = ct.mma(p.astype(v.dtype), v, acc)
    ct.store(O, (0, head, i, 0), acc.astype(O.dtype).reshape((1, 1, TM, D)))


@program(*PLAIN, "sigmoid attention")
def by_sigmoid(numbers: Any, length: int, heads: int, d: int, tiles: tuple[int, int]) -> Launch:
    q, k, v, o = tensors(numbers, 1, heads, 1, length, d)
    scale, bias = 1 / math.sqrt(d), -math.log(length)

    def want() -> Any:
        out = numbers.wide(q) * 0
        for h in range(heads):
            s = numbers.wide(q[0, h]) @ numbers.wide(k[0, h]).T * scale + bias
            out[0, h] = 1 / (1 + numbers.lib.exp(-s)) @ numbers.wide(v[0, h])
        return out

    grid = (math.ceil(length / tiles[0]), heads)
    work = work_of(1, heads, length, d, False)
    return Launch(sigmoid_attention, grid, [q, k, v, o, scale, bias, *tiles, d], 3, want, operations=work)


@ct.kernel
def two_pass(Q, K, V, O, scale: float, TM: Int, TN: Int, D: Int):  # noqa: E741
    i, head = ct.bid(0), ct.bid(1)
    q = ct.load(Q, (0, head, i, 0), (1, 1, TM, D)).reshape((TM, D))
    tiles = ct.num_tiles(K, axis=2, shape=(1, 1, TN, D))
    m, total = ct.full((TM, 1), -math.inf, ct.float32), ct.zeros((TM, 1), ct.float32)
    for j in range(tiles):
        k = ct.load(K, (0, head, j, 0), (1, 1, TN, D)).reshape((TN, D))
        s = ct.mma(q, k.T, ct.zeros((TM, TN), ct.float32)) * scale
        top = ct.maximum(m, ct.max(s, 1, keepdims=True))
        total = total * ct.exp(m - top) + ct.sum(ct.exp(s - top), 1, keepdims=True)
        m = top
    acc = ct.zeros((TM, D), ct.float32)
    for j in range(tiles):
        k = ct.load(K, (0, head, j, 0), (1, 1, TN, D)).reshape((TN, D))
        s = ct.mma(q, k.T, ct.zeros((TM, TN), ct.float32)) * scale
        v = ct.load(V, (0, head, j, 0), (1, 1, TN, D)).reshape((TN, D))
        acc = ct.mma((ct.exp(s - m) / total).astype(v.dtype), v, acc)
    ct.store(O, (0, head, i, 0), acc.astype(O.dtype).reshape((1, 1, TM, D)))


@program(*PLAIN, "attention in two passes")
def passes(numbers: Any, length: int, heads: int, d: int, tiles: tuple[int, int]) -> Launch:
    q, k, v, o = tensors(numbers, 1, heads, 1, length, d)
    want = lambda: attended(numbers, q, k, v)  # noqa: E731
    grid = (math.ceil(length / tiles[0]), heads)
    work = work_of(1, heads, length, d, False) * 1.5
    return Launch(two_pass, grid, [q, k, v, o, 1 / math.sqrt(d), *tiles, d], 3, want, operations=work)


# --- A window with sinks; decoding with latent keys -----------------------------------------------------------------


@ct.kernel
def window(Q, K, V, SINKS, O, scale: float, WINDOW: Int, TM: Int, TN: Int, D: Int):  # noqa: E741
    i, head = ct.bid(0), ct.bid(1)
    q = ct.load(Q, (0, head, i, 0), (1, 1, TM, D)).reshape((TM, D))
    sink = ct.load(SINKS, (head,), (1,)).reshape(()) * LOG2E
    m = ct.zeros((TM, 1), ct.float32) + sink
    total = ct.full((TM, 1), 1.0, ct.float32)
    acc = ct.zeros((TM, D), ct.float32)
    rows = i * TM + ct.arange(TM, dtype=ct.int32)[:, None]
    low = max(i * TM - WINDOW + 1, 0) // TN
    for j in range(low, ct.cdiv(min((i + 1) * TM, K.shape[2]), TN)):
        k = ct.load(K, (0, head, j, 0), (1, 1, TN, D)).reshape((TN, D))
        columns = j * TN + ct.arange(TN, dtype=ct.int32)[None, :]
        s = ct.mma(q, k.T, ct.zeros((TM, TN), ct.float32)) * (scale * LOG2E)
        s = ct.where((columns <= rows) & (columns > rows - WINDOW), s, -math.inf)
        top = ct.maximum(m, ct.max(s, 1, keepdims=True))
        p, back = ct.exp2(s - top), ct.exp2(m - top)
        total = total * back + ct.sum(p, 1, keepdims=True)
        v = ct.load(V, (0, head, j, 0), (1, 1, TN, D)).reshape((TN, D))
        acc = ct.mma(p.astype(v.dtype), v, acc * back)
        m = top
    ct.store(O, (0, head, i, 0), (acc / total).astype(O.dtype).reshape((1, 1, TM, D)))


@program(PLAIN[0] | {"reach": 40}, PLAIN[1] | {"d": 64, "heads": 64, "reach": 1024}, "window with sinks")
def sinks(numbers: Any, length: int, heads: int, d: int, tiles: tuple[int, int], reach: int) -> Launch:
    q, k, v, o = tensors(numbers, 1, heads, 1, length, d)
    sink = numbers.of_dtype(numbers.normal((heads,)), "float32")

    def want() -> Any:
        lib, out = numbers.lib, numbers.wide(q) * 0
        away = numbers.arange(length)[:, None] - numbers.arange(length)[None, :]
        for h in range(heads):
            s = numbers.wide(q[0, h]) @ numbers.wide(k[0, h]).T / math.sqrt(d)
            s = lib.where((away >= 0) & (away < reach), s, -1e300)
            top = lib.amax(s, axis=-1, keepdims=True)
            p = lib.exp(s - top)
            total = p.sum(axis=-1)[:, None] + lib.exp(numbers.wide(sink[h]) - top)
            out[0, h] = p @ numbers.wide(v[0, h]) / total
        return out

    arguments = [q, k, v, sink, o, 1 / math.sqrt(d), reach, *tiles, d]
    grid = (math.ceil(length / tiles[0]), heads)
    return Launch(window, grid, arguments, 4, want, operations=4.0 * heads * length * reach * d)


@ct.kernel
def latent_decode(Q, KV, O, scale: float, TH: Int, TN: Int, LATENT: Int, ROTARY: Int):  # noqa: E741
    batch, block = ct.bid(0), ct.bid(1)
    q = ct.load(Q, (batch, block, 0), (1, TH, LATENT)).reshape((TH, LATENT))
    qr = ct.load(Q, (batch, block, LATENT // ROTARY), (1, TH, ROTARY)).reshape((TH, ROTARY))
    m, total = ct.full((TH, 1), -math.inf, ct.float32), ct.zeros((TH, 1), ct.float32)
    acc = ct.zeros((TH, LATENT), ct.float32)
    for j in range(ct.cdiv(KV.shape[1], TN)):
        c = ct.load(KV, (batch, j, 0), (1, TN, LATENT)).reshape((TN, LATENT))
        r = ct.load(KV, (batch, j, LATENT // ROTARY), (1, TN, ROTARY)).reshape((TN, ROTARY))
        s = ct.mma(q, c.T, ct.zeros((TH, TN), ct.float32))
        s = ct.mma(qr, r.T, s) * (scale * LOG2E)
        top = ct.maximum(m, ct.max(s, 1, keepdims=True))
        p, back = ct.exp2(s - top), ct.exp2(m - top)
        total = total * back + ct.sum(p, 1, keepdims=True)
        acc = ct.mma(p.astype(c.dtype), c, acc * back)
        m = top
    ct.store(O, (batch, block, 0), (acc / total).astype(O.dtype).reshape((1, TH, LATENT)))


@program(
    {"batch": 2, "heads": 16, "length": 64, "tiles": (16, 32), "parts": (64, 32)},
    {"batch": 132, "heads": 128, "length": 4096, "tiles": (64, 64), "parts": (512, 64)},
    "MLA decode",
)
def mla(numbers: Any, batch: int, heads: int, length: int, tiles: tuple[int, int], parts: tuple[int, int]) -> Launch:
    latent, d = parts[0], sum(parts)
    q = numbers.of_dtype(numbers.normal((batch, heads, d)), "bfloat16")
    kv = numbers.of_dtype(numbers.normal((batch, length, d)), "bfloat16")
    o = numbers.poisoned((batch, heads, latent), "bfloat16")

    def want() -> Any:
        lib, out = numbers.lib, numbers.wide(o) * 0
        for b in range(batch):
            rows = numbers.wide(kv[b])
            s = numbers.wide(q[b]) @ rows.T / math.sqrt(d)
            p = lib.exp(s - lib.amax(s, axis=-1, keepdims=True))
            out[b] = p @ rows[:, :latent] / p.sum(axis=-1)[:, None]
        return out

    work = 2.0 * batch * heads * length * (d + latent)
    arguments = [q, kv, o, 1 / math.sqrt(d), *tiles, *parts]
    return Launch(latent_decode, (batch, math.ceil(heads / tiles[0])), arguments, 2, want, operations=work)
