#!/usr/bin/env python3
"""Derives what follows from the op definitions (dialect/TileOps.td).

    twgen.py op-table OPS.json OUT   rows of dialect/op_table.c (build time)
    twgen.py rules OPS.json          1 if a back end has no rule for what an op becomes (build time)
    twgen.py generate OPS.json       docs/dialect.md, docs/ops/ and python/tilewright/_optable.py, which are committed
    twgen.py check OPS.json          1 if one of these is not what would be written

OPS.json is what `llvm-tblgen -dump-json dialect/TileOps.td` prints.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
Record = dict[str, Any]

UPSTREAM = ("floatOp", "signedOp", "unsignedOp", "boolOp")
KINDS = {"b": "bool", "i": "integers", "f": "floats", "n": "narrow floats"}
RULES = {
    "promote": "the common dtype of the operands",
    "float": "the common dtype of the operands; float32 where that is an integer",
    "bool": "bool_, after promotion of the operands",
    "same": "the dtype of the operand",
}


def read_ops(path: str) -> list[Record]:
    """The records of the dialect's ops, sorted by the name of the op."""
    records = json.loads(Path(path).read_text())
    ops = [records[name] for name in records["!instanceof"]["Tile_Op"]]
    return sorted(ops, key=lambda op: op["opName"].encode())


# --- For C ---------------------------------------------------------------------------------------


def op_table(ops: list[Record]) -> str:
    """One TW_OP row an op."""
    rows = []
    for op in ops:
        upstream = ", ".join(f'"{op[field]}"' for field in UPSTREAM)
        rule = op["resultRule"].upper()
        rows.append(f'TW_OP("tile.{op["opName"]}", "{op["accepts"]}", {rule}, {upstream})\n')
    return "".join(rows)


# Ops without an elementwise rule that legalization replaces all the same.
LEGALIZED = ("cast", "constant")


def lowered_names(op: Record) -> list[str]:
    """The names under which an op reaches the back ends."""
    if op["resultRule"] == "own" and op["opName"] not in LEGALIZED:
        return [f"tile.{op['opName']}"]
    return list(dict.fromkeys(op[field] for field in UPSTREAM if op[field]))


# A back end's tables: where they are, and what in them a row is.
RULE_TABLES = {
    "lowering/cpu": ("*.c", r"^const cpu_rule_t cpu_\w+_rules\[\] = \{$.*?^\};$", r'"(\w+\.\w+)"'),
    "lowering/gpu": ("rules.def", r".*", r'^TWG_RULE\("([\w.]+)"'),
}


def rule_names(back_end: str) -> list[str]:
    """The op of each row of a back end's tables. Other places where a file names an op are no rules."""
    files, table, row = RULE_TABLES[back_end]
    texts = [path.read_text() for path in sorted((ROOT / back_end).rglob(files))]
    tables = [match for text in texts for match in re.findall(table, text, re.MULTILINE | re.DOTALL)]
    return [name for text in tables for name in re.findall(row, text, re.MULTILINE)]


def missing_rules(ops: list[Record], back_end: str, names: list[str]) -> list[str]:
    """What is said of each op that has no row."""
    wanted = [op for op in ops if back_end == "lowering/gpu" or "GpuOps.td" not in op["!locs"][-1]]
    return [
        f"{back_end}: no rule for {name}, which tile.{op['opName']} becomes"
        for op in wanted
        for name in lowered_names(op)
        if name not in names
    ]


def check_rules(ops: list[Record]) -> int:
    missing = [text for back_end in RULE_TABLES for text in missing_rules(ops, back_end, rule_names(back_end))]
    print(*missing, sep="\n", end="\n" if missing else "", file=sys.stderr)
    return bool(missing)


# --- For Python ----------------------------------------------------------------------------------

PYTHON_HEAD = '''"""The operations of tile code as the dialect defines them. Made by tools/twgen.py; do not edit."""

from __future__ import annotations

from typing import NamedTuple


class Op(NamedTuple):
    """An operation.

    Attributes:
        name: the op of the dialect.
        public: its name in `tilewright.tile`.
        operator: the Python operator that means the same, or "".
        numpy: its meaning, an expression over x, y and z, or "".
        accepts: letters of the kinds of dtype it takes: b(ool), i(nteger), f(loat), n(arrow float).
        result: the rule of its result's dtype: promote, float, bool, same, or own.
        operands: how many tiles it takes, where it is elementwise; else 0.
        summary: what it does.
    """

    name: str
    public: str
    operator: str
    numpy: str
    accepts: str
    result: str
    operands: int
    summary: str


OPS: tuple[Op, ...] = (
'''


def count_operands(op: Record) -> int:
    """Tiles that an elementwise op takes; 0 for the others."""
    if op["resultRule"] == "own":
        return 0
    return sum(argument[0]["def"] == "Tile_Value" for argument in op["arguments"]["args"])


def python_table(ops: list[Record]) -> str:
    lines = [PYTHON_HEAD]
    for op in ops:
        if not op["pyName"]:
            continue
        texts = (f"tile.{op['opName']}", op["pyName"], op["pyOperator"], op["numpy"], op["accepts"], op["resultRule"])
        lines.append("    Op(\n")
        lines += [f"        {json.dumps(text)},\n" for text in texts]
        lines.append(f"        {count_operands(op)},\n")
        lines.append(f"        {json.dumps(op['summary'], ensure_ascii=False)},\n    ),\n")
    lines.append(")\n\nBY_PUBLIC: dict[str, Op] = {op.public: op for op in OPS}\n")
    return "".join(lines)


# --- For people ----------------------------------------------------------------------------------


