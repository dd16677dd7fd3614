"""What programs use of numba.cuda beside the specification: today's typing, atomics, warps, arrays, streams."""

import math
import re
import runpy
import subprocess
import sys

import numpy as np
import pytest

from tilewright import arrays
from tilewright import compile as compiler
from tilewright.errors import LaunchError, TileCheckError, TileError, TileTypeError, TileValueError
from tilewright.numba import cuda, float32, float64, int32, int64, launching, uint32, uint64, void
from tilewright.numba.cuda import fp16, libdevice

FULL = 0xFFFFFFFF
TABLE = np.arange(8, dtype=np.float64)


@cuda.jit
def typing(a, b, f, out, known):
    acc = 0
    for i in range(f.size):
        acc += f[i]
    out[0] = acc
    known[0] = (a[0] + a[0]).dtype == int64
    known[1] = (a[0] / b[0]).dtype == float64
    known[2] = (f[0] // f[1]).dtype == float32
    known[3] = (b[0] + b[0]).dtype == uint64
    known[4] = (a[0] + b[0]).dtype == int64
    known[5] = (f[0] * 2).dtype == float64
    known[6] = (f[0] * f[1]).dtype == float32
    known[7] = cuda.grid(1).dtype == int64
    known[8] = cuda.threadIdx.x.dtype == int32
    known[9] = f.shape[0].dtype == int64
    known[10] = (-a[0]).dtype == int64
    known[11] = (f[0] ** 2).dtype == float32
    known[12] = math.sqrt(a[0]).dtype == float64
    known[13] = math.sqrt(f[0]).dtype == float32
    known[14] = min(a[0], f[0]).dtype == float32
    if out[0] > 0:
        merged = 1
    else:
        merged = 2.5
    known[15] = merged.dtype == float64
    x = 0
    for _ in range(3):
        x = x + 0.5
    out[1] = x
    known[16] = a[0] < b[0]
    out[2] = 2 ** a[1]
    out[3] = a[0] % 3
    out[4] = abs(a[0]) + round(f[0]) + int(f[1]) + float(a[0])
    known[17] = (a[0] > b[0]) == False  # noqa: E712
    known[18] = (a[0] & b[0]).dtype == int64
    known[19] = (b[0] << 3).dtype == uint64


def test_types_of_today(run):
    a, b, f = np.array([-7, 5], np.int16), np.array([2**63], np.uint64), np.array([1.5, 0.75, 4], np.float32)
    *_, out, known = run(typing, 1, 1, a, b, f, np.zeros(8), np.zeros(20, np.bool_))
    assert known.all(), np.nonzero(~known)
    np.testing.assert_array_equal(out[:5], [6.25, 1.5, 32, 2, 7 + 2 + 0 - 7])


@cuda.jit
def histogram(x, bins):
    i = cuda.grid(1)
    mine = cuda.shared.array(16, int32)
    t = cuda.threadIdx.x
    if t < 16:
        mine[t] = 0
    cuda.syncthreads()
    if i < x.size:
        cuda.atomic.add(mine, x[i], 1)
    cuda.syncthreads()
    if t < 16:
        cuda.atomic.add(bins, t, mine[t])


def test_histogram(run):
    x = np.random.default_rng(0).integers(0, 16, 1000).astype(np.int32)
    _, bins = run(histogram, 8, 128, x, np.zeros(16, np.int32))
    np.testing.assert_array_equal(bins, np.bincount(x, minlength=16))


def atomic_kernel(name):
    function = getattr(cuda.atomic, name)

    @cuda.jit
    def kernel(x, out):
        out[cuda.grid(1)] = function(x, 0, cuda.grid(1))

    return kernel


@pytest.mark.parametrize(
    ("name", "start", "expected"),
    [
        ("add", 1, 1 + 496), ("sub", 1000, 1000 - 496), ("max", 3, 31), ("min", 3, 0), ("and_", 63, 0), ("or_", 0, 31),
        ("xor", 5, 5), ("inc", 0, None), ("dec", 5, None), ("exch", 5, None),
    ],
)  # a table of several in a line  # fmt: skip
@pytest.mark.parametrize("dtype", [np.uint32, np.int64])
def test_atomics(run, name, start, expected, dtype):
    x, out = run(atomic_kernel(name), 1, 32, np.array([start], dtype), np.zeros(32, dtype))
    assert start in out
    assert expected is None or x[0] == expected


@cuda.jit
def compare(x, out):
    i = cuda.grid(1)
    out[i] = cuda.atomic.cas(x, 1, 7, i)
    cuda.atomic.compare_and_swap(x, 0, 9)
    cuda.atomic.max(x, (2,), i)


def test_compare_and_swap(run):
    x, out = run(compare, 1, 32, np.array([0, 7, -1], np.int32), np.zeros(32, np.int32))
    assert x[0] == 9 and (out == 7).sum() == 1 and x[1] == out.tolist().index(7) and x[2] == 31


@cuda.jit
def warps(x, sums, out):
    t = cuda.threadIdx.x
    v = x[t]
    for offset in (16, 8, 4, 2, 1):
        v += cuda.shfl_down_sync(FULL, v, offset)
    if cuda.laneid == 0:
        sums[t // cuda.warpsize] = v
    cuda.syncwarp()
    out[0, t] = cuda.ballot_sync(FULL, t % 2 == 1)
    out[1, t] = cuda.all_sync(FULL, t < 32)
    out[2, t] = cuda.any_sync(FULL, t == 3)
    out[3, t] = cuda.shfl_sync(FULL, t, 5)
    out[4, t] = cuda.shfl_up_sync(FULL, t, 1)
    out[5, t] = cuda.shfl_xor_sync(FULL, t, 1)
    out[6, t] = cuda.match_any_sync(FULL, t % 2)
    _, same = cuda.match_all_sync(FULL, t // 32)
    out[7, t] = same
    out[8, t] = cuda.syncthreads_count(t < 7)
    out[9, t] = cuda.syncthreads_and(t < 7)
    out[10, t] = cuda.syncthreads_or(t < 7)
    out[11, t] = cuda.lanemask_lt()
    cuda.threadfence()
    cuda.threadfence_block()
    cuda.threadfence_system()
    cuda.nanosleep(10)


def test_warps(run):
    x, t = np.random.default_rng(0).random(64), np.arange(64)
    _, sums, out = run(warps, 1, 64, x, np.zeros(2), np.zeros((12, 64), np.int64))
    np.testing.assert_allclose(sums, x.reshape(2, 32).sum(axis=1))
    lane, first = t % 32, t // 32 * 32
    odd, even = 0xAAAAAAAA, 0x55555555
    expected = [
        np.full(64, odd), t < 32, t < 32, first + 5, np.where(lane == 0, t, t - 1), t ^ 1, np.where(t % 2, odd, even),
        np.ones(64), np.full(64, 7), np.zeros(64), np.ones(64), (1 << lane) - 1,
    ]  # a table of several in a line  # fmt: skip
    for row, wanted in zip(out, expected, strict=True):
        np.testing.assert_array_equal(row.astype(np.uint32), np.array(wanted).astype(np.uint32))


@cuda.jit
def lower_lanes(out):
    out[cuda.grid(1)] = cuda.lanemask_lt()


def test_lanes_without_a_warp_operation(run):
    (out,) = run(lower_lanes, 1, 64, np.zeros(64, np.uint32))
    np.testing.assert_array_equal(out, (1 << np.arange(64) % 32) - 1)


@cuda.jit
def bits(x, out):
    i = cuda.grid(1)
    out[0, i] = cuda.popc(x[i])
    out[1, i] = cuda.clz(x[i])
    out[2, i] = cuda.ffs(x[i])
    out[3, i] = cuda.brev(x[i])
    out[4, i] = cuda.selp(x[i] > 5, 1, 2)
    out[5, i] = cuda.fma(x[i], 2, 1)


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
def test_bits(run, dtype):
    width = np.dtype(dtype).itemsize * 8
    x = np.array([0, 1, 6, 0x80, 0x12345678, 2**32 - 1, 2 ** (width - 1), 2**width - 1], dtype)
    _, out = run(bits, 1, 8, x, np.zeros((6, 8), np.uint64))
    texts = [f"{int(v):0{width}b}" for v in x]
    np.testing.assert_array_equal(out[0], [text.count("1") for text in texts])
    np.testing.assert_array_equal(out[1], [len(text) - len(text.lstrip("0")) for text in texts])
    np.testing.assert_array_equal(out[2], [text[::-1].find("1") + 1 for text in texts])
    np.testing.assert_array_equal(out[3], np.array([int(text[::-1], 2) for text in texts], np.uint64))
    np.testing.assert_array_equal(out[4], np.where(x > 5, 1, 2))


@cuda.jit
def made_arrays(out):
    mine = cuda.local.array(4, float32)
    constant = cuda.const.array_like(TABLE)
    dynamic = cuda.shared.array(0, float32)
    t = cuda.threadIdx.x
    for i in range(4):
        mine[i] = i * t
    dynamic[t] = mine[3] + constant[t]
    cuda.syncthreads()
    out[t] = dynamic[cuda.blockDim.x - 1 - t]


def test_arrays_that_a_kernel_makes():
    out = np.zeros(8)
    made_arrays[1, 8, 0, 32](out)
    np.testing.assert_array_equal(out, 4 * np.arange(8)[::-1])


@cuda.jit
def converted(x, n, out):
    out[0] = np.float32(x[0]) == np.float32(0.1)
    out[1] = np.int64(x[1]) + np.int8(300)
    out[2] = round(x[1], n)
    out[3] = round(x[1], 1)
    out[4] = np.bool_(x[1])


def test_types_of_numpy_convert(run):
    *_, out = run(converted, 1, 1, np.array([0.1, 2.625]), 2, np.zeros(5))
    np.testing.assert_allclose(out, [1, 2 + 44, 2.62, 2.6, 1])


@cuda.jit
def rounds(x, digits, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = round(x[i], digits)


@pytest.mark.parametrize("digits", [-2, -1, 0, 1, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_round_with_digits(run, dtype, digits):
    """As Python rounds the same number: 0.3425 of float32 is above 0.3425."""
    x = np.array([0.34251, 0.3425, 250, 350, -250, 45.5, 1e30, np.inf], dtype)
    x = np.delete(x, 1) if dtype is np.float64 else x  # between two: the decimal digits are rounded there
    _, _, out = run(rounds, 1, 8, x, np.int64(digits), np.zeros_like(x))
    np.testing.assert_array_equal(out, np.array([round(float(v), digits) for v in x], dtype))


@cuda.jit
def filled(x, n, out):
    t = cuda.grid(1)
    if t < 2:
        mine = x[t]
    for i in range(n):
        last = x[i]
    if t < 2:
        out[t] = mine
    out[2] = last
    out[3] = i
    known = last.dtype == float32
    out[4] = known


@cuda.jit
def differences(x, out):
    i = cuda.grid(1)
    for k in range(x.shape[1]):
        if k > 0:
            out[i] += (x[i, k] - last) ** 2  # noqa: F821
        for part in range(2):
            last = x[i, k] + part  # noqa: F841


def test_variables_of_the_iteration_before(run):
    x = np.arange(12.0).reshape(3, 4) ** 2
    _, out = run(differences, 1, 3, x, np.zeros(3))
    np.testing.assert_array_equal(out, ((np.diff(x, axis=1) - 1) ** 2).sum(axis=1))


def test_variables_that_some_way_does_not_assign(run):
    x = np.array([1.5, 2.5, 3.5], np.float32)
    *_, out = run(filled, 1, 4, x, 3, np.zeros(5))
    np.testing.assert_array_equal(out, [1.5, 2.5, 3.5, 2, 1])
    *_, out = run(filled, 1, 4, x, 0, np.zeros(5))
    np.testing.assert_array_equal(out, [1.5, 2.5, 0, 0, 1])


# === launches =========================================================================================================


@cuda.jit("void(float32[:], float32)")
def scaled(x, a):
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= a


@cuda.jit(void(float64[:]))
def counted(x):
    x[cuda.grid(1)] = cuda.gridsize(1)


@cuda.jit("void(float64[:], int32)")
def wraps(x, n):
    x[0] = n


def test_signatures():
    x = np.ones(5, np.float32)
    scaled[1, 8](x, 3)
    np.testing.assert_array_equal(x, 3)
    y = np.zeros(8)
    counted[2, 4](y)
    np.testing.assert_array_equal(y, 8)
    wraps[1, 1](y, 0xFFFFFFFF)
    assert y[0] == -1
    scaled.forall(5)(x, 2)
    np.testing.assert_array_equal(x, 6)
    with pytest.raises(TileTypeError, match=r"argument 'x': its signature has float32\[:\], found ndarray of float64"):
        scaled[1, 8](np.ones(5), 3)
    with pytest.raises(TileTypeError, match="takes 2 arguments, found 1"):
        scaled[1, 8](x)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: cuda.jit(3), TileTypeError, "a signature is written as"),
        (lambda: cuda.jit("void(floaty)"), TileTypeError, "'floaty' is no type of a signature"),
        (lambda: cuda.jit(fast=True), TileTypeError, "@cuda.jit has no option 'fast'"),
        (lambda: cuda.jit(launch_bounds=0)(lambda x: x), TileValueError, "launch_bounds is an integer from 1 to 1024"),
        (lambda: cuda.jit(launch_bounds=(1, 2, 3, 4))(scaled), TileValueError, "and the most blocks of"),
        (lambda: cuda.jit(max_registers=256)(scaled), TileValueError, "max_registers is an integer from 1 to 255"),
        (lambda: cuda.jit(scaled, launch_bounds=32)[1, 64](np.ones(1, np.float32), 1), LaunchError, "says 32 at most"),
        (lambda: cuda.jit(rules="c"), TileValueError, "the rules are 'numba' or 'npm'"),
        (lambda: cuda.jit(link=["a.cuh"]), TileValueError, "expected a file of one of .ptx, .cu"),
        (lambda: cuda.jit("int32(int32)")(lambda x: x), TileTypeError, "a kernel returns nothing"),
        (lambda: scaled(1), LaunchError, r"launch it by scaled\[blocks, threads\]"),
        (lambda: scaled[1], LaunchError, r"kernel\[blocks, threads, stream, shared bytes\]"),
        (lambda: scaled[1, 1, 0, -1], LaunchError, "shared memory is a number of bytes, found -1"),
        (lambda: scaled[1, 4096](np.ones(1, np.float32), 1), LaunchError, "1024"),
        (lambda: cuda.grid(1), TileError, "has a meaning only in a kernel"),
        (lambda: cuda.threadIdx.x, TileError, "has a value only in a kernel"),
        (lambda: cuda.atomic.add(1, 2, 3), TileError, "has a meaning only in a kernel"),
        (lambda: float32[0], TileTypeError, "is written as float32"),
        (lambda: cuda.compile(scaled.py_func, "void(float32)", abi="numba"), TileTypeError, "found 'numba'"),
    ],
)
def test_refused(make, error, words):
    with pytest.raises(error, match=words):
        make()


# === names of CUDA C++ ================================================================================================


@cuda.jit
def named(x, h, n, out):
    v = cuda.float32x4(cuda.float2(x[0], x[1]), x[2], 1)
    out[0] = v.x + v.y * v.z + v.w
    out[1] = libdevice.sinf(x[1])
    out[2] = libdevice.rsqrt(x[2])
    out[3] = libdevice.fast_powf(x[1], x[2])
    out[4] = cuda.cbrt(x[3])
    out[5] = cuda.ldcg(x, 2)
    cuda.stcs(out, 6, 7.5)
    out[7] = libdevice.floor(x[4]) * 100 + libdevice.ceil(x[4]) * 10 + libdevice.trunc(x[4])
    out[8] = libdevice.fmax(x[5], x[0])
    h[0] = fp16.hfma(h[1], h[2], h[3])
    h[1] = fp16.hexp2(h[2])
    h[4] = fp16.hrint(h[5])
    h[6] = fp16.hmax(h[7], h[0])
    out[9] = fp16.hlt(h[2], h[3])
    out[10] = fp16.hne(h[7], h[7])
    n[0] = libdevice.clz(n[1])
    n[2] = libdevice.umulhi(n[3], n[3])
    n[4] = n[1].bit_count()


def test_names_of_cuda_cpp(run):
    x, h = np.array([1, 2, 3, -27, -2.5, np.nan]), np.arange(8, dtype=np.float16) + np.float16(0.5)
    h[7] = np.nan
    x, h, n, out = run(named, 1, 1, x, h, np.array([0, 5, 0, 2**31, 0]), np.zeros(11))
    np.testing.assert_allclose(out, [8, np.sin(2), 3**-0.5, 8, -3, 3, 7.5, -322, 1, 1, 0], rtol=1e-6)
    np.testing.assert_array_equal(n, [29, 5, 2**30, 2**31, 2])
    np.testing.assert_array_equal(h[[0, 1, 4, 6]], np.float16([1.5 * 2.5 + 3.5, 2**2.5, 6, 7.25]))


@cuda.jit
def walked(x, y, out, n):
    for v in x:
        out[0] += v
    for i, v in enumerate(x):
        out[1] += i * v
    for i, (a, b) in enumerate(zip(x, y, strict=False), 2):
        out[2] += i * a * b
    for (i, a), b in zip(enumerate(x), y, strict=False):
        out[3] += i * a + b
    for i, j in enumerate(range(n)):
        out[4] += i * j
    for j, v in zip(range(1, n), x, strict=False):
        if j > 2:
            break
        out[5] += j * v
    else:
        out[5] = 100
    for i, c in enumerate((3, 4)):
        out[6] += i * c


@cuda.jit
def numpy_names(x, out):
    out[0] = np.arctan2(x[0], x[1])
    out[1] = np.maximum(x[0], x[1]) + np.absolute(x[2])
    out[2] = np.power(x[0], x[1])
    out[3] = round(x[3], 3)
    out[4] = round(x[4], 2)


def test_functions_by_their_names_in_numpy(run):
    _, out = run(numpy_names, 1, 1, np.array([1, 2, -3, 1.7e308, 2.345]), np.zeros(5))
    np.testing.assert_allclose(out, [np.arctan2(1, 2), 5, 1, 1.7e308, 2.35], rtol=1e-15)


@cuda.jit
def with_outputs(x, y, out, narrow):
    np.arctan2(x, 2, out)
    np.maximum(out, y, out=out)
    i = cuda.grid(1)
    if i < x.shape[0]:
        np.sin(x[i], narrow[i])
        np.sqrt(narrow[i, 0, 1:], np.absolute(narrow[i, 0, 1:], narrow[i, 0, 1:]))


def test_functions_of_numpy_that_have_an_output(run):
    """They go over the elements, whatever their axes, of what a thread gives them; one array may be both."""
    x, y = np.random.default_rng(0).standard_normal((2, 3, 4, 5))
    *_, out, narrow = run(with_outputs, 1, 1, x, y, np.zeros_like(x), np.zeros(x.shape, np.float32))
    np.testing.assert_allclose(out, np.maximum(np.arctan2(x, 2), y), rtol=1e-15)
    expected = np.zeros(x.shape)
    expected[0] = np.sin(x[0])
    expected[0, 0, 1:] = np.sqrt(np.abs(expected[0, 0, 1:]))
    np.testing.assert_allclose(narrow, expected, rtol=1e-6)


@pytest.mark.parametrize(
    "source, words",
    [
        ("np.sin(x, 3)", "numpy.sin writes to an array, found the constant 3"),
        ("np.sin(x, x[0])", "of the 2-D float64 array 'x' does not fill the 1-D"),
        ("np.sin(x, x, x)", "numpy.sin takes a value, and an output"),
        ("np.arctan2(x, out=x)", "numpy.arctan2 takes 2 values, and an output"),
        ("np.sin(x)", "sin needs a number, found the 2-D"),
    ],
)
def test_outputs_that_do_not_fit(source, words, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(f"import numpy as np\ndef kernel(x):\n    {source}\n")
    with pytest.raises(TileTypeError, match=re.escape(words)):
        cuda.jit(runpy.run_path(str(path))["kernel"])[1, 1](np.zeros((2, 2)))


def test_loops_over_arrays(run):
    x, y = np.arange(5.0), np.arange(4.0) + 1
    out = run(walked, 1, 1, x, y, np.zeros(7), 6)[2]
    pairs = list(zip(x, y, strict=False))
    expected = [
        x.sum(),
        sum(i * v for i, v in enumerate(x)),
        sum(i * a * b for i, (a, b) in enumerate(pairs, 2)),
        sum(i * a + b for i, (a, b) in enumerate(pairs)),
        sum(i * i for i in range(6)),
        2,
        4,
    ]
    np.testing.assert_array_equal(out, expected)


@cuda.jit
def extremes(x, olds):
    olds[0] = cuda.atomic.max(x, 0, x[4])
    olds[1] = cuda.atomic.min(x, 1, x[4])
    olds[2] = cuda.atomic.max(x, 2, 7)
    olds[3] = cuda.atomic.nanmax(x, 3, 7)


def test_atomic_extremes_of_what_is_no_number(run):
    """It stays where it is, but for nanmax, and is never put there."""
    nan = np.nan
    x, olds = run(extremes, 1, 1, np.array([1, 2, nan, nan, nan]), np.zeros(4))
    np.testing.assert_array_equal(x, [1, 2, nan, 7, nan])
    np.testing.assert_array_equal(olds, [1, 2, nan, nan])


# === memory ===========================================================================================================


@pytest.mark.spec("I-047", "I-051", "I-055")
def test_device_arrays():
    host = np.arange(12, dtype=np.float32).reshape(3, 4)
    a = cuda.to_device(host)
    b = cuda.device_array_like(a)
    assert isinstance(a, cuda.DeviceNDArray) and isinstance(a, arrays.Array)
    assert (b.shape, b.dtype, cuda.device_array((2, 3), np.int8).dtype) == ((3, 4), np.float32, np.int8)
    b.copy_to_device(a)
    out = np.empty_like(host)
    assert b.copy_to_host(out) is out
    np.testing.assert_array_equal(out, host)
    np.testing.assert_array_equal(a[1:, ::2].copy_to_host(), host[1:, ::2])
    assert cuda.is_cuda_array(a) and not cuda.is_cuda_array(host)
    assert cuda.as_cuda_array(a) is a


def test_streams_and_events():
    stream = cuda.stream()
    begin, end = cuda.event(), cuda.event()
    x = np.ones(1000, np.float32)
    with stream.auto_synchronize():
        begin.record(stream)
        a = cuda.to_device(x, stream=stream)
        scaled[8, 128, stream](a, 2.0)
        end.record(stream)
    end.synchronize()
    assert begin.elapsed_time(end) >= 0 and end.query()
    np.testing.assert_array_equal(a.copy_to_host(stream=stream), 2)
    cuda.synchronize()
    with cuda.pinned(x), cuda.defer_cleanup():
        assert cuda.pinned_array(3).shape == (3,)
    assert len(cuda.gpus) >= 1 and cuda.get_current_device().WARP_SIZE == 32 and cuda.is_available()


def test_in_and_out():
    x, y = np.ones(4, np.float32), np.zeros(4, np.float32)
    scaled[1, 4](cuda.InOut(x), 2)
    scaled[1, 4](cuda.Out(y), 2)
    np.testing.assert_array_equal(x, 2)
    products_of_one[1, 4]((cuda.In(x), cuda.Out(y), y))
    np.testing.assert_array_equal(y, [3, 2, 1, 0])
    assert uint32.dtype == np.uint32


def test_host_arrays_go_to_the_gpu_and_back(monkeypatch):
    """With memory of the CPU in the place of the GPU's. What is read-only does not come back."""
    monkeypatch.setattr(arrays, "_has_gpu", lambda: True)
    monkeypatch.setattr(arrays, "_device", lambda _: arrays.CPU)
    monkeypatch.setattr(launching, "_has_cpu_array", lambda _: False)
    monkeypatch.setattr(launching, "_is_on_gpu", lambda _: False)
    x, y = np.broadcast_to(np.float32(2), 4), np.zeros((4, 2), np.float32)
    products[1, 4](x, y[::-1, 0], cuda.Out(y[:, 1]))
    np.testing.assert_array_equal(y, [[6, 3], [4, 2], [2, 1], [0, 0]])
    products_of_one[1, 4]((x, y[:, 0], cuda.Out(y[::-1, 1])))
    np.testing.assert_array_equal(y, [[0, 0], [2, 1], [4, 2], [6, 3]])


@cuda.jit
def products(x, y, z):
    i = cuda.grid(1)
    y[i] = i * x[i]
    z[z.size - 1 - i] = i


@cuda.jit
def products_of_one(arrays):
    i = cuda.grid(1)
    x, y, z = arrays
    y[i] = i * x[i]
    z[i] = z.size - 1 - i


def test_numba_cuda_may_be_installed() -> None:
    """Its finder takes all modules with `numba.cuda` in their names for its own, and looks for them without end."""
    program = """
import sys

class Finder:
    def find_spec(self, name, path, target=None):
        if "numba.cuda" in name:
            raise RecursionError(name)

sys.meta_path.insert(0, Finder())
from tilewright.numba import cuda
import tilewright.numba.cuda
from tilewright.numba.cuda import random
assert tilewright.numba.cuda is cuda and cuda.random is random
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_options_of_a_kernel_reach_its_code():
    options = {"launch_bounds": (128, 2), "max_registers": 64, "lineinfo": True}
    text = cuda.jit(scaled, **options).compile("void(float32[:], float32)").inspect_asm()
    for line in (".maxntid 128", ".minnctapersm 2", ".maxnreg 64"):
        assert f"{line}\n" in text
    assert "\t.loc\t" in text and "test_cuda.py" in text
    plain = cuda.jit(scaled).compile("void(float32[:], float32)").inspect_asm()
    assert ".maxn" not in plain and ".loc" not in plain


def test_bounds_of_a_launch_stay():
    """What a GPU compiles at a launch; such hints of tiles are dropped where a kernel spills, bounds are promises."""
    bounded = cuda.jit(scaled, launch_bounds=(128, 2))
    _, key = bounded.specialization((np.ones(4, np.float32), np.float32(2)))
    compiler.compile_kernel(bounded, "sm_90a", key)
    assert bounded.without_hints(compiler.SHARING_HINTS) is None


@cuda.jit(debug=True)
def beyond(x):
    x[cuda.grid(1) + 1] = 0


@cuda.jit(device=True)
def root(x):
    if x < 0:
        raise ValueError("negative")
    return math.sqrt(x)


def raises(x, out):
    i = cuda.grid(1)
    if x[i] > 100:
        raise OverflowError("too large")
    out[i] = root(x[i]) + 1


def test_raise_ends_the_thread(run):
    _, out = run(cuda.jit(raises), 1, 4, np.array([4.0, 400, -1, 9]), np.zeros(4))
    np.testing.assert_array_equal(out, [3, 0, 1, 4])


@pytest.mark.parametrize(("bad", "told"), [(-1, "ValueError: negative"), (400, "OverflowError: too large")])
def test_raise_is_told_of_with_debug(bad, told):
    x, out = np.array([4.0, bad]), np.zeros(2)
    with pytest.raises(TileCheckError, match=rf"thread \(1, 0, 0\).*{told}") as caught:
        cuda.jit(raises, debug=True)[1, 2](x, out)
    assert "test_cuda.py" in str(caught.value) and "raise " in str(caught.value)


def test_debug_launches_in_check_mode():
    x = np.ones(4, np.float32)
    with pytest.raises(TileCheckError, match=r"thread \(3, 0, 0\)"):
        beyond[1, 4](x)
    np.testing.assert_array_equal(x, [1, 0, 0, 0])
