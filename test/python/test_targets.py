"""Each target that is named to a user can be compiled for."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tilewright import cli, compile
from tilewright.times import Times

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python/examples"))


def test_each_name_has_ptx(capsys: pytest.CaptureFixture[str]) -> None:
    from vector_add import vector_add

    key = cli.specialization(vector_add, ["A=f32[?]", "B=f32[?]", "C=f32[?]", "T=1024"])
    table = (ROOT / "lowering/gpu/machine/target.c").read_text()
    numbers = re.findall(r"\{(\d+), \d+\}", table[table.index("known[] =") : table.index("FIRST_ACCELERATED")])
    assert len(numbers) >= 12
    suffixes = {
        number: ["", *("a" if int(number) >= 90 else ""), *("f" if int(number) >= 100 else "")] for number in numbers
    }
    for target in (f"sm_{number}{suffix}" for number in numbers for suffix in suffixes[number]):
        module = vector_add.capture(target, key)
        image = compile.build(module, target, vector_add.name, Times(vector_add.name, target), lambda ptx, _: ptx)
        assert f".target {target}" in image.code.decode()
