"""Warps: masks of lanes, votes, shuffles and matches."""

from __future__ import annotations

import dataclasses
from typing import Any

from ..._optable import SHUFFLE_KIND, WARP_MATCH, WARP_VOTE
from ...dtype import bool_, int32
from ...errors import TileTypeError, TileValueError
from ..assertions import emit_assert
from ..frame import Frame
from ..values import Tile, describe, is_number
from .positions import WARP
from .predicates import predicate

VOTES = {"eq" if word == "uni" else word: number for word, number in WARP_VOTE.items()}
_SHUFFLES = {"shfl_sync" if word == "idx" else f"shfl_{word}_sync": kind for word, kind in SHUFFLE_KIND.items()}


# ---------------------------------------------------------------------------------------------
# Masks


@dataclasses.dataclass(slots=True, eq=False)
class Mask(Tile):
    """An int32 whose bits are lanes."""

    def __tw_item__(self, frame: Frame, index: Any) -> Tile:
        """`mask[i]`."""
        emit = frame.emit
        bit = _bit(frame, index, "mask[i]")
        return emit.compare("not_equal", emit.binary("bitwise_and", self, bit), 0)

    def __tw_with_item__(self, frame: Frame, index: Any, value: Any) -> Mask:
        """What the name `mask` holds after `mask[i] = value`."""
        emit = frame.emit
        bit = _bit(frame, index, "mask[i]")
        wanted = emit.cast(emit.tile(value, "mask[i] ="), bool_)
        added, removed = (
            emit.binary("bitwise_or", self, bit),
            emit.binary("bitwise_and", self, emit.unary("bitwise_not", bit)),
        )
        return as_mask(emit.select(wanted, added, removed))


def as_mask(value: Tile) -> Mask:
    return Mask(value.ir, value.dtype, value.shape)


def _bit(frame: Frame, index: Any, what: str) -> Tile:
    lane = _lane(frame, index, what)
    return frame.emit.binary("bitwise_lshift", frame.emit.constant(1, int32), lane)


def make_mask(frame: Frame, value: Any = -1) -> Mask:
    """`WarpMask(value)`."""
    return _mask(frame, value, "device.WarpMask")


def _mask(frame: Frame, value: Any, what: str) -> Mask:
    if is_number(value):
        if type(value) is float or not -(2**31) <= value < 2**32:
            raise TileValueError(f"{what}: expected a mask of 32 bits, found {describe(value)}")
        return as_mask(frame.emit.constant((value + 2**31) % 2**32 - 2**31, int32))
    if not isinstance(value, Tile) or not value.dtype.is_integral:
        raise TileTypeError(f"{what}: expected a WarpMask or an integer, found {describe(value)}")
    return as_mask(frame.emit.cast(value, int32))


def _lane(frame: Frame, lane: Any, what: str) -> Tile:
    if is_number(lane) and (type(lane) is not int or not 0 <= lane < WARP):
        raise TileValueError(f"{what}: a lane is 0 to {WARP - 1}, found {describe(lane)}")
    if is_number(lane):
        return frame.emit.constant(lane, int32)
    if not isinstance(lane, Tile) or not lane.dtype.is_integral:
        raise TileTypeError(f"{what}: expected the number of a lane, found {describe(lane)}")
    return frame.emit.cast(lane, int32)


def activemask(frame: Frame) -> Mask:
    return as_mask(frame.emit.typed("tile.active_mask", [], None, int32, ()))


def lanemask_lt(frame: Frame) -> Mask:
    emit = frame.emit
    lane = emit.typed("tile.lane_id", [], None, int32, ())
    bit = emit.binary("bitwise_lshift", emit.constant(1, int32), lane)
    return as_mask(emit.binary("sub", bit, emit.constant(1, int32)))


# ---------------------------------------------------------------------------------------------
# What lanes do together


def _meeting(frame: Frame, mask: Any, what: str) -> Mask:
    """A mask whose lanes meet. In check mode a lane that is none of them says so, and meets nobody."""
    lanes = _mask(frame, mask, what)
    if not frame.capture.checked:
        return lanes
    emit = frame.emit
    own = emit.binary("bitwise_lshift", emit.constant(1, int32), emit.typed("tile.lane_id", [], None, int32, ()))
    holds = emit.compare("not_equal", emit.binary("bitwise_and", lanes, own), 0)
    emit_assert(frame, holds, f"{what}: the mask lacks the lane that calls it")
    return as_mask(emit.select(holds, lanes, own))


def syncwarp(frame: Frame, mask: Any) -> None:
    frame.builder.op("tile.sync_warp", [_meeting(frame, mask, "device.syncwarp").ir], None, [])


