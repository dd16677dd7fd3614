"""Hints that change code and not results: what the machine code shows of them, without a GPU."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import sass

from tilewright import compile
from tilewright import tile as ct
from tilewright.times import Times

sys.path.insert(0, str(Path(__file__).parents[2] / "python" / "examples"))
import matmul
import softmax

needs_sass = pytest.mark.skipif(sass.MISSING is not None, reason=str(sass.MISSING))
BF16 = ml_dtypes.bfloat16


def empty(*shape: int, dtype: Any = BF16) -> np.ndarray:
    return np.empty(shape, dtype)


@ct.kernel
def add_one(X, Y, T: ct.Constant[int], CHECK: ct.Constant[bool]):
    i = ct.bid(0)
    x = ct.load(X, index=(i,), shape=(T,), check_bounds=CHECK)
    ct.store(Y, index=(i,), tile=x + 1, check_bounds=CHECK)


@ct.kernel
def product(A, B, C, AHEAD: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((128, 128), dtype=ct.float32)
    for k in range(ct.num_tiles(A, axis=1, shape=(128, 64))):
        a = ct.load(A, index=(i, k), shape=(128, 64), latency=AHEAD)
        b = ct.load(B, index=(k, j), shape=(64, 128), latency=AHEAD)
        acc = ct.mma(a, b, acc)
    ct.store(C, index=(i, j), tile=acc.astype(C.dtype), latency=AHEAD)


def assemble(kernel: Any, args: tuple[Any, ...], target: str = "sm_90a") -> sass.Code:
    return sass.assemble(kernel, kernel.specialization(args)[1], target)


@needs_sass
@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_occupancy_shares_a_multiprocessor(target: str) -> None:
    squares = tuple(empty(4096, 4096) for _ in range(3))
    one, two = (assemble(matmul.matmul.replace_hints(occupancy=n), (*squares, 128, 128, 64), target) for n in (None, 2))
    most = {"sm_80": 164, "sm_90a": 228}[target] * 1024
    assert 2 * (one.shared_bytes + 1024) > most >= 2 * (two.shared_bytes + 1024)
    threads = 32 * (4 * two.warpgroups + (target == "sm_90a"))  # and a producer
    assert 2 * threads * two.registers <= 65536
    assert two.spills == 0


@needs_sass
def test_occupancy_limits_registers() -> None:
    args = (empty(64, 16384), empty(64, 16384), 16384)
    natural = assemble(softmax.softmax, args)
    threads = 32 * 4 * natural.warpgroups
    tight = 65536 // threads // natural.registers + 1
    squeezed = assemble(softmax.softmax.replace_hints(occupancy=tight), args)
    assert squeezed.registers < natural.registers
    assert tight * threads * squeezed.registers <= 65536


@needs_sass
@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_latency_is_how_far_copies_run_ahead(target: str) -> None:
    squares = tuple(empty(4096, 4096) for _ in range(3))
    near, far = (assemble(product, (*squares, n), target) for n in (1, 3))
    slot = 2 * 128 * 64 * 2
    assert 2 * slot <= far.shared_bytes - near.shared_bytes < 2 * slot + 1024
    assert any("has a latency that is not used: nothing waits" in remark for remark in near.remarks)


@needs_sass
def test_unchecked_bounds_take_no_comparison() -> None:
    for n in (1 << 20, (1 << 20) + 3):
        arrays = empty(n, dtype=np.float32), empty(n, dtype=np.float32)
        code = assemble(add_one.replace_hints(dependent_launch=0), (*arrays, 1024, False))
        assert code.count("ISETP") == 0
        assert code.count("LDG") == code.count("LDG.E.128") == code.count("STG.E.128") == code.count("STG") == 2
        assert assemble(add_one, (*arrays, 1024, True)).count("ISETP") > 0


def test_unchecked_bounds_on_the_cpu() -> None:
    x, y = np.arange(4096, dtype=np.float32), np.zeros(4096, np.float32)
    ct.launch(None, 4, add_one, (x, y, 1024, False))
    np.testing.assert_array_equal(y, x + 1)


def test_the_level_of_the_assembler_is_in_the_ptx() -> None:
    x = np.zeros(4096, np.float32)
    for level, first in ((None, b"//\n"), (3, b"//\n"), (1, b"// opt_level 1\n"), (0, b"// opt_level 0\n")):
        kernel = add_one.replace_hints(opt_level=level)
        _, key = kernel.specialization((x, x, 1024, True))
        module = kernel.capture("sm_90a", key)
        module.lower("llvm")
        ptx = module.emit(compile.EMIT_ASSEMBLY)
        assert ptx.startswith(first) and ptx.count(b".entry") == 1
        assert compile.Image(ptx, {}).is_ptx


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_every_level_computes_the_same_on_the_cpu(level: int) -> None:
    x, y = np.arange(4096, dtype=np.float32), np.zeros(4096, np.float32)
    ct.launch(None, 4, add_one.replace_hints(opt_level=level), (x, y, 1024, True))
    np.testing.assert_array_equal(y, x + 1)


def test_a_kernel_is_made_anew_of_its_function() -> None:
    """As operator libraries for cuTile do: `ct.kernel(kernel._pyfunc, num_ctas=2)`."""

    @ct.kernel(occupancy=2)
    def kernel(X):
        ct.store(X, (0,), ct.load(X, (0,), (8,)) + 1)

    again = ct.kernel(kernel._pyfunc, occupancy=1)
    x = np.zeros(8, np.float32)
    ct.launch(None, 1, again, (x,))
    assert again is not kernel and again.hints == {"occupancy": 1} and x.tolist() == [1.0] * 8


@ct.kernel
def ends_narrow(X, Y):
    x = ct.load(X, 0, 128).astype(ct.float32)
    ct.store(Y, 0, (ct.log(x) / (1.0 + ct.exp(x))).astype(ct.float16))


def test_approximations_are_switched_off() -> None:
    """A logarithm whose result ends in 16 bits is the hardware's, unless the program wants none of that."""
    args = (np.ones(128, np.float16), np.ones(128, np.float16))

    def code(kernel: Any) -> bytes:
        _, key = kernel.specialization(args)
        module = kernel.capture("sm_90a", key)
        return compile.build(module, "sm_90a", kernel.name, Times("", ""), lambda ptx, _: ptx).code

    assert b"lg2.approx" in code(ends_narrow)
    assert b"lg2.approx" not in code(ends_narrow.replace_hints(approximate=0))
