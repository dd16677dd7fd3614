"""Functions that device code calls on numbers: Python's built-ins and those of `math`."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

from ...dtype import DType, bool_, float32, int32
from ..emit import UNARY_OPS
from ..frame import Frame
from ..rules import DEVICE, require_number
from ..values import Tile, is_number


def _to_python(kind: type, dtype: DType) -> Callable[..., Any]:
    """`int(x)` and its like: a number of Python, which is loosely typed."""

    def convert(frame: Frame, value: Any = 0) -> Any:
        if not isinstance(value, Tile):
            return kind(require_number(value, kind.__name__))
        if kind is bool:
            return frame.emit.truth(value, "bool")
        return dataclasses.replace(frame.emit.cast(value, dtype), loose=True)

    return convert


def _of_math(name: str) -> Callable[..., Any]:
    def run(frame: Frame, value: Any) -> Any:
        return frame.emit.unary(name, require_number(value, f"math.{name}"))

    return run


def _round_to_int(name: str) -> Callable[..., Any]:
    """`math.floor` and `math.ceil`, which give an int."""

    def run(frame: Frame, value: Any) -> Any:
        if is_number(value):
            return getattr(math, name)(value)
        value = require_number(value, f"math.{name}")
        if value.dtype.is_float:
            value = frame.emit.unary(name, value)
        return dataclasses.replace(frame.emit.cast(value, int32), loose=True)

    return run


def _pow(frame: Frame, x: Any, y: Any) -> Any:
    x, y = (frame.emit.cast(v, float32) if isinstance(v, Tile) and not v.dtype.is_float else v for v in (x, y))
    return frame.emit.binary("pow", x, float(y) if is_number(y) else y)


def _fabs(frame: Frame, x: Any) -> Any:
    return frame.emit.unary("abs", frame.emit.cast(x, float32) if isinstance(x, Tile) and not x.dtype.is_float else x)


def _isnan(frame: Frame, x: Any) -> Any:
    value = require_number(x, "math.isnan")
    return math.isnan(value) if is_number(value) else frame.emit.compare("not_equal", value, value)


def _isinf(frame: Frame, x: Any) -> Any:
    value = require_number(x, "math.isinf")
    if is_number(value):
        return math.isinf(value)
    return frame.emit.compare("equal", frame.emit.unary("abs", value), math.inf) if value.dtype.is_float else False


def _abs(frame: Frame, value: Any) -> Any:
    from . import complexes  # which needs the classes

    return complexes.absolute(frame, value) if complexes.is_complex(value) else frame.emit.unary("abs", value)


def _complex(frame: Frame, *parts: Any) -> Any:
    from . import complexes  # which needs the classes

    return complexes.make(frame, complexes.PythonComplex, list(parts), {})


def _len(frame: Frame, value: Any) -> Any:
    from . import arrays  # which needs what reads elements

    return arrays.length(frame, value)


def register() -> None:
    known = DEVICE.builtins
    known.update({int: _to_python(int, int32), float: _to_python(float, float32), bool: _to_python(bool, bool_)})
    for name in UNARY_OPS:
        function = getattr(math, name, None)
        if function is not None and name not in ("floor", "ceil"):
            known[function] = _of_math(name)
    known.update({math.floor: _round_to_int("floor"), math.ceil: _round_to_int("ceil"), math.trunc: known[int]})
    known.update({math.pow: _pow, math.fabs: _fabs, math.isnan: _isnan, math.isinf: _isinf})
    known[len] = _len
    known[abs] = _abs
    known[complex] = _complex


register()
