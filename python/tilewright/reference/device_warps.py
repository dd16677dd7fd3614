"""What lanes do together under `kernel.interpret`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..device.warps import LANES, WarpMask
from ..errors import TileTypeError, TileValueError
from .device_barriers import truth
from .device_block import Meeting, State, site
from .numbers import Number


def _mask(mask: Any) -> int:
    return int(WarpMask(int(mask))) & 0xFFFFFFFF


def _together(thread: Any, what: str, mask: Any, value: Any, told: Callable[[int, dict[int, Any]], Any]) -> Any:
    return thread.block.wait(thread, State.AT_LANES, Meeting(what, told, value, _mask(mask), site()))


def activemask(thread: Any) -> WarpMask:
    """One thread runs at a time: it alone is here."""
    return WarpMask(1 << thread.number % LANES)


def lanemask_lt(thread: Any) -> WarpMask:
    return WarpMask((1 << thread.number % LANES) - 1)


def syncwarp(thread: Any, mask: Any) -> None:
    _together(thread, "syncwarp", mask, None, lambda lane, values: None)


def all_sync(thread: Any, mask: Any, pred: Any) -> bool:
    return bool(_together(thread, "all", mask, truth(pred, "all_sync"), lambda lane, values: all(values.values())))


def any_sync(thread: Any, mask: Any, pred: Any) -> bool:
    return bool(_together(thread, "any", mask, truth(pred, "any_sync"), lambda lane, values: any(values.values())))


def eq_sync(thread: Any, mask: Any, pred: Any) -> bool:
    return bool(
        _together(thread, "eq", mask, truth(pred, "eq_sync"), lambda lane, values: len(set(values.values())) == 1)
    )


def ballot_sync(thread: Any, mask: Any, pred: Any) -> WarpMask:
    def lanes(lane: int, values: dict[int, bool]) -> int:
        return sum(1 << i for i, value in values.items() if value)

    return WarpMask(_together(thread, "ballot", mask, truth(pred, "ballot_sync"), lanes))


def _shuffle(thread: Any, what: str, mask: Any, value: Any, source: Callable[[int], int]) -> Any:
    def read(lane: int, values: dict[int, Any]) -> Any:
        wanted = source(lane)
        wanted = wanted if 0 <= wanted < LANES else lane
        if wanted not in values:
            raise TileValueError(f"{what}: lane {wanted} is not in the mask, or has ended")
        return values[wanted]

    return _together(thread, what, mask, value, read)


def _checked(lane: Any, what: str) -> int:
    if not 0 <= int(lane) < LANES:
        raise TileValueError(f"{what}: a lane is 0 to {LANES - 1}, found {int(lane)}")
    return int(lane)


def shfl_sync(thread: Any, mask: Any, value: Any, src_lane: Any) -> Any:
    wanted = _checked(src_lane, "device.shfl_sync")
    return _shuffle(thread, "device.shfl_sync", mask, value, lambda lane: wanted)


def shfl_up_sync(thread: Any, mask: Any, value: Any, delta: Any) -> Any:
    by = _checked(delta, "device.shfl_up_sync")
    return _shuffle(thread, "device.shfl_up_sync", mask, value, lambda lane: lane - by)


def shfl_down_sync(thread: Any, mask: Any, value: Any, delta: Any) -> Any:
    by = _checked(delta, "device.shfl_down_sync")
    return _shuffle(thread, "device.shfl_down_sync", mask, value, lambda lane: lane + by)


def shfl_xor_sync(thread: Any, mask: Any, value: Any, flag: Any) -> Any:
    by = _checked(flag, "device.shfl_xor_sync")
    return _shuffle(thread, "device.shfl_xor_sync", mask, value, lambda lane: lane ^ by)


def _bits(value: Any) -> bytes:
    """What equal numbers have in common: integers their value, in whatever format a lane has it, floats their bits."""
    value = value.__tw_now__() if hasattr(value, "__tw_now__") else value
    if isinstance(value, bool | int):
        return repr(int(value)).encode()
    if isinstance(value, float):
        return repr(value).encode()
    if not isinstance(value, Number):
        raise TileTypeError(f"a match is of numbers, found {value!r}")
    return bytes(value.value.tobytes()) if value.value.dtype.kind not in "iub" else repr(int(value.value)).encode()


def _same(lane: int, values: dict[int, bytes]) -> int:
    return sum(1 << i for i, bits in values.items() if bits == values[lane])


def match_any_sync(thread: Any, mask: Any, value: Any, flag: Any) -> WarpMask:
    return WarpMask(_together(thread, "match any", mask, _bits(value), _same))


def match_all_sync(thread: Any, mask: Any, value: Any, flag: Any) -> tuple[WarpMask, bool]:
    def lanes(lane: int, values: dict[int, bytes]) -> int:
        same = _same(lane, values)
        return same if same == sum(1 << i for i in values) else 0

    found = _together(thread, "match all", mask, _bits(value), lanes)
    return WarpMask(found), found != 0
