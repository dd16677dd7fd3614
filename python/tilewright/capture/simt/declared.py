"""Calls of functions that `cuda.declare_device` names."""

from __future__ import annotations

from typing import Any

from ...device import abi
from ...device.targets import target_named
from ...dtype import DType, int32
from ...errors import TileTypeError
from ...numba import types
from ..frame import Frame
from ..memory import read_element
from ..values import Array, Tile, describe, is_number
from . import extern, made_arrays, structs, views
from .struct_atomics import leaves_of

POINTER = abi.Value(abi.WORD, abi.WORD, ((0, abi.WORD, "int"),), True)  # a word that C++ takes as an address


def call(frame: Frame, function: Any, args: tuple[Any, ...]) -> Any:
    parameters, result = function.sig.arguments, function.sig.result
    if target_named(frame.capture.target).number is None:
        raise TileTypeError(
            f"{function.name} is a function of C++ for GPUs, and this kernel runs on the CPU; run it where a GPU is"
        )
    if len(args) != len(parameters):
        raise TileTypeError(f"{function.name} takes {len(parameters)} values by {function.sig}, found {len(args)}")
    frame.capture.links.update(dict.fromkeys(function.links))
    rows = zip(args, parameters, strict=True)
    values = [_passed(frame, value, t, f"argument {i} of {function.name}") for i, (value, t) in enumerate(rows)]
    kinds = [_value_of(t) for t in parameters]
    returned = None if result is types.void else result.__tw_value__(frame)
    if function.abi == "c":
        signature = abi.nvptx(kinds, None if returned is None else abi.value_of(returned))
        return extern.emitted(frame, function.name, _words(frame, values), returned, signature.text())
    return _by_status(frame, function.name, values, kinds, returned)


def _by_status(frame: Frame, name: str, values: list[Any], kinds: list[abi.Value], returned: Any) -> Any:
    """By Numba's convention: the result stands at an address, the function itself gives a status."""
    if returned is not None and not isinstance(returned, DType):
        raise TileTypeError(f"{name} gives a {returned}; by Numba's convention it gives a number, use abi='c'")
    slot = made_arrays.local_array(frame, 1, returned or int32, "C", None)
    signature = abi.nvptx([POINTER, *kinds], abi.value_of(int32))
    extern.emitted(frame, name, _words(frame, [_first(frame, slot), *values]), int32, signature.text())
    return None if returned is None else read_element(frame, slot, (0,))


def _first(frame: Frame, array: Array) -> Array:
    """An array without axes where another one begins: its words are an address."""
    return views.made(frame, array, views.Shape(0, [], []))


def _value_of(t: Any) -> abi.Value:
    if isinstance(t, types.Pointer):
        return POINTER
    if isinstance(t, types.Array):
        raise TileTypeError(
            f"a function of C++ takes no {t} here; declare CPointer({t.element}) and pass ffi.from_buffer"
        )
    return abi.value_of(t.of or t._parts())


def _passed(frame: Frame, value: Any, t: Any, what: str) -> Any:
    if isinstance(t, types.Pointer):
        if not isinstance(value, Array):
            raise TileTypeError(f"{what} is a {t}, found {describe(value)}; pass an array")
        frame.capture.written.add(value.position)
        return _first(frame, value)
    if isinstance(t, types.Type) and t.of is not None and (isinstance(value, Tile) or is_number(value)):
        return frame.capture.rules.converted(frame.emit, value, t.of, what)
    return structs.converted(frame, value, t.__tw_value__(frame), what)


def _words(frame: Frame, values: list[Any]) -> list[Any]:
    words = []
    for value in values:
        words += [value.ir] if isinstance(value, Array) else [extern.signless(frame, v).ir for v in leaves_of(value)]
    return words
