"""Constant expressions: what the hints ConstExpr and ConstExpr[T] ask of an argument."""

from __future__ import annotations

import functools
import types
from typing import Any

from ...errors import TileTypeError
from ...structure import annotations_of
from ...tile import ConstantAnnotation
from ..values import describe, is_run_time


@functools.lru_cache(maxsize=1024)
def _wanted(function: types.FunctionType) -> dict[str, Any]:
    """Parameter -> the type of its constant, or None for any."""
    found = {}
    for name, hint in annotations_of(function).items():
        if any(isinstance(mark, ConstantAnnotation) for mark in getattr(hint, "__metadata__", ())):
            found[name] = hint.__origin__ if isinstance(hint.__origin__, type) else None
    return found


def check(function: types.FunctionType, values: dict[str, Any]) -> None:
    """Refuses arguments of a call that are no constants, or none of the type that is asked for."""
    for name, kind in _wanted(function).items():
        value = values[name]
        what = f"the parameter '{name}' of {function.__name__}"
        if is_run_time(value):
            raise TileTypeError(f"{what} must be a constant expression, found {describe(value)}")
        if kind is not None and type(value) is not kind:
            raise TileTypeError(f"{what} is a constant of type {kind.__name__}, found {describe(value)}")
