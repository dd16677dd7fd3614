"""Ops: what each operation of tilewright.tile becomes. Arguments come bound, in the order of tile.py.

`OPS[name](frame, *args)` emits the operation and gives its value.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, cast

from .. import _core
from ..dtype import (
    PROMOTION,
    DType,
    as_dtype,
    bfloat16,
    bool_,
    constant_dtype,
    float8_e4m3fn,
    float8_e5m2,
    float8_e8m0fnu,
    float16,
    float32,
    float64,
    int8,
    int32,
    int64,
    promote,
    require_arithmetic,
    uint8,
    uint32,
    uint64,
)
from ..errors import TileStaticAssertionError, TileSyntaxError, TileTypeError, TileValueError, from_message
from ..formats import BITS, FLOATS, SIGNED, Conversion, printf_parts
from ..modes import check_cast_rounding, check_fast_accumulation, check_scaled, is_ordered, rounds_by_mode
from ..tile import MemoryOrder, MemoryScope, PaddingMode
from . import numerics
from .emit import BINARY_OPS, COMPARE_KINDS, REDUCE_KINDS, SCAN_KINDS, UNARY_OPS
from .frame import Frame
from .values import (
    Array,
    Format,
    Shape,
    Tile,
    describe,
    dimensions,
    is_number,
    is_run_time,
    require_tile_or_number,
    tile_type,
)

OPS: dict[str, Callable[..., Any]] = {}
# What does more than make a value.
EFFECTS = frozenset(("load", "store", "gather", "scatter", "print", "printf", "assert_"))
MOST_COMBINED = 8  # values at once, by a function of the user's
MOST_ELEMENTS = 2**30  # of a tile, so that a position in it is an int32


def op(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(handler: Callable[..., Any]) -> Callable[..., Any]:
        OPS[name] = handler
        return handler

    return register


def _register_elementwise() -> None:
    def binary(name: str) -> Callable[..., Any]:
        return lambda frame, x, y, **modes: numerics.binary(frame, name, x, y, **modes)

    def compare(name: str) -> Callable[..., Any]:
        return lambda frame, x, y: frame.emit.compare(name, x, y)

    def unary(name: str) -> Callable[..., Any]:
        return lambda frame, x, **modes: numerics.unary(frame, name, x, **modes)

    for names, make in ((BINARY_OPS, binary), (COMPARE_KINDS, compare), (UNARY_OPS, unary)):
        for name in names:
            OPS[name] = make(name)


_register_elementwise()

# ---------------------------------------------------------------------------------------------
# Arguments


def array_of(value: Any, what: str) -> Array:
    if not isinstance(value, Array):
        raise TileTypeError(f"{what} needs an array (an argument of the kernel), found {describe(value)}")
    return value


def _tile(frame: Frame, value: Any, what: str) -> Tile:
    return frame.emit.tile(value, what)


def _dtype(value: Any, what: str) -> DType:
    try:
        return as_dtype(value)
    except TileTypeError:
        raise TileTypeError(f"{what}: no dtype is meant by {describe(value)}") from None


def _static_int(value: Any, what: str) -> int:
    if isinstance(value, Tile):
        raise TileTypeError(
            f"{what} must be a constant, found {describe(value)}; a parameter becomes one by the annotation ct.Constant"
        )
    if type(value) is not int:
        raise TileTypeError(f"{what} must be a constant integer, found {describe(value)}")
    return value


def _static_ints(value: Any, what: str) -> Shape:
    if not isinstance(value, tuple):
        return (_static_int(value, what),)
    return tuple(_static_int(v, f"{what}[{i}]") for i, v in enumerate(value))


def _tile_shape(value: Any, what: str) -> Shape:
    shape = _static_ints(value, what)
    for axis, n in enumerate(shape):
        if n < 1 or n & (n - 1):
            raise TileValueError(
                f"{what}: dimension {axis} of {shape} is {n}, which is no power of two; expected "
                f"1, 2, 4, 8, …, as in {1 << max(0, n - 1).bit_length()} with a padding mode for "
                "the rest"
            )
    if math.prod(shape) > MOST_ELEMENTS:
        raise TileValueError(f"{what}: a tile of shape {shape} is too large; it has at most 2**30 elements")
    return shape


def _axis(value: Any, ndim: int, what: str) -> int:
    axis = _static_int(value, f"{what}: axis")
    if not -ndim <= axis < ndim:
        raise TileValueError(f"{what}: axis {axis} is outside a tile of {dimensions(ndim)}")
    return axis % ndim


def _axes(value: Any, ndim: int, what: str) -> Shape:
    if value is None:
        return tuple(range(ndim))
    axes = tuple(_axis(v, ndim, what) for v in (value if isinstance(value, tuple) else (value,)))
    if len(set(axes)) != len(axes):
        raise TileTypeError(f"{what}: axis {value} names one axis twice")
    return axes


def _order(value: Any, ndim: int, what: str) -> Shape:
    if value == "C":
        return tuple(range(ndim))
    if value == "F":
        return tuple(reversed(range(ndim)))
    if isinstance(value, str):
        raise TileValueError(f"{what}: order {value!r} is neither 'C', 'F' nor a permutation")
    axes = _static_ints(value, f"{what}: order")
    if sorted(axes) != list(range(ndim)):
        raise TileValueError(f"{what}: order {axes} is no permutation of {ndim} axes")
    return axes


def _order_attribute(order: Shape) -> dict[str, Any]:
    return {} if order == tuple(range(len(order))) else {"order": order}


def _hints(latency: Any, allow_tma: Any, what: str) -> dict[str, Any]:
    """Hints for the lowering, kept on the op; they change no result."""
    hints: dict[str, Any] = {}
    if latency is not None:
        if not 1 <= _static_int(latency, f"{what}: latency") <= 10:
            raise TileValueError(f"{what}: latency is 1 to 10, found {latency}")
        hints["tile.latency"] = latency
    if allow_tma is not None:
        hints["tile.allow_tma"] = numerics.constant_flag(allow_tma, f"{what}: allow_tma")
    return hints


# ---------------------------------------------------------------------------------------------
# Position


def _grid_axis(value: Any, what: str) -> int:
    axis = _static_int(value, f"{what}: axis")
    if not 0 <= axis <= 2:
        raise TileValueError(f"{what}: axis is 0, 1 or 2, found {axis}")
    return axis


@op("bid")
def _bid(frame: Frame, axis: Any) -> Tile:
    return frame.emit.typed("tile.block_id", [], {"axis": _grid_axis(axis, "ct.bid")}, int32, ())


@op("num_blocks")
def _num_blocks(frame: Frame, axis: Any) -> Tile:
    attributes = {"axis": _grid_axis(axis, "ct.num_blocks")}
    return frame.emit.typed("tile.num_blocks", [], attributes, int32, ())


@op("num_tiles")
def _num_tiles(frame: Frame, array: Any, axis: Any, shape: Any, order: Any) -> Tile:
    array = array_of(array, "ct.num_tiles")
    tile_shape = _tile_shape(shape, "ct.num_tiles: shape")
    if len(tile_shape) != array.ndim:
        raise TileValueError(
            f"ct.num_tiles: {describe(array)} needs a tile of {dimensions(array.ndim)}, found shape {tile_shape}"
        )
    k = _axis(axis, array.ndim, "ct.num_tiles")
    array_axis = _order(order, array.ndim, "ct.num_tiles")[k]
    from .views import extent  # which stands on this module

    count: Tile = frame.emit.binary("cdiv", extent(frame, array, array_axis), tile_shape[k])
    return count


# ---------------------------------------------------------------------------------------------
# Memory


def _tile_index(frame: Frame, array: Array, index: Any, shape: Shape, what: str) -> list[Tile]:
    values = index if isinstance(index, tuple) else (index,)
    if len(values) != array.ndim or len(shape) != array.ndim:
        raise TileValueError(
            f"{what}: the array '{array.name}' has {dimensions(array.ndim)}, the index {len(values)} "
            f"and the tile {len(shape)}; give one entry of each for each dimension"
        )
    return [frame.emit.index(v, f"{what}: index[{i}]") for i, v in enumerate(values)]


def window(frame: Frame, index: Sequence[Tile], steps: Shape, shape: Shape, axes: Shape) -> list[Tile]:
    """For each axis of an array the places of the elements of a tile that starts at `index` times `steps`."""
    emit = frame.emit
    found: dict[int, Tile] = {}
    for k, axis in enumerate(axes):
        first = emit.binary("mul", emit.cast(index[k], int64), steps[k])
        count = emit.cast(emit.typed("tile.iota", [], None, int32, (shape[k],)), int64)
        place = emit.reshape(emit.binary("add", first, count), tuple(n if d == k else 1 for d, n in enumerate(shape)))
        found[axis] = emit.broadcast(place, shape)
    return [found[axis] for axis in sorted(found)]


# Padding mode -> its value; what a dtype must have for it.
_PADDINGS = {
    PaddingMode.UNDETERMINED: 0,
    PaddingMode.ZERO: 1,
    PaddingMode.NEG_ZERO: 2,
    PaddingMode.NAN: 3,
    PaddingMode.POS_INF: 4,
    PaddingMode.NEG_INF: 5,
}


def _has_padding(dtype: DType, mode: PaddingMode) -> bool:
    if mode is PaddingMode.UNDETERMINED:
        return True
    if mode is PaddingMode.ZERO:
        return dtype is not float8_e8m0fnu
    if not dtype.is_float:
        return False
    if mode is PaddingMode.NAN:
        return dtype.bits > 4
    if mode is PaddingMode.NEG_ZERO:
        return dtype is not float8_e8m0fnu
    return dtype.bits > 8 or dtype is float8_e5m2


def _padding(mode: Any, dtype: DType) -> dict[str, Any]:
    if not isinstance(mode, PaddingMode):
        raise TileTypeError(f"padding_mode must be a ct.PaddingMode, found {describe(mode)}")
    if not _has_padding(dtype, mode):
        raise TileTypeError(f"padding_mode {mode.name}: {dtype} has no such value; use ZERO")
    return {"padding": _PADDINGS[mode]}


_PADDING_VALUES = {
    PaddingMode.NEG_ZERO: -0.0,
    PaddingMode.NAN: math.nan,
    PaddingMode.POS_INF: math.inf,
    PaddingMode.NEG_INF: -math.inf,
}


def _padding_tile(frame: Frame, mode: PaddingMode, dtype: DType, shape: Shape) -> Tile:
    value = _PADDING_VALUES.get(mode, False if dtype is bool_ else 0)
    return frame.emit.constant(value, dtype, shape)


# As dialect/TileBase.td numbers them.
ATOMIC_KINDS = {n: i for i, n in enumerate(["load", "store", "xchg", "cas", "add", "min", "max", "and", "or", "xor"])}
_ORDERS = {MemoryOrder.RELAXED: 0, MemoryOrder.ACQUIRE: 1, MemoryOrder.RELEASE: 2, MemoryOrder.ACQ_REL: 3}
_SCOPES = {MemoryScope.BLOCK: 0, MemoryScope.DEVICE: 1, MemoryScope.SYS: 2}


def atomic(
    frame: Frame,
    kind: str,
    array: Array,
    indices: list[Tile],
    value: Tile,
    order: MemoryOrder,
    scope: MemoryScope,
    *,
    expected: Tile | None = None,
    mask: Sequence[Any] = (),
    check_bounds: bool = True,
) -> Tile:
    """An access that others may look at, at index tiles of one shape; what the elements were."""
    groups = [[array.ir], [t.ir for t in indices], [value.ir], [] if expected is None else [expected.ir], mask]
    attributes = {
        **segments(*groups),
        "kind": ATOMIC_KINDS[kind],
        "memory_order": _ORDERS[order],
        "memory_scope": _SCOPES[scope],
        **({"check_bounds": None} if check_bounds else {}),
    }
    operands = [ir for group in groups for ir in group]
    return frame.emit.typed("tile.atomic", operands, attributes, array.dtype, value.shape)


def in_root(
    frame: Frame, array: Array, tiles: list[Tile], mask: Sequence[Any], checked: bool
) -> tuple[list[Tile], Sequence[Any]]:
    """Indices into a part of an array as such into the array itself, and a mask of those that are in the part."""
    emit, found = frame.emit, list(tiles)
    for axis, (first, length) in array.windows.items():
        index = emit.cast(tiles[axis], int64)
        found[axis] = emit.binary("add", index, first)
        if checked:
            low, high = emit.compare("less_equal", 0, index), emit.compare("less", index, length)
            inside = emit.binary("bitwise_and", low, high)
            if mask:
                inside = emit.binary("bitwise_and", Tile(mask[0], bool_, inside.shape), inside)
            mask = [inside.ir]
    return found, mask


def gather_elements(
    frame: Frame,
    array: Array,
    tiles: list[Tile],
    mask: Sequence[Any],
    padding: Tile,
    checked: bool,
    hints: dict[str, Any],
) -> Tile:
    groups = [[array.ir], [t.ir for t in tiles], mask, [padding.ir]]
    attributes = {**segments(*groups), **hints, **({"check_bounds": None} if checked else {})}
    operands = [ir for group in groups for ir in group]
    return frame.emit.typed("tile.gather", operands, attributes, array.dtype, padding.shape)


def scatter_elements(
    frame: Frame,
    array: Array,
    tiles: list[Tile],
    mask: Sequence[Any],
    value: Tile,
    checked: bool,
    hints: dict[str, Any],
) -> None:
    groups = [[array.ir], [t.ir for t in tiles], [value.ir], mask]
    attributes = {**segments(*groups), **hints, **({"check_bounds": None} if checked else {})}
    frame.builder.op("tile.scatter", [ir for group in groups for ir in group], attributes, [])


Order = tuple[MemoryOrder, MemoryScope]


def gather_window(
    frame: Frame, array: Array, places: list[Tile], padding_mode: Any, checked: bool, order: Order | None = None
) -> Tile:
    """The elements at places in an array or a part of one; the padding where they are outside."""
    _padding(padding_mode, array.dtype)
    padding = _padding_tile(frame, padding_mode, array.dtype, places[0].shape if places else ())
    tiles, mask = in_root(frame, array, places, [], checked)
    if order is not None:
        return atomic(frame, "load", array, tiles, padding, *order, mask=mask, check_bounds=checked)
    return gather_elements(frame, array, tiles, mask, padding, checked, {})


def scatter_window(
    frame: Frame, array: Array, places: list[Tile], value: Tile, checked: bool, order: Order | None = None
) -> None:
    output(frame, array, "store")
    tiles, mask = in_root(frame, array, places, [], checked)
    if order is not None:
        atomic(frame, "store", array, tiles, value, *order, mask=mask, check_bounds=checked)
    else:
        scatter_elements(frame, array, tiles, mask, value, checked, {})


@op("load")
def _load(
    frame: Frame,
    array: Any,
    index: Any,
    shape: Any,
    order: Any,
    padding_mode: Any,
    check_bounds: Any,
    latency: Any,
    allow_tma: Any,
    memory_order: Any,
    memory_scope: Any,
) -> Tile:
    array = array_of(array, "ct.load")
    tile_shape = _tile_shape(shape, "ct.load: shape")
    is_element = not tile_shape
    tile_shape = tile_shape or (1,) * array.ndim
    indices = _tile_index(frame, array, index, tile_shape, "ct.load")
    attributes = {
        **_order_attribute(_order(order, array.ndim, "ct.load")),
        **_padding(padding_mode, array.dtype),
        **_hints(latency, allow_tma, "ct.load"),
    }
    checked = numerics.constant_flag(check_bounds, "ct.load: check_bounds")
    if not checked:
        attributes["tile.in_bounds"] = None
    ordered = is_ordered(memory_order, memory_scope, "load", "ct.load")
    if ordered or array.windows:
        places = window(frame, indices, tile_shape, tile_shape, _order(order, array.ndim, "ct.load"))
        how = (memory_order, memory_scope) if ordered else None
        loaded = gather_window(frame, array, places, padding_mode, checked, how)
        return frame.emit.reshape(loaded, ()) if is_element else loaded
    operands = [array.ir, *(i.ir for i in indices)]
    loaded = frame.emit.typed("tile.load", operands, attributes, array.dtype, tile_shape)
    return frame.emit.reshape(loaded, ()) if is_element else loaded


def output(frame: Frame, value: Any, what: str) -> Array:
    array = array_of(value, what)
    frame.capture.written.add(array.position)
    return array


@op("store")
def _store(
    frame: Frame,
    array: Any,
    index: Any,
    tile: Any,
    order: Any,
    check_bounds: Any,
    latency: Any,
    allow_tma: Any,
    memory_order: Any,
    memory_scope: Any,
) -> None:
    array = output(frame, array, "ct.store")
    value = frame.emit.implicit(tile, array.dtype, "ct.store")
    if not value.shape:
        value = frame.emit.broadcast(value, (1,) * array.ndim)
    indices = _tile_index(frame, array, index, value.shape, "ct.store")
    attributes = {
        **_order_attribute(_order(order, array.ndim, "ct.store")),
        **_hints(latency, allow_tma, "ct.store"),
    }
    checked = numerics.constant_flag(check_bounds, "ct.store: check_bounds")
    if not checked:
        attributes["tile.in_bounds"] = None
    ordered = is_ordered(memory_order, memory_scope, "store", "ct.store")
    if ordered or array.windows:
        places = window(frame, indices, value.shape, value.shape, _order(order, array.ndim, "ct.store"))
        how = (memory_order, memory_scope) if ordered else None
        scatter_window(frame, array, places, value, checked, how)
        return
    frame.builder.op("tile.store", [array.ir, *(i.ir for i in indices), value.ir], attributes, [])


def element_indices(frame: Frame, array: Array, indices: Any, what: str) -> tuple[list[Tile], Shape]:
    """One index tile for each axis, all of the shape of the result, and that shape."""
    values = indices if isinstance(indices, tuple) else (indices,)
    if len(values) != array.ndim:
        raise TileValueError(
            f"{what}: the array '{array.name}' has {dimensions(array.ndim)}, but there are "
            f"{len(values)} indices; give one for each dimension"
        )
    tiles = [_tile(frame, v, f"{what}: index") for v in values]
    shape: Shape = ()
    for tile in tiles:
        if not tile.dtype.is_integral:
            raise TileTypeError(f"{what}: indices are integers, found {tile.dtype}")
        shape = broadcast_shapes(shape, tile.shape, f"{what}: indices")
    return [frame.emit.broadcast(t, shape) for t in tiles], shape


def broadcast_shapes(a: Shape, b: Shape, what: str) -> Shape:
    rank = max(len(a), len(b))
    result = []
    for m, n in zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b, strict=True):
        if m != n and m != 1 and n != 1:
            raise TileValueError(f"{what}: shapes {a} and {b} do not broadcast; expected equal lengths, or 1")
        result.append(max(m, n))
    return tuple(result)


def fit(frame: Frame, value: Tile, shape: Shape, what: str) -> Tile:
    """A tile broadcast to exactly `shape`."""
    if broadcast_shapes(value.shape, shape, what) != shape:
        raise TileValueError(f"{what} of shape {value.shape} does not broadcast to {shape}")
    return frame.emit.broadcast(value, shape)


def mask_of(frame: Frame, mask: Any, shape: Shape, what: str) -> list[Any]:
    if mask is None:
        return []
    tile = _tile(frame, mask, f"{what}: mask")
    fits = tile.dtype is bool_
    try:
        fits = fits and broadcast_shapes(tile.shape, shape, what) == shape
    except TileValueError:
        fits = False
    if not fits:
        raise TileTypeError(f"{what}: mask must be a bool_ tile that broadcasts to {shape}, found {describe(tile)}")
    return [frame.emit.broadcast(tile, shape).ir]


def segments(*groups: Sequence[Any]) -> dict[str, Any]:
    return {"operandSegmentSizes": tuple(len(g) for g in groups)}


@op("gather")
def _gather(
    frame: Frame,
    array: Any,
    indices: Any,
    mask: Any,
    padding_value: Any,
    check_bounds: Any,
    latency: Any,
) -> Tile:
    array = array_of(array, "ct.gather")
    tiles, shape = element_indices(frame, array, indices, "ct.gather")
    if array.dtype is bool_ and is_number(padding_value):
        padding_value = bool(padding_value)
    padding = frame.emit.implicit(padding_value, array.dtype, "ct.gather: padding_value")
    padding = fit(frame, padding, shape, "ct.gather: padding_value")
    checked = numerics.constant_flag(check_bounds, "ct.gather: check_bounds")
    tiles, where = in_root(frame, array, tiles, mask_of(frame, mask, shape, "ct.gather"), checked)
    return gather_elements(frame, array, tiles, where, padding, checked, _hints(latency, None, "ct.gather"))


@op("scatter")
def _scatter(
    frame: Frame,
    array: Any,
    indices: Any,
    value: Any,
    mask: Any,
    check_bounds: Any,
    latency: Any,
) -> None:
    array = output(frame, array, "ct.scatter")
    tiles, shape = element_indices(frame, array, indices, "ct.scatter")
    new = frame.emit.implicit(value, array.dtype, "ct.scatter")
    new = fit(frame, new, shape, "ct.scatter: value")
    checked = numerics.constant_flag(check_bounds, "ct.scatter: check_bounds")
    tiles, where = in_root(frame, array, tiles, mask_of(frame, mask, shape, "ct.scatter"), checked)
    scatter_elements(frame, array, tiles, where, new, checked, _hints(latency, None, "ct.scatter"))


def read_element(frame: Frame, array: Array, index: tuple[Any, ...]) -> Tile:
    """One element, of which the program says that it is inside."""
    return cast(Tile, _gather(frame, array, index, None, 0, False, None))


def write_element(frame: Frame, array: Array, index: tuple[Any, ...], value: Any) -> None:
    _scatter(frame, array, index, value, None, False, None)


# ---------------------------------------------------------------------------------------------
# Creation


@op("full")
def _full(frame: Frame, shape: Any, fill_value: Any, dtype: Any, what: str = "ct.full") -> Tile:
    tile_shape = _tile_shape(shape, f"{what}: shape")
    dtype = _dtype(dtype, f"{what}: dtype")
    value = require_tile_or_number(fill_value, what)
    if is_number(value):
        return frame.emit.constant(value, dtype, tile_shape)
    if value.shape:
        raise TileTypeError(f"ct.full needs a scalar to fill with, found shape {value.shape}")
    return frame.emit.broadcast(frame.emit.cast(value, dtype), tile_shape)


@op("zeros")
def _zeros(frame: Frame, shape: Any, dtype: Any) -> Tile:
    return _full(frame, shape, 0, dtype, "ct.zeros")


@op("ones")
def _ones(frame: Frame, shape: Any, dtype: Any) -> Tile:
    return _full(frame, shape, 1, dtype, "ct.ones")


@op("astile")
def _astile(frame: Frame, value: Any, dtype: Any) -> Tile:
    dtype = _dtype(dtype, "ct.astile: dtype")
    shape, entries = _nested(value, "ct.astile")
    return _select_tree(frame, [frame.emit.cast(entry, dtype) for entry in entries], _tile_shape(shape, "ct.astile"))


def _nested(value: Any, what: str) -> tuple[Shape, list[Any]]:
    """The shape of nested tuples, and their scalars in row-major order."""
    if not isinstance(value, tuple):
        value = require_tile_or_number(value, what)
        if isinstance(value, Tile) and value.shape:
            raise TileTypeError(f"{what} needs numbers and scalars, found {describe(value)}")
        return (), [value]
    parts = [_nested(part, what) for part in value]
    count, shapes = len(parts), sorted({shape for shape, _ in parts})
    if count < 1 or count & (count - 1):
        raise TileTypeError(f"{what}: a tuple of {count} entries; expected 1, 2, 4, 8, … of them")
    if len(shapes) > 1:
        shown = ", ".join(map(str, shapes))
        raise TileTypeError(f"{what}: the entries of one tuple have the shapes {shown}; expected one shape")
    return (count, *shapes[0]), [entry for _, entries in parts for entry in entries]


def _select_tree(frame: Frame, entries: list[Tile], shape: Shape) -> Tile:
    """A tile of given elements: each bit of the position halves what it may be."""
    emit, count = frame.emit, len(entries)
    if all(entry.ir is entries[0].ir for entry in entries):
        return emit.broadcast(entries[0], shape)
    position = emit.typed("tile.iota", [], None, int32, (count,))
    values = [emit.broadcast(entry, (count,)) for entry in entries]
    bit = 1
    while len(values) > 1:
        is_odd = emit.compare("not_equal", emit.binary("bitwise_and", position, bit), 0)
        values = [emit.select(is_odd, odd, even) for even, odd in zip(values[::2], values[1::2], strict=True)]
        bit *= 2
    return emit.reshape(values[0], shape)


@op("arange")
def _arange(frame: Frame, size: Any, dtype: Any, start: Any, step: Any) -> Tile:
    dtype = _dtype(dtype, "ct.arange: dtype")
    shape = _tile_shape(_static_int(size, "ct.arange: size"), "ct.arange: size")
    require_arithmetic(dtype, "ct.arange")
    emit = frame.emit
    steps = emit.typed("tile.iota", [], None, dtype if dtype.is_integral else int32, shape)
    steps = emit.cast(steps, dtype)
    if not (is_number(step) and step == 1):
        steps = emit.binary("mul", steps, emit.implicit(step, dtype, "ct.arange: step"))
    if not (is_number(start) and start == 0):
        steps = emit.binary("add", emit.implicit(start, dtype, "ct.arange: start"), steps)
    return steps


# ---------------------------------------------------------------------------------------------
# Elementwise with rules of their own


def positive(frame: Frame, value: Any) -> Any:
    """+x."""
    value = require_tile_or_number(value, "+x")
    if value.dtype is bool_:
        return frame.emit.cast(value, int32)
    require_arithmetic(value.dtype, "+x")
    return value


@op("cdiv")
def _cdiv(frame: Frame, x: Any, y: Any) -> Any:
    for value in (x, y):
        if isinstance(value, float):
            raise TileTypeError(f"ct.cdiv needs integers, found the constant {value!r}")
    return frame.emit.binary("cdiv", x, y)


@op("where")
def _where(frame: Frame, condition: Any, x: Any, y: Any) -> Tile:
    return frame.emit.select(condition, x, y)


@op("astype")
def _astype(frame: Frame, x: Any, dtype: Any, rounding_mode: Any = None) -> Tile:
    value = require_tile_or_number(x, "ct.astype")
    dtype = _dtype(dtype, "ct.astype")
    source = constant_dtype(value) if is_number(value) else value.dtype
    check_cast_rounding(rounding_mode, source, dtype)
    if rounding_mode is not None and rounds_by_mode(rounding_mode, source, dtype):
        return numerics.rounded(frame, frame.emit.tile(value, "ct.astype"), dtype, rounding_mode)
    return frame.emit.cast(value, dtype)


@op("divmod")
def _divmod(frame: Frame, x: Any, y: Any) -> tuple[Any, Any]:
    return frame.emit.binary("floordiv", x, y), frame.emit.binary("mod", x, y)


@op("isnan")
def _isnan(frame: Frame, x: Any) -> Any:
    value = require_tile_or_number(x, "ct.isnan")
    if is_number(value):
        return math.isnan(value)
    if not value.dtype.is_float:
        raise TileTypeError(f"ct.isnan needs floats, found {value.dtype}, which has no NaN")
    require_arithmetic(value.dtype, "ct.isnan")
    return numerics.isnan(frame, value)


# ---------------------------------------------------------------------------------------------
# Shape


@op("reshape")
def _reshape(frame: Frame, x: Any, shape: Any) -> Tile:
    tile = _tile(frame, x, "ct.reshape")
    wanted = _static_ints(shape, "ct.reshape: shape")
    if wanted.count(-1) > 1:
        raise TileTypeError(f"ct.reshape: shape {wanted} leaves several lengths open; expected one -1 at most")
    size = math.prod(tile.shape)
    if wanted.count(-1) == 1:
        rest = -math.prod(wanted)
        if rest > 0 and size % rest == 0:
            wanted = tuple(size // rest if n == -1 else n for n in wanted)
    wanted = _tile_shape(wanted, "ct.reshape: shape")
    if math.prod(wanted) != size:
        raise TileValueError(f"ct.reshape: shape {tile.shape} has {size} elements, {wanted} has {math.prod(wanted)}")
    return frame.emit.reshape(tile, wanted)


def _permuted(frame: Frame, tile: Tile, order: Shape) -> Tile:
    if order == tuple(range(len(order))):
        return tile
    return frame.emit.op("tile.permute", [tile], {"order": order}, public="permute")


@op("permute")
def _permute(frame: Frame, x: Any, axes: Any) -> Tile:
    tile = _tile(frame, x, "ct.permute")
    values = axes if isinstance(axes, tuple) else (axes,)
    order = tuple(_axis(v, tile.ndim, "ct.permute") for v in values)
    if sorted(order) != list(range(tile.ndim)):
        raise TileValueError(f"ct.permute: axes {axes} is no permutation of {tile.ndim} axes")
    return _permuted(frame, tile, order)


@op("transpose")
def _transpose(frame: Frame, x: Any, axis0: Any, axis1: Any) -> Tile:
    tile = _tile(frame, x, "ct.transpose")
    if axis0 is None and axis1 is None:
        if tile.ndim != 2:
            raise TileTypeError(f"ct.transpose of a tile of {dimensions(tile.ndim)} needs the two axes to swap")
        axis0, axis1 = 0, 1
    elif axis0 is None or axis1 is None:
        raise TileTypeError("ct.transpose needs both axes or none")
    a, b = (_axis(v, tile.ndim, "ct.transpose") for v in (axis0, axis1))
    order = list(range(tile.ndim))
    order[a], order[b] = order[b], order[a]
    return _permuted(frame, tile, tuple(order))


@op("expand_dims")
def _expand_dims(frame: Frame, x: Any, axis: Any) -> Tile:
    tile = _tile(frame, x, "ct.expand_dims")
    at = _axis(axis, tile.ndim + 1, "ct.expand_dims")
    return frame.emit.reshape(tile, (*tile.shape[:at], 1, *tile.shape[at:]))


@op("cat")
def _cat(frame: Frame, tiles: Any, axis: Any) -> Tile:
    if not isinstance(tiles, tuple) or not 1 <= len(tiles) <= 2:
        raise TileTypeError(f"ct.cat needs a tuple of one or two tiles, found {describe(tiles)}")
    x, *rest = (_tile(frame, tile, "ct.cat") for tile in tiles)
    at = _static_int(axis, "ct.cat: axis")
    if not -x.ndim <= at < x.ndim:
        raise TileTypeError(f"ct.cat: axis {at} is outside a tile of {dimensions(x.ndim)}")
    for y in rest:
        if (x.dtype, x.shape) != (y.dtype, y.shape):
            raise TileTypeError(
                f"ct.cat needs tiles of one dtype and shape, found {describe(x)} and {describe(y)}; "
                "the shape of the result must be powers of two, too"
            )
    return frame.emit.op("tile.cat", [x, *rest], {"axis": at % x.ndim}, public="cat") if rest else x


def _part_index(frame: Frame, whole: Shape, part: Shape, index: Any, what: str) -> list[Any]:
    """The index of a part of a tile, checked as far as it is known."""
    entries = index if isinstance(index, tuple) else (index,)
    if len(part) != len(whole) or len(entries) != len(whole):
        raise TileTypeError(
            f"{what}: the index has {len(entries)} entries and the part {dimensions(len(part))}; "
            f"expected {len(whole)}, as the tile has: a part does not match the tile rank otherwise"
        )
    for axis, (entry, have, wanted) in enumerate(zip(entries, whole, part, strict=True)):
        if have % wanted:
            raise TileTypeError(f"{what}: parts of shape {part} do not make up a tile of shape {whole}")
        if is_number(entry) and not 0 <= entry < have // wanted:
            raise TileTypeError(
                f"{what}: index {entry} is out of bounds along axis {axis}, of {have // wanted} parts of {wanted}"
            )
    return [frame.emit.index(entry, f"{what}: index[{i}]").ir for i, entry in enumerate(entries)]


@op("extract")
def _extract(frame: Frame, x: Any, index: Any, shape: Any) -> Tile:
    tile = _tile(frame, x, "ct.extract")
    wanted = _tile_shape(shape, "ct.extract: shape")
    part = wanted or (1,) * tile.ndim
    indices = _part_index(frame, tile.shape, part, index, "ct.extract")
    if not tile.shape:
        return tile
    return frame.emit.reshape(
        frame.emit.typed("tile.extract", [tile.ir, *indices], None, tile.dtype, part), wanted or ()
    )


@op("insert")
def _insert(frame: Frame, x: Any, index: Any, value: Any) -> Tile:
    tile = _tile(frame, x, "ct.insert")
    part = frame.emit.implicit(value, tile.dtype, "ct.insert")
    if not part.shape and tile.shape:
        part = frame.emit.broadcast(part, (1,) * tile.ndim)
    indices = _part_index(frame, tile.shape, part.shape, index, "ct.insert")
    if not tile.shape:
        return part
    return frame.emit.typed("tile.insert", [tile.ir, part.ir, *indices], None, tile.dtype, tile.shape)


def _bits(dtype: DType, what: str) -> int:
    """Of an element in memory."""
    if dtype is bool_:
        raise TileTypeError(f"{what}: bool_ has no bits to speak of; convert, as in x.astype(ct.uint8) or x != 0")
    return dtype.bits


@op("bitcast")
def _bitcast(frame: Frame, x: Any, dtype: Any) -> Tile:
    tile, wanted = _tile(frame, x, "ct.bitcast"), _dtype(dtype, "ct.bitcast")
    have, need = _bits(tile.dtype, "ct.bitcast"), _bits(wanted, "ct.bitcast")
    if have != need:
        raise TileTypeError(
            f"ct.bitcast: {tile.dtype} has {have} bits and {wanted} has {need}; expected as many: "
            "ct.pack_to_bytes and ct.unpack_from_bytes take elements apart"
        )
    return frame.emit.typed("tile.bitcast", [tile.ir], None, wanted, tile.shape)


@op("pack_to_bytes")
def _pack_to_bytes(frame: Frame, x: Any) -> Tile:
    tile = _tile(frame, x, "ct.pack_to_bytes")
    bits = _bits(tile.dtype, "ct.pack_to_bytes") * math.prod(tile.shape)
    if bits % 8:
        raise TileTypeError(f"ct.pack_to_bytes: {describe(tile)} has {bits} bits, which are no whole bytes")
    tile = frame.emit.broadcast(tile, tile.shape or (1,))
    return frame.emit.typed("tile.pack_to_bytes", [tile.ir], None, uint8, (bits // 8,))


@op("unpack_from_bytes")
def _unpack_from_bytes(frame: Frame, x: Any, dtype: Any) -> Tile:
    tile, wanted = _tile(frame, x, "ct.unpack_from_bytes"), _dtype(dtype, "ct.unpack_from_bytes")
    if tile.ndim != 1 or tile.dtype is not uint8:
        raise TileTypeError(f"ct.unpack_from_bytes needs a 1-D tile of uint8, found {describe(tile)}")
    bits = _bits(wanted, "ct.unpack_from_bytes")
    if tile.shape[0] * 8 % bits:
        raise TileTypeError(
            f"ct.unpack_from_bytes: {tile.shape[0]} bytes are no elements of {wanted}, which has {bits} bits"
        )
    return frame.emit.typed("tile.unpack_from_bytes", [tile.ir], None, wanted, (tile.shape[0] * 8 // bits,))


@op("broadcast_to")
def _broadcast_to(frame: Frame, x: Any, shape: Any) -> Tile:
    tile = _tile(frame, x, "ct.broadcast_to")
    wanted = _tile_shape(shape, "ct.broadcast_to: shape")
    if broadcast_shapes(tile.shape, wanted, "ct.broadcast_to") != wanted:
        raise TileValueError(f"ct.broadcast_to: shape {tile.shape} does not broadcast to {wanted}")
    return frame.emit.broadcast(tile, wanted)


def new_axes(frame: Frame, tile: Tile, index: Any) -> Tile:
    """x[:, None]: new axes only."""
    entries = index if isinstance(index, tuple) else (index,)
    kept = 0
    for entry in entries:
        whole = isinstance(entry, slice) and entry == slice(None)
        if entry is not None and entry is not Ellipsis and not whole:
            found = "a slice with bounds" if isinstance(entry, slice) else describe(entry)
            raise TileTypeError(
                f"a tile takes only ':', None and '...' as index, found {found}; "
                "select elements with ct.where, or with ct.gather from an array"
            )
        kept += whole
    if kept > tile.ndim or entries.count(Ellipsis) > 1:
        raise TileValueError(f"too many indices for a tile of shape {tile.shape}")
    rest = iter(tile.shape)
    shape: list[int] = []
    for entry in entries:
        if entry is None:
            shape.append(1)
        elif entry is Ellipsis:
            shape.extend(next(rest) for _ in range(tile.ndim - kept))
        else:
            shape.append(next(rest))
    return frame.emit.reshape(tile, (*shape, *rest))


def item(frame: Frame, tile: Any) -> Tile:
    """x.item()."""
    if math.prod(tile.shape) != 1:
        raise TileValueError(f"item() needs a tile with one element, found shape {tile.shape}")
    return frame.emit.reshape(tile, ())


# ---------------------------------------------------------------------------------------------
# Reductions


def _register_reductions() -> None:
    def named(run: Callable[..., Any], name: str) -> Callable[..., Any]:
        return lambda frame, *args, **keywords: run(frame, name, *args, **keywords)

    for name in REDUCE_KINDS:
        OPS[name] = named(_arg_reduce if name.startswith("arg") else _reduce, name)
    for name in SCAN_KINDS:
        OPS[name] = named(_scan, name)


def _sum_dtype(dtype: DType) -> DType:
    """What sums and products of a dtype are made in."""
    return float32 if dtype in (float16, bfloat16) else int32 if dtype is bool_ else dtype


def _reduce_axis(frame: Frame, name: str, tile: Tile, axis: int, ignore_nan: bool = False) -> Tile:
    attributes = {"kind": REDUCE_KINDS[name], "axis": axis, **({"ignore_nan": None} if ignore_nan else {})}
    return frame.emit.op("tile.reduce", [tile], attributes, public=name)


def _ignores_nan(name: str, tile: Tile, propagate_nan: Any) -> bool:
    keeps = numerics.constant_flag(propagate_nan, f"ct.{name}: propagate_nan")
    return not keeps and tile.dtype.is_float and name not in ("sum", "prod")


def _reduce(
    frame: Frame, name: str, x: Any, axis: Any, keepdims: Any, propagate_nan: Any = False, **modes: Any
) -> Tile:
    tile = _tile(frame, x, f"ct.{name}")
    require_arithmetic(tile.dtype, f"ct.{name}", allow_bool=True)
    axes = _axes(axis, tile.ndim, f"ct.{name}")
    keep = numerics.constant_flag(keepdims, f"ct.{name}: keepdims")
    ignore_nan = _ignores_nan(name, tile, propagate_nan)

    def run(tile: Tile) -> Tile:
        return _reduce_axes(frame, name, tile, axes, keep, ignore_nan)

    return numerics.under_modes(frame, name, tile, run, **modes)


def _reduce_axes(frame: Frame, name: str, tile: Tile, axes: Shape, keep: bool, ignore_nan: bool) -> Tile:
    """Along several axes one after the other, the last first. 16-bit floats add up in float32."""
    dtype, shape = tile.dtype, tile.shape
    if name in ("sum", "prod"):
        tile = frame.emit.cast(tile, _sum_dtype(dtype))
        dtype = int32 if dtype is bool_ else dtype
    for one in sorted(axes, reverse=True):
        tile = _reduce_axis(frame, name, tile, one, ignore_nan)
    tile = frame.emit.cast(tile, dtype)
    if not keep:
        return tile
    return frame.emit.reshape(tile, tuple(1 if i in axes else n for i, n in enumerate(shape)))


def _scan(frame: Frame, name: str, x: Any, axis: Any, reverse: Any, **modes: Any) -> Tile:
    tile = _tile(frame, x, f"ct.{name}")
    require_arithmetic(tile.dtype, f"ct.{name}", allow_bool=True)
    attributes: dict[str, Any] = {"kind": SCAN_KINDS[name], "axis": _axis(axis, tile.ndim, f"ct.{name}")}
    if numerics.constant_flag(reverse, f"ct.{name}: reverse"):
        attributes["reverse"] = None
    dtype = int32 if tile.dtype is bool_ else tile.dtype

    def run(tile: Tile) -> Tile:
        scanned = frame.emit.op("tile.scan", [frame.emit.cast(tile, _sum_dtype(tile.dtype))], attributes, public=name)
        return frame.emit.cast(scanned, dtype)

    return numerics.under_modes(frame, name, tile, run, **modes)


def _arg_reduce(frame: Frame, name: str, x: Any, axis: Any, keepdims: Any, propagate_nan: Any) -> Tile:
    tile = _tile(frame, x, f"ct.{name}")
    require_arithmetic(tile.dtype, f"ct.{name}", allow_bool=True)
    keep = numerics.constant_flag(keepdims, f"ct.{name}: keepdims")
    ignore_nan = _ignores_nan(name, tile, propagate_nan)
    shape = tile.shape
    if axis is None:
        if not shape:
            return frame.emit.int32(0)
        tile = frame.emit.reshape(tile, (math.prod(shape),))
        result = _reduce_axis(frame, name, tile, 0, ignore_nan)
        return frame.emit.reshape(result, (1,) * len(shape)) if keep else result
    at = _axis(axis, tile.ndim, f"ct.{name}")
    result = _reduce_axis(frame, name, tile, at, ignore_nan)
    return frame.emit.reshape(result, (*shape[:at], 1, *shape[at + 1 :])) if keep else result


_register_reductions()


def _given(frame: Frame, what: str, x: Any, identity: Any) -> tuple[list[Tile], list[Any]]:
    """The tiles to combine, of one shape, and the identity of each."""
    tiles = [_tile(frame, value, what) for value in (x if isinstance(x, tuple) else (x,))]
    identities = list(identity) if isinstance(identity, tuple) else [identity]
    if isinstance(x, tuple) is not isinstance(identity, tuple) or len(tiles) != len(identities):
        raise TileTypeError(f"{what}: identity must be a constant for each tile, found {describe(identity)}")
    if not 1 <= len(tiles) <= MOST_COMBINED:
        raise TileTypeError(f"{what} combines 1 to {MOST_COMBINED} tiles at once, found {len(tiles)}")
    for value in identities:
        if not is_number(value):
            raise TileTypeError(f"{what}: identity must be a constant, found {describe(value)}")
    shape: Shape = ()
    for tile in tiles:
        shape = broadcast_shapes(shape, tile.shape, what)
    return [frame.emit.broadcast(tile, shape) for tile in tiles], identities


def _combiner(frame: Frame, what: str, func: Any, tiles: list[Tile], is_tuple: bool) -> Any:
    """A block with the body of the user's function, which yields a scalar of the dtype of each tile."""
    from .expressions import call  # which needs this module

    capture, builder, node = frame.capture, frame.builder, frame.node
    if capture.combiner:
        raise TileSyntaxError(
            f"{what} cannot stand in the function of {capture.combiner}; combine several tiles at once"
        )
    block = builder.block([tile.dtype.mlir for tile in tiles] * 2)
    builder.enter(block)
    capture.combiner = what
    arguments = [Tile(ir, tile.dtype, ()) for ir, tile in zip(block.args, tiles * 2, strict=True)]
    made = call(frame, func, arguments, {}, node)
    values = made if is_tuple else (made,)
    if not isinstance(values, tuple) or len(values) != len(tiles):
        raise TileTypeError(f"{what}: the function must return {len(tiles)} values, found {describe(made)}")
    frame.at(node)
    yielded = [_yielded(frame, what, value, tile.dtype) for value, tile in zip(values, tiles, strict=True)]
    builder.op("tile.yield", yielded, None, [])
    capture.combiner = ""
    builder.leave()
    return block


