"""Operators: functions of the user, lambdas and the well-known ones of `OpKind`, as kernels call them.

A function is taken as it is when an object is made: variables from outside are read then, and arrays among them become
parameters of the kernels, so that a later call may bring others. Two functions with the same instructions and the same
values outside are the same operator.
"""

from __future__ import annotations

import enum
import functools
import threading
import types as python_types
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from .. import _core
from ..dtype import bool_
from ..errors import TileError, TileTypeError, TileValueError
from . import known_operators
from .inputs import as_input, is_array, places_of
from .types import ItemType, converted

if TYPE_CHECKING:
    from ..capture.frame import Frame


class OpKind(enum.Enum):
    """The well-known operators."""

    PLUS = enum.auto()
    MINUS = enum.auto()
    MULTIPLIES = enum.auto()
    DIVIDES = enum.auto()
    MODULUS = enum.auto()
    EQUAL_TO = enum.auto()
    NOT_EQUAL_TO = enum.auto()
    GREATER = enum.auto()
    LESS = enum.auto()
    GREATER_EQUAL = enum.auto()
    LESS_EQUAL = enum.auto()
    LOGICAL_AND = enum.auto()
    LOGICAL_OR = enum.auto()
    LOGICAL_NOT = enum.auto()
    BIT_AND = enum.auto()
    BIT_OR = enum.auto()
    BIT_XOR = enum.auto()
    BIT_NOT = enum.auto()
    IDENTITY = enum.auto()
    NEGATE = enum.auto()
    MINIMUM = enum.auto()
    MAXIMUM = enum.auto()


_running = threading.local()  # .arrays: those of the operators whose bodies are captured, innermost last


class Captured:
    """Stands in a function for an array from outside of it: the parameter that the running kernel has for it."""

    def __init__(self, position: int) -> None:
        self.position = position

    def __tw_value__(self, frame: Frame) -> Any:
        frame.capture.repeats.spoil()
        return _running.arrays[-1][self.position]


class Operator:
    """An operator as kernels call it: `operator(arrays, *operands)`; `arrays` are the parameters for `self.arrays`."""

    array_places: tuple[tuple[int, Any, Any], ...] = ()  # (position among `arrays`, dict or function, name or number)

    def __init__(self, op: Any, count: int, what: str) -> None:
        self.what, self.commutes = what, False
        self.arrays: list[Any] = []
        # (dict or function, name or number of a free variable, value) from outside; None: other things, too
        self.read: list[tuple[Any, Any, Any]] | None = []
        if isinstance(op, OpKind):
            self.function = known_operators.FUNCTIONS[op.name]
            self.key: Any = op
            self.commutes = self.function in known_operators.COMMUTING
        else:
            freezing = _Freezing(self.arrays, what)
            self.function = freezing.function(function_of(op, what))
            self.key = freezing.key_of(self.function)
            self.read = freezing.read if all(_stays(value) for _, _, value in freezing.read) else None
            self.array_places = tuple(freezing.places)
        self._check_count(count)

    def holds(self) -> bool:
        """Whether what was read from outside is there as it was."""
        return all(_now(holder, name) is value for holder, name, value in self.read or ())

    def _check_count(self, count: int) -> None:
        code, defaults = self.function.__code__, self.function.__defaults__ or ()
        least = code.co_argcount - len(defaults)
        if not least <= count <= code.co_argcount and not code.co_flags & 0x04:
            raise TileTypeError(f"{self.what} takes {count} value{'s' * (count > 1)}, found a function of {least}")

    def states(self) -> tuple[Any, ...]:
        """What it has from outside, as arguments of a launch."""
        given = [as_input(a, self.what) for a in self.arrays]
        if any(a.count >= 1 << 31 for a in given):  # an operator may ask for their extents
            raise TileValueError(f"{self.what}: an array that it reads has 2147483647 items at most; pass a slice")
        return tuple(a.state() for a in given)

    def typed(self, t: ItemType) -> Operator:
        """The operator for results of a type, where it cannot know that itself."""
        return self

    def places(self) -> set[Any]:
        """Where the arrays from outside are."""
        return set().union(*(places_of(as_input(a, self.what)) for a in self.arrays))

    def __call__(self, arrays: Any, *operands: Any) -> Any:
        raise TileError("an operator of kernels was called on the host")

    def __tw_call__(self, frame: Frame, arrays: Any, *operands: Any) -> Any:
        from ..capture.inlining import inline

        stack = _running.__dict__.setdefault("arrays", [])
        stack.append(arrays)
        try:
            return inline(frame, self.function, list(operands), {}, frame.node)
        except TileError:
            whole = [t for t in map(type, operands) if t is tuple or hasattr(t, "__tw_struct__")]
            if not isinstance(self.key, OpKind) or not whole:
                raise
            found = "a tuple" if whole[0] is tuple else f"struct {whole[0].__name__}"
            raise TileTypeError(
                f"{self.what}: OpKind.{self.key.name} is for numbers, found {found}; write a function of its parts"
            ) from None
        finally:
            stack.pop()

    def deciding(self) -> Giving:
        """The operator as a predicate: its results are numbers, which are true or false."""
        return self.giving(bool_)

    def giving(self, t: ItemType, what: str | None = None) -> Giving:
        """The operator with its results converted to a type."""
        return Giving(self.typed(t), t, what or f"the result of {self.what}")


