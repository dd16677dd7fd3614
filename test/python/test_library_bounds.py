"""How far off sigmoid, silu, softplus and expm1 of float32 can be on a GPU: from the ISA's bounds and the lowering's
own constants, where a sweep over all that the ISA allows (docs/design/measurements.md) does not reach.

Errors are in units of U, half a unit in the last place of 1, which is what one rounding moves a result by at most. A
relative error of n U is at most n units in the last place, since a float's last place is at least U of it.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright import tile as ct

ROOT = Path(__file__).resolve().parents[2]
MATH = (ROOT / "lowering/gpu/emit/rules/math.c").read_text()
U = 2.0**-24
SWEPT = 2.0**-6, 104.0  # what the sweep covers, operand by operand
SLACK = 1 + 1e-6  # products of errors, and the float64 that this computes in
NEAR = np.linspace(-SWEPT[0], SWEPT[0], 4097)


def number(text: str) -> float:
    found = re.search(text + r" = ([-\w.+]+)", MATH)
    assert found is not None, text
    return float.fromhex(found[1]) if "0x" in found[1] else float(found[1])


def ex2() -> float:
    """What the ISA lets ex2.approx.ftz be off by; the emulator keeps to the same."""
    found = re.search(
        r"emu_ex2\(float x\) \{ return emu_flush\(off_by\((0x1p-\d+)", (ROOT / "test/emulator/numbers.c").read_text()
    )
    assert found is not None and 'ex2.approx.ftz.f32 $0, $1;", r)' in MATH
    return float.fromhex(found[1])


def exponential(most: float) -> float:
    """exp_f32 of operands up to `most`: x log2(e) - n in two roundings of a number below 1, then the instruction."""
    step = number("LOG2_E")
    high = float(np.float32(step))
    low = float(np.float32(step - high))
    dropped = most * (abs(1 / math.log(2) - high - low) + 2.0**-53)
    argument = 2 * U / 2 + dropped
    return (math.log(2) * argument + ex2()) / U * SLACK


def logarithm(m: Any, exponent: int) -> Any:
    """emit_log of m 2^exponent for m near 1, relative: its polynomial, and the roundings behind it."""
    f = m - 1
    text = re.search(r"log1p_rest_f32.*?c\[\] = \{(.*?)\}", MATH, re.S)
    assert text is not None
    c = [float(np.float32(v)) for v in text[1].split(",")]
    fitted = f * f * (np.polyval(c, f) * f - 0.5)
    # Near 0 the series itself, where float64 cancels: what is left out is below f^12.
    right = sum((-1) ** (n + 1) * f**n / n for n in range(2, 12))
    polynomial = np.abs(fitted - right) + np.abs(f) ** 12
    evaluated = 12 * U * np.abs(right) * 1.1  # eight multiply-adds that shrink by f, a square and a product
    rest = np.abs(f) + np.abs(right)
    total = np.abs(exponent * math.log(2) + f + right)
    constant = abs(exponent) * abs(float(np.float32(number("LN_2"))) - math.log(2))
    roundings = U * total + (U * rest * 1.1 if exponent else 0)
    with np.errstate(invalid="ignore"):
        return (polynomial + evaluated + constant + roundings) / total / U * SLACK


def told(function: Any) -> float:
    found = re.search(r"to (\d+) units in the last place", function.__doc__)
    assert found is not None
    return float(found[1])


def log1p(e: np.ndarray, off: float) -> np.ndarray:
    """log1p(e) of library.py for an e near 1 that is `off`: log(near) * (e / rest) with near = 1 + e."""
    near = 1 + e
    rounded = U * near / 2 / U  # of 1 + e, absolute: half a unit in the last place of what is from 1 to 2
    carried = np.abs(1 / ((1 + e) * np.log1p(e)) - 1 / e) * rounded  # log(near) / rest hardly moves with near
    felt = e / ((1 + e) * np.log1p(e)) * off
    return (felt + carried + logarithm(near / 2, 1) + 2) * SLACK  # a quotient and a product


def test_sigmoid_and_silu_at_every_operand() -> None:
    """A sum, a quotient, and for silu a product behind the exponential; where the results are normal numbers."""
    sigmoid = exponential(SWEPT[1]) + 2
    assert sigmoid <= told(ct.sigmoid) and sigmoid + 1 <= told(ct.silu)


def test_softplus_near_0() -> None:
    """max(x, 0) + log1p(exp(-abs(x))), from 0.5 to 1, where a unit in the last place is U; the sum is rounded, too."""
    e = np.exp(-np.abs(NEAR))
    result = np.maximum(NEAR, 0) + np.log1p(e)
    assert result.min() > 0.5 and result.max() < 1
    assert (np.log1p(e) * log1p(e, exponential(SWEPT[0]))).max() + 0.5 <= told(ct.softplus)


def test_softplus_far_away() -> None:
    """From 104 on exp(-x) is less than half of the least subnormal number: the result is x, or 0, or one unit of it."""
    assert math.exp(-SWEPT[1]) * (1 + exponential(128) * U) < 2.0**-150
    assert SWEPT[1] + 2.0**-149 == SWEPT[1]


def test_expm1_near_0() -> None:
    """rest * (x / log(e)) with rest = e - 1, exact, of an e that is off: the quotient of both moves by half of that."""
    off = exponential(SWEPT[0])
    x = NEAR[NEAR != 0]
    e = np.exp(x)
    felt = np.abs(e / np.expm1(x) - 1 / x) * off
    assert (felt + logarithm(e, 0) + 2).max() * SLACK <= told(ct.expm1)
    assert (off + 1) / 2 <= told(ct.expm1), "where e is 1 the result is x, of an x that is no larger than that"


def test_expm1_far_away() -> None:
    """e is infinite, or e - 1 is -1."""
    assert math.exp(SWEPT[1]) > 2.0**128 * (1 + 2 * U) and math.exp(-SWEPT[1]) < U / 2


@pytest.mark.parametrize("name", ["LOG2_E", "LN_2"])
def test_the_constants_are_read(name: str) -> None:
    assert math.isclose(number(name), {"LOG2_E": 1 / math.log(2), "LN_2": math.log(2)}[name], rel_tol=1e-15)
