"""What a generator knows of a tile: its type, and how exactly the executions agree on its elements.

Elements of a tile with a `bound` are integers of at most that magnitude. As long as a float's mantissa holds the
bound, sums and products of such tiles are exact in any order, with or without fused multiply-adds. Other floats have
no bound: an operation rounds once, which all executions do alike, but what a multiply-add was fused of must not be
added up, and what comes of a function like `exp` has an `error`, with which it may be moved and stored, not computed.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import ml_dtypes

from tilewright import dtype as dt
from tilewright import tile as ct

Shape = tuple[int, ...]
INTEGERS = tuple(d for d in dt.ARITHMETIC if d.is_integral)
FLOATS = tuple(d for d in dt.ARITHMETIC if d.is_float)
MANTISSA = {ct.float16: 2.0**11, ct.bfloat16: 2.0**8, ct.float32: 2.0**24, ct.float64: 2.0**53}
MOST = 2048  # elements of a tile


@dataclasses.dataclass(frozen=True)
class Error:
    """How far two executions may be apart: relative to the value, and absolute."""

    relative: float = 0.0
    absolute: float = 0.0

    def __or__(self, other: Error) -> Error:
        return Error(max(self.relative, other.relative), max(self.absolute, other.absolute))

    def __bool__(self) -> bool:
        return self.relative > 0 or self.absolute > 0


NONE = Error()


@dataclasses.dataclass(frozen=True)
class Type:
    dtype: dt.DType
    shape: Shape
    bound: float | None = None
    fused: bool = False
    error: Error = NONE

    @property
    def exact(self) -> bool:
        return not self.error

    @property
    def plain(self) -> bool:
        """Whether anything may be computed of it."""
        return not self.error and not self.fused

    @property
    def size(self) -> int:
        count = 1
        for n in self.shape:
            count *= n
        return count

    def of_shape(self, shape: Shape) -> Type:
        return dataclasses.replace(self, shape=tuple(shape))

    def holds(self, other: Type) -> bool:
        """Whether a variable of this type may get that value."""
        bounded = self.bound is None or (other.bound is not None and other.bound <= self.bound)
        fused = self.fused or not other.fused
        near = other.error | self.error == self.error
        return self.dtype is other.dtype and self.shape == other.shape and bounded and fused and near


def limit(dtype: dt.DType) -> float:
    return 1.0 if dtype.is_bool else float(dtype.max) if dtype.is_integral else MANTISSA[dtype]


def bounded(dtype: dt.DType, shape: Any, bound: float | None, **more: Any) -> Type:
    """A type with that bound, if the dtype holds it exactly."""
    return Type(dtype, tuple(shape), bound if bound is not None and bound <= limit(dtype) else None, **more)


def either(x: Type, y: Type, dtype: dt.DType, shape: Any) -> Type:
    """Of elements that are one's or the other's."""
    x, y = converted(x, dtype), converted(y, dtype)
    bound = None if x.bound is None or y.bound is None else max(x.bound, y.bound)
    return bounded(dtype, shape, bound, fused=x.fused or y.fused, error=x.error | y.error)


def eps(dtype: dt.DType) -> float:
    return float(ml_dtypes.finfo(dtype.numpy).eps)


def converted(x: Type, dtype: dt.DType) -> Type:
    """x as that dtype, of a float or of what converts exactly to an integer."""
    if dtype is x.dtype:
        return x
    error = x.error
    if error and eps(dtype) > eps(x.dtype):  # a function whose result ends in 16 bits may be a hardware's approximation
        error = Error(error.relative + 2 * eps(dtype), error.absolute + 1e-6)
    bound = 1.0 if x.dtype.is_bool else x.bound
    return bounded(dtype, x.shape, bound, fused=x.fused, error=error)


def converts(source: dt.DType, target: dt.DType) -> bool:
    """Whether all executions round the conversion alike."""
    return not (source.is_integral and source.bits > 16 and target is ct.bfloat16)


def broadcast(*shapes: Shape) -> Shape | None:
    """Their common shape, if they have one of not too many elements."""
    rank = max(map(len, shapes))
    shape = []
    for sizes in zip(*((1,) * (rank - len(s)) + s for s in shapes), strict=True):
        wide = {n for n in sizes if n != 1}
        if len(wide) > 1:
            return None
        shape.append(wide.pop() if wide else 1)
    return tuple(shape) if Type(ct.int8, tuple(shape)).size <= MOST else None
