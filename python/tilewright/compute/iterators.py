"""Iterators: items that are computed where they are read, or changed where they are written.

An iterator is a state, which a call may bring anew, and two functions that kernels inline: `read(state, i)` gives
item i, `write(state, i, value)` stores it. What is constant (which iterators are in which, their operators) is its
`kind`.
"""

# The kernels' values have no types that a checker knows.
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..dtype import DType, int64
from ..errors import TileError, TileTypeError, TileValueError
from ..quiet import quiet
from .inputs import Access, ArrayInput, as_input, places_of
from .operators import Operator, OpKind, as_operator, function_of
from .raw import RawOp
from .results import result_type
from .types import Convert, ItemType, Zero, argument_of, item_type, name_of, on_host, type_of_value

Bounds = tuple[int | None, int | None]


class Iterator:
    """The base of all iterators. `it + n` begins n items later."""

    value_type: ItemType
    kind: Any
    reads = writes = True

    def __init_subclass__(cls) -> None:
        """What is wrong with the arguments is told without frames of ours."""
        if "__init__" in vars(cls):
            cls.__init__ = quiet(cls.__init__)  # type: ignore[method-assign]

    @property
    def count(self) -> int | None:
        """How many items there are at most; None where there is no end, or the user alone knows it."""
        first, end = self.bounds()
        return 0 if first is not None and first > 0 else None if end is None else max(0, end)

    def bounds(self) -> Bounds:
        """The items that there are: from one, which may lie before item 0, to before another; None is no end."""
        found = [bounds_of(it) for it in self.inner()]
        firsts, ends = (
            [bound for bound in side if bound is not None] for side in zip((None, None), *found, strict=True)
        )
        return max(firsts, default=None), min(ends, default=None)

    def state(self) -> Any:
        return ()

    def stores(self) -> list[Any]:
        """Those in it to which it writes."""
        return self.inner()

    def inner(self) -> list[Any]:
        """The iterators and arrays in it."""
        return []

    def accesses(self, is_written: bool) -> list[Access]:
        """To the arrays in it, by one who reads, or writes, its items."""
        return [access for it in (self.stores() if is_written else self.inner()) for access in it.accesses(is_written)]

    def operators(self) -> list[Operator]:
        return []

    def places(self) -> set[Any]:
        found: set[Any] = set()
        for it in self.inner():
            found |= places_of(it)
        for operator in self.operators():
            found |= operator.places()
        return found

    def check_writable(self, what: str) -> None:
        if not self.writes:
            raise TileTypeError(f"{what}: a {type(self).__name__} is read, not written")
        for it in self.inner():
            it.check_writable(what)

    def reader(self) -> Any:
        raise TileTypeError(f"a {type(self).__name__} is written, not read")

    def writer(self) -> Any:
        raise TileTypeError(f"a {type(self).__name__} is read, not written")

    def __add__(self, offset: int) -> Iterator:
        if isinstance(offset, bool) or not hasattr(offset, "__index__"):
            return NotImplemented
        return _Advanced(self, int(offset))

    __radd__ = __add__

    def advance(self, offset: int) -> Iterator:
        """`it + offset`."""
        return self + offset

    def __repr__(self) -> str:
        items = "" if getattr(self, "value_type", None) is None else f" of {name_of(self.value_type)}"
        return f"a {type(self).__name__}{items}"


class Moved(Iterator):
    """The items of another iterator in other places: item i is its item `place(offset, i)`."""

    it: Any
    offset: int
    place: Callable[[Any, Any], Any]
    step: int | None = 1  # between its places; None: they lie anywhere

    def accesses(self, is_written: bool) -> list[Access]:
        return [access.moved(self.offset, self.step) for access in super().accesses(is_written)]

    def inner(self) -> list[Any]:
        return [self.it]

    def state(self) -> Any:
        import numpy as np

        return (self.it.state(), np.int64(self.offset))

    def reader(self):
        read, place = self.it.reader(), self.place

        def moved(state, i):
            return read(state[0], place(state[1], i))

        return moved

    def writer(self):
        write, place = self.it.writer(), self.place

        def moved(state, i, value):
            write(state[0], place(state[1], i), value)

        return moved


def _ahead(offset, i):
    return offset + i


def _back(offset, i):
    return offset - i


