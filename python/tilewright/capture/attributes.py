"""Attributes and subscripts."""

from __future__ import annotations

import ast
import dataclasses
import difflib
import inspect
import types
from typing import Any

from .. import tile as ct
from ..dtype import constant_dtype
from ..errors import TileSyntaxError, TileTypeError, TileValueError
from ..names import ELSEWHERE, MODULES, OF_ARRAYS, THREADS, advice, module_advice, thread_advice
from ..views import ARRAY_METHODS, TiledView
from . import memory, ops, records, shapes, views
from .branches import each
from .expressions import evaluate, handles
from .frame import Frame
from .selection import are_alike, entry
from .simt import arrays as simt_arrays
from .simt import numbers as simt_numbers
from .simt.made_arrays import const_array
from .values import (
    Array,
    Format,
    LocalFunction,
    Method,
    Range,
    Selection,
    Tile,
    describe,
    is_number,
    is_numpy_array,
    is_run_time,
)


@handles(ast.Attribute)
def _attribute(frame: Frame, node: ast.Attribute) -> Any:
    if isinstance(node.value, ast.Name) and node.value.id in MODULES and not frame.knows(node.value.id):
        simt = frame.capture.rules.simt
        hint = "; import it" if simt else module_advice(node.value.id, node.attr, set(dir(ct)))
        raise TileSyntaxError(f"the name '{node.value.id}' is not defined{hint}", frame.places(node))
    value = evaluate(frame, node.value)
    frame.at(node)
    return attribute(frame, value, node.attr)


def attribute(frame: Frame, value: Any, name: str) -> Any:
    if hasattr(type(value), "__tw_attribute__"):
        return value.__tw_attribute__(frame, name)
    if frame.capture.rules.simt and isinstance(value, Tile):
        return simt_numbers.attribute(frame, value, name)
    if frame.capture.rules.simt and isinstance(value, Array):
        return simt_arrays.attribute(frame, value, name)
    if isinstance(value, Tile):
        return _tile_attribute(frame, value, name)
    if isinstance(value, Array):
        return _array_attribute(frame, value, name)
    if isinstance(value, Selection):
        return _attribute_of_chosen(frame, value, name)
    if is_number(value) and name in ("dtype", "shape", "ndim"):
        return {"dtype": constant_dtype(value), "shape": (), "ndim": 0}[name]
    if is_number(value) and name == "astype":
        return Method(value, name)
    if isinstance(value, Format | Range | Method | LocalFunction):
        raise TileTypeError(f"{describe(value)} has no attribute '{name}' in {frame.capture.rules.code}; it has none")
    if type(value) is tuple and is_run_time(value) and hasattr(value, name):
        return Method(value, name)
    if records.is_property(value, name):
        return records.get_property(frame, value, name)
    try:
        found = getattr(value, name)
    except AttributeError:
        if hasattr(type(value), "__tw_tree__"):
            known = ", ".join(field.name for field in dataclasses.fields(value))
            raise TileTypeError(f"{describe(value)} has no attribute '{name}'; it has {known}") from None
        raise TileTypeError(f"{_described(value)} has no attribute '{name}'{_near(frame, value, name)}") from None
    if isinstance(value, types.ModuleType):
        return frame.adopt(frame.capture.outer(vars(value), name, found))
    _note_attribute(frame, value, name, found)
    return frame.adopt(found)


def _attribute_of_chosen(frame: Frame, selection: Selection, name: str) -> Any:
    """Of one of several arrays or views: which one is decided when a method is called."""
    kind = type(selection.choices[0])
    if name in ARRAY_METHODS if kind is Array else callable(getattr(kind, name, None)):
        return Method(selection, name)
    return each(frame, selection, lambda choice: attribute(frame, choice, name))


_FEW = 20  # names that an error lists


def _described(value: Any) -> str:
    """A module of ours that stands for another by that one's name."""
    return f"the module '{value.__tw_name__}'" if hasattr(value, "__tw_name__") else describe(value)


