"""What a user hears of plans that the chip cannot run as they are: slower copies, tiles too large for a block."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilewright import cli
from tilewright import tile as ct
from tilewright.errors import TileError

sys.path.insert(0, str(Path(__file__).parents[2] / "python" / "examples"))
import matmul


def lower(kernel: Any, *arguments: str) -> list[str]:
    """The compiler's remarks."""
    module = kernel.capture("sm_90a", tuple(cli.parse_argument(a)[1] for a in arguments))
    return [message for _, _, message in module.lower("llvm")]


def gemm(
    suffix: str = "", tiles: tuple[int, int, int] = (128, 128, 64), dtype: str = "bf16", whole: bool = False
) -> list[str]:
    """`whole`: however large the tile is, a block computes it."""
    kernel = matmul.matmul.replace_hints(slice_tiles=1) if whole else matmul.matmul
    arrays = [f"{name}={dtype}[?,?]{suffix}" for name in "ABC"]
    return lower(kernel, *arrays, *(f"T{name}={extent}" for name, extent in zip("MNK", tiles, strict=True)))


def test_aligned_arrays_are_copied_in_whole_lines() -> None:
    assert not [text for text in gemm() if "its array" in text]


def test_narrow_copies_are_told() -> None:
    told = [text for text in gemm("unaligned") if "its array" in text]
    assert len(told) == 2
    assert all("pieces of up to 2 bytes" in text and "multiples of 16 bytes" in text for text in told)


def test_arrays_without_a_stride_of_one_are_told() -> None:
    strided = np.empty((512, 1024), np.float16)[:, ::2]
    key = matmul.matmul.specialization((strided, strided, strided, 128, 128, 64))[1]
    module = matmul.matmul.capture("sm_90a", key)
    told = [message for _, _, message in module.lower("llvm") if "its array" in message]
    assert len(told) == 2 and all("no stride of its array is 1" in text for text in told)


def test_shared_memory_over_budget_names_the_tile() -> None:
    with pytest.raises(TileError, match=r"needs 262144 bytes of shared memory for a tile of \(512, 256\) bfloat16"):
        gemm("unaligned", tiles=(512, 256, 64), whole=True)


def test_operands_over_budget_are_taken_in_steps() -> None:
    told = gemm(tiles=(256, 256, 128), whole=True)
    assert any("is done in 2 steps of 64 along k" in text for text in told)


def test_operands_over_budget_that_stay_choose_a_smaller_plan() -> None:
    """The left operand is loaded once, before the loop."""

    @ct.kernel
    def kept(A, B, C):
        a = ct.load(A, index=(ct.bid(0), 0), shape=(128, 256))
        for j in range(ct.num_tiles(B, axis=1, shape=(256, 256))):
            c = ct.mma(a, ct.load(B, index=(0, j), shape=(256, 256)), ct.zeros((128, 256), dtype=ct.float32))
            ct.store(C, index=(ct.bid(0), j), tile=c)

    told = lower(kept, "A=bf16[?,?]", "B=bf16[?,?]", "C=f32[?,?]")
    assert any("do not fit into shared memory twice" in text for text in told)


@pytest.mark.parametrize(("tiles", "parts"), [((256, 256, 64), 2), ((128, 512, 64), 2), ((512, 512, 64), 8)])
def test_registers_over_budget_choose_a_smaller_tile(tiles: tuple[int, int, int], parts: int) -> None:
    told = gemm(tiles=tiles)
    assert any(f"slices each tile over {parts} blocks" in text for text in told)
    assert not any("registers of each thread" in text for text in told)


def test_registers_over_budget_name_the_tile() -> None:
    told = gemm(tiles=(256, 256, 64), whole=True)
    assert any("registers of each thread for its tile of 256x256xf32" in text for text in told)


def test_a_tile_that_no_block_can_hold() -> None:
    @ct.kernel
    def kernel(X, T: ct.Constant):
        x = ct.load(X, index=0, shape=T)
        ct.store(X, index=0, tile=ct.reshape(ct.transpose(ct.reshape(x, (2048, 2048))), T))

    with pytest.raises(TileError, match=r"makes a tile of \(4194304,\) float32"):
        lower(kernel, "X=f32[?]", "T=4194304")


def test_each_of_many_products_is_widened(tmp_path: Path) -> None:
    """As many as a program writes: sm_80 multiplies no 8-bit floats."""
    step = "    acc = ct.mma(ct.load(A, (0, {0}), (16, 32)), ct.load(B, ({0}, 0), (32, 16)), acc)\n"
    text = "from tilewright import tile as ct\n\n\n@ct.kernel\ndef many(A, B, C):\n"
    text += "    acc = ct.zeros((16, 16), ct.float32)\n" + "".join(map(step.format, range(70)))
    path = tmp_path / "many.py"
    path.write_text(text + "    ct.store(C, (0, 0), acc)\n")
    kernel = runpy.run_path(str(path))["many"]
    a, b = np.zeros((16, 2240), ml_dtypes.float8_e5m2), np.zeros((2240, 16), ml_dtypes.float8_e5m2)
    module = kernel.capture("sm_80", kernel.specialization((a, b, np.zeros((16, 16), np.float32)))[1])
    module.lower("layout")
    assert module.text().count("arith.extf") == 2 * 70
