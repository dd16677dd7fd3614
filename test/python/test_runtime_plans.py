"""What a launch chooses between, against the stand-in driver: tiles shared, sliced or coarsened, clusters, variants."""

from __future__ import annotations

import csv
import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import producers as p
import pytest
import records as r
from fake_launches import MAP, PTX, SPLIT, Cases, cuda, fake, make, on, refused, shares

from tilewright import _core
from tilewright.errors import LaunchError, TileCompilationError, TileValueError

HERE = Path(__file__).resolve().parent
case = Cases()


@case()
def tiles_that_blocks_share() -> None:
    """132 multiprocessors with room for one block of 384 threads, or two of 128."""
    k = make("A", threads=384, persistent=True, split=SPLIT, split_applied=True)
    blocks, parts, whole, workspace = shares(k, (8, 4), 1 << 16)
    assert (blocks, parts, whole) == (128, 4, 0) and workspace > 0
    assert shares(k, (8, 4), 1 << 16)[3] == workspace and fake.calls("cuMemAlloc_v2") == 1
    assert [line for line in fake.log if "fill" in line] == ["fill 16384 in 5001"]  # the counters, once
    assert shares(k, (8, 4), 1024) == (32, 1, 32, 0)  # adding up would take longer
    assert shares(k, (8, 4), 0) == (32, 1, 32, 0)
    assert shares(k, (128,), 1 << 16) == (128, 1, 128, 0)
    assert shares(k, (17, 32), 1 << 14)[:3] == (132, 8, 528)  # four turns, and 16 tiles
    assert shares(k, (16, 32), 1 << 14) == (128, 1, 512, 0)  # four turns, nearly
    memory = make("A", threads=384, persistent=True, split=SPLIT | {"step_bytes": 294912}, split_applied=True)
    assert shares(memory, (8, 4), 1 << 16) == (32, 1, 32, 0)  # the L2 cache has no more to give
    wide, loaded = SPLIT | {"step_bytes": 98304}, [r.place(0, 2, 16)]
    large = make("A", threads=384, persistent=True, split=wide, split_applied=True, loaded=loaded)
    assert shares(large, (8, 4), 4096)[:3] == (96, 3, 0)
    _core.launch(0x5001, (8, 4), large, (on(0, 1 << 20, 4096),))
    assert fake.words[8] == 1  # all that is loaded comes from memory, which has no more to give
    plain = make("A", split=SPLIT, split_applied=True)  # two blocks a multiprocessor
    assert shares(plain, (8, 4), 1 << 16) == (128, 4, 0, workspace)
    assert shares(plain, (140,), 1 << 16) == (140, 1, 140, 0)
    constant = make("A", threads=384, split=SPLIT | {"loop": r.loop(-1, 1, 512)}, split_applied=True)
    assert shares(constant, (8, 4), 0)[:3] == (128, 4, 0)
    forced = make("A", split=SPLIT | {"forced": 3}, split_applied=True)
    assert shares(forced, (8, 4), 64)[:3] == (96, 3, 0)
    assert shares(forced, (100,), 64)[:3] == (100 + 2 * 88, 3, 12)  # as many as the workspace has room for


@case()
def blocks_of_the_dynamic_scheduler() -> None:
    """All blocks that fit are started: none has a share of the others. One more word says where tiles are counted."""
    k = make("A", threads=384, persistent=True, dynamic=True)
    blocks, workspace = shares(k, (17, 32), 0)
    assert blocks == 132 and workspace > 0
    assert shares(k, (133,), 0) == (132, workspace) and shares(k, (7, 3), 0) == (21, workspace)
    assert (
        shares(make("A", threads=384, persistent=True, split=SPLIT, split_applied=True), (8, 4), 1 << 16)[3]
        == workspace
    )
    assert shares(k, (9,), 0, 0x5002)[1] not in (0, workspace) and fake.calls("cuMemAlloc_v2") == 2
    fake.fail("cuMemAlloc_v2", 1, 2)
    assert shares(k, (9,), 0, 0x5003) == (9, 0)  # numbers in turn


@case()
def clusters_that_would_idle() -> None:
    """Neighbours along axis 1, on 132 multiprocessors: where others take fewer turns, there is another kernel."""
    made: list[tuple[str, int]] = []

    def better(*what: Any) -> Any:
        made.append(what)
        pairs = r.multicast(0, 1138, 0, 0, 2147483647) if what == ("clusters", 0) else None
        return cuda(384, 512 * len(made), persistent=True, multicast=pairs)

    k = make("A", threads=384, persistent=True, multicast=r.multicast(1, 1138, 1024, 0, 1365), better=better)
    own, along_0, alone = 0, 512, 1024
    for grid, started, shared_bytes in [
        ((1, 1), 2, own),
        ((1, 128), 128, own),
        ((30, 3), 120, own),
        ((32, 65), 132, own),  # 16 turns along both
        ((16, 33), 132, along_0),  # 4 turns, and 5 along axis 1, where the last column has no neighbour
        ((128, 1), 128, along_0),
        ((65535, 1), 132, along_0),
        ((131, 1), 132, along_0),
        ((7, 3, 6), 126, alone),
    ]:
        _core.launch(None, grid, k, (on(0, 4),))
        assert (tuple(fake.last.grid), fake.last.shared_bytes) == ((started, 1, 1), shared_bytes), grid
    assert made == [("clusters", 0), ("split_k", 0)]


