"""What moves memory: norms, softmax, pairs, neighbours, quantization, by rows that are odd, long, or gathered."""

from __future__ import annotations

import math
from typing import Any

from program import Launch, bytes_of, program

from tilewright import tile as ct

Int = ct.Constant[int]


def low(numbers: Any, *shape: int, dtype: str = "bfloat16") -> Any:
    return numbers.of_dtype(numbers.normal(shape), dtype)


def power(n: int) -> int:
    return 1 << (n - 1).bit_length()


@ct.kernel
def layer_norm(X, W, B, Y, n: int, eps: float, TN: Int):
    row = ct.bid(0)
    columns = ct.arange(TN, dtype=ct.int32)
    mask = columns < n
    x = ct.gather(X, (row, columns), mask=mask, padding_value=0).astype(ct.float32)
    mean = ct.sum(x) / n
    centered = ct.where(mask, x - mean, 0.0)
    scale = ct.rsqrt(ct.sum(centered * centered) / n + eps)
    w = ct.gather(W, columns, mask=mask).astype(ct.float32)
    b = ct.gather(B, columns, mask=mask).astype(ct.float32)
    ct.scatter(Y, (row, columns), (centered * scale * w + b).astype(Y.dtype), mask=mask)


@ct.kernel
def welford(X, W, B, Y, n: int, eps: float, TN: Int):
    """One walk for mean and variance by merging those of parts, and one that writes."""
    row = ct.bid(0)
    offsets = ct.arange(TN, dtype=ct.int32)
    count, mean, m2 = ct.zeros((TN,), ct.float32), ct.zeros((TN,), ct.float32), ct.zeros((TN,), ct.float32)
    for j in range(ct.cdiv(n, TN)):
        columns = j * TN + offsets
        mask = columns < n
        x = ct.gather(X, (row, columns), mask=mask, padding_value=0).astype(ct.float32)
        count = count + ct.where(mask, 1.0, 0.0)
        delta = ct.where(mask, x - mean, 0.0)
        mean = mean + delta / ct.maximum(count, 1.0)
        m2 = m2 + delta * ct.where(mask, x - mean, 0.0)
    average = ct.sum(mean * count) / n
    off = mean - average
    scale = ct.rsqrt((ct.sum(m2) + ct.sum(off * off * count)) / n + eps)
    for j in range(ct.cdiv(n, TN)):
        columns = j * TN + offsets
        mask = columns < n
        x = ct.gather(X, (row, columns), mask=mask, padding_value=0).astype(ct.float32)
        w = ct.gather(W, columns, mask=mask).astype(ct.float32)
        b = ct.gather(B, columns, mask=mask).astype(ct.float32)
        ct.scatter(Y, (row, columns), ((x - average) * scale * w + b).astype(Y.dtype), mask=mask)


def norms(numbers: Any, kernel: Any, rows: int, n: int, tile: int) -> Launch:
    x, w, b = low(numbers, rows, n), low(numbers, n), low(numbers, n)
    y = numbers.poisoned((rows, n), "bfloat16")

    def want() -> Any:
        wide = numbers.wide(x)
        centered = wide - wide.sum(axis=1)[:, None] / n
        variance = (centered * centered).sum(axis=1)[:, None] / n
        return centered / (variance + 1e-5) ** 0.5 * numbers.wide(w) + numbers.wide(b)

    return Launch(kernel, (rows,), [x, w, b, y, n, 1e-5, tile], 3, want, moved=bytes_of(x, y))


@program({"rows": 5, "n": 77}, {"rows": 16384, "n": 4095}, "layer norm of odd rows")
def layer_norms(numbers: Any, rows: int, n: int) -> Launch:
    return norms(numbers, layer_norm, rows, n, power(n))


@program({"rows": 5, "n": 77, "tile": 32}, {"rows": 16384, "n": 4096, "tile": 1024}, "layer norm by Welford")
def welford_norms(numbers: Any, rows: int, n: int, tile: int) -> Launch:
    return norms(numbers, welford, rows, n, tile)


