"""Emit: ops of the tile dialect from values, with loosely typed constants made concrete.

The types of results are the dialect's to infer (dialect/rules.c), as are the messages when operands
do not fit; what is decided here is the dtype that a constant takes on contact with a typed operand.
"""

from __future__ import annotations

import dataclasses
import math
import operator
import struct
from collections.abc import Callable, Sequence
from typing import Any

from .. import _core
from .._optable import CMP_KIND, OPS, REDUCE_KIND
from ..dtype import (
    BY_MLIR,
    PROMOTION,
    DType,
    bool_,
    constant_dtype,
    constant_of,
    float4_e2m1fn,
    float8_e4m3fn,
    float8_e8m0fnu,
    float16,
    float32,
    float64,
    int32,
    int64,
    number_text,
)
from ..errors import TileTypeError, TileValueError, from_message
from .rules import TILE, Rules, require_number
from .values import Shape, Tile, describe, is_number, require_tile_or_number, tile_type

# Public name of an operation -> the op of the dialect.
BINARY_OPS = {op.public: op.name for op in OPS if op.operands == 2}
_ON_BITS = {op.public for op in OPS if op.operands == 2 and op.result == "same"}
_KNOWN = {"add", "sub", "mul", "minimum", "maximum", "bitwise_and", "bitwise_or", "bitwise_xor"}  # of typed constants
COMPARE_KINDS = {
    "equal": CMP_KIND["eq"],
    "not_equal": CMP_KIND["ne"],
    "less": CMP_KIND["lt"],
    "less_equal": CMP_KIND["le"],
    "greater": CMP_KIND["gt"],
    "greater_equal": CMP_KIND["ge"],
}
UNARY_OPS = {op.public: op.name for op in OPS if op.operands == 1}
TERNARY_OPS = {op.public: op.name for op in OPS if op.operands == 3}  # of a condition and two values
SCAN_KINDS = {"cumsum": REDUCE_KIND["add"], "cumprod": REDUCE_KIND["mul"]}
REDUCE_KINDS = {"sum": REDUCE_KIND["add"], "prod": REDUCE_KIND["mul"]} | {
    name: REDUCE_KIND[name] for name in ("min", "max", "argmin", "argmax")
}

# What operations on constants alone mean.
FOLD: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "truediv": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "pow": operator.pow,
    "matmul": operator.matmul,
    "minimum": min,
    "maximum": max,
    "cdiv": lambda x, y: -(-x // y),
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
    "negative": operator.neg,
    "abs": abs,
    "bitwise_not": lambda x: not x if isinstance(x, bool) else ~x,
    "exp": math.exp,
    "exp2": math.exp2,
    "log": lambda x: math.log(x) if x > 0 else -math.inf if x == 0 else math.nan,
    "log2": lambda x: math.log2(x) if x > 0 else -math.inf if x == 0 else math.nan,
    "sqrt": lambda x: math.sqrt(x) if x >= 0 else math.nan,
    "rsqrt": lambda x: 1 / math.sqrt(x) if x > 0 else math.inf if x == 0 else math.nan,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "sinh": math.sinh,
    "cosh": math.cosh,
    "tanh": math.tanh,
    "floor": lambda x: float(math.floor(x)),
    "ceil": lambda x: float(math.ceil(x)),
}

# Formats without infinity: a constant that is too large becomes the largest value.
_LARGEST = {float8_e4m3fn: 448.0, float4_e2m1fn: 6.0}


# Bits of an integer, elements of a tuple, letters of a text: no constant of a program needs more, and Python would
# take minutes, or all memory, over one that is written in a few letters.
CONSTANT_LIMIT = 1 << 20


def _bits_of(name: str, values: tuple[Any, ...]) -> int:
    """At least how many bits an integer has that Python would compute exactly; 0 of what stays small."""
    if name not in ("pow", "bitwise_lshift") or not all(isinstance(value, int) for value in values):
        return 0
    x, y = values
    if name == "pow":
        return (abs(x).bit_length() - 1) * y if abs(x) > 1 else 0
    return x.bit_length() + y if x else 0


