"""Modes: the rounding, flushing and memory order that each operation takes. Both executions of Python ask here.

Arithmetic and conversions round as they are told. Without being told they round to nearest even, which is at least as
exact as the modes FULL and APPROX ask for; of these modes only quotients and `exp` make use.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from .annotations import MemoryOrder, MemoryScope, RoundingMode
from .dtype import DType, float32
from .errors import TileTypeError, TileUnsupportedFeatureError

_DIRECTED = (RoundingMode.RZ, RoundingMode.RM, RoundingMode.RP)
_BASIC = (RoundingMode.RN, *_DIRECTED)
_SLOPPY = (RoundingMode.FULL, RoundingMode.APPROX)

# What a reduction or a scan does with two of its elements, each time by its rounding mode.
STEPS = {"sum": "add", "cumsum": "add", "prod": "mul", "cumprod": "mul"}

ROUNDING: dict[str, tuple[RoundingMode, ...]] = {
    **dict.fromkeys(("add", "sub", "mul", *STEPS), _BASIC),
    "truediv": (*_BASIC, *_SLOPPY),
    "sqrt": (*_BASIC, RoundingMode.APPROX),
    "exp": _SLOPPY,
    "tanh": _SLOPPY,
}


def _rounding_mode(mode: Any, what: str) -> RoundingMode:
    if not isinstance(mode, RoundingMode):
        raise TileTypeError(f"{what}: rounding_mode must be a ct.RoundingMode or None, found {mode!r}")
    return mode


def is_directed(mode: Any) -> bool:
    return mode in _DIRECTED


def is_exact(name: str, mode: Any) -> bool:
    """Whether an operation with this mode rounds the exact result once, in every corner: without a mode, quotients and
    roots need not (docs/api.md)."""
    return mode in _BASIC and name in ("add", "sub", "mul", "truediv", "sqrt")


def marks_of(name: str, mode: Any, flush: bool) -> dict[str, None] | None:
    """What the IR says of an operation that makes use of what its mode allows (lowering/ir.h)."""
    if name == "truediv" and mode is RoundingMode.APPROX and flush:
        return {"tile.approximate": None, "tile.rough": None}
    if (name == "truediv" and mode in _SLOPPY) or (name == "exp" and mode is RoundingMode.APPROX):
        return {"tile.approximate": None}
    return None


def check_rounding(name: str, mode: Any, dtype: DType) -> None:
    """Whether the operation `name` on `dtype` takes this rounding mode; None is the default."""
    if mode is None:
        return
    what = f"ct.{name}"
    mode = _rounding_mode(mode, what)
    if mode not in ROUNDING[name]:
        known = ", ".join(m.name for m in ROUNDING[name])
        raise TileTypeError(f"{what} has no rounding_mode {mode.name}; it has {known}")
    if not dtype.is_float or not dtype.arithmetic:
        raise TileTypeError(f"{what}: a rounding_mode is for floats, found {dtype}; leave it out")
    if mode in _SLOPPY and dtype is not float32:
        raise TileTypeError(f"{what}: rounding_mode {mode.name} is for float32, found {dtype}; leave it out")


def check_divmod(dtype: DType) -> None:
    """Of floats, x // y rounds a quotient that x % y knows exactly: the two need not be of one division."""
    if dtype.is_float:
        raise TileTypeError(f"ct.divmod is not implemented for floats, found {dtype}; write x // y and x % y")


def check_flush(name: str, flush: bool, dtype: DType) -> bool:
    """`flush` itself, where the operation `name` may flush subnormal numbers of `dtype`."""
    if flush and dtype is not float32:
        raise TileTypeError(f"ct.{name}: flush_to_zero is for float32, found {dtype}; leave it out")
    return flush


