"""Elementwise operations of the reference execution: arithmetic, comparison, bits, functions."""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from .. import dtype as dt
from .._optable import OPS
from ..annotations import RoundingMode
from ..dtype import DType
from ..errors import TileTypeError, TileValueError
from ..modes import check_divmod, check_flush, check_rounding, is_directed
from ..shape_rules import broadcast_shapes
from .table import op
from .values import (
    Tile,
    as_operand,
    as_tile,
    cast,
    common_dtype,
    convert,
    exact,
    exact_elements,
    is_number,
    round_to,
)

# Each on two arrays of one dtype; 16-bit floats come as float32 and are rounded afterwards.
_NUMPY_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.divide,
    "floordiv": np.floor_divide,
    "mod": np.mod,
    "minimum": np.minimum,
    "maximum": np.maximum,
}
PYTHON_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "truediv": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "pow": operator.pow,
    "minimum": builtins.min,
    "maximum": builtins.max,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "bitwise_lshift": operator.lshift,
    "bitwise_rshift": operator.rshift,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}


def _fold(run: Callable[..., Any], name: str, *values: Any) -> Any:
    """An operation on constants only, on Python's numbers."""
    try:
        return run(*values)
    except (ArithmeticError, ValueError, TypeError) as error:
        raise TileValueError(f"ct.{name} of the constants {values}: {error}; expected others") from None


def compute(run: Callable[..., Any], dtype: DType, *operands: Tile) -> Tile:
    """Run a NumPy function on operands of `dtype`, which is also the result's, rounding once."""
    if dtype in (dt.float16, dt.bfloat16):
        return Tile(round_to(run(*(exact(o._data) for o in operands)), dtype), dtype)
    return Tile(run(*(o._data for o in operands)), dtype)


def _promoted(name: str, x: Any, y: Any) -> tuple[Tile, Tile, DType]:
    """Both operands converted to their common dtype; checks that the shapes broadcast."""
    common = common_dtype(x, y)
    x_shape, y_shape = (v.shape if isinstance(v, Tile) else () for v in (x, y))
    broadcast_shapes(x_shape, y_shape, f"ct.{name}")
    if common.is_integral and (name == "truediv" or (name == "pow" and not _is_power(y))):
        common = dt.float32
    return cast(x, common), cast(y, common), common


def _is_power(y: Any) -> bool:
    """Whether y is a constant exponent under which integers stay integers."""
    return isinstance(y, int) and y >= 0


_OF_NUMBERS = {"minimum": np.fmin, "maximum": np.fmax}


def binary(
    name: str, x: Any, y: Any, rounding_mode: Any = None, flush_to_zero: Any = False, propagate_nan: Any = False
) -> Any:
    x, y = as_operand(x, f"ct.{name}"), as_operand(y, f"ct.{name}")
    if is_number(x) and is_number(y) and not is_directed(rounding_mode):
        check_rounding(name, rounding_mode, common_dtype(x, y))
        return _fold(PYTHON_BINARY[name], name, x, y)
    a, b, dtype = _promoted(name, x, y)
    if name == "floordiv" and dtype.is_float:
        return float_function("floor", binary("truediv", a, b))
    check_rounding(name, rounding_mode, dtype)
    dt.require_arithmetic(dtype, f"ct.{name}")
    if name == "pow":
        return _pow(a, b, dtype)
    run = _NUMPY_BINARY[name]
    if not propagate_nan:
        run = _OF_NUMBERS.get(name, run)
    flush = check_flush(name, bool(flush_to_zero), dtype)
    if flush:
        a, b = flushed(a), flushed(b)
    result = compute(run, dtype, a, b)
    if is_directed(rounding_mode):
        result = towards(name, rounding_mode, result, a, b)
    return flushed(result) if flush else result


def divmod_of(x: Any, y: Any) -> tuple[Any, Any]:
    found = binary("floordiv", x, y), binary("mod", x, y)
    if isinstance(found[1], Tile):
        check_divmod(found[1].dtype)
    return found


def flushed(x: Tile) -> Tile:
    """A zero of its sign in the place of each subnormal float32."""
    data = x._data
    subnormal = (data != 0) & (np.abs(data) < np.finfo(np.float32).tiny)
    return Tile(np.where(subnormal, np.copysign(np.float32(0), data), data), x.dtype)


_EXACT: dict[str, Callable[..., Fraction]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "truediv": operator.truediv,
}


