"""Vectors of Numba programs: `cuda.float32x4(x, y, z, w)`, also of shorter vectors; `cuda.float4` is the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..device.vectors import TYPES, Vector
from ..errors import TileTypeError

if TYPE_CHECKING:
    from ..capture.frame import Frame

_FORMATS = {
    "int8": "char", "int16": "short", "int32": "int", "int64": "longlong", "uint8": "uchar", "uint16": "ushort",
    "uint32": "uint", "uint64": "ulonglong", "float32": "float", "float64": "double",
}  # a table of several in a line  # fmt: skip


class VectorType:
    """Makes a vector of numbers and of vectors."""

    def __init__(self, kind: Any) -> None:
        self.kind, self.__name__ = kind, kind.__name__

    def __call__(self, *parts: Any) -> Any:
        return self.kind(*_flat(parts))

    def __repr__(self) -> str:
        return f"<cuda.{self.__name__}>"

    def __tw_call__(self, frame: Frame, *parts: Any) -> Any:
        return self.kind.__tw_make__(frame, _flat(parts), {})

    def __tw_value__(self, frame: Frame) -> Any:
        return self


def _flat(parts: tuple[Any, ...]) -> list[Any]:
    found: list[Any] = []
    for part in parts:
        found += list(part) if isinstance(part, Vector) else [part]
    if not found:
        raise TileTypeError("a vector is made of numbers, found none")
    return found


_found = {f"{name}x{n}": VectorType(TYPES[f"{name}x{n}"]) for name in _FORMATS for n in range(1, 5)}
_found |= {f"{short}{n}": _found[f"{name}x{n}"] for name, short in _FORMATS.items() for n in range(1, 5)}
globals().update(_found)

__all__ = sorted(_found)
