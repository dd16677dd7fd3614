"""Atomics of structs: an element of an array of structs, as the bits of its bytes: a word, or two of 16 bytes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from ..._optable import ATOMIC_KIND
from ...device.records import Form
from ...dtype import UNSIGNED_BY_BITS, DType, bool_, int64
from ...errors import TileTypeError
from ...layout import layout_of
from ..frame import Frame
from ..memory import output
from ..values import Array, Tile, describe
from . import atomics, numbers, records, structs, views

WORDS = {bits // 8: dtype for bits, dtype in UNSIGNED_BY_BITS.items()}
PAIR = 16  # bytes of two words
MOST = {"load": PAIR, "store": PAIR, "exch": 8, "cas": 8}  # bytes of an object, as `cuda.device` has it


class StructRef(atomics.Ref):
    """The element of an array of structs at an offset in its bytes."""

    def __init__(self, array: Any, offset: Any) -> None:
        super().__init__(array.form.kind, _METHODS, f" {array.form.kind.__name__}")
        self.array, self.offset = array, offset


def struct_ref(frame: Frame, array: Any, index: Any) -> StructRef:
    return StructRef(array, records.offset_of(frame, array, index))


def check_size(kind: Any, name: str) -> int:
    """The bytes of a struct that may be accessed."""
    size, most = layout_of(kind).size, MOST[name]
    if size > most:
        raise TileTypeError(
            f"{name} of an atomic {kind.__name__}: it has {size} bytes; the most is {most}, so access parts of it"
        )
    if size not in (*WORDS, PAIR):
        known = "1, 2, 4, 8 or 16" if most == PAIR else "1, 2, 4 or 8"
        raise TileTypeError(f"{name} of an atomic {kind.__name__}: it has {size} bytes; expected {known}")
    return size


# ---------------------------------------------------------------------------------------------
# Bits


def leaves_of(value: Any) -> list[Any]:
    """The numbers of a value, in order."""
    if isinstance(value, tuple):
        return [leaf for part in value for leaf in leaves_of(part)]
    if dataclasses.is_dataclass(value) and not isinstance(value, Tile):
        return [leaf for f in dataclasses.fields(value) for leaf in leaves_of(getattr(value, f.name))]
    return [value]


def _to_bits(frame: Frame, form: Form, value: Any, size: int, what: str) -> list[Tile]:
    """The words of a struct of so many bytes."""
    if not isinstance(value, form.kind):
        raise TileTypeError(f"{what} is a {form.kind.__name__}, found {describe(value)}; expected one")
    emit, word = frame.emit, WORDS[min(size, 8)]
    words: list[Any] = [emit.constant(0, word) for _ in range(0, size, 8)]
    for leaf, number in zip(form.leaves(), leaves_of(value), strict=True):
        tile = frame.capture.rules.converted(emit, number, leaf.kind, what)
        bits = WORDS[max(1, leaf.kind.bits // 8)]
        part = emit.cast(tile, bits) if leaf.kind is bool_ else _as_bits(frame, tile, bits)
        at, first = _place_of(leaf)
        words[at] = emit.binary("bitwise_or", words[at], _shifted(frame, emit.cast(part, word), first, "l"))
    return words


def _place_of(leaf: Form) -> tuple[int, int]:
    """The word that a number is in, and its first bit there."""
    at, first = divmod(leaf.offset, 8)
    if first + leaf.kind.itemsize > 8:
        raise TileTypeError(
            f"an atomic struct of 16 bytes has a {leaf.kind} at byte {leaf.offset}, across its middle; "
            "expected each field at a multiple of its size"
        )
    return at, 8 * first


def _as_bits(frame: Frame, tile: Tile, dtype: DType) -> Tile:
    return tile if tile.dtype is dtype else numbers.view(frame, tile, dtype)


def _shifted(frame: Frame, tile: Tile, by: int, side: str) -> Tile:
    found: Tile = frame.emit.binary(f"bitwise_{side}shift", tile, frame.emit.constant(by, tile.dtype)) if by else tile
    return found


def _from_bits(frame: Frame, form: Form, words: list[Tile]) -> Any:
    if form.parts:
        parts = [_from_bits(frame, part, words) for part in form.parts]
        if form.kind is tuple:
            return tuple(parts)
        names = [field.name for field in dataclasses.fields(form.kind)]
        return structs.struct(form.kind, dict(zip(names, parts, strict=True)))
    bits = WORDS[max(1, form.kind.bits // 8)]
    at, first = _place_of(form)
    part = frame.emit.cast(_shifted(frame, words[at], first, "r"), bits)
    if form.kind is bool_:
        return frame.emit.cast(part, bool_)
    return dataclasses.replace(_as_bits(frame, part, form.kind), loose=form.loose)


# ---------------------------------------------------------------------------------------------
# Accesses


def _word(frame: Frame, ref: StructRef, size: int) -> atomics.AtomicRef:
    place: Array = views.made(frame, ref.array.bytes, views.Shape(ref.offset, [], []), WORDS[size])
    return atomics.AtomicRef(place, [])


def _pair(frame: Frame, ref: StructRef, name: str, words: list[Tile], memory: Any, scope: Any) -> list[Tile]:
    """A load or a store of 16 bytes."""
    place: Array = views.made(frame, ref.array.bytes, views.Shape(ref.offset, [], []), int64)
    order, who = atomics.ordering(name, memory, scope)
    frame.capture.writes += 1
    attributes = {"kind": ATOMIC_KIND[name], "memory_order": order, "memory_scope": who}
    operands = [place.ir, *(frame.emit.bitcast(word, int64).ir for word in words)]
    found = frame.builder.op("tile.atomic_pair", operands, attributes, [int64.mlir] * 2)
    return [frame.emit.bitcast(Tile(word, int64, ()), WORDS[8]) for word in found]


def _load(frame: Frame, ref: StructRef, memory: Any, scope: Any) -> Any:
    size = check_size(ref.dtype, "load")
    if size == PAIR:
        words = _pair(frame, ref, "load", [frame.emit.constant(0, WORDS[8])] * 2, memory, scope)
    else:
        words = [atomics.METHODS["load"](frame, _word(frame, ref, size), memory, scope)]
    return _from_bits(frame, ref.array.form, words)


def _store(frame: Frame, ref: StructRef, val: Any, memory: Any, scope: Any) -> None:
    size = check_size(ref.dtype, "store")
    words = _to_bits(frame, ref.array.form, val, size, "store: the value")
    if size == PAIR:
        output(frame, ref.array.bytes, "atomic store")
        _pair(frame, ref, "store", words, memory, scope)
    else:
        atomics.METHODS["store"](frame, _word(frame, ref, size), words[0], memory, scope)


def _exch(frame: Frame, ref: StructRef, val: Any, memory: Any, scope: Any) -> Any:
    size = check_size(ref.dtype, "exch")
    words = _to_bits(frame, ref.array.form, val, size, "exch: the value")
    old = atomics.METHODS["exch"](frame, _word(frame, ref, size), *words, memory, scope)
    return _from_bits(frame, ref.array.form, [old])


def _cas(frame: Frame, ref: StructRef, old: Any, val: Any, memory: Any, scope: Any) -> Any:
    size, form = check_size(ref.dtype, "cas"), ref.array.form
    given = [_to_bits(frame, form, v, size, f"cas: {name}")[0] for name, v in (("old", old), ("val", val))]
    found = atomics.METHODS["cas"](frame, _word(frame, ref, size), *given, memory, scope)
    return _from_bits(frame, form, [found])


_METHODS: dict[str, Callable[..., Any]] = {"load": _load, "store": _store, "exch": _exch, "cas": _cas}
