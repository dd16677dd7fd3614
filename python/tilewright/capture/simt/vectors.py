"""Vectors in device code: objects of their host classes, whose elements are scalars of the running kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...dtype import DType
from ...errors import TileTypeError, TileValueError
from ..frame import Frame
from ..values import Tile, describe, is_number


def vector(kind: Any, elements: list[Any]) -> Any:
    """The vector of these scalars."""
    made = object.__new__(kind)
    for axis, element in zip("xyzw", elements, strict=False):
        object.__setattr__(made, axis, element)
    return made


def make(frame: Frame, kind: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
    if keywords or len(args) != kind.size:
        found = len(args) + len(keywords)
        raise TileTypeError(f"device.{kind.__name__} takes {kind.size} values by position, found {found}")
    rows = zip("xyzw", args, strict=False)
    return vector(kind, [element(frame, v, kind.dtype, f"device.{kind.__name__}: {axis}") for axis, v in rows])


def element(frame: Frame, value: Any, dtype: DType, what: str) -> Tile:
    return frame.capture.rules.converted(frame.emit, value, dtype, what)


def item(frame: Frame, value: Any, index: Any) -> Any:
    """`v[i]`; of a run-time index, by comparisons."""
    elements = list(value)
    if isinstance(index, Tile) and index.known is None and not index.shape and index.dtype.is_integral:
        found = elements[-1]
        for i in range(len(elements) - 2, -1, -1):
            found = frame.emit.select(frame.emit.compare("equal", index, i), elements[i], found)
        return found
    return elements[_constant_index(value, index)]


def with_item(frame: Frame, value: Any, index: Any, new: Any) -> Any:
    """What `v[i] = new` gives the name."""
    kind, elements = type(value), list(value)
    fresh = element(frame, new, kind.dtype, f"an element of {kind.__name__}")
    if isinstance(index, Tile) and index.known is None:
        chosen = [frame.emit.compare("equal", index, i) for i in range(kind.size)]
        return vector(kind, [frame.emit.select(c, fresh, e) for c, e in zip(chosen, elements, strict=True)])
    elements[_constant_index(value, index)] = fresh
    return vector(kind, elements)


def _constant_index(value: Any, index: Any) -> int:
    number = index.known if isinstance(index, Tile) else index
    if type(number) is not int:
        raise TileTypeError(f"an index into a {type(value).__name__} is an integer, found {describe(index)}")
    if not -value.size <= number < value.size:
        raise TileValueError(
            f"index {number} is outside of {describe(value)}, which has {value.size} elements; "
            f"expected 0 to {value.size - 1}"
        )
    return number % int(value.size)


def by_element(frame: Frame, what: str, run: Callable[..., Any], *operands: Any) -> Any:
    """An operation on vectors of one size, and numbers that go with each element."""
    from ...device.vectors import Vector, vector_type  # the classes need this package

    sizes = {v.size for v in operands if isinstance(v, Vector)}
    if len(sizes) != 1 or not all(isinstance(v, Vector | Tile) or is_number(v) for v in operands):
        found = " and ".join(type(v).__name__ if isinstance(v, Vector) else describe(v) for v in operands)
        raise TileTypeError(f"{what} of {found} is not defined; expected vectors of one size, or a vector and a number")
    (size,) = sizes
    columns = [list(v) if isinstance(v, Vector) else [v] * size for v in operands]
    made = [run(*row) for row in zip(*columns, strict=True)]
    return vector(vector_type(made[0].dtype, size), [frame.emit.cast(v, v.dtype) for v in made])
