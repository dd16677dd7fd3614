"""What cannot be compiled is refused by an exception with the user's words; nothing ends the process."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from tilewright import _core, compile, plans
from tilewright import tile as ct
from tilewright.errors import Place, TileCompilationError, TileError, TileValueError
from tilewright.times import Times

GPUS = ["sm_80", "sm_90a"]


def build(kernel: Any, args: tuple[Any, ...], target: str) -> str:
    """The PTX of a kernel, past the cache, also where a GPU's driver would assemble it."""
    _, key = kernel.specialization(args)
    module, times = kernel.capture(target, key), Times(kernel.name, target)
    return compile.build(module, target, kernel.name, times, lambda ptx, _: ptx).code.decode()


# --- Targets --------------------------------------------------------------------------------------------------------


@ct.kernel
def copy(X, Z, T: ct.Constant[int]):
    ct.store(Z, ct.bid(0), ct.load(X, ct.bid(0), T))


@pytest.mark.parametrize("target", ["sm90", "sm_90A", "hopper", "cuda", "h100", "foo", "", "sm_80a", "cpux"])
def test_an_unknown_target_is_refused_by_name(target: str) -> None:
    x = np.zeros(16, np.float32)
    with pytest.raises(TileValueError, match=f"unknown target '{target}'; there are cpu, cpu:NAME, sm_80, .*sm_90"):
        build(copy, (x, x, 16), target)


@pytest.mark.parametrize("target", ["sm_75", "sm_61", "sm_20"])
def test_an_old_gpu_is_refused_by_name(target: str) -> None:
    x = np.zeros(16, np.float32)
    with pytest.raises(TileValueError, match=f"GPUs before sm_80 are not supported, such as the target '{target}'"):
        build(copy, (x, x, 16), target)


@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
def test_a_function_that_is_no_kernel_is_refused_by_name(target: str) -> None:
    text = f'module attributes {{tile.target = "{target}"}} {{ func.func @helper() {{ return }} }}'
    with pytest.raises(TileError, match="is no kernel, and only kernels are compiled: give it .*tile.kernel"):
        _core.parse(text).lower("llvm")


