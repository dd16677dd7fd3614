"""Atomics: accesses that other blocks may look at while the kernel runs. All of them become tile.atomic."""

from __future__ import annotations

import functools
from typing import Any

from ..modes import ATOMIC_KINDS, AtomicAccess
from . import memory
from .checks import constant_flag, fit
from .frame import Frame
from .table import OPS
from .values import Array, Shape, Tile


def _atomic(kind: str, frame: Frame, array: Any, indices: Any, *values: Any, **keywords: Any) -> Tile:
    access, what = AtomicAccess(kind, **keywords), f"ct.atomic_{kind}"
    array = memory.output(frame, array, what)
    access.check(array.dtype, what)
    tiles, shape = memory.element_indices(frame, array, indices, what)
    checked = constant_flag(access.check_bounds, f"{what}: check_bounds")
    at = memory.in_root(frame, array, tiles, [], checked)
    return memory.atomic(frame, access, array, at, written(frame, access, values, array, shape, what))


def written(
    frame: Frame, access: AtomicAccess, values: tuple[Any, ...], array: Array, shape: Shape, what: str
) -> list[Tile]:
    """What an access writes as tiles of the array's dtype; what it expects comes first."""
    for value in values:
        access.check_value(value.dtype if isinstance(value, Tile) else None, array.dtype, what)
    return [fit(frame, frame.emit.implicit(v, array.dtype, what), shape, f"{what}: the value") for v in values]


OPS.update({f"atomic_{kind}": functools.partial(_atomic, kind) for kind in ATOMIC_KINDS})
