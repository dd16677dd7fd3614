"""The record: a text file of what was found, one JSON object a line, by device, kernel and class of shapes.

    {"device": "NVIDIA H200", "kernel": "matmul", "source": "9f…", "class": "bfloat16[4096,4096]… …",
     "arguments": "A=bfloat16[4096,4096] …", "constants": {"TM": 128}, "hints": {"num_warps": 8}, "us": 190.2, …}

It is made to be read, committed beside a kernel, and merged (lines of two files, one after the other: of equal keys the
last one counts). A *class* has the same dtypes, alignments and divisibilities, and extents that are equal when rounded
up to a power of two; of several entries in a class the one with the nearest extents is taken.

What is read is not trusted: the file must belong to the user and be writable by nobody else, an entry must have the
right fields with values of the right kinds, and constants and hints pass through the same checks as a caller's.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import enum
import fcntl
import functools
import hashlib
import json
import math
import os
import stat
import sys
import tempfile
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .. import _core, knobs
from ..capture.source import source_of
from ..dtype import DType
from ..errors import TileError
from .memory import Layout

MAX_BYTES, MAX_LINE = 16 << 20, 1 << 16


@dataclasses.dataclass(frozen=True)
class Entry:
    """One line."""

    device: str
    kernel: str
    source: str
    shape_class: str
    arguments: str
    constants: dict[str, Any]
    hints: dict[str, int | str]
    us: float
    low_us: float
    high_us: float
    untuned_us: float
    version: str
    date: str
    launched: dict[str, int | str] = dataclasses.field(default_factory=dict)  # hints that the launch added to these

    @property
    def key(self) -> tuple[str, str, str, str, str]:
        return self.device, self.kernel, self.source, self.shape_class, self.arguments

    def line(self) -> str:
        row = dataclasses.asdict(self)
        row["class"] = row.pop("shape_class")
        return json.dumps(row) + "\n"

    @classmethod
    def parse(cls, line: str) -> Entry | None:
        """None for what is no entry."""
        try:
            row = json.loads(line)
            row["shape_class"] = row.pop("class")
            entry = cls(**row)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None
        return entry if _is_sound(entry) else None


def _is_sound(entry: Entry) -> bool:
    texts = (entry.device, entry.kernel, entry.source, entry.shape_class, entry.arguments, entry.version, entry.date)
    times = (entry.us, entry.low_us, entry.high_us, entry.untuned_us)
    return (
        all(isinstance(text, str) and text.isprintable() for text in texts)
        and all(type(time) in (int, float) and math.isfinite(time) and time >= 0 for time in times)
        and isinstance(entry.constants, dict)
        and all(value is None or type(value) in (int, float, bool, str) for value in entry.constants.values())
        and all(isinstance(hints, dict) for hints in (entry.hints, entry.launched))
        and all(_is_hint(v) for v in (*entry.hints.values(), *entry.launched.values()))
    )


def _is_hint(value: Any) -> bool:
    return value is None or type(value) in (int, bool) or (isinstance(value, str) and value.isprintable())


# --- the file ---------------------------------------------------------------------------------------------------------


def default_path() -> Path:
    """TILEWRIGHT_TUNED, else a file beside the disk cache."""
    named = knobs.tuned_file()
    if named:
        return Path(named)
    folder = _core.cache_info()["path"]
    return Path(folder or Path.home() / ".cache" / "tilewright") / "tuned.jsonl"


def read(path: Path) -> list[Entry]:
    """The sound entries of a file; of equal keys the last one."""
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            problem = _distrust(os.fstat(file.fileno()))
            if problem:
                warnings.warn(f"tune: {path} is not read: {problem}", stacklevel=3)
                return []
            lines = file.read(MAX_BYTES).decode(errors="replace").splitlines()
    except OSError:
        return []
    found = (Entry.parse(line) for line in lines if len(line) <= MAX_LINE)
    return list({entry.key: entry for entry in found if entry is not None}.values())


def _open_at_once(path: str, flags: int) -> int:
    """A pipe in the file's place must not hold the program up."""
    return os.open(path, flags | os.O_NONBLOCK)


def _distrust(status: os.stat_result) -> str | None:
    if not stat.S_ISREG(status.st_mode):
        return "it is no plain file"
    if status.st_uid not in (os.getuid(), 0):
        return "it belongs to another user"
    if status.st_mode & 0o022:
        return "others may write to it; chmod go-w it if you trust what it says"
    return None


