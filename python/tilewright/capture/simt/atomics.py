"""Atomics: elements of arrays as AtomicInterface, and fences."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Iterable
from typing import Any, cast

from ..._optable import ATOMIC_KIND, MEMORY_ORDER, MEMORY_SCOPE
from ...device.atomics import AtomicInterface
from ...device.records import RecordArray
from ...dtype import DType
from ...errors import TileTypeError, TileValueError
from ..frame import Frame
from ..memory import Reached, atomic_access, output
from ..values import Array, Tile, describe
from . import arrays

_ORDER_NAMES = ("relaxed", "consume", "acquire", "release", "acq_rel", "seq_cst")
ORDERS = {name: MEMORY_ORDER["acquire" if name == "consume" else name] for name in _ORDER_NAMES}
SCOPES = {"system" if word == "sys" else word: number for word, number in MEMORY_SCOPE.items()}
_FORBIDDEN = {"load": ("release", "acq_rel"), "store": ("consume", "acquire", "acq_rel")}
_INTEGERS = ("int32", "int64", "uint32", "uint64")
_NUMBERS = (*_INTEGERS, "float32", "float64")
DTYPES = {
    **dict.fromkeys(("add", "sub", "max", "nanmax", "min", "nanmin"), _NUMBERS),
    **dict.fromkeys(("and_", "or_", "xor"), _INTEGERS),
}


def unknown(kind: str, name: str, known: Iterable[str]) -> TileTypeError:
    return TileTypeError(f"an atomic{kind} has no attribute '{name}'; it has {', '.join(('dtype', *known))}")


class Ref:
    """What an AtomicInterface is in the capture: a dtype, and a function for each of its operations."""

    def __init__(self, dtype: Any, methods: dict[str, Callable[..., Any]], kind: str = "") -> None:
        self.dtype, self._methods, self._kind = dtype, methods, kind

    def __tw_attribute__(self, frame: Frame, name: str) -> Any:
        if name == "dtype":
            return self.dtype
        if name not in self._methods:
            raise unknown(self._kind, name, self._methods)
        return _Bound(self, name, self._methods[name])


class AtomicRef(Ref):
    """The element of an array at run-time indices; `array` and `tiles` are values of the capture."""

    def __init__(self, array: Array, tiles: list[Tile]) -> None:
        super().__init__(array.dtype, METHODS)
        self.array, self.tiles = array, tiles


class _Bound:
    """A method of an atomic, about to be called."""

    def __init__(self, ref: Ref, name: str, method: Callable[..., Any]) -> None:
        self._ref, self.__name__, self._method = ref, name, method
        whole = inspect.signature(getattr(AtomicInterface, name))
        self.__signature__ = whole.replace(parameters=list(whole.parameters.values())[1:])

    def __call__(self) -> None:
        raise TypeError("a value of the capture")

    def __tw_call__(self, frame: Frame, *args: Any) -> Any:
        return self._method(frame, self._ref, *args)


def atomic_ref(frame: Frame, array: Any, index: Any) -> Ref:
    from .struct_atomics import struct_ref  # which needs this module

    if isinstance(array, RecordArray):
        return struct_ref(frame, array, index)
    if not isinstance(array, Array):
        raise TileTypeError(f"device.atomic_ref takes an array and an index, found {describe(array)}")
    if array.name in ("local array", "const array"):
        why = "ends with its function, and no other thread sees it" if array.name == "local array" else "never changes"
        raise TileTypeError(
            f"device.atomic_ref takes a global or shared array, found a {array.name}, which {why}: read and write it"
        )
    return AtomicRef(array, arrays.index_tiles(frame, array, index))


# ---------------------------------------------------------------------------------------------
# Orders and scopes


def named(value: Any, known: dict[str, int], what: str) -> int:
    if not isinstance(value, str) or value not in known:
        raise TileValueError(f"{what}: expected one of {', '.join(map(repr, known))}, found {describe(value)}")
    return known[value]


def ordering(name: str, memory: Any, scope: Any) -> tuple[int, int]:
    found = named(memory, ORDERS, f"{name}: memory"), named(scope, SCOPES, f"{name}: scope")
    forbidden = _FORBIDDEN.get(name, ())
    if memory in forbidden:
        allowed = ", ".join(o for o in ORDERS if o not in forbidden)
        raise TileValueError(f"{name} has no memory order {memory!r}; it has {allowed}")
    return found


def threadfence(frame: Frame, memory: Any, scope: Any) -> None:
    order, who = ordering("device.threadfence", memory, scope)
    frame.builder.op("tile.fence", [], {"memory_order": order, "memory_scope": who}, [])


# ---------------------------------------------------------------------------------------------
# Accesses


def check_dtype(name: str, dtype: DType) -> None:
    known = DTYPES.get(name)
    if known is not None and dtype.name not in known:
        raise TileTypeError(f"{name} of an atomic {dtype}: expected one of {', '.join(known)}")
    if known is None and dtype.bits < 8 and not dtype.is_bool:
        raise TileTypeError(f"{name} of an atomic {dtype}: an object has 1, 2, 4 or 8 bytes")


def _access(frame: Frame, kind: str, ref: AtomicRef, values: list[Tile], order: tuple[int, int]) -> Tile:
    output(frame, ref.array, f"atomic {kind}")
    return atomic_access(frame, ATOMIC_KIND[kind], *order, ref.array, Reached(ref.tiles, (), False), values)


def _value(frame: Frame, ref: AtomicRef, value: Any, what: str) -> Tile:
    return frame.capture.rules.converted(frame.emit, value, ref.dtype, what)


def _load(frame: Frame, ref: AtomicRef, memory: Any, scope: Any) -> Tile:
    check_dtype("load", ref.dtype)
    order = ordering("load", memory, scope)
    frame.capture.writes += 1
    nothing = frame.emit.constant(False if ref.dtype.is_bool else 0, ref.dtype)
    return atomic_access(frame, ATOMIC_KIND["load"], *order, ref.array, Reached(ref.tiles, (), False), [nothing])


def _store(frame: Frame, ref: AtomicRef, val: Any, memory: Any, scope: Any) -> None:
    check_dtype("store", ref.dtype)
    _access(frame, "store", ref, [_value(frame, ref, val, "store")], ordering("store", memory, scope))


def _cas(frame: Frame, ref: AtomicRef, old: Any, val: Any, memory: Any, scope: Any) -> Tile:
    check_dtype("cas", ref.dtype)
    values = [_value(frame, ref, old, "cas: old"), _value(frame, ref, val, "cas: val")]
    return _access(frame, "cas", ref, values, ordering("cas", memory, scope))


def _update(name: str, kind: str, frame: Frame, ref: AtomicRef, val: Any, memory: Any, scope: Any) -> Tile:
    check_dtype(name, ref.dtype)
    order = ordering(name, memory, scope)
    value = _value(frame, ref, val, name)
    if name == "sub":
        value = _negated(frame, value)
    return _access(frame, kind, ref, [value], order)


def _negated(frame: Frame, value: Tile) -> Tile:
    """What added takes the value away; integers wrap around."""
    if value.dtype.is_float:
        return frame.emit.unary("negative", value)
    return frame.emit.binary("sub", frame.emit.constant(0, value.dtype), value)


def _wait(frame: Frame, ref: AtomicRef, old: Any, memory: Any, scope: Any) -> None:
    from ..inlining import inline  # which stands above this package

    wanted = _value(frame, ref, old, "wait")
    inline(frame, cast(types.FunctionType, _until_changed), [ref, wanted, memory, scope, _sleep], {}, frame.node)


def _until_changed(ref, old, memory, scope, sleep):  # device code
    while ref.load(memory, scope) == old:
        sleep()


class _Sleep:
    def __call__(self) -> None:
        raise TypeError("a value of the capture")

    def __tw_call__(self, frame: Frame) -> None:
        frame.builder.op("tile.sleep", [frame.emit.int32(64).ir], None, [])


_sleep = _Sleep()


def _notify(frame: Frame, ref: AtomicRef) -> None:
    """Who waits looks by itself."""


METHODS: dict[str, Callable[..., Any]] = {
    "load": _load,
    "store": _store,
    "exch": functools.partial(_update, "exch", "xchg"),
    "cas": _cas,
    "add": functools.partial(_update, "add", "add"),
    "sub": functools.partial(_update, "sub", "add"),
    "and_": functools.partial(_update, "and_", "and"),
    "or_": functools.partial(_update, "or_", "or"),
    "xor": functools.partial(_update, "xor", "xor"),
    **{name: functools.partial(_update, name, name) for name in ("max", "nanmax", "min", "nanmin")},
    "wait": _wait,
    "notify_one": _notify,
    "notify_all": _notify,
}