def section_of(op: Record, heads: dict[str, list[tuple[int, str]]]) -> tuple[str, str]:
    """The file and section comment under which an op is defined."""
    file, line = op["!locs"][-1].rsplit(":", 1)
    name = Path(file).name
    before = [head for at, head in heads[name] if at < int(line)]
    return name, before[-1] if before else Path(name).stem


def read_heads(path: Path) -> list[tuple[int, str]]:
    """Line numbers and texts of the section comments of a .td file."""
    lines = path.read_text().split("\n")
    heads = []
    for number, line in enumerate(lines):
        if number and lines[number - 1].startswith("//===---") and re.match(r"// \w", line):
            heads.append((number + 1, line.removeprefix("// ").strip()))
    return heads


def argument_names(op: Record, key: str) -> str:
    names = [f"`{name}`" for _, name in op[key]["args"] if name]
    return ", ".join(names) if names else "none"


def document_op(op: Record) -> str:
    rows = [f"### `tile.{op['opName']}`\n", f"{op['summary'][:1].upper()}{op['summary'][1:]}.\n"]
    if op["description"].strip():
        rows.append(textwrap.dedent(op["description"].strip("\n")).strip() + "\n")
    facts = []
    if op["pyName"]:
        operator = f", operator `{op['pyOperator']}`" if op["pyOperator"] else ""
        facts.append(f"In Python: `ct.{op['pyName']}`{operator}")
    if op["numpy"]:
        facts.append(f"Means: `{op['numpy']}`")
    facts.append(f"Operands and attributes: {argument_names(op, 'arguments')}")
    if op["accepts"]:
        facts.append("Takes: " + ", ".join(KINDS[letter] for letter in op["accepts"]))
    if op["resultRule"] in RULES:
        facts.append(f"Result: {RULES[op['resultRule']]}")
    upstream = [op[field] for field in UPSTREAM if op[field]]
    if upstream:
        facts.append("Becomes: " + ", ".join(f"`{name}`" for name in dict.fromkeys(upstream)))
    facts.append(f"Since: {op['since']}")
    rows.append("\n".join(f"- {fact}" for fact in facts) + "\n")
    return "\n".join(rows)


PAGES = {
    "TileOps.td": ("tile.md", "Operations of tile code", "What the front end emits."),
    "GpuOps.td": ("gpu.md", "Operations on layouts and shared memory", "What only the passes of the GPU make."),
    "SimtOps.td": ("simt.md", "Operations of threads", "What SIMT kernels add."),
}


def pages(ops: list[Record]) -> dict[Path, str]:
    """docs/ops: a page for each .td file."""
    heads = {name: read_heads(ROOT / "dialect" / name) for name in PAGES}
    texts: dict[Path, str] = {}
    for name, (page, title, intro) in PAGES.items():
        mine = [op for op in ops if section_of(op, heads)[0] == name]
        mine.sort(key=lambda op: int(op["!locs"][-1].rsplit(":", 1)[1]))
        text, last = [f"<!-- Made by tools/twgen.py from dialect/{name}; do not edit. -->\n# {title}\n\n{intro}\n"], ""
        for op in mine:
            section = section_of(op, heads)[1]
            if section != last and heads[name]:
                text.append(f"## {section}\n")
            last = section
            text.append(document_op(op))
        texts[ROOT / "docs/ops" / page] = "\n".join(text)
    return texts


def overview(ops: list[Record]) -> str:
    """docs/dialect.md: the ops as tables, those that Python sees, then those that only passes make."""
    lines = ["# The operations of the `tile` dialect", "", "Made by `tools/twgen.py` from `dialect/*.td`.", ""]
    lines += ["More on each: [tile code](ops/tile.md), [GPU](ops/gpu.md), [threads](ops/simt.md).", ""]
    lines += ["## As Python has them", "", "| `tilewright.tile` | op | what it computes | in NumPy | dtypes |"]
    lines += ["|---|---|---|---|---|"]
    for op in sorted((op for op in ops if op["pyName"]), key=lambda op: op["pyName"].rstrip("_")):
        kinds = ", ".join(KINDS[kind] for kind in op["accepts"])
        numpy = f"`{op['numpy']}`" if op["numpy"] else ""
        python = f"`{op['pyName'].rstrip('_')}`"
        lines.append(f"| {python} | `tile.{op['opName']}` | {cell(op['summary'])} | {numpy} | {kinds} |")
    lines += ["", "## Of the compiler", "", "| op | what it does |", "|---|---|"]
    lines += [f"| `tile.{op['opName']}` | {cell(op['summary'])} |" for op in ops if not op["pyName"]]
    return "\n".join(lines) + "\n"


def cell(text: str) -> str:
    return text.replace("|", "\\|")


# --- Front door ----------------------------------------------------------------------------------


def committed(ops: list[Record]) -> dict[Path, str]:
    table = ROOT / "python/tilewright/_optable.py"
    return {table: python_table(ops), ROOT / "docs/dialect.md": overview(ops), **pages(ops)}


def generate(ops: list[Record]) -> int:
    for path, text in committed(ops).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return 0


def check(ops: list[Record]) -> int:
    stale = [path for path, text in committed(ops).items() if not path.exists() or path.read_text() != text]
    for path in stale:
        print(f"{path.relative_to(ROOT)} is out of date: make generate", file=sys.stderr)
    return bool(stale)


def main(arguments: list[str]) -> int:
    match arguments:
        case ["op-table", ops, out]:
            Path(out).write_text(op_table(read_ops(ops)))
            return 0
        case ["rules", ops]:
            return check_rules(read_ops(ops))
        case ["generate", ops]:
            return generate(read_ops(ops))
        case ["check", ops]:
            return check(read_ops(ops))
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
