"""Functions written in tile code (library.py): each to the bound that it states, on every execution."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from harness import Backends, ulp

from tilewright import library
from tilewright import tile as ct
from tilewright.errors import TileTypeError

T = 512


def exp_or_infinity(x: float) -> float:
    return math.inf if x > 709 else math.exp(x)


def sigmoid(x: float) -> float:
    return math.exp(x) / (1 + math.exp(x)) if x < 0 else 1 / (1 + exp_or_infinity(-x))


# name -> its value in float64, the bound in units in the last place, the largest operand, the bound in float64.
FUNCTIONS: dict[str, tuple[Callable[[float], float], float, float, float]] = {
    "sigmoid": (sigmoid, 9, 104, 4),
    "silu": (lambda x: x * sigmoid(x), 10, 104, 5),
    "softplus": (lambda x: max(x, 0) + math.log1p(math.exp(-abs(x))), 7, 80, 5),
    "gelu": (lambda x: 0.5 * x * math.erfc(-x * math.sqrt(0.5)), 4, 10, 64),
    "log1p": (lambda x: math.log1p(x) if x > -1 else -math.inf, 2, 1e30, 4),
    "expm1": (math.expm1, 2, 80, 6),
    "asinh": (math.asinh, 8, 1e38, 8),
    "cbrt": (lambda x: float(np.cbrt(x)), 2, 1e38, 2),
    "erf": (math.erf, 4, 8, 64),
}


def unary_kernel(op: Any) -> Any:
    @ct.kernel
    def kernel(X, Z):
        ct.store(Z, ct.bid(0), op(ct.load(X, ct.bid(0), T)))

    return kernel


def operands(name: str, dtype: Any) -> np.ndarray:
    most = min(FUNCTIONS[name][2], float(ml_dtypes.finfo(dtype).max) / 2)
    if name == "expm1":
        most = min(most, math.log(float(ml_dtypes.finfo(dtype).max)) - 1)
    random = np.random.default_rng(0)
    sizes = np.geomspace(float(ml_dtypes.finfo(dtype).tiny), most, T)
    near = random.uniform(-4, 4, T)
    x = np.concatenate([near, random.uniform(-1, 1, T) * min(most, 100), sizes, -sizes])
    return (np.where(x < -1, -x, x) if name == "log1p" else x).astype(dtype)


def units(found: np.ndarray, expected: np.ndarray, scale: np.ndarray, dtype: Any, absolute: float = 0) -> float:
    """The largest error of those that are more than `absolute`."""
    info = ml_dtypes.finfo(dtype)
    exponent = np.frexp(scale)[1] - 1
    unit = np.maximum(np.ldexp(float(info.eps), exponent), float(info.smallest_subnormal))
    error = np.abs(found.astype(np.float64) - expected)
    return float(np.max(np.where(error <= absolute, 0, error) / unit))


def absolute_bound(name: str, dtype: Any) -> float:
    """Where sigmoid(x) is below the normal numbers."""
    if name not in ("sigmoid", "silu") or dtype in (np.float16, np.float64):
        return 0
    if dtype is ml_dtypes.bfloat16:
        return 2.0**-126 * (88 if name == "silu" else 1)
    return 2.0**-142 if name == "silu" else 0


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_bound_is_kept(backends: Backends, name: str, dtype: Any) -> None:
    exact, bound, _, wide_bound = FUNCTIONS[name]
    bound = wide_bound if dtype is np.float64 else bound
    kernel, x = unary_kernel(getattr(ct, name)), operands(name, dtype)
    expected = np.array([exact(float(v)) for v in x])
    scale = np.abs(x.astype(np.float64) if name == "gelu" else expected)
    absolute = float(ml_dtypes.finfo(dtype).eps) * 32 if name == "gelu" else absolute_bound(name, dtype)
    make = lambda: [x, np.zeros_like(x)]  # noqa: E731
    reference = backends.run_all(kernel, len(x) // T, make, tolerance=ulp(2 * bound, absolute))[1]
    assert units(reference, expected, scale, dtype, absolute_bound(name, dtype)) <= bound
    found = np.zeros_like(x)
    ct.launch(None, len(x) // T, kernel, (x, found))
    assert units(found, expected, scale, dtype, absolute_bound(name, dtype)) <= bound


# name -> NumPy's function, what is above its operands, the bound.
EVERYWHERE: dict[str, tuple[Callable[[np.ndarray], np.ndarray], float, float]] = {
    "log1p": (np.log1p, math.inf, 2),
    "expm1": (np.expm1, 88.7, 2),
    "erf": (np.vectorize(math.erf), math.inf, 4),
}


@pytest.mark.parametrize("name", EVERYWHERE)
def test_the_bound_is_kept_everywhere(name: str) -> None:
    """Each 8209th float32, where a function is a polynomial of its own."""
    exact, below, bound = EVERYWHERE[name]
    x = np.arange(0, 1 << 32, 8209, dtype=np.uint32).view(np.float32)
    x = x[np.isfinite(x) & (x < below) & ((x > -1) | (name != "log1p"))]
    x = np.resize(x, (len(x) + T - 1) // T * T)
    found, expected = np.zeros_like(x), exact(x.astype(np.float64))
    ct.launch(None, len(x) // T, unary_kernel(getattr(ct, name)), (x, found))
    assert units(found, expected, np.abs(expected), np.float32) <= bound


EDGES = np.array([0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 0.5])
AT_EDGES = {
    "sigmoid": [0.5, 0.5, 1, 0, math.nan],
    "softplus": [math.log(2), math.log(2), math.inf, 0, math.nan],
    "relu": [0, 0, math.inf, 0, math.nan],
    "log1p": [0, 0, math.inf, math.nan, math.nan, math.log(2), -math.inf],
    "expm1": [0, 0, math.inf, -1, math.nan],
    "asinh": [0, 0, math.inf, -math.inf, math.nan],
    "cbrt": [0, 0, math.inf, -math.inf, math.nan, 1, -1],
    "erf": [0, 0, 1, -1, math.nan],
}


@pytest.mark.parametrize("name", AT_EDGES)
def test_edges(backends: Backends, name: str) -> None:
    kernel = unary_kernel(getattr(ct, name))
    x = np.resize(EDGES, T).astype(np.float32)
    found = backends.run_all(kernel, 1, lambda: [x, np.zeros_like(x)], tolerance=ulp(8))[1]
    assert np.allclose(found[: len(AT_EDGES[name])], AT_EDGES[name], rtol=1e-6, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_angles(backends: Backends, dtype: Any) -> None:
    @ct.kernel
    def kernel(Y, X, Z):
        i = ct.bid(0)
        ct.store(Z, i, ct.atan2(ct.load(Y, i, T), ct.load(X, i, T)))

    edges = [0.0, -0.0, 1.0, -1.0, 3.0, -1e-4, math.inf, -math.inf, math.nan]
    random = np.random.default_rng(0).standard_normal((2, 2 * T - len(edges) ** 2))
    y = np.concatenate([np.repeat(edges, len(edges)), random[0]]).astype(dtype)
    x = np.concatenate([np.tile(edges, len(edges)), random[1]]).astype(dtype)
    found = backends.run_all(kernel, 2, lambda: [y, x, np.zeros_like(x)], tolerance=ulp(8))[2]
    expected = np.array([math.atan2(float(b), float(a)) for b, a in zip(y, x, strict=True)])
    assert np.array_equal(np.isnan(found), np.isnan(expected))
    known = ~np.isnan(expected)
    assert np.array_equal(np.signbit(found)[known], np.signbit(expected)[known])
    assert units(found[known], expected[known], np.abs(expected[known]), dtype) <= 4


def test_other_forms(backends: Backends) -> None:
    @ct.kernel
    def kernel(X, N, Z):
        x = ct.load(X, 0, 8)
        ct.store(Z, (0, 0), ct.clip(x, -1, 2.5)[None, :])
        ct.store(Z, (1, 0), ct.gelu(x, approximate="tanh")[None, :])
        ct.store(Z, (2, 0), ct.sigmoid(ct.load(N, 0, 8))[None, :])  # integers compute as float32
        ct.store(Z, (3, 0), ct.full((1, 8), ct.erf(0.5), ct.float32))

    x = np.linspace(-4, 4, 8).astype(np.float32)
    i = np.arange(-4, 4, dtype=np.int32)
    z = backends.run_all(kernel, 1, lambda: [x, i, np.zeros((4, 8), np.float32)], tolerance=ulp(16, 1e-6))[2]
    inner = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
    assert np.array_equal(z[0], np.clip(x, -1, 2.5))
    assert np.allclose(z[1], 0.5 * x * (1 + np.tanh(inner)), atol=1e-6)
    assert np.allclose(z[2], 1 / (1 + np.exp(-i.astype(np.float64))), rtol=1e-6)
    assert np.allclose(z[3], math.erf(0.5), rtol=1e-6)


def test_an_error_is_about_the_line_that_calls() -> None:
    def half(x):
        return ct.sigmoid(x, 2)

    @ct.kernel
    def kernel(X):
        ct.softplus(X)

    @ct.kernel
    def nested(X):
        half(ct.load(X, 0, 8))

    for wrong, expected in ((kernel, ["kernel"]), (nested, ["nested", "half"])):
        with pytest.raises(TileTypeError) as caught:
            ct.launch(None, 1, wrong, (np.zeros(8, np.float32),))
        assert [place.function for place in caught.value.places] == expected
        assert all(place.file == __file__ for place in caught.value.places)


def test_each_of_them_is_a_name_of_tile_code() -> None:
    for name in library.__all__:
        assert getattr(ct, name) is getattr(library, name) and name in dir(ct)
        assert getattr(ct, name).__doc__


@pytest.mark.parametrize("name", ["sin", "tan", "sinh", "tanh", "asinh", "cbrt", "erf", "expm1", "log1p", "sqrt"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_zero_keeps_its_sign(backends: Backends, name: str, dtype: Any) -> None:
    x, kernel = np.resize(np.array([-0.0, 0.0, 0.0, -0.0], dtype), T), unary_kernel(getattr(ct, name))
    compiled = np.ones(T, dtype)
    ct.launch(None, 1, kernel, (x, compiled))
    for z in (compiled, backends.run_all(kernel, 1, lambda: [x, np.zeros(T, dtype)])[1]):
        assert np.signbit(z[:4]).tolist() == [True, False, False, True] and (z == 0).all()
