"""include/tilewright/targets.def: every chip has every figure, and every figure says where it comes from."""

from __future__ import annotations

import re
from pathlib import Path

from tilewright import _core

ROOT = Path(__file__).resolve().parents[2]
TABLE = re.sub(r"/\*.*?\*/", "", (ROOT / "include/tilewright/targets.def").read_text(), flags=re.DOTALL)
ROWS = {int(row.split(",")[0]): row for row in TABLE.split("TW_TARGET(")[1:]}
FIELDS = re.findall(r"^  int ([^;]+);", (ROOT / "include/tilewright/machine.h").read_text(), re.MULTILINE)
NAMES = [name.strip() for fields in FIELDS for name in fields.split(",")]


def test_every_chip_has_every_figure() -> None:
    assert len(NAMES) > 20
    assert {80, 86, 89, 90, 100, 120} <= set(ROWS)
    for row in ROWS.values():
        figures = re.findall(r"\.(\w+) = (\w+)\(", row)
        assert [name for name, _ in figures] == NAMES
        assert {source for _, source in figures} <= {"DATASHEET", "MEASURED", "GUESS"}


def test_warps_and_threads_of_a_block_are_counted_once() -> None:
    """In machine.h, from which all of C has them."""
    again = re.compile(r"\b\w*(?:WARP|LANE|THREAD)\w* = (?:32|1024)\b(?! \*)")
    files = [path for part in ("lowering", "runtime") for path in (ROOT / part).rglob("*.[ch]")]
    assert len(files) > 200
    assert not [(path.name, found[0]) for path in files if (found := again.search(path.read_text()))]


def test_the_tuner_reads_the_table() -> None:
    for number, row in ROWS.items():
        for name, value in _core.chip(number).items():
            said = re.search(rf"\.{name} = \w+\(([\d* KIB]+)\)", row)
            assert said is not None and eval(said.group(1), {"KIB": 1024}) == value, (number, name)
    assert _core.chip(88) == _core.chip(87)
    assert _core.chip(10) == _core.chip(80)
