"""How an algorithm is cut into blocks: by the device, and on a GPU by the number of items alone."""

from __future__ import annotations

import dataclasses
from typing import Any

from .. import _core
from ..device.targets import target_named


@dataclasses.dataclass(frozen=True)
class Shape:
    """Threads of a block, items that a thread takes at a time, and the most blocks that share an array.

    Nothing but the number of items says which block folds what: a result is the same from run to run, and from GPU to
    GPU.
    """

    threads: int
    items: int
    most_blocks: int

    @property
    def tile(self) -> int:
        return self.threads * self.items

    def blocks(self, count: int) -> int:
        return max(1, min(self.most_blocks, -(-count // self.tile)))

    def per_block(self, count: int) -> int:
        """Items of each block: whole tiles."""
        tiles = -(-count // self.tile)
        return -(-tiles // self.blocks(count)) * self.tile

    def tiles(self, count: int) -> int:
        return max(1, -(-count // self.tile))


GPU = Shape(threads=128, items=16, most_blocks=1024)
CPU = Shape(threads=1, items=8192, most_blocks=32)


# Items that a GPU reduces, scans, parts or counts by one block, and the most that a thread has of them: one launch for
# two, and a third to a fifth of the code to compile.
FEW, EACH = 4096, 8


def is_few(count: int, threads: int) -> bool:
    return count <= min(FEW, EACH * threads)


def shape_for(place: Any) -> Shape:
    return CPU if place == "cpu" else GPU


_ROOMY = (80, 87, 90, 100, 101, 103, 110)  # architectures whose blocks have 160 KB of shared memory, the others 99


def is_roomy(place: Any, targets: tuple[str, ...]) -> bool:
    """Whether a block of each of the GPUs may have 160 KB of shared memory."""
    numbers = [target_named(name).number for name in targets]
    name, _, number = place.partition(":")
    if not targets and name == "cuda":
        major, minor = _core.device_info(int(number or 0))["capability"]
        numbers = [10 * major + minor]
    return all(found in _ROOMY for found in numbers)


_USUAL = 132  # multiprocessors


def multiprocessors(place: Any) -> int:
    """How many there are, where a GPU is known; they change nothing of what comes out."""
    name, _, number = place.partition(":")
    return int(_core.device_info(int(number or 0))["sm_count"]) if name == "cuda" else _USUAL