def _yielded(frame: Frame, what: str, value: Any, dtype: DType) -> Any:
    """What the user's function returned, as a scalar of the dtype of its tile."""
    what = f"{what}: what the function returns"
    scalar = frame.emit.implicit(value, dtype, what)
    if scalar.shape:
        raise TileTypeError(f"{what} must be a scalar, found {describe(scalar)}")
    return scalar.ir


def _combine(
    frame: Frame,
    name: str,
    x: Any,
    axis: Any,
    func: Any,
    identity: Any,
    left: Callable[[Shape, int], Shape],
    **flags: Any,
) -> tuple[list[Tile], int]:
    """The results of tile.reduce_by or tile.scan_by, of the shape that `left` says, and the axis."""
    what = f"ct.{name}"
    tiles, identities = _given(frame, what, x, identity)
    at = _axis(axis, tiles[0].ndim, what)
    units = [frame.emit.constant(v, t.dtype).ir for v, t in zip(identities, tiles, strict=True)]
    block = _combiner(frame, what, func, tiles, isinstance(x, tuple))
    shape = left(tiles[0].shape, at)
    types = [tile_type(tile.dtype, shape) for tile in tiles]
    operands = [*(tile.ir for tile in tiles), *units]
    try:
        made = frame.builder.op(f"tile.{name}_by", operands, {"axis": at, **flags}, types, [block])
    except _core.BuildError as error:
        raise from_message(str(error), what) from None
    irs = made if isinstance(made, tuple) else (made,)
    return [Tile(ir, tile.dtype, shape) for ir, tile in zip(irs, tiles, strict=True)], at


