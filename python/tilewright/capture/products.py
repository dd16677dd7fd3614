"""Products of matrices."""

from __future__ import annotations

from typing import Any

from ..dtype import (
    DType,
    bfloat16,
    float8_e4m3fn,
    float8_e5m2,
    float16,
    float32,
    float64,
    int8,
    int32,
    promote,
    tfloat32,
    uint8,
)
from ..errors import TileTypeError
from ..modes import check_fast_accumulation, check_scaled
from ..shape_rules import broadcast_shapes
from .checks import constant_flag
from .frame import Frame
from .table import op
from .values import Tile, describe

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
    operands = [frame.emit.tile(v, "ct.mma") for v in (x, y, acc)]
    fast = constant_flag(use_fast_acc, "ct.mma: use_fast_acc")
    check_fast_accumulation(fast, operands[0].dtype)
    for tile in operands:
        if len(tile.shape) < 2:
            raise TileTypeError(f"ct.mma: needs three tiles of 2 or of 3 dimensions, found {describe(tile)}")
    operands[:2] = _same_batch(frame, operands[0], operands[1], "ct.mma")
    return frame.emit.op("tile.mma", operands, {"fast_accum": None} if fast else None, public="mma")


def _same_batch(frame: Frame, x: Tile, y: Tile, what: str) -> list[Tile]:
    """The operands of a product with the same axes in front of their matrices."""
    batch = broadcast_shapes(x.shape[:-2], y.shape[:-2], what)
    return [frame.emit.broadcast(tile, (*batch, *tile.shape[-2:])) for tile in (x, y)]


@op("mma_scaled")
def _mma_scaled(frame: Frame, x: Any, x_scale: Any, y: Any, y_scale: Any, acc: Any) -> Tile:
    what = "ct.mma_scaled"
    a, a_scale, b, b_scale, total = (frame.emit.tile(value, what) for value in (x, x_scale, y, y_scale, acc))
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
    a, b = (frame.emit.tile(v, "ct.matmul") for v in (x, y))
    dtype = promote(a.dtype, b.dtype)
    accumulator = float32 if dtype is tfloat32 else _ACCUMULATOR.get(dtype)
    if accumulator is None:
        raise TileTypeError(f"ct.matmul: inputs of {dtype} are not supported")
    if not 1 <= a.ndim <= 3 or not 1 <= b.ndim <= 3:
        raise TileTypeError(f"ct.matmul: 1 to 3 dimensions needed, found {a.shape}, {b.shape}")
    if a.shape[-1] != b.shape[0 if b.ndim == 1 else -2]:
        raise TileTypeError(
            f"ct.matmul: the inner lengths of {a.shape} and {b.shape} differ; expected (m, k) and (k, n)"
        )
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
