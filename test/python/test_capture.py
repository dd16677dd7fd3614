"""What Python becomes in the tile dialect: the ops by name, and results against Python itself."""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import math
import os
import re
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright import tile as ct
from tilewright.capture import (
    Argument,
    ArrayArgument,
    ConstantArgument,
    ScalarArgument,
    capture,
    loops,
    parameters,
    source,
)
from tilewright.capture.source import source_of
from tilewright.errors import TileTypeError
from tilewright.numba import cuda

MATRIX = ArrayArgument(ct.bfloat16, 2, 16, (16, 1), ((0, 8), (1, 1)))
VECTOR = ArrayArgument(ct.float32, 1, 16, (16,), ((1, 1),))
N = ScalarArgument(ct.int32)

SCALE = 2.5
SHAPE = [4, 8]


def text_of(function: Callable[..., None], *arguments: Argument, **attributes: Any) -> str:
    module = capture(function, arguments, "sm_90a", attributes).module
    return str(module.text())


def lines(function: Callable[..., None], *arguments: Argument) -> list[str]:
    """The ops of the body, without the values' names."""
    text = text_of(function, *arguments)
    body = text.split("tile.kernel} {\n", 1)[1].rsplit("    return", 1)[0]
    return [re.sub(r"^%\S+ = |%\S+?:\d+ = ", "", line.strip()) for line in body.splitlines()]


def run(function: Callable[..., None], *args: Any, count: int = 16) -> list[float]:
    """Run on the CPU with an output of `count` int32 in front of the arguments."""
    out = np.zeros(count, np.int32)
    ct.launch(None, 1, ct.kernel(function), (out, *args))
    expected = np.zeros(count, np.int32)
    ct.kernel(function).interpret(1, (expected, *args))
    assert out.tolist() == expected.tolist()
    return list(out.tolist())


def put(Z, i, value):
    """Called from the kernels of this file."""
    ct.scatter(Z, i, value)


# ---------------------------------------------------------------------------------------------
# The kernel itself


def test_parameters_and_facts() -> None:
    def kernel(A, n, f, T):
        pass

    text = text_of(kernel, MATRIX, ScalarArgument(ct.int64, 16), ScalarArgument(ct.float32), ConstantArgument(4))
    assert 'module attributes {tile.target = "sm_90a"}' in text
    assert (
        "func.func @kernel(%arg0: memref<?x?xbf16, strided<[?, 1]>> {tile.align = 16 : i32, "
        "tile.shape_div = array<i64: 16, 1>, tile.stride_div = array<i64: 8, 1>}, "
        "%arg1: i64 {tile.div = 16 : i32}, %arg2: f32) attributes {tile.kernel}"
    ) in text


def test_array_types() -> None:
    def kernel(A, B, C):
        pass

    text = text_of(
        kernel,
        ArrayArgument(ct.uint8, 0, 1),
        ArrayArgument(ct.float16, 1, 2, (1,), ((0, 1),)),
        ArrayArgument(ct.float8_e4m3fn, 3, 16, (1, 1, 1), ((0, 1), (1, 1), (0, 16))),
    )
    assert "%arg0: memref<ui8> {tile.align = 1 : i32}" in text
    assert "%arg1: memref<?xf16, strided<[?]>>" in text
    assert "%arg2: memref<?x?x?xf8E4M3FN, strided<[?, 1, ?]>>" in text


def test_attributes_of_the_module() -> None:
    def kernel():
        pass

    assert "num_warps" not in text_of(kernel)
    assert "{num_warps = 8 : i32}" in text_of(kernel, num_warps=8)


def test_what_is_written() -> None:
    def kernel(A, B, C):
        ct.store(C, 0, ct.load(A, 0, 4))
        ct.scatter(B, ct.arange(4, dtype=ct.int32), 1.0)

    assert capture(kernel, [VECTOR] * 3, "cpu").written == 0b110


def test_locations() -> None:
    def helper(x):
        return x + 1

    def kernel(n):
        helper(n)

    first = kernel.__code__.co_firstlineno
    text = str(capture(kernel, [N], "cpu").module.text(True))
    assert re.search(rf'test_capture.py":{first - 2}:16 to :21', text)
    assert re.search(rf'test_capture.py":{first + 1}:9 to :18', text)
    assert "callsite" in text


