"""What the lanes of a warp do together: 32 threads whose numbers in the block, x fastest, follow each other.

A mask says which lanes take part, and this one is of them. All of these but `syncwarp` order no memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import TileTypeError, TileValueError
from ..reference import numbers
from .only import device_only

if TYPE_CHECKING:
    from ..capture.frame import Frame

__all__ = [
    "WarpMask",
    "activemask",
    "all_sync",
    "any_sync",
    "ballot_sync",
    "eq_sync",
    "lanemask_lt",
    "match_all_sync",
    "match_any_sync",
    "shfl_down_sync",
    "shfl_sync",
    "shfl_up_sync",
    "shfl_xor_sync",
    "syncwarp",
]

LANES = 32


class _MaskType(type):
    def __tw_make__(cls, frame: Frame, args: list[Any], keywords: dict[str, Any]) -> Any:
        from ..capture.simt import warps

        return warps.make_mask(frame, *args, **keywords)


class WarpMask(int, metaclass=_MaskType):
    """A set of lanes as an int32: bit i is lane i. -1 and 0xffffffff are all of them.

    In a kernel `mask[i] = True` gives the name `mask` a set with lane i; on the host, `mask.with_lane(i, True)`.
    """

    def __new__(cls, value: int = -1) -> WarpMask:
        if not -(2**31) <= int(value) < 2**32:
            raise TileValueError(f"a WarpMask has 32 bits, found {value!r}")
        return super().__new__(cls, (int(value) + 2**31) % 2**32 - 2**31)

    def __tw_value__(self, frame: Frame) -> Any:
        from ..capture.simt import warps

        return warps.make_mask(frame, int(self))

    def __tw_now__(self) -> Any:
        return numbers.int32(int(self))

    def __getitem__(self, i: int) -> bool:
        return bool(int(self) >> _lane(i) & 1)

    def __setitem__(self, i: int, val: bool) -> None:
        raise TileTypeError("a WarpMask is immutable on the host; make another one, as with mask.with_lane(i, True)")

    def with_lane(self, i: int, val: bool) -> WarpMask:
        bit = 1 << _lane(i)
        return WarpMask((int(self) | bit if val else int(self) & ~bit) & 0xFFFFFFFF)


def _lane(i: Any) -> int:
    if not 0 <= int(i) < LANES:
        raise TileValueError(f"a lane is 0 to {LANES - 1}, found {int(i)}")
    return int(i)


FULL = WarpMask(-1)


@device_only("warps")
def activemask() -> Any:
    """Lanes of the warp that are here with this one."""


@device_only("warps")
def lanemask_lt() -> Any:
    """All lanes below this one."""


@device_only("warps")
def syncwarp(mask: Any = -1) -> None:
    """Wait for the lanes of `mask`, and see what they wrote."""


@device_only("warps")
def all_sync(mask: Any, pred: Any) -> Any:
    """Whether `pred()` is true on all lanes of `mask`."""


@device_only("warps")
def any_sync(mask: Any, pred: Any) -> Any:
    """Whether `pred()` is true on a lane of `mask`."""


@device_only("warps")
def eq_sync(mask: Any, pred: Any) -> Any:
    """Whether `pred()` is the same on all lanes of `mask`."""


@device_only("warps")
def ballot_sync(mask: Any, pred: Any) -> Any:
    """The lanes of `mask` on which `pred()` is true, as a WarpMask."""


@device_only("warps")
def shfl_sync(mask: Any, value: Any, src_lane: Any) -> Any:
    """What lane `src_lane` has as `value`."""


@device_only("warps")
def shfl_up_sync(mask: Any, value: Any, delta: Any) -> Any:
    """What the lane `delta` below this one has; its own below lane 0."""


@device_only("warps")
def shfl_down_sync(mask: Any, value: Any, delta: Any) -> Any:
    """What the lane `delta` above this one has; its own above lane 31."""


@device_only("warps")
def shfl_xor_sync(mask: Any, value: Any, flag: Any) -> Any:
    """What lane `lane_id ^ flag` has."""


@device_only("warps")
def match_any_sync(mask: Any, value: Any, flag: Any = None) -> Any:
    """The lanes of `mask` whose value has the bits of this one's. `flag` is not used."""


@device_only("warps")
def match_all_sync(mask: Any, value: Any, flag: Any = None) -> Any:
    """(eq, pred): `mask` and True if all of its lanes have the same bits, else 0 and False. `flag` is not used."""