@ct.kernel
def group_norm(X, W, B, Y, channels: Int, pixels: int, eps: float, TN: Int):
    """A block has a group: some channels, all pixels of each."""
    image, group = ct.bid(0), ct.bid(1)
    offsets = ct.arange(TN, dtype=ct.int32)
    total, squares = ct.zeros((TN,), ct.float32), ct.zeros((TN,), ct.float32)
    for c in range(channels):
        for j in range(ct.cdiv(pixels, TN)):
            columns = j * TN + offsets
            x = ct.gather(X, (image, group * channels + c, columns), mask=columns < pixels, padding_value=0)
            x = x.astype(ct.float32)
            total, squares = total + x, squares + x * x
    n = channels * pixels
    mean = ct.sum(total) / n
    scale = ct.rsqrt(ct.sum(squares) / n - mean * mean + eps)
    for c in range(channels):
        channel = group * channels + c
        w = ct.load(W, (channel,), (1,)).item().astype(ct.float32) * scale
        b = ct.load(B, (channel,), (1,)).item().astype(ct.float32) - mean * w
        for j in range(ct.cdiv(pixels, TN)):
            columns = j * TN + offsets
            x = ct.gather(X, (image, channel, columns), mask=columns < pixels, padding_value=0).astype(ct.float32)
            ct.scatter(Y, (image, channel, columns), (x * w + b).astype(Y.dtype), mask=columns < pixels)


@program(
    {"images": 2, "groups": 2, "channels": 2, "pixels": 50, "tile": 32},
    {"images": 32, "groups": 32, "channels": 16, "pixels": 4096, "tile": 1024},
    "group norm",
)
def group_norms(numbers: Any, images: int, groups: int, channels: int, pixels: int, tile: int) -> Launch:
    x, w, b = (
        low(numbers, images, groups * channels, pixels),
        low(numbers, groups * channels),
        low(numbers, groups * channels),
    )
    y = numbers.poisoned(tuple(x.shape), "bfloat16")

    def want() -> Any:
        wide = numbers.wide(x).reshape(images, groups, -1)
        mean = wide.sum(axis=2)[:, :, None] / wide.shape[2]
        variance = ((wide - mean) ** 2).sum(axis=2)[:, :, None] / wide.shape[2]
        normal = ((wide - mean) / (variance + 1e-5) ** 0.5).reshape(images, -1, pixels)
        return normal * numbers.wide(w)[:, None] + numbers.wide(b)[:, None]

    arguments = [x, w, b, y, channels, pixels, 1e-5, tile]
    return Launch(group_norm, (images, groups), arguments, 3, want, moved=bytes_of(x, y))


@ct.kernel
def chunked_softmax(X, Y, n: int, TN: Int):
    """Three walks over a row that is read in chunks: maximum, sum, result."""
    row = ct.bid(0)
    offsets = ct.arange(TN, dtype=ct.int32)
    top = ct.full((TN,), -math.inf, ct.float32)
    for j in range(ct.cdiv(n, TN)):
        x = ct.gather(X, (row, j * TN + offsets), padding_value=-math.inf)
        top = ct.maximum(top, x.astype(ct.float32))
    most = ct.max(top)
    total = ct.zeros((TN,), ct.float32)
    for j in range(ct.cdiv(n, TN)):
        x = ct.gather(X, (row, j * TN + offsets), padding_value=-math.inf)
        total += ct.exp(x.astype(ct.float32) - most)
    whole = ct.sum(total)
    for j in range(ct.cdiv(n, TN)):
        x = ct.gather(X, (row, j * TN + offsets), padding_value=-math.inf)
        ct.scatter(Y, (row, j * TN + offsets), (ct.exp(x.astype(ct.float32) - most) / whole).astype(Y.dtype))


@ct.kernel
def gathered_softmax(X, Y, n: int, TN: Int):
    row = ct.bid(0)
    columns = ct.arange(TN, dtype=ct.int32)
    x = ct.gather(X, (row, columns), mask=columns < n, padding_value=-math.inf).astype(ct.float32)
    e = ct.exp(x - ct.max(x))
    ct.scatter(Y, (row, columns), (e / ct.sum(e)).astype(Y.dtype), mask=columns < n)


def softmaxes(numbers: Any, kernel: Any, rows: int, n: int, tile: int) -> Launch:
    x, y = low(numbers, rows, n), numbers.poisoned((rows, n), "bfloat16")

    def want() -> Any:
        e = numbers.lib.exp(numbers.wide(x))
        return e / e.sum(axis=1)[:, None]

    return Launch(kernel, (rows,), [x, y, n, tile], 1, want, moved=bytes_of(x, y))


@program({"rows": 5, "n": 77, "tile": 32}, {"rows": 8192, "n": 8192, "tile": 2048}, "softmax in chunks")
def chunks(numbers: Any, rows: int, n: int, tile: int) -> Launch:
    return softmaxes(numbers, chunked_softmax, rows, n, tile)


