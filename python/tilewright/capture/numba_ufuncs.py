"""Functions of NumPy that a kernel of a Numba program calls on numbers, or, with an output, on all elements of arrays.

Numbers meet in the type that NumPy has for them, which is that of the result: `numpy.add` of two int32 is an int32,
where `+` of Numba is an int64. Those of `math` are functions of C
(numba_functions.py), and of complex numbers `cmath`'s.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import c_math
from ..dtype import DType, bool_, float64
from ..errors import TileTypeError
from . import numba_complex
from .frame import Frame
from .numba_rules import ThreadRules, is_scalar
from .simt import arrays, complexes
from .values import describe

Function = Callable[..., Any]

_BINARY = {
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "truediv",
    "floor_divide": "floordiv",
    "remainder": "mod",
    "bitwise_and": "bitwise_and",
    "bitwise_or": "bitwise_or",
    "bitwise_xor": "bitwise_xor",
    "left_shift": "bitwise_lshift",
    "right_shift": "bitwise_rshift",
}
_OF_BOOLS = {"add": "bitwise_or", "mul": "bitwise_and"}
_COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
_LOGICAL = {"logical_and": "bitwise_and", "logical_or": "bitwise_or", "logical_xor": "bitwise_xor"}
_OF_MATH = {
    **{f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan", "tan2", "sinh", "cosh", "tanh")},
    "deg2rad": "radians",
    "rad2deg": "degrees",
}
_WHOLE_ONLY = frozenset(("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_lshift", "bitwise_rshift"))


def _number(value: Any, function: str) -> Any:
    if not is_scalar(value) and not numba_complex.has_parts(value):
        raise TileTypeError(f"numpy.{function} needs numbers, or an output for arrays, found {describe(value)}")
    return value


def _rules(frame: Frame) -> ThreadRules:
    """Those of Numba, or of operators for CUB's algorithms."""
    rules = frame.capture.rules
    assert isinstance(rules, ThreadRules)
    return rules


def _met(rules: ThreadRules, x: Any, y: Any) -> DType:
    return rules.joined(rules.dtype_of(x), rules.dtype_of(y))


def _binary(function: str, op: str) -> Function:
    def run(frame: Frame, x: Any, y: Any) -> Any:
        x, y = _number(x, function), _number(y, function)
        if numba_complex.has_parts(x) or numba_complex.has_parts(y):
            return numba_complex.binary(_rules(frame), frame, op, x, y)
        dtype = _met(_rules(frame), x, y)
        if dtype.is_float and op in _WHOLE_ONLY:
            raise TileTypeError(f"numpy.{function} of {dtype} is not defined; convert to an integer, as in int64(x)")
        if op == "truediv" and not dtype.is_float:
            dtype = float64
        of = _OF_BOOLS.get(op, op) if dtype is bool_ else op
        left, right = (_rules(frame).as_type(frame.emit, v, dtype) for v in (x, y))
        return frame.emit.binary(of, left, right)

    return run


def _less(frame: Frame, x: Any, y: Any, name: str) -> Any:
    """Of complex numbers: by the real parts, then by the imaginary ones."""
    kind = complexes.KINDS["complex128"]
    (a, b), (c, d) = complexes.parts(frame, x, kind), complexes.parts(frame, y, kind)
    emit, strict = frame.emit, name.removesuffix("_equal")
    tie = emit.binary("bitwise_and", emit.compare("equal", a, c), emit.compare(name, b, d))
    return emit.binary("bitwise_or", emit.compare(strict, a, c), tie)


def _compare(name: str) -> Function:
    def run(frame: Frame, x: Any, y: Any) -> Any:
        x, y = _number(x, name), _number(y, name)
        if name not in ("equal", "not_equal") and (numba_complex.has_parts(x) or numba_complex.has_parts(y)):
            return _less(frame, x, y, name)
        found = _rules(frame).compare(frame, name, x, y)
        return frame.emit.compare(name, x, y) if found is None else found

    return run


def _truth(frame: Frame, value: Any, function: str) -> Any:
    if numba_complex.has_parts(_number(value, function)):
        real, imag = (frame.emit.compare("not_equal", part, 0.0) for part in (value.real, value.imag))
        return frame.emit.binary("bitwise_or", real, imag)
    return _rules(frame).as_type(frame.emit, value, bool_)


def _logical(function: str, op: str) -> Function:
    return lambda frame, x, y: frame.emit.binary(op, _truth(frame, x, function), _truth(frame, y, function))


