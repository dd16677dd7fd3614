"""What the names of Numba become: positions are int32, places in the grid int64; atomics are relaxed."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from ..._optable import BLOCK_VOTE
from ...device.records import form_of_dtype
from ...dtype import DType, as_dtype, bool_, float64, int32, int64, uint8, uint32, uint64
from ...errors import TileError, TileTypeError
from ..frame import Frame
from ..numba_rules import NPM, NUMBA
from ..rules import require_number
from ..values import Array, Tile, describe
from . import arrays, atomics, barriers, intrinsics, made_arrays, positions, records, views, warps


def _rules(frame: Frame) -> Any:
    """Those of Numba, which only its kernels have (numba_rules.py)."""
    return frame.capture.rules


def position(frame: Frame, name: str, axis: int) -> Tile:
    return positions.read(frame, name, axis)


def _wide(frame: Frame, name: str, axis: int) -> Tile:
    return frame.emit.cast(positions.read(frame, name, axis), int64)


def _grid(frame: Frame, count: int) -> list[Any]:
    binary = frame.emit.binary
    found = []
    for axis in range(count):
        before = binary("mul", _wide(frame, "block_idx", axis), _wide(frame, "block_dim", axis))
        found.append(binary("add", _wide(frame, "thread_idx", axis), before))
    return found


def _gridsize(frame: Frame, count: int) -> list[Any]:
    pairs = ((_wide(frame, "block_dim", a), _wide(frame, "grid_dim", a)) for a in range(count))
    return [frame.emit.binary("mul", threads, blocks) for threads, blocks in pairs]


PLACES: dict[str, Callable[[Frame, int], list[Any]]] = {"grid": _grid, "gridsize": _gridsize}
VALUES: dict[str, Callable[[Frame], Any]] = {
    "laneid": positions.VALUES["lane_id"],
    "warpsize": lambda frame: positions.WARP,
}


def dtype_of(value: Any, what: str) -> DType:
    """A type object, or what NumPy and Python name the same by."""
    try:
        return {float: as_dtype("float64"), int: int64}.get(value) or as_dtype(value)
    except (TileError, TypeError):
        raise TileTypeError(f"{what}: the dtype is a type such as float32, found {describe(value)}") from None


# ---------------------------------------------------------------------------------------------
# Arrays that a kernel makes


def _structure(dtype: Any) -> Any:
    """NumPy's dtype of complex numbers and of structures, None of others."""
    import numpy as np

    found: Any = np.complex128 if dtype is complex else getattr(dtype, "record", dtype)
    found = getattr(np, found.name) if hasattr(found, "part") else found
    if not isinstance(found, np.dtype) and not (isinstance(found, type) and issubclass(found, np.generic)):
        return None
    found = np.dtype(found)
    return found if found.kind == "c" or found.names is not None else None


def _of_structures(frame: Frame, make: Callable[..., Array], shape: Any, dtype: Any, alignment: Any) -> Any:
    """Its bytes, along one axis more, begin where the widest number may."""
    extents = shape if isinstance(shape, tuple) else (shape,)
    widest = max(leaf.kind.itemsize for leaf in form_of_dtype(dtype).leaves())
    whole = make(frame, (*extents, dtype.itemsize), uint8, "C", alignment or widest)
    return records.over_bytes(whole, dtype)


def _shared_array(frame: Frame, shape: Any, dtype: Any, alignment: Any = None) -> Any:
    """`shared.array(0, dtype)` is what the launch adds."""
    structure = _structure(dtype)
    if structure is not None:
        return _of_structures(frame, made_arrays.shared_array, shape, structure, alignment)
    element = dtype_of(dtype, "cuda.shared.array")
    if shape in (0, (0,)) and not isinstance(shape, bool):
        return views.view(frame, made_arrays.dynamic_shared_array(frame), element)
    return made_arrays.shared_array(frame, shape, element, "C", alignment)


def _local_array(frame: Frame, shape: Any, dtype: Any, alignment: Any = None) -> Any:
    structure = _structure(dtype)
    if structure is not None:
        return _of_structures(frame, made_arrays.local_array, shape, structure, alignment)
    return made_arrays.local_array(frame, shape, dtype_of(dtype, "cuda.local.array"), "C", alignment)


