"""Functions that Numba programs call on numbers: Python's built-ins and those of `math`, as C has them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import c_math
from ..dtype import SIGNED, UNSIGNED, DType, bool_, float16, float32, float64, int64
from ..errors import TileTypeError
from . import numba_complex, numba_ufuncs
from .emit import UNARY_OPS
from .frame import Frame
from .numba_rules import NPM, NUMBA, ThreadRules, is_scalar
from .simt import arrays, complexes
from .values import Tile, describe, is_number

Function = Callable[..., Any]
_NUMPY = (*SIGNED, *UNSIGNED, float16, float32, float64, bool_)


def _need(value: Any, what: str) -> Any:
    if not is_scalar(value):
        raise TileTypeError(f"{what} needs a number, found {describe(value)}")
    return value


class _Functions:
    """Under the rules of one language."""

    def __init__(self, rules: ThreadRules) -> None:
        self.rules = rules

    # -- Python's own

    def to_int(self, frame: Frame, value: Any = 0) -> Any:
        if is_number(_need(value, "int")):
            return int(value)
        return value if value.dtype.is_integral else frame.emit.cast(value, int64)

    def to_float(self, frame: Frame, value: Any = 0.0) -> Any:
        if is_number(_need(value, "float")):
            return float(value)
        return value if value.dtype.is_float else frame.emit.cast(value, float64)

    def to_bool(self, frame: Frame, value: Any = False) -> Any:
        return bool(value) if is_number(_need(value, "bool")) else frame.emit.truth(value, "bool")

    def to_type(self, dtype: DType) -> Function:
        """`numpy.float32(x)` and its like."""

        def convert(frame: Frame, value: Any = 0) -> Tile:
            return self.rules.as_type(frame.emit, _need(value, str(dtype)), dtype)

        return convert

    def abs(self, frame: Frame, value: Any) -> Any:
        if numba_complex.has_parts(value):
            return complexes.absolute(frame, value)
        if is_number(_need(value, "abs")):
            return abs(value)
        return frame.emit.unary("abs", frame.emit.cast(value, int64) if value.dtype is bool_ else value)

    def extremum(self, name: str, plain: Function) -> Function:
        def choose(frame: Frame, *args: Any) -> Any:
            values = args[0] if len(args) == 1 and isinstance(args[0], tuple) else args
            if all(map(is_number, values)):
                return plain(values)
            result = values[0]
            for value in values[1:]:
                dtype = self.rules.joined(
                    self.rules.dtype_of(_need(result, plain.__name__)),
                    self.rules.dtype_of(_need(value, plain.__name__)),
                )
                left, right = (self.rules.as_type(frame.emit, v, dtype) for v in (result, value))
                result = frame.emit.binary(name, left, right)
            return result

        return choose

    def round(self, frame: Frame, value: Any, digits: Any = None) -> Any:
        """To the nearest integer, ties to even; with digits, a float."""
        if is_number(_need(value, "round")):
            return round(value, digits)
        if not value.dtype.is_float:
            return value
        if digits is None:
            return frame.emit.cast(self.rules.call(frame, c_math.rint, value), int64)
        emit = frame.emit  # in float64, as Python's own: 0.3425 of float32 is above the middle of 0.342 and 0.343
        wide = emit.cast(value, float64)
        scale = self.power_of_ten(frame, self.abs(frame, digits))
        is_left = digits < 0 if is_number(digits) else emit.compare("less", digits, 0)  # of the point
        up, down = (emit.binary("mul", wide, scale), emit.binary("truediv", wide, scale))
        rounded = self.rules.call(frame, c_math.rint, emit.select(is_left, down, up))
        up, down = (emit.binary("mul", rounded, scale), emit.binary("truediv", rounded, scale))
        found = emit.select(is_left, up, down)
        is_finite = emit.compare("equal", emit.binary("sub", found, found), 0)
        return emit.cast(emit.select(is_finite, found, wide), value.dtype)  # too large for the scale

    def power_of_ten(self, frame: Frame, n: Any) -> Any:
        """Exact up to 10^22: `pow` of GPUs need not be."""
        emit = frame.emit
        if is_number(n):
            return self.rules.as_type(emit, float(10**n) if n <= 308 else math.inf, float64)
        result = self.rules.as_type(emit, 1.0, float64)
        for bit in (1, 2, 4, 8, 16, 32, 64, 128, 256):
            grown = emit.binary("mul", result, self.rules.as_type(emit, float(10**bit), float64))
            is_set = emit.compare("not_equal", self.rules.binary(frame, "bitwise_and", n, bit), 0)
            result = emit.select(is_set, grown, result)
        return emit.select(emit.compare("less", n, 512), result, math.inf)

    def pow(self, frame: Frame, x: Any, y: Any) -> Any:
        return x**y if is_number(x) and is_number(y) else self.rules.binary(frame, "pow", x, y)

    def len(self, frame: Frame, value: Any) -> Any:
        return arrays.length(frame, value)

    # -- of math

    def floating(self, frame: Frame, value: Any) -> Tile:
        """A number as the float that C's function takes."""
        dtype = self.rules.dtype_of(value)
        if not dtype.is_float:
            narrow = self.rules is NPM and dtype.bits <= 32
            dtype = float32 if narrow else float64
        return self.rules.as_type(frame.emit, value, dtype)

    def of_op(self, name: str, python: Function) -> Function:
        def run(frame: Frame, x: Any) -> Any:
            return frame.emit.unary(name, self.floating(frame, _need(x, python.__name__)))

        return run

    def of_c(self, function: Function) -> Function:
        """A function of c_math.py; its floats meet in the wider one."""

        def run(frame: Frame, *values: Any) -> Any:
            floats = [self.floating(frame, _need(v, function.__name__)) for v in values]
            wide = float64 if any(f.dtype is float64 for f in floats) else floats[0].dtype
            return self.rules.call(frame, function, *(frame.emit.cast(f, wide) for f in floats))

        return run

    def math_pow(self, frame: Frame, x: Any, y: Any) -> Any:
        x, y = self.floating(frame, x), self.floating(frame, y)
        wide = float64 if float64 in (x.dtype, y.dtype) else x.dtype
        return frame.emit.binary("pow", frame.emit.cast(x, wide), frame.emit.cast(y, wide))

    def log(self, frame: Frame, x: Any, base: Any = None) -> Any:
        found = frame.emit.unary("log", self.floating(frame, _need(x, "math.log")))
        if base is None:
            return found
        return self.rules.binary(frame, "truediv", found, self.log(frame, base))

    def ldexp(self, frame: Frame, x: Any, n: Any) -> Any:
        return self.rules.call(frame, c_math.ldexp, self.floating(frame, x), self.rules.as_type(frame.emit, n, int64))

    def table(self) -> dict[Any, Function]:
        known: dict[Any, Function] = {
            **{kind: getattr(self, f"to_{kind.__name__}") for kind in (int, float, bool)},
            abs: self.abs,
            round: self.round,
            pow: self.pow,
            len: self.len,
            min: self.extremum("minimum", min),
            max: self.extremum("maximum", max),
            math.pow: self.math_pow,
            math.log: self.log,
            math.ldexp: self.ldexp,
        }
        known.update({getattr(np, dtype.name): self.to_type(dtype) for dtype in _NUMPY})
        for name in UNARY_OPS:
            python = getattr(math, name, None)
            if python is not None and python not in known:
                known[python] = self.of_op(name, python)
        for name in c_math.__all__:
            python = getattr(math, name, None)
            if python is not None and python not in known:
                known[python] = self.of_c(getattr(c_math, name))
        return known | numba_complex.table(self.rules)


for _rules in (NUMBA, NPM):
    _rules.builtins = _Functions(_rules).table()
    _rules.names = {"xrange": range}
NUMBA.builtins.update(numba_ufuncs.table(NUMBA.builtins))
NUMBA.builtins[math.gcd] = numba_ufuncs.gcd