class _Advanced(Moved):
    """`it + n`."""

    place = staticmethod(_ahead)

    def __init__(self, it: Iterator, offset: int) -> None:
        self.it, self.offset = it, offset
        self.value_type, self.kind = it.value_type, ("advanced", it.kind)
        self.reads, self.writes = it.reads, it.writes

    def bounds(self) -> Bounds:
        first, end = bounds_of(self.it)
        return None if first is None else first - self.offset, None if end is None else end - self.offset

    def __add__(self, offset: int) -> Iterator:
        if isinstance(offset, bool) or not hasattr(offset, "__index__"):
            return NotImplemented
        return _Advanced(self.it, self.offset + int(offset))

    __radd__ = __add__


class CountingIterator(Iterator):
    """start, start + 1, start + 2 …; `start` is a NumPy scalar, whose dtype the items have."""

    writes = False

    def __init__(self, start: Any) -> None:
        self.value_type = type_of_value(start)
        if not isinstance(self.value_type, DType) or self.value_type.is_bool:
            raise TileTypeError(f"a CountingIterator starts at a number, found {start!r}")
        self.start = on_host(self.value_type, start, "the start")
        self.kind = ("counting", self.value_type)

    def state(self) -> Any:
        return (argument_of(self.value_type, self.start),)

    def reader(self):
        convert = Convert(self.value_type, "a count")

        def count(state, i):
            return convert(convert(state[0]) + convert(i))

        return count


class ConstantIterator(Iterator):
    """The same value again and again: a NumPy scalar or a struct."""

    writes = False

    def __init__(self, value: Any) -> None:
        self.value_type = type_of_value(value)
        self.value = on_host(self.value_type, value, "the value")
        self.kind = ("constant", self.value_type)

    def state(self) -> Any:
        return (argument_of(self.value_type, self.value),)

    def reader(self):
        convert = Convert(self.value_type, "a constant")

        def constant(state, i):
            return convert(state[0])

        return constant


class _Operated(Iterator):
    """The items of another iterator and an operator."""

    it: Any
    operator: Operator

    def inner(self) -> list[Any]:
        return [self.it]

    def operators(self) -> list[Operator]:
        return [self.operator]

    def state(self) -> Any:
        return (self.it.state(), states_of(self.operator))


class TransformIterator(_Operated):
    """transform_op(x) for the items x of an array or an iterator.

    They are of `value_type`, else of the type that the function says it returns, else of what it gives.
    """

    writes = False

    def __init__(self, underlying: Any, transform_op: Any, value_type: Any = None) -> None:
        self.it = as_input(underlying, "TransformIterator")
        self.operator = as_operator(transform_op, 1, "op of a TransformIterator")
        if isinstance(transform_op, RawOp) and value_type is None:
            raise TileTypeError("a TransformIterator by a RawOp needs value_type=, the type of what the code gives")
        declared = _annotated(transform_op, True) if value_type is None else item_type(value_type)
        self.value_type = declared or result_type(self.operator, [self.it.value_type])
        self.kind = ("transform", self.it.kind, self.operator.key, self.value_type)

    def reader(self):
        read, op = self.it.reader(), self.operator.giving(self.value_type)

        def transformed(state, i):
            return op(state[1], read(state[0], i))

        return transformed


class TransformOutputIterator(_Operated):
    """Stores transform_op(x) where x is written.

    x is converted to `output_value_type` before, else to the type that the function says it takes, if it says so.
    """

    reads = False

    def __init__(self, underlying: Any, transform_op: Any, output_value_type: Any = None) -> None:
        self.it = as_input(underlying, "TransformOutputIterator")
        self.operator = as_operator(transform_op, 1, "op of a TransformOutputIterator")
        declared = _annotated(transform_op, False) if output_value_type is None else item_type(output_value_type)
        self.declared = declared
        self.value_type: ItemType = self.it.value_type if declared is None else declared
        self.kind = ("transform output", self.it.kind, self.operator.key, declared)

    def writer(self):
        write, op = self.it.writer(), self.operator.typed(self.it.value_type)
        if self.declared is None:

            def transformed(state, i, value):
                write(state[0], i, op(state[1], value))

            return transformed
        convert = Convert(self.declared, "an item that is stored")

        def transformed_of_type(state, i, value):
            write(state[0], i, op(state[1], convert(value)))

        return transformed_of_type


