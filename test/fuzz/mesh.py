"""What a mesh is: a numbered, endless series of cases, each of which must end well.

A mesh is a module with a class `Mesh`. Cases run in a process of the mesh's own; after a crash or a case that does not
end, the runner starts another one with the next case. So a mesh only looks at what its own code can see.
"""

from __future__ import annotations

import abc
import dataclasses
import enum
from pathlib import Path


class Kind(enum.Enum):
    FINE = "fine"
    REFUSED = "refused"  # by a typed error
    UNREAD = "unread"  # IR that does not parse
    INVALID = "invalid"  # a pass made IR that the verifier refuses, of IR that it accepts
    WRONG = "wrong"  # a wrong result, or an error that is none of ours
    CRASH = "crash"  # the process ended
    HANG = "hang"  # the case did not end in time

    @property
    def is_bad(self) -> bool:
        return self in (Kind.INVALID, Kind.WRONG, Kind.CRASH, Kind.HANG)


@dataclasses.dataclass(frozen=True)
class Outcome:
    kind: Kind
    text: str = ""


FINE = Outcome(Kind.FINE)


class Base(abc.ABC):
    """`folder` is for files; case `number` is the same in every run. `limit`: seconds of a CPU that a case may take."""

    limit = 60.0

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @abc.abstractmethod
    def case(self, number: int) -> Outcome: ...

    def source(self, number: int) -> str:
        """What is kept of a bad case."""
        return ""
