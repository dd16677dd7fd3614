"""Records of a sweep: a text file of measurements, one JSON object a line, that grows and is never rewritten.

    {"v": 1, "device": "NVIDIA H200", "driver": "13000", "compiler": "…", "kernel": "matmul", "source": "9f…",
     "class": "bfloat16[4096,4096]…", "arguments": "A=bfloat16[4096,4096] …", "choice": {"TM": 128, "num_warps": 8},
     "status": "measured", "us": 190.2, "low_us": 189.9, "high_us": 190.6, "samples": 20, …}

Several processes may add lines to one file at once: each is one write to its end, under a lock. Files are merged by
`cat`. Of lines with one key (device, driver, compiler, kernel's source, exact arguments, what numbers and constants are
without a choice, grid, choice) the last one counts.

What is read is data of anybody: each field is checked for its kind and its bounds, long lines and large files are cut
off, and nothing in them is run. Lines that are none are left out and counted.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import hashlib
import json
import math
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from .. import hints
from ..errors import TileError, TileValueError
from ..tune.search import SAME

VERSION = 1
MOST_LINE = 1 << 15
MOST_BYTES = 1 << 30  # of one file
MOST_ENTRIES = 64  # of a table in a line
MOST_TEXT = 4096
LEAST_US = 1e-3  # what takes less was not measured
STATUS = ("measured", "failed")


@dataclasses.dataclass(frozen=True)
class Record:
    """One line: a candidate on a device, and what came of it."""

    device: str
    driver: str
    compiler: str
    kernel: str
    source: str
    shape_class: str
    arguments: str
    choice: dict[str, Any]  # constants and hints by axis; empty is the kernel as given
    status: str
    why: str = ""  # it failed; or whose program it has, and so whose time
    us: float = 0.0
    low_us: float = 0.0
    high_us: float = 0.0
    samples: int = 0
    predicted_us: float = 0.0
    rank: int = 0  # by the model, from 1 on; 0: it was not asked
    seconds: float = 0.0  # that the trial took
    work: dict[str, float] = dataclasses.field(default_factory=dict)  # cost.Work
    machine: dict[str, float] = dataclasses.field(default_factory=dict)  # cost.Machine
    given: dict[str, Any] = dataclasses.field(default_factory=dict)  # numbers and constants without a choice
    grid: str = ""  # its expression, and what that gives without a choice
    launched: dict[str, Any] = dataclasses.field(default_factory=dict)  # hints that the launch added
    program: str = ""  # a digest of the code and the grid, by which workers know what others have measured
    version: str = ""
    date: str = ""

    @property
    def key(self) -> tuple[Any, ...]:
        return (*self.problem, self.driver, self.compiler, choice_key(self.choice))

    @property
    def problem(self) -> tuple[str, ...]:
        """What candidates are compared on: a launch whose constants compute something else is another one."""
        given = choice_key(self.given)
        return self.device, self.kernel, self.source, self.shape_class, self.arguments, given, self.grid

    @property
    def launch(self) -> str:
        """Its arguments as a person reads them."""
        return " ".join([self.arguments, *(f"{name}={value}" for name, value in self.given.items())])

    @property
    def measured(self) -> bool:
        return self.status == "measured"

    @property
    def is_twin(self) -> bool:
        """Another candidate is the same program, and was measured."""
        return self.measured and self.why.startswith(SAME)

    def line(self) -> str:
        row = {"v": VERSION, **dataclasses.asdict(self)}
        row["class"] = row.pop("shape_class")
        for name in ("choice", "given", "launched"):
            row[name] = {n: kept(value) for n, value in row[name].items()}
        return json.dumps(row) + "\n"


def kept(value: Any) -> Any:
    """A constant as a line can have it and `parse` takes it: what is neither short nor of JSON is told, and named by a
    digest."""
    if _is_value(value):
        return value
    text = repr(value)
    told = "".join(c if c.isprintable() else " " for c in text[:100])
    return f"{told} {hashlib.sha256(text.encode(errors='replace')).hexdigest()[:12]}"


def choice_key(choice: Mapping[str, Any]) -> str:
    return json.dumps({name: kept(value) for name, value in sorted(choice.items())})


def choice_text(choice: Mapping[str, Any]) -> str:
    return " ".join(hints.told(name, value) for name, value in choice.items()) or "as given"


_TEXTS = (
    "device",
    "driver",
    "compiler",
    "kernel",
    "source",
    "shape_class",
    "arguments",
    "grid",
    "status",
    "why",
    "program",
    "version",
    "date",
)
_TIMES = ("us", "low_us", "high_us", "predicted_us", "seconds")
_TABLES = ("choice", "work", "machine", "given", "launched")
_FIELDS = {field.name for field in dataclasses.fields(Record)}


def parse(line: str) -> Record | None:
    """None for what is no record."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(row, dict) or row.pop("v", None) != VERSION or "class" not in row:
        return None
    row["shape_class"] = row.pop("class")
    needed = {"device", "driver", "compiler", "kernel", "source", "arguments", "choice", "status"}
    if not needed <= set(row) <= _FIELDS:
        return None
    for name in ("choice", "given"):  # a shape is a list in JSON
        if isinstance(row.get(name), dict):
            row[name] = {n: tuple(v) if isinstance(v, list) else v for n, v in row[name].items()}
    found = Record(**row)
    return found if _is_sound(found) else None


