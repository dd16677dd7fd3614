"""Atomic accesses of the reference execution: one element after the other, in row-major order of the indices."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..dtype import DType
from ..errors import TileValueError
from ..modes import check_atomic, check_atomic_value
from .checks import broadcast_shapes
from .memory import element_indices, writable
from .table import OPS, op
from .values import Array, Shape, Tile, exact, is_number, promote_to, round_to


def _add(dtype: DType, old: Any, new: Any) -> Any:
    if dtype.is_float:
        return round_to(exact(np.asarray(old)) + exact(np.asarray(new)), dtype)
    return np.add(old, new)


COMBINE: dict[str, Callable[[DType, Any, Any], Any]] = {
    "xchg": lambda dtype, old, new: new,
    "add": _add,
    "min": lambda dtype, old, new: np.minimum(old, new),
    "max": lambda dtype, old, new: np.maximum(old, new),
    "and": lambda dtype, old, new: np.bitwise_and(old, new),
    "or": lambda dtype, old, new: np.bitwise_or(old, new),
    "xor": lambda dtype, old, new: np.bitwise_xor(old, new),
}


def _value(kind: str, value: Any, array: Array, shape: Shape, what: str) -> np.ndarray:
    check_atomic_value(kind, None if is_number(value) else getattr(value, "dtype", None), array.dtype, what)
    new = promote_to(value, array.dtype, what)
    if broadcast_shapes(new.shape, shape, f"{what}: the value") != shape:
        raise TileValueError(f"{what}: the value of shape {new.shape} does not broadcast to {shape}")
    return np.broadcast_to(new._data, shape)


def read_modify_write(
    kind: str,
    array: Any,
    indices: Any,
    update: Any,
    check_bounds: Any,
    memory_order: Any,
    memory_scope: Any,
    mask: Any = None,
) -> Tile:
    what = f"ct.atomic_{kind}"
    array = writable(array, what)
    check_atomic(kind, array.dtype, memory_order, memory_scope, what)
    where, inside, shape = element_indices(array, indices, mask, check_bounds, what)
    new = _value(kind, update, array, shape, what)
    result = new.copy()
    for i in np.ndindex(shape):
        if inside[i]:
            at = tuple(w[i] for w in where)
            result[i] = array._data[at]
            array._data[at] = COMBINE[kind](array.dtype, array._data[at], new[i])
    return Tile(result, array.dtype)


@op("atomic_cas")
def compare_and_swap(
    array: Any,
    indices: Any,
    expected: Any,
    desired: Any,
    check_bounds: Any,
    memory_order: Any,
    memory_scope: Any,
    mask: Any = None,
) -> Tile:
    what = "ct.atomic_cas"
    array = writable(array, what)
    check_atomic("cas", array.dtype, memory_order, memory_scope, what)
    where, inside, shape = element_indices(array, indices, mask, check_bounds, what)
    before, after = (_value("cas", v, array, shape, what) for v in (expected, desired))
    result = before.copy()
    for i in np.ndindex(shape):
        if inside[i]:
            at = tuple(w[i] for w in where)
            result[i] = array._data[at]
            if result[i].tobytes() == before[i].tobytes():  # bits, so that a NaN can be expected
                array._data[at] = after[i]
    return Tile(result, array.dtype)


OPS.update({f"atomic_{kind}": functools.partial(read_modify_write, kind) for kind in COMBINE})
