"""reduce_into: each block folds a range of items, then one block folds what they found, h_init first. Few items are
folded by one block at once.

The order of the operands is kept. A well-known operator that commutes needs none, and is fastest.
"""

# The kernels' values have no types that a checker knows.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, attr-defined"

from __future__ import annotations

import dataclasses
import enum
from typing import Any

from ..dtype import DType
from ..numba import intrinsics as cuda
from .checks import check_structs, chosen
from .iterators import states_of
from .launching import ComputeKernel, Launch, Part, resident, size
from .objects import Algorithm, Given, call, initial, make
from .plans import is_few
from .types import Convert, ItemType, Shared, Zero, size_of
from .vectors import is_aligned, loading, width_for
from .warps import LANES, block_total, lane, warp_fold, warp_folds


class Determinism(enum.Enum):
    """How far results are the same: everywhere here, for ranges follow from the number of items alone; but tiles of
    scans are as large as shared memory holds, unless they shall be the same from GPU to GPU."""

    NOT_GUARANTEED = "not_guaranteed"
    RUN_TO_RUN = "run_to_run"
    GPU_TO_GPU = "gpu_to_gpu"


_MOST_IN_A_ROW = 256  # items that a thread folds one behind the other
_FINISHING = 256  # threads that fold what blocks found
_FEW_THREADS = 512  # those that fold few items
_SIDE_BY_SIDE = 16  # threads of a block on the CPU, where the operator commutes: lanes of a vector


