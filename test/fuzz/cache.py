"""Cache files that were changed behind our back: what is read from the cache is what was written to it, or nothing."""

from __future__ import annotations

import contextlib
import os
import random
import stat
from pathlib import Path

from mesh import FINE, Base, Kind, Outcome

from tilewright import _core


def truncate(file: Path, pick: random.Random) -> None:
    os.truncate(file, pick.randrange(file.stat().st_size + 1))


def flip(file: Path, pick: random.Random) -> None:
    data = bytearray(file.read_bytes())
    for _ in range(pick.choice((1, 1, 2, 50))):
        data[pick.randrange(len(data))] ^= 1 << pick.randrange(8)
    file.write_bytes(data)


def number(file: Path, pick: random.Random) -> None:
    """Eight bytes become a number that is a size, a count or an offset, perhaps."""
    data = bytearray(file.read_bytes())
    at = pick.randrange(min(len(data), 64))
    data[at : at + 8] = pick.choice((0, 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1, len(data))).to_bytes(8, "little")
    file.write_bytes(data)


def lengthen(file: Path, pick: random.Random) -> None:
    file.write_bytes(file.read_bytes() + pick.randbytes(pick.choice((1, 8, 4096))))


def noise(file: Path, pick: random.Random) -> None:
    file.write_bytes(pick.randbytes(pick.choice((0, 1, 16, 64, 5000))))


def exchange(file: Path, pick: random.Random) -> None:
    """Another file of the cache under this name."""
    others = [other for other in sorted(file.parent.glob("*.twc")) if stat.S_ISREG(other.lstat().st_mode)]
    with contextlib.suppress(PermissionError):
        file.write_bytes(pick.choice(others).read_bytes())


def folder(file: Path, pick: random.Random) -> None:
    file.unlink()
    file.mkdir()


def link(file: Path, pick: random.Random) -> None:
    copy = file.with_suffix(".copy")
    copy.write_bytes(file.read_bytes())
    file.unlink()
    file.symlink_to(pick.choice((str(copy), "/dev/zero", "/nonexistent", str(file))))


def pipe(file: Path, pick: random.Random) -> None:
    file.unlink()
    os.mkfifo(file)


def rights(file: Path, pick: random.Random) -> None:
    file.chmod(pick.choice((0o666, 0o000, 0o604, 0o777)))


def gone(file: Path, pick: random.Random) -> None:
    file.unlink()


CHANGES = (truncate, flip, flip, number, number, lengthen, noise, exchange, folder, link, pipe, rights, gone)


class Mesh(Base):
    limit = 20.0

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.cache = folder / "cache"

    def source(self, number: int) -> str:
        return f"python test/fuzz/run.py --mesh cache --case {number}"

    def case(self, number: int) -> Outcome:
        pick = random.Random(number)
        os.environ["TILEWRIGHT_CACHE_DIR"] = str(self.cache)
        before = set(self.cache.glob("*"))
        key, blob = pick.randbytes(16), pick.randbytes(pick.choice((0, 1, 100, 5000)))
        if not _core.cache_put(key, blob) or _core.cache_get(key) != blob:
            return Outcome(Kind.WRONG, "what was written is not read")
        [file] = set(self.cache.glob("*.twc")) - before
        change = pick.choice(CHANGES)
        change(file, pick)
        found = _core.cache_get(key)
        _core.cache_info()
        if found is not None and found != blob:
            return Outcome(Kind.WRONG, f"{change.__name__}: read {found[:40]!r}, {len(found)} bytes of {len(blob)}")
        if len(before) > 50:
            self.tidy()
        return FINE if found is not None else Outcome(Kind.REFUSED)

    def tidy(self) -> None:
        for file in self.cache.iterdir():
            file.rmdir() if file.is_dir() and not file.is_symlink() else file.unlink()
