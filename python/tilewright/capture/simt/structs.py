"""Structs in device code: objects of their host classes, whose numbers are scalars of the running kernel."""

from __future__ import annotations

import dataclasses
import typing
from typing import Any

from ...dtype import as_dtype
from ...errors import TileTypeError
from ...layout import Aligned
from ..frame import Frame
from ..values import describe


def make(frame: Frame, kind: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
    """`Point(x, y)`."""
    from ...device.structs import bound  # the classes need this package

    signature = kind.__init__.__signature__
    given = bound(kind.__name__, signature, args, keywords)
    return struct(kind, {n: field(frame, kind, n, v) for n, v in given.items()})


def struct(kind: Any, values: dict[str, Any]) -> Any:
    made = object.__new__(kind)
    for name, value in values.items():
        object.__setattr__(made, name, value)
    return made


def field(frame: Frame, kind: Any, name: str, value: Any) -> Any:
    """What the field `name` of a struct holds when `value` is given to it."""
    return converted(frame, value, kind.__tw_struct__[name], f"the field '{name}' of {kind.__name__}")


def with_field(frame: Frame, value: Any, name: str, new: Any) -> Any:
    """What `s.name = new` gives the name `s`; of a vector, too."""
    from .vectors import element  # which has another kind of fields

    kind = type(value)
    known = [f.name for f in dataclasses.fields(kind)]
    if name not in known:
        raise TileTypeError(f"a {kind.__name__} has no field '{name}', and gets none; it has {', '.join(known)}")
    hints = getattr(kind, "__tw_struct__", None)
    fresh = field(frame, kind, name, new) if hints else element(frame, new, kind.dtype, f"{kind.__name__}.{name}")
    return struct(kind, {n: fresh if n == name else getattr(value, n) for n in known})


def converted(frame: Frame, value: Any, hint: Any, what: str) -> Any:
    """A value of device code as one of the type that a hint names."""
    hint = hint.type if isinstance(hint, Aligned) else hint
    if typing.get_origin(hint) is tuple:
        hints = typing.get_args(hint)
        if not isinstance(value, tuple) or len(value) != len(hints):
            raise TileTypeError(f"{what} is a tuple of {len(hints)}, found {describe(value)}")
        return tuple(converted(frame, v, h, f"{what}[{i}]") for i, (v, h) in enumerate(zip(value, hints, strict=True)))
    if hasattr(hint, "__tw_tree__"):
        from . import records  # which needs this module

        value = records.copied(frame, value) if isinstance(value, records.Element) else value
        if not isinstance(value, hint):
            raise TileTypeError(f"{what} is a {hint.__name__}, found {describe(value)}")
        return value
    found = frame.capture.rules.converted(frame.emit, value, as_dtype(hint), what)
    return dataclasses.replace(found, loose=True) if hint in (bool, int, float) else found
