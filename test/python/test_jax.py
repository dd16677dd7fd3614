"""tilewright.jax: kernels in functions that JAX traces. JAX is none of the requirements: without it one test runs."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from tilewright import dropin
from tilewright import jax as tj
from tilewright import tile as ct


@ct.kernel
def scale(x, y, c: ct.Constant):
    i = ct.bid(0)
    ct.store(y, i, ct.load(x, i, 4) * c)


@ct.kernel
def halve(x):
    i = ct.bid(0)
    ct.store(x, i, ct.load(x, i, 4) / 2)


@ct.kernel
def both(x: tuple[ct.Array, int], ys):
    i = ct.bid(0)
    t = ct.load(x[0], i, 4)
    ct.store(ys[0], i, t + x[1])
    ct.store(ys[1], i, -t)


@ct.kernel
def writes(x, y):
    ct.store(x, 0, ct.load(y, 0, 4))


def test_without_jax() -> None:
    """The module is there; a call says what is missing."""
    script = (
        "import sys; sys.modules['jax'] = None\n"
        "from tilewright.jax import cutile_call\n"
        "try: cutile_call((1,), None, ())\n"
        "except ImportError as error: print(error)\n"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert found == "cutile_call needs JAX, which is not installed: pip install jax\n"


@pytest.fixture
def jax() -> Any:
    return pytest.importorskip("jax", reason="JAX is none of the requirements")


def test_in_a_function_under_jit(jax: Any) -> None:
    """An output, one that is changed in its place, several; and as often as JAX calls the function."""

    def graph(x: Any, c: float) -> Any:
        y = tj.cutile_call((3,), scale, (x, tj.OutputPlaceholder(x.shape, x.dtype), c))
        y = tj.cutile_call((3,), halve, (tj.InputOutput(y),))
        a, b = tj.cutile_call((3,), both, ((y, 5), (tj.OutputPlaceholder(y.shape, y.dtype),) * 2))
        return a, b, y

    x = jax.numpy.arange(10, dtype=np.float32)
    for run in (graph, jax.jit(graph, static_argnums=1)):
        for c in (3, 0.5):
            a, b, y = run(x, c)
            np.testing.assert_array_equal(y, np.asarray(x) * c / 2)
            np.testing.assert_array_equal(a, np.asarray(y) + 5)
            np.testing.assert_array_equal(b, -np.asarray(y))
    np.testing.assert_array_equal(x, np.arange(10, dtype=np.float32))  # which nothing has changed


def test_under_vmap(jax: Any) -> None:
    rows = jax.numpy.arange(8, dtype=np.float32).reshape(2, 4)
    found = jax.vmap(lambda x: tj.cutile_call((1,), scale, (x, tj.OutputPlaceholder(x.shape, x.dtype), 2)))(rows)
    np.testing.assert_array_equal(found, 2 * np.asarray(rows))


def test_what_is_refused(jax: Any) -> None:
    x = jax.numpy.zeros(4)
    place = tj.OutputPlaceholder((4,), np.float32)
    for args, message in [
        ((x, place), "scale expects a tuple of 3 arguments, got 2"),
        ((x, x, 2), "no argument of scale is an OutputPlaceholder or an InputOutput"),
        ((np.zeros(4), place, 2), "argument 'x': expected an array of JAX"),
    ]:
        with pytest.raises(TypeError, match=message):
            tj.cutile_call((1,), scale, args)
    with pytest.raises(TypeError, match="argument 'x' expects a tuple of length 2, got 1"):
        tj.cutile_call((1,), both, ((x,), (place, place)))
    with pytest.raises(TypeError, match=r"needs a @ct\.kernel"):
        tj.cutile_call((1,), len, (x, place, 2))
    with pytest.raises(Exception, match="writes to x, which is read-only"):
        jax.block_until_ready(tj.cutile_call((1,), writes, (x, tj.InputOutput(x))))


def test_its_name_under_dropin() -> None:
    assert dropin._MODULES["cuda.tile.jax"] == "tilewright.jax"
