"""Control flow: loops with run-time bounds, break, continue, branches, early return, helpers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import Backends, Tolerance, random_values, run

from tilewright import tile as ct
from tilewright.errors import TileTypeError

OFFSET = 3


def helper(x, n):
    """A plain Python function, called from kernels."""
    for i in range(n):
        x = x * 2 + i
    return x


@ct.function
def clamp(x, low=-1.0, high=1.0):
    return ct.minimum(ct.maximum(x, low), high)


def sum_and_difference(x, y):
    return x + y, x - y


def once(backends: Backends, kernel: Any, *args: Any, count: int = 16) -> np.ndarray:
    """Run a kernel `kernel(Z, *args)` in one block; Z has `count` int32."""
    return backends.run_all(kernel, 1, lambda: [np.zeros(count, np.int32), *args])[0]


@pytest.mark.parametrize(
    ("start", "stop", "step"),
    [(0, 5, 1), (2, 11, 3), (10, 0, -2), (0, 0, 1), (5, 2, 1), (-3, 4, 2), (3, 3, -1), (0, 1, 9)],
)
def test_for(backends: Backends, start: int, stop: int, step: int) -> None:
    """Bounds as constants and as run-time values; the last value of the variable remains."""

    @ct.kernel
    def kernel(Z, a, b, c: ct.Constant):
        total = ct.zeros((4,), ct.int32)
        count = 0
        for i in range(a, b, c):
            total = total + i
            count = count + 1
        ct.store(Z, (0,), total)
        for i in range(start, stop, step):
            total = total * 3 + i
        ct.store(Z, (1,), total)
        ct.store(Z, (2,), total * 0 + count)

    z = once(backends, kernel, start, stop, step)
    values = list(range(start, stop, step))
    wanted = sum(values)
    for i in values:
        wanted = wanted * 3 + i
    assert z[[0, 4, 8]].tolist() == [sum(values), wanted, len(values)]


def test_for_with_run_time_step(backends: Backends) -> None:
    @ct.kernel
    def kernel(Z, n, step):
        total = ct.zeros((4,), ct.int32)
        for i in range(0, n, step):
            total = total * 2 + i
        ct.store(Z, (0,), total)

    for n, step in ((10, 3), (1, 1), (0, 4), (9, 9)):
        z = once(backends, kernel, n, step)
        wanted = 0
        for i in range(0, n, step):
            wanted = wanted * 2 + i
        assert z[0] == wanted


def test_for_with_run_time_step_zero() -> None:
    """A mistake, on every execution."""

    @ct.kernel
    def kernel(Z, step):
        for i in range(0, 10, step):
            ct.scatter(Z, 0, i)

    for run_kernel in (kernel.interpret, lambda grid, args: ct.launch(None, grid, kernel, args)):
        with pytest.raises(Exception, match="(?i)zero"):
            run_kernel(1, (np.zeros(1, np.int32), 0))


@pytest.mark.parametrize(
    ("first", "n"), [(2, 3), (3, 2**25 + 3), (2**26 + 1, 2**26 + 5), (-5, 2 - 2**26), (2**27 - 2, 7)]
)
def test_bounds_that_overflow_are_what_they_are(backends: Backends, first: int, n: int) -> None:
    """A loop over every 64th number counts its steps, and those of a product that has wrapped are few."""

    @ct.kernel
    def kernel(Z, first, n):
        steps = numbers = 0
        for i in range(0, n * 64, 64):
            steps = steps + 1
            numbers = numbers + i // 64
        for i in range(first * 64, 1024, 64):
            steps = steps + 256
            numbers = numbers + i // 64
        ct.store(Z, (0,), ct.full((1,), steps, ct.int32))
        ct.store(Z, (1,), ct.full((1,), numbers, ct.int32))

    z = backends.run_all(kernel, 1, lambda: [np.zeros(2, np.int32), first, n])[0]
    low, high = _wrapped(64 * first), _wrapped(64 * n)
    steps, more = range(0, high, 64), range(low, 1024, 64)
    assert z.tolist() == [len(steps) + 256 * len(more), _wrapped(sum(i // 64 for i in [*steps, *more]))]


def _wrapped(x: int) -> int:
    return (x + 2**31) % 2**32 - 2**31


TOP, TOP64 = 2**31 - 1, 2**63 - 1


@pytest.mark.parametrize(
    ("start", "stop", "step"),
    [
        (-TOP - 1, TOP, 2**30),
        (TOP - 1, TOP, 2),
        (TOP - 999, TOP, 7),
        (TOP, -TOP - 1, -(2**30)),
        (TOP, -TOP - 1, -TOP - 1),
        (-TOP - 1, 5, -3),
        (TOP64 - 99, TOP64, 7),
        (TOP64, -TOP64 - 1, -(2**62)),
    ],
)
def test_for_near_the_end_of_its_type(backends: Backends, start: int, stop: int, step: int) -> None:
    """What follows the last value of a range need not be a number of its type."""

    @ct.kernel
    def kernel(Z, a, b, c: ct.Constant):
        count = 0
        mixed = a
        for i in range(a, b, c):
            mixed = mixed ^ i
            count = count + 1
        ct.store(Z, 0, count + ct.zeros((1,), ct.int64))
        ct.store(Z, 1, mixed + ct.zeros((1,), ct.int64))
        count = 0
        for i in range(a, b, c):
            if i == b:
                break
            count = count + 1
        ct.store(Z, 2, count + ct.zeros((1,), ct.int64))

    z = backends.run_all(kernel, 1, lambda: [np.zeros(3, np.int64), start, stop, step])[0]
    mixed = start
    for i in range(start, stop, step):
        mixed ^= i
    assert z.tolist() == [len(range(start, stop, step)), mixed, len(range(start, stop, step))]


def test_variable_of_a_loop_after_it(backends: Backends) -> None:
    """It has the last value, or the one from before a loop that ran zero times."""

    @ct.kernel
    def kernel(Z, n):
        i = -7
        for i in range(n):  # noqa: B007 - its last value is
            pass
        ct.scatter(Z, 0, i)
        j = -7
        for j in range(n):
            if j > 3:
                break
            j = j * 10
        ct.scatter(Z, 1, j)

    assert [once(backends, kernel, n)[:2].tolist() for n in (0, 1, 3, 9)] == [[-7, -7], [0, 0], [2, 20], [8, 4]]


def test_nested_loops(backends: Backends) -> None:
    @ct.kernel
    def kernel(Z, n):
        total = ct.zeros((4,), ct.int32)
        other = ct.ones((4,), ct.int32)
        for i in range(n):
            for j in range(i):
                total = total + i * j
                for _ in range(2):
                    other = other + total
            other = other - i
        ct.store(Z, (0,), total)
        ct.store(Z, (1,), other)

    z = once(backends, kernel, 6)
    total, other = 0, 1
    for i in range(6):
        for j in range(i):
            total += i * j
            other += 2 * total
        other -= i
    assert z[[0, 4]].tolist() == [total, other]


def test_while(backends: Backends) -> None:
    @ct.kernel
    def kernel(Z, n):
        steps = 0
        while n != 1:
            if n % 2 == 0:
                n = n // 2
            else:
                n = 3 * n + 1
            steps = steps + 1
        ct.store(Z, (0,), ct.zeros((4,), ct.int32) + steps)

    for n, steps in ((1, 0), (6, 8), (27, 111)):
        assert once(backends, kernel, n)[0] == steps


def test_while_in_a_range(backends: Backends) -> None:
    """Two conditions of one number, as in programs that hand out the tiles of several problems; downwards, too."""

    @ct.kernel
    def kernel(Z, at, n):
        seen = 0
        end = 0
        for size in (3, 0, 5):
            while at >= end and at < end + size + n:
                seen = seen * 10 + at - end
                at += 2
            end = end + size + n
        ct.store(Z, (0,), ct.zeros((4,), ct.int32) + seen)
        while at > end - 20 and end >= at:
            at -= 3
        ct.store(Z, (1,), ct.zeros((4,), ct.int32) + at)

    for at, n in ((0, 0), (1, 1), (4, 2), (-3, 1), (40, 1), (7, -3)):
        seen = end = 0
        now = at
        for size in (3, 0, 5):
            while end <= now < end + size + n:
                seen = seen * 10 + now - end
                now += 2
            end += size + n
        while end - 20 < now <= end:
            now -= 3
        assert once(backends, kernel, at, n)[[0, 4]].tolist() == [seen, now]


def test_break_and_continue(backends: Backends) -> None:
    @ct.kernel
    def kernel(Z, n, limit):
        total = ct.zeros((4,), ct.int32)
        seen = 0
        for i in range(n):
            if i % 3 == 0:
                continue
            if i > limit:
                seen = seen + 100
                break
            total = total + i
            seen = seen + 1
        ct.store(Z, (0,), total)
        ct.store(Z, (1,), total * 0 + seen)

    for n, limit in ((10, 100), (10, 4), (0, 0), (50, 20)):
        z = once(backends, kernel, n, limit)
        total = seen = 0
        for i in range(n):
            if i % 3 == 0:
                continue
            if i > limit:
                seen += 100
                break
            total += i
            seen += 1
        assert z[[0, 4]].tolist() == [total, seen]


def test_break_in_while_and_in_nested_loop(backends: Backends) -> None:
    @ct.kernel
    def kernel(Z, n):
        total = 0
        i = 0
        while True:
            i = i + 1
            if i > n:
                break
            for j in range(n):
                if j == i:
                    break
                if (i + j) % 2 == 1:
                    continue
                total = total + j
            total = total * 2
        ct.store(Z, (0,), ct.zeros((4,), ct.int32) + total)

    for n in (0, 1, 5):
        total = i = 0
        while True:
            i += 1
            if i > n:
                break
            for j in range(n):
                if j == i:
                    break
                if (i + j) % 2 == 1:
                    continue
                total += j
            total *= 2
        assert once(backends, kernel, n)[0] == total


@pytest.mark.parametrize(
    ("start", "stop", "step"), [(0, 5, 1), (2, 11, 3), (0, 0, 1), (5, 2, 1), (10, 0, -2), (3, 3, -1), (-3, 4, 2)]
)
def test_loops_that_end_behind_a_step(backends: Backends, start: int, stop: int, step: int) -> None:
    """The first step is always done; the count and what a step made are read behind the loop."""

    @ct.kernel
    def kernel(Z, n):
        total = ct.zeros((4,), ct.int32)
        k = start
        while True:
            total = total * 3 + k
            k += step
            if k >= n if step > 0 else n >= k:
                break
        ct.store(Z, (0,), total + k)
        k = start
        while True:
            total = total * 3 + k
            if k >= stop if step > 0 else k <= stop:
                break
            k += step
        ct.store(Z, (1,), total)
        k = start
        while True:
            total = total * 3 + k
            if k >= n if step > 0 else k <= n:
                break
            k += step
        ct.store(Z, (2,), total + k)
        k = start
        for i in range(7):
            total = total * 3 + k - i
            k += step
            if not (k < n if step > 0 else k > n):
                break
        ct.store(Z, (3,), total)

    z = once(backends, kernel, stop)
    total, wanted = 0, []
    more = (lambda k: k < stop) if step > 0 else (lambda k: k > stop)
    for most, tests_first, reads_count in [(99, False, True), (99, True, False), (99, True, True), (7, False, False)]:
        k = start
        for i in range(most):
            total = total * 3 + k - (i if most == 7 else 0)
            last = not more(k)
            k += 0 if tests_first and last else step
            if last if tests_first else not more(k):
                break
        wanted.append(_wrapped(total + k * reads_count))
    assert z.tolist() == np.repeat(wanted, 4).tolist()


@pytest.mark.parametrize("n", [0, 1, 3, 4, 9])
def test_loops_that_end_at_the_head_of_a_step(backends: Backends, n: int) -> None:
    """Of two bounds the nearer one ends a loop; what divides by zero behind the end is not done."""

    @ct.kernel
    def kernel(Z, X, n):
        total = ct.zeros((4,), ct.int32)
        for k in range(4):
            if k >= n:
                break
            total = total * 3 + k + 1
        ct.store(Z, (0,), total)
        for k in range(n):
            if n - k == 2:
                break
            total = total * 3 + 100 // (n - k)
        ct.store(Z, (1,), total)
        for k in range(12):
            if (k >= n) | (k > 7):
                break
            total += ct.load(X, (k,), (4,), padding_mode=ct.PaddingMode.ZERO)
        ct.store(Z, (2,), total)
        k = 0
        while k != X.shape[0] // 4:
            total += ct.load(X, (k,), (4,)) * 2
            k += 1
        ct.store(Z, (3,), total + k)

    z = backends.run_all(kernel, 1, lambda: [np.zeros(16, np.int32), np.arange(16, dtype=np.int32), n])[0]
    rows = np.arange(16).reshape(4, 4)
    total = np.zeros(4, np.int64)
    for k in range(min(4, n)):
        total = total * 3 + k + 1
    wanted = [total]
    for k in range(n):
        if n - k == 2:
            break
        total = total * 3 + 100 // (n - k)
    wanted.append(total)
    wanted.append(total + rows[:n].sum(0))
    wanted.append(wanted[-1] + 2 * rows.sum(0) + 4)
    assert z.tolist() == np.concatenate(wanted).tolist()


@pytest.mark.parametrize("n", [-5, 0, 3, 10, 200])
def test_branches(backends: Backends, n: int) -> None:
    @ct.kernel
    def kernel(Z, n):
        x = ct.zeros((4,), ct.int32)
        if n < 0:
            x = x - 1
        elif n == 0:
            x = x + 50
        elif n < 100:
            y = x + n
            if (n > 5 and n < 50) or n == 77:
                x = y * 2
            else:
                x = y * 3
        else:
            pass
        ct.store(Z, (0,), x)
        ct.store(Z, (1,), x + (1 if n > 2 else 7))
        if not n > 5:
            ct.store(Z, (2,), x + n)

    x = -1 if n < 0 else 50 if n == 0 else 2 * n if 5 < n < 50 else 3 * n if n < 100 else 0
    z = once(backends, kernel, n)
    assert z[[0, 4, 8]].tolist() == [x, x + (1 if n > 2 else 7), 0 if n > 5 else x + n]


def test_early_return(backends: Backends) -> None:
    @ct.kernel
    def kernel(Z, n):
        ct.store(Z, (0,), ct.full((4,), 1, ct.int32))
        if n == 0:
            return
        ct.store(Z, (1,), ct.full((4,), 2, ct.int32))
        for i in range(n):
            if i == 3:
                return
            ct.store(Z, (2,), ct.full((4,), i + 10, ct.int32))
        ct.store(Z, (3,), ct.full((4,), 4, ct.int32))

    for n, wanted in ((0, [1, 0, 0, 0]), (2, [1, 2, 11, 4]), (9, [1, 2, 12, 0])):
        assert once(backends, kernel, n)[::4].tolist() == wanted


def test_return_per_block(backends: Backends) -> None:
    @ct.kernel
    def kernel(X, Z):
        i = ct.bid(0)
        if i >= ct.num_tiles(X, 0, 8):
            return
        ct.store(Z, i, ct.load(X, i, 8) + i)

    x = np.arange(20, dtype=np.int32)
    _, z = backends.run_all(kernel, 7, lambda: [x.copy(), np.zeros_like(x)])
    assert np.array_equal(z, x + x // 8)


def test_conditions_of_branches_on_loop_values(backends: Backends) -> None:
    """Tiles and scalars carried through branches inside of loops."""

    @ct.kernel
    def kernel(X, Z):
        best = ct.load(X, (0, 0), (1, 8))
        where = 0
        last = 0.0
        for i in range(1, X.shape[0]):
            row = ct.load(X, (i, 0), (1, 8))
            total = ct.sum(row)
            if total > ct.sum(best):
                best = row
                where = i
                last = total
        ct.store(Z, (0, 0), best)
        ct.store(Z, (1, 0), ct.zeros((1, 8), ct.float32) + where)
        ct.store(Z, (2, 0), ct.zeros((1, 8), ct.float32) + last)

    x = random_values(ct.float32, 7 * 8, 5).reshape(7, 8)
    _, z = backends.run_all(kernel, 1, lambda: [x.copy(), np.zeros((3, 8), "f4")], tolerance=Tolerance(4))
    assert z[1, 0] == x.sum(1).argmax()


@pytest.mark.spec("T-149")
def test_functions_tuples_closures(backends: Backends) -> None:
    scale = 5
    sizes = (4, 8)

    def local(x):
        return x * scale + OFFSET

    @ct.kernel
    def kernel(X, Z, n):
        x = ct.load(X, (0, 0), sizes)
        a, (b, c) = local(x), sum_and_difference(x, n)
        pair = (a, b)
        pair = (*pair, helper(c, 3))
        ct.static_assert(len(pair) == 3 and len(sizes) == 2)
        ct.store(Z, (0, 0), pair[0] + pair[-2] * pair[2])
        first, *rest = sizes
        ct.store(Z, (1, 0), clamp(x, high=first) + clamp(x, -2) + rest[0])

    x = random_values(ct.float32, 32).reshape(4, 8)
    args = backends.run_all(kernel, 1, lambda: [x.copy(), np.zeros((8, 8), "f4"), 2], tolerance=Tolerance(2))
    h = ((x - 2) * 2 * 2 + 1) * 2 + 2
    np.testing.assert_allclose(args[1][:4], x * 5 + 3 + (x + 2) * h, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(args[1][4:], x.clip(-1, 4) + x.clip(-2, 1) + 8, rtol=1e-5)


@pytest.mark.spec("T-007", "T-008", "T-025", "T-037", "T-041", "T-055")
def test_array_attributes(backends: Backends) -> None:
    @ct.kernel
    def kernel(X, Z):
        ct.static_assert(X.ndim == 2 and len(X.shape) == X.ndim and X.dtype == ct.float32)
        rows, columns = X.shape
        ct.static_assert(rows.dtype == ct.int32 and rows.shape == ())
        z = ct.zeros((4,), ct.int32)
        ct.store(Z, 0, z + rows)
        ct.store(Z, 1, z + columns * 10 + X.shape[1])
        ct.store(Z, 2, z + X.strides[0].astype(ct.int32))
        ct.store(Z, 3, z + (ct.num_tiles(X, 0, (4, 8)) * 100 + ct.num_tiles(X, 1, (4, 8))))

    x = np.zeros((10, 60), np.float32)[:, :33]
    _, z = backends.run_all(kernel, 1, lambda: [x, np.zeros(16, np.int32)])
    assert z[::4].tolist() == [10, 363, 60, 305]


def test_position_and_grid(backends: Backends) -> None:
    @ct.kernel
    def kernel(Z):
        x, y, z = ct.bid(0), ct.bid(1), ct.bid(2)
        width, height = ct.num_blocks(0), ct.num_blocks(1)
        linear = x + width * (y + height * z)
        ct.store(Z, linear, ct.full((1,), linear + 1000 * ct.num_blocks(2), ct.int32))

    for grid in ((5,), (2, 3), (2, 3, 4), 7):
        sizes = grid if isinstance(grid, tuple) else (grid,)
        count = int(np.prod(sizes))
        (z,) = backends.run_all(kernel, grid, lambda c=count: [np.zeros(c, np.int32)])
        assert np.array_equal(z, np.arange(count) + 1000 * (*sizes, 1, 1)[2])


def test_builtins(backends: Backends) -> None:
    @ct.kernel
    def kernel(X, Z, n):
        x = ct.load(X, 0, 8)
        y = min(n, X.shape[0]) + max(n, 2, 3)
        ct.store(Z, 0, abs(x) + y + len(X.shape))
        ct.store(Z, 1, x // ct.cdiv(n, 4) + ct.cdiv(13, 4))

    x = np.arange(-4, 4, dtype=np.int32)
    _, z, _ = backends.run_all(kernel, 1, lambda: [x.copy(), np.zeros(16, np.int32), 5])
    assert np.array_equal(z[:8], abs(x) + 5 + 5 + 1)
    assert np.array_equal(z[8:], x // 2 + 4)


def test_scalar_arguments(backends: Backends) -> None:
    @ct.kernel
    def kernel(Z, i, f, b, h):
        ct.static_assert(i.dtype == ct.int32 and f.dtype == ct.float32 and b.dtype == ct.bool_)
        ct.static_assert(h.dtype == ct.float16)
        z = ct.zeros((4,), ct.float32)
        ct.store(Z, 0, z + i)
        ct.store(Z, 1, z + f)
        ct.store(Z, 2, z + b)
        ct.store(Z, 3, z + h)

    make = lambda: [np.zeros(16, "f4"), -7, 0.1, True, np.float16(0.1)]  # noqa: E731
    z = backends.run_all(kernel, 1, make)[0]
    assert z[::4].tolist() == [-7.0, np.float32(0.1), 1.0, np.float32(np.float16(0.1))]


def test_wide_scalars(backends: Backends) -> None:
    @ct.kernel
    def kernel(Z, n, u, d):
        ct.static_assert(n.dtype == ct.int64 and u.dtype == ct.uint64 and d.dtype == ct.float64)
        ct.store(Z, 0, ct.zeros((4,), ct.int64) + n)
        ct.store(Z, 1, (ct.zeros((4,), ct.uint64) + u - 1).astype(ct.int64))
        ct.store(Z, 2, (ct.ones((4,), ct.float64) * d * 1e9).astype(ct.int64))

    big = 2**63
    make = lambda: [np.zeros(12, np.int64), -(2**40), big, np.float64(0.123456789)]  # noqa: E731
    z = backends.run_all(kernel, 1, make)[0]
    assert z[::4].tolist() == [-(2**40), big - 1, 123456789]


def test_tile_from_outside_in_both_branches(backends: Backends) -> None:
    """What one branch computed of it must not be taken for computed in the other, or after."""

    @ct.kernel
    def kernel(X, Z, n):
        x = ct.load(X, (0, 0), (4, 16))
        for _ in range(n):
            x = x + 3
        turned = ct.permute(x.reshape((8, 2, 4)), (1, 2, 0)).reshape((4, 16))
        y = turned + x
        if n > 0:
            y = y + 3
        ct.store(Z, (0, 0), y)
        ct.store(Z, (1, 0), turned)

    x = np.arange(64, dtype=np.int32).reshape(4, 16)
    for n in (0, 2):
        _, z, _ = backends.run_all(kernel, 1, lambda n=n: [x.copy(), np.zeros((8, 16), "i4"), n])
        moved = x + 3 * n
        turned = moved.reshape(8, 2, 4).transpose(1, 2, 0).reshape(4, 16)
        assert np.array_equal(z, np.concatenate([turned + moved + 3 * (n > 0), turned]))


@pytest.mark.spec("T-040", "T-042", "T-043", "T-086")
def test_literals_have_dtypes(backends: Backends) -> None:
    """In compiled code only: under the reference execution a literal is Python's own number."""

    @ct.kernel
    def kernel(Z):
        a, b, c = 0, 3.14, True
        ct.static_assert(a.dtype == ct.int32 and b.dtype == ct.float32 and c.dtype == ct.bool_)
        ct.static_assert(a == 0 and a.shape == () and a.ndim == 0 and (3.14).shape == ())
        ct.store(Z, 0, ct.full((4,), a + 1, ct.int32))

    for name in backends.names:
        z = np.zeros(4, np.int32)
        run(name, kernel, 1, [z])
        assert name.startswith("sm_") or (z == 1).all()


