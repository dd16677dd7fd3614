"""Arrays in device code: elements, slices, views of another dtype, other shapes, iteration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cuda import device
from tilewright.errors import TileError, TileTypeError, TileValueError


@device.kernel
def attributes(x, out):
    out[0] = x.shape[0] * 100 + x.shape[1]
    out[1] = x.strides[0] * 100 + x.strides[1]
    out[2] = x.size
    out[3] = x.ndim * 10 + x.ndims
    out[4] = x.dtype == device.int16
    out[5] = len(x)
    out[6] = x[-1, -2]


@pytest.mark.spec("D-212", "D-214", "D-219", "D-220", "D-221", "D-222", "D-223", "D-330")
def test_what_an_array_has(run: Any) -> None:
    x = np.arange(24, dtype=np.int16).reshape(4, 6)[:, ::2]
    out = np.zeros(7, np.int32)
    run(attributes, x, out)
    np.testing.assert_array_equal(out, [403, 1204, 12, 22, 1, 4, x[-1, -2]])


def copy_part(index: Any, ndim: int) -> Any:
    """A kernel that copies `x[index]`."""

    @device.kernel
    def copy1(x, out, shape):
        part = x[index]
        shape[0] = part.shape[0]
        for i in range(part.shape[0]):
            out[i] = part[i]

    @device.kernel
    def copy2(x, out, shape):
        part = x[index]
        shape[0], shape[1] = part.shape
        for i in range(part.shape[0]):
            for j in range(part.shape[1]):
                out[i, j] = part[i, j]

    return copy1 if ndim == 1 else copy2


@pytest.mark.spec("D-215", "D-216", "D-217")
@pytest.mark.parametrize(
    "index",
    [
        2, -1, slice(1, 3), slice(None, None, 2), slice(None, None, -1), slice(4, 0, -2), slice(-3, None), slice(2, 99),
        slice(3, 1), slice(-99, -2), (slice(None), 1), (Ellipsis, -1), (1, Ellipsis),
        (slice(1, 4), slice(None, None, 3)), (slice(None, None, -2), slice(6, 1, -1)), (0, None), (None, 2),
        (slice(2), 3),
    ],
    ids=str,
)  # a table of several in a line  # fmt: skip
def test_parts_of_arrays(run: Any, index: Any) -> None:
    x = np.arange(35, dtype=np.float32).reshape(5, 7)
    expected = x[index]
    out, shape = np.full(expected.shape or (1,), -1, np.float32), np.full(2, -1, np.int32)
    run(copy_part(index, expected.ndim), x, out, shape)
    assert tuple(shape[: expected.ndim]) == expected.shape
    np.testing.assert_array_equal(out, expected)


@device.kernel
def bounds_at_run_time(x, lo, hi, out):
    part = x[lo[0] : hi[0]]
    out[0] = part.size
    total = device.float32(0)
    for value in part:
        total += value
    out[1] = total
    row = x[device.tid(1) :]
    row[0] = 100


@pytest.mark.spec("D-103", "D-215")
@pytest.mark.parametrize(("lo", "hi"), [(1, 4), (-3, -1), (3, 1), (-100, 100), (0, 0)])
def test_bounds_that_are_known_at_run_time(run: Any, lo: int, hi: int) -> None:
    x = np.arange(6, dtype=np.float32)
    expected = x[lo:hi].copy()
    out = np.zeros(2, np.float32)
    run(bounds_at_run_time, x, np.array([lo], np.int32), np.array([hi], np.int64), out)
    assert list(out) == [len(expected), expected.sum()] and x[0] == 100


@device.kernel
def rows(x, out):
    i = 0
    for row in x:
        for value in row[::-1]:
            if value == 5:
                break
            out[i] += value
        i += 1  # noqa: SIM113  # enumerate goes over what is known at compile time


@pytest.mark.spec("D-212", "D-216")
def test_iteration(run: Any) -> None:
    x = np.arange(12, dtype=np.int32).reshape(3, 4)
    out = np.zeros(3, np.int32)
    run(rows, x, out)
    np.testing.assert_array_equal(out, [6, 7 + 6, 11 + 10 + 9 + 8])


@device.kernel
def reinterpret(x, out):
    bits = x.view(device.uint32)
    out[0] = bits[0] == 0x3F800000
    halves = x.view(device.uint16)
    out[1] = halves.size
    out[2] = halves[1]
    wide = halves.view(device.uint64)
    out[3] = wide.shape[0]
    grid = x.reshape(2, 2)
    out[4] = grid[1, 0]
    out[5] = x.reshape((2, -1)).shape[1]
    out[6] = x.astype(device.float32, copy=False)[3]
    grid[0, 1] = 7


@pytest.mark.spec("D-225", "D-226", "D-228")
def test_views_of_another_dtype_and_shape(run: Any) -> None:
    x, out = np.array([1, 2, 3, 4], np.float32), np.zeros(7, np.float32)
    run(reinterpret, x, out)
    np.testing.assert_array_equal(out, [1, 8, 0x3F80, 2, 3, 2, 4])
    assert x[1] == 7


@pytest.mark.spec("D-224", "D-227", "D-229")
@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda x: x.flags, "an array has no attribute 'flags' in device code"),
        (lambda x: x[:, ::2].reshape(4), "it would copy|elements .* are not known to lie side by side"),
        (lambda x: x.astype(device.float64, copy=False), "would allocate an array"),
        (lambda x: x.astype(device.float32), "would allocate an array"),
        (lambda x: x[0, 0, 0], "is indexed by at most 2 entries, found 3"),
        (lambda x: x[::0], "the step of a slice is a constant that is not zero, found the constant 0"),
        (lambda x: x[1.5], "an index is an integer or a slice, found the constant 1.5"),
        (lambda x: x[:, ::2].view(device.int8), "are not known to lie side by side"),
        (lambda x: x.view("text"), "view needs a dtype such as device.float32"),
    ],
)
def test_what_arrays_are_not(use: Any, message: str) -> None:
    @device.kernel
    def k(x):
        use(x)

    with pytest.raises((TileTypeError, TileValueError), match=message):
        device.launch(k, np.zeros((4, 4), np.float32), grid=1, block=1)


@pytest.mark.spec("D-249")
@pytest.mark.parametrize("value", [{1, 2}, b"text", object()])
def test_what_is_no_array(value: Any) -> None:
    with pytest.raises(TileError, match="kernel attributes, argument 'x'"):
        device.launch(attributes, value, np.zeros(7, np.int32), grid=1, block=1)
