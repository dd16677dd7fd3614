"""Atomics of structs: an element of an array of structs, as the bits of its bytes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from ...device.records import Form
from ...dtype import UNSIGNED_BY_BITS, DType, bool_
from ...errors import TileTypeError
from ...layout import layout_of
from ..frame import Frame
from ..values import Array, Tile, describe
from . import atomics, numbers, records, structs, vectors, views

WORDS = {bits // 8: dtype for bits, dtype in UNSIGNED_BY_BITS.items()}
MOST = {"load": 16, "store": 16, "exch": 8, "cas": 8}  # bytes of an object, as `cuda.device` has it


class StructRef(atomics.Ref):
    """The element of an array of structs at an offset in its bytes."""

    def __init__(self, array: Any, offset: Any) -> None:
        super().__init__(array.form.kind, _METHODS, f" {array.form.kind.__name__}")
        self.array, self.offset = array, offset


def struct_ref(frame: Frame, array: Any, index: Any) -> StructRef:
    return StructRef(array, records.offset_of(frame, array, index))


def check_size(kind: Any, name: str) -> DType:
    """The integer that a struct is accessed as."""
    size = layout_of(kind).size
    if size > MOST[name]:
        raise TileTypeError(f"{name} of an atomic {kind.__name__}: it has {size} bytes; the most is {MOST[name]}")
    if size not in WORDS:
        raise TileTypeError(f"{name} of an atomic {kind.__name__}: it has {size} bytes; expected 1, 2, 4 or 8")
    return WORDS[size]


# ---------------------------------------------------------------------------------------------
# Bits


def leaves_of(value: Any) -> list[Any]:
    """The numbers of a value, in order."""
    if isinstance(value, tuple):
        return [leaf for part in value for leaf in leaves_of(part)]
    if dataclasses.is_dataclass(value) and not isinstance(value, Tile):
        return [leaf for f in dataclasses.fields(value) for leaf in leaves_of(getattr(value, f.name))]
    return [value]


def _to_bits(frame: Frame, form: Form, value: Any, word: DType, what: str) -> Tile:
    if not isinstance(value, form.kind):
        raise TileTypeError(f"{what} is a {form.kind.__name__}, found {describe(value)}; expected one")
    emit = frame.emit
    whole: Any = emit.constant(0, word)
    for leaf, number in zip(form.leaves(), leaves_of(value), strict=True):
        tile = frame.capture.rules.converted(emit, number, leaf.kind, what)
        bits = WORDS[max(1, leaf.kind.bits // 8)]
        part = emit.cast(tile, bits) if leaf.kind is bool_ else _as_bits(frame, tile, bits)
        whole = emit.binary("bitwise_or", whole, _shifted(frame, emit.cast(part, word), 8 * leaf.offset, "l"))
    return whole


def _as_bits(frame: Frame, tile: Tile, dtype: DType) -> Tile:
    return tile if tile.dtype is dtype else numbers.view(frame, tile, dtype)


def _shifted(frame: Frame, tile: Tile, by: int, side: str) -> Tile:
    found: Tile = frame.emit.binary(f"bitwise_{side}shift", tile, frame.emit.constant(by, tile.dtype)) if by else tile
    return found


def _from_bits(frame: Frame, form: Form, whole: Tile) -> Any:
    if form.parts:
        parts = [_from_bits(frame, part, whole) for part in form.parts]
        if form.kind is tuple:
            return tuple(parts)
        if hasattr(form.kind, "__tw_struct__"):
            return structs.struct(form.kind, dict(zip(form.kind.__tw_struct__, parts, strict=True)))
        return vectors.vector(form.kind, parts)
    bits = WORDS[max(1, form.kind.bits // 8)]
    part = frame.emit.cast(_shifted(frame, whole, 8 * form.offset, "r"), bits)
    if form.kind is bool_:
        return frame.emit.cast(part, bool_)
    return dataclasses.replace(_as_bits(frame, part, form.kind), loose=form.loose)


# ---------------------------------------------------------------------------------------------
# Accesses


def _word(frame: Frame, ref: StructRef, name: str) -> atomics.AtomicRef:
    dtype = check_size(ref.dtype, name)
    place: Array = views.made(frame, ref.array.bytes, views.Shape(ref.offset, [], []), dtype)
    return atomics.AtomicRef(place, [])


def _load(frame: Frame, ref: StructRef, memory: Any, scope: Any) -> Any:
    return _from_bits(frame, ref.array.form, atomics.METHODS["load"](frame, _word(frame, ref, "load"), memory, scope))


def _store(frame: Frame, ref: StructRef, val: Any, memory: Any, scope: Any) -> None:
    word = _word(frame, ref, "store")
    bits = _to_bits(frame, ref.array.form, val, word.dtype, "store: the value")
    atomics.METHODS["store"](frame, word, bits, memory, scope)


def _exch(frame: Frame, ref: StructRef, val: Any, memory: Any, scope: Any) -> Any:
    word = _word(frame, ref, "exch")
    bits = _to_bits(frame, ref.array.form, val, word.dtype, "exch: the value")
    return _from_bits(frame, ref.array.form, atomics.METHODS["exch"](frame, word, bits, memory, scope))


def _cas(frame: Frame, ref: StructRef, old: Any, val: Any, memory: Any, scope: Any) -> Any:
    word, form = _word(frame, ref, "cas"), ref.array.form
    given = [_to_bits(frame, form, v, word.dtype, f"cas: {name}") for name, v in (("old", old), ("val", val))]
    return _from_bits(frame, form, atomics.METHODS["cas"](frame, word, *given, memory, scope))


_METHODS: dict[str, Callable[..., Any]] = {"load": _load, "store": _store, "exch": _exch, "cas": _cas}