@program({"rows": 5, "n": 77}, {"rows": 16384, "n": 4001}, "softmax of odd rows, by gathers")
def odd_softmax(numbers: Any, rows: int, n: int) -> Launch:
    return softmaxes(numbers, gathered_softmax, rows, n, power(n))


@ct.kernel
def rms_norm(X, W, Y, n: int, eps: float, TN: Int):
    row = ct.bid(0)
    columns = ct.arange(TN, dtype=ct.int32)
    x = ct.gather(X, (row, columns), padding_value=0, check_bounds=True).astype(ct.float32)
    scale = ct.rsqrt(ct.sum(x * x) / n + eps)
    w = ct.gather(W, columns, check_bounds=True).astype(ct.float32)
    ct.scatter(Y, (row, columns), (x * scale * w).astype(Y.dtype), check_bounds=True)


@program({"rows": 5, "n": 77}, {"rows": 16384, "n": 4096}, "RMS norm by gathers")
def rms_norms(numbers: Any, rows: int, n: int) -> Launch:
    x, w, y = low(numbers, rows, n), low(numbers, n), numbers.poisoned((rows, n), "bfloat16")

    def want() -> Any:
        wide = numbers.wide(x)
        return wide / ((wide * wide).sum(axis=1)[:, None] / n + 1e-5) ** 0.5 * numbers.wide(w)

    return Launch(rms_norm, (rows,), [x, w, y, n, 1e-5, power(n)], 2, want, moved=bytes_of(x, y))


@ct.kernel
def quantize(X, Q, S, n: int, GROUP: Int, TG: Int):
    """Whole numbers of 8 bits and a scale for each group of a row, over flat memory."""
    first = ct.bid(0) * TG
    groups = first + ct.arange(TG, dtype=ct.int32)
    at = groups[:, None] * GROUP + ct.arange(GROUP, dtype=ct.int32)[None, :]
    x = ct.gather(X, at, mask=at < n, padding_value=0).astype(ct.float32)
    scale = ct.maximum(ct.max(abs(x), axis=1), 1e-10) / 127.0
    q = ct.floor(x / scale[:, None] + 0.5)
    ct.scatter(Q, at, q.astype(ct.int8), mask=at < n)
    ct.scatter(S, groups, scale)


