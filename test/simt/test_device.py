"""SIMT kernels through the same dialect and lowering as tile kernels, on the CPU and (--backend=cuda) on a GPU."""

import numpy as np
import pytest

from cuda import device
from tilewright.errors import TileError, TileSyntaxError, TileTypeError, TileValueError

BLOCK = 128


@device.kernel
def vec_add(a, b, c):
    i = device.tid(1)
    if i < c.shape[0]:
        c[i] = a[i] + b[i]


@device.kernel
def reverse_blocks(x, y):
    """Each block writes its elements backwards, through shared memory."""
    tile = device.shared_array(BLOCK, device.float32)
    t = device.thread_idx.x
    i = t + device.block_idx.x * device.block_dim.x
    tile[t] = x[i]
    device.syncthreads()
    y[i] = tile[device.block_dim.x - 1 - t]


@device.kernel
def block_sums(x, sums):
    """A tree of additions, one barrier a level."""
    shared = device.shared_array((BLOCK,), device.float32)
    t = device.thread_idx.x
    i = device.tid(1)
    shared[t] = x[i] if i < x.shape[0] else 0.0
    step = BLOCK // 2
    while step > 0:
        device.syncthreads()
        if t < step:
            shared[t] += shared[t + step]
        step //= 2
    if t == 0:
        sums[device.block_idx.x] = shared[0]


@device.kernel
def two_arrays(x, y):
    """Two shared arrays do not overlap."""
    first = device.shared_array(BLOCK, device.float32)
    second = device.shared_array(BLOCK, device.int32)
    t = device.thread_idx.x
    first[t] = x[t]
    second[t] = t
    device.syncthreads()
    y[t] = first[BLOCK - 1 - t] + second[t]


@device.kernel
def transpose(x, y):
    i, j = device.tid(2)
    if i < x.shape[1] and j < x.shape[0]:
        y[i, j] = x[j, i]


@device.func
def clamp(v, low, high):
    return low if v < low else high if v > high else v


@device.kernel
def grid_stride(x, y, low, high):
    for i in range(device.tid(1), x.shape[0], device.grid_size(1)):
        y[i] = clamp(x[i], low, high)


@pytest.mark.spec("D-302", "D-312", "D-337")
@pytest.mark.parametrize("n", [1, 127, 1000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
def test_vector_add(run, n, dtype):
    a, b = (np.arange(n) * k for k in (1, 3))
    a, b, c = a.astype(dtype), b.astype(dtype), np.zeros(n, dtype)
    run(vec_add, a, b, c, grid=-(-n // 256), block=256)
    np.testing.assert_array_equal(c, a + b)


@pytest.mark.spec("D-333", "D-363", "D-508")
def test_shared_array_and_barrier(run):
    x = np.random.default_rng(0).random(4 * BLOCK, dtype=np.float32)
    y = np.zeros_like(x)
    run(reverse_blocks, x, y, grid=4, block=BLOCK)
    np.testing.assert_array_equal(y.reshape(4, BLOCK), x.reshape(4, BLOCK)[:, ::-1])


def test_barrier_in_a_loop(run):
    x = np.arange(3 * BLOCK + 5, dtype=np.float32)
    sums = np.zeros(4, np.float32)
    run(block_sums, x, sums, grid=4, block=BLOCK)
    expected = np.pad(x, (0, BLOCK - 5)).reshape(4, BLOCK).sum(axis=1)
    np.testing.assert_array_equal(sums, expected)


@pytest.mark.spec("D-370")
def test_two_shared_arrays(run):
    x = np.arange(BLOCK, dtype=np.float32)
    y = np.zeros_like(x)
    run(two_arrays, x, y, grid=1, block=BLOCK)
    np.testing.assert_array_equal(y, x[::-1] + np.arange(BLOCK))


@pytest.mark.spec("D-338")
def test_two_dimensions(run):
    x = np.arange(33 * 20, dtype=np.float32).reshape(33, 20)
    y = np.zeros((20, 33), np.float32)
    run(transpose, x, y, grid=(3, 5), block=(8, 8))
    np.testing.assert_array_equal(y, x.T)


@device.kernel
def sizes(x):
    x[device.tid(1)] = device.grid_size(1)


@pytest.mark.spec("D-347")
def test_grid_size(run):
    x = np.zeros(3 * 32, np.int32)
    run(sizes, x, grid=3, block=32)
    assert (x == 96).all()


def test_grid_stride_loop_and_function(run):
    x = np.linspace(-2, 2, 1001, dtype=np.float32)
    y = np.zeros_like(x)
    run(grid_stride, x, y, -1.0, 1.0, grid=2, block=64)
    np.testing.assert_array_equal(y, np.clip(x, -1, 1))


# --- errors --------------------------------------------------------------------------------------


def launch(kernel, *args):
    device.launch(kernel, *args, grid=1, block=1)


ARRAY = np.zeros(4, np.float32)


def test_wrong_number_of_indices():
    @device.kernel
    def k(x):
        x[0, 0] = 1.0

    with pytest.raises(TileTypeError, match=r"has 1 dimension, the index is for 2; give one for each") as error:
        launch(k, ARRAY)
    assert "x[0, 0] = 1.0" in str(error.value)


def test_axis_that_does_not_exist():
    @device.kernel
    def k(x):
        x[0] = device.thread_idx.w

    with pytest.raises(TileTypeError, match="a Dim3 has no attribute 'w'; it has x, y, z"):
        launch(k, ARRAY)


@pytest.mark.spec("D-364")
def test_shape_of_a_shared_array_is_constant():
    @device.kernel
    def k(x):
        s = device.shared_array(x.shape[0], device.float32)
        x[0] = s[0]

    with pytest.raises(TileValueError, match="the shape must be constant and positive"):
        launch(k, ARRAY)


def test_arrays_of_tile_kernels_are_not_indexed():
    from tilewright import tile as ct

    @ct.kernel
    def k(x):
        x[0] = 1.0

    with pytest.raises((TileTypeError, TileSyntaxError), match="cannot be assigned by index; use ct.store"):
        ct.launch(None, (1,), k, (ARRAY,))


@pytest.mark.spec("D-287")
@pytest.mark.parametrize("name", ["thread_idx", "block_idx", "block_dim", "grid_dim"])
def test_positions_have_no_value_on_the_host(name):
    for axis in "xyz":
        with pytest.raises(TileError, match=f"device.{name} is device only: it has a value in a kernel"):
            getattr(getattr(device, name), axis)


@pytest.mark.spec("D-287")
@pytest.mark.parametrize(
    ("name", "arguments"),
    [("tid", (1,)), ("grid_size", (1,)), ("syncthreads", ()), ("shared_array", (4, device.float32))],
)
def test_what_only_a_kernel_can_call(name, arguments):
    with pytest.raises(TileError, match="only be called in a kernel|is device only"):
        getattr(device, name)(*arguments)


def test_launch_needs_a_simt_kernel():
    with pytest.raises(TileTypeError, match="device.launch starts a @device.kernel"):
        device.launch(lambda x: None, ARRAY, grid=1, block=1)
    with pytest.raises(TileTypeError, match="@device.kernel has no keyword argument 'fast'; it takes interop"):
        device.kernel(fast=True)(lambda x: None)
