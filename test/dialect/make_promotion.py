"""Writes one function for each cell of the promotion table: its result type, or its error, is what the table says.

`tile.select` shows the common dtype, because it also takes the dtypes that have no arithmetic.
"""

import csv
import sys
from pathlib import Path

SPELLING = {
    "bool_": "i1",
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "bfloat16": "bf16",
    "tfloat32": "tf32",
    "float8_e4m3fn": "f8E4M3FN",
    "float8_e5m2": "f8E5M2",
    "float8_e8m0fnu": "f8E8M0FNU",
    "float4_e2m1fn": "f4E2M1FN",
}
for bits in (8, 16, 32, 64):
    SPELLING[f"int{bits}"] = f"i{bits}"
    SPELLING[f"uint{bits}"] = f"ui{bits}"

print("// Made by make_promotion.py.")
for cell in csv.DictReader(Path(sys.argv[1]).read_text().splitlines()):
    row, column = (SPELLING[cell[key]] for key in ("row", "column"))
    common = SPELLING.get(cell["result"])
    print("// -----")
    print(f"func.func @cell(%c: i1, %x: {row}, %y: tensor<4x{column}>) -> tensor<4x{common or row}> {{")
    if common is None:
        error = f"no implicit promotion between {cell['row']} and {cell['column']}; convert one operand"
        print(f"  // expected-error @below {{{{'tile.select' op {error}}}}}")
    print(f"  %0 = tile.select %c, %x, %y : i1, {row}, tensor<4x{column}>")
    print(f"  return %0 : tensor<4x{common or row}>\n}}")