def _side(name: str, near: float, *operands: float) -> int:
    """Whether the exact number lies below (-1), at (0) or above (1) the nearest one, by rational numbers."""
    x, *rest = operands
    if not all(map(math.isfinite, operands)) or (name == "truediv" and rest == [0]) or math.isnan(near):
        return 0
    if math.isinf(near):
        return -1 if near > 0 else 1
    at = Fraction(near)
    if name == "sqrt":
        at, exact = at * at, Fraction(x)
    else:
        exact = _EXACT[name](Fraction(x), Fraction(rest[0]))
    return (exact > at) - (exact < at)


def towards(name: str, mode: RoundingMode, near: Tile, *operands: Tile) -> Tile:
    """The result of an operation rounded as told: `near`, which is the nearest, or its neighbour."""
    wide = [exact(t._data).astype(np.float64) for t in (near, *operands)]
    shape = near._data.shape
    rows = np.broadcast_arrays(*wide)
    sides = np.array([_side(name, *map(float, row)) for row in zip(*(r.flat for r in rows), strict=True)])
    side = sides.reshape(shape)
    negative = np.signbit(wide[0])
    moves = {
        RoundingMode.RZ: np.where(negative, side > 0, side < 0),
        RoundingMode.RM: side < 0,
        RoundingMode.RP: side > 0,
    }[mode]
    down = np.broadcast_to(side < 0, shape)
    data = np.where(moves, _neighbour(near, down), near._data)
    if mode is RoundingMode.RM and name in ("add", "sub"):
        x, y = np.signbit(rows[1]), np.signbit(rows[2])
        data = np.where((wide[0] == 0) & (x | (y if name == "add" else ~y)), near.dtype.numpy.type(-0.0), data)
    return Tile(data.astype(near.dtype.numpy), near.dtype)


def _neighbour(x: Tile, down: np.ndarray) -> np.ndarray:
    """The next number of the dtype, by its bits."""
    bits: np.ndarray = np.ascontiguousarray(x._data).view(f"i{x.dtype.bits // 8}")
    step = np.where((bits < 0) == down, 1, -1).astype(bits.dtype)
    return (bits + step).view(x.dtype.numpy).reshape(x.shape)  # the contiguous array of a scalar has an axis


@op("isnan")
def isnan(x: Any) -> Any:
    x = as_operand(x, "ct.isnan")
    if is_number(x):
        return math.isnan(x)
    if not x.dtype.is_float:
        raise TileTypeError(f"ct.isnan needs floats, found {x.dtype}, which has no NaN")
    dt.require_arithmetic(x.dtype, "ct.isnan")
    return Tile(np.isnan(exact(x._data)), dt.bool_)


def _pow(a: Tile, b: Tile, dtype: DType) -> Tile:
    if dtype.is_float:
        wide = np.power(a._data.astype(np.float64), b._data.astype(np.float64))
        return Tile(round_to(wide, dtype), dtype)
    return Tile(np.power(a._data, b._data), dtype)


def _check_same(name: str, x: Any, y: Any) -> None:
    """Bits are combined of one dtype; a constant takes the tile's."""
    if name in _ON_BITS and isinstance(x, Tile) and isinstance(y, Tile) and x.dtype is not y.dtype:
        raise TileTypeError(
            f"ct.{name} is defined on bits of one dtype, found {x.dtype} and {y.dtype}; convert one operand"
        )


_ON_BITS = ("bitwise_and", "bitwise_or", "bitwise_xor")


def bitwise(name: str, x: Any, y: Any) -> Any:
    x, y = as_operand(x, f"ct.{name}"), as_operand(y, f"ct.{name}")
    if is_number(x) and is_number(y):
        return _fold(PYTHON_BINARY[name], name, x, y)
    _check_same(name, x, y)
    a, b, dtype = _promoted(name, x, y)
    shift = name in ("bitwise_lshift", "bitwise_rshift")
    if dtype.is_float or (shift and dtype.is_bool):
        raise TileTypeError(
            f"ct.{name} needs integers{'' if shift else ' or bools'}, found {dtype}; "
            "convert first, as in x.astype(ct.int32)"
        )
    if shift:
        run = np.left_shift if name == "bitwise_lshift" else np.right_shift
        return Tile(run(a._data, np.clip(b._data, 0, dtype.bits - 1)), dtype)
    return Tile(getattr(np, name)(a._data, b._data), dtype)


