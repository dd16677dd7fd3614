"""The operators of `OpKind` as functions that kernels inline, by name."""

# The kernels' values have no types that a checker knows.
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import Any

from ..dtype import DType
from ..errors import TileError
from .types import type_in_kernel


def plus(a, b):
    return a + b


def minus(a, b):
    return a - b


def multiplies(a, b):
    return a * b


class _OfIntegers:
    """In a kernel: one function of two integers, another one of other numbers."""

    def __init__(self, of_integers: Any, of_others: Any) -> None:
        self.of_integers, self.of_others = of_integers, of_others

    def __call__(self, a: Any, b: Any) -> Any:
        raise TileError("an operator of kernels was called on the host")

    def __tw_call__(self, frame: Any, a: Any, b: Any) -> Any:
        from ..capture.calls import call

        types = [type_in_kernel(frame, value) for value in (a, b)]
        integers = all(isinstance(t, DType) and t.is_integral and not t.is_bool for t in types)
        return call(frame, self.of_integers if integers else self.of_others, [a, b], {}, frame.node)


def _toward_zero(a, b):
    down = a // b
    return down + ((down * b != a) & ((a < 0) != (b < 0)))


def _with_sign_of_dividend(a, b):
    return a - _toward_zero(a, b) * b


def _divided(a, b):
    return a / b


def _remainder(a, b):
    return a % b


_quotient_of, _remainder_of = _OfIntegers(_toward_zero, _divided), _OfIntegers(_with_sign_of_dividend, _remainder)


def divides(a, b):
    """Of integers as C++ has it: toward zero, and all bits count."""
    return _quotient_of(a, b)


def modulus(a, b):
    """Of integers as C++ has it: with the sign of a."""
    return _remainder_of(a, b)


def equal_to(a, b):
    return a == b


def not_equal_to(a, b):
    return a != b


def greater(a, b):
    return a > b


def less(a, b):
    return a < b


def greater_equal(a, b):
    return a >= b


def less_equal(a, b):
    return a <= b


def logical_and(a, b):
    return (a != 0) & (b != 0)


def logical_or(a, b):
    return (a != 0) | (b != 0)


def logical_not(a):
    return a == 0


def bit_and(a, b):
    return a & b


def bit_or(a, b):
    return a | b


def bit_xor(a, b):
    return a ^ b


def bit_not(a):
    return ~a


def identity(a):
    return a


def negate(a):
    return -a


def minimum(a, b):
    return b if b < a else a


def maximum(a, b):
    return b if a < b else a


FUNCTIONS: dict[str, Any] = {
    f.__name__.upper(): f
    for f in (
        plus,
        minus,
        multiplies,
        divides,
        modulus,
        equal_to,
        not_equal_to,
        greater,
        less,
        greater_equal,
        less_equal,
        logical_and,
        logical_or,
        logical_not,
        bit_and,
        bit_or,
        bit_xor,
        bit_not,
        identity,
        negate,
        minimum,
        maximum,
    )
}
COMMUTING = frozenset((plus, multiplies, logical_and, logical_or, bit_and, bit_or, bit_xor, minimum, maximum))
