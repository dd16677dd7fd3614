"""Functions of C's math.h that are no operations of tile code, written in tile code: of floats, in their dtype.

Errors give NaN or infinity, never an exception. test/numba/test_math.py holds each to a bound of its error. What says
so computes float32 in float64.
"""

# Tile code: its values have no types that a checker knows.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, operator"

from __future__ import annotations

import math

from . import tile as ct
from .library import _ERF_END_64, _ERFCX_64, _is_negative, _polynomial, asinh, atan2, cbrt, erf, expm1, log1p

__all__ = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "copysign",
    "degrees",
    "erf",
    "erfc",
    "expm1",
    "fabs",
    "fmod",
    "frexp",
    "gamma",
    "hypot",
    "isfinite",
    "isinf",
    "isnan",
    "lgamma",
    "log1p",
    "log10",
    "modf",
    "nextafter",
    "radians",
    "remainder",
    "trunc",
]


# === angles ===


def asin(x):
    return atan2(x, ct.sqrt((1 - x) * (1 + x)))


def acos(x):
    return atan2(ct.sqrt((1 - x) * (1 + x)), x)


def atan(x):
    return atan2(x, ct.where(x == x, 1.0, x))


def atanh(x):
    size = ct.abs(x)
    y = 0.5 * log1p(2 * size / (1 - size))
    return ct.where(x == 0, x, ct.where(_is_negative(x), -y, y))


def acosh(x):
    above = x - 1
    near = log1p(above + ct.sqrt(2 * above + above * above))
    return ct.where(x > 2.0**28, ct.log(x) + math.log(2), near)


def degrees(x):
    return x * (180 / math.pi)


def radians(x):
    return x * (math.pi / 180)


# === signs, and whole numbers ===


def fabs(x):
    return ct.abs(x)


def copysign(x, y):
    size = ct.abs(x)
    return ct.where(_is_negative(y), -size, size)


def trunc(x):
    return ct.where(x < 0, ct.ceil(x), ct.floor(x))


def rint(x):
    """To the nearest whole number, of two the even one."""
    whole = 2.0**52 if x.dtype == ct.float64 else 2.0**23
    size = ct.abs(x)
    return copysign(ct.where(size < whole, (size + whole) - whole, size), x)


def modf(x):
    whole = trunc(x)
    rest = ct.where(ct.abs(x) == math.inf, 0.0, x - whole)
    return copysign(rest, x), whole


def fmod(x, y):
    """With the sign of x."""
    size = ct.abs(y)
    rest = ct.where(size == math.inf, ct.abs(x), ct.mod(ct.abs(x), size))
    return copysign(ct.where(ct.abs(x) == math.inf, math.nan, rest), x)


def remainder(x, y):
    """x less the nearest multiple of y, of two the even one."""
    size = ct.abs(y)
    rest = ct.where(size < (2.0**1022 if x.dtype == ct.float64 else 2.0**126), fmod(ct.abs(x), 2 * size), ct.abs(x))
    once = ct.where(rest > 0.5 * size, rest - size, rest)
    twice = ct.where((rest > 0.5 * size) & (once >= 0.5 * size), once - size, once)
    return ct.where(_is_negative(x), -twice, twice)


def isinf(x):
    return ct.abs(x) == math.inf


def isnan(x):
    return x != x


def isfinite(x):
    return ct.abs(x) < math.inf


# === powers ===


def log10(x):
    return ct.log(x) * (1 / math.log(10))


def hypot(x, y):
    x, y = ct.abs(x), ct.abs(y)
    least, most = ct.minimum(x, y, propagate_nan=True), ct.maximum(x, y, propagate_nan=True)
    ratio = ct.where(most == 0, 0.0, least / most)
    length = most * ct.sqrt(1 + ratio * ratio)
    return ct.where((x == math.inf) | (y == math.inf), math.inf, length)


def frexp(x):
    """A fraction from 0.5 to 1, and an exponent of 2. Each float32 is a normal float64."""
    wide = ct.astype(x, ct.float64)
    small = ct.abs(wide) < 2.0**-1022
    scaled = ct.where(small, wide * 2.0**54, wide)
    bits = ct.bitcast(scaled, ct.int64)
    exponent = ct.astype((bits >> 52) & 0x7FF, ct.int32) - 1022 - ct.where(small, 54, 0)
    fraction = ct.bitcast((bits & ~(0x7FF << 52)) | (1022 << 52), ct.float64)
    plain = (wide == 0) | (ct.abs(wide) == math.inf) | (wide != wide)
    return ct.astype(ct.where(plain, wide, fraction), x.dtype), ct.where(plain, 0, exponent)