_known: weakref.WeakKeyDictionary[Any, dict[Any, Operator]] = weakref.WeakKeyDictionary()


def as_operator(op: Any, count: int, what: str) -> Operator:
    """An operator of `count` values, as a user writes it; the same one as long as nothing outside of it changes."""
    from .raw import RawOp, RawOperator

    if isinstance(op, RawOp):
        return RawOperator(op, what)
    if not isinstance(op, OpKind | python_types.FunctionType):
        return Operator(op, count, what)
    known = _known.setdefault(op, {})
    found = known.get((count, what))
    if found is None or not found.holds():
        found = Operator(op, count, what)
        if found.read is not None and not found.arrays:
            known[count, what] = found
    return found


class Giving:
    """An operator whose results are converted to a type, as `bool` to what decides."""

    def __init__(self, operator: Operator, t: ItemType, what: str) -> None:
        self.operator, self.type, self.what, self.commutes = operator, t, what, operator.commutes

    def __call__(self, arrays: Any, *operands: Any) -> Any:
        raise TileError("an operator of kernels was called on the host")

    def __tw_call__(self, frame: Frame, arrays: Any, *operands: Any) -> Any:
        found = self.operator.__tw_call__(frame, arrays, *operands)
        try:
            return converted(frame, found, self.type, self.what)
        except TileError as error:
            from ..capture.source import source_of

            source = source_of(self.operator.function)
            error.places = error.places or (source.place(source.tree.body[-1]),)
            raise


def function_of(op: Any, what: str) -> Callable[..., Any]:
    """The Python function of what may stand for an operator."""
    if isinstance(op, _core.Dispatcher):
        op = op.function  # type: ignore[attr-defined]
    op = getattr(op, "py_func", op)
    if isinstance(op, python_types.FunctionType):
        return op
    called = "; a lambda may call it" if callable(op) else ""
    raise TileTypeError(f"{what} is a function, a lambda, an OpKind or a RawOp, found {op!r}{called}")


