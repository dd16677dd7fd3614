"""Reference execution: the Python body of a kernel runs, block after block, on NumPy tiles.

`run` starts it (kernel.interpret, or ct.launch under TILEWRIGHT_INTERPRET=1). Breakpoints in the
kernel work, and a tile shows its values in the debugger. It shares no code with the compiler,
so that tests hold the compiler against it; results are rounded as exactly as NumPy lets us:

- + - * / of a format round once, to nearest even; 16-bit floats compute in float32 and round.
- exp and its like, sums and products compute in float64 and round once.
- Integers wrap. Where the language leaves a value open, nothing is raised.
- Elements that a load with PaddingMode.UNDETERMINED finds outside the array are poison: NaN, or
  the byte 0xA5 repeated. A kernel that lets them through shows it here.

Python numbers in the body are the loosely typed constants. `range` gives int32 scalars, as in
compiled code, and `min` and `max` accept tiles: `Rebinder` puts these in place of the built-ins in
the kernel and in the Python functions that it calls by a plain name.
"""

from __future__ import annotations

import contextvars
import dataclasses
import enum
import linecache
import math
import operator
import os
import sys
import traceback
import types
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from . import dtype as dt
from . import structure
from .dtype import DType
from .errors import (
    Place,
    StaticException,
    TileCheckError,
    TileError,
    TileStaticAssertionError,
    TileTypeError,
    TileValueError,
)
from .findings import Finding, Position, error_of
from .formats import printf_parts
from .reference import (
    atomics,  # noqa: F401 - declares its operations
    elementwise,
    memory,  # noqa: F401 - declares its operations
    reductions,
    regions,
    shapes,
    views,
)
from .reference import table as reference_table
from .reference.checks import check_axis, check_order, check_tile_shape, static_int
from .reference.printing import show_by_c
from .reference.rebind import Rebinder
from .reference.values import (
    Array,
    Shape,
    Tile,
    add_operators,
    as_array,
    as_tile,
    constant,
    convert,
    int32_scalar,
    is_number,
)
from .shape_rules import check_divisor, dimensions

_GRID_LIMIT = (2**31 - 1, 65535, 65535)

# ---------------------------------------------------------------------------------------------
# Position, checks, output


class _Block:
    """Where the running block stands in the grid."""

    def __init__(self, index: Shape, grid: Shape) -> None:
        self.index = index
        self.grid = grid


_block: contextvars.ContextVar[_Block | None] = contextvars.ContextVar("block", default=None)


def active() -> bool:
    """Whether tile code is running, so that ct.* operations execute."""
    return _block.get() is not None


def _grid_entry(values: Shape, axis: Any, what: str) -> Tile:
    number = static_int(axis, f"{what}: axis")
    if not 0 <= number <= 2:
        raise TileValueError(f"{what}: axis is 0, 1 or 2, found {number}")
    return int32_scalar(values[number])


def _current() -> _Block:
    block = _block.get()
    if block is None:
        raise TileError("no kernel is running")
    return block


