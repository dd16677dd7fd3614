"""Products with what stands around them: scales, packed weights, norms, convolutions, clusters, states."""

from __future__ import annotations

import math
from typing import Any

from program import Launch, bytes_of, program

from tilewright import tile as ct

Int = ct.Constant[int]
ZERO = ct.PaddingMode.ZERO


def low(numbers: Any, *shape: int, scale: float = 1.0, dtype: str = "bfloat16") -> Any:
    return numbers.of_dtype(numbers.normal(shape) * scale, dtype)


def tiles_of(m: int, n: int, tiles: tuple[int, ...]) -> tuple[int, int]:
    return math.ceil(m / tiles[0]), math.ceil(n / tiles[1])


SMALL = {"m": 64, "n": 64, "k": 128, "tiles": (32, 32, 32)}
FULL = {"m": 4096, "n": 4096, "k": 4096, "tiles": (128, 128, 32)}


@ct.kernel
def tf32(A, B, C, TM: Int, TN: Int, TK: Int):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((TM, TN), ct.float32)
    for k in range(ct.cdiv(A.shape[1], TK)):
        a = ct.load(A, (i, k), (TM, TK), padding_mode=ZERO).astype(ct.tfloat32)
        b = ct.load(B, (k, j), (TK, TN), padding_mode=ZERO).astype(ct.tfloat32)
        acc = ct.mma(a, b, acc)
    ct.store(C, (i, j), acc)


@program(SMALL, FULL, "tf32, right operand by rows")
def tf32_product(numbers: Any, m: int, n: int, k: int, tiles: tuple[int, ...]) -> Launch:
    a, b = low(numbers, m, k, dtype="float32"), low(numbers, k, n, dtype="float32")
    c = numbers.poisoned((m, n), "float32")
    want = lambda: numbers.wide(a) @ numbers.wide(b)  # noqa: E731
    return Launch(tf32, tiles_of(m, n, tiles), [a, b, c, *tiles], 2, want, operations=2.0 * m * n * k)