def test_gemm_is_a_plain_loop() -> None:
    def matmul(A, B, C, TM, TN, TK):
        i, j = ct.bid(0), ct.bid(1)
        acc = ct.zeros((TM, TN), dtype=ct.float32)
        for k in range(ct.num_tiles(A, axis=1, shape=(TM, TK))):
            a = ct.load(A, index=(i, k), shape=(TM, TK), padding_mode=ct.PaddingMode.ZERO)
            b = ct.load(B, index=(k, j), shape=(TK, TN), padding_mode=ct.PaddingMode.ZERO)
            acc = ct.mma(a, b, acc)
        ct.store(C, index=(i, j), tile=acc.astype(C.dtype))

    ops = lines(matmul, MATRIX, MATRIX, MATRIX, *(ConstantArgument(n) for n in (128, 128, 64)))
    assert [re.sub(r"%\S+", "%", op).split(" ")[0] for op in ops] == [
        "tile.block_id",
        "tile.block_id",
        "arith.constant",
        "tile.dim",
        "arith.constant",
        "tile.ceildiv",
        "arith.constant",
        "arith.constant",
        "scf.for",
        "tile.load",
        "tile.load",
        "tile.mma",
        "scf.yield",
        "}",
        "tile.cast",
        "tile.store",
    ]
    loop = next(op for op in ops if op.startswith("scf.for"))
    assert "-> (tensor<128x128xf32>)  : i32 {" in loop and loop.count("iter_args") == 1


# ---------------------------------------------------------------------------------------------
# Constants


