"""What programs over the rows of heads have in common: blocks, their grid, and rows of arrays in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from choices import Choices
from source import Lines

BLOCKS = 132


class Heads(ABC):
    """Arrays are [heads, length, D], or [length, heads, D]; a block has a number, and a head."""

    def __init__(self, choices: Choices, blocks: int = BLOCKS) -> None:
        self.c = choices
        self.dtype, (self.length, self.heads) = choices["dtype"], choices["size"]
        self.tm, self.tn, self.d = choices["tile"]
        self.blocks = blocks
        self.window = self.length // 3 + 1
        self.arrays: dict[str, Any] = {}

    @abstractmethod
    def plane(self) -> tuple[int, int]:
        """How many numbers and how many heads blocks have."""

    def grid(self) -> tuple[int, ...]:
        numbers, heads = self.plane()
        return {
            "plane": (numbers, heads),
            "backwards": (numbers, heads),
            "turned": (heads, numbers),
            "persistent": (self.blocks,),
        }[self.c["grid"]]

    def begin(self, lines: Lines, i: str, h: str) -> None:
        """The block's number and head, in the order of the grid."""
        numbers, heads = self.plane()
        if self.c["grid"] == "persistent":
            lines.add(f"for t in range(ct.bid(0), {numbers * heads}, ct.num_blocks(0)):")
            lines.depth += 1
            lines.add(f"{i}, {h} = t % {numbers}, t // {numbers}")
        elif self.c["grid"] == "turned":
            lines.add(f"{h}, {i} = ct.bid(0), ct.bid(1)")
        else:
            lines.add(f"{i}, {h} = ct.bid(0), ct.bid(1)")
            lines.add(*([f"{i} = ct.num_blocks(0) - 1 - {i}"] if self.c["grid"] == "backwards" else []))

    def rows(self, array: str, head: str, number: str, count: str) -> str:
        """Some rows of a head, as a matrix."""
        index, shape = f"({head}, {number}, 0)", f"(1, {count}, D)"
        if self.c["place"] == "heads last":
            index, shape = f"({number}, {head}, 0)", f"({count}, 1, D)"
        return f"ct.load({array}, {index}, {shape}, padding_mode=ZERO).reshape(({count}, D))"

    def columns(self, array: str, head: str, number: str, count: str, order: str = "") -> str:
        """The same rows, as columns of a matrix: of an array that lies so, or else by an order."""
        shape = f"(1, D, {count}){order}"
        return f"ct.load({array}, ({head}, 0, {number}), {shape}, padding_mode=ZERO).reshape((D, {count}))"

    def gathered(self, array: str, head: str, places: str, mask: str = "") -> str:
        index = f"({head}, {places}[:, None], dims[None, :])"
        if self.c["place"] == "heads last":
            index = f"({places}[:, None], {head}, dims[None, :])"
        return f"ct.gather({array}, {index}{mask})"

    def store(self, array: str, value: str, head: str = "h", number: str = "i", count: str = "TM") -> str:
        index, shape = f"({head}, {number}, 0)", f"(1, {count}, D)"
        if self.c["place"] == "heads last":
            index, shape = f"({number}, {head}, 0)", f"({count}, 1, D)"
        return f"ct.store({array}, {index}, {value}.astype({array}.dtype).reshape({shape}))"

    def placed(self, x: Any) -> Any:
        return x.swapaxes(0, 1) if self.c["place"] == "heads last" else x


def repeated(numbers: Any, x: Any, times: int) -> Any:
    """Each head several times."""
    repeat = numbers.lib.repeat_interleave if hasattr(numbers.lib, "repeat_interleave") else numbers.lib.repeat
    return repeat(x, times, 0) if times > 1 else x


def all_of(parts: list[str]) -> str:
    """Tiles of conditions, combined."""
    return " & ".join(f"({p})" if len(parts) > 1 and not p.startswith("(") else p for p in parts)
