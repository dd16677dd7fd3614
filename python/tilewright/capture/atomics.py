"""Atomics: accesses that other blocks may look at while the kernel runs. All of them become tile.atomic."""

from __future__ import annotations

from typing import Any

from ..modes import check_atomic, check_atomic_value
from . import memory
from .checks import constant_flag, fit
from .frame import Frame
from .table import op
from .values import Array, Shape, Tile


def _at_indices(
    frame: Frame,
    kind: str,
    array: Any,
    indices: Any,
    values: tuple[Any, ...],
    check_bounds: Any,
    order: Any,
    scope: Any,
) -> Tile:
    what = f"ct.atomic_{kind}"
    array = memory.output(frame, array, what)
    check_atomic(kind, array.dtype, order, scope, what)
    tiles, shape = memory.element_indices(frame, array, indices, what)
    checked = constant_flag(check_bounds, f"{what}: check_bounds")
    tiles, mask = memory.in_root(frame, array, tiles, [], checked)
    *expected, value = (_value(frame, kind, v, array, shape, what) for v in values)
    return memory.atomic(
        frame,
        kind,
        array,
        tiles,
        value,
        order,
        scope,
        expected=expected[0] if expected else None,
        mask=mask,
        check_bounds=checked,
    )


def _value(frame: Frame, kind: str, value: Any, array: Array, shape: Shape, what: str) -> Tile:
    check_atomic_value(kind, value.dtype if isinstance(value, Tile) else None, array.dtype, what)
    return fit(frame, frame.emit.implicit(value, array.dtype, what), shape, f"{what}: the value")


@op("atomic_cas")
def _atomic_cas(
    frame: Frame,
    array: Any,
    indices: Any,
    expected: Any,
    desired: Any,
    check_bounds: Any,
    memory_order: Any,
    memory_scope: Any,
) -> Tile:
    return _at_indices(frame, "cas", array, indices, (expected, desired), check_bounds, memory_order, memory_scope)


def _register(kind: str) -> None:
    @op(f"atomic_{kind}")
    def run(
        frame: Frame,
        array: Any,
        indices: Any,
        update: Any,
        check_bounds: Any,
        memory_order: Any,
        memory_scope: Any,
    ) -> Tile:
        return _at_indices(frame, kind, array, indices, (update,), check_bounds, memory_order, memory_scope)


for _kind in ("xchg", "add", "min", "max", "and", "or", "xor"):
    _register(_kind)