def check_cast_rounding(mode: Any, source: DType, target: DType) -> None:
    """The rounding mode of `astype`."""
    if mode is None:
        return
    mode = _rounding_mode(mode, "ct.astype")
    if not (source.is_float and target.is_float):
        raise TileTypeError(
            f"ct.astype: a rounding_mode is for conversions of floats to floats, found {source} to {target}"
        )
    if mode in (*_SLOPPY, RoundingMode.RZI):
        raise TileTypeError(f"ct.astype has no rounding_mode {mode.name}; it has RN, RZ, RM, RP, RA")
    if source.name == "float8_e8m0fnu" and mode not in (RoundingMode.RN, RoundingMode.RZ):
        raise TileTypeError(f"ct.astype: a conversion of {source} has no rounding_mode {mode.name}; it has RN, RZ")
    if rounds_by_mode(mode, source, target) and mode not in CAST_ROUNDING.get(target.name, ()):
        known = ", ".join(m.name for m in CAST_ROUNDING.get(target.name, (RoundingMode.RN,)))
        raise TileUnsupportedFeatureError(
            f"ct.astype: rounding_mode {mode.name} to {target} is not supported; there is {known}; leave it out"
        )
    if source.name == "float64" and target.name == "tfloat32" and mode in (RoundingMode.RN, RoundingMode.RA):
        raise TileUnsupportedFeatureError(
            f"ct.astype: rounding_mode {mode.name} of float64 to tfloat32 is not supported; convert to float32 first"
        )


# What `astype` rounds by to each dtype, beside what it does without being told.
CAST_ROUNDING: dict[str, tuple[RoundingMode, ...]] = {
    **dict.fromkeys(("float32", "float16", "bfloat16"), _BASIC),
    "tfloat32": (*_BASIC, RoundingMode.RA),
}
_MANTISSA = {"float64": 53, "float32": 24, "tfloat32": 11, "float16": 11, "bfloat16": 8, "float8_e4m3fn": 4}
_EXPONENT = {"float64": 11, "float32": 8, "tfloat32": 8, "float16": 5, "bfloat16": 8, "float8_e8m0fnu": 8}


def rounds_by_mode(mode: RoundingMode | None, source: DType, target: DType) -> bool:
    """Whether a conversion depends on its mode: it may drop bits, and the mode is not what it does by itself."""
    narrow = 3, 5  # mantissa and exponent of the other 8-bit floats, and more than those of 4 bits
    bits, range_ = (t.get(source.name, n) for t, n in zip((_MANTISSA, _EXPONENT), narrow, strict=True))
    exact = bits <= _MANTISSA.get(target.name, 0) and range_ <= _EXPONENT.get(target.name, 0)
    by_itself = mode is None or (mode is RoundingMode.RN and target.name != "tfloat32")
    return not exact and not by_itself


# What each access may order, and the dtypes of arrays that have atomic accesses.
_ORDERS = {
    "load": (MemoryOrder.RELAXED, MemoryOrder.ACQUIRE),
    "store": (MemoryOrder.RELAXED, MemoryOrder.RELEASE),
    "atomic": (MemoryOrder.RELAXED, MemoryOrder.ACQUIRE, MemoryOrder.RELEASE, MemoryOrder.ACQ_REL),
}
_SCOPES = (MemoryScope.BLOCK, MemoryScope.DEVICE, MemoryScope.SYS)
_INTEGERS = ("int32", "int64", "uint32", "uint64")
_ATOMIC_DTYPES = {
    **dict.fromkeys(("xchg", "cas"), (*_INTEGERS, "float32", "float64")),
    "add": (*_INTEGERS, "float16", "bfloat16", "float32", "float64"),
    **dict.fromkeys(("min", "max", "and", "or", "xor"), _INTEGERS),
}


def _check_order(order: Any, scope: Any, kind: str, what: str) -> None:
    if not isinstance(order, MemoryOrder):
        raise TileTypeError(f"{what}: memory_order must be a ct.MemoryOrder, found {order!r}")
    if not isinstance(scope, MemoryScope):
        raise TileTypeError(f"{what}: memory_scope must be a ct.MemoryScope, found {scope!r}")
    if order is MemoryOrder.WEAK and kind != "atomic":
        return
    if order not in _ORDERS[kind]:
        known = ", ".join(o.name for o in _ORDERS[kind])
        raise TileTypeError(f"{what} has no memory_order {order.name}; it has {known}")
    if scope not in _SCOPES:
        raise TileTypeError(
            f"{what}: memory_order {order.name} needs a memory_scope of BLOCK, DEVICE or SYS, found {scope.name}"
        )


def is_ordered(order: Any, scope: Any, kind: str, what: str) -> bool:
    """Whether a load or store (`kind`) with this memory order and scope is more than a weak one."""
    _check_order(order, scope, kind, what)
    if order is MemoryOrder.WEAK and scope is not MemoryScope.NONE:
        raise TileTypeError(f"{what}: memory_scope {scope.name} needs a memory_order other than WEAK; leave it out")
    return order is not MemoryOrder.WEAK


