"""Trials: launching candidates on copies of the arguments, comparing what they write, timing them.

A `Bench` does it in the process that it lives in; tune's searches have theirs in a worker process (worker.py), which a
candidate may hang or crash without harm.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import time
from pathlib import Path
from typing import Any

import numpy as np

from .. import _core, compile
from ..dtype import BY_NAME, Category
from ..errors import TileError
from . import memory
from .alone import name_of
from .compare import Comparer
from .memory import Layout
from .statistics import Measurement

# How much results may differ, relative to the value plus the root mean square of all: sums in another order.
TOLERANCE = {"float64": 1e-9, "float32": 1e-4, "tfloat32": 4e-3, "float16": 4e-3, "bfloat16": 3e-2}
NARROW_TOLERANCE = 0.5  # 8-bit floats: neighbours of a value
# What stands for minus infinity in masks: no result, and nothing to measure others by.
LARGEST = {"float64": 1.7e308, "float32": 3.4e38, "tfloat32": 3.4e38, "bfloat16": 3.38e38, "float16": 65504.0}
CHUNK = 1 << 22
SAMPLE = 1 << 20  # elements that tell the size of all
LARGE = 1 << 20  # bytes that take longer to copy to the host than to compare on the GPU

MIN_SAMPLES, MOST_SAMPLES = 8, 60
ENOUGH = 0.01  # width of the interval, relative to the median
SAMPLE_SECONDS, TRIAL_SECONDS = 0.02, 0.5
FEW_SAMPLES = 6  # the least whose median has an interval, as statistics.py makes it
CLEARLY = 1.2  # times the best: how slow the quickest of a few samples is of what is not measured any further


def launches_at_once(seconds: float) -> int:
    """How many samples are taken between two looks at them: quick kernels are launched several times."""
    return max(1, min(FEW_SAMPLES, int(SAMPLE_SECONDS / max(seconds, 1e-6))))


@dataclasses.dataclass(frozen=True)
class Program:
    """A compiled candidate, as it travels to the worker: `values` has an entry a leaf, None for arrays."""

    image: bytes
    name: str
    target: str
    written: int
    parameters: tuple[str, ...]
    constants: tuple[int, ...]
    values: tuple[Any, ...]
    grid: tuple[int, int, int]
    scratch: int = 0  # arrays whose contents nobody wants


class WrongError(Exception):
    """A result that differs from the reference."""


class Bench:
    """Arguments of one launch in memory of their own, and the candidates that run on them."""

    def __init__(self, layout: Layout, path: Path | None, name: str = "") -> None:
        """`path`: the file of `memory.save`; None: the arrays themselves, which are restored by `close`. `name`: that
        of the device, as whoever asks knows it (alone.py)."""
        if name and name_of(layout.device) != name:
            raise TileError(
                f"device {layout.device} of this process is {name_of(layout.device)}, no {name}; CUDA_VISIBLE_DEVICES "
                "must stay as it was when the program first used a GPU"
            )
        self.layout = layout
        if path is None:
            self.memory, self.bases = memory.Memory(layout.device), [address for address, _ in layout.segments]
        else:
            self.memory, self.bases = memory.load(layout, path)
        self.launches: dict[int, tuple[Any, tuple[Any, ...], Program]] = {}
        self.pristine: dict[int, int] = {}  # segment -> copy of what was in it at first
        self.touched: set[int] = set()  # segments that some candidate has written to since they were restored
        self.reference: dict[int, Any] = {}  # segment -> what the reference has left in it
        self.right = 0  # the arrays that the reference writes, as in Program
        self.kept: dict[int, int] = {}  # segment -> copy of the reference beside it, on a GPU with room for it
        self.comparer = Comparer(self.memory)
        self.events: list[tuple[int, int]] = []  # before and behind launches that are timed
        device = layout.device
        if device is not None:
            self.flush_bytes = 2 * _core.device_info(device)["l2_bytes"]
            self.flush = self.memory.allocate(self.flush_bytes)

    def close(self) -> None:
        self._restore(list(self.pristine))
        self.memory.synchronize()
        for event in itertools.chain.from_iterable(self.events):
            _core.event_destroy(self.layout.device, event)
        self.memory.close()

    # --- launching ----------------------------------------------------------------------------------------------------

    def add(self, number: int, program: Program) -> None:
        image = compile.Image.unpack(program.image)
        assert image is not None, "the parent packed it"
        variant = compile.load(image, program.name, program.written, program.target)
        if self.layout.device is not None:
            variant.load(self.layout.device)
        dispatcher = _core.Dispatcher(program.name, program.parameters, program.constants, lambda *_: variant)
        args = tuple(
            memory.array_at(self.layout.device, self.bases[view.segment], view) if view is not None else value
            for view, value in zip(self._views(program), program.values, strict=True)
        )
        for segment in self._written(program):
            if segment not in self.pristine:
                address, size = self.bases[segment], self.layout.segments[segment][1]
                self.pristine[segment] = self.memory.allocate(size)
                self.memory.copy(self.pristine[segment], address, size)
        self.launches[number] = dispatcher, args, program

    def drop(self, number: int) -> None:
        """The candidate is not asked for again: its code may be unloaded."""
        self.launches.pop(number, None)

    def _views(self, program: Program) -> list[memory.View | None]:
        return [self.layout.views.get(position) for position in range(len(program.values))]

    def _written(self, program: Program) -> list[int]:
        views = [view for i, view in enumerate(self._views(program)) if view is not None and program.written >> i & 1]
        return sorted({view.segment for view in views})

    def _restore(self, segments: list[int]) -> None:
        """These, and what another candidate has written to, which this one may read."""
        for segment in sorted(self.touched.union(segments)):
            self.memory.copy(self.bases[segment], self.pristine[segment], self.layout.segments[segment][1])
        self.touched.clear()

    def _launch(self, number: int) -> None:
        dispatcher, args, program = self.launches[number]
        self.touched.update(self._written(program))
        _core.launch(None if self.layout.device is None else 0, program.grid, dispatcher, args)

    def first(self, number: int, program: Program) -> float:
        """Runs a candidate on the arguments as they were at first; seconds, loading excluded where it was added."""
        if number not in self.launches:
            self.add(number, program)
        self._restore(self._written(program))
        begin = time.perf_counter()
        self._launch(number)
        self.memory.synchronize()
        return time.perf_counter() - begin

    # --- comparing ----------------------------------------------------------------------------------------------------

    def keep(self, number: int) -> None:
        """What the candidate has left is right."""
        program = self.launches[number][2]
        self.right = program.written
        for segment in self._written(program):
            address, size = self.bases[segment], self.layout.segments[segment][1]
            self.reference[segment] = self.memory.bytes(address, size)
            if self.layout.device is not None and size >= LARGE and size % 4 == 0:
                with contextlib.suppress(MemoryError):
                    self.kept[segment] = self.memory.allocate(size, address)
                    self.memory.copy(self.kept[segment], address, size)

    def _is_same(self, segment: int) -> bool:
        """Whether a segment holds the same bits as it should, as far as that is quick to tell."""
        size = self.layout.segments[segment][1]
        right = self.kept.get(segment) if segment in self.reference else self.pristine[segment]
        if right is None or self.layout.device is None or size < LARGE or size % 4:
            return False
        try:
            return self.comparer.equal(self.bases[segment], right, size)
        except (TileError, MemoryError):
            self.memory.synchronize()  # raises again if it was a candidate's fault
            return False

    def check(self, number: int, tolerance: float | None) -> float:
        """The largest difference from the reference, or WrongError. A candidate that has just run must have left all
        that the reference has, and what that does not write as it was, but for scratch."""
        program = self.launches[number][2]
        written: dict[int, list[tuple[int, memory.View]]] = {}
        for position, view in enumerate(self._views(program)):
            if view is not None and ((program.written | self.right) & ~program.scratch) >> position & 1:
                written.setdefault(view.segment, []).append((position, view))
        worst = 0.0
        for segment, views in written.items():
            if self._is_same(segment):
                continue
            size = self.layout.segments[segment][1]
            found, expected = self.memory.bytes(self.bases[segment], size), self.reference.get(segment)
            if expected is None:
                expected = self.memory.bytes(self.pristine[segment], size)
            other = found != expected
            for position, view in enumerate(self._views(program)):
                if view is not None and program.scratch >> position & 1 and view.segment == segment:
                    within(other, view)[...] = False
            if not other.any():
                continue
            for position, view in views:
                error, limit = difference(inside(found, view), inside(expected, view), 0, view.dtype)
                limit = limit if tolerance is None else tolerance
                if not error <= limit:
                    raise WrongError(self._wrong(program, position, f"by {error:.2g} (more than {limit:.2g})"))
                worst = max(worst, error)
                within(other, view)[...] = False
            if other.any():
                raise WrongError(self._wrong(program, views[0][0], "beside its elements"))
        return worst

    def _wrong(self, program: Program, position: int, where: str) -> str:
        name = program.parameters[position]
        told = f"{name} differs from the reference {where}"
        writes, right = (bool(mask >> position & 1) for mask in (program.written, self.right))
        if writes == right:
            return told
        what = "does not write" if writes else "writes"
        return f"{told}, which {what} this array; say scratch={name!r} if its contents do not matter"

    # --- timing -------------------------------------------------------------------------------------------------------

    def time(self, number: int, count: int, flush_l2: bool = True) -> list[float]:
        """Seconds of `count` launches with the arguments as at first, and on a GPU with an empty L2 cache if asked."""
        written, device = self._written(self.launches[number][2]), self.layout.device
        if device is None:
            return [self._time_on_cpu(number, written) for _ in range(count)]
        while len(self.events) < count:
            self.events.append((_core.event_create(device), _core.event_create(device)))
        events = self.events[:count]
        for begin, end in events:  # all of them queued, so that none waits for the host
            self._restore(written)
            if flush_l2:
                _core.memory_fill(device, self.flush, 0, self.flush_bytes)
            _core.event_record(device, begin)
            self._launch(number)
            _core.event_record(device, end)
        return [_core.event_elapsed(device, begin, end) for begin, end in events]

    def sample(self, number: int, first: float, best: float = float("inf")) -> list[float]:
        """Seconds of launches, the first of which took `first`, until their median is known well enough: of one that is
        clearly slower than the `best`, a few tell that."""
        samples: list[float] = []
        end = time.monotonic() + TRIAL_SECONDS
        while len(samples) < MOST_SAMPLES:
            samples += self.time(number, launches_at_once(samples[-1] if samples else first))
            if len(samples) >= FEW_SAMPLES and min(samples) > CLEARLY * best:
                break
            if len(samples) >= MIN_SAMPLES and (Measurement.of(samples).width < ENOUGH or time.monotonic() > end):
                break
        return samples

    def _time_on_cpu(self, number: int, written: list[int]) -> float:
        self._restore(written)
        start = time.perf_counter()
        self._launch(number)
        return time.perf_counter() - start


def within(content: Any, view: memory.View) -> Any:
    """The bytes of an array's elements in those of its segment, without a copy; of one that is repeated along a
    dimension, once."""
    bits = BY_NAME[view.dtype].bits
    rows = [(1, 0) if stride == 0 else (n, stride) for n, stride in zip(view.shape, view.strides, strict=True)]
    shape, strides = [n for n, _ in rows], [stride * bits // 8 for _, stride in rows]
    if bits == 4 and shape:  # two elements a byte along the innermost dimension
        shape[-1], strides[-1] = -(-shape[-1] // 2), 1
    size = max(1, bits // 8)
    return np.ndarray((*shape, size), content.dtype, content, view.offset, (*strides, 1))


def inside(content: Any, view: memory.View) -> Any:
    """The same in a row."""
    return within(content, view).reshape(-1)


def difference(found: Any, expected: Any, offset: int, name: str) -> tuple[float, float]:
    """The largest difference between the elements of two segments, and how much of it is allowed."""
    dtype = BY_NAME[name]
    if dtype.bits == 4 or dtype.category is not Category.FLOATING or name == "float8_e8m0fnu":
        return 0.0 if np.array_equal(found, expected) else float("inf"), 0.0
    size = dtype.bits // 8
    worst, limit = 0.0, TOLERANCE.get(name, NARROW_TOLERANCE)
    kind = np.dtype(np.float32) if name == "tfloat32" else np.dtype(dtype.numpy)
    start = offset % size
    x, r = (a[start : start + (len(a) - start) // size * size].view(kind) for a in (found, expected))
    wide = np.float64 if size == 8 else np.float32
    sample = r[:: max(1, len(r) // SAMPLE)].astype(np.float64)
    finite = sample[np.abs(sample) < LARGEST.get(name, np.inf)]
    scale = float(np.sqrt(np.mean(finite**2))) if finite.size else 0.0
    for at in range(0, len(x), CHUNK):
        part = slice(at, at + CHUNK)
        other = x[part].view(f"u{size}") != r[part].view(f"u{size}")  # most are equal, and quickly told so
        a, b = x[part][other].astype(wide), r[part][other].astype(wide)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        if same.all():
            continue
        with np.errstate(all="ignore"):
            error = np.abs(a[~same] - b[~same]) / (np.abs(b[~same]) + (scale or 1.0))
        worst = max(worst, float(error.max()) if np.isfinite(error).all() else float("inf"))
    return worst, limit