def _is_sound(r: Record) -> bool:
    texts = all(isinstance(t, str) and len(t) <= MOST_TEXT and t.isprintable() for t in (getattr(r, n) for n in _TEXTS))
    times = all(_is_number(getattr(r, name)) and getattr(r, name) >= 0 for name in _TIMES)
    counts = all(type(n) is int and 0 <= n < 1 << 31 for n in (r.samples, r.rank))
    tables = all(_is_table(getattr(r, name), name in ("work", "machine")) for name in _TABLES)
    return texts and times and counts and tables and r.status in STATUS and (r.us >= LEAST_US or not r.measured)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < 1e18 and math.isfinite(value)


def _is_table(table: Any, of_numbers: bool) -> bool:
    if not isinstance(table, dict) or len(table) > MOST_ENTRIES:
        return False
    return all(
        len(name) <= 200 and name.isprintable() and (_is_number(v) if of_numbers else _is_value(v))
        for name, v in table.items()
    )


def _is_value(v: Any) -> bool:
    """Of a constant or a hint."""
    return (
        _is_number(v)
        or v is None
        or type(v) is bool
        or (isinstance(v, str) and _is_short(v))
        or (isinstance(v, tuple) and len(v) <= MOST_ENTRIES and all(map(_is_number, v)))
    )


def _is_short(text: str) -> bool:
    return len(text) <= MOST_TEXT and text.isprintable()


# --- files ------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Read:
    """What was found: the last record of each key, and how many lines were none."""

    records: dict[tuple[Any, ...], Record] = dataclasses.field(default_factory=dict)
    damaged: list[str] = dataclasses.field(default_factory=list)  # "file, line 3"

    def told(self) -> str:
        if not self.damaged:
            return ""
        more = f" and {len(self.damaged) - 3} more" if len(self.damaged) > 3 else ""
        return f"left out what is no record: {'; '.join(self.damaged[:3])}{more}"

    def add(self, place: str, lines: Iterable[str], first: int = 1) -> None:
        for number, line in enumerate(lines, first):
            if not line.strip():
                continue
            record = parse(line) if len(line) <= MOST_LINE else None
            if record is None:
                self.damaged.append(f"{place}, line {number}")
            else:
                self.records[record.key] = record


def file_of(place: Path) -> Path:
    """Of a folder the file in it."""
    return place / "trials.jsonl" if place.is_dir() or place.suffix != ".jsonl" else place


def read(places: Iterable[str | Path]) -> Read:
    """The records of files, of folders with *.jsonl, and of what fsspec opens (s3://…, gs://…, https://…)."""
    found = Read()
    for place in places:
        if "://" in str(place):
            for name, text in _remote(str(place)):
                found.add(name, text.splitlines())
            continue
        path = Path(place)
        if not path.exists():
            raise TileValueError(f"there are no records at {str(path)!r}")
        for each in sorted(path.glob("*.jsonl")) if path.is_dir() else [path]:
            with open(each, "rb") as file:
                found.add(str(each), _lines(file))
    return found


def _lines(file: BinaryIO) -> Iterator[str]:
    left = MOST_BYTES
    while left > 0 and (line := file.readline(MOST_LINE + 1)):
        left -= len(line)
        whole = line.endswith(b"\n")
        yield line.decode(errors="replace")
        while not whole and left > 0 and (rest := file.readline(1 << 20)):  # of a line that is too long
            left -= len(rest)
            whole = rest.endswith(b"\n")


class Followed:
    """The records of a file that others add lines to, and what `look` has found new since the last time."""

    def __init__(self, path: Path) -> None:
        self.path, self.read = path, Read()
        self.file: tuple[int, int] | None = None  # device and inode: `rewrite` puts another one in its place
        self.at, self.lines = 0, 0
        self.look()

    @property
    def records(self) -> dict[tuple[Any, ...], Record]:
        return self.read.records

    def look(self) -> None:
        with contextlib.suppress(FileNotFoundError), open(self.path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH)  # no line is being written
            status = os.fstat(file.fileno())
            if (status.st_dev, status.st_ino) != self.file or status.st_size < self.at:
                self.file, self.at, self.lines = (status.st_dev, status.st_ino), 0, 0
                self.read.records.clear()
                self.read.damaged.clear()
            if status.st_size > self.at:
                file.seek(self.at)
                found = list(_lines(file))
                self.read.add(str(self.path), found, self.lines + 1)
                self.at = file.tell()
                is_whole = os.pread(file.fileno(), 1, self.at - 1) == b"\n"
                self.lines += len(found) if is_whole else len(found) - 1