def _array_like(frame: Frame, ary: Any) -> Any:
    import numpy as np

    data = np.ascontiguousarray(ary)
    structure = _structure(data.dtype)
    if structure is None:
        return made_arrays.const_array(frame, data, None)
    whole = data.reshape(*data.shape, 1).view(np.uint8)
    return records.over_bytes(made_arrays.const_array(frame, whole, None), structure)


# ---------------------------------------------------------------------------------------------
# Barriers, fences, warps


def _truth(frame: Frame, value: Any) -> Any:
    return frame.emit.truth(frame.emit.tile(value, "a predicate"), "a predicate")


def _block_vote(kind: str, frame: Frame, predicate: Any) -> Tile:
    told = int32 if kind == "count" else bool_
    value = _truth(frame, predicate)
    found = frame.emit.typed("tile.sync_vote", [value.ir], {"kind": BLOCK_VOTE[kind]}, told, ())
    return frame.emit.cast(found, int32)


def _fence(scope: str, frame: Frame) -> None:
    atomics.threadfence(frame, "seq_cst", scope)


def _sleep(frame: Frame, ns: Any) -> None:
    frame.builder.op("tile.sleep", [frame.emit.cast(frame.emit.tile(ns, "cuda.nanosleep"), int32).ir], None, [])


def _lanes(frame: Frame, mask: Any) -> Any:
    return warps.make_mask(frame, mask)


def _vote(kind: str, frame: Frame, mask: Any, predicate: Any) -> Tile:
    told = int32 if kind == "ballot" else bool_
    operands = [_lanes(frame, mask).ir, _truth(frame, predicate).ir]
    return frame.emit.typed("tile.vote", operands, {"kind": warps.VOTES[kind]}, told, ())


def _shuffle(function: Any, frame: Frame, mask: Any, value: Any, lane: Any) -> Any:
    rules = _rules(frame)
    value = require_number(value, "a shuffle")
    number = rules.as_type(frame.emit, value, rules.dtype_of(value))
    return function(frame, mask, number, lane)


def _shfl(frame: Frame, mask: Any, value: Any, src_lane: Any) -> Any:
    return _shuffle(warps.shfl_sync, frame, mask, value, src_lane)


def _shfl_up(frame: Frame, mask: Any, value: Any, delta: Any) -> Any:
    return _shuffle(warps.shfl_up_sync, frame, mask, value, delta)


def _shfl_down(frame: Frame, mask: Any, value: Any, delta: Any) -> Any:
    return _shuffle(warps.shfl_down_sync, frame, mask, value, delta)


def _shfl_xor(frame: Frame, mask: Any, value: Any, lane_mask: Any) -> Any:
    return _shuffle(warps.shfl_xor_sync, frame, mask, value, lane_mask)


class _GridGroup:
    """What `cuda.cg.this_grid()` is in a kernel: all threads of the grid, which may wait for each other."""

    def __tw_attribute__(self, frame: Frame, name: str) -> Any:
        if name != "sync":
            raise TileTypeError(f"a grid of cuda.cg has no attribute '{name}'; it has sync")
        return _GridSync()


def _this_grid(frame: Frame) -> _GridGroup:
    frame.capture.of_grid = True
    return _GridGroup()


class _GridSync:
    __name__ = "sync"

    def __call__(self) -> None:
        raise TypeError("a value of the capture")

    def __tw_call__(self, frame: Frame) -> int:
        barriers.syncgrid(frame)
        return 0


# ---------------------------------------------------------------------------------------------
# Atomics: relaxed, as far as the device


def _atomic(name: str, frame: Frame, ary: Any, idx: Any, val: Any) -> Tile:
    ref = atomics.atomic_ref(frame, ary, idx)
    method: Any = atomics.METHODS[name]
    found: Tile = method(frame, ref, val, "relaxed", "device")
    return found