ATOMIC_KINDS = tuple(_ATOMIC_DTYPES)


@dataclasses.dataclass(frozen=True)
class AtomicAccess:
    """An access that others may look at: what it does to an element, and the keywords of the call."""

    kind: str
    check_bounds: Any = True
    memory_order: Any = MemoryOrder.RELAXED
    memory_scope: Any = MemoryScope.DEVICE

    def check(self, dtype: DType, what: str) -> None:
        """Whether arrays of the dtype have the atomic access, with this memory order and scope."""
        known = _ATOMIC_DTYPES[self.kind]
        if dtype.name not in known:
            raise TileTypeError(f"{what}: an array of {dtype} has no such access; expected one of {', '.join(known)}")
        _check_order(self.memory_order, self.memory_scope, "atomic", what)

    def check_value(self, value: DType | None, dtype: DType, what: str) -> None:
        """Bits are combined as they are: their dtype, None of a constant, must be the array's."""
        if self.kind in ("and", "or", "xor") and value is not None and value is not dtype:
            raise TileTypeError(
                f"{what}: the update is {value}, the array {dtype}; bits are not converted: write x.astype(ct.{dtype})"
            )


# Dtype of scales -> lengths of the blocks that share one, by the dtypes of the elements.
_SCALES = {
    ("float8_e4m3fn", "float8_e8m0fnu"): (32,),
    ("float8_e5m2", "float8_e8m0fnu"): (32,),
    ("float4_e2m1fn", "float8_e8m0fnu"): (16, 32),
    ("float4_e2m1fn", "float8_e4m3fn"): (16,),
}

Typed = tuple[DType, tuple[int, ...]]


def check_scaled(x: Typed, x_scale: Typed, y: Typed, y_scale: Typed, acc: Typed) -> None:
    """Dtypes and shapes of `mma_scaled`."""
    what, fp8 = "ct.mma_scaled", {"float8_e4m3fn", "float8_e5m2"}
    if x[0] is not y[0] and {x[0].name, y[0].name} != fp8:
        raise TileTypeError(f"{what}: x is {x[0]} and y is {y[0]}; they must be the same, or both 8-bit floats")
    if x_scale[0] is not y_scale[0] or acc[0] is not float32:
        raise TileTypeError(
            f"{what}: the scales have one dtype and acc is float32, found {x_scale[0]}, {y_scale[0]} and {acc[0]}"
        )
    for name, (dtype, shape), (kind, scales), axis in (("x", x, x_scale, -1), ("y", y, y_scale, -2)):
        blocks = _SCALES.get((dtype.name, kind.name))
        if blocks is None:
            known = ", ".join(f"{e} with {s}" for e, s in _SCALES)
            raise TileTypeError(f"{what}: {name} is {dtype} and its scale {kind}; expected {known}")
        _check_scales(f"{what}: {name}", shape, scales, axis, blocks)
    (m, k), n = x[1][-2:], y[1][-1]
    if y[1][-2] != k or acc[1][-2:] != (m, n):
        raise TileTypeError(f"{what}: shapes (m, k), (k, n) and (m, n) needed, found {x[1]}, {y[1]} and {acc[1]}")


def _check_scales(
    what: str, shape: tuple[int, ...], scales: tuple[int, ...], axis: int, blocks: tuple[int, ...]
) -> None:
    """Whether each block of elements along the axis has a scale."""
    if len(shape) not in (2, 3) or len(scales) != len(shape):
        raise TileTypeError(f"{what} and its scale are of 2 or of 3 dimensions, found shapes {shape} and {scales}")
    others = [d for d in range(-len(shape), 0) if d != axis]
    fits = all(shape[d] == scales[d] for d in others) and shape[axis] % scales[axis] == 0
    if not fits or shape[axis] // scales[axis] not in blocks:
        known = " or ".join(map(str, blocks))
        raise TileTypeError(
            f"{what} has shape {shape} and its scale {scales}; expected a scale for each {known} along k"
        )


def check_fast_accumulation(fast: bool, dtype: DType) -> None:
    """`use_fast_acc` of `mma`: a permission, for 8-bit floats."""
    if fast and dtype.name not in ("float8_e4m3fn", "float8_e5m2"):
        raise TileTypeError(f"ct.mma: use_fast_acc is for float8_e4m3fn and float8_e5m2, found {dtype}; leave it out")
