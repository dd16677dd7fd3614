"""The operations of tilewright.tile by their public names. Arguments come bound, in the order of tile.py.

`OPS[name](frame, *args)` emits the operation and gives its value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Operation = Callable[..., Any]

OPS: dict[str, Operation] = {}
# What does more than make a value.
EFFECTS = frozenset(("load", "store", "gather", "scatter", "print", "printf", "assert_", "threads"))


def op(name: str) -> Callable[[Operation], Operation]:
    """The function below is what the operation `name` becomes."""

    def register(handler: Operation) -> Operation:
        OPS[name] = handler
        return handler

    return register