def fold(name: str, *values: Any) -> Any:
    """An operation on constants only, with Python's exact numbers: a function without a row in FOLD is that of `math`.

    NumPy is not asked, with which the reference computes: what one of the two has wrong the other one shows.
    """
    if _bits_of(name, values) > CONSTANT_LIMIT:
        text = " and ".join(map(number_text, values))
        raise TileValueError(
            f"ct.{name} of {text} is too large to be a constant: it has more than {CONSTANT_LIMIT} bits"
        )
    try:
        return (FOLD.get(name) or getattr(math, name))(*values)
    except (ArithmeticError, ValueError, TypeError, MemoryError) as error:
        text = ", ".join(map(number_text, values))
        raise TileValueError(f"ct.{name} of the constants {text}: {error}; expected others") from None


class Emitter:
    """Appends ops to the block that is open in the builder."""

    def __init__(self, builder: Any, rules: Rules = TILE) -> None:
        self.builder, self.rules = builder, rules
        self._op = builder.op
        self._constant = builder.constant

    # -- ops

    def op(
        self,
        name: str,
        operands: Sequence[Tile],
        attributes: dict[str, Any] | None = None,
        *,
        public: str | None = None,
    ) -> Tile:
        """An op with one result, whose type it infers."""
        try:
            value = self._op(name, [t.ir for t in operands], attributes)
        except _core.BuildError as error:
            raise from_message(str(error), public and f"ct.{public}") from None
        return Tile(value, BY_MLIR[value.element], value.shape or ())

    def typed(
        self,
        name: str,
        operands: Sequence[Any],
        attributes: dict[str, Any] | None,
        dtype: DType,
        shape: Shape,
    ) -> Tile:
        """An op with one result of a given type; the operands are values of the IR."""
        try:
            value = self._op(name, operands, attributes, [tile_type(dtype, shape)])
        except _core.BuildError as error:
            raise from_message(str(error)) from None
        return Tile(value, dtype, shape)

    # -- constants

    def constant(self, value: bool | int | float, dtype: DType, shape: Shape = ()) -> Tile:
        """A loosely typed constant as a tile of `dtype`; TileValueError if it does not fit."""
        if dtype.is_integral:
            if not _is_finite(value) or not dtype.min <= int(value) <= dtype.max:
                raise TileValueError(f"constant {number_text(value)} is outside {dtype} ({dtype.min} to {dtype.max})")
            value = int(value)
        elif dtype.is_bool:
            value = bool(value)
        else:
            value = _as_float(value, dtype)
        return Tile(self._constant(tile_type(dtype, shape), value), dtype, shape)

    def typed_constant(self, value: bool | int | float, dtype: DType) -> Tile:
        """A constant with a dtype, as ct.int16(2): its value is known where no digit is lost."""
        tile = self.constant(value, dtype)
        return dataclasses.replace(tile, known=value) if not self.rules.simt and _is_held(value, dtype) else tile

    def tile(self, value: Any, what: str, dtype: DType | None = None) -> Tile:
        """A tile or constant operand as a tile; `dtype` is what a constant becomes."""
        value = self._operand(value, what)
        if isinstance(value, Tile):
            return value
        return self.constant(value, dtype or constant_dtype(value))

    def _operand(self, value: Any, what: str) -> Any:
        return require_number(value, what) if self.rules.simt else require_tile_or_number(value, what)

    def int32(self, value: int) -> Tile:
        return self.constant(value, int32)

    # -- conversions

    def cast(self, value: Any, dtype: DType) -> Tile:
        """`astype`."""
        if not isinstance(value, Tile):
            return self.constant(value, dtype)
        if value.dtype is dtype:
            return dataclasses.replace(value, loose=False) if value.loose else value
        found = self.typed("tile.cast", [value.ir], None, dtype, value.shape)
        is_whole = dtype.is_integral and dtype.bits >= value.dtype.bits
        return dataclasses.replace(found, least=value.least) if is_whole and value.least is not None else found

    def bitcast(self, value: Tile, dtype: DType) -> Tile:
        """The bits of a value as another dtype of the same size."""
        return self.typed("tile.bitcast", [value.ir], None, dtype, value.shape)

    def implicit(self, value: Any, dtype: DType, what: str) -> Tile:
        """`value` as `dtype` if it promotes to it, as in a store."""
        return self.rules.converted(self, value, dtype, what)

    def converted(self, value: Any, dtype: DType, what: str) -> Any:
        """A scalar as `dtype`, as by astype; a constant stays one, an integer of a float without its fraction."""
        value = self._operand(value, what)
        if isinstance(value, Tile):
            return self.cast(value, dtype)
        return int(value) if dtype.is_integral and _is_finite(value) else value

    def reshape(self, value: Tile, shape: Shape) -> Tile:
        if value.shape == shape:
            return value
        return self.typed("tile.reshape", [value.ir], None, value.dtype, shape)

    def broadcast(self, value: Tile, shape: Shape) -> Tile:
        if value.shape == shape:
            return value
        return self.typed("tile.broadcast", [value.ir], None, value.dtype, shape)

    # -- arithmetic

    def operands(self, name: str, values: Sequence[Any]) -> list[Tile]:
        """Operands as tiles; a constant takes its dtype from the typed ones."""
        return self.rules.operands(self, name, values)

    def binary(
        self, name: str, x: Any, y: Any, propagate_nan: bool = False, marks: dict[str, None] | None = None
    ) -> Any:
        if is_number(x) and is_number(y):
            return fold(name, x, y)
        attributes: dict[str, Any] | None = marks
        operands = self.operands(name, (x, y))
        if name == "floordiv" and not self.rules.simt and any(t.dtype.is_float for t in operands):
            return self.unary("floor", self.binary("truediv", operands[0], operands[1]))
        if name in ("minimum", "maximum") and not propagate_nan and any(t.dtype.is_float for t in operands):
            attributes = {"ignore_nan": None}
        if name == "pow" and type(y) is int and y >= 0:
            attributes = {"integral": None}
            if isinstance(x, Tile) and not x.dtype.is_integral:
                attributes = None
        if name in _ON_BITS and (self.rules.simt or is_number(x) or is_number(y)):
            common = PROMOTION[operands[0].dtype, operands[1].dtype]
            operands = [self.cast(t, common) for t in operands] if common is not None else operands
        found = self.op(BINARY_OPS[name], operands, attributes, public=name)
        if name in _KNOWN and found.dtype.is_integral and (numbers := _known_integers(x, y)) is not None:
            found.known = constant_of(fold(name, *numbers), found.dtype)
        return _bounded(self.rules, name, x, y, self.rules.result(self, name, (x, y), found))

    def plain(self, name: str, x: Tile, y: Tile) -> Tile:
        """Of two tiles of one dtype, whatever the rules say of the operator."""
        return self.op(BINARY_OPS[name], [x, y])

    def compare(self, name: str, x: Any, y: Any) -> Any:
        if is_number(x) and is_number(y):
            return fold(name, x, y)
        attributes = {"kind": COMPARE_KINDS[name]}
        found = self.op("tile.cmp", self.operands(name, (x, y)), attributes, public=name)
        if (numbers := _known_integers(x, y)) is not None:
            found.known = fold(name, *numbers)
        return self.rules.result(self, name, (x, y), found)

    def unary(self, name: str, x: Any, marks: dict[str, None] | None = None) -> Any:
        if is_number(x):
            return fold(name, x)
        operand = self.rules.operand(self, name, x)
        return self.rules.result_of(self, name, x, self.op(UNARY_OPS[name], [operand], marks, public=name))

    def ternary(self, name: str, condition: Any, x: Any, y: Any) -> Tile:
        condition = self.tile(condition, f"ct.{name}")
        found = self.op(TERNARY_OPS[name], [condition, *self.operands(name, (x, y))], public=name)
        return self.rules.result(self, name, (x, y), found)

    def select(self, condition: Any, x: Any, y: Any) -> Tile:
        return self.ternary("where", condition, x, y)

    # -- scalars

    def truth(self, value: Tile, what: str) -> Tile:
        """A scalar as bool_: whether it is not zero."""
        if value.shape:
            raise TileTypeError(
                f"{what} needs a scalar, found {describe(value)}; ct.where chooses between the "
                "elements of tiles, ct.max(x) tells whether any of them is true"
            )
        if value.dtype is bool_:
            return value
        if value.dtype.is_float and value.dtype.bits < 16:
            if not self.rules.simt:
                told = "serves storage, casts and mma only; convert first, as in x.astype(ct.float32)"
                raise TileTypeError(f"{what} is not defined on {value.dtype}, which {told}")
            value = self.cast(value, float32)
        return self.op("tile.cmp", [value, self.constant(0, value.dtype)], {"kind": CMP_KIND["ne"]})

    def logical_not(self, value: Tile) -> Tile:
        return self.op("tile.not", [value])

    def index(self, value: Any, what: str) -> Tile:
        """An integer scalar as int32, or int64 where it may be wider."""
        if is_number(value) and isinstance(value, int):
            return self.constant(value, constant_dtype(value))
        if not isinstance(value, Tile) or value.shape or not value.dtype.is_integral:
            is_float = type(value) is float or (isinstance(value, Tile) and value.dtype.is_float and not value.shape)
            instead = "; x // y gives one" if is_float else ""
            raise TileTypeError(f"{what} must be an integer scalar, found {describe(value)}{instead}")
        narrow = value.dtype.bits < 32 or value.dtype is int32
        return self.cast(value, int32 if narrow else int64)


