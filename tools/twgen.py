#!/usr/bin/env python3
"""Derives what follows from the op definitions (dialect/*.td) and the promotion table.

    twgen.py op-table OPS.json OUT     rows of dialect/op_table.c (build time)

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


def main(arguments: list[str]) -> int:
    match arguments:
        case ["op-table", ops, out]:
            Path(out).write_text(op_table(read_ops(ops)))
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
