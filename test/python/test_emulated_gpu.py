"""What the GPU lowering computes, on machines without a GPU: test/emulator plays the threads of a block.

The numerics tests run the same way by hand (test/emulator/README.md); here are the movements that only
a GPU has: between lanes and warps, through shared memory, to the matrix instructions.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilewright import compile as compiler
from tilewright import tile as ct

sys.path.insert(0, str(Path(__file__).parent.parent / "emulator"))
import emulate

pytestmark = pytest.mark.skipif(emulate.MISSING is not None, reason="the emulator compiles with clang")


@pytest.fixture(params=["sm_80", "sm_90"], autouse=True)
def emulated(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Kernels made in a test run as GPU code."""
    emulate.stand_in(monkeypatch, request.param)
    yield


def values(shape: tuple[int, ...], dtype: Any, scale: float = 50) -> np.ndarray:
    return (np.random.default_rng(0).standard_normal(shape) * scale).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.float64, np.float16], ids=lambda d: d.__name__)
@pytest.mark.parametrize("rows, columns", [(8, 64), (64, 8), (1, 256), (16, 512), (4, 2)])
def test_elements_find_their_way(dtype: Any, rows: int, columns: int) -> None:
    @ct.kernel
    def kernel(X, T, R, M, A: ct.Constant[int], B: ct.Constant[int]):
        x = ct.load(X, index=(0, 0), shape=(A, B))
        turned, reshaped = x.T, x.reshape((B, A))
        ct.store(T, (0, 0), turned)
        ct.store(R, (0, 0), reshaped + turned)
        ct.store(M, (0,), ct.max(ct.where(turned > reshaped, turned, reshaped), axis=0))

    x = values((rows, columns), dtype)
    t, r, m = np.zeros((columns, rows), dtype), np.zeros((columns, rows), dtype), np.zeros(rows, dtype)
    ct.launch(None, (1,), kernel, (x, t, r, m, rows, columns))
    reshaped = x.reshape(columns, rows)
    assert np.array_equal(t, x.T)
    assert np.array_equal(r, reshaped + x.T)
    assert np.array_equal(m, np.maximum(x.T, reshaped).max(axis=0))


@pytest.mark.parametrize("shape", [(4, 8, 16), (16, 4, 8), (2, 2, 64), (1, 64, 2)], ids=str)
def test_reductions_over_lanes_and_warps(shape: tuple[int, int, int]) -> None:
    @ct.kernel
    def kernel(X, S, Index, A: ct.Constant[int], B: ct.Constant[int], C: ct.Constant[int]):
        p = ct.permute(ct.load(X, index=(0, 0, 0), shape=(A, B, C)), (2, 0, 1))
        ct.store(S, (0, 0), ct.sum(p, axis=1))
        ct.store(Index, (0, 0), ct.argmax(p.reshape((C, A * B)), axis=1, keepdims=True))

    x = values(shape, np.int32)
    p = x.transpose(2, 0, 1)
    s, i = np.zeros((shape[2], shape[1]), np.int32), np.zeros((shape[2], 1), np.int32)
    ct.launch(None, (1,), kernel, (x, s, i, *shape))
    assert np.array_equal(s, p.sum(axis=1))
    assert np.array_equal(i[:, 0], p.reshape(shape[2], -1).argmax(axis=1))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16], ids=lambda d: d.__name__)
