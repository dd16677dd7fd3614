"""Structures: arguments that hold others, which are tuples, lists, dicts, named tuples and objects of dataclasses.

A launch takes them apart (python/ext/structure.c): what is no structure is a leaf, an array, a number or a constant.
Arrays and numbers are the parameters of the compiled kernel; how a structure is made up is part of what a kernel is
compiled for. Tile code sees it put together again, with a tuple in the place of a list, which it cannot change.
"""

from __future__ import annotations

import copy
import dataclasses
import enum
import inspect
import sys
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from .annotations import ArrayAnnotation, ConstantAnnotation, ListAnnotation, ScalarAnnotation
from .dtype import DType
from .errors import TileError, TileTypeError, TileValueError

# What python/ext/structure.c is told of an argument: None is nothing, True that it is a constant, a tuple has the form
# of each part, a list of one the form of all, an int which extents (bit d) and strides (bit 8 + d) of an array are.
Form = Any

# ---------------------------------------------------------------------------------------------
# What annotations say


@dataclasses.dataclass(frozen=True)
class Marks:
    """What an annotation says of an argument: a constant, the dtype of indices or of a scalar, and that of its parts.

    `extents` and `strides` are the axes of an array along which they are constants.
    `parts` are those of a tuple of this length; `each` is for all parts, however many there are.
    """

    constant: bool = False
    scalar: bool = False
    index_dtype: DType | None = None
    extents: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    parts: tuple[Marks, ...] | None = None
    each: Marks | None = None
    problem: TileError | None = None  # what is wrong with the annotation: `check` tells of which argument

    def check(self, name: str) -> None:
        if self.problem is not None:
            raise type(self.problem)(f"argument '{name}': {self.problem}")

    def form(self) -> Form:
        if self.constant:
            return True
        if self.parts is not None:
            return tuple(part.form() for part in self.parts)
        if self.extents or self.strides:
            return sum(1 << axis for axis in set(self.extents)) | sum(1 << 8 + axis for axis in set(self.strides))
        inner = self.each.form() if self.each is not None else None
        return None if inner is None else [inner]

    def of(self, position: int) -> Marks:
        """What is said of a part."""
        if self.parts is not None:
            return self.parts[position] if position < len(self.parts) else UNMARKED
        return self.each or UNMARKED


UNMARKED = Marks()
_CONSTANT_SCALAR = TileTypeError(
    "it is annotated as a constant, and as an integer of a dtype; a constant has none, so leave one of the two "
    "annotations away"
)


def marks_of(annotation: Any) -> Marks:
    """By Constant, IndexedWithInt64 and their like, also in `tuple[A, B]`, `tuple[A, ...]` and `list[A]`."""
    inner = marks_of(annotation.__origin__) if hasattr(annotation, "__metadata__") else _marks_of_parts(annotation)
    for mark in getattr(annotation, "__metadata__", ()):
        if isinstance(mark, ConstantAnnotation):
            inner = Marks(constant=True, problem=_CONSTANT_SCALAR if _has_scalar(inner) else None)
        elif isinstance(mark, ArrayAnnotation):
            inner = _of_array(mark)
        elif isinstance(mark, ScalarAnnotation):
            inner = dataclasses.replace(inner, index_dtype=mark.dtype, scalar=True)
        elif isinstance(mark, ListAnnotation):
            inner = dataclasses.replace(inner, each=_of_array(mark.element))
    return inner


def _has_scalar(marks: Marks) -> bool:
    """Whether an annotation says of an integer, or of one in a tuple or list, which dtype it has."""
    inner = [*(marks.parts or ()), *([marks.each] if marks.each else [])]
    return marks.scalar or any(map(_has_scalar, inner))


def _of_array(mark: ArrayAnnotation) -> Marks:
    extents, strides = mark.static_shape_dims, mark.static_stride_dims
    twice = next((axes for axes in (extents, strides) if len(set(axes)) < len(axes)), None)
    told = f"its ct.ArrayAnnotation names an axis twice, expected different ones, found {twice}"
    problem = None if twice is None else TileValueError(told)
    return Marks(index_dtype=mark.index_dtype, extents=extents, strides=strides, problem=problem)