@op("reduce")
def _reduce_by(frame: Frame, x: Any, axis: Any, func: Any, identity: Any, keepdims: Any) -> Any:
    keep = numerics.constant_flag(keepdims, "ct.reduce: keepdims")
    made, at = _combine(frame, "reduce", x, axis, func, identity, lambda shape, at: (*shape[:at], *shape[at + 1 :]))
    if keep:
        made = [frame.emit.reshape(tile, (*tile.shape[:at], 1, *tile.shape[at:])) for tile in made]
    return tuple(made) if isinstance(x, tuple) else made[0]


@op("scan")
def _scan_by(frame: Frame, x: Any, axis: Any, func: Any, identity: Any, reverse: Any) -> Any:
    flags = {"reverse": None} if numerics.constant_flag(reverse, "ct.scan: reverse") else {}
    made, _ = _combine(frame, "scan", x, axis, func, identity, lambda shape, at: shape, **flags)
    return tuple(made) if isinstance(x, tuple) else made[0]


# ---------------------------------------------------------------------------------------------
# Matrices

# Input dtype of ct.matmul -> accumulator that its product is made in.
_ACCUMULATOR: dict[DType, DType] = {
    float16: float32,
    bfloat16: float32,
    float32: float32,
    float64: float64,
    float8_e4m3fn: float32,
    float8_e5m2: float32,
    int8: int32,
    uint8: int32,
}