def test_the_upper_half_of_a_product_in_a_loop(backends: Backends) -> None:
    """Division by multiplying, as a user may write it: ptxas takes it for another product if the half is unpacked."""

    @ct.kernel
    def kernel(Z, count, d):
        inverse = ct.int64(0xFFFFFFFF) // d
        for k in range(count):
            x = k * 7
            quotient = ct.int32((ct.int64(x) * inverse) >> 32)
            ct.store(Z, (k,), ct.full((1,), x - quotient * d, ct.int32))

    z = once(backends, kernel, 100, 12, count=100)
    assert np.array_equal(z % 12, np.arange(100) * 7 % 12)


@pytest.mark.spec("T-005")
@pytest.mark.parametrize("value", [{}, [1], {1, 2}, b"bytes", 1j, len], ids=str)
def test_values_that_tile_code_has_not(backends: Backends, value: Any) -> None:
    @ct.kernel
    def kernel(Z):
        ct.store(Z, 0, ct.zeros((4,), ct.int32) + value)

    backends.rejects(kernel, 1, lambda: [np.zeros(4, np.int32)], TileTypeError, "number|complex|not defined")


def test_bools_and_integers_are_both_conditions(backends: Backends) -> None:
    """What `and` and `or` give may be a bool on one side and an integer on the other: Python's bools are integers."""

    @ct.kernel
    def kernel(X, a, b, c):
        n = 1 if (a or b) and c else 0
        both = (a or b) and c
        if both:
            n = n + 10
        ct.store(X, 0, ct.full((1,), n + (c if a else 300), ct.int32))

    for a, b, c in [(1, 0, True), (0, True, -5), (False, 5, 0), (True, False, False), (0, False, 7)]:
        backends.run_all(kernel, 1, lambda a=a, b=b, c=c: [np.zeros(1, np.int32), a, b, c])


