"""Functions of complex numbers, in tile code: of a real and an imaginary part, in their dtype; two parts come out.

Results near branch cuts are those of C; of what is infinite or no number only the signs that a formula gives.
"""

# Tile code: its values have no types that a checker knows.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, operator"

import math

from .. import tile as ct
from ..c_math import asinh as _asinh
from ..c_math import atan2, copysign, hypot, log1p


def rect(length, angle):
    return length * ct.cos(angle), ct.where(angle == 0, angle, length * ct.sin(angle))


def exp(x, y):
    return rect(ct.exp(x), y)


def log(x, y):
    return ct.log(hypot(x, y)), atan2(y, x)


def log10(x, y):
    length, angle = log(x, y)
    return length * (1 / math.log(10)), angle * (1 / math.log(10))


def sqrt(x, y):
    """The larger part first, without cancellation: the other one is y over its double."""
    large = ct.sqrt(0.5 * (hypot(x, y) + ct.abs(x)))
    small = ct.where(large == 0, large, ct.abs(y) / (2 * large))
    right = x >= 0
    return ct.where(right, large, small), copysign(ct.where(right, small, large), y)


def sin(x, y):
    return ct.sin(x) * ct.cosh(y), ct.cos(x) * ct.sinh(y)


def cos(x, y):
    return ct.cos(x) * ct.cosh(y), -ct.sin(x) * ct.sinh(y)


def sinh(x, y):
    return ct.sinh(x) * ct.cos(y), ct.cosh(x) * ct.sin(y)


def cosh(x, y):
    return ct.cosh(x) * ct.cos(y), ct.sinh(x) * ct.sin(y)


def tanh(x, y):
    """Of sums of angles; where cosh is large, the end that tanh has come to."""
    near = ct.minimum(ct.maximum(x, -20.0), 20.0)
    half = ct.sinh(near)
    below = ct.cos(y) * ct.cos(y) + half * half
    far = ct.abs(x) > 20.0
    real = ct.where(far, copysign(x * 0 + 1, x), half * ct.cosh(near) / below)
    return real, ct.where(far, 0 * y, ct.sin(y) * ct.cos(y) / below)


def tan(x, y):
    real, imag = tanh(-y, x)
    return imag, -real


def asinh(x, y):
    a, b = sqrt(1 + y, -x)
    c, d = sqrt(1 - y, x)
    return _asinh(a * d - c * b), atan2(y, a * c - b * d)


def acosh(x, y):
    a, b = sqrt(x - 1, y)
    c, d = sqrt(x + 1, y)
    return _asinh(a * c + b * d), 2 * atan2(b, c)


def acos(x, y):
    a, b = sqrt(1 - x, -y)
    c, d = sqrt(1 + x, y)
    return 2 * atan2(a, c), _asinh(c * b - d * a)


def asin(x, y):
    real, imag = asinh(-y, x)
    return imag, -real


def atanh(x, y):
    """Of numbers with a real part from 0 on; it is odd."""
    size = ct.abs(x)
    v = ct.where(x == size, y, -y)
    real = 0.25 * log1p(4 * size / ((1 - size) * (1 - size) + v * v))
    imag = -0.5 * atan2(-2 * v, (1 - size) * (1 + size) - v * v)
    return copysign(real, x), ct.where(x == size, imag, -imag)


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