@op("mma")
def _mma(frame: Frame, x: Any, y: Any, acc: Any, use_fast_acc: Any) -> Tile:
    operands = [_tile(frame, v, "ct.mma") for v in (x, y, acc)]
    check_fast_accumulation(numerics.constant_flag(use_fast_acc, "ct.mma: use_fast_acc"), operands[0].dtype)
    for tile in operands:
        if len(tile.shape) < 2:
            raise TileValueError(f"ct.mma: needs three tiles of 2 or of 3 dimensions, found {describe(tile)}")
    operands[:2] = _same_batch(frame, operands[0], operands[1], "ct.mma")
    return frame.emit.op("tile.mma", operands, public="mma")


def _same_batch(frame: Frame, x: Tile, y: Tile, what: str) -> list[Tile]:
    """The operands of a product with the same axes in front of their matrices."""
    batch = broadcast_shapes(x.shape[:-2], y.shape[:-2], what)
    return [frame.emit.broadcast(tile, (*batch, *tile.shape[-2:])) for tile in (x, y)]


@op("mma_scaled")
def _mma_scaled(frame: Frame, x: Any, x_scale: Any, y: Any, y_scale: Any, acc: Any) -> Tile:
    what = "ct.mma_scaled"
    a, a_scale, b, b_scale, total = (_tile(frame, value, what) for value in (x, x_scale, y, y_scale, acc))
    check_scaled(*((tile.dtype, tile.shape) for tile in (a, a_scale, b, b_scale, total)))
    a = _scaled(frame, a, a_scale, a.ndim - 1)
    b = _scaled(frame, b, b_scale, b.ndim - 2)
    return frame.emit.op("tile.mma", [*_same_batch(frame, a, b, what), total], public="mma_scaled")


