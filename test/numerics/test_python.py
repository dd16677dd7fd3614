"""Python that tile code shares with Python: what is known at compile time behaves as everywhere else."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import enum
from typing import Any

import numpy as np
import pytest
from harness import Backends

from tilewright import tile as ct
from tilewright.errors import TileRecursionError, TileStaticAssertionError, TileStaticEvalError, TileTypeError


class Mode(enum.Enum):
    ADD = 1
    SUB = 2


@dataclasses.dataclass(frozen=True)
class State:
    m: Any
    l: Any  # noqa: E741
    name: str = "s"

    def total(self):
        return self.m + self.l


Pair = collections.namedtuple("Pair", "a b")
square, cube = (lambda x: x * x), lambda x: x * x * x


@contextlib.contextmanager
def doubled(value):
    inside = value * 2
    try:
        yield inside
    finally:
        inside = 0


def first_prime_above(n: int) -> int:
    """Python that tile code does not have."""
    found = n + 1
    while any(found % d == 0 for d in range(2, found)):
        found += 1
    return found


def check(backends: Backends, kernel: Any, *args: Any) -> np.ndarray:
    """Run `kernel(X, Z, *args)` on eight numbers, on the reference and on each back end; they must agree."""
    x = np.arange(8, dtype=np.float32)
    return backends.run_all(kernel, 1, lambda: [x.copy(), np.zeros(8, np.float32), *args])[1]


@pytest.mark.parametrize("n", [1, 3, 5, 12])
def test_loops_over_tuples(backends: Backends, n: int) -> None:
    """Unrolled, with break, continue and else, decided at compile time or at run time."""

    @ct.kernel
    def kernel(X, Z, n):
        x = ct.load(X, (0,), (8,))
        total = ct.zeros((8,), ct.float32)
        for i, (scale, function) in enumerate(zip((1, 2, 3), (square, cube, lambda v: v + n), strict=True)):
            if n == 3:
                continue
            total += function(x) * scale + i
            if n == 5:
                break
        else:
            total += 100
        for word in "a", "bb", "ccc":
            if len(word) == 2:
                continue
            total += len(word)
        for key, value in {"k": x, "v": x + 1}.items():
            total = total + value if key == "k" else total - value
        ct.store(Z, (0,), total)

    x = np.arange(8, dtype=np.float32)
    total = np.zeros(8, np.float32)
    if n != 3:
        total += x * x + (0 if n == 5 else 2 * x**3 + 1 + 3 * (x + n) + 2)
    total += (n != 5) * 100 + 4 - 1
    assert check(backends, kernel, n).tolist() == total.tolist()


@pytest.mark.parametrize("n", [0, 4, 9])
def test_else_of_loops(backends: Backends, n: int) -> None:
    @ct.kernel
    def kernel(X, Z, n):
        x = ct.load(X, (0,), (8,))
        for i in range(n):
            if i == 6:
                break
        else:
            x += 1
        i = 0
        while i < n:
            i += 1
            if i == 4:
                break
        else:
            x += 10
        for _ in range(2):
            for j in range(n):
                if j == 6:
                    break
            else:
                continue
            x += 100
            break
        ct.store(Z, (0,), x)

    wanted = (n < 7) + 10 * (n < 4) + 100 * (n >= 7)
    assert check(backends, kernel, n)[0] == wanted


def test_comprehensions(backends: Backends) -> None:
    """Their variables are their own; elements may be tiles."""

    @ct.kernel
    def kernel(X, Z, n):
        x = ct.load(X, (0,), (8,))
        i = n
        powers = [x * k for k in range(5) if k % 2]
        table = {k: p + 0 for k, p in zip("ab", powers, strict=True)}
        total = sum(p for p in powers) + table["b"] + table.get("c", 5) + i
        total += any(v > 3 for v in (n, 2)) + len({k % 2 for k in range(4)}) + all([])
        total += max(a * b for a in (1, 2) for b in (3, 4))
        ct.store(Z, (0,), total)

    x = np.arange(8)
    assert check(backends, kernel, 7).tolist() == (4 * x + 3 * x + 5 + 7 + 1 + 2 + 1 + 8).tolist()


@pytest.mark.parametrize(("n", "mode"), [(1, Mode.ADD), (2, Mode.SUB), (3, Mode.SUB), (4, Mode.ADD), (20, Mode.ADD)])
def test_match(backends: Backends, n: int, mode: Mode) -> None:
    @ct.kernel
    def kernel(X, Z, n, mode: ct.Constant):
        x = ct.load(X, (0,), (8,))
        match mode:
            case Mode.ADD:
                sign = 1
            case Mode.SUB:
                sign = -1
        match n:
            case 1 | 2:
                x += 10 * sign
            case 3:
                x += 20 * sign
            case big if big > 10:
                x += big
            case _:
                x += 40
        match (x, State(1, 2), "text"):
            case (tile, State(m=1, l=rest), _):
                x = tile + rest
        ct.store(Z, (0,), x)

    sign = 1 if mode is Mode.ADD else -1
    wanted = 2 + {1: 10 * sign, 2: 10 * sign, 3: 20 * sign, 20: 20}.get(n, 40)
    assert check(backends, kernel, n, mode)[0] == wanted


@pytest.mark.parametrize("n", [0, 2, 5])
def test_records_in_loops_and_branches(backends: Backends, n: int) -> None:
    """Dataclasses, named tuples and dicts are carried part by part; their constants stay constants."""

    @ct.kernel
    def kernel(X, Z, n):
        x = ct.load(X, (0,), (8,))
        state, table, pair = State(x, ct.zeros((8,), ct.float32)), {"a": x, "k": 3}, Pair(x, 0)
        for i in range(n):
            state = State(state.m + 1, state.l + state.m)
            table = {"a": table["a"] * 2, "k": 3}
            pair = Pair(pair.a - 1, pair.b + 2)
            if i > 2:
                state = State(state.m, l=state.l * 2)
        ct.store(Z, (0,), state.total() + table["a"] + pair.a + pair.b + table["k"] + len(state.name))

    m, l = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)  # noqa: E741
    x = m
    for i in range(n):
        m, l = m + 1, (l + m) * (2 if i > 2 else 1)  # noqa: E741
    assert check(backends, kernel, n).tolist() == (m + l + x * 2**n + x - n + 2 * n + 3 + 1).tolist()


def test_contexts(backends: Backends) -> None:
    @ct.kernel
    def kernel(X, Z):
        x = ct.load(X, (0,), (8,))
        with doubled(3) as six, contextlib.nullcontext(4) as four:
            x = x * six + four
        ct.store(Z, (0,), x)

    assert check(backends, kernel).tolist() == (np.arange(8) * 6 + 4).tolist()


def test_functions(backends: Backends) -> None:
    """Lambdas, recursion over constants, '*' and '**', defaults, bound methods, ':='."""

    @ct.kernel
    def kernel(X, Z, depth: ct.Constant):
        def power(x, n):
            return x * 0 + 1 if n == 0 else power(x, n - 1) * x

        def collect(*values, scale=1, **rest):
            return sum(values) * scale + rest["more"]

        x = ct.load(X, (0,), (8,))
        twice = (lambda f: lambda v: f(f(v)))(lambda v: v + 1)
        rest = {"more": (y := x + 1)}
        total = power(x, depth) + collect(1, 2, *(3, 4), scale=2, **rest) + y + twice(x)
        ct.store(Z, (0,), total)

    x = np.arange(8)
    assert check(backends, kernel, 3).tolist() == (x**3 + 20 + 2 * (x + 1) + x + 2).tolist()


def test_static(backends: Backends) -> None:
    @ct.kernel
    def kernel(X, Z, n: ct.Constant):
        x = ct.load(X, (0,), (8,))
        prime = ct.ensure_constant(ct.static_eval(first_prime_above(n) + len(x.shape)))
        for i in ct.static_iter(range(3)):
            ct.static_assert(i < 3)
            x = x + ct.full((2**i,), prime, ct.float32).shape[0]
        ct.store(Z, (0,), x * prime)

    assert check(backends, kernel, 7).tolist() == ((np.arange(8) + 7) * 12).tolist()


def test_refusals(backends: Backends) -> None:
    def endless(x):
        return endless(x)

    @ct.kernel
    def recursion(X, Z, n):
        ct.store(Z, (0,), ct.full((8,), endless(n), ct.float32))

    @ct.kernel
    def wrong_expression(X, Z, n):
        ct.static_eval(1 // 0)

    @ct.kernel
    def run_time_condition(X, Z, n):
        [k for k in (1, 2) if n > k]

    @ct.kernel
    def run_time_length(X, Z, n):
        list(range(n))

    @ct.kernel
    def run_time_constant(X, Z, n):
        ct.ensure_constant(n)

    x = np.zeros(8, np.float32)
    for kernel, kind, words in (
        (recursion, TileRecursionError, "has not ended after 256 calls"),
        (wrong_expression, TileStaticEvalError, "ZeroDivisionError"),
        (run_time_condition, TileTypeError, "condition of a comprehension must be a constant"),
        (run_time_length, TileTypeError, "needs a range of constants"),
        (run_time_constant, TileStaticAssertionError, "known at run time only"),
    ):
        with pytest.raises(kind, match=words):
            ct.launch(None, 1, kernel, (x, x.copy(), 3))


@pytest.mark.parametrize("flag", [True, False])
@pytest.mark.parametrize("n", [0, 2])
def test_truth_of_mixed_types(backends: Backends, n: int, flag: bool) -> None:
    """In a condition only the truth of the sides of 'and' and 'or' is asked, at run time and of constants."""

    @ct.kernel
    def kernel(X, Z, n, flag, one: ct.Constant):
        x = ct.load(X, (0,), (8,))
        if n and flag and one:
            x += 1
        if flag or n or not one:
            x += 10
        while not (n and flag) and n < 5:
            n += 3
            x += 100
        x += 1000 if n or (flag and one) else 0
        ct.store(Z, (0,), x)

    wanted, count = 1 * bool(n and flag) + 10 * bool(flag or n), n
    while not (count and flag) and count < 5:
        count += 3
        wanted += 100
    wanted += 1000 if count or flag else 0
    assert check(backends, kernel, n, flag, 1)[0] == wanted


@ct.kernel
def finds(x):
    t = ct.ones(4, ct.int32)
    ct.scatter(x, 0, 1 if 2 in (2, t) else 5)  # what comes behind the one that is found is not looked at
    ct.scatter(x, 1, 1 if 2 in (1, 2, t) else 5)
    ct.scatter(x, 2, 1 if 2 not in (2, t) else 5)


def test_in_ends_where_it_finds(backends: Backends) -> None:
    assert list(backends.run_all(finds, (1,), lambda: [np.zeros(3, np.int32)])[0]) == [1, 1, 5]


def test_errors_are_those_of_python_too() -> None:
    pair, place = (1, 2), "a"

    @ct.kernel
    def entry(x):
        pair[place]

    with pytest.raises(TypeError, match="indices must be integers"):
        ct.launch(None, 1, entry, (1,))
    with pytest.raises(TypeError, match="kernel entry, argument 'x': an object of type bytes"):
        ct.launch(None, 1, entry, (b"x",))
    with pytest.raises(ValueError, match="fits no dtype"):
        ct.launch(None, 1, entry, (2**70,))
