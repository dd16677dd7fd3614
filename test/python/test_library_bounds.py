"""How far off sigmoid, silu and softplus of float32 can be on a GPU: from the ISA's bounds and the lowering's
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

from tilewright import library
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
    """What ex2.approx.ftz may be off by, of its result: two units in the last place; the emulator keeps to the same."""
    found = re.search(r"off_by\((0x1p-\d+) / part, exp2\(x\), x\)", (ROOT / "test/emulator/numbers.c").read_text())
    assert found is not None and 'ex2.approx.ftz.f32 $0, $1;", r)' in MATH
    return float.fromhex(found[1]) * 2  # a part is 1/2 at least


def exponential(most: float) -> float:
    """exp_f32 of operands up to `most`: x log2(e) - n in two roundings of a number below 1, then the instruction."""
    step = number("LOG2_E")
    high = float(np.float32(step))
    low = float(np.float32(step - high))
    dropped = most * (abs(1 / math.log(2) - high - low) + 2.0**-53)
    argument = 2 * U / 2 + dropped
    return (math.log(2) * argument + ex2()) / U * SLACK


def told(function: Any) -> float:
    found = re.search(r"to (\d+) units in the last place", function.__doc__)
    assert found is not None
    return float(found[1])


def log1p(e: np.ndarray, off: float) -> np.ndarray:
    """log1p(e) of library.py for an e near 1 that is `off`: log(2) + log(1 + f) for f = (e - 1) / 2, relative."""
    f = (e - 1) / 2
    total = np.log1p(e)
    fitted = f * f * np.polyval(np.float32(library._LOG1P).astype(np.float64), f) + f
    polynomial = np.abs(fitted - np.log1p(f)) / U
    evaluated = 3 * np.abs(f)  # a square, a sum of ten that shrink by f, and a sum
    constant = np.abs(np.float64(np.float32(math.log(2) * 2**-23)) * 2**23 - math.log(2)) / U
    roundings = math.log(2) + np.abs(total)  # a product and a sum
    felt = e / (1 + e) * off + np.abs(f)  # f is rounded, too
    return (polynomial + evaluated + constant + roundings + felt) / total * SLACK


def test_sigmoid_and_silu_at_every_operand() -> None:
    """A sum, an inverse to a unit in the last place, a product, and for silu another one behind the exponential; where
    the results are normal numbers."""
    sigmoid = exponential(SWEPT[1]) + 1 + 2 + 1
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


def test_the_constant_is_read() -> None:
    assert math.isclose(number("LOG2_E"), 1 / math.log(2), rel_tol=1e-15)
