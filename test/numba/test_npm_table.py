"""The typing of the No-Python mode, row by row of data/numba_typing.csv: by the rules, and in kernels."""

import csv
import importlib.util
import itertools
from pathlib import Path

import numpy as np
import pytest

from tilewright.capture.numba_rules import NPM

with open(Path(__file__).parent.parent / "data/numba_typing.csv", newline="") as file:
    ROWS = list(csv.DictReader(file))
OPERATORS = sorted({row["op"] for row in ROWS})
IDS = {
    "+": ("N-074", "N-077", "N-093", "N-097"),
    "-": ("N-075", "N-094"),
    "*": ("N-076", "N-095"),
    "//": ("N-078", "N-079", "N-080", "N-081", "N-082", "N-096"),
    "/": ("N-083", "N-084", "N-085", "N-086"),
    "&": ("N-087", "N-092"),
    "|": ("N-088",),
    "^": ("N-089",),
    ">>": ("N-090",),
    "<<": ("N-091",),
}
EACH = pytest.mark.parametrize("op", [pytest.param(op, marks=pytest.mark.spec(*IDS[op])) for op in OPERATORS])
REAL = [t for t in dict.fromkeys(row["left"] for row in ROWS) if not t.startswith("complex")]


@EACH
def test_rules(op):
    rows = [row for row in ROWS if row["op"] == op]
    assert len(rows) == 144
    for row in rows:
        found = NPM.meet(op, row["left"], row["right"])
        expected = None if row["result"] == "ERR" else (row["compute_type"], row["result"])
        assert found == expected, row


def source_of(op, cells):
    """A kernel with one statement a cell of the table: the value, and whether it has the type."""
    names = {name: f"x_{name}" for name in REAL}
    lines = [f"def table({', '.join(names.values())}, values, known):"]
    for place, (left, right, result) in enumerate(cells):
        lines += [
            f"    v{place} = {names[left]}[0] {op} {names[right]}[1]",
            f"    values[{place}] = v{place}",
            f"    known[{place}] = v{place}.dtype == {result}",
        ]
    header = "from tilewright.numba.npm import *\nfrom tilewright.numba.npm import cuda\n\n\n@cuda.jit\n"
    return header + "\n".join(lines) + "\n"


def expected_value(op, left, right, compute, result):
    x, y = (np.array(n).astype(t).astype(compute) for n, t in ((NUMBERS[0], left), (NUMBERS[1], right)))
    with np.errstate(all="ignore"):
        found = {
            "+": np.add, "-": np.subtract, "*": np.multiply, "//": np.floor_divide, "/": np.true_divide,
            "&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor, "<<": np.left_shift, ">>": np.right_shift,
        }[op](x, y)  # a table of several in a line  # fmt: skip
    return found.astype(result).astype(np.float64)


NUMBERS = (109, 3)


@EACH
def test_kernels(op, run, tmp_path):
    rows = [r for r in ROWS if r["op"] == op and r["result"] != "ERR" and {r["left"], r["right"]} <= set(REAL)]
    path = tmp_path / "table_module.py"
    path.write_text(source_of(op, [(r["left"], r["right"], r["result"]) for r in rows]))
    spec = importlib.util.spec_from_file_location("table_module", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    arrays = [np.array(NUMBERS, name) for name in REAL]
    values, known = np.zeros(len(rows)), np.zeros(len(rows), np.bool_)
    *_, values, known = run(module.table, 1, 1, *arrays, values, known)
    wrong = [r for r, is_known in zip(rows, known, strict=True) if not is_known]
    assert not wrong
    expected = [expected_value(op, r["left"], r["right"], r["compute_type"], r["result"]) for r in rows]
    np.testing.assert_array_equal(values, np.array(expected))


@pytest.mark.spec("N-092", "N-096")
@pytest.mark.parametrize("op", ["&", "|", "^", "<<", ">>"])
def test_bits_of_floats_are_refused(op, tmp_path):
    from tilewright.errors import TileTypeError

    path = tmp_path / "bits_module.py"
    path.write_text(
        f"from tilewright.numba.npm import cuda\n\n\n@cuda.jit\ndef bits(x, y):\n    x[0] = x[0] {op} y[0]\n"
    )
    spec = importlib.util.spec_from_file_location("bits_module", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for left, right in itertools.permutations((np.float32, np.int32)):
        with pytest.raises(TileTypeError, match="is not defined; convert to an integer"):
            module.bits[1, 1](np.ones(1, left), np.ones(1, right))
