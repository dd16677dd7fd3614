"""Kernel: the way into the capture. A kernel's function and the facts about its arguments become a
module of the tile dialect.

    arguments = [ArrayArgument(float32, strides=((0, 1), (1, 1)), …), ScalarArgument(int32), …]
    captured = capture(function, arguments, target="sm_90a")
    print(captured.module.text())
"""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import types
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from .. import _core, collector, hints, link
from ..dtype import DType, int32
from ..errors import TileError, TileTypeError, TileValueError
from ..structure import (
    UNMARKED,
    Marks,
    assembled,
    check_scalar_annotation,
    marks_of_parts,
    parameter_marks,
    parameters_of,
    places_of,
)
from .frame import Capture, Frame, numpy_scalar
from .rules import TILE, Rules
from .simt import constants
from .source import Source, definition_place, source_of
from .statements import run_body
from .values import Array, Tile, is_numpy_scalar


@dataclasses.dataclass(frozen=True, slots=True)
class ArrayArgument:
    """An array, by what is known of it at compile time.

    align:      bytes that divide the address
    shape_div:  for each axis a number that divides the extent
    strides:    for each axis (1, 1) where the stride is 1, else (0, a number that divides it)
    tma:        a tensor map can describe it: copies may go through the tensor memory accelerator
    extents, known_strides: by axis, those that an annotation makes constants
    anywhere:   its address may be in any memory
    """

    dtype: DType
    ndim: int
    align: int = 1
    shape_div: tuple[int, ...] = ()
    strides: tuple[tuple[int, int], ...] = ()
    writable: bool = True
    tma: bool = False
    extents: Mapping[int, int] = dataclasses.field(default_factory=dict)
    known_strides: Mapping[int, int] = dataclasses.field(default_factory=dict)
    anywhere: bool = False

    def type(self) -> str:
        extents = "?x" * self.ndim
        if not self.ndim:
            return f"memref<{self.dtype.mlir}{', 6' if self.anywhere else ''}>"
        strides = ", ".join("1" if is_one else "?" for is_one, _ in self.strides)
        return f"memref<{extents}{self.dtype.mlir}, strided<[{strides}]>>"

    def facts(self) -> str:
        align = f"tile.align = {self.align} : i32"
        if not self.ndim:
            return align
        shape = ", ".join(str(n) for n in self.shape_div)
        strides = ", ".join(str(n) for _, n in self.strides)
        tma = ", tile.tma" if self.tma else ""
        return f"{align}, tile.shape_div = array<i64: {shape}>, tile.stride_div = array<i64: {strides}>{tma}"


@dataclasses.dataclass(frozen=True, slots=True)
class ScalarArgument:
    """A run-time scalar; an integer that `divisor` divides. `loose`: a number of Python (values.Tile)."""

    dtype: DType
    divisor: int = 1
    loose: bool = False

    def type(self) -> str:
        return self.dtype.mlir

    def facts(self) -> str:
        return f"tile.div = {self.divisor} : i32" if self.divisor > 1 else ""


@dataclasses.dataclass(frozen=True, slots=True)
class ConstantArgument:
    """A value known at compile time; no parameter of the compiled kernel."""

    value: Any


@dataclasses.dataclass(frozen=True, slots=True)
class StructureArgument:
    """An argument that holds others (structure.py)."""

    kind: str
    like: Any
    parts: tuple[Argument, ...]


Argument = ArrayArgument | ScalarArgument | ConstantArgument | StructureArgument


def leaves(arguments: Iterable[Argument]) -> Iterator[ArrayArgument | ScalarArgument | ConstantArgument]:
    for argument in arguments:
        if isinstance(argument, StructureArgument):
            yield from leaves(argument.parts)
        else:
            yield argument


@dataclasses.dataclass(slots=True)
class Captured:
    """What a capture gives.

    module:  in the tile dialect
    written: bit i is set where leaf i of the arguments is an array that the kernel stores to
    reads:   (holder, name, value) of each variable from outside and attribute that was looked at (Capture.note_read)
    of_grid: whether it asks for the grid's threads as a group
    """

    module: Any
    written: int
    reads: list[tuple[Any, str | None, Any]]
    of_grid: bool = False


