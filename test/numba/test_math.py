"""Functions of `math` in kernels, as C has them: NaN and infinity, no exceptions, each in its dtype."""

import ctypes
import ctypes.util
import math

import numpy as np
import pytest

from tilewright.numba import cuda
from tilewright.numba.npm import cuda as npm

LIBM = ctypes.CDLL(ctypes.util.find_library("m"))

# Each function with numbers to try, and the bound of its error in units in the last place of float32 and float64.
ANY = (
    -1e3,
    -7.25,
    -2.5,
    -1.0,
    -0.5,
    -1e-3,
    -0.0,
    0.0,
    1e-3,
    0.5,
    1.0,
    1.5,
    2.5,
    7.25,
    1e3,
    math.inf,
    -math.inf,
    math.nan,
)
SMALL = (-5.0, -2.5, -1.0, -0.3, -1e-4, 0.0, 1e-4, 0.3, 1.0, 2.5, 5.0, math.inf, -math.inf, math.nan)
UNIT = (-1.0, -0.999, -0.5, -1e-3, 0.0, 1e-3, 0.3, 0.5, 0.999, 1.0, 1.5, math.nan)
ABOVE = (0.0, 1e-30, 1e-3, 0.5, 1.0, 1.5, 7.25, 1e3, 1e30, math.inf, -1.0, math.nan)
ONE = (1.0, 1.0001, 1.5, 2.0, 10.0, 1e5, 1e30, math.inf, 0.5, math.nan)
FUNCTIONS = {
    "acos": (UNIT, 6, "N-145"), "acosh": (ONE, 8, "N-146"), "asin": (UNIT, 6, "N-147"), "asinh": (ANY, 8, "N-148"),
    "atan": (ANY, 4, "N-149"), "atanh": (UNIT, 8, "N-151"), "ceil": (ANY, 0, "N-152"), "cos": (SMALL[:-3], 4, "N-154"),
    "cosh": (SMALL, 6, "N-155"), "exp": (SMALL, 6, "N-156"), "fabs": (ANY, 0, "N-157"), "floor": (ANY, 0, "N-158"),
    "log": (ABOVE, 3, "N-162"), "log10": (ABOVE, 4, "N-163"), "log1p": (ABOVE, 4, "N-164"),
    "sin": (SMALL[:-3], 4, "N-166"), "sinh": (SMALL, 6, "N-167"), "sqrt": (ABOVE, 0, "N-168"),
    "tan": (SMALL[:-3], 8, "N-169"),
    "tanh": (SMALL, 6, "N-170"), "erf": (SMALL, 64, "N-171"), "erfc": (SMALL, 256, "N-172"),
    "lgamma": ((0.1, 0.5, 1.5, 2.5, 3.0, 10.0, 30.5, 100.0, -0.5, -2.5, math.inf), 512, "N-174"),
    "tgamma": ((0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, -0.5, -2.5), 64, "N-173"),
    "trunc": (ANY, 0, "N-179"), "log2": (ABOVE, 3, "N-182"), "cbrt": (ANY, 4, "N-185"), "exp2": (SMALL, 6, "N-186"),
    "expm1": (SMALL, 6, "N-142"),
}  # a table of several in a line  # fmt: skip
PAIRS = [
    (x, y) for x in (-7.5, -1.0, -0.0, 0.0, 0.3, 2.0, 7.5, math.inf, math.nan) for y in (-2.5, -1.0, 0.5, 2.0, 3.0)
]
PAIRS += [(1.0, 0.0), (-1.0, -0.0), (2.0, math.inf), (0.0, 0.0)]
BINARY = {
    "atan2": (4, "N-150"), "copysign": (0, "N-153"), "fmod": (0, "N-159"), "hypot": (2, "N-175"), "pow": (4, "N-165"),
    "remainder": (0, "N-184"), "nextafter": (0, "N-187"),
}  # a table of several in a line  # fmt: skip


def marked(rows, *ids):
    return [pytest.param(name, marks=pytest.mark.spec(*ids, row[-1])) for name, row in rows.items()]


def of_c(name, dtype):
    """The function of C in double precision: what the others are held to."""
    function = getattr(LIBM, name)
    function.restype = ctypes.c_double
    return lambda *x: function(*(ctypes.c_double(float(v)) for v in x))


def assert_close(found, expected, ulps):
    expected = expected.astype(found.dtype)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(found[~finite & ~np.isnan(expected)], expected[~finite & ~np.isnan(expected)])
    distance = np.abs(found[finite].astype(np.longdouble) - expected[finite]) / np.spacing(
        np.minimum(np.abs(expected[finite]), np.finfo(found.dtype).max / 2)
    )
    assert (distance <= ulps).all(), (found[finite], expected[finite], distance)
    np.testing.assert_array_equal(np.signbit(found[finite & (found == 0)]), np.signbit(expected[finite & (found == 0)]))


def kernel_of(function):
    @cuda.jit
    def kernel(x, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i] = function(x[i])

    return kernel


