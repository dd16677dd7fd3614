"""Threads that compute several neighbouring elements: the code of a GPU joins blocks, which no result shows."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from cuda import device
from tilewright.cli import lower
from tilewright.numba import cuda


@device.kernel
def saxpy(a, x, y):
    i = device.tid(1)
    if i < y.size:
        y[i] = a * x[i] + y[i]


@device.kernel
def unsigned_saxpy(a, x, y):
    i = device.block_idx.x * device.block_dim.x + device.thread_idx.x
    if i >= y.size:
        return
    y[i] = a * x[i] + y[i]


@cuda.jit
def numba_saxpy(a, x, y):
    i = cuda.grid(1)
    if i < y.size:
        y[i] = a * x[i] + y[i]


@device.kernel
def everywhere(x, y):
    """Nothing keeps it within the arrays but the grid."""
    i = device.tid(1)
    y[i] = x[i] + device.float32(device.grid_dim.x)


@device.kernel
def stencil(src, dst):
    x, y = device.tid(2)
    if y < src.shape[0] and x < src.shape[1]:
        if x > 0 and x < src.shape[1] - 1 and y > 0 and y < src.shape[0] - 1:
            dst[y, x] = src[y, x - 1] + src[y, x + 1] + src[y - 1, x] + src[y + 1, x]
        else:
            dst[y, x] = src[y, x]


@device.kernel
def seven_points(src, dst):
    x, y, z = device.tid(3)
    if z < src.shape[0] and y < src.shape[1] and x < src.shape[2]:
        inner = x > 0 and x < src.shape[2] - 1 and y > 0 and y < src.shape[1] - 1 and z > 0 and z < src.shape[0] - 1
        if inner:
            around = src[z, y, x - 1] + src[z, y, x + 1] + src[z, y - 1, x] + src[z, y + 1, x]
            dst[z, y, x] = 0.4 * src[z, y, x] + 0.1 * (around + src[z - 1, y, x] + src[z + 1, y, x])
        else:
            dst[z, y, x] = src[z, y, x]


@device.kernel
def by_data(x, index, y):
    """Elements of a thread part by what they load, and gather anywhere."""
    i = device.tid(1)
    if i < y.size:
        value = x[i]
        if value > 0.5:
            value += x[index[i]]
        elif i % 3 == 1:
            value = -value
        y[i] = value


@device.kernel
def own_store(x, y):
    """A thread reads what it has stored."""
    i = device.tid(1)
    if i < x.size:
        y[i] = 2 * x[i]
        x[i] = y[i] + 1


@device.kernel
def chosen(x, y, low):
    """What branches end with differs from element to element, or not."""
    i = device.tid(1)
    if i < low:
        a, b = x[i], device.float32(1)
    else:
        a, b = device.float32(0), device.float32(2)
    if low > 4:
        b += 3
    if i < y.size:
        y[i] = a + b


def floats(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random(n).astype(np.float32)


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 127, 200, 256, 257])
@pytest.mark.parametrize("kernel", [saxpy, unsigned_saxpy], ids=["tid", "unsigned"])
def test_every_element(run: Any, kernel: Any, n: int) -> None:
    x, y = floats(n), floats(n, 1)
    expected = np.float32(2) * x + y
    run(kernel, 2.0, x, y, grid=-(-n // 32), block=32)
    assert np.array_equal(y, expected)


@pytest.mark.parametrize("grid", range(1, 10))
@pytest.mark.parametrize("block", [1, 7, 32])
def test_no_more_threads_than_the_grid_has(run: Any, grid: int, block: int) -> None:
    x, y = floats(400), np.zeros(400, np.float32)
    run(everywhere, x, y, grid=grid, block=block)
    n = grid * block
    assert np.array_equal(y[:n], x[:n] + np.float32(grid)) and not y[n:].any()


@pytest.mark.parametrize("shape", [(1, 1), (3, 4), (5, 64), (17, 131), (8, 3)])
def test_stencil(run: Any, shape: tuple[int, int]) -> None:
    src, dst = floats(shape[0] * shape[1]).reshape(shape), np.zeros(shape, np.float32)
    expected = src.copy()
    expected[1:-1, 1:-1] = src[1:-1, :-2] + src[1:-1, 2:] + src[:-2, 1:-1] + src[2:, 1:-1]
    run(stencil, src, dst, grid=(-(-shape[1] // 16), -(-shape[0] // 4)), block=(16, 4))
    assert np.array_equal(dst, expected)


def test_branches_by_data(run: Any) -> None:
    n = 150
    x, index, y = floats(n), np.random.default_rng(2).integers(0, n, n).astype(np.int32), np.zeros(n, np.float32)
    run(by_data, x, index, y, grid=5, block=32)
    expected = np.where(x > 0.5, x + x[index], np.where(np.arange(n) % 3 == 1, -x, x))
    assert np.array_equal(y, expected)


def test_own_stores_are_read(run: Any) -> None:
    x, y = floats(100), np.zeros(100, np.float32)
    expected = 2 * x
    run(own_store, x, y, grid=4, block=32)
    assert np.array_equal(y, expected) and np.array_equal(x, expected + 1)


@pytest.mark.parametrize("low", [0, 3, 4, 6, 90, 128])
def test_results_of_branches(run: Any, low: int) -> None:
    x, y = floats(128), np.zeros(120, np.float32)
    run(chosen, x, y, low, grid=4, block=32)
    i = np.arange(120)
    b = np.where(i < low, np.float32(1), np.float32(2)) + np.float32(3 if low > 4 else 0)
    assert np.array_equal(y, np.where(i < low, x[:120], np.float32(0)) + b)


# ---- which kernels --------------------------------------------------------------------------------------


def array(dtype: str, ndim: int = 1, align: int = 16, by: int = 4) -> tuple[Any, ...]:
    return ("array", dtype, ndim, align, (by,) * ndim, ((0, by),) * (ndim - 1) + ((1, 1),), True, False)


FLOAT = ("scalar", "float32", 1)


def accesses(kernel: Any, *key: Any) -> list[str]:
    text = lower(kernel, key, "sm_90a", "ptx").decode()
    return re.findall(r"(?:ld|st)\.global\S+", text)


@pytest.mark.parametrize("kernel", [saxpy, unsigned_saxpy, numba_saxpy], ids=["tid", "unsigned", "numba"])
def test_vectors(kernel: Any) -> None:
    found = accesses(kernel, FLOAT, array("float32"), array("float32"))
    assert found.count("ld.global.v4.b32") == 2 and found.count("st.global.v4.b32") == 1


@pytest.mark.parametrize(("dtype", "width"), [("float64", "v2.b64"), ("float16", "v4.b16"), ("uint8", "b32")])
def test_vectors_of_other_dtypes(dtype: str, width: str) -> None:
    found = accesses(own_store, array(dtype), array(dtype))
    assert f"st.global.{width}" in found


def test_neighbours_are_loaded_once() -> None:
    """Three rows, or one on the border."""
    found = accesses(stencil, array("float32", 2), array("float32", 2))
    assert found.count("ld.global.v4.b32") == 3 + 1 and found.count("st.global.v4.b32") == 2


@device.kernel
def by_lane(x, y):
    i = device.tid(1)
    y[i] = x[i] + device.float32(device.thread_idx.x)


@device.kernel
def with_barrier(x, y):
    i = device.tid(1)
    device.syncthreads()
    y[i] = x[i]


@device.kernel
def with_loop(x, y):
    i = device.tid(1)
    for _ in range(3):
        y[i] += x[i]


@device.kernel
def with_atomic(x, y):
    i = device.tid(1)
    device.atomic_ref(y, i).add(x[i])


@device.kernel
def apart(x, y):
    i = device.tid(1)
    y[2 * i] = x[i]


@device.kernel
def rows(x, y):
    i = device.tid(1)
    y[i, 0] = x[i, 1]


@device.kernel
def by_lane_id(x, y):
    i = device.tid(1)
    y[i] = x[i] + device.float32(device.lane_id)


@pytest.mark.parametrize("kernel", [by_lane, with_barrier, with_loop, with_atomic, apart, by_lane_id])
def test_kernels_left_alone(kernel: Any) -> None:
    assert "v4" not in "".join(accesses(kernel, array("float32"), array("float32")))
    text = lower(kernel, (array("float32"), array("float32")), "sm_90a", "tile-resize-tiles").decode()
    assert "packed_blocks" not in text


def test_arrays_left_alone() -> None:
    line, matrix = array("float32"), array("float32", 2)
    for kernel, key in [
        (saxpy, (FLOAT, array("float32", align=4), array("float32", align=4))),
        (rows, (matrix, matrix)),
        (stencil, (array("float32", 2, by=1), array("float32", 2, by=1))),
    ]:
        text = lower(kernel, key, "sm_90a", "tile-resize-tiles").decode()
        assert "packed_blocks" not in text
    assert "packed_blocks" in lower(saxpy, (FLOAT, line, line), "sm_90a", "tile-resize-tiles").decode()


@device.func
def poly(x):
    return ((((x * x + 1) * x + 2) * x + 3) * x + 4) * x + 5


@device.kernel
def long_body(x, y):
    i = device.tid(1)
    y[i] = poly(poly(poly(poly(poly(poly(poly(x[i])))))))


def test_a_stencil_of_three_dimensions_takes_four_elements() -> None:
    """Two take 0.42 ms for 512 cubed points, on an H200, and four 0.38; they take a tenth longer to compile."""
    found = accesses(seven_points, array("float32", 3), array("float32", 3))
    assert found.count("ld.global.v4.b32") == 6 and found.count("st.global.v4.b32") == 2


def test_long_kernels_take_two_elements() -> None:
    """So that they compile in time."""
    found = accesses(long_body, array("float32"), array("float32"))
    assert found.count("ld.global.v2.b32") == found.count("st.global.v2.b32") == 1