def _scaled(frame: Frame, tile: Tile, scale: Tile, axis: int) -> Tile:
    """The elements times the scales of their blocks along the axis, exactly: few bits, in the range of a float32."""
    emit, shape = frame.emit, scale.shape
    block = tile.shape[axis] // shape[axis]
    one, many = ((*shape[: axis + 1], n, *shape[axis + 1 :]) for n in (1, block))
    wide = emit.broadcast(emit.reshape(emit.cast(scale, float32), one), many)
    product = emit.binary("mul", emit.cast(tile, float32), emit.reshape(wide, tile.shape))
    return emit.cast(product, bfloat16)


@op("matmul")
def _matmul(frame: Frame, x: Any, y: Any) -> Tile:
    a, b = (_tile(frame, v, "ct.matmul") for v in (x, y))
    dtype = promote(a.dtype, b.dtype)
    from ..dtype import tfloat32

    accumulator = float32 if dtype is tfloat32 else _ACCUMULATOR.get(dtype)
    if accumulator is None:
        raise TileTypeError(f"ct.matmul: inputs of {dtype} are not supported")
    if not 1 <= a.ndim <= 3 or not 1 <= b.ndim <= 3:
        raise TileValueError(f"ct.matmul: 1 to 3 dimensions needed, found {a.shape}, {b.shape}")
    if a.shape[-1] != b.shape[0 if b.ndim == 1 else -2]:
        raise TileValueError(f"ct.matmul: the inner lengths of {a.shape} and {b.shape} differ")
    emit = frame.emit
    row, column = a.ndim == 1, b.ndim == 1
    a = emit.reshape(emit.cast(a, dtype), (1, *a.shape) if row else a.shape)
    b = emit.reshape(emit.cast(b, dtype), (*b.shape, 1) if column else b.shape)
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2], "ct.matmul")
    a = emit.broadcast(a, (*batch, *a.shape[-2:]))
    b = emit.broadcast(b, (*batch, *b.shape[-2:]))
    zero = emit.constant(0, accumulator, (*batch, a.shape[-2], b.shape[-1]))
    product = emit.cast(emit.op("tile.mma", [a, b, zero], public="matmul"), dtype)
    shape = product.shape
    kept = (*shape[:-2], *(() if row else shape[-2:-1]), *(() if column else shape[-1:]))
    return emit.reshape(product, kept)


