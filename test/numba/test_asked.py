"""What kernels ask of their launches beside arguments: arrays of the device from outside, rows for `reshape`."""

from __future__ import annotations

import linecache
import types

import numpy as np
import pytest

from tilewright import arrays
from tilewright.errors import HeldArrayError, TileCheckError, TileTypeError
from tilewright.numba import cuda

PRICES = cuda.to_device(np.arange(5, dtype=np.float32))
TABLES = types.ModuleType("tables")
TABLES.rows = cuda.to_device(np.arange(6.0).reshape(2, 3))


@cuda.jit(device=True)
def price(i):
    return 2 * PRICES[i]


@cuda.jit
def totals(out, scale=2):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = price(i) * scale + TABLES.rows[1, i % 3]
        PRICES[i] = 100 + i


def _launched(out, *more):
    device_out = cuda.to_device(out)
    totals[1, 32](device_out, *more)
    return device_out.copy_to_host().tolist()


def test_an_array_of_the_device_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """In device functions, too, and of a module; it is written in its place."""
    monkeypatch.setitem(globals(), "PRICES", cuda.to_device(np.arange(5, dtype=np.float32)))
    assert _launched(np.zeros(5)) == [3, 8, 13, 15, 20]
    assert PRICES.copy_to_host().tolist() == [100, 101, 102, 103, 104]


def test_it_is_the_one_of_the_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "PRICES", cuda.to_device(np.arange(5, dtype=np.float32)))
    _launched(np.zeros(5))
    monkeypatch.setitem(globals(), "PRICES", cuda.to_device(np.ones(5, np.float32)))
    assert _launched(np.zeros(5), 10) == [23, 24, 25, 23, 24]


def test_a_variable_that_has_a_number_later() -> None:
    held = cuda.to_device(np.full(3, 7.0))

    def made(value):
        @cuda.jit
        def kernel(out):
            out[cuda.grid(1)] = value[0]

        return kernel, kernel.function.__closure__[0]

    kernel, cell = made(held)
    out = np.zeros(1)
    kernel[1, 1](out)
    assert out[0] == 7
    cell.cell_contents = (5.0, 6.0)
    kernel[1, 1](out)
    assert out[0] == 5


def test_signatures_are_of_the_arguments() -> None:
    held = cuda.to_device(np.ones(3))

    @cuda.jit
    def kernel(out):
        out[0] = held[1]

    kernel[1, 1](np.zeros(1))
    assert [str(s) for s in kernel.signatures] == ["(float64[:],)"]
    assert ".entry kernel" in kernel.inspect_asm()[kernel.signatures[0]]


def test_check_mode_names_the_variable() -> None:
    held = cuda.to_device(np.arange(4.0))

    @cuda.jit(debug=True)
    def kernel(out):
        i = cuda.grid(1)
        out[i] = held[i + 1]

    with pytest.raises(TileCheckError, match=r"reads held\[4\], which is outside"):
        kernel[1, 4](np.zeros(4))


def test_code_without_a_launch_has_none() -> None:
    with pytest.raises(HeldArrayError, match="launch the kernel, or pass the array as an argument"):
        cuda.compile_ptx(totals, "void(float64[:], int64)")


def test_reshape_of_arguments() -> None:
    @cuda.jit
    def kernel(x, out, shape):
        y, row = x.reshape(shape), x[1].ravel()
        for i in range(y.shape[0]):
            for j in range(y.shape[1]):
                out[i, j] = y[i, j] + row[0]

    x = np.arange(24.0).reshape(2, 3, 4)
    for shape in ((6, 4), (-1, 4), (6, -1)):
        out = np.zeros((6, 4))
        kernel[1, 1](x, out, shape)
        np.testing.assert_array_equal(out, x.reshape(6, 4) + 12)


