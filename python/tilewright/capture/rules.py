"""Rules: how one surface of the language types what all of them share, in `frame.capture.rules`.

TILE is tilewright.tile, DEVICE is tilewright.device. The front end asks the rules what a literal is, how two operands
meet and what an assignment converts; the ops that it emits know nothing of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..dtype import PROMOTION, DType, constant_dtype, promote_constant
from ..errors import TileTypeError
from .values import Tile, require_tile_or_number

if TYPE_CHECKING:
    from .emit import Emitter


class Rules:
    """Those of tile code: constants are loosely typed, and the dialect promotes what is typed."""

    name = "tile"
    simt = False  # a value is one element a thread; arrays are indexed

    def operands(self, emit: Emitter, name: str, values: Sequence[Any]) -> list[Tile]:
        """Operands as tiles; a constant takes its dtype from the typed ones."""
        values = [require_tile_or_number(v, f"ct.{name}") for v in values]
        typed = [v.dtype for v in values if isinstance(v, Tile)]
        result = []
        for value in values:
            if isinstance(value, Tile):
                result.append(value)
            elif typed:
                result.append(emit.constant(value, promote_constant(value, typed[0])))
            else:
                result.append(emit.constant(value, constant_dtype(value)))
        return result

    def converted(self, emit: Emitter, value: Any, dtype: DType, what: str) -> Tile:
        """`value` as the `dtype` of what it is stored to, if it promotes to it."""
        value = require_tile_or_number(value, what)
        if isinstance(value, Tile):
            common = PROMOTION[value.dtype, dtype]
            found = value.dtype
        else:
            common = promote_constant(value, dtype)
            found = constant_dtype(value)
        if common is not dtype:
            raise TileTypeError(
                f"{what}: {found} does not convert to {dtype} by itself; "
                f"write the conversion, as in x.astype(ct.{dtype})"
            )
        return emit.cast(value, dtype)


class DeviceRules(Rules):
    """Those of seed 001."""

    name = "device"
    simt = True


TILE = Rules()
DEVICE = DeviceRules()
