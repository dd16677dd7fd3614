"""Each field of include/tilewright/launch_record.def is set by the files that its row names, and by no others; those
that it names as readers read it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
FIELD = re.compile(r"^TW_FIELD_(NUMBER|NUMBERS|STRUCT|LIST)\((.*?)\)\n(?=TW_)", re.MULTILINE | re.DOTALL)
TEXT = re.compile(r'"([^"]*)"')


class Field(NamedTuple):
    name: str
    writers: set[str]
    readers: set[str]


def fields() -> list[Field]:
    rows = FIELD.findall((ROOT / "include/tilewright/launch_record.def").read_text())
    found = []
    for _, row in rows:
        *_, writers, readers = TEXT.findall(row)
        found.append(Field(row.split(",")[1].strip(), set(writers.split(", ")), set(readers.split(", "))))
    return found


SOURCES = {str(path.relative_to(ROOT)): path.read_text() for path in (ROOT / "lowering").rglob("*.c")}


def test_all_fields_are_looked_at() -> None:
    text = (ROOT / "include/tilewright/launch_record.def").read_text()
    assert len(fields()) == len(re.findall(r"^TW_FIELD_", text, re.MULTILINE))


@pytest.mark.parametrize("field", fields(), ids=lambda field: field.name)
def test_the_row_names_who_sets_the_field(field: Field) -> None:
    setter = re.compile(rf"\btw_launch_set_{field.name}\(")
    assert field.writers == {path for path, text in SOURCES.items() if setter.search(text)}


@pytest.mark.parametrize("field", fields(), ids=lambda field: field.name)
def test_the_row_names_who_reads_the_field(field: Field) -> None:
    reads = re.compile(
        rf'(?:->|\.)(?:has_|num_)?{field.name}\b|\btw_launch_(?:has_|get_)?{field.name}\(|\["{field.name}"\]'
    )
    for path in field.readers:
        assert reads.search((ROOT / path).read_text()), f"{path} does not read {field.name}"
