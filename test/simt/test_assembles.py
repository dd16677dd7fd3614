"""What the tests of threads launch assembles for each generation of chips."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path
from typing import Any

import litmus
import numpy as np
import pytest

import simt_cases
from cuda import device
from tilewright import compile as compiler

HERE = Path(__file__).parent


def file_of(name: str) -> Any:
    """A file of this folder: others have files of the same name."""
    spec = importlib.util.spec_from_file_location(f"threads_{name}", HERE / f"test_{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


of_atomics, of_barriers, of_grids, of_warps = map(file_of, ("atomics", "barriers", "grid_barriers", "warps"))
CHIPS = ("sm_80", "sm_90a", "sm_100a", "sm_120a")


class AssembledError(Exception):
    """Instead of a launch."""


def atomics() -> None:
    for dtype in (np.uint32, np.int64, np.float32, np.float64):
        x = np.zeros(8, dtype)
        attempt(of_atomics.arithmetic, x, x, np.zeros((3, 6), dtype))
    for dtype in (np.uint8, np.float16, np.uint64):
        x = np.zeros(8, dtype)
        attempt(of_atomics.exchanges, x, x, x)
    attempt(of_atomics.of_16_bytes, np.zeros(4, np.complex128), np.zeros(4, np.complex128))
    attempt(of_atomics.waiting, np.zeros(2, np.int32), np.zeros(2, np.int32))


def threads() -> None:
    attempt(of_barriers.votes, np.zeros(8, np.int32), np.zeros((8, 3), np.int32))
    attempt(of_barriers.with_dynamic, np.zeros((32, 3), np.float32))
    attempt(of_barriers.with_constants, np.zeros(12, np.float32))
    attempt(of_barriers.with_local, np.zeros(64, np.float32), np.zeros((64, 3), np.float32))
    attempt(of_barriers.diverge, np.zeros(2, np.int32))
    attempt(of_grids.heat, np.zeros(8, np.int32), np.zeros(8, np.int32), 2)
    attempt(of_grids.some_threads, np.zeros(8))
    for dtype in (np.int8, np.float64):
        attempt(of_warps.shuffles, np.zeros(32, dtype), np.zeros((4, 32), dtype))
    attempt(of_warps.votes, np.zeros(32, np.int32), np.zeros((6, 32), np.int32))
    attempt(of_warps.matches, np.zeros(32, np.int64), np.zeros((5, 32), np.int32))


def orders() -> None:
    for variant in litmus.variants("MP"):
        with pytest.raises(AssembledError):
            litmus.run(litmus.zeros, variant, litmus.Setting(), 1, 1, 1)


def benchmarks() -> None:
    k = simt_cases.k
    keys, counts = np.zeros(8, np.uint32), np.zeros((256, 1), np.uint32)
    attempt(k.radix_count, keys, 0, counts)
    attempt(k.radix_scan, counts, keys)
    attempt(k.radix_scatter, keys, keys, 0, counts, keys)
    attempt(k.reduce_sum, np.zeros(8, np.float32), np.zeros(1, np.float32))
    attempt(k.nbody, np.zeros((8, 4), np.float32), np.zeros((8, 3), np.float32))
    attempt(k.transpose, np.zeros((8, 8), np.float32), np.zeros((8, 8), np.float32))


def attempt(kernel: Any, *args: Any) -> None:
    with pytest.raises(AssembledError):
        device.launch(device.kernel(kernel.underlying), *args, grid=1, block=32)


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="no ptxas on PATH")
@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("programs", [atomics, threads, orders, benchmarks])
def test_assembles(programs: Any, chip: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def assemble(kernel: Any, target: str, key: Any, made: Any = None) -> Any:
        captured = compiler.capture_kernel(kernel, chip, key)
        captured.module.lower("llvm")
        source = tmp_path / f"{kernel.name}.ptx"
        source.write_bytes(captured.module.emit(compiler.EMIT_ASSEMBLY))
        command = ["ptxas", f"-arch={chip}", str(source), "-o", str(tmp_path / "kernel.cubin")]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, (kernel.name, done.stderr)
        raise AssembledError

    monkeypatch.setattr(compiler, "compile_kernel", assemble)
    monkeypatch.setattr(litmus, "trials", device.kernel(litmus.trials.underlying))
    programs()