def test_what_a_loop_that_surely_runs_leaves_behind(backends: Backends) -> None:
    """Its variable, what each way through its body assigns, tuples and constants too; nested, and in branches."""

    @ct.kernel
    def kernel(Z, A, n: ct.Constant):
        for i in range(1, 2 * n, 2):
            a = ct.load(A, (i,), (4,))
            pair = (a * 2, i)
            name = "four"
            for j in range(3):
                last = a + j if i > 1 else a - j
            behind = last * 10
        ct.store(Z, (0,), a + i)
        ct.store(Z, (1,), pair[0] + pair[1] + len(name))
        ct.store(Z, (2,), last + j)
        ct.store(Z, (3,), behind)

    numbers = np.arange(32, dtype=np.int32)
    for n in (1, 3):
        z = backends.run_all(kernel, 1, lambda n=n: [np.zeros(16, np.int32), numbers, n])[0]
        i = 2 * n - 1
        a = numbers[4 * i : 4 * i + 4]
        last = a + 2 if i > 1 else a - 2
        assert np.array_equal(z, np.concatenate([a + i, a * 2 + i + 4, last + 2, last * 10]))


def test_what_a_loop_may_not_leave_behind(backends: Backends) -> None:
    """A part of an array that belongs to an iteration; what one way through the body does not assign."""

    @ct.kernel
    def part(Z, A):
        for i in range(2):
            rows = A.slice(0, i, i + 8)
        ct.store(Z, (0,), ct.load(rows, (0,), (4,)))

    @ct.kernel
    def branch(Z, A):
        for i in range(2):
            if i > 0:
                x = ct.load(A, (i,), (4,))
        ct.store(Z, (0,), x)

    @ct.kernel
    def left(Z, A):
        for i in range(2):
            if ct.load(A, (i,), ()) > 5:
                break
            x = ct.load(A, (i,), (4,))
        ct.store(Z, (0,), x)

    for kernel in (part, branch, left):
        values = np.zeros(4, np.int32), np.arange(32, dtype=np.int32)
        backends.rejects(
            kernel, 1, lambda values=values: list(values), TileTypeError, "may not be assigned.* before the loop"
        )


