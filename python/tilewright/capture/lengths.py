"""Texts of constants that would be longer than any program needs: refused before Python makes them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from ..errors import TileValueError
from .emit import CONSTANT_LIMIT

_NUMBER = re.compile(r"\d+")
_FILLS = {"ljust", "rjust", "center", "zfill", "expandtabs"}


def _check(length: int, what: str) -> None:
    if length > CONSTANT_LIMIT:
        raise TileValueError(f"{what}: the text would have more than {CONSTANT_LIMIT} letters; write a shorter one")


def check_format(format: str, values: Iterable[Any] = ()) -> None:
    """Whether the widths and precisions of a format, or of the values that stand for them, are those of a constant."""
    widths = [int(digits) if len(digits) < 10 else CONSTANT_LIMIT + 1 for digits in _NUMBER.findall(format)]
    if "*" in format or re.search(r":[^{}]*\{", format):  # a value stands for a width
        widths += [value for value in values if type(value) is int]
    _check(max(widths, default=0), f"the format {format!r}" if len(format) < 60 else "a format")


def check_method(receiver: str, name: str, args: list[Any]) -> None:
    """Whether a method of a text gives one that may be a constant."""
    what = f"str.{name}"
    numbers = [arg for arg in args if type(arg) is int]
    if name in _FILLS:
        _check(max(numbers, default=0) * (receiver.count("\t") if name == "expandtabs" else 1), what)
    elif name == "replace" and len(args) >= 2 and all(isinstance(arg, str) for arg in args[:2]):
        _check(receiver.count(args[0]) * len(args[1]), what)
    elif name in ("format", "format_map"):
        check_format(receiver, args)
    elif name == "join" and args and isinstance(args[0], tuple | list):
        _check(len(receiver) * len(args[0]), what)
