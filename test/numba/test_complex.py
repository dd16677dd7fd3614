"""Complex numbers and structures in kernels: their arrays, their arithmetic, the functions of cmath."""

import cmath
import math
import re

import numpy as np
import pytest

from tilewright.cli import lower
from tilewright.errors import TileTypeError
from tilewright.numba import complex64, complex128, cuda, float32, float64, from_dtype, int32, vectorize
from tilewright.numba.npm import cuda as npm

VALUES = [0.5 + 2j, -1.5 + 0.25j, 3 - 1j, -0.3 - 0.7j, 1e-3 + 1e-4j, 2 + 0j, -2 + 0j, 0 + 1.5j, 1 + 1j, -4 - 3j]
POINT = np.dtype([("x", np.float32), ("n", np.int64), ("z", np.complex64)], align=True)
PACKED = np.dtype([("n", np.int8), ("x", np.float64)])
TABLE = np.array([1 + 1j, 2 - 1j, 3, 4j], np.complex64)
POINTS = np.zeros(4, POINT)
POINTS["x"] = [1, 2, 3, 4]


@npm.jit
def specified(a, b, f, i, out, known):
    out[0] = a[0] + b[0]
    out[1] = a[0] - b[0]
    out[2] = a[0] * b[0]
    out[3] = a[0] + f[0]
    out[4] = f[0] * b[0]
    out[5] = i[0] - a[0]
    out[6] = complex64(f[0])
    out[7] = complex128(a[0])
    shared = cuda.shared.array(1, complex64)
    shared[0] = b[0]
    out[8] = shared[0]
    z = a[0] * 0
    for _ in range(3):
        z = z * z + a[0]
    out[9] = z
    known[0] = (a[0] + b[0]).dtype == complex64
    known[1] = complex128(a[0]).dtype == complex128
    known[2] = (a[0] * complex128(b[0])).dtype == complex128
    known[3] = (i[0] + a[0]).dtype == complex64
    known[4] = (a[0] + float64(1)).dtype == complex128
    known[5] = z.dtype == complex64


@pytest.mark.spec("N-009", "N-069", "N-070", "N-093", "N-094", "N-095", "N-097")
def test_the_numbers_of_the_specification(run):
    a, b = np.array([1 + 2j], np.complex64), np.array([-0.5 + 1j], np.complex64)
    *_, out, known = run(
        specified, 1, 1, a, b, np.float32([2.5]), np.array([3]), np.zeros(10, np.complex128), np.zeros(6, np.bool_)
    )
    x, y = a[0], b[0]
    z = 0
    for _ in range(3):
        z = z * z + x
    np.testing.assert_allclose(out, [x + y, x - y, x * y, x + 2.5, 2.5 * y, 3 - x, 2.5, x, y, z], rtol=1e-6)
    assert known.all(), known
    assert complex64(1) == 1 and complex128(2j).dtype == np.complex128


def operator_kernel(jit, expression, tmp_path):
    import importlib.util

    path = tmp_path / f"kernel_{abs(hash(expression))}.py"
    path.write_text(f"def kernel(x, y, out):\n    out[0] = {expression}\n")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return jit(module.kernel)


OTHERS = ["/", "//", "%", "**", "&", "|", "^", "<<", ">>", "<", "<=", ">", ">="]


@pytest.mark.spec("N-096")
@pytest.mark.parametrize("op", OTHERS)
@pytest.mark.parametrize("kind", [np.complex64, np.float32])
def test_other_operators_of_the_specification(op, kind, tmp_path):
    kernel = operator_kernel(npm.jit, f"x[0] {op} y[0]", tmp_path)
    with pytest.raises(TileTypeError, match="is not defined|have no order"):
        kernel[1, 1](np.ones(1, np.complex64), np.ones(1, kind), np.zeros(1, np.complex128))


@cuda.jit
def arithmetic(a, b, s, n, out, known):
    i = cuda.grid(1)
    out[0, i] = a[i] + b[i]
    out[1, i] = a[i] / b[i]
    out[2, i] = a[i] ** 2
    out[3, i] = a[i] ** b[i]
    out[4, i] = a[i] ** n
    out[5, i] = a[i] * 2 - 1j
    out[6, i] = complex(a[i].real, b[i].imag).conjugate()
    out[7, i] = abs(a[i])
    out[8, i] = -s * a[i]
    total = 0j
    for k in range(i + 1):
        total += a[k]
    out[9, i] = total
    known[0] = (a[i] + b[i]).dtype == complex64
    known[1] = (a[i] * 2).dtype == complex128
    known[2] = (a[i] * float32(2)).dtype == complex64
    known[3] = a[i] == a[i]
    known[4] = a[i] != b[i]


