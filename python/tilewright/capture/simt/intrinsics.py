"""Intrinsics: functions of the bits of integers, by plain arithmetic, and of floats.

LLVM knows the sum of bits and the reversal below, and makes the instructions of them that the target has.
"""

from __future__ import annotations

from typing import Any

from ...dtype import UNSIGNED_BY_BITS, DType, constant_dtype, float32, float64, int32
from ...errors import TileTypeError
from ..frame import Frame
from ..rules import require_number
from ..values import Tile, describe


class _Bits:
    """The bits of an integer in an unsigned number of 32 or 64."""

    def __init__(self, frame: Frame, value: Tile) -> None:
        self.emit, self.width = frame.emit, max(32, value.dtype.bits)
        narrow = frame.emit.bitcast(value, UNSIGNED_BY_BITS[value.dtype.bits])
        self.value: Any = frame.emit.cast(narrow, UNSIGNED_BY_BITS[self.width])

    def op(self, name: str, x: Any, y: Any) -> Any:
        return self.emit.binary(name, x, y)

    def mask(self, pattern: int) -> int:
        """A byte over and over."""
        return pattern * (((1 << self.width) - 1) // 0xFF)

    def count(self, x: Any) -> Any:
        """How many bits are set: sums of 2, 4 and 8 bits, which one product adds up."""
        op = self.op
        x = op("sub", x, op("bitwise_and", op("bitwise_rshift", x, 1), self.mask(0x55)))
        twos = op("bitwise_and", x, self.mask(0x33))
        x = op("add", twos, op("bitwise_and", op("bitwise_rshift", x, 2), self.mask(0x33)))
        x = op("bitwise_and", op("add", x, op("bitwise_rshift", x, 4)), self.mask(0x0F))
        return op("bitwise_rshift", op("mul", x, self.mask(0x01)), self.width - 8)


def of_bits(frame: Frame, name: str, x: Any) -> Any:
    value = require_number(x, f"device.{name}")
    if not isinstance(value, Tile):
        value = frame.emit.constant(value, int32) if type(value) is int else value
    if not isinstance(value, Tile) or not value.dtype.is_integral:
        raise TileTypeError(
            f"device.{name} is a function of an integer, found {describe(value)}; convert, as in int(x)"
        )
    return _FUNCTIONS[name](frame, value)


def _popc(frame: Frame, value: Tile) -> Any:
    bits = _Bits(frame, value)
    return frame.emit.cast(bits.count(bits.value), int32)


def _clz(frame: Frame, value: Tile) -> Any:
    """All bits below the highest one are set; those that are not are above it."""
    bits = _Bits(frame, value)
    x, shift = bits.value, 1
    while shift < bits.width:
        x = bits.op("bitwise_or", x, bits.op("bitwise_rshift", x, shift))
        shift *= 2
    return frame.emit.binary("sub", value.dtype.bits, frame.emit.cast(bits.count(x), int32))


def _ffs(frame: Frame, value: Tile) -> Any:
    """x ^ (x - 1) has the lowest bit that is set and those below."""
    bits = _Bits(frame, value)
    below = bits.op("bitwise_xor", bits.value, bits.op("sub", bits.value, 1))
    place = frame.emit.cast(bits.count(below), int32)
    return frame.emit.select(frame.emit.compare("equal", bits.value, 0), frame.emit.int32(0), place)


def _brev(frame: Frame, value: Tile) -> Any:
    """Neighbours change places, then pairs, and so on."""
    bits = _Bits(frame, value)
    x, op, whole, step = bits.value, bits.op, (1 << bits.width) - 1, 1
    while step < bits.width:
        low = whole // ((1 << step) + 1)
        right = op("bitwise_and", op("bitwise_rshift", x, step), low)
        x = op("bitwise_or", op("bitwise_lshift", op("bitwise_and", x, low), step), right)
        step *= 2
    x = frame.emit.cast(op("bitwise_rshift", x, bits.width - value.dtype.bits), UNSIGNED_BY_BITS[value.dtype.bits])
    return frame.emit.bitcast(x, value.dtype)


_FUNCTIONS = {"popc": _popc, "clz": _clz, "ffs": _ffs, "brev": _brev}


def _float(frame: Frame, what: str, value: Any) -> Tile:
    value = require_number(value, what)
    dtype = value.dtype if isinstance(value, Tile) else constant_dtype(value)
    if not dtype.is_float:
        raise TileTypeError(
            f"{what} is a function of floats, found {describe(value)}; convert, as in device.float32(x)"
        )
    return value if isinstance(value, Tile) else frame.emit.constant(value, float32)


def cbrt(frame: Frame, a: Any) -> Any:
    """The power 1/3 of the absolute value in float64, made exact to its last bits by Newton's step."""
    value = _float(frame, "device.cbrt", a)
    emit = frame.emit
    wide = emit.cast(value, float64)
    x = emit.unary("abs", wide)
    y = emit.binary("pow", x, 1.0 / 3.0)
    square = emit.binary("mul", y, y)
    error = emit.binary("sub", y, emit.binary("truediv", x, square))
    better = emit.binary("sub", y, emit.binary("truediv", error, 3.0))
    plain = emit.binary("bitwise_or", emit.compare("equal", y, 0.0), emit.compare("equal", y, float("inf")))
    y = emit.select(plain, y, better)
    y = emit.select(emit.compare("less", wide, 0.0), emit.unary("negative", y), y)
    y = emit.select(emit.compare("equal", x, 0.0), wide, y)
    return emit.cast(y, value.dtype)


def rsqrt(frame: Frame, a: Any) -> Any:
    return frame.emit.unary("rsqrt", _float(frame, "device.rsqrt", a))


def fma(frame: Frame, a: Any, b: Any, c: Any) -> Any:
    for value in (a, b, c):
        _float(frame, "device.fma", value)
    dtype = frame.capture.rules.operands(frame.emit, "add", (a, b, c))[0].dtype
    result = frame.capture.rules.meet("add", (a, b, c)).result  # type: ignore[attr-defined]
    wide: DType = float64 if result.bits <= 16 else dtype
    operands = [frame.emit.cast(v, wide) for v in (a, b, c)]
    found = frame.emit.typed("math.fma", [t.ir for t in operands], None, wide, ())
    return frame.emit.cast(found, result)