# ---------------------------------------------------------------------------------------------
# Checks and output


@op("static_assert")
def _static_assert(frame: Frame, condition: Any, message: Any) -> None:
    if isinstance(condition, Tile | Array | Format):
        raise TileTypeError(
            f"ct.static_assert needs a constant, found {describe(condition)}, which is known at run time only"
        )
    if not isinstance(message, str | None):
        raise TileTypeError(f"ct.static_assert needs a constant message, found {describe(message)}")
    if not condition:
        raise TileStaticAssertionError(f"static assertion failed{': ' + message if message else ''}")


@op("assert_")
def _assert(frame: Frame, condition: Any, message: Any) -> None:
    if not isinstance(message, str | None):
        raise TileTypeError(f"ct.assert_ needs a constant message, found {describe(message)}")
    holds = frame.emit.tile(condition, "ct.assert_")
    if holds.dtype is not bool_:
        raise TileTypeError(f"ct.assert_ needs a bool_ condition, found {describe(holds)}; compare, as in x != 0")
    text = frame.told(frame.node, message or "ct.assert_ failed")
    frame.builder.op("tile.assert", [holds.ir], {"message": text}, [])


@op("ensure_constant")
def _ensure_constant(frame: Frame, value: Any) -> Any:
    if is_run_time(value):
        raise TileTypeError(f"ct.ensure_constant: {describe(value)} is known at run time only")
    return value


