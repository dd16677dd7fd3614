"""The CUDA Python specification 0.2, line by line; its table of types is in test_npm_table.py."""

import math
import re
import threading

import numpy as np
import pytest

from tilewright.errors import TileError, TileSyntaxError, TileTypeError, TileValueError
from tilewright.numba import npm
from tilewright.numba.npm import (
    bool_,
    cuda,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    intp,
    uint8,
    uint16,
    uint32,
    uint64,
)

I32, F32, F64 = (np.zeros(8, t) for t in (np.int32, np.float32, np.float64))


def zeros(kind=np.float64, *shape):
    return np.zeros(shape or 16, kind)


def refused(error, words, kernel, *args):
    with pytest.raises(error, match=words) as caught:
        kernel[1, 1](*args)
    assert "test_npm.py" in str(caught.value)


# === programs =========================================================================================================


def plain(x, y):
    """A function of the No-Python mode."""
    total = 0
    for i in range(10):
        if i == y:
            continue
        total += x * i
    return total


device_function = cuda.jit(plain, device=True)


@cuda.jit
def calls(x, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = device_function(x[i], 3) + plain(x[i], 3)


@pytest.mark.spec("N-001", "N-002", "N-003", "N-005", "N-007", "N-118", "N-139")
def test_a_function_is_part_of_a_kernel(run):
    x = np.arange(8)
    _, out = run(calls, 1, 8, x, zeros(np.int64, 8))
    np.testing.assert_array_equal(out, 2 * 42 * x)
    assert ".entry calls" in cuda.compile_ptx(calls, "void(int64[:], int64[:])")[0]


@pytest.mark.spec("N-005")
def test_kernels_need_no_interpreter():
    """Other threads of Python go on while a kernel runs on the CPU."""
    x, out = np.arange(8), zeros(np.int64, 8)
    threads = [threading.Thread(target=calls[1, 8], args=(x, out)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(out, 2 * 42 * x)


@cuda.jit
def all_types(b, i, f, a, out):
    out[0] = b and True
    out[1] = i + 1
    out[2] = f * 2.0
    out[3] = a[1, 2]
    out[4] = not b
    out[5] = 1.0 if b else 2.0


@pytest.mark.spec("N-006", "N-007", "N-008", "N-010")
def test_supported_types(run):
    a = np.arange(12.0).reshape(3, 4)
    *_, out = run(all_types, 1, 1, True, 7, 1.5, a, zeros())
    np.testing.assert_array_equal(out[:6], [1, 8, 3, 6, 0, 1])


@cuda.jit
def loops(n, out):
    for i in range(3):
        out[0] += i
    for i in range(2, 5):
        out[1] += i
    for i in range(9, 2, -3):
        out[2] += i
    for i in xrange(4):  # noqa: F821
        out[3] += i
    for i in range(n):
        if i == 2:
            continue
        if i == 6:
            break
        out[4] += i
    k = n
    while k > 4:
        k -= 1
        out[5] += 1
    else:
        out[6] = 1.0


@pytest.mark.spec("N-013", "N-014", "N-015", "N-016", "N-017", "N-020")
def test_loops(run):
    _, out = run(loops, 1, 1, 10, zeros())
    np.testing.assert_array_equal(out[:7], [3, 9, 18, 6, 0 + 1 + 3 + 4 + 5, 6, 1])


@cuda.jit
def early(x, out):
    i = cuda.grid(1)
    if i >= out.size:
        return
    out[i] = x[i]


@pytest.mark.spec("N-020")
def test_return(run):
    _, out = run(early, 2, 8, np.arange(8.0), zeros(np.float64, 8))
    np.testing.assert_array_equal(out, np.arange(8))


def pair(x):
    return x + 1, x + 2


@cuda.jit
def attributes(a, out):
    h, w = a.shape
    down, across = a.strides
    first, second = pair(h)
    out[0] = h
    out[1] = w
    out[2] = down
    out[3] = across
    out[4] = a.size
    out[5] = a.ndim
    out[6] = a.shape[0] + a.strides[1]
    out[7] = first * 100 + second
    out[8] = a.shape[0].dtype == int64
    out[9] = a.size.dtype == int64
    out[10] = a.strides[0].dtype == int64
    out[11] = a[0, 0].dtype == int8
    t = (h, 5)
    out[12] = t[1] + len(t)


@pytest.mark.spec("N-021", "N-022", "N-023", "N-024", "N-025", "N-035", "N-036", "N-037", "N-038", "N-103", "N-104")
@pytest.mark.spec("N-105", "N-106", "N-107", "N-108", "N-109", "N-112", "N-113")
def test_attributes(run):
    _, out = run(attributes, 1, 1, np.zeros((3, 5), np.int8), zeros(np.int64))
    np.testing.assert_array_equal(out[:13], [3, 5, 5, 1, 15, 2, 4, 405, 1, 1, 1, 1, 7])


@cuda.jit
def copy_2d(x, y):
    i, j = cuda.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        y[i, j] = x[i, j]


@pytest.mark.spec("N-028", "N-029", "N-030", "N-032", "N-110", "N-111", "N-115")
@pytest.mark.parametrize("view", [np.s_[:, :], np.s_[::-1, ::-2], np.s_[::2, 1:]])
def test_strided_arrays(view):
    x = np.arange(24.0).reshape(4, 6)
    y = np.zeros_like(x[view])
    copy_2d[1, (8, 8)](x[view], y)
    np.testing.assert_array_equal(y, x[view])
    y = np.zeros((4, 6))
    copy_2d[1, (8, 8)](np.broadcast_to(x[0], (4, 6)), y)
    np.testing.assert_array_equal(y, np.broadcast_to(x[0], (4, 6)))


@cuda.jit
def sliced(x, y):
    part = x[1:4]
    y[0] = part[0]
    y[1] = part.size
    row = x[::2]
    y[2] = row[1]


@pytest.mark.spec("N-031", "N-039")
def test_slices_are_accepted(run):
    _, y = run(sliced, 1, 1, np.arange(5.0), zeros())
    np.testing.assert_array_equal(y[:3], [1, 3, 2])


# === what is refused ==================================================================================================


@cuda.jit
def object_of_python(out):
    x = [1, 2]
    x.append(3)


@cuda.jit
def raising(out):
    if out[0] > 0:
        raise ValueError("no")


@cuda.jit
def trying(out):
    try:
        out[0] = 1
    except ValueError:
        out[0] = 2


@cuda.jit
def over_a_number(x):
    for v in x[0]:
        x[0] = v


@cuda.jit
def range_as_value(x):
    r = range(3)
    for i in r:
        x[i] = i


@cuda.jit
def zero_step(x):
    for i in range(0, 5, 0):
        x[i] = i


@cuda.jit
def unknown_attribute(x):
    x[0] = x.itemcount


@cuda.jit
def unpacked(x):
    a, b = x
    x[0] = a + b


@cuda.jit
def too_few(x):
    x[0] = 1.0


@cuda.jit
def too_many(x):
    x[0, 0, 0] = 1.0


@cuda.jit
def wrong_names(x):
    a, b, c = x.shape
    x[0, 0] = a + b + c


@cuda.jit
def writes_shape(x):
    x.shape = (1, 2)


@cuda.jit
def fancy(x, i):
    x[0] = x[i]


@cuda.jit
def no_type(x):
    if x[0] > 0:
        v = 1
    else:
        v = x
    x[1] = v


@cuda.jit
def shift_of_float(x):
    x[0] = x[0] << 1


@cuda.jit
def shared_of_run_time(x):
    s = cuda.shared.array(x.size, float32)
    s[0] = 1


@cuda.jit
def shared_of_text(x):
    s = cuda.shared.array(4, "no type")
    s[0] = 1


@pytest.mark.parametrize(
    ("kernel", "args", "error", "words"),
    [
        pytest.param(k, a, e, w, marks=pytest.mark.spec(*i.split()), id=k.name)
        for k, a, e, w, i in [
            (object_of_python, (F64,), TileError, "append", "N-011 N-040"),
            (raising, (F64,), TileSyntaxError, "raise", "N-012"),
            (trying, (F64,), TileSyntaxError, "try", "N-012"),
            (over_a_number, (F64,), TileTypeError, "found a run-time float64 scalar", "N-018"),
            (range_as_value, (F64,), TileTypeError, "a range can only be the head of a loop", "N-019"),
            (zero_step, (F64,), TileValueError, "the step of range must not be zero", "N-016"),
            (unknown_attribute, (F64,), TileTypeError, "an array has no attribute 'itemcount'", "N-026"),
            (unpacked, (F64,), TileTypeError, "an assignment to several names goes over", "N-027"),
            (too_few, (zeros(np.float64, 2, 2),), TileTypeError, "has 2 dimensions, the index is for 1", "N-033 N-039"),
            (too_many, (zeros(np.float64, 2, 2),), TileTypeError, "has 2 dimensions, the index is for 3", "N-034"),
            (wrong_names, (zeros(np.float64, 2, 2),), TileValueError, "cannot unpack 2 values into 3 names", "N-035"),
            (writes_shape, (F64,), TileTypeError, "gets no attribute 'shape' in device code", "N-102"),
            (fancy, (F64, I32), TileTypeError, "an index is an integer, found the 1-D int32 array 'i'", "N-114"),
            (no_type, (F64,), TileTypeError, "the variable 'v' is the constant 1 where", "N-004 N-053"),
            (shift_of_float, (F64,), TileTypeError, "<< of float64 and int64 is not defined", "N-092"),
            (shared_of_run_time, (F64,), TileValueError, "the shape must be constant", "N-133"),
            (shared_of_text, (F64,), TileTypeError, "the dtype is a type such as float32", "N-135"),
        ]
    ],
)
def test_refused(kernel, args, error, words):
    refused(error, words, kernel, *args)


# === variables ========================================================================================================


@cuda.jit
def coercions(x8, f, out8, out_f, out):
    out8[0] = x8[0] + int64(1000)
    out8[1] = -2.9
    out8[2] = 2.9
    out_f[0] = x8[0]
    out_f[1] = f[0]
    out[0] = float32(0.1)
    out[1] = True
    out8[3] = True


@pytest.mark.spec("N-041", "N-042", "N-043", "N-044", "N-045", "N-116")
def test_implicit_coercion(run):
    given = np.array([5], np.int8), np.array([0.1]), zeros(np.int8), zeros(np.float32), zeros()
    *_, out8, out_f, out = run(coercions, 1, 1, *given)
    np.testing.assert_array_equal(out8[:4], [np.int64(1005).astype(np.int8), -2, 2, 1])
    np.testing.assert_array_equal(out_f[:2], np.array([5, 0.1], np.float32))
    np.testing.assert_array_equal(out[:2], [np.float32(0.1), 1])


@cuda.jit
def variables(a, n, out):
    x = 1
    out[0] = x // 2
    x = 2.5
    out[1] = x
    y = 0
    for _ in range(4):
        y = y + 0.5
        out[2] = y.dtype == int64
    out[3] = y
    y = 0.5
    out[4] = y
    z = 0
    k = 0
    while k < 3:
        for _ in range(2):
            z += 1.75
        k += 1
    out[5] = z
    for i in range(3):
        first = 1
        if i > 0:
            first = 2.75
        out[6] = first
    if n > 3:
        merged = 1
    else:
        merged = 2.5
    out[7] = merged
    total = 0
    for i in range(a.size):
        total += a[i]
    out[8] = total
    after = 0
    for _ in range(2):
        after = 1.5
    after = after + 0.25
    out[9] = after


@pytest.mark.spec("N-046", "N-047", "N-048", "N-049", "N-050", "N-051", "N-052", "N-053")
def test_types_of_variables(run):
    *_, out = run(variables, 1, 1, np.array([0.5, 0.75, 1.5]), 2, zeros())
    np.testing.assert_array_equal(out[:10], [0, 2.5, 1, 0, 0.5, 6, 2, 2.5, 1, 1.25])


CASTS = {
    "int8": int8, "int16": int16, "int32": int32, "int64": int64, "uint8": uint8, "uint16": uint16, "uint32": uint32,
    "uint64": uint64, "float32": float32, "float64": float64, "intp": intp, "bool_": bool_,
}  # a table of several in a line  # fmt: skip


def cast_kernel(kind):
    @cuda.jit
    def kernel(x, out, s_out):
        v = kind(x[0])
        out[0] = v.dtype == kind
        out[1] = kind(123).dtype == kind
        out[2] = kind(1) == 1
        s = cuda.shared.array(4, kind)
        s[0] = v
        s_out[0] = s[0]

    return kernel


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.spec("N-054", "N-058", "N-134", f"N-{number:03}"))
        for name, number in zip(CASTS, (*range(59, 69), 71, 72), strict=True)
    ],
)
def test_type_objects(run, name):
    kind = CASTS[name]
    _, out, s_out = run(cast_kernel(kind), 1, 1, np.array([7.9]), zeros(), zeros())
    np.testing.assert_array_equal(out[:3], [1, 1, 1])
    assert s_out[0] == np.array(7.9).astype(kind.dtype)
    assert getattr(npm, name) is kind