def test_constants_fold_in_python() -> None:
    def kernel(T):
        twelve = 5 + 7
        half = 2**-1
        ct.static_assert(twelve == 12 and half == 0.5 and 7 // 2 == 3 and -7 % 3 == 2)
        ct.static_assert(1 << 40 == 1099511627776 and ~5 == -6 and not (3 & 4))
        ct.static_assert((T, 4) == (128, 4) and (T, 4) != (4, T) and T in (64, 128))
        ct.static_assert(min(T, 3) == 3 and max(1, 2, 3) == 3 and abs(-4) == 4 and len((1, 2)) == 2)
        ct.static_assert(ct.cdiv(9, 4) == 3 and int(3.7) == 3 and float(2) == 2.0 and bool(3))
        ct.static_assert(math.log2(T) == 7.0 and math.ceil(0.5) == 1 and T.bit_length() == 8)
        ct.static_assert(isinstance(T, int) and pow(2, 5) == 32 and divmod(7, 2) == (3, 1))
        ct.static_assert(f"{T:>5}" == "  128" and "a" + "b" == "ab")
        ct.static_assert(math.prod((2, 3)) == 6 and sum((1, 2, 3)) == 6)

    assert lines(kernel, ConstantArgument(128)) == []


@pytest.mark.spec("T-041", "T-042", "T-043")
def test_a_constant_has_a_dtype() -> None:
    def kernel():
        a = 0
        ct.static_assert(a.dtype == ct.int32 and a.shape == () and a.ndim == 0)
        ct.static_assert((3.14).dtype == ct.float32 and True.dtype == ct.bool_)

    assert lines(kernel) == []


def test_constants_take_the_other_operand_s_dtype() -> None:
    def kernel(A):
        x = ct.load(A, (0, 0), (4, 8))
        ct.store(A, (0, 0), (x + 1) * 0.5)

    ops = lines(kernel, MATRIX)
    assert "arith.constant 1.000000e+00 : bf16" in ops and "arith.constant 5.000000e-01 : bf16" in ops
    assert not any("tile.cast" in op for op in ops)


def test_unsigned_constants() -> None:
    def kernel(n):
        ct.print(n + 4294967295)

    assert any("tile.constant 4294967295 : ui32" in op for op in lines(kernel, ScalarArgument(ct.uint32)))


def test_globals_and_closures() -> None:
    rows = 4
    shape = (rows, 8)

    def kernel(A):
        x = ct.load(A, (0, 0), shape)
        y = ct.load(A, (0, 0), SHAPE) * SCALE
        ct.store(A, (0, 0), x + y)

    captured = capture(kernel, [MATRIX], "cpu")
    assert "arith.constant 2.500000e+00 : bf16" in captured.module.text()
    read = {name: value for _, name, value in captured.reads}
    assert read["SCALE"] == 2.5 and read["shape"] == (4, 8) and read["SHAPE"] is SHAPE


def test_numpy_scalars_are_typed() -> None:
    two = np.float64(2)

    def kernel(n):
        ct.static_assert((n * two).dtype == ct.float64)
        ct.static_assert((n * np.int64(3)).dtype == ct.int64)

    text_of(kernel, N)


def test_dead_branches_are_not_captured() -> None:
    def kernel(A, CAUSAL):
        if CAUSAL:
            ct.zeros((3,), ct.float32)
        elif A.dtype == ct.bfloat16 and A.ndim == 2:
            ct.store(A, (0, 0), ct.zeros((4, 4), ct.bfloat16))
        else:
            nonsense()  # noqa: F821
        x = 1 if not CAUSAL else nonsense()  # noqa: F821
        return_early = x == 1
        if return_early:
            return
        nonsense()  # noqa: F821

    assert [op.split(" ")[0] for op in lines(kernel, MATRIX, ConstantArgument(False))] == [
        "arith.constant",
        "arith.constant",
        "arith.constant",
        "tile.store",
    ]


# ---------------------------------------------------------------------------------------------
# Branches


def test_if_gives_only_what_differs() -> None:
    def kernel(n):
        x, y, z = n, n + 1, n + 2
        if n > 0:
            y = x * 2
        else:
            y = x * 3
            unused = x  # noqa: F841
        ct.print(x, y, z)

    ops = lines(kernel, N)
    branch = next(op for op in ops if "scf.if" in op)
    assert branch.endswith("-> (i32) {")
    assert not any("scf.yield" in op and "," in op for op in ops)


def test_if_without_results() -> None:
    def kernel(A, n):
        if n > 0:
            ct.store(A, 0, ct.zeros((4,), ct.float32))

    ops = lines(kernel, VECTOR, N)
    assert "} else {" not in ops and any(op.startswith("scf.if") and op.endswith("{") for op in ops)


def test_equal_constants_stay_constants() -> None:
    def kernel(n):
        if n > 0:
            size, other = 8, 4
        else:
            size, other = 8, 5
        ct.zeros((size,), ct.float32)
        ct.static_assert(other.dtype == ct.int32)

    text_of(kernel, N)


def test_constants_of_two_branches() -> None:
    """Equal ones of one type are one constant; zeros of two signs and numbers of two types are not equal."""

    def kernel(Z, n):
        if n > 0:
            same, zero, size = float("nan"), 0.0, int("64") * 16
        else:
            same, zero, size = float("nan"), -0.0, int("64") * 16
        ct.static_assert(same != same)
        ct.scatter(Z, 0, ct.sum(ct.ones((size,), ct.float32)))
        ct.scatter(Z, 1, 1 / zero)

    for n in (1, 0):
        z = np.zeros(2, np.float32)
        ct.launch(None, 1, ct.kernel(kernel), (z, n))
        assert list(z) == [1024, math.inf if n else -math.inf]

    def differ(n):
        if n > 0:
            x = True
        else:
            x = 1
        ct.print(x)

    with pytest.raises(TileTypeError, match="changes type in the branches"):
        text_of(differ, N)


def test_a_constant_that_the_other_branch_s_dtype_does_not_hold() -> None:
    def kernel(A, n):
        x = ct.load(A, (), ()).item()
        if n > 0:
            x = 1000
        ct.print(x)

    text_of(kernel, ArrayArgument(ct.int16, 0, 16, (), ()), N)
    with pytest.raises(TileTypeError, match="changes type in the branches"):
        text_of(kernel, ArrayArgument(ct.int8, 0, 16, (), ()), N)


def leave_on_one_side(n, m):
    for i in range(8):
        if n == i:
            if m == i:
                break
            n += 3
        else:
            if m > 12:
                break
        n += 10
    return n


def leave_or_go_on(n, m):
    k = 0
    for i in range(6):
        if n > i:
            k += 1
            break
        else:
            if m == i:
                break
            k += 5
        k += 100
    return k * 10 + n


def go_on_or_leave(n, m):
    k = 0
    for i in range(6):
        if n > i:
            if m == i:
                continue
            k += 7
        else:
            break
        k += 100
    return k


def leave_inside_of_a_side(n, m):
    k = 0
    for i in range(6):
        if n > i:
            k += 1
        else:
            if m == i:
                break
            k += 5
        if n == 3:
            if m < i:
                return k
        else:
            k += 30
        k += 100
    return k * 10


def return_or_not(n, m):
    if n > 2:
        if m > 2:
            return 11
        x = 5
    else:
        return 22
    return x + m


def return_on_both_sides(n, m):
    if n > 2:
        return 1
    else:
        if m > n:
            return 2
    m += 5
    if m > 9:
        m += n
    else:
        return m
    return m * 2


def another_type_where_it_returns(n, m):
    if n > 2:
        x = 2.5
        if x > 2:
            return 7
    else:
        x = n + m
    return x + 1


def another_type_where_it_does_not(n, m):
    if n <= 2:
        x = n + m
    else:
        x = True
        return 8
    return x + 1


@pytest.mark.parametrize(
    "function",
    [
        leave_on_one_side,
        leave_or_go_on,
        go_on_or_leave,
        leave_inside_of_a_side,
        return_or_not,
        return_on_both_sides,
        another_type_where_it_returns,
        another_type_where_it_does_not,
    ],
)
def test_ways_out_of_branches(function: Callable[[int, int], int]) -> None:
    def kernel(Z, n, m):
        put(Z, 0, function(n, m))

    for n, m in itertools.product((-1, 0, 1, 3, 5, 9), (0, 1, 3, 4, 13)):
        run(kernel, n, m, count=1)


def test_and_or_of_scalars() -> None:
    def kernel(n, m):
        ct.print((0 < n < 10 and m > 3) or n == m, not n)

    ops = lines(kernel, N, N)
    assert not any("scf.if" in op for op in ops)
    assert sum("tile.and" in op for op in ops) == 2 and sum("tile.or" in op for op in ops) == 1


def test_right_side_with_calls_is_guarded() -> None:
    def kernel(A, n):
        if n > 0 and ct.sum(ct.load(A, n, 4)) > 0:
            ct.print(n)

    ops = lines(kernel, VECTOR, N)
    guard = next(i for i, op in enumerate(ops) if op.startswith("scf.if"))
    assert guard < next(i for i, op in enumerate(ops) if op.startswith("tile.load"))


def test_and_or_give_an_operand() -> None:
    def kernel(Z, n, m):
        put(Z, 0, n and m)
        put(Z, 1, n or m)
        put(Z, 2, (n or 5) + 1)
        put(Z, 3, 0 if n and m else 1)

    for n, m in ((0, 7), (3, 0), (2, 9)):
        assert run(kernel, n, m, count=4) == [n and m, n or m, (n or 5) + 1, 0 if n and m else 1]


# ---------------------------------------------------------------------------------------------
# Loops


def test_loop_carries_only_what_changes() -> None:
    def kernel(A, n):
        x = ct.zeros((4,), ct.float32)
        y = ct.ones((4,), ct.float32)
        size = 4
        for i in range(n):
            t = ct.load(A, i, size)
            x = x + t * y
        ct.store(A, 0, x)

    loop = next(op for op in lines(kernel, VECTOR, N) if "scf.for" in op)
    assert "-> (tensor<4xf32>)  : i32" in loop


def test_break_makes_a_while_only_where_it_is_alive() -> None:
    def kernel(n, STOP):
        total = 0
        for i in range(n):
            if STOP and i > 5:
                break
            total += i
        ct.print(total)

    assert any("scf.for" in op for op in lines(kernel, N, ConstantArgument(False)))
    assert any("scf.while" in op for op in lines(kernel, N, ConstantArgument(True)))


def test_wide_bounds() -> None:
    def kernel(n, wide):
        for i in range(n):
            ct.static_assert(i.dtype == ct.int32)
        for i in range(wide):
            ct.static_assert(i.dtype == ct.int64)
        for i in range(2**40):
            ct.static_assert(i.dtype == ct.int64)

    text_of(kernel, N, ScalarArgument(ct.int64))


def test_loop_variable_takes_the_type_of_its_values() -> None:
    """A loosely typed constant before the loop adopts the type that the loop gives it."""

    def kernel(A, h, wide):
        count, last = 0, (0, 0.0)
        for i in range(4):
            count = count + wide
            last = (i, h)
        ct.static_assert(count.dtype == ct.int64 and last[1].dtype == ct.float16)
        ct.print(count, last)

    text_of(kernel, VECTOR, ScalarArgument(ct.float16), ScalarArgument(ct.int64))


@pytest.mark.parametrize("step", [1, 2, -1, -3])
def test_ranges(step: int) -> None:
    def kernel(Z, a, b, s, STEP: ct.Constant):
        i_sum = j_sum = k_sum = 0
        for i in range(a, b, STEP):
            i_sum = i_sum * 3 + i
        for j in range(a, b, s):
            j_sum = j_sum * 3 + j
        for k in range(a, b, s):
            if k == 4:
                break
            k_sum = k_sum * 3 + k
        put(Z, 0, i_sum)
        put(Z, 1, j_sum)
        put(Z, 2, k_sum)

    for a, b in ((0, 7), (7, 0), (3, 3), (-2, 5), (5, -6)):
        out = run(kernel, a, b, step, step, count=3)
        wanted = 0
        for i in range(a, b, step):
            wanted = wanted * 3 + i
        assert out[:2] == [wanted, wanted]


def test_nested_control_flow() -> None:
    def find(n, limit):
        """Returns from inside of two loops."""
        for i in range(n):
            j = 0
            while j < n:
                if i * j > limit:
                    return i, j
                if (i + j) % 2 == 0:
                    j += 2
                    continue
                j += 1
        return -1, -1

    def kernel(Z, n, limit):
        i, j = find(n, limit)
        put(Z, 0, i)
        put(Z, 1, j)
        total = 0
        for a in range(n):
            if a == 1:
                continue
            for b in range(a, n):
                if b % 3 == 2:
                    continue
                if b > limit:
                    break
                total += a * 10 + b
            else_value = 1
            total += else_value
        put(Z, 2, total)

    for n, limit in ((0, 0), (4, 2), (6, 7), (9, 100)):
        run(kernel, n, limit, count=3)


NESTS = {
    "break": ("for i{0} in range(n):", "if i{0} > 5: break", ""),
    "return": ("for i{0} in range(n):", "", "if n == 7: return"),
    "while": ("while n > 0:", "if n == {0}: break", "n = n - 1"),
}


@pytest.mark.parametrize("kind", NESTS)
def test_nested_loops_are_captured_a_few_times_each(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an inner loop has learnt is not learnt again each time that the loop around it is captured."""
    head, first, last = NESTS[kind]
    depth = 12
    text = ["def kernel(Z, n):"]
    for i in range(depth):
        text += ["    " * (i + 1) + head.format(i), "    " * (i + 2) + (first.format(i) or "pass")]
    text += ["    " * (depth + 1) + line for line in ("ct.scatter(Z, 0, n)", last or "pass")]
    (tmp_path / "nest.py").write_text("\n".join(text))
    names: dict[str, Any] = {"ct": ct}
    exec(compile((tmp_path / "nest.py").read_text(), str(tmp_path / "nest.py"), "exec"), names)
    captures = []
    once = loops._Loop.run_body
    monkeypatch.setattr(loops._Loop, "run_body", lambda loop: (captures.append(loop.line), once(loop)))
    assert text_of(names["kernel"], VECTOR, N).count("scf.while") == depth
    assert len(captures) <= depth * (depth + 3) / 2


def test_a_kept_plan_is_for_entries_of_one_form() -> None:
    """The inner loop is captured with a step of float32 and again of float16, and must carry a sum of float16."""

    def kernel(Z, n):
        step = 1.0
        for i in range(n):
            total = 0
            for _j in range(n):
                total = total + step
            put(Z, i, ct.astype(total, ct.int32))
            step = ct.float16(0.5)

    sums = [line for line in lines(kernel, VECTOR, N) if line.startswith("scf.for")]
    assert len(sums) == 2 and all(line.count("f16") == 1 for line in sums)


def test_returns_of_several_kinds() -> None:
    def sign(n):
        if n > 0:
            return 1
        if n < 0:
            return -1
        return 0

    def first(n, k):
        for i in range(n):
            if i * i >= k:
                return i
        return n

    def nothing(Z, n):
        if n > 2:
            return
        put(Z, 3, 7)

    def kernel(Z, n, k):
        put(Z, 0, sign(n))
        put(Z, 1, first(n, k))
        nothing(Z, n)
        while True:
            k -= 1
            if k < n:
                break
        put(Z, 2, k)
        if n == 2:
            return
        put(Z, 4, 1)

    for n, k in ((0, 5), (-3, 2), (5, 9), (2, 3)):
        run(kernel, n, k, count=5)


def test_while_conditions() -> None:
    def kernel(Z, n):
        a, b = 0, 1
        while a + b < n and not (a > 50 or b > 70):
            a, b = b, a + b
        put(Z, 0, a)
        put(Z, 1, b)
        left, right = 0, n
        while left < right:
            middle = (left + right) // 2
            if middle * middle < n:
                left = middle + 1
            else:
                right = middle
        put(Z, 2, left)

    for n in (0, 1, 10, 99, 1000):
        run(kernel, n, count=3)


# ---------------------------------------------------------------------------------------------
# Functions, tuples, names


def test_functions_of_every_kind() -> None:
    def default(x, y=3, *rest, scale=2, **more):
        ct.static_assert(len(rest) == 0)
        return (x + y) * scale

    @ct.function
    def marked(x):
        def inner(y, by=2):
            return y * by + x

        return inner(x) + inner(x, by=3)

    def kernel(Z, n):
        put(Z, 0, default(n))
        put(Z, 1, default(n, scale=5))
        put(Z, 2, marked(n))
        put(Z, 3, ct.add(n, y_of(n)))

    def y_of(n):
        return n // 2

    run(kernel, 7, count=4)


@pytest.mark.spec("T-149")
def test_tuples() -> None:
    def kernel(Z, n):
        pair = (n, n + 1)
        (a, b), *rest, last = (pair, 10, 20, 30)
        put(Z, 0, a * b + rest[0] + rest[-1] + last)
        swapped = pair[::-1] + (5,)  # noqa: RUF005
        put(Z, 1, swapped[0] * swapped[2])
        ct.static_assert(len(swapped) == 3 and (1, 2) * 2 == (1, 2, 1, 2))
        if pair == (3, 4):
            put(Z, 2, 1)
        for _ in range(3):
            pair = (pair[1], pair[0] + pair[1])
        put(Z, 3, pair[1])
        x, y = sorted_pair(n, 5)
        put(Z, 4, x * 100 + y)

    def sorted_pair(a, b):
        if a < b:
            return a, b
        return b, a

    run(kernel, 3, count=5)
    run(kernel, 9, count=5)


def test_star_arguments() -> None:
    def kernel(A):
        index = (0, 0)
        shape = (4, 8)
        x = ct.load(A, index, shape).reshape(*shape[::-1]).permute(1, 0)
        ct.static_assert(x.shape == (4, 8) and x.T.shape == (8, 4) and x.transpose(0, 1).shape == (8, 4))
        ct.static_assert(x[:, None].shape == (4, 1, 8) and x[None, ..., None].shape == (1, 4, 8, 1))
        total, most = ct.sum(x), ct.max(x, axis=(0, 1), keepdims=True)
        ct.static_assert(x.reshape(-1).shape == (32,) and total.shape == () and total.ndim == 0)
        ct.static_assert(most.item().shape == ())

    text_of(kernel, MATRIX)


def test_augmented_assignment_and_delete() -> None:
    def kernel(Z, n):
        x = n
        x += 2
        x *= 3
        x -= 1
        x //= 2
        x <<= 2
        x |= 1
        x ^= 7
        x %= 50
        y: int = x
        del x
        put(Z, 0, y)

    run(kernel, 12, count=1)


def test_rebinding_a_parameter_or_a_builtin_name() -> None:
    def kernel(Z, n):
        max = n + 1
        n = max * 2
        put(Z, 0, n)

    assert run(kernel, 4, count=1) == [10]


def test_dtype_arguments() -> None:
    @ct.kernel
    def kernel(X, Z, dtype):
        x = ct.load(X, 0, 4).astype(dtype)
        ct.static_assert(x.dtype == dtype)
        ct.store(Z, 0, x.astype(Z.dtype))

    x = np.array([1.5, 2.5, 3.5, -4.5], np.float32)
    for dtype in (ct.int8, ct.float16):
        z = np.zeros(4, np.float32)
        ct.launch(None, 1, kernel, (x, z, dtype))
        assert z.tolist() == x.astype(dtype.numpy).tolist()


def test_print_formats() -> None:
    def kernel(n):
        ct.print("n is", n, (n, "x"), sep=" ", end="!\n")
        ct.print(f"{n} of {{{3}}} {n}")
        ct.printf("%d %5.2f %s%%\n", n, 1.5, f"<{n}>")
        ct.print("{}", n)

    formats = [re.search(r'"(.*)"', op)[1] for op in lines(kernel, N) if op.startswith("tile.print")]  # type: ignore[index]
    assert formats == [
        r"n is {} ({}, 'x')!\0A",
        r"{} of {{3}} {}\0A",
        r"{:d} {:5.2f} <{}>%\0A",
        r"{{}} {}\0A",
    ]


def test_assert_statement() -> None:
    def kernel(n, T):
        assert T == 4, "fixed"
        assert n > 0, "must be positive"

    assert any(
        "tile.assert" in op and '"must be positive (test_capture.py, line ' in op
        for op in lines(kernel, N, ConstantArgument(4))
    )


def test_unusual_layouts_of_source() -> None:
    # fmt: off
    def kernel(Z, n): put(Z, 0, n)

    def other(Z,
              n,
              ):
        """A docstring
with odd indentation."""
        put(Z,
            0, (n
                + 1))
        if 0:
            put(Z, 0, 99)
        # a comment that is indented less
    # like this
        return

    def ends_late(Z, n):
        put(Z, 0, (n + 2,
  """a text, and the last bracket at the
margin""")[0]
    )
    # fmt: on

    assert run(kernel, 3, count=1) == [3]
    assert run(other, 3, count=1) == [4]
    assert run(ends_late, 3, count=1) == [5]


def test_parameters_are_those_that_inspect_finds() -> None:
    """A function without '*' and '**' tells them by its code; a signature of its own, and what it wraps, count."""

    def plain(a, /, b, c=1, *, d, e=2):
        pass

    def gathers(a, *rest, b=1, **more):
        pass

    def shown(a):
        pass

    @functools.wraps(plain)
    def wrapper(x, y=3):
        pass

    shown.__signature__ = inspect.signature(plain)  # type: ignore[attr-defined]
    kinds = inspect.Parameter
    for function in (plain, gathers, shown, wrapper, lambda: 0, cuda.syncthreads, ct.sum):
        found = parameters.Binder(function)
        is_users = function in (plain, gathers, shown, wrapper)
        known = inspect.signature(function, follow_wrapped=not is_users).parameters.values()
        assert found.positional == [p.name for p in known if p.kind <= kinds.POSITIONAL_OR_KEYWORD]
        assert found.only_by_name == [p.name for p in known if p.kind == kinds.KEYWORD_ONLY]
        assert found.by_name == {p.name for p in known if p.kind in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY)}
        assert found.defaults == {p.name: p.default for p in known if p.default is not p.empty}
        assert found.rest == next((p.name for p in known if p.kind == kinds.VAR_POSITIONAL), None)
        assert [*found.signature.parameters] == [p.name for p in known]


def test_variables_of_comprehensions_are_no_variables_of_the_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.12 computes comprehensions in the function itself, and lists their variables with its own."""
    monkeypatch.setattr(sys, "version_info", (3, 12))
    j = 99

    def function(x):
        pairs = [a * 2 + j for j, a in enumerate((1, 2)) if (kept := a)]
        match x:
            case [first, *rest]:
                pass
        return j, pairs, kept, first, rest

    code = function.__code__
    listed = (*code.co_varnames, "a", "j")
    function.__code__ = code.replace(co_varnames=listed, co_nlocals=len(listed))
    assert source_of(function).locals == {"x", "pairs", "kept", "first", "rest"}
    assert j == 99


def test_source_that_does_not_exist() -> None:
    names: dict[str, Any] = {}
    exec("def kernel(n):\n    pass\n", names)
    with pytest.raises(ct.TileSyntaxError, match="the source of kernel is not available"):
        capture(names["kernel"], [N], "cpu")


def test_source_that_has_changed(tmp_path: Path) -> None:
    path = tmp_path / "edited.py"
    path.write_text("def kernel(n):\n    pass\n\n\ndef other(n):\n    pass\n")
    names: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    path.write_text("def first(n):\n    pass\n\n\ndef another(m):\n    pass\n")
    for name in ("kernel", "other"):
        with pytest.raises(ct.TileSyntaxError, match=f"the source of {name} has changed since it was imported"):
            capture(names[name], [N], "cpu")


def test_a_file_that_is_edited_and_loaded_again(tmp_path: Path) -> None:
    """As importlib.reload does, and a worker of a cluster that lives on: each function is as its own file was."""
    path = tmp_path / "edited.py"

    def loaded(n: int, more: str = "") -> Any:
        path.write_text(f"{more}def kernel(x):\n    return x + {n}\n\n\ndef other(x):\n    return x * {n}\n")
        os.utime(path, (n, n))
        names: dict[str, Any] = {}
        exec(compile(path.read_text(), str(path), "exec", dont_inherit=True), names)
        return names

    def text(function: Any) -> str:
        return ast.unparse(source_of(function).tree.body[0])

    first = loaded(1)
    assert text(first["kernel"]) == "return x + 1"
    loaded(2)
    third = loaded(3, "# a line\n")
    assert text(third["kernel"]) == "return x + 3" and text(third["other"]) == "return x * 3"
    assert text(first["other"]) == "return x * 1" and text(first["kernel"]) == "return x + 1"
    fourth = loaded(4)
    assert text(fourth["other"]) == "return x * 4" and text(first["other"]) == "return x * 1"


def test_lambdas_of_constants() -> None:
    """Python 3.12 keeps no place of their results: the lambda of the line with the same instructions is it."""
    every = (lambda v: 0, lambda v: 0.0, lambda v, w=lambda: 2: (1, 2))
    for function, body in zip(every, ("0", "0.0", "(1, 2)"), strict=True):
        code = function.__code__
        nowhere = types.FunctionType(code.replace(co_linetable=b""), globals())
        for each in (function, nowhere):
            returned = source_of(each).tree.body[-1]
            assert isinstance(returned, ast.Return) and returned.value and ast.unparse(returned.value) == body


def test_of_a_lambda_its_own_lines_are_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file may be long; it is parsed only where the lines of a lambda do not say what it is."""
    whole: list[Any] = []
    of_file = source._lambdas_in
    monkeypatch.setattr(source, "_lambdas_in", lambda lines: (whole.append(1), of_file(lines))[1])

    def made() -> Any:
        return lambda a: (a, captured_by)

    captured_by, every = 1, [lambda x: x + 1, lambda x: x + 2]
    pair = {
        "first": lambda x, y=lambda z: z * 2: (
            x
            - 1
        ),
        "second": lambda x: -x,
    }  # fmt: skip
    for function, text in (
        (every[1], "x + 2"),
        (made(), "(a, captured_by)"),
        (pair["first"], "x - 1"),
        (pair["first"].__defaults__[0], "z * 2"),
        (pair["second"], "-x"),
    ):
        found = source_of(function)
        returned = found.tree.body[-1]
        assert isinstance(returned, ast.Return) and returned.value and ast.unparse(returned.value) == text
        assert returned.value.lineno + found.line_offset in range(
            function.__code__.co_firstlineno, function.__code__.co_firstlineno + 4
        )
    if (spread := lambda x:
            x * 3) and True:  # fmt: skip
        assert ast.unparse(source_of(spread).tree.body[-1]) == "return x * 3" and not whole
    monkeypatch.setattr(source, "_AROUND", ())
    hidden = lambda x: x * 4  # noqa: E731
    assert ast.unparse(source_of(hidden).tree.body[-1]) == "return x * 4" and whole