def _near(frame: Frame, value: Any, name: str) -> str:
    """What may be meant by an attribute that a value does not have."""
    if type(value) is tuple and name not in (THREADS if frame.capture.rules.simt else ELSEWHERE):
        return "; a list is a tuple in a kernel, and np.asarray(values) makes an array of it"
    if frame.capture.rules.simt:
        known = [n for n in dir(value) if not n.startswith("_")]
        has = f"; it has {', '.join(known)}" if hasattr(value, "__tw_name__") and len(known) < _FEW else ""
        return thread_advice(name, known) or has
    if name in ("x", "y", "z") and (value is ct.bid or value is ct.num_blocks):
        return f"; write ct.{value.__name__}({'xyz'.index(name)})"
    if not isinstance(value, types.ModuleType):
        return advice(name, (n for n in dir(value) if not n.startswith("_")), "")
    is_ours = getattr(value, "kernel", None) is ct.kernel
    return advice(name, dir(value)) if is_ours else advice(name, dir(value), "")


def _note_attribute(frame: Frame, value: Any, name: str, found: Any) -> None:
    """Attributes of classes and objects can be set; not those of what Python, NumPy and this package have."""
    owner = value if isinstance(value, type) else type(value)
    origin = owner.__module__.partition(".")[0]
    fixed = origin in ("builtins", "numpy", "ml_dtypes", "enum", "tilewright")
    if not fixed and (
        type(found) in _COMPARED or getattr(value, name, None) is found
    ):  # what is made anew cannot be told
        frame.capture.note_read(value, name, found)


_COMPARED = (int, float, bool, str, bytes, tuple, list, dict, set)


def _tile_attribute(frame: Frame, value: Tile, name: str) -> Any:
    if name == "dtype":
        return value.dtype
    if name == "shape":
        return value.shape
    if name == "ndim":
        return len(value.shape)
    if name == "T":
        return ops.OPS["transpose"](frame, value, None, None)
    if name == "item" or name in ct.TILE_METHODS:
        return Method(value, name)
    known = ", ".join(("dtype", "shape", "ndim", "T", "item", *ct.TILE_METHODS))
    near = difflib.get_close_matches(name, ct.TILE_METHODS, n=1)
    meant = f"; did you mean {near[0]}?" if near else f"; it has {known}"
    instead = f"; write {ELSEWHERE[name]}" if name in ELSEWHERE else meant
    hint = f"; use ct.{name}(x)" if _is_function_of_tiles(name) else instead
    raise TileTypeError(f"a tile has no attribute '{name}'{hint}")


def _is_function_of_tiles(name: str) -> bool:
    return name in ct.OPS or (name in dir(ct) and isinstance(getattr(ct, name), types.FunctionType))


def _array_attribute(frame: Frame, value: Array, name: str) -> Any:
    if name == "dtype":
        return value.dtype
    if name == "ndim":
        return value.ndim
    if name == "shape":
        return tuple(_extent(frame, value, d) for d in range(value.ndim))
    if name == "strides":
        return tuple(_stride(frame, value, d) for d in range(value.ndim))
    if name in ARRAY_METHODS:
        return views.attribute(frame, value, name)
    if name == "foreign_pointer":
        return views.foreign_pointer(frame, value)
    near = difflib.get_close_matches(name, ct.ARRAY_ATTRIBUTES, n=1)
    known = f"did you mean {near[0]}?" if near else f"it has {', '.join(ct.ARRAY_ATTRIBUTES)}"
    if name in OF_ARRAYS:
        known = OF_ARRAYS[name]
    elif _is_function_of_tiles(name):
        takes_array = "array" in inspect.signature(getattr(ct, name)).parameters
        known = f"use ct.{name}" if takes_array else f"load a tile of it, and use ct.{name}"
    raise TileTypeError(f"an array has no attribute '{name}' in tile code; {known}")


