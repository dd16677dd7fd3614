"""include/tilewright/targets.def: every chip has every figure, and every figure says where it comes from."""

from __future__ import annotations

import re
from pathlib import Path

from tilewright import _core, cli
from tilewright import tile as ct
from tilewright.tune import cost

ROOT = Path(__file__).resolve().parents[2]
TABLE = re.sub(r"/\*.*?\*/", "", (ROOT / "include/tilewright/targets.def").read_text(), flags=re.DOTALL)
ROWS = {int(row.split(",")[0]): row for row in TABLE.split("TW_TARGET(")[1:]}
FIELDS = re.findall(r"^  int ([^;]+);", (ROOT / "include/tilewright/machine.h").read_text(), re.MULTILINE)
NAMES = [name.strip() for fields in FIELDS for name in fields.split(",")]


def test_every_chip_has_every_figure() -> None:
    assert len(NAMES) > 20
    assert {80, 86, 89, 90, 100, 120} <= set(ROWS)
    for row in ROWS.values():
        figures = re.findall(r"\.(\w+) = (\w+)\(", row)
        assert [name for name, _ in figures] == NAMES
        assert {source for _, source in figures} <= {"DATASHEET", "MEASURED", "GUESS"}


@ct.kernel
def product(A, B, C):
    acc = ct.zeros((64, 64), C.dtype)
    for k in range(ct.cdiv(A.shape[1], 32)):
        acc = ct.mma(ct.load(A, (ct.bid(0), k), (64, 32)), ct.load(B, (k, ct.bid(1)), (32, 64)), acc)
    ct.store(C, (ct.bid(0), ct.bid(1)), acc)


def test_the_tuner_has_the_rates_of_the_compiler() -> None:
    """By bits: as the clocks of a step that the launch record has for split-K, beside its latency."""
    machine = cost.Machine("", True, 1, 1.0, 1.0, 1, _core.chip(86))
    for bits, dtype in ((16, "f16"), (19, "tf32"), (32, "f32"), (64, "f64")):
        arrays = [f"A={dtype}[?,?]", f"B={dtype}[?,?]", f"C={'f64' if bits == 64 else 'f32'}[?,?]"]
        module = product.capture("sm_86", cli.specialization(product, arrays))
        module.lower("layout")
        told = re.search(r"step_cycles = (\d+)", module.text())
        assert told is not None and int(told[1]) - 64 == 2 * 64 * 64 * 32 / machine.flop_rate(bits), bits


def test_warps_and_threads_of_a_block_are_counted_once() -> None:
    """In machine.h, from which all of C has them."""
    again = re.compile(r"\b\w*(?:WARP|LANE|THREAD)\w* = (?:32|1024)\b(?! \*)")
    files = [path for part in ("lowering", "runtime") for path in (ROOT / part).rglob("*.[ch]")]
    assert len(files) > 200
    assert not [(path.name, found[0]) for path in files if (found := again.search(path.read_text()))]


def test_the_tuner_reads_the_table() -> None:
    for number, row in ROWS.items():
        for name, value in _core.chip(number).items():
            said = re.search(rf"\.{name} = \w+\(([\d* KIB]+)\)", row)
            assert said is not None and eval(said.group(1), {"KIB": 1024}) == value, (number, name)
    assert _core.chip(88) == _core.chip(87)
    assert _core.chip(10) == _core.chip(80)
