"""Structs: classes of the user whose objects are values of device code, `@device.struct`."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..errors import TileTypeError
from ..layout import Layout, check_align, layout_of, struct_layout
from ..quiet import quiet
from ..structure import annotations_of
from . import records
from .atomics import Atomic
from .conversion import converted

if TYPE_CHECKING:
    from ..capture.frame import Frame

__all__ = ["struct"]


@quiet
def struct(cls: type | None = None, /, *, align: int = 1) -> Any:
    """Make a class a struct of numbers, vectors, tuples and structs: `@device.struct`, `@device.struct(align=16)`.

    Each attribute has a type hint; `Point(x, y)` and `Point(x=…, y=…)` make one. Objects are immutable: in device code
    `p.x = a` gives the name a new one. In memory a struct is what a C struct of the same members is.
    """
    check_align(align, "@device.struct")
    frame = sys._getframe(1)
    names = {**frame.f_globals, **frame.f_locals}  # of hints that are text
    if cls is None:
        return quiet(lambda decorated: _struct(decorated, align, names))
    return _struct(cls, align, names)


def _struct(cls: Any, least: int, names: dict[str, Any]) -> Any:
    if not isinstance(cls, type):
        raise TileTypeError(f"@device.struct makes a struct of a class, found {cls!r}")
    hints = _hints(cls, names)
    members: dict[str, Any] = {
        "__annotations__": dict(hints),
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": cls.__doc__,
        "__init__": _initializer(cls.__name__, hints, _defaults(cls, hints)),
        "underlying": cls,
        "__tw_struct__": hints,
        "__tw_tree__": True,
        "__tw_layout__": classmethod(_layout_function(hints, least)),
        "dtype": records.OfClass(),
        "__tw_make__": classmethod(_make),
    }
    return dataclasses.dataclass(frozen=True, init=False)(type(cls.__name__, (cls,), members))


def _hints(cls: type, names: dict[str, Any]) -> dict[str, Any]:
    """Field -> its type; an error that names the field where there is none."""
    hints = {name: _resolved(hint, names) for name, hint in annotations_of(cls).items()}
    for name, value in vars(cls).items():
        plain = not name.startswith("_") and not callable(value) and not isinstance(value, property | staticmethod)
        if plain and name not in hints and not isinstance(value, classmethod):
            raise TileTypeError(
                f"@device.struct {cls.__name__}: the field '{name}' has no type hint; write {name}: TYPE"
            )
    if not hints:
        raise TileTypeError(f"@device.struct {cls.__name__} has no fields; write one as NAME: TYPE")
    for name, hint in hints.items():
        try:
            layout_of(hint)
        except TileTypeError as error:
            raise TileTypeError(f"@device.struct {cls.__name__}: the field '{name}': {error.message}") from None
    return hints


def _resolved(hint: Any, names: dict[str, Any]) -> Any:
    """A hint that could not be read where the class says that it is from."""
    if not isinstance(hint, str):
        return hint
    try:
        return eval(hint, names)
    except Exception:  # which the layout tells of
        return hint


def _defaults(cls: type, hints: dict[str, Any]) -> dict[str, Any]:
    return {name: vars(cls)[name] for name in hints if name in vars(cls)}


def signature_of(hints: dict[str, Any], defaults: dict[str, Any]) -> inspect.Signature:
    kind, empty = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.empty
    return inspect.Signature([inspect.Parameter(n, kind, default=defaults.get(n, empty)) for n in hints])


def bound(name: str, signature: inspect.Signature, args: Any, keywords: Any) -> dict[str, Any]:
    """Field -> value of a call of the class."""
    try:
        found = signature.bind(*args, **keywords)
    except TypeError as error:
        raise TileTypeError(f"{name}{signature}: {error}") from None
    found.apply_defaults()
    return found.arguments


def _initializer(name: str, hints: dict[str, Any], defaults: dict[str, Any]) -> Callable[..., None]:
    signature = signature_of(hints, defaults)

    def initialize(self: Any, *args: Any, **keywords: Any) -> None:
        if any(isinstance(hint, Atomic) for hint in hints.values()):
            raise TileTypeError(
                f"a {name} holds atomics, and so is no value: it lives in an array, as in np.zeros(n, {name}.dtype)"
            )
        for field, value in bound(name, signature, args, keywords).items():
            object.__setattr__(self, field, converted(value, hints[field], f"the field '{field}' of {name}"))

    initialize.__signature__ = signature  # type: ignore[attr-defined]
    return initialize


def _layout_function(hints: dict[str, Any], least: int) -> Callable[[Any], Layout]:
    return lambda cls: struct_layout(hints.values(), least)


def _make(cls: Any, frame: Frame, args: list[Any], keywords: dict[str, Any]) -> Any:
    from ..capture.simt import structs

    return structs.make(frame, cls, args, keywords)
