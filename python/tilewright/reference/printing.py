"""What printing shows of a value: the fewest digits that tell a number, or a conversion of C's printf."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..dtype import bool_
from ..errors import TileTypeError
from ..formats import BITS, FLOATS, Conversion, check_shown
from .values import Array, Tile, as_tile, exact_elements


def show_by_c(value: Any, conversion: Conversion) -> str:
    """What ct.printf shows: text, or what is of the conversion's kind."""
    if conversion.letter == "s" and not isinstance(value, Tile | bool | int | float):
        return str(value)
    if isinstance(value, Array):
        raise TileTypeError(f"ct.printf needs a tile or a number, found the array {value._name!r}; load it first")
    tile = as_tile(value, "ct.printf")
    check_shown(conversion, tile.dtype)
    return show(tile, conversion)


def show(tile: Tile, conversion: Conversion) -> str:
    """Each element of a tile under a conversion."""
    signed = not (tile.dtype.is_integral and tile.dtype.min == 0)
    bits = 64 if tile.dtype.bits == 64 or tile.dtype.is_float else 32
    return _nested(tile, lambda number: _convert(number, conversion, bits, signed))


def shortest(tile: Tile) -> str:
    """As ct.print shows it: a float by the fewest digits that make it as a float32, or as a float64; the bools of a
    mask by digits that stand in columns, as in cuTile."""
    is_mask = tile.dtype is bool_ and tile.ndim > 0
    return _nested(tile, (lambda x: str(int(x))) if is_mask else _fewest_digits)


def _fewest_digits(number: Any) -> str:
    if not isinstance(number, np.floating) or not np.isfinite(number):
        return str(number)
    if number == 0 or 1e-4 <= abs(float(number)) < 1e16:
        return np.format_float_positional(number, unique=True, trim="0")
    return np.format_float_scientific(number, unique=True, trim="-", exp_digits=2)


_LONG, _LINE = 64, 16  # elements from which a tile takes several lines, and those of a line


def _nested(tile: Tile, text: Callable[[Any], str]) -> str:
    """Elements in nested brackets. A tile of more than 64 has lines of 16, or of a row that is shorter."""
    data = exact_elements(tile)
    is_long = data.size > _LONG

    def rows(part: Any, depth: int) -> str:
        if not np.ndim(part):
            return text(part)
        parts, line = [rows(p, depth + 1) for p in part], _LINE if depth == tile.ndim else 1
        lines = [", ".join(parts[i : i + line]) for i in range(0, len(parts), line)] if is_long else [", ".join(parts)]
        return f"[{(',' + chr(10) + ' ' * depth).join(lines)}]"

    return rows(data if tile.ndim else data[()], 1)


def _convert(number: Any, conversion: Conversion, bits: int, signed: bool) -> str:
    flags = conversion.flags
    if conversion.letter in FLOATS:
        number = float(number)
        if not math.isfinite(number):
            flags = flags.replace("0", "")
        elif conversion.letter in "aA":
            return _hexadecimal(number, flags, conversion)
        spec = (
            f"%{flags}{conversion.width}{conversion.precision}{conversion.letter.replace('a', 'f').replace('A', 'F')}"
        )
        return spec % (number if number == number else math.nan)
    number = int(number)
    if signed and conversion.letter not in BITS:
        return _padded(f"{number:d}", flags, conversion)
    return _bits(number % 2**bits, flags.replace("+", "").replace(" ", ""), conversion)


def _hexadecimal(number: float, flags: str, conversion: Conversion) -> str:
    """As %a shows it: the bits of a double, without zeros at the end."""
    digits, _, power = number.hex().partition("p")
    head, _, fraction = digits.lstrip("-").partition(".")
    fraction = fraction.rstrip("0")
    point = "." if fraction or "#" in flags else ""
    sign = "-" if math.copysign(1.0, number) < 0 else ""
    text = f"{sign}{head.removeprefix('0x')}{point}{fraction}p{power}"
    shown = _padded(text, flags, conversion, "0x")
    return shown.upper() if conversion.letter == "A" else shown


def _bits(number: int, flags: str, conversion: Conversion) -> str:
    letter = conversion.letter
    digits = format(number, letter if letter in "oxX" else "d")
    prefix = "0" + letter if "#" in flags and letter in "xX" and number else ""
    if "#" in flags and letter == "o" and not digits.startswith("0"):
        digits = "0" + digits
    return _padded(digits, flags, conversion, prefix)


def _padded(digits: str, flags: str, conversion: Conversion, prefix: str = "") -> str:
    """Digits with their sign or prefix, filled up to the precision and then to the width, as C does."""
    sign = "-" if digits.startswith("-") else "+" if "+" in flags else " " if " " in flags else ""
    digits = digits.removeprefix("-")
    width = int(conversion.width or 0)
    if conversion.precision:
        least = int(conversion.precision[1:] or 0)
        digits = "" if least == 0 and digits == "0" else digits.rjust(least, "0")
    elif "0" in flags and "-" not in flags:
        digits = digits.rjust(width - len(sign + prefix), "0")
    text = sign + prefix + digits
    return text.ljust(width) if "-" in flags else text.rjust(width)
