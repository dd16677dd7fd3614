"""Calls like one before: their ops are copies, and the kernel is the same."""

from __future__ import annotations

import ast
import gc
from typing import Any

import numpy as np
import pytest

from tilewright import collector, compute
from tilewright import compile as compiler
from tilewright.capture import inlining, loops, repeats, source
from tilewright.compute import launching
from tilewright.dtype import float32, int32
from tilewright.numba import intrinsics as cuda

ARRAY = ("array", "float32", 1, 4, (1,), ((1, 1),), True, False)
KEY = (ARRAY, ARRAY, ("scalar", "int64", 1))


def captured(function: Any) -> tuple[str, int]:
    """The text of a kernel of two arrays and an integer, and how many bodies of functions were captured for it."""
    bodies, run = [], inlining.returned_value
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inlining, "returned_value", lambda frame, name: (bodies.append(name), run(frame, name))[1])
        module = compiler.capture_kernel(launching.ComputeKernel(function), "sm_90a", KEY).module
    return module.text(), len(bodies)


def without_repeats(function: Any) -> tuple[str, int]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launching.COMPUTE, "repeats", False)
        return captured(function)


def twice_and(x, y):  # type: ignore[no-untyped-def]
    while x < y:
        x = x * 2 + y
    return x, x if y > 1 else y


def test_bodies_are_captured_once() -> None:
    def of_loads(x, y, n):  # type: ignore[no-untyped-def]
        for k in range(4):
            if n > k:
                a, b = twice_and(x[n + k], y[n + k])
                y[n + k] = a - b

    unrolled = without_repeats(of_loads)
    assert captured(of_loads)[0] == unrolled[0] and unrolled[1] == captured(of_loads)[1]  # a loop, not unrolled

    def of_tuples(x, y, n):  # type: ignore[no-untyped-def]
        for k in (0, 1, 2, 3):
            if n > k:
                a, b = twice_and(x[n + k], y[n + k])
                y[n + k] = a - b

    plain, found = without_repeats(of_tuples), captured(of_tuples)
    assert plain[1] == 4 and found[1] == 1 and found[0] == plain[0]


def test_what_a_call_gives_back_is_its_own_operand() -> None:
    def second(a, b):  # type: ignore[no-untyped-def]
        return b, (a, b + a)

    def kernel(x, y, n):  # type: ignore[no-untyped-def]
        p, (q, r) = second(x[n], y[n])
        s, (t, u) = second(p, r)
        v, (w, z) = second(u, s)
        y[n] = q + t * u - v / w + z

    plain, found = without_repeats(kernel), captured(kernel)
    assert found[0] == plain[0] and found[1] < plain[1]


def test_operands_that_are_one_value_or_other_constants_are_not_alike() -> None:
    def difference(a, b, c):  # type: ignore[no-untyped-def]
        return (a - b) * c

    def kernel(x, y, n):  # type: ignore[no-untyped-def]
        a, b = x[n], y[n]
        y[n] = difference(a, a, 1) + difference(a, b, 1) + difference(a, b, 2) + difference(b, a, 1.0)
        y[n + 1] = difference(b, b, 0.0) + difference(a, b, -0.0) + difference(n, int32(3), 2)

    plain, found = without_repeats(kernel), captured(kernel)
    assert found[0] == plain[0] and found[1] == plain[1]


def test_arrays_of_a_function_are_its_own() -> None:
    """Each call has shared memory of its own, and parts of arrays are not taken for each other."""

    def through(value):  # type: ignore[no-untyped-def]
        held = cuda.shared.array(32, float32)
        held[cuda.threadIdx.x] = value
        cuda.syncthreads()
        return held[31 - cuda.threadIdx.x]

    def at(part, i):  # type: ignore[no-untyped-def]
        return part[i]

    def kernel(x, y, n):  # type: ignore[no-untyped-def]
        y[n] = through(x[n]) + through(x[n + 1]) + at(x[n:], n) + at(y[n:], n) + at(x[n + 1 :], n + 1)

    plain, found = without_repeats(kernel), captured(kernel)
    assert found[0] == plain[0] and found[0].count("tile.shared_array") == 2


def test_values_of_a_branch_are_not_used_in_another() -> None:
    """A function made in a branch is what a call there is named by; what it needs cannot be seen elsewhere."""

    def kernel(x, y, n):  # type: ignore[no-untyped-def]
        if n > 0:
            part = x[n:]
            y[n] = first_of(part, n) + first_of(part, n + 1)
        else:
            part = x[1:]
            y[n] = first_of(part, n) + first_of(part, n + 1)

    def first_of(part, i):  # type: ignore[no-untyped-def]
        return part[i] + part[0]

    plain, found = without_repeats(kernel), captured(kernel)
    assert found[0] == plain[0] and found[1] == 2 and plain[1] == 4


def test_operators_with_arrays_of_their_own_read_those_of_each_call() -> None:
    """Which arrays an operator reads is not among its operands: nothing is kept of such calls."""
    table, x = np.arange(8, dtype=np.float32), np.arange(8, dtype=np.float32)
    out, kept = np.zeros(8, np.float32), repeats.Repeats.spoil
    spoilt = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repeats.Repeats, "spoil", lambda self: (spoilt.append(1), kept(self)))
        compute.unary_transform(x, out, lambda v: table[int(v)] * v, 8)
    assert (out == table * x).all() and spoilt


