"""Functions of whole arrays, and random numbers."""

import math

import numpy as np
import pytest

from tilewright.errors import TileTypeError, TileValueError
from tilewright.numba import cuda, float32, vectorize
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
        (lambda: vectorize(lambda x: x), TileTypeError, "needs signatures"),
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
