"""How many files name an op: those that adding one like it would touch, if passes ask its columns and not its name."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import twgen

ROOT = Path(__file__).resolve().parents[2]
OPS_FILE = Path(os.environ.get("TW_BIN", ROOT / "build/dev/bin")).parent / "TileOps.json"
FOLDERS = ("base", "dialect", "include", "lowering", "runtime", "python/ext", "python/tilewright")
C_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
PYTHON_TEXT = re.compile(r'#[^\n]*|""".*?"""', re.DOTALL)
ELEMENTWISE_LIMIT, LIMIT = 4, 6

# Why more files than the limit name an op, how many may, and which ops.
SHAPE = "passes follow elements through ops that move them"
PLACE = "the grid, threads and extents are what indices count with"
EXCEPTIONS = {
    SHAPE: {"reshape": 22, "broadcast": 22, "permute": 17, "iota": 15, "extract": 9},
    PLACE: {"block_id": 19, "num_blocks": 15, "dim": 9},
    "its body is code of a thread, in a kernel of tiles": {"map": 8, "threads": 10},
    "a call may say how to round, a promotion is no call: capture has a handler beside what emits both": {"cast": 5},
}


# A definition, a kind, a name as a string, and where Python declares an op.
NAMES = re.compile(r'\bdef Tile_\w+|\bTW_TILE_\w+|"tile\.\w+"|@op\("\w+"|OPS\["\w+"\]')
# C asks for kinds. A name in quotes is what a pass builds: that needs no other line for one more op like it.
C_NAMES = re.compile(r"\bdef Tile_\w+|\bTW_TILE_\w+")


def names_in(path: Path) -> set[str]:
    is_python = path.suffix == ".py"
    return set(
        (NAMES if is_python else C_NAMES).findall((PYTHON_TEXT if is_python else C_COMMENT).sub("", path.read_text()))
    )


def sources() -> dict[str, set[str]]:
    """The names of ops in the files of the compiler, without comments and without what is generated."""
    suffixes = (".c", ".h", ".def", ".cpp", ".td", ".py")
    paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in suffixes]
    return {str(path.relative_to(ROOT)): names_in(path) for path in paths if path.name != "_optable.py"}


def names_of(record: str, op: dict[str, Any]) -> set[str]:
    kind = twgen.kind_of(f"tile.{op['opName']}")
    python = {f'@op("{op["pyName"]}"', f'OPS["{op["pyName"]}"]'} if op["pyName"] else set()
    return {f"def {record}", f"TW_{kind}", f'"tile.{op["opName"]}"', *python}


def usual_limit(op: dict[str, Any]) -> int:
    return ELEMENTWISE_LIMIT if twgen.form_of(op) == "ELEMENTWISE" else LIMIT


@pytest.mark.skipif(not OPS_FILE.exists(), reason=f"needs {OPS_FILE.name} of a build tree: make build")
def test_few_files_name_an_op() -> None:
    named = sources()
    records = json.loads(OPS_FILE.read_text())
    excepted = {name: limit for limits in EXCEPTIONS.values() for name, limit in limits.items()}
    known = {records[record]["opName"] for record in records["!instanceof"]["Tile_Op"]}
    assert excepted.keys() <= known
    wrong = []
    for record in records["!instanceof"]["Tile_Op"]:
        op = records[record]
        files = sorted(file for file, names in named.items() if names & names_of(record, op))
        assert files, op["opName"]
        limit = excepted.get(op["opName"], usual_limit(op))
        if len(files) > limit:
            wrong.append(f"tile.{op['opName']} is named in {len(files)} files, at most {limit}: {files}")
        if op["opName"] in excepted and len(files) <= usual_limit(op):
            wrong.append(f"tile.{op['opName']} needs no exception: {len(files)} files name it")
    assert not wrong, "\n".join(wrong)
