"""tools/check_layers.py: rooms are layers, generations do not see each other, and no file includes itself."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import check_layers


def write(root: Path, files: dict[str, str]) -> list[str]:
    for name, includes in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("".join(f'#include "{header}"\n' for header in includes.split()))
    return list(files)


def test_circle_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through a .c and the header of the same name, which are one."""
    monkeypatch.setattr(check_layers, "ROOT", tmp_path)
    files = write(tmp_path, {"base/a.h": "", "base/a.c": "base/a.h base/b.h", "base/b.h": "base/c.h", "base/c.h": ""})
    assert check_layers.circles(files) == []
    files = write(tmp_path, {"base/a.h": "", "base/a.c": "base/b.h", "base/b.h": "base/c.h", "base/c.h": "base/a.h"})
    (circle,) = check_layers.circles(files)
    assert circle == "base/c -> base/a -> base/b -> base/c: a circle of files"


@pytest.mark.parametrize(
    ("file", "header", "allowed"),
    [
        ("lowering/gpu/grid/a.c", "lowering/gpu/facts/b.h", True),
        ("lowering/gpu/grid/a.c", "lowering/gpu/memory/b.h", False),
        ("lowering/gpu/facts/a.c", "lowering/gpu/emit/b.h", False),
        ("lowering/gpu/isa/sm80/a.c", "lowering/gpu/isa/sm90/b.h", False),
        ("lowering/gpu/isa/a.c", "lowering/gpu/isa/sm90/b.h", True),
        ("lowering/gpu/roles/a.c", "lowering/gpu/isa/b.h", True),
        ("lowering/gpu/roles/a.c", "lowering/gpu/isa/sm90/b.h", False),
        ("lowering/gpu/a.c", "lowering/gpu/isa/sm90/b.h", False),
        ("lowering/gpu/emit/a.c", "lowering/gpu/emit/rules/b.h", False),
        ("lowering/gpu/a.c", "lowering/gpu/emit/rules/b.h", True),
    ],
)
def test_rooms(file: str, header: str, allowed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_layers, "ROOT", tmp_path)
    monkeypatch.setattr(check_layers, "SEARCH", [str(tmp_path)])
    write(tmp_path, {header: "", file: header})
    assert (check_layers.problems(file) == []) == allowed


@pytest.mark.parametrize(
    ("file", "line", "allowed"),
    [
        ("lowering/gpu/schedule/a.c", "/* waits for a wgmma */", False),
        ("lowering/gpu/roles/a.c", "/* waits for a wgmma */", False),
        ("lowering/gpu/isa/sm90/a.c", "/* waits for a wgmma */", True),
        ("lowering/gpu/facts/a.c", "if (target->number >= sm_90)", False),
        ("lowering/gpu/facts/a.c", '#include "lowering/gpu/isa/sm90/b.h"', False),
        ("lowering/gpu/memory/a.c", "tw_op_is(op, TW_TILE_TMA_LOAD)", True),
        ("lowering/gpu/layout/a.c", "tw_op_is(op, TW_TILE_TMA_LOAD)", False),
        ("lowering/gpu/softmax/online_softmax.c", "fastmath and a softmax", True),
        ("lowering/gpu/grid/a.c", "/* blocks of a cluster */", True),
        ("lowering/gpu/emit/a.c", "/* blocks of a cluster */", False),
        ("lowering/gpu/emit/a.c", "tw_launch_cluster_blocks(op, 1)", True),
        ("runtime/launch.c", "sm_90", True),
    ],
)
def test_hardware_by_name(file: str, line: str, allowed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An instruction, a generation, the copy engine and clusters are named where they are the subject."""
    monkeypatch.setattr(check_layers, "ROOT", tmp_path)
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text(line + "\n")
    assert (check_layers.hardware_named(file) == []) == allowed
