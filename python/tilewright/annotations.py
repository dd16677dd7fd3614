"""Enumerations that operations take, and annotations of a kernel's parameters. Programs take them from `tile`."""

from __future__ import annotations

import dataclasses
import enum
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from .dtype import DType, int32, int64
from .errors import TileTypeError, TileValueError
from .quiet import quiet

T = TypeVar("T")


class PaddingMode(enum.Enum):
    """What a load gives for elements outside the array.

    Integer and bool arrays know ZERO and UNDETERMINED only; NAN, POS_INF and NEG_INF also need a
    format that has such a value, and float8_e8m0fnu has no zero. Anything else is TileTypeError.
    """

    UNDETERMINED = "undetermined"
    ZERO = "zero"
    NEG_ZERO = "neg_zero"
    NAN = "nan"
    POS_INF = "pos_inf"
    NEG_INF = "neg_inf"


class RoundingMode(enum.Enum):
    """Rounding of floating-point operations; without one they round to nearest even."""

    RN = "nearest_even"
    RZ = "zero"
    RM = "negative_inf"
    RP = "positive_inf"
    RA = "nearest_away"
    FULL = "full"
    APPROX = "approx"
    RZI = "nearest_int_to_zero"


class MemoryOrder(enum.Enum):
    """What other blocks see of an access, and in which order.

    A WEAK access is none that others may look at while the kernel runs. A RELAXED one is, each element at once, but it
    orders nothing beside it. Who reads by ACQUIRE what another block wrote by RELEASE sees all that it did before.
    """

    WEAK = "weak"
    RELAXED = "relaxed"
    ACQUIRE = "acquire"
    RELEASE = "release"
    ACQ_REL = "acq_rel"


class MemoryScope(enum.Enum):
    """Between whom a memory order holds; a WEAK access has NONE."""

    NONE = "none"
    BLOCK = "block"
    CLUSTER = "cluster"
    DEVICE = "device"
    SYS = "sys"


class ConstantAnnotation:
    """Marks a kernel parameter as known at compile time."""

    def __repr__(self) -> str:
        return "ConstantAnnotation()"


# `n: ct.Constant[int]` or `n: ct.Constant`: a static type checker sees plain `int`.
if TYPE_CHECKING:
    Constant = Annotated[T, ConstantAnnotation()]
else:

    class _Constant:
        """`Annotated[T, ConstantAnnotation()]`, whose brackets refuse in words of ours what is no type."""

        __origin__ = T
        __metadata__ = (ConstantAnnotation(),)

        @quiet
        def __getitem__(self, kind: Any) -> Any:
            if isinstance(kind, bool | int | float | complex | bytes | tuple | list | dict | set):
                raise TileTypeError(
                    f"ct.Constant takes a type, as in ct.Constant[int], found {kind!r}; a launch says the value, "
                    "or a default: n: ct.Constant[int] = 3"
                )
            return Annotated[kind, *self.__metadata__]

        def __or__(self, other: Any) -> Any:
            return self[T] | other

        def __ror__(self, other: Any) -> Any:
            return other | self[T]

        def __repr__(self) -> str:
            return repr(self[T])

        def __reduce__(self) -> str:
            return "Constant"

    Constant = _Constant()


_MOST_AXES = 8  # of an array


@dataclasses.dataclass(frozen=True, kw_only=True)
class ArrayAnnotation:
    """How a kernel sees an array parameter: `x: Annotated[ct.Array, ct.ArrayAnnotation(index_dtype=ct.int64)]`.

    With `index_dtype` int64 extents are int64 scalars. The extents along the axes `static_shape_dims`, and the strides
    along `static_stride_dims`, are constants in tile code; the kernel is compiled for each of their values.
    """

    index_dtype: DType = int32
    static_shape_dims: tuple[int, ...] = ()
    static_stride_dims: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        _check_index_dtype("ArrayAnnotation: index_dtype", self.index_dtype)
        for name in ("static_shape_dims", "static_stride_dims"):
            axes = getattr(self, name)
            if not isinstance(axes, tuple) or not all(type(axis) is int for axis in axes):
                raise TileTypeError(f"ct.ArrayAnnotation: {name} must be a tuple of integers, found {axes!r}")
            if not all(0 <= axis < _MOST_AXES for axis in axes):
                raise TileValueError(f"ct.ArrayAnnotation: {name} has axes from 0 to {_MOST_AXES - 1}, found {axes}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScalarAnnotation:
    """How a kernel sees an integer parameter: as int32 or int64, whatever its value."""

    dtype: DType

    def __post_init__(self) -> None:
        _check_index_dtype("ScalarAnnotation: dtype", self.dtype)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ListAnnotation:
    """How a kernel sees the arrays of a list: `xs: Annotated[list, ct.ListAnnotation(element=ct.IndexedWithInt64)]`.

    `element` is an `ArrayAnnotation`, or an `Annotated` type that has one.
    """

    element: Any

    def __post_init__(self) -> None:
        marks = [m for m in getattr(self.element, "__metadata__", [self.element]) if isinstance(m, ArrayAnnotation)]
        if len(marks) != 1:
            raise TileTypeError(f"ct.ListAnnotation: element needs one ct.ArrayAnnotation, found {self.element!r}")
        object.__setattr__(self, "element", marks[0])


def _check_index_dtype(what: str, dtype: Any) -> None:
    if dtype not in (int32, int64):
        raise TileValueError(f"ct.{what} is int32 or int64, found {dtype}")


# `x: ct.IndexedWithInt64`: its extents are int64. `n: ct.ScalarInt64`: an int64, also where int32 would do.
IndexedWithInt64 = Annotated[T, ArrayAnnotation(index_dtype=int64)]
ScalarInt64 = Annotated[T, ScalarAnnotation(dtype=int64)]
