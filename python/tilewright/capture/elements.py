"""Elements: what can be gone through at compile time.

An iterable is a tuple, a list, a dict, a string, an enumeration or a range of constants. Its elements may be tiles; how
many there are may not depend on one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..errors import TileTypeError
from .frame import Frame
from .values import Array, Format, Range, Tile, describe

MOST = 1 << 14  # elements of one loop: more would take minutes to compile


def elements(frame: Frame, value: Any, what: str) -> list[Any]:
    """The elements of an iterable, as values."""
    if isinstance(value, Tile | Array | Format) or not isinstance(value, Iterable | Range):
        raise TileTypeError(
            f"{what} goes over range(...), a tuple or another iterable of constant length, found {describe(value)}"
            + _instead(frame, value)
        )
    if isinstance(value, Range):
        value = _constant_range(value, what)
    found = []
    for one in value:
        found.append(frame.adopt(one))
        if len(found) > MOST:
            raise TileTypeError(f"{what} has more than {MOST} iterations to unroll; use 'for i in range(...)'")
    return found


def _instead(frame: Frame, value: Any) -> str:
    """What to go over, as the end of a sentence."""
    if type(value) is int or (isinstance(value, Tile) and not value.shape and value.dtype.is_integral):
        return "; range(n) goes over the numbers below n"
    if not isinstance(value, Tile | Array):
        return ""
    if frame.capture.rules.simt:
        return "; a loop goes over the elements of an array"
    return "; operations work on all elements at once"


def _constant_range(value: Range, what: str) -> range:
    bounds = (value.start, value.stop, value.step)
    for bound in bounds:
        if type(bound) is not int:
            raise TileTypeError(f"{what} needs a range of constants, found {describe(bound)}")
    return range(*bounds)