def write(path: Path, entry: Entry) -> None:
    """Adds an entry, or replaces the one with its key. Several processes may do so at once."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _lock(path):
        entries = [old for old in read(path) if old.key != entry.key] + [entry]
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)  # 0600
        try:
            with os.fdopen(handle, "w") as file:
                file.writelines(old.line() for old in entries)
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    handle = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


# --- keys -------------------------------------------------------------------------------------------------------------


def source_hash(function: types.FunctionType) -> str:
    """Names what a kernel says: its syntax tree, and those of the functions and the values that it refers to.

    Comments and layout do not count; neither does what is no value of Python, a dtype, or made of them, nor what is in
    modules of Python, of libraries and of the compiler.
    """
    pieces: list[str] = []
    _collect(function, pieces, set())
    return hashlib.sha256("\n".join(pieces).encode()).hexdigest()[:16]


def _collect(function: types.FunctionType, pieces: list[str], seen: set[int]) -> None:
    if id(function) in seen or (function.__module__ or "").startswith("tilewright."):
        return
    seen.add(id(function))
    try:
        tree = source_of(function).tree
    except (TileError, OSError):
        pieces.append(function.__code__.co_code.hex())
        return
    pieces.append(ast.dump(ast.Module([*tree.body], [])) + ast.dump(tree.args))
    if function.__defaults__ or function.__kwdefaults__:
        pieces.append(f"defaults={_told((function.__defaults__, function.__kwdefaults__))}")
    names = _names(function.__code__)
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    for name in sorted({*names, *cells}):
        with contextlib.suppress(ValueError):  # an empty cell
            value = cells[name].cell_contents if name in cells else function.__globals__.get(name)
            _refer(name, value, names, pieces, seen)


def _names(code: types.CodeType) -> tuple[str, ...]:
    """Of a function, and of those that are written in it."""
    inner = (const for const in code.co_consts if isinstance(const, types.CodeType))
    return tuple(dict.fromkeys([*code.co_names, *(name for each in inner for name in _names(each))]))


def _refer(name: str, value: Any, names: tuple[str, ...], pieces: list[str], seen: set[int]) -> None:
    """What a name is; of modules, classes and objects, those of their members that the function names."""
    if isinstance(value, types.FunctionType):
        _collect(value, pieces, seen)
    elif isinstance(value, functools.partial):
        _refer(name, value.func, names, pieces, seen)
        _refer(name, (value.args, value.keywords), names, pieces, seen)
    elif value is not None and (told := _told(value)) is not None:
        pieces.append(f"{name}={told}")
    elif id(value) not in seen and not _is_of_others(value):
        seen.add(id(value))
        for member in names:
            found = getattr(value, member, None) if isinstance(value, types.ModuleType | type) else None
            found = vars(value).get(member) if found is None and hasattr(value, "__dict__") else found
            _refer(f"{name}.{member}", found, names, pieces, seen)


# Modules that no edit of the user's program changes.
OTHERS = ("tilewright", "numpy", "torch", "cupy", "jax", "cuda", "numba")


def _is_of_others(value: Any) -> bool:
    module = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
    top = str(module or "builtins").partition(".")[0]
    is_of_python = top in sys.stdlib_module_names and top != "__main__" and isinstance(value, types.ModuleType | type)
    return top in OTHERS or is_of_python


def _told(value: Any, depth: int = 8) -> str | None:
    """A value as a text that is the same in every process; None of what has none."""
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}={value.value!r}"
    if value is None or type(value) in (bool, int, float, complex, str, bytes) or isinstance(value, int | float | str):
        return repr(value)
    if isinstance(value, DType):
        return value.name
    if depth == 0:
        return None
    parts: list[Any]
    if isinstance(value, dict):
        parts = [part for pair in value.items() for part in pair]
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = [getattr(value, field.name, None) for field in dataclasses.fields(value)]
    elif isinstance(value, tuple | list):
        parts = list(value)
    elif isinstance(value, set | frozenset):
        parts = sorted(value, key=repr)
    else:
        return None
    told = [_told(part, depth - 1) for part in parts]
    return f"{type(value).__name__}({', '.join(text for text in told if text is not None)})"


def shape_class(key: tuple[tuple[Any, ...], ...], layout: Layout) -> str:
    """The facts of a specialization without constants, and extents rounded up."""
    words = []
    for position, (kind, *facts) in enumerate(key):
        if kind == "scalar":
            words.append(str(facts[0]))
        elif kind == "array":
            dtype, _, align, divisors, strides, _, *more = facts
            extents = ",".join(
                f"{_round_up(extent)}{'' if divisor == 1 else '|' + str(divisor)}"
                for extent, divisor in zip(layout.views[position].shape, divisors, strict=True)
            )
            steps = ",".join("1" if one else f"*{divisor}" for one, divisor in strides)
            words.append(f"{dtype}[{extents}]({steps})@{align}" + "".join(f"/{fact}" for fact in more))
    return " ".join(words)


def _round_up(extent: int) -> int:
    return 1 << max(0, extent - 1).bit_length() if extent > 0 else 0


def arguments_text(parameters: tuple[str, ...], layout: Layout) -> str:
    """`A=bfloat16[4096,4096] …`: the arrays, exactly."""
    views = layout.views.items()
    return " ".join(f"{parameters[i]}={view.dtype}[{','.join(map(str, view.shape))}]" for i, view in views)


def distance(one: str, other: str) -> float:
    """Between two texts of arguments: by how much their extents differ, as factors."""

    def extents(text: str) -> list[int]:
        inside = [word.partition("[")[2].rstrip("]") for word in text.split()]
        return [int(n) for part in inside for n in part.split(",") if n.isdigit()]

    a, b = extents(one), extents(other)
    if len(a) != len(b):
        return math.inf
    return sum(abs(math.log((x + 1) / (y + 1))) for x, y in zip(a, b, strict=True))