def _remote(url: str) -> Iterator[tuple[str, str]]:
    try:
        import fsspec
    except ImportError:
        raise TileError(f"records at {url} need fsspec: pip install tilewright[sweep]") from None
    try:
        files = fsspec.open_files([url if url.endswith(".jsonl") else f"{url.rstrip('/')}/*.jsonl"], "rb")
        for opened in files:
            with opened as file:
                yield opened.path, file.read(MOST_BYTES).decode(errors="replace")
    except (OSError, ValueError, ImportError) as error:
        raise TileValueError(f"the records at {url} cannot be read: {error}") from None


class Writer:
    """Adds lines to a file; each stands there as a whole, whoever else writes."""

    def __init__(self, place: Path) -> None:
        self.path = file_of(place)
        self.handle = self._open()

    def _open(self) -> int:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            return os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except (OSError, ValueError) as error:  # of a name with a null byte
            why = getattr(error, "strerror", None) or error
            raise TileValueError(f"records cannot be written to {str(self.path)!r}: {why}") from None

    def _lock(self) -> None:
        """Of the file that has the name: `rewrite` may have put another one in its place."""
        while True:
            fcntl.flock(self.handle, fcntl.LOCK_EX)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(self.handle), os.stat(self.path)):
                    return
            os.close(self.handle)
            self.handle = self._open()

    def add(self, record: Record) -> None:
        line = record.line().encode()
        if len(line) > MOST_LINE:
            raise TileValueError(f"a record of {len(line)} bytes; the most is {MOST_LINE}")
        try:
            self._lock()
            size = os.fstat(self.handle).st_size
            if size and os.pread(self.handle, 1, size - 1) != b"\n":  # a writer that was stopped within a line
                line = b"\n" + line
            written = os.write(self.handle, line)
            if written != len(line):
                os.ftruncate(self.handle, size)
                raise OSError(28, "No space left on device")
        except OSError as error:
            raise TileError(
                f"{str(self.path)!r} takes no more records: {error.strerror}; what was measured before is kept there"
            ) from None
        finally:
            fcntl.flock(self.handle, fcntl.LOCK_UN)

    def close(self) -> None:
        os.close(self.handle)


def rewrite(place: Path, choose: Callable[[list[Record]], list[Record]]) -> None:
    """A file, or those of a folder, with those of its records alone that are chosen: under the locks that writers take,
    so that none is lost which one adds meanwhile, and all or nothing."""
    path = file_of(place)
    writers = [Writer(other) for other in sorted({path, *(place.glob("*.jsonl") if place.is_dir() else ())})]
    name = ""
    try:
        for writer in writers:
            writer._lock()
        rows = choose(list(read([place]).records.values()))
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
        with os.fdopen(handle, "w") as file:
            file.writelines(record.line() for record in rows)
            os.fchmod(file.fileno(), os.stat(path).st_mode & 0o777)
        os.replace(name, path)  # then, for a record that stands twice is none that is lost
        for writer in writers:
            if writer.path != path:
                writer.path.unlink()
    except OSError as error:
        if name:
            Path(name).unlink(missing_ok=True)
        raise TileError(f"{str(path)!r} cannot be rewritten: {error.strerror}; its records are as they were") from None
    finally:
        for writer in writers:
            writer.close()


# --- questions --------------------------------------------------------------------------------------------------------


def by_problem(records: Iterable[Record]) -> dict[tuple[str, ...], list[Record]]:
    """Measured candidates of each problem, the quickest first."""
    found: dict[tuple[str, ...], list[Record]] = {}
    for record in records:
        if record.measured:
            found.setdefault(record.problem, []).append(record)
    for rows in found.values():
        rows.sort(key=lambda r: r.us)
    return found


@dataclasses.dataclass(frozen=True)
class Move:
    """What a candidate, or the best of a problem, takes now beside what it took."""

    title: str
    before: Record
    after: Record

    @property
    def ratio(self) -> float:
        return self.after.us / self.before.us

    @property
    def beyond_noise(self) -> bool:
        """Intervals of 95 % that do not overlap."""
        return self.after.low_us > self.before.high_us or self.after.high_us < self.before.low_us

    def __str__(self) -> str:
        word = "slower" if self.ratio > 1 else "quicker"
        return f"{self.title}: {self.before.us:.1f} -> {self.after.us:.1f} us, {abs(self.ratio - 1):.1%} {word}"


def moves(before: Iterable[Record], after: Iterable[Record], least: float = 0.0) -> list[Move]:
    """What moved beyond noise, by more than `least`, among candidates that both have, by whatever compiler."""

    def by_name(records: Iterable[Record]) -> dict[tuple[str, ...], Record]:
        return {
            (r.device, r.kernel, r.launch, choice_key(r.choice), r.grid.rpartition(" = ")[2]): r
            for r in records
            if r.measured
        }

    old, new = by_name(before), by_name(after)
    found = [Move(f"{k[1]} {k[2]} {choice_text(new[k].choice)} on {k[0]}", old[k], new[k]) for k in old if k in new]
    return sorted((m for m in found if m.beyond_noise and abs(m.ratio - 1) > least), key=lambda m: -m.ratio)
