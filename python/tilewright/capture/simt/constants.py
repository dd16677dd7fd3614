"""Hints of parameters: ConstExpr and ConstExpr[T] ask for a constant, a type for a value of that type."""

from __future__ import annotations

import functools
import types
from typing import Any

from ...annotations import ConstantAnnotation
from ...dtype import DType
from ...errors import TileError, TileTypeError
from ...structure import annotations_of
from ..frame import Frame
from ..values import Array, Tile, describe, is_number, is_run_time
from . import structs

_PYTHON = (bool, int, float)


@functools.lru_cache(maxsize=1024)
def _hints(function: types.FunctionType) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parameter -> the type of its constant, or None for any; parameter -> the type of its value."""
    constants, values = {}, {}
    for name, hint in annotations_of(function).items():
        if name == "return":  # what is called is typed by what it does
            continue
        if any(isinstance(mark, ConstantAnnotation) for mark in getattr(hint, "__metadata__", ())):
            constants[name] = hint.__origin__ if isinstance(hint.__origin__, type) else None
        elif isinstance(hint, DType) or hint in _PYTHON or hasattr(hint, "__tw_tree__"):
            values[name] = hint
    return constants, values


def check(frame: Frame, function: types.FunctionType, values: dict[str, Any]) -> None:
    """Refuses arguments of a call that are not what the hints say; numbers of Python take the format of theirs."""
    constants, typed = _hints(function)
    for name, kind in constants.items():
        _check_constant(f"the parameter '{name}' of {function.__name__}", kind, values[name])
    for name, hint in typed.items():
        what = f"the parameter '{name}' of {function.__name__}"
        values[name] = _checked(frame, values[name], hint, what)


def _check_constant(what: str, kind: Any, value: Any) -> None:
    if is_run_time(value):
        raise TileTypeError(f"{what} must be a constant expression, found {describe(value)}")
    if kind is not None and type(value) is not kind:
        raise TileTypeError(f"{what} is a constant of type {kind.__name__}, found {describe(value)}")


def _checked(frame: Frame, value: Any, hint: Any, what: str) -> Any:
    is_loose = is_number(value) or (isinstance(value, Tile) and value.loose)
    if isinstance(hint, DType) and isinstance(value, Tile) and value.dtype is hint:
        return value
    if hint in _PYTHON and (is_loose or isinstance(value, Tile)):
        kinds = {"bool": 0, "int32": 1, "float32": 2}
        found = kinds.get(str(value.dtype).rstrip("_")) if isinstance(value, Tile) else _PYTHON.index(type(value))
        if found is not None and found <= _PYTHON.index(hint):
            return value
    elif isinstance(hint, DType) and is_loose:
        try:
            return structs.converted(frame, value, hint, what)
        except TileError:
            pass
    elif not isinstance(value, Tile | Array) and not isinstance(hint, DType) and isinstance(value, hint):
        return value
    name = hint.__name__ if isinstance(hint, type) else str(hint)
    raise TileTypeError(f"{what} is of type {name}, found {describe(value)}; convert it, or take the hint away")
