"""Triton peers of bench/ops.py: an operation by its name, in tiles of the same sizes; the rest is Triton's choice."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def elementwise_kernel(x, y, z, n, OP: tl.constexpr, T: tl.constexpr):
    at = tl.program_id(0) * T + tl.arange(0, T)
    inside = at < n
    a = tl.load(x + at, mask=inside)
    if OP == "copy" or OP == "cast":
        r = a
    elif OP == "neg":
        r = -a
    elif OP == "abs":
        r = tl.abs(a)
    elif OP == "floor":
        r = tl.floor(a)
    elif OP == "exp":
        r = tl.exp(a)
    elif OP == "exp2":
        r = tl.exp2(a)
    elif OP == "log":
        r = tl.log(a)
    elif OP == "sqrt":
        r = tl.sqrt_rn(a)
    elif OP == "rsqrt":
        r = tl.rsqrt(a)
    elif OP == "sin":
        r = tl.sin(a)
    elif OP == "cos":
        r = tl.cos(a)
    elif OP == "tanh":
        r = libdevice.tanh(a)
    elif OP == "erf":
        r = tl.erf(a)
    elif OP == "sigmoid":
        r = tl.sigmoid(a)
    elif OP == "log1p":
        r = libdevice.log1p(a)
    elif OP == "expm1":
        r = libdevice.expm1(a)
    else:
        b = tl.load(y + at, mask=inside)
        if OP == "add":
            r = a + b
        elif OP == "sub":
            r = a - b
        elif OP == "mul":
            r = a * b
        elif OP == "truediv":
            r = tl.div_rn(a, b)
        elif OP == "maximum":
            r = tl.maximum(a, b)
        elif OP == "pow":
            r = libdevice.pow(a, b)
        elif OP == "atan2":
            r = libdevice.atan2(a, b)
        else:
            tl.static_assert(OP == "where")
            r = tl.where(a > b, a, b * 0.5)
    tl.store(z + at, r, mask=inside)


@triton.jit
def product(a, b):
    return a * b


@triton.jit
def row_kernel(x, z, OP: tl.constexpr, T: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, T)
    a = tl.load(x + row * T + at)
    if OP == "sum":
        tl.store(z + row, tl.sum(a, axis=0))
    elif OP == "max":
        tl.store(z + row, tl.max(a, axis=0))
    elif OP == "prod":
        tl.store(z + row, tl.reduce(a, 0, product))
    elif OP == "argmax":
        tl.store(z + row, tl.argmax(a, axis=0))
    elif OP == "cumsum":
        tl.store(z + row * T + at, tl.cumsum(a, axis=0))
    elif OP == "cumprod":
        tl.store(z + row * T + at, tl.cumprod(a, axis=0))
    elif OP == "sort":
        tl.store(z + row * T + at, tl.sort(a))
    else:
        tl.static_assert(OP == "flip")
        tl.store(z + row * T + at, tl.flip(a, 0))


@triton.jit
def transpose_kernel(x, z, n, T: tl.constexpr):
    rows, columns = tl.program_id(0) * T + tl.arange(0, T), tl.program_id(1) * T + tl.arange(0, T)
    a = tl.load(x + rows[:, None] * n + columns[None, :], mask=(rows[:, None] < n) & (columns[None, :] < n))
    tl.store(z + columns[:, None] * n + rows[None, :], tl.trans(a), mask=(columns[:, None] < n) & (rows[None, :] < n))


@triton.jit
def outer_kernel(x, y, z, n, T: tl.constexpr):
    rows, columns = tl.program_id(0) * T + tl.arange(0, T), tl.program_id(1) * T + tl.arange(0, T)
    r = tl.load(x + rows, mask=rows < n)[:, None] + tl.load(y + columns, mask=columns < n)[None, :]
    tl.store(z + rows[:, None] * n + columns[None, :], r, mask=(rows[:, None] < n) & (columns[None, :] < n))


@triton.jit
def indexed_kernel(x, places, z, n, OP: tl.constexpr, T: tl.constexpr):
    at = tl.program_id(0) * T + tl.arange(0, T)
    inside = at < n
    place = tl.load(places + at, mask=inside)
    if OP == "gather":
        tl.store(z + at, tl.load(x + place, mask=inside), mask=inside)
    elif OP == "scatter":
        tl.store(z + place, tl.load(x + at, mask=inside), mask=inside)
    else:
        tl.static_assert(OP == "atomic_add")
        tl.atomic_add(z + place, tl.load(x + at, mask=inside), mask=inside, sem="relaxed")


@triton.jit
def rand_kernel(z, n, T: tl.constexpr):
    at = tl.program_id(0) * T + tl.arange(0, T)
    tl.store(z + at, tl.rand(7, at), mask=at < n)


@triton.jit
def mma_kernel(
    a, b, c, m, n, k, TM: tl.constexpr, TN: tl.constexpr, TK: tl.constexpr, SUM: tl.constexpr, GROUP: tl.constexpr
):
    """As in its tutorial; the right operand's columns lie together."""
    number = tl.program_id(0)
    down, across = tl.cdiv(m, TM), tl.cdiv(n, TN)
    first = number // (GROUP * across) * GROUP
    height = min(down - first, GROUP)
    rows = ((first + number % (GROUP * across) % height) * TM + tl.arange(0, TM)) % m
    columns = (number % (GROUP * across) // height * TN + tl.arange(0, TN)) % n
    depth = tl.arange(0, TK)
    left, right = a + rows[:, None] * k + depth[None, :], b + columns[None, :] * k + depth[:, None]
    acc = tl.zeros((TM, TN), dtype=SUM)
    for step in range(tl.cdiv(k, TK)):
        inside = depth < k - step * TK
        x = tl.load(left, mask=inside[None, :], other=0.0)
        y = tl.load(right, mask=inside[:, None], other=0.0)
        acc = tl.dot(x, y, acc, out_dtype=SUM)
        left += TK
        right += TK
    tl.store(c + rows[:, None] * n + columns[None, :], acc)


def elementwise(op: str, z: torch.Tensor, tile: int, x: torch.Tensor, y: torch.Tensor | None = None) -> None:
    elementwise_kernel[(triton.cdiv(z.numel(), tile),)](x, x if y is None else y, z, z.numel(), OP=op, T=tile)


def rows(op: str, x: torch.Tensor, z: torch.Tensor) -> None:
    row_kernel[(x.shape[0],)](x, z, OP=op, T=x.shape[1])


def transpose(x: torch.Tensor, z: torch.Tensor, tile: int) -> None:
    n = x.shape[0]
    transpose_kernel[(triton.cdiv(n, tile), triton.cdiv(n, tile))](x, z, n, T=tile)


def outer(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor, tile: int) -> None:
    n = z.shape[0]
    outer_kernel[(triton.cdiv(n, tile), triton.cdiv(n, tile))](x, y, z, n, T=tile)


def indexed(op: str, x: torch.Tensor, places: torch.Tensor, z: torch.Tensor, tile: int) -> None:
    n = places.numel()
    indexed_kernel[(triton.cdiv(n, tile),)](x, places, z, n, OP=op, T=tile)


def rand(z: torch.Tensor, tile: int) -> None:
    rand_kernel[(triton.cdiv(z.numel(), tile),)](z, z.numel(), T=tile)


def mma(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, tiles: tuple[int, int, int]) -> None:
    (m, k), n = a.shape, c.shape[1]
    tm, tn, tk = tiles
    total = tl.int32 if a.dtype == torch.int8 else tl.float32
    blocks = triton.cdiv(m, tm) * triton.cdiv(n, tn)
    warps = 8 if tm * tn >= 1 << 15 else 4
    mma_kernel[(blocks,)](a, b, c, m, n, k, TM=tm, TN=tn, TK=tk, SUM=total, GROUP=8, num_warps=warps, num_stages=3)