@cuda.jit
def constants(out):
    must_be_int16 = int16(123)
    must_be_float32 = float32(321)
    out[0] = must_be_int16
    out[1] = must_be_float32
    out[2] = must_be_int16.dtype == int16
    out[3] = must_be_float32.dtype == float32
    one = 1
    half = 0.5
    for _ in range(1):
        one += 0
        half += 0
    out[4] = one.dtype == int64
    out[5] = half.dtype == float64
    out[6] = (out[0] * 0 + 1).dtype == float64


@pytest.mark.spec("N-055", "N-056", "N-057", "N-073", "N-099")
def test_literals(run):
    (out,) = run(constants, 1, 1, zeros())
    np.testing.assert_array_equal(out[:7], [123, 321, 1, 1, 1, 1, 1])
    assert intp is int64


@cuda.jit
def operators(a, b, f, out, known):
    out[0] = a[0] % b[0]
    out[1] = -a[0] % b[0]
    out[2] = f[0] % 2.0
    out[3] = -a[0]
    out[4] = ~a[0]
    out[5] = a[0] ** 2
    out[6] = f[0] ** 2
    out[7] = a[0] > b[0] and f[0] < 10
    out[8] = a[0] == 7 or b[0] == 0
    x = a[0]
    x //= b[0]
    out[9] = x
    out[10] = 1 < a[0] < 8
    out[11] = a[0] ** b[0]
    known[0] = (a[0] % b[0]).dtype == int8
    known[1] = (-a[0]).dtype == int8
    known[2] = (a[0] > b[0]).dtype == bool_
    known[3] = (f[0] ** a[0]).dtype == float32


