"""Dates and durations: they are copied to a device, and kernels take their numbers."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright.tile as ct
from cuda import device
from tilewright.errors import TileTypeError
from tilewright.numba import cuda

DATES = np.arange("2005-02", "2005-03", dtype="datetime64[D]")


@cuda.jit
def later(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] += 7


@pytest.mark.parametrize("host", [DATES, DATES - DATES[0], DATES.astype("datetime64[ns]")])
def test_their_numbers(host) -> None:
    array = cuda.to_device(host)
    assert array.dtype == host.dtype
    later[1, 32](array.view(np.int64))
    np.testing.assert_array_equal(array.copy_to_host().view(np.int64), host.view(np.int64) + 7)


@ct.kernel
def tiles(x):
    pass


@device.kernel
def threads(x):
    pass


LAUNCHES = {
    "numba": lambda x: later[1, 32](x),
    "tiles": lambda x: ct.launch(None, 1, tiles, (x,)),
    "threads": lambda x: device.launch(threads, x, grid=1, block=1),
}


@pytest.mark.parametrize("place", [np.asarray, cuda.to_device])
@pytest.mark.parametrize("launch", LAUNCHES.values(), ids=LAUNCHES)
def test_kernels_have_none(launch, place) -> None:
    with pytest.raises(TileTypeError, match=r"dtype datetime64\[D\] is not supported; pass its numbers, as in x.view"):
        launch(place(DATES))
