"""Metamorphic tests over the examples and the kernels of the zoo: each, rewritten in other words
(test/spellings/rewrite.py), comes to the plan that it has. The assembler is not asked here for registers and spills."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any

import pytest

from tilewright import cli
from tilewright import tile as ct

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "spellings"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "numerics"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python" / "examples"))
import plan
import rewrite
import zoo

import attention
import matmul
import ptx_corpus
import softmax
import vector_add

# A vector of 128 bytes that is loaded beside tiles has as many stages as they; before or behind them, eight. Blocks
# that go along the other axis of the grid first have other clusters, and so other room.
OTHER_RINGS = {("layer norm linear", name) for name in ("swapped", "ahead", "turned")}
# A step beside the loop that is none of it: the loop stores, divides its number, or is there whether it has a step.
OTHER_STEPS = {
    *((title, "first") for title in ("zoo attention linear 0", "zoo cross entropy 0")),
    *(
        (title, "last")
        for title in ("attention", "zoo attention linear 0", "zoo convolution 1 0", "zoo cross entropy 0")
    ),
}
# Keys of a part of a row end where the part does: behind a first step that is done in any case none lies alone.
OTHER_STEPS |= {("zoo attention decode 0", name) for name in ("until", "met")}
# Few rows become the columns of an instruction, as programs do that for themselves.
OTHER_PRODUCTS = {("zoo few rows, 1 parts 0", "transposed")}


EXAMPLES = {
    matmul.matmul: ["A=bf16[?,?]", "B=bf16[?,?]", "C=bf16[?,?]", "TM=128", "TN=256", "TK=64"],
    attention.attention: [*(f"{x}=bf16[?,?,?,128]" for x in "QKVY"), "SCALE=0.125", "TM=128", "TN=128", "D=128"],
    softmax.softmax: ["X=bf16[?,?]", "Y=bf16[?,?]", "TN=4096"],
    vector_add.vector_add: ["A=f32[?]", "B=f32[?]", "C=f32[?]", "T=1024"],
}


def kernels() -> list[Any]:
    """Each once, those of the zoo as their first case has them."""
    found = {id(x): pytest.param(x.name, x, cli.specialization(x, given), id=x.name) for x, given in EXAMPLES.items()}
    for title, kernel, key in ptx_corpus.zoo_rows():
        found.setdefault(id(kernel), pytest.param(title, kernel, key, id=title))
    return list(found.values())


@pytest.mark.parametrize(("title", "kernel", "key"), kernels())
def test_other_words_come_to_the_same_plan(
    title: str, kernel: Any, key: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "assembled", lambda ptx, target: (0, 0, ()))
    plain = plan.of(kernel, key)
    others = {name: rewrite.rewritten(kernel, name, tmp_path) for name in rewrite.REWRITINGS}
    for name, other in others.items():
        if other is None or (title, name) in OTHER_STEPS | OTHER_PRODUCTS:
            continue
        found = plan.of(other, rewrite.key_of(name, key))
        if any(part in title and name == which for part, which in OTHER_RINGS):
            found = dataclasses.replace(found, rings=plain.rings)
        assert found.is_as_good_as(plain), f"{name}: {found}\nand not {plain}"


@pytest.mark.parametrize("name", list(rewrite.REWRITINGS))
@pytest.mark.parametrize("case", ["linear silu", "attention gqa", "layer norm linear"])
def test_other_words_compute_the_same(case: str, name: str, tmp_path: Path) -> None:
    """On the CPU, bit for bit but for the order in which a product adds."""
    found = zoo.CASES[case]
    inputs, outputs = found.arguments()
    for grid, kernel, arguments in found.launches(*inputs, *outputs):
        other = rewrite.rewritten(kernel, name, tmp_path)
        if other is not None:
            grid, arguments = rewrite.REWRITINGS[name].launched(grid, arguments)
        ct.launch(None, grid, other or kernel, arguments)
    assert found.error(outputs, found.expected(inputs)) <= found.tolerance
