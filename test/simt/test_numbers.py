"""Numbers of device code: formats, literals, promotion cell by cell, and what a number has."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from cuda import device
from tilewright import _core
from tilewright.capture import DEVICE
from tilewright.capture.values import Tile
from tilewright.dtype import as_dtype
from tilewright.errors import TileTypeError, TileValueError
from tilewright.reference import numbers

DATA = Path(__file__).resolve().parent.parent / "data"
CELLS = list(csv.DictReader((DATA / "device_promotion.csv").open()))
BUILTIN = {"bool": True, "int": 3, "float": 1.5}
FIXED = [name for name in dict.fromkeys(c["left"] for c in CELLS) if name not in (*BUILTIN, "complex")]
REAL = [name for name in FIXED if "complex" not in name]
INTEGERS = [name for name in REAL if "int" in name]
FLOATS = [name for name in REAL if "float" in name]
REAL_CELLS = [c for c in CELLS if not any("complex" in c[k] for k in ("left", "right"))]


def ids(cell: dict[str, str]) -> str:
    return f"{cell['left']}-{cell['right']}"


@pytest.mark.spec("D-168", "D-169", "D-170", "D-171", "D-172", "D-173", "D-174", "D-175", "D-177", "D-178", "D-179")
def test_the_table_is_that_of_the_document() -> None:
    table = _core.device_promotions()
    assert len(table) == len(CELLS) == 400
    for cell in CELLS:
        assert (table[cell["left"], cell["right"]] or "ERR") == cell["result"], ids(cell)


@pytest.mark.spec("D-181")
def test_the_result_does_not_depend_on_the_order() -> None:
    table = _core.device_promotions()
    names = sorted({a for a, _ in table})
    for a in names:
        for b in names:
            assert table[a, b] == table[b, a]
            for c in names:
                left, right = table[a, b], table[b, c]
                if left and right and table[left, c] and table[a, right]:
                    assert table[left, c] == table[a, right], (a, b, c)


def operand(name: str, compiled: bool) -> Any:
    if name in BUILTIN:
        return BUILTIN[name]
    dtype = as_dtype(name)
    return Tile(None, dtype, ()) if compiled else numbers.Number(1, dtype)


@pytest.mark.spec("D-168", "D-180", "D-182")
@pytest.mark.parametrize("cell", REAL_CELLS, ids=ids)
def test_how_two_numbers_meet(cell: dict[str, str]) -> None:
    """What the compiler and the interpreter make of a cell; the other tests here run kernels."""
    for compiled in (True, False):
        x, y = (operand(cell[side], compiled) for side in ("left", "right"))
        if cell["result"] == "ERR":
            with pytest.raises(TileTypeError, match="no implicit promotion between"):
                DEVICE.meet("add", (x, y)) if compiled else numbers.common((x, y))
        elif compiled:
            met = DEVICE.meet("mul", (x, y))
            assert (met.result, met.loose) == (
                as_dtype(LOOSE.get(cell["result"], cell["result"])),
                cell["result"] in LOOSE,
            )
        else:
            dtype, loose = numbers.common((x, y))
            assert (dtype, loose) == (as_dtype(LOOSE.get(cell["result"], cell["result"])), cell["result"] in LOOSE)


LOOSE = {"int": "int32", "float": "float32", "bool": "bool"}


@device.kernel
def add_all(a, b, c, d, e, f, out, names):
    """Which format a sum has shows in its bits: each is stored where it fits."""
    out[0] = (a[0] + b[0]).dtype == names[0]
    out[1] = (a[0] + c[0]).dtype == names[1]
    out[2] = (b[0] + c[0]).dtype == names[2]
    out[3] = (d[0] + e[0]).dtype == names[3]
    out[4] = (d[0] + f[0]).dtype == names[4]
    out[5] = (a[0] + 1).dtype == names[5]
    out[6] = (e[0] + 1.5).dtype == names[6]
    out[7] = (b[0] * 1.5 * d[0]).dtype == names[7]


@pytest.mark.spec("D-169", "D-171", "D-173", "D-174", "D-175", "D-178")
def test_formats_of_sums(run: Any) -> None:
    arrays = [np.ones(1, t) for t in (np.int8, np.uint8, np.int32, np.float32, np.float16, np.float64)]
    names = (
        device.int16, device.int32, device.int32, device.float32, device.float64, device.int8, device.float16,
        device.float32,
    )  # a table of several in a line  # fmt: skip
    out = np.zeros(8, np.int32)
    run(add_all, *arrays, out, names)
    np.testing.assert_array_equal(out, 1)


@device.kernel
def arithmetic(x, y, out):
    a, b = x[0], y[0]
    out[0] = a + b
    out[1] = a - b
    out[2] = a * b
    out[3] = a // b
    out[4] = a % b
    out[5] = -a
    out[6] = abs(a - 2 * b)
    out[7] = max(a, b)
    out[8] = min(a, b)
    out[9] = a if a > b else b


@pytest.mark.spec("D-079", "D-080", "D-081", "D-084", "D-085", "D-086", "D-183", "D-088")
@pytest.mark.parametrize("name", REAL)
def test_arithmetic_in_each_format(run: Any, name: str) -> None:
    dtype = as_dtype(name).numpy
    a, b = (13, 5) if "int" in name else (3.5, 1.25)
    x, y, out = np.array([a], dtype), np.array([b], dtype), np.zeros(10, dtype)
    run(arithmetic, x, y, out)
    whole = [a + b, a - b, a * b, a // b, a % b, -a, abs(a - 2 * b), a, b, a]
    if name.startswith("uint"):
        whole = [v % (1 << as_dtype(name).bits) for v in whole]
    assert [v.item() for v in out] == [numbers.as_format(v, as_dtype(name)).item() for v in whole]


@device.kernel
def divide(x, y, out):
    out[0] = (x[0] / y[0]).dtype.bits
    out[1] = (x[0] / 2).dtype.bits


@pytest.mark.spec("D-183", "D-052")
@pytest.mark.parametrize("name", INTEGERS)
def test_quotients_of_integers_are_floats(run: Any, name: str) -> None:
    x, out = np.full(1, 7, as_dtype(name).numpy), np.zeros(2, np.int32)
    run(divide, x, x, out)
    np.testing.assert_array_equal(out, 64 if "64" in name else 32)


@device.kernel
def literals(x, n, h, flag, out):
    out[0] = x[0] + 1.5  # float64 stays
    out[1] = x[0] * h  # as a literal: no detour by float32's dtype, but its value
    out[2] = 7 // 2 + 7 % 4 + (1 << 4)
    out[3] = n // 2
    out[4] = flag + flag
    out[5] = 0.5 if flag else 0.25
    out[6] = n * 3
    out[7] = 1 if True and not False else 0


@pytest.mark.spec("D-026", "D-060", "D-061", "D-062", "D-063", "D-064", "D-324")
def test_numbers_of_python(run: Any) -> None:
    out = np.zeros(8, np.float64)
    run(literals, np.array([0.1]), 5, 0.5, True, out)
    np.testing.assert_array_equal(out, [1.6, 0.05, 22, 2, 2, 0.5, 15, 1])


@device.kernel
def loose(x, n, f, out):
    total = 0
    for i in range(n):
        total += i
    out[0] = x[0] + n
    out[1] = (x[0] * f).dtype.bits
    out[2] = (x[0] + total).dtype.bits
    out[3] = total


@pytest.mark.spec("D-174", "D-175")
def test_numbers_of_python_take_the_format_that_they_meet(run: Any) -> None:
    out = np.zeros(4, np.float32)
    run(loose, np.array([1], np.float16), 4, 0.5, out)
    np.testing.assert_array_equal(out, [5, 16, 16, 6])


@device.kernel
def attributes(out, x):
    a = device.int32(5)
    out[0] = a.dtype == device.int32
    out[1] = len(a.shape)
    out[2] = a.ndim + a.ndims
    out[3] = a.size
    out[4] = a.astype(device.float32) / 2
    out[5] = device.float32(1).view(device.uint32) == 0x3F800000
    out[6] = a.reshape(()).item() + len(a.strides)
    out[7] = device.uint8(x[0])
    out[8] = int(x[1])
    out[9] = float(a) / 4


@pytest.mark.spec("D-067", "D-068", "D-069", "D-070")
def test_a_number_is_an_array_without_dimensions(run: Any) -> None:
    out = np.zeros(10, np.float32)
    run(attributes, out, np.array([300, -7], np.int32))
    np.testing.assert_array_equal(out, [1, 0, 0, 1, 2.5, 1, 5, 44, -7, 1.25])


@pytest.mark.spec("D-067", "D-068", "D-070")
@pytest.mark.parametrize("name", REAL)
def test_numbers_of_the_host(name: str) -> None:
    value = getattr(device, name)(1)
    assert (value.shape, value.ndim, value.size) == ((), 0, 1)
    assert as_dtype(value.dtype) is getattr(device, name)


@device.kernel
def whole(x, n, out):
    i = device.tid(1)
    n[0, i] = math.floor(x[i])
    n[1, i] = math.ceil(x[i])
    n[2, i] = math.trunc(x[i])
    n[3, i] = int(x[i])
    n[4, i] = device.int64(x[i])
    out[i] = x[i]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_floats_that_no_integer_is_are_some_integer(run: Any, dtype: Any) -> None:
    x = np.array([np.nan, 2.5, np.inf, -2.5, -np.inf, -np.nan, -0.0, 7], dtype)
    n, out = np.zeros((5, 8), np.int64), np.zeros(8, dtype)
    run(whole, x, n, out, block=8)
    np.testing.assert_array_equal(out, x)
    np.testing.assert_array_equal(n[:, [1, 3, 6, 7]], [[2, -3, 0, 7], [3, -2, 0, 7], *[[2, -2, 0, 7]] * 3])
    assert (abs(n[:4]) <= 2**31).all()


@device.kernel
def wider(x):
    total = device.int32(0)
    for i in range(3):
        total = total + x[i]
    x[0] = total


@device.kernel
def either(x):
    y = device.int32(1) if x[0] > 0 else x[1]
    if x[0] > 2:
        y = device.float64(2)
    x[0] = y


@pytest.mark.parametrize(("kernel", "told"), [(wider, "changes type in the loop"), (either, "changes type")])
def test_the_reference_refuses_what_a_launch_refuses(kernel: Any, told: str) -> None:
    x = np.ones(4, np.float32)
    with pytest.raises(TileTypeError, match=told) as launched:
        device.launch(kernel, x, grid=1, block=1)
    with pytest.raises(TileTypeError) as interpreted:
        kernel.interpret((x,), 1, 1)
    assert str(interpreted.value) == str(launched.value) and (x == 1).all()


LIMITS = {name: (as_dtype(name).min, as_dtype(name).max) for name in INTEGERS}


@device.kernel
def copy(x, y):
    i = device.tid(1)
    if i < x.size:
        y[i] = x[i]


@pytest.mark.spec(
    "D-071", "D-072", "D-073", "D-074", "D-075", "D-076", "D-077", "D-078", "D-230", "D-231", "D-232", "D-233", "D-234",
    "D-235", "D-236", "D-237", "D-238", "D-239", "D-240", "D-241", "D-244", "D-245", "D-246",
)  # a table of several in a line  # fmt: skip
@pytest.mark.parametrize("name", ["bool", *REAL])
def test_arrays_of_each_format(run: Any, name: str) -> None:
    dtype = as_dtype(name)
    values = [*LIMITS.get(name, (0, 1)), 1, 0]
    x = np.array(values).astype(dtype.numpy) if name != "uint64" else np.array(values, np.uint64)
    y = np.zeros_like(x)
    run(copy, x, y, grid=1, block=4)
    np.testing.assert_array_equal(y.view(np.uint8), x.view(np.uint8))


@device.kernel
def scalars(a, b, c, out):
    out[0] = a + b
    out[1] = c
    out[2] = a.dtype.bits


@pytest.mark.spec("D-325")
@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, np.float16, np.float64, ml_dtypes.bfloat16])
def test_fixed_format_arguments(run: Any, dtype: Any) -> None:
    out = np.zeros(3, np.float64)
    run(scalars, dtype(3), dtype(2), dtype(1), out)
    np.testing.assert_array_equal(out, [5, 1, np.dtype(dtype).itemsize * 8])


@pytest.mark.spec("D-025", "D-218")
def test_a_store_converts(run: Any) -> None:
    @device.kernel
    def k(x, y):
        x[0] = 300  # of an array of int64
        x[1] = device.int8(-3)
        y[0] = device.float64(0.1)

    x, y = np.zeros(2, np.int64), np.zeros(1, np.float32)
    run(k, x, y)
    assert list(x) == [300, -3] and y[0] == np.float32(0.1)

    @device.kernel
    def wrong(x):
        x[0] = 1.5

    with pytest.raises(TileTypeError, match="does not convert to int64 by itself"):
        run(wrong, x)


@pytest.mark.spec("D-066")
def test_an_int_has_32_bits() -> None:
    @device.kernel
    def k(x, n):
        x[0] = n

    told = "does not fit the 32 bits that an int has in device code; pass numpy"
    for value, words in [
        (1 << 31, f"{told}.int64"),
        (-1 << 63, f"{told}.int64"),
        (1 << 63, f"{told}.uint64"),
        (1 << 64, "fits no dtype; the widest are int64 and uint64"),
        (-1 - (1 << 63), "fits no dtype"),
    ]:
        with pytest.raises(TileValueError, match=words):
            device.launch(k, np.zeros(1), value, grid=1, block=1)


def test_the_truth_of_a_number_of_8_bits(run: Any) -> None:
    @device.kernel
    def k(x, out):
        i = device.tid(1)
        out[i] = 1 if x[i] else 2

    x, out = np.array([0, -0.0, 1, -448], ml_dtypes.float8_e4m3fn), np.zeros(4, np.int32)
    run(k, x, out, grid=1, block=4)
    assert list(out) == [2, 2, 1, 1]


@device.kernel
def beyond_a_fourth(x, out):
    i = device.tid(1)
    if x[i] < -4611686018427387904:
        out[0, i] = 1
    if x[i] >= 4611686018427387904:
        out[1, i] = 1
    half = x[i] // 2
    if half < -2305843009213693953:
        out[2, i] = 1


def test_integers_of_64_bits_beyond_a_fourth(run: Any) -> None:
    """What the compiler knows of the ranges of numbers does not end before they do."""
    x = np.array([-(2**63), -(2**62) - 3, -(2**62), 2**62 - 1, 2**62, 2**63 - 1], np.int64)
    out = np.zeros((3, 6), np.int32)
    run(beyond_a_fourth, x, out, grid=1, block=6)
    assert out.tolist() == [[1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1], [1, 1, 0, 0, 0, 0]]
