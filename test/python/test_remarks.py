"""Remarks as `tilewright compile --remarks` shows them: in the user's words, under the user's lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.remarks import sentence, text

SOURCE = """\
def kernel(A):
    for k in range(4):
        é = 'é'; acc = mma(a, b, acc)
"""
REMARK = 3


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("'func.func' op is persistent", "the kernel is persistent"),
        ("'scf.for' op is shared", "the loop is shared"),
        ("'tile.async_mma' op runs as wgmma m64n8k16", "the product runs as wgmma m64n8k16"),
        ("'tile.tma_load' op moves 8x8xf32 by TMA", "the load moves 8x8xf32 by TMA"),
        ("'tile.reduce' op waits", "the reduce waits"),
        ("no op said this", "no op said this"),
    ],
)
def test_remarks_name_what_the_user_wrote(message: str, said: str) -> None:
    assert sentence(message) == said


def test_remarks_stand_under_their_lines_in_the_order_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "k.py"
    file.write_text(SOURCE)
    column = SOURCE.splitlines()[2].encode().index(b"mma") + 1  # MLIR counts bytes
    product = f'callsite("{file}":3:{column} to :{column + 14} at "{tmp_path / "caller.py"}":9:1 to :5)'
    listing = text(
        "kernel for sm_90a",
        [
            (REMARK, product, "'tile.mma' op is first"),
            (REMARK, f'"{file}":1:1 to 3:37', "'func.func' op is persistent"),
            (REMARK, product, "'tile.mma' op is second"),
            (REMARK, product, "'tile.async_mma' op is first"),
            (REMARK, "unknown", "nowhere"),
        ],
    )
    assert listing.splitlines() == [
        "kernel for sm_90a",
        "         nowhere",
        "",
        str(file),
        "    1  def kernel(A):",
        "         the kernel is persistent",
        "    3          é = 'é'; acc = mma(a, b, acc)",
        "                              ^^^^^^^^^^^^^^",
        "         the product is first",
        "         the product is second",
    ]


def test_remarks_without_the_source() -> None:
    listing = text("k for cpu", [(REMARK, '"gone.py":7:1 to :5', "'tile.load' op moves")])
    assert listing.splitlines() == ["k for cpu", "", "gone.py", "    7", "         the load moves"]
