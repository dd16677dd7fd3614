"""`types.SimpleNamespace` in device code: an object that gets attributes, where those of cuda.device get none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cuda import device
from tilewright.errors import TileSyntaxError, TileTypeError


@device.func
def with_square(n):
    n.square = n.x * n.x
    return n


@device.kernel
def grows(x, out):
    i = device.tid(1)
    n = SimpleNamespace(x=x[i])
    n.twice = n.x * 2
    n = with_square(n)
    n.inner = SimpleNamespace()
    n.inner.last = n.square - 1
    if n.x > 2:
        n.sign = 1
        n.kept = n.twice
    else:
        n.kept = n.inner.last
        n.sign = -1
    for k in range(x[i]):
        n.kept += n.sign * k
    out[i] = n.kept


@pytest.mark.spec("D-056")
def test_attributes_are_added(run: Any) -> None:
    """In branches, loops and functions, too."""
    x, out = np.arange(6, dtype=np.int32), np.zeros(6, np.int32)
    run(grows, x, out, grid=1, block=6)
    sums = x * (x - 1) // 2
    assert out.tolist() == np.where(x > 2, 2 * x + sums, x * x - 1 - sums).tolist()


@device.kernel
def copies(x):
    n = SimpleNamespace(x=x[0])
    m = n
    m.x = 7
    x[1], x[2] = n.x, m.x


@pytest.mark.spec("D-056")
def test_a_namespace_is_a_value(run: Any) -> None:
    """As a struct is: what has another name keeps its attributes."""
    x = np.array([3, 0, 0], np.int32)
    run(copies, x)
    assert x.tolist() == [3, 3, 7]


@pytest.mark.spec("D-056")
def test_functions_add_attributes_on_the_host() -> None:
    n = with_square(SimpleNamespace(x=3))
    assert n.square == 9


def of_one_side(x):
    n = SimpleNamespace()
    if x[0] > 0:
        n.y = 1
    x[0] = n.y


def of_none(x):
    n = SimpleNamespace(x=1)
    x[0] = n.y


def of_the_program(x):
    OUTSIDE.y = 2
    x[0] = OUTSIDE.y


def without_names(x):
    n = SimpleNamespace({"x": 1})
    x[0] = n.x


OUTSIDE = SimpleNamespace(y=1)


@pytest.mark.parametrize(
    "body, error, message",
    [
        (of_one_side, TileTypeError, "a namespace of (y|nothing) .*a namespace of (y|nothing)"),
        (of_none, TileTypeError, "a namespace of x has no attribute 'y'"),
        (of_the_program, TileSyntaxError, "'OUTSIDE' is a namespace of the program"),
        (without_names, TileTypeError, r"SimpleNamespace takes names, as in SimpleNamespace\(x=1\), found"),
    ],
)
def test_what_cannot_be_is_told(body: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        device.launch(device.kernel(body), np.zeros(2, np.int32), grid=1, block=1)