def _marks_of_parts(annotation: Any) -> Marks:
    arguments = typing.get_args(annotation)
    origin = typing.get_origin(annotation)
    if origin is tuple and arguments and arguments[-1] is not Ellipsis:
        return Marks(parts=tuple(map(marks_of, arguments)))
    if origin in (tuple, list) and arguments:
        return Marks(each=marks_of(arguments[0]))
    return UNMARKED


def annotations_of(function: Callable[..., Any] | type) -> dict[str, Any]:
    try:
        return inspect.get_annotations(function, eval_str=True)
    except (NameError, AttributeError, SyntaxError):  # a name that only type checkers know
        return _evaluate_leniently(function)


def _evaluate_leniently(function: Any) -> dict[str, Any]:
    annotations: dict[str, Any] = {}
    for name, text in inspect.get_annotations(function).items():
        annotations[name] = text
        if isinstance(text, str):
            try:
                annotations[name] = eval(text, _globals_of(function))
            except Exception:  # unknown to us: then it is no constant marker
                continue
    return annotations


def _globals_of(function: Any) -> dict[str, Any]:
    return vars(sys.modules[function.__module__]) if isinstance(function, type) else function.__globals__


def parameters_of(function: types.FunctionType) -> tuple[str, ...]:
    """The parameters of a kernel, in the order in which a launch passes them: keyword-only ones behind the others."""
    code = function.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def defaults_of(function: types.FunctionType) -> tuple[Any, ...]:
    """The defaults of the last parameters, which a launch may leave out."""
    by_name, names = function.__kwdefaults__ or {}, parameters_of(function)
    keywords = names[function.__code__.co_argcount :]
    missing = [i for i, name in enumerate(keywords) if name not in by_name]
    last = keywords[missing[-1] + 1 :] if missing else keywords
    found = tuple(by_name[name] for name in last)
    return found if missing else (*(function.__defaults__ or ()), *found)


def parameter_marks(function: Callable[..., Any]) -> dict[str, Marks]:
    return {name: marks_of(annotation) for name, annotation in annotations_of(function).items()}


def constant_parameters(function: Callable[..., Any]) -> frozenset[str]:
    """Names of the parameters of `function` that are annotated as constants."""
    return frozenset(name for name, marks in parameter_marks(function).items() if marks.constant)


def check_scalar_annotation(name: str, found: DType, wanted: DType) -> None:
    """Whether an integer of the dtype `found` may be passed as one of `wanted`."""
    if not found.is_integral or found.min < wanted.min or found.max > wanted.max:
        raise TileTypeError(f"argument '{name}': it is annotated as an integer of {wanted}, found {found}")


# ---------------------------------------------------------------------------------------------
# Taking apart, putting together


def is_record(value: Any) -> bool:
    """Whether a value is an object of a user's dataclass."""
    return dataclasses.is_dataclass(type(value)) and not type(value).__module__.startswith("tilewright.")


def record_fields(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


def record_marks(kind: type) -> tuple[Marks, ...]:
    """What the annotations of a dataclass say of its fields."""
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        found.update(annotations_of(base))
    return tuple(marks_of(found.get(field.name)) for field in dataclasses.fields(kind))


def record(kind: type) -> tuple[tuple[str, ...], tuple[Form, ...]] | None:
    """The names of a dataclass's fields, and their forms, None of a class of ours: what python/ext/structure.c asks."""
    if kind.__module__.startswith("tilewright."):
        return None
    return tuple(field.name for field in dataclasses.fields(kind)), tuple(m.form() for m in record_marks(kind))


def is_namespace(value: Any) -> bool:
    """Whether a value is an object to which device code adds attributes."""
    return type(value) is types.SimpleNamespace


def names_in(namespace: Any) -> list[str]:
    """In one order, whichever came first."""
    return sorted(vars(namespace))


def parts_of(value: Any) -> list[Any] | None:
    """What a tuple, a dict, a record or a namespace holds; None for any other value."""
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, dict):
        return list(value.values())
    if is_namespace(value):
        return [getattr(value, name) for name in names_in(value)]
    return list(record_fields(value).values()) if is_record(value) else None


