"""Formats of printed values: those of C's printf, and the part of Python's format language that says the same.

Both executions read formats here; what a conversion does to a number, each has for itself.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

from .dtype import DType
from .errors import TileValueError

# Letters of conversions: numbers with a sign, the bits of one, floats.
SIGNED, BITS, FLOATS = "di", "uoxX", "eEfFgG"


@dataclasses.dataclass(frozen=True, slots=True)
class Conversion:
    """What stands after the '%': flags, width and precision as text, and the letter."""

    flags: str
    width: str
    precision: str  # with its point
    letter: str

    def __str__(self) -> str:
        return f"{self.flags}{self.width}{self.precision}{self.letter}"


_CONVERSION = re.compile(r"%([-+ #0]*)(\*|\d*)(\.(?:\d*|\*))?(?:hh|h|ll|l|j|z|t|L)?(.?)", re.DOTALL)
_MOST_DIGITS = 3

_REMEDIES = {
    "c": "a character is a constant: write it into the text",
    "p": "an array has no address in tile code",
    "n": "nothing is written back",
    "a": "use %e",
    "A": "use %E",
}


def printf_parts(format: str) -> Iterator[str | Conversion]:
    """The text and the conversions of a format, in order; TileValueError for what there is not."""
    at = 0
    while (start := format.find("%", at)) >= 0:
        if start > at:
            yield format[at:start]
        found = _CONVERSION.match(format, start)
        assert found is not None
        at = found.end()
        yield "%" if found[0] == "%%" else _conversion(format, found)
    yield format[at:]


def _conversion(format: str, found: re.Match[str]) -> Conversion:
    flags, width, precision, letter = found[1], found[2], found[3] or "", found[4]
    text = f"ct.printf: {found[0]!r} in {format!r}"
    if "*" in width + precision:
        raise TileValueError(f"{text}: a width or precision is part of the format; '*' takes none from the values")
    if letter not in SIGNED + BITS + FLOATS + "s" or not letter:
        remedy = _REMEDIES.get(letter, "a '%' that is text is doubled")
        raise TileValueError(f"{text} is none of %d %i %u %o %x %X %e %f %g and %s; {remedy}")
    if letter == "s" and flags + width + precision:
        raise TileValueError(f"{text}: %s takes no width; a number has one, as in %8d or %8.3f")
    _check_digits(text, width, precision)
    return Conversion("".join(sorted(set(flags))), width, precision, letter)


def _check_digits(text: str, width: str, precision: str) -> None:
    if len(width) > _MOST_DIGITS or len(precision) > 1 + _MOST_DIGITS:
        raise TileValueError(f"{text}: a width or a precision is at most 999")


_PYTHON = re.compile(
    r"(?P<align>[<>])?(?P<sign>[-+ ])?(?P<zero>0)?(?P<width>\d*)(?P<precision>\.\d+)?(?P<letter>[deEfFgGoxX]?)"
)


def python_conversion(spec: str, dtype: DType) -> Conversion:
    """The conversion that a format of Python means, as in f"{x:8.3f}"; TileValueError where there is none."""
    found = _PYTHON.fullmatch(spec)
    letter = found["letter"] if found else ""
    if found and not letter and not dtype.is_float:
        letter = "d"
    fits = bool(letter) and (letter in FLOATS or not (dtype.is_float or (found and found["precision"])))
    if letter in BITS and fits:
        fits = dtype.is_integral and dtype.min == 0 and not (found and found["sign"])
    if found is None or not fits or (found["align"] and found["zero"]):
        raise TileValueError(f"the format {spec!r} of a run-time value is not supported; {_expected(letter, dtype)}")
    _check_digits(f"the format {spec!r}", found["width"], found["precision"] or "")
    flags = ("-" if found["align"] == "<" else "") + (found["sign"] or "").replace("-", "") + (found["zero"] or "")
    return Conversion(flags, found["width"], found["precision"] or "", letter)


def _expected(letter: str, dtype: DType) -> str:
    if dtype.is_float:
        return "expected [<>][+ ][0][width][.precision] and one of e f g, as in 8.3f"
    if letter in BITS and letter and dtype.min != 0:
        return "a number with a sign is shown by d; its bits are ct.bitcast(x, ct.uint32)"
    return "expected [<>][+ ][0][width] and d, or one of e f g, as in 8.3f; without a sign, x X or o"
