"""The requirements of test/data/spec.tsv by source, and which of them tests name (`make spec`).

A test names what it proves, `@pytest.mark.spec("T-014")`; `pytest --spec-report FILE` says which of these have passed.
"""

from __future__ import annotations

import collections
import csv
import re
from pathlib import Path

TEST = Path(__file__).resolve().parent.parent / "test"
MARK = re.compile(r"\bspec\(([^)]*)\)")


def named() -> set[str]:
    texts = (path.read_text() for path in TEST.glob("**/*.py"))
    return {name for text in texts for mark in MARK.findall(text) for name in re.findall(r'"([A-Z]-\d+)"', mark)}


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
    main()