@pytest.mark.parametrize("place", [np.asarray, cuda.to_device])
def test_reshape_of_an_array_with_gaps_is_refused(place) -> None:
    @cuda.jit
    def kernel(x, out):
        out[0] = x.reshape(-1)[5]

    x, out = place(np.arange(24.0).reshape(2, 3, 4)), np.zeros(1)
    kernel[1, 1](x, out)
    assert out[0] == 5
    for wrong in (x[:, :, ::2], x[:, 1:], x.T):
        if arrays._has_gpu() and isinstance(wrong, np.ndarray) and not wrong.flags.f_contiguous:  # no gaps in its copy
            kernel[1, 1](wrong, out)
            assert out[0] == wrong.reshape(-1)[5]
            continue
        with pytest.raises(TileTypeError, match=r"argument 'x': the kernel reshapes it.*ascontiguousarray"):
            kernel[1, 1](wrong, out)
    kernel[1, 1](x[1:], out)
    assert out[0] == 17


def test_reshape_of_parts() -> None:
    """Those that have no gaps where the whole has none."""

    @cuda.jit
    def kernel(x, out):
        out[0] = x[1, 1:].reshape(8)[0]
        out[1] = x[1:, :, :].ravel()[1]
        out[2] = x[0, 2].ravel()[2]

    x, out = np.arange(24.0).reshape(2, 3, 4), np.zeros(3)
    kernel[1, 1](x, out)
    assert out.tolist() == [16, 13, 10]
    for part in ("x[:, 1]", "x[:, 1:]", "x[0, :, 1:]", "x[::-1]", "x[0, :2, :2]", "x[None]", "x.T"):
        with pytest.raises(TileTypeError, match="are not known to lie side by side"):
            _of_text(f"out[0] = {part}.ravel()[0]")[1, 1](x, out)


def _of_text(line: str):
    name, text = f"<{line}>", f"def kernel(x, out):\n    {line}\n"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space: dict = {}
    exec(compile(text, name, "exec"), space)
    return cuda.jit(space["kernel"])


def test_transpose() -> None:
    @cuda.jit
    def kernel(x, out):
        out[0] = x.transpose()[2, 1]

    out = np.zeros(1)
    kernel[1, 1](np.arange(6.0).reshape(2, 3), out)
    assert out[0] == 5


def test_positions_are_printed(capfd: pytest.CaptureFixture[str]) -> None:
    @cuda.jit
    def kernel():
        print(cuda.threadIdx, cuda.blockDim)

    kernel[1, 1]()
    cuda.synchronize()
    assert capfd.readouterr().out == "(0, 0, 0) (1, 1, 1)\n"


def test_reshape_of_an_array_in_a_tuple_beside_a_default() -> None:
    @cuda.jit
    def kernel(pair, out, n=2):
        a, b = pair
        out[0] = b.reshape(-1)[n] + a[0]

    x, out = np.arange(6.0).reshape(2, 3), np.zeros(1)
    kernel[1, 1]((np.ones(3), x), out)
    assert out[0] == 3
    with pytest.raises(TileTypeError, match=r"argument 'pair\[1\]': the kernel reshapes it"):
        kernel[1, 1]((cuda.to_device(np.ones(3)), x.T), out)


def test_an_array_from_outside_is_reshaped_and_may_hold_structures() -> None:
    rows = cuda.to_device(np.arange(6.0).reshape(2, 3))
    points = cuda.to_device(np.zeros(2, [("x", "f4"), ("y", "i4")]))

    @cuda.jit
    def kernel(out):
        points[1].x = 5
        out[0] = rows.reshape(6)[4] + points[1].x

    out = np.zeros(1)
    kernel[1, 1](out)
    assert out[0] == 9 and points.copy_to_host()["x"].tolist() == [0, 5]


def test_rows_of_what_only_goes_in() -> None:
    """Behind structures and complex numbers, of which a launch passes several values."""

    @cuda.jit
    def kernel(points, z, x, out):
        out[0] = x.reshape(-1)[4] + points[1].x + z.imag

    points, x, out = np.ones(2, [("x", "f4"), ("y", "i4")]), np.arange(6.0).reshape(2, 3), np.zeros(1)
    kernel[1, 1](points, 2j, cuda.In(x), cuda.InOut(out))
    assert out[0] == 7
    with pytest.raises(TileTypeError, match="argument 'x': the kernel reshapes it"):
        kernel[1, 1](points, 2j, cuda.to_device(x)[:, ::2], out)
