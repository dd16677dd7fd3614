"""Functions of whole arrays, and random numbers."""

import math

import numpy as np
import pytest

from tilewright.errors import TileTypeError, TileValueError
from tilewright.numba import cuda, float32, float64, guvectorize, vectorize
from tilewright.numba.cuda import random


@vectorize(["float32(float32, float32)", "float64(float64, float64)"], target="cuda")
def distance(x, y):
    return math.sqrt(x * x + y * y)


def test_vectorize():
    x, y = np.arange(12, dtype=np.float32).reshape(3, 4), np.ones(4, np.float32)
    found = distance(x, y)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.hypot(x, y), rtol=1e-6)
    assert distance(3.0, 4.0) == 5.0
    on_device = distance(cuda.to_device(x), cuda.to_device(x))
    assert isinstance(on_device, cuda.DeviceNDArray)
    out = np.empty_like(x)
    assert distance(x, x, out=out) is out
    np.testing.assert_array_equal(out, on_device.copy_to_host())
    assert distance(np.zeros((0, 3)), np.zeros(3)).shape == (0, 3)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: vectorize("float32(float32)", nopython=False), TileTypeError, "nopython flag must be True"),
        (lambda: vectorize("float32(float32)", what=1), TileTypeError, "target options are not supported: 'what'"),
        (lambda: distance(1, 2, 3, out=3), ValueError, "both positional and keyword"),
        (lambda: guvectorize([], "(n)->(m)")(nothing), TileValueError, "nothing that goes in has the axis m"),
        (lambda: guvectorize([], "(n->(m)")(nothing), TileValueError, "a layout is written as"),
        (lambda: guvectorize(["void(float32[:])"], "(n)->(n)")(nothing), TileTypeError, "has 2 arrays, the signature"),
        (
            lambda: product(np.zeros((2, 3)), np.zeros((4, 2))),
            TileValueError,
            "array 1 has 4 elements along n, another 3",
        ),
        (lambda: product(np.zeros(3), np.zeros(3)), TileValueError, "array 0 has 1 axes, .* needs 2 or more"),
        (lambda: product(np.zeros((1, 1), complex), np.zeros((1, 1))), TileTypeError, "none of the signatures"),
        (lambda: vectorize([float32(float32)], target="cpu"), TileValueError, "the target is 'cuda'"),
        (lambda: vectorize(["void(float32[:])"])(lambda x: x), TileTypeError, "a signature is of numbers"),
        (lambda: distance(np.zeros(3, complex), 1), TileTypeError, "none of the signatures"),
        (lambda: distance(1), TileTypeError, "takes 2 arrays, found 1"),
        (lambda: total(np.zeros((2, 2))), TileTypeError, "an array of one axis, found 2"),
    ],
)
def test_refused(make, error, words):
    with pytest.raises(error, match=words):
        make()


def nothing(x, y):
    pass


@guvectorize(["void(float32[:, :], float32[:, :], float32[:, :])", "void(float64[:, :], float64[:, :], float64[:, :])"],
             "(m,n),(n,p)->(m,p)", target="cuda")  # fmt: skip
def product(a, b, c):
    m, n = a.shape
    for i in range(m):
        for j in range(b.shape[1]):
            c[i, j] = 0
            for k in range(n):
                c[i, j] += a[i, k] * b[k, j]


@guvectorize([(float64, float64[:], float64[:], float64[:])], "(),(n)->(n),()", target="cuda")
def scaled(factor, x, y, total):
    total[0] = 0
    for i in range(x.size):
        y[i] = factor * x[i]
        total[0] += y[i]


def test_guvectorize():
    a, b = np.random.default_rng(0).random((2, 4, 1, 2, 3), np.float32)
    b = b.reshape(4, 3, 2)[:, None]
    np.testing.assert_allclose(product(a, b), a @ b, rtol=1e-5)
    np.testing.assert_allclose(product(a, b[0, 0].astype(np.float64)), a @ b[0, 0], rtol=1e-6)
    on_device = product(cuda.to_device(a), b)
    assert isinstance(on_device, cuda.DeviceNDArray) and on_device.shape == (4, 1, 2, 2)
    out = np.zeros((4, 1, 2, 2), np.float32)
    assert product(a, b, out) is out and product(a, b, out=out) is out
    np.testing.assert_array_equal(out, on_device.copy_to_host())
    assert product(np.zeros((0, 2, 3)), np.zeros((3, 2))).shape == (0, 2, 2)
    y, total_ = scaled(np.array([1.0, 2]), np.arange(4))
    np.testing.assert_array_equal(y, np.outer([1, 2], np.arange(4)))
    np.testing.assert_array_equal(total_, [6, 12])
    assert product.__name__ == "product" and (scaled.nin, scaled.nout) == (2, 2)


