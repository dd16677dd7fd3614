"""Calls of functions of C++: what is passed has the types of their hints."""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Iterator
from typing import Any

from ...device.abi import ArrayType
from ...device.extern import Extern, has_body
from ...device.interop import hints_of, signature_of
from ...device.targets import HOST_NAME, target_named
from ...dtype import BY_NAME, DType
from ...errors import TileTypeError
from ...layout import Aligned
from ..frame import Frame
from ..source import source_of
from ..values import Array, Tile, describe
from . import structs
from .struct_atomics import leaves_of
from .vectors import vector


def call(frame: Frame, function: Extern, args: list[Any], keywords: dict[str, Any]) -> Any:
    target = frame.capture.target
    on_gpu = target_named(target).number is not None
    if not on_gpu and target != HOST_NAME:
        if not has_body(source_of(function.underlying).tree):
            name = function.__name__
            raise TileTypeError(f"{name} is a function of C++ for GPUs; give it a body, which is what the CPU does")
        from ..inlining import inline  # which stands above this package

        return inline(frame, function.underlying, args, keywords, frame.node)
    bound = inspect.signature(function.underlying).bind(*args, **keywords)
    bound.apply_defaults()
    parameters, result = hints_of(function.underlying)
    words = [
        word
        for (name, value), hint in zip(bound.arguments.items(), parameters, strict=True)
        for word in _words(frame, value, hint, f"the argument '{name}' of {function.__name__}")
    ]
    frame.capture.links.update(dict.fromkeys(function.link))
    signature = signature_of(parameters, result, target)
    return emitted(frame, function.__name__, words, result, signature)


def _words(frame: Frame, value: Any, hint: Any, what: str) -> Iterator[Any]:
    if hint is None:
        if value is not None:
            raise TileTypeError(f"{what} is None, found {describe(value)}")
    elif isinstance(hint, ArrayType):
        yield _array(frame, value, hint, what).ir
    else:
        for leaf in leaves_of(structs.converted(frame, value, hint, what)):
            yield signless(frame, leaf).ir


def _array(frame: Frame, value: Any, hint: ArrayType, what: str) -> Array:
    if not isinstance(value, Array) or value.dtype is not hint.dtype or value.ndim != hint.ndim:
        raise TileTypeError(f"{what} is a {hint.ndim}-D array of {hint.dtype}, found {describe(value)}")
    frame.capture.written.add(value.position)
    return value


def signless(frame: Frame, value: Tile) -> Tile:
    """An integer's bits without `u`: C++ takes and gives bits."""
    is_unsigned = value.dtype.name.startswith("uint")
    return frame.emit.bitcast(value, BY_NAME[value.dtype.name[1:]]) if is_unsigned else value


def emitted(frame: Frame, name: str, words: list[Any], result: Any, signature: str) -> Any:
    kinds = list(_numbers(result)) if result is not None else []
    stored = [BY_NAME[k.name[1:]] if k.name.startswith("uint") else k for k in kinds]
    builder = frame.builder
    attributes = {"callee": name, "tile.c_signature": builder.attribute(signature)}
    made = builder.op("tile.c_call", words, attributes, [kind.mlir for kind in stored])
    found = [made] if len(kinds) == 1 else list(made or ())
    tiles = iter(
        frame.emit.bitcast(tile, kind) if kind is not tile.dtype else tile
        for tile, kind in zip((Tile(ir, kind, ()) for ir, kind in zip(found, stored, strict=True)), kinds, strict=True)
    )
    return _assembled(result, tiles) if result is not None else None


def _numbers(t: Any) -> Iterator[DType]:
    from ...layout import layout_of

    for _, dtype in layout_of(t).leaves:
        yield dtype


def _assembled(t: Any, tiles: Iterator[Tile]) -> Any:
    """A value of a type, of its numbers."""
    t = t.type if isinstance(t, Aligned) else t
    if typing.get_origin(t) is tuple:
        return tuple(_assembled(part, tiles) for part in typing.get_args(t))
    hints = getattr(t, "__tw_struct__", None)
    if hints is not None:
        return structs.struct(t, {name: _assembled(hint, tiles) for name, hint in hints.items()})
    if hasattr(t, "size") and hasattr(t, "__tw_tree__"):
        return vector(t, [next(tiles) for _ in range(t.size)])
    if hasattr(t, "part"):
        from ...device.complexes import of_parts

        return of_parts(t, next(tiles), next(tiles))
    return dataclasses.replace(next(tiles), loose=t in (bool, int, float))