def with_parts(value: Any, parts: Iterable[Any]) -> Any:
    """A tuple, dict, record or namespace like `value` that holds `parts`."""
    if isinstance(value, tuple):
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, dict):
        return dict(zip(value, parts, strict=True))
    if is_namespace(value):
        return types.SimpleNamespace(**dict(zip(names_in(value), parts, strict=True)))
    made = copy.copy(value)
    for name, part in zip(record_fields(value), parts, strict=True):
        object.__setattr__(made, name, part)
    return made


def assembled(kind: str, like: Any, parts: Sequence[Any]) -> Any:
    """A structure of a kind, as python/ext/structure.c names it, of these parts."""
    if kind == "dict":
        return dict(zip(like, parts, strict=True))
    if kind == "record":
        made = object.__new__(like)
        for field, part in zip(dataclasses.fields(like), parts, strict=True):
            object.__setattr__(made, field.name, part)
        return made
    return like(*parts) if hasattr(like, "_fields") else tuple(parts)


def described(value: Any) -> tuple[str, Any, list[Any]] | None:
    """(kind, what it is like, its parts) of an argument that is a structure; None for a leaf."""
    if isinstance(value, tuple):
        return "tuple", type(value) if hasattr(value, "_fields") else tuple, list(value)
    if isinstance(value, list):
        return "list", list, list(value)
    if isinstance(value, dict):
        return "dict", tuple(value), list(value.values())
    if is_record(value) and not is_array(value):
        return "record", type(value), list(record_fields(value).values())
    return None


def is_array(value: Any) -> bool:
    protocols = ("__dlpack__", "__cuda_array_interface__", "__array_interface__")
    return any(hasattr(value, p) for p in protocols)


def is_constant_by_nature(value: Any) -> bool:
    """Whether a value can be none of a running kernel, and so is a constant without an annotation."""
    return (
        value is None or isinstance(value, DType | str) or (isinstance(value, enum.Enum) and not isinstance(value, int))
    )


def places_of(kind: str, like: Any, count: int) -> list[str]:
    """How the parts of a structure are written, as in `[0]` or `.weights`."""
    if kind == "record":
        return [f".{field.name}" for field in dataclasses.fields(like)]
    return [f"[{key!r}]" for key in (like if kind == "dict" else range(count))]


def marks_of_parts(kind: str, like: Any, marks: Marks, count: int) -> list[Marks]:
    return list(record_marks(like)) if kind == "record" else [marks.of(i) for i in range(count)]


@dataclasses.dataclass(frozen=True)
class Leaf:
    """An array, a number or a constant in the arguments of a launch; its name is as in `A`, `config.weights[2]`."""

    name: str
    value: Any
    is_constant: bool


def leaves(parameters: Sequence[str], arguments: Sequence[Any], forms: Sequence[Form] | None) -> list[Leaf]:
    """All leaves, in the order in which a launch meets them."""
    marked = zip(parameters, arguments, forms or [None] * len(parameters), strict=True)
    return [leaf for parameter, value, form in marked for leaf in _leaves(parameter, value, form)]


def leaf_entries(key: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """What a specialization's key says of each leaf, in the order of `leaves`."""
    for kind, *facts in key:
        if kind in ("tuple", "list", "dict", "record"):
            yield from leaf_entries(facts[1])
        else:
            yield kind, *facts


def leaf_names(parameters: Sequence[str], arguments: Sequence[Any], forms: Sequence[Form] | None) -> list[str]:
    """What python/ext/structure.c asks, for an error that names a part of an argument."""
    return [leaf.name for leaf in leaves(parameters, arguments, forms)]


def _leaves(name: str, value: Any, form: Form) -> Iterator[Leaf]:
    found = described(value) if form is not True else None
    if found is None:
        yield Leaf(name, value, form is True or is_constant_by_nature(value))
        return
    kind, like, parts = found
    forms = form if isinstance(form, tuple) else tuple(form or [None]) * len(parts)
    if kind == "record":
        forms = tuple(marks.form() for marks in record_marks(like))
    for place, part, inner in zip(places_of(kind, like, len(parts)), parts, forms, strict=True):
        yield from _leaves(name + place, part, inner)