def _annotated(op: Any, returned: bool) -> ItemType | None:
    """The type of items that a function says it gives, or takes; None where it says none, or something else."""
    import typing

    if isinstance(op, OpKind | RawOp):
        return None
    function = function_of(op, "the operator of an iterator")
    names = ("return",) if returned else function.__code__.co_varnames[: function.__code__.co_argcount][:1]
    try:
        hints = typing.get_type_hints(function)
    except Exception:  # a name in an annotation may mean anything, or nothing
        hints = function.__annotations__
    hint = next((hints[name] for name in names if name in hints), None)
    if hint is None or hint is type(None) or isinstance(hint, str):
        return None
    try:
        return item_type(hint)
    except (TileError, TypeError, ValueError):
        return None


class ZipIterator(Iterator):
    """Tuples of the items of several arrays or iterators, which may come as one list."""

    def __init__(self, *its: Any) -> None:
        if len(its) == 1 and isinstance(its[0], list | tuple):
            its = tuple(its[0])
        if not its:
            raise TileTypeError("a ZipIterator is of one array or iterator or more")
        self.its = [as_input(it, "ZipIterator") for it in its]
        self.value_type = tuple(it.value_type for it in self.its)
        self.kind = ("zip", *(it.kind for it in self.its))

    def inner(self) -> list[Any]:
        return self.its

    def state(self) -> Any:
        return tuple(it.state() for it in self.its)

    def reader(self):
        return _ReadAll([it.reader() for it in self.its])

    def writer(self):
        return _WriteAll([it.writer() for it in self.its], self.value_type)


class _ReadAll:
    def __init__(self, readers: list[Any]) -> None:
        self.readers = readers

    def __call__(self, state: Any, i: Any) -> Any:
        raise TileTypeError("an iterator of kernels was read on the host")

    def __tw_call__(self, frame: Any, state: Any, i: Any) -> Any:
        from ..capture.calls import call

        return tuple(call(frame, read, [s, i], {}, frame.node) for read, s in zip(self.readers, state, strict=True))


class _WriteAll:
    def __init__(self, writers: list[Any], t: ItemType) -> None:
        self.writers, self.type = writers, t

    def __call__(self, state: Any, i: Any, value: Any) -> None:
        raise TileTypeError("an iterator of kernels was written on the host")

    def __tw_call__(self, frame: Any, state: Any, i: Any, value: Any) -> None:
        from ..capture.calls import call
        from .types import converted

        parts = converted(frame, value, self.type, "an item that is stored")
        for write, s, part in zip(self.writers, state, parts, strict=True):
            call(frame, write, [s, i, part], {}, frame.node)


class PermutationIterator(Iterator):
    """values[indices[i]]."""

    def __init__(self, values: Any, indices: Any) -> None:
        self.values = as_input(values, "PermutationIterator")
        self.indices = as_input(indices, "PermutationIterator")
        if not isinstance(self.indices.value_type, DType) or not self.indices.value_type.is_integral:
            raise TileTypeError("the indices of a PermutationIterator are integers")
        self.value_type = self.values.value_type
        self.kind = ("permutation", self.values.kind, self.indices.kind)

    def bounds(self) -> Bounds:
        return bounds_of(self.indices)

    def inner(self) -> list[Any]:
        return [self.values, self.indices]

    def stores(self) -> list[Any]:
        return [self.values]

    def accesses(self, is_written: bool) -> list[Access]:
        moved = [access.moved(0, None) for access in self.values.accesses(is_written)]
        return moved if is_written else [*moved, *self.indices.accesses(False)]

    def check_writable(self, what: str) -> None:
        self.values.check_writable(what)

    def state(self) -> Any:
        return (self.values.state(), self.indices.state())

    def reader(self):
        read, place = self.values.reader(), self.indices.reader()

        def permuted(state, i):
            return read(state[0], place(state[1], i))

        return permuted

    def writer(self):
        write, place = self.values.writer(), self.indices.reader()

        def permuted(state, i, value):
            write(state[0], place(state[1], i), value)

        return permuted


class ReverseIterator(Moved):
    """The items of an array from its last one on; of an iterator those from item 0 back: it[0], it[-1] …

    So all n items of an iterator that has as many are `ReverseIterator(it + (n - 1))`.
    """

    place = staticmethod(_back)
    step = -1

    def __init__(self, underlying: Any) -> None:
        self.it = as_input(underlying, "ReverseIterator")
        self.offset = self.it.count - 1 if isinstance(self.it, ArrayInput) else 0
        self.value_type, self.kind = self.it.value_type, ("reverse", self.it.kind)

    def bounds(self) -> Bounds:
        first, end = bounds_of(self.it)
        return None if end is None else self.offset - end + 1, None if first is None else self.offset - first + 1


