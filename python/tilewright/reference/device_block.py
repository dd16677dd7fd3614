"""Blocks under `kernel.interpret` of cuda.device: threads that wait for each other, one of which runs at a time.

Threads run one after the other on the caller's thread of Python, where breakpoints hold, until one waits. Those behind
it then get threads of their own, and a baton goes round: the caller's thread hands it to each that can go on, and looks
who has met whenever it comes back.
"""

from __future__ import annotations

import dataclasses
import enum
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from ..errors import LaunchError
from . import threads as of_python

LANES = 32
PACKAGE = str(Path(__file__).parents[1])


class State(enum.Enum):
    NEW = enum.auto()
    READY = enum.auto()
    AT_BARRIER = enum.auto()
    AT_LANES = enum.auto()
    DONE = enum.auto()


@dataclasses.dataclass
class Meeting:
    """What a thread waits with: what is done together, by which lanes, and where that stands."""

    what: str
    told: Callable[[Any, dict[int, Any]], Any]  # of the lane (or None) and what each thread brought
    value: Any = None
    mask: int = 0
    site: str = ""


class _Abandoned(BaseException):
    """Ends a thread of a block that is given up."""


class Block:
    """The threads of a block, in the order of their numbers; what they share."""

    def __init__(self, members: Sequence[Any], shared: int = 0) -> None:
        self.members = members
        self.shared_bytes = shared
        self.arrays: dict[Any, Any] = {}  # by the call that makes it
        self._back = threading.Semaphore(0)
        self._error: BaseException | None = None
        self._abandoned = False
        for number, member in enumerate(members):
            member.block, member.number, member.state = self, number, State.NEW
            member.at, member.told, member.go, member.python = None, None, threading.Semaphore(0), None

    def run(self, body: Callable[[], None]) -> None:
        self._body = body
        try:
            for member in self.members:
                if member.state is State.NEW:
                    self._run_here(member)
                if any(m.python for m in self.members):
                    self._schedule(None)
        finally:
            of_python.enter(None)
            self._abandon()

    def _run_here(self, member: Any) -> None:
        of_python.enter(member)
        member.state = State.READY
        self._body()
        member.state = State.DONE

    # -- waiting

    def wait(self, member: Any, state: State, meeting: Meeting | None) -> Any:
        """The member waits; gives what it is told."""
        member.state, member.at = state, meeting
        if member.python is None:
            self._schedule(member)
            of_python.enter(member)
        else:
            self._back.release()
            member.go.acquire()
            if self._abandoned:
                raise _Abandoned
        return member.told

    def _schedule(self, until: Any) -> None:
        """Runs the others until this member can go on; None: until all are done."""
        while True:
            moved = False
            for member in self.members:
                if member is not until and member.state in (State.NEW, State.READY):
                    self._hand_over(member)
                    moved = True
            moved |= self._meet()
            if until.state is State.READY if until else all(m.state is State.DONE for m in self.members):
                return
            if not moved:
                raise LaunchError(self._stuck())

    def _hand_over(self, member: Any) -> None:
        if member.state is State.NEW:
            member.state = State.READY
            member.python = threading.Thread(target=self._run_there, args=(member,), daemon=True)
            member.python.start()
        else:
            member.go.release()
        self._back.acquire()
        if self._error is not None:
            raise self._error

    def _run_there(self, member: Any) -> None:
        of_python.enter(member)
        try:
            self._body()
        except _Abandoned:
            return
        except BaseException as error:
            self._error = error
        member.state = State.DONE
        self._back.release()

    def _abandon(self) -> None:
        self._abandoned = True
        for member in self.members:
            if member.python is not None and member.state is not State.DONE:
                member.go.release()
                member.python.join()

    # -- meeting

    def _meet(self) -> bool:
        met = False
        for first in range(0, len(self.members), LANES):
            warp = self.members[first : first + LANES]
            for member in warp:
                if member.state is State.AT_LANES:
                    met |= self._meet_lanes(warp, member)
        return self._meet_all() or met

    def _meet_lanes(self, warp: Sequence[Any], member: Any) -> bool:
        at = member.at
        lanes = [m for i, m in enumerate(warp) if at.mask >> i & 1 and m.state is not State.DONE]
        here = all(m.state is State.AT_LANES and (m.at.mask, m.at.what) == (at.mask, at.what) for m in lanes)
        if member not in lanes or not here:
            return False
        self._tell(lanes, {m.number % LANES: m.at.value for m in lanes})
        return True

    def _meet_all(self) -> bool:
        alive = [m for m in self.members if m.state is not State.DONE]
        if not alive or any(m.state is not State.AT_BARRIER or m.at.site != alive[0].at.site for m in alive):
            return False
        self._tell(alive, {m.number: m.at.value for m in alive})
        return True

    @staticmethod
    def _tell(members: Sequence[Any], values: dict[int, Any]) -> None:
        told = [m.at.told(m.number % LANES, values) for m in members]
        for member, value in zip(members, told, strict=True):
            member.state, member.told = State.READY, value

    def _stuck(self) -> str:
        alive = [m for m in self.members if m.state is not State.DONE]
        first = alive[0]
        others = [m for m in alive if (m.at.site, m.at.mask) != (first.at.site, first.at.mask)]
        places = ", ".join(f"thread {m.thread_idx} waits at {m.at.site}{_lanes(m)}" for m in [first, *others[:1]])
        return (
            f"divergent barrier in block {first.block_idx}: {places}; all threads that still run must come to the "
            "same one"
        )


def _lanes(member: Any) -> str:
    return f" for lanes {member.at.mask & 0xFFFFFFFF:#010x}" if member.state is State.AT_LANES else ""


def _outside() -> FrameType:
    """The innermost frame that is not of this package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    assert frame is not None
    return frame


def site() -> str:
    """The line of the kernel that is running."""
    frame = _outside()
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def calls() -> tuple[Any, ...]:
    """The calls that lead from the kernel to the place that is running, so that a function called twice is two."""
    frame: FrameType | None = _outside()
    found = []
    while frame is not None and not frame.f_code.co_filename.startswith(PACKAGE):
        found.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return tuple(found)