def _vote(frame: Frame, name: str, mask: Any, pred: Any) -> Tile:
    what = f"device.{name}"
    lanes = _meeting(frame, mask, what)
    value = predicate(frame, pred, what)
    told = int32 if name == "ballot_sync" else bool_
    return frame.emit.typed("tile.vote", [lanes.ir, value.ir], {"kind": VOTES[name.removesuffix("_sync")]}, told, ())


def all_sync(frame: Frame, mask: Any, pred: Any) -> Tile:
    return _vote(frame, "all_sync", mask, pred)


def any_sync(frame: Frame, mask: Any, pred: Any) -> Tile:
    return _vote(frame, "any_sync", mask, pred)


def eq_sync(frame: Frame, mask: Any, pred: Any) -> Tile:
    return _vote(frame, "eq_sync", mask, pred)


def ballot_sync(frame: Frame, mask: Any, pred: Any) -> Mask:
    return as_mask(_vote(frame, "ballot_sync", mask, pred))


def _shuffle(frame: Frame, name: str, mask: Any, value: Any, lane: Any) -> Any:
    what = f"device.{name}"
    if is_number(mask) and name == "shfl_sync" and type(lane) is int and 0 <= lane < WARP and not mask >> lane & 1:
        raise TileValueError(f"{what}: lane {lane} is not in the mask {mask & 0xFFFFFFFF:#x}; read one that is")
    lanes, source = _meeting(frame, mask, what), _lane(frame, lane, what)
    return _exchanged(frame, _SHUFFLES[name], what, lanes, value, source)


def _exchanged(frame: Frame, kind: int, what: str, lanes: Mask, value: Any, source: Tile) -> Any:
    """Leaf by leaf."""
    if hasattr(type(value), "__tw_tree__") or isinstance(value, tuple):
        return _tree(frame, kind, what, lanes, value, source)
    number = frame.emit.tile(value, f"{what}: the value")
    operands = [lanes.ir, number.ir, source.ir]
    found = frame.emit.typed("tile.shuffle", operands, {"kind": kind}, number.dtype, ())
    return dataclasses.replace(found, loose=number.loose)


def _tree(frame: Frame, kind: int, what: str, lanes: Mask, value: Any, source: Tile) -> Any:
    """A struct, vector or tuple of 8 bytes at most."""
    if (size := size_of(value)) > 8:
        raise TileTypeError(f"{what} takes a value of 8 bytes at most, found {describe(value)} of {size}")
    if isinstance(value, tuple):
        return tuple(_exchanged(frame, kind, what, lanes, v, source) for v in value)
    made = object.__new__(type(value))
    for field in dataclasses.fields(value):
        object.__setattr__(made, field.name, _exchanged(frame, kind, what, lanes, getattr(value, field.name), source))
    return made


def size_of(value: Any) -> int:
    """Bytes of a value's numbers."""
    if isinstance(value, tuple):
        return sum(map(size_of, value))
    if hasattr(type(value), "__tw_tree__"):
        return sum(size_of(getattr(value, field.name)) for field in dataclasses.fields(value))
    return max(1, value.dtype.bits // 8) if isinstance(value, Tile) else 4


def shfl_sync(frame: Frame, mask: Any, value: Any, src_lane: Any) -> Any:
    return _shuffle(frame, "shfl_sync", mask, value, src_lane)


def shfl_up_sync(frame: Frame, mask: Any, value: Any, delta: Any) -> Any:
    return _shuffle(frame, "shfl_up_sync", mask, value, delta)


def shfl_down_sync(frame: Frame, mask: Any, value: Any, delta: Any) -> Any:
    return _shuffle(frame, "shfl_down_sync", mask, value, delta)


def shfl_xor_sync(frame: Frame, mask: Any, value: Any, flag: Any) -> Any:
    return _shuffle(frame, "shfl_xor_sync", mask, value, flag)


def _match(frame: Frame, name: str, mask: Any, value: Any) -> Mask:
    what = f"device.{name}"
    lanes, number = _meeting(frame, mask, what), frame.emit.tile(value, f"{what}: the value")
    return as_mask(
        frame.emit.typed("tile.match", [lanes.ir, number.ir], {"kind": WARP_MATCH[name.split("_")[1]]}, int32, ())
    )


def match_any_sync(frame: Frame, mask: Any, value: Any, flag: Any) -> Mask:
    return _match(frame, "match_any_sync", mask, value)


def match_all_sync(frame: Frame, mask: Any, value: Any, flag: Any) -> tuple[Mask, Tile]:
    same = _match(frame, "match_all_sync", mask, value)
    return same, frame.emit.compare("not_equal", same, 0)
