"""Copies of a launch's arrays, in this process or another: the same bytes at addresses as good as the originals'.

Arrays may be views of one another. So what is copied are *segments*, the ranges of addresses that the arrays cover
together; an array is an offset into one, with its own shape and strides. A copy of a segment starts at an address that
is the same modulo 256, so that a kernel sees the same facts of it.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import errno
import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from .. import _core
from ..dtype import BY_NAME
from ..errors import TileError

ALIGNMENT = 256
PREFIX = "tilewright-arrays-"


@dataclasses.dataclass(frozen=True)
class View:
    """An array argument: where it lies in a segment, and what it looks like; strides in elements."""

    segment: int
    offset: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    read_only: bool


@dataclasses.dataclass(frozen=True)
class Layout:
    """The arrays among the arguments of a launch, by position, and the segments that they lie in."""

    device: int | None  # None: the CPU
    segments: tuple[tuple[int, int], ...]  # (address, bytes)
    views: dict[int, View]

    @property
    def size(self) -> int:
        return sum(size for _, size in self.segments)


def describe(args: tuple[Any, ...], arrays: list[int]) -> Layout:
    """The layout of the arguments at the given positions, which are arrays."""
    found = {position: _core.describe_array(args[position]) for position in arrays}
    spans = {position: _span(array) for position, array in found.items()}
    segments: list[tuple[int, int]] = []
    for low, high in sorted(spans.values()):
        if segments and low < segments[-1][1]:
            segments[-1] = (segments[-1][0], max(high, segments[-1][1]))
        else:
            segments.append((low, high))
    views = {}
    for position, array in found.items():
        low, _ = spans[position]
        number = next(i for i, (start, end) in enumerate(segments) if start <= low < end or start == low == end)
        offset = array["data"] - segments[number][0]
        views[position] = View(
            number, offset, array["dtype"], array["shape"], array["strides"], bool(array["read_only"])
        )
    devices = {array["device_id"] if array["device"] == "cuda" else None for array in found.values()}
    device = devices.pop() if devices else None
    return Layout(device, tuple((low, high - low) for low, high in segments), views)


def _span(array: dict[str, Any]) -> tuple[int, int]:
    """First and last address (excluded) of an array."""
    bits = BY_NAME[array["dtype"]].bits
    if 0 in array["shape"]:
        return array["data"], array["data"]
    reach = [(extent - 1) * stride for extent, stride in zip(array["shape"], array["strides"], strict=True)]
    low, high = sum(min(0, r) for r in reach), sum(max(0, r) for r in reach)
    return array["data"] + low * bits // 8, array["data"] + ((high + 1) * bits + 7) // 8


class Memory:
    """Memory of the CPU (device None) or of a GPU, by address; freed with the object."""

    def __init__(self, device: int | None) -> None:
        self.device = device
        self._owned: list[Any] = []

    def allocate(self, size: int, like: int = 0) -> int:
        """An address that is `like` modulo ALIGNMENT."""
        room = size + ALIGNMENT
        if self.device is None:
            block = np.empty(room, np.uint8)
            self._owned.append(block)
            base = block.ctypes.data
        else:
            base = _core.memory_alloc(self.device, room)
            self._owned.append(base)
        return base + (like - base) % ALIGNMENT

    def copy(self, target: int, source: int, size: int) -> None:
        """Between addresses of this memory and of the host."""
        if self.device is None:
            ctypes.memmove(target, source, size)
        else:
            _core.memory_copy(self.device, target, source, size)

    def bytes(self, address: int, size: int) -> np.ndarray[Any, Any]:
        """A copy on the host."""
        found = np.empty(size, np.uint8)
        self.copy(found.ctypes.data, address, size)
        return found

    def synchronize(self) -> None:
        if self.device is not None:
            _core.synchronize(self.device)

    def close(self) -> None:
        if self.device is not None:
            for address in self._owned:
                _core.memory_free(self.device, address)
        self._owned.clear()


class _Foreign:
    """An array at an address, as the array interfaces of NumPy and CUDA describe it."""

    def __init__(self, device: int | None, interface: dict[str, Any]) -> None:
        name = "__array_interface__" if device is None else "__cuda_array_interface__"
        setattr(self, name, interface)


def array_at(device: int | None, base: int, view: View) -> Any:
    """What a launch takes as the array of a view, in a segment at `base`."""
    dtype = BY_NAME[view.dtype]
    shape, strides = list(view.shape), list(view.strides)
    if dtype.bits == 4:  # two elements a byte along the innermost dimension
        shape[-1] //= 2
        strides = [stride // 2 for stride in strides[:-1]] + [1]
    size = max(1, dtype.bits // 8)
    interface = {
        "version": 3,
        "shape": tuple(shape),
        "strides": tuple(stride * size for stride in strides),
        "typestr": f"|u{size}" if size == 1 else f"<u{size}",
        "data": (base + view.offset, view.read_only),
    }
    foreign = _Foreign(device, interface)
    plain: Any = np.asarray(foreign) if device is None else foreign
    return plain if view.dtype == f"uint{8 * size}" else _core.ArrayView(plain, view.dtype)


_LOCKED: dict[Path, int] = {}  # files of this process, and the descriptor by which it holds each


def save(layout: Layout) -> Path:
    """Writes the segments to a file that only this user can read: in memory where there is room, else on disk. It is
    there until `remove`; that of a process which was killed is removed by the next one that saves."""
    folder = Path("/dev/shm" if _has_room("/dev/shm", layout.size) else tempfile.gettempdir())
    _remove_left(folder)
    path = _create(folder)
    memory = Memory(layout.device)
    memory.synchronize()
    try:
        _reserve(path, max(1, layout.size))
        content = np.memmap(path, np.uint8, "r+", shape=max(1, layout.size))
        at = content.ctypes.data
        for address, size in layout.segments:
            memory.copy(at, address, size)
            at += size
        content.flush()
    except BaseException:
        remove(path)
        raise
    return path


def _reserve(path: Path, size: int) -> None:
    """Room for all of it: a write to a page that the disk has no room for would end this process."""
    try:
        os.posix_fallocate(_LOCKED[path], 0, size)
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.EINVAL):  # of a file system that cannot tell
            os.truncate(_LOCKED[path], size)
            return
        raise TileError(
            f"{str(path.parent)!r} takes no copy of the arguments, which are {size:,} bytes: {error.strerror}; make "
            "room there, or name another folder by the variable TMPDIR"
        ) from None


def _create(folder: Path) -> Path:
    """A file under a lock, which the process's end opens, however it ends."""
    while True:
        handle, name = tempfile.mkstemp(prefix=PREFIX, dir=folder)
        path = Path(name)
        fcntl.flock(handle, fcntl.LOCK_SH)
        if path.exists():  # nobody took it for one that was left, before it was locked
            _LOCKED[path] = handle
            return path
        os.close(handle)


def remove(path: Path) -> None:
    path.unlink(missing_ok=True)
    handle = _LOCKED.pop(path, None)
    if handle is not None:
        os.close(handle)


def _remove_left(folder: Path) -> None:
    """The files of processes that are gone: nobody holds them."""
    for path in folder.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                if os.fstat(handle).st_uid == os.getuid():
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    path.unlink()
            finally:
                os.close(handle)


def _has_room(folder: str, size: int) -> bool:
    try:
        return os.access(folder, os.W_OK) and shutil.disk_usage(folder).free > 2 * size
    except OSError:
        return False


def load(layout: Layout, path: Path) -> tuple[Memory, list[int]]:
    """The segments of a file in memory of their device, and their addresses."""
    memory = Memory(layout.device)
    content = np.memmap(path, np.uint8, "r")
    at, bases = content.ctypes.data, []
    for address, size in layout.segments:
        base = memory.allocate(size, address)
        memory.copy(base, at, size)
        bases.append(base)
        at += size
    memory.synchronize()
    return memory, bases