class _Text:
    """A format for tile.print in the making: `{}` stands for a value, a brace of the text is doubled."""

    def __init__(self) -> None:
        self.format = ""
        self.values: list[Any] = []

    def text(self, text: str) -> None:
        self.format += text.replace("{", "{{").replace("}", "}}")

    def value(self, frame: Frame, tile: Tile, conversion: Conversion | None = None) -> None:
        if conversion is not None:
            tile, conversion = _converted(frame, tile, conversion)
        self.format += "{}" if conversion is None else f"{{:{conversion}}}"
        self.values.append(tile.ir)

    def any(self, frame: Frame, value: Any) -> None:
        if isinstance(value, Tile):
            self.value(frame, value)
        elif isinstance(value, Format):
            for part in value.parts:
                self.text(part) if isinstance(part, str) else self.value(frame, *part)
        elif isinstance(value, Array):
            raise TileTypeError(f"ct.print cannot print {describe(value)}; load a tile of it")
        elif isinstance(value, tuple):
            self._tuple(frame, value)
        else:
            self.text(str(value))

    def _tuple(self, frame: Frame, values: tuple[Any, ...]) -> None:
        self.text("(")
        for i, value in enumerate(values):
            self.text(", " if i else "")
            self.text(repr(value)) if isinstance(value, str) else self.any(frame, value)
        self.text(",)" if len(values) == 1 else ")")

    def emit(self, frame: Frame) -> None:
        frame.builder.op("tile.print", self.values, {"format": self.format}, [])


