"""Complex numbers in kernels of Numba programs: their operators, and the functions of `cmath`.

A number is two parts, as in device code (simt/complexes.py); what two types meet in is a matter of the rules.
"""

from __future__ import annotations

import cmath
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import c_math
from ..dtype import bool_, float64, int64
from ..errors import TileTypeError
from .values import Tile, is_number

if TYPE_CHECKING:
    from .frame import Frame
    from .numba_rules import ThreadRules

Function = Callable[..., Any]


def has_parts(value: Any) -> bool:
    """A complex number, and no type of them."""
    return hasattr(value, "part") and not isinstance(value, type)


def name_of(rules: ThreadRules, value: Any) -> str:
    return value.name if has_parts(value) else rules.dtype_of(value).name


def _are_numbers(rules: ThreadRules, *values: Any) -> bool:
    return all(rules.is_scalar(v) or has_parts(v) for v in values)


def _kind(rules: ThreadRules, op: str, x: Any, y: Any) -> Any:
    """What two operands meet in; None where they have no such operator."""
    from .simt import complexes

    typing = rules.meet(op, name_of(rules, x), name_of(rules, y))
    return None if typing is None else complexes.KINDS[typing[0]]


def binary(rules: ThreadRules, frame: Frame, name: str, x: Any, y: Any) -> Any:
    from .simt import complexes

    if not _are_numbers(rules, x, y) or name not in rules.symbols:
        return None
    kind = _kind(rules, rules.symbols[name], x, y)
    if kind is None:
        raise TileTypeError(rules.undefined(name, name_of(rules, x), name_of(rules, y)))
    return _power(rules, frame, x, y, kind) if name == "pow" else complexes.computed(frame, name, x, y, kind)


def compare(rules: ThreadRules, frame: Frame, name: str, x: Any, y: Any) -> Any:
    from .simt import complexes

    if not _are_numbers(rules, x, y):
        return None
    if name not in ("equal", "not_equal"):
        raise TileTypeError("complex numbers have no order; compare their parts, or abs(z)")
    same = complexes.same(frame, x, y, _kind(rules, "+", x, y))
    return frame.emit.logical_not(same) if name == "not_equal" else same


# ---------------------------------------------------------------------------------------------
# Powers


def _is_whole(rules: ThreadRules, value: Any) -> bool:
    return rules.is_scalar(value) and not rules.dtype_of(value).is_float


def _power(rules: ThreadRules, frame: Frame, x: Any, y: Any, kind: Any) -> Any:
    """By squares for an integer, else by exp and log; a power of 0 is 0, but 1 for the exponent 0."""
    from ..numba import complex_math
    from .simt import complexes

    base = complexes.converted(frame, x, kind, "**")
    if _is_whole(rules, y):
        exponent = rules.as_type(frame.emit, y, int64)
        found = rules.call(frame, complex_math.integer_power, base.real, base.imag, exponent)
        return complexes.of_parts(kind, *found)
    exponent = complexes.converted(frame, y, kind, "**")
    found = rules.call(frame, complex_math.power, base.real, base.imag, exponent.real, exponent.imag)
    return complexes.of_parts(kind, *found)


# ---------------------------------------------------------------------------------------------
# Functions


def _converted(rules: ThreadRules, frame: Frame, value: Any, what: str) -> Any:
    """A number as the complex one that a function takes."""
    from .simt import complexes

    if has_parts(value):
        return value
    if not rules.is_scalar(value):
        raise TileTypeError(f"{what} needs a number, found {type(value).__name__}")
    wide = is_number(value) or rules.dtype_of(value).bits > 32 or not value.dtype.is_float
    return complexes.converted(frame, value, complexes.KINDS["complex128" if wide else "complex64"], what)


def _mapped(rules: ThreadRules, name: str) -> Function:
    """A function of two parts in numba/complex_math.py that gives two."""

    def run(frame: Frame, value: Any) -> Any:
        from ..numba import complex_math
        from .simt import complexes

        z = _converted(rules, frame, value, f"cmath.{name}")
        found = rules.call(frame, getattr(complex_math, name), z.real, z.imag)
        return complexes.of_parts(type(z), *found)

    return run


def _made(rules: ThreadRules, name: str) -> Function:
    def make(frame: Frame, *values: Any) -> Any:
        from .simt import complexes

        return complexes.make(frame, complexes.KINDS[name], list(values), {})

    return make


def _log(rules: ThreadRules) -> Function:
    of_one = _mapped(rules, "log")

    def run(frame: Frame, value: Any, base: Any = None) -> Any:
        found = of_one(frame, value)
        return found if base is None else binary(rules, frame, "truediv", found, of_one(frame, base))

    return run


def _angle(rules: ThreadRules, frame: Frame, value: Any) -> Tile:
    z = _converted(rules, frame, value, "cmath.phase")
    found: Tile = rules.call(frame, c_math.atan2, z.imag, z.real)
    return found


def _polar(rules: ThreadRules) -> Function:
    def run(frame: Frame, value: Any) -> Any:
        from .simt import complexes

        z = _converted(rules, frame, value, "cmath.polar")
        return complexes.absolute(frame, z), _angle(rules, frame, z)

    return run


def _rect(rules: ThreadRules) -> Function:
    def run(frame: Frame, length: Any, angle: Any) -> Any:
        from ..numba import complex_math
        from .simt import complexes

        wide = float64 if float64 in (rules.dtype_of(length), rules.dtype_of(angle)) else rules.dtype_of(length)
        given = (rules.as_type(frame.emit, v, wide if wide.is_float else float64) for v in (length, angle))
        found = rules.call(frame, complex_math.rect, *given)
        kind = "complex128" if found[0].dtype is float64 else "complex64"
        return complexes.of_parts(complexes.KINDS[kind], *found)

    return run


def _of_parts(rules: ThreadRules, test: Function, joins: str) -> Function:
    """isnan, isinf and isfinite: of one part, or of both."""

    def run(frame: Frame, value: Any) -> Any:
        z = _converted(rules, frame, value, f"cmath.{test.__name__}")
        real, imag = (frame.emit.cast(rules.call(frame, test, part), bool_) for part in (z.real, z.imag))
        return frame.emit.binary(joins, real, imag)

    return run


_ANGLES = [f"{arc}{name}{h}" for arc in ("", "a") for name in ("sin", "cos", "tan") for h in ("", "h")]
_MAPPED = ["exp", "sqrt", "log10", *_ANGLES]


def table(rules: ThreadRules) -> dict[Any, Function]:
    known: dict[Any, Function] = {getattr(cmath, name): _mapped(rules, name) for name in _MAPPED}
    known.update({complex: _made(rules, "complex128"), cmath.log: _log(rules), cmath.polar: _polar(rules)})
    known.update({getattr(np, name): _made(rules, name) for name in ("complex64", "complex128")})
    known[cmath.rect] = _rect(rules)
    known[cmath.phase] = lambda frame, value: _angle(rules, frame, value)
    joins = {"isnan": "bitwise_or", "isinf": "bitwise_or", "isfinite": "bitwise_and"}
    known.update({getattr(cmath, n): _of_parts(rules, getattr(c_math, n), join) for n, join in joins.items()})
    return known


__all__ = ["binary", "compare", "has_parts", "name_of", "table"]
