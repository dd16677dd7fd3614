"""Many threads at once: kernels that they share, what is compiled, forgotten and refused meanwhile, their own arrays.

Each test says what every thread must find, however the others come in between. A Python without a GIL has them run at
the same time; one with a GIL changes threads after a few instructions here. `compute` has a file of its own
(test/compute/test_threads.py).
"""

from __future__ import annotations

import ast
import collections
import dataclasses
import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright
from threads import at_once
from tilewright import _core, compute, device, numba
from tilewright import compile as compiler
from tilewright import tile as ct
from tilewright.capture.source import source_of
from tilewright.errors import LaunchError, TileTypeError, TileValueError
from tilewright.kernel import _watch
from tilewright.numba import cuda as numba_cuda


@pytest.fixture(autouse=True)
def often() -> Iterator[None]:
    """A thread gives way after a few instructions: what two threads do is interleaved."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def floats(count: int, start: int = 0) -> Any:
    return np.arange(start, start + count, dtype=np.float32)


# --- the GIL --------------------------------------------------------------------------------------------------

HAS_GIL = 'getattr(sys, "_is_gil_enabled", lambda: True)()'


@pytest.mark.parametrize("modules", ["tilewright._core", "tilewright.compute, tilewright.numba, tilewright.device"])
def test_the_import_does_not_turn_the_gil_on(modules: str) -> None:
    """Where there is one it is on before."""
    program = f"import sys; import numpy; before = {HAS_GIL}; import {modules}; print(before == {HAS_GIL})"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHON_GIL"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.stdout == "True\n", done.stdout + done.stderr


# --- one kernel -----------------------------------------------------------------------------------------------


def test_the_first_launch_of_all_threads() -> None:
    @ct.kernel
    def twice(X, Y):
        ct.store(Y, ct.bid(0), ct.load(X, ct.bid(0), 16) * 2)

    def work(i: int) -> None:
        x, y = floats(64, i), np.zeros(64, np.float32)
        ct.launch(None, (4,), twice, (x, y))
        np.testing.assert_array_equal(y, 2 * x)

    at_once(work)
    assert len(twice.variants()) == 1


def test_threads_that_ask_for_the_same_compile_it_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The others find it in the disk cache; what another thread reads otherwise is another program."""
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    built, build, more = [], compiler.build, threading.Event()

    def slow(*args: Any) -> Any:
        built.append(args)
        more.wait(0.2 if len(built) == 1 else 0)  # for others to come
        return build(*args)

    monkeypatch.setattr(compiler, "build", slow)

    @ct.kernel
    def thrice(X, Y):
        ct.store(Y, ct.bid(0), ct.load(X, ct.bid(0), 16) * 3)

    def work(i: int) -> None:
        x, y = floats(64, i), np.zeros(64, np.float32)
        ct.launch(None, (4,), thrice, (x, y))
        np.testing.assert_array_equal(y, 3 * x)

    at_once(work)
    assert len(built) == 1 and len(thrice.variants()) == 1


Pair = collections.namedtuple("Pair", "first second")


@dataclasses.dataclass
class Both:
    first: Any
    second: Any


def test_specializations_of_one_kernel() -> None:
    """By dtypes, constants of all kinds and structures; half of the threads forget all of them again and again."""

    @ct.kernel
    def kernel(X, Y, by, how: ct.Constant, more):
        x = ct.load(X, ct.bid(0), 16) * by
        if how == "shifted":
            x = x + 7
        ct.store(Y, ct.bid(0), x + more[0] + more[1])

    def work(i: int) -> None:
        for step in range(40):
            dtype = (np.float32, np.float64, np.int32)[(i + step) % 3]
            how = ("shifted", "plain", ("plain",), 5, None)[(i * step) % 5]
            more = ((1, 2), [1, 2], Pair(1, 2))[step % 3]
            x, y = (floats(32) + i).astype(dtype), np.zeros(32, dtype)
            ct.launch(None, (2,), kernel, (x, y, 3, how, more))
            np.testing.assert_array_equal(y, x * 3 + (7 if how == "shifted" else 0) + 3)
            if i % 2 and step % 8 == 7:
                kernel.clear_variants()
                assert all(target == "cpu" and len(key) == 5 for target, key, _ in kernel.variants())

    at_once(work)