def _num_tiles(array: Any, axis: Any, shape: Any, order: Any) -> Tile:
    array = as_array(array, "ct.num_tiles")
    tile_shape = check_tile_shape(shape, "ct.num_tiles: shape") or (1,) * array.ndim
    if len(tile_shape) != array.ndim:
        raise TileValueError(f"ct.num_tiles: the array has {array.ndim} dimensions, the tile {len(tile_shape)}")
    k = check_axis(axis, array.ndim, "ct.num_tiles")
    length = array._data.shape[check_order(order, array.ndim, "ct.num_tiles")[k]]
    return int32_scalar(-(-length // tile_shape[k]))


def _static_assert(condition: Any, message: Any) -> None:
    if not condition:  # a constant, as the front end has seen
        raise TileStaticAssertionError(f"static assertion failed{': ' + message if message else ''}")


def _static_exception(exception: Any) -> StaticException:
    return StaticException(f"{type(exception).__name__}: {exception}")


def _assert(condition: Any, message: Any) -> None:
    holds = as_tile(condition, "ct.assert_")
    if not isinstance(message, str | None):
        raise TileTypeError(f"ct.assert_ needs a constant message, found {message!r}")
    if not holds.dtype.is_bool:
        raise TileTypeError(f"ct.assert_ needs a bool_ condition, found {holds.dtype}; compare, as in x != 0")
    assert bool(holds._data.all()), message or "ct.assert_ failed"


def _assume_divisible_by(x: Any, divisor: Any) -> Any:
    check_divisor(divisor, x if type(x) is int else None)
    if type(x) is int:
        return x
    scalar = as_tile(x, "ct.assume_divisible_by")
    if scalar.ndim or not scalar.dtype.is_integral:
        raise TileTypeError(
            f"ct.assume_divisible_by needs an integer scalar, found {scalar.dtype} of shape {scalar.shape}"
        )
    if int(scalar) % divisor:
        raise error_of("", [Finding("not divisible", value=int(scalar), text=str(divisor))])
    return scalar


def _ensure_constant(value: Any) -> Any:
    if isinstance(value, Tile):
        raise TileStaticAssertionError("ct.ensure_constant: this value is known at run time only")
    return value


def _print(args: tuple[Any, ...], sep: str, end: str) -> None:
    print(*args, sep=sep, end=end)


def _printf(format: Any, args: tuple[Any, ...]) -> None:
    if not isinstance(format, str):
        raise TileTypeError(f"ct.printf needs a constant format string, found {format!r}")
    rest, text = list(args), ""
    for part in printf_parts(format):
        if isinstance(part, str):
            text += part
            continue
        if not rest:
            raise TileTypeError(f"ct.printf: too few values for {format!r}")
        text += show_by_c(rest.pop(0), part)
    if rest:
        raise TileTypeError(f"ct.printf: too many values for {format!r}")
    sys.stdout.write(text)


# ---------------------------------------------------------------------------------------------
# The table of operations: arguments come in the order of the declaration in tile.py


def _named(run: Callable[..., Any], name: str) -> Callable[..., Any]:
    return lambda *args, **kwargs: run(name, *args, **kwargs)


def _table() -> dict[str, Callable[..., Any]]:
    arithmetic = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "minimum", "maximum")
    comparisons = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
    bits = tuple(n for n in elementwise.PYTHON_BINARY if n.startswith("bitwise_"))
    table: dict[str, Callable[..., Any]] = {
        **reference_table.OPS,
        "bid": lambda axis: _grid_entry(_current().index, axis, "ct.bid"),
        "num_blocks": lambda axis: _grid_entry(_current().grid, axis, "ct.num_blocks"),
        "num_tiles": _num_tiles,
        "zeros": lambda shape, dtype: shapes.full(shape, 0, dtype),
        "ones": lambda shape, dtype: shapes.full(shape, 1, dtype),
        "divmod": elementwise.divmod_of,
        "assert_": _assert,
        "static_assert": _static_assert,
        "static_eval": lambda value: value,
        "static_exception": _static_exception,
        "static_iter": tuple,
        "assume_divisible_by": _assume_divisible_by,
        "ensure_constant": _ensure_constant,
        "print": lambda *args, sep, end: _print(args, sep, end),
        "printf": lambda format, *args: _printf(format, args),
        "threads": lambda function, *args: regions.run(function, args, _current().index, _current().grid),
    }
    for names, run in (
        (arithmetic, elementwise.binary),
        (comparisons, elementwise.compare),
        (bits, elementwise.bitwise),
        (elementwise.FLOAT_FUNCTIONS, elementwise.float_function),
        (("sum", "prod", "max", "min"), reductions.reduce),
        (("argmax", "argmin"), reductions.arg_reduce),
        (("cumsum", "cumprod"), reductions.scan),
    ):
        table.update({name: _named(run, name) for name in names})
    return table


OPS = _table()
add_operators()
views.add_methods()

# ---------------------------------------------------------------------------------------------
# Running a kernel


def _check_grid(grid: Any) -> tuple[int, int, int]:
    values = tuple(grid) if isinstance(grid, tuple | list) else (grid,)
    if len(values) > 3:
        raise TileValueError(f"a grid has up to 3 dimensions, found {grid!r}")
    try:
        sizes = [operator.index(v) for v in values] + [1] * (3 - len(values))
    except TypeError:
        raise TileTypeError(f"the grid must be made of integers, found {grid!r}") from None
    for axis, (size, limit) in enumerate(zip(sizes, _GRID_LIMIT, strict=True)):
        if not 1 <= size <= limit:
            raise TileValueError(f"grid dimension {axis} is {size}; it must be 1 to {limit}")
    return sizes[0], sizes[1], sizes[2]


def _host_array(value: Any, name: str) -> tuple[np.ndarray, Callable[[], None] | None]:
    """A NumPy array that shares the argument's memory, or a copy with the way back."""
    if isinstance(value, np.ma.MaskedArray):
        raise NotImplementedError(
            f"argument {name!r}: it is a masked array, which is not supported; pass data and mask as two arrays"
        )
    if isinstance(value, np.ndarray):
        return value, None
    module = type(value).__module__.split(".")[0]
    if module == "torch":
        return _torch_array(value)
    if module == "cupy":
        copy = value.get()
        return copy, lambda: value.set(copy)
    try:
        return np.from_dlpack(value), None
    except Exception as error:
        raise TileTypeError(f"argument {name!r}: cannot be read as an array: {error}") from None


def _torch_array(value: Any) -> tuple[np.ndarray, Callable[[], None] | None]:
    host = value.detach().cpu()
    try:
        array = host.numpy()
    except TypeError:  # a format that NumPy lacks: look at its bits instead
        import ml_dtypes
        import torch

        bits = {1: torch.uint8, 2: torch.int16}[host.element_size()]
        format_ = getattr(ml_dtypes, str(host.dtype).removeprefix("torch."))
        array = host.view(bits).numpy().view(format_)
    same = host.data_ptr() == value.data_ptr()
    return array, None if same else lambda: value.copy_(host) and None


def _scalar_argument(value: Any, name: str) -> Any:
    if structure.is_constant_by_nature(value):
        return value
    if isinstance(value, enum.IntEnum):
        value = int(value)
    if isinstance(value, np.generic):
        return Tile(value, dt.as_dtype(value.dtype))
    if is_number(value):
        scalar = constant(value, dt.constant_dtype(value))
        if isinstance(value, float) and math.isinf(float(scalar)) and not math.isinf(value):
            raise TileValueError(
                f"argument {name!r}: the float {value!r} is beyond float32, as which a Python float is passed; "
                f"pass numpy.float64({value!r})"
            )
        return scalar
    raise TileTypeError(
        f"argument {name!r}: {type(value).__name__} cannot be passed to a kernel; "
        "expected an array, a number or a dtype (anything else can be a ct.Constant)"
    )


def _annotated(value: Any, name: str, wanted: DType | None) -> Any:
    if wanted is None or not isinstance(value, Tile):
        return value
    structure.check_scalar_annotation(name, value.dtype, wanted)
    return convert(value, wanted)


def _annotated_array(array: Array, marks: structure.Marks) -> Array:
    if max((*marks.extents, *marks.strides), default=-1) >= array.ndim:
        raise TileValueError(
            f"argument {array._name!r}: it has {dimensions(array.ndim)}, "
            "and its ct.ArrayAnnotation names an axis beyond"
        )
    array._constant, array._constant_strides = frozenset(marks.extents), frozenset(marks.strides)
    return array


def _memory_of(value: Any) -> np.ndarray | None:
    """The array that a launch takes what has a buffer for, as bytearray and array.array; None of others."""
    if isinstance(value, bytes | np.generic):
        return None
    try:
        return np.asarray(memoryview(value))
    except TypeError:
        return None


_MOST_LEVELS = 16  # of structures in structures


class _Arguments:
    """What a kernel is given for the arguments of a launch: arrays that share their memory, scalars, constants."""

    def __init__(self) -> None:
        self.finish: list[Callable[[], None]] = []  # ways back, of copies
        self.levels = 0  # of structures around the value that is looked at

    def bound(self, function: types.FunctionType, args: Sequence[Any]) -> list[Any]:
        names, defaults = structure.parameters_of(function), structure.defaults_of(function)
        if not len(names) - len(defaults) <= len(args) <= len(names):
            raise TileTypeError(
                f"{function.__name__} takes {len(names)} arguments ({', '.join(names)}), found {len(args)}"
            )
        missing = len(names) - len(args)
        filled = [*args, *defaults[len(defaults) - missing :]]
        marks = structure.parameter_marks(function)
        return [self._value(*row, marks.get(row[0], structure.UNMARKED)) for row in zip(names, filled, strict=True)]

    def _value(self, name: str, value: Any, marks: structure.Marks) -> Any:
        if marks.constant:
            return value
        found = structure.described(value)
        if found is not None:
            return self._structure(name, marks, *found)
        if isinstance(value, np.ndarray) or (not isinstance(value, np.generic) and structure.is_array(value)):
            array, back = _host_array(value, name)
            if back is not None:
                self.finish.append(back)
            return _annotated_array(Array(array, name, marks.index_dtype or dt.int32), marks)
        if (buffer := _memory_of(value)) is not None:
            return _annotated_array(Array(buffer, name, marks.index_dtype or dt.int32), marks)
        return _annotated(_scalar_argument(value, name), name, marks.index_dtype)

    def _structure(self, name: str, marks: structure.Marks, kind: str, like: Any, parts: list[Any]) -> Any:
        if self.levels == _MOST_LEVELS:
            raise TileTypeError(f"argument {name!r}: it is nested deeper than {_MOST_LEVELS} levels")
        if marks.parts is not None and len(marks.parts) != len(parts):
            raise TileTypeError(
                f"argument {name!r}: it holds {len(parts)} values, and is annotated as a tuple of {len(marks.parts)}"
            )
        marked = structure.marks_of_parts(kind, like, marks, len(parts))
        rows = zip(structure.places_of(kind, like, len(parts)), parts, marked, strict=True)
        self.levels += 1
        held = [self._value(name + place, part, inner) for place, part, inner in rows]
        self.levels -= 1
        return structure.assembled(kind, like, held)


def _told(kernel: str, error: TileCheckError, block: Position) -> TileCheckError:
    """What an operation has found, with the block and the line of the program."""
    package, place = os.path.dirname(__file__), cast(tuple[Place, ...], ())
    for frame, line in traceback.walk_tb(error.__traceback__):
        if not frame.f_code.co_filename.startswith(package):
            file = frame.f_code.co_filename
            text = linecache.getline(file, line)
            column = 1 + len(text) - len(text.lstrip())
            place = (Place(file, line, column, function=frame.f_code.co_name),)
    return error_of(kernel, [dataclasses.replace(f, block=block, places=place) for f in error.findings])


def run(
    function: types.FunctionType, grid: Any, args: Sequence[Any], accept: Callable[[], None] = lambda: None
) -> None:
    """Run the body of a kernel once for each block of `grid`, x fastest, on the arguments.

    `args` are what ct.launch takes: arrays (changed in place), numbers, dtypes, constants. `accept` raises an error
    for a kernel that is no tile code.
    """
    sizes = _check_grid(grid)
    arguments, problem = _Arguments(), None
    try:
        values = arguments.bound(function, args)
    except (TileError, NotImplementedError) as error:
        problem = error
    accept()  # what a launch refuses is told in its words
    if problem is not None:
        raise problem
    body, count = Rebinder().rebind(function), function.__code__.co_argcount
    plain, by_name = values[:count], dict(zip(structure.parameters_of(function)[count:], values[count:], strict=True))
    with np.errstate(all="ignore"):
        for block in range(math.prod(sizes)):
            rest, x = divmod(block, sizes[0])
            z, y = divmod(rest, sizes[1])
            token = _block.set(_Block((x, y, z), sizes))
            try:
                body(*plain, **by_name)
            except TileCheckError as error:
                told = _told(function.__name__, error, (x, y, z))
                raise told.with_traceback(error.__traceback__) from None
            except AssertionError as error:
                error.add_note(f"in block {(x, y, z)} of kernel {function.__name__}")
                raise
            finally:
                _block.reset(token)
    for back in arguments.finish:
        back()