def _power_of_two(n):
    return ct.bitcast((n + 1023) << 52, ct.float64)


def ldexp(x, n):
    """x * 2**n, rounded once. In float64."""
    y = ct.astype(x, ct.float64)
    for _ in ct.static_iter(range(2)):
        y = ct.where(n > 1023, y * 2.0**1023, ct.where(n < -1022, y * 2.0**-969, y))
        n = ct.where(n > 1023, n - 1023, ct.where(n < -1022, n + 969, n))
    n = ct.minimum(ct.maximum(n, -1022), 1023)
    return ct.astype(y * _power_of_two(n), x.dtype)


def nextafter(x, y):
    kind = ct.int64 if x.dtype == ct.float64 else ct.int32
    bits = ct.bitcast(x, kind)
    up = (x < y) == (x > 0)
    step = ct.where(up, ct.astype(1, kind), ct.astype(-1, kind))
    least = ct.bitcast(ct.astype(1, kind), x.dtype)
    moved = ct.where(x == 0, copysign(least, y), ct.bitcast(bits + step, x.dtype))
    return ct.where((x != x) | (y != y), x + y, ct.where(x == y, y, moved))


# === special functions, in float64 ===

_ASYMPTOTIC = tuple((-1) ** n * math.prod(range(1, 2 * n, 2)) / 2**n for n in reversed(range(13)))


def erfc(x):
    """1 - erf(x), exact where that is small."""
    wide = ct.astype(x, ct.float64)
    size = ct.abs(wide)
    near = ct.minimum(ct.maximum(size, 1.0), _ERF_END_64)
    middle = _polynomial((2 * near - (1 + _ERF_END_64)) * (1 / (_ERF_END_64 - 1)), _ERFCX_64)
    far = ct.maximum(size, _ERF_END_64)
    tail = _polynomial(1 / (far * far), _ASYMPTOTIC) / (far * math.sqrt(math.pi))
    y = ct.exp(-size * size) * ct.where(size < _ERF_END_64, middle, tail)
    y = ct.where(size < 1, 1 - erf(size), y)
    y = ct.where(wide < 0, 2 - y, y)
    return ct.astype(ct.where(wide != wide, wide, y), x.dtype)


# Of Lanczos' series with g = 7.
_LANCZOS = (
    0.99999999999980993,
    676.5203681218851,
    -1259.1392167224028,
    771.32342877765313,
    -176.61502916214059,
    12.507343278686905,
    -0.13857109526572012,
    9.9843695780195716e-6,
    1.5056327351493116e-7,
)


def _lanczos(x):
    """The sum for gamma(x + 1)."""
    total = ct.astype(_LANCZOS[0], ct.float64)
    for n in ct.static_iter(range(1, len(_LANCZOS))):
        total = total + _LANCZOS[n] / (x + n)
    return total


def _gamma_above(x):
    """gamma(x) of x from 0.5 on."""
    t = x + 6.5
    half = ct.pow(t, 0.5 * (x - 0.5))  # the power itself may be infinite where gamma is not
    return math.sqrt(2 * math.pi) * half * ct.exp(-t) * half * _lanczos(x - 1)


def gamma(x):
    wide = ct.astype(x, ct.float64)
    above = _gamma_above(ct.where(wide < 0.5, 1 - wide, wide))
    below = math.pi / (_sin_pi(wide) * above)
    y = ct.where(wide < 0.5, below, above)
    y = ct.where((wide < 0) & (ct.floor(wide) == wide), math.nan, ct.where(wide > 171.7, math.inf, y))
    y = ct.where(wide == 0, 1 / wide, y)
    return ct.astype(y, x.dtype)


def lgamma(x):
    wide = ct.astype(x, ct.float64)
    z = ct.where(wide < 0.5, 1 - wide, wide)
    t = z + 6.5
    above = 0.5 * math.log(2 * math.pi) + (z - 0.5) * ct.log(t) - t + ct.log(_lanczos(z - 1))
    below = math.log(math.pi) - ct.log(ct.abs(_sin_pi(wide))) - above
    y = ct.where(wide < 0.5, below, above)
    whole = (wide <= 0) & (ct.floor(wide) == wide)
    y = ct.where(whole | (ct.abs(wide) == math.inf), math.inf, ct.where((wide == 1) | (wide == 2), 0.0, y))
    return ct.astype(y, x.dtype)


def _sin_pi(x):
    """sin(pi x), by what x has beyond an even number."""
    rest = x - 2 * ct.floor(0.5 * x)
    return ct.sin(math.pi * rest)
