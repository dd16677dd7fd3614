"""Atomic accesses of the reference execution: one element after the other, in row-major order of the indices."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..dtype import DType
from ..modes import AtomicAccess
from ..shape_rules import check_fits
from .memory import element_indices, writable
from .table import OPS
from .values import Array, Shape, Tile, exact, is_number, promote_to, round_to


def _add(dtype: DType, old: Any, new: Any) -> Any:
    if dtype.is_float:
        return round_to(exact(np.asarray(old)) + exact(np.asarray(new)), dtype)
    return np.add(old, new)


def _swap(dtype: DType, old: Any, expected: Any, desired: Any) -> Any:
    return desired if old.tobytes() == expected.tobytes() else old  # bits, so that a NaN can be expected


# What an element becomes, of what it was and what is written.
COMBINE: dict[str, Callable[..., Any]] = {
    "xchg": lambda dtype, old, new: new,
    "cas": _swap,
    "add": _add,
    "min": lambda dtype, old, new: np.minimum(old, new),
    "max": lambda dtype, old, new: np.maximum(old, new),
    "and": lambda dtype, old, new: np.bitwise_and(old, new),
    "or": lambda dtype, old, new: np.bitwise_or(old, new),
    "xor": lambda dtype, old, new: np.bitwise_xor(old, new),
}


def _written(access: AtomicAccess, value: Any, array: Array, shape: Shape, what: str) -> np.ndarray:
    access.check_value(None if is_number(value) else getattr(value, "dtype", None), array.dtype, what)
    new = promote_to(value, array.dtype, what)
    check_fits(new.shape, shape, f"{what}: the value")
    return np.broadcast_to(new._data, shape)


def perform(access: AtomicAccess, array: Any, indices: Any, values: tuple[Any, ...], mask: Any = None) -> Tile:
    """What the elements were; the last value is written, one before it is expected."""
    what = f"ct.atomic_{access.kind}"
    array = writable(array, what)
    access.check(array.dtype, what)
    where, inside, shape = element_indices(array, indices, mask, access.check_bounds, what)
    written = [_written(access, value, array, shape, what) for value in values]
    result = written[0].copy()
    for i in np.ndindex(shape):
        if inside[i]:
            at = tuple(w[i] for w in where)
            result[i] = old = array._data[at]
            array._data[at] = COMBINE[access.kind](array.dtype, old, *(w[i] for w in written))
    return Tile(result, array.dtype)


def _atomic(kind: str, array: Any, indices: Any, *values: Any, **keywords: Any) -> Tile:
    return perform(AtomicAccess(kind, **keywords), array, indices, values)


OPS.update({f"atomic_{kind}": functools.partial(_atomic, kind) for kind in COMBINE})
