"""The operations of tilewright.tile by their public names. Arguments come bound, in the order of tile.py.

`OPS[name](frame, *args)` emits the operation and gives its value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..registry import into

Operation = Callable[..., Any]

OPS: dict[str, Operation] = {}
# What does more than make a value.
EFFECTS = frozenset(("load", "store", "gather", "scatter", "print", "printf", "assert_", "threads"))
op = into(OPS)  # @op(name): the function below is what the operation becomes
