#!/usr/bin/env python3
"""Derives what follows from the op definitions (dialect/*.td) and the promotion table.

    twgen.py op-table OPS.json OUT     rows of dialect/op_table.c (build time)
    twgen.py doc OPS.json OUT          docs/dialect.md
    twgen.py check OPS.json            1 if a file that is committed is not what would be written

OPS.json is what `llvm-tblgen -dump-json dialect/TileOps.td` prints.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

Record = dict[str, Any]


def read_ops(path: str) -> list[Record]:
    """The records of the dialect's ops, sorted by the name of the op."""
    records = json.loads(Path(path).read_text())
    ops = [records[name] for name in records["!instanceof"]["Tile_Op"]]
    return sorted(ops, key=lambda op: op["opName"].encode())


def op_table(ops: list[Record]) -> str:
    """One TW_OP row an op."""
    fields = ("floatOp", "signedOp", "unsignedOp", "boolOp")
    rows = []
    for op in ops:
        upstream = ", ".join(f'"{op[field]}"' for field in fields)
        rule = op["resultRule"].upper()
        rows.append(f'TW_OP("tile.{op["opName"]}", "{op["accepts"]}", {rule}, {upstream})\n')
    return "".join(rows)


KINDS = {"b": "bool", "i": "integer", "f": "float", "n": "any other format"}


def doc(ops: list[Record]) -> str:
    """The ops as tables: those that Python sees, then those that only passes make."""
    lines = ["# The operations of the `tile` dialect", "", "Made by `tools/twgen.py` from `dialect/TileOps.td`.", ""]
    lines += ["## As Python has them", "", "| `tilewright.tile` | op | what it computes | in NumPy | dtypes |"]
    lines += ["|---|---|---|---|---|"]
    for op in sorted((op for op in ops if op["pyName"]), key=lambda op: op["pyName"].rstrip("_")):
        kinds = ", ".join(KINDS[kind] for kind in op["accepts"])
        numpy = f"`{op['numpy']}`" if op["numpy"] else ""
        python = f"`{op['pyName'].rstrip('_')}`"
        lines.append(f"| {python} | `tile.{op['opName']}` | {_cell(op['summary'])} | {numpy} | {kinds} |")
    lines += ["", "## Of the compiler", "", "| op | what it does |", "|---|---|"]
    lines += [f"| `tile.{op['opName']}` | {_cell(op['summary'])} |" for op in ops if not op["pyName"]]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


COMMITTED = {"docs/dialect.md": doc}


def check(ops: list[Record]) -> int:
    root = Path(__file__).resolve().parent.parent
    stale = [name for name, make in COMMITTED.items() if (root / name).read_text() != make(ops)]
    for name in stale:
        print(f"{name} is out of date: make generate", file=sys.stderr)
    return bool(stale)


def main(arguments: list[str]) -> int:
    match arguments:
        case ["op-table", ops, out]:
            Path(out).write_text(op_table(read_ops(ops)))
        case ["doc", ops, out]:
            Path(out).write_text(doc(read_ops(ops)))
        case ["check", ops]:
            return check(read_ops(ops))
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
