"""The algorithms as functions of arrays that return their results: reduce, scan, sort, argsort, topk.

`axis=` goes along an axis, of arrays of any strides; without it over all items, one row behind the other. Of NumPy
arrays the results are NumPy's, of others `tilewright.Array`s on the same device, which nobody waits for.
"""

from __future__ import annotations

from typing import Any

from .. import arrays
from ..dtype import DType, float32, int64, uint64
from ..errors import TileTypeError, TileValueError
from . import known_operators
from .along import Axis, Cycle, Heads, by_rows
from .digits import SortOrder, check_key
from .inputs import ArrayInput
from .iterators import CountingIterator, TransformIterator, TransformOutputIterator
from .merge_sort import merge_sort
from .operators import OpKind
from .radix_sort import radix_sort
from .reduce import reduce_into
from .scan import exclusive_scan, inclusive_scan
from .segmented_reduce import segmented_reduce
from .segmented_scan import segmented_exclusive_scan, segmented_inclusive_scan
from .segmented_sort import segmented_sort
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


def reduce(x: Any, op: Any = OpKind.PLUS, init: Any = None, *, axis: int | None = None, stream: Any = None) -> Any:
    """The items of x joined from left to right by op, `init` first if there is one.

    Sums of integers have 64 bits, as NumPy's. A scalar of a NumPy array, else an array of one item; along an axis an
    array without it.
    """
    if axis is not None:
        return _reduced_along(Axis(x, axis, "reduce: 'x'"), op, init, stream)
    given = by_rows(x, "reduce: 'x'")
    first = _first(given, op, init)
    out = _fresh(given, 1, _type_of(first), stream)
    rest = given.view if init is not None or op is OpKind.PLUS else given.view[1:]
    reduce_into(rest, out, op, int(rest.shape[0]), first, stream=stream)
    return out if isinstance(out, arrays.Array) else out[0]


def _reduced_along(by: Axis, op: Any, init: Any, stream: Any) -> Any:
    t = by.given.value_type
    if init is None and op is OpKind.PLUS:
        init = _zero(_sum_type(t))
    out = _fresh(by.given, by.rows, t if init is None else _type_of(init), stream)
    items, target = by.places(by.given.view), out
    if init is None:
        if not by.length:
            raise TileValueError("reduce: of no items there is a result with an initial value only; give init=")
        items, target, op, init = _with_a_mark(items, out, op, t)
    segmented_reduce(items, target, by.starts(), by.ends(), op, init, by.rows, stream=stream)
    return out.reshape(by.without())


def _with_a_mark(items: Any, out: Any, op: Any, t: ItemType) -> tuple[Any, Any, Any, Any]:
    """Input, output, operator and first value of folds that begin with their first item: items have a mark that they
    are there, which the first value has not."""
    import numpy as np

    joined = known_operators.FUNCTIONS[op.name] if isinstance(op, OpKind) else op

    def join(a, b):
        return (b[0], joined(a[1], b[1])) if a[0] else b

    marked = TransformIterator(items, lambda v: (1, v))
    return marked, TransformOutputIterator(out, lambda pair: pair[1]), join, (np.int64(0), _zero(t)[0])


def _zero(t: ItemType) -> Any:
    import numpy as np

    return np.zeros(1, numpy_dtype(t))


def _first(given: ArrayInput, op: Any, init: Any) -> Any:
    """What a fold begins with: `init`, 0 for a sum, else the first item."""
    import numpy as np

    if init is not None:
        return init
    if op is OpKind.PLUS:
        return _zero(_sum_type(given.value_type))
    if not given.count:
        raise TileValueError("reduce: of no items there is a result with an initial value only; give init=")
    return np.asarray(given.view[:1]).copy()


def _type_of(value: Any) -> ItemType:
    from .types import type_of_value

    return type_of_value(value)


def scan(
    x: Any,
    op: Any = OpKind.PLUS,
    init: Any = None,
    *,
    inclusive: bool = True,
    axis: int | None = None,
    stream: Any = None,
) -> Any:
    """Running totals of x by op; where `inclusive` is False, which needs `init`, without the item itself."""
    by = None if axis is None else Axis(x, axis, "scan: 'x'")
    given = by_rows(x, "scan: 'x'") if by is None else by.given
    if init is None and op is OpKind.PLUS:
        init = _first(given, op, None)
    out = _fresh(given, given.count, given.value_type if init is None else _type_of(init), stream)
    if by is None:
        run = inclusive_scan if inclusive else exclusive_scan
        run(given.view, out, op, init, given.count, stream=stream)
        return out
    along = segmented_inclusive_scan if inclusive else segmented_exclusive_scan
    along(by.places(given.view), by.places(out), by.starts(), by.ends(), op, init, by.rows, stream=stream)
    return out.reshape(by.shape)


