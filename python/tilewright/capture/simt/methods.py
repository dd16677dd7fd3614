"""Methods in device code: of numbers and of arrays."""

from __future__ import annotations

import inspect
from typing import Any

from ...errors import TileTypeError
from ..frame import Frame
from ..values import Tile
from . import arrays, numbers


def call(frame: Frame, receiver: Any, name: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    table: dict[str, Any] = arrays.METHODS if not isinstance(receiver, Tile) else numbers.METHODS
    if hasattr(type(receiver), "__tw_tree__"):
        from . import complexes  # which needs the classes

        table = {"conjugate": complexes.conjugate}
    rules = frame.capture.rules
    table = table | (rules.methods if isinstance(receiver, Tile) else rules.array_methods)
    method = table[name]
    try:
        inspect.signature(method).bind(frame, receiver, *args, **keywords)
    except TypeError as error:
        raise TileTypeError(f"{name}(): {error}") from None
    return method(frame, receiver, *args, **keywords)
