"""Arrays of structs: NumPy arrays of structured dtypes, of classes and of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright
from cuda import device
from tilewright.errors import TileTypeError


@device.struct
class Particle:
    position: device.float32x3
    mass: float
    tag: device.int8
    pair: tuple[device.int16, device.float64]

    @device.func
    def momentum(self, speed):
        return self.mass * speed


@device.kernel
def advance(particles, out):
    i = device.tid(1)
    if i < particles.shape[0]:
        p = particles[i]
        p.position = p.position + 1
        p.mass *= 2
        particles[i] = p
        particles[i].tag = 7
        particles[i].pair = (p.pair[0] + 1, 0.5)
        out[i] = p.momentum(3) + len(particles) + particles.size


@pytest.mark.spec("D-248", "D-203")
def test_arrays_of_structs(run: Any) -> None:
    x = np.zeros(5, Particle.dtype)
    x["mass"], x["position"]["y"], x["pair"]["f0"] = 3, np.arange(5), 40
    out = np.zeros(5, np.float32)
    run(advance, x, out, block=8)
    np.testing.assert_array_equal(out, 28)
    np.testing.assert_array_equal(x["position"]["y"], np.arange(5) + 1)
    assert (
        set(x["tag"]) == {7}
        and set(x["mass"]) == {6}
        and set(x["pair"]["f0"]) == {41}
        and set(x["pair"]["f1"]) == {0.5}
    )


NESTED = np.dtype([("a", "i2"), ("inner", [("b", "f4"), ("c", "u1")]), ("m", "f8", (2, 2))], align=True)
PACKED = np.dtype([("a", "i2"), ("inner", [("c", "u1"), ("b", "f4")]), ("m", "f8", (2, 2))])


@device.kernel
def fields(x, y):
    i, j = device.tid(2)
    e = x[i, j]
    f = y[i, j]
    y[i, j].a = e.a + f.a
    y[i, j].inner = e.inner
    y[i, j].m = ((e.m[0][1], e.m[0][0]), (1.5, e.inner.b))


@pytest.mark.spec("D-247")
@pytest.mark.parametrize("dtype", [NESTED, PACKED], ids=["aligned", "packed"])
def test_structured_dtypes_of_numpy(run: Any, dtype: Any) -> None:
    x = np.zeros((4, 3), dtype)[::2]
    y = np.zeros((2, 3), dtype)
    x["a"], x["inner"]["b"], x["inner"]["c"], x["m"] = 300, 0.1, 200, [[1, 2], [3, 4]]
    y["a"] = 5
    run(fields, x, y, block=(2, 3))
    assert set(y["a"].flat) == {305} and set(y["inner"]["c"].flat) == {200}
    np.testing.assert_array_equal(y["inner"]["b"], np.float32(0.1))
    np.testing.assert_array_equal(y["m"], np.broadcast_to([[2, 1], [1.5, np.float32(0.1)]], (2, 3, 2, 2)))


@pytest.mark.spec("D-197", "D-201", "D-248")
def test_what_an_element_is_not(run: Any) -> None:
    x = np.zeros(2, Particle.dtype)
    for assign, message in [
        (lambda x: x.__setitem__, "has no attribute"),
        (lambda x: x[0, 0], "is indexed by 1 integers, one an axis"),
        (lambda x: x[0].speed, "a Particle has no attribute 'speed'; it has position, mass, tag, pair"),
    ]:

        @device.kernel
        def k(x, assign: device.ConstExpr):
            assign(x)

        with pytest.raises(TileTypeError, match=message):
            device.launch(k, x, assign, grid=1, block=1)


@device.kernel
def element(x):
    x[0] = 3


@pytest.mark.spec("D-248")
def test_an_element_is_a_struct(run: Any) -> None:
    with pytest.raises(TileTypeError, match="is a Particle, found "):
        run(element, np.zeros(2, Particle.dtype))


@pytest.mark.spec("D-242", "D-248")
def test_arrays_of_our_own() -> None:
    particles = np.zeros(5, Particle.dtype)
    particles["mass"] = 3
    x, out = tilewright.to_device(particles, device="cpu"), np.zeros(5, np.float32)
    device.launch(advance, x, out, grid=1, block=8)
    np.testing.assert_array_equal(out, 28)
    assert set(x.to_numpy()["mass"]) == {6}
