"""Claims: the candidates that a sweep has taken to measure, for other sweeps that keep records at the same place.

A claim is a lock on one byte of an empty file beside the records; which byte, the key of the record says. The operating
system frees it when the sweep frees it or ends, however it ends, so nobody waits for a sweep that is dead, and nothing
is left to clear up. The records themselves are not what is locked: their writers lock that file as a whole.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import threading
from pathlib import Path
from typing import Any

from ..errors import TileValueError
from ..tune.alone import lock_bytes


class Claims:
    """Of one sweep. Safe in several threads."""

    def __init__(self, records: Path) -> None:
        self.path = records.with_name(f".{records.stem}.claims")
        try:
            self.handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise TileValueError(f"claims cannot be written to {str(self.path)!r}: {error.strerror}") from None
        self.own: set[int] = set()
        self.lock = threading.Lock()

    def take(self, key: tuple[Any, ...]) -> bool:
        """False where somebody has it, which may be another thread of this sweep."""
        at = _place(key)
        with self.lock:
            if at in self.own:
                return False
            try:
                self._set(fcntl.F_WRLCK, at)
            except (BlockingIOError, PermissionError):
                return False
            except OSError:  # a file system without locks: each sweep measures for itself
                pass
            self.own.add(at)
            return True

    def free(self, key: tuple[Any, ...]) -> None:
        at = _place(key)
        with self.lock:
            if at in self.own:
                self.own.remove(at)
                with contextlib.suppress(OSError):  # of a file system without locks
                    self._set(fcntl.F_UNLCK, at)

    def _set(self, kind: int, at: int) -> None:
        lock_bytes(self.handle, kind, at)

    def close(self) -> None:
        os.close(self.handle)


def _place(key: tuple[Any, ...]) -> int:
    return int.from_bytes(hashlib.sha256(repr(key).encode()).digest()[:8], "big") >> 2
