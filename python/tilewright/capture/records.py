"""Records: objects of the user's dataclasses and named tuples. Their methods are captured where they are called."""

from __future__ import annotations

import dataclasses
import inspect
import types
from typing import Any

from ..errors import TileTypeError
from ..structure import is_record
from .frame import Frame
from .values import describe, is_run_time


def _run(frame: Frame, function: types.FunctionType, args: list[Any], keywords: dict[str, Any]) -> Any:
    from .inlining import inline  # which needs this module

    return inline(frame, function, args, keywords, frame.node)


def method_of(value: Any, name: str) -> types.FunctionType | None:
    """A method that the class of a record has in Python, `__call__` or another."""
    found = inspect.getattr_static(type(value), name, None) if is_record(value) else None
    return found if isinstance(found, types.FunctionType) else None


def is_property(value: Any, name: str) -> bool:
    found = inspect.getattr_static(type(value), name, None) if is_record(value) else None
    return isinstance(found, property) and isinstance(found.fget, types.FunctionType)


def get_property(frame: Frame, value: Any, name: str) -> Any:
    return _run(frame, getattr(type(value), name).fget, [value], {})


def call_method(frame: Frame, value: Any, name: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    """What a method that there is gives."""
    from .calls import call  # which needs this module

    return call(frame, method_of(value, name), [value, *args], keywords, frame.node)


def make(frame: Frame, kind: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
    """An object of a dataclass or a named tuple, whose fields may be tiles."""
    _check_made_by_python(kind)
    if not frame.capture.rules.simt:
        check_class(kind)
    try:
        if not _has_post_init(kind):
            return kind(*args, **keywords)
        bound = inspect.signature(kind).bind(*args, **keywords)
    except TypeError as error:
        raise TileTypeError(f"{kind.__name__}: {error}") from None
    made, given = object.__new__(kind), dict(bound.arguments)
    for field in dataclasses.fields(kind):
        value = given[field.name] if field.name in given else _default(field)
        if value is not dataclasses.MISSING:  # which __post_init__ must set
            object.__setattr__(made, field.name, value)
    bound.apply_defaults()
    others = bound.arguments.keys() - {field.name for field in dataclasses.fields(kind)}  # for __post_init__ alone
    _run(frame, kind.__post_init__, [made, *(v for n, v in bound.arguments.items() if n in others)], {})
    return made


def _check_made_by_python(kind: Any) -> None:
    """Refuses a constructor of the user's: Python would run it on values that it cannot know."""
    kind_name = kind.__name__
    if not dataclasses.is_dataclass(kind) or kind.__module__.startswith("tilewright."):
        return
    for name in ("__new__", "__init__"):
        made = getattr(kind, name)
        generated = getattr(made, "__qualname__", "").endswith(f"__create_fn__.<locals>.{name}")
        if isinstance(made, types.FunctionType) and not generated and made.__code__.co_filename != "<string>":
            raise TileTypeError(
                f"the dataclass '{kind_name}' has its own '{name}'; expected the one that @dataclass makes, and "
                "__post_init__ for what there is to do besides"
            )


def check_class(kind: Any) -> None:
    """Refuses a dataclass whose objects tile code could not make, or would make otherwise than they look."""
    name, own = getattr(kind, "__name__", ""), vars(kind).get("__dataclass_params__")
    if not dataclasses.is_dataclass(kind) or kind.__module__.startswith("tilewright."):
        return
    if own is None:
        raise TileTypeError(
            f"'{name}' is a subclass of a dataclass, but none itself, so that what it declares is no field; "
            "decorate it with @dataclass(frozen=True), too"
        )
    if not own.frozen:
        raise TileTypeError(
            f"the dataclass '{name}' is not frozen, and tile code cannot change an object; "
            "write @dataclass(frozen=True)"
        )
    for field in dataclasses.fields(kind):
        if not field.init and not _has_post_init(kind):
            raise TileTypeError(
                f"the field '{field.name}' of the dataclass '{name}' is given nothing: it has init=False, and there is "
                "no __post_init__; make it a parameter"
            )


def _has_post_init(kind: Any) -> bool:
    generated = getattr(getattr(kind, "__dataclass_params__", None), "init", False)
    return generated and isinstance(getattr(kind, "__post_init__", None), types.FunctionType)


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def replace(frame: Frame, value: Any, /, **changes: Any) -> Any:
    kind: Any = type(value)
    if not is_record(value):
        raise TileTypeError(f"dataclasses.replace needs an object of a dataclass, found {describe(value)}")
    fields = [field.name for field in dataclasses.fields(value) if field.init]
    unknown = sorted(changes.keys() - set(fields))
    if unknown:
        raise TileTypeError(f"{kind.__name__} has no field '{unknown[0]}'; it has {', '.join(fields)}")
    given = {name: getattr(value, name) for name in fields}
    return make(frame, kind, [], {**given, **changes})


def type_of(frame: Frame, value: Any) -> Any:
    if is_run_time(value) and not is_record(value):
        raise TileTypeError(f"type() of {describe(value)}: it has a dtype and a shape")
    return type(value)
