"""Functions of NumPy in kernels, beside NumPy itself: of numbers, and of arrays with an output."""

import math

import numpy as np
import pytest

from tilewright.errors import TileTypeError
from tilewright.numba import cuda

COMPARED = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
LOGICAL = ("logical_and", "logical_or", "logical_xor")
CHOSEN = ("maximum", "minimum", "fmax", "fmin")
BITS = ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift")
ARITHMETIC = ("add", "subtract", "multiply", "divide")
TWO = (*ARITHMETIC, "floor_divide", "remainder", "power", "gcd", "heaviside", *BITS, *COMPARED, *LOGICAL, *CHOSEN)
ONE = ("invert", "negative", "square", "reciprocal", "logical_not", "absolute", "sign", "rint", "signbit")
CURVES = ("sin", "cos", "tan", "sinh", "cosh", "tanh", *(f"arc{f}" for f in ("sin", "cos", "tan")))
COMPLEX = (*CURVES, "exp", "log", "log2", "log10", "sqrt", "negative", "square", "absolute")


def kernel_of(name):
    """Of arrays, and of numbers in the last element."""
    function = getattr(np, name)
    if function.nin == 1:

        @cuda.jit
        def kernel(x, out, one):
            function(x, out)
            one[0] = function(x[1])
    else:

        @cuda.jit
        def kernel(x, y, out, one):
            function(x, y, out)
            one[0] = function(x[1], y[1])

    return kernel


def check(run, name, *values):
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(*values)
    out, one = np.zeros_like(expected), np.zeros(1, expected.dtype)
    *_, out, one = run(kernel_of(name), 1, 1, *values, out, one)
    close = {"rtol": 2e-5, "atol": 2e-6} if expected.dtype.kind in "fc" else {"rtol": 0}
    np.testing.assert_allclose(out, expected, **close)
    np.testing.assert_allclose(one[0], expected.flat[1], **close)


@pytest.mark.parametrize("name", TWO)
@pytest.mark.parametrize("dtypes", [("i4", "i4"), ("u1", "i1"), ("u8", "u8"), ("f4", "f8"), ("i8", "u8")])
def test_of_two_numbers(run, name, dtypes):
    x, y = np.array([7, 5, 1, 0]).astype(dtypes[0]), np.array([2, 3, 1, 1]).astype(dtypes[1])
    try:
        getattr(np, name)(x, y)
    except TypeError:
        with pytest.raises(TileTypeError, match="is not defined; convert"):
            run(kernel_of(name), 1, 1, x, y, np.zeros(4, np.int64), np.zeros(1, np.int64))
        return
    check(run, name, x, y)


@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize("dtype", ["i4", "u1", "f4"])
def test_of_a_number(run, name, dtype):
    if name != "invert" or dtype != "f4":
        check(run, name, np.array([7, 5, 1, 2]).astype(dtype))


@pytest.mark.parametrize("name", ["bitwise_and", "logical_or", "equal", "maximum", "add", "multiply"])
def test_of_bools(run, name):
    check(run, name, np.array([True, False, True, False]), np.array([True, True, False, False]))
    check(run, "invert", np.array([True, False]))


@pytest.mark.parametrize("name", CHOSEN)
def test_numbers_that_are_none(run, name):
    nan = np.nan
    check(run, name, np.array([nan, 1, nan, 2.0]), np.array([1, nan, nan, 1.0]))
    check(run, name, np.array([nan + 1j, 1, 2 + 1j, 2j]), np.array([1, nan * 1j, 2 + 3j, 1j]))


@pytest.mark.parametrize("name", [*ARITHMETIC, *COMPARED, *LOGICAL, *CHOSEN])
@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_of_two_complex_numbers(run, name, dtype):
    x, y = np.array([1 + 2j, 3j, 2 - 1j, 1 + 1j]).astype(dtype), np.array([1 + 1j, 2, 2 - 1j, 2 + 1j]).astype(dtype)
    check(run, name, x, y)


@pytest.mark.parametrize("name", COMPLEX)
def test_of_a_complex_number(run, name):
    check(run, name, np.array([0.5 + 0.25j, -0.5 - 0.5j, 0.1j, 0.75 + 0j], np.complex64))


@cuda.jit
def of_axes(x, y, out):
    np.multiply(x, y, out)
    np.add(out, 1, out=out)


def test_of_arrays_with_several_axes(run):
    x, y = np.arange(6.0).reshape(2, 3) * 1j, np.asfortranarray(np.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(run(of_axes, 1, 1, x, y, np.zeros((2, 3), complex))[2], x * y + 1)


@cuda.jit
def chosen(x, y, out, n):
    a, b = x, y
    for _ in range(n):
        a, b = b, a
    out[0] = len(a) + 10 * len(b)


@cuda.jit
def asked(flag, out):
    if flag is True:
        out[0] = 1
    if flag is not False:
        out[1] = 1
    if (out[0] > 0) is flag:
        out[2] = 1


def test_the_length_of_one_of_several_arrays(run):
    for n, expected in ((1, 43), (2, 34)):
        assert run(chosen, 1, 1, np.zeros(4), np.zeros(3), np.zeros(1, np.int64), n)[2][0] == expected


@pytest.mark.parametrize("flag", [True, False])
def test_whether_a_truth_is_one(run, flag):
    assert run(asked, 1, 1, flag, np.zeros(3, np.int64))[1].tolist() == [flag, flag, True]


@cuda.jit
def bounded(x, low, high, out):
    i = cuda.grid(1)
    out[0, i] = np.clip(x[i], low[i], high[i])
    out[1, i] = np.where(x[i] > 2, low[i], high[i])
    out[2, i] = math.gcd(int(x[i]), 6)
    out[3, i] = np.sign(x[i])


def test_of_numbers_alone(run):
    x, low, high = np.array([-7.5, 2.5, 9, -0.0]), np.array([-1, 2, 3, 1]), np.array([4, 4.5, 2, 2])
    *_, out = run(bounded, 1, 4, x, low, high, np.zeros((4, 4)))
    expected = [np.clip(x, low, high), np.where(x > 2, low, high), [math.gcd(int(v), 6) for v in x], np.sign(x)]
    np.testing.assert_array_equal(out, expected)
