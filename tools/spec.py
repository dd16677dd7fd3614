"""The requirements of test/data/spec.tsv by source, and which of them tests name (`make spec`).

A test names what it proves, `@pytest.mark.spec("T-014")`; `pytest --spec-report FILE` says which of these have passed.
All tests are collected for it, since a mark may be made of a table; those of files that cannot be imported here, for
want of a library, are read from their text.
"""

from __future__ import annotations

import collections
import contextlib
import csv
import io
import re
import sys
from pathlib import Path

import pytest

TEST = Path(__file__).resolve().parent.parent / "test"
MARK = re.compile(r"\bspec\(([^)]*)\)")


class Names:
    """A plugin of pytest that notes what the tests name."""

    def __init__(self) -> None:
        self.found: set[str] = set()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        self.found |= {name for item in items for mark in item.iter_markers("spec") for name in mark.args}


def named() -> set[str]:
    texts = (path.read_text() for path in TEST.glob("**/*.py"))
    in_text = {name for text in texts for mark in MARK.findall(text) for name in re.findall(r'"([A-Z]-\d+)"', mark)}
    names = Names()
    with contextlib.redirect_stdout(io.StringIO()):
        pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(TEST)], plugins=[names])
    return in_text | names.found


def main() -> None:
    with open(TEST / "data/spec.tsv", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]
    have, sections = named(), collections.defaultdict(list)
    for key, section, _ in rows:
        sections[key[0], section].append(key)
    for (source, section), keys in sections.items():
        missing = [key for key in keys if key not in have]
        print(f"{source}  {section:<44.44} {len(keys) - len(missing):4} of {len(keys):4}  {' '.join(missing[:12])}")
    for source in sorted({key[0] for key, *_ in rows}):
        keys = [key for key, *_ in rows if key[0] == source]
        print(f"{source}: {sum(key in have for key in keys)} of {len(keys)} are named by a test")


if __name__ == "__main__":
    sys.path.insert(0, str(TEST.parent / "python"))
    main()
