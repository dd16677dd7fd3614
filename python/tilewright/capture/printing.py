"""print and printf: what a kernel prints, as the format of tile.print."""

from __future__ import annotations

import dataclasses
from typing import Any

from ..dtype import bool_, float32, float64, int32, int64, uint32, uint64
from ..errors import TileTypeError
from ..formats import BITS, FLOATS, SIGNED, Conversion, check_shown, printf_parts
from . import texts
from .frame import Frame
from .table import op
from .values import Tile, describe, is_number


class _Text:
    """A format for tile.print in the making: `{}` stands for a value, a brace of the text is doubled."""

    def __init__(self) -> None:
        self.format = ""
        self.values: list[Any] = []

    def text(self, text: str) -> None:
        self.format += text.replace("{", "{{").replace("}", "}}")

    def value(self, frame: Frame, tile: Tile, conversion: Conversion | None = None) -> None:
        if conversion is not None:
            tile, conversion = _converted(frame, tile, conversion)
        elif tile.dtype is bool_ and tile.shape:  # a mask, by digits that stand in columns, as in cuTile
            tile = frame.emit.cast(tile, int32)
        self.format += "{}" if conversion is None else f"{{:{conversion}}}"
        self.values.append(tile.ir)

    def any(self, frame: Frame, value: Any) -> None:
        for part in texts.parts_of(texts.text_of(frame, value)):
            self.text(part) if isinstance(part, str) else self.value(frame, *part)

    def emit(self, frame: Frame) -> None:
        frame.builder.op("tile.print", self.values, {"format": self.format}, [])


@op("print")
def _print(frame: Frame, *args: Any, sep: Any, end: Any) -> None:
    if not isinstance(sep, str) or not isinstance(end, str):
        raise TileTypeError("ct.print: sep and end must be constant strings")
    text = _Text()
    for i, value in enumerate(args):
        text.text(sep if i else "")
        text.any(frame, value)
    text.text(end)
    text.emit(frame)


def _converted(frame: Frame, tile: Tile, conversion: Conversion) -> tuple[Tile, Conversion]:
    """A value in the dtype that a conversion shows: signed, the same bits without a sign, or a float."""
    cast, letter = frame.emit.cast, conversion.letter
    if letter in FLOATS:
        return cast(tile, tile.dtype if tile.dtype is float32 else float64), conversion
    if not tile.dtype.is_integral:
        tile = cast(tile, int32 if tile.dtype is bool_ else int64)
    if tile.dtype.min == 0:
        return tile, dataclasses.replace(conversion, letter="u") if letter in SIGNED else conversion
    if letter in BITS:  # C promotes what is narrower than an int to one
        tile = cast(tile, int64 if tile.dtype is int64 else int32)
        tile = cast(tile, uint64 if tile.dtype is int64 else uint32)
    return tile, conversion


@op("printf")
def _printf(frame: Frame, format: Any, *args: Any) -> None:
    if not isinstance(format, str):
        raise TileTypeError(f"ct.printf needs a constant format string, found {describe(format)}")
    text, rest = _Text(), list(args)
    for part in printf_parts(format):
        if isinstance(part, str):
            text.text(part)
            continue
        if not rest:
            raise TileTypeError(f"ct.printf: too few values for {format!r}; expected one for each '%'")
        value = rest.pop(0)
        if part.letter == "s" and not (is_number(value) or isinstance(value, Tile)):
            text.any(frame, value)
            continue
        tile = frame.emit.tile(value, "ct.printf")
        check_shown(part, tile.dtype)
        text.value(frame, tile, part)
    if rest:
        raise TileTypeError(f"ct.printf: too many values for {format!r}; expected one for each '%'")
    text.emit(frame)
