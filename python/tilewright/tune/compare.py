"""Whether two ranges of memory hold the same: a kernel of ours counts, so that a GPU's need not come to the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import tile as ct
from ..kernel import kernel, launch
from .memory import Memory, View, array_at

WORDS = 8192  # of a block


@kernel
def count_differences(X: Any, Y: Any, COUNTS: Any, T: ct.Constant[int]) -> None:
    i = ct.bid(0)
    x = ct.load(X, index=(i,), shape=(T,), padding_mode=ct.PaddingMode.ZERO)
    y = ct.load(Y, index=(i,), shape=(T,), padding_mode=ct.PaddingMode.ZERO)
    ct.store(COUNTS, index=(i,), tile=ct.sum(ct.where(x == y, 0, 1)))


class Comparer:
    """Of ranges in one memory."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.counts: dict[int, int] = {}  # blocks -> where they write

    def equal(self, x: int, y: int, size: int) -> bool:
        """Compares `size` bytes, a multiple of four, at two addresses."""
        words = size // 4
        blocks = -(-words // WORDS)
        if blocks not in self.counts:
            self.counts[blocks] = self.memory.allocate(4 * blocks)
        arrays = [self._array(base, n) for base, n in ((x, words), (y, words), (self.counts[blocks], blocks))]
        stream = None if self.memory.device is None else 0
        launch(stream, blocks, count_differences, (*arrays, WORDS))
        return not self.memory.bytes(self.counts[blocks], 4 * blocks).view(np.int32).any()

    def _array(self, base: int, count: int) -> Any:
        return array_at(self.memory.device, base, View(0, 0, "int32", (count,), (1,), False))
