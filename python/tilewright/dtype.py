"""Data types of tile code: one immutable object a format, and the rules that combine them.

A `DType` can be used on the host and in tile code, equals the NumPy dtype of the same format,
and makes a scalar when called (`ct.float32(3)`). `promote` is the table for two typed operands,
`promote_constant` the rule for a typed operand and a loosely typed constant (a Python number
in tile code, which adopts the other operand's dtype where it can).

NumPy is imported only when somebody asks for `DType.numpy`, so that importing the package is quick.
"""

from __future__ import annotations

import enum
import sys
from typing import Any

from .errors import TileTypeError, TileUnsupportedFeatureError, TileValueError


class Category(enum.IntEnum):
    """The three categories of the promotion rules; a higher one wins over a lower one. Pointers are in none of them."""

    BOOLEAN = 0
    INTEGRAL = 1
    FLOATING = 2
    POINTER = 3


class DType:
    """A data type. The only instances are the module's own: compare with `==` or `is`.

    Attributes:
        name: the name in `tilewright.tile`, as in "float32".
        short: the two- to four-letter name of the promotion table, as in "f32".
        mlir: the spelling of the element type in the IR, as in "f32".
        bits: width of one element in memory (8 for bool_, 32 for tfloat32's container, 4 for
            float4_e2m1fn).
        category: BOOLEAN, INTEGRAL or FLOATING.
        signed: whether negative values exist.
        arithmetic: False for the formats that serve only storage, casts and `mma`.
    """

    __slots__ = (
        "arithmetic",
        "bits",
        "category",
        "is_bool",
        "is_float",
        "is_integral",
        "mlir",
        "name",
        "short",
        "signed",
    )

    name: str
    short: str
    mlir: str
    bits: int
    category: Category
    signed: bool
    arithmetic: bool
    is_bool: bool
    is_integral: bool
    is_float: bool

    def __init__(
        self,
        name: str,
        short: str,
        mlir: str,
        bits: int,
        category: Category,
        signed: bool = True,
        arithmetic: bool = True,
    ) -> None:
        if name in _BY_NAME:
            raise TypeError(f"dtype {name} exists already; dtypes cannot be made by users")
        self._fill(name, short, mlir, bits, category, signed, arithmetic)
        _BY_NAME[name] = self

    def _fill(self, *values: object) -> None:
        names = ("name", "short", "mlir", "bits", "category", "signed", "arithmetic")
        for key, value in zip(names, values, strict=True):
            object.__setattr__(self, key, value)
        object.__setattr__(self, "is_bool", self.category is Category.BOOLEAN)  # asked often: no properties
        object.__setattr__(self, "is_integral", self.category is Category.INTEGRAL)
        object.__setattr__(self, "is_float", self.category is Category.FLOATING)

    def __setattr__(self, key: str, value: object) -> None:
        raise AttributeError(f"dtypes are immutable: cannot set {key!r} of {self.name}")

    def __delattr__(self, key: str) -> None:
        raise AttributeError(f"dtypes are immutable: cannot delete {key!r} of {self.name}")

    @property
    def __name__(self) -> str:  # of a dtype; DType has its own
        """`name`, which cuTile's dtypes have as types have it."""
        return self.name

    @property
    def bitwidth(self) -> int:
        """`bits`, as cuTile calls it."""
        return self.bits

    @property
    def itemsize(self) -> int:
        """Bytes that one element takes in an array (1 for float4_e2m1fn, which packs two)."""
        return max(1, self.bits // 8)

    @property
    def min(self) -> int:
        """Smallest value of an integer dtype."""
        self._require_integral("min")
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def max(self) -> int:
        """Largest value of an integer dtype."""
        self._require_integral("max")
        return (1 << (self.bits - 1 if self.signed else self.bits)) - 1

    def _require_integral(self, what: str) -> None:
        if not self.is_integral:
            raise AttributeError(f"{self.name} has no {what!r}: it is no integer dtype")

    @property
    def numpy(self) -> Any:
        """The NumPy dtype of an array of this format (tfloat32: its float32 container)."""
        import numpy as np

        require_supported(self)
        if self.name == "tfloat32":
            return np.dtype(np.float32)
        if self.name in _ML_DTYPES:
            import ml_dtypes

            return np.dtype(getattr(ml_dtypes, self.name))
        return np.dtype(self.name.rstrip("_"))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType):
            return self is other
        return self.name != "tfloat32" and _from_numpy(other) is self

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        # NumPy's hash of an equal dtype differs: don't mix both kinds as keys of one dictionary.
        return hash(("tilewright.DType", self.name))

    def __repr__(self) -> str:
        return f"tilewright.{self.name}"

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return (_by_name, (self.name,))

    def __copy__(self) -> DType:
        return self

    def __deepcopy__(self, memo: object) -> DType:
        return self

    def __call__(self, value: Any = 0) -> Any:
        """A scalar of this dtype: a 0-d tile in tile code, a NumPy scalar on the host."""
        from . import tile

        return tile.make_scalar(value, self)