def test_structures_are_told_apart() -> None:
    """A named tuple is no plain one, whichever comes first."""

    @ct.kernel
    def named(Y, pair):
        ct.store(Y, 0, ct.full((16,), pair.first * 10 + pair.second, np.float32))

    def work(i: int) -> None:
        for _ in range(5):
            y = np.zeros(16, np.float32)
            ct.launch(None, 1, named, (y, (Pair, Both)[i % 2](i, 1)))
            assert (y == 10 * i + 1).all()
            with pytest.raises(tilewright.errors.TileError, match="first"):
                ct.launch(None, 1, named, (y, (i, 1)))

    at_once(work)


def test_few_variants_are_kept() -> None:
    """Each launch of another variant pushes one out, which another thread may be running."""

    @ct.kernel
    def add(X, Y, n: ct.Constant):
        ct.store(Y, 0, ct.load(X, 0, 16) + n)

    for n in range(6):
        x, y = floats(16), np.zeros(16, np.float32)
        ct.launch(None, 1, add, (x, y, n))
    ready = {key[2][1]: variant for _, key, variant in add.variants()}
    few = _core.Dispatcher("few", ["X", "Y", "n"], [2], lambda _, __, key: ready[key[2][1]], False, None, 2)

    def work(i: int) -> None:
        x, y = floats(16, i), np.zeros(16, np.float32)
        for step in range(300):
            n = (i * 7 + step * 5) % 6
            _core.launch(None, 1, few, (x, y, n))
            assert y[0] == x[0] + n and y[15] == x[15] + n
            assert len(few.variants()) <= 2

    at_once(work)


factor = 1


def test_a_variable_changes_meanwhile() -> None:
    """A launch sees what the variable was or is; behind the last change it sees that."""
    global factor

    @ct.kernel
    def times(X, Y):
        ct.store(Y, 0, ct.load(X, 0, 16) * factor)

    def work(i: int) -> None:
        global factor
        x, y = floats(16, 1), np.zeros(16, np.float32)
        for step in range(12):
            if i == 0:
                factor = 1 + step % 3
            ct.launch(None, 1, times, (x, y))
            assert y[0] in (1, 2, 3) and (y == x * y[0]).all()

    at_once(work, 4)
    for factor in (5, 6):
        x, y = floats(16, 1), np.zeros(16, np.float32)
        ct.launch(None, 1, times, (x, y))
        np.testing.assert_array_equal(y, x * factor)


def test_threads_that_read_different_values() -> None:
    """One compiles with a value, another one with the next, and both are told to the kernel before it has either."""
    global factor
    factor = 1

    @ct.kernel
    def times(X, Y, n: ct.Constant):
        ct.store(Y, 0, ct.load(X, 0, 16) * factor)

    target, key = times.specialization((floats(16), floats(16), 1))
    first = compiler.compile_kernel(times, target, key)
    factor = 2
    second = compiler.compile_kernel(times, target, key)
    made = iter([first, second])

    def miss(kernel: Any, target: str, key: Any) -> Any:
        variant, reads = next(made)
        _watch(kernel, reads)
        _watch(kernel, second[1])  # the other thread
        return variant

    both = _core.Dispatcher("both", ["X", "Y", "n"], [2], miss)
    x, y = floats(16, 1), np.zeros(16, np.float32)
    for _ in range(3):
        _core.launch(None, 1, both, (x, y, 1))
    np.testing.assert_array_equal(y, 2 * x)
    assert [(name, value) for _, name, value in both.watched] == [("factor", 2)]


