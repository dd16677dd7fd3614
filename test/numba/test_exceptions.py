"""`raise` in kernels with debug=True: the launch raises an exception of that class, which says the thread."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.errors import TileCheckError, TileRecursionError
from tilewright.numba import cuda


class OfUserError(Exception):
    def __init__(self, one, two):
        """More than a message."""


class OfSystemError(OSError):
    pass


@pytest.mark.parametrize("kind", [ValueError, KeyError, OfUserError, OfSystemError, StopIteration, UnicodeDecodeError])
def test_its_class(kind) -> None:
    @cuda.jit(debug=True)
    def kernel(x):
        if cuda.grid(1) == 2:
            raise kind("hello")
        x[cuda.grid(1)] = 1

    x = np.zeros(4)
    with pytest.raises(kind, match=rf"thread \(2, 0, 0\) of block \(0, 0, 0\) raises {kind.__name__}: hello") as caught:
        kernel[1, 4](x)
    assert isinstance(caught.value, TileCheckError) and caught.value.findings[0].thread == (2, 0, 0)
    assert x.tolist() == [1, 1, 0, 1]


def test_in_a_device_function() -> None:
    @cuda.jit(device=True)
    def function(x):
        if x[0] > 0:
            raise OfUserError

    @cuda.jit(debug=True)
    def kernel(x):
        function(x)

    kernel[1, 1](np.zeros(1))
    with pytest.raises(OfUserError, match="raises OfUserError"):
        kernel[1, 1](np.ones(1))


def test_an_assertion_is_none() -> None:
    @cuda.jit(debug=True)
    def kernel(x):
        assert x[0] > 0, "ValueError: not really"

    with pytest.raises(TileCheckError, match="fails an assertion: ValueError: not really") as caught:
        kernel[1, 1](np.zeros(1))
    assert not isinstance(caught.value, ValueError)


@cuda.jit(device=True)
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def test_recursion_without_an_end_at_compile_time_is_refused() -> None:
    @cuda.jit
    def kernel(x):
        x[0] = fib(x[1])

    with pytest.raises(TileRecursionError, match="its end must depend on constants; device code has loops instead"):
        kernel[1, 1](np.zeros(2, np.int64))


@pytest.mark.parametrize("line", ["x[i] // y[i]", "x[i] % y[i]", "x[i] / y[i]"])
def test_a_quotient_of_integers_by_zero(line) -> None:
    """Of floats it is an infinity, or no number."""
    functions = {"//": lambda a, b: a // b, "%": lambda a, b: a % b, "/": lambda a, b: a / b}
    quotient = functions[line.split()[1]]

    @cuda.jit(debug=True)
    def kernel(x, y, out):
        i = cuda.grid(1)
        out[i] = quotient(x[i], y[i])

    x, y, out = np.arange(4), np.array([1, 2, 0, 4]), np.zeros(4)
    with pytest.raises(ZeroDivisionError, match=r"thread \(2, 0, 0\) of block \(0, 0, 0\) raises ZeroDivisionError"):
        kernel[1, 4](x, y, out)
    np.testing.assert_array_equal(out[[0, 1, 3]], quotient(x[[0, 1, 3]], y[[0, 1, 3]]))
    kernel[1, 4](x.astype(float), y.astype(float), out)
