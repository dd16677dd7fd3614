"""The operators of `OpKind` as functions that kernels inline, by name."""

# The kernels' values have no types that a checker knows.
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import Any


def plus(a, b):
    return a + b


def minus(a, b):
    return a - b


def multiplies(a, b):
    return a * b


def divides(a, b):
    return a / b


def modulus(a, b):
    return a % b


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
