"""Reductions and scans by functions of the user's."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
from harness import Backends, ulp

from tilewright import dtype as dt
from tilewright import tile as ct
from tilewright.errors import TileSyntaxError, TileTypeError, TileValueError

DTYPES = (dt.int8, dt.uint8, dt.int32, dt.int64, dt.float16, dt.bfloat16, dt.float32, dt.float64)


def small_values(dtype: dt.DType, shape: tuple[int, ...]) -> np.ndarray:
    """Small integers, of which sums are exact in any order."""
    low = 0 if dtype.is_integral and dtype.min == 0 else -2
    return np.random.default_rng(0).integers(low, 3, shape).astype(dtype.numpy)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
@pytest.mark.parametrize("shape", [(4, 32), (64, 2), (1, 256), (2, 1)], ids=str)
def test_sums(backends: Backends, dtype: dt.DType, shape: tuple[int, int]) -> None:
    @ct.kernel
    def kernel(X, R, C, S, T, M: ct.Constant[int], N: ct.Constant[int]):
        x = ct.load(X, (0, 0), (M, N))
        ct.store(R, (0,), ct.reduce(x, 1, operator.add, 0))
        ct.store(C, (0, 0), ct.reduce(x, axis=0, func=lambda a, b: a + b, identity=0, keepdims=True))
        ct.store(S, (0, 0), ct.scan(x, -1, operator.add, 0))
        ct.store(T, (0, 0), ct.scan(x, 0, lambda a, b: a + b, identity=0, reverse=True))

    m, n = shape
    x = small_values(dtype, shape)
    out = [(m,), (1, n), shape, shape]
    found = backends.run_all(kernel, 1, lambda: [x.copy(), *(np.zeros(s, dtype.numpy) for s in out), m, n])
    wide = x.astype(np.float64)
    wanted = [wide.sum(1), wide.sum(0, keepdims=True), wide.cumsum(1), wide[::-1].cumsum(0)[::-1]]
    if m * n <= 128:  # larger sums wrap in bytes
        for got, expected in zip(found[1:5], wanted, strict=True):
            assert np.array_equal(got, expected.astype(dtype.numpy))


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("reverse", [False, True])
def test_functions_keep_the_order(backends: Backends, axis: int, reverse: bool) -> None:
    """Maps x -> a x + b, one after the other: associative, but the order matters."""

    def after(a, b, c, d):
        return a * c, b * c + d

    @ct.kernel
    def kernel(A, B, X, Y, P, Q, axis: ct.Constant[int], reverse: ct.Constant[bool]):
        a, b = (ct.load(array, (0, 0, 0), (4, 8, 16)) for array in (A, B))
        x, y = ct.scan((a, b), axis, after, (1, 0), reverse=reverse)
        ct.store(X, (0, 0, 0), x)
        ct.store(Y, (0, 0, 0), y)
        p, q = ct.reduce((a, b), axis, after, (1, 0), keepdims=True)
        ct.store(P, (0, 0, 0), p)
        ct.store(Q, (0, 0, 0), q)

    rng = np.random.default_rng(0)
    a, b = (rng.integers(-9, 9, (4, 8, 16)).astype("i4") for _ in range(2))
    left = tuple(1 if d == axis else n for d, n in enumerate(a.shape))
    shapes = (a.shape, a.shape, left, left)
    backends.run_all(kernel, 1, lambda: [a.copy(), b.copy(), *(np.zeros(s, "i4") for s in shapes), axis, reverse])


@pytest.mark.parametrize("shape", [(8, 64), (64, 8), (2, 512)], ids=str)
def test_index_of_the_largest(backends: Backends, shape: tuple[int, int]) -> None:
    def larger(a, i, b, j):
        wins = (b > a) | ((a == b) & (j < i))
        return ct.where(wins, b, a), ct.where(wins, j, i)

    @ct.kernel
    def kernel(X, V, At, J, M: ct.Constant[int], N: ct.Constant[int]):
        x = ct.load(X, (0, 0), (M, N))
        v, i = ct.reduce((x, ct.arange(N, dtype=ct.int32)), 1, larger, (float("-inf"), 2**31 - 1))
        ct.store(V, (0,), v)
        ct.store(At, (0,), i)
        _, j = ct.scan((x, ct.arange(N, dtype=ct.int32)), 1, larger, (float("-inf"), 2**31 - 1))
        ct.store(J, (0, 0), j)

    x = np.random.default_rng(1).integers(0, 9, shape).astype("f4")
    m, n = shape
    found = backends.run_all(
        kernel, 1, lambda: [x.copy(), np.zeros(m, "f4"), np.zeros(m, "i4"), np.zeros(shape, "i4"), m, n]
    )
    assert np.array_equal(found[1], x.max(1)) and np.array_equal(found[2], x.argmax(1))


def test_of_computed_tiles_and_scalars(backends: Backends) -> None:
    """In a loop, of what is computed, with scalars from outside; several kinds at once, bools too."""

    @ct.kernel
    def kernel(X, Y, Z, modulus):
        scale = ct.bid(0) + 1
        total = ct.zeros((8,), ct.int32)
        for i in range(4):
            x = ct.load(X, (0, i), (8, 16))
            total += ct.reduce((x * 2).astype(ct.int32), 1, lambda a, b: (a + b) % modulus, 0)
            low, seen, count = ct.scan(
                (x, x > 0, ct.full((8, 16), 1, ct.int16)),
                1,
                lambda a, p, n, b, q, m: (ct.minimum(a, b), p | q, n + m),
                (float("inf"), False, 0),
            )
            ct.store(Z, (0, i), ct.where(seen, low * scale, count.astype(ct.float32)))
        ct.store(Y, (0,), total)

    x = np.random.default_rng(2).integers(-3, 2, (8, 64)).astype("f4")
    backends.run_all(kernel, 1, lambda: [x.copy(), np.zeros(8, "i4"), np.zeros((8, 64), "f4"), 7])


def test_float_functions(backends: Backends) -> None:
    """log(exp(a) + exp(b)), over warps too."""

    def log_add(a, b):
        most = ct.maximum(a, b)
        return most + ct.log(ct.exp(a - most) + ct.exp(b - most))

    @ct.kernel
    def kernel(X, Y):
        ct.store(Y, (0,), ct.reduce(ct.load(X, (0, 0), (4, 1024)), 1, log_add, -1e30))

    x = np.random.default_rng(3).standard_normal((4, 1024)).astype("f4")
    _, y = backends.run_all(kernel, 1, lambda: [x.copy(), np.zeros(4, "f4")], tolerance=ulp(64))
    assert np.allclose(y, np.log(np.exp(x.astype("f8")).sum(1)), rtol=1e-5)


def refused(name: str) -> tuple[Any, Any, str]:
    def branch(a, b):
        if a > b:
            return a
        return b

    def loop(a, b):
        for _ in range(a):
            b = b + 1
        return b

    def nested(a, b):
        return ct.reduce(ct.ones((4,), ct.int32), 0, operator.add, 0) + a + b

    def load(a, b):
        return ct.printf("%d", a) or a + b

    functions = {
        "branch": (branch, TileSyntaxError, "branch.*ct.where"),
        "loop": (loop, TileSyntaxError, "loop"),
        "nested": (nested, TileSyntaxError, "cannot stand in the function"),
        "effect": (load, TileSyntaxError, "ct.printf.*effect"),
        "several": (lambda a, b: (a, b), TileTypeError, "needs a tile or a number"),
        "tile": (lambda a, b: a + ct.ones((4,), ct.int32), TileTypeError, "must be a scalar"),
        "wider": (lambda a, b: a.astype(ct.float32) + b, TileTypeError, "float32 does not convert to int32"),
        "count": (lambda a: a, TileTypeError, "too many positional"),
    }
    return functions[name]


@pytest.mark.parametrize("name", ["branch", "loop", "nested", "effect", "several", "tile", "wider", "count"])
def test_refused_functions(name: str) -> None:
    function, error, match = refused(name)

    @ct.kernel
    def kernel(X):
        ct.store(X, (0,), ct.scan(ct.load(X, (0,), (8,)), 0, function, 0))

    with pytest.raises(error, match=match):
        ct.launch(None, (1,), kernel, (np.zeros(8, "i4"),))


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ((1, 0), TileTypeError, "axis 1 is outside"),
        ((None, 0), TileTypeError, "axis must be a constant"),
        ((0, (0, 0)), TileTypeError, "identity must be a constant for each"),
        ((0, 300), TileValueError, "300 is outside int8"),
    ],
)
def test_refused_arguments(backends: Backends, arguments: Any, error: Any, match: str) -> None:
    axis, identity = arguments

    @ct.kernel
    def kernel():
        ct.reduce(ct.zeros((8,), ct.int8), axis, operator.add, identity)

    backends.rejects(kernel, 1, list, error, match)
