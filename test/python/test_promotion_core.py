"""The dialect's promotion rules, cell by cell, through the extension (the IR side is test/dialect/promotion.mlir)."""

import csv
from pathlib import Path

import pytest

from tilewright import _core

DATA = Path(__file__).resolve().parent.parent / "data"


def rows(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader((DATA / name).open()))


@pytest.mark.parametrize("cell", rows("tile_promotion.csv"), ids=lambda c: f"{c['row']}-{c['column']}")
def test_two_dtypes(cell: dict[str, str]) -> None:
    assert (_core.promote(cell["row"], cell["column"]) or "ERR") == cell["result"]


CONSTANTS = [c for c in rows("tile_promotion_constants.csv") if not c["other"].startswith("const:")]


@pytest.mark.parametrize("cell", CONSTANTS, ids=lambda c: f"{c['constant_kind']}-{c['other']}")
def test_constant_and_dtype(cell: dict[str, str]) -> None:
    value = {"True": True}.get(cell["example"]) or float(cell["example"])
    if cell["constant_kind"].startswith("int"):
        value = int(cell["example"])
    assert (_core.promote_constant(value, cell["other"]) or "ERR") == cell["common_dtype"]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_limits_of_a_constant(dtype: str) -> None:
    bits = int(dtype.lstrip("uint"))
    least, most = (0, 2**bits - 1) if dtype[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    assert _core.promote_constant(least, dtype) == dtype
    assert _core.promote_constant(most, dtype) == dtype
    assert _core.promote_constant(least - 1, dtype) is None
    assert _core.promote_constant(most + 1, dtype) is None


def test_answers_in_the_spelling_of_the_question() -> None:
    assert _core.promote("i8", "f16") == "f16"
    assert _core.promote("int8", "float16") == "float16"
    assert _core.constant_dtype(1 << 40) == "i64"
    assert _core.constant_dtype(1 << 70) is None


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError, match="no dtype is named 'complex64'"):
        _core.promote("int8", "complex64")
    with pytest.raises(TypeError, match="a constant must be a bool, an int or a float"):
        _core.promote_constant("1", "int8")