def test_arithmetic(run):
    a, b = np.array(VALUES, np.complex64), np.array(VALUES[::-1], np.complex64)
    out = np.zeros((10, len(a)), np.complex128)
    *_, out, known = run(arithmetic, 1, len(a), a, b, 2 + 1j, -3, out, np.zeros(5, np.bool_))
    x, y = a.astype(complex), b.astype(complex)
    expected = [
        x + y, x / y, x**2, x**y, x**-3.0, 2 * x - 1j, x.real - 1j * y.imag, abs(x), -(2 + 1j) * x, np.cumsum(x)
    ]  # a table of several in a line  # fmt: skip
    for row, wanted in zip(out, expected, strict=True):
        np.testing.assert_allclose(row, wanted, rtol=2e-5)
    assert known.all()


def test_operators_that_complex_numbers_lack(tmp_path):
    for op in ("//", "%", "&", "<"):
        with pytest.raises(TileTypeError, match="is not defined|have no order"):
            operator_kernel(cuda.jit, f"x[0] {op} y[0]", tmp_path)[1, 1](*[np.ones(1, complex)] * 3)


ANGLES = [f"{arc}{name}{h}" for arc in ("", "a") for name in ("sin", "cos", "tan") for h in ("", "h")]
FUNCTIONS = ["exp", "log", "log10", "sqrt", *ANGLES]


def kernel_of(function):
    @cuda.jit
    def kernel(x, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i] = function(x[i])

    return kernel


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_functions(run, name, dtype):
    function = getattr(cmath, name)
    x = np.array(VALUES, dtype)
    _, y = run(kernel_of(function), 1, 32, x, np.zeros_like(x))
    expected = np.array([function(complex(v)) for v in x])
    np.testing.assert_allclose(y, expected, rtol=2e-5 if dtype is np.complex64 else 1e-11, atol=1e-7)


ENDS = [-0.0, 0.0, 1.5, -3.5, -math.inf, math.inf, math.nan]


def result_of(function, value):
    """None where Python raises."""
    try:
        return function(value)
    except (ValueError, OverflowError):
        return None


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_functions_at_the_ends_of_the_plane(run, name, dtype):
    """What is infinite, no number, or a zero with a sign gives what Python's cmath does."""
    function = getattr(cmath, name)
    found = [(z, result_of(function, z)) for x in ENDS for y in ENDS for z in [complex(x, y)]]
    x, expected = (
        np.array(values, dtype) for values in zip(*[row for row in found if row[1] is not None], strict=True)
    )
    _, y = run(kernel_of(function), 1, 64, x, np.zeros_like(x))
    tolerance = 2e-5 if dtype is np.complex64 else 1e-11
    for got, wanted in ((y.real, expected.real), (y.imag, expected.imag)):
        np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=1e-7)
        whole = (wanted == 0) & (got == 0) | np.isinf(wanted)
        np.testing.assert_array_equal(np.signbit(got)[whole], np.signbit(wanted)[whole])


