"""Modes: the rounding, flushing and memory order that each operation takes. Both executions of Python ask here.

Results are rounded to nearest even, which is at least as exact as the modes FULL and APPROX ask for. RZ, RM and RP are
refused by name: no composition of roundings to nearest gives them.
"""

from __future__ import annotations

from typing import Any

from .dtype import DType, float32
from .errors import TileTypeError, TileUnsupportedFeatureError
from .tile import MemoryOrder, MemoryScope, RoundingMode

_DIRECTED = (RoundingMode.RZ, RoundingMode.RM, RoundingMode.RP)
_BASIC = (RoundingMode.RN, *_DIRECTED)
_SLOPPY = (RoundingMode.FULL, RoundingMode.APPROX)

ROUNDING: dict[str, tuple[RoundingMode, ...]] = {
    **dict.fromkeys(("add", "sub", "mul", "sum", "prod", "cumsum", "cumprod"), _BASIC),
    "truediv": (*_BASIC, *_SLOPPY),
    "sqrt": (*_BASIC, RoundingMode.APPROX),
    "exp": _SLOPPY,
    "tanh": _SLOPPY,
}

# What a subnormal number is less than, and what stands in its place: a zero of its sign.
LEAST_NORMAL = 2.0**-126


def _rounding_mode(mode: Any, what: str) -> RoundingMode:
    if not isinstance(mode, RoundingMode):
        raise TileTypeError(f"{what}: rounding_mode must be a ct.RoundingMode or None, found {mode!r}")
    return mode


def _refuse_directed(mode: RoundingMode, what: str) -> None:
    if mode is not RoundingMode.RN and mode not in _SLOPPY:
        raise TileUnsupportedFeatureError(
            f"{what}: rounding_mode {mode.name} is not supported; results are rounded to nearest even: "
            "leave it out, or write ct.RoundingMode.RN"
        )


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
    _refuse_directed(mode, what)


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
    if mode is RoundingMode.RN and target.name == "tfloat32":
        raise TileUnsupportedFeatureError(
            "ct.astype: rounding_mode RN to tfloat32 is not supported: a GPU rounds halves away from zero; leave it out"
        )
    _refuse_directed(mode, "ct.astype")


def check_memory(order: Any, scope: Any, what: str) -> None:
    """The memory order and scope of a load or store: weak ones so far."""
    if not isinstance(order, MemoryOrder):
        raise TileTypeError(f"{what}: memory_order must be a ct.MemoryOrder, found {order!r}")
    if not isinstance(scope, MemoryScope):
        raise TileTypeError(f"{what}: memory_scope must be a ct.MemoryScope, found {scope!r}")
    if order is not MemoryOrder.WEAK:
        raise TileUnsupportedFeatureError(
            f"{what}: memory_order {order.name} is not supported yet; WEAK is, and what one kernel stores the next one "
            "in the stream sees"
        )
    if scope is not MemoryScope.NONE:
        raise TileTypeError(f"{what}: memory_scope {scope.name} needs a memory_order other than WEAK; leave it out")


def check_fast_accumulation(fast: bool, dtype: DType) -> None:
    """`use_fast_acc` of `mma`: a permission, for 8-bit floats."""
    if fast and dtype.name not in ("float8_e4m3fn", "float8_e5m2"):
        raise TileTypeError(f"ct.mma: use_fast_acc is for float8_e4m3fn and float8_e5m2, found {dtype}; leave it out")
