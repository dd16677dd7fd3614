"""Plans of calls: what a call of an object launches, as a list that the extension goes through without Python.

A call that no plan fits runs as the algorithm says. Then it is told once more with `Number`s in the place of its sizes,
which note what is computed of them and how comparisons come out, and what comes of that is compared with what was
launched. python/ext/call_plan.c has what a later call must be like to go by the plan.
"""

from __future__ import annotations

import copy
import dataclasses
import enum
import struct
import types as python_types
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .. import _core, structure
from ..arrays import Array
from ..dtype import DType
from ..errors import TileError
from .inputs import ArrayInput, as_input
from .iterators import Iterator as ItemIterator
from .launching import ALIGN, Launch, Number, Part, UnplannedError, arguments, bytes_of
from .operators import Operator, OpKind
from .raw import RawOp, RawOperator
from .types import type_of_value

if TYPE_CHECKING:
    from .objects import Algorithm, Given

COUNTS = ("num_items", "num_segments", "num_values", "num_samples")
VALUES = ("h_init", "init_value")  # of which the host only makes an argument
_COUNT, _VALUE, _ARRAY, _IDENTICAL, _FUNCTION, _EQUAL, _BYTES = range(7)  # kinds of parameters
_STEPS = ("constant", "add", "subtract", "multiply", "divide", "remainder", "less", "equal")
_CONSTANT, _REGISTER, _ADDRESS, _STORAGE = range(4)  # kinds of words
_MOST_BYTES = 256  # of a scalar or a small array of the host
_MOST_OUTSIDE = 1 << 31  # items of an array that an operator reads (Operator.states)
_REFUSALS = 4  # calls of an object that have no plan, behind which none is looked for
_MOST_MADE = 64  # plans of an object, those that have ended among them


class Trace:
    """The program of a plan: registers, the first of which are counts, values and extents, and steps."""

    def __init__(self) -> None:
        self.steps: list[tuple[int, int, int, int]] = []
        self.values: list[int] = []
        self.known: dict[Any, Number] = {}
        self.outcomes: set[Any] = set()

    def given(self, value: int) -> Number:
        self.values.append(value)
        return Number(self, len(self.values) - 1, value)

    def number(self, value: Any) -> Number:
        if isinstance(value, Number):
            return value
        if type(value) is not int:
            raise UnplannedError(f"{value!r} among sizes")
        return self._noted(("constant", value), (0, 0, 0, value), value)

    def computed(self, name: str, a: Any, b: Any, value: int) -> Number:
        x, y = self.number(a), self.number(b)
        row = (_STEPS.index(name), x.register, y.register, 0)
        return self._noted(row, row, value)

    def _noted(self, key: Any, row: tuple[int, int, int, int], value: int) -> Number:
        if key not in self.known:
            self.steps.append(row)
            self.known[key] = self.given(value)
        return self.known[key]

    def compared(self, name: str, a: Any, b: Any, outcome: bool) -> bool:
        row = (_STEPS.index(name), self.number(a).register, self.number(b).register, int(outcome))
        if row not in self.outcomes:
            self.steps.append(row)
            self.outcomes.add(row)
        return outcome


def note(algorithm: Algorithm, values: dict[str, Any], given: Given, storage: Any, launches: list[Launch]) -> None:
    """Keep a plan of a call that has just run."""
    if algorithm.refusals >= _REFUSALS or algorithm.planned >= _MOST_MADE or not algorithm.has_room():
        return
    try:
        algorithm.add_plan(_Planning(algorithm, values, given, storage, launches).plan())
        algorithm.planned += 1
    except (UnplannedError, TileError):  # an array that the extension cannot read, such as NumPy's of structures
        algorithm.refusals += 1