@cuda.jit
def lengths(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[0, i], out[1, i] = cmath.polar(x[i])
        out[2, i] = abs(x[i])


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_lengths_at_the_ends_of_the_plane(run, dtype):
    x = np.array([complex(x, y) for x in ENDS for y in ENDS], dtype)
    _, out = run(lengths, 1, 64, x, np.zeros((3, len(x))))
    expected = np.array([(*cmath.polar(z), abs(z)) for z in map(complex, x)]).T
    np.testing.assert_allclose(out, expected, rtol=1e-6 if dtype is np.complex64 else 1e-14)


@cuda.jit
def parts(x, out, known):
    i = cuda.grid(1)
    length, angle = cmath.polar(x[i])
    out[0, i] = cmath.rect(length, angle)
    out[1, i] = cmath.phase(x[i])
    out[2, i] = cmath.log(x[i], 2)
    known[0, i] = cmath.isnan(x[i])
    known[1, i] = cmath.isinf(x[i])
    known[2, i] = cmath.isfinite(x[i])


def test_parts(run):
    x = np.array([*VALUES, complex("nan"), complex(1, float("inf"))])
    _, out, known = run(parts, 1, len(x), x, np.zeros((3, len(x)), complex), np.zeros((3, len(x)), np.bool_))
    n = len(VALUES)
    np.testing.assert_allclose(out[0, :n], x[:n], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(out[1, :n], np.angle(x[:n]), rtol=1e-12)
    np.testing.assert_allclose(out[2, :n], np.log(x[:n]) / np.log(2), rtol=1e-12)
    np.testing.assert_array_equal(known, [np.isnan(x), np.isinf(x), np.isfinite(x)])


@cuda.jit
def structures(a, r, packed, out):
    t = cuda.threadIdx.x
    shared = cuda.shared.array(4, complex64)
    mine = cuda.local.array(2, POINT_TYPE)
    constant = cuda.const.array_like(TABLE)
    points = cuda.const.array_like(POINTS)
    shared[t] = a[t] * constant[t]
    mine[1].x = points[t].x
    cuda.syncthreads()
    out[t] = shared[3 - t] + mine[1].x
    cuda.atomic.add(a.real, t, 1)
    cuda.atomic.add(a.imag, 0, 1)
    r[t].x = 5
    r.n[t] = t
    r["z"].real[t] = 2
    packed[t].x = packed[t].n / 2


POINT_TYPE = from_dtype(POINT)


def test_structures(run):
    a = np.arange(4).astype(np.complex64)
    packed = np.zeros(4, PACKED)
    packed["n"] = [3, 4, -5, 6]
    a, r, packed, out = run(structures, 1, 4, a, np.zeros(4, POINT), packed, np.zeros(4, complex))
    np.testing.assert_array_equal(out, (np.arange(4) * TABLE)[::-1] + POINTS["x"])
    np.testing.assert_array_equal(a, np.arange(4) + 1 + np.array([4j, 0, 0, 0]))
    np.testing.assert_array_equal(r["x"], 5)
    np.testing.assert_array_equal(r["n"], np.arange(4))
    np.testing.assert_array_equal(r["z"], 2)
    np.testing.assert_array_equal(packed["x"], [1.5, 2, -2.5, 3])


@cuda.jit((from_dtype(POINT)[:],))
def fields_by_name(r):
    i = cuda.grid(1)
    known = cuda.const.array_like(POINTS)
    r[i]["n"] = r[i]["x"] + known[i]["x"]


def test_fields_by_their_names(run):
    r = np.zeros(4, POINT).view(np.recarray)
    r["x"] = 3
    (r,) = run(fields_by_name, 1, 4, r)
    np.testing.assert_array_equal(r["n"], 3 + POINTS["x"])


def test_types_of_dtypes():
    assert from_dtype(np.int32) is int32 and from_dtype("bool").name == "bool_"
    assert from_dtype(POINT).dtype == POINT
    with pytest.raises(TileTypeError, match="no type object has the dtype"):
        from_dtype("datetime64[D]")


@vectorize(["complex64(complex64, complex64)"], target="cuda")
def times(x, y):
    return x * y.conjugate()


def test_vectorize():
    x = np.array(VALUES, np.complex64)
    np.testing.assert_allclose(times(x, x), abs(x) ** 2, rtol=1e-6, atol=1e-6)


def test_bytes_of_floats_are_not_converted():
    """ptxas converts what a float operation wrote where less of it is stored, unless that is taken out first."""

    @cuda.jit
    def halved(numbers):
        numbers[cuda.threadIdx.x].x = numbers[cuda.threadIdx.x].n / 2

    halved[1, 4](cuda.to_device(np.zeros(4, PACKED)))
    ((_, facts, _),) = halved.variants()
    text = lower(halved, facts, "sm_90a", "ptx").decode()
    floats = re.findall(r"\.f\d+\S* \t(%\w+),", text)
    stored = re.findall(r"st\.global\.b8 \t\[[^]]*\], (\S+);", text)
    assert len(floats) == 2 and len(stored) == 8 and not set(stored) & set(floats)
