"""Values: what a name can stand for while a kernel is captured.

A value known at compile time is the Python object itself: a number (a loosely typed constant), a
string, a dtype, a tuple, a function, a module. What is known only when the kernel runs is one of
the classes below. A tuple may hold both.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import types
from collections.abc import Mapping
from typing import Any

from ..dtype import DType, constant_dtype, int32, number_text
from ..errors import Place, TileTypeError
from ..structure import is_namespace, is_record, names_in, parts_of

Shape = tuple[int, ...]


@dataclasses.dataclass(slots=True, eq=False)
class Tile:
    """A tile, or with shape () a scalar; `ir` is its value in the IR."""

    ir: Any
    dtype: DType
    shape: Shape
    known: Any = None  # of the variable of a loop that is unrolled, and of a scalar of NumPy: its value
    loose: bool = (
        False  # a number of Python known at run time only, in device code: it takes the dtype of what it meets
    )

    least: int | None = None  # an integer is never below it

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __bool__(self) -> bool:  # a guard against mistakes in this package
        raise TypeError("a run-time value has no truth at compile time")


@dataclasses.dataclass(slots=True, eq=False)
class Array:
    """An array argument, or a part of one. `position` counts the kernel's parameters.

    `windows` has for each axis that is sliced where the part begins, and how many elements it has: a constant, or an
    int64 scalar. `unit` is an axis along which neighbours lie side by side. `extents` and `strides` are those, by axis,
    that are constants. `laid` is of an array that `from_foreign` has made.
    """

    ir: Any
    dtype: DType
    ndim: int
    name: str
    position: int
    index_dtype: DType = int32  # of its extents
    unit: int | None = None
    windows: dict[int, tuple[Any, Any]] = dataclasses.field(default_factory=dict)
    extents: Mapping[int, int] = dataclasses.field(default_factory=dict)
    strides: Mapping[int, int] = dataclasses.field(default_factory=dict)
    laid: Laid | None = None
    rows: bool = False  # it lies in row-major order if the argument does

    @property
    def is_part(self) -> bool:
        """Whether its indices are others than those of the argument."""
        return bool(self.windows) or self.laid is not None


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Laid:
    """Extents and strides, ints or integer scalars, over the memory of an array, from that one's first element on."""

    array: Array
    extents: tuple[Any, ...]
    strides: tuple[Any, ...]


@dataclasses.dataclass(slots=True, eq=False)
class Selection:
    """One of several arrays or views of one kind; `index`, an int32 scalar, says which (selection.py)."""

    choices: tuple[Any, ...]
    index: Tile


@dataclasses.dataclass(slots=True, eq=False)
class Method:
    """`receiver.name`, about to be called."""

    receiver: Any
    name: str


@dataclasses.dataclass(slots=True, eq=False)
class Range:
    """What `range(...)` gives in the head of a loop."""

    start: Any
    stop: Any
    step: Any


@dataclasses.dataclass(slots=True, eq=False)
class Format:
    """An f-string with run-time values: text, and values with their conversions, or None."""

    parts: tuple[str | tuple[Any, Any], ...]


@dataclasses.dataclass(slots=True, eq=False)
class LocalFunction:
    """A function defined inside of the kernel; its free names are the frame's."""

    node: Any
    frame: Any
    defaults: tuple[Any, ...]
    keyword_defaults: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.node.name)


def lambda_as_function(node: ast.Lambda) -> ast.FunctionDef:
    """A lambda as the function that returns its expression; the same object each time, so that it can be told again."""
    known: ast.FunctionDef | None = getattr(node, "_tw_function", None)
    if known is None:
        body = ast.copy_location(ast.Return(node.body), node.body)
        made = ast.copy_location(ast.FunctionDef("<lambda>", node.args, [body], [], None, None), node)
        known = node.__dict__.setdefault("_tw_function", made)
    return known


class Unusable:
    """Stands for a variable that has no value here, and says why if somebody reads it."""

    __slots__ = ("message", "places")

    def __init__(self, message: str, *places: Place) -> None:
        self.message = message
        self.places = places


def tile_type(dtype: DType, shape: Shape) -> str:
    """The type's text in the IR."""
    if not shape:
        return dtype.mlir
    return f"tensor<{'x'.join(map(str, shape))}x{dtype.mlir}>"


def is_number(value: Any) -> bool:
    """Whether a value is a loosely typed constant. NumPy's scalars are not: they are typed."""
    kind = type(value)
    return kind is int or kind is float or kind is bool


def is_numpy_scalar(value: Any) -> bool:
    return _is_generic(type(value))  # type: ignore[arg-type]


def is_numpy_array(value: Any) -> bool:
    return type(value).__module__ == "numpy" and type(value).__name__ == "ndarray"


