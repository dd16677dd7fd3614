"""merge_sort: by a comparison of the user's; what is equal keeps its order.

On a GPU, merge_tiles.py. On the CPU a thread sorts runs of a few items by insertion. Then runs are merged by twos, as
often as it takes: a thread finds by a binary search what of the two runs its part of the result is made of.
"""

# The kernels' values have no types that a checker knows.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, attr-defined"

from __future__ import annotations

from typing import Any

from ..errors import TileTypeError
from ..numba import intrinsics as cuda
from .inputs import ArrayInput
from .iterators import states_of
from .launching import ComputeKernel, Launch, Part, size
from .merge_tiles import MergeTiles
from .objects import Algorithm, Given, call, make
from .types import Convert

RUN = 16  # items that a thread sorts by insertion


class MergeSort(Algorithm):
    name = "merge_sort"
    ins, outs, ops = ("d_in_keys", "d_in_values"), ("d_out_keys", "d_out_values"), {"op": 2}
    order = (*ins, *outs, "op", "num_items")
    optional = frozenset(("d_in_values", "d_out_values"))
    predicates = tuple(ops)
    in_place = frozenset(zip(ins, outs, strict=True))

    def build(self, given: Given) -> None:
        self.has_values = given["d_in_values"] is not None
        if self.has_values != (given["d_out_values"] is not None):
            raise TileTypeError("merge_sort: 'd_in_values' and 'd_out_values' are both given, or both None")
        self.types: list[Any] = []
        for name in self.outs:
            if given[name] is not None and not isinstance(given[name], ArrayInput):
                raise TileTypeError(f"merge_sort: '{name}' is an array, found {given[name]!r}")
            self.types += [given[name].view.dtype] if given[name] is not None else []
        pairs = [_Pair(given[i], given[o]) for i, o in zip(self.ins, self.outs, strict=True) if given[o] is not None]
        self.tiles = None
        if self.shape.threads > 1:
            self.tiles = MergeTiles(pairs, [pair.type for pair in pairs], given["op"])
        else:
            self.sort, self.merge = _sort_runs(pairs, given["op"]), _merge(pairs, given["op"])

    def sample(self, given: Given) -> Given:
        return {"num_items": self._run() + 1}

    def sample_launches(self, given: Given, n: int, temporary: list[Any]) -> list[Launch]:
        few = self.launches(given, 1, temporary) if self.tiles else []
        return [*self.launches(given, n, temporary), *few]

    def _run(self) -> int:
        """Items that are sorted by the first kernel, and need no others then."""
        return self.tiles.sorted if self.tiles else RUN

    def parts(self, n: int) -> list[Part]:
        if n <= self._run():
            return []
        return [*(Part(t, n) for t in self.types), *(self.tiles.parts(n) if self.tiles else [])]

    def launches(self, given: Given, n: int, temporary: list[Any]) -> list[Launch]:
        import numpy as np

        if n == 0:
            return []
        widths = [self._run() << i for i in range(50) if self._run() << i < n]
        names = [n for n in self.outs if given[n] is not None]
        start = tuple(given[i].state() for i, o in zip(self.ins, self.outs, strict=True) if o in names)
        at = [tuple(given[n].state() for n in names), tuple(temporary[: len(names)])]
        arrays, count, last = states_of(given["op"]), size(n), len(widths)
        if self.tiles:
            stations = [at[(last - i) % 2] for i in range(last + 1)]
            return self.tiles.launches(start, stations, arrays, n, temporary[-1] if temporary else ())
        found = [Launch(self.sort, (start, at[last % 2], arrays, count), *self._grid(-(-n // RUN)))]
        for i, width in enumerate(widths):
            source, target = at[(last - i) % 2], at[(last - i - 1) % 2]
            part = min(2 * width, 4096)
            launched = (source, target, arrays, count, np.int64(width), np.int64(part))
            found.append(Launch(self.merge, launched, *self._grid(-(-n // part))))
        return found

    def _grid(self, count: int) -> tuple[int, int]:
        """Blocks, of a thread each, for a number of pieces of work."""
        return min(count, 64), 1


class _Pair:
    """How keys, or values, are read from the input, and moved from there on."""

    def __init__(self, given: Any, out: Any) -> None:
        self.type = out.value_type
        self.first, self.read, self.write = given.reader(), out.reader(), out.writer()
        self.convert = Convert(out.value_type, "merge_sort: an item")


def _moving(pairs):
    """Functions for kernels that move an item: from the input, and from one array to another."""
    key, value = pairs[0], pairs[-1]
    has_values = len(pairs) > 1

    def move(source, i, target, to):
        key.write(target[0], to, key.read(source[0], i))
        if has_values:
            value.write(target[1], to, value.read(source[1], i))

    return move


def _sort_runs(pairs, op):
    key, value, has_values, move = pairs[0], pairs[-1], len(pairs) > 1, _moving(pairs)
    read_key, convert_key, known_key, write_key = key.first, key.convert, key.read, key.write
    read_value, convert_value, write_value = value.first, value.convert, value.write

    def sort_runs(source, target, arrays, n):
        for run in range(cuda.grid(1), (n + RUN - 1) // RUN, cuda.gridsize(1)):
            first = run * RUN
            for i in range(first, min(first + RUN, n)):
                mine, at, going = convert_key(read_key(source[0], i)), i + 0, True
                if has_values:
                    held = convert_value(read_value(source[1], i))
                while going:
                    going = False
                    if at > first and op(arrays, mine, known_key(target[0], at - 1)):
                        move(target, at - 1, target, at)
                        at = at - 1
                        going = True
                write_key(target[0], at, mine)
                if has_values:
                    write_value(target[1], at, held)

    return ComputeKernel(sort_runs)


def _merge(pairs, op):
    read, move = pairs[0].read, _moving(pairs)

    def split(keys, arrays, a, count_a, b, count_b, behind):
        """How many of the first `behind` items of the result come from the left run; equal ones come from it first."""
        low, high = max(0, behind - count_b), min(behind, count_a)
        while low < high:
            middle = (low + high) // 2
            if op(arrays, read(keys, b + behind - 1 - middle), read(keys, a + middle)):
                high = middle
            else:
                low = middle + 1
        return low

    def merge(source, target, arrays, n, width, part):
        for piece in range(cuda.grid(1), (n + part - 1) // part, cuda.gridsize(1)):
            start = piece * part
            a = start // (2 * width) * (2 * width)
            b = min(a + width, n)
            end = min(b + width, n)
            i = split(source[0], arrays, a, b - a, b, end - b, start - a)
            left, right = a + i, b + start - a - i
            for to in range(start, min(start + part, n)):
                from_right = left >= b
                if left < b and right < end:
                    from_right = bool(op(arrays, read(source[0], right), read(source[0], left)))
                if from_right:
                    move(source, right, target, to)
                    right = right + 1
                else:
                    move(source, left, target, to)
                    left = left + 1

    return ComputeKernel(merge)


def _given(d_in_keys: Any, d_in_values: Any, d_out_keys: Any, d_out_values: Any, op: Any) -> dict[str, Any]:
    return dict(zip(MergeSort.order, (d_in_keys, d_in_values, d_out_keys, d_out_values, op), strict=False))


def make_merge_sort(
    d_in_keys: Any,
    d_in_values: Any = None,
    d_out_keys: Any = None,
    d_out_values: Any = None,
    op: Any = None,
    *,
    compute_capability: Any = None,
) -> MergeSort:
    """An object that sorts; it takes temp_storage, these arguments, and num_items."""
    given = _given(d_in_keys, d_in_values, d_out_keys, d_out_values, op)
    return make(MergeSort, given, compute_capability=compute_capability)  # type: ignore[return-value]


def merge_sort(
    d_in_keys: Any,
    d_in_values: Any = None,
    d_out_keys: Any = None,
    d_out_values: Any = None,
    op: Any = None,
    num_items: int | None = None,
    *,
    stream: Any = None,
) -> None:
    """Keys so that op(b, a) is false for each a before b, and values, or None, with them; the sort is stable."""
    given = _given(d_in_keys, d_in_values, d_out_keys, d_out_values, op)
    call(MergeSort, {**given, "num_items": num_items}, stream)