@vectorize
def sums(x, y):
    return x + y


def test_vectorize_without_signatures():
    """The types are those that the function turns out to have; Numba computes integers in 64 bits."""
    assert sums(np.arange(3, dtype=np.int32), np.int32(2)).dtype == np.int64
    found = sums(np.arange(3, dtype=np.float32), np.float32(0.5))
    assert found.dtype == np.float32 and found.tolist() == [0.5, 1.5, 2.5]
    assert sums.reduce(np.arange(1000)) == 499500


@cuda.reduce
def total(a, b):
    return a + b


@cuda.reduce
def largest(a, b):
    return a if a > b else b


@pytest.mark.parametrize("n", [0, 1, 2, 31, 127, 128, 129, 1000, 20000])
@pytest.mark.parametrize("dtype", [np.int64, np.float32])
def test_reduce(n, dtype):
    x = np.random.default_rng(n).integers(-50, 50, n).astype(dtype)
    assert total(x) == x.sum() and total(x, init=10) == x.sum() + 10
    assert largest(cuda.to_device(x), init=-1000) == max(-1000, *x.tolist(), -1000)
    assert total(x, size=n // 2) == x[: n // 2].sum()
    result = cuda.device_array(1, dtype)
    total(x, res=result)
    assert result[0] == x.sum()


@cuda.jit
def numbers(states, out):
    i = cuda.grid(1)
    if i < out.shape[1]:
        out[0, i] = random.xoroshiro128p_uniform_float32(states, i)
        out[1, i] = random.xoroshiro128p_uniform_float64(states, i)
        out[2, i] = random.xoroshiro128p_normal_float32(states, i)
        out[3, i] = random.xoroshiro128p_normal_float64(states, i)


@cuda.jit
def words(states, out):
    for i in range(out.size):
        out[i] = random.xoroshiro128p_next(states, 0)


def test_xoroshiro():
    states = random.create_xoroshiro128p_states(512, seed=7)
    out = np.zeros((4, 512))
    numbers[4, 128](states, out)
    assert ((out[:2] >= 0) & (out[:2] < 1)).all()
    assert abs(out[:2].mean() - 0.5) < 0.05 and abs(out[2:].mean()) < 0.15 and abs(out[2:].std() - 1) < 0.1
    assert len(np.unique(out)) == out.size
    again = np.zeros((4, 512))
    numbers[4, 128](random.create_xoroshiro128p_states(512, seed=7), again)
    np.testing.assert_array_equal(out, again)


@pytest.mark.parametrize("start", [0, 1, 6])
def test_states_of_xoroshiro_are_jumps_apart(start):
    """Made by doubling, they are those that come one after the other; a million takes no minute."""
    states = random.init_xoroshiro128p_states_cpu(21, 2**64 - 5, start)
    found = random.init_xoroshiro128p_states_cpu(1, 2**64 - 5)[0]
    expected = [tuple(map(int, found))]
    for _ in range(20 + start):
        expected.append(random._jumped(*expected[-1]))
    assert [tuple(map(int, state)) for state in states] == expected[start:]
    assert len(random.init_xoroshiro128p_states_cpu(1 << 20, 1)) == 1 << 20
    assert random.init_xoroshiro128p_states_cpu(0, 1).shape == (0,)


def test_words_of_xoroshiro():
    """The generator itself, in Python."""
    states = random.init_xoroshiro128p_states_cpu(2, 1)
    s0, s1 = (int(v) for v in states[0])
    assert s0 == s1 == 0x910A2DEC89025CC1  # SplitMix64's first number of the seed 1
    expected = []
    for _ in range(5):
        expected.append((s0 + s1) % 2**64)
        s0, s1 = random._stepped(s0, s1)
    out = np.zeros(5, np.uint64)
    words[1, 1](states, out)
    assert out.tolist() == expected


def test_an_output_without_an_axis_of_one():
    """A number that comes as an array of one makes an axis, which the output may lack."""

    @guvectorize(["void(int32[:], int32[:], int32[:])"], "(n),()->(n)")
    def added(x, y, out):
        for i in range(x.size):
            out[i] = x[i] + y[0]

    x, out = np.arange(4, dtype=np.int32), np.zeros(4, np.int32)
    added(x, np.array([2], np.int32), out=out)
    assert out.tolist() == [2, 3, 4, 5]
