"""Functions of complex numbers, in tile code: of a real and an imaginary part, in their dtype; two parts come out.

Results near branch cuts, and of parts that are infinite or no numbers, are those of Python's cmath, which are C's.
"""

# Tile code: its values have no types that a checker knows.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, operator"

import math

from .. import tile as ct
from ..c_math import asinh as _asinh
from ..c_math import atan2, copysign, hypot, log1p


def _signed(size, x):
    """A constant with the sign of x, which is + of what is no number."""
    size = x.dtype(size)
    return ct.where(ct.isnan(x), size, copysign(size, x))


def _is_infinite(x):
    return ct.abs(x) == math.inf


def _is_special(x):
    return _is_infinite(x) | ct.isnan(x)


def _angle(x, y, none):
    """atan2 of an end of the plane; y itself, or no number, where a part is none: then `none` says where it is y."""
    return ct.where(ct.isnan(x) | ct.isnan(y), ct.where(none, y, math.nan), atan2(y, x))


def rect(length, angle):
    """An infinite length has an infinite real part in all directions, and none at all has no direction."""
    real, imag = length * ct.cos(angle), length * ct.sin(angle)
    lost = _is_special(angle)
    real = ct.where(lost & (length == 0), 0.0, ct.where(lost & _is_infinite(length), math.inf, real))
    along = ct.where(ct.isnan(length), angle, _signed(1, length) * angle)
    return real, ct.where(angle == 0, along, ct.where(lost & (length == 0), 0.0, imag))


def exp(x, y):
    return rect(ct.exp(x), y)


def log(x, y):
    return ct.log(hypot(x, y)), atan2(y, x)


def log10(x, y):
    length, angle = log(x, y)
    return length * (1 / math.log(10)), angle * (1 / math.log(10))


def sqrt(x, y):
    """The larger part first, without cancellation: the other one is y over its double."""
    large = ct.where(_is_infinite(y), math.inf, ct.sqrt(0.5 * (hypot(x, y) + ct.abs(x))))
    small = ct.where(large == 0, large, ct.where(_is_infinite(y), math.inf, ct.abs(y) / (2 * large)))
    right = x >= 0
    return ct.where(right, large, small), copysign(ct.where(right, small, large), y)


def sin(x, y):
    real, imag = sinh(-y, x)
    return imag, -real


def cos(x, y):
    return cosh(-y, x)


def sinh(x, y):
    """Without a direction, what is infinite has an infinite real part, and what is zero a real part of zero."""
    lost = _is_special(y)
    real = ct.where(lost & (x == 0), 0.0, ct.where(lost & _is_infinite(x), math.inf, ct.sinh(x) * ct.cos(y)))
    return real, ct.where(y == 0, y, ct.cosh(x) * ct.sin(y))


def cosh(x, y):
    lost = _is_special(y)
    real = ct.where(lost & _is_infinite(x), math.inf, ct.cosh(x) * ct.cos(y))
    imag = ct.where(lost & (x == 0), 0.0, ct.sinh(x) * ct.sin(y))
    along = ct.where(ct.isnan(x), ct.abs(y), _signed(1, x) * y)
    return real, ct.where(y == 0, along, imag)


def tanh(x, y):
    """Of sums of angles; where cosh is large, the end that tanh has come to."""
    near = ct.minimum(ct.maximum(x, -20.0, propagate_nan=True), 20.0, propagate_nan=True)
    half = ct.sinh(near)
    below = ct.cos(y) * ct.cos(y) + half * half
    far = ct.abs(x) > 20.0
    turned = ct.sin(y) * ct.cos(y)
    end = ct.where(_is_special(y), 0.0, _signed(0, turned))
    imag = ct.where(far, ct.where(y == 0, y, end), ct.where(y == 0, y, turned / below))
    return ct.where(far, _signed(1, x), half * ct.cosh(near) / below), imag


def tan(x, y):
    real, imag = tanh(-y, x)
    return imag, -real


def _inverse(x, y, real, imag, end, none):
    """Parts of an inverse function, which are `end` and an angle where x or y are no finite numbers."""
    special = _is_special(x) | _is_special(y)
    end = ct.where(_is_infinite(x) | _is_infinite(y), end, math.nan)
    return ct.where(special, end, real), ct.where(special, none, imag)


def asinh(x, y):
    a, b = sqrt(1 + y, -x)
    c, d = sqrt(1 - y, x)
    angle = _angle(ct.abs(x), y, ct.isnan(x) & (y == 0))
    return _inverse(x, y, _asinh(a * d - c * b), atan2(y, a * c - b * d), _signed(math.inf, x), angle)


def acosh(x, y):
    a, b = sqrt(x - 1, y)
    c, d = sqrt(x + 1, y)
    angle = _angle(x, y, ct.isnan(x) & ct.isnan(y))
    return _inverse(x, y, _asinh(a * c + b * d), 2 * atan2(b, c), x.dtype(math.inf), angle)


def acos(x, y):
    a, b = sqrt(1 - x, -y)
    c, d = sqrt(1 + x, y)
    angle = ct.where((x == 0) & ct.isnan(y), math.pi / 2, _angle(x, ct.abs(y), ct.isnan(x) & ct.isnan(y)))
    imag, real = _inverse(x, y, _asinh(c * b - d * a), 2 * atan2(a, c), _signed(math.inf, -y), angle)
    return real, imag


def asin(x, y):
    real, imag = asinh(-y, x)
    return imag, -real


def atanh(x, y):
    """Of numbers with a real part from 0 on; it is odd."""
    size = ct.abs(x)
    v = ct.where(x == size, y, -y)
    real = 0.25 * log1p(4 * size / ((1 - size) * (1 - size) + v * v))
    imag = -0.5 * atan2(-2 * v, (1 - size) * (1 + size) - v * v)
    real, imag = copysign(real, x), ct.where(x == size, imag, -imag)
    far = (_is_infinite(x) | _is_infinite(y)) & (ct.isnan(y) == False)  # noqa: E712
    angle = ct.where(far, _signed(math.pi / 2, y), math.nan)
    real, imag = _inverse(x, y, real, imag, _signed(0, x), angle)
    return ct.where((x == 0) & ct.isnan(y), x, real), imag


def atan(x, y):
    real, imag = atanh(-y, x)
    return imag, -real


def integer_power(x, y, exponent):
    """By squares; one over that for an exponent below zero."""
    real, imag = x * 0 + 1, y * 0
    a, b = x, y
    rest = ct.where(exponent < 0, -exponent, exponent)
    while rest > 0:
        if rest & 1 == 1:
            real, imag = real * a - imag * b, real * b + imag * a
        a, b = a * a - b * b, 2 * a * b
        rest = rest >> 1
    if exponent < 0:
        length = real * real + imag * imag
        real, imag = real / length, -imag / length
    return real, imag


def power(x, y, u, v):
    """exp of the exponent times log; 0 to a power is 0, but 1 for the exponent 0."""
    length, angle = log(x, y)
    real, imag = exp(u * length - v * angle, u * angle + v * length)
    none, one = (x == 0) & (y == 0), (u == 0) & (v == 0)
    return ct.where(one, x * 0 + 1, ct.where(none, 0 * u, real)), ct.where(one | none, 0 * v, imag)
