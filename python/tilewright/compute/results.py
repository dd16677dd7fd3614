"""What an operator gives, found by capturing it."""

# The kernels' values have no types that a checker knows.
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import Any

from ..errors import TileError
from .launching import ComputeKernel, arguments
from .types import ItemType, Zero, type_in_kernel


class _Note:
    """In a kernel: keeps the type of what it is given."""

    found: ItemType = None

    def __call__(self, value: Any) -> None:
        raise TileError("a note of kernels was taken on the host")

    def __tw_call__(self, frame: Any, value: Any) -> None:
        self.found = type_in_kernel(frame, value)


class _Operands:
    def __init__(self, types: list[ItemType]) -> None:
        self.zeros = [Zero(t) for t in types]

    def __call__(self) -> Any:
        raise TileError("operands of kernels were made on the host")

    def __tw_call__(self, frame: Any) -> Any:
        return tuple(zero.__tw_call__(frame) for zero in self.zeros)


def result_type(operator: Any, types: list[ItemType]) -> ItemType:
    """The item type of what an operator gives for operands of these types."""
    import numpy as np

    from .iterators import states_of

    note, operands = _Note(), _Operands(types)

    def probe(arrays, other):
        note(operator(arrays, *operands()))

    kernel = ComputeKernel(probe)
    states = states_of(operator)
    _, key = kernel.specialization(arguments((states, 0 if states else np.zeros(1, np.int32))))
    kernel.capture("cpu", key)
    return note.found
