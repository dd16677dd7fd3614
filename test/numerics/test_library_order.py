"""Functions written in tile code: products, random bits, order. Bit for bit the same on every execution."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from harness import Backends, ulp

from tilewright import tile as ct

# Counter, key and result, as published with the algorithm (Salmon et al., 2011).
VECTORS = [
    ([0] * 4, 0, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([2**32 - 1] * 4, 2**64 - 1, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    (
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
        0x299F31D0A4093822,
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
]


def test_philox_gives_the_published_bits(backends: Backends) -> None:
    @ct.kernel
    def kernel(C, S, Z):
        i = ct.bid(0)
        c = [ct.load(C, (i, j), shape=()) for j in range(4)]
        words = ct.philox(ct.load(S, i, shape=()), *c)
        for j in ct.static_iter(range(4)):
            ct.store(Z, (i, j), words[j])

    counters = np.array([counter for counter, _, _ in VECTORS], np.uint32)
    keys = np.array([key for _, key, _ in VECTORS], np.uint64)
    found = backends.run_all(kernel, 3, lambda: [counters, keys, np.zeros((3, 4), np.uint32)])[2]
    assert found.tolist() == [words for _, _, words in VECTORS]


def test_random_numbers(backends: Backends) -> None:
    @ct.kernel
    def kernel(U, N, seed):
        i = ct.bid(0)
        places = i * 1024 + ct.arange(1024, dtype=ct.int32)
        ct.store(U, i, ct.rand(seed, places))
        ct.store(N, i, ct.randn(seed, places))

    zeros = np.zeros(16384, np.float32)
    u, n, _ = backends.run_all(kernel, 16, lambda: [zeros.copy(), zeros.copy(), 7], tolerance={1: ulp(8, 1e-6)})
    assert u.min() >= 0 and u.max() < 1 and len(np.unique(u)) > 16300
    assert abs(u.mean() - 0.5) < 0.01 and abs(np.corrcoef(u[1:], u[:-1])[0, 1]) < 0.03
    assert abs(n.mean()) < 0.03 and abs(n.std() - 1) < 0.03


@pytest.mark.parametrize(
    "dtype", [np.float32, np.float16, np.float64, ml_dtypes.float8_e4m3fn, np.int32, np.int8, np.uint64]
)
def test_flip(backends: Backends, dtype: Any) -> None:
    @ct.kernel
    def kernel(X, Y, Z):
        x = ct.load(X, (0, 0), (8, 16))
        ct.store(Y, (0, 0), ct.flip(x))
        ct.store(Z, (0, 0), ct.flip(x, axis=0))

    x = (np.arange(128).reshape(8, 16) * 1.5 - 90).astype(dtype)
    _, y, z = backends.run_all(kernel, 1, lambda: [x, np.zeros_like(x), np.zeros_like(x)])
    assert y.tobytes() == x[:, ::-1].tobytes() and z.tobytes() == x[::-1].tobytes()


def numbers(dtype: Any, *shape: int) -> np.ndarray:
    """Many are equal; of floats some are NaN, infinite, or zeros with a sign."""
    x = np.random.default_rng(3).integers(-9, 9, shape).astype(dtype)
    if np.dtype(dtype).kind == "f":
        x.flat[[3, 7]], x.flat[[2, 5]] = [np.nan, -np.nan], [np.inf, -np.inf]
        x.flat[[12, 14]], x.flat[[13, 15]] = -0.0, 0.0
    elif dtype is not np.bool_:
        x.flat[[3, 7]] = np.iinfo(dtype).max, np.iinfo(dtype).min
    return x


@pytest.mark.parametrize(
    "dtype", [np.float32, np.float16, np.float64, np.int64, np.int8, np.uint8, np.uint32, np.bool_]
)
def test_sorts(backends: Backends, dtype: Any) -> None:
    @ct.kernel
    def kernel(X, U, D, P):
        x = ct.load(X, (0, 0), (4, 64))
        ct.store(U, (0, 0), ct.sort(x))
        ct.store(D, (0, 0), ct.sort(x, axis=0, descending=True))
        ct.store(P, (0, 0), ct.argsort(x, axis=1))

    x = numbers(dtype, 4, 64)
    args = backends.run_all(kernel, 1, lambda: [x, np.zeros_like(x), np.zeros_like(x), np.zeros(x.shape, np.int32)])
    np.testing.assert_array_equal(args[1], np.sort(x, 1))
    np.testing.assert_array_equal(args[2], np.sort(x, 0)[::-1])
    np.testing.assert_array_equal(args[3], np.argsort(x, 1, kind="stable"))


@pytest.mark.parametrize("shape, axis", [((128,), 0), ((256, 2), 0), ((2, 256), 1), ((1024,), 0)])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint64, np.float64])
def test_long_sorts(backends: Backends, dtype: Any, shape: tuple[int, ...], axis: int) -> None:
    """Whose steps are in a loop."""

    @ct.kernel
    def kernel(X: Any, Y: Any, Z: Any, P: Any, shape: ct.Constant, axis: ct.Constant) -> None:
        x, at = ct.load(X, (0,) * len(shape), shape), (0,) * len(shape)
        ct.store(Y, at, ct.sort(x, axis))
        ct.store(Z, at, ct.sort(x, axis, True))
        ct.store(P, at, ct.argsort(x, axis))

    x = numbers(dtype, *shape)
    args = backends.run_all(
        kernel, 1, lambda: [x, np.zeros_like(x), np.zeros_like(x), np.zeros(shape, np.int32), shape, axis]
    )
    assert np.array_equal(args[1], np.sort(x, axis), equal_nan=True)
    assert np.array_equal(args[2], np.flip(np.sort(x, axis), axis), equal_nan=True)
    assert np.array_equal(args[3], np.argsort(x, axis, stable=True))


def test_each_step_of_a_long_sort_is_there_once() -> None:
    @ct.kernel
    def kernel(X: Any) -> None:
        ct.store(X, 0, ct.sort(ct.load(X, 0, 1024)))

    module = kernel.capture("sm_90a", kernel.specialization((np.zeros(1024, np.float32),))[1])
    assert module.text().count("tile.reduce") == 10


def test_the_largest_and_their_places(backends: Backends) -> None:
    @ct.kernel
    def kernel(X, V, P):
        values, places = ct.topk(ct.load(X, (0, 0), (4, 256)), k=8, axis=1)
        ct.store(V, (0, 0), values)
        ct.store(P, (0, 0), places)

    x = numbers(np.float32, 4, 256)
    _, values, places = backends.run_all(
        kernel, 1, lambda: [x, np.zeros((4, 8), np.float32), np.zeros((4, 8), np.int32)]
    )
    for row, place, value in zip(x, places, values, strict=True):
        wanted = sorted(range(256), key=lambda i: (not np.isnan(row[i]), -row[i] if row[i] == row[i] else 0, i))[:8]
        assert place.tolist() == wanted
        np.testing.assert_array_equal(value, row[wanted])
        np.testing.assert_array_equal(np.signbit(value[2:]), np.signbit(row[wanted][2:]))  # of zeros, behind NaN


def test_dot(backends: Backends) -> None:
    @ct.kernel
    def kernel(X, Y, Z, S):
        x, y = ct.load(X, (0, 0), (16, 32)), ct.load(Y, (0, 0), (32, 16))
        z = ct.dot(x, y)
        ct.store(Z, (0, 0), ct.dot(x, y, acc=z))
        ct.store(S, 0, ct.dot(ct.reshape(x, (512,)), ct.reshape(y, (512,))))

    x = (np.arange(512) % 7).reshape(16, 32).astype(np.float16)
    y = x.reshape(32, 16)
    args = backends.run_all(kernel, 1, lambda: [x, y, np.zeros((16, 16), np.float32), np.zeros(1, np.float32)])
    np.testing.assert_array_equal(args[2], 2 * x.astype(np.float32) @ y.astype(np.float32))
    assert args[3][0] == np.sum(x.ravel().astype(np.float32) * y.ravel().astype(np.float32))


def test_kernels_may_say_what_the_compiler_does_anyway(backends: Backends) -> None:
    @ct.kernel
    def kernel(X, Z):
        ct.grid_dependency_control_launch_dependents()
        one = ct.full((32,), 1, X.dtype)
        ct.grid_dependency_control_wait()
        ct.store(Z, 0, ct.load(X, 0, 32) + one)

    x = np.arange(32, dtype=np.float32)
    assert np.array_equal(backends.run_all(kernel, 1, lambda: [x, np.zeros_like(x)])[1], x + 1)
