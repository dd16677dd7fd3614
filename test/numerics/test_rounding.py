"""Arithmetic that rounds as it is told, bit for bit, at hard cases; and the reference against the processor's modes."""

from __future__ import annotations

import ctypes
import itertools
import math
import platform
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from harness import Backends, Tolerance

from tilewright import tile as ct

T = 256
MODES = [ct.RoundingMode.RN, ct.RoundingMode.RZ, ct.RoundingMode.RM, ct.RoundingMode.RP]
DTYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
OPS = {"add": ct.add, "sub": ct.sub, "mul": ct.mul, "truediv": ct.truediv, "sqrt": ct.sqrt}


def hard(dtype: Any, count: int = 2048) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of the ends of the format, of any bits, and with results that cancel, lie about 1, or below the normal."""
    info = ml_dtypes.finfo(dtype)
    tiny, least, eps, most = (float(v) for v in (info.tiny, info.smallest_subnormal, info.eps, info.max))
    ends = [
        0,
        least,
        3 * least,
        tiny / 2,
        tiny - least,
        tiny,
        math.sqrt(tiny),
        1 - eps / 2,
        1,
        1 + eps,
        3,
        most,
        math.inf,
    ]
    ends = [*ends, *(-v for v in ends), math.nan, eps / 2, most * eps / 2, 1 / 3]
    x, y = (np.array(v).astype(dtype) for v in zip(*itertools.product(ends, ends), strict=True))
    chance = np.random.default_rng(5)
    bits = chance.integers(0, 256, (2, count, np.dtype(dtype).itemsize), dtype=np.uint8)
    x, y = (np.concatenate([part, more.view(dtype)[:, 0]])[:count] for part, more in zip((x, y), bits, strict=True))
    like, small, ratio = np.split(np.arange(count - 768, count), 3)
    with np.errstate(all="ignore"):  # sums that cancel and quotients about 1; products, then quotients below the normal
        wide, part = x.astype(np.float64), tiny * chance.random(256)
        y[like] = (wide[like] * chance.choice([1, -1, 1 + eps, -0.5, 3, 1 / 3], 256)).astype(dtype)
        y[small] = (part / wide[small]).astype(dtype)
        x[ratio] = (y[ratio].astype(np.float64) * part).astype(dtype)
    return x, y


def kernel_of(name: str) -> Any:
    """The four roundings beside one another; of NaN only that it is one."""
    op, unary = OPS[name], name == "sqrt"
    rn, rz, rm, rp = MODES

    def rounded(x, y, mode):
        z = op(x, rounding_mode=mode) if unary else op(x, y, rounding_mode=mode)
        return ct.where(ct.isnan(z), 0.75, z)

    @ct.kernel
    def kernel(X, Y, Z):
        i = ct.bid(0)
        x, y = ct.load(X, i, T), ct.load(Y, i, T)
        ct.store(Z, (i, 0), ct.expand_dims(rounded(x, y, rn), 1))
        ct.store(Z, (i, 1), ct.expand_dims(rounded(x, y, rz), 1))
        ct.store(Z, (i, 2), ct.expand_dims(rounded(x, y, rm), 1))
        ct.store(Z, (i, 3), ct.expand_dims(rounded(x, y, rp), 1))

    return kernel


def bits_of(x: np.ndarray) -> np.ndarray:
    return x.view(f"i{x.dtype.itemsize}")


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_rounding_is_exact(backends: Backends, name: str, dtype: str) -> None:
    x, y = hard(DTYPES[dtype])
    results: list[np.ndarray] = []

    def arguments() -> list[Any]:
        results.append(np.zeros((len(x), 4), x.dtype))
        return [x, y, results[-1]]

    with np.errstate(all="ignore"):
        backends.run_all(kernel_of(name), len(x) // T, arguments)
    for z in results[: 1 + sum(not name.startswith("sm_") for name in backends.names)]:
        assert np.array_equal(bits_of(z), bits_of(results[0])), "zeros have their signs, too"


@pytest.mark.skipif(platform.machine() != "x86_64" or platform.system() != "Linux", reason="numbers of its modes")
@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_the_reference_is_the_processor(name: str, dtype: str) -> None:
    x, y = hard(DTYPES[dtype])
    found = np.zeros((len(x), 4), x.dtype)
    run = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide}.get(name)
    libm = ctypes.CDLL("libm.so.6")
    with np.errstate(all="ignore"):
        kernel_of(name).interpret(len(x) // T, (x, y, found))
        for column, mode in enumerate((0x000, 0xC00, 0x400, 0x800)):
            libm.fesetround(mode)
            try:
                z = run(x, y) if run else np.sqrt(x)
            finally:
                libm.fesetround(0)
            z = np.where(np.isnan(z), z.dtype.type(0.75), z)
            assert np.array_equal(bits_of(np.ascontiguousarray(found[:, column])), bits_of(z))


def test_with_subnormal_numbers_flushed(backends: Backends) -> None:
    @ct.kernel
    def kernel(X, Y, Z):
        i, up = ct.bid(0), ct.RoundingMode.RP
        z = ct.mul(ct.load(X, i, T), ct.load(Y, i, T), rounding_mode=up, flush_to_zero=True)
        ct.store(Z, i, ct.where(ct.isnan(z), 0.75, z))

    x, y = hard(np.float32)
    with np.errstate(all="ignore"):
        z = backends.run_all(kernel, len(x) // T, lambda: [x, y, np.zeros_like(x)])[2]
    assert not np.any((z != 0) & (np.abs(z) < np.finfo(np.float32).tiny))


def test_constants_of_one_operand_and_of_both(backends: Backends) -> None:
    @ct.kernel
    def kernel(X, Z):
        down = ct.RoundingMode.RM
        ct.store(Z, 0, ct.truediv(ct.load(X, 0, 4), 3, rounding_mode=down) + ct.truediv(2.0, 3.0, rounding_mode=down))

    backends.run_all(kernel, 1, lambda: [np.arange(4, dtype=np.float32), np.zeros(4, np.float32)])


def test_a_product_that_is_told_how_to_round_is_not_fused(backends: Backends) -> None:
    @ct.kernel
    def kernel(X, Y, Z):
        x, y = ct.load(X, 0, 64), ct.load(Y, 0, 64)
        ct.store(Z, 0, ct.mul(x, y, rounding_mode=ct.RoundingMode.RN) - x)

    chance = np.random.default_rng(1)
    x, y = (1 + chance.random(64, np.float32) for _ in range(2))
    backends.run_all(kernel, 1, lambda: [x, y, np.zeros_like(x)])


# ---------------------------------------------------------------------------------------------
# Sums and products of many, each step of which is rounded


@ct.kernel
def together(X, Y, Sum, Whole, Prod, Upto, Behind, mode: ct.Constant):
    x, y = ct.load(X, (0, 0), (4, 16)), ct.load(Y, (0, 0), (4, 16))
    ct.store(Sum, (0, 0), ct.sum(x, 1, keepdims=True, rounding_mode=mode))
    ct.store(Whole, 0, ct.sum(ct.extract(x, (0, 0), (1, 16)), rounding_mode=mode).reshape((1,)))
    ct.store(Prod, 0, ct.prod(y, 1, rounding_mode=mode))
    ct.store(Upto, (0, 0), ct.cumsum(x, 1, rounding_mode=mode, reverse=True))
    ct.store(Behind, (0, 0), ct.cumprod(y, 1, rounding_mode=mode))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", MODES[1:], ids=lambda m: m.name)
def test_sums_in_a_direction(backends: Backends, mode: Any, dtype: str) -> None:
    """Two terms a row, and else what changes nothing: so the order, which is open, makes no difference."""
    kind, eps = DTYPES[dtype], float(ml_dtypes.finfo(DTYPES[dtype]).eps)
    x, y = np.zeros((4, 16), kind), np.ones((4, 16), kind)
    x[:, 3], x[:, 9] = [1, -1, 1, -1], [eps / 8, eps / 8, -eps / 8, -eps / 8]
    y[:, 2], y[:, 14] = [1 + eps, -1 - eps, 3, -3], [1 + eps, 1 + eps, 1 / 3, 1 / 3]
    shapes = [(4, 1), (1,), (4,), (4, 16), (4, 16)]
    made = backends.run_all(together, 1, lambda: [x, y, *(np.zeros(s, kind) for s in shapes), mode])
    below, above = 1 - eps / 2, 1 + eps
    sums = {"RZ": [1, -below, below, -1], "RM": [1, -1, below, -above], "RP": [above, -below, 1, -1]}[mode.name]
    assert np.array_equal(made[2][:, 0].astype(np.float64), sums)


def test_many_terms_in_a_direction_lie_on_that_side(backends: Backends) -> None:
    @ct.kernel
    def kernel(X, Z):
        down, up = ct.RoundingMode.RM, ct.RoundingMode.RP
        for axis in ct.static_iter((0, 1)):
            x = ct.load(X, (0, 0), (16, 64))
            ct.store(Z, (axis, 0), ct.sum(x, rounding_mode=down).reshape((1, 1)))
            ct.store(Z, (axis, 1), ct.sum(ct.sum(x, axis, rounding_mode=up), rounding_mode=up).reshape((1, 1)))

    x = np.random.default_rng(2).standard_normal((16, 64)).astype(np.float32)
    exact, most = math.fsum(x.ravel().tolist()), float(np.abs(x).sum()) * 1024 * 2.0**-23
    z = backends.run_all(kernel, 1, lambda: [x, np.zeros((2, 2), np.float32)], tolerance=Tolerance(absolute=most))[1]
    assert np.all(z[:, 0] < exact) and np.all(z[:, 1] > exact)
