"""Formats of printed values: those of C's printf, and the part of Python's format language that says the same.

Both executions read formats here; what a conversion does to a number, each has for itself.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

from .dtype import DType
from .errors import TileError, TileTypeError, TileValueError

# Letters of conversions: numbers with a sign, the bits of one, floats.
SIGNED, BITS, FLOATS = "di", "uoxX", "eEfFgGaA"


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
}


def printf_parts(format: str) -> Iterator[str | Conversion]:
    """The text and the conversions of a format, in order; TileTypeError for what there is not."""
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
        raise TileTypeError(f"{text}: a width or precision is part of the format; '*' takes none from the values")
    if letter not in SIGNED + BITS + FLOATS + "s" or not letter:
        remedy = _REMEDIES.get(letter, "a '%' that is text is doubled")
        raise TileTypeError(f"{text} is none of %d %i %u %o %x %X %e %f %g %a and %s; {remedy}")
    if letter in "aA" and precision:
        raise TileTypeError(f"{text}: %a has all digits; write it without a precision")
    if letter == "s" and flags + width + precision:
        raise TileTypeError(f"{text}: %s takes no width; a number has one, as in %8d or %8.3f")
    _check_digits(text, width, precision, TileTypeError)
    return Conversion("".join(sorted(set(flags))), width, precision, letter)


def _check_digits(text: str, width: str, precision: str, error: type[TileError] = TileValueError) -> None:
    if len(width) > _MOST_DIGITS or len(precision) > 1 + _MOST_DIGITS:
        raise error(f"{text}: a width or a precision is at most 999")


_SHOWN_BY = {True: "%f or %g", False: "%d or %x"}  # whether a number is a float


def check_shown(conversion: Conversion, dtype: DType) -> None:
    """Whether a conversion of C shows a number of the dtype: nothing is converted, as in C."""
    letter, known = conversion.letter, _SHOWN_BY[dtype.is_float]
    if letter == "s":
        raise TileTypeError(f"ct.printf: %s shows text, found {dtype}; write {known}, or use ct.print")
    if dtype.is_float != (letter in FLOATS):
        shown, to = ("integers", "int32") if dtype.is_float else ("floats", "float32")
        raise TileTypeError(
            f"ct.printf: %{letter} shows {shown}, found {dtype}; write {known}, or convert it: ct.astype(x, ct.{to})"
        )


# Python's format language; `f"{x:8.3f}"` has the width 8, the precision .3 and the letter f.
_PYTHON = re.compile(
    r"(?:(?P<fill>.)?(?P<align>[<>=^]))?(?P<sign>[-+ ])?(?P<alternate>#)?(?P<zero>0)?(?P<width>\d*)"
    r"(?P<group>[,_])?(?P<precision>\.\d+)?(?P<letter>[a-zA-Z%]?)",
    re.DOTALL,
)
_UNKNOWN_TO_C = {
    "b": "C prints no binary digits; write x of an integer without a sign",
    "c": "a character is a constant: write it into the text",
    "s": "a number is shown by d, e, f or g",
    ",": 'C groups no digits; write f"{n // 1000},{n % 1000:03d}"',
    "_": 'C groups no digits; write f"{n // 1000}_{n % 1000:03d}"',
    "^": "C fills on one side: write < or >",
    "=": "C fills with zeros behind a sign: write 0, as in 08d",
    "fill": "C fills with spaces, and with zeros behind a sign: write <8d, 8d or 08d",
}


@dataclasses.dataclass(frozen=True, slots=True)
class PythonFormat:
    """What a format of Python means: text, a number under a conversion of C, or a hundred times it, and text."""

    conversion: Conversion
    before: str = ""
    after: str = ""

    @property
    def is_percentage(self) -> bool:
        return bool(self.after)


def python_format(spec: str, dtype: DType, ndim: int) -> PythonFormat:
    """What a format means for a number or a tile, as in f"{x:8.3f}"; TileValueError where C has no such."""
    found = _PYTHON.fullmatch(spec)
    what = f"the format {spec!r} of a run-time value"
    if found is None:
        raise TileValueError(f"{what} is not supported; {_expected('', dtype)}")
    fill, align, group = found["fill"] or " ", found["align"] or "", found["group"] or ""
    letter = found["letter"] or ("" if dtype.is_float else "d")
    zero = found["zero"] or ("0" if (fill, align) == ("0", "=") else "")
    unknown = group or (letter if letter in "bcs" else "") or (align if align == "^" else "")
    if not unknown and not zero and fill != " ":
        unknown = "fill"
    if not unknown and align == "=" and not zero:
        unknown = "="
    if unknown:
        raise TileValueError(f"{what} is not supported; {_UNKNOWN_TO_C[unknown]}")
    letter = {"n": "g" if dtype.is_float else "d"}.get(letter, letter)
    _check_digits(f"the format {spec!r}", found["width"], found["precision"] or "")
    if not _suits(letter, found, dtype) or (align in ("<", ">") and zero):
        raise TileValueError(f"{what} is not supported; {_expected(letter, dtype)}")
    before = "0" + letter if found["alternate"] and letter and letter in "oxX" else ""
    after = "%" if letter == "%" else ""
    width = int(found["width"] or 0)
    if ndim and before + after:
        raise TileValueError(f"{what} is for a number, found a tile; write {'x' if before else '.1f of x * 100'} of it")
    if (before and width and not zero) or (after and width and align == "<"):
        raise TileValueError(f"{what} is not supported; C fills before {before or 'a number'} with no spaces: write 0")
    width = max(0, width - len(before + after)) if width else 0
    alternate = "#" if found["alternate"] and not before else ""
    flags = ("-" if align == "<" else "") + (found["sign"] or "").replace("-", "") + alternate + zero
    shown = Conversion(flags, str(width or ""), found["precision"] or "", letter.replace("%", "f"))
    return PythonFormat(shown, before, after)


def _suits(letter: str, found: re.Match[str], dtype: DType) -> bool:
    """Whether a dtype has a conversion by the letter."""
    if letter == "%" or (letter and letter in "eEfFgG"):
        return True
    if dtype.is_float or found["precision"]:
        return False
    has_no_sign = dtype.is_integral and dtype.min == 0
    if has_no_sign and found["sign"]:
        return False
    return has_no_sign if letter in ("x", "X", "o") else letter == "d" and not found["alternate"]


def _expected(letter: str, dtype: DType) -> str:
    if dtype.is_float:
        return "expected [<>][+ ][0][width][.precision] and one of e f g %, as in 8.3f"
    if letter in BITS and letter and dtype.min != 0:
        return "a number with a sign is shown by d; its bits are ct.bitcast(x, ct.uint32)"
    if dtype.is_integral and dtype.min == 0:
        return "of an integer without a sign expected [<>][0][width] and one of d x X o, or e f g %, as in 8.3f"
    return "expected [<>][+ ][0][width] and d, or one of e f g %, as in 8.3f"
