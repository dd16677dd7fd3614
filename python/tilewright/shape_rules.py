"""Shape rules: what operations ask of shapes and axes, with one message for each rule, in both executions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from .dtype import DType
from .errors import TileTypeError

Shape = tuple[int, ...]
MOST_ELEMENTS = 2**30  # of a tile, so that a position in it is an int32


def dimensions(count: int) -> str:
    return f"{count} dimension{'' if count == 1 else 's'}"


class ShapeRules:
    """The rules for values that may not be constants; `static_int` is how an execution tells one that is."""

    def __init__(self, static_int: Callable[[Any, str], int]) -> None:
        self._static_int = static_int

    def static_ints(self, value: Any, what: str) -> Shape:
        if not isinstance(value, tuple | list):
            return (self._static_int(value, what),)
        return tuple(self._static_int(v, f"{what}[{i}]") for i, v in enumerate(value))

    def check_tile_shape(self, value: Any, what: str) -> Shape:
        shape = self.static_ints(value, what)
        for axis, n in enumerate(shape):
            if n < 1 or n & (n - 1):
                raise TileTypeError(
                    f"{what}: dimension {axis} of {shape} is {n}, which is no power of two; expected "
                    f"1, 2, 4, 8, …, as in {1 << max(0, n - 1).bit_length()} with a padding mode for "
                    "the rest"
                )
        if math.prod(shape) > MOST_ELEMENTS:
            raise TileTypeError(f"{what}: a tile of shape {shape} is too large; it has at most 2**30 elements")
        return shape

    def check_length(self, value: Any, what: str) -> Shape:
        """The shape of a row of constant length."""
        length = self._static_int(value, what)
        if length < 1 or length & (length - 1):
            nearest = 1 << max(0, length - 1).bit_length()
            raise TileTypeError(f"{what} is {length}, which is no power of two; expected 1, 2, 4, 8, …, as {nearest}")
        return self.check_tile_shape(length, what)

    def check_axis(self, value: Any, ndim: int, what: str) -> int:
        axis = self._static_int(value, f"{what}: axis")
        if not -ndim <= axis < ndim:
            raise TileTypeError(
                f"{what}: axis {axis} is outside a tile of {dimensions(ndim)}; expected {-ndim} to {ndim - 1}"
            )
        return axis % ndim

    def check_axes(self, value: Any, ndim: int, what: str) -> Shape:
        if value is None:
            return tuple(range(ndim))
        axes = tuple(self.check_axis(v, ndim, what) for v in (value if isinstance(value, tuple | list) else (value,)))
        if len(set(axes)) != len(axes):
            raise TileTypeError(f"{what}: axis {value} names one axis twice; expected each once")
        return axes

    def check_order(self, value: Any, ndim: int, what: str) -> Shape:
        if isinstance(value, str):
            if value not in ("C", "F"):
                raise TileTypeError(f"{what}: order {value!r} is neither 'C', 'F' nor a permutation")
            return tuple(range(ndim)) if value == "C" else tuple(reversed(range(ndim)))
        axes = self.static_ints(value, f"{what}: order")
        if sorted(axes) != list(range(ndim)):
            raise TileTypeError(
                f"{what}: order {axes} is no permutation of {ndim} axes; expected each of 0 to {ndim - 1} once"
            )
        return axes

    def check_reshape(self, shape: Shape, value: Any) -> Shape:
        """The shape that elements of `shape` take, with the length that -1 leaves open."""
        wanted, size = self.static_ints(value, "ct.reshape: shape"), math.prod(shape)
        if wanted.count(-1) > 1:
            raise TileTypeError(f"ct.reshape: shape {wanted} leaves several lengths open; expected one -1 at most")
        rest = -math.prod(wanted) if -1 in wanted else 0
        if rest > 0 and size % rest == 0:
            wanted = tuple(size // rest if n == -1 else n for n in wanted)
        elif -1 in wanted:
            raise TileTypeError(f"ct.reshape: the {size} elements of shape {shape} do not divide by those of {wanted}")
        wanted = self.check_tile_shape(wanted, "ct.reshape: shape")
        if math.prod(wanted) != size:
            raise TileTypeError(
                f"ct.reshape: shape {shape} has {size} elements, {wanted} has {math.prod(wanted)}; expected as many"
            )
        return wanted

    def check_permutation(self, value: Any, ndim: int) -> Shape:
        values = value if isinstance(value, tuple | list) else (value,)
        order = tuple(self.check_axis(v, ndim, "ct.permute") for v in values)
        if sorted(order) != list(range(ndim)):
            raise TileTypeError(
                f"ct.permute: axes {value} is no permutation of {ndim} axes; expected each of 0 to {ndim - 1} once"
            )
        return order

    def check_transpose(self, axis0: Any, axis1: Any, ndim: int) -> Shape:
        """The order of axes in which the two, or the two that there are, have changed places."""
        if axis0 is None and axis1 is None:
            if ndim != 2:
                raise TileTypeError(f"ct.transpose of a tile of {dimensions(ndim)} needs the two axes to swap")
            return (1, 0)
        if axis0 is None or axis1 is None:
            raise TileTypeError(
                "ct.transpose needs both axes or none, as in ct.transpose(x, 0, 1); ct.permute(x, axes) takes a tuple"
            )
        a, b = (self.check_axis(v, ndim, "ct.transpose") for v in (axis0, axis1))
        order = list(range(ndim))
        order[a], order[b] = order[b], order[a]
        return tuple(order)

    def check_cat(self, tiles: Sequence[Any], axis: Any, describe: Callable[[Any], str]) -> int:
        """The axis along which one or two tiles are joined."""
        x, *rest = tiles
        at = self._static_int(axis, "ct.cat: axis")
        if not -x.ndim <= at < x.ndim:
            raise TileTypeError(f"ct.cat: axis {at} is outside a tile of {dimensions(x.ndim)}")
        for y in rest:
            if (x.dtype, x.shape) != (y.dtype, y.shape):
                raise TileTypeError(
                    f"ct.cat needs tiles of one dtype and shape, found {describe(x)} and {describe(y)}; "
                    "the shape of the result must be powers of two, too"
                )
        return at % x.ndim


def broadcast_shapes(a: Shape, b: Shape, what: str) -> Shape:
    rank = max(len(a), len(b))
    result = []
    for m, n in zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b, strict=True):
        if m != n and m != 1 and n != 1:
            raise TileTypeError(f"{what}: shapes {a} and {b} do not broadcast; expected equal lengths, or 1")
        result.append(max(m, n))
    return tuple(result)


def check_fits(shape: Shape, wanted: Shape, what: str) -> None:
    """Whether a tile of `shape` broadcasts to exactly `wanted`."""
    if broadcast_shapes(shape, wanted, what) != wanted:
        raise TileTypeError(f"{what} of shape {shape} does not broadcast to {wanted}")


def check_nested(value: Any, entry: Callable[[Any], Any]) -> tuple[Shape, list[Any]]:
    """The shape of nested tuples, and what `entry` makes of their scalars, in row-major order."""
    if not isinstance(value, tuple | list):
        return (), [entry(value)]
    parts = [check_nested(part, entry) for part in value]
    count, shapes = len(parts), sorted({shape for shape, _ in parts})
    if count < 1 or count & (count - 1):
        raise TileTypeError(f"ct.astile: a tuple of {count} entries; expected 1, 2, 4, 8, … of them")
    if len(shapes) > 1:
        shown = ", ".join(map(str, shapes))
        raise TileTypeError(f"ct.astile: the entries of one tuple have the shapes {shown}; expected one shape")
    return (count, *shapes[0]), [entry for _, entries in parts for entry in entries]


def check_part(whole: Shape, part: Shape, index: Any, what: str) -> tuple[Any, ...]:
    """The index of a part of a tile, checked as far as it is known."""
    entries = index if isinstance(index, tuple) else (index,)
    if len(part) != len(whole) or len(entries) != len(whole):
        raise TileTypeError(
            f"{what}: the index is for {dimensions(len(entries))} and the part has {dimensions(len(part))}; "
            f"expected {len(whole)}, as the tile has: a part does not match the tile rank otherwise"
        )
    for axis, (entry, have, wanted) in enumerate(zip(entries, whole, part, strict=True)):
        if have % wanted:
            raise TileTypeError(f"{what}: parts of shape {part} do not make up a tile of shape {whole}")
        if type(entry) is int and not 0 <= entry < have // wanted:
            raise TileTypeError(
                f"{what}: index {entry} is out of bounds along axis {axis}, of {have // wanted} parts of {wanted}"
            )
    return entries


def bits_of(dtype: Any, what: str) -> int:
    """Of an element in memory."""
    if dtype.is_bool:
        raise TileTypeError(f"{what}: bool_ has no bits to speak of; convert, as in x.astype(ct.uint8) or x != 0")
    return int(dtype.bits)


def check_bitcast(source: Any, target: Any) -> None:
    have, need = bits_of(source, "ct.bitcast"), bits_of(target, "ct.bitcast")
    if have != need:
        raise TileTypeError(
            f"ct.bitcast: {source} has {have} bits and {target} has {need}; expected as many: "
            "ct.pack_to_bytes and ct.unpack_from_bytes take elements apart"
        )


def check_divisor(divisor: Any, constant: int | None) -> None:
    """What ct.assume_divisible_by asks of its divisor, and of a constant that it is said to divide."""
    what = "ct.assume_divisible_by"
    if not isinstance(divisor, int) or isinstance(divisor, bool):
        raise TileTypeError(
            f"{what}: divisor must be a constant integer; a parameter becomes one by the annotation ct.Constant"
        )
    if not 1 <= divisor < 2**31:
        raise TileTypeError(f"{what}: divisor is 1 to 2**31 - 1, found {divisor}")
    if constant is not None and constant % divisor:
        raise TileTypeError(f"{what}: {divisor} does not divide the constant {constant}; expected a multiple")


def check_same_dtype(found: DType, wanted: DType, what: str) -> None:
    if found is not wanted:
        raise TileTypeError(f"{what} is {found}, the tile {wanted}; convert it, as in x.astype(ct.{wanted})")
