"""An op without a rule stops the build: each row of each back end's tables is taken away in turn, and missed."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import twgen

ROOT = Path(__file__).resolve().parents[2]
OPS_FILE = Path(os.environ.get("TW_BIN", ROOT / "build/dev/bin")).parent / "TileOps.json"
pytestmark = pytest.mark.skipif(not OPS_FILE.exists(), reason="needs a build")


@pytest.fixture(scope="module")
def ops() -> list[Any]:
    return twgen.read_ops(str(OPS_FILE))


@pytest.mark.parametrize("back_end", ["lowering/gpu", "lowering/cpu"])
def test_each_row_is_missed(ops: list[Any], back_end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / back_end, tmp_path / back_end)
    monkeypatch.setattr(twgen, "ROOT", tmp_path)
    everything = twgen.missing_rules(ops, back_end, [])
    assert not twgen.missing_rules(ops, back_end, twgen.rule_names(back_end))
    needed = {re.search(r"for (\S+),", text).group(1) for text in everything}  # type: ignore[union-attr]
    assert len([name for name in needed if name.startswith("tile.")]) > 20
    for path in [*(tmp_path / back_end).rglob("*.c"), *(tmp_path / back_end).rglob("*.def")]:
        text = path.read_text()
        for row in re.finditer(r'^(?:TWG_RULE\(| +(?:[A-Z_0-9]+\(|\{))"([\w.]+)", .*\n', text, re.MULTILINE):
            path.write_text(text[: row.start()] + text[row.end() :])
            if twgen.missing_rules(ops, back_end, twgen.rule_names(back_end)):
                needed.remove(row.group(1))
        path.write_text(text)
    assert not needed, "nobody misses their rows"
