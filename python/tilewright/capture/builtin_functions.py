"""Built-in functions of Python that have a meaning on tiles, and those of `operator`."""

from __future__ import annotations

import ast
import dataclasses
import functools
import math
import operator
import typing
from collections.abc import Callable, Iterator
from typing import Any

from .. import tile as ct
from ..dtype import DType, bool_, float32, int32
from ..errors import TileError, TileTypeError, TileValueError
from . import ops, records, texts
from .frame import Frame
from .operators import BINARY, COMPARE, binary, compare_pair
from .values import Array, Format, Range, Selection, Tile, describe, is_run_time

Builtin = Callable[..., Any]


def call_builtin(frame: Frame, builtin: Builtin, function: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
    try:
        return builtin(frame, *args, **keywords)
    except TileError:
        raise
    except TypeError as error:
        raise TileTypeError(f"{function.__name__}: {error}") from None
    except (ValueError, ArithmeticError) as error:
        raise TileValueError(f"{function.__name__}: {error}") from None


def _range(frame: Frame, *bounds: Any) -> Range:
    if not 1 <= len(bounds) <= 3:
        raise TileTypeError(f"range takes one to three values, found {len(bounds)}")
    for bound in bounds:
        if not (type(bound) is int or isinstance(bound, Tile)):
            extent = "; an extent is x.shape[axis]" if isinstance(bound, Array) else ""
            raise TileTypeError(f"a bound of range must be an integer, found {describe(bound)}{extent}")
    start, stop = (0, bounds[0]) if len(bounds) == 1 else bounds[:2]
    return Range(start, stop, bounds[2] if len(bounds) == 3 else 1)


def _len(frame: Frame, value: Any) -> int:
    if isinstance(value, Tile | Array | Format | Range) or not hasattr(value, "__len__"):
        hint = "; its extent is x.shape[0]" if isinstance(value, Tile | Array) else ""
        raise TileTypeError(f"len needs a tuple, found {describe(value)}{hint}")
    return len(value)


def _extremum(name: str, plain: Builtin) -> Builtin:
    def choose(frame: Frame, *args: Any, **keywords: Any) -> Any:
        values = args[0] if len(args) == 1 and isinstance(args[0], tuple) else args
        if not is_run_time(tuple(values)):
            return plain(*args, **keywords)
        if keywords or not values or any(isinstance(v, Array) for v in values):
            raise TileTypeError(f"{plain.__name__} of run-time values takes only scalars and tiles")
        if len(args) == 1 and isinstance(args[0], Tile):
            raise TileTypeError(f"{plain.__name__} of one tile: use ct.{plain.__name__}(x)")
        result = values[0]
        for value in values[1:]:
            result = frame.emit.binary(name, result, value)
        return result

    return choose


def _abs(frame: Frame, value: Any) -> Any:
    return ops.OPS["abs"](frame, value)


def _to_number(plain: type, dtype: DType) -> Builtin:
    def convert(frame: Frame, value: Any = 0) -> Any:
        if not isinstance(value, Tile):
            if isinstance(value, Array):
                raise TileTypeError(f"{plain.__name__} needs a scalar, found {describe(value)}")
            return plain(value)
        if value.shape:
            raise TileTypeError(
                f"{plain.__name__} needs a scalar, found {describe(value)}; convert a tile by x.astype(ct.{dtype})"
            )
        if type(value.known) in (int, float):
            return plain(value.known)
        if plain is int and value.dtype.is_integral:
            return value
        return frame.emit.cast(value, dtype)

    return convert


def _print(frame: Frame, *args: Any, **keywords: Any) -> None:
    unknown = keywords.keys() - {"sep", "end"}
    if unknown:
        raise TileTypeError(f"print in {frame.capture.rules.code} takes no '{min(unknown)}'; it takes sep and end")
    ops.OPS["print"](frame, *args, **{"sep": " ", "end": "\n", **keywords})


def _isinstance(frame: Frame, value: Any, kinds: Any) -> bool:
    """Run-time scalars are tiles without axes, and lists are tuples, as they are for the reference."""
    asked = tuple(_kinds(kinds))
    if isinstance(value, Selection):
        value = value.choices[0]
    if isinstance(value, Tile):
        return ct.Tile in asked or (ct.Scalar in asked and not value.shape)
    if isinstance(value, Array | Format):
        return (ct.Array if isinstance(value, Array) else str) in asked
    return isinstance(value, tuple(kind for kind in asked if kind != ct.Scalar)) or (
        ct.Scalar in asked and isinstance(value, bool | int | float)
    )


def _kinds(kinds: Any) -> Iterator[Any]:
    for kind in kinds if isinstance(kinds, tuple) else typing.get_args(kinds) or (kinds,):
        yield from _kinds(kind) if isinstance(kind, tuple) else (list, tuple) if kind in (list, tuple) else (kind,)


def _pow(frame: Frame, x: Any, y: Any, modulus: Any = None) -> Any:
    if modulus is not None:
        raise TileTypeError("pow takes two values in tile code; write x**y % modulus")
    return frame.emit.binary("pow", x, y)


BUILTINS: dict[Any, Builtin] = {
    range: _range,
    len: _len,
    min: _extremum("minimum", min),
    max: _extremum("maximum", max),
    abs: _abs,
    int: _to_number(int, int32),
    float: _to_number(float, float32),
    bool: _to_number(bool, bool_),
    print: _print,
    isinstance: _isinstance,
    str: lambda frame, value="": texts.text_of(frame, value),
    repr: texts.repr_of,
    format: texts.formatted,
    pow: _pow,
    divmod: ops.OPS["divmod"],
    type: records.type_of,
    dataclasses.replace: records.replace,
    math.prod: lambda frame, values, *, start=1: _product(frame, values, start),
    sum: lambda frame, values, start=0: _sum(frame, values, start),
}


def _compare_by_function(kind: ast.cmpop, frame: Frame, x: Any, y: Any) -> Any:
    return compare_pair(frame, kind, x, y)


def _operator_functions() -> Iterator[tuple[Any, Builtin]]:
    """operator.add and its like, which are the operators."""
    of_node = {"Mult": "mul", "Div": "truediv", "MatMult": "matmul", "BitAnd": "and_", "BitOr": "or_", "BitXor": "xor"}
    of_node |= {"NotEq": "ne", "LtE": "le", "GtE": "ge"}
    for node, name in BINARY.items():
        function = getattr(operator, of_node.get(node, node.lower()))
        yield function, lambda frame, x, y, name=name: binary(frame, name, x, y, frame.node)
    for node in COMPARE:
        function, kind = getattr(operator, of_node.get(node, node.lower())), getattr(ast, node)()
        yield function, functools.partial(_compare_by_function, kind)
    yield operator.neg, lambda frame, x: ops.OPS["negative"](frame, x)


BUILTINS.update(_operator_functions())


def _sum(frame: Frame, values: Any, start: Any) -> Any:
    if not isinstance(values, tuple):
        adds = "use a loop over the elements" if frame.capture.rules.simt else "ct.sum adds up a tile"
        raise TileTypeError(f"sum needs a tuple, found {describe(values)}; {adds}")
    for value in values:
        start = frame.emit.binary("add", start, value)
    return start


def _product(frame: Frame, values: Any, start: Any) -> Any:
    if not isinstance(values, tuple):
        raise TileTypeError(f"math.prod needs a tuple, found {describe(values)}")
    for value in values:
        start = frame.emit.binary("mul", start, value)
    return start