@dataclasses.dataclass(frozen=True)
class Tiling:
    """How a GPU's blocks share items: each takes some tiles that lie together, and by the number of items alone."""

    width: int  # items that a thread takes side by side
    rounds: int = 4  # such pieces of a tile that a thread takes
    threads: int = 256
    most_blocks: int = 4096  # so many that those which start last take little time

    @property
    def tile(self) -> int:
        return self.threads * self.width * self.rounds

    def per_block(self, count: int) -> int:
        """Tiles of each block."""
        return max(1, -(-count // (self.tile * self.most_blocks)))

    def blocks(self, count: int) -> int:
        return max(1, -(-count // (self.tile * self.per_block(count))))


def fold_tiles(read, fold, convert, t: ItemType, tiling: Tiling, commutes: bool):
    """A kernel: partial[b] = the items of block b joined; of each tile a thread has items that lie together.

    Where the operator commutes, a thread joins its items of all tiles, and threads are joined at the end. Else the
    lanes of a warp are joined for each piece, and a warp's pieces lie together, too.
    """
    width, threads, tile = tiling.width, tiling.threads, tiling.tile
    step = width * (threads if commutes else LANES)
    places = tuple(r * step + j for r in range(tiling.rounds) for j in range(width))
    zero, shared_array = Zero(t), Shared(t, threads // LANES)
    load = loading(lambda inputs, i: convert(read(inputs, i)), places)

    def joined_run(arrays, items):
        value = items[0]
        for item in items[1:]:
            value = fold(arrays, value, item)
        return value

    def nothing():
        return tuple(zero() for _ in places)

    def any_order(inputs, arrays, n, tiles, wide, partial):
        shared, me = shared_array(), cuda.threadIdx.x
        first = cuda.blockIdx.x * tiles * tile
        last = min(first + tiles * tile, n)
        value, there = zero(), False
        whole = (last - first) // tile if wide else 0
        for k in range(whole):
            items = load(inputs, first + k * tile + me * width)
            here = joined_run(arrays, items)
            value = fold(arrays, value, here) if there else here
            there = True
        for i in range(first + whole * tile + me, last, threads):
            here = convert(read(inputs, i))
            value = fold(arrays, value, here) if there else here
            there = True
        value = block_total(shared, value, min(last - first, threads), lambda a, b: fold(arrays, a, b))
        if me == 0:
            partial[cuda.blockIdx.x] = value

    def part_of_piece(inputs, arrays, at, last):
        """The lanes of a warp, joined, of a piece that ends early."""
        value = zero()
        mine = at + lane() * width
        if mine < last:
            value = convert(read(inputs, mine))
            for i in range(mine + 1, min(mine + width, last)):
                value = fold(arrays, value, convert(read(inputs, i)))
        return warp_fold(value, (last - at + (width - 1)) // width, lambda a, b: fold(arrays, a, b))

    def in_order(inputs, arrays, n, tiles, wide, partial):
        shared, warp = shared_array(), cuda.threadIdx.x // LANES
        piece = step * len(places) // width  # of a warp
        start = cuda.blockIdx.x * tiles * tile
        first = start + warp * tiles * piece
        last = min(first + tiles * piece, n)
        value, whole = zero(), max((last - first) // piece, 0) if wide else 0
        mine, behind = first + lane() * width, first + whole * piece
        items = nothing()
        if whole > 0:
            items = load(inputs, mine)
        for k in range(whole):
            ahead = load(inputs, mine + min(k + 1, whole - 1) * piece)  # arrives while these are joined
            rows = tuple(joined_run(arrays, items[r : r + width]) for r in range(0, len(places), width))
            for r, here in enumerate(warp_folds(rows, lambda a, b: fold(arrays, a, b))):
                value = fold(arrays, value, here) if r > 0 or k > 0 else here
            items = ahead
        for row in range(behind, last, step):
            here = part_of_piece(inputs, arrays, row, min(row + step, last))
            value = fold(arrays, value, here) if row > first else here
        there = cuda.popc(cuda.ballot_sync(-1, lane() < threads // LANES and start + lane() * tiles * piece < n))
        if lane() == 0:
            shared[warp] = value
        cuda.syncthreads()
        if warp == 0:
            value = warp_fold(shared[min(lane(), threads // LANES - 1)], there, lambda a, b: fold(arrays, a, b))
            if lane() == 0:
                partial[cuda.blockIdx.x] = value

    return ComputeKernel(any_order if commutes else in_order)


def fold_ranges(read, fold, convert, t: ItemType, shape):
    """A kernel of one thread a block: partial[b] = the items of block b joined."""
    items, zero = min(shape.items, _MOST_IN_A_ROW), Zero(t)

    def in_order(inputs, arrays, n, per, partial):
        first = cuda.blockIdx.x * per
        last = min(first + per, n)
        joined = zero()
        for at in range(first, last, items):
            value = convert(read(inputs, at))
            for i in range(at + 1, min(at + items, last)):
                value = fold(arrays, value, convert(read(inputs, i)))
            joined = fold(arrays, joined, value) if at > first else value
        partial[cuda.blockIdx.x] = joined

    return ComputeKernel(in_order)


def fold_side_by_side(read, fold, convert, t: ItemType):
    """The same of threads that are lanes of vectors: each has every _SIDE_BY_SIDEth item, of a stretch at a time, so
    that errors of sums stay small and the stretch stays in the cache."""
    threads, stretch = _SIDE_BY_SIDE, _SIDE_BY_SIDE * _MOST_IN_A_ROW
    shared_array, zero = Shared(t, threads), Zero(t)

    def in_lanes(inputs, arrays, n, per, partial):
        shared, me = shared_array(), cuda.threadIdx.x
        first = cuda.blockIdx.x * per
        last = min(first + per, n)
        joined, there = zero(), False
        for at in range(first, last, stretch):
            end = min(at + stretch, last)
            if at + me < end:
                value = convert(read(inputs, at + me))
                for i in range(at + me + threads, end, threads):
                    value = fold(arrays, value, convert(read(inputs, i)))
                joined = fold(arrays, joined, value) if there else value
                there = True
        shared[me] = joined
        cuda.syncthreads()
        if me == 0:
            for i in range(1, min(last - first, threads)):
                joined = fold(arrays, joined, shared[i])
            partial[cuda.blockIdx.x] = joined

    kernel = ComputeKernel(in_lanes)
    kernel.threads_on_cpu = threads
    return kernel


def fold_partials(write, fold, convert, t: ItemType, threads: int):
    """A kernel of one block: out[0] = initial joined with all partials from left to right."""
    shared_array, zero = Shared(t, max(1, threads // LANES)), Zero(t)

    def finish(partial, arrays, count, initial, out):
        me = cuda.threadIdx.x
        each = (count + threads - 1) // threads
        first = me * each
        value = zero()
        if first < count:
            value = partial[first]
            for i in range(first + 1, min(first + each, count)):
                value = fold(arrays, value, partial[i])
        if threads > 1 and count > 0:
            there = cuda.syncthreads_count(first < count)
            value = block_total(shared_array(), value, there, lambda a, b: fold(arrays, a, b))
        if me == 0:
            joined = convert(initial)
            if count > 0:
                joined = fold(arrays, joined, value)
            write(out, 0, joined)

    return ComputeKernel(finish)


def fold_few(read, write, fold, convert, t: ItemType):
    """A kernel of one block: out[0] = initial joined with all items from left to right."""
    threads = _FEW_THREADS
    shared_array, zero = Shared(t, threads // LANES), Zero(t)

    def few(inputs, arrays, n, initial, out):
        each = (n + (threads - 1)) // threads
        first, value = cuda.threadIdx.x * each, zero()
        if first < n:
            value = convert(read(inputs, first))
            for i in range(first + 1, min(first + each, n)):
                value = fold(arrays, value, convert(read(inputs, i)))
        there = cuda.syncthreads_count(first < n)
        value = block_total(shared_array(), value, there, lambda a, b: fold(arrays, a, b))
        if cuda.threadIdx.x == 0:
            joined = convert(initial)
            if n > 0:
                joined = fold(arrays, joined, value)
            write(out, 0, joined)

    return resident(ComputeKernel(few), threads)


class Reduce(Algorithm):
    name = "reduce_into"
    ins, outs, ops = ("d_in",), ("d_out",), {"op": 2}
    order = ("d_in", "d_out", "op", "num_items", "h_init")

    values = ("h_init",)
    reads_first = True

    def build(self, given: Given) -> None:
        t = self.type = self.value_key(given, "h_init")
        check_structs(self.name, given["d_in"].value_type, t)
        convert, fold = Convert(t, "reduce_into: 'd_in'"), given["op"].giving(t)
        read, commutes = given["d_in"].reader(), given["op"].commutes
        width = width_for(given["d_in"].value_type)
        self.alone = self.shape.threads == 1
        self.tiling = Tiling(width if commutes else 2 * width, most_blocks=4096 if size_of(t) <= 8 else 2048)
        if self.alone:
            side_by_side = commutes and isinstance(t, DType)
            self.threads = _SIDE_BY_SIDE if side_by_side else 1
            self.ranges = (
                fold_side_by_side(read, fold, convert, t)
                if side_by_side
                else fold_ranges(read, fold, convert, t, self.shape)
            )
        else:
            self.ranges = fold_tiles(read, fold, convert, t, self.tiling, commutes)
            self.few = fold_few(read, given["d_out"].writer(), fold, convert, t)
        self.finish = fold_partials(given["d_out"].writer(), fold, convert, t, 1 if self.alone else _FINISHING)

    def needed(self, given: Given) -> dict[str, Any]:
        return {"d_in": given["num_items"], "d_out": 1}

    def parts(self, n: int) -> list[Part]:
        return [Part(self.type, self._blocks(n))]

    def _blocks(self, n: int) -> int:
        return (self.shape if self.alone else self.tiling).blocks(n)

    def launches(self, given: Given, n: int, temporary: list[Any]) -> list[Launch]:
        return (
            [self._few(given, n)] if not self.alone and is_few(n, _FEW_THREADS) else self._ranges(given, n, temporary)
        )

    def sample_launches(self, given: Given, n: int, temporary: list[Any]) -> list[Launch]:
        return [*self._ranges(given, n, temporary), *([] if self.alone else [self._few(given, n)])]

    def _few(self, given: Given, n: int) -> Launch:
        first = initial(self.type, given["h_init"], "reduce_into: 'h_init'")
        values = (given["d_in"].state(), states_of(given["op"]), size(n), first, given["d_out"].state())
        return Launch(self.few, values, 1, _FEW_THREADS)

    def _ranges(self, given: Given, n: int, temporary: list[Any]) -> list[Launch]:
        arrays, (partial,), source = states_of(given["op"]), temporary, given["d_in"].state()
        count = self._blocks(n) if n else 0
        first = initial(self.type, given["h_init"], "reduce_into: 'h_init'")
        finish = Launch(self.finish, (partial, arrays, size(count), first, given["d_out"].state()), 1, _FINISHING)
        if self.alone:
            finish = dataclasses.replace(finish, block=1)
            per = size(self.shape.per_block(n))
            ranges = Launch(self.ranges, (source, arrays, size(n), per, partial), count, self.threads)
        else:
            tiles = (size(n), size(self.tiling.per_block(n)), is_aligned(source))
            ranges = Launch(self.ranges, (source, arrays, *tiles, partial), count, self.tiling.threads)
        return [ranges, finish] if n else [finish]


def make_reduce_into(
    d_in: Any,
    d_out: Any,
    op: Any,
    h_init: Any,
    *,
    determinism: Determinism = Determinism.RUN_TO_RUN,
    compute_capability: Any = None,
) -> Reduce:
    """An object that folds: `reducer(temp_storage, d_in, d_out, op, num_items, h_init)`."""
    chosen(Determinism, determinism, "reduce_into: 'determinism'")
    given = {"d_in": d_in, "d_out": d_out, "op": op, "h_init": h_init}
    return make(Reduce, given, compute_capability=compute_capability)  # type: ignore[return-value]


def reduce_into(
    d_in: Any,
    d_out: Any,
    op: Any,
    num_items: int,
    h_init: Any,
    *,
    stream: Any = None,
    determinism: Determinism = Determinism.RUN_TO_RUN,
) -> None:
    """d_out[0] = h_init joined with the first num_items of d_in, from left to right, by op."""
    chosen(Determinism, determinism, "reduce_into: 'determinism'")
    call(Reduce, {"d_in": d_in, "d_out": d_out, "op": op, "num_items": num_items, "h_init": h_init}, stream)
