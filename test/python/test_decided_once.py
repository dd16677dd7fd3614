"""What one pass decides and writes down, no other decides again: it reads what stands in the IR."""

import re
from pathlib import Path

GPU = Path(__file__).resolve().parents[2] / "lowering/gpu"


def files_with(pattern: str) -> set[str]:
    """Files of the GPU back end, from there."""
    found = re.compile(pattern, re.MULTILINE)
    return {str(path.relative_to(GPU)) for path in GPU.rglob("*.c") if found.search(path.read_text())}


def callers(function: str) -> set[str]:
    return files_with(rf"^[ \t].*\b{function}\(")  # a definition begins its line


def test_warps_are_chosen_by_one_pass() -> None:
    assert callers("tw_launch_set_num_warps") == {"plan_block.c"}
    # Slices and coarser tiles ask before there is a decision: what a whole tile would get.
    assert callers("tw_mma_num_warps") == {"plan_block.c", "grid/slice_tiles.c", "grid/coarsen_tiles.c"}
    assert callers("tw_strip_mine_warps") == callers("tw_memory_num_warps") == {"plan_block.c"}


def test_the_grid_is_planned_by_one_pass() -> None:
    assert callers("tw_grid_plan_write") == {"grid/plan_grid.c"}
    assert callers("tw_raster_choose") == {"grid/plan_grid.c"}


def test_barriers_are_built_where_it_is_said_what_they_order() -> None:
    assert files_with('"tile\\.barrier"') == {"facts/barrier.c"}
