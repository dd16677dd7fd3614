"""Functions of C++ that device code calls: `@device.extern`.

    @device.extern(link="noise.ptx")      # extern "C" __device__ float noise(float3 p);
    def noise(p: device.float32x3) -> device.float32:
        return p.x * 12.9898 % 1.0

The hints are the signature, the body is what happens where no GPU is: on the host, on the CPU, under `interpret`.
"""

from __future__ import annotations

import ast
import os
import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import TileTypeError

if TYPE_CHECKING:
    from ..capture.frame import Frame

__all__ = ["extern"]


def files_of(link: Any, what: str) -> tuple[str, ...]:
    """The files that `link=` names."""
    names = (link,) if isinstance(link, str | os.PathLike) else tuple(link)
    if not all(isinstance(name, str | os.PathLike) for name in names):
        raise TileTypeError(f"{what}: link= is a file, or several: PTX, cubins, objects; found {link!r}")
    return tuple(map(os.fspath, names))


def extern(f: Callable[..., Any] | None = None, /, *, link: Any = ()) -> Any:
    """Make a Python function stand for the C++ function of its name, which is in the files `link`."""
    if f is None:
        return lambda decorated: extern(decorated, link=link)
    if not isinstance(f, types.FunctionType):
        raise TileTypeError(f"@device.extern needs a function made by 'def', found {f!r}")
    return Extern(f, files_of(link, "@device.extern"))


class Extern:
    """A function of C++."""

    def __init__(self, function: types.FunctionType, link: Sequence[str]) -> None:
        self.underlying, self.link = function, tuple(link)
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self.__wrapped__ = function

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self.underlying(*args, **keywords)

    def __repr__(self) -> str:
        return f"<extern {self.__name__}>"

    def __tw_call__(self, frame: Frame, *args: Any, **keywords: Any) -> Any:
        from ..capture.simt import extern as captured

        return captured.call(frame, self, list(args), keywords)


def has_body(tree: ast.FunctionDef) -> bool:
    """Whether there is more in a function than its text and `...`."""
    constants = [n for n in tree.body if isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant)]
    return len(constants) < len(tree.body)