@program(
    {"count": 32 * 24, "group": 32, "tile": 8}, {"count": 16384 * 4096, "group": 128, "tile": 32}, "quantize by groups"
)
def quantized(numbers: Any, count: int, group: int, tile: int) -> Launch:
    x = low(numbers, count)
    q, s = numbers.poisoned((count,), "int8"), numbers.poisoned((count // group,), "float32")

    def want() -> Any:
        rows = numbers.wide(x).reshape(-1, group)
        scale = numbers.wide(numbers.of_dtype(numbers.lib.amax(abs(rows), axis=1, keepdims=True) / 127, "float32"))
        return numbers.lib.round(rows / scale).reshape(-1)

    blocks = math.ceil(count / group / tile)
    return Launch(quantize, (blocks,), [x, q, s, count, group, tile], 1, want, moved=bytes_of(x, q, s))


@ct.kernel
def geglu(X, Y, n: int, width: int, TN: Int):
    """Values and gates in one array, the one half of a row beside the other, over flat memory."""
    at = ct.bid(0) * TN + ct.arange(TN, dtype=ct.int32)
    row, column = at // width, at % width
    value = ct.gather(X, row * (2 * width) + column, mask=at < n, padding_value=0).astype(ct.float32)
    gate = ct.gather(X, row * (2 * width) + width + column, mask=at < n, padding_value=0).astype(ct.float32)
    y = value * 0.5 * gate * (1.0 + ct.tanh(0.7978845608 * (gate + 0.044715 * gate * gate * gate)))
    ct.scatter(Y, at, y.astype(Y.dtype), mask=at < n)


@program({"rows": 5, "width": 48, "tile": 64}, {"rows": 8192, "width": 8192, "tile": 1024}, "flat GEGLU")
def gated(numbers: Any, rows: int, width: int, tile: int) -> Launch:
    x, y = low(numbers, rows, 2 * width), numbers.poisoned((rows, width), "bfloat16")

    def want() -> Any:
        value, gate = numbers.wide(x[:, :width]), numbers.wide(x[:, width:])
        return value * 0.5 * gate * (1 + numbers.lib.tanh(0.7978845608 * (gate + 0.044715 * gate**3)))

    n = rows * width
    arguments = [x.reshape(-1), y.reshape(-1), n, width, tile]
    return Launch(geglu, (math.ceil(n / tile),), arguments, 1, lambda: want().reshape(-1), moved=bytes_of(x, y))


@ct.kernel
def rotary(X, COS, SIN, Y, heads: int, TH: Int, HALF: Int):
    """Neighbours are pairs: elements 2 i and 2 i + 1."""
    position, block = ct.bid(0), ct.bid(1)
    head = (block * TH + ct.arange(TH, dtype=ct.int32))[:, None]
    pair = ct.arange(HALF, dtype=ct.int32)[None, :]
    even = ct.gather(X, (position, head, 2 * pair), padding_value=0).astype(ct.float32)
    odd = ct.gather(X, (position, head, 2 * pair + 1), padding_value=0).astype(ct.float32)
    c, s = ct.gather(COS, (position, pair)), ct.gather(SIN, (position, pair))
    ct.scatter(Y, (position, head, 2 * pair), (even * c - odd * s).astype(Y.dtype))
    ct.scatter(Y, (position, head, 2 * pair + 1), (even * s + odd * c).astype(Y.dtype))


@program(
    {"length": 6, "heads": 3, "d": 32, "tile": 4}, {"length": 16384, "heads": 32, "d": 128, "tile": 8}, "rotary pairs"
)
def rotated(numbers: Any, length: int, heads: int, d: int, tile: int) -> Launch:
    x, y = low(numbers, length, heads, d), numbers.poisoned((length, heads, d), "bfloat16")
    angles = numbers.arange(length)[:, None] / 10000.0 ** (2 * numbers.arange(d // 2) / d)[None, :]
    cos, sin = (numbers.of_dtype(f(angles), "float32") for f in (numbers.lib.cos, numbers.lib.sin))

    def want() -> Any:
        out = numbers.wide(x) * 0
        even, odd = numbers.wide(x[:, :, ::2]), numbers.wide(x[:, :, 1::2])
        c, s = numbers.wide(cos)[:, None], numbers.wide(sin)[:, None]
        out[:, :, ::2], out[:, :, 1::2] = even * c - odd * s, even * s + odd * c
        return out

    grid = (length, math.ceil(heads / tile))
    return Launch(rotary, grid, [x, cos, sin, y, heads, tile, d // 2], 3, want, moved=bytes_of(x, y))


@ct.kernel
def causal_conv(X, W, Y, length: int, TAPS: Int, TN: Int):
    """Each channel with taps of its own; time goes along the row."""
    row, block = ct.bid(0), ct.bid(1)
    at = block * TN + ct.arange(TN, dtype=ct.int32)
    channel = row % W.shape[0]
    total = ct.zeros((TN,), ct.float32)
    for tap in ct.static_iter(range(TAPS)):
        back = at - (TAPS - 1 - tap)
        x = ct.gather(X, (row, back), mask=(back >= 0) & (back < length), padding_value=0).astype(ct.float32)
        total = total + x * ct.load(W, (channel, tap), (1, 1)).item().astype(ct.float32)
    y = total / (1.0 + ct.exp(-total))
    ct.scatter(Y, (row, at), y.astype(Y.dtype), mask=at < length)


@program(
    {"rows": 4, "channels": 2, "length": 50, "taps": 4, "tile": 32},
    {"rows": 16384, "channels": 4096, "length": 4096, "taps": 4, "tile": 1024},
    "causal convolution of rows",
)
def filtered(numbers: Any, rows: int, channels: int, length: int, taps: int, tile: int) -> Launch:
    x, w = low(numbers, rows, length), low(numbers, channels, taps)
    y = numbers.poisoned((rows, length), "bfloat16")

    def want() -> Any:
        total = numbers.wide(x) * 0
        weights = numbers.wide(w)[numbers.whole(numbers.arange(rows)) % channels]
        for tap in range(taps):
            back = taps - 1 - tap
            total[:, back:] += numbers.wide(x[:, : length - back]) * weights[:, tap, None]
        return total / (1 + numbers.lib.exp(-total))

    grid = (rows, math.ceil(length / tile))
    return Launch(causal_conv, grid, [x, w, y, length, taps, tile], 2, want, moved=bytes_of(x, y))


@ct.kernel
def first_most(X, Y, n: int, TN: Int):
    row = ct.bid(0)
    columns = ct.arange(TN, dtype=ct.int32)
    x = ct.gather(X, (row, columns), mask=columns < n, padding_value=-math.inf)
    ct.scatter(Y, row, ct.argmax(x, axis=0).astype(ct.int32))


@program({"rows": 5, "n": 77}, {"rows": 16384, "n": 8000}, "argmax of rows")
def most(numbers: Any, rows: int, n: int) -> Launch:
    x, y = low(numbers, rows, n, dtype="float32"), numbers.poisoned((rows,), "int32")
    want = lambda: numbers.wide(x).argmax(1)  # noqa: E731
    return Launch(first_most, (rows,), [x, y, n, power(n)], 1, want, moved=bytes_of(x))


@ct.kernel
def stencil(X, Y, h: int, w: int, TH: Int, TW: Int):
    """Five points: the middle, and its neighbours by their own indices."""
    r = (ct.bid(0) * TH + ct.arange(TH, dtype=ct.int32))[:, None]
    c = (ct.bid(1) * TW + ct.arange(TW, dtype=ct.int32))[None, :]
    middle = ct.gather(X, (r, c), padding_value=0)
    around = (
        ct.gather(X, (r - 1, c), padding_value=0)
        + ct.gather(X, (r + 1, c), padding_value=0)
        + ct.gather(X, (r, c - 1), padding_value=0)
        + ct.gather(X, (r, c + 1), padding_value=0)
    )
    ct.scatter(Y, (r, c), middle + 0.1 * (around - 4.0 * middle))


@program({"h": 20, "w": 40, "tiles": (8, 16)}, {"h": 16384, "w": 16384, "tiles": (32, 64)}, "stencil of five points")
def diffused(numbers: Any, h: int, w: int, tiles: tuple[int, int]) -> Launch:
    x, y = low(numbers, h, w, dtype="float32"), numbers.poisoned((h, w), "float32")

    def want() -> Any:
        wide = numbers.wide(x)
        around = wide * 0
        around[1:] += wide[:-1]
        around[:-1] += wide[1:]
        around[:, 1:] += wide[:, :-1]
        around[:, :-1] += wide[:, 1:]
        return wide + 0.1 * (around - 4 * wide)

    grid = (math.ceil(h / tiles[0]), math.ceil(w / tiles[1]))
    return Launch(stencil, grid, [x, y, h, w, *tiles], 1, want, moved=bytes_of(x, y))


@ct.kernel
def n_body(P, A, softening: float, TM: Int, TN: Int):
    """Forces on TM bodies by all others, TN at a time."""
    i = ct.bid(0) * TM + ct.arange(TM, dtype=ct.int32)
    x, y, z = (ct.gather(P, (axis, i))[:, None] for axis in (0, 1, 2))
    ax, ay, az = ct.zeros((TM,), ct.float32), ct.zeros((TM,), ct.float32), ct.zeros((TM,), ct.float32)
    for block in range(ct.cdiv(P.shape[1], TN)):
        j = block * TN + ct.arange(TN, dtype=ct.int32)
        dx, dy, dz = (ct.gather(P, (axis, j))[None, :] - own for axis, own in ((0, x), (1, y), (2, z)))
        near = ct.rsqrt(dx * dx + dy * dy + dz * dz + softening)
        pull = ct.gather(P, (3, j))[None, :] * near * near * near
        ax += ct.sum(dx * pull, axis=1)
        ay += ct.sum(dy * pull, axis=1)
        az += ct.sum(dz * pull, axis=1)
    for axis, a in ((0, ax), (1, ay), (2, az)):
        ct.scatter(A, (axis, i), a)


@program({"count": 64, "tiles": (32, 32)}, {"count": 65536, "tiles": (32, 128)}, "n-body")
def bodies(numbers: Any, count: int, tiles: tuple[int, int]) -> Launch:
    p, a = numbers.of_dtype(abs(numbers.normal((4, count))) + 0.1, "float32"), numbers.poisoned((3, count), "float32")

    def want() -> Any:
        wide, out = numbers.wide(p), numbers.wide(a) * 0
        for first in range(0, count, 1024):
            some = slice(first, first + 1024)
            d = wide[:3, None, :] - wide[:3, some, None]
            out[:, some] = (d * wide[3] / ((d * d).sum(axis=0) + 1e-3) ** 1.5).sum(axis=2)
        return out

    return Launch(n_body, (count // tiles[0],), [p, a, 1e-3, *tiles], 1, want, operations=20.0 * count * count)
