"""Conversion on the host: a Python value as a value of a type that a hint names."""

from __future__ import annotations

import typing
from typing import Any

from ..dtype import DType, as_dtype, int32
from ..errors import TileTypeError, TileValueError
from ..layout import Aligned
from ..reference.numbers import Number

LOOSE = {bool, int, float, complex}  # of Python


def converted(value: Any, hint: Any, what: str) -> Any:
    """`value` as one of the type `hint`; TileTypeError names `what` if it is none."""
    hint = hint.type if isinstance(hint, Aligned) else hint
    if typing.get_origin(hint) is tuple:
        return _tuple(value, typing.get_args(hint), what)
    if isinstance(hint, type) and hasattr(hint, "__tw_layout__"):
        if not isinstance(value, hint):
            raise TileTypeError(f"{what} is a {hint.__name__}, found {value!r}; expected one")
        return value
    if hint in LOOSE:
        return _python_number(value, hint, what)
    return _fixed(value, as_dtype(hint), what)


def _tuple(value: Any, hints: tuple[Any, ...], what: str) -> tuple[Any, ...]:
    if not isinstance(value, tuple) or len(value) != len(hints):
        raise TileTypeError(f"{what} is a tuple of {len(hints)}, found {value!r}")
    return tuple(converted(v, h, f"{what}[{i}]") for i, (v, h) in enumerate(zip(value, hints, strict=True)))


def _python_number(value: Any, kind: type, what: str) -> Any:
    order = [bool, int, float]
    if type(value) not in order[: order.index(kind) + 1]:
        raise TileTypeError(f"{what} is of type {kind.__name__}, found {value!r}; expected a number that it holds")
    if kind is int and not int32.min <= int(value) <= int32.max:
        raise TileValueError(f"{what}: {value} does not fit the 32 bits that an int has in device code")
    return kind(value)


def _fixed(value: Any, dtype: DType, what: str) -> Any:
    """A number of a fixed format: of that format, or one of Python that it holds."""
    own = getattr(value, "dtype", None)
    if isinstance(value, Number) and value.dtype.category <= dtype.category:
        return Number(value, dtype)  # in device code numbers convert
    if own is not None:
        if dtype != own:
            raise TileTypeError(f"{what} is of type {dtype}, found {own}; convert it, as in device.{dtype}(x)")
        return value
    order = [bool, int, float]
    most = 0 if dtype.is_bool else 1 if dtype.is_integral else 2
    if type(value) not in order[: most + 1]:
        raise TileTypeError(f"{what} is of type {dtype}, found {value!r}; expected a number that it holds")
    if dtype.is_integral and not dtype.min <= value <= dtype.max:
        raise TileValueError(f"{what}: {value} is outside {dtype} ({dtype.min} to {dtype.max})")
    return dtype(value)