@case()
def kernels_that_share_are_made_when_wanted() -> None:
    made: list[Any] = []

    def sharing(*what: Any) -> Any:
        assert what == ("split_k", 1)
        made.append(cuda(384, 512, persistent=True, split=SPLIT, split_applied=True))
        return made[-1]

    k = make("A", threads=384, persistent=True, split=SPLIT, better=sharing)
    _core.launch(0x5001, (8, 4), k, (on(0, 4, 1024),))
    assert fake.words[5:] == [8, 4, 1] and not made
    for _ in range(2):
        assert shares(k, (8, 4), 1 << 16)[:3] == (128, 4, 0) and fake.last.shared_bytes == 512
    assert len(made) == 1
    assert shares(k, (8, 4), 1 << 16, 0x500F)[:3] == (128, 4, 0) and len(made) == 1  # captures a graph
    wrong = make("A", threads=384, split=SPLIT, better=lambda *what: 7)
    refused(Exception, "on_miss returned", _core.launch, 0x5001, (8, 4), wrong, (on(0, 4, 1 << 16),))


# 64 of word 2 a step; one class, of the extent in word 1, in tiles of 128; 1, 2, 4 slices: cycles and bytes of a step.
CUT = {
    "loop": {"word": 2, "per_step": 64, "steps": 0},
    "classes": [{"word": 1, "tile": 128}],
    "plans": [
        {"parts": (1,), "cycles": 1088, "bytes": 49152},
        {"parts": (2,), "cycles": 576, "bytes": 32768},
        {"parts": (4,), "cycles": 320, "bytes": 24576},
    ],
}


def cut_kernel(made: list[Any], row: Any = CUT, **more: Any) -> Any:
    """Whose slices have that number of bytes of shared memory."""

    def better(kind: str, parts: int) -> Any:
        assert kind == "slice"
        made.append(parts)
        return cuda(384, parts, grid_scale=(parts, 1, 1))

    return make("A", threads=384, slice=row, better=better, **more)


def slices(kernel: Any, grid: Any, rows: int, columns: int) -> int:
    """Into how many slices a launch cuts each tile."""
    _core.launch(0x5001, grid, kernel, (on(0, rows, columns),))
    parts = max(1, fake.last.shared_bytes)
    assert tuple(fake.last.grid) == (grid[0] * parts, *grid[1:], 1) and len(fake.words) == 5
    return parts


@case()
def tiles_that_are_cut() -> None:
    """132 multiprocessors."""
    made: list[Any] = []
    k = cut_kernel(made)
    assert slices(k, (8, 4), 1024, 1024) == 4 and made == [4]
    assert fake.calls("cuLibraryLoadData") == 1  # the driver assembles nothing that is not launched
    assert slices(k, (8, 4), 1024, 2048) == 4 and made == [4]  # kept
    assert slices(k, (8, 16), 1024, 1024) == 1  # as many blocks as can be would still take turns
    assert slices(k, (8, 8), 1024, 2048) == 2 and made == [4, 2]  # with four they would, too
    assert slices(k, (8, 100), 1024, 1024) == 1
    assert slices(k, (8, 4), 1024, 64) == 1  # short
    assert slices(k, (1, 60), 32, 4096) == 2 and made == [4, 2]  # slices that are empty take as long
    slow = cut_kernel(
        made,
        CUT
        | {
            "plans": [
                r.slice_plan((1,), 1088, 180000),
                *(r.slice_plan((n,), c, 100000) for n, c in ((2, 576), (4, 320))),
            ]
        },
    )
    assert slices(slow, (1, 60), 128, 4096) == 1  # all wait for the memory
    assert slices(slow, (1, 60), 32, 4096) == 2  # ... but those that load nothing
    constant = cut_kernel(made, CUT | {"loop": r.loop(-1, 1, 16), "classes": [{"word": -1, "tile": 128}]})
    assert slices(constant, (8, 4), 1, 1) == 4


# Of products in bf16 with tiles of 128x256x64: slices of a tile, how many rows and columns these have, the parts of k
# that a step takes in cycles and bytes.
SLICES = {1: (128, 256, 1088, 49152), 2: (128, 128, 576, 32768), 4: (64, 128, 320, 24576), 8: (64, 64, 234, 16384)}