def compare(name: str, x: Any, y: Any) -> Any:
    x, y = as_operand(x, f"ct.{name}"), as_operand(y, f"ct.{name}")
    if is_number(x) and is_number(y):
        return _fold(PYTHON_BINARY[name], name, x, y)
    a, b, dtype = _promoted(name, x, y)
    dt.require_arithmetic(dtype, f"ct.{name}", allow_bool=True)
    return Tile(getattr(np, name)(exact_elements(a), exact_elements(b)), dt.bool_)


@op("where")
def where(cond: Any, x: Any, y: Any) -> Tile:
    cond, x, y = (as_operand(v, "ct.where") for v in (cond, x, y))
    condition = as_tile(cond, "ct.where")
    if not condition.dtype.is_bool:
        raise TileTypeError(f"ct.where needs a bool_ condition, found {condition.dtype}; compare, as in x != 0")
    a, b, dtype = _promoted("where", x, y)
    broadcast_shapes(broadcast_shapes(a.shape, b.shape, "ct.where"), condition.shape, "ct.where")
    return Tile(np.where(condition._data, a._data, b._data), dtype)


@op("negative")
def negative(x: Any) -> Any:
    x = as_operand(x, "ct.negative")
    if is_number(x):
        return -x
    x = convert(x, dt.int32) if x.dtype.is_bool else x
    return compute(np.negative, dt.require_arithmetic(x.dtype, "ct.negative"), x)


@op("abs")
def absolute(x: Any) -> Any:
    x = as_operand(x, "ct.abs")
    if is_number(x):
        return builtins.abs(x)
    if x.dtype is dt.bool_:
        return x
    return compute(np.abs, dt.require_arithmetic(x.dtype, "ct.abs"), x)


@op("bitwise_not")
def bitwise_not(x: Any) -> Any:
    x = as_operand(x, "ct.bitwise_not")
    if isinstance(x, bool):
        return not x
    if isinstance(x, int):
        return ~x
    x = as_tile(x, "ct.bitwise_not")
    if x.dtype.is_float:
        raise TileTypeError(f"ct.bitwise_not needs integers or bools, found {x.dtype}")
    return Tile(np.invert(x._data), x.dtype)


def _float_functions() -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    """Functions of real numbers mean what the dialect's table says in terms of NumPy."""
    table = {
        op.public: eval(f"lambda x: {op.numpy}", {"np": np}) for op in OPS if op.operands == 1 and op.result == "float"
    }
    return {**table, "floor": np.floor, "ceil": np.ceil}


FLOAT_FUNCTIONS = _float_functions()


def float_function(name: str, x: Any, rounding_mode: Any = None, flush_to_zero: Any = False) -> Any:
    x = as_operand(x, f"ct.{name}")
    run = FLOAT_FUNCTIONS[name]
    if is_number(x) and not is_directed(rounding_mode):
        check_rounding(name, rounding_mode, dt.float32)
        return float(run(np.asarray(x, np.float64)))
    x = x if isinstance(x, Tile) else cast(x, dt.float32)
    dtype = dt.require_arithmetic(x.dtype, f"ct.{name}", allow_bool=name not in ("floor", "ceil"))
    if not dtype.is_float:
        if name in ("floor", "ceil"):
            raise TileTypeError(f"ct.{name} needs floats, found {dtype}, which is integral already")
        dtype = dt.float32
    check_rounding(name, rounding_mode, dtype)
    flush = check_flush(name, bool(flush_to_zero), dtype)
    operand = flushed(convert(x, dtype)) if flush else convert(x, dtype)
    result = Tile(round_to(run(operand._data.astype(np.float64)), dtype), dtype)
    if is_directed(rounding_mode):
        result = towards(name, rounding_mode, result, operand)
    return flushed(result) if flush else result


@op("cdiv")
def cdiv(x: Any, y: Any) -> Any:
    x, y = as_operand(x, "ct.cdiv"), as_operand(y, "ct.cdiv")
    if is_number(x) and is_number(y):
        return _fold(lambda a, b: -(-a // b), "cdiv", x, y)
    a, b, dtype = _promoted("cdiv", x, y)
    if not dtype.is_integral:
        raise TileTypeError(f"ct.cdiv needs integers, found {dtype}")
    quotient = np.floor_divide(a._data, b._data)
    return Tile(quotient + (quotient * b._data != a._data).astype(dtype.numpy), dtype)
