"""Functions keep their bounds on any GPU: the emulator's approximations are off by all that the PTX ISA allows."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilewright import tile as ct

sys.path[:0] = [str(Path(__file__).parent.parent / part) for part in ("emulator", "numerics")]
import emulate  # noqa: E402 - needs the line above
import test_cast as casts  # noqa: E402
import test_library as library  # noqa: E402

pytestmark = pytest.mark.skipif(emulate.MISSING is not None, reason="the emulator compiles with clang")

COUNT = 64 * library.T


def dense(name: str, dtype: Any) -> np.ndarray:
    """Operands of every size, those between -20 and 20 more than others."""
    random = np.random.default_rng(7)
    most = float(np.max(np.abs(library.operands(name, dtype).astype(np.float64))))
    near = random.uniform(-20, 20, COUNT // 2).clip(-most, most)
    far = np.exp(random.uniform(math.log(1e-9), math.log(min(most, 1e4)), COUNT // 2))
    x = np.concatenate([near, far * random.choice([-1, 1], COUNT // 2)])
    return (np.where(x <= -1, -x, x) if name == "log1p" else x).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
@pytest.mark.parametrize("name", library.FUNCTIONS)
def test_library(name: str, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    emulate.stand_in(monkeypatch)
    exact, bound, _, _ = library.FUNCTIONS[name]
    kernel, x = library.unary_kernel(getattr(ct, name)), dense(name, dtype)
    found, expected = np.zeros_like(x), np.array([exact(float(v)) for v in x])
    ct.launch(None, COUNT // library.T, kernel, (x, found))
    scale = np.abs(x.astype(np.float64) if name == "gelu" else expected)
    assert library.units(found, expected, scale, dtype, library.absolute_bound(name, dtype)) <= bound


def test_a_logarithm_near_one() -> None:
    """Whose operand is a sum, and whose result is narrow: `lg2.approx` is off by more than that result."""

    @ct.kernel
    def kernel(X, Z):
        ct.store(Z, 0, ct.log(1 + ct.load(X, 0, 8)).astype(Z.dtype))

    x, z = np.ldexp(np.float32(1), np.arange(-23, -15)), np.zeros(8, ml_dtypes.bfloat16)
    with pytest.MonkeyPatch.context() as patch:
        emulate.stand_in(patch)
        ct.launch(None, 1, kernel, (x, z))
    assert np.allclose(z.astype(np.float32), np.log1p(x), rtol=2**-8, atol=0)


def test_quotients_that_become_8_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those halfway between two numbers go to even: no approximate division is near enough."""
    emulate.stand_in(monkeypatch)
    x, y = casts.halfway(ml_dtypes.float8_e4m3fn)
    z = np.zeros(x.size, ml_dtypes.float8_e4m3fn)
    ct.launch(None, x.size // casts.TILE, casts.narrow_quotient, (x, y, z))
    assert np.array_equal(z.view("u1"), (x / y).astype(z.dtype).view("u1"))


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_ties_of_tfloat32(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them go to even, with and without an instruction for it."""

    @ct.kernel
    def kernel(X, Z):
        i = ct.bid(0)
        ct.store(Z, i, ct.load(X, i, 4096).astype(ct.tfloat32).astype(ct.float32))

    emulate.stand_in(monkeypatch, target)
    upper = np.arange(1 << 19, dtype=np.uint32)
    x = (upper << 13 | 1 << 12).view(np.float32)
    z = np.zeros_like(x)
    ct.launch(None, len(x) // 4096, kernel, (x, z))
    even = (upper + (upper & 1) << 13).view(np.float32)
    assert np.array_equal(z, np.where(np.isnan(x), x, even), equal_nan=True)
