"""Functions of the bits of integers, and of floats, on the host and in device code."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ..dtype import DType, as_dtype, float32, int32
from ..errors import TileTypeError
from ..reference import threads
from ..reference.numbers import Number, common
from .warps import WarpMask

if TYPE_CHECKING:
    from ..capture.frame import Frame

__all__ = ["brev", "cbrt", "clz", "ffs", "fma", "popc", "rsqrt"]


def _dtype_of(value: Any) -> DType | None:
    """The format of a number, None of anything else; an int and a float of Python have 32 bits."""
    if type(value) in (int, float, WarpMask):
        return float32 if type(value) is float else int32
    own = getattr(value, "dtype", None)
    return as_dtype(own) if own is not None and getattr(value, "shape", None) == () else None


def _made(value: Any, dtype: DType, like: tuple[Any, ...]) -> Any:
    """A result: of the interpreter's kind in a kernel, else a NumPy scalar."""
    made = Number(value, dtype)
    return made if threads.current() or any(isinstance(v, Number) for v in like) else made.value


class _OfBits:
    """A function of the bits of an integer."""

    def __init__(self, name: str, text: str, compute: Callable[[int, int], int], same: bool = False) -> None:
        self.__name__, self.__doc__, self._compute, self._same = name, text, compute, same

    def __call__(self, x: Any) -> Any:
        dtype = _dtype_of(x)
        if dtype is None or not dtype.is_integral:
            raise TileTypeError(
                f"device.{self.__name__} is a function of an integer, found {x!r}; convert, as in int(x)"
            )
        found = self._compute(int(x) & ((1 << dtype.bits) - 1), dtype.bits)
        return _made(found, dtype if self._same else int32, (x,))

    def __tw_call__(self, frame: Frame, x: Any) -> Any:
        from ..capture.simt import intrinsics

        return intrinsics.of_bits(frame, self.__name__, x)


def _reversed(x: int, bits: int) -> int:
    return int(f"{x:0{bits}b}"[::-1], 2)


_COUNT = "popc(x): how many bits of the integer are set, an int32."
_REVERSE = "brev(x): the integer with its bits in reverse order."
_LEADING = "clz(x): how many zeros are above the highest bit that is set, an int32."
_FIRST = "ffs(x): the place of the lowest bit that is set, from 1, an int32; 0 if none is."
popc = _OfBits("popc", _COUNT, lambda x, bits: x.bit_count())
brev = _OfBits("brev", _REVERSE, _reversed, same=True)
clz = _OfBits("clz", _LEADING, lambda x, bits: bits - x.bit_length())
ffs = _OfBits("ffs", _FIRST, lambda x, bits: (x & -x).bit_length())


class _OfFloat:
    """A function of a float, of its format."""

    def __init__(self, name: str, text: str, compute: Callable[[float], float]) -> None:
        self.__name__, self.__doc__, self._compute = name, text, compute

    def __call__(self, a: Any) -> Any:
        dtype = _dtype_of(a)
        if dtype is None or not dtype.is_float:
            raise TileTypeError(f"device.{self.__name__} is a function of a float, found {a!r}")
        return _made(self._compute(float(a)), dtype, (a,))

    def __tw_call__(self, frame: Frame, a: Any) -> Any:
        from ..capture.simt import intrinsics

        return getattr(intrinsics, self.__name__)(frame, a)


def _inverse_root(a: float) -> float:
    if a > 0:
        return 1 / math.sqrt(a)
    return math.copysign(math.inf, a) if a == 0 else math.nan


class _MultiplyAdd:
    """fma(a, b, c): a * b + c of floats, rounded once."""

    __name__ = "fma"

    def __call__(self, a: Any, b: Any, c: Any) -> Any:
        values = (a, b, c)
        if any((dtype := _dtype_of(v)) is None or not dtype.is_float for v in values):
            raise TileTypeError(f"device.fma is a function of three floats, found {values}")
        dtype, _ = common([v if type(v) is float else Number(v, _dtype_of(v) or float32) for v in values])
        numbers = [float(Number(v, dtype)) for v in values]
        if not all(map(math.isfinite, numbers)):
            return _made(numbers[0] * numbers[1] + numbers[2], dtype, values)
        exact = Fraction(numbers[0]) * Fraction(numbers[1]) + Fraction(numbers[2])
        return _made(_rounded(exact, dtype), dtype, values)

    def __tw_call__(self, frame: Frame, a: Any, b: Any, c: Any) -> Any:
        from ..capture.simt import intrinsics

        return intrinsics.fma(frame, a, b, c)


def _rounded(exact: Fraction, dtype: DType) -> Any:
    """The number of a format that is nearest; of two, by way of a double that is never between them."""
    near = float(exact)
    if dtype.bits == 64 or Fraction(near) == exact:
        return near
    return math.nextafter(near, math.inf if Fraction(near) < exact else -math.inf) if _is_even(near) else near


def _is_even(value: float) -> bool:
    """Whether the last bit of a double is 0. Rounded to odd, it rounds to a narrower format as the number does."""
    return not (int(math.ldexp(math.frexp(value)[0], 53)) & 1)


cbrt = _OfFloat("cbrt", "cbrt(a): the real cube root, of the float's format.", math.cbrt)
rsqrt = _OfFloat(
    "rsqrt", "rsqrt(a): one over the square root; of float32 within 2 units in the last place.", _inverse_root
)
fma = _MultiplyAdd()
