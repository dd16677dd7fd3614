"""Findings: what goes wrong while a kernel runs, as check mode and the reference execution tell it."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

from .errors import Place, TileCheckError

Position = tuple[int, int, int]


@dataclasses.dataclass(frozen=True)
class Finding:
    """One thing that went wrong: in which block, at which index of which array, with which value.

    kind:  "read outside", "write outside", "two writers", "read of written", "write of read", "padding stored",
           "padding used", "not divisible" or "assertion"
    other: the other block, of two; None of more
    text:  the message of an assertion, a divisor, what an access at an offset or by an index, mask or condition is, or
           "overlap" where two arrays share the element
    """

    kind: str
    array: str | None = None
    shape: tuple[int, ...] | None = None
    index: tuple[int, ...] | None = None
    block: Position = (0, 0, 0)
    value: Any = None
    other: Position | None = None
    text: str = ""
    places: tuple[Place, ...] = ()
    thread: Position | None = None  # of the block, in a kernel of threads

    @property
    def element(self) -> str:
        if self.text == "offset" and self.index:
            return f"{self.array} at offset {self.index[0]}"
        return f"{self.array}[{', '.join(map(str, self.index))}]" if self.index else str(self.array)

    @property
    def message(self) -> str:
        worth = "" if self.value is None else f" (the value {self.value!r})"
        who = f"block {self.block}" if self.thread is None else f"thread {self.thread} of block {self.block}"
        return f"{who} {_SENTENCES[self.kind](self, worth)}"


# The exceptions that kernels raise, by the text of the assertion that tells of one.
RAISED: dict[str, type[Exception]] = {}

_PADDING = "undetermined padding; give ct.load a padding_mode, or mask it with ct.where"


def _outside(f: Finding, worth: str = "") -> str:
    """What an access outside of an array is told."""
    what = (
        f"{f.element}{worth}, which is outside of its shape {f.shape}" if f.array else "an array outside of its shape"
    )
    if f.text == "offset":
        return f"{what}; an offset counts elements of its memory"
    if f.thread is None and f.array:
        return f"{what}; check_bounds=False promised that it is not"
    return f"{what}; compare the index with the shape first"


def _used(f: Finding, worth: str) -> str:
    what = f"as the {f.text}" + (f" of an access to {f.array}" if f.array else "")
    return f"uses {what} what depends on {_PADDING}"


def _raced(f: Finding, does: str) -> str:
    other = f"block {f.other} {does}" if f.other else "other blocks read"
    if f.text == "overlap":
        return f"which shares memory with what {other}; pass arrays that do not overlap, or a copy"
    return f"which {other}, before or behind it; store to another array, or use atomics that order the two"


_SENTENCES = {
    "read outside": lambda f, worth: f"reads {_outside(f)}",
    "write outside": lambda f, worth: f"writes {_outside(f, worth)}",
    "two writers": lambda f, worth: (
        f"and block {f.other} both store to {f.element}{worth}; use an atomic, or a place for each block"
    ),
    "read of written": lambda f, worth: f"reads {f.element}{worth}, {_raced(f, 'stores to')}",
    "write of read": lambda f, worth: f"stores to {f.element}{worth}, {_raced(f, 'reads')}",
    "padding stored": lambda f, worth: f"stores to {f.element}{worth} what depends on {_PADDING}",
    "padding used": _used,
    "not divisible": lambda f, worth: (
        f"says ct.assume_divisible_by(…, {f.text}) of {f.value}, which {f.text} does not divide"
    ),
    "divergent barrier": lambda f, worth: (
        "comes to a barrier while others come to another one; all threads that still run must come to the same one"
    ),
    "assertion": lambda f, worth: f"{'raises' if f.text in RAISED else 'fails an assertion:'} {f.text}",
}


def error_of(kernel: str, findings: Sequence[Finding], count: int | None = None) -> TileCheckError:
    """The exception for what a launch has found, of which the first is told; `count`: how many there were in all."""
    first, more = findings[0], (count or len(findings)) - 1
    message = f"kernel {kernel}: {first.message}"
    if more:
        message += f"\n{more} more finding{'s' if more > 1 else ''} in this launch (TileCheckError.findings)"
    return _class_of(first)(message, first.places, findings)


def _class_of(finding: Finding) -> type[TileCheckError]:
    """TileCheckError, or of an exception that the kernel raises one that is both."""
    raised = RAISED.get(finding.text) if finding.kind == "assertion" else None
    return TileCheckError if raised is None else _both(raised)  # type: ignore[arg-type]


@functools.cache
def _both(raised: type[Exception]) -> type[TileCheckError]:
    def new(cls: Any, *args: Any) -> Any:
        return raised.__new__(cls)

    def init(self: Any, message: str, places: Any, findings: Any) -> None:
        """As TileCheckError does, without what the exception's own class asks for."""
        self.args = (message,)
        self.message, self.places, self.findings = message, tuple(places), tuple(findings)

    namespace = {"__new__": new, "__init__": init, "__module__": raised.__module__, "__doc__": raised.__doc__}
    try:
        made: type[TileCheckError] = type(raised.__name__, (TileCheckError, raised), namespace)
        made("", (), ())
    except TypeError:  # two kinds of objects that have no common one
        return TileCheckError
    return made
