"""Frame: one function that is being captured, its variables, and where it stands.

`env` maps a variable to its value (values.py). Beside the user's names it holds what control flow
has left to say, under names that no user can write:

    $return       whether the function has returned: False, True, or a run-time bool
    $value        what it returned, where it has
    $break<n>     whether the loop at depth n was left
    $continue<n>  whether its iteration was
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import enum
import types
from collections.abc import Callable, Container
from typing import Any

from .. import tile as ct
from ..errors import HeldArrayError, Place, TileSyntaxError, TileTypeError, TileValueError
from ..names import advice, thread_advice
from .emit import Emitter
from .repeats import Repeats
from .rules import TILE, Rules
from .source import Source
from .values import Array, Tile, Unusable, is_numpy_scalar, is_of_device

RETURN, VALUE = "$return", "$value"


def is_flag(name: str) -> bool:
    return name.startswith(("$return", "$break", "$continue"))


class Capture:
    """What is common to all frames of one kernel."""

    def __init__(self, builder: Any, rules: Rules = TILE, target: str = "") -> None:
        self.builder = builder
        self.combiner = ""  # ct.reduce or ct.scan, whose function is being captured: arithmetic of scalars
        self.checked = False  # whether what goes wrong is told, as by launch(check=True)
        self.writes = 0  # accesses so far that write to arrays, or are atomic
        self.of_grid = False  # whether it asks for the grid's threads as a group
        self.in_tiles = False  # code of threads in a kernel of tiles is being captured
        self.mapped = ""  # the function of threads that is being captured for elements of tiles
        self.rules, self.target = rules, target
        self.emit = Emitter(builder, rules)
        self.active: list[types.CodeType] = []
        self.written: set[int] = set()  # positions of array parameters that are stored to
        self.links: dict[str, None] = {}  # files with functions of C++ that it calls
        self.plans: dict[Any, Any] = {}  # what loops have learnt (loops.py)
        self.repeats = Repeats()
        self.tiles: set[str] = set()  # names of those that have one
        self.reads: dict[tuple[int, str | None], tuple[Any, str | None, Any]] = {}
        self.rows: Container[int] = ()  # leaves of the arguments whose elements lie in row-major order
        self.held: dict[tuple[int, str], Any] = {}  # arrays from outside that are arguments, by the variable

    def name(self, value: Any, name: str) -> None:
        """What the program calls a tile: hints speak of it by that name, and so does what the compiler says."""
        if isinstance(value, Tile) and value.shape and not self.rules.simt:
            self.builder.name(value.ir, name)
            self.tiles.add(name)

    def note_read(self, container: Any, name: str, value: Any) -> None:
        """Remember a global or closure variable, or an attribute, that the kernel depends on."""
        self.reads[id(container), name] = (container, name, value)

    def outer(self, container: Any, name: str, value: Any) -> Any:
        """What a variable from outside of the kernel is in it; `value` is what it holds."""
        if (id(container), name) in self.held:
            return self.held[id(container), name]
        if self.rules.holds_device_arrays and is_of_device(value):
            raise HeldArrayError(container, name)
        self.note_read(container, name, value)
        return value

    def note_contents(self, container: Any) -> None:
        """The same of what is in a list or a dict, which may be changed in its place."""
        self.reads[id(container), None] = (container, None, _copied(container))


def _copied(value: Any) -> Any:
    if type(value) in (list, tuple):
        return type(value)(_copied(v) for v in value)
    if type(value) is dict:
        return {k: _copied(v) for k, v in value.items()}
    return set(value) if type(value) is set else value


_AS_THEY_ARE = {bool, int, float, str, type(None), types.FunctionType, types.BuiltinFunctionType, Tile, Array}
_AS_THEY_ARE.add(type(ct.load))  # of all operations


@dataclasses.dataclass(eq=False)
class Frame:
    capture: Capture
    source: Source
    env: dict[str, Any]
    callers: tuple[Place, ...] = ()
    lexical: Frame | None = None  # of a function defined inside of another
    loops: int = 0  # how many loops are around the statement
    loop_types: list[dict[str, Any]] = dataclasses.field(default_factory=list)  # of their variables, by loop
    breaks: dict[int, list[dict[str, Any]]] = dataclasses.field(default_factory=dict)  # by loop: variables at each
    is_kernel: bool = False
    of_library: bool = False  # a function of library.py: what is in it is said to be where it is called
    own: frozenset[str] = frozenset()  # of a comprehension: its variables, which hide those around it
    on_yield: Callable[[Frame, Any], None] | None = None  # what `yield` does in a generator that is a context

    def __post_init__(self) -> None:
        self.emit = self.capture.emit
        self.builder = self.capture.builder
        self._at = self.builder.at
        self._offset = self.source.line_offset
        self.env[RETURN] = False

    # -- places

    def at(self, node: Any) -> None:
        """The next ops come from `node`."""
        self.node = node
        if self.of_library:
            return
        offset = self._offset
        self._at(
            node.lineno + offset,
            node.col_offset + 1,
            node.end_lineno + offset,
            node.end_col_offset + 1,
        )

    def places(self, node: ast.AST) -> tuple[Place, ...]:
        return self.callers if self.of_library else (*self.callers, self.source.place(node))

    def told(self, node: ast.AST, message: str) -> str:
        """What a kernel that stops at `node` says: also where that is."""
        place = self.source.place(node)
        return f"{message} ({place.file.rpartition('/')[2]}, line {place.line})"

    # -- names

    def lookup(self, node: ast.Name) -> Any:
        name = node.id
        if name in self.env:
            value = self.env[name]
            if type(value) is Unusable:
                raise TileTypeError(value.message, (*value.places, *self.places(node)))
            return value
        if name in self.own or (name in self.source.locals and self.lexical is None):
            raise TileSyntaxError(f"the variable '{name}' is used before it is assigned; assign it on every way here")
        if self.lexical is not None:
            return self.lexical.lookup(node)
        return self.adopt(self.outside(name))

    def knows(self, name: str) -> bool:
        """Whether a name has a value, or may have one."""
        known = name in self.env or name in self.source.locals or name in self.source.closure
        outside = name in self.source.function.__globals__ or hasattr(builtins, name)
        return known or outside or (self.lexical is not None and self.lexical.knows(name))

    def outside(self, name: str) -> Any:
        """A variable of an enclosing function, a global, or a builtin, as the Python object that it is."""
        cell = self.source.closure.get(name)
        function = self.source.function
        if cell is not None:
            try:
                value = cell.cell_contents
            except ValueError:
                raise TileSyntaxError(f"the variable '{name}' of the enclosing function has no value yet") from None
            value = self.capture.outer(cell, name, value)
        elif name in function.__globals__:
            value = self.capture.outer(function.__globals__, name, function.__globals__[name])
        elif hasattr(builtins, name):
            value = getattr(builtins, name)
        elif name in self.capture.rules.names:
            value = self.capture.rules.names[name]
        else:
            known = {*self.env, *function.__globals__, *vars(builtins)}
            names = [n for n in known if n.isidentifier()]
            hint = self.capture.rules.elsewhere(name) if self.capture.rules.simt else self._meant(name, names)
            hint = hint or (thread_advice(name, names) if self.capture.rules.simt else "")
            hint = hint or "; assign it before, or define it outside of the kernel"
            raise TileSyntaxError(f"the name '{name}' is not defined{hint}")
        return value

    def _meant(self, name: str, names: list[str]) -> str:
        """What a name that is not defined may mean: an operation without its module, or a name that is misspelt."""
        near = advice(name, names, "")
        return f"; write ct.{name}" if name in dir(ct) else near

    def adopt(self, value: Any) -> Any:
        """A Python object from outside as a value: NumPy's scalars are typed constants."""
        kind = type(value)
        if kind in _AS_THEY_ARE:
            return value
        if kind is tuple:
            return tuple([v if type(v) in _AS_THEY_ARE else self.adopt(v) for v in value])
        self.note(value)
        if kind is list:
            return tuple([self.adopt(v) for v in value])
        if is_numpy_scalar(value):
            return numpy_scalar(self.emit, value)
        if self.capture.rules.wide and isinstance(value, enum.IntEnum):
            return int(value)
        if hasattr(type(value), "__tw_value__"):  # what stands for a value of the running kernel
            return value.__tw_value__(self)
        return value

    def note(self, value: Any) -> None:
        """Remember what is in a list, a dict or a set: the kernel depends on it."""
        if type(value) in (list, dict, set):
            self.capture.note_contents(value)

    # -- functions that combine

    def refuse_in_combiner(self, found: str, instead: str) -> None:
        """What cannot stand in the function of ct.reduce or ct.scan, which is arithmetic of scalars."""
        if self.capture.combiner:
            raise TileSyntaxError(f"{found} cannot stand in the function of {self.capture.combiner}; {instead}")

    # -- control flow

    def exit_state(self) -> bool | Tile:
        """Whether control has left the statements that follow: False, True or a run-time bool."""
        env = self.env
        flags = [env.get(RETURN, False)]
        if self.loops:
            flags += [env.get(f"$break{self.loops}"), env.get(f"$continue{self.loops}")]
        state: bool | Tile = False
        for flag in flags:
            if flag is True:
                return True
            if isinstance(flag, Tile):
                both = isinstance(state, Tile)
                state = self.emit.op("tile.or", [state, flag]) if both else flag  # type: ignore[list-item]
        return state


def numpy_scalar(emit: Emitter, value: Any) -> Tile:
    from ..dtype import as_dtype

    dtype = as_dtype(value.dtype)
    number = value.item() if dtype.is_integral or dtype.is_bool else float(value)
    return dataclasses.replace(emit.constant(number, dtype), known=value)


__all__ = ["RETURN", "VALUE", "Capture", "Frame", "TileValueError", "is_flag", "numpy_scalar"]