def _logical_not(frame: Frame, x: Any) -> Any:
    return frame.emit.logical_not(_truth(frame, x, "logical_not"))


def _invert(frame: Frame, x: Any) -> Any:
    dtype = _rules(frame).dtype_of(_number(x, "invert"))
    if dtype is bool_:
        return _logical_not(frame, x)
    if dtype.is_float:
        raise TileTypeError(f"numpy.invert of {dtype} is not defined; convert to an integer, as in int64(x)")
    return frame.emit.unary("bitwise_not", _rules(frame).as_type(frame.emit, x, dtype))


def _negative(frame: Frame, x: Any) -> Any:
    if numba_complex.has_parts(_number(x, "negative")):
        return complexes.negative(frame, x)
    return frame.emit.unary("negative", _rules(frame).as_type(frame.emit, x, _rules(frame).dtype_of(x)))


def _is_nan(frame: Frame, value: Any) -> Any:
    parts = (value.real, value.imag) if numba_complex.has_parts(value) else (value,)
    found = [frame.emit.compare("not_equal", part, part) for part in parts]
    return found[0] if len(found) == 1 else frame.emit.binary("bitwise_or", *found)


def _extremum(function: str, order: str, ignores_nan: bool) -> Function:
    """maximum and minimum: a NaN if there is one; fmax and fmin: the other value."""

    def run(frame: Frame, x: Any, y: Any) -> Any:
        x, y, emit = _number(x, function), _number(y, function), frame.emit
        if not (numba_complex.has_parts(x) or numba_complex.has_parts(y)):
            dtype = _met(_rules(frame), x, y)
            x, y = (_rules(frame).as_type(emit, v, dtype) for v in (x, y))
            if not dtype.is_float:
                return emit.select(emit.compare(order, x, y), x, y)
            first = emit.binary("bitwise_or", emit.compare(order, x, y), _is_nan(frame, y if ignores_nan else x))
            return emit.select(first, x, y)
        kind = complexes.KINDS[_rules(frame).meet("+", *(numba_complex.name_of(_rules(frame), v) for v in (x, y)))[0]]  # type: ignore[index]
        first = emit.binary("bitwise_or", _less(frame, x, y, order), _is_nan(frame, y if ignores_nan else x))
        pairs = zip(complexes.parts(frame, x, kind), complexes.parts(frame, y, kind), strict=True)
        return complexes.of_parts(kind, *(emit.select(first, a, b) for a, b in pairs))

    return run


def _square(frame: Frame, x: Any) -> Any:
    return _binary("square", "mul")(frame, x, x)


def _reciprocal(frame: Frame, x: Any) -> Any:
    one = 1.0 if not is_scalar(x) else _rules(frame).as_type(frame.emit, 1, _rules(frame).dtype_of(x))
    return _binary("reciprocal", "truediv" if not is_scalar(x) or x.dtype.is_float else "floordiv")(frame, one, x)


def _sign(frame: Frame, x: Any) -> Any:
    """-1, 0, 1, or NaN of that."""
    rules, emit = _rules(frame), frame.emit
    if not is_scalar(x):
        raise TileTypeError(f"numpy.sign needs a real number, found {describe(x)}")
    value = rules.as_type(emit, x, rules.dtype_of(x))
    found = emit.select(emit.compare("equal", value, 0), emit.constant(0, value.dtype), value)
    if value.dtype.is_float or value.dtype.signed:
        found = emit.select(emit.compare("less", value, 0), emit.constant(-1, value.dtype), found)
    return emit.select(emit.compare("greater", value, 0), emit.constant(1, value.dtype), found)


def _rint(frame: Frame, x: Any) -> Any:
    rules = _rules(frame)
    dtype = rules.dtype_of(_number(x, "rint"))
    return rules.call(frame, c_math.rint, rules.as_type(frame.emit, x, dtype if dtype.is_float else float64))


def _heaviside(frame: Frame, x: Any, at_zero: Any) -> Any:
    rules, emit = _rules(frame), frame.emit
    dtype = _met(rules, _number(x, "heaviside"), _number(at_zero, "heaviside"))
    x, at_zero = (rules.as_type(emit, v, dtype if dtype.is_float else float64) for v in (x, at_zero))
    zero, one = (emit.constant(v, x.dtype) for v in (0, 1))
    found = emit.select(emit.compare("equal", x, 0), at_zero, x)
    return emit.select(emit.compare("less", x, 0), zero, emit.select(emit.compare("greater", x, 0), one, found))


