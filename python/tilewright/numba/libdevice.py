"""`cuda.libdevice`: functions of kernels by their names in CUDA C++, `sinf` of a float32 and `sin` of a float64.

They are what `math` gives for these types; `fast_sinf` and its like are the same as `sinf`.
"""

# The functions of kernels have values that no checker knows.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, operator, attr-defined"

from __future__ import annotations

import math
from typing import Any

from . import intrinsics as cuda
from .types import float32, float64, int32, int64, uint32, uint64

_OF_MATH = (
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "copysign", "cos", "cosh", "erf", "erfc", "exp",
    "expm1", "fabs", "fmod", "hypot", "lgamma", "log", "log10", "log1p", "log2", "nextafter", "pow", "remainder", "sin",
    "sinh", "sqrt", "tan", "tanh",
)  # a table of several in a line  # fmt: skip
_absolute = abs  # a function here has its name
_FAST = ("cos", "exp", "log", "log10", "log2", "pow", "sin", "tan")


# === of floats ===


def tgamma(x):
    return math.gamma(x)


def exp2(x):
    return math.exp2(x)


def exp10(x):
    return math.pow(x * 0 + 10, x)


def rsqrt(x):
    return 1 / math.sqrt(x)


def cbrt(x):
    return cuda.cbrt(x)


def rcbrt(x):
    return 1 / cuda.cbrt(x)


def floor(x):
    return x // 1


def ceil(x):
    return -((-x) // 1)


def trunc(x):
    return math.copysign(math.fabs(x) // 1, x)


def rint(x):
    return round(x, 0)


def fma(x, y, z):
    return cuda.fma(x, y, z)


def fmax(x, y):
    """The larger one; a number, where one of them is none."""
    return y if x != x or x < y else x


def fmin(x, y):
    return y if x != x or x > y else x


def fdim(x, y):
    return x - y if x > y else (x - y) * 0


def sinpi(x):
    return math.sin(math.pi * x)


def cospi(x):
    return math.cos(math.pi * x)


def _of_kind(function: Any, kind: Any) -> Any:
    """A function whose numbers are of a type, and so is what it gives."""

    def one(x):
        return kind(function(kind(x)))

    def two(x, y):
        return kind(function(kind(x), kind(y)))

    def three(x, y, z):
        return kind(function(kind(x), kind(y), kind(z)))

    made: Any = (one, two, three)[_arity(function) - 1]
    made.__doc__ = f"{function.__name__} of {kind.name}."
    return made


def _arity(function: Any) -> int:
    code = getattr(function, "__code__", None)
    if code is not None:
        return int(code.co_argcount)
    return 2 if function.__name__ in ("atan2", "copysign", "fmod", "hypot", "nextafter", "pow", "remainder") else 1


def _floats() -> dict[str, Any]:
    own = (tgamma, exp2, exp10, rsqrt, cbrt, rcbrt, floor, ceil, trunc, rint, fma, fmax, fmin, fdim, sinpi, cospi)
    functions = {name: getattr(math, name) for name in _OF_MATH} | {f.__name__: f for f in own}
    functions["nearbyint"] = rint
    found = {}
    for name, function in functions.items():
        found[name], found[f"{name}f"] = _of_kind(function, float64), _of_kind(function, float32)
    found.update({f"fast_{name}f": found[f"{name}f"] for name in (*_FAST, "exp10")})
    return found


# === of integers ===


def _of_integers(function: Any, kind: Any) -> Any:
    def run(x):
        return int32(function(kind(x)))

    run.__doc__ = f"{function.name} of {kind.name}."
    return run


def absolute(x):
    return int32(_absolute(int32(x)))


def llabs(x):
    return _absolute(int64(x))


def _extremum(function: Any, kind: Any) -> Any:
    def choose(x, y):
        return kind(function(kind(x), kind(y)))

    return choose


def mulhi(x, y):
    return int32((int64(int32(x)) * int64(int32(y))) >> 32)


def umulhi(x, y):
    return uint32((uint64(uint32(x)) * uint64(uint32(y))) >> uint64(32))


def _integers() -> dict[str, Any]:
    bits = {name: _of_integers(getattr(cuda, name), int32) for name in ("clz", "ffs", "popc")}
    wide = {f"{name}ll": _of_integers(getattr(cuda, name), int64) for name in ("clz", "ffs", "popc")}
    kinds = {"": int32, "u": uint32, "ll": int64, "ull": uint64}
    extremes = {f"{p}{f.__name__}": _extremum(f, k) for p, k in kinds.items() for f in (min, max)}
    return {**bits, **wide, **extremes, "abs": absolute, "llabs": llabs, "mulhi": mulhi, "umulhi": umulhi}


_found = _floats() | _integers()
globals().update(_found)

__all__ = sorted(_found)
