"""Where a thread stands. All of this has a value in kernels only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import TileError, TileTypeError, TileValueError
from ..reference import threads
from .targets import HOST_NAME

if TYPE_CHECKING:
    from ..capture.frame import Frame

__all__ = ["block_dim", "block_idx", "grid_dim", "grid_size", "lane_id", "thread_idx", "tid", "warp_size"]


_ON_HOST = "is device only: it has a value in a kernel, and this is the host; use it in a @device.kernel"


def refuse_on_host(frame: Frame, what: str) -> None:
    """What no function has that is captured for C++ of the host."""
    if frame.capture.target == HOST_NAME:
        raise TileError(f"{what} {_ON_HOST}, or behind device.target(device.is_device)")


def refuse_for_elements(frame: Frame, what: str) -> None:
    """What belongs to a block of threads, not to the element of a tile that a function is called for."""
    if frame.capture.mapped:
        raise TileTypeError(
            f"{what} is of a thread in its block, and {frame.capture.mapped} is called for each element of a tile, by "
            "whichever thread holds it; pass what it needs, or call it from a @device.kernel"
        )


def _check(frame: Frame, what: str) -> None:
    refuse_on_host(frame, what)
    refuse_for_elements(frame, what)


class _DeviceOnly:
    """Stands for a value that a thread has; `read` gives that of the thread that runs under `kernel.interpret`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __tw_value__(self, frame: Frame) -> Any:
        from ..capture.simt import positions

        _check(frame, f"device.{self._name}")
        return positions.VALUES[self._name](frame)

    def __tw_now__(self) -> Any:
        thread = threads.current()
        if thread is None:
            raise TileError(f"device.{self._name} {_ON_HOST}")
        return thread.position(self._name)

    def __repr__(self) -> str:
        return f"device.{self._name}"


class _Position(_DeviceOnly):
    """`thread_idx` and its like: a Dim3 in a kernel."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.__tw_now__(), name)

    def __getitem__(self, i: int) -> Any:
        return self.__tw_now__()[i]

    def __len__(self) -> int:
        return 3

    def __iter__(self) -> Any:
        return iter(self.__tw_now__())


class _Scalar(_DeviceOnly):
    """`lane_id` and `warp_size`: an int32 in a kernel."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.__tw_now__(), name)

    def __index__(self) -> int:
        return int(self.__tw_now__())

    __hash__ = None  # type: ignore[assignment]


def _delegated(name: str) -> Any:
    return lambda self, *others: getattr(self.__tw_now__(), name)(*others)


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift"):
    setattr(_Scalar, f"__{_name}__", _delegated(f"__{_name}__"))
    setattr(_Scalar, f"__r{_name}__", _delegated(f"__r{_name}__"))
for _name in ("eq", "ne", "lt", "le", "gt", "ge", "neg", "invert", "bool", "int", "float"):
    setattr(_Scalar, f"__{_name}__", _delegated(f"__{_name}__"))

thread_idx = _Position("thread_idx")
block_idx = _Position("block_idx")
block_dim = _Position("block_dim")
grid_dim = _Position("grid_dim")
lane_id = _Scalar("lane_id")
warp_size = _Scalar("warp_size")


def _named(value: Any) -> str:
    from ..capture.values import describe  # only for a message

    return describe(value)


def _count(ndims: Any, what: str) -> int:
    if type(ndims) is not int:
        raise TileTypeError(
            f"{what}: the number of dimensions is a constant 1, 2 or 3, found {_named(ndims)}; expected one"
        )
    if not 1 <= ndims <= 3:
        raise TileValueError(f"{what}: there are 1 to 3 dimensions, found {ndims}; expected 1, 2 or 3")
    return ndims


class _PlaceInGrid:
    """tid(ndims): where the thread stands in the grid: an int32 for ndims 1, a tuple of ndims for 2 and 3."""

    __name__ = "device.tid"

    def __call__(self, ndims: int) -> Any:
        count = _count(ndims, "device.tid")
        found = [int(t) + int(b) * int(d) for t, b, d in zip(thread_idx, block_idx, block_dim, strict=True)]
        return _told([threads.int32(n) for n in found[:count]])

    def __tw_call__(self, frame: Frame, ndims: Any) -> Any:
        from ..capture.simt import positions

        _check(frame, "device.tid()")
        return _told(positions.place_in_grid(frame, _count(ndims, "device.tid")))


class _GridSize:
    """grid_size(ndims): how many threads the grid has along each axis: an int32 for ndims 1, a tuple for 2 and 3."""

    __name__ = "device.grid_size"

    def __call__(self, ndims: int) -> Any:
        count = _count(ndims, "device.grid_size")
        found = [int(d) * int(g) for d, g in zip(block_dim, grid_dim, strict=True)]
        return _told([threads.int32(n) for n in found[:count]])

    def __tw_call__(self, frame: Frame, ndims: Any) -> Any:
        from ..capture.simt import positions

        _check(frame, "device.grid_size()")
        return _told(positions.grid_size(frame, _count(ndims, "device.grid_size")))


def _told(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else tuple(values)


tid = _PlaceInGrid()
grid_size = _GridSize()
