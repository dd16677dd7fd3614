"""Complex numbers in device code: two scalars, with the arithmetic of C."""

from __future__ import annotations

import dataclasses
from typing import Any

from ...device.complexes import KINDS, Complex, PythonComplex, of_parts
from ...dtype import float32, float64
from ...errors import TileTypeError
from ..frame import Frame
from ..rules import device_name, device_promotion, require_number
from ..values import Method, Tile, describe, is_number


def literal(frame: Frame, value: complex) -> Any:
    """A constant: of the widest format where the rules say so of numbers of Python."""
    if not frame.capture.rules.wide:
        return of_parts(PythonComplex, value.real, value.imag)
    return of_parts(KINDS["complex128"], *(frame.emit.constant(v, float64) for v in (value.real, value.imag)))


def is_complex(value: Any) -> bool:
    return isinstance(value, Complex)


def name_of(value: Any) -> str:
    return value.name if isinstance(value, Complex) else device_name(value)


def make(frame: Frame, kind: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
    """`complex64(x)`, `complex64(real, imag)`."""
    if keywords or len(args) > 2:
        raise TileTypeError(f"device.{kind.name} takes a number, or its two parts, found {len(args) + len(keywords)}")
    if len(args) == 2:
        return of_parts(kind, *(_part(frame, kind, require_number(v, f"device.{kind.name}")) for v in args))
    return converted(frame, args[0] if args else 0, kind, f"device.{kind.name}")


def _part(frame: Frame, kind: Any, value: Any) -> Any:
    if kind.loose and is_number(value):
        return float(value)
    return dataclasses.replace(frame.emit.cast(value, kind.part), loose=kind.loose)


def parts(frame: Frame, value: Any, kind: Any) -> tuple[Any, Any]:
    """Real and imaginary part in the format of `kind`."""
    if isinstance(value, Complex):
        return _part(frame, kind, value.real), _part(frame, kind, value.imag)  # type: ignore[attr-defined]
    return _part(frame, kind, value), _part(frame, kind, 0.0)


def converted(frame: Frame, value: Any, kind: Any, what: str) -> Any:
    """A number as a complex one of `kind`."""
    if not isinstance(value, Complex) and not isinstance(value, Tile) and not is_number(value):
        raise TileTypeError(f"{what} is a {kind.name}, found {describe(value)}; expected a number")
    return of_parts(kind, *parts(frame, value, kind))


def attribute(frame: Frame, value: Any, name: str) -> Any:
    known = {"real": value.real, "imag": value.imag, "dtype": type(value), "shape": (), "ndim": 0, "size": 1}
    if name in known:
        return known[name]
    if name == "conjugate":
        return Method(value, name)
    raise TileTypeError(
        f"a complex number has no attribute '{name}' in device code; it has real, imag, conjugate, dtype"
    )


def conjugate(frame: Frame, value: Any) -> Any:
    return of_parts(type(value), value.real, _negative(frame, value.imag))


def negative(frame: Frame, value: Any) -> Any:
    return of_parts(type(value), _negative(frame, value.real), _negative(frame, value.imag))


def _negative(frame: Frame, value: Any) -> Any:
    return frame.emit.unary("negative", value)


# ---------------------------------------------------------------------------------------------
# Arithmetic


def binary(frame: Frame, name: str, x: Any, y: Any) -> Any:
    for value in (x, y):
        if not isinstance(value, Complex):
            require_number(value, name)
    if name == "pow" and type(y) is int and 0 < y <= MOST_POWER:
        return _power(frame, x, y)
    if name not in _OPERATIONS:
        raise TileTypeError(
            f"{name} of {name_of(x)} and {name_of(y)} is not defined; complex numbers have + - * / and =="
        )
    return computed(frame, name, x, y, KINDS[device_promotion(name_of(x), name_of(y))])


def computed(frame: Frame, name: str, x: Any, y: Any, kind: Any) -> Any:
    """Of operands that become numbers of `kind`."""
    (a, b), (c, d) = parts(frame, x, kind), parts(frame, y, kind)
    return of_parts(kind, *_OPERATIONS[name](frame, a, b, c, d))


MOST_POWER = 16


def _power(frame: Frame, x: Any, n: int) -> Any:
    found = x
    for _ in range(n - 1):
        found = binary(frame, "mul", found, x)
    return found


def _add(frame: Frame, a: Any, b: Any, c: Any, d: Any) -> tuple[Any, Any]:
    return frame.emit.binary("add", a, c), frame.emit.binary("add", b, d)


def _sub(frame: Frame, a: Any, b: Any, c: Any, d: Any) -> tuple[Any, Any]:
    return frame.emit.binary("sub", a, c), frame.emit.binary("sub", b, d)


def _mul(frame: Frame, a: Any, b: Any, c: Any, d: Any) -> tuple[Any, Any]:
    op = frame.emit.binary
    return op("sub", op("mul", a, c), op("mul", b, d)), op("add", op("mul", a, d), op("mul", b, c))


def _div(frame: Frame, a: Any, b: Any, c: Any, d: Any) -> tuple[Any, Any]:
    """Smith's: by the larger part of the divisor, so that no square overflows."""
    op, emit = frame.emit.binary, frame.emit
    c, d = (emit.tile(v, "a divisor") for v in (c, d))
    wide = emit.compare("greater_equal", emit.unary("abs", c), emit.unary("abs", d))
    large, small = emit.select(wide, c, d), emit.select(wide, d, c)
    ratio = op("truediv", small, large)
    scale = op("add", large, op("mul", small, ratio))
    first, second = _choose(frame, wide, a, b), _choose(frame, wide, b, a)
    real = op("truediv", op("add", first, op("mul", second, ratio)), scale)
    imag = op("truediv", op("sub", second, op("mul", first, ratio)), scale)
    return real, emit.select(wide, imag, emit.unary("negative", imag))


def _choose(frame: Frame, condition: Tile, x: Any, y: Any) -> Tile:
    return frame.emit.select(condition, frame.emit.tile(x, "a dividend"), frame.emit.tile(y, "a dividend"))


_OPERATIONS = {"add": _add, "sub": _sub, "mul": _mul, "truediv": _div}


def absolute(frame: Frame, value: Any) -> Any:
    """The length: float32 numbers in float64, where no square overflows; float64 numbers scaled by the larger part.

    It is infinite where a part is, and else no number where a part is none, of which maximum takes the other one.
    """
    emit, kind = frame.emit, type(value)
    x, y = (emit.unary("abs", emit.cast(v, float64)) for v in (value.real, value.imag))
    most, least = emit.binary("maximum", x, y), emit.binary("minimum", x, y)
    is_infinite = emit.compare("equal", most, float("inf"))
    if kind.part is float32:
        found = emit.cast(emit.select(is_infinite, most, _length(frame, x, y)), float32)
        return dataclasses.replace(found, loose=kind.loose)
    ratio = emit.binary("truediv", least, most)
    scaled = emit.binary("mul", most, _length(frame, emit.constant(1.0, float64), ratio))
    both = emit.binary("add", x, y)
    scaled = emit.select(emit.compare("equal", most, 0.0), most, scaled)
    scaled = emit.select(emit.compare("not_equal", both, both), both, scaled)
    return emit.select(is_infinite, most, scaled)


def _length(frame: Frame, x: Tile, y: Tile) -> Any:
    op = frame.emit.binary
    return frame.emit.unary("sqrt", op("add", op("mul", x, x), op("mul", y, y)))


def equal(frame: Frame, x: Any, y: Any) -> Any:
    return same(frame, x, y, KINDS[device_promotion(name_of(x), name_of(y))])


def same(frame: Frame, x: Any, y: Any, kind: Any) -> Any:
    (a, b), (c, d) = parts(frame, x, kind), parts(frame, y, kind)
    return frame.emit.binary("bitwise_and", frame.emit.compare("equal", a, c), frame.emit.compare("equal", b, d))