def gcd(frame: Frame, x: Any, y: Any) -> Any:
    """Of integers, in the type that holds both."""
    from ..numba import lowering  # tile code

    rules = _rules(frame)
    dtype = _met(rules, _number(x, "gcd"), _number(y, "gcd"))
    if not dtype.is_integral:
        raise TileTypeError(f"numpy.gcd of {dtype} is not defined; convert to an integer, as in int64(x)")
    return rules.call(frame, lowering.gcd, *(rules.as_type(frame.emit, v, dtype) for v in (x, y)))


def _clip(frame: Frame, a: Any, a_min: Any, a_max: Any) -> Any:
    """Of a number; where the bounds cross, the upper one."""
    return _extremum("clip", "less", False)(frame, _extremum("clip", "greater", False)(frame, a, a_min), a_max)


def _where(frame: Frame, condition: Any, x: Any, y: Any) -> Any:
    """Of numbers."""
    rules = _rules(frame)
    dtype = _met(rules, _number(x, "where"), _number(y, "where"))
    values = (rules.as_type(frame.emit, v, dtype) for v in (x, y))
    return frame.emit.select(_truth(frame, condition, "where"), *values)


def _of_complex(of_numbers: Function, of_complex: Function | None) -> Function:
    def run(frame: Frame, *values: Any) -> Any:
        has = of_complex is not None and any(map(numba_complex.has_parts, values))
        return (of_complex if has else of_numbers)(frame, *values)  # type: ignore[misc]

    return run


def _log2(frame: Frame, x: Any, logarithm: Function) -> Any:
    """Of a complex number."""
    found, scale = logarithm(frame, x), frame.emit.constant(1 / math.log(2), x.part)
    return complexes.of_parts(type(x), *(frame.emit.binary("mul", part, scale) for part in (found.real, found.imag)))


def _with_output(function: np.ufunc, of_numbers: Function) -> Function:
    """Of numbers, or, as in `numpy.sin(x, out)`, of all elements of arrays."""

    def run(frame: Frame, *values: Any, out: Any = None) -> Any:
        if out is None and len(values) == function.nin + 1:
            values, out = values[:-1], values[-1]
        if len(values) != function.nin:
            takes = "a value" if function.nin == 1 else f"{function.nin} values"
            raise TileTypeError(f"numpy.{function.__name__} takes {takes}, and an output for arrays")
        if out is None:
            return of_numbers(frame, *values)
        arrays.write_results(frame, function, list(values), out)
        return out

    return run


def _own() -> dict[str, Function]:
    """By name, those that neither `math` nor Python has."""
    known: dict[str, Function] = {name: _binary(name, op) for name, op in _BINARY.items()}
    known.update({name: _compare(name) for name in _COMPARISONS})
    known.update({name: _logical(name, op) for name, op in _LOGICAL.items()})
    for best, order in (("max", "greater"), ("min", "less")):
        known[f"{best}imum"] = _extremum(f"{best}imum", order, False)
        known[f"f{best}"] = _extremum(f"f{best}", order, True)
    known.update(logical_not=_logical_not, invert=_invert, negative=_negative, square=_square, reciprocal=_reciprocal)
    known.update(sign=_sign, rint=_rint, heaviside=_heaviside, gcd=gcd, clip=_clip, where=_where)
    return known


def table(builtins: dict[Any, Function]) -> dict[Any, Function]:
    """`builtins`: what Python's functions and those of `math` become."""
    of_math = {name: name for name, f in vars(math).items() if callable(f) and f in builtins} | _OF_MATH
    known: dict[str, Function] = {}
    for name, of in of_math.items():
        if hasattr(np, name):
            known[name] = _of_complex(builtins[getattr(math, of)], builtins.get(getattr(cmath, of, None)))
    logarithm = builtins[cmath.log]
    known["log2"] = _of_complex(known["log2"], lambda frame, x: _log2(frame, x, logarithm))
    copysign = builtins[math.copysign]
    known["signbit"] = lambda frame, x: frame.emit.compare("less", copysign(frame, 1.0, x), 0)
    known |= {"absolute": builtins[abs], "power": builtins[pow]} | _own()
    named = {getattr(np, name): f for name, f in known.items()}
    return {f: _with_output(f, run) if isinstance(f, np.ufunc) else run for f, run in named.items()}


__all__ = ["table"]