class _Freezing:
    """Makes functions whose variables from outside are as they were; arrays among them are collected."""

    def __init__(self, arrays: list[Any], what: str) -> None:
        self.arrays, self.what = arrays, what
        self.made: dict[int, python_types.FunctionType] = {}
        self.read: list[tuple[Any, Any, Any]] = []  # as `Operator.read`
        self.places: list[tuple[int, Any, Any]] = []  # as `Operator.array_places`
        self.names: dict[int, int] = {}  # of a frozen function: its number, for keys of what calls itself

    def function(self, of: Any) -> python_types.FunctionType:
        """The same function with frozen variables."""
        if id(of) in self.made:
            return self.made[id(of)]
        code = of.__code__
        cells = tuple(python_types.CellType() for _ in of.__closure__ or ())
        space: dict[str, Any] = {"__name__": of.__module__, "__builtins__": of.__globals__.get("__builtins__")}
        made = python_types.FunctionType(code, space, of.__name__, None, cells)
        self.made[id(of)] = made
        self.names[id(made)] = len(self.names)
        made.__module__, made.__qualname__ = of.__module__, of.__qualname__
        made.__defaults__ = tuple(map(self._value, of.__defaults__)) if of.__defaults__ else None
        self.read += [
            (weakref.ref(of), name, getattr(of, name)) for name in ("__code__", "__defaults__", "__kwdefaults__")
        ]
        made.__kwdefaults__ = {k: self._value(v) for k, v in of.__kwdefaults__.items()} if of.__kwdefaults__ else None
        for i, (cell, outer) in enumerate(zip(cells, of.__closure__ or (), strict=True)):
            try:
                cell.cell_contents = self._value(outer.cell_contents)
            except ValueError:
                continue  # no value yet, which the capture tells of
            if isinstance(cell.cell_contents, Captured):
                self.places.append((cell.cell_contents.position, weakref.ref(of), i))
            else:
                self.read.append((weakref.ref(of), i, outer.cell_contents))
        for name in _global_names(code):
            if name in of.__globals__:
                space[name] = self._value(of.__globals__[name])
            if isinstance(space.get(name), Captured):
                self.places.append((space[name].position, of.__globals__, name))
            else:
                self.read.append((of.__globals__, name, of.__globals__.get(name)))
        return made

    def _value(self, value: Any) -> Any:
        if isinstance(value, python_types.FunctionType) and not _is_ours(value):
            return self.function(value)
        if isinstance(value, _core.Dispatcher):
            return self.function(value.function)  # type: ignore[attr-defined]
        if is_array(value) and int(getattr(value, "ndim", 1)) > 0:
            for position, known in enumerate(self.arrays):
                if known is value:
                    return Captured(position)
            self.arrays.append(value)
            return Captured(len(self.arrays) - 1)
        return value

    # -- keys

    def key_of(self, function: python_types.FunctionType, seen: tuple[int, ...] = ()) -> Any:
        """What two operators share that are the same: instructions, and the values of variables from outside."""
        if id(function) in seen:
            return ("itself", seen.index(id(function)))
        inner = (*seen, id(function))
        outside = [c.cell_contents for c in function.__closure__ or () if _has_value(c)]
        names = [n for n in _global_names(function.__code__) if n in function.__globals__]
        values = [*outside, *(function.__globals__[n] for n in names), *(function.__defaults__ or ())]
        values += list((function.__kwdefaults__ or {}).values())
        return (_code_key(function.__code__), tuple(self._value_key(v, inner) for v in values))

    def _value_key(self, value: Any, seen: tuple[int, ...]) -> Any:
        if isinstance(value, python_types.FunctionType) and not _is_ours(value):
            return self.key_of(value, seen)
        if isinstance(value, Captured):
            return ("array", value.position, as_input(self.arrays[value.position], self.what).kind)
        if isinstance(value, tuple | list):
            return (type(value), tuple(self._value_key(v, seen) for v in value))
        return (type(value), _same(value))


def _now(holder: Any, name: str) -> Any:
    if isinstance(holder, weakref.ref):
        holder = holder()
    if isinstance(name, int):
        cell = holder.__closure__[name] if holder else None
        return cell.cell_contents if cell and _has_value(cell) else None
    return holder.get(name) if isinstance(holder, dict) else getattr(holder, name, None)


def _stays(value: Any) -> bool:
    """Whether a value has no parts that change: then it is the same as long as it is the same object."""
    import numpy as np

    if isinstance(value, tuple):
        return all(map(_stays, value))
    plain = (
        int,
        float,
        complex,
        str,
        bytes,
        np.generic,
        enum.Enum,
        type,
        python_types.FunctionType,
        python_types.ModuleType,
    )
    return value is None or isinstance(value, (*plain, python_types.CodeType, python_types.BuiltinFunctionType))


def _has_value(cell: python_types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


class Itself:
    """In a key: an object that equals no other one."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Itself) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def _same(value: Any) -> Any:
    """A number by its bits, anything else by what it is."""
    if isinstance(value, float):
        return value.hex()
    try:
        hash(value)
    except TypeError:
        return Itself(value)
    return value


def _is_ours(function: Any) -> bool:
    return (function.__module__ or "").startswith("tilewright.") or hasattr(function, "__tw_op__")


def _codes(code: python_types.CodeType) -> Iterator[python_types.CodeType]:
    yield code
    for inner in code.co_consts:
        if isinstance(inner, python_types.CodeType):
            yield from _codes(inner)


@functools.lru_cache(maxsize=4096)
def _global_names(code: python_types.CodeType) -> tuple[str, ...]:
    """Names that a function, or one in it, may read from its module; attributes are among them."""
    return tuple(dict.fromkeys(name for c in _codes(code) for name in c.co_names))


@functools.lru_cache(maxsize=4096)
def _code_key(code: python_types.CodeType) -> Any:
    constants = tuple(_code_key(c) if isinstance(c, python_types.CodeType) else repr(c) for c in code.co_consts)
    return (code.co_code, constants, code.co_names, code.co_argcount, code.co_exceptiontable)


__all__ = ["OpKind"]