@pytest.mark.spec("N-098", "N-100")
def test_other_operators(run):
    a, b, f = np.array([7], np.int8), np.array([3], np.int8), np.array([7.5], np.float32)
    *_, out, known = run(operators, 1, 1, a, b, f, zeros(), zeros(np.bool_, 4))
    np.testing.assert_array_equal(out[:12], [1, 2, 1.5, -7, -8, 49, 56.25, 1, 1, 2, 1, np.int8(87)])
    assert known.all()


@cuda.jit
def divides(x, y):
    y[0] = x[0] // x[1]
    y[1] = x[0] % x[1]
    y[2] = 5


@pytest.mark.spec("N-101")
def test_division_by_zero_raises_nothing(run):
    _, y = run(divides, 1, 1, np.array([1, 0]), zeros(np.int64))
    assert y[2] == 5


@cuda.jit
def from_the_end(x, y):
    y[0] = x[-1]


@pytest.mark.spec("N-117")
def test_constant_indices_count_from_the_end(run):
    _, y = run(from_the_end, 1, 1, np.arange(5.0), zeros())
    assert y[0] == 4


# === threads ==========================================================================================================


@cuda.jit
def positions(out):
    x, y, z = cuda.grid(3)
    mine = (z * cuda.gridDim.y * cuda.blockDim.y + y) * cuda.gridDim.x * cuda.blockDim.x + x
    out[mine, 0] = cuda.threadIdx.x
    out[mine, 1] = cuda.threadIdx.y
    out[mine, 2] = cuda.threadIdx.z
    out[mine, 3] = cuda.blockIdx.x
    out[mine, 4] = cuda.blockIdx.y
    out[mine, 5] = cuda.blockIdx.z
    out[mine, 6] = cuda.blockDim.x * 100 + cuda.blockDim.y * 10 + cuda.blockDim.z
    out[mine, 7] = cuda.gridDim.x * 100 + cuda.gridDim.y * 10 + cuda.gridDim.z


