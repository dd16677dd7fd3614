"""Vectors: one to four numbers of one format, `float32x3(x, y, z)`; immutable, with operators by element.

On the host an element is a NumPy scalar. In device code `v.x = a` and `v[0] = a` give the name a new vector.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, cast

from .. import dtype as dt
from ..dtype import DType
from ..errors import TileTypeError, TileValueError
from ..layout import Layout, vector_layout
from .conversion import converted

if TYPE_CHECKING:
    from ..capture.frame import Frame

AXES = "xyzw"


class Vector:
    """What all vector types share; a type such as device.float32x4 is a subclass."""

    dtype: ClassVar[DType]
    size: ClassVar[int] = 0
    __tw_tree__ = True

    def __init__(self, *args: Any) -> None:
        kind = type(self)
        if kind.size != len(args):
            raise TileTypeError(f"{kind.__name__} takes {kind.size} values, found {len(args)}")
        for axis, value in zip(AXES, args, strict=False):
            what = f"{kind.__name__}.{axis}"
            object.__setattr__(self, axis, converted(_number(value, self.dtype), self.dtype, what))

    @classmethod
    def __tw_layout__(cls) -> Layout:
        return vector_layout(cls.dtype, cls.size)

    @classmethod
    def __tw_make__(cls, frame: Frame, args: list[Any], keywords: dict[str, Any]) -> Any:
        from ..capture.simt import vectors

        return vectors.make(frame, cls, args, keywords)

    def __tw_item__(self, frame: Frame, index: Any) -> Any:
        from ..capture.simt import vectors

        return vectors.item(frame, self, index)

    def __tw_with_item__(self, frame: Frame, index: Any, value: Any) -> Any:
        from ..capture.simt import vectors

        return vectors.with_item(frame, self, index, value)

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Any]:
        return iter([getattr(self, axis) for axis in AXES[: self.size]])

    def __getitem__(self, i: int) -> Any:
        index = operator.index(i)
        if not -self.size <= index < self.size:
            raise TileValueError(f"index {index} is outside of {type(self).__name__}, which has {self.size} elements")
        return getattr(self, AXES[index % self.size])

    def __setitem__(self, i: int, value: Any) -> None:
        name = type(self).__name__
        raise TileTypeError(f"a {name} is immutable on the host; make a new one, as by dataclasses.replace(v, x=value)")


def _number(value: Any, dtype: DType) -> Any:
    """A number of another format as one of `dtype`, if that is of the same kind or a higher one."""
    own = getattr(value, "dtype", None)
    if own is None or dtype == own or dt.as_dtype(own).category > dtype.category:
        return value
    return dtype(value)


def _by_element(name: str, swapped: bool = False) -> Callable[[Any, Any], Any]:
    function = getattr(operator, name)

    def run(self: Vector, other: Any) -> Any:
        if isinstance(other, Vector) and other.size != self.size:
            raise TileTypeError(f"{type(self).__name__} and {type(other).__name__} differ in size")
        others = list(other) if isinstance(other, Vector) else [other] * self.size
        pairs = [(b, a) if swapped else (a, b) for a, b in zip(self, others, strict=True)]
        return vector_of([function(a, b) for a, b in pairs])

    return run


def vector_of(values: list[Any]) -> Vector:
    """The vector of numbers of one format."""
    return vector_type(dt.as_dtype(values[0].dtype), len(values))(*values)


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and_", "or_", "xor", "lshift", "rshift"):
    _plain = _name.rstrip("_")
    setattr(Vector, f"__{_plain}__", _by_element(_name))
    setattr(Vector, f"__r{_plain}__", _by_element(_name, swapped=True))
setattr(Vector, "__neg__", lambda self: vector_of([-v for v in self]))  # noqa: B010

DTYPES = {
    **{d.name: d for d in (dt.int8, dt.int16, dt.int32, dt.int64, dt.uint8, dt.uint16, dt.uint32, dt.uint64)},
    "float8e4m3": dt.float8_e4m3fn,
    "float8e5m2": dt.float8_e5m2,
    **{d.name: d for d in (dt.float16, dt.bfloat16, dt.float32, dt.float64)},
}


def _vector_class(name: str, dtype: DType, count: int) -> type[Vector]:
    # cuda.device is where a user finds it, and where pickle does.
    namespace = {"dtype": dtype, "size": count, "__module__": "cuda.device", "__doc__": f"{count} numbers: {name}."}
    fields = [(axis, Any) for axis in AXES[:count]]
    made = dataclasses.make_dataclass(
        f"{name}x{count}", fields, bases=(Vector,), namespace=namespace, frozen=True, init=False
    )
    made.__module__ = "cuda.device"
    return cast(type[Vector], made)


TYPES = {f"{name}x{n}": _vector_class(name, dtype, n) for name, dtype in DTYPES.items() for n in range(1, 5)}
globals().update(TYPES)
_BY_FORMAT = {(kind.dtype, kind.size): kind for kind in TYPES.values()}


def vector_type(dtype: DType, count: int) -> type[Vector]:
    found = _BY_FORMAT.get((dtype, count))
    if found is None:
        raise TileTypeError(f"there is no vector of {count} elements of {dtype}")
    return found


_uint32x3: Any = _BY_FORMAT[dt.uint32, 3]


class Dim3(_uint32x3):
    """Where a thread or a block stands, or how many there are: x, y and z."""

    __module__ = "cuda.device"


__all__ = ["Dim3", "Vector", *TYPES]