def _extreme(name: str, frame: Frame, ary: Any, idx: Any, val: Any) -> Tile:
    """`max` and `min`: what is no number stays in the array, and as a value it changes nothing."""
    rules, emit = _rules(frame), frame.emit
    dtype = getattr(ary, "dtype", None)
    if isinstance(dtype, DType) and dtype.is_float and rules.is_scalar(val):
        value = rules.converted(emit, val, dtype, "cuda.atomic")
        least = emit.constant(-math.inf if name == "max" else math.inf, dtype)
        val = emit.select(emit.compare("equal", value, value), value, least)
    return _atomic(name, frame, ary, idx, val)


def _cas(frame: Frame, ary: Any, idx: Any, old: Any, val: Any) -> Tile:
    method: Any = atomics.METHODS["cas"]
    found: Tile = method(frame, atomics.atomic_ref(frame, ary, idx), old, val, "relaxed", "device")
    return found


def _compare_and_swap(frame: Frame, ary: Any, old: Any, val: Any) -> Tile:
    return _cas(frame, ary, 0, old, val)


def _counted(up: bool, frame: Frame, ary: Any, idx: Any, val: Any) -> Any:
    """`inc` and `dec`, by compare and swap."""
    from ...numba import lowering
    from ..inlining import inline

    ref = atomics.atomic_ref(frame, ary, idx)
    limit = _rules(frame).converted(frame.emit, val, ref.dtype, "cuda.atomic")
    function: Any = lowering.atomic_inc if up else lowering.atomic_dec
    return inline(frame, function, [ref, limit], {}, frame.node)


# ---------------------------------------------------------------------------------------------
# Device functions


