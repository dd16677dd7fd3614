"""Creation of tiles, and operations that move elements but do not change them."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from .. import dtype as dt
from .. import tile as ct
from ..errors import TileTypeError
from ..modes import check_cast_rounding, rounds_by_mode
from ..shape_rules import bits_of, check_bitcast, check_fits, check_nested, check_part, check_same_dtype
from .checks import RULES, check_axis, check_tile_shape
from .elementwise import compute
from .table import op
from .values import Tile, as_operand, as_tile, cast, constant, convert, exact_elements, promote_to


@op("astype")
def astype(x: Any, dtype: Any, rounding_mode: Any = None) -> Tile:
    value, dtype = as_operand(x, "ct.astype"), dt.as_dtype(dtype)
    source = value.dtype if isinstance(value, Tile) else dt.constant_dtype(value)
    check_cast_rounding(rounding_mode, source, dtype)
    if rounding_mode is not None and rounds_by_mode(rounding_mode, source, dtype):
        return Tile(_rounded(exact_elements(as_tile(value, "ct.astype")), dtype, rounding_mode), dtype)
    return cast(value, dtype)


# Bits of the mantissa, and the least exponent that frexp gives of a normal number.
_PRECISION = {"float32": (24, -125), "tfloat32": (11, -125), "float16": (11, -13), "bfloat16": (8, -125)}
_TO_INTEGER: dict[ct.RoundingMode, Any] = {
    ct.RoundingMode.RN: np.rint,
    ct.RoundingMode.RA: lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    ct.RoundingMode.RZ: np.trunc,
    ct.RoundingMode.RM: np.floor,
    ct.RoundingMode.RP: np.ceil,
}


def _rounded(data: np.ndarray, dtype: dt.DType, mode: ct.RoundingMode) -> np.ndarray:
    """As multiples of the last place, which are integers; past the largest one infinity, where the mode leads there."""
    data = data.astype(np.float64)
    precision, least = _PRECISION[dtype.name]
    place = np.ldexp(1.0, np.maximum(np.frexp(data)[1], least) - precision)
    with np.errstate(invalid="ignore"):
        whole = np.where(np.isfinite(data), _TO_INTEGER[mode](data / place) * place, data)
    largest = np.ldexp(1 - 2.0**-precision, 16 if dtype is dt.float16 else 128)
    past, away = np.isfinite(data) & (np.abs(whole) > largest), _TO_INTEGER[mode](np.copysign(0.75, data)) != 0
    whole = np.where(past, np.copysign(np.where(away, np.inf, largest), data), whole)
    return np.copysign(whole, data).astype(dtype.numpy)


@op("astile")
def astile(value: Any, dtype: Any) -> Tile:
    dtype = dt.as_dtype(dtype)
    shape, entries = check_nested(value, _scalar)
    check_tile_shape(shape, "ct.astile")
    return Tile(np.array([cast(e, dtype)._data for e in entries], dtype.numpy).reshape(shape), dtype)


def _scalar(value: Any) -> Any:
    value = as_operand(value, "ct.astile")
    if isinstance(value, Tile) and value.ndim:
        raise TileTypeError(f"ct.astile needs numbers and scalars, found a tile of shape {value.shape}")
    return value


@op("reshape")
def reshape(x: Any, shape: Any) -> Tile:
    x = as_tile(x, "ct.reshape")
    return Tile(x._data.reshape(RULES.check_reshape(x.shape, shape)), x.dtype)


@op("permute")
def permute(x: Any, axes: Any) -> Tile:
    x = as_tile(x, "ct.permute")
    return Tile(x._data.transpose(RULES.check_permutation(axes, x.ndim)), x.dtype)


@op("transpose")
def transpose(x: Any, axis0: Any, axis1: Any) -> Tile:
    x = as_tile(x, "ct.transpose")
    return Tile(x._data.transpose(RULES.check_transpose(axis0, axis1, x.ndim)), x.dtype)


@op("expand_dims")
def expand_dims(x: Any, axis: Any) -> Tile:
    x = as_tile(x, "ct.expand_dims")
    return Tile(np.expand_dims(x._data, check_axis(axis, x.ndim + 1, "ct.expand_dims")), x.dtype)


@op("cat")
def cat(tiles: Any, axis: Any) -> Tile:
    if not isinstance(tiles, tuple) or not 1 <= len(tiles) <= 2:
        raise TileTypeError(f"ct.cat needs a tuple of one or two tiles, found {tiles!r}; more are joined one by one")
    parts = [as_tile(tile, "ct.cat") for tile in tiles]
    at = RULES.check_cat(parts, axis, lambda tile: f"{tile.dtype} {tile.shape}")
    return Tile(np.concatenate([tile._data for tile in parts], at), parts[0].dtype)


def _part(whole: tuple[int, ...], part: tuple[int, ...], index: Any, what: str) -> tuple[slice, ...]:
    """Where a part of a tile lies."""
    at = [operator.index(entry) for entry in (index if isinstance(index, tuple) else (index,))]
    check_part(whole, part, tuple(at), what)
    return tuple(slice(k * n, (k + 1) * n) for k, n in zip(at, part, strict=True))


@op("extract")
def extract(x: Any, index: Any, shape: Any) -> Tile:
    x = as_tile(x, "ct.extract")
    wanted = check_tile_shape(shape, "ct.extract: shape")
    part = x._data[_part(x.shape, wanted or (1,) * x.ndim, index, "ct.extract")]
    return Tile(part.reshape(wanted), x.dtype)


@op("insert")
def insert(x: Any, index: Any, value: Any) -> Tile:
    x = as_tile(x, "ct.insert")
    part = promote_to(value, x.dtype, "ct.insert")._data
    check_same_dtype(value.dtype if isinstance(value, Tile) else x.dtype, x.dtype, "ct.insert: the part")
    part = part.reshape((1,) * x.ndim) if part.ndim == 0 else part
    data = x._data.copy()
    data[_part(x.shape, part.shape, index, "ct.insert")] = part
    return Tile(data, x.dtype)


def _bytes_of(x: Tile) -> np.ndarray:
    """The bytes in memory, where two elements of 4 bits share one."""
    raw = np.ascontiguousarray(x._data).reshape(-1).view(np.uint8)
    return raw[0::2] & 15 | raw[1::2] << 4 if x.dtype.bits == 4 else raw


def _of_bytes(raw: np.ndarray, dtype: dt.DType) -> np.ndarray:
    if dtype.bits == 4:
        raw = np.stack((raw & 15, raw >> 4), axis=-1).reshape(-1)
    data = np.ascontiguousarray(raw).view(dtype.numpy)
    if dtype is dt.tfloat32:
        data = (data.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    return data


@op("bitcast")
def bitcast(x: Any, dtype: Any) -> Tile:
    x, dtype = as_tile(x, "ct.bitcast"), dt.as_dtype(dtype)
    check_bitcast(x.dtype, dtype)
    return x if dtype is x.dtype else Tile(_of_bytes(_bytes_of(x), dtype).reshape(x.shape), dtype)


@op("pack_to_bytes")
def pack_to_bytes(x: Any) -> Tile:
    x = as_tile(x, "ct.pack_to_bytes")
    bits = bits_of(x.dtype, "ct.pack_to_bytes") * x._data.size
    if bits % 8:
        raise TileTypeError(f"ct.pack_to_bytes: {x.dtype} of shape {x.shape} has {bits} bits, which are no whole bytes")
    return Tile(_bytes_of(x), dt.uint8)


@op("unpack_from_bytes")
def unpack_from_bytes(x: Any, dtype: Any) -> Tile:
    x, dtype = as_tile(x, "ct.unpack_from_bytes"), dt.as_dtype(dtype)
    if x.ndim != 1 or x.dtype is not dt.uint8:
        raise TileTypeError(f"ct.unpack_from_bytes needs a 1-D tile of uint8, found {x.dtype} of shape {x.shape}")
    if x._data.size * 8 % bits_of(dtype, "ct.unpack_from_bytes"):
        raise TileTypeError(f"ct.unpack_from_bytes: {x._data.size} bytes are no elements of {dtype}")
    return Tile(_of_bytes(x._data, dtype), dtype)


def getitem(x: Tile, index: Any) -> Tile:
    """x[:, None]: new axes only."""
    index = index if isinstance(index, tuple) else (index,)
    for entry in index:
        if entry is not None and entry is not Ellipsis and entry != slice(None):
            raise TileTypeError(
                f"tiles take only ':', None and '...' as index, found {entry!r}; "
                "select elements with ct.where, or with ct.gather from an array"
            )
    if sum(e is not None and e is not Ellipsis for e in index) > x.ndim:
        raise TileTypeError(f"too many indices for a tile of shape {x.shape}")
    return Tile(x._data[index], x.dtype)


@op("broadcast_to")
def broadcast_to(x: Any, shape: Any) -> Tile:
    x = as_tile(x, "ct.broadcast_to")
    wanted = check_tile_shape(shape, "ct.broadcast_to: shape")
    check_fits(x.shape, wanted, "ct.broadcast_to: the tile")
    return Tile(np.broadcast_to(x._data, wanted), x.dtype)


@op("full")
def full(shape: Any, fill_value: Any, dtype: Any) -> Tile:
    value = cast(as_operand(fill_value, "ct.full"), dt.as_dtype(dtype))
    if value.ndim != 0:
        raise TileTypeError(f"ct.full needs a scalar to fill with, found shape {value.shape}")
    return Tile(np.full(check_tile_shape(shape, "shape"), value._data), value.dtype)


def _converted(value: Any, dtype: dt.DType, what: str) -> Tile:
    """A scalar as `dtype`, as by astype."""
    value = as_operand(value, what)
    if isinstance(value, Tile):
        return convert(value, dtype)
    return constant(int(value) if dtype.is_integral else value, dtype)


@op("arange")
def arange(size: Any, dtype: Any, start: Any, step: Any) -> Tile:
    dtype = dt.as_dtype(dtype)
    (count,) = RULES.check_length(size, "ct.arange: size")
    dt.require_arithmetic(dtype, "ct.arange")
    first, delta = (_converted(v, dtype, f"ct.arange: {name}") for v, name in ((start, "start"), (step, "step")))
    steps = convert(Tile(np.arange(count), dt.int64), dtype)
    return compute(np.add, dtype, first, compute(np.multiply, dtype, steps, delta))
