"""What a kernel of Numba asks of its thread: `cuda.grid`, `cuda.threadIdx` and their like, which only kernels have."""

from __future__ import annotations

import inspect
import types
from typing import TYPE_CHECKING, Any

from ..capture.simt.numba import FUNCTIONS
from ..errors import TileError, TileTypeError, TileValueError

if TYPE_CHECKING:
    from ..capture.frame import Frame


class Intrinsic:
    """Stands for what only a kernel has."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.__name__ = f"cuda.{name}"

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        raise TileError(f"cuda.{self.name} is for kernels; it has a meaning only in a kernel")

    def __repr__(self) -> str:
        return f"<cuda.{self.name}>"


class Position(Intrinsic):
    """`threadIdx` and its like: x, y and z are int32."""

    def __init__(self, name: str, of: str) -> None:
        super().__init__(name)
        self.of = of

    def __getattr__(self, axis: str) -> Any:
        if axis in ("x", "y", "z"):
            raise TileError(f"cuda.{self.name}.{axis} is for kernels; it has a value only in a kernel")
        raise AttributeError(axis)

    def __tw_parts__(self, frame: Frame) -> Any:
        """What is printed of it."""
        return tuple(self.__tw_attribute__(frame, axis) for axis in "xyz")

    def __tw_attribute__(self, frame: Frame, axis: str) -> Any:
        from ..capture.simt import numba

        if axis not in ("x", "y", "z"):
            raise TileTypeError(f"cuda.{self.name} has no attribute '{axis}'; it has x, y and z")
        return numba.position(frame, self.of, "xyz".index(axis))


class Value(Intrinsic):
    """`laneid`, `warpsize`."""

    def __tw_value__(self, frame: Frame) -> Any:
        from ..capture.simt import numba

        return numba.VALUES[self.name](frame)


class Places(Intrinsic):
    """`grid(ndim)` and `gridsize(ndim)`: an int64, or a tuple of 2 or 3."""

    __signature__ = inspect.Signature([inspect.Parameter("ndim", inspect.Parameter.POSITIONAL_OR_KEYWORD)])

    def __tw_call__(self, frame: Frame, ndim: Any) -> Any:
        from ..capture.simt import numba

        if type(ndim) is not int or not 1 <= ndim <= 3:
            raise TileValueError(f"cuda.{self.name} takes a constant of 1 to 3, found {ndim!r}")
        found = numba.PLACES[self.name](frame, ndim)
        return found[0] if ndim == 1 else tuple(found)


class Function(Intrinsic):
    """What capture/simt/numba.py has under its name."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        function = FUNCTIONS[name]
        parameters = list(inspect.signature(function).parameters.values())[1:]  # without the frame
        self.__signature__ = inspect.Signature(parameters)

    def __tw_call__(self, frame: Frame, *args: Any) -> Any:
        return FUNCTIONS[self.name](frame, *args)


def _namespace(name: str) -> Any:
    """`cuda.shared`, `cuda.atomic` and their like."""
    members = {n.partition(".")[2]: Function(n) for n in FUNCTIONS if n.startswith(f"{name}.")}
    return type(name, (types.SimpleNamespace,), {"__tw_name__": f"cuda.{name}"})(**members)


threadIdx = Position("threadIdx", "thread_idx")
blockIdx = Position("blockIdx", "block_idx")
blockDim = Position("blockDim", "block_dim")
gridDim = Position("gridDim", "grid_dim")
laneid, warpsize = Value("laneid"), Value("warpsize")
grid, gridsize = Places("grid"), Places("gridsize")
shared, local, const, atomic, cg = map(_namespace, ("shared", "local", "const", "atomic", "cg"))
atomic.xchg = atomic.exch
_NAMES = [name for name in FUNCTIONS if "." not in name]
globals().update({name: Function(name) for name in _NAMES})

__all__ = [
    "atomic",
    "blockDim",
    "blockIdx",
    "cg",
    "const",
    "grid",
    "gridDim",
    "gridsize",
    "laneid",
    "local",
    "shared",
    "threadIdx",
    "warpsize",
    *_NAMES,
]
