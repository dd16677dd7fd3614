"""Kernels of threads as PTX, which NVIDIA's assembler takes for every target."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import test_arrays
import test_complexes
import test_intrinsics
import test_numbers
import test_records
import test_vectors

from tilewright import compile as compiler
from tilewright import device, plans
from tilewright.capture import ArrayArgument, ConstantArgument, StructureArgument, capture
from tilewright.device import records
from tilewright.dtype import as_dtype

KERNELS = {
    "copy": (test_numbers.copy, [np.float64, np.float64]),
    "arithmetic": (test_numbers.arithmetic, [np.float16] * 3),
    "bits": (test_intrinsics.bits, [np.uint64, (np.int32, 2), np.uint64]),
    "roots": (test_intrinsics.roots, [np.float32] * 2),
    "fused": (test_intrinsics.fused, [np.float64] * 4),
    "views": (test_arrays.reinterpret, [np.float32, np.float32]),
    "rows": (test_arrays.rows, [(np.int32, 2), np.int32]),
    "vectors": (test_vectors.carried, [np.float32, np.float32]),
    "complex": (test_complexes.arithmetic, [np.complex64, np.complex64, np.complex64, np.float32]),
    "records": (test_records.advance, [test_records.Particle.dtype, np.float32]),
    "packed": (test_records.fields, [(test_records.PACKED, 2), (test_records.PACKED, 2)]),
}


def argument(kind: Any) -> Any:
    dtype, ndim = kind if isinstance(kind, tuple) else (kind, 1)
    passed = records.argument(np.zeros((1,) * ndim, dtype))
    if not isinstance(passed, records.RecordArray):
        return array(as_dtype(passed.dtype), ndim)
    parts = (array(as_dtype(np.uint8), ndim + 1), ConstantArgument(passed.form), ConstantArgument(passed.fit))
    return StructureArgument("record", type(passed), parts)


def array(dtype: Any, ndim: int) -> ArrayArgument:
    return ArrayArgument(dtype, ndim, 16, (1,) * ndim, ((0, 1),) * (ndim - 1) + ((1, 1),))


@pytest.mark.spec("D-014")
@pytest.mark.skipif(shutil.which("ptxas") is None, reason="needs ptxas")
@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100", "sm_120"])
def test_ptx_assembles(target: str, tmp_path: Path) -> None:
    for name, (kernel, kinds) in KERNELS.items():
        captured = capture(kernel.function, [argument(k) for k in kinds], target, rules=kernel.rules)
        plans.lower(captured.module, compiler.GPU_STAGES, captured.module.lower)
        ptx = captured.module.emit(compiler.EMIT_ASSEMBLY)
        assert b".visible .entry" in ptx
        (tmp_path / f"{name}.ptx").write_bytes(ptx)
        command = ["ptxas", f"-arch={target}", str(tmp_path / f"{name}.ptx"), "-o", str(tmp_path / f"{name}.cubin")]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, (name, done.stderr)


def test_sums_of_bits_are_one_instruction() -> None:
    """Also where what is made of the sum, and bits known to be clear, would have LLVM take its steps apart."""

    def kernel(x, out):  # type: ignore[no-untyped-def]
        i = device.tid(1)
        lanes = x[i]
        lower = device.popc(lanes & device.lanemask_lt())
        out[i] = lower << 8
        if lower == 0:
            out[i + 32] = device.popc(lanes) + x[i + 32]

    captured = capture(kernel, [array(as_dtype(np.int32), 1)] * 2, "sm_90a", rules=KERNELS["copy"][0].rules)
    plans.lower(captured.module, compiler.GPU_STAGES, captured.module.lower)
    ptx = captured.module.emit(compiler.EMIT_ASSEMBLY)
    assert b"popc.b32" in ptx and str(0x33333333).encode() not in ptx


@pytest.mark.parametrize("count, are_shared", [(4, True), (200, False)])
def test_addresses_of_long_kernels_are_left_to_the_assembler(count: int, are_shared: bool) -> None:
    """Of a short kernel, places that lie side by side are distances from one address."""
    steps = tuple(range(count))

    def kernel(x, out):  # type: ignore[no-untyped-def]
        i = device.tid(1)
        for k in steps:
            out[i + k] = x[i] + k

    captured = capture(kernel, [array(as_dtype(np.int32), 1)] * 2, "sm_90a", rules=KERNELS["copy"][0].rules)
    plans.lower(captured.module, compiler.GPU_STAGES, captured.module.lower)
    ptx = captured.module.emit(compiler.EMIT_ASSEMBLY).decode()
    assert ptx.count("st.global") == count and ("+4], " in ptx) == are_shared


@pytest.mark.parametrize("count, is_natural", [(4, True), (6, False)])
def test_long_chains_of_choices_are_not_followed(count: int, is_natural: bool) -> None:
    """Whether what they end with is natural takes three times as long for each choice more."""
    steps = tuple(range(count))

    def kernel(x, out):  # type: ignore[no-untyped-def]
        i = device.tid(1) & 63
        for k in steps:
            i = i + 1 if i < x[k] else i
        out[0] = i // 3

    captured = capture(kernel, [array(as_dtype(np.int32), 1)] * 2, "sm_90a", rules=KERNELS["copy"][0].rules)
    plans.lower(captured.module, compiler.GPU_STAGES, captured.module.lower)
    assert ("mul.hi.u32" in captured.module.emit(compiler.EMIT_ASSEMBLY).decode()) == is_natural