def test_keyword_only_parameters(backends: Backends) -> None:
    """A launch passes them behind the others; those at the end may have defaults."""

    @ct.kernel
    def kernel(Z, a, *, factor: ct.Constant[int], more=7, last: ct.Constant[int] = 2):
        ct.store(Z, 0, ct.full((16,), a * factor + more, ct.int32) * last)

    for args, wanted in [((3, 10), 74), ((3, 10, 1), 62), ((3, 10, 1, 1), 31)]:
        assert (once(backends, kernel, *args) == wanted).all()


def test_defaults_before_a_keyword_without_one(backends: Backends) -> None:
    @ct.kernel
    def kernel(Z, a=5, *, b):
        ct.store(Z, 0, ct.full((16,), a - b, ct.int32))

    assert (once(backends, kernel, 9, 2) == 7).all()
    z = np.zeros(16, np.int32)
    backends.rejects(kernel, 1, lambda: [z, 9], TypeError, "3|'b'")


@ct.kernel
def counts_and_sums(X, Counts, Sums, n: int, T: ct.Constant[int]):
    """Two loops that carry, for each place of a tile, how many numbers there were and their sum, weighed by turns."""
    columns = ct.arange(T, dtype=ct.int32)
    count, total = ct.zeros((T,), ct.float32), ct.zeros((T,), ct.float32)
    old, other = ct.zeros((T,), ct.float32), ct.ones((T,), ct.float32)
    for j in range(ct.cdiv(n, T)):
        mask = j * T + columns < n
        x = ct.gather(X, j * T + columns, mask=mask, padding_value=0)
        count = count + ct.where(mask, 1.0, 0.0)
        total = total + x * other
        old, other = other, count + old
    for _ in range(2):
        count = count * 2.0 + other
    ct.store(Counts, (0,), count)
    ct.store(Sums, (0,), total)


@pytest.mark.parametrize("n", [8, 1024, 1040, 3000, 3001])
def test_neighbours_that_stay_equal(backends: Backends, n: int) -> None:
    """What a mask lets through is counted in one register for all elements of a vector that it cannot part."""
    x = np.random.default_rng(n).integers(-4, 5, max(n, 16)).astype(np.float32)
    zeros = lambda: np.zeros(1024, np.float32)  # noqa: E731
    backends.run_all(counts_and_sums, 1, lambda: [x.copy(), zeros(), zeros(), n, 1024])
