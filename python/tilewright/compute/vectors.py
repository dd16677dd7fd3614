"""Items that a thread reads or stores side by side, in accesses of 16 bytes where addresses allow it.

A kernel has two ways: over a whole tile whose arrays lie at multiples of 16 bytes, which the launch tells by a flag,
and over any items, one by one. LLVM joins the accesses of the first: it knows the arrays' alignment by `aligned`, and
that of the indices by their constant factors.
"""

# The kernels' values have no types that a checker knows.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import dataclasses
from typing import Any

from .. import arrays
from ..capture.simt import views
from ..capture.values import Array
from ..device import records
from ..errors import TileError
from .types import ItemType, size_of

WIDE = 16  # bytes of an access


class _Aligned:
    """In a kernel: `aligned(states)` are the states, whose arrays lie at multiples of 16 bytes."""

    def __call__(self, states: Any) -> Any:
        raise TileError("an alignment of kernels was asked for on the host")

    def __tw_call__(self, frame: Any, states: Any) -> Any:
        if isinstance(states, tuple):
            return tuple(self.__tw_call__(frame, s) for s in states)
        if isinstance(states, Array) and states.ndim == 1:
            return views.aligned(frame, states, WIDE)
        if isinstance(states, records.Records):
            held: Any = states
            return dataclasses.replace(held, bytes=self._of_records(frame, held.bytes, held.form.size))
        return states

    def _of_records(self, frame: Any, whole: Array, size: int) -> Array:
        """Bytes of items that lie side by side, as all arrays that algorithms take."""
        if whole.ndim != 2:
            return whole
        shape = views.shape_of(frame, whole)
        return views.made(frame, whole, views.Shape(0, shape.extents, [size, 1]), align=WIDE)


aligned = _Aligned()


def is_aligned(states: Any) -> bool:
    """Whether all arrays among the states of a launch lie at multiples of 16 bytes."""
    if isinstance(states, tuple):
        return all(map(is_aligned, states))
    if isinstance(states, arrays.Array):
        return states.address % WIDE == 0
    address = getattr(states, "ctypes", None)
    return address is None or address.data % WIDE == 0


def width_for(*types: ItemType) -> int:
    """How many items a thread takes side by side: 16 bytes of the largest ones."""
    return max(1, WIDE // max(map(size_of, types)))


def loading(read: Any, places: tuple[int, ...]) -> Any:
    """A function for kernels: the items at `at` and these distances from it, of aligned arrays."""

    def load(state, at):
        near = aligned(state)
        return tuple(read(near, at + p) for p in places)

    return load
