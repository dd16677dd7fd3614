"""Parts of launch records, by the rows of include/tilewright/launch_record.def, from a few numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Fields = dict[str, Any]


def place(word: int, rank: int, bits: int) -> Fields:
    return {"word": word, "rank": rank, "bits": bits}


def factor(word: int, plus: int = 0, by: int = 1) -> Fields:
    return {"word": word, "plus": plus, "by": by}


def no_alias(*numbers: int) -> Fields:
    """Two places, and whether the arrays may be the same."""
    return {"array": place(*numbers[:3]), "other": place(*numbers[3:6]), "or_same": numbers[6]}


def loop(word: int, per_step: int, steps: int) -> Fields:
    return {"word": word, "per_step": per_step, "steps": steps}


def slice_plan(parts: Sequence[int], cycles: int, size: int) -> Fields:
    return {"parts": parts, "cycles": cycles, "bytes": size}


def multicast(axis: int, *cycles: int) -> Fields:
    """Cycles of a step in clusters along each axis, and of blocks alone."""
    return {"axis": axis, "cycles": cycles[:3], "alone": cycles[3]}


def tensor_map(word: int, size: int, swizzle: int, axes: Sequence[int], box: Sequence[int]) -> Fields:
    return {"word": word, "rank": len(axes), "bytes": size, "swizzle": swizzle, "axes": axes, "box": box}