@op("print")
def _print(frame: Frame, *args: Any, sep: Any, end: Any) -> None:
    if not isinstance(sep, str) or not isinstance(end, str):
        raise TileTypeError("ct.print: sep and end must be constant strings")
    text = _Text()
    for i, value in enumerate(args):
        text.text(sep if i else "")
        text.any(frame, value)
    text.text(end)
    text.emit(frame)


def _converted(frame: Frame, tile: Tile, conversion: Conversion) -> tuple[Tile, Conversion]:
    """A value in the dtype that a conversion shows: signed, the same bits without a sign, or a float."""
    cast, letter = frame.emit.cast, conversion.letter
    if letter in FLOATS:
        return cast(tile, tile.dtype if tile.dtype is float32 else float64), conversion
    if not tile.dtype.is_integral:
        tile = cast(tile, int32 if tile.dtype is bool_ else int64)
    if tile.dtype.min == 0:
        return tile, dataclasses.replace(conversion, letter="u") if letter in SIGNED else conversion
    if letter in BITS:  # C promotes what is narrower than an int to one
        tile = cast(tile, int64 if tile.dtype is int64 else int32)
        tile = cast(tile, uint64 if tile.dtype is int64 else uint32)
    return tile, conversion


@op("printf")
def _printf(frame: Frame, format: Any, *args: Any) -> None:
    if not isinstance(format, str):
        raise TileTypeError(f"ct.printf needs a constant format string, found {describe(format)}")
    text, rest = _Text(), list(args)
    for part in printf_parts(format):
        if isinstance(part, str):
            text.text(part)
            continue
        if not rest:
            raise TileValueError(f"ct.printf: too few values for {format!r}")
        value = rest.pop(0)
        if part.letter == "s":
            text.any(frame, value)
        else:
            text.value(frame, _tile(frame, value, "ct.printf"), part)
    if rest:
        raise TileValueError(f"ct.printf: too many values for {format!r}")
    text.emit(frame)


__all__ = ["OPS", "PROMOTION", "broadcast_shapes", "constant_dtype", "item", "new_axes", "positive"]