def capture(
    function: types.FunctionType,
    arguments: Sequence[Argument],
    target: str,
    wanted: Mapping[str, hints.Value] | None = None,
    rules: Rules = TILE,
    name: str | None = None,
    extra: int = 0,
    links: Iterable[str] = (),
    held: Sequence[tuple[Any, str]] = (),
    rows: Container[int] = (),
) -> Captured:
    """Capture `function` as a kernel for `target` under the rules of its language; `wanted` are hints.

    `name` is its symbol's if not the function's own. The last `extra` arguments are none of the function's: a pass
    uses them; before these stand the arrays in variables from outside, `held` as (holder, name). `rows` are leaves
    whose elements lie in row-major order. `links` are files that it is linked with, beside those of the functions that
    it calls."""
    capturing = Capturing(function, arguments, target, rules, extra=extra, held=held)
    capturing.state.rows = rows
    capturing.state.checked = bool((wanted or {}).get("check"))
    capturing.state.links.update(dict.fromkeys(links))
    capturing.body()
    capturing.builder.op("func.return", [], None, [])
    return capturing.module(name or function.__name__, wanted or {})


class Capturing:
    """A function on its way to a module: its body, what ends it, and what is said of it."""

    def __init__(
        self,
        function: types.FunctionType,
        arguments: Sequence[Argument],
        target: str,
        rules: Rules,
        is_kernel: bool = True,
        extra: int = 0,
        held: Sequence[tuple[Any, str]] = (),
    ) -> None:
        self.source = source_of(function)
        names = _parameters(self.source, arguments[: len(arguments) - extra - len(held)])
        self.builder = _core.Builder(self.source.file)
        self.builder.set("tile.target", target)
        self.state = Capture(self.builder, rules, target)
        self.state.active.append(function.__code__)
        self.run_time = [a for a in leaves(arguments) if not isinstance(a, ConstantArgument)]
        self.block = self.builder.block([a.type() for a in self.run_time])
        self.builder.enter(self.block)
        self.frame = Frame(self.state, self.source, {}, is_kernel=is_kernel)
        binding = _Binding(self.frame, iter(self.block.args))
        binding.bind(names, arguments[: len(names)])
        self.state.held = binding.held(held, arguments[len(names) :])

    def body(self) -> Frame:
        with _deep_stack(), collector.paused():
            run_body(self.frame, self.source.tree.body)
        self.frame.at(self.source.tree)
        return self.frame

    def module(
        self,
        name: str,
        wanted: Mapping[str, hints.Value],
        results: str = "()",
        more: Mapping[str, Any] | None = None,
        simt: bool | None = None,
    ) -> Captured:
        self.builder.leave()
        is_simt = self.state.rules.simt if simt is None else simt
        attributes = _attributes(self.builder, name, self.run_time, results, is_simt, wanted) | dict(more or {})
        self.builder.op("func.func", [], attributes, [], [self.block])
        hints.check_tiles(name, wanted, self.state.tiles)
        if self.state.links:
            self.builder.set("tile.links", link.described(self.state.links))
        module = self.builder.finish()
        module.verify()
        written = sum(1 << i for i in self.state.written if i >= 0)
        return Captured(module, written, list(self.state.reads.values()), self.state.of_grid)


