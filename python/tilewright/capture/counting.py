"""`range` as a count that an scf.for can run."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable
from typing import Any

from ..dtype import int32, int64, uint32, uint64
from ..errors import TileValueError
from .assertions import emit_assert
from .frame import Frame
from .values import Range, Tile, is_number


def _least(bound: Any) -> Any:
    """What a bound is never below, where that is known."""
    return bound.least if isinstance(bound, Tile) else bound if is_number(bound) else None


class Count:
    """A range as an upward count: `lower` to `upper` by `step`, and the variable's value.

    A range with a constant step counts as it is, or downwards as -1 - variable, which is a number of its type, too.
    What adds the step minds that this could wrap: here, and where an scf.for is lowered. A range whose step is known at
    run time counts iterations, unless it is a tile kernel's and the step is known to be positive.
    """

    def __init__(self, frame: Frame, bounds: Range, node: ast.For) -> None:
        emit = self.emit = frame.emit
        parts = [emit.index(b, "a bound of range") for b in (bounds.start, bounds.stop, bounds.step)]
        dtype = self.variable = self.dtype = int64 if any(p.dtype is int64 for p in parts) else int32
        start, stop, step = (emit.cast(p, dtype) for p in parts)
        known = bounds.step if is_number(bounds.step) else None
        if known == 0:
            raise TileValueError("the step of range must not be zero")
        if known == int64.min:
            raise TileValueError(f"the step of range is {known}; the least is {known + 1}")
        upward = isinstance(bounds.step, Tile) and (bounds.step.least or 0) > 0
        rises = upward or (known is not None and known > 0)
        self.least = _least(bounds.start) if rises else bounds.stop + 1 if known and is_number(bounds.stop) else None
        counts = known is None and (frame.capture.rules.simt or not upward)
        self.by_one = counts or known in (1, -1)
        self.by = step
        self.value: Callable[[Tile], Tile] = self._same
        if counts:
            self.start = start
            if upward:
                natural = isinstance(bounds.start, Tile) and bounds.start.least is not None
                self._count_upward(start, stop, step, natural or (is_number(bounds.start) and bounds.start >= 0))
            else:
                self._count_iterations(frame, node, *(emit.cast(p, int64) for p in (start, stop, step)))
        elif known is None or known > 0:
            self.lower, self.upper, self.step = start, stop, step
        else:
            self.value = self._mirrored_back
            self.dtype = dtype if -known <= dtype.max else int64
            self.lower, self.upper = (self._mirrored(emit.cast(p, self.dtype)) for p in (start, stop))
            self.step = emit.constant(-known, self.dtype)

    def _count_upward(self, start: Tile, stop: Tile, step: Tile, natural: bool) -> None:
        """By a step above zero. The distance of two numbers fits into their type without a sign."""
        emit = self.emit
        unsigned = uint64 if self.variable is int64 else uint32
        begin, end, by = (emit.cast(p, unsigned) for p in (start, stop, step))
        distance = emit.plain("sub", end, begin)
        distance = emit.select(emit.compare("less", start, stop), distance, emit.constant(0, unsigned))
        count = emit.plain("cdiv", distance, by)
        self.dtype = self.variable if natural else int64
        self.value, self.lower, self.step = self._after_iterations, *(emit.constant(n, self.dtype) for n in (0, 1))
        self.upper = emit.cast(count, self.dtype)

    def _count_iterations(self, frame: Frame, node: ast.For, start: Tile, stop: Tile, step: Tile) -> None:
        emit = self.emit
        emit_assert(frame, emit.compare("not_equal", step, 0), "the step of range must not be zero", node)
        up = emit.binary("cdiv", emit.binary("sub", stop, start), step)
        down = emit.binary("cdiv", emit.binary("sub", start, stop), emit.unary("negative", step))
        self.value, self.dtype = self._after_iterations, int64
        self.lower, self.step = emit.constant(0, int64), emit.constant(1, int64)
        self.upper = emit.select(emit.compare("greater", step, 0), up, down)

    def variable_at(self, position: Tile) -> Tile:
        value = self.value(position)
        is_natural = self.least is not None and self.least >= 0 and self.emit.rules.simt
        return dataclasses.replace(value, least=self.least) if is_natural else value

    def _same(self, position: Tile) -> Tile:
        return position

    def _mirrored(self, position: Tile) -> Tile:
        mirrored: Tile = self.emit.binary("sub", -1, position)
        return mirrored

    def _mirrored_back(self, position: Tile) -> Tile:
        return self.emit.cast(self._mirrored(position), self.variable)

    def _after_iterations(self, position: Tile) -> Tile:
        emit = self.emit
        value: Tile = emit.binary("add", self.start, emit.binary("mul", emit.cast(position, self.variable), self.by))
        return value

    def following(self, position: Tile) -> Tile:
        """The next position; past the end of the type it stays there, which no bound is above."""
        emit = self.emit
        following: Tile = emit.binary("add", position, self.step)
        if self.by_one:
            return following
        end = emit.constant(self.dtype.max, self.dtype)
        return emit.select(emit.compare("less", following, position), end, following)