def _order(descending: bool) -> SortOrder:
    return SortOrder.DESCENDING if descending else SortOrder.ASCENDING


def sort(x: Any, less: Any = None, *, descending: bool = False, axis: int | None = None, stream: Any = None) -> Any:
    """The items of x in order: numbers by size, anything by a function less(a, b). Equal ones keep their order."""
    if less is not None and (descending or axis is not None):
        raise TileTypeError(
            "sort: with a function the order is its own, over all items; turn its comparison round for descending=True"
        )
    if axis is not None:
        return _sorted_along(Axis(x, axis, "sort: 'x'"), descending, stream)
    given = by_rows(x, "sort: 'x'")
    out = _fresh(given, given.count, given.value_type, stream)
    if less is None:
        check_key(given, "sort: 'x'")
        radix_sort(given.view, out, None, None, _order(descending), given.count, stream=stream)
    else:
        merge_sort(given.view, None, out, None, less, given.count, stream=stream)
    return out


def _sorted_along(by: Axis, descending: bool, stream: Any) -> Any:
    check_key(by.given, "sort: 'x'")
    rows, _ = _sorted_rows(by, descending, False, stream)
    return _heads(by, rows, by.length, stream)


def argsort(x: Any, *, descending: bool = False, axis: int | None = None, stream: Any = None) -> Any:
    """The places of the numbers of x in their order, as int64."""
    if axis is not None:
        by = Axis(x, axis, "argsort: 'x'")
        check_key(by.given, "argsort: 'x'")
        return _heads(by, _sorted_rows(by, descending, True, stream)[1], by.length, stream)
    given = by_rows(x, "argsort: 'x'")
    check_key(given, "argsort: 'x'")
    return _sorted_pairs(given, descending, stream)[1]


def topk(x: Any, k: int, *, largest: bool = True, axis: int | None = None, stream: Any = None) -> tuple[Any, Any]:
    """The k largest numbers of x, or smallest ones, in order, and their places; of equal ones the first."""
    by = None if axis is None else Axis(x, axis, "topk: 'x'")
    given = by_rows(x, "topk: 'x'") if by is None else by.given
    check_key(given, "topk: 'x'")
    there = given.count if by is None else by.length
    if not hasattr(k, "__index__"):
        raise TileTypeError(f"topk: k is an integer, found {k!r}")
    if not 0 <= k <= there:
        raise TileValueError(f"topk: k is from 0 to the number of items, {there}, found {k}")
    if by is None:
        values, places = _sorted_pairs(given, largest, stream)
        return values[:k], places[:k]
    values, places = _sorted_rows(by, largest, True, stream)
    return _heads(by, values, k, stream), _heads(by, places, k, stream)


def _sorted_pairs(given: ArrayInput, descending: bool, stream: Any) -> tuple[Any, Any]:
    import numpy as np

    values, places, order = (_fresh(given, given.count, t, stream) for t in (given.value_type, int64, int64))
    unary_transform(CountingIterator(np.int64(0)), order, OpKind.IDENTITY, given.count, stream=stream)
    radix_sort(given.view, values, order, places, _order(descending), given.count, stream=stream)
    return values, places


def _sorted_rows(by: Axis, descending: bool, has_places: bool, stream: Any) -> tuple[Any, Any]:
    """Each segment in order, one behind the other, and where in its segment an item was."""
    given, n = by.given, by.count
    rows, values = (_fresh(given, n, given.value_type, stream) for _ in range(2))
    unary_transform(by.places(given.view), rows, OpKind.IDENTITY, n, stream=stream)
    order, places = (_fresh(given, n, int64, stream) if has_places else None for _ in range(2))
    if has_places:
        unary_transform(Cycle(max(1, by.length)), order, OpKind.IDENTITY, n, stream=stream)
    bounds = (by.starts(), by.ends(), _order(descending))
    segmented_sort(rows, values, order, places, n, by.rows, *bounds, stream=stream)
    return values, places


def _heads(by: Axis, rows: Any, k: int, stream: Any) -> Any:
    """The first k items of each segment, where they lie in the array's shape."""
    out = _fresh(by.given, by.rows * k, ArrayInput(rows, "x").value_type, stream)
    if k:
        heads = Heads(ArrayInput(rows, "x"), by.length, k)
        unary_transform(heads, by.places(out, k), OpKind.IDENTITY, by.rows * k, stream=stream)
    return out.reshape(by.of_length(k))


__all__ = ["argsort", "reduce", "scan", "sort", "topk"]
