"""Triton peers of bench/memory.py: what its tutorials write, with their own choice of warps."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def vector_add_kernel(a, b, c, n, T: tl.constexpr):
    at = tl.program_id(0) * T + tl.arange(0, T)
    inside = at < n
    tl.store(c + at, tl.load(a + at, mask=inside) + tl.load(b + at, mask=inside), mask=inside)


def vector_add(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
    vector_add_kernel[(triton.cdiv(a.numel(), 1024),)](a, b, c, a.numel(), T=1024)


@triton.jit
def softmax_kernel(x, y, columns, stride, T: tl.constexpr):
    at = tl.arange(0, T)
    row = tl.program_id(0).to(tl.int64) * stride
    v = tl.load(x + row + at, mask=at < columns, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + row + at, (e / tl.sum(e, axis=0)).to(y.dtype.element_ty), mask=at < columns)


def softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    rows, columns = x.shape
    warps = 4 if columns <= 2048 else 8 if columns <= 8192 else 16
    softmax_kernel[(rows,)](x, y, columns, x.stride(0), T=triton.next_power_of_2(columns), num_warps=warps)