def test_the_collector_waits_until_all_captures_are_done() -> None:
    assert gc.isenabled()
    with collector.paused():
        assert not gc.isenabled()
        with pytest.raises(ZeroDivisionError), collector.paused():
            _ = 1 // 0
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_collector_that_is_off_stays_off() -> None:
    gc.disable()
    try:
        with collector.paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_capture_pauses_the_collector() -> None:
    seen: list[bool] = []

    class Asks:
        def __call__(self) -> None:
            pass

        def __tw_call__(self, frame: Any) -> None:
            seen.append(gc.isenabled())

    asks = Asks()

    def kernel(x, y, n):  # type: ignore[no-untyped-def]
        asks()

    captured(kernel)
    assert seen == [False]


def test_functions_of_the_kernel_are_alike_by_what_their_names_stand_for() -> None:
    """What a name stands for may change between two calls, and may be an operand of one."""

    def both(of, a, b):  # type: ignore[no-untyped-def]
        return of(a) + of(b)

    def kernel(x, y, n):  # type: ignore[no-untyped-def]
        factor, at = x[n], n

        def scaled(v):  # type: ignore[no-untyped-def]
            return v * factor + x[at]

        def again(v):  # type: ignore[no-untyped-def]
            return scaled(v) - 1

        total = scaled(y[n]) + scaled(y[n + 1]) + again(y[n + 2]) + again(y[n + 3])
        total += both(scaled, y[n], y[n + 1]) + both(scaled, total, y[n])
        factor = y[n]
        total += scaled(x[n]) + again(factor) + scaled(factor)
        at = n + 1
        total += both(scaled, x[n], x[n]) + both(again, y[n], y[n + 1]) + both(lambda v: v + at, total, total)
        factor = 2
        y[n] = total + scaled(x[n]) + both(lambda v: v + at, total, y[n])

    plain, found = without_repeats(kernel), captured(kernel)
    assert found[0] == plain[0] and found[1] < plain[1]


def test_functions_of_loops_and_branches() -> None:
    def kernel(x, y, n):  # type: ignore[no-untyped-def]
        here = n
        for k in range(3):

            def moved(v):  # type: ignore[no-untyped-def]
                return v + x[here + k]  # noqa: B023

            if n > 5:
                y[k] = moved(x[k]) + moved(y[k])
            else:
                here = here + 1
                y[k] = moved(x[k]) + moved(y[k])

    assert captured(kernel)[0] == without_repeats(kernel)[0]


def test_a_function_that_calls_itself() -> None:
    def power(v, n):  # type: ignore[no-untyped-def]
        return v * power(v, n - 1) if n > 0 else v

    def kernel(x, y, n):  # type: ignore[no-untyped-def]
        def times(v, n):  # type: ignore[no-untyped-def]
            return v * times(v, n - 1) if n > 0 else v

        y[n] = power(x[n], 3) + power(y[n], 3) + times(x[n], 2) + times(y[n], 2)

    assert captured(kernel)[0] == without_repeats(kernel)[0]


def test_rows_of_a_tile_are_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of scans and selections: a row's code is captured once, or once more where its neighbours are other constants;
    so are the steps in which the lanes of a warp join."""
    bodies: dict[str, list[str]] = {}
    run, compile_one = inlining.returned_value, launching.ComputeKernel._compiled

    def captured_only(kernel: Any, plain: Any) -> Any:
        names = bodies[kernel.name] = []
        monkeypatch.setattr(inlining, "returned_value", lambda frame, name: (names.append(name), run(frame, name))[1])
        return compile_one(kernel, plain)

    monkeypatch.setattr(launching.ComputeKernel, "_compiled", captured_only)
    compute.clear_all_caches()
    x, count = np.zeros(8, np.int16), np.zeros(1, np.int16)
    compute.make_inclusive_scan(x, x, lambda a, b: a + b, None, compute_capability=90)
    compute.make_select(x, x, count, lambda v: v > 3, compute_capability=90)
    compute.clear_all_caches()
    scan, part = bodies["scan_tiles"], bodies["part_tiles"]
    loaded_and_stored = [scan.count(name) for name in ("row", "guarded", "held_row", "put_row")]
    assert loaded_and_stored == [1, 1, 1, 1] and scan.count("in_row") == 2 and scan.count("behind") == 1
    assert [part.count(name) for name in ("of_row", "put_row", "put", "cut")] == [1, 1, 1, 1]
    assert len(scan) < 70 and len(part) < 80


def test_a_loop_is_walked_once_for_all_its_names(monkeypatch: pytest.MonkeyPatch) -> None:
    (loop,) = ast.parse("while n > 0:\n    if n > 1:\n        use(last)\n    last = n\n    n = n - other").body
    walked, names_in = [], source._names_in
    monkeypatch.setattr(source, "_names_in", lambda node: (walked.append(node), names_in(node))[1])
    assert isinstance(loop, ast.While)
    assert [source.is_read_round(loop, name) for name in ("last", "n", "other", "use", "none")] == [
        True,
        True,
        False,
        True,
        False,
    ]
    assert walked == loop.body


def test_rounds_of_blocks_that_stay_are_captured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A round is nearly all of a kernel: a variable of one that is another one's in a branch would cost it twice."""
    settled: list[tuple[str, bool]] = []
    ask = loops._Loop.is_settled

    def asked(loop: Any) -> bool:
        found = ask(loop)
        settled.append((loop.frame.source.name, found))
        return found

    monkeypatch.setattr(loops._Loop, "is_settled", asked)
    compute.clear_all_caches()
    x, count = np.zeros(8, np.int16), np.zeros(2, np.int16)
    compute.make_inclusive_scan(x, x, lambda a, b: a + b, None, compute_capability=90)
    compute.make_three_way_partition(x, x, x, x, count, lambda v: v > 3, lambda v: v < 0, compute_capability=90)
    compute.clear_all_caches()
    assert [row for row in settled if row[0] in ("scan_tiles", "part_tiles")] == [
        ("scan_tiles", True),
        ("part_tiles", True),
    ]
