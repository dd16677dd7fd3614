"""Functions and kernels that C++ calls: their hints say what they take and give, and there is one of each name."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..device.targets import HOST_NAME
from ..dtype import DType, as_dtype
from ..errors import TileTypeError
from ..layout import Aligned
from .frame import Frame
from .inlining import returned_value
from .kernel import (
    Argument,
    ArrayArgument,
    Capturing,
    ConstantArgument,
    ScalarArgument,
    StructureArgument,
)
from .rules import DEVICE, Rules
from .simt import structs
from .simt.extern import signless
from .simt.struct_atomics import leaves_of
from .source import definition_place
from .values import Tile, describe


@dataclasses.dataclass(frozen=True)
class CEntry:
    """What is made: the types of the parameters, that of the result (None: nothing), and how they travel."""

    parameters: Sequence[Any]
    result: Any
    signature: str  # TW_C_SIGNATURE of lowering/c_values.h
    is_kernel: bool


def argument_of(t: Any) -> Argument:
    """A parameter of a type, of which nothing else is known."""
    t = t.type if isinstance(t, Aligned) else t
    if hasattr(t, "__tw_argument__"):
        made: Argument = t.__tw_argument__()
        return made
    if t is None or t is type(None):
        return ConstantArgument(None)
    if hasattr(t, "ndim") and isinstance(getattr(t, "dtype", None), DType) and not hasattr(t, "__tw_tree__"):
        return ArrayArgument(t.dtype, t.ndim, t.dtype.itemsize, (1,) * t.ndim, ((0, 1),) * t.ndim)
    if typing.get_origin(t) is tuple:
        return StructureArgument("tuple", tuple, tuple(map(argument_of, typing.get_args(t))))
    if hasattr(t, "__tw_tree__"):
        return StructureArgument("record", t, tuple(argument_of(kind) for kind in _types_of_fields(t)))
    return ScalarArgument(as_dtype(t), 1, t in (bool, int, float))


def _types_of_fields(kind: Any) -> list[Any]:
    hints = getattr(kind, "__tw_struct__", None)
    if hints is not None:
        return list(hints.values())
    return [kind.dtype] * kind.size if hasattr(kind, "size") else [float if kind.loose else kind.part] * 2


def capture_for_c(
    function: types.FunctionType,
    entry: CEntry,
    target: str,
    rules: Rules = DEVICE,
    convert: Callable[[Frame, Any, Any, str], Any] = structs.converted,
    name: str | None = None,
) -> Any:
    """The module of a function or kernel that C++ calls, for a GPU or for the host; `convert` makes the result."""
    capturing = Capturing(function, list(map(argument_of, entry.parameters)), target, rules, entry.is_kernel)
    builder, frame = capturing.builder, capturing.body()
    if target == HOST_NAME:
        builder.set("tile.target", "cpu")
    result = [] if entry.is_kernel else list(_result(frame, function, entry.result, convert))
    builder.op("func.return", [leaf.ir for leaf in result], None, [])
    more: dict[str, Any] = {"tile.c_signature": builder.attribute(entry.signature)}
    if not entry.is_kernel:
        more["tile.c_function"] = None
    types_ = ", ".join(leaf.dtype.mlir for leaf in result)
    return capturing.module(
        name or function.__name__, {"dependent_launch": 0}, f"({types_})", more, target != HOST_NAME
    ).module


def _result(frame: Frame, function: types.FunctionType, hint: Any, convert: Any) -> Iterator[Tile]:
    """The numbers of what a function returns, as its hint says."""
    name, place = function.__name__, [definition_place(function)]
    value = returned_value(frame, name)
    if hint is None:
        if value is not None:
            raise TileTypeError(
                f"{name} gives C++ {describe(value)}; say so with a hint, as in -> device.float32", place
            )
        return
    if value is None:
        raise TileTypeError(f"{name} returns nothing, but its hint promises C++ a value; return one", place)
    for leaf in leaves_of(convert(frame, value, hint, f"the result of {name}")):
        yield signless(frame, leaf)