def call_device_function(frame: Frame, function: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
    """Its body; with a signature the arguments and the result have the types that stand there."""
    from ..inlining import inline

    frame.capture.links.update(dict.fromkeys(function.links))
    signature = function.signature
    if signature is None:
        return inline(frame, function.function, args, keywords, frame.node)
    name = function.__name__
    if len(args) + len(keywords) != len(signature.arguments):
        raise TileTypeError(f"{name} takes {len(signature.arguments)} values by {signature}, found {len(args)}")
    rows = enumerate(zip(args, signature.arguments, strict=False))
    typed = [_typed(frame, value, t, f"argument {i} of {name}") for i, (value, t) in rows]
    found = inline(frame, function.function, typed, keywords, frame.node)
    return None if found is None else _typed(frame, found, signature.result, f"the result of {name}")


def result_type(function: Any, arguments: Any) -> Any:
    """The type object of what a function gives for numbers of these types."""
    from ...numba import types
    from ..c_entry import argument_of
    from ..inlining import returned_value
    from ..kernel import Capturing

    given = [argument_of(t.of or t._parts()) for t in arguments]
    value = returned_value(Capturing(function, given, "cpu", NUMBA, False).body(), function.__name__)
    if value is None:
        raise TileTypeError(f"{function.__name__} returns nothing; a function of numbers gives one")
    return types.of_dtype(value.dtype if isinstance(value, Tile) else NUMBA.literal(value))


def _typed(frame: Frame, value: Any, wanted: Any, what: str) -> Any:
    """A number as a number of a type; what is none stays as it is."""
    dtype = getattr(wanted, "of", None)
    is_number_ = _rules(frame).is_scalar(value)
    return _rules(frame).converted(frame.emit, value, dtype, what) if dtype is not None and is_number_ else value


# ---------------------------------------------------------------------------------------------
# Numbers


def _bits(name: str, frame: Frame, x: Any) -> Any:
    rules = _rules(frame)
    value = rules.as_type(frame.emit, x, rules.dtype_of(x))
    if not value.dtype.is_integral:
        raise TileTypeError(f"cuda.{name} needs an integer, found {describe(value)}")
    return intrinsics.of_bits(frame, name, frame.emit.cast(value, uint64 if value.dtype.bits == 64 else uint32))


def _cbrt(frame: Frame, x: Any) -> Any:
    rules = _rules(frame)
    dtype = rules.dtype_of(x)
    return intrinsics.cbrt(frame, rules.as_type(frame.emit, x, dtype if dtype.is_float else float64))


def _hinted_load(frame: Frame, ary: Any, i: Any) -> Any:
    """A hint for caches changes no result, and is not given."""
    return arrays.read(frame, ary, i)


def _hinted_store(frame: Frame, ary: Any, i: Any, value: Any) -> None:
    arrays.write(frame, ary, i, value)


def _selp(frame: Frame, a: Any, b: Any, c: Any) -> Any:
    rules = _rules(frame)
    dtype = rules.joined(rules.dtype_of(b), rules.dtype_of(c))
    operands = (rules.as_type(frame.emit, v, dtype) for v in (b, c))
    return frame.emit.select(_truth(frame, a), *operands)


def _fma(frame: Frame, a: Any, b: Any, c: Any) -> Any:
    """a * b + c, rounded once; of integers in float64."""
    rules = _rules(frame)
    dtype = functools.reduce(rules.joined, map(rules.dtype_of, (a, b, c)))
    wide = dtype if dtype.is_float and dtype.bits >= 32 else float64
    operands = [rules.as_type(frame.emit, v, wide).ir for v in (a, b, c)]
    found = frame.emit.typed("math.fma", operands, None, wide, ())
    return frame.emit.cast(found, dtype) if dtype.is_float else found


def _bit_count(frame: Frame, value: Any) -> Any:
    """`n.bit_count()`: of the magnitude, as Python has it."""
    signed = value.dtype.is_integral and value.dtype.signed
    return _bits("popc", frame, frame.emit.unary("abs", frame.emit.cast(value, int64)) if signed else value)


for _numba in (NUMBA, NPM):
    _numba.methods = {"bit_count": _bit_count}
    _numba.array_methods = {"ravel": views.ravel, "transpose": views.transposed}

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "shared.array": _shared_array,
    "local.array": _local_array,
    "const.array_like": _array_like,
    "syncthreads": barriers.syncthreads,
    "cg.this_grid": _this_grid,
    "syncthreads_count": functools.partial(_block_vote, "count"),
    "syncthreads_and": functools.partial(_block_vote, "and"),
    "syncthreads_or": functools.partial(_block_vote, "or"),
    "threadfence": functools.partial(_fence, "device"),
    "threadfence_block": functools.partial(_fence, "block"),
    "threadfence_system": functools.partial(_fence, "system"),
    "nanosleep": _sleep,
    "syncwarp": lambda frame, mask=-1: warps.syncwarp(frame, mask),
    "activemask": lambda frame: warps.activemask(frame),
    "lanemask_lt": lambda frame: warps.lanemask_lt(frame),
    "all_sync": functools.partial(_vote, "all"),
    "any_sync": functools.partial(_vote, "any"),
    "eq_sync": functools.partial(_vote, "eq"),
    "ballot_sync": functools.partial(_vote, "ballot"),
    "shfl_sync": _shfl,
    "shfl_up_sync": _shfl_up,
    "shfl_down_sync": _shfl_down,
    "shfl_xor_sync": _shfl_xor,
    "match_any_sync": lambda frame, mask, value: warps.match_any_sync(frame, mask, value, None),
    "match_all_sync": lambda frame, mask, value: warps.match_all_sync(frame, mask, value, None),
    **{
        f"atomic.{name}": functools.partial(_atomic, method)
        for name, method in {
            **{n: n for n in ("add", "sub", "xor", "nanmax", "nanmin", "exch")},
            "and_": "and_",
            "or_": "or_",
        }.items()
    },
    **{f"atomic.{name}": functools.partial(_extreme, name) for name in ("max", "min")},
    "atomic.cas": _cas,
    "atomic.compare_and_swap": _compare_and_swap,
    "atomic.inc": functools.partial(_counted, True),
    "atomic.dec": functools.partial(_counted, False),
    **{name: functools.partial(_bits, name) for name in ("popc", "brev", "clz", "ffs")},
    "cbrt": _cbrt,
    **dict.fromkeys(("ldca", "ldcg", "ldcs", "ldlu", "ldcv"), _hinted_load),
    **dict.fromkeys(("stcg", "stcs", "stwb", "stwt"), _hinted_store),
    "selp": _selp,
    "fma": _fma,
}

__all__ = ["FUNCTIONS", "PLACES", "VALUES", "dtype_of", "position"]