def test_errors_meanwhile() -> None:
    """A thread hears of its own mistake, and of no other one's."""

    @ct.kernel
    def kernel(X, Y, T: ct.Constant[int]):
        ct.static_assert(T != 3)
        ct.store(Y, 0, ct.load(X, 0, 16) + T)

    wrong = [
        (TileValueError, "static assertion failed", lambda x, y: (x, y, 3)),
        (TileTypeError, "argument 'X'", lambda x, y: (object(), y, 1)),
        (TileTypeError, r"takes 3 argument\(s\)", lambda x, y: (x, y)),
        (LaunchError, "which is read-only", lambda x, y: (x, locked(y), 1)),
    ]

    def locked(y: Any) -> Any:
        y = y.copy()
        y.flags.writeable = False
        return y

    def work(i: int) -> None:
        x, y = floats(16, i), np.zeros(16, np.float32)
        for step in range(40):
            if (i + step) % 2:
                kind, text, given = wrong[(i + step) // 2 % 4]
                with pytest.raises(kind, match=text):
                    ct.launch(None, 1, kernel, given(x, y))
            else:
                ct.launch(None, 1, kernel, (x, y, 1 + step % 2))
                np.testing.assert_array_equal(y, x + 1 + step % 2)

    at_once(work)


def test_a_kernel_is_initialized_once() -> None:
    """Of all threads that do it one succeeds; who launches meanwhile is told that it is not."""
    for _ in range(20):
        new = _core.Dispatcher.__new__(_core.Dispatcher)

        def work(i: int, new: Any = new) -> bool:
            try:
                if i % 2:
                    _core.Dispatcher.__init__(new, "new", ["a", "b"], [], print)
                else:
                    _core.launch(None, 1, new, ())
            except (RuntimeError, TypeError, tilewright.errors.TileError) as error:
                assert any(text in str(error) for text in ("once", "not initialized", "takes 2 argument(s)"))
                return False
            return True

        assert sum(at_once(work)) == 1
        assert new.parameters == ("a", "b")


# --- kernels of threads, of Numba's kind, and with hints ----------------------------------------------------------


def test_kernels_of_threads() -> None:
    @device.kernel
    def fill(out: Any, a: Any) -> None:
        i = device.block_idx.x * device.block_dim.x + device.thread_idx.x
        if i < out.shape[0]:
            out[i] = a * i

    def work(i: int) -> None:
        for n in (5, 64, 1000):
            out = np.zeros(n, (np.int64, np.float32)[i % 2])
            device.launch(fill, out, i, grid=-(-n // 64), block=64)
            np.testing.assert_array_equal(out, i * np.arange(n))

    at_once(work)


TABLE = np.array([3, 1, 4, 1, 5], np.int64)


def test_kernels_of_numba() -> None:
    """With arrays from outside, for which a kernel gets parameters of its own, and functions that others call."""

    @numba_cuda.jit(device=True)
    def own(v: Any) -> Any:
        return v + TABLE[v % 5]

    @numba_cuda.jit
    def kernel(x: Any, y: Any) -> None:
        i = numba_cuda.grid(1)
        if i < x.size:
            y[i] = own(x[i])

    @numba.vectorize
    def squared(v):
        return v * v

    def work(i: int) -> None:
        for n in (3, 200):
            x = np.arange(n) + i
            y = np.zeros_like(x)
            kernel[-(-n // 32), 32](x, y)
            np.testing.assert_array_equal(y, x + TABLE[x % 5])
            values = x.astype((np.float32, np.float64, np.int64)[i % 3])
            np.testing.assert_array_equal(np.asarray(squared(values)), values * values)

    at_once(work)


def test_equal_hints_give_one_kernel() -> None:
    @ct.kernel
    def copy(X, Y):
        ct.store(Y, 0, ct.load(X, 0, 16))

    def work(i: int) -> list[Any]:
        x, y = floats(16, i), np.zeros(16, np.float32)
        ct.launch(None, 1, copy, (x, y), hints={"num_warps": 8})
        np.testing.assert_array_equal(x, y)
        return [copy.replace_hints(num_warps=n) for n in (2, 4, 8)]

    assert len({tuple(map(id, row)) for row in at_once(work)}) == 1


# --- arrays -------------------------------------------------------------------------------------------------------


def test_arrays_come_and_go() -> None:
    """Arrays of our own, their parts, and what other libraries take of them, which outlives them."""

    @ct.kernel
    def add(X, Y):
        ct.store(Y, 0, ct.load(X, 0, 32) + 1)

    shared = tilewright.to_device(floats(32), device="cpu")

    def work(i: int) -> None:
        kept = []
        for step in range(50):
            own = tilewright.to_device(floats(64, i), device="cpu")
            ct.launch(None, 1, add, (own[step % 8 :], out := tilewright.to_device(np.zeros(32, np.float32))))
            np.testing.assert_array_equal(np.asarray(out), floats(32, i + step % 8) + 1)
            kept = [*kept[-5:], np.from_dlpack(own[1:]), np.from_dlpack(shared[i:])]
            assert kept[-1][0] == i and kept[0].sum() >= 0
        del own, out
        gc.collect()
        assert all(array.size for array in kept)

    at_once(work)


def test_types_of_arrays_that_nobody_has_seen() -> None:
    """More types than are remembered, each in several threads."""

    @ct.kernel
    def add(X, Y):
        ct.store(Y, 0, ct.load(X, 0, 16) + 1)

    kinds = [type(f"Array{n}", (np.ndarray,), {}) for n in range(100)]

    def work(i: int) -> None:
        for kind in kinds[:: 1 if i % 2 else -1]:
            x, y = floats(16, i).view(kind), np.zeros(16, np.float32)
            ct.launch(None, 1, add, (x, y))
            assert y[3] == i + 4

    at_once(work)


# --- plans of calls -------------------------------------------------------------------------------------------------


def test_plans_are_made_and_used_meanwhile() -> None:
    """Of one object for initial values of several types and arrays on several addresses."""

    def add(a, b):
        return a + b

    x = np.arange(4)
    made = compute.make_reduce_into(x, np.zeros(1, np.int64), add, np.int64(0))

    def work(i: int) -> None:
        for step in range(120):
            n = (1, 5, 3000, 70)[(i + step) % 4]
            given, out = np.arange(n + 1)[(i + step) % 2 :][:n], np.zeros(1, np.int64)
            values = (given, out, add, n, np.int64(i))
            made(np.zeros(made(None, *values), np.uint8), *values)
            assert out[0] == given.sum() + i

    at_once(work)
    assert 1 <= made.plans <= 8


# --- the compiler's objects -----------------------------------------------------------------------------------------


def test_modules_and_builders() -> None:
    """A module that all threads have is one thread's at a time; a builder may say that it is another thread's."""

    @ct.kernel
    def copy(X, Y):
        ct.store(Y, 0, ct.load(X, 0, 16))

    target, key = copy.specialization((floats(16), floats(16)))
    module = copy.capture(target, key)
    expected = module.text()
    builder = _core.Builder("here.py")

    def work(i: int) -> int:
        for _ in range(20):
            assert module.text() == expected and copy.capture(target, key).text() == expected
            module.verify()
            assert module.attribute("nothing") is None
        appended = 0
        for _ in range(50):
            try:
                appended += builder.constant("i32", i) is not None
            except RuntimeError as error:
                assert "thread" in str(error)
        return appended

    appended = sum(at_once(work))
    text = builder.finish().text()
    assert text.count("arith.constant") == appended


def test_one_thread_at_a_time_makes_a_syntax_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    """CPython 3.11 takes the depth of another thread's tree for that of its own."""
    parse, inside, most = ast.parse, [0], [0]

    def watched(*args: Any, **options: Any) -> Any:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        time.sleep(0.01)
        try:
            return parse(*args, **options)
        finally:
            inside[0] -= 1

    functions = [_add_0, _add_1, _add_2, _add_3]
    monkeypatch.setattr(ast, "parse", watched)
    trees = at_once(lambda i: source_of(functions[i]).tree.name, len(functions))
    assert trees == [f"_add_{i}" for i in range(len(functions))] and most == [1]


def _add_0(x: Any) -> Any:
    return x


def _add_1(x: Any) -> Any:
    return x + 1


def _add_2(x: Any) -> Any:
    return x + 2


def _add_3(x: Any) -> Any:
    return x + 3
