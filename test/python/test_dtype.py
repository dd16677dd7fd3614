"""DType objects and the promotion rules, cell by cell against the published tables."""

from __future__ import annotations

import copy
import csv
import pickle
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilewright import dtype as dt
from tilewright import tile as ct
from tilewright.errors import TileTypeError, TileValueError

DATA = Path(__file__).parent.parent / "data"
NAMES = [
    "bool_", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
    "float16", "float32", "float64", "bfloat16", "tfloat32",
    "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float4_e2m1fn",
]  # fmt: skip


def rows(name: str) -> list[dict[str, str]]:
    with open(DATA / name, newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.spec("T-082", "T-085", "T-106")
def test_names() -> None:
    assert [d.name for d in dt.ALL] == NAMES
    assert all(isinstance(getattr(ct, n), ct.DType) for n in NAMES)
    assert {d.name for d in dt.ALL if not d.arithmetic} == set(NAMES[13:])


def each_proves(first: int) -> list[Any]:
    """The dtypes by name; the requirements of them, one a dtype, begin at that number."""
    return [pytest.param(name, marks=pytest.mark.spec(f"T-{first + i:03}"), id=name) for i, name in enumerate(NAMES)]


@pytest.mark.parametrize("name", each_proves(88))
def test_format(name: str) -> None:
    dtype = getattr(ct, name)
    container = np.float32 if name == "tfloat32" else getattr(ml_dtypes, name, None)
    container = container or np.dtype(name.rstrip("_"))
    assert dtype.numpy == container
    assert dtype.itemsize == np.dtype(container).itemsize
    if dtype.is_integral:
        assert (dtype.min, dtype.max) == (np.iinfo(container).min, np.iinfo(container).max)
    else:
        with pytest.raises(AttributeError):
            _ = dtype.max
    assert dtype.bits == (4 if name == "float4_e2m1fn" else 8 * dtype.itemsize)


def test_equals_numpy() -> None:
    for dtype in dt.ALL:
        same = dtype is not ct.tfloat32  # float32's container is float32's
        assert (dtype == dtype.numpy) is same
        assert (dtype == dtype.numpy.type) is same
        assert (dtype.numpy == dtype) is same or dtype is ct.tfloat32
    assert ct.float32 == np.float32
    assert ct.float32 != np.float64
    assert ct.float32 != np.dtype(">f4")
    assert ct.int32 != object()
    assert ct.float32 != "float32"


@pytest.mark.spec("T-084")
def test_immutable() -> None:
    with pytest.raises(AttributeError, match="immutable"):
        ct.float32.bits = 16
    with pytest.raises(AttributeError, match="immutable"):
        del ct.float32.bits
    with pytest.raises(TypeError, match="exists already"):
        ct.DType("float32", "f32", "f32", 32, dt.Category.FLOATING)
    assert len({ct.float32, ct.float32, ct.int8}) == 2
    assert copy.deepcopy(ct.int8) is ct.int8
    assert pickle.loads(pickle.dumps(ct.bfloat16)) is ct.bfloat16


def test_a_dtype_has_the_name_that_types_have() -> None:
    assert ct.float32.__name__ == ct.float32.name == "float32" and type(ct.float32).__name__ == "DType"


def test_aliases() -> None:
    assert ct.float8e4m3 is ct.float8_e4m3fn
    for value in ("float8e4m3", "float8_e4m3fn", ml_dtypes.float8_e4m3fn):
        assert dt.as_dtype(value) is ct.float8_e4m3fn
    assert dt.as_dtype(bool) is ct.bool_
    assert dt.as_dtype(np.dtype("u2")) is ct.uint16
    for bad in (np.complex64, "complex", object, None, ">f4"):
        with pytest.raises(TileTypeError, match="expected one of bool_"):
            dt.as_dtype(bad)


def test_constructor_on_the_host() -> None:
    value = ct.bfloat16(1.25)
    assert value.dtype == ml_dtypes.bfloat16 and value == 1.25
    assert ct.bool_(3) == np.True_


@pytest.mark.spec("T-118")
def test_categories() -> None:
    names = {category: {d.name for d in dt.ALL if d.category is category} for category in dt.Category}
    assert names[dt.Category.BOOLEAN] == {"bool_"}
    assert names[dt.Category.INTEGRAL] == {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
    assert dt.Category.BOOLEAN < dt.Category.INTEGRAL < dt.Category.FLOATING
    assert len(names[dt.Category.FLOATING]) == 9


@pytest.mark.spec("T-117", "T-127")
@pytest.mark.parametrize("row", each_proves(130))
def test_promotion_table(row: str) -> None:
    cells = [r for r in rows("tile_promotion.csv") if r["row"] == row]
    assert len(cells) == 18
    for cell in cells:
        a, b = getattr(ct, row), getattr(ct, cell["column"])
        expected = None if cell["result"] == "ERR" else getattr(ct, cell["result"])
        assert dt.PROMOTION[a, b] is expected
        if expected is not None:
            assert dt.promote(a, b) is expected


@pytest.mark.spec("T-128")
def test_promotion_is_symmetric() -> None:
    for a in dt.ALL:
        for b in dt.ALL:
            assert dt.PROMOTION[a, b] is dt.PROMOTION[b, a]


@pytest.mark.spec("T-129", "T-148")
def test_pairs_without_a_common_dtype() -> None:
    pairs = [(a, b) for (a, b), common in dt.PROMOTION.items() if common is None]
    assert (ct.int32, ct.tfloat32) in pairs and (ct.bool_, ct.float8_e5m2) in pairs
    for a, b in pairs:
        with pytest.raises(TileTypeError, match=rf"between {a} and {b}; .*astype\(ct\."):
            dt.promote(a, b)


@pytest.mark.spec("T-129")
@pytest.mark.parametrize(
    ("a", "b", "remedy"),
    [
        (ct.uint8, ct.int8, ct.int16),
        (ct.int8, ct.uint16, ct.int32),
        (ct.uint32, ct.int32, ct.int64),
        (ct.uint64, ct.int8, ct.int64),
        (ct.int32, ct.uint8, ct.int32),
        (ct.int8, ct.float8_e5m2, ct.float32),
        (ct.float16, ct.bfloat16, ct.float32),
        (ct.bool_, ct.tfloat32, ct.float32),
        (ct.float64, ct.tfloat32, ct.float64),
        (ct.float8_e5m2, ct.float64, ct.float64),
    ],
)
def test_cast_that_is_suggested(a: dt.DType, b: dt.DType, remedy: dt.DType) -> None:
    with pytest.raises(TileTypeError, match=rf"astype\(ct\.{remedy}\)"):
        dt.promote(a, b)


@pytest.mark.spec(
    "T-119", "T-120", "T-121", "T-122", "T-123", "T-124", "T-125", "T-126", "T-148"
)  # fmt: skip
def test_promotion_with_constants() -> None:
    checked = 0
    for cell in rows("tile_promotion_constants.csv"):
        if cell["other"].startswith("const:"):
            continue
        value = {"True": True}.get(cell["example"])
        if value is None:
            value = float(cell["example"]) if "." in cell["example"] else int(cell["example"])
        other = getattr(ct, cell["other"])
        if cell["common_dtype"] == "ERR":
            with pytest.raises(TileValueError):
                dt.promote_constant(value, other)
        else:
            common = dt.promote_constant(value, other)
            assert common is getattr(ct, cell["common_dtype"]), cell
            if cell["arithmetic"] == "ERR":
                with pytest.raises(TileTypeError, match=r"x\.astype\(ct\."):
                    dt.require_arithmetic(common, "+")
            else:
                dt.require_arithmetic(common, "+")
        checked += 1
    assert checked == 108


@pytest.mark.spec("T-119", "T-120", "T-121")
@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (0, ct.int32),
        (2**31 - 1, ct.int32),
        (2**31, ct.int64),
        (-(2**31), ct.int32),
        (-(2**31) - 1, ct.int64),
        (2**63, ct.uint64),
        (2**64 - 1, ct.uint64),
        (3.5, ct.float32),
        (1e300, ct.float32),
        (True, ct.bool_),
    ],
)
def test_dtype_of_a_constant(value: float, dtype: dt.DType) -> None:
    assert dt.constant_dtype(value) is dtype


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1])
def test_constant_that_fits_nothing(value: int) -> None:
    with pytest.raises(TileValueError, match="fits no dtype"):
        dt.constant_dtype(value)


