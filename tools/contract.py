"""docs/numbers.md: what each operation computes, to which bound, made of the tables that define and test it.

python tools/contract.py            # writes the page
python tools/contract.py check      # says whether it is as it should be

Names, operands and NumPy's meaning are the dialect's (`_optable.py`); bounds are those that the tests hold every
execution to: test/numerics/test_elementwise.py, and the docstrings of the library, which test_library.py holds.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pages

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/numbers.md"
sys.path.insert(0, str(ROOT / "python"))
sys.path.insert(0, str(ROOT / "test/numerics"))

RESULTS = {"promote": "the common dtype", "same": "the operand's dtype", "bool": "bool"}
MIDDLE = """`ct.truediv` rounds the exact quotient once; on a GPU one of float32 below the normal numbers may be 2^-149
off, unless `rounding_mode` is RN; under FULL and APPROX it is within 4 ulp, but that with APPROX and `flush_to_zero`
a divisor above 2^126 counts as infinite. `ct.exp` by APPROX is to 2 + 1.3 abs(x) ulp. `ct.floordiv` of floats is
`ct.floor(x / y)`; of integers it is exact. `ct.pow` of an integer to a constant power is exact; of floats it is
within 16 ulp, within 1 in 16 bits.
"""
HEAD = """# What comes out: the contract of numbers

The reference, the CPU and GPUs keep to this page; it is made by tools/contract.py from the table of operations and
from the bounds that the tests use. An ulp is a unit in the last place of the result.

- **Rounding.** `+ - * /`, `sqrt` under a rounding mode and conversions round the exact result once, to nearest
  even. 16-bit floats are computed in float32 and rounded. A product whose only use is a sum may become one
  multiply-add, which rounds once in all; under a `rounding_mode` it does not.
- **Order.** A sum of floats is made in an order of the compiler's, in float32 where the elements have 16 bits, and
  rounded at the end. Scans and reductions by a function keep the order of the elements, and take them together in
  any way. Integers wrap.
- **Products.** `ct.mma` sums in its accumulator's precision or a wider one, in any order; docs/api.md says what
  differs for 8 bits. A product of tiles whose only use is a running sum, as in `acc += a @ b`, is added unrounded.
  On a GPU what `ct.mma` gives in a loop may be multiplied by two factors, as in `part * f * g`, as `part * (f * g)`,
  where `f * g` is a normal number: there are two roundings either way. `approximate=0` keeps the order.
- **NaN** is a NaN in every execution; which one is open. `max`, `min` and their kin leave it out unless
  `propagate_nan=True`.
- **Zeros.** Open is which zero a `maximum` of 0.0 and -0.0 gives, and whether a sum of nothing but -0.0 is 0.0 or
  -0.0; other operations give the sign that IEEE 754 says.
- **Subnormal numbers** are numbers. They are flushed only where `flush_to_zero=True`, and on GPUs by exponentials that
  only end in 16 bits, or `exp2` in sums of numbers that are not negative and in products of tiles, too: these are 0
  below 2^-126. `approximate=0` keeps them.
- **Open** are: the quotient and remainder of an integer by 0, shifts by the width or more, conversions of floats to
  integers that do not exist, undetermined padding, and whether a loop that would never end ends, where it does nothing
  but compute.
- **The compiler's own approximations** never leave these bounds for what is stored: a function whose result only
  ends in 16 bits is computed to these. The hint `approximate=0` switches them off ([options.md](options.md)).
"""


def bound(tolerance: Any) -> str:
    if not tolerance.ulp:
        return "exact"
    near_zero = f", {tolerance.absolute:.1g} near 0" if tolerance.absolute else ""
    return f"{tolerance.ulp:g} ulp{near_zero}"


def functions() -> list[str]:
    """Functions of one float, with the bound of each dtype."""
    import test_elementwise as tests

    from tilewright._optable import BY_PUBLIC

    lines = ["| function | means | " + " | ".join(str(d) for d in tests.FLOATS) + " |"]
    lines.append("|" + "---|" * (2 + len(tests.FLOATS)))
    for function in tests.FUNCTIONS:
        op = BY_PUBLIC[function.__tw_op__]
        bounds = [bound(tests.function_tolerance(function, dtype)) for dtype in tests.FLOATS]
        lines.append("| " + " | ".join([f"`ct.{op.public}`", f"`{op.numpy}`", *bounds]) + " |")
    return lines


def exact() -> list[str]:
    """What is the same bit for bit in all executions, but for the sign of zero and the bits of NaN."""
    from tilewright._optable import OPS

    others = ("pow", "truediv", "floordiv")
    rows = [op for op in OPS if op.operands and op.result != "float" and op.numpy and op.public not in others]
    lines = ["| operation | means | result |", "|---|---|---|"]
    for op in rows:
        result = RESULTS.get(op.result, "its own")
        lines.append(f"| `ct.{op.public}` | `{op.numpy.replace('|', chr(92) + '|')}` | {result} |")
    return lines


def library() -> list[str]:
    """Functions that are tile code, whose docstrings tell the bound that test_library.py holds."""
    from tilewright import library as module

    lines = ["| function | bound |", "|---|---|"]
    for name, function in sorted(vars(module).items()):
        told = re.search(r"\b[Tt]o \d+ units in the last place[^.]*\.", getattr(function, "__doc__", None) or "")
        if callable(function) and not name.startswith("_") and told:
            lines.append(f"| `ct.{name}` | {' '.join(told[0].split()).strip(' ,')} |")
    return lines


def page() -> str:
    same = "The same in all executions, and so are comparisons, casts and all that moves elements."
    parts = [HEAD, "## Exact", "", same, "", *exact(), ""]
    parts += ["## Quotients and powers", "", MIDDLE]
    beside = "Beside the exact result, to these bounds; `means` says it in NumPy."
    parts += ["## Functions", "", beside, "", *functions(), ""]
    parts += ["## Functions made of tile code", "", *library(), ""]
    return "\n".join(parts)


if __name__ == "__main__":
    sys.exit(pages.write_or_check(PAGE, page(), "what the tables say: python tools/contract.py"))