@pytest.mark.parametrize("m, n, k", [(100, 90, 70), (64, 64, 64)])
def test_product_through_shared_memory(dtype: Any, m: int, n: int, k: int) -> None:
    @ct.kernel
    def kernel(A, B, C, T: ct.Constant[int]):
        acc = ct.zeros((T, T), dtype=ct.float32)
        i, j = ct.bid(0), ct.bid(1)
        for s in range(ct.num_tiles(A, axis=1, shape=(T, T))):
            a = ct.load(A, index=(i, s), shape=(T, T), padding_mode=ct.PaddingMode.ZERO)
            b = ct.load(B, index=(s, j), shape=(T, T), padding_mode=ct.PaddingMode.ZERO)
            acc = ct.mma(a, b, acc)
        ct.store(C, index=(i, j), tile=acc)

    a, b = values((m, k), dtype, 1), values((k, n), dtype, 1)
    c = np.zeros((m, n), np.float32)
    ct.launch(None, (-(-m // 32), -(-n // 32)), kernel, (a, b, c, 32))
    expected = a.astype(np.float32) @ b.astype(np.float32)
    tolerance = 2e-2 if dtype == np.float32 else 1e-4  # f32 goes as tf32
    assert np.allclose(c, expected, rtol=0, atol=tolerance)


def test_two_reductions_share_a_row() -> None:
    @ct.kernel
    def kernel(X, Y, T: ct.Constant[int]):
        x = ct.load(X, index=(ct.bid(0), 0), shape=(1, T), padding_mode=ct.PaddingMode.NEG_INF)
        e = ct.exp(x - ct.max(x, axis=1, keepdims=True))
        ct.store(Y, index=(ct.bid(0), 0), tile=e / ct.sum(e, axis=1, keepdims=True))

    x = values((3, 3000), np.float32, 3)
    y = np.zeros_like(x)
    ct.launch(None, (3,), kernel, (x, y, 4096))
    e = np.exp(x - x.max(axis=1, keepdims=True))
    assert np.allclose(y, e / e.sum(axis=1, keepdims=True), rtol=1e-5, atol=0)


def test_product_of_columns_one_wide() -> None:
    """Rows of 16 bytes, of which a tile takes 8: neighbours in its buffer are none in the array."""

    @ct.kernel
    def kernel(A, B, C):
        acc = ct.zeros((2, 1), ct.float64)
        for k in range(ct.num_tiles(A, 1, (2, 4))):
            a = ct.load(A, (ct.bid(0), k), (2, 4), padding_mode=ct.PaddingMode.ZERO)
            acc = ct.mma(a, ct.load(B, (k, ct.bid(1)), (4, 1), padding_mode=ct.PaddingMode.ZERO), acc)
        ct.store(C, (ct.bid(0), ct.bid(1)), acc)

    a, b = values((3, 9), np.float64), values((9, 2), np.float64)
    c = np.zeros((3, 2))
    ct.launch(None, (2, 2), kernel, (a, b, c))
    np.testing.assert_allclose(c, a @ b, rtol=1e-12)


def test_a_block_reads_what_it_wrote() -> None:
    """Other threads than those that wrote it read it, write over it, and read it before that."""

    @ct.kernel
    def kernel(X, S, Z):
        before = ct.load(S, (0, 0), (32, 16))
        ct.store(S, (0, 0), ct.load(X, (0, 0), (16, 32)))
        ct.store(Z, (0, 0), ct.load(S, (0, 0), (32, 16)))
        ct.store(S, (0, 0), before)

    x, s, z = values((16, 32), np.int32), values((32, 32), np.int32), np.zeros((32, 16), np.int32)
    first = s.copy()
    written = np.concatenate([x, first[16:]])
    ct.launch(None, (1,), kernel, (x, s, z))
    assert np.array_equal(z, written[:, :16])
    assert np.array_equal(s, np.concatenate([first[:, :16], written[:, 16:]], axis=1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=lambda d: d.__name__)
def test_remainders_are_exact(dtype: Any) -> None:
    """By a rule of our own: LLVM's frem, which is exact only here, is not in the code."""

    @ct.kernel
    def kernel(X, Y, Z, N: ct.Constant[int]):
        ct.store(Z, (0,), ct.load(X, (0,), (N,)) % ct.load(Y, (0,), (N,)))

    info = np.finfo(dtype)
    edges = np.array([info.smallest_subnormal, info.tiny / 3, info.tiny, 0.1, 1e9, info.max / 3, info.max], dtype)
    x, y = np.repeat(np.append(edges, -3), 8), np.tile(np.append(edges, np.inf), 8).astype(dtype)
    z = np.zeros_like(x)
    arguments = (x, y, z, 64)
    _, key = kernel.specialization(arguments)
    captured = compiler.capture_kernel(kernel, emulate.TARGET, key)
    captured.module.lower("llvm")
    assert b" frem " not in captured.module.emit(compiler.EMIT_LLVM)
    ct.launch(None, (1,), kernel, arguments)
    assert np.array_equal(z, np.mod(x, y))


def test_rows_are_divided_by_subnormals() -> None:
    """What a row is divided by is inverted once, and 1 / y is no float there."""

    @ct.kernel
    def kernel(X, Y, Z):
        ct.store(Z, (0, 0), (ct.load(X, (0, 0), (4, 256)) / ct.load(Y, (0, 0), (4, 1))).astype(ct.bfloat16))

    y = np.float32([[2.0**-129], [-(2.0**-149)], [2.0**-100], [2.0**127]])
    x = np.broadcast_to(y * np.float32([1, 2, 3, 1.5] * 64), (4, 256)).copy()
    z = np.zeros((4, 256), ml_dtypes.bfloat16)
    ct.launch(None, (1,), kernel, (x, y, z))
    assert np.array_equal(z.astype(np.float32), x / y)


def test_powers_of_float32() -> None:
    """Within 2 ulp of the exact ones, from subnormals to infinity."""

    @ct.kernel
    def kernel(X, Y, Z):
        ct.store(Z, (0,), ct.pow(ct.load(X, (0,), (4096,)), ct.load(Y, (0,), (4096,))))

    random = np.random.default_rng(0)
    x = np.exp2(random.uniform(-149, 128, 4096)).astype(np.float32)
    y = (random.uniform(-150, 129, 4096) / np.log2(x.astype(np.float64))).astype(np.float32)
    x[2048:] = (1 + random.uniform(-1, 1, 2048) * np.exp2(-random.uniform(0, 24, 2048))).astype(np.float32)
    y[2048:] = (random.uniform(-150, 129, 2048) / np.log2(x[2048:].astype(np.float64) + 1e-9)).astype(np.float32)
    ends = np.float32([0, -0.0, 1, -1, 2, -2, 0.5, np.inf, -np.inf, np.nan, 2.0**-149, 3.4e38, 3, -3, 1e9, -2.5])
    x[:256], y[:256] = np.repeat(ends, 16), np.tile(ends, 16)
    z = np.zeros(4096, np.float32)
    ct.launch(None, (1,), kernel, (x, y, z))
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.float64), y.astype(np.float64))
        want = exact.astype(np.float32)
    finite, number = np.isfinite(want), ~np.isnan(want)
    assert np.array_equal(z[~finite], want[~finite], equal_nan=True)
    assert np.array_equal(np.signbit(z[number]), np.signbit(want[number]))
    error = np.abs(z[finite] - exact[finite]) / np.spacing(np.abs(want[finite])).astype(np.float64)
    assert error.max() <= 2


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_angles_of_float32(name: str) -> None:
    """Within 2 ulp, near 0, beside multiples of pi / 2, on both sides of where the reduction changes, and far away."""

    @ct.kernel
    def kernel(X, Z):
        ct.store(Z, (0,), getattr(ct, name)(ct.load(X, (0,), (8192,))))

    random = np.random.default_rng(0)
    bits = random.integers(0, 1 << 32, 2048, dtype=np.uint32).view(np.float32)
    x = [bits[np.isfinite(bits)][:1024], random.uniform(-10, 10, 2048), random.uniform(-3e5, 3e5, 1024)]
    x += [2.0**17 + np.arange(-512, 512) / 64, np.arange(-1500, 1500) * (np.pi / 2), [-0.0, 0.0, 2.0**-149, -1e-30]]
    x = np.resize(np.concatenate(x), 8192).astype(np.float32)
    z = np.zeros(8192, np.float32)
    ct.launch(None, (1,), kernel, (x, z))
    exact = np.array([getattr(math, name)(float(v)) for v in x])
    assert np.array_equal(np.signbit(z), np.signbit(exact))
    assert (np.abs(z - exact) / np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64)).max() <= 2


def test_logarithms_of_float32() -> None:
    """Within 2 ulp, from subnormals on; of what has none, NaN."""

    @ct.kernel
    def kernel(X, Y, Z):
        x = ct.load(X, (0,), (4096,))
        ct.store(Y, (0,), ct.log(x))
        ct.store(Z, (0,), ct.log2(x))

    random = np.random.default_rng(0)
    x = np.concatenate([np.exp2(random.uniform(-149, 128, 2000)), random.uniform(0.5, 2, 2048)]).astype(np.float32)
    ends = [0, -0.0, np.inf, -np.inf, np.nan, -1, -1e-40, 1]
    x = np.concatenate([np.float32(ends), x, np.ones(40, np.float32)])
    y, z = np.zeros(4096, np.float32), np.zeros(4096, np.float32)
    ct.launch(None, (1,), kernel, (x, y, z))
    with np.errstate(all="ignore"):
        for found, function in ((y, np.log), (z, np.log2)):
            exact = function(x.astype(np.float64))
            assert np.array_equal(found[:8], exact[:8], equal_nan=True)
            assert (np.abs(found[8:] - exact[8:]) <= 2 * np.spacing(np.abs(exact[8:]).astype(np.float32))).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["sin", "tan", "sinh", "tanh", "asinh", "cbrt", "erf", "expm1", "log1p", "sqrt"])
