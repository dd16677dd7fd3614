"""Layouts: the size, the alignment and the offsets of a type in memory, as CUDA C++ has them.

    layout_of(float32x3)            # Layout(size=12, align=4, leaves=((0, float32), (4, float32), (8, float32)))

A record is laid out as the C struct with one member a field, in order; `align` raises the alignment of a member. All
that has a place in memory is laid out here: structs, tuples, vectors, complex numbers.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterable
from typing import Any

from .dtype import DType, as_dtype, float32
from .errors import TileError, TileTypeError, TileValueError

__all__ = ["Layout", "align", "layout_of"]


@dataclasses.dataclass(frozen=True)
class Layout:
    """`leaves` are the numbers that a value consists of: (offset, dtype); `fields` the offsets of its own members."""

    size: int
    align: int
    leaves: tuple[tuple[int, DType], ...]
    fields: tuple[int, ...] = ()


def align(t: Any, n: int) -> Any:
    """A type that is `t`, aligned to at least `n` bytes; `t` stays as it is.

    For a field of a struct: what alignas says of a member, whose size stays. Values of it are values of `t`.
    """
    check_align(n, "device.align")
    return Aligned(t, max(n, layout_of(t).align))


def check_align(n: Any, what: str) -> None:
    if type(n) is not int or n < 1 or n & (n - 1):
        raise TileValueError(f"{what}: the alignment is a power of two, found {n!r}")


@dataclasses.dataclass(frozen=True)
class Aligned:
    """What `align` gives."""

    type: Any
    align: int

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self.type(*args, **keywords)


def _aggregate(parts: Iterable[Layout], least: int = 1) -> Layout:
    """Of a C struct with these members."""
    offset, leaves, fields = 0, [], []
    for part in parts:
        offset = -(-offset // part.align) * part.align
        fields.append(offset)
        leaves += [(offset + at, dtype) for at, dtype in part.leaves]
        offset += part.size
        least = max(least, part.align)
    return Layout(-(-offset // least) * least, least, tuple(leaves), tuple(fields))


def layout_of(t: Any) -> Layout:
    """The layout of a type: a dtype, int, float, bool, a class by @struct, a vector type, or tuple[A, B]."""
    if isinstance(t, Aligned):
        return dataclasses.replace(layout_of(t.type), align=t.align)
    if t is complex:
        return Layout(8, 8, ((0, float32), (4, float32)), (0, 4))
    own = getattr(t, "__tw_layout__", None)
    if own is not None:
        return typing.cast(Layout, own())
    if typing.get_origin(t) is tuple and ... not in typing.get_args(t):
        return _aggregate(map(layout_of, typing.get_args(t)))
    try:
        dtype = as_dtype(t)
    except TileError:
        raise TileTypeError(
            f"{_named(t)} is no type of device code; expected a number such as device.float32 or int, a vector, a "
            "class by @device.struct, or tuple[...] of these"
        ) from None
    return Layout(dtype.itemsize, dtype.itemsize, ((0, dtype),))


def struct_layout(hints: Iterable[Any], least: int) -> Layout:
    return _aggregate(map(layout_of, hints), least)


def vector_layout(dtype: DType, count: int) -> Layout:
    """Of CUDA's vector types: two and four elements are aligned as a whole, up to 16 bytes; others as an element."""
    size = dtype.itemsize
    whole = min(16, size * count) if count in (2, 4) else size
    return Layout(
        size * count, whole, tuple((i * size, dtype) for i in range(count)), tuple(range(0, size * count, size))
    )


def _named(t: Any) -> str:
    return t.__qualname__ if isinstance(t, type) else repr(t)