def _bounded(rules: Rules, name: str, x: Any, y: Any, found: Any) -> Any:
    """What threads and blocks have for numbers stay that in sums and products: a launch has fewer than 2^31 threads."""
    known = isinstance(x, Tile) and isinstance(y, Tile) and isinstance(found, Tile)
    if not rules.simt or not known or x.least is None or y.least is None or not found.dtype.is_integral:
        return found
    least = {"add": x.least + y.least, "mul": x.least * y.least}.get(name)
    return found if least is None else dataclasses.replace(found, least=least)


def _known_integers(*values: Any) -> list[int] | None:
    """What integers of tile code are that are all known at compile time, and not all loosely typed."""
    found = [value.known if isinstance(value, Tile) else value for value in values]
    return found if all(type(v) is int for v in found) else None


def _is_held(value: bool | int | float, dtype: DType) -> bool:
    """Whether a dtype of tile code has a number as it is."""
    if not isinstance(value, float):
        return dtype.is_integral
    code = {float16: "e", float32: "f", float64: "d"}.get(dtype)
    try:
        return code is not None and struct.unpack(code, struct.pack(code, value))[0] == value
    except OverflowError:
        return False


def _is_finite(value: bool | int | float) -> bool:
    return isinstance(value, int) or math.isfinite(value)  # an integer may be too large to ask


def _as_float(value: float, dtype: DType) -> float:
    try:
        wide = float(value)
    except OverflowError:
        wide = math.inf if value > 0 else -math.inf
    if dtype is float8_e8m0fnu:  # powers of two only: no zero, no sign
        return math.nan if math.isnan(wide) or wide < 0 else max(wide, 2.0**-127)
    limit = _LARGEST.get(dtype)
    if limit is not None and not math.isnan(wide):
        wide = max(-limit, min(limit, wide))
    return wide
