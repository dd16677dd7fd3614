"""A device to oneself while something is timed on it: searches and sweeps of one host take turns.

Whoever times holds a lock on a byte of an empty file, a file a device and user. The operating system frees it when its
process ends, however it ends, so nobody waits for one that is dead. Who waits has a second byte, the place behind it,
so that one who is quick to come back does not come first again. What cannot be locked (a foreign file, a file system
without locks) is not waited for, and neither is one who holds it for longer than any trial takes.

A third byte is held by a process of a cluster that has taken the device for as long as it lives: others of its host
take another one.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import struct
import tempfile
import time
from collections.abc import Iterator

from .. import _core

MOST_SECONDS = 180.0  # that one waits; a trial of a candidate that hangs takes less
LOOK_SECONDS = 0.001
HELD, NEXT, LIVES = 0, 1, 2  # bytes of the file


def lock_bytes(handle: int, kind: int, at: int) -> None:
    """Of an open file: two openings of one process differ, too. BlockingIOError or PermissionError where somebody has
    it; another OSError where there are no locks."""
    # struct flock of 64-bit Linux
    fcntl.fcntl(handle, fcntl.F_OFD_SETLK, struct.pack("hhqqi0q", kind, os.SEEK_SET, at, 1, 0))


def name_of(device: int | None) -> str:
    """The same in every process of the host, whichever GPUs it sees."""
    if device is None:
        return "cpu"
    return f"gpu-{_core.device_info(device)['uuid'] or device}"


def path_of(device: int | None) -> str:
    return os.path.join(tempfile.gettempdir(), f"tilewright-{os.getuid()}-{name_of(device)}.lock")


@contextlib.contextmanager
def alone(device: int | None) -> Iterator[float]:
    """With the seconds that were waited."""
    start = time.monotonic()
    handle = _opened(path_of(device))
    try:
        if handle is not None:
            with contextlib.suppress(OSError):
                _take(handle, start + MOST_SECONDS)
        yield time.monotonic() - start
    finally:
        if handle is not None:
            os.close(handle)  # which frees what it holds


def settle(count: int) -> int:
    """One of so many devices that no other process has settled on, for the rest of this one's life; the first where
    there is none, of which both have turns."""
    for device in range(count):
        handle = _opened(path_of(device))
        if handle is None:
            continue
        try:
            lock_bytes(handle, fcntl.F_WRLCK, LIVES)
            return device  # and the file stays open
        except OSError:
            os.close(handle)
    return 0


def _opened(path: str) -> int | None:
    """A file of this user; None where it cannot be had."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    except OSError:
        return None
    found = os.fstat(handle)
    if stat.S_ISREG(found.st_mode) and found.st_uid == os.getuid():
        return handle
    os.close(handle)
    return None


def _take(handle: int, end: float) -> None:
    if _has(handle, NEXT, end) and _has(handle, HELD, end):
        lock_bytes(handle, fcntl.F_UNLCK, NEXT)


def _has(handle: int, at: int, end: float) -> bool:
    while True:
        try:
            lock_bytes(handle, fcntl.F_WRLCK, at)
            return True
        except (BlockingIOError, PermissionError):
            if time.monotonic() > end:
                return False
            time.sleep(LOOK_SECONDS)