def test_zeros_keep_their_signs(name: str, dtype: Any) -> None:
    @ct.kernel
    def kernel(X, Z):
        ct.store(Z, (0,), getattr(ct, name)(ct.load(X, (0,), (64,))))

    x = np.resize(np.array([-0.0, 0.0, 0.0, -0.0], dtype), 64)
    z = np.ones(64, dtype)
    ct.launch(None, (1,), kernel, (x, z))
    assert np.array_equal(np.signbit(z), np.signbit(x)) and (z == 0).all()


def test_rows_that_are_not_as_long_as_a_kernel_takes_them_to_be() -> None:
    """Of no elements; the launcher has other code for them."""

    @ct.kernel
    def scaled(X, Y, n: int, T: ct.Constant[int]):
        row, columns = ct.bid(0), ct.arange(T, dtype=ct.int32)
        x = ct.gather(X, (row, columns), mask=columns < n, padding_value=0)
        ct.scatter(Y, (row, columns), x - ct.sum(x), mask=columns < n)

    for columns in (0, 1500, 4096):
        x = values((3, columns), np.int8).astype(np.float32)
        y = np.zeros_like(x)
        ct.launch(None, 3, scaled, (x, y, columns, 4096))
        assert np.array_equal(y, x - x.sum(axis=1, keepdims=True))


def test_other_machines_get_their_own_code() -> None:
    @ct.kernel
    def doubled(X):
        ct.store(X, 0, ct.load(X, 0, 8) * 2)

    _, key = doubled.specialization((np.zeros(8, np.float32),))
    assert type(doubled.on_miss("sm_90a", key)).__name__ == "CudaKernel"
    assert type(doubled.on_miss("cpu", key)).__name__ == "CpuKernel"
