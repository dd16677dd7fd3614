"""docs/cutile.md: each public name of cuTile 1.7, and whether it is here. Made of tools/cutile.tsv and what exists.

python tools/cutile.py            # writes the page
python tools/cutile.py check      # says whether it is as it should be
"""

from __future__ import annotations

import csv
import importlib
import inspect
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TABLE, TESTS, PAGE = ROOT / "tools/cutile.tsv", ROOT / "tools/cutile_suite.tsv", ROOT / "docs/cutile.md"

HEAD = """# From cuTile

Each public name of cuTile Python 1.7, each environment variable that it documents, and what it is here, in
`tilewright.tile` and under `tilewright.dropin`. Made by `tools/cutile.py` from
`tools/cutile.tsv` and from what exists; a test holds it to that. A program written for cuTile runs as it is:

```sh sketch
python -m tilewright.dropin script.py
```

or with `import tilewright.dropin; tilewright.dropin.install()` before its first `import cuda.tile`.

What differs everywhere: the text of an error is ours. What is taken here and refused by cuTile, and what else of its
tests does not pass, is listed at the end.

"""

SUITE = """
## Its own tests

cuTile comes with some 9,300 tests. On an H200, through the drop-in, 8,508 of them pass, 413 fail, and 431 are skipped:
204 by themselves, as those for later GPUs, and 227 that import private names. Those below fail here, or cannot run; the
list is `tools/cutile_suite.tsv`.
Files that are about private modules throughout are left out: `test_code_motion`, `test_cli`, `test_cache`,
`test_bytecode` and `test_bytecode_version_compat`.

"""
GROUPS = {
    "bits": "Want the bits of another library",
    "taken": "Are taken here, and refused by cuTile",
    "lacks": "Ask for what is not here",
    "inside": "Look into cuTile's compiler",
    "tilegym": "Of TileGym, a library of operators",
}


def rows(table: Path = TABLE) -> list[dict[str, str]]:
    """name, keywords that cuTile gives it, and what differs here; of TESTS: tests, how many, the group, and why."""
    with table.open(newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def found(name: str) -> Any:
    """What a name of the table is here; None where it is not."""
    from tilewright import dropin, tile, views

    if name.startswith("CUDA_TILE_"):
        return dropin._VARIABLES.get(name, dropin._ALWAYS.get(name))
    if name.startswith("Array.") and (method := views.ARRAY_METHODS.get(name.removeprefix("Array."))):
        return method  # in all executions
    value: Any = importlib.import_module("tilewright") if name.startswith("jax.") else tile
    if name.startswith("jax."):
        importlib.import_module("tilewright.jax")
    for part in name.split("."):
        value = getattr(value, part, None)
    if value is None and name == "tune":
        from tilewright import tune as value
    return value


def missing_keywords(value: Any, keywords: str) -> list[str]:
    """Keywords of the table that the thing does not take."""
    if not keywords:
        return []
    from tilewright.kernel import kernel

    takes_hints = value is kernel
    own = {*kernel.hint_names, "num_worker_warps"} if takes_hints else _by_name(value)
    return [k for k in keywords.split() if k not in own]


def _by_name(value: Any) -> set[str]:
    parameters = inspect.signature(value).parameters.values()
    return {p.name for p in parameters if p.kind is not inspect.Parameter.POSITIONAL_ONLY}


def line(row: dict[str, str]) -> str:
    name, value = row["name"], found(row["name"])
    if value is None:
        return f"| `{name}` | not yet | {row['differs']} |"
    lacks = missing_keywords(value, row["keywords"])
    differs = "; ".join(
        [*([f"no `{'`, `'.join(lacks)}`"] if lacks else []), *([row["differs"]] if row["differs"] else [])]
    )
    return f"| `{name}` | {'differs' if differs else 'yes'} | {differs} |"


def suite() -> str:
    """The tests of cuTile's own suite that do not pass, by group."""
    text = SUITE
    for group, title in GROUPS.items():
        of_group = [row for row in rows(TESTS) if row["group"] == group]
        lines = [f"| `{row['tests']}` | {row['count']} | {row['why']} |" for row in of_group]
        count = sum(int(row["count"]) for row in of_group)
        head = f"### {title}: {count}\n\n| tests | count | why |\n|---|---|---|\n"
        text += head + "\n".join(lines) + "\n\n"
    return text.rstrip("\n") + "\n"


def page() -> str:
    lines = [line(row) for row in rows()]
    here = sum("| not yet |" not in text for text in lines)
    count = f"Of {len(lines)} names {here} are here.\n\n"
    head = count + "| name | here | what differs, or what to write instead |\n|---|---|---|\n"
    return HEAD + head + "\n".join(lines) + "\n" + suite()


def main() -> int:
    sys.path.insert(0, str(ROOT / "python"))
    if sys.argv[1:] != ["check"]:
        PAGE.write_text(page())
        return 0
    if PAGE.read_text() == page():
        return 0
    print("docs/cutile.md is not as it should be; run python tools/cutile.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
