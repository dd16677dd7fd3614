"""bench/ops.py: its kernels compile for the GPU that they are measured on."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tilewright import cli

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import ops_kernels as kernels

VECTOR, MATRIX = "f32[?]", "f32[?,?]"
CASES: dict[str, tuple[Any, list[str]]] = {
    **{op: (kernels.elementwise(f, 1), [f"X={VECTOR}", f"Z={VECTOR}"]) for op, f in kernels.UNARY.items()},
    **{
        op: (kernels.elementwise(f, 2), [f"X={VECTOR}", f"Y={VECTOR}", f"Z={VECTOR}"])
        for op, f in kernels.BINARY.items()
    },
    **{op: (kernels.rows(f, False), [f"X={MATRIX}", f"Z={VECTOR}"]) for op, f in kernels.REDUCTIONS.items()},
    **{op: (kernels.rows(f, True), [f"X={MATRIX}", f"Z={MATRIX}"]) for op, f in kernels.SCANS.items()},
    "transpose": (kernels.transpose, [f"X={MATRIX}", f"Z={MATRIX}"]),
    "outer": (kernels.outer, [f"X={VECTOR}", f"Y={VECTOR}", f"Z={MATRIX}"]),
    **{
        op: (getattr(kernels, op), [f"X={VECTOR}", "Places=i32[?]", f"Z={VECTOR}"])
        for op in ("gather", "scatter", "atomic_add")
    },
    "rand": (kernels.rand, [f"Z={VECTOR}"]),
}


@pytest.mark.parametrize("op", CASES)
def test_an_operation_compiles(op: str) -> None:
    kernel, arrays = CASES[op]
    tile = 64 if MATRIX in arrays[-1] and op in ("transpose", "outer") else 1024
    assert b".entry" in cli.lower(kernel, cli.specialization(kernel, [*arrays, f"T={tile}"]), "sm_90a", "ptx")


@pytest.mark.parametrize(("dtype", "result"), [("bf16", "bf16"), ("f32", "f32"), ("f8e4m3", "bf16"), ("i8", "i32")])
def test_a_product_runs_on_tensor_cores(dtype: str, result: str) -> None:
    arguments = [f"A={dtype}[?,?]", f"B={dtype}[?,?]", f"C={result}[?,?]", "TM=128", "TN=128", "TK=64"]
    assert b"wgmma" in cli.lower(kernels.mma, cli.specialization(kernels.mma, arguments), "sm_90a", "ptx")
