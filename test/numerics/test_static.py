"""What Python itself computes of a kernel, and where programs written for cuTile found tile code to differ."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
from typing import Any

import numpy as np
import pytest
from harness import Backends

from tilewright import tile as ct
from tilewright.errors import (
    StaticException,
    TileStaticAssertionError,
    TileStaticEvalError,
    TileSyntaxError,
    TileTypeError,
    TileValueError,
)


def outcome(backends: Backends, kernel: Any, *args: Any, dtype: Any = np.float32) -> list[Any]:
    """What `kernel(X, Z, *args)` writes into Z, of eight numbers."""
    x = np.arange(8).astype(dtype)
    return backends.run_all(kernel, (), lambda: [x.copy(), np.zeros(8, dtype), *args])[1].tolist()


def refused(kernel: Any, *args: Any) -> Any:
    return lambda kind, words: _refused(kernel, args, kind, words)


def _refused(kernel: Any, args: tuple[Any, ...], kind: Any, words: str) -> None:
    with pytest.raises(kind, match=words):
        ct.launch(None, 1, kernel, (np.zeros(8, np.float32), np.zeros(8, np.float32), *args))


def factorial(n):
    result = [1]
    while len(result) <= n:
        result.append(result[-1] * len(result))
    return result[-1]


@dataclasses.dataclass(frozen=True)
class Journal:
    target: Any

    @contextlib.contextmanager
    def entry(self, first, last):
        ct.scatter(self.target, 0, first)
        yield first + 1
        ct.scatter(self.target, 2, last)


# ---------------------------------------------------------------------------------------------
# Static evaluation


def test_symbols(backends: Backends) -> None:
    """Tiles and arrays have their dtype, shape and methods, and take part in arithmetic."""
    choose = min

    @ct.kernel
    def kernel(X, Z, n: ct.Constant, m):
        x, y = ct.load(X, (0,), (8,)), ct.full((8,), 2.0, ct.float32)
        picked = ct.static_eval({"x": x, "y": y}["xy"[n]])
        fold = ct.static_eval(picked.reshape)
        shape = ct.static_eval((choose(x.shape[0], 4), x.ndim * 2))
        scaled = ct.static_eval([v * 2 + m for v in (x, y)][n] if x.dtype == X.dtype else None)
        held = Journal(x + 1)
        scaled = ct.static_eval(scaled + held.target * 0)
        smaller = ct.static_eval(ct.minimum(ct.bid(0) if False else m, np.int32(5)))
        ct.store(Z, (0,), fold(shape).reshape((8,)) + scaled * smaller)

    x = np.arange(8.0)
    assert outcome(backends, kernel, 0, 3) == (x + (x * 2 + 3) * 3).tolist()
    assert outcome(backends, kernel, 1, 9) == [2.0 + 13.0 * 5] * 8


def test_lists_outside_take_what_is_appended() -> None:
    seen: list[str] = []

    @ct.kernel
    def kernel(X, Z):
        tile = ct.load(X, (0,), (4,))
        ct.static_eval(seen.append(f"{tile!r} of {X!r}"))
        ct.store(Z, (0,), tile)

    ct.launch(None, 1, kernel, (np.ones(8, np.float32), np.ones(8, np.float32)))
    assert seen == ["<tile[float32, (4,)]> of <array[float32, (?,)]>"]


def test_static_assert_and_iter(backends: Backends) -> None:
    @ct.kernel
    def kernel(X, Z, n: ct.Constant):
        ct.static_assert(factorial(n) < 100, f"{n}! is {factorial(n)}, of {X}")
        total = ct.load(X, (0,), (8,))
        for i, (tile, scale) in ct.static_iter(iterable=enumerate(zip((total, total + 1), (2, 3), strict=True))):
            total = total + tile * scale + i
        ct.store(Z, (0,), total)

    x = np.arange(8.0)
    assert outcome(backends, kernel, 4) == (x + 2 * x + 3 * (x + 1) + 1).tolist()
    refused(kernel, 7)(TileStaticAssertionError, r"7! is 5040, of <array\[float32, \(\?,\)\]>")


def test_static_exception() -> None:
    @ct.kernel
    def kernel(X, Z, n: ct.Constant):
        if n > 3:
            raise ct.static_exception(ValueError(f"{n} is too large"))
        ct.store(Z, (0,), ct.load(X, (0,), (8,)))

    for run in (lambda *args: ct.launch(None, 1, kernel, args), lambda *args: kernel.interpret(1, args)):
        run(np.zeros(8, np.float32), np.zeros(8, np.float32), 3)
        with pytest.raises(StaticException, match="ValueError: 4 is too large"):
            run(np.zeros(8, np.float32), np.zeros(8, np.float32), 4)


def test_what_static_evaluation_refuses() -> None:
    @ct.kernel
    def value(X, Z, n):
        ct.static_eval(math.sqrt(n))

    @ct.kernel
    def operation(X, Z, n):
        ct.static_eval(ct.load(X, (0,), (8,)))

    @ct.kernel
    def method(X, Z, n):
        ct.static_eval(X.slice(0, 1, 2))

    @ct.kernel
    def assigns(X, Z, n):
        ct.static_eval((y := 1) + 1)  # noqa: F841

    @ct.kernel
    def two(X, Z, n):
        ct.static_eval(1, 2)

    @ct.kernel
    def renamed(X, Z, n):
        f = ct.static_eval
        f(1)

    @ct.kernel
    def no_loop(X, Z, n):
        ct.static_iter(range(2))

    @ct.kernel
    def run_time_length(X, Z, n):
        for _ in ct.static_iter(range(n)):
            pass

    @ct.kernel
    def endless(X, Z, n):
        for _ in ct.static_iter(iter(int, 1)):
            pass

    @ct.kernel
    def number(X, Z, n):
        ct.static_assert(len(X.shape))

    @ct.kernel
    def own_variable(X, Z, n):
        [k for i in (1, 2) for k in ct.static_iter(range(k))]  # noqa: F821

    for kernel, kind, words in (
        (value, TileStaticEvalError, "a run-time int32 scalar has no value at compile time"),
        (operation, TileStaticEvalError, r"ct.load\(\) cannot be called in a static evaluation"),
        (method, TileStaticEvalError, r"slice\(\) cannot be called in a static evaluation"),
        (assigns, TileSyntaxError, "may not assign a variable, as it does 'y'"),
        (two, TileSyntaxError, "takes one expression"),
        (renamed, TileSyntaxError, "by its own name alone, found the variable 'f'"),
        (no_loop, TileSyntaxError, "is what a 'for' goes over"),
        (run_time_length, TileStaticEvalError, "has no value at compile time"),
        (endless, TileStaticEvalError, "has more than 16384 iterations"),
        (number, TileTypeError, "needs a condition, True or False, found the constant 1"),
        (own_variable, TileSyntaxError, "'k' is used before it is assigned"),
    ):
        refused(kernel, 3)(kind, words)


# ---------------------------------------------------------------------------------------------
# Scopes and functions


def test_variables_of_comprehensions_are_their_own(backends: Backends) -> None:
    j = 99

    @ct.kernel
    def kernel(X, Z):
        x = ct.load(X, (0,), (8,))
        functions = tuple(lambda: i for i in ct.static_iter(range(3)))  # noqa: B023
        i = 50
        for _ in range(2):
            pairs = [a * 2 for j, a in enumerate((1, 2))]
            x += j + pairs[1] + functions[0]() + (lambda i: i)(1)
        ct.store(Z, (0,), x + i)

    assert outcome(backends, kernel) == (np.arange(8.0) + 2 * (99 + 4 + 2 + 1) + 50).tolist()


def forwarding(function):
    @functools.wraps(function)
    def call(*args, **keywords):
        return function(*args, **keywords) * 10

    return call


@forwarding
def plus(x, y=1):
    return x + y


def first_above(n):
    """The loop has no end but the return."""
    a, b = 1, 1
    while True:
        a, b = b, a + b
        if b > n:
            return b


def test_functions(backends: Backends) -> None:
    @ct.kernel
    def kernel(X, Z, n):
        with Journal(Z).entry(5, 7) as value:
            ct.scatter(Z, 1, value)
        ct.scatter(Z, 3, plus(3, y=2))
        ct.scatter(Z, 4, first_above(n))

    assert outcome(backends, kernel, 15, dtype=np.int32) == [5, 6, 7, 50, 21, 0, 0, 0]


@dataclasses.dataclass(frozen=True)
class OwnInit:
    a: int

    def __init__(self, a):
        object.__setattr__(self, "a", a + 1)


@contextlib.contextmanager
def returning(n):
    if n > 3:
        return
    yield


@contextlib.contextmanager
def without_yield(n):
    return iter((n,))


def test_what_functions_refuse() -> None:
    @ct.kernel
    def own(X, Z, n):
        OwnInit(n)

    @ct.kernel
    def leaves(X, Z, n):
        with returning(n):
            pass

    @ct.kernel
    def nothing(X, Z, n):
        with without_yield(n):
            pass

    @ct.kernel
    def among_tiles(X, Z, n):
        _ = 2 in (1, ct.ones((4,), ct.int32))

    for kernel, kind, words in (
        (own, TileTypeError, "the dataclass 'OwnInit' has its own '__init__'"),
        (leaves, TileSyntaxError, "'returning' returns"),
        (nothing, TileSyntaxError, "'without_yield' returns"),
        (among_tiles, TileTypeError, "'in' compares scalars"),
    ):
        refused(kernel, 3)(kind, words)
    with pytest.raises(RuntimeError, match="can be used in tile code only"):
        ct.bid(0)


# ---------------------------------------------------------------------------------------------
# Values


def test_dtypes_that_are_called(backends: Backends) -> None:
    """Integers wrap, text is a number, and a divided fraction is gone."""

    @ct.kernel
    def kernel(X, Z):
        ct.scatter(Z, 0, ct.int64(ct.uint32(-3)))
        ct.scatter(Z, 1, ct.int64(ct.int8(200)))
        ct.scatter(Z, 2, ct.int64(ct.int32(2.9)))
        ct.scatter(Z, 3, ct.int64(ct.int16("-7")))
        ct.scatter(Z, 4, (ct.float32("-inf") < 0).astype(ct.int64))

    found = outcome(backends, kernel, dtype=np.int64)
    assert found[:5] == [2**32 - 3, -56, 2, -7, 1]


def test_what_values_refuse(backends: Backends) -> None:
    @ct.kernel
    def negative(X, Z):
        ct.float8_e8m0fnu(-0.5)

    @ct.kernel
    def text(X, Z):
        ct.float32("four")

    @ct.kernel
    def part(X, Z):
        ct.insert(ct.load(X, (0,), (8,)), 0, ct.ones((2,), ct.int32))

    @ct.kernel
    def key(X, Z):
        {"a": 1}["b"]

    refused(negative)(TileValueError, "no negative numbers")
    refused(text)(TileTypeError, "could not convert string to float")
    refused(part)(TileTypeError, "the part is int32, the tile float32")
    refused(key)(TileTypeError, "no entry 'b'; it has 'a'")


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.float32])
def test_arange_takes_scalars_of_other_dtypes(backends: Backends, dtype: Any) -> None:
    @ct.kernel
    def kernel(X, Z, step):
        ct.store(Z, (0,), ct.arange(8, dtype=Z.dtype, start=ct.num_tiles(X, 0, ()) + 1.5, step=step))

    expected = np.array(9.5).astype(dtype) + np.arange(8).astype(dtype) * np.array(-2).astype(dtype)
    assert outcome(backends, kernel, -2, dtype=dtype) == expected.tolist()


@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor"])
def test_bits_of_two_dtypes(backends: Backends, name: str) -> None:
    """They are refused, as by cuTile; a constant takes the dtype of the tile."""
    combine = getattr(ct, name)

    @ct.kernel
    def mixed(X, Z):
        x = ct.load(X, (0,), (8,)).astype(ct.int32)
        combine(x, x.astype(ct.int64))

    @ct.kernel
    def constant(X, Z):
        x = ct.load(X, (0,), (8,)).astype(ct.int16)
        ct.static_assert(combine(x, 3).dtype == ct.int16)
        ct.static_assert(combine(x > 3, 3).dtype == ct.int32)
        ct.store(Z, (0,), combine(3, x).astype(ct.float32))

    make = lambda: [np.zeros(8, np.float32), np.zeros(8, np.float32)]  # noqa: E731
    backends.rejects(mixed, 1, make, TileTypeError, "bits of one dtype, found int32 and int64; convert one operand")
    numpy = getattr(np, name)
    assert outcome(backends, constant) == numpy(np.arange(8), 3).tolist()


def test_abs_of_bools(backends: Backends) -> None:
    """Python's abs is ct.abs: of bools, too."""

    @ct.kernel
    def kernel(X, Z):
        x = ct.load(X, (0,), (8,)) > 3
        ct.store(Z, (0,), (abs(x) == ct.abs(x)).astype(ct.float32) + abs(-2))

    assert outcome(backends, kernel) == [3.0] * 8
