"""What cuda.device says of functions on tiles, of arrays on the host, and of interchange."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright.tile as ct
from cuda import device


@device.func
def scaled(a, b):
    product = a * b
    return product + 1


@ct.kernel
def on_tiles(x, y):
    tile = ct.load(x, (0,), (8,))
    ct.store(y, (0,), scaled(tile, tile))


@device.kernel
def on_numbers(x, y):
    i = device.tid(1)
    y[i] = scaled(x[i], x[i])


@pytest.mark.parametrize("interpreted", [False, True])
def test_a_function_of_threads_applies_to_each_element(interpreted: bool) -> None:
    x, y, z = np.arange(8, dtype=np.float32), np.zeros(8, np.float32), np.zeros(8, np.float32)
    if interpreted:
        on_tiles.interpret(1, (x, y))
    else:
        ct.launch(None, 1, on_tiles, (x, y))
    device.launch(on_numbers, x, z, grid=1, block=8)
    assert np.array_equal(y, x * x + 1) and np.array_equal(y, z)


@pytest.mark.spec("D-036", "D-054")
def test_arrays_of_the_host_keep_their_library() -> None:
    """A kernel takes arrays of libraries that have the whole Array API, and leaves them what they are."""
    x = np.arange(8, dtype=np.float32)
    device.launch(on_numbers, x, x, grid=1, block=8)
    assert type(x) is np.ndarray and float(np.sum(x)) == 148


@pytest.mark.spec("D-568")
def test_arrays_are_interchanged_by_dlpack() -> None:
    """With its device and a stream; what only has DLPack is an array."""

    class OnlyDlpack:
        def __init__(self, array: Any) -> None:
            self.array = array

        def __dlpack__(self, **how: Any) -> Any:
            return self.array.__dlpack__(**how)

        def __dlpack_device__(self) -> Any:
            return self.array.__dlpack_device__()

    x, y = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    device.launch(on_numbers, OnlyDlpack(x), OnlyDlpack(y), grid=1, block=4)
    assert list(y) == [1, 2, 5, 10]