@pytest.mark.spec("N-119", "N-120", "N-121", "N-122", "N-123", "N-124", "N-125", "N-126", "N-127", "N-128", "N-129")
@pytest.mark.spec("N-130")
def test_positions(run):
    grid, block = (2, 3, 2), (4, 2, 3)
    (out,) = run(positions, grid, block, zeros(np.int64, 24 * 12, 8))
    z, y, x = np.indices((6, 6, 8)).reshape(3, -1)
    expected = [x % 4, y % 2, z % 3, x // 4, y // 2, z // 3, np.full_like(x, 423), np.full_like(x, 232)]
    np.testing.assert_array_equal(out, np.array(expected).T)


@cuda.jit
def reversed_blocks(x, y):
    s = cuda.shared.array(16, float32)
    t = cuda.threadIdx.x
    i = t + cuda.blockIdx.x * cuda.blockDim.x
    s[t] = x[i]
    cuda.syncthreads()
    y[i] = s[cuda.blockDim.x - 1 - t]


@cuda.jit
def shared_of_two_axes(x, y):
    s = cuda.shared.array(shape=(4, 4), dtype=float32)
    i, j = cuda.threadIdx.x, cuda.threadIdx.y
    s[i, j] = x[i, j]
    cuda.syncthreads()
    y[i, j] = s[j, i]


@cuda.jit
def shared_under_a_branch(x, y):
    t = cuda.threadIdx.x
    if t < 100:
        s = cuda.shared.array(8, float64)
        s[t] = x[t]
        y[t] = 2 * s[t]


@pytest.mark.spec("N-131", "N-132", "N-136", "N-137", "N-138")
def test_shared_arrays(run):
    x = np.arange(64, dtype=np.float32)
    _, y = run(reversed_blocks, 4, 16, x, np.zeros_like(x))
    np.testing.assert_array_equal(y.reshape(4, 16), x.reshape(4, 16)[:, ::-1])
    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    _, y = run(shared_of_two_axes, 1, (4, 4), x, np.zeros_like(x))
    np.testing.assert_array_equal(y, x.T)
    _, y = run(shared_under_a_branch, 1, 8, np.arange(8.0), np.zeros(8))
    np.testing.assert_array_equal(y, 2 * np.arange(8))


def quotient_and_sine(x):
    x[0] = x[1] / x[0] + math.sin(x[2])


@pytest.mark.spec("N-189")
def test_fast_math_is_an_option_of_a_kernel(run):
    """Off by default; on, f32 is what the hardware's approximations make, and tiny numbers are zeros."""
    fast = cuda.jit(quotient_and_sine, fastmath=True)
    (x,) = run(fast, 1, 1, np.array([3, 1, 2], np.float32))
    assert x[0] == pytest.approx(1 / 3 + math.sin(2), rel=1e-6)
    kernels = [cuda.jit(quotient_and_sine, fastmath=f).compile("void(float32[:])") for f in (False, True)]
    plain, other = (kernel.inspect_asm() for kernel in kernels)
    assert "div.rn.f32" in plain and not re.search(r"sin.approx|div.full|\.ftz\.", plain)
    assert "div.rn.f32" not in other and all(re.search(p, other) for p in ("sin.approx", "div.full", r"add\.ftz"))
