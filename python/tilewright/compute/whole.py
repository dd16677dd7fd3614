"""The algorithms as functions of arrays that return their results: reduce, scan, sort, argsort, topk.

Of NumPy arrays the results are NumPy's, of others `tilewright.Array`s on the same device, which nobody waits for.
"""

from __future__ import annotations

from typing import Any

from .. import arrays
from ..dtype import DType, float32, int64, uint64
from ..errors import TileTypeError, TileValueError
from .digits import SortOrder
from .inputs import ArrayInput
from .iterators import CountingIterator
from .merge_sort import merge_sort
from .operators import OpKind
from .radix_sort import radix_sort
from .reduce import reduce_into
from .scan import exclusive_scan, inclusive_scan
from .transform import unary_transform
from .types import ItemType, array_dtype, numpy_dtype


def _fresh(like: ArrayInput, count: int, t: ItemType, stream: Any) -> Any:
    """An undefined array on the device of another one."""
    import numpy as np

    if not isinstance(like.view, arrays.Array):
        return np.empty(count, numpy_dtype(t))
    return arrays.empty(count, array_dtype(t), device=like.place, stream=stream)


def _sum_type(t: ItemType) -> ItemType:
    """As NumPy sums: integers in 64 bits, floats of 16 bits in 32."""
    if not isinstance(t, DType) or (t.is_float and t.bits >= float32.bits):
        return t
    if t.is_float:
        return float32
    return int64 if t.signed or t.is_bool else uint64


def reduce(x: Any, op: Any = OpKind.PLUS, init: Any = None, *, stream: Any = None) -> Any:
    """The items of x joined from left to right by op, `init` first if there is one.

    Sums of integers have 64 bits, as NumPy's. A scalar of a NumPy array, else an array of one item.
    """
    given = ArrayInput(x, "reduce: 'x'")
    first = _first(given, op, init)
    out = _fresh(given, 1, _type_of(first), stream)
    rest = given.view if init is not None or op is OpKind.PLUS else given.view[1:]
    reduce_into(rest, out, op, int(rest.shape[0]), first, stream=stream)
    return out if isinstance(out, arrays.Array) else out[0]


def _first(given: ArrayInput, op: Any, init: Any) -> Any:
    """What a fold begins with: `init`, 0 for a sum, else the first item."""
    import numpy as np

    if init is not None:
        return init
    if op is OpKind.PLUS:
        return np.zeros(1, numpy_dtype(_sum_type(given.value_type)))
    if not given.count:
        raise TileValueError("reduce: of no items there is a result with an initial value only; give init=")
    return np.asarray(given.view[:1]).copy()


def _type_of(value: Any) -> ItemType:
    from .types import type_of_value

    return type_of_value(value)


def scan(x: Any, op: Any = OpKind.PLUS, init: Any = None, *, inclusive: bool = True, stream: Any = None) -> Any:
    """Running totals of x by op; where `inclusive` is False, which needs `init`, without the item itself."""
    given = ArrayInput(x, "scan: 'x'")
    run = inclusive_scan if inclusive else exclusive_scan
    if init is None and op is OpKind.PLUS:
        init = _first(given, op, None)
    out = _fresh(given, given.count, given.value_type if init is None else _type_of(init), stream)
    run(given.view, out, op, init, given.count, stream=stream)
    return out


def _order(descending: bool) -> SortOrder:
    return SortOrder.DESCENDING if descending else SortOrder.ASCENDING


def sort(x: Any, less: Any = None, *, descending: bool = False, stream: Any = None) -> Any:
    """The items of x in order: numbers by size, anything by a function less(a, b). Equal ones keep their order."""
    given = ArrayInput(x, "sort: 'x'")
    out = _fresh(given, given.count, given.value_type, stream)
    if less is None:
        radix_sort(given.view, out, None, None, _order(descending), given.count, stream=stream)
        return out
    if descending:
        raise TileTypeError("sort: with a function the order is its own; turn its comparison round for descending=True")
    merge_sort(given.view, None, out, None, less, given.count, stream=stream)
    return out


def argsort(x: Any, *, descending: bool = False, stream: Any = None) -> Any:
    """The places of the numbers of x in their order, as int64."""
    return _sorted_pairs(ArrayInput(x, "argsort: 'x'"), descending, stream)[1]


def topk(x: Any, k: int, *, largest: bool = True, stream: Any = None) -> tuple[Any, Any]:
    """The k largest numbers of x, or smallest ones, in order, and their places; of equal ones the first."""
    given = ArrayInput(x, "topk: 'x'")
    if not 0 <= k <= given.count:
        raise TileValueError(f"topk: k is from 0 to the number of items, {given.count}, found {k}")
    values, places = _sorted_pairs(given, largest, stream)
    return values[:k], places[:k]


def _sorted_pairs(given: ArrayInput, descending: bool, stream: Any) -> tuple[Any, Any]:
    import numpy as np

    values, places, order = (_fresh(given, given.count, t, stream) for t in (given.value_type, int64, int64))
    unary_transform(CountingIterator(np.int64(0)), order, OpKind.IDENTITY, given.count, stream=stream)
    radix_sort(given.view, values, order, places, _order(descending), given.count, stream=stream)
    return values, places


__all__ = ["argsort", "reduce", "scan", "sort", "topk"]
