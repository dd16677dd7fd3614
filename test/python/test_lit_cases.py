"""A case of the lit tests fits a screen: what it checks, and the one function that it is checked on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 60


def cases(text: str) -> Iterator[list[str]]:
    """The lines of each, without empty ones: up to the end of a function, and of its module."""
    for part in re.split(r"^// -----.*$", text, flags=re.MULTILINE):
        lines: list[str] = []
        for line in filter(str.strip, part.splitlines()):
            lines.append(line)
            if line in ("  }", "}"):
                yield lines
                lines = []
        yield lines


def test_cases_fit_a_screen() -> None:
    files = sorted((ROOT / "test").rglob("*.mlir"))
    lengths = {
        (str(file.relative_to(ROOT)), len(case), case[0]) for file in files for case in cases(file.read_text()) if case
    }
    assert len(lengths) > 500
    assert not [case for case in lengths if case[1] > LIMIT]
