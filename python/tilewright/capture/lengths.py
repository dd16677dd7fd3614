"""Texts and numbers of constants that would be longer than any program needs: refused before Python makes them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from typing import Any

from ..errors import TileValueError
from .emit import CONSTANT_LIMIT

_NUMBER = re.compile(r"\d+")
_FILLS = {"ljust", "rjust", "center", "zfill", "expandtabs"}


def _check(length: int, what: str) -> None:
    if length > CONSTANT_LIMIT:
        raise TileValueError(f"{what}: the text would have more than {CONSTANT_LIMIT} letters; write a shorter one")


def _check_bits(bits: float, what: str) -> None:
    if bits > CONSTANT_LIMIT:
        raise TileValueError(f"{what}: the number would have more than {CONSTANT_LIMIT} bits; write a smaller one")


def _number(digits: str) -> int:
    return int(digits) if len(digits) < 10 else CONSTANT_LIMIT + 1


def check_format(format: str, values: Iterable[Any] = ()) -> None:
    """Whether the widths and precisions of a format, or of the values that stand for them, are those of a constant."""
    widths = [_number(digits) for digits in _NUMBER.findall(format)]
    if "*" in format or re.search(r":[^{}]*\{", format):  # a value stands for a width
        for value in values:
            widths += [value] if type(value) is int else map(_number, _NUMBER.findall(value)) if _is_text(value) else []
    _check(max(widths, default=0), f"the format {format!r}" if len(format) < 60 else "a format")


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _check_text(receiver: str, name: str, args: list[Any]) -> None:
    what = f"str.{name}"
    numbers = [arg for arg in args if type(arg) is int]
    if name in _FILLS:
        _check(max(numbers, default=0) * (receiver.count("\t") if name == "expandtabs" else 1), what)
    elif name == "replace" and len(args) >= 2 and all(map(_is_text, args[:2])):
        _check(receiver.count(args[0]) * len(args[1]), what)
    elif name in ("format", "format_map", "__mod__"):
        check_format(receiver, args)
    elif name == "__format__" and args and _is_text(args[0]):
        check_format(args[0])
    elif name in ("__mul__", "__rmul__"):
        _check(len(receiver) * max(numbers, default=0), what)
    elif name == "translate" and args and isinstance(args[0], dict):
        _check(len(receiver) * max((len(text) for text in args[0].values() if _is_text(text)), default=0), what)
    elif name == "join" and args and isinstance(args[0], tuple | list):
        _check(len(receiver) * len(args[0]) + sum(len(part) for part in args[0] if _is_text(part)), what)


def _check_number(receiver: float, name: str, args: list[Any]) -> None:
    what = f"{type(receiver).__name__}.{name}"
    by = args[0] if args and type(args[0]) is int else 0
    if name == "__format__" and args and _is_text(args[0]):
        check_format(args[0])
    elif name == "__lshift__":
        _check_bits(by + int(receiver).bit_length(), what)
    elif name == "to_bytes":
        _check_bits(8 * by, what)
    elif name == "__pow__" and type(receiver) is int and len(args) == 1:
        _check_bits(by * receiver.bit_length(), what)


def _bits_of_choices(n: int, k: int) -> float:
    return min(k, n - k) * math.log2(n) if 0 < k < n else 0


# Functions whose results have many more bits than what they are given, by how many these have at most.
_GROWING: dict[Any, Callable[..., float]] = {
    math.factorial: lambda n: n * math.log2(n) if n > 1 else 0,
    math.comb: _bits_of_choices,
    math.perm: lambda n, k=None: (n if k is None else k) * math.log2(n) if n > 1 else 0,
    bytes: lambda n: 8 * n,
    bytearray: lambda n: 8 * n,
}


def check_call(function: Any, args: list[Any]) -> None:
    """Whether what Python makes of constants may be one."""
    name, receiver = getattr(function, "__name__", ""), getattr(function, "__self__", None)
    if receiver is None and isinstance(getattr(function, "__objclass__", None), type) and args:  # str.ljust("a", 3)
        receiver, args = args[0], args[1:]
    if isinstance(receiver, str):
        _check_text(receiver, name, args)
    elif isinstance(receiver, int | float) and not isinstance(receiver, bool):
        _check_number(receiver, name, args)
    elif isinstance(receiver, bytes) and name in _FILLS:
        _check(max((arg for arg in args if type(arg) is int), default=0), f"bytes.{name}")
    elif function in _GROWING and args and all(type(arg) is int for arg in args):
        _check_bits(_GROWING[function](*args), name)
