"""cuBLASLt's ways to compute a product, of which a peer called "best of" is the fastest.

torch takes the first that the library's heuristics name. Here each that they name is timed, once, at the first call.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import torch

# Of cublasLt.h and library_types.h.
TYPES = {torch.float16: 2, torch.bfloat16: 14}
F32, COMPUTE_F32, TRANSPOSED, WORKSPACE = 0, 68, (3, 4), 1
ASKED, BYTES, ROUNDS = 32, 64 << 20, 5


class Heuristic(ctypes.Structure):
    _fields_ = (
        ("algorithm", ctypes.c_uint64 * 8),
        ("bytes", ctypes.c_size_t),
        ("state", ctypes.c_int),
        ("waves", ctypes.c_float),
        ("reserved", ctypes.c_int * 4),
    )


def call(name: str, *arguments: Any) -> None:
    library = ctypes.CDLL(f"libcublasLt.so.{(torch.version.cuda or '').partition('.')[0]}")
    if status := getattr(library, name)(*arguments):
        raise RuntimeError(f"{name} fails with {status}")


def made(name: str, *arguments: Any) -> ctypes.c_void_p:
    handle = ctypes.c_void_p()
    call(name, ctypes.byref(handle), *arguments)
    return handle


def column_major(x: torch.Tensor) -> tuple[torch.Tensor, bool]:
    """The same memory as columns, and whether it must be transposed to be x transposed."""
    return (x.T, False) if x.stride(1) == 1 else (x, True)


class Product:
    """out = a @ b of matrices without gaps in rows or columns; out has rows. As columns it is b.T @ a.T."""

    def __init__(self, a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
        self.handle = made("cublasLtCreate")
        self.form = made("cublasLtMatmulDescCreate", COMPUTE_F32, F32)
        self.tensors, self.layouts = [], []
        for x, attribute in (b, TRANSPOSED[0]), (a, TRANSPOSED[1]), (out, None):
            columns, transposed = column_major(x)
            if attribute is not None:
                flag = ctypes.c_int(transposed)
                call("cublasLtMatmulDescSetAttribute", self.form, attribute, ctypes.byref(flag), ctypes.c_size_t(4))
            rows, width = map(ctypes.c_uint64, columns.shape)
            pitch = ctypes.c_int64(columns.stride(1))
            self.layouts.append(made("cublasLtMatrixLayoutCreate", TYPES[x.dtype], rows, width, pitch))
            self.tensors.append(x)
        self.workspace = torch.empty(BYTES, device="cuda", dtype=torch.uint8)

    def heuristics(self) -> list[Heuristic]:
        wish, size = made("cublasLtMatmulPreferenceCreate"), ctypes.c_size_t(BYTES)
        call("cublasLtMatmulPreferenceSetAttribute", wish, WORKSPACE, ctypes.byref(size), ctypes.c_size_t(8))
        found, count = (Heuristic * ASKED)(), ctypes.c_int()
        x, y, z = self.layouts
        call(
            "cublasLtMatmulAlgoGetHeuristic",
            self.handle,
            self.form,
            x,
            y,
            z,
            z,
            wish,
            ASKED,
            found,
            ctypes.byref(count),
        )
        return [one for one in found[: count.value] if one.state == 0]

    def run(self, by: Heuristic) -> None:
        x, y, z = (ctypes.c_void_p(tensor.data_ptr()) for tensor in self.tensors)
        one, zero = (ctypes.byref(ctypes.c_float(value)) for value in (1.0, 0.0))
        memory, bytes_ = ctypes.c_void_p(self.workspace.data_ptr()), ctypes.c_size_t(BYTES)
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        u, v, w = self.layouts
        algorithm = ctypes.byref(by.algorithm)
        call(
            "cublasLtMatmul",
            self.handle,
            self.form,
            one,
            x,
            u,
            y,
            v,
            zero,
            z,
            w,
            z,
            w,
            algorithm,
            memory,
            bytes_,
            stream,
        )

    def time(self, by: Heuristic) -> float:
        times = []
        for _ in range(ROUNDS):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            self.run(by)
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end))
        return min(times)


def best_of(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> Callable[[], torch.Tensor]:
    """What computes out = a @ b by the fastest that cuBLASLt names for it."""
    chosen: list[tuple[Product, Heuristic]] = []

    def work() -> torch.Tensor:
        if not chosen:
            product = Product(a, b, out)
            chosen.append((product, min(product.heuristics(), key=product.time)))
        product, by = chosen[0]
        product.run(by)
        return out

    return work