@pytest.mark.parametrize("emit", ["tile", "layout", "ptx"])
def test_the_command_line_refuses_an_unknown_target(emit: str) -> None:
    command = [sys.executable, "-m", "tilewright", "compile", f"{__file__}:copy", "--target", "sm90", "--emit", emit]
    command += [part for fact in ("X=f32[?]", "Z=f32[?]", "T=16") for part in ("--arg", fact)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and "unknown target 'sm90'" in done.stderr and not done.stdout


# --- LLVM ---------------------------------------------------------------------------------------------------------


FENCE = """
module attributes {tile.target = "sm_80"} {
  llvm.func @k() attributes {nvvm.kernel} { nvvm.wgmma.fence.aligned  llvm.return }
}
"""


def test_a_fatal_error_of_llvm_is_an_exception() -> None:
    for _ in range(2):
        with pytest.raises(TileCompilationError, match="LLVM cannot make code of this: Cannot select"):
            _core.parse(FENCE).emit(compile.EMIT_ASSEMBLY)
    x = np.zeros(16, np.float32)
    with pytest.raises(TileCompilationError, match="LLVM cannot make code of this"):
        build(copy, (x, x, 16), "cpu:no_such_processor")
    assert "ld.global" in build(copy, (x, x, 16), "sm_80")


# --- Tiles -----------------------------------------------------------------------------------------------------------


@ct.kernel
def large_product(A, C, n):
    acc = ct.zeros((2048, 2048), ct.float32)
    for i in range(n):
        a = ct.load(A, (0, i), (2048, 2048))
        acc = ct.mma(a, a, acc)
    ct.store(C, (0, 0), acc)


@ct.kernel
def large_scan(X, T: ct.Constant[int]):
    ct.store(X, 0, ct.cumsum(ct.load(X, 0, T), 0))


@pytest.mark.parametrize("target", GPUS)
def test_tiles_larger_than_a_block_can_hold(target: str) -> None:
    a = np.zeros((64, 64), np.float16)
    found = "makes a tile of .*elements; on a GPU a tile has at most 1048576: use smaller tiles"
    with pytest.raises(TileError, match=found) as error:
        build(large_product, (a, a.astype(np.float32), 3), target)
    where = error.value.where
    assert isinstance(where, Place) and where.file == __file__
    with pytest.raises(TileError, match=found):
        build(large_scan, (np.zeros(8, np.float32), 1 << 21), target)


@ct.kernel
def large_cast(X, Z):
    x = ct.load(X, (0, 0), (1024, 1024)).astype(ct.float32)
    ct.store(Z, (0, 0), x.reshape((512, 2048)).T.reshape((1024, 1024)))  # no part of it is made of a part


def test_a_refusal_is_about_the_program() -> None:
    with pytest.raises(TileValueError) as error:
        build(large_cast, (np.zeros((64, 64), np.float16), np.zeros((64, 64), np.float32)), "sm_90a")
    found = r"(this|ct\.load): takes|this takes"
    assert re.search(found, error.value.message) and "(1024, 1024) float" in error.value.message
    assert "use smaller tiles" in error.value.message and "tw-opt" not in str(error.value)
    assert error.value.where is not None and error.value.where.file == __file__


@ct.kernel
def matmul(A, B, C, TM: ct.Constant[int], TN: ct.Constant[int], TK: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((TM, TN), dtype=C.dtype)
    for k in range(ct.num_tiles(A, axis=1, shape=(TM, TK))):
        a = ct.load(A, index=(i, k), shape=(TM, TK), padding_mode=ct.PaddingMode.ZERO)
        b = ct.load(B, index=(k, j), shape=(TK, TN), padding_mode=ct.PaddingMode.ZERO)
        acc = ct.mma(a, b, acc)
    ct.store(C, index=(i, j), tile=acc.astype(C.dtype))


# --- Other plans -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype, tiles", [("f4", (64, 64, 128)), ("f4", (128, 256, 64)), ("f4", (16, 256, 128))])
@pytest.mark.parametrize("target", GPUS)
def test_products_of_all_sizes_compile(dtype: str, tiles: tuple[int, int, int], target: str) -> None:
    a = np.zeros((512, 512), dtype)
    _, key = matmul.specialization((a, a, a, *tiles))
    module = matmul.capture(target, key)
    told = plans.lower(module, ["llvm"], module.lower)
    assert any("is planned again, with products in steps: " in message for _, _, message in told)
    assert len(module.emit(compile.EMIT_ASSEMBLY)) < 500_000  # the assembler takes seconds


@pytest.mark.parametrize("target", GPUS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_no_usual_tile_size_is_refused(dtype: str, target: str) -> None:
    a = np.zeros((512, 512), dtype)
    sides = (16, 32, 64, 128, 256)
    for tiles in itertools.product(sides, sides, (32, 64, 128)):
        module = matmul.capture(target, matmul.specialization((a, a, a, *tiles))[1])
        plans.lower(module, ["llvm"], module.lower)


def test_what_fits_is_planned_once() -> None:
    a, c = np.zeros((512, 512), np.float16), np.zeros((512, 512), np.float32)
    _, key = matmul.specialization((a, a, c, 128, 128, 64))
    module = matmul.capture("sm_90a", key)
    told = plans.lower(module, ["llvm"], module.lower)
    assert not any("planned again" in message for _, _, message in told)
    assert module.attribute("tile.plan") is None


# --- Hints ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("warps", [3, 5, 6, 12, 24])
def test_the_number_of_warps_is_a_power_of_two(warps: int) -> None:
    for hint in (warps, ct.ByTarget(sm_90=warps)):
        with pytest.raises(TileValueError, match=f"the hint num_warps is a power of two from 1 to 32, found {warps}"):
            copy.replace_hints(num_warps=hint)


@pytest.mark.parametrize("name", ["sm100", "SM_90", "sm_"])
def test_a_hint_by_target_names_targets(name: str) -> None:
    with pytest.raises(ValueError, match=f"Invalid GPU architecture name: {name}, expected sm_<major><minor>"):
        ct.ByTarget(**{name: 4})


@pytest.mark.parametrize("warps", [16, 32])
def test_a_block_has_at_most_1024_threads(warps: int) -> None:
    a, c = np.zeros((512, 512), np.float16), np.zeros((512, 512), np.float32)
    ptx = build(matmul.replace_hints(num_warps=warps), (a, a, c, 128, 128, 64), "sm_90a")
    threads = int(ptx.split(".reqntid ")[1].split(",")[0].split()[0])
    assert threads <= 1024 and (threads > 32 * warps) == (warps == 16)


# --- Operands that a load was to bring --------------------------------------------------------------------------------


@ct.kernel
def ragged(Q, K, V, Out, Starts, T: ct.Constant[int], D: ct.Constant[int]):
    start, end = ct.gather(Starts, ct.bid(0)), ct.gather(Starts, ct.bid(0) + 1)
    columns = ct.arange(D, dtype=ct.int32)
    q = ct.load(Q, (ct.bid(0), 0), (T, D))
    highest, total = ct.full((T,), -1e30, ct.float32), ct.zeros((T,), ct.float32)
    acc = ct.zeros((T, D), ct.float32)
    for j in range(ct.cdiv(end - start, T)):
        keys = start + j * T + ct.arange(T, dtype=ct.int32)
        k = ct.gather(K, (keys[:, None], columns[None, :]), mask=(keys < end)[:, None])
        scores = ct.where((keys < end)[None, :], ct.mma(q, k.T, ct.zeros((T, T), ct.float32)), -1e30)
        higher = ct.maximum(highest, ct.max(scores, 1))
        weights, factor = ct.exp(scores - higher[:, None]), ct.exp(highest - higher)
        total, highest = total * factor + ct.sum(weights, 1), higher
        v = ct.gather(V, (keys[:, None], columns[None, :]), mask=(keys < end)[:, None])
        acc = ct.mma(weights.astype(V.dtype), v, acc * factor[:, None])
    ct.store(Out, (ct.bid(0), 0), acc / total[:, None])


@pytest.mark.parametrize("target", GPUS)
def test_values_gathered_with_a_mask(target: str) -> None:
    q, o, starts = np.zeros((128, 64), np.float16), np.zeros((128, 64), np.float32), np.zeros(3, np.int32)
    assert ("wgmma" in build(ragged, (q, q, q, o, starts, 64, 64), target)) == (target == "sm_90a")
