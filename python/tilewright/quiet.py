"""`@quiet`: what launches kernels has no frames in the tracebacks of its errors, as the launch in C has none.

    Traceback (most recent call last):
      File "program.py", line 12, in <module>
        scale[8, 128](x, 2)
    TileTypeError: …

What is left are the frames of programs and of other libraries, but for the threads that we start. A fault of this
package keeps all of them.
"""

from __future__ import annotations

import functools
import os
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from . import _core
from .errors import TileError, TileInternalError

_F = TypeVar("_F", bound=Callable[..., Any])
_C = TypeVar("_C", bound=type)
_FOLDER = os.path.dirname(__file__) + os.sep


class _Quiet(_core.Quiet):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function, leave_out)
        functools.update_wrapper(self, function)

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return self if owner is None else types.MethodType(self, owner)

    def __repr__(self) -> str:
        return repr(self.__wrapped__)  # type: ignore[attr-defined]

    def __reduce__(self) -> str:
        """A function of a module is found by its name."""
        return self.__qualname__  # type: ignore[attr-defined]


def quiet_methods(kind: _C) -> _C:
    """A class whose methods are quiet, those with a name of Python's, too."""
    for name, value in list(vars(kind).items()):
        if isinstance(value, types.FunctionType) and (not name.startswith("_") or name.endswith("__")):
            setattr(kind, name, quiet(value))
    return kind


if TYPE_CHECKING:

    def quiet(function: _F) -> _F: ...

else:
    quiet = _Quiet


def leave_out(error: BaseException) -> None:
    """Takes our frames out of the traceback of an error, and of those that led to it."""
    import concurrent.futures  # which takes longer than all of `tile`, and an import of that needs none

    ours = (_FOLDER, os.path.dirname(concurrent.futures.__file__) + os.sep)
    seen: set[int] = set()
    left: BaseException | None = error
    while left is not None and id(left) not in seen:
        seen.add(id(left))
        frames = _frames(left.__traceback__)
        if not _is_fault(left, frames):
            left.__traceback__ = _joined([f for f in frames if not _file(f).startswith(ours)])
            if left.__context__ is not None and _is_fault(left.__context__, _frames(left.__context__.__traceback__)):
                left.__suppress_context__ = True  # what we caught on the way
        left = left.__cause__ or (None if left.__suppress_context__ else left.__context__)


def _is_fault(error: BaseException, frames: list[types.TracebackType]) -> bool:
    """Whether something is wrong here, not in the program."""
    if isinstance(error, TileError | NotImplementedError):  # the latter of what arrays may be and kernels do not take
        return isinstance(error, TileInternalError)
    return bool(frames) and _file(frames[-1]).startswith(_FOLDER)


def _frames(trace: types.TracebackType | None) -> list[types.TracebackType]:
    found = []
    while trace is not None:
        found.append(trace)
        trace = trace.tb_next
    return found


def _file(frame: types.TracebackType) -> str:
    return frame.tb_frame.f_code.co_filename


def _joined(frames: list[types.TracebackType]) -> types.TracebackType | None:
    behind = None
    for frame in reversed(frames):
        frame.tb_next = behind
        behind = frame
    return behind


__all__ = ["leave_out", "quiet", "quiet_methods"]