def is_of_device(value: Any) -> bool:
    """Whether a value is an array of a device: ours, or one of any library with the CUDA Array Interface."""
    return hasattr(type(value), "__cuda_array_interface__")


@functools.lru_cache(maxsize=1024)
def _is_generic(kind: type) -> bool:
    return any(c.__module__ == "numpy" and c.__name__ == "generic" for c in kind.__mro__)


def is_run_time(value: Any) -> bool:
    """Whether a value, or an entry of a tuple, is known only when the kernel runs."""
    if isinstance(value, Tile | Array | Selection | Format):
        return True
    parts = parts_of(value)
    return parts is not None and any(is_run_time(v) for v in parts)


def is_record_type(value: Any) -> bool:
    """Whether a value is a class whose objects are records: a dataclass, or a named tuple."""
    return isinstance(value, type) and (
        dataclasses.is_dataclass(value) or (issubclass(value, tuple) and hasattr(value, "_fields"))
    )


def same_form(a: Any, b: Any) -> bool:
    """Whether two values are tuples, dicts, records or namespaces of one type with as many parts of the same names."""
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple):
        return len(a) == len(b)
    if is_namespace(a):
        return names_in(a) == names_in(b)
    return list(a) == list(b) if isinstance(a, dict) else is_record(a)


MOST_TEXT = 60  # characters of a value that a message shows


def describe(value: Any) -> str:
    """What a value is, in the words of an error message."""
    if isinstance(value, Tile):
        if not value.shape:
            return f"a run-time {value.dtype} scalar"
        return f"{'an' if value.dtype.name.startswith('int') else 'a'} {value.dtype} tile of shape {value.shape}"
    if isinstance(value, Array):
        return f"the {value.ndim}-D {value.dtype} array '{value.name}'"
    if isinstance(value, Selection):
        return f"one of: {', '.join(map(describe, value.choices))}"
    if isinstance(value, bool | int | float) and is_number(value):
        return f"the constant {number_text(value)}"
    if isinstance(value, tuple):
        return f"({', '.join(describe(v) for v in value)}{',' if len(value) == 1 else ''})"
    if isinstance(value, dict) and any(map(is_run_time, value.values())):
        return f"{{{', '.join(f'{key!r}: {describe(entry)}' for key, entry in value.items())}}}"
    if is_namespace(value):
        return f"a namespace of {', '.join(names_in(value)) or 'nothing'}"
    if hasattr(type(value), "__tw_tree__"):
        return f"{'an' if type(value).__name__.startswith('int') else 'a'} {type(value).__name__}"
    if isinstance(value, DType):
        return f"the dtype {value}"
    if isinstance(value, Method):
        return f"the method '{value.name}'"
    if isinstance(value, Format):
        return "text with run-time values"
    if isinstance(value, Range):
        return "a range"
    if isinstance(value, types.ModuleType):
        return f"the module '{value.__name__}'"
    if isinstance(value, types.FunctionType | LocalFunction) or hasattr(value, "__tw_op__"):
        return f"the function '{getattr(value, '__name__', None) or value.name}'"
    text = repr(value)
    return f"{text if len(text) <= MOST_TEXT else text[:MOST_TEXT] + '…'} ({type(value).__name__})"


def type_name(value: Any) -> str:
    """The type of a value, for a message about a variable that changes its type."""
    if isinstance(value, Tile):
        return f"{value.dtype} scalar" if not value.shape else f"{value.dtype} tile {value.shape}"
    if isinstance(value, bool | int | float) and is_number(value):
        return f"{constant_dtype(value)} scalar"
    if isinstance(value, tuple):
        return f"tuple ({', '.join(type_name(v) for v in value)})"
    return describe(value)


def require_tile_or_number(value: Any, what: str) -> Any:
    if isinstance(value, Tile) or is_number(value):
        return value
    if isinstance(value, Array):
        raise TileTypeError(
            f"{what} needs a tile or a number, found {describe(value)}; load a tile of it first, "
            "with ct.load or ct.gather"
        )
    raise TileTypeError(f"{what} needs a tile or a number, found {describe(value)}{_made(value, what)}")


def _made(value: Any, what: str) -> str:
    """What makes an operand of a value, as the end of a sentence."""
    if isinstance(value, str):
        return "; an f-string makes text of values, as in f'{x}'" if what == "ct.mod" else ""
    if value is None:
        return "; a function without 'return', as ct.store, gives None"
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return "; ct.arange, ct.full and ct.astile make tiles, or pass the array to the kernel and load it"
    of_constants = isinstance(value, tuple) and not is_run_time(value)
    return "; ct.astile makes a tile of constants" if of_constants else ""
