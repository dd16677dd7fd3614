"""Arrays along one of their axes: as segments of one length, behind each other, whatever lies where."""

# The kernels' values have no types that a checker knows.
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import math
from typing import Any

from ..arrays import Array
from ..dtype import int64
from ..errors import TileTypeError, TileValueError
from .inputs import ArrayInput, array_of
from .iterators import Bounds, Iterator, Moved


class Axis:
    """An array of any strides by an axis: `rows` segments of `length` items; `inner` items lie between neighbours."""

    def __init__(self, x: Any, axis: Any, what: str) -> None:
        array = array_of(x, what)
        ndim = len(array.shape)
        if isinstance(axis, bool) or not hasattr(axis, "__index__"):
            raise TileTypeError(f"{what}: axis= is an integer or None, found {axis!r}")
        if not -ndim <= axis < ndim:
            raise TileValueError(f"{what} has {ndim} axes, found axis={axis}")
        self.axis, self.shape = int(axis) % ndim, tuple(map(int, array.shape))
        self.length, self.inner = self.shape[self.axis], math.prod(self.shape[self.axis + 1 :])
        self.rows = math.prod(self.shape[: self.axis]) * self.inner
        self.given = by_rows(array, what)

    @property
    def count(self) -> int:
        return self.rows * self.length

    def places(self, array: Any, length: int | None = None) -> Any:
        """An array of its shape, or with another length of the axis, as an iterator from segment to segment."""
        length = self.length if length is None else length
        return array if self.inner == 1 else _Along(ArrayInput(array, "x"), length, self.inner)

    def starts(self) -> Iterator:
        return _Multiples(self.length)

    def ends(self) -> Iterator:
        return self.starts() + 1

    def without(self) -> tuple[int, ...]:
        """The shape without the axis."""
        return self.shape[: self.axis] + self.shape[self.axis + 1 :]

    def of_length(self, length: int) -> tuple[int, ...]:
        return (*self.shape[: self.axis], length, *self.shape[self.axis + 1 :])


def by_rows(x: Any, what: str) -> ArrayInput:
    """All items of an array of any strides, one row behind the other."""
    array = _in_order(array_of(x, what))
    return ArrayInput(array.reshape(math.prod(array.shape)), what)


def _in_order(array: Any) -> Any:
    """The array, or a copy whose items lie behind each other."""
    if isinstance(array, Array):
        return array if array.is_c_contiguous() else array.copy()
    import numpy as np

    return np.ascontiguousarray(array)


class _Placed(Moved):
    """Items in places that some numbers say, which are no part of what is compiled."""

    offset, step = 0, None

    def __init__(self, it: Any, *numbers: int) -> None:
        self.it, self.numbers = it, numbers
        self.value_type, self.kind = it.value_type, (type(self).__name__, it.kind)

    def bounds(self) -> Bounds:
        return None, None

    def state(self) -> Any:
        import numpy as np

        return (self.it.state(), tuple(map(np.int64, self.numbers)))


def _along(numbers, i):
    length, inner = numbers
    row = i // length
    return (row // inner * length + i % length) * inner + row % inner


def _at_heads(numbers, i):
    length, some = numbers
    return i // some * length + i % some


class _Along(_Placed):
    """Segment after segment of an array whose segments lie in each other."""

    place = staticmethod(_along)


class Heads(_Placed):
    """Of segments of a length the first few items."""

    place = staticmethod(_at_heads)


class _Numbers(Iterator):
    """int64 items that follow from their index and a number."""

    writes = False

    def __init__(self, number: int) -> None:
        self.number, self.value_type, self.kind = number, int64, (type(self).__name__,)

    def state(self) -> Any:
        import numpy as np

        return (np.int64(self.number),)


class _Multiples(_Numbers):
    """0, n, 2 n …"""

    def reader(self):
        return lambda state, i: i * state[0]


class Cycle(_Numbers):
    """0 to n - 1, again and again."""

    def reader(self):
        return lambda state, i: i % state[0]
