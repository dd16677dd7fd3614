"""An op without a rule stops the build: each row of each back end's tables is taken away in turn, and missed."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import twgen

ROOT = Path(__file__).resolve().parents[2]
OPS_FILE = Path(os.environ.get("TW_BIN", ROOT / "build/dev/bin")).parent / "TileOps.json"
pytestmark = pytest.mark.skipif(not OPS_FILE.exists(), reason=f"needs {OPS_FILE.name} of a build tree: make build")


@pytest.fixture(scope="module")
def ops() -> list[Any]:
    return twgen.read_ops(str(OPS_FILE))


@pytest.mark.parametrize("back_end", ["lowering/gpu", "lowering/cpu"])
def test_each_row_is_missed(ops: list[Any], back_end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (back_end, "lowering/upstream_ops.def"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    monkeypatch.setattr(twgen, "ROOT", tmp_path)
    assert not twgen.missing_rules(ops, back_end, twgen.rules_of(back_end))
    needed = set(twgen.needed_rules(ops, back_end))
    assert len([kind for kind in needed if kind.startswith("TILE_")]) > 20
    files, rule = twgen.RULE_ROWS[back_end]
    for path in (tmp_path / back_end).rglob(files):
        text = path.read_text()
        for row in rule.finditer(text):
            path.write_text(text[: row.start()] + text[row.end() :])
            if twgen.missing_rules(ops, back_end, twgen.rules_of(back_end)):
                needed.remove(row.group(1))
        path.write_text(text)
    assert not needed, "nobody misses their rows"


OWN = {
    "dialect/verify.c": ("TileVerifiers.inc", "tile.roles"),
    "dialect/rules.c": ("TileInference.inc", "tile.scan"),
    "lowering/common/legalize.c": ("TileLegalizers.inc", "tile.mod"),
}


@pytest.mark.parametrize("file", OWN)
def test_own_functions_are_missed(file: str, tmp_path: Path) -> None:
    """One that no definition names, and one that a definition names and the file lacks, stop the C compiler."""
    table, op = OWN[file]
    commands = json.loads((OPS_FILE.parent / "compile_commands.json").read_text())
    entry = next(entry for entry in commands if entry["file"] == str(ROOT / file))
    words = [word for word in entry["command"].split() if word != "-c" and not word.endswith("ccache")]
    rows = (OPS_FILE.parent / table).read_text()
    row = re.search(rf"TW_OWN\({twgen.kind_of(op)}, .*\n", rows)
    assert row is not None

    def errors(text: str) -> str:
        (tmp_path / table).write_text(text)
        command = [words[0], f"-I{tmp_path}", *words[1:], "-fsyntax-only"]
        return subprocess.run(command, cwd=entry["directory"], capture_output=True, text=True, timeout=60).stderr

    assert not errors(rows)
    assert "unused" in errors(rows.replace(row.group(), ""))
    assert "undeclared" in errors(rows.replace(row.group(), row.group().replace(")", "_lost)")))


def test_accesses_follow_from_operands(ops: list[Any]) -> None:
    columns = {kind.name: set(kind.columns.split(" | ")) for kind in twgen.our_kinds(str(OPS_FILE))}
    assert columns["tile.load"] == {"TW_READS_ARRAY", "TW_BY_TILE", "TW_HAS_SCRATCH"}
    assert columns["tile.scatter"] == {"TW_WRITES_ARRAY", "TW_BY_ELEMENT"}
    assert columns["tile.tma_store"] >= {"TW_READS_SHARED", "TW_WRITES_SHARED", "TW_WRITES_ARRAY", "TW_STARTS_ASYNC"}
    assert columns["tile.add"] == {"TW_PURE"}


def test_declared_effects_have_a_column(ops: list[Any]) -> None:
    """What an op's definition says of memory, without an operand that it is about, some column says, too."""
    records = json.loads(OPS_FILE.read_text())
    for op in ops:
        columns = set(twgen.columns_of(op, records))
        effects = [records[trait["def"]].get("effects", []) for trait in op["traits"]]
        kinds = {effect["def"] for each in effects for effect in each} - {"MemAlloc"}
        beside = {"PURE", "VARIES", "FLUSHES", "HAS_SCRATCH", "HAS_REGION"}
        assert "PURE" not in columns or columns <= beside, op["opName"]
        assert not kinds or columns & {"ORDERS_THREADS", "ORDERS_ALL"}, op["opName"]
        assert (
            "PURE" in columns
            or columns
            or op["opName"].startswith("alloc_")
            or "_array" in op["opName"]
            or op["opName"] == "dynamic_shared"
        ), op["opName"]


def test_one_way_out_of_memory() -> None:
    """Who asks for memory gets it, or the process ends in one place that says so."""
    files = [
        path for part in ("base", "dialect", "lowering", "runtime", "python/ext") for path in (ROOT / part).rglob("*.c")
    ]
    assert [path.name for path in files if "abort()" in path.read_text()] == ["memory.c"]


def test_values_of_attributes_are_numbered_once() -> None:
    """By the dialect, from which the front end has its tables: capture counts no words of its own."""
    ranks = {"constants.py"}  # which type of a number contains which
    found = []
    for path in (ROOT / "python/tilewright/capture").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            keys, values = (node.keys, node.values) if isinstance(node, ast.Dict) else ([], [])
            numbers = [v.value if isinstance(v, ast.Constant) else None for v in values]
            is_kind = any(isinstance(k, ast.Constant) and k.value == "kind" for k in keys) and type(numbers[0]) is int
            if is_kind or (len(numbers) > 2 and numbers == list(range(len(numbers))) and path.name not in ranks):
                found.append(f"{path.name}:{node.lineno}")
    assert not found


def test_no_op_is_known_by_its_text(ops: list[Any]) -> None:
    """C asks for kinds and columns: a name of an op is only what is built."""
    compares = re.compile(
        r'(?:strn?cmp|tw_str_is|mlirStringRefEqual|mlirStringRefStartsWith)\b[^;]*?"tile\.(\w+)"', re.DOTALL
    )
    ours = {op["opName"] for op in ops}
    files = [path for part in ("dialect", "lowering", "runtime", "python/ext") for path in (ROOT / part).rglob("*.c*")]
    assert len(files) > 200
    assert not [(path.name, name) for path in files for name in compares.findall(path.read_text()) if name in ours]