class ForeignPointerDType(DType):
    """The dtype of `x.foreign_pointer`: of no tile, and there is no arithmetic on it."""

    __slots__ = ("pointee",)
    pointee: DType

    def __init__(self, pointee: DType) -> None:
        object.__setattr__(self, "pointee", pointee)
        self._fill(f"foreign_pointer<{pointee}>", "ptr", "i64", 64, Category.POINTER, False, False)

    def __reduce__(self) -> tuple[Any, ...]:
        return foreign_pointer_dtype, (self.pointee,)

    def __call__(self, value: Any = 0) -> Any:
        raise TileTypeError(
            f"{self} is of pointers alone, which no number becomes; take x.foreign_pointer of an array x"
        )


def foreign_pointer_dtype(pointee: DType) -> DType:
    """The dtype of a foreign pointer to elements of a dtype: what `x.foreign_pointer.dtype` is."""
    pointee = as_dtype(pointee)
    if pointee not in _POINTERS:
        _POINTERS[pointee] = ForeignPointerDType(pointee)
    return _POINTERS[pointee]


_POINTERS: dict[DType, DType] = {}


def check_scalar(dtype: DType) -> None:
    """Whether tile code makes a scalar of the dtype: what is less than a byte comes in tiles alone, two in a byte."""
    if 1 < dtype.bits < 8:
        raise TileTypeError(
            f"{dtype} has no scalars; write a tile, as ct.full(shape, value, ct.{dtype}) or x.astype(ct.{dtype})"
        )


def constant_of(value: bool | int | float, dtype: DType) -> bool | int | float:
    """What a dtype makes of a number that it is called with: an integer wraps, and loses a fraction."""
    if dtype.is_integral and (isinstance(value, int) or value - value == 0):
        return (int(value) - dtype.min & (1 << dtype.bits) - 1) + dtype.min
    if dtype is float8_e8m0fnu and value < 0:
        raise TileValueError(f"{dtype} has no negative numbers, found {number_text(value)}")
    return value


_BY_NAME: dict[str, DType] = {}
_ML_DTYPES = frozenset(("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float4_e2m1fn"))
_B, _I, _F = Category.BOOLEAN, Category.INTEGRAL, Category.FLOATING

bool_ = DType("bool_", "b1", "i1", 8, _B, signed=False)
uint8 = DType("uint8", "u8", "ui8", 8, _I, signed=False)
uint16 = DType("uint16", "u16", "ui16", 16, _I, signed=False)
uint32 = DType("uint32", "u32", "ui32", 32, _I, signed=False)
uint64 = DType("uint64", "u64", "ui64", 64, _I, signed=False)
int8 = DType("int8", "i8", "i8", 8, _I)
int16 = DType("int16", "i16", "i16", 16, _I)
int32 = DType("int32", "i32", "i32", 32, _I)
int64 = DType("int64", "i64", "i64", 64, _I)
float16 = DType("float16", "f16", "f16", 16, _F)
float32 = DType("float32", "f32", "f32", 32, _F)
float64 = DType("float64", "f64", "f64", 64, _F)
bfloat16 = DType("bfloat16", "bf", "bf16", 16, _F)
tfloat32 = DType("tfloat32", "tf32", "tf32", 32, _F, arithmetic=False)
float8_e4m3fn = DType("float8_e4m3fn", "f8e4m3fn", "f8E4M3FN", 8, _F, arithmetic=False)
float8_e5m2 = DType("float8_e5m2", "f8e5m2", "f8E5M2", 8, _F, arithmetic=False)
float8_e8m0fnu = DType("float8_e8m0fnu", "f8e8m0fnu", "f8E8M0FNU", 8, _F, False, arithmetic=False)
float4_e2m1fn = DType("float4_e2m1fn", "f4e2m1fn", "f4E2M1FN", 4, _F, arithmetic=False)