@contextlib.contextmanager
def _deep_stack() -> Iterator[None]:
    """Room for functions that call themselves: each call takes some twenty of Python's frames."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, 10_000))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def _parameters(source: Source, arguments: Sequence[Argument]) -> list[str]:
    code = source.function.__code__
    flags_of_stars = 0x04 | 0x08  # CO_VARARGS, CO_VARKEYWORDS
    if code.co_flags & flags_of_stars:
        raise TileTypeError(
            f"the kernel '{source.name}' has '*' or '**' parameters; expected plain ones",
            [definition_place(source.function)],
        )
    names = list(parameters_of(source.function))
    if len(names) != len(arguments):
        raise TileTypeError(
            f"the kernel '{source.name}' takes {len(names)} arguments ({', '.join(names)}), found {len(arguments)}",
            [definition_place(source.function)],
        )
    return names


class _Binding:
    """The values of parameters: leaves from the values of the block, in the order of a launch, and what holds them."""

    def __init__(self, frame: Frame, values: Iterator[Any]) -> None:
        self.frame, self.values = frame, values
        self.position = 0  # of the next leaf

    def bind(self, names: Sequence[str], arguments: Sequence[Argument]) -> None:
        marks = parameter_marks(self.frame.source.function)
        for name, argument in zip(names, arguments, strict=True):
            self.frame.env[name] = self._value(name, argument, marks.get(name, UNMARKED))
        if self.frame.capture.rules.simt:
            constants.check(self.frame, self.frame.source.function, self.frame.env)

    def held(self, variables: Sequence[tuple[Any, str]], arguments: Sequence[Argument]) -> dict[tuple[int, str], Any]:
        rows = zip(variables, arguments, strict=False)
        return {(id(holder), name): self._value(name, argument, UNMARKED) for (holder, name), argument in rows}

    def _value(self, name: str, argument: Argument, marks: Marks) -> Any:
        marks.check(name)
        if isinstance(argument, StructureArgument):
            kind, like, parts = argument.kind, argument.like, argument.parts
            marked = marks_of_parts(kind, like, marks, len(parts))
            if kind == "list" and marks.each is not None:
                _check_alike(name, parts, marks.each)
            rows = zip(places_of(kind, like, len(parts)), parts, marked, strict=True)
            return assembled(kind, like, [self._value(name + place, part, inner) for place, part, inner in rows])
        self.position += 1
        if isinstance(argument, ArrayArgument):
            unit = next((d for d, (is_one, _) in enumerate(argument.strides) if is_one), None)
            array = Array(next(self.values), argument.dtype, argument.ndim, name, self.position - 1)
            array.index_dtype, array.unit = marks.index_dtype or int32, unit
            array.extents, array.strides = argument.extents, argument.known_strides
            array.rows = True
            return array
        if isinstance(argument, ScalarArgument):
            return self._scalar(name, argument, marks.index_dtype)
        if is_numpy_scalar(argument.value):
            return numpy_scalar(self.frame.emit, argument.value)
        return self.frame.adopt(argument.value)

    def _scalar(self, name: str, argument: ScalarArgument, wanted: DType | None) -> Tile:
        value = Tile(next(self.values), argument.dtype, (), None, argument.loose)
        if wanted is None:
            return value
        check_scalar_annotation(name, argument.dtype, wanted)
        return self.frame.emit.cast(value, wanted)


def _check_alike(name: str, parts: Sequence[Argument], marks: Marks) -> None:
    """Whether the arrays of a list agree in what its annotation makes constant: an element has one extent, wherever it
    stands."""
    arrays = [part for part in parts if isinstance(part, ArrayArgument)]
    for what, axes, known in (
        ("shape", marks.extents, [a.extents for a in arrays]),
        ("stride", marks.strides, [a.known_strides for a in arrays]),
    ):
        for axis in axes:
            found = sorted({of_array[axis] for of_array in known if axis in of_array})
            if len(found) > 1:
                raise TileValueError(
                    f"argument '{name}': its arrays vary in static {what} at axis {axis}, found {found[0]} and "
                    f"{found[1]}; pass arrays that agree there, or leave the axis out of the annotation"
                )


def _attributes(
    builder: Any, name: str, arguments: Sequence[Any], results: str, simt: bool, wanted: Mapping[str, hints.Value]
) -> dict[str, Any]:
    types_ = ", ".join(a.type() for a in arguments)
    facts = ", ".join(f"{{{a.facts()}}}" for a in arguments)
    attributes = {
        "sym_name": symbol(name),
        "function_type": builder.attribute(f"({types_}) -> {results}"),
        "tile.kernel": None,
    }
    if simt:
        attributes["tile.simt"] = None
    if wanted:
        attributes["tile.hints"] = builder.attribute(hints.attribute(wanted))
    if arguments:
        attributes["arg_attrs"] = builder.attribute(f"[{facts}]")
    return attributes


def symbol(name: str) -> str:
    """A kernel's name as a symbol that PTX and ELF accept."""
    return "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in name)


__all__ = [
    "Argument",
    "ArrayArgument",
    "Captured",
    "ConstantArgument",
    "ScalarArgument",
    "StructureArgument",
    "TileError",
    "capture",
    "symbol",
]