def _extent(frame: Frame, array: Array, axis: int) -> Any:
    _, length = array.windows.get(axis, (None, array.extents.get(axis)))
    return length if isinstance(length, int) else frame.emit.cast(memory.extent(frame, array, axis), array.index_dtype)


def _stride(frame: Frame, array: Array, axis: int) -> Any:
    if axis in array.strides:
        return array.strides[axis]
    return memory.stride(frame, array, axis)


@handles(ast.Subscript)
def _subscript(frame: Frame, node: ast.Subscript) -> Any:
    value = evaluate(frame, node.value)
    index = index_of(frame, node.slice)
    frame.at(node)
    if isinstance(value, Tile) and not frame.capture.rules.simt:
        return shapes.new_axes(frame, value, index)
    return entry_of(frame, value, index)


def entry_of(frame: Frame, value: Any, index: Any) -> Any:
    """value[index] of what is no tile."""
    if isinstance(value, Selection):
        return each(frame, value, lambda choice: entry_of(frame, choice, index))
    if hasattr(value, "__tw_item__"):
        return value.__tw_item__(frame, index)
    if isinstance(index, str) and hasattr(type(value), "__tw_struct__") and index in type(value).__tw_struct__:
        return attribute(frame, value, index)
    if records.method_of(value, "__getitem__"):
        return records.call_method(frame, value, "__getitem__", [index], {})
    if isinstance(value, Array) and frame.capture.rules.simt:
        return simt_arrays.read(frame, value, index)
    if isinstance(value, Array):
        raise TileTypeError(
            f"the array '{value.name}' cannot be indexed; use ct.load for a tile, or ct.gather for single elements"
        )
    if isinstance(index, Tile) and isinstance(value, tuple) and index.known is not None:
        index = index.known
    if isinstance(index, Tile) and isinstance(value, tuple) and not index.shape and index.dtype.is_integral:
        return _run_time_entry(frame, value, index)
    if isinstance(value, TiledView):
        raise TileTypeError("a tiled view cannot be indexed; use view.load(index) and view.store(index, tile)")
    if frame.capture.rules.holds_arrays and is_run_time(index) and is_numpy_array(value):
        return simt_arrays.read(frame, const_array(frame, value, None), index)
    if isinstance(value, Tile):
        raise TileTypeError(f"{describe(value)} has no elements; an index takes those of an array or a tuple")
    if is_run_time(index) or (isinstance(index, slice) and is_run_time((index.start, index.stop, index.step))):
        raise TileTypeError(
            f"an index into {describe(value)} must be a constant; choose by 'if' and 'else', or ct.where"
        )
    try:
        return frame.adopt(value[index])
    except (TypeError, IndexError, KeyError) as error:
        told = str(error)
        if isinstance(error, IndexError) and isinstance(value, tuple):
            told = f"it has {len(value)} {'entry' if len(value) == 1 else 'entries'}"
        told = f"it has {', '.join(map(repr, value))}" if isinstance(value, dict) else told
        kind = TileValueError if isinstance(error, IndexError) else TileTypeError
        raise kind(f"{describe(value)} has no entry {index!r}; {told}") from None


def _run_time_entry(frame: Frame, values: tuple[Any, ...], index: Tile) -> Any:
    """An entry of a tuple, of arrays or of numbers, that the running kernel chooses."""
    number = frame.capture.rules.entry(frame.emit, values, index)
    if number is not None:
        return number
    if not are_alike(values) or any(isinstance(v, Selection) for v in values):
        raise TileTypeError(
            f"an index into {describe(values)} must be a constant; a run-time index chooses between arrays, or views, "
            "of one dtype and as many dimensions"
        )
    return entry(frame.emit, values, index)


def index_of(frame: Frame, node: ast.expr) -> Any:
    if isinstance(node, ast.Slice):
        parts = (node.lower, node.upper, node.step)
        return slice(*(None if part is None else evaluate(frame, part) for part in parts))
    if isinstance(node, ast.Tuple):
        return tuple(index_of(frame, part) for part in node.elts)
    return evaluate(frame, node)
