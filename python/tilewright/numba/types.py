"""The types of Numba programs: `float32(x)` in a kernel converts, `float32[:]` and `void(int32)` make signatures."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any

from .. import dtype as dt
from ..errors import TileTypeError

if TYPE_CHECKING:
    from ..capture.frame import Frame


@dataclasses.dataclass(frozen=True)
class Type:
    """A type object; in a kernel it is the dtype."""

    name: str
    of: dt.DType | None  # None: void, complex numbers, structures
    record: Any = None  # of a structure: NumPy's dtype

    def __call__(self, *values: Any) -> Any:
        if all(map(_is_type, values)) and (values or self.name == "void"):
            return Signature(self, values)
        if self is void or len(values) > 1:
            raise TileTypeError(f"{self.name} takes one number, or the types of a signature, found {values!r}")
        return self.dtype.type(*values)

    def __getitem__(self, index: Any) -> Array:
        parts = index if isinstance(index, tuple) else (index,)
        if not all(isinstance(part, slice) for part in parts):
            raise TileTypeError(f"an array of {self.name} is written as {self.name}[:] or {self.name}[:, ::1]")
        return Array(self, len(parts))

    @property
    def underlying_float(self) -> Type:
        """Of a complex number, the type of a part."""
        if self.name not in ("complex64", "complex128"):
            raise AttributeError(f"{self.name} has no parts")
        return float32 if self.name == "complex64" else float64

    @property
    def dtype(self) -> Any:
        """NumPy's, which so takes a type object for a dtype."""
        return _numpy_dtype(self)

    def __tw_value__(self, frame: Frame) -> Any:
        if self.of is None:
            return self._parts()
        return self.of

    def _parts(self) -> Any:
        """Of complex numbers the type of device code; a structure stays what it is."""
        from ..device.complexes import KINDS

        if self.record is not None:
            return self
        if self.name not in KINDS:
            raise TileTypeError(f"{self.name} has no values; a function without a result has a signature with it")
        return KINDS[self.name]

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> Any:
        """One that has a name is the same object in another process."""
        return (_named, (self.name,)) if self.name in NAMES else (type(self), (self.name, self.of, self.record))


def _named(name: str) -> Type:
    return NAMES[name]


@dataclasses.dataclass(frozen=True)
class Array:
    """`float32[:, :]`."""

    element: Type
    ndim: int
    layout: str = "A"  # which arrays have or have not; nothing depends on it

    @property
    def dtype(self) -> Type:
        """As Numba calls the type of an element."""
        return self.element

    def __repr__(self) -> str:
        return f"{self.element}[{', '.join(':' * self.ndim)}]"


@dataclasses.dataclass(frozen=True)
class Pointer:
    """`CPointer(float32)`: the address of items, of which `p[i]` is one."""

    element: Any

    def __repr__(self) -> str:
        return f"CPointer({self.element!r})"


def CPointer(element: Any) -> Pointer:
    return Pointer(element)


@dataclasses.dataclass(frozen=True)
class Signature:
    result: Type
    arguments: tuple[Any, ...]

    @property
    def args(self) -> tuple[Any, ...]:
        """As Numba calls them."""
        return self.arguments

    @property
    def return_type(self) -> Any:
        return self.result

    def __repr__(self) -> str:
        return f"{self.result}({', '.join(map(repr, self.arguments))})"


def _is_type(value: Any) -> bool:
    return isinstance(value, Type | Array | Pointer | Signature) or hasattr(value, "__tw_struct__")


def from_dtype(dtype: Any) -> Type:
    """The type object of a dtype of NumPy; of a structured one it makes arrays in kernels."""
    import numpy as np

    found = np.dtype(dtype)
    name = "bool_" if found.kind == "b" else found.name
    if found.names is None and name not in NAMES:
        raise TileTypeError(f"no type object has the dtype {found}; expected numbers, or a structure of them")
    return NAMES[name] if found.names is None else Type(f"Record({', '.join(found.names)})", None, found)


