"""Kernels and functions, and the launch."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

from .. import _core, knobs
from ..annotations import Constant
from ..capture import DEVICE
from ..errors import TileTypeError, TileValueError
from ..kernel import kernel as _tile_kernel
from ..quiet import quiet
from . import records

__all__ = ["ConstExpr", "func", "kernel", "launch", "machine_representation"]

# A parameter hint: the argument must be a constant expression; ConstExpr[int]: one of this type.
ConstExpr = Constant


@quiet
def func(f: Callable[..., Any] | None = None, /, *, interop: bool = False, **unknown: Any) -> Any:
    """Mark a function for the host and for device code: `@device.func`. On the host it is the plain function."""
    _refuse_unknown("@device.func", unknown)
    if f is None:
        return lambda decorated: func(decorated, interop=interop)
    if isinstance(f, kernel):
        raise TileTypeError(f"{f.name} is a @device.kernel, and so cannot be a @device.func; keep one of the two")
    if not isinstance(f, types.FunctionType):
        raise TileTypeError(f"@device.func needs a function made by 'def', found {f!r}")
    f.underlying = f  # type: ignore[attr-defined]
    f.interop = interop  # type: ignore[attr-defined]
    f.__tw_func__ = True  # type: ignore[attr-defined]
    return f


def _refuse_unknown(decorator: str, unknown: dict[str, Any], known: str = "interop") -> None:
    if unknown:
        name = min(unknown)
        raise TileTypeError(f"{decorator} has no keyword argument '{name}'; it takes {known}")


class kernel(_tile_kernel):
    """Make a SIMT kernel of a function: `@device.kernel`. It runs once for each thread of a launch.

    `interop=True` makes it one of C++. With `relax_atomics=False` an atomic access orders what it says even where no
    thread of the kernel could tell.
    """

    rules = DEVICE
    decorator = "@device.kernel"
    hint_names = ()

    @quiet
    def __new__(
        cls,
        function: Callable[..., Any] | None = None,
        /,
        *,
        interop: bool = False,
        relax_atomics: bool = True,
        **unknown: Any,
    ) -> Any:
        _refuse_unknown(cls.decorator, unknown, "interop, relax_atomics")
        if function is None:
            return lambda decorated: cls(decorated, interop=interop, relax_atomics=relax_atomics)
        if getattr(function, "__tw_func__", False):
            name = function.__name__
            raise TileTypeError(f"{name} is a @device.func, and so cannot be a @device.kernel; keep one of the two")
        return super().__new__(cls, function)

    def __init__(self, function: Callable[..., Any], /, *, interop: bool = False, relax_atomics: bool = True) -> None:
        super().__init__(function, **({} if relax_atomics else {"relax_atomics": 0}))
        self.underlying, self.interop = function, interop

    @quiet
    def __call__(self, *args: Any, **kwargs: Any) -> None:
        raise TileTypeError(
            f"the kernel {self.name} is device only and is not called; start it with device.launch({self.name}, …, "
            "grid=…, block=…), or call a @device.func"
        )

    @quiet
    def __getitem__(self, grid: Any) -> Any:
        raise TileTypeError(
            f"the kernel {self.name} is started by device.launch({self.name}, …, grid=…, block=…), not by "
            f"{self.name}[grid, block](…)"
        )

    @quiet
    def interpret(  # type: ignore[override]
        self, args: tuple[Any, ...], grid: int | Sequence[int], block: int | Sequence[int], shared: int = 0
    ) -> None:
        """Run the Python body itself, thread after thread, on NumPy arrays: breakpoints work."""
        from ..reference.device import run

        self._ask_front_end(tuple(map(records.argument, args)))
        run(self.function, args, grid, block, shared)


@quiet
def launch(
    f: kernel,
    *args: Any,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    stream: Any = None,
    shared: int = 0,
    check: bool = False,
) -> None:
    """Start `f(*args)` on `grid` blocks of `block` threads, in the order of `stream`.

    With `check=True`, or TILEWRIGHT_CHECK=1, it waits for the kernel, and raises an error with the line of the program
    if a thread reads or writes outside of an array, or if an assertion does not hold.
    """
    if not isinstance(f, kernel):
        found = f"the function {f.__name__}" if isinstance(f, types.FunctionType) else repr(f)
        raise TileTypeError(f"device.launch starts a @device.kernel, found {found}; expected one")
    if isinstance(shared, bool) or not isinstance(shared, int) or not 0 <= shared < 2**31:
        raise TileValueError(f"device.launch: expected a number of bytes as shared, found {shared!r}")
    given = tuple(map(records.argument, args))
    if check or knobs.check():
        from .. import checking  # which needs NumPy

        return checking.launch_threads(stream, grid, block, f, given, shared)
    _core.launch_threads(stream, grid, block, f, given, shared)


def machine_representation() -> str:
    """The rules by which types and symbols become those of C++ here: "itanium", or "msvc" on Windows."""
    return "msvc" if sys.platform == "win32" else "itanium"