class DiscardIterator(Iterator):
    """Takes what is written, and keeps nothing; its items are 0, of the type of those of `reference_iterator`."""

    def __init__(self, reference_iterator: Any = None) -> None:
        from ..dtype import uint8

        given = None if reference_iterator is None else as_input(reference_iterator, "DiscardIterator")
        self.value_type = uint8 if given is None else given.value_type
        self.kind = ("discard", self.value_type)

    def reader(self):
        zero = Zero(self.value_type)

        def nothing(state, i):
            return zero()

        return nothing

    def writer(self):
        def discard(state, i, value):
            pass

        return discard


class CacheModifiedInputIterator(Iterator):
    """An array that is read by loads which a cache treats as `modifier` says; that changes no item."""

    writes = False

    def __init__(self, array: Any, modifier: str = "stream") -> None:
        if modifier not in ("stream", "global", "volatile"):
            raise TileValueError(f"the modifier is 'stream', 'global' or 'volatile', found {modifier!r}")
        self.it = as_input(array, "CacheModifiedInputIterator")
        if not isinstance(self.it, ArrayInput):
            raise TileTypeError(f"a CacheModifiedInputIterator reads an array, found {array!r}")
        self.value_type, self.kind = self.it.value_type, ("cached", modifier, self.it.kind)

    def inner(self) -> list[Any]:
        return [self.it]

    def state(self) -> Any:
        return self.it.state()

    def reader(self):
        return self.it.reader()


class ShuffleIterator(Iterator):
    """0 to num_items - 1, each once, in an order that the seed fixes."""

    writes = False

    def __init__(self, num_items: int, seed: int = 0) -> None:
        for name, value in (("num_items", num_items), ("seed", seed)):
            if not hasattr(value, "__index__"):
                raise TileTypeError(f"ShuffleIterator: {name} is an integer, found {value!r}")
        if not 0 < num_items < 1 << 62:
            raise TileValueError(f"ShuffleIterator: num_items must be > 0 and < 2**62, found {num_items}")
        self.num_items, self.seed = int(num_items), int(seed)
        self.value_type, self.kind = int64, ("shuffle",)

    def bounds(self) -> Bounds:
        return 0, self.num_items

    def state(self) -> Any:
        import numpy as np

        bits = max(2, (self.num_items - 1).bit_length())
        half = (bits + 1) // 2
        keys = np.random.default_rng(abs(self.seed)).integers(0, 2**32, 4, dtype=np.uint32)
        return (np.int64(self.num_items), np.int64(half), *(np.int64(k) for k in keys))

    def reader(self):
        return _shuffled


def _mixed(x, key):
    """A round function of 32 bits."""
    x = ((x ^ key) * 0x45D9F3B) & 0xFFFFFFFF
    x = ((x ^ (x >> 16)) * 0x45D9F3B) & 0xFFFFFFFF
    return x ^ (x >> 16)


def _shuffled(state, i):
    """A Feistel network over the power of four above the count, walked until it comes back below the count."""
    count, half = state[0], state[1]
    mask = (1 << half) - 1
    found = i + 0
    going = True
    while going:
        left, right = found >> half, found & mask
        left, right = right, left ^ (_mixed(right, state[2]) & mask)
        left, right = right, left ^ (_mixed(right, state[3]) & mask)
        left, right = right, left ^ (_mixed(right, state[4]) & mask)
        left, right = right, left ^ (_mixed(right, state[5]) & mask)
        found = (left << half) | right
        going = found >= count
    return found


def bounds_of(given: Any) -> Bounds:
    """The items that an array or an iterator has, as `Iterator.bounds` says."""
    return (0, given.count) if isinstance(given, ArrayInput) else given.bounds()


IteratorBase = Iterator  # as programs name it


def states_of(operator: Operator) -> tuple[Any, ...]:
    """What an operator has from outside, as arguments."""
    return operator.states()


__all__ = [
    "CacheModifiedInputIterator",
    "ConstantIterator",
    "CountingIterator",
    "DiscardIterator",
    "IteratorBase",
    "PermutationIterator",
    "ReverseIterator",
    "ShuffleIterator",
    "TransformIterator",
    "TransformOutputIterator",
    "ZipIterator",
]
