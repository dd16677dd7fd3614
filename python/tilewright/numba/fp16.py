"""`cuda.fp16`: functions of float16 in kernels, by their names in CUDA C++."""

# The functions of kernels have values that no checker knows.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, operator"

import math

from .types import bool_, float16, float32, float64


def hadd(a, b):
    return float16(a) + float16(b)


def hsub(a, b):
    return float16(a) - float16(b)


def hmul(a, b):
    return float16(a) * float16(b)


def hdiv(a, b):
    """By float32, whose quotient of two float16 rounds to the nearest float16."""
    return float16(float32(float16(a)) / float32(float16(b)))


def hfma(a, b, c):
    """In float64, where the product is exact."""
    return float16(float64(float16(a)) * float64(float16(b)) + float64(float16(c)))


def hneg(a):
    return -float16(a)


def habs(a):
    return abs(float16(a))


def hmax(a, b):
    """The larger one; a number, where one of them is none."""
    x, y = float16(a), float16(b)
    return y if x != x or x < y else x


def hmin(a, b):
    x, y = float16(a), float16(b)
    return y if x != x or x > y else x


def heq(a, b):
    return bool_(float16(a) == float16(b))


def hne(a, b):
    """Ordered, as the function of CUDA C++: false where one of them is no number."""
    x, y = float16(a), float16(b)
    return bool_((x < y) | (x > y))


def hlt(a, b):
    return bool_(float16(a) < float16(b))


def hle(a, b):
    return bool_(float16(a) <= float16(b))


def hgt(a, b):
    return bool_(float16(a) > float16(b))


def hge(a, b):
    return bool_(float16(a) >= float16(b))


def hsin(a):
    return float16(math.sin(float32(float16(a))))


def hcos(a):
    return float16(math.cos(float32(float16(a))))


def hlog(a):
    return float16(math.log(float32(float16(a))))


def hlog2(a):
    return float16(math.log2(float32(float16(a))))


def hlog10(a):
    return float16(math.log10(float32(float16(a))))


def hexp(a):
    return float16(math.exp(float32(float16(a))))


def hexp2(a):
    return float16(math.exp2(float32(float16(a))))


def hexp10(a):
    return float16(math.pow(float32(10), float32(float16(a))))


def hsqrt(a):
    return float16(math.sqrt(float32(float16(a))))


def hrsqrt(a):
    return float16(float32(1) / math.sqrt(float32(float16(a))))


def hrcp(a):
    return float16(float32(1) / float32(float16(a)))


def hceil(a):
    return float16(-((-float64(float16(a))) // 1))


def hfloor(a):
    return float16(float64(float16(a)) // 1)


def htrunc(a):
    x = float64(float16(a))
    return float16(math.copysign(abs(x) // 1, x))


def hrint(a):
    """To the nearest integer, ties to even."""
    return float16(round(float64(float16(a)), 0))


__all__ = [
    "habs",
    "hadd",
    "hceil",
    "hcos",
    "hdiv",
    "heq",
    "hexp",
    "hexp2",
    "hexp10",
    "hfloor",
    "hfma",
    "hge",
    "hgt",
    "hle",
    "hlog",
    "hlog2",
    "hlog10",
    "hlt",
    "hmax",
    "hmin",
    "hmul",
    "hne",
    "hneg",
    "hrcp",
    "hrint",
    "hrsqrt",
    "hsin",
    "hsqrt",
    "hsub",
    "htrunc",
]  # a table of several in a line  # fmt: skip