@ct.kernel
def rms_linear(X, W, G, Y, eps: float, K: Int, TM: Int, TN: Int, TK: Int):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((TM, TN), ct.float32)
    squares = ct.zeros((TM, 1), ct.float32)
    for k in range(K // TK):
        x = ct.load(X, (i, k), (TM, TK))
        wide = x.astype(ct.float32)
        squares = squares + ct.sum(wide * wide, axis=1, keepdims=True)
        g = ct.load(G, (k,), (TK,))
        w = ct.load(W, (k, j), (TK, TN))
        acc = ct.mma(x * g[None, :], w, acc)
    ct.store(Y, (i, j), (acc * ct.rsqrt(squares / K + eps)).astype(Y.dtype))


@program(SMALL, FULL | {"tiles": (128, 256, 64)}, "RMS norm beside a product")
def rms_product(numbers: Any, m: int, n: int, k: int, tiles: tuple[int, ...]) -> Launch:
    x, w, g = low(numbers, m, k), low(numbers, k, n, scale=k**-0.5), low(numbers, k)
    y = numbers.poisoned((m, n), "bfloat16")

    def want() -> Any:
        wide = numbers.wide(x)
        scaled = numbers.wide(numbers.of_dtype(wide * numbers.wide(g), "bfloat16"))
        return scaled @ numbers.wide(w) / ((wide * wide).sum(axis=1)[:, None] / k + 1e-5) ** 0.5

    arguments = [x, w, g, y, 1e-5, k, *tiles]
    return Launch(rms_linear, tiles_of(m, n, tiles), arguments, 3, want, operations=2.0 * m * n * k)


@ct.kernel
def fp8_blocks(A, B, SA, SB, C, BLOCK: Int, TM: Int, TN: Int):
    i, j = ct.bid(0), ct.bid(1)
    rows, columns = i * TM + ct.arange(TM, dtype=ct.int32), j * TN + ct.arange(TN, dtype=ct.int32)
    steps = ct.arange(BLOCK, dtype=ct.int32)
    acc = ct.zeros((TM, TN), ct.float32)
    for k in range(ct.cdiv(A.shape[1], BLOCK)):
        a = ct.gather(A, (rows[:, None], (k * BLOCK + steps)[None, :]))
        b = ct.gather(B, (columns[None, :], (k * BLOCK + steps)[:, None]))
        part = ct.mma(a, b, ct.zeros((TM, TN), ct.float32))
        sa = ct.gather(SA, (rows, k))
        sb = ct.gather(SB, (columns // BLOCK, k))
        acc += part * sa[:, None] * sb[None, :]
    ct.scatter(C, (rows[:, None], columns[None, :]), acc.astype(C.dtype))


@program(
    {"m": 32, "n": 64, "k": 128, "block": 32, "tiles": (32, 32)},
    {"m": 4096, "n": 4096, "k": 4096, "block": 128, "tiles": (128, 128)},
    "fp8 in blocks, by gathers",
)
def fp8_product(numbers: Any, m: int, n: int, k: int, block: int, tiles: tuple[int, int]) -> Launch:
    a, b = (low(numbers, rows, k, dtype="float8_e4m3fn") for rows in (m, n))
    scales = [
        numbers.of_dtype(abs(numbers.normal(s)) + 0.5, "float32") for s in ((m, k // block), (n // block, k // block))
    ]
    c = numbers.poisoned((m, n), "bfloat16")

    def want() -> Any:
        total: Any = 0.0
        for s in range(k // block):
            part = slice(s * block, (s + 1) * block)
            columns = numbers.wide(scales[1][:, s])[numbers.whole(numbers.arange(n) // block)]
            product = numbers.wide(a[:, part]) @ numbers.wide(b[:, part]).T
            total = total + product * numbers.wide(scales[0][:, s])[:, None] * columns[None, :]
        return total

    arguments = [a, b, *scales, c, block, *tiles]
    return Launch(fp8_blocks, tiles_of(m, n, tiles), arguments, 4, want, operations=2.0 * m * n * k)


@ct.kernel
def weights8(X, W, S, Y, GROUP: Int, TM: Int, TN: Int, TK: Int):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((TM, TN), ct.float32)
    for k in range(ct.cdiv(X.shape[1], TK)):
        x = ct.load(X, (i, k), (TM, TK), padding_mode=ZERO)
        w = ct.load(W, (k, j), (TK, TN), padding_mode=ZERO)
        s = ct.load(S, (k * TK // GROUP, j), (1, TN))
        acc = ct.mma(x, (w.astype(ct.float32) * s.astype(ct.float32)).astype(x.dtype), acc)
    ct.store(Y, (i, j), acc.astype(Y.dtype))


SMALL8 = {"m": 32, "n": 64, "k": 128, "group": 64, "tiles": (32, 32, 32)}
FULL8 = {"m": 4096, "n": 4096, "k": 4096, "group": 128, "tiles": (128, 128, 64)}


def eight_bits(numbers: Any, m: int, n: int, k: int, group: int, tiles: tuple[int, ...]) -> Launch:
    x = low(numbers, m, k)
    w = numbers.of_dtype(numbers.integers(-128, 128, (k, n)), "int8")
    s = numbers.of_dtype((abs(numbers.normal((k // group, n))) + 0.5) / 128, "bfloat16")
    y = numbers.poisoned((m, n), "bfloat16")

    def want() -> Any:
        scales = numbers.wide(s)[numbers.whole(numbers.arange(k) // group)]
        weights = numbers.wide(numbers.of_dtype(numbers.wide(w) * scales, "bfloat16"))
        return numbers.wide(x) @ weights

    arguments = [x, w, s, y, group, *tiles]
    return Launch(weights8, tiles_of(m, n, tiles), arguments, 3, want, operations=2.0 * m * n * k)


program(SMALL8, FULL8, "weights of 8 bits")(eight_bits)
program(SMALL8, FULL8 | {"m": 16, "tiles": (16, 128, 128)}, "weights of 8 bits, 16 rows")(eight_bits)


@ct.kernel
def weights4(X, W, S, Z, Y, GROUP: Int, TM: Int, TN: Int, TK: Int):
    """Eight weights along k in a word of 32 bits."""
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((TM, TN), ct.float32)
    columns = j * TN + ct.arange(TN, dtype=ct.int32)
    steps = ct.arange(TK, dtype=ct.int32)
    for k in range(X.shape[1] // TK):
        x = ct.load(X, (i, k), (TM, TK))
        at = k * TK + steps
        words = ct.gather(W, ((at // 8)[:, None], columns[None, :]))
        w = (words >> ((at % 8) * 4)[:, None]) & 15
        group = k * TK // GROUP
        s = ct.gather(S, (group, columns))
        z = ct.gather(Z, (group, columns))
        w = (w.astype(x.dtype) - z[None, :]) * s[None, :]
        acc = ct.mma(x, w, acc)
    ct.store(Y, (i, j), acc.astype(Y.dtype))


def four_bits(numbers: Any, m: int, n: int, k: int, group: int, tiles: tuple[int, ...]) -> Launch:
    x = low(numbers, m, k)
    w = numbers.of_dtype(numbers.integers(-(2**31), 2**31, (k // 8, n)), "int32")
    s = numbers.of_dtype((abs(numbers.normal((k // group, n))) + 0.5) / 8, "bfloat16")
    z = numbers.of_dtype(numbers.integers(0, 16, (k // group, n)), "bfloat16")
    y = numbers.poisoned((m, n), "bfloat16")

    def want() -> Any:
        steps = numbers.whole(numbers.arange(k))
        bits = numbers.whole(numbers.wide(w))[steps // 8] // 16 ** (steps % 8)[:, None] % 16
        rows = steps // group
        shifted = numbers.wide(bits) - numbers.wide(z)[rows]
        return numbers.wide(x) @ numbers.wide(numbers.of_dtype(shifted * numbers.wide(s)[rows], "bfloat16"))

    arguments = [x, w, s, z, y, group, *tiles]
    return Launch(weights4, tiles_of(m, n, tiles), arguments, 4, want, operations=2.0 * m * n * k)


program(SMALL8, FULL8, "weights of 4 bits by groups")(four_bits)
program(SMALL8, FULL8 | {"m": 16, "tiles": (16, 128, 128)}, "weights of 4 bits by groups, 16 rows")(four_bits)


@ct.kernel
def im2col(X, W, Y, H: Int, WIDTH: Int, C: Int, R: Int, TM: Int, TN: Int, TC: Int):
    """A convolution without padding over flat memory: the taps of each pixel are computed."""
    i, j = ct.bid(0), ct.bid(1)
    pixels = i * TM + ct.arange(TM, dtype=ct.int32)
    outs_w, outs_h = WIDTH - R + 1, H - R + 1
    image, rest = pixels // (outs_h * outs_w), pixels % (outs_h * outs_w)
    y, x = rest // outs_w, rest % outs_w
    channels, columns = ct.arange(TC, dtype=ct.int32), j * TN + ct.arange(TN, dtype=ct.int32)
    acc = ct.zeros((TM, TN), ct.float32)
    for tap in range(R * R * (C // TC)):
        part = tap % (C // TC)
        dx, dy = tap // (C // TC) % R, tap // (C // TC) // R
        place = ((image * H + y + dy) * WIDTH + x + dx) * C
        a = ct.gather(X, place[:, None] + (part * TC + channels)[None, :])
        b = ct.gather(W, ((tap * TC + channels)[:, None], columns[None, :]))
        acc = ct.mma(a, b, acc)
    ct.scatter(Y, (pixels[:, None], columns[None, :]), acc.astype(Y.dtype))


@program(
    {"images": 1, "side": 10, "c": 32, "outs": 32, "taps": 3, "tiles": (32, 32, 32)},
    {"images": 32, "side": 58, "c": 256, "outs": 256, "taps": 3, "tiles": (128, 128, 64)},
    "convolution by computed taps",
)
def convolved(numbers: Any, images: int, side: int, c: int, outs: int, taps: int, tiles: tuple[int, ...]) -> Launch:
    x, w = low(numbers, images, side, side, c), low(numbers, taps * taps * c, outs, scale=c**-0.5)
    out = side - taps + 1
    y = numbers.poisoned((images * out * out, outs), "bfloat16")

    def want() -> Any:
        total: Any = 0.0
        for dy in range(taps):
            for dx in range(taps):
                first = (dy * taps + dx) * c
                part = numbers.wide(x[:, dy : dy + out, dx : dx + out]).reshape(-1, c)
                total = total + part @ numbers.wide(w[first : first + c])
        return total

    arguments = [x.reshape(-1), w, y, side, side, c, taps, *tiles]
    work = 2.0 * y.shape[0] * outs * c * taps * taps
    return Launch(im2col, tiles_of(*y.shape, tiles), arguments, 2, want, operations=work)


@ct.kernel
def nearest(X, CENTERS, NORMS, Y, TM: Int, TN: Int, D: Int):
    """k-means: the number of the nearest center, without the distances in memory."""
    i = ct.bid(0)
    x = ct.load(X, (i, 0), (TM, D))
    best = ct.full((TM,), math.inf, ct.float32)
    found = ct.zeros((TM,), ct.int32)
    for j in range(ct.cdiv(CENTERS.shape[0], TN)):
        centers = ct.load(CENTERS, (j, 0), (TN, D))
        norms = ct.load(NORMS, (j,), (TN,))
        distance = norms[None, :] - 2.0 * ct.mma(x, centers.T, ct.zeros((TM, TN), ct.float32))
        least = ct.min(distance, axis=1)
        at = ct.argmin(distance, axis=1).astype(ct.int32) + j * TN
        found = ct.where(least < best, at, found)
        best = ct.minimum(best, least)
    ct.store(Y, (i,), found)


@program(
    {"points": 64, "centers": 64, "d": 32, "tiles": (32, 32)},
    {"points": 1 << 20, "centers": 1024, "d": 128, "tiles": (128, 128)},
    "k-means",
)
def clusters(numbers: Any, points: int, centers: int, d: int, tiles: tuple[int, int]) -> Launch:
    """Of whole numbers, whose distances are exact, so that the nearest is."""
    x, c = (numbers.of_dtype(numbers.integers(-4, 5, (n, d)), "bfloat16") for n in (points, centers))
    norms = numbers.of_dtype((numbers.wide(c) ** 2).sum(axis=1), "float32")
    y = numbers.poisoned((points,), "int32")
    want = lambda: (numbers.wide(norms)[None, :] - 2 * numbers.wide(x) @ numbers.wide(c).T).argmin(1)  # noqa: E731
    work = 2.0 * points * centers * d
    return Launch(nearest, (points // tiles[0],), [x, c, norms, y, *tiles, d], 3, want, operations=work)


@ct.kernel
def state_chunks(X, DECAY, B, C, Y, TL: Int, N: Int, P: Int):
    """Mamba-2: within a chunk as attention with decay, between chunks by a state that the loop carries."""
    head = ct.bid(0)
    state = ct.zeros((N, P), ct.float32)
    rows = ct.arange(TL, dtype=ct.int32)
    for chunk in range(ct.cdiv(X.shape[1], TL)):
        x = ct.load(X, (head, chunk, 0), (1, TL, P)).reshape((TL, P))
        b = ct.load(B, (head, chunk, 0), (1, TL, N)).reshape((TL, N))
        c = ct.load(C, (head, chunk, 0), (1, TL, N)).reshape((TL, N))
        total = ct.cumsum(ct.load(DECAY, (head, chunk), (1, TL)).reshape((TL,)), axis=0)
        scores = ct.mma(c, b.T, ct.zeros((TL, TL), ct.float32))
        between = total[:, None] - total[None, :]
        scores = ct.where(rows[:, None] >= rows[None, :], scores * ct.exp(between), 0.0)
        y = ct.mma(scores.astype(x.dtype), x, ct.zeros((TL, P), ct.float32))
        before = ct.mma(c, state.astype(x.dtype), ct.zeros((TL, P), ct.float32))
        y = y + before * ct.exp(total)[:, None]
        ct.store(Y, (head, chunk, 0), y.astype(Y.dtype).reshape((1, TL, P)))
        last = ct.sum(ct.where(rows == TL - 1, total, 0.0))
        rest = ct.exp(last - total)
        state = ct.mma((b * rest[:, None].astype(b.dtype)).T, x, state * ct.exp(last))


@program(
    {"heads": 2, "length": 64, "chunk": 32, "n": 32, "p": 32},
    {"heads": 512, "length": 4096, "chunk": 128, "n": 128, "p": 64},
    "Mamba-2 chunks",
)
def states(numbers: Any, heads: int, length: int, chunk: int, n: int, p: int) -> Launch:
    x = low(numbers, heads, length, p)
    decay = numbers.of_dtype(-abs(numbers.normal((heads, length))) * 0.1, "float32")
    b, c = (low(numbers, heads, length, n, scale=n**-0.5) for _ in range(2))
    y = numbers.poisoned((heads, length, p), "bfloat16")

    def want() -> Any:
        out = numbers.wide(y) * 0
        state = numbers.wide(x[:, 0, None, :]) * numbers.wide(b[:, 0, :, None]) * 0
        for t in range(length):
            new = numbers.wide(b[:, t, :, None]) * numbers.wide(x[:, t, None, :])
            state = state * numbers.lib.exp(numbers.wide(decay[:, t]))[:, None, None] + new
            out[:, t] = (numbers.wide(c[:, t, :, None]) * state).sum(axis=1)
        return out

    work = 2.0 * heads * length * (chunk * (n + p) + 2 * n * p)
    arguments = [x, decay, b, c, y, chunk, n, p]
    return Launch(state_chunks, (heads,), arguments, 4, want, operations=work, moved=bytes_of(x, decay, b, c, y))