def kernel_of_two(function):
    @cuda.jit
    def kernel(x, y, z):
        i = cuda.grid(1)
        if i < x.size:
            z[i] = function(x[i], y[i])

    return kernel


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", marked(FUNCTIONS, "N-140", "N-143"))
def test_functions(run, name, dtype):
    values, ulps, _ = FUNCTIONS[name]
    x = np.array(values, dtype)
    python = getattr(math, {"tgamma": "gamma"}.get(name, name))
    _, y = run(kernel_of(python), 1, 32, x, np.zeros_like(x))
    assert_close(y, np.array([of_c(name, dtype)(v) for v in x]), ulps)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", marked(BINARY))
def test_functions_of_two(run, name, dtype):
    x, y = (np.array(v, dtype) for v in zip(*PAIRS, strict=True))
    *_, z = run(kernel_of_two(getattr(math, name)), 1, 64, x, y, np.zeros_like(x))
    function = of_c(name, dtype) if name != "nextafter" else lambda a, b: np.nextafter(dtype(a), dtype(b))
    assert_close(z, np.array([function(a, b) for a, b in zip(x, y, strict=True)]), BINARY[name][0])


@cuda.jit
def in_parts(x, out, whole):
    i = cuda.grid(1)
    if i < x.size:
        fraction, exponent = math.frexp(x[i])
        out[0, i], whole[0, i] = fraction, exponent
        rest, number = math.modf(x[i])
        out[1, i], out[2, i] = rest, number
        out[3, i] = math.ldexp(x[i], 3)
        out[4, i] = math.degrees(x[i])
        out[5, i] = math.radians(x[i])
        whole[1, i] = math.isnan(x[i])
        whole[2, i] = math.isinf(x[i])
        whole[3, i] = math.isfinite(x[i])
        out[6, i] = math.log(x[i], 2.0)


@pytest.mark.spec("N-037", "N-160", "N-161", "N-176", "N-177", "N-178", "N-180", "N-181", "N-183")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_parts_of_numbers(run, dtype):
    x = np.array([*ANY, 1e-310, 3e-320], dtype)
    _, out, whole = run(in_parts, 1, 32, x, np.zeros((7, len(x)), dtype), np.zeros((4, len(x)), np.int32))
    fraction, exponent = np.frexp(x)
    np.testing.assert_array_equal(out[0], fraction)
    np.testing.assert_array_equal(whole[0], exponent)
    rest, number = np.modf(x)
    np.testing.assert_array_equal(out[1], rest)
    np.testing.assert_array_equal(out[2], number)
    np.testing.assert_array_equal(out[3], np.ldexp(x, 3))
    np.testing.assert_allclose(out[4], np.degrees(x), rtol=4e-7)
    np.testing.assert_allclose(out[5], np.radians(x), rtol=4e-7)
    np.testing.assert_array_equal(whole[1:], [np.isnan(x), np.isinf(x), np.isfinite(x)])
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(out[6][x > 0], np.log2(x[x > 0]), rtol=4e-7)


@cuda.jit
def errors(x, y):
    y[0] = math.log(x[0])
    y[1] = math.exp(x[1])
    y[2] = math.sqrt(x[0])
    y[3] = math.acos(x[1])
    y[4] = math.pi + math.e + math.tau
    y[5] = math.inf
    y[6] = math.nan


@pytest.mark.spec("N-141", "N-188")
def test_no_exceptions(run):
    _, y = run(errors, 1, 1, np.array([-1.0, 1000.0]), np.zeros(7))
    np.testing.assert_array_equal(y, [np.nan, np.inf, np.nan, np.nan, math.pi + math.e + math.tau, np.inf, np.nan])


@npm.jit
def of_integers(x8, x64, known):
    known[0] = math.sqrt(x8[0]).dtype == np.float32
    known[1] = math.sqrt(x64[0]).dtype == np.float64
    known[2] = math.sqrt(x64[0]) == 2.0


@pytest.mark.spec("N-144")
def test_integers_are_converted(run):
    *_, known = run(of_integers, 1, 1, np.array([4], np.int8), np.array([4]), np.zeros(3, np.bool_))
    assert known.all()


@cuda.jit
def powers(x, y, n, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i, 0] = x[i] ** y[i]
        out[i, 1] = x[i] ** n[i]


def test_powers_of_float64_are_exact_to_the_last_bit(run):
    """Also where the result is large, and so a small error of the logarithm would be one of hundreds of units."""
    base, exponent = np.meshgrid(np.arange(1, 21.0), np.arange(0, 12.0))
    x, y = (v[base**exponent < 2**53] for v in (base, exponent))
    *_, out = run(powers, 4, 64, x, y, y.astype(np.int64), np.zeros((len(x), 2)))
    np.testing.assert_array_equal(out, np.stack([x**y, x**y], axis=1))  # whole numbers, exactly
    rng = np.random.default_rng(0)
    x, y = np.exp(rng.uniform(-30, 30, 256)), rng.uniform(-23, 23, 256)
    *_, out = run(powers, 4, 64, x, y, y.astype(np.int64), np.zeros((256, 2)))
    np.testing.assert_array_max_ulp(out, np.stack([x**y, x ** y.astype(np.int64)], axis=1), 2)