def measured_plans() -> dict[tuple[int, int, int], dict[tuple[int, int], float]]:
    """Of each shape: microseconds by the number of slices and of parts along k."""
    out: dict[tuple[int, int, int], dict[tuple[int, int], float]] = {}
    with open(HERE.parent / "data" / "plans.csv") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            m, n, k, cut, split = (int(row[name]) for name in ("m", "n", "k", "slice", "split"))
            out.setdefault((m, n, k), {})[cut, split] = float(row["us"])
    return out


def plan_kernel(whole: int, cut: int, shares: bool) -> Any:
    """A kernel whose tile is a slice of those `whole`, now cut further; its bytes of shared memory tell which."""

    def better(kind: str, number: int) -> Any:
        return plan_kernel(whole, cut * number if kind == "slice" else cut, kind == "split_k")

    rows, columns, *_ = SLICES[whole]
    plans = [
        r.slice_plan((rows // tm, columns // tn), *of_step)
        for cuts, (tm, tn, *of_step) in SLICES.items()
        if cuts >= whole
    ]
    tm, tn, cycles, size = SLICES[cut]
    k = r.loop(2, 64, 0)
    classes = [{"word": 11, "tile": rows}, {"word": 12, "tile": columns}]
    whole_tiles = cut == whole and not shares and len(plans) > 1
    return cuda(
        384,
        2 * cut + shares,
        persistent=True,
        split_applied=shares,
        split={"loop": k, "step_cycles": cycles, "step_bytes": size, "part_bytes": 4 * tm * tn},
        loaded=[r.place(0, 2, 16), r.place(5, 2, 16)],
        slice={"loop": k, "classes": classes, "plans": plans} if whole_tiles else None,
        grid_scale=(rows // tm, columns // tn, 1) if cut > whole else (),
        better=better,
    )


def time_of(times: dict[tuple[int, int], float], cut: int, split: int) -> float:
    """Not every number of parts was measured: the slower one of the next ones."""
    splits = [parts for slices, parts in times if slices == cut]
    below, above = max(p for p in splits if p <= split), min(p for p in splits if p >= split)
    return max(times[cut, below], times[cut, above])


@case()
def plans_that_were_measured() -> None:
    """A launch is hardly slower than with the best of the plans that it can choose from."""
    losses = []
    for whole in (1, 2, 4):
        for (m, n, k), times in measured_plans().items():
            rows, columns, *_ = SLICES[whole]
            grid = (-(-m // rows), -(-n // columns))
            if grid[0] * grid[1] != -(-m // 128) * -(-n // 256) * whole:
                continue  # as smaller tiles, without those beyond the array, they were not measured
            kernel = _core.Dispatcher(
                "kernel", ("A", "B", "C"), (), lambda *_, w=whole: plan_kernel(w, w, False), False
            )
            _core.launch(0x5001, grid, kernel, (on(0, m, k), on(0, k, n), on(0, m, n)))
            cut, split, first_shared = fake.last.shared_bytes // 2, 1, 0
            if fake.last.shared_bytes % 2:
                split, first_shared = fake.words[18:20]
            if first_shared == 0:  # else only tiles of the last turn are, which was not measured
                best = min(time for (slices, _), time in times.items() if slices >= whole)
                losses.append((time_of(times, cut, split) / best, (rows, columns), (m, n, k), (cut, split)))
    assert len(losses) > 50 and max(losses)[0] < 1.12, sorted(losses)[-8:]
    assert sum(loss for loss, *_ in losses) / len(losses) < 1.02, sorted(losses)[-8:]


@case()
def variants_forgotten_while_one_is_made() -> None:
    """Compiling runs Python, which may change a variable that the kernel has read."""
    made: list[Any] = []

    def better(kind: str, parts: int) -> Any:
        k.clear_variants()
        gc.collect()
        assert any(type(thing) is _core.CudaKernel for thing in gc.get_objects())  # the one whose launch this is
        made.append(parts)
        return cuda(384, parts, grid_scale=(parts, 1, 1))

    k = make("A", threads=384, slice=CUT, better=better)
    for _ in range(3):
        assert slices(k, (8, 4), 1024, 1024) == 4
    assert made == [4] * 3 and len(k.variants()) == 0


@case()
def variants_launched_longest_ago_are_dropped() -> None:
    """What was loaded stays for graphs that hold it, and is found again."""

    def miss(kernel: Any, target: str, key: Any) -> Any:
        return cuda(128, image=f"{PTX} // {key[0][1]}")

    k = _core.Dispatcher("kernel", ("c", "A"), (0,), miss, False, None, 2)
    for c in (0, 1, 2, 3, 0, 1):
        _core.launch(0x5001, 1, k, (c, on(0, 16)))
    gc.collect()
    assert sum(type(thing) is _core.CudaKernel for thing in gc.get_objects()) == 2
    assert {key[0][1] for _, key, _ in k.variants()} == {0, 1}
    assert fake.calls("cuLibraryLoadData") == 4


@case()
def tiles_that_are_cut_or_shared() -> None:
    """Parts of k are for longer loops than slices are."""
    made: list[Any] = []
    k = make("A", threads=384, split=SPLIT, slice=CUT, better=lambda *what: made.append(what))
    for steps, wanted in [(64, ("slice", 4)), (2048, ("split_k", 1))]:
        refused(Exception, "on_miss returned", _core.launch, 0x5001, (8, 4), k, (on(0, 1024, 64 * steps),))
        assert made[-1] == wanted


# 64 of word 2 a step; 1, 2, 4 blocks in one: how many along each axis, cycles and bytes of a step. Axis 0 covers word 1
# by 64 a block.
FUSE = {
    "loop": {"word": 2, "per_step": 64, "steps": 0},
    "beside": 0,
    "plans": [
        {"blocks": (1, 1, 1), "cycles": 234, "alone": 234, "bytes": 16384},
        {"blocks": (2, 1, 1), "cycles": 320, "alone": 320, "bytes": 24576},
        {"blocks": (2, 2, 1), "cycles": 576, "alone": 576, "bytes": 32768},
    ],
    "stores": [{"axis": 0, "word": 1, "tile": 64}],
}


# As many steps of 2,048 bytes as word 1, and 16 for each 1,024 of word 2, tell; a block has room for 32 of them.
SHARE: dict[str, Any] = {
    "steps": [r.factor(1), {"word": 2, "plus": 1023, "by": 1024}, r.factor(-1, 16)],
    "bytes": 2048,
    "room": 65536,
    "most": 4,
}


@case()
def rows_that_are_shared() -> None:
    made: list[Any] = []

    def better(kind: str, blocks: int) -> Any:
        made.append((kind, blocks))
        return cuda(128, blocks, grid_scale=(blocks, 1, 1), cluster_blocks=blocks)

    def started(kernel: Any, rows: int, columns: int) -> int:
        _core.launch(0x5001, 3, kernel, (on(0, rows, columns),))
        return int(fake.last.grid[0])

    k = make("A", threads=128, row_share=SHARE, better=better)
    assert started(k, 1, 2048) == 3 and started(k, 0, 1 << 20) == 3 and not made  # it is not longer than the room
    assert started(k, 1, 2064) == 6 and started(k, 1, 4096) == 6 and started(k, 2, 2048) == 6
    assert set(made) == {("share", 2)}
    assert started(k, 1, 4112) == 12 and set(made) == {("share", 2), ("share", 4)}
    assert started(k, 64, 1 << 20) == 12 and set(made) == {("share", 2), ("share", 4)}  # no more than there may be


@case()
def blocks_that_are_fused() -> None:
    """132 multiprocessors."""
    made: list[Any] = []

    def better(kind: str, blocks: int) -> Any:
        assert kind == "coarsen"
        made.append(blocks)
        grid = {1: (), 2: (-2, 1, 1), 4: (-2, -2, 1)}[blocks]
        return cuda(384, blocks, coarsen=FUSE, grid_scale=grid)

    def started(kernel: Any, grid: tuple[int, int], rows: int, columns: int = 4096) -> tuple[int, ...]:
        _core.launch(0x5001, grid, kernel, (on(0, rows, columns),))
        assert len(fake.words) == 5
        return (*fake.last.grid, fake.last.shared_bytes)

    k = make("A", threads=384, coarsen=FUSE, better=better)
    assert started(k, (64, 64), 4096) == (32, 32, 1, 4) and made == [4]
    assert started(k, (63, 33), 4032) == (32, 17, 1, 4)  # all of the array: nothing is stored beyond
    assert started(k, (62, 33), 4096) == (31, 17, 1, 4)  # not all, but an even number
    assert started(k, (63, 64), 4096) == (63, 64, 1, 0)  # a row of blocks that must not be
    assert started(k, (8, 8), 512) == (8, 8, 1, 0)  # few
    assert started(k, (16, 16), 1024) == (8, 16, 1, 2) and made == [4, 2]  # four in one would be too few
    assert started(k, (64, 64), 4096, 0) == (64, 64, 1, 0) and made == [4, 2]
    forced = make("A", threads=384, coarsen=FUSE, grid_scale=(-2, -1, 1), better=better)
    assert started(forced, (7, 3), 448) == (4, 3, 1, 0)
    assert started(forced, (7, 3), 449) == (7, 3, 1, 1) and made == [4, 2, 1]
    busy = make("A", threads=384, coarsen=FUSE | {"beside": 100_000}, better=better)
    assert started(busy, (64, 64), 4096) == (32, 64, 1, 2)  # 579,232 cycles, 527,680 of two in one, 694,912 of four
    busy = make("A", threads=384, coarsen=FUSE | {"beside": 200_000}, better=better)
    assert started(busy, (64, 64), 4096) == (64, 64, 1, 0)  # 679,232 and 727,680
    whole = {"blocks": (1, 1, 1), "cycles": 746, "alone": 576, "bytes": 16384}
    pair = {"blocks": (2, 1, 1), "cycles": 1250, "alone": 1250, "bytes": 24576}
    late = make("A", threads=384, coarsen=FUSE | {"plans": [whole, pair]}, better=better)
    assert started(late, (14, 10), 896) == (14, 10, 1, 0)  # in the second turn only eight load: 1322 for two steps
    late = make("A", threads=384, coarsen=FUSE | {"plans": [whole | {"alone": 746}, pair]}, better=better)
    assert started(late, (14, 10), 896) == (7, 10, 1, 2)  # 1492


@case()
def tiles_counted_in_one_number() -> None:
    """Rows and columns of 64: those of the array's first extents; a grid of another number of blocks is left alone."""
    rows, columns = (r.factor(word, 63, 64) for word in (1, 2))

    def better(kind: str, number: int) -> Any:
        assert (kind, number) == ("as_launched", 0)
        return cuda(384, 1)

    def started(tiles: dict[str, Any], grid: tuple[int, ...], *shape: int) -> tuple[int, ...]:
        k = make("A", threads=384, tile_grid=tiles, better=better)
        _core.launch(0x5001, grid, k, (on(0, *shape),))
        return (*fake.last.grid, fake.last.shared_bytes)

    grid = {"rows": [rows], "columns": [columns], "any": 0}
    assert started(grid, (12,), 200, 180) == (4, 3, 1, 0)
    assert started(grid, (12, 5), 200, 180) == (4, 3, 5, 0)
    assert started(grid, (11,), 200, 180) == (11, 1, 1, 1)
    assert started(grid, (12, 1, 2), 200, 180) == (12, 1, 2, 1)
    assert started(grid, (12,), 200, 0) == (12, 1, 1, 1)
    assert started(grid | {"columns": []}, (8,), 200, 180) == (4, 2, 1, 0)
    assert started(grid | {"columns": []}, (9,), 200, 180) == (9, 1, 1, 1)
    assert started(grid | {"any": 1}, (5, 2, 2), 200, 180) == (4, 3, 1, 0)
    constant = {"word": -1, "plus": 70000, "by": 1}
    assert started(grid | {"any": 1, "columns": [constant]}, (5,), 200, 180) == (5, 1, 1, 1)  # too many on axis 1
    settled = make("A", threads=384, tile_grid=grid)
    refused(LaunchError, "as its tiles have rows times columns", _core.launch, None, 11, settled, (on(0, 200, 180),))


@case()
def arrays_in_rows_and_within_bounds() -> None:
    """A launch computes where rows lie; where they do not lie in the array, it takes another kernel."""
    scalars = [r.factor(word) for word in (3, 4, 5)]
    flat = {
        "array": r.place(0, 1, 16),
        "word": 6,
        "bounds": [{"factors": [n]} for n in scalars[:2]],
        "pitch": scalars[2:],
    }
    part = {"array": r.place(0, 1, 16), "word": 11, "bounds": [{"factors": [scalars[1]]}], "pitch": []}

    def better(kind: str, number: int) -> Any:
        assert (kind, number) == ("as_launched", 0)
        return cuda(384, 1)

    def shown(length: int, *numbers: int, **other: Any) -> Any:
        k = make(*"Asss", threads=384, views=[flat | other, part], better=better)
        _core.launch(0x5001, (1,), k, (on(0, length), *numbers))
        return fake.last.words[6:14] if fake.last.shared_bytes == 0 else None

    rows, address = {"bounds": [{"factors": []}, {"factors": [scalars[1]]}]}, p.device_address(0, 0)
    assert shown(100, 10, 10, 10) == [address, 10, 10, 10, 1, address, 10, 1]
    assert shown(100, 10, 7, 10) == [address, 10, 7, 10, 1, address, 7, 1]
    assert shown(97, 10, 7, 10) == [address, 10, 7, 10, 1, address, 7, 1]  # the last row is as long as it need be
    assert shown(96, 10, 7, 10) is None
    assert shown(100, 9, 7, 10)[1] == 9 and shown(100, 11, 7, 10)[1] == 10  # no more than there are
    assert shown(105, 11, 7, 10) is None
    assert shown(100, 10, 11, 10) is None  # columns go on in the next row
    assert shown(100, 10, 7, 0) is None and shown(100, 0, 7, 10) is None and shown(100, 10, -1, 10) is None
    assert shown(100, 3, 7, 10, **rows)[1] == 10 and shown(101, 3, 7, 10, **rows) is None
    settled = make(*"Asss", threads=384, views=[flat])
    refused(LaunchError, "rows that lie in their array", _core.launch, None, 1, settled, (on(0, 5), 1, 6, 6))


def records_with(field: str, value: Any) -> Iterator[Any]:
    """What is like the value, but for one number that is far beyond its bounds, or one entry that has gone."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield {name: other for name, other in value.items() if name != key} | {"nothing": 1}
            for other in records_with(key, part):
                yield value | {key: other}
    elif isinstance(value, list | tuple):
        yield [*value] * 1100
        for i, part in enumerate(value):
            for other in records_with(field, part):
                yield [*value[:i], other, *value[i + 1 :]]
    else:
        yield from (-(1 << 33), 1 << 33, "x", None)


@case()
def records_that_are_refused() -> None:
    good: dict[str, Any] = {
        "split": SPLIT,
        "slice": CUT,
        "coarsen": FUSE,
        "row_share": SHARE,
        "multicast": r.multicast(1, 1138, 1024, 0, 1365),
        "loaded": [r.place(0, 2, 16)],
        "no_alias": [r.no_alias(0, 1, 32, 3, 2, 32, 0)],
        "tensor_maps": [r.tensor_map(*MAP)],
        "grid_scale": (2, 1, 1),
        "tile_grid": {
            "rows": [{"word": 1, "plus": 63, "by": 64}],
            "columns": [{"word": -1, "plus": 3, "by": 1}],
            "any": 0,
        },
        "views": [
            {
                "array": r.place(0, 1, 16),
                "word": 3,
                "bounds": [{"factors": [{"word": 1, "plus": 63, "by": 64}]}, {"factors": [r.factor(2)]}],
                "pitch": [r.factor(-1, 3)],
            }
        ],
    }
    for field, value in good.items():
        cuda(64, **{field: value})
        for wrong in records_with(field, value):
            refused(Exception, "", lambda wrong=wrong, field=field: cuda(64, **{field: wrong}))
    for field, wrong in {
        "split": SPLIT | {"part_bytes": 0},
        "slice": CUT | {"classes": []},
        "coarsen": FUSE | {"plans": FUSE["plans"][:1]},
        "multicast": r.multicast(2, 1138, 1024, 0, 1365),
        "loaded": [r.place(510, 2, 16)],
        "no_alias": [r.no_alias(0, 1, 32, 510, 2, 32, 0)],
        "views": [{"array": r.place(0, 2, 16), "word": 5, "bounds": [{"factors": []}], "pitch": []}],
        "grid_scale": (0, 1, 1),
        "split_applied": 1,
        "dynamic": 1,
    }.items():
        refused(TileValueError, "launch record: ", lambda wrong=wrong, field=field: cuda(64, **{field: wrong}))
    more = [*CUT["plans"][:2], r.slice_plan((129,), 320, 24576)]
    refused(TileValueError, "slice.plans.parts does not fit", lambda: cuda(64, slice=CUT | {"plans": more}))
    tall = make("A", grid_scale=(1, 4, 1))
    refused(
        LaunchError, "whose tiles are resized: grid (1, 80000, 1)", _core.launch, None, (1, 20000), tall, (on(0, 4),)
    )


@case()
def axes_that_are_exchanged() -> None:
    """Where axis 0 has no more blocks than axis 1 may have; of tiles that are resized those that are started count."""
    kernel, cut = make("A", exchanged_axes=1), make("A", exchanged_axes=1, grid_scale=(2, 1, 1))
    for grid, exchanged in (((5, 7, 3), (7, 5, 3)), ((65535, 2), (2, 65535, 1)), ((65536, 2), (65536, 2, 1))):
        _core.launch(0x5001, grid, kernel, (on(0, 4),))
        assert tuple(fake.last.grid) == exchanged
    for grid, exchanged in (((5, 7), (7, 10, 1)), ((32768, 2), (65536, 2, 1))):
        _core.launch(0x5001, grid, cut, (on(0, 4),))
        assert tuple(fake.last.grid) == exchanged


@case()
def bytes_that_are_refused() -> None:
    record = _core.launch_record(num_threads=64, split=SPLIT)
    for wrong in (b"", b"x", record[:-1], record + b"x", b"TWLR" + bytes(8), record[:4] + b"x" + record[5:]):
        refused(TileValueError, "launch record: ", _core.CudaKernel, PTX, "kernel", wrong)
    refused(TypeError, "", _core.CudaKernel, PTX, "kernel", {"num_threads": 64})


@case()
def arrays_that_overlap() -> None:
    """The kernel takes its two arrays for separate; where they overlap another one is made, once. Or it takes them for
    separate or the same."""
    made: list[Any] = []

    def overlapping(*_: Any) -> Any:
        made.append(cuda(64, 512))
        return made[-1]

    pairs = [r.no_alias(0, 1, 32, 3, 2, 32, 0)]
    k = make("A", "B", threads=64, no_alias=pairs, overlapping=overlapping)
    line, address = on(0, 64), p.device_address(0)  # 256 bytes
    for b, together in [
        (on(0, 8, 8, offset=1024), False),
        (on(0, 8, 8, offset=256), False),
        (on(0, 8, 8, offset=252), True),
        (on(0, 0, 8), False),
        (on(0, 8, 8), True),
        (p.CudaArray(address + 1024, (8, 8), "<f4", strides=(-128, 4)), True),  # its last row is the first in memory
        (p.CudaArray(address + 1024, (8, 8), "<f4", strides=(-96, 4)), False),
    ]:
        for _ in range(2):
            _core.launch(None, (1,), k, (line, b))
            assert fake.last.shared_bytes == (512 if together else 0)
    assert 1 < len(made) < 4  # by the facts of the arrays
    wrong = make("A", "B", threads=64, no_alias=pairs, overlapping=lambda *_: 7)
    refused(Exception, "on_miss returned", _core.launch, None, (1,), wrong, (line, on(0, 8, 8)))
    number = len(made)
    k = make("A", "B", threads=64, no_alias=[r.no_alias(0, 1, 32, 3, 1, 32, 1)], overlapping=overlapping)
    for b, together in [
        (line, False),
        (on(0, 60), True),
        (on(0, 64, offset=4), True),
        (p.CudaArray(address, (32,), "<f4", strides=(8,)), True),
        (on(0, 64, offset=256), False),
    ]:
        _core.launch(None, (1,), k, (line, b))
        assert fake.last.shared_bytes == (512 if together else 0)
    assert len(made) > number
    k = make("A", "B", threads=64, no_alias=[r.no_alias(0, 1, 32, 3, 2, 32, 1)], overlapping=overlapping)
    _core.launch(None, (1,), k, (line, on(0, 8, 8)))
    assert fake.last.shared_bytes == 512  # no array is one of another rank


@case()
def joined_kernels() -> None:
    """Four blocks of a warp as the rows of one, where each of 132 multiprocessors still has two of those."""
    a, words = on(0, 4), [p.device_address(0), 4, 1]
    k = make("A", threads=32, packed_blocks=4)
    many = 4 * 3 * 132 // 4
    for grid, started, rows in [
        ((1,), (1, 1, 1), 1),
        ((many - 1,), (many - 1, 1, 1), 1),
        ((many,), (many // 4, 1, 1), 4),
        ((many + 1,), (many // 4 + 1, 1, 1), 4),
        ((7, 264), (2, 264, 1), 4),
        ((3, 1000), (3, 1000, 1), 1),
        ((4, 2, 132), (1, 2, 132), 4),
    ]:
        _core.launch(None, grid, k, (a,))
        assert (tuple(fake.last.grid), tuple(fake.last.block)) == (started, (32, rows, 1))
        assert fake.words == [*words, *grid, *([1] * (3 - len(grid)))]


@case()
def joined_blocks_of_threads() -> None:
    """Where the launch says how many threads a block has, they are those of a joined one, too."""
    a, words = on(0, 4), [p.device_address(0), 4, 1]
    k = make("A", threads=0, packed_blocks=4, simt=True)
    many = 4 * 3 * 132 // 4
    for grid, started in [((many - 1,), (many - 1, 1, 1)), ((many + 1,), (many // 4 + 1, 1, 1))]:
        _core.launch_threads(None, grid, (96, 2, 1), k, (a,), 0)
        assert (tuple(fake.last.grid), tuple(fake.last.block)) == (started, (96, 2, 1))
        assert fake.words == [*words, *grid, 1, 1]


@case()
def a_plan_that_the_driver_refuses() -> None:
    bad, spills = PTX + " syntax error", PTX + " // local 4096"
    asked = []

    def other(device: int, problem: str | None, local_bytes: int, threads: int = 96) -> Any:
        asked.append((device, problem is not None and "syntax error" in problem, local_bytes))
        return cuda(threads)

    def launched(image: str, maker: Any) -> int:
        variant = cuda(128, image=image)
        variant.or_else(maker, 2048)
        k = _core.Dispatcher("kernel", ("A",), (), lambda *_: variant)
        for _ in range(2):
            _core.launch(None, 1, k, (on(0, 4),))
        return int(fake.last.block[0])

    assert launched(bad, other) == 96 and asked == [(0, True, 0)]
    assert launched(spills, other) == 96 and asked[1:] == [(0, False, 4096)]
    assert launched(spills, lambda *_: None) == 128 and launched(PTX, other) == 128 and len(asked) == 2
    refused(TileCompilationError, "syntax error", launched, bad + " ", lambda *_: None)
    refused(TileCompilationError, "syntax error", launched, bad + "  ", lambda *_: 7)


@case()
def that_no_plan_does_better_is_remembered() -> None:
    import tempfile

    from tilewright import compile as compiler
    from tilewright import tile as ct

    os.environ["TILEWRIGHT_CACHE_DIR"] = tempfile.mkdtemp()
    captured, capture, build = [], compiler.capture_kernel, compiler.build

    def counted_capture(*args: Any, **told: Any) -> Any:
        captured.append(args)
        return capture(*args, **told)

    def build_with_spills(*args: Any) -> Any:
        image = build(*args)
        return image._replace(code=b"// local 4096\n" + image.code)

    def product(A, B, C):
        acc = ct.mma(ct.load(A, (0, 0), (64, 64)), ct.load(B, (0, 0), (64, 64)), ct.zeros((64, 64), ct.float32))
        ct.store(C, (0, 0), acc)

    compiler.capture_kernel, compiler.build = counted_capture, build_with_spills
    half = p.Exchange(p.device_address(0), (64, 64), device=(p.CUDA, 0), dtype=(2, 16, 1))
    counts = []
    for _ in range(2):
        ct.launch(None, 1, ct.kernel(product, slice_tiles=1, coarsen_tiles=1, split_k=1), (half, half, on(0, 64, 64)))
        counts.append(len(captured))
    assert counts[0] > 1 and counts[1] == counts[0] + 1, counts  # each plan that is tried is a capture


@case()
def a_hint_that_spills_is_dropped() -> None:
    import tempfile

    from tilewright import compile as compiler
    from tilewright import tile as ct

    hints, spilled, capture, build = [], [], compiler.capture_kernel, compiler.build

    def told(kernel: Any, *args: Any, **more: Any) -> Any:
        hints.append(kernel.hints)
        return capture(kernel, *args, **more)

    def build_with_spills(*args: Any) -> Any:
        image = build(*args)
        local = spilled[-1] if "occupancy" in hints[-1] else 16
        return image._replace(code=b"// local %d\n" % local + image.code)

    def twice(X):
        ct.store(X, (0,), ct.load(X, (0,), (64,)) * 2)

    compiler.capture_kernel, compiler.build = told, build_with_spills
    for size, kept in ((512, [True, False]), (128, [True, False]), (120, [True])):
        spilled.append(size)
        os.environ["TILEWRIGHT_CACHE_DIR"] = tempfile.mkdtemp()
        hints.clear()
        ct.launch(None, 1, ct.kernel(twice, occupancy=2, dynamic_schedule=0), (on(0, 64),))
        assert ["occupancy" in x for x in hints] == kept, hints
        assert all("dynamic_schedule" in x for x in hints)


@case()
def the_next_plan_is_taken_and_remembered() -> None:
    import tempfile

    from tilewright import tile as ct

    os.environ["TILEWRIGHT_CACHE_DIR"] = tempfile.mkdtemp()

    def product(A, B, C):
        acc = ct.zeros((128, 128), ct.float32)
        for k in range(ct.num_tiles(A, axis=1, shape=(128, 64))):
            acc = ct.mma(ct.load(A, (0, k), (128, 64)), ct.load(B, (k, 0), (64, 128)), acc)
        ct.store(C, (0, 0), acc)

    a, c = on(0, 256, 256), on(0, 256, 256)
    half = p.Exchange(p.device_address(0), (256, 256), device=(p.CUDA, 0), dtype=(2, 16, 1))
    threads = []
    for failures in (0, 1, 0):
        warps = 4 if failures or threads else 8
        kernel = ct.kernel(product, slice_tiles=1, coarsen_tiles=1, split_k=1, num_warps=warps)
        if failures:
            fake.fail("cuLibraryLoadData", 1, 218)
        ct.launch(None, 1, kernel, (half, half, c))
        threads.append(fake.last.block[0])
    assert a and threads[1] == threads[2] > 0, threads  # the third finds what the second one settled on
    plain = ct.kernel(product, slice_tiles=1, coarsen_tiles=1, split_k=1, num_warps=4, dynamic_schedule=0)
    ct.launch(None, 1, plain, (half, half, c))
    assert fake.last.block[0] != threads[2]


@pytest.mark.parametrize("name", case)
def test_cuda(name: str) -> None:
    case.run(__file__, name)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