@pytest.mark.parametrize(("dtype", "value"), [(ct.uint8, 256), (ct.uint8, -1), (ct.int8, 128)])
def test_constant_outside_the_dtype(dtype: dt.DType, value: int) -> None:
    with pytest.raises(TileValueError, match=rf"{value} is outside {dtype}.*astype\(ct\.int32\)"):
        dt.promote_constant(value, dtype)


@pytest.mark.spec("T-127")
def test_same_rules_as_the_dialect() -> None:
    """The compiler's rules are written apart (the reference shares no code with it)."""
    core = pytest.importorskip("tilewright._core")
    for a in dt.ALL:
        for b in dt.ALL:
            common = dt.PROMOTION[a, b]
            assert core.promote(a.name, b.name) == (common and common.name)
            assert core.promote(a.mlir, b.mlir) == (common and common.mlir)
        for value in (True, 0, -1, 127, 255, 256, 2**31, 2**63, 2**64, -(2**63) - 1, 1.5):
            try:
                expected = dt.promote_constant(value, a).name
            except TileValueError:
                expected = None
            assert core.promote_constant(value, a.name) == expected, (value, a)
    for value in (True, 0, 2**31, -(2**31) - 1, 2**63, 1.5):
        assert core.constant_dtype(value) == dt.constant_dtype(value).mlir


def test_a_dtype_that_no_target_has() -> None:
    """It can be named, as cuTile's programs do, and no more."""
    dtype = ct.float8_e5m3fnu
    assert (dtype.bitwidth, dtype.signed, dtype.arithmetic) == (8, False, False)
    assert dt.as_dtype("float8_e5m3fnu") is dtype and dtype not in dt.ALL
    for use in (lambda: dtype.numpy, lambda: dtype(1.5)):
        with pytest.raises(ct.TileUnsupportedFeatureError, match="from Rubin on"):
            use()
