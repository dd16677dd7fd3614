"""Target specialization: `if device.target(device.provides(device.sm90)): …`.

The condition is a constant, and the side that it leaves out is never looked at: it may use what this target lacks.
On the CPU a kernel is device code of no architecture: is_device holds, is_exactly and provides do not.
"""

from __future__ import annotations

import dataclasses
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..errors import TileTypeError
from ..reference import threads

if TYPE_CHECKING:
    from ..capture.frame import Frame

# As LLVM's NVPTX knows them; sm_XXa is XX.
ARCHITECTURES = (70, 72, 75, 80, 86, 87, 88, 89, 90, 100, 101, 103, 110, 120, 121)


@dataclasses.dataclass(frozen=True)
class Target:
    """What code is made for: `number` is the architecture's, None where there is none."""

    is_device: bool
    number: int | None = None


HOST, CPU = Target(False), Target(True)
HOST_NAME = "host"  # of functions that C++ of the host calls


def target_named(name: str) -> Target:
    """`sm_90a` and its like, or the host; anything else is the CPU."""
    if name == HOST_NAME:
        return HOST
    found = re.fullmatch(r"sm_(\d+)[a-z]*", name)
    return Target(True, int(found[1])) if found else CPU


class SMSelector:
    """A CUDA architecture, such as device.sm90."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __repr__(self) -> str:
        return f"device.sm{self.number}"


class TargetDescription:
    """A set of targets; `|`, `&` and `~` make others."""

    def __init__(self, text: str, matches: Callable[[Target], bool]) -> None:
        self._text, self.matches = text, matches

    def __or__(self, other: Any) -> TargetDescription:
        other = _description(other, "|")
        return TargetDescription(f"({self} | {other})", lambda t: self.matches(t) or other.matches(t))

    def __and__(self, other: Any) -> TargetDescription:
        other = _description(other, "&")
        return TargetDescription(f"({self} & {other})", lambda t: self.matches(t) and other.matches(t))

    def __ror__(self, other: Any) -> TargetDescription:
        return _description(other, "|") | self

    def __rand__(self, other: Any) -> TargetDescription:
        return _description(other, "&") & self

    def __invert__(self) -> TargetDescription:
        return TargetDescription(f"~{self}", lambda t: not self.matches(t))

    def __repr__(self) -> str:
        return self._text


def _named(value: Any) -> str:
    from ..capture.values import Tile, describe  # only for a message

    return describe(value) if isinstance(value, Tile) else repr(value)


def _description(value: Any, what: str) -> TargetDescription:
    if isinstance(value, TargetDescription):
        return value
    raise TileTypeError(
        f"{what} needs a constant device.TargetDescription, found {_named(value)}; device.is_device is one, "
        "device.provides(device.sm90) gives one"
    )


def _selector(value: Any, what: str) -> SMSelector:
    if isinstance(value, SMSelector):
        return value
    raise TileTypeError(f"{what} needs a constant device.SMSelector, such as device.sm90, found {_named(value)}")


class _Constant(ABC):
    """A function of constants, the same on the host and in device code."""

    def __tw_call__(self, frame: Frame, desc: Any) -> Any:
        return self(desc)

    @abstractmethod
    def __call__(self, desc: Any) -> Any:
        """What it gives on the host."""


class _IsExactly(_Constant):
    """is_exactly(sm): the targets of this architecture alone."""

    def __call__(self, desc: Any) -> TargetDescription:
        sm = _selector(desc, "device.is_exactly")
        return TargetDescription(f"is_exactly({sm})", lambda t: t.number == sm.number)


class _Provides(_Constant):
    """provides(sm): the targets that can do what this architecture can: it and newer ones."""

    def __call__(self, desc: Any) -> TargetDescription:
        sm = _selector(desc, "device.provides")
        return TargetDescription(f"provides({sm})", lambda t: t.number is not None and t.number >= sm.number)


class _IsTarget(_Constant):
    """target(desc): whether the code that is being made, or that runs, is for one of these targets."""

    def __call__(self, desc: Any) -> bool:
        now = HOST if threads.current() is None else CPU
        return _description(desc, "device.target").matches(now)

    def __tw_call__(self, frame: Frame, desc: Any) -> bool:
        return _description(desc, "device.target").matches(target_named(frame.capture.target))


is_exactly, provides, target = _IsExactly(), _Provides(), _IsTarget()
is_host = TargetDescription("is_host", lambda t: not t.is_device)
is_device = TargetDescription("is_device", lambda t: t.is_device)
any_target = TargetDescription("any_target", lambda t: True)
no_target = TargetDescription("no_target", lambda t: False)

SELECTORS = {f"sm{number}": SMSelector(number) for number in ARCHITECTURES}
globals().update(SELECTORS)

__all__ = [
    "SMSelector",
    "TargetDescription",
    "any_target",
    "is_device",
    "is_exactly",
    "is_host",
    "no_target",
    "provides",
    "target",
    *SELECTORS,
]