def of_dtype(found: Any) -> Any:
    """The type object of a dtype of the compiler; anything else stays as it is."""
    name = getattr(found, "name", None)
    name = "bool_" if name == "bool" else name
    return NAMES[name] if isinstance(found, dt.DType) and name in NAMES else found


def of_values(values: Any) -> Signature:
    """The signature of a kernel that takes these values."""
    import numpy as np

    def one(value: Any) -> Any:
        if isinstance(value, Type | Array):
            return value
        if isinstance(value, bool | int | float | complex):
            return from_dtype(np.asarray(value).dtype)
        if isinstance(value, type):
            return from_dtype(value)
        found = from_dtype(getattr(value, "dtype", type(value)))
        rank = len(getattr(value, "shape", ()))
        return Array(found, rank) if rank else found

    return Signature(void, tuple(map(one, values)))


def _numpy_dtype(of: Type) -> Any:
    import numpy as np

    if of.record is not None:
        return of.record
    return of.of.numpy if of.of is not None else np.dtype(of.name)


int8, int16, int32, int64 = (Type(d.name, d) for d in (dt.int8, dt.int16, dt.int32, dt.int64))
uint8, uint16, uint32, uint64 = (Type(d.name, d) for d in (dt.uint8, dt.uint16, dt.uint32, dt.uint64))
float16, float32, float64 = (Type(d.name, d) for d in (dt.float16, dt.float32, dt.float64))
bfloat16 = Type("bfloat16", dt.bfloat16)
bool_ = boolean = Type("bool_", dt.bool_)
complex64, complex128 = Type("complex64", None), Type("complex128", None)


class NoneType(Type):
    """The type of `void`, as Numba calls it."""


void = none = NoneType("void", None)
intp, uintp = int64, uint64
i1, i2, i4, i8 = int8, int16, int32, int64
u1, u2, u4, u8 = uint8, uint16, uint32, uint64
f2, f4, f8, c8, c16, b1 = float16, float32, float64, complex64, complex128, bool_
int_ = long_ = longlong = int64
uint = ulong = ulonglong = uint64
intc, uintc, float_, double, byte = int32, uint32, float32, float64, uint8
char, uchar, short, ushort = int8, uint8, int16, uint16

NAMES: dict[str, Type] = {name: value for name, value in list(globals().items()) if isinstance(value, Type)}

_PART = re.compile(r"\s*(\w+)\s*(\[[:1,\s]*\])?\s*")
_POINTER = re.compile(r"\s*CPointer\((.*)\)\s*")


def parse(signature: Any) -> Signature:
    """The signature that a text, an object or a tuple of types means."""
    if isinstance(signature, Signature):
        return signature
    if isinstance(signature, list):
        if len(signature) != 1:
            raise TileTypeError("a kernel has one signature; leave it out to have one compiled for each launch")
        return parse(signature[0])
    if isinstance(signature, tuple):
        return Signature(void, signature)
    found = re.fullmatch(r"\s*(\w+)?\s*\((.*)\)\s*", signature) if isinstance(signature, str) else None
    if found is None:
        raise TileTypeError(f"a signature is written as 'void(float32[:], int32)', found {signature!r}")
    result, inside = found.groups()
    inside = inside.strip().removesuffix(",")  # as of a tuple of one
    parts = re.split(r",(?![^\[]*\])", inside) if inside else []
    return Signature(_parsed(result or "void"), tuple(map(_parsed, parts)))


def _parsed(text: str) -> Any:
    if (pointer := _POINTER.fullmatch(text)) is not None:
        return CPointer(_parsed(pointer[1]))
    found = _PART.fullmatch(text)
    if found is None or found[1] not in NAMES:
        raise TileTypeError(f"{text.strip()!r} is no type of a signature; expected one such as float32 or float32[:]")
    element = NAMES[found[1]]
    return element if found[2] is None else Array(element, found[2].count(",") + 1)


__all__ = [
    *NAMES,
    "Array",
    "CPointer",
    "NoneType",
    "Pointer",
    "Signature",
    "Type",
    "from_dtype",
    "of_dtype",
    "of_values",
    "parse",
]