ALL: tuple[DType, ...] = tuple(_BY_NAME.values())
ARITHMETIC: tuple[DType, ...] = tuple(d for d in ALL if d.arithmetic)
UNSIGNED = (uint8, uint16, uint32, uint64)
SIGNED = (int8, int16, int32, int64)
UNSIGNED_BY_BITS = {d.bits: d for d in UNSIGNED}

# Of cuTile, for GPUs from Rubin on, which no target is: a name and a width, which tile code refuses as cuTile does.
float8_e5m3fnu = DType("float8_e5m3fnu", "f8e5m3fnu", "", 8, _F, False, arithmetic=False)

# Other names of the same objects.
ALIASES: dict[str, DType] = {
    "float8e4m3": float8_e4m3fn,
    "float8e5m2": float8_e5m2,
    "float8e8m0": float8_e8m0fnu,
    "float4e2m1": float4_e2m1fn,
    "half": float16,
    "double": float64,
}
float8e4m3, float8e5m2 = float8_e4m3fn, float8_e5m2
float8e8m0, float4e2m1 = float8_e8m0fnu, float4_e2m1fn
half, double = float16, float64

BY_NAME: dict[str, DType] = {d.name: d for d in ALL}
BY_MLIR: dict[str, DType] = {d.mlir: d for d in ALL}


def _by_name(name: str) -> DType:
    return _BY_NAME[name]


def _from_numpy(value: object) -> DType | None:
    """The DType that equals a NumPy dtype or scalar type, or None."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, numpy.dtype | type):
        return None
    if isinstance(value, type) and not issubclass(value, numpy.generic):
        return None
    found: Any = numpy.dtype(value)
    name = "bool_" if found.name == "bool" else found.name
    return _BY_NAME.get(name) if found.isnative else None


def _from_torch(value: object) -> DType | None:
    """The DType of a torch dtype, or None."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.dtype):
        return None
    name = str(value).removeprefix("torch.")
    return bool_ if name == "bool" else _BY_NAME.get(name)


def _instead_of(value: Any) -> str:
    """What to write for a dtype of NumPy that tiles do not have."""
    if getattr(value, "isnative", True) is False:
        return "its byte order is not this machine's: x.astype(x.dtype.newbyteorder('=')) converts"
    if getattr(value, "kind", "") in ("m", "M"):
        return "pass its numbers, as in x.view(numpy.int64)"
    return f"expected one of {', '.join(_BY_NAME)}"


def as_dtype(value: object) -> DType:
    """The DType of anything that names one: a DType, its name or alias, a dtype of NumPy or torch.

    Raises TileTypeError when there is none, as for complex and object dtypes.
    """
    if isinstance(value, DType):
        if isinstance(value, ForeignPointerDType):
            raise TileTypeError(f"{value} is the dtype of x.foreign_pointer alone, not of a tile")
        return value
    if isinstance(value, str):
        found = _BY_NAME.get(value) or ALIASES.get(value) or (bool_ if value == "bool" else None)
    else:
        found = {bool: bool_, int: int32, float: float32}.get(value)  # type: ignore[call-overload]
        found = found or _from_numpy(value) or _from_torch(value)
    if found is None:
        raise TileTypeError(f"no tile dtype for {value!r}; {_instead_of(value)}")
    return found


# The common dtype of two typed operands, row by row in the order of ALL, "." for "not supported:
# write a cast". The table is symmetric; it is also in dialect/promotion.def, and a test holds both
# to the published one cell by cell.
_TABLE = """
b1        b1  u8  u16 u32 u64 i8  i16 i32 i64 f16 f32 f64 bf  . . . . .
u8        u8  u8  u16 u32 u64 .   .   .   .   f16 f32 f64 bf  . . . . .
u16       u16 u16 u16 u32 u64 .   .   .   .   f16 f32 f64 bf  . . . . .
u32       u32 u32 u32 u32 u64 .   .   .   .   f16 f32 f64 bf  . . . . .
u64       u64 u64 u64 u64 u64 .   .   .   .   f16 f32 f64 bf  . . . . .
i8        i8  .   .   .   .   i8  i16 i32 i64 f16 f32 f64 bf  . . . . .
i16       i16 .   .   .   .   i16 i16 i32 i64 f16 f32 f64 bf  . . . . .
i32       i32 .   .   .   .   i32 i32 i32 i64 f16 f32 f64 bf  . . . . .
i64       i64 .   .   .   .   i64 i64 i64 i64 f16 f32 f64 bf  . . . . .
f16       f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f32 f64 .   . . . . .
f32       f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f64 f32 . . . . .
f64       f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 . . . . .
bf        bf  bf  bf  bf  bf  bf  bf  bf  bf  .   f32 f64 bf  . . . . .
tf32      .   .   .   .   .   .   .   .   .   .   .   .   .   tf32 . . . .
f8e4m3fn  .   .   .   .   .   .   .   .   .   .   .   .   .   . f8e4m3fn . . .
f8e5m2    .   .   .   .   .   .   .   .   .   .   .   .   .   . . f8e5m2 . .
f8e8m0fnu .   .   .   .   .   .   .   .   .   .   .   .   .   . . . f8e8m0fnu .
f4e2m1fn  .   .   .   .   .   .   .   .   .   .   .   .   .   . . . . f4e2m1fn
"""