class _Planning:
    def __init__(
        self, algorithm: Algorithm, values: dict[str, Any], given: Given, storage: Any, launches: list[Launch]
    ) -> None:
        self.algorithm, self.values, self.given, self.launches = algorithm, values, given, launches
        self.trace, self.storage = Trace(), storage
        self.outside = list(_arrays_outside(algorithm, given))
        self.arrays = {row.name: row.array for row in self.outside}  # those of the call, by name
        self.arrays |= {n: given[n] for n in algorithm.order if isinstance(given.get(n), ArrayInput)}
        self.objects = {n: values.get(n) for n in self.arrays} | {row.name: row.value for row in self.outside}
        self.names = list(self.arrays)
        self.traced = dict(given)
        for name in COUNTS:
            if name in given:
                self.traced[name] = self.trace.given(given[name])
        wanted = getattr(algorithm, "type", None)
        self.words = {
            n: _word(values[n]) for n in VALUES if _is_word(values.get(n)) and type_of_value(values[n]) == wanted
        }
        for name, word in self.words.items():
            self.traced[name] = self.trace.given(word)
        for name, array in self.arrays.items():
            self.traced[name] = copy.copy(array)
            self.traced[name].count = self.trace.given(array.count)

    def plan(self) -> _core.CallPlan:
        kind, traced = self.algorithm, self.traced
        needed, n = kind.needed(traced), kind.counts(traced)
        parts = kind.parts(n)
        size = self.trace.number(bytes_of(parts))
        self.places = self._places(parts)
        temporary = [view for view, _, _ in self.places]
        found = kind.launches(traced, n, temporary)
        if len(found) != len(self.launches):
            raise UnplannedError("other launches")
        launches = tuple(self._launch(mine, real) for mine, real in zip(found, self.launches, strict=True))
        arrays = tuple(self._array(name, needed.get(name)) for name in self.names)
        same = tuple(self._same(i) for i in range(len(self.names)))
        device = -1 if given_place(self.given) == "cpu" else int(given_place(self.given).partition(":")[2])
        return _core.CallPlan(
            device >= 0,
            max(device, 0),
            (*map(self._slot, kind.order), *map(self._slot_outside, self.outside)),
            arrays,
            same,
            tuple(self._spans()),
            kind.has_storage,
            b"".join(struct.pack("4q", *row) for row in self.trace.steps),
            size.register,
            launches,
        )

    # -- arguments

    def _slot(self, name: str) -> tuple[Any, ...]:
        value, given = self.values[name], self.given[name]
        if name in COUNTS:
            return (name, _COUNT, self.traced[name].register, None, None, None)
        if name in self.names:
            return (name, _ARRAY, self.names.index(name), None, None, None)
        if name in self.words:
            told = memoryview(value).format if isinstance(value, _scalars()) else None
            return (name, _VALUE, self.traced[name].register, told, type(value), None)
        if isinstance(given, Operator) and value is not None:
            return (name, *_operator(given, value))
        if isinstance(value, ItemIterator):
            if any(isinstance(operator, RawOperator) for operator in _operators(value)):
                raise UnplannedError("an iterator with a RawOp, whose state may change")
            return (name, _IDENTICAL, 0, weakref.ref(value), None, None)
        return (name, *_constant(value))

    def _slot_outside(self, row: _Outside) -> tuple[Any, ...]:
        count = self.traced[row.name].count
        bool(count < _MOST_OUTSIDE)  # or else the call is an error
        for name, array in self.arrays.items():  # operators may ask for extents: of one array, whichever it is
            bool(array.address != row.array.address or self.traced[name].count == count)
        holder = None if _is(row.holder, self.values[row.operator]) else row.holder
        place = (holder, row.place, self.algorithm.order.index(row.operator))
        return (row.name, _ARRAY, self.names.index(row.name), None, None, place)

    def _array(self, name: str, needed: Any) -> tuple[Any, ...]:
        given = self.arrays[name]
        seen = _core.describe_array(self.objects[name])
        if seen["data"] != given.address or not given.count:
            raise UnplannedError("an array that is read in another way")
        count = -1 if needed is None else self.trace.number(needed).register
        record = given.view.dtype if seen["dtype"] == "record" else None
        item, low = given.view.dtype.itemsize, given.address % 16
        extent = self.traced[name].count.register
        return (seen["dtype"], item, extent, count, low, not seen["read_only"], given.count > 1, record)

    def _same(self, i: int) -> int:
        """Which of the arrays before array i begin where it does."""
        addresses = [array.address for array in self.arrays.values()]
        return sum(1 << j for j in range(i) if addresses[j] == addresses[i])

    def _spans(self) -> Iterator[tuple[Any, ...]]:
        """Memory of each argument, and which of it must be apart from which (checks.check_memory)."""
        kind, rows = self.algorithm, []
        for name in (*kind.ins, *kind.outs):
            given = self.given[name]
            if isinstance(given, ArrayInput):
                rows.append((name, self.names.index(name), 0, 0))
            elif isinstance(given, ItemIterator):
                rows += [(name, -1, access.low, access.high) for access in given.accesses(name in kind.outs)]
        for name, *row in rows:
            apart = unless = 0
            if name in kind.outs:
                at = kind.outs.index(name)
                others = (*kind.outs[:at], *(() if kind.reads_first else kind.ins))
                for bit, (other, *_) in enumerate(rows):
                    if other in others:
                        apart |= 1 << bit
                        unless |= self._may_be_one(other, name) << bit
            yield (*row, apart, unless)

    def _may_be_one(self, other: str, out: str) -> bool:
        """Whether two may begin at one address: what is wider, or an iterator's, has plans for what lies apart only."""
        a, b = ([*self.given[name].accesses(name in self.algorithm.outs)] for name in (other, out))
        return (other, out) in self.algorithm.in_place and all(
            (x.first, x.step, x.size) == (x.low, 1, y.size) and (y.first, y.step) == (y.low, 1) for x in a for y in b
        )

    # -- launches

    def _places(self, parts: list[Part]) -> list[tuple[Any, Number, Any]]:
        """The arrays in the temporary storage, where each begins, and how many items it has."""
        from .launching import carved

        real = [Part(part.type, value_of(part.count)) for part in parts]
        views = carved(self.storage, real) if real else []
        at, found = self.trace.number(0), []
        for part, view in zip(parts, views, strict=True):
            if not value_of(part.count):
                raise UnplannedError("a part of no items")
            found.append((view, at, part.count))
            at = self.trace.number(at + -(-part.bytes // ALIGN) * ALIGN)
        return found

    def _launch(self, mine: Launch, real: Launch) -> tuple[Any, ...]:
        kernel = real.kernel
        if mine.kernel is not kernel or (value_of(mine.grid), mine.block) != (real.grid, real.block):
            raise UnplannedError("another launch")
        there = arguments(real.arguments)
        words = kernel.words(there)
        rows = self._words(mine.arguments, words)
        if words != kernel.words(arguments(_real(mine.arguments))):
            raise UnplannedError("other arguments")
        grid = self.trace.number(mine.grid).register
        return (
            kernel,
            kernel.chosen(real.grid, there),
            grid,
            real.block,
            b"".join(struct.pack("2q", *r) for r in rows),
        )

    def _words(self, mine: tuple[Any, ...], words: bytes) -> list[tuple[int, int]]:
        """Where each word of a launch comes from."""
        there = list(struct.unpack(f"{len(words) // 8}q", words))
        rows: list[tuple[int, int]] = []
        for leaf in _leaves(arguments(mine)):
            if isinstance(leaf, Number):
                rows.append((_REGISTER, leaf.register))
                continue
            is_array = hasattr(leaf, "shape") and hasattr(leaf, "strides") and not isinstance(leaf, _scalars())
            count = 1 + 2 * len(leaf.shape) if is_array else 1
            own = [(_CONSTANT, word) for word in there[len(rows) : len(rows) + count]]
            if is_array:
                self._of_array(leaf, own)
            rows += own
        if len(rows) != len(there):
            raise UnplannedError("words that nobody knows")
        return rows

    def _of_array(self, leaf: Any, words: list[tuple[int, int]]) -> None:
        """An array of the call, or one in its temporary storage; any other one is as it is."""
        address, count = words[0][1], words[1][1]
        for view, at, items in self.places:
            if _address(view) == address:
                self._hold(value_of(items) == count)
                number = self.trace.number(items)
                bool(number > 1)  # the kernel may rely on it
                words[:2] = [(_STORAGE, at.register), (_REGISTER, number.register)]
                return
        for i, (name, array) in enumerate(self.arrays.items()):
            if array.address == address:
                self._hold(array.count == count)
                words[:2] = [(_ADDRESS, i), (_REGISTER, self.traced[name].count.register)]
                return
        others = [self.given[n] for n in self.algorithm.order if n not in self.names]
        others += [as_input(a, op.what) for it in others for op in _operators(it) for a in op.arrays]
        fixed = [row for it in others if isinstance(it, ArrayInput | ItemIterator) for row in it.accesses(False)]
        self._hold(any(row.low <= address < row.high for row in fixed))

    def _hold(self, holds: bool) -> None:
        if not holds:
            raise UnplannedError("an array that is none of the call's")


def given_place(given: Given) -> str:
    return str(given["place"])


def value_of(number: Any) -> int:
    return number.value if isinstance(number, Number) else int(number)


def _address(view: Any) -> int:
    return int(view.address if isinstance(view, Array) else view.__array_interface__["data"][0])


def _scalars() -> Any:
    import numpy as np

    return np.generic


def _real(value: Any) -> Any:
    """The arguments of a launch with the numbers of this call."""
    import numpy as np

    if isinstance(value, tuple):
        return tuple(map(_real, value))
    return np.int64(value.value) if isinstance(value, Number) else value


def _leaves(value: Any) -> Iterator[Any]:
    """What has words among the arguments of a launch, in their order."""
    if isinstance(value, Number | _scalars() | bool | int | float):
        yield value
    elif isinstance(value, tuple | list):
        for part in value:
            yield from _leaves(part)
    elif hasattr(type(value), "__dataclass_fields__"):
        for name, form in zip(*(structure.record(type(value)) or ((), ())), strict=True):
            if form is not True:
                yield from _leaves(getattr(value, name))
    elif hasattr(value, "shape"):
        yield value
    elif not (value is None or isinstance(value, str | enum.Enum | DType)):
        raise UnplannedError(f"{value!r} among arguments")


def _operators(it: Any) -> Iterator[Any]:
    if isinstance(it, ItemIterator):
        yield from it.operators()
        for inner in it.inner():
            yield from _operators(inner)


def _operator(operator: Operator, value: Any) -> tuple[Any, ...]:
    """An operator as a parameter, (kind, place, value, type, rows): of a function what it is and reads from outside,
    but arrays. The operator itself stands there as None, so that it is not kept."""
    if isinstance(value, OpKind):
        return (_IDENTICAL, 0, value, None, None)
    if isinstance(value, RawOp):
        return (_IDENTICAL, 0, weakref.ref(value), None, tuple((None, *row) for row in vars(value).items()))
    if not isinstance(value, python_types.FunctionType):
        raise UnplannedError("an operator of another kind")
    if operator.read is None:
        raise UnplannedError("an operator with what may change in its place")
    rows = [(None if _is(holder, value) else holder, name, held) for holder, name, held in operator.read]
    return (_FUNCTION, 0, None, type(value), (*rows, (None, "__globals__", value.__globals__)))


def _is(holder: Any, value: Any) -> bool:
    return isinstance(holder, weakref.ref) and holder() is value


def _is_word(value: Any) -> bool:
    """Whether the bits of a value are those of an argument of its type."""
    import numpy as np

    if isinstance(value, np.generic):
        kind = value.dtype.kind
        return kind in "iu" or (kind == "f" and value.dtype.itemsize in (4, 8))
    return type(value) is float or (type(value) is int and value.bit_length() < 64)


def _word(value: Any) -> int:
    made = (
        value.tobytes() if isinstance(value, _scalars()) else struct.pack("d" if type(value) is float else "q", value)
    )
    return int(struct.unpack("q", made.ljust(8, bytes(1)))[0])


@dataclasses.dataclass(frozen=True)
class _Outside:
    """An array that an operator reads from outside: a call takes the one that is there then."""

    name: str
    operator: str
    value: Any
    array: ArrayInput
    holder: Any
    place: Any


def _arrays_outside(algorithm: Algorithm, given: Given) -> Iterator[_Outside]:
    for what in algorithm.ops:
        operator = given[what]
        if sorted(position for position, *_ in operator.array_places) != [*range(len(operator.arrays))]:
            raise UnplannedError("an operator with an array that is a default, or has two names")
        for position, holder, place in operator.array_places:
            name, value = f"array {position} of {what}", operator.arrays[position]
            yield _Outside(name, what, value, as_input(value, name), holder, place)


def _constant(value: Any) -> tuple[Any, ...]:
    """A parameter that must be what it was: (kind, place, value, type, rows)."""
    import numpy as np

    if value is None or isinstance(value, bool | enum.Enum):
        return (_IDENTICAL, 0, value, None, None)
    if type(value) is int:
        return (_EQUAL, 0, value, int, None)
    if isinstance(value, np.generic | np.ndarray) and not value.dtype.hasobject and value.nbytes <= _MOST_BYTES:
        try:
            told = memoryview(value)  # type: ignore[arg-type]
        except (ValueError, BufferError):
            raise UnplannedError("a value that has no bytes") from None
        return (_BYTES, 0, (told.format, told.tobytes()), type(value), None)
    if hasattr(type(value), "__tw_struct__"):
        return (_IDENTICAL, 0, weakref.ref(value), None, None)
    raise UnplannedError(f"{value!r}, which may change")


__all__ = ["note"]
