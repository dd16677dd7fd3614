"""Writes functions with one op each, whose operands, result and attributes are chosen at random: mostly malformed IR.

    make_malformed.py OPS.json SEED COUNT

OPS.json (llvm-tblgen -dump-json) names the ops; the attributes are whatever any op has.
"""

import json
import random
import sys
from pathlib import Path

SCALARS = [
    "i1",
    "i8",
    "ui8",
    "si8",
    "i32",
    "ui64",
    "i7",
    "f32",
    "bf16",
    "tf32",
    "f8E8M0FNU",
    "f4E2M1FN",
    "f80",
    "index",
]
SHAPES = ["", "1x", "4x", "4x8x", "8x4x", "3x", "0x", "?x", "4x1x1x", "1x1x1x1x1x1x1x1x1x", "65536x65536x"]
LAYOUT = "#tile.linear<register = [[1]]>"
OTHERS = ["none", "vector<4xf32>", "memref<*xf32>", "tensor<*xf32>", "complex<f32>", "tuple<>", "tensor<4xindex>"]
OTHERS += [f"!tile.buffer<2x4xf32, {LAYOUT}>", f"tensor<2xf32, {LAYOUT}>", "memref<4xi7>", "memref<?xvector<4xf32>>"]
ATTRIBUTES = {
    "axis": ["0 : i32", "1 : i32", "-5 : i32", "99 : i32", "0 : i64", '"x"', "unit"],
    "order": ["array<i32: 0, 1>", "array<i32: 1, 1>", "array<i32>", "array<i32: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9>", "[0]"],
    "padding": ["0 : i32", "3 : i32", "77 : i32", "unit"],
    "kind": ["0 : i32", "5 : i32", "6 : i32", "1.0 : f32"],
    "value": ["1 : i32", "1.0 : f32", "dense<1> : tensor<4xi32>", "dense<1> : tensor<3xi8>", '"x"', "unit"],
    "operandSegmentSizes": [
        "array<i32: 1, 1, 0, 0>",
        "array<i32: 1, 1, 1, 1>",
        "array<i32: 2, 9>",
        "array<i32: -1, 2, 0, 0>",
    ],
    "format": ['"{} {}"', '"{}"', '""', "1 : i32"],
    "message": ['"no"', "unit"],
    "is_unsigned": ["unit", "array<i1: true>", "1 : i32"],
    "integral": ["unit", "1 : i32"],
    "check_bounds": ["unit"],
    "unsigned_lhs": ["unit"],
    "offset": ["0 : i32"],
    "pending": ["0 : i32"],
}


def random_type(pick: random.Random) -> str:
    kind = pick.random()
    if kind < 0.25:
        return pick.choice(SCALARS)
    if kind < 0.6:
        return f"tensor<{pick.choice(SHAPES)}{pick.choice(SCALARS)}>"
    if kind < 0.9:
        return f"memref<{pick.choice(SHAPES[:8])}{pick.choice(SCALARS)}>"
    return pick.choice(OTHERS)


def random_function(pick: random.Random, ops: list[str]) -> str:
    few = [random_type(pick) for _ in range(2)]  # often equal types, so that some ops get past the first check
    operands = [
        pick.choice(few) if pick.random() < 0.7 else random_type(pick)
        for _ in range(pick.choice([0, 1, 1, 2, 2, 3, 4]))
    ]
    results = [pick.choice(few) for _ in range(pick.choice([0, 1, 1, 1, 2]))]
    chosen = pick.sample(sorted(ATTRIBUTES), pick.choice([0, 1, 2, 3]))
    attributes = ", ".join(f"{name} = {pick.choice(ATTRIBUTES[name])}" for name in chosen)
    arguments = ", ".join(f"%a{i}: {t}" for i, t in enumerate(operands))
    uses = ", ".join(f"%a{i}" for i in range(len(operands)))
    types = f"({', '.join(operands)}) -> ({', '.join(results)})"
    bind = f"%r:{len(results)} = " if results else ""
    return (
        f'func.func @f({arguments}) {{\n  {bind}"tile.{pick.choice(ops)}"({uses}) {{{attributes}}} : {types}\n'
        "  return\n}\n"
    )


def main() -> None:
    records = json.loads(Path(sys.argv[1]).read_text())
    ops = sorted(records[name]["opName"] for name in records["!instanceof"]["Tile_Op"])
    pick = random.Random(int(sys.argv[2]))
    print("\n// -----\n\n".join(random_function(pick, ops) for _ in range(int(sys.argv[3]))))


main()
