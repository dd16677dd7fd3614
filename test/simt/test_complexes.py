"""Complex numbers: arithmetic, promotion, arrays, arguments."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cuda import device
from tilewright.capture.rules import device_promotion
from tilewright.errors import TileTypeError
from tilewright.layout import layout_of

DATA = Path(__file__).resolve().parent.parent / "data"
CELLS = [c for c in csv.DictReader((DATA / "device_promotion.csv").open()) if "complex" in c["left"] + c["right"]]


@device.kernel
def arithmetic(x, y, out, lengths):
    a, b = x[0], y[0]
    out[0] = a + b
    out[1] = a - b
    out[2] = a * b
    out[3] = a / b
    out[4] = -a
    out[5] = a.conjugate()
    out[6] = 2 * a + 1.5
    out[7] = 1 / a
    out[8] = a * (1 + 2j)
    out[9] = a**3
    lengths[0] = abs(a)
    lengths[1] = a.real + b.imag
    lengths[2] = (a == b) + (a == a) * 2 + (a != b) * 4
    lengths[3] = a.dtype == device.complex64


@pytest.mark.spec("D-061", "D-082", "D-083", "D-242", "D-243", "D-053", "D-173", "D-176")
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_arithmetic(run: Any, dtype: Any) -> None:
    a, b = dtype(1.5 - 2j), dtype(-0.25 + 3j)
    out, lengths = np.zeros(10, dtype), np.zeros(4, dtype(0).real.dtype)
    run(arithmetic, np.array([a]), np.array([b]), out, lengths)
    expected = [a + b, a - b, a * b, a / b, -a, a.conjugate(), 2 * a + 1.5, 1 / a, a * (1 + 2j), a**3]
    np.testing.assert_allclose(out, np.array(expected, dtype), rtol=3e-7 if dtype is np.complex64 else 1e-15)
    np.testing.assert_allclose(lengths, [abs(a), a.real + b.imag, 6, dtype is np.complex64], rtol=1e-7)


@device.kernel
def large(x, out):
    out[0] = abs(x[0])
    q = x[0] / x[1]
    out[1] = q.real
    out[2] = q.imag


@pytest.mark.spec("D-082", "D-083")
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_nothing_overflows_on_the_way(run: Any, dtype: Any) -> None:
    most = np.finfo(dtype).max / 4
    x, out = np.array([most + 1j * most, most - 1j * most], dtype), np.zeros(3, np.finfo(dtype).dtype)
    run(large, x, out)
    np.testing.assert_allclose(out, [most * np.sqrt(2), 0, 1], rtol=1e-6)


@device.kernel
def escape(points, counts, limit):
    i, j = device.tid(2)
    c = points[j, i]
    z = device.complex64(0)
    n = 0
    while n < limit and z.real * z.real + z.imag * z.imag < 4:
        z = z * z + c
        n += 1
    counts[j, i] = n


@pytest.mark.spec("D-082", "D-242")
def test_numbers_in_loops(run: Any) -> None:
    x, y = np.meshgrid(np.linspace(-2, 1, 8), np.linspace(-1, 1, 6))
    points, counts = (x + 1j * y).astype(np.complex64), np.zeros((6, 8), np.int32)
    run(escape, points, counts, 20, block=(8, 6))
    z, expected = np.zeros_like(points), np.zeros_like(counts)
    for _ in range(20):
        inside = (z.real**2 + z.imag**2) < 4
        expected += inside
        z = np.where(inside, z * z + points, z)
    np.testing.assert_array_equal(counts, expected)


@device.kernel
def arguments(a, b, c, out):
    out[0] = a * b + c[1]
    out[1] = complex(1, 2) * device.complex128(3, 4)
    out[2] = device.complex64(b)


@pytest.mark.spec("D-060", "D-065", "D-324", "D-325", "D-328")
def test_arguments(run: Any) -> None:
    out = np.zeros(3, np.complex128)
    run(arguments, 1 + 2j, np.complex64(3 - 1j), (1, np.complex128(0.1j)), out)
    np.testing.assert_allclose(out, [5 + 5.1j, -5 + 10j, 3 - 1j], rtol=1e-6)


@pytest.mark.spec("D-173", "D-176", "D-178")
def test_promotion() -> None:
    for cell in CELLS:
        if cell["result"] == "ERR":
            with pytest.raises(TileTypeError, match="no implicit promotion between"):
                device_promotion(cell["left"], cell["right"])
        else:
            assert device_promotion(cell["left"], cell["right"]) == cell["result"]


@device.kernel
def formats(a, b, f, d, out):
    out[0] = (a[0] + f[0]).dtype == device.complex64
    out[1] = (a[0] + d[0]).dtype == device.complex128
    out[2] = (a[0] * b[0]).dtype == device.complex128
    out[3] = (f[0] * 2j).dtype == device.complex64
    out[4] = (d[0] * 2j).dtype == device.complex128


@pytest.mark.spec("D-173", "D-176")
def test_formats_of_results(run: Any) -> None:
    out = np.zeros(5, np.int32)
    run(formats, np.ones(1, np.complex64), np.ones(1, np.complex128), np.ones(1, np.float32), np.ones(1), out)
    np.testing.assert_array_equal(out, 1)


@pytest.mark.spec("D-065", "D-082", "D-083")
def test_layouts_and_the_host() -> None:
    @device.struct
    class Wave:
        amplitude: device.complex64
        phase: device.complex128
        plain: complex

    assert [(layout_of(t).size, layout_of(t).align) for t in (device.complex64, device.complex128, complex)] == [
        (8, 8), (16, 16), (8, 8),
    ]  # a table of several in a line  # fmt: skip
    assert layout_of(Wave).fields == (0, 16, 32)
    assert device.complex64(1, 2) == np.complex64(1 + 2j) and device.complex128(3).dtype == np.complex128


@pytest.mark.spec("D-172", "D-176")
@pytest.mark.parametrize("use", [lambda a: a // 2, lambda a: a % 2, lambda a: a & 1, lambda a: a + "x"])
def test_what_complex_numbers_have_not(use: Any) -> None:
    @device.kernel
    def k(x):
        x[0] = use(x[0])

    with pytest.raises(TileTypeError):
        device.launch(k, np.zeros(1, np.complex64), grid=1, block=1)