def _read_table() -> dict[tuple[DType, DType], DType | None]:
    short = {d.short: d for d in ALL}
    table = {}
    for line in _TABLE.split("\n")[1:-1]:
        row, *cells = line.split()
        for column, cell in zip(ALL, cells, strict=True):
            table[short[row], column] = short.get(cell)
    return table


PROMOTION: dict[tuple[DType, DType], DType | None] = _read_table()


def promote(a: DType, b: DType) -> DType:
    """The common dtype of two typed operands; TileTypeError where the table has none."""
    common = PROMOTION[a, b]
    if common is None:
        raise TileTypeError(
            f"no implicit promotion between {a} and {b}; convert one operand, as in x.astype(ct.{_suggest(a, b)})"
        )
    return common


def _suggest(a: DType, b: DType) -> DType:
    """A dtype that holds both operands, for the remedy of an error message."""
    if a.is_integral and b.is_integral:
        width = max(d.bits if d.signed else 2 * d.bits for d in (a, b))
        return {16: int16, 32: int32}.get(width, int64)
    return float64 if float64 in (a, b) else float32


def require_supported(dtype: DType) -> DType:
    """`dtype` itself where some target has it."""
    if dtype is float8_e5m3fnu:
        raise TileUnsupportedFeatureError(
            f"{dtype} is not supported on any target: GPUs have it from Rubin on; take ct.float8_e4m3fn or "
            "ct.float8_e5m2"
        )
    return dtype


def number_text(value: bool | int | float) -> str:
    """A number for a message; of an integer with very many digits, how many bits it has."""
    most_bits = 128
    if isinstance(value, int) and value.bit_length() > most_bits:
        return f"({'an' if value > 0 else 'a negative'} integer of {value.bit_length()} bits)"
    return repr(value)


def constant_dtype(value: bool | int | float) -> DType:
    """The dtype which a loosely typed constant takes when nothing else decides."""
    if isinstance(value, bool):
        return bool_
    if isinstance(value, float):
        return float32
    for candidate in (int32, int64, uint64):
        if candidate.min <= value <= candidate.max:
            return candidate
    raise TileValueError(f"integer constant {number_text(value)} fits no dtype; the widest is uint64")


def promote_constant(value: bool | int | float, dtype: DType) -> DType:
    """The common dtype of a typed operand and a loosely typed constant.

    The higher category wins; in the same category the typed operand does, and an integer
    constant must fit it (TileValueError otherwise).
    """
    own = constant_dtype(value)
    if own.category != dtype.category:
        return own if own.category > dtype.category else dtype
    if dtype.is_integral and not dtype.min <= value <= dtype.max:
        raise TileValueError(
            f"integer constant {number_text(value)} is outside {dtype} ({dtype.min} to {dtype.max}); "
            f"cast the other operand, as in x.astype(ct.{own})"
        )
    return dtype


def require_arithmetic(dtype: DType, what: str, *, allow_bool: bool = False) -> DType:
    """`dtype` itself where `what` is defined on it; TileTypeError that names the cast if not."""
    if not dtype.arithmetic:
        raise TileTypeError(
            f"{what} is not defined on {dtype}, which serves storage, casts and mma only; "
            "convert first, as in x.astype(ct.float32)"
        )
    if dtype.is_bool and not allow_bool:
        raise TileTypeError(
            f"{what} is not defined on bool_; convert first, as in x.astype(ct.int32), or use &, | and ^"
        )
    return dtype
